"""The least peak of small dags by enumeration of every ideal: slow but obviously right, an oracle for tests."""

import numpy as np

from eligo.rows import Ints
from eligo.space.footprint import Footprint
from eligo.theory.exact import down_sets


def least_peak(footprint: Footprint) -> int:
    """The least peak of all orders.

    >>> from eligo.dag import Dag
    >>> least_peak(Footprint.of_results(Dag.from_arcs([("a", "c"), ("b", "d"), ("c", "e"), ("d", "e")])))
    3
    """
    return footprint.peak(least_peak_order(footprint))


def least_peak_order(footprint: Footprint) -> Ints:
    """An order with the least peak."""
    best: dict[int, tuple[int, list[int]]] = {0: (0, [])}
    for layer in down_sets(footprint.dag):
        following: dict[int, tuple[int, list[int]]] = {}
        for executed, eligible in layer.items():
            peak, order = best[executed]
            live = live_bytes(footprint, executed)
            for v in range(len(footprint.dag)):
                if eligible >> v & 1:
                    reached = max(peak, live + int(footprint.left[v]))
                    larger = executed | 1 << v
                    if larger not in following or reached < following[larger][0]:
                        following[larger] = reached, [*order, v]
        best = following or best
    ((_, order),) = best.values()
    return np.array(order, np.int32)


def live_bytes(footprint: Footprint, executed: int) -> int:
    """The bytes of the files that wait for a reader once the tasks of a bit mask are executed."""
    ptr, reader = footprint.reader_ptr.tolist(), footprint.reader.tolist()
    files = zip(footprint.sizes.tolist(), footprint.writer.tolist(), ptr, ptr[1:], strict=False)
    return sum(size for size, p, a, b in files if executed >> p & 1 and not all(executed >> c & 1 for c in reader[a:b]))
