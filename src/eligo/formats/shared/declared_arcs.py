"""Arcs that a file declares, together with those that files make: where both would go round in a circle, the declared stand.

A job may change a file in place, or several jobs may write a file one after the other. Who reads it then does not follow from
the files alone, but from the declared arcs: a file makes an arc from its last writer that the declared arcs do not put behind
the reader. Where arcs of files go round in a circle still, those against the declared order are left out. What is left out
is said. A document that declares no arc at all has only its files, and their circles are refused.

>>> jobs = Jobs(("a", "b", "c"), [(), ("f",), ()], [("f",), (), ("f",)])
>>> dag, remarks = combined(jobs, data_arcs.columns([(1, 2)]))
>>> list(dag.arcs()), remarks
([('a', 'b'), ('b', 'c')], ("'f' makes no arc from c to b, since the declared arcs say otherwise",))
"""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from eligo.dag import Dag
from eligo.errors import CycleError, shorten
from eligo.formats.shared import data_arcs
from eligo.rows import Ints

#: The most steps along declared arcs that are taken to see which arcs of files go against them.
MOST_STEPS = 1_000_000
#: The most files that are named in remarks.
MOST_NAMED = 5


class Jobs(NamedTuple):
    """The names of tasks, and the files that each reads and writes."""

    names: tuple[str, ...]
    inputs: data_arcs.Files
    outputs: data_arcs.Files


class _FileArc(NamedTuple):
    tail: int
    head: int
    file: str


def combined(jobs: Jobs, declared: tuple[Ints, Ints]) -> tuple[Dag, tuple[str, ...]]:
    """The dag of the declared arcs and those that files make, and remarks on files that make none."""
    try:
        return data_arcs.dag_of(jobs.names, declared, data_arcs.made(jobs.inputs, jobs.outputs)), ()
    except CycleError:
        if not len(declared[0]):
            raise
    stated = data_arcs.dag_of(jobs.names, declared)  # a circle of declared arcs is refused
    return _Choice(jobs, stated).dag(declared)


def _on_circles(arcs: list[tuple[int, int]]) -> set[int]:
    """The tasks on circles, and those between two of them: what is left once all that only begins or ends is taken away."""
    left = {end for arc in arcs for end in arc}
    for ahead in (0, 1):
        count = Counter(arc[1 - ahead] for arc in arcs if left.issuperset(arc))
        beyond: dict[int, list[int]] = {}
        for arc in arcs:
            beyond.setdefault(arc[ahead], []).append(arc[1 - ahead])
        waiting = [task for task in left if not count[task]]
        while waiting:
            task = waiting.pop()
            left.discard(task)
            for other in beyond.get(task, ()):
                count[other] -= 1
                waiting += [other] if not count[other] else []
    return left


class _Choice:
    """Which arcs files make beside declared ones."""

    def __init__(self, jobs: Jobs, stated: Dag) -> None:
        self.jobs, self.stated = jobs, stated
        self.place = np.empty(len(stated), np.int64)
        self.place[stated.order] = np.arange(len(stated))
        self.steps = 0
        self.out: list[_FileArc] = []

    def dag(self, declared: tuple[Ints, Ints]) -> tuple[Dag, tuple[str, ...]]:
        """The dag, and remarks."""
        arcs = list(self._agreeing())
        try:
            return self._dag(declared, arcs), self._remarks()
        except CycleError:
            left = _on_circles([*zip(*(ends.tolist() for ends in declared), strict=True), *(arc[:2] for arc in arcs)])
            against = {arc for arc in arcs if {arc.tail, arc.head} <= left and not self._is_forward(arc)}
            self.out += (arc for arc in arcs if arc in against)
            return self._dag(declared, [arc for arc in arcs if arc not in against]), self._remarks()

    def _is_forward(self, arc: _FileArc) -> bool:
        return bool(self.place[arc.tail] < self.place[arc.head])

    def _dag(self, declared: tuple[Ints, Ints], arcs: list[_FileArc]) -> Dag:
        return data_arcs.dag_of(self.jobs.names, declared, data_arcs.columns([arc[:2] for arc in arcs]))

    def _agreeing(self) -> Iterator[_FileArc]:
        """For each file that a task reads, the arc from its last writer that need not come later."""
        writers = self._writers()
        for head, files in enumerate(self.jobs.inputs):
            later: set[int] | None = None
            for file in files:
                for tail in reversed(writers.get(file, ())):
                    arc = _FileArc(tail, head, file)
                    later = self._behind(head) if later is None and not self._is_forward(arc) else later
                    if self._is_forward(arc) or tail not in (later or ()):
                        yield arc
                        break
                    self.out.append(arc)

    def _writers(self) -> dict[str, list[int]]:
        """The tasks that write each file, in order, without those that only change it."""
        writers: dict[str, list[int]] = {}
        for task, files in enumerate(self.jobs.outputs):
            changed = set(self.jobs.inputs[task]) if files else set()
            for file in files:
                if file not in changed:
                    writers.setdefault(file, []).append(task)
        return writers

    def _behind(self, task: int) -> set[int]:
        """The tasks that declared arcs put behind a task; once that took too long, none."""
        seen, waiting = {task}, [task]
        while waiting and self.steps < MOST_STEPS:
            below = [child for child in self.stated.children_of(waiting.pop()).tolist() if child not in seen]
            self.steps += 1 + len(below)
            seen.update(below)
            waiting += below
        return seen

    def _remarks(self) -> tuple[str, ...]:
        names = self.jobs.names
        told = [
            f"{shorten(arc.file)!r} makes no arc from {shorten(names[arc.tail])} to {shorten(names[arc.head])},"
            " since the declared arcs say otherwise"
            for arc in self.out[:MOST_NAMED]
        ]
        more = len(self.out) - len(told)
        return (*told, f"arcs that files do not make for the same reason: {more:,} more") if more else tuple(told)
