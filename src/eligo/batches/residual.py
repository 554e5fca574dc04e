"""The bipartite *residual*: the part of a state that matters for the next batch, kept up to date during an execution.

Its sources are the eligible tasks, its sinks the tasks all of whose missing parents are eligible: executing eligible tasks
can render nothing else. So the state of any dag falls into connected components that do not affect each other [1]_,
section 4; the dag need not be a composition. Tasks that are out with a client, or failed, are neither executed nor eligible.

Its connected components are grouped by shape: named blocks by counting, others by their arcs. Each shape is solved once, so a
state with a hundred thousand small components costs no more than its few shapes.

.. [1] Malewicz, Rosenberg (2006): On batch-scheduling dags for Internet-based computing.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.batches.component_solver import BatchSolution, Budget, solve
from eligo.dag import Dag
from eligo.execution import ELIGIBLE, EXECUTED, WAITING, Execution, unpacked
from eligo.kernels import walks
from eligo.rows import Ints, gather_rows
from eligo.theory.blocks import Blocks, decompose
from eligo.theory.priority import Kind
from eligo.theory.solutions import WALK, recognise

# Components


ARC_BYTES = 8  # two numbers per arc

#: a named family, or the numbers of sources and sinks and the arcs
ShapeKey = Kind | tuple[int, int, bytes]


class Component(NamedTuple):
    """A component: its shape, its sources in the order of the shape's numbers, and the longest path that starts in it."""

    key: ShapeKey
    sources: Ints
    height: int


@dataclass(eq=False)
class Shape:
    """The components of one shape, by their numbers, and the best batches of one."""

    key: ShapeKey
    members: dict[int, Component] = field(default_factory=dict)
    _solution: BatchSolution | None = None

    @property
    def kind(self) -> Kind | None:
        """The named family of the shape, if any."""
        return self.key if isinstance(self.key, Kind) else None

    @property
    def sources(self) -> int:
        """The number of sources of each member."""
        return len(next(iter(self.members.values())).sources)

    @property
    def sinks(self) -> int:
        """The number of sinks of each member."""
        return int(self.key.profile[-1]) if isinstance(self.key, Kind) else self.key[1]

    @property
    def is_tree(self) -> bool:
        """Whether it has only as many arcs as connect it."""
        return not isinstance(self.key, Kind) and len(self.key[2]) == ARC_BYTES * (self.key[0] + self.key[1] - 1)

    def first(self, count: int) -> list[Ints]:
        """The sources of *count* members, those in which the longest paths start; among equals, the oldest."""
        if count >= len(self.members):
            return [member.sources for member in self.members.values()]
        return [member.sources for member in nsmallest(count, self.members.values(), key=_lowness)]

    def dag(self) -> Dag:
        """One member as a dag of its own, its sources numbered first."""
        assert not isinstance(self.key, Kind)  # noqa: S101 - named families need no dag
        sources, sinks, arcs = self.key
        tails, heads = np.frombuffer(arcs, np.int32).reshape(2, -1)
        return Dag.from_checked(sources + sinks, tails, heads + np.int32(sources), None)

    def _is_small(self, size: int, budget: Budget) -> bool:
        """Whether there is a solver that may start on it."""
        if self.is_tree:
            return budget.allows_tree(self.sources + self.sinks, self.sources, size)
        return budget.items > 0

    def solution(self, limit: int, budget: Budget) -> BatchSolution | None:
        """The best batches of up to *limit* sources; None if that takes too long."""
        size = min(limit, self.sources)
        if self._solution is None or not self._solution.reaches(size):
            self._solution = solve(self.dag(), size, budget) if self._is_small(size, budget) else None
        return self._solution


def _lowness(component: Component) -> int:
    return -component.height


