cimport cython
from libc cimport math
from eligo.kernels.boards cimport Board, Draws, Heap

@cython.final
cdef class Crowd:
    cdef Board board
    cdef Draws draws
    cdef Heap events, waiting, running
    cdef int count, most_copies
    cdef bint fixed, speeds_known, fastest
    cdef double leave, come, keep, patience, renewal, spread, slow, overdue
    cdef unsigned long long[::1] streams
    cdef int[::1] refused, present, task, believed, copies, holders
    cdef double[::1] speed, since, came, remaining, worked, work_done, time_done, work, expected, began
    cdef double now, total_work, total_time, useful, wasted, stalled, here
    cdef long long asked, finished
    cdef public object log
    @cython.locals(slot=cython.int, c=cython.int, undone=cython.int, fruitless=cython.int)
    cpdef int play(self, unsigned long long seed, const double[::1] seconds, bint drawn, const double[::1] expected, double[::1] outcome) noexcept
    @cython.locals(v=cython.int, c=cython.int, base=cython.ulonglong)
    cdef void reset(self, unsigned long long seed, const double[::1] seconds, bint drawn, const double[::1] expected) noexcept
    @cython.locals(u=cython.double, phase=cython.double)
    cdef void come_first(self, int c) noexcept
    @cython.locals(bits=cython.ulonglong, root=cython.double, speed=cython.double, _=cython.int)
    cdef void introduce(self, int c) noexcept
    cdef void happen(self, int slot, double after) noexcept
    @cython.locals(u=cython.double)
    cdef double length(self) noexcept
    @cython.locals(keeps=cython.bint, renewed=cython.bint, away=cython.double, v=cython.int)
    cdef void go(self, int c) noexcept
    cdef void enter(self, int c) noexcept
    cdef void ask(self, int c) noexcept
    @cython.locals(i=cython.int, c=cython.int, pace=cython.double)
    cdef void by_pace(self) noexcept
    cdef bint is_slow(self, int c) noexcept
    @cython.locals(c=cython.int, v=cython.int, refused=cython.int, i=cython.int)
    cdef void serve(self) noexcept
    @cython.locals(v=cython.int, due=cython.double)
    cdef int choose(self, int c) noexcept
    @cython.locals(c=cython.int)
    cdef bint faster_present(self) noexcept
    cdef void hand_out(self, int c, int v) noexcept
    @cython.locals(v=cython.int, took=cython.double, other=cython.int)
    cdef void deliver(self, int c) noexcept
    cdef void stop(self, int c) noexcept
    cdef void drop(self, int c) noexcept
    @cython.locals(v=cython.int)
    cdef void give_up(self, int c) noexcept
