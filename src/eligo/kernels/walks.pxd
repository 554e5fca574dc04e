cimport cython

@cython.locals(
    b=Py_ssize_t, i=Py_ssize_t, kind=cython.int, begin=cython.int, end=cython.int, at=cython.int,
    shared=cython.int, private=cython.int,
)
cpdef void end_to_end(
    const int[::1] letter, const int[::1] source_ptr, const int[::1] sources, const int[::1] sink_ptr, const int[::1] sinks,
    const int[::1] child_ptr, const int[::1] child, const int[::1] parent_ptr, const int[::1] parent,
    int[::1] seen, int[::1] out)

@cython.locals(i=Py_ssize_t, count=cython.int)
cpdef int shared_count(int u, const int[::1] ptr, const int[::1] rows, const int[::1] back_ptr)

@cython.locals(i=Py_ssize_t, j=Py_ssize_t, w=cython.int, following=cython.int)
cpdef void along_sources(
    int at, int place, const int[::1] child_ptr, const int[::1] child, const int[::1] parent_ptr, const int[::1] parent,
    int[::1] seen, int[::1] out)

@cython.locals(i=Py_ssize_t, u=cython.int, link=cython.int, following=cython.int)
cpdef void along_sinks(
    int at, int place, const int[::1] child_ptr, const int[::1] child, const int[::1] parent_ptr, const int[::1] parent,
    int[::1] seen, int[::1] out)
