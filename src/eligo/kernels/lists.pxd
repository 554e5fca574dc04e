cimport cython

@cython.locals(
    n=Py_ssize_t, kinds=Py_ssize_t, size=Py_ssize_t, done=Py_ssize_t, i=Py_ssize_t, j=Py_ssize_t,
    u=cython.int, v=cython.int, w=cython.int, before=cython.int, change=cython.double, stale=cython.bint,
)
cpdef Py_ssize_t list_order(
    const int[::1] child_ptr, const int[::1] child, const int[::1] parent_ptr, const int[::1] parent,
    int[::1] missing, double[::1] score, const double[::1] gain, int[::1] state,
    double[::1] key, int[::1] heap, int[::1] order)

@cython.locals(i=Py_ssize_t, up=Py_ssize_t)
cpdef Py_ssize_t push(int[::1] heap, double[::1] key, Py_ssize_t size, int v, double k)

@cython.locals(i=Py_ssize_t, j=Py_ssize_t, v=cython.int, k=cython.double)
cpdef Py_ssize_t pop(int[::1] heap, double[::1] key, Py_ssize_t size)
