cimport cython

@cython.final
cdef class Network:
    cdef const int[::1] ptr, head, twin
    cdef long long[::1] room
    cdef int[::1] distance, cursor, queue, path
    cdef int n
    cdef public long long work
    cdef public bint complete
    @cython.locals(amount=cython.longlong, last=cython.longlong, entries=cython.int, i=cython.int)
    cpdef long long fill(self, const int[::1] side, int[::1] entry, long long most) noexcept
    @cython.locals(last=cython.int, first=cython.int, entries=cython.int, x=cython.int, y=cython.int, a=cython.int)
    cpdef int measure(self, const int[::1] side, int[::1] entry) noexcept
    @cython.locals(
        sent=cython.longlong, some=cython.longlong, length=cython.int, shortest=cython.int, x=cython.int, i=cython.int,
        begin=cython.int, end=cython.int, a=cython.int,
    )
    cpdef long long send(self, const int[::1] side, int entry) noexcept

@cython.locals(last=cython.int, first=cython.int, x=cython.int, y=cython.int, a=cython.int)
cpdef void spread(int v, const int[::1] ptr, const int[::1] rows, int[::1] side, int mark, int[::1] queue) noexcept
