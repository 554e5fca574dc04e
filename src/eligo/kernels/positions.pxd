cimport cython

@cython.locals(count=cython.int)
cpdef int tasks_of(long long x, Py_ssize_t word, const int[::1] weights)

@cython.locals(w=Py_ssize_t, g=Py_ssize_t, m=cython.longlong)
cpdef void look(
    Py_ssize_t at, Py_ssize_t words, Py_ssize_t groups, const int[::1] weights, const long long[::1] need,
    const long long[::1] opens, const long long[::1] sources, const long long[::1] masks, long long[::1] missed, int[:, ::1] seen)

@cython.locals(once=Py_ssize_t, twice=Py_ssize_t, w=Py_ssize_t, g=Py_ssize_t, m=cython.longlong)
cpdef void shared(Py_ssize_t words, Py_ssize_t groups, long long[::1] missed, const int[:, ::1] seen)

@cython.locals(total=Py_ssize_t, g=Py_ssize_t, i=Py_ssize_t, w=Py_ssize_t)
cpdef Py_ssize_t playable(Py_ssize_t words, Py_ssize_t groups, Py_ssize_t only, const long long[::1] missed, int[:, ::1] seen)

@cython.locals(u=Py_ssize_t, x=cython.longlong, j=Py_ssize_t, w=Py_ssize_t)
cpdef Py_ssize_t inside(
    Py_ssize_t words, Py_ssize_t g, const long long[::1] missed, const int[:, ::1] seen, const int[::1] lowest)

@cython.locals(u=Py_ssize_t, x=cython.longlong, place=Py_ssize_t)
cpdef void list_lowest(Py_ssize_t words, Py_ssize_t j, const long long[::1] missed, int[:, ::1] seen, int[::1] lowest)

@cython.locals(kept=Py_ssize_t, i=Py_ssize_t, j=Py_ssize_t, g=Py_ssize_t, place=Py_ssize_t)
cpdef Py_ssize_t minimal(
    Py_ssize_t words, Py_ssize_t total, const int[::1] opening, const int[::1] count, const long long[::1] missed,
    int[:, ::1] seen, int[::1] lowest)

@cython.locals(kept=Py_ssize_t, i=Py_ssize_t, j=Py_ssize_t, g=Py_ssize_t, w=Py_ssize_t, fresh=cython.int, alone=cython.int)
cpdef Py_ssize_t different(
    Py_ssize_t words, Py_ssize_t groups, Py_ssize_t total, long long[::1] missed, int[:, ::1] seen)

@cython.locals(
    compared=Py_ssize_t, changed=cython.int, base=Py_ssize_t, s=Py_ssize_t, i=Py_ssize_t, end=Py_ssize_t,
    one=cython.longlong, other=cython.longlong, a=cython.int, b=cython.int,
)
cpdef Py_ssize_t settle(
    Py_ssize_t words, Py_ssize_t at, long long[::1] masks, const int[::1] pair_ptr, const int[::1] pair_a, const int[::1] pair_b)

@cython.locals(unit=cython.longlong)
cpdef void flip(long long[::1] masks, Py_ssize_t base, int v)

@cython.locals(h=cython.longlong, w=Py_ssize_t, slot=Py_ssize_t, places=Py_ssize_t, same=cython.int)
cpdef Py_ssize_t slot_of(Py_ssize_t words, Py_ssize_t at, const long long[::1] masks, const int[::1] table)

@cython.locals(at=Py_ssize_t)
cpdef void enter_all(Py_ssize_t words, Py_ssize_t used, const long long[::1] masks, int[::1] table)

@cython.locals(trace=cython.longlong, i=Py_ssize_t)
cpdef long long trace_of(Py_ssize_t words, Py_ssize_t at, const int[::1] marks, const long long[::1] masks)

@cython.locals(
    groups=Py_ssize_t, c=Py_ssize_t, used=Py_ssize_t, at=Py_ssize_t, total=Py_ssize_t, kept=Py_ssize_t, j=Py_ssize_t, g=Py_ssize_t,
    end=Py_ssize_t, w=Py_ssize_t, slot=Py_ssize_t, entry=Py_ssize_t, reached=cython.longlong,
)
cpdef Py_ssize_t expand(
    const int[::1] chosen, Py_ssize_t first, Py_ssize_t last, Py_ssize_t words, const int[::1] weights, const long long[::1] need,
    const long long[::1] opens, const long long[::1] sources, const int[::1] opening, const int[::1] count,
    const int[::1] pair_ptr, const int[::1] pair_a, const int[::1] pair_b, const long long[::1] rest, const int[::1] marks,
    const long long[::1] left, long long[::1] masks, long long[::1] area, int[:, ::1] columns, int[::1] table,
    long long[::1] missed, int[:, ::1] seen, int[::1] lowest, long long[::1] state)
