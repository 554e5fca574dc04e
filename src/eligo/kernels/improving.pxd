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

@cython.final
cdef class Lineup:
    cdef const int[::1] child_ptr, child, parent_ptr, parent
    cdef int[::1] order, place, last
    cdef int[::1] mark, taken, passed, kept
    cdef int stamp, end, at, quiet, reach, n, k
    cdef public long long saved, work
    @cython.locals(saved=cython.longlong)
    cpdef bint improve(self, long long most) noexcept
    @cython.locals(change=cython.longlong, u=cython.int, i=cython.int, w=cython.int)
    cpdef long long pull_at(self, int p) noexcept
    @cython.locals(change=cython.longlong)
    cpdef long long push_at(self, int p) noexcept
    @cython.locals(
        change=cython.longlong, best=cython.longlong, movers=cython.longlong, passed=cython.longlong,
        counting=cython.longlong, q=cython.int, u=cython.int, i=cython.int, c=cython.int, at=cython.int)
    cpdef long long pull(self, int w, int p) noexcept
    @cython.locals(
        change=cython.longlong, best=cython.longlong, movers=cython.longlong, passed=cython.longlong,
        counting=cython.longlong, q=cython.int, u=cython.int, i=cython.int, c=cython.int, at=cython.int)
    cpdef long long push(self, int p) noexcept
    @cython.locals(count=cython.int, i=cython.int)
    cpdef int rendered_at(self, int u, int p) noexcept
    @cython.locals(i=cython.int)
    cpdef void mark_all(self, const int[::1] ptr, const int[::1] rows, int v) noexcept
    @cython.locals(latest=cython.int, i=cython.int, u=cython.int)
    cpdef int last_mover(self, int c, int before) noexcept
    @cython.locals(first=cython.bint, size=cython.int, q=cython.int, p=cython.int, u=cython.int, i=cython.int)
    cpdef void split(self, int begin, int end) noexcept
    @cython.locals(p=cython.int, u=cython.int, i=cython.int, c=cython.int)
    cpdef void settle(self, int begin, int end) noexcept
