cimport cython

@cython.final
cdef class Network:
    cdef const int[::1] child_ptr, child, parent_ptr, parent
    cdef int[::1] twin, label, cursor, queue, height
    cdef long long[::1] flow, worth, room, passed
    cdef int n, part, limit
    cdef Py_ssize_t first, last, ways
    cdef long long measured
    cdef public long long work
    @cython.locals(v=cython.int, a=cython.int)
    cpdef void pair(self) noexcept
    @cython.locals(patience=cython.longlong, x=cython.int, rise=cython.int, stuck=Py_ssize_t)
    cpdef Py_ssize_t fit(self, long long p, long long q, const int[::1] tasks, const int[::1] renders) noexcept
    @cython.locals(i=Py_ssize_t, x=cython.int, u=cython.int)
    cpdef void begin(self, long long p, long long q, const int[::1] tasks, const int[::1] renders) noexcept
    @cython.locals(i=Py_ssize_t, a=cython.int, arcs=Py_ssize_t)
    cpdef Py_ssize_t still(self, const int[::1] tasks) noexcept
    @cython.locals(i=Py_ssize_t, at=Py_ssize_t, x=cython.int)
    cpdef void measure(self, const int[::1] tasks, const int[::1] renders) noexcept
    cpdef void see(self, int x, int height) noexcept
    @cython.locals(a=cython.int, x=cython.int)
    cpdef void see_before_execution(self, int u, int height) noexcept
    @cython.locals(i=cython.int, u=cython.int)
    cpdef void see_before_rendering(self, int v, int height) noexcept
    cpdef void await_turn(self, int x) noexcept
    cpdef void give(self, int x, long long some) noexcept
    @cython.locals(v=cython.int, below=cython.int, i=cython.int, u=cython.int, own=cython.bint, some=cython.longlong, lowest=cython.int)
    cpdef int hand_down(self, int x) noexcept
    @cython.locals(below=cython.int, own=cython.bint, a=cython.int, y=cython.int, some=cython.longlong, lowest=cython.int)
    cpdef int hand_back(self, int x) noexcept
    @cython.locals(i=Py_ssize_t, at=Py_ssize_t, x=cython.int)
    cpdef Py_ssize_t reach(self, const int[::1] tasks, const int[::1] renders) noexcept
    @cython.locals(x=cython.int, a=cython.int)
    cpdef void see_behind_execution(self, int u) noexcept
    @cython.locals(i=cython.int, u=cython.int)
    cpdef void see_behind_rendering(self, int v) noexcept
