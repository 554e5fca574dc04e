cimport cython

ctypedef fused Cell:
    short
    int

@cython.locals(
    depth=Py_ssize_t, rows=Py_ssize_t, groups=Py_ssize_t, fresh=cython.bint, level=Py_ssize_t, digit=cython.longlong,
    a=Py_ssize_t, a_end=Py_ssize_t, b=Py_ssize_t, b_end=Py_ssize_t, code=cython.longlong,
)
cpdef void match_rows(
    const long long[::1] one, const long long[::1] two, const long long[:, ::1] levels, const long long[:, ::1] rules,
    int drop, Py_ssize_t most, long long[:, ::1] stack, int[::1] begins, int[::1] left, int[::1] right,
    signed char[::1] digits, long long[::1] codes, long long[::1] counts)

cdef void enter(
    long long[:, ::1] stack, Py_ssize_t level, Py_ssize_t a, Py_ssize_t a_end, Py_ssize_t b, Py_ssize_t b_end,
    long long code) noexcept

@cython.locals(middle=Py_ssize_t)
cdef Py_ssize_t first_above(
    const long long[::1] codes, Py_ssize_t begin, Py_ssize_t end, int place, long long digit) noexcept

@cython.locals(
    state=cython.longlong, begin=Py_ssize_t, r=Py_ssize_t, other=cython.longlong,
)
cdef bint breaks(
    const long long[:, ::1] levels, const long long[:, ::1] rules, Py_ssize_t level, long long[:, ::1] stack) noexcept

@cython.locals(
    entries=cython.longlong, sums=cython.longlong, g=Py_ssize_t, i=Py_ssize_t, a=Py_ssize_t, b=Py_ssize_t,
    low=cython.longlong, high=cython.longlong, at=cython.longlong, length=cython.longlong, width=cython.longlong,
)
cpdef void measure_rows(
    const int[::1] begins, const int[::1] left, const int[::1] right, const signed char[::1] digits, const int[::1] steps,
    const int[::1] first_one, const long long[::1] ptr_one, const int[::1] first_two, const long long[::1] ptr_two,
    int[::1] first, long long[::1] ptr, long long[::1] counts)

@cython.locals(
    g=Py_ssize_t, t=Py_ssize_t, i=Py_ssize_t, a=Py_ssize_t, b=Py_ssize_t, d=Py_ssize_t, at=Py_ssize_t, begin=Py_ssize_t,
    length=Py_ssize_t, p=Py_ssize_t, q=Py_ssize_t, x=Cell, y=Cell, z=Cell,
)
cpdef void join_rows(
    const int[::1] begins, const int[::1] left, const int[::1] right, const signed char[::1] digits, const int[::1] steps,
    const int[::1] gains, const int[::1] first_one, const long long[::1] ptr_one, const Cell[::1] one,
    const int[::1] first_two, const long long[::1] ptr_two, const Cell[::1] two, const int[::1] first,
    const long long[::1] ptr, Cell never, Cell[::1] out)
