"""Orders of least peak of series-parallel dags in which every file has one reader: for example, of trees with a last task.

A part of the dag whose tasks run in a fixed order is a *chain* of segments. A segment rises to a *hill*, the most bytes of
the part while it runs, and ends in a *valley*, the bytes that then wait. Two segments are joined if nothing is gained by a
pause between them: then the valleys fall to the lowest and rise after it, and the hills rise up to it and fall after it.

Parts beside each other each run to their lowest valleys before any runs further [2]_. From there, segments run by falling
difference of hill and valley, which is best for trees [1]_; up to there, the same holds in reverse.

.. [1] Liu (1987): An application of generalized tree pebbling to sparse matrix factorization. SIAM J. Algebraic Discrete
   Methods 8.
.. [2] Kayaaslan, Lambert, Marchal, Uçar (2018): Scheduling series-parallel task graphs to minimize peak memory. TCS 707.
"""

from collections.abc import Iterable
from itertools import chain as joined
from typing import NamedTuple

import numpy as np

from eligo.dag import Dag
from eligo.deciding.seriesparallel import BESIDE, series_parallel
from eligo.rows import Ints
from eligo.space.footprint import Footprint
from eligo.theory.skeleton import skeleton

Rope = int | tuple["Rope", "Rope"]  # a task, or tasks before others


class Segment(NamedTuple):
    """Some tasks in their order, the most bytes while they run, and the bytes afterwards."""

    hill: int
    valley: int
    tasks: Rope


class Chain(NamedTuple):
    """Segments one after another, and the bytes before the first."""

    start: int
    segments: list[Segment]


def exact_order(footprint: Footprint) -> Ints | None:
    """An order with the least peak, or None if the dag is not series-parallel or a file has several readers.

    >>> pairs = [("a", "c"), ("b", "c"), ("c", "g"), ("d", "f"), ("e", "f"), ("f", "g")]
    >>> footprint = Footprint.of_results(Dag.from_arcs(pairs, tasks="abcdefg"), [1, 1, 9, 1, 20, 2, 1])
    >>> footprint.peak(exact_order(footprint))
    23
    """
    dag = skeleton(footprint.dag)
    if (np.diff(footprint.reader_ptr) != 1).any() or not _along_arcs(footprint, dag) or not len(dag):
        return None
    tree = series_parallel(dag)
    if tree is None:
        return None
    read = np.bincount(footprint.reader, footprint.sizes, len(dag)).astype(np.int64).tolist()
    parts: list[list[Chain]] = [
        [Chain(before, [Segment(before + after, after, v)])]
        for v, (before, after) in enumerate(zip(read, footprint.left.tolist(), strict=True))
    ]
    for first, second, meets in zip(tree.first, tree.second, tree.meets, strict=True):
        one, two = parts[first], parts[second]
        parts[first] = parts[second] = []
        if meets == BESIDE:
            small, large = sorted((one, two), key=len)
            large += small
            parts.append(large)
        else:
            above, below = beside(one), beside(two)
            parts.append([Chain(above.start, _shortened(above.start, above.segments + below.segments))])
    return np.array([*joined.from_iterable(map(_tasks, beside(parts[-1]).segments))], np.int32)


def _along_arcs(footprint: Footprint, dag: Dag) -> bool:
    """Whether every file goes to a child of its writer."""
    arcs = dag.tails.astype(np.int64) * len(dag) + dag.child
    return bool(np.isin(footprint.writer.astype(np.int64) * len(dag) + footprint.reader, arcs).all())


def beside(chains: list[Chain]) -> Chain:
    """One chain of the segments of several that run beside each other."""
    if len(chains) == 1:
        return chains[0]
    start = sum(chain.start for chain in chains)
    down: list[tuple[int, int, int, Segment]] = []
    up: list[tuple[int, int, int, Segment]] = []
    for number, (begin, segments) in enumerate(chains):
        values = [begin, *(segment.valley for segment in segments)]
        lowest = values.index(min(values))
        for i, segment in enumerate(segments):
            if i < lowest:
                down.append((segment.hill - values[i], number, i, segment))
            else:
                up.append((values[i + 1] - segment.hill, number, i, segment))
    here, total, segments = [chain.start for chain in chains], start, list[Segment]()
    for _, number, _, (hill, valley, tasks) in joined(sorted(down, key=_place), sorted(up, key=_place)):
        total += valley - here[number]
        segments.append(Segment(total - valley + hill, total, tasks))
        here[number] = valley
    return Chain(start, _shortened(start, segments))


def _place(entry: tuple[int, int, int, Segment]) -> tuple[int, int, int]:
    return entry[:3]


def _shortened(start: int, segments: list[Segment]) -> list[Segment]:
    """The segments, joined as far as pauses gain nothing."""
    values = [start, *(segment.valley for segment in segments)]
    lowest = values.index(min(values))
    after = list[Segment]()
    for segment in segments[lowest:]:
        here = segment
        while after and (after[-1].valley >= here.valley or after[-1].hill <= here.hill):
            here = _joined(after.pop(), here)
        after.append(here)
    before = list[tuple[int, Segment]]()  # in reverse, each with the bytes before it
    for i in range(lowest - 1, -1, -1):
        begin, here = values[i], segments[i]
        while before and (before[-1][0] >= begin or before[-1][1].hill <= here.hill):
            here = _joined(here, before.pop()[1])
        before.append((begin, here))
    return [segment for _, segment in reversed(before)] + after


def _joined(one: Segment, two: Segment) -> Segment:
    return Segment(max(one.hill, two.hill), two.valley, (one.tasks, two.tasks))


def _tasks(segment: Segment) -> Iterable[int]:
    """The tasks of a segment, in order."""
    stack = [segment.tasks]
    while stack:
        rope = stack.pop()
        if isinstance(rope, int):
            yield rope
        else:
            stack += (rope[1], rope[0])
