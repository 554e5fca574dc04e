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
    int[::1] mark, int[::1] queue, long long budget, int[::1] found)

@cython.locals(i=Py_ssize_t, j=Py_ssize_t, k=Py_ssize_t, v=cython.int, p=cython.int, bits=cython.ulonglong)
cpdef void sweep(
    Py_ssize_t begin, Py_ssize_t end, const int[::1] order, const int[::1] parent_ptr, const int[::1] parent,
    unsigned long long[:, ::1] reached, unsigned long long[:, ::1] twice)
