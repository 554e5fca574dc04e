cimport cython
from libc cimport math

cdef unsigned long long MASK, STEP, MIX_ONE, MIX_TWO
cdef double UNIT
cdef int RANK, FIRST, LAST, WAITING, READY, OUT, DONE

@cython.final
cdef class Draws:
    cdef public unsigned long long state
    @cython.locals(z=cython.ulonglong)
    cpdef unsigned long long draw(self) noexcept
    cpdef double fraction(self) noexcept
    cpdef int below(self, unsigned long long n) noexcept
    @cython.locals(total=cython.double, first=cython.ulonglong, last=cython.ulonglong, u=cython.ulonglong, odd=cython.bint)
    cpdef double exponential(self) noexcept
    @cython.locals(other=Draws)
    cpdef unsigned long long branch(self, unsigned long long number) noexcept

@cython.final
cdef class Heap:
    cdef public int size, capacity
    cdef int[::1] items, place
    cdef double[::1] key
    cdef long long[::1] tie
    @cython.locals(i=cython.int)
    cpdef void clear(self) noexcept
    cpdef int top(self) noexcept
    @cython.locals(i=cython.int)
    cpdef void put(self, int v, double key, long long tie) noexcept
    @cython.locals(i=cython.int, w=cython.int)
    cpdef void remove(self, int v) noexcept
    cpdef bint before(self, int v, int w) noexcept
    @cython.locals(w=cython.int)
    cpdef void rise(self, int v, int i) noexcept
    @cython.locals(w=cython.int, j=cython.int)
    cpdef void sink(self, int v, int i) noexcept

@cython.final
cdef class Board:
    cdef const int[::1] child_ptr, child, parent_ptr, parent, sources, rank
    cdef const double[::1] score, phi, lead
    cdef public double square
    cdef public int ties, n, done
    cdef public bint both_ends, leading
    cdef public Draws draws
    cdef public Heap best, worst, worst_late, opened
    cdef public int[::1] state, group, late
    cdef int[::1] missing, awaited, far, taken, moved
    cdef unsigned char[::1] moving
    cdef double[::1] gain
    cdef long long[::1] tie
    cdef long long arrived
    @cython.locals(count=cython.int)
    cpdef void reset(self, unsigned long long seed) noexcept
    @cython.locals(v=cython.int, i=cython.int, count=cython.int)
    cpdef int empty(self, unsigned long long seed) noexcept
    @cython.locals(waiting=cython.int)
    cpdef void take(self, int v) noexcept
    @cython.locals(v=cython.int, opening=cython.bint)
    cpdef list choose(self, Py_ssize_t most, bint modest, double room, const double[::1] seconds, const unsigned char[::1] codes, object admits)
    @cython.locals(heap=Heap)
    cpdef int first(self, bint modest, list passed, object admits) except -2
    @cython.locals(w=cython.int, key=cython.double)
    cpdef int sooner(self, int v) noexcept
    @cython.locals(w=cython.int, i=cython.int)
    cpdef int open_below(self, int v, const unsigned char[::1] codes, object admits) except -1
    @cython.locals(v=cython.int, i=cython.int)
    cpdef void close_below(self, list chosen) noexcept
    cpdef void hide(self, int v) noexcept
    cpdef void lose(self, int v) noexcept
    cpdef void give_back(self, int v) noexcept
    @cython.locals(i=cython.int, w=cython.int, count=cython.int)
    cpdef int finish(self, int v) noexcept
    cpdef void execute(self, int v) noexcept
    cpdef bint is_queue(self) noexcept
    cpdef bint is_done(self, int v) noexcept
    @cython.locals(i=cython.int)
    cpdef void arrive_some(self, int begin, int end, int count) noexcept
    @cython.locals(i=cython.int, j=cython.int, w=cython.int, begin=cython.int)
    cpdef void shuffle(self, int count) noexcept
    cpdef void arrive(self, int v) noexcept
    @cython.locals(key=cython.double)
    cpdef double worth(self, int v) noexcept
    @cython.locals(key=cython.double)
    cpdef void place(self, int v) noexcept
    @cython.locals(i=cython.int, j=cython.int, w=cython.int, u=cython.int, moved=cython.int, change=cython.double)
    cpdef void turn(self, int v, int far, int awaited) noexcept
    cpdef double release(self, int w) noexcept
