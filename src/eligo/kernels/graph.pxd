cimport cython

@cython.locals(i=Py_ssize_t, k=cython.int)
cpdef void scatter(const int[::1] key, const int[::1] value, int[::1] place, int[::1] rows)

@cython.locals(v=Py_ssize_t, i=Py_ssize_t, u=cython.int, j=cython.int, dropped=Py_ssize_t)
cpdef Py_ssize_t transpose(const int[::1] ptr, const int[::1] rows, const int[::1] begin, int[::1] place, int[::1] out)

@cython.locals(u=Py_ssize_t, i=Py_ssize_t, shift=cython.int)
cpdef void compact(const int[::1] begin, const int[::1] end, const int[::1] ptr, int[::1] rows)

@cython.locals(head=Py_ssize_t, tail=Py_ssize_t, end=Py_ssize_t, i=Py_ssize_t, u=cython.int, v=cython.int, below=cython.int, ahead=cython.int)
cpdef Py_ssize_t kahn(const int[::1] ptr, const int[::1] child, int[::1] level, int[::1] order, int[::1] scratch)

@cython.locals(k=Py_ssize_t, i=Py_ssize_t, u=cython.int, tallest=cython.int)
cpdef void heights(const int[::1] ptr, const int[::1] child, const int[::1] order, int[::1] height)

@cython.locals(k=Py_ssize_t, u=cython.int, i=cython.int, w=cython.int, longest=cython.double)
cpdef void longest_after(
    const int[::1] ptr, const int[::1] rows, const int[::1] order, const double[::1] seconds, double[::1] after) noexcept

@cython.locals(i=Py_ssize_t, v=Py_ssize_t, a=cython.int, b=cython.int)
cpdef void join(const int[::1] first, const int[::1] second, int[::1] root)

@cython.locals(v=Py_ssize_t, i=Py_ssize_t, latest=cython.int, offender=Py_ssize_t)
cpdef Py_ssize_t eligible_steps(const int[::1] ptr, const int[::1] parent, const int[::1] position, int[::1] step)

@cython.locals(n=Py_ssize_t, clock=cython.int, count=cython.int, held=Py_ssize_t, root=cython.int, depth=Py_ssize_t, u=cython.int, v=cython.int)
cpdef Py_ssize_t strong_components(const int[::1] ptr, const int[::1] child, int[::1] index, int[::1] low, int[::1] stack, int[::1] path, int[::1] cursor)

@cython.locals(v=Py_ssize_t, i=Py_ssize_t, least=cython.int)
cpdef void soonest(const int[::1] ptr, const int[::1] rows, const int[::1] position, int[::1] out, int empty)

@cython.locals(v=Py_ssize_t, b=cython.int)
cpdef void extremes(const int[::1] owner, const int[::1] value, int[::1] low, int[::1] high)

@cython.locals(
    n=Py_ssize_t, i=Py_ssize_t, j=Py_ssize_t, u=cython.int, v=cython.int, w=cython.int, x=cython.int, y=cython.int,
    above=cython.int, below=cython.int, met=cython.int, down_cost=cython.longlong, up_cost=cython.longlong,
    next_down=cython.longlong, next_up=cython.longlong,
    down_head=Py_ssize_t, down_tail=Py_ssize_t, up_head=Py_ssize_t, up_tail=Py_ssize_t,
)
cpdef void second_way(
    const int[::1] tail, const int[::1] head, const int[::1] child_ptr, const int[::1] child,
    const int[::1] parent_ptr, const int[::1] parent, const int[::1] level, const int[::1] height,
    int[::1] mark, int[::1] queue, long long budget, int[::1] outcome)

@cython.locals(i=Py_ssize_t, j=Py_ssize_t, k=Py_ssize_t, v=cython.int, p=cython.int, bits=cython.ulonglong)
cpdef void sweep(
    Py_ssize_t begin, Py_ssize_t end, const int[::1] order, const int[::1] parent_ptr, const int[::1] parent,
    unsigned long long[:, ::1] reached, unsigned long long[:, ::1] twice)