def components(residual: Dag, sources: Ints, height: Ints) -> Iterator[Component]:
    """The components of a bipartite dag without isolated tasks; *sources* are the tasks that its sources represent.

    >>> three = Dag.from_arrays(6, [0, 1, 2, 2], [3, 3, 4, 5])
    >>> [(str(c.key), c.sources.tolist()) for c in components(three, np.array([7, 8, 9]), np.array([1, 1, 1]))]
    [('M(1,2)', [7, 8]), ('W(1,2)', [9])]
    """
    blocks = decompose(residual)
    ptr, own = blocks.source_rows
    ordered, letter = own.copy(), np.zeros(len(blocks), np.int32)
    kinds: dict[int, Kind] = {}
    for kind, members in recognise(blocks):
        letter[members] = WALK[kind.letter]
        kinds.update(dict.fromkeys(members.tolist(), kind))
    rows = (residual.child_ptr, residual.child, residual.parent_ptr, residual.parent)
    walks.end_to_end(letter, ptr, own, *blocks.sink_rows, *rows, np.zeros(len(residual), np.int32), ordered)
    tasks, begins = sources[ordered], ptr.tolist()
    heights = np.maximum.reduceat(height[ordered], ptr[:-1]).tolist()
    shapes = _Arcs(blocks) if len(kinds) < len(blocks) else None
    for b in range(len(blocks)):
        key = kinds[b] if shapes is None or b in kinds else shapes.key(b)
        yield Component(key, tasks[begins[b] : begins[b + 1]], heights[b])


class _Arcs:
    """The arcs of every block, with its sources numbered from 0 and its sinks numbered from 0."""

    def __init__(self, blocks: Blocks) -> None:
        residual = blocks.dag
        source_ptr, sources = blocks.source_rows
        sink_ptr, _ = blocks.sink_rows
        place = np.empty(len(residual), np.int32)
        for ptr, tasks in (blocks.source_rows, blocks.sink_rows):
            place[tasks] = np.arange(len(tasks)) - np.repeat(ptr[:-1], np.diff(ptr))
        children, degree = gather_rows(residual.child_ptr, residual.child, sources)
        self.tails, self.heads = np.repeat(place[sources], degree), place[children]
        self.ptr = np.concatenate([[0], np.cumsum(blocks.arc_counts)]).tolist()
        self.sizes = np.stack([np.diff(source_ptr), np.diff(sink_ptr)], axis=1).tolist()

    def key(self, block: int) -> ShapeKey:
        """The shape of an unnamed block."""
        span = slice(self.ptr[block], self.ptr[block + 1])
        sources, sinks = self.sizes[block]
        return sources, sinks, self.tails[span].tobytes() + self.heads[span].tobytes()


# The residual


Codes = NDArray[np.uint8]


