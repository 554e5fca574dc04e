cimport cython

@cython.locals(
    b=Py_ssize_t, i=Py_ssize_t, j=Py_ssize_t, k=Py_ssize_t, kind=cython.int, begin=cython.int, end=cython.int,
    at=cython.int, u=cython.int, w=cython.int, shared=cython.int, private=cython.int, following=cython.int, link=cython.int,
)
cpdef void end_to_end(
    const int[::1] letter, const int[::1] source_ptr, const int[::1] sources, const int[::1] sink_ptr, const int[::1] sinks,
    const int[::1] child_ptr, const int[::1] child, const int[::1] parent_ptr, const int[::1] parent,
    int[::1] seen, int[::1] out)
