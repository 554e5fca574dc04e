"""A dag that grows during execution: the original dag and the later additions, merged only on demand.

New tasks get the next numbers, so that existing numbers stay valid. An addition takes time proportional to its size; merging
takes as long as building the whole dag, once for all additions since the last time.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from itertools import chain
from typing import NamedTuple

import numpy as np

from eligo.dag import Dag
from eligo.errors import InputError, StateError, UnknownTaskError, shorten
from eligo.names import Name, checked_names
from eligo.rows import Ints, gather_rows, latest, places

MOST_WALKED = 1_000  # tasks above an addition that are looked at one by one


class Addition(NamedTuple):
    """An addition to a dag: tasks, which get the next numbers, and arcs by number, each from or to one of them.

    >>> Growing(Dag.from_arcs([("a", "b")])).addition(["c"], [("b", "c")])
    Addition(tasks=('c',), arcs=((1, 2),), details=())
    """

    tasks: tuple[Name, ...]
    arcs: tuple[tuple[int, int], ...]
    #: each task as a row of a document, including its name; empty if only names are known (see `eligo.additions`)
    details: tuple[Mapping[str, object], ...] = ()


#: the additions in order, each perhaps as a plain tuple, as stores return them
Additions = Sequence[Addition | tuple[tuple[Name, ...], tuple[tuple[int, int], ...], tuple[Mapping[str, object], ...]]]


class Growing:
    """A dag to which tasks can be added; by number, like `Dag`, with names.

    >>> flow = Growing(Dag.from_arcs([("a", "b")]))
    >>> flow.add(flow.addition(["c", "d"], [("a", "c"), ("c", "d")]))
    >>> flow.children_of(0), flow.parents_of(3), flow.named([3]), flow.number("d")
    ([1, 2], [2], ('d',), 3)
    >>> list(flow.dag.arcs())
    [('a', 'b'), ('a', 'c'), ('c', 'd')]
    """

    def __init__(self, dag: Dag) -> None:
        self._dag, self._size = dag, len(dag)
        self._begin()

    def _begin(self) -> None:
        """Reset the additions."""
        self._rows = self._dag.child_ptr.data, self._dag.child.data  # faster than arrays for single elements
        self._rows_up = self._dag.parent_ptr.data, self._dag.parent.data
        self._names: list[Name] = []
        self._numbers: dict[Name, int] = {}
        self._children: dict[int, list[int]] = {}
        self._parents: dict[int, list[int]] = {}
        self._ends = array("i")  # of the added arcs, a parent and a child each

    @property
    def dag(self) -> Dag:
        """The whole dag; rebuilt if there were additions since the last access."""
        if self._names:
            ends = np.array(self._ends, np.int32)
            self._dag = self._dag.grown(tuple(self._names), ends[0::2], ends[1::2])
            self._begin()
        return self._dag

    def __len__(self) -> int:
        return self._size

    def __contains__(self, task: object) -> bool:
        return self.find(task) >= 0

    def find(self, task: object) -> int:
        """The number of a task, or -1."""
        number = self._dag.index.get(task, -1)
        return self._numbers.get(task, -1) if number < 0 and self._names else number

    def number(self, task: Name) -> int:
        """The number of a task."""
        try:
            number = self.find(task)
        except TypeError:
            number = -1
        if number < 0:
            raise UnknownTaskError(task)
        return number

    def numbers(self, tasks: Iterable[Name]) -> list[int]:
        """The numbers of existing tasks."""
        return [*map(self.number if self._names else self._dag.index.__getitem__, tasks)]

    @property
    def name(self) -> Callable[[int], Name]:
        """A function from numbers to names, valid until the next addition."""
        return self._name if self._names else self._dag.tasks.__getitem__

    def _name(self, v: int) -> Name:
        old = len(self._dag)
        return self._dag.tasks[v] if v < old else self._names[v - old]

    def named(self, numbers: Iterable[int]) -> tuple[Name, ...]:
        """The names of these numbers."""
        return tuple(map(self.name, numbers))

    def children_of(self, v: int) -> list[int]:
        """The children of task number v, ascending."""
        if self._names:
            return _row(self._rows, v) + self._children.get(v, [])
        first, child = self._rows
        return child[first[v] : first[v + 1]].tolist()

    def has_many(self, v: int, most: int) -> bool:
        """Whether task number v had more children than *most* in the original dag."""
        first = self._rows[0]
        return v < len(first) - 1 and first[v + 1] - first[v] > most

    def row_of(self, v: int) -> Ints:
        """The children of task number v as an array."""
        first, child = self._rows
        return np.array(self.children_of(v), np.int32) if self._names else np.asarray(child[first[v] : first[v + 1]])

    def parents_of(self, v: int) -> list[int]:
        """The parents of task number v."""
        row = _row(self._rows_up, v)
        return row + self._parents.get(v, []) if self._names else row

    # Growth

    def addition(
        self,
        tasks: Iterable[Name] | Mapping[Name, Iterable[Name]],
        arcs: Iterable[tuple[Name, Name]] = (),
        details: Iterable[Mapping[str, object]] = (),
    ) -> Addition:
        """An addition of these tasks and arcs, by number; names are checked. A mapping lists the parents of each new task."""
        needs = [(parent, task) for task in tasks for parent in tasks[task]] if isinstance(tasks, Mapping) else []
        fresh, pairs = checked_names(tasks), [*needs, *arcs]
        if not set(map(len, pairs)) <= {2}:
            wrong = next(pair for pair in pairs if len([*pair]) != 2)
            raise InputError(f"an arc must be a pair of a parent and a child, got {shorten(repr(wrong))}")
        numbers = {name: len(self) + i for i, name in enumerate(fresh)}
        try:
            ends = [numbers[name] if name in numbers else self.number(name) for pair in pairs for name in pair]
        except TypeError as error:
            raise InputError(f"task names must be hashable: {error}") from None
        return Addition(fresh, tuple(dict.fromkeys(zip(ends[0::2], ends[1::2], strict=True))), tuple(details))

    def check(self, added: Addition, done: Callable[[int], bool]) -> None:
        """Refuse arcs between existing tasks, and cycles, which are only searched among tasks that are not *done*."""
        old, end = len(self), len(self) + len(added.tasks)
        for name in checked_names(added.tasks):
            if name in self:
                raise InputError(f"task {shorten(name)!r} already exists")
        if len(set(added.arcs)) < len(added.arcs):
            raise InputError("duplicate arc")
        for u, v in added.arcs:
            if not (0 <= u < end and 0 <= v < end):
                raise UnknownTaskError(str(u if not 0 <= u < end else v))
            if max(u, v) < old:
                both = f"{shorten(self.name(u))!r} and {shorten(self.name(v))!r}"
                raise InputError(f"cannot add an arc between the existing tasks {both}")
        upward = any(v < old for _, v in added.arcs)  # otherwise no cycle contains an existing task
        above = self._above({u for u, _ in added.arcs if u < old}, done) if upward else []
        if len(above) > MOST_WALKED:
            self._check_cycles(added, done)
            return
        inner = [(u, v) for v in above for u in self.parents_of(v) if not done(u)]
        names = dict(zip((*above, *range(old, end)), (*self.named(above), *added.tasks), strict=True))
        arcs = [(names[u], names[v]) for u, v in chain(inner, added.arcs) if u in names and v in names]
        Dag.from_arcs(arcs, tasks=names.values())  # raises if there is a cycle

    def _check_cycles(self, added: Addition, done: Callable[[int], bool]) -> None:
        """Refuse cycles, using arrays of the dag: only tasks both below and above new tasks can be in a cycle."""
        dag, old, ends = self.dag, len(self), np.array(added.arcs, np.int32)
        between = np.ones(old, np.bool_)
        for outer, up in ((ends[:, 1], False), (ends[:, 0], True)):
            some = outer[outer < old]
            chosen = np.zeros(old, np.bool_)
            chosen[some] = chosen[reachable_tasks(dag, some, up)] = True
            between &= chosen
        some = np.array([v for v in np.flatnonzero(between).tolist() if not done(v)], np.int32)
        place = np.full(old + len(added.tasks), -1, np.int32)
        place[some], place[old:] = np.arange(len(some)), np.arange(len(some), len(some) + len(added.tasks))
        tails, heads = place[np.append(dag.tails, ends[:, 0])], place[np.append(dag.child, ends[:, 1])]
        inside = (tails >= 0) & (heads >= 0)
        names = (*dag.named(some), *added.tasks)
        Dag.from_arrays(len(names), tails[inside], heads[inside], names)  # raises if there is a cycle

    def _above(self, tasks: set[int], done: Callable[[int], bool]) -> list[int]:
        """These tasks and all above them that are not done; only some of them if there are very many."""
        ancestors = dict.fromkeys(v for v in sorted(tasks) if not done(v))
        waiting = list(ancestors)
        for v in waiting:
            if len(waiting) > MOST_WALKED:
                break
            fresh = [u for u in self.parents_of(v) if u not in ancestors and not done(u)]
            ancestors.update(dict.fromkeys(fresh))
            waiting += fresh
        return waiting

    def add(self, added: Addition) -> None:
        """Make a checked addition."""
        numbers = range(self._size, self._size + len(added.tasks))
        self._numbers.update(zip(added.tasks, numbers, strict=True))
        self._names += added.tasks
        self._size = numbers.stop
        for u, v in sorted(added.arcs):
            self._children.setdefault(u, []).append(v)
            self._parents.setdefault(v, []).append(u)
            self._ends.extend((u, v))


def _row(rows: tuple[memoryview, memoryview], v: int) -> list[int]:
    """The row of v, or []."""
    first, row = rows
    return row[first[v] : first[v + 1]].tolist() if v < len(first) - 1 else []


class Tasks(Set[Name]):
    """A live view of some tasks of a dag, for example those in one state, in order of arrival."""

    def __init__(self, graph: Growing, numbers: Mapping[int, None]) -> None:
        self._graph, self._numbers = graph, numbers

    def __contains__(self, task: object) -> bool:
        return self._graph.find(task) in self._numbers

    def __iter__(self) -> Iterator[Name]:
        return map(self._graph.name, self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)

    def __repr__(self) -> str:
        return f"Tasks({list(self)!r})"

    @classmethod
    def _from_iterable(cls, tasks: Iterable[Name]) -> Set[Name]:
        return set(tasks)


def executed_first(dag: Dag, done: Ints) -> tuple[Ints, Ints, Ints]:
    """Executed tasks in a valid order, the number of parents that each task then misses, and the eligible tasks in order."""
    if not len(done):
        return done, dag.indegree, np.flatnonzero(dag.indegree == 0).astype(np.int32)
    done = done[np.argsort(places(len(dag), dag.order)[done])]
    turn = places(len(dag), done)
    early = np.flatnonzero((turn[dag.child] >= 0) & (turn[dag.tails] < 0))
    if len(early):
        raise StateError(dag.tasks[dag.child[early[0]]], "executed", dag.tasks[dag.tails[early[0]]])
    below, _ = gather_rows(dag.child_ptr, dag.child, done)
    missing = dag.indegree - np.bincount(below, minlength=len(dag)).astype(np.int32)
    ready = np.flatnonzero((missing == 0) & (turn < 0)).astype(np.int32)
    ready = ready[np.lexsort((ready, latest(turn, *gather_rows(dag.parent_ptr, dag.parent, ready))))]
    return done, missing, ready


def reachable_tasks(dag: Dag, tasks: Iterable[int] | Ints, up: bool = False) -> Ints:
    """All descendants of these tasks, or their ancestors, in the order of their numbers; in one pass over the dag.

    >>> reachable_tasks(Dag.from_arcs([("a", "b"), ("b", "c"), ("d", "c")]), [0]).tolist()
    [1, 2]
    """
    these = np.zeros(len(dag))
    these[tasks if isinstance(tasks, np.ndarray) else list(tasks)] = 1.0
    return np.flatnonzero(dag.longest_paths(these, up=not up)).astype(np.int32)  # with any of them on a path to it
