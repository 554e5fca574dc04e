cimport cython

@cython.locals(r=Py_ssize_t, t=Py_ssize_t, i=Py_ssize_t, j=Py_ssize_t, a=cython.int, b=cython.int, x=cython.int, y=cython.int)
cpdef void join_rows(
    const int[:, ::1] narrow, const int[:, ::1] wide, const int[::1] i_narrow, const int[::1] i_wide, int never, int[:, ::1] out)

@cython.locals(g=Py_ssize_t, t=Py_ssize_t, i=Py_ssize_t, r=cython.int, first=cython.int)
cpdef void best_rows(const int[:, ::1] values, const int[::1] order, const int[::1] begins, int[:, ::1] out)
