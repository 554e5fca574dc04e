cimport cython

cdef int WAITS, RUNS, ENDED, LOST
cdef long long NONE

@cython.final
cdef class Ledger:
    cdef public long long[::1] size, most, left
    cdef public int[::1] status, place, first, last, unread, kept
    cdef const int[::1] writer, reader_ptr, reader, written_ptr, written, read_ptr, read
    cdef long long[::1] more
    cdef int[::1] task_at, file_of, below, above
    cdef int files, tasks, leaves
    cdef public int running, front
    cdef public long long live
    @cython.locals(p=cython.int, v=cython.int, k=cython.int, f=cython.int, j=cython.int)
    cpdef void begin(self) noexcept
    @cython.locals(low=cython.int, high=cython.int)
    cpdef void add(self, int begin, int end, long long some) noexcept
    cpdef void rise(self, int k) noexcept
    cpdef long long peak(self) noexcept
    @cython.locals(k=cython.int, v=cython.int)
    cpdef int next_task(self) noexcept
    @cython.locals(begin=cython.int, v=cython.int)
    cpdef void forecast(self, int f, long long some) noexcept
    @cython.locals(end=cython.int)
    cpdef int end_of(self, int f) noexcept
    @cython.locals(f=cython.int)
    cpdef void link(self, int j, int below, int above) noexcept
    @cython.locals(f=cython.int, below=cython.int, above=cython.int)
    cpdef void unlink(self, int j) noexcept
    @cython.locals(more=cython.longlong, v=cython.int)
    cpdef void resize(self, int f, long long size) noexcept
    @cython.locals(i=cython.int)
    cpdef void start(self, int v) noexcept
    @cython.locals(f=cython.int, end=cython.int)
    cpdef void leave(self, int j) noexcept
    @cython.locals(i=cython.int, j=cython.int, f=cython.int, end=cython.int)
    cpdef void give_back(self, int v, bint undo) noexcept
    @cython.locals(i=cython.int, f=cython.int)
    cpdef void finish(self, int v) noexcept
    @cython.locals(i=cython.int, j=cython.int, f=cython.int, end=cython.int)
    cpdef void lose(self, int v) noexcept
    @cython.locals(before=cython.longlong, after=cython.longlong)
    cpdef bint may_start(self, int v, long long limit) noexcept
