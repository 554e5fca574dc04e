cimport cython

@cython.locals(
    n=Py_ssize_t, i=Py_ssize_t, j=Py_ssize_t, u=cython.int, v=cython.int, w=cython.int, x=cython.int, y=cython.int,
    above=cython.int, below=cython.int, met=cython.int, down_cost=cython.longlong, up_cost=cython.longlong,
    next_down=cython.longlong, next_up=cython.longlong,
    down_head=Py_ssize_t, down_tail=Py_ssize_t, up_head=Py_ssize_t, up_tail=Py_ssize_t,
)
cpdef void second_way(
    const int[::1] tail, const int[::1] head, const int[::1] child_ptr, const int[::1] child,
    const int[::1] parent_ptr, const int[::1] parent, const int[::1] level, const int[::1] height,
    int[::1] mark, int[::1] queue, int[::1] found)
