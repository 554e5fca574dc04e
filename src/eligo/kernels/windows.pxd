cimport cython

@cython.locals(k=Py_ssize_t, u=cython.int, i=cython.int, w=cython.int, longest=cython.double)
cpdef void longest_after(
    const int[::1] ptr, const int[::1] rows, const int[::1] order, const double[::1] seconds, double[::1] after) noexcept

@cython.locals(leaves=Py_ssize_t, i=Py_ssize_t, k=Py_ssize_t, left=cython.double)
cpdef void best_window(
    const double[::1] heads, const int[::1] places, const double[::1] loads, const double[::1] tails,
    double[::1] tree, double[::1] sums, double[::1] found) noexcept

@cython.locals(k=Py_ssize_t, left=cython.double)
cpdef Py_ssize_t best_leaf(double[::1] tree, double[::1] sums, Py_ssize_t leaves) noexcept