class Residual:
    """The residual of an execution, as components grouped by shape; `follow` changes only those that a move affects.

    >>> game = Execution({"a": [], "b": [], "c": [], "x": ["a", "b"], "y": ["b"], "z": ["x", "c"]}, executed=["a"])
    >>> residual = Residual(game)
    >>> [str(shape.key) for shape in residual.shapes.values()], game.dag.named(residual.eligible)
    (['W(1,2)'], ('b', 'c'))
    """

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        self._begin()

    def _begin(self) -> None:
        """Set up all state from the dag and the execution."""
        self.dag = dag = self.execution.dag
        #: the states of the tasks after the last followed move
        self.codes = np.full(len(dag), WAITING, np.uint8)
        self.shapes: dict[ShapeKey, Shape] = {}
        self._missing, self._blocked = dag.indegree.copy(), dag.indegree.copy()
        self._owner = np.full(len(dag), -1, np.int32)
        self._shape_of: dict[int, Shape] = {}
        self._numbers = 0
        self._seen, self._grown = len(self.execution.journal), len(self.execution.additions)
        self._change(np.flatnonzero(self._now != WAITING).astype(np.int32))

    @property
    def eligible(self) -> Ints:
        """The tasks that may be handed out."""
        return np.flatnonzero(self.codes == ELIGIBLE).astype(np.int32)

    def follow(self) -> None:
        """Catch up with the execution: update the tasks that moved since the last call, and their children."""
        game = self.execution
        if self._seen == len(game.journal):
            return
        if self._grown < len(game.additions):
            self._begin()
            return
        moved = _distinct(len(self.dag), np.array([v for _, v in unpacked(game.since(self._seen))], np.int32))
        self._seen = len(game.journal)
        below, _ = gather_rows(self.dag.child_ptr, self.dag.child, moved)
        near = _distinct(len(self.dag), np.concatenate([moved, below]))
        self._change(near[self.codes[near] != self._now[near]])

    def restricted(self, sources: Ints) -> tuple[Dag, Ints]:
        """The part of the residual that depends on these eligible tasks, as a dag, without those that have no sinks.

        Returns it with the tasks that its sources, numbered first, represent.
        """
        children, degree = gather_rows(self.dag.child_ptr, self.dag.child, sources)
        live = self._is_sink(children)
        tails = np.repeat(np.arange(len(sources), dtype=np.int32), degree)[live]
        busy = np.bincount(tails, minlength=len(sources)) > 0
        place = (np.cumsum(busy) - 1).astype(np.int32)
        count = int(busy.sum())
        sinks, heads = _number_distinct(len(self.dag), children[live])
        return Dag.from_checked(count + sinks, place[tails], heads + np.int32(count), None), sources[busy]

    def rendered(self, tasks: Ints) -> int:
        """The number of tasks that become eligible if these eligible ones are executed."""
        children, _ = gather_rows(self.dag.child_ptr, self.dag.child, tasks)
        touched, times = np.unique(children, return_counts=True)
        return int((times == self._missing[touched]).sum())

    def _is_sink(self, tasks: Ints) -> NDArray[np.bool_]:
        sinks: NDArray[np.bool_] = (self._blocked[tasks] == 0) & (self._missing[tasks] > 0)
        return sinks

    @property
    def _now(self) -> Codes:
        return np.frombuffer(self.execution.codes, np.uint8)

    def _change(self, changed: Ints) -> None:
        """Update the states of these tasks, which are all that changed."""
        now = self._now[changed]
        done = changed[now == EXECUTED]
        children, _ = gather_rows(self.dag.child_ptr, self.dag.child, done)
        np.subtract.at(self._missing, children, 1)
        before = _is_open(self.codes[changed])
        self.codes[changed] = now
        step = before.astype(np.int32) - _is_open(now)
        children, degree = gather_rows(self.dag.child_ptr, self.dag.child, changed)
        np.add.at(self._blocked, children, np.repeat(step, degree))
        self._regroup(changed, children[self._is_sink(children)])

    def _regroup(self, changed: Ints, sinks: Ints) -> None:
        """Recompute the components that had the changed tasks or that these sinks connect."""
        parents, _ = gather_rows(self.dag.parent_ptr, self.dag.parent, _distinct(len(self.dag), sinks))
        near = np.concatenate([changed, parents])
        owners = self._owner[near]
        members = [self._remove(number) for number in _distinct(self._numbers, owners[owners >= 0]).tolist()]
        region = _distinct(len(self.dag), np.concatenate([near, *members]))
        self._owner[region] = -1
        part, sources = self.restricted(region[self.codes[region] == ELIGIBLE])
        if not len(sources):
            return
        for component in components(part, sources, self.dag.height[sources]):
            self._add(component)

    def _remove(self, number: int) -> Ints:
        shape = self._shape_of.pop(number)
        members = shape.members.pop(number).sources
        if not shape.members:
            del self.shapes[shape.key]
        return members

    def _add(self, component: Component) -> None:
        shape = self.shapes.get(component.key)
        if shape is None:
            shape = self.shapes[component.key] = Shape(component.key)
        shape.members[self._numbers] = component
        self._shape_of[self._numbers] = shape
        self._owner[component.sources] = self._numbers
        self._numbers += 1


def _is_open(codes: Codes) -> NDArray[np.bool_]:
    """Whether each state is executed, or eligible, so that a batch may execute the task; others block its children."""
    free: NDArray[np.bool_] = (codes == ELIGIBLE) | (codes == EXECUTED)
    return free


def _distinct(n: int, tasks: Ints) -> Ints:
    """The distinct tasks among these, ascending: by sorting if they are few, else by marking."""
    if len(tasks) * 16 < n:
        return np.unique(tasks)
    present = np.zeros(n, np.bool_)
    present[tasks] = True
    return np.flatnonzero(present).astype(np.int32)


def _number_distinct(n: int, tasks: Ints) -> tuple[int, Ints]:
    """The number of distinct tasks, and the rank of each task among them."""
    present = np.zeros(n, np.bool_)
    present[tasks] = True
    rank = np.cumsum(present, dtype=np.int32)
    return int(rank[-1]) if n else 0, rank[tasks] - np.int32(1)
