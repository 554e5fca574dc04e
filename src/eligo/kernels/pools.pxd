cimport cython
from eligo.kernels.boards cimport Board, Heap

cdef int LOOK

@cython.final
cdef class Crew:
    cdef public Board board
    cdef const double[::1] speeds, after
    cdef double aim
    cdef const long long[::1] sizes
    cdef const int[::1] sort, members
    cdef long long room, free, asked
    cdef Heap waiting, ends
    cdef int[::1] task, local, first, passed
    cdef list queues
    @cython.locals(k=cython.int, i=cython.int)
    cpdef void part(self)
    cpdef void aim_at(self, double aim, const double[::1] after)
    @cython.locals(now=cython.double, count=cython.int, v=cython.int, c=cython.int)
    cpdef double play(
        self, unsigned long long seed, const double[::1] seconds, double[::1] begin, double[::1] end, int[::1] worker,
        int[::1] order)
    @cython.locals(k=cython.int, c=cython.int)
    cpdef void reset(self, unsigned long long seed)
    cpdef void ask(self, int c) noexcept
    @cython.locals(k=cython.int, queue=Heap)
    cpdef void take(self, int v)
    @cython.locals(chosen=cython.int, k=cython.int, i=cython.int, v=cython.int, queue=Heap)
    cpdef int next_task(self)
    @cython.locals(best=Heap, count=cython.int, i=cython.int, v=cython.int)
    cpdef int in_time(self, int c, double now, const double[::1] seconds)
    @cython.locals(best=Heap, v=cython.int, queue=Heap)
    cpdef void part_ready(self)

@cython.locals(leaves=Py_ssize_t, i=Py_ssize_t, k=Py_ssize_t, lower=cython.double)
cpdef void best_window(
    const double[::1] heads, const int[::1] places, const double[::1] loads, const double[::1] tails,
    double[::1] tree, double[::1] sums, double[::1] out) noexcept

@cython.locals(k=Py_ssize_t, lower=cython.double)
cpdef Py_ssize_t best_leaf(double[::1] tree, double[::1] sums, Py_ssize_t leaves) noexcept
