cimport cython
from libc cimport math

from eligo.kernels.boards cimport Board, Draws

@cython.locals(t=cython.int, v=cython.int)
cpdef void pebbles(Board board, unsigned long long seed, int[::1] order, int[::1] eligible) noexcept

@cython.locals(t=cython.int, v=cython.int, i=cython.int, w=cython.int, count=cython.int, ready=cython.int, first=cython.bint)
cpdef void queued_pebbles(Board board, unsigned long long seed, int[::1] order, int[::1] eligible) noexcept

@cython.locals(
    stream=Draws, polls=Py_ssize_t, count=Py_ssize_t, i=Py_ssize_t, wanted=cython.double, v=cython.int)
cpdef Py_ssize_t batched_polls(Board board, unsigned long long seed, double mean, const long long[::1] requests, int[::1] batch, double[::1] asked)
