"""The dag: named tasks, and arcs from each task to the tasks that depend on it.

Internally, tasks are the integers 0..n-1 in order of appearance and arcs are compressed rows in both directions: the
children of task u are `child[child_ptr[u]:child_ptr[u + 1]]`, ascending, and likewise its parents. Names are for the
interface: any hashable object can be a name, and each task has a *label*, a string, for output and files.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eligo.errors import NOBODY, CycleError, DuplicateTaskError, InputError, UnknownTaskError, shorten
from eligo.kernels import graph
from eligo.names import Name, checked_names, labels_of
from eligo.rows import Ints, find_cycle, gather_rows, places, rows

#: the names, or a function that returns them, or None: each task is named by its number
Names = tuple[Name, ...] | Callable[[], tuple[Name, ...]] | None


@dataclass(frozen=True, eq=False, repr=False)
class Dag:
    """A directed acyclic graph of named tasks. It never changes; operations return a new one.

    >>> dag = Dag.from_arcs([("a", "b"), ("a", "c")], tasks=["a", "b", "c", "lonely"])
    >>> dag
    Dag(4 tasks, 2 arcs)
    >>> dag.sources, dag.sinks, dag.children("a")
    (('a', 'lonely'), ('b', 'c', 'lonely'), ('b', 'c'))

    The arrays are read-only int32: `child_ptr`, `child`, `parent_ptr`, `parent`; `order`, a topological order that rises by
    level; `level`, the number of arcs on the longest path from a source. `duplicates` counts the repeated arcs that were
    given and kept once.
    """

    child_ptr: Ints
    child: Ints
    parent_ptr: Ints
    parent: Ints
    order: Ints
    level: Ints
    duplicates: int = 0
    names: Names = field(default=None)  # see `tasks`

    # Construction

    @classmethod
    def from_arcs(cls, arcs: Iterable[tuple[Name, Name]], tasks: Iterable[Name] | None = None) -> "Dag":
        """The dag with these arcs (parent, child); *tasks*, if given, lists every task, also those without arcs.

        >>> Dag.from_arcs([("a", "b"), ("b", "a")])
        Traceback (most recent call last):
        eligo.errors.CycleError: a cycle, so no order exists: a -> b -> a
        """
        pairs = list(arcs)
        if not set(map(len, pairs)) <= {2}:
            wrong = next(pair for pair in pairs if len([*pair]) != 2)
            raise InputError(f"an arc must be a pair of a parent and a child, got {shorten(repr(wrong))}")
        flat = list(chain.from_iterable(pairs))
        try:
            names = tuple(dict.fromkeys(flat)) if tasks is None else tuple(tasks)
            index = {name: i for i, name in enumerate(names)}
            ends = np.fromiter(map(index.__getitem__, flat), np.int32, len(flat))
        except KeyError as error:
            raise UnknownTaskError(error.args[0]) from None
        except TypeError as error:
            raise InputError(f"task names must be hashable: {error}") from None
        return cls.from_arrays(len(names), ends[0::2], ends[1::2], names)

    @classmethod
    def from_parents(cls, parents: Mapping[Name, Iterable[Name]]) -> "Dag":
        """The dag whose tasks are the keys, each with the tasks that it depends on.

        >>> Dag.from_parents({"boil": [], "peel": [], "mash": ["boil", "peel"]}).sinks
        ('mash',)
        """
        try:
            return cls.from_arcs(((p, task) for task, needs in parents.items() for p in needs), tasks=parents)
        except UnknownTaskError as error:
            lists = [(task, needs) for task, needs in parents.items() if isinstance(needs, Collection)]
            needing = next((task for task, needs in lists if error.name in needs), NOBODY)
            raise UnknownTaskError(error.name, needing, parents) from None

    @classmethod
    def from_arrays(cls, n: int, tails: ArrayLike, heads: ArrayLike, names: Sequence[Name] | None = None) -> "Dag":
        """The dag of n tasks with an arc from tails[i] to heads[i]; without *names*, a task is named by its number.

        >>> Dag.from_arrays(3, [0, 0], [1, 2]).children("0")
        ('1', '2')
        """
        tail, head = _ends(n, tails), _ends(n, heads)
        if tail.shape != head.shape:
            raise InputError(f"tails and heads must have the same length, got {tail.size} and {head.size}")
        checked = None if names is None else checked_names(names)
        if checked is not None and len(checked) != n:
            raise InputError(f"expected {n} task names, got {len(checked)}")
        return cls.from_checked(n, tail, head, checked)

    @classmethod
    def from_checked(cls, n: int, tails: Ints, heads: Ints, names: Names) -> "Dag":
        """The same without checks: the ends must be int32 within 0..n-1, and the names valid."""
        child_ptr, child, parent_ptr, parent, dropped = rows(n, tails, heads)
        return cls._of_rows(child_ptr, child, parent_ptr, parent, names, dropped)

    @classmethod
    def _of_rows(  # noqa: PLR0913, PLR0917
        cls,
        child_ptr: Ints,
        child: Ints,
        parent_ptr: Ints,
        parent: Ints,
        names: Names,
        duplicates: int = 0,
    ) -> "Dag":
        n = len(child_ptr) - 1
        level, order = np.diff(parent_ptr), np.empty(n, np.int32)
        reached = graph.kahn(child_ptr, child, level, order, np.empty(1, np.int32))
        if reached < n:
            cycle = find_cycle(parent_ptr, parent, order[:reached])
            raise CycleError([names[v] if isinstance(names, tuple) else str(v) for v in cycle])
        arrays = (child_ptr, child, parent_ptr, parent, order, level)
        for array in arrays:
            array.setflags(write=False)
        return cls(*arrays, duplicates, names)

    # Contents

    def __len__(self) -> int:
        return len(self.order)

    def __contains__(self, task: object) -> bool:
        return task in self.index

    def __repr__(self) -> str:
        return f"Dag({len(self)} tasks, {self.arc_count} arcs)"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Dag):
            return NotImplemented
        same_rows = np.array_equal(self.child_ptr, other.child_ptr) and np.array_equal(self.child, other.child)
        return same_rows and self.tasks == other.tasks

    def __hash__(self) -> int:
        return hash((len(self), self.child.tobytes()))

    @cached_property
    def tasks(self) -> tuple[Name, ...]:
        """The names, in order of appearance."""
        if self.names is None:
            return tuple(map(str, range(len(self))))
        return self.names() if callable(self.names) else self.names

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The names as distinct strings: unchanged if they are strings, else as Python prints them.

        >>> Dag.from_arcs([(("x", 0), "sum"), (("x", 1), "sum")]).labels
        ("('x', 0)", 'sum', "('x', 1)")
        """
        return labels_of(self.tasks)

    def labelled(self) -> "Dag":
        """The same dag with every task named by its label, as in output, files and proofs."""
        return self if self.labels is self.tasks else replace(self, names=self.labels)

    @cached_property
    def index(self) -> dict[Name, int]:
        """The number of each name."""
        return {name: i for i, name in enumerate(self.tasks)}

    def indices(self, tasks: Iterable[Name] | Ints) -> Ints:
        """The numbers of these names (or these numbers), each of which must be known and appear once."""
        try:
            named = isinstance(tasks, np.ndarray) and tasks.dtype.kind in "iu"
            numbers: Ints = tasks if named else np.array([self.index[t] for t in tasks], np.int32)  # type: ignore[assignment]
        except KeyError as error:
            raise UnknownTaskError(error.args[0]) from None
        except TypeError as error:
            raise InputError(f"not a list of tasks: {error}") from None
        times = np.bincount(_ends(len(self), numbers), minlength=len(self))
        if times.max(initial=0) > 1:
            raise DuplicateTaskError(self.tasks[times.argmax()])
        return numbers

    def named(self, indices: Iterable[int] | Ints) -> tuple[Name, ...]:
        """The names of these numbers."""
        numbers = indices.tolist() if isinstance(indices, np.ndarray) else indices
        return tuple(map(self.tasks.__getitem__, numbers))

    @property
    def arc_count(self) -> int:
        """The number of arcs."""
        return len(self.child)

    @property
    def tails(self) -> Ints:
        """The parent's number of every arc; `child` holds the child's."""
        return np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.child_ptr))

    def children_of(self, v: int) -> Ints:
        """The children of task number v, by number."""
        return self.child[self.child_ptr.item(v) : self.child_ptr.item(v + 1)]

    def parents_of(self, v: int) -> Ints:
        """The parents of task number v, by number."""
        return self.parent[self.parent_ptr.item(v) : self.parent_ptr.item(v + 1)]

    def arcs(self) -> Iterator[tuple[Name, Name]]:
        """Every arc as (parent, child), sorted by order of appearance."""
        return zip(self.named(self.tails), self.named(self.child), strict=True)

    def number(self, task: Name) -> int:
        """The number of a task."""
        try:
            return self.index[task]
        except (KeyError, TypeError):
            raise UnknownTaskError(task) from None

    def children(self, task: Name) -> tuple[Name, ...]:
        """The tasks that depend on this one."""
        return self.named(self.children_of(self.number(task)))

    def parents(self, task: Name) -> tuple[Name, ...]:
        """The tasks that this one depends on."""
        return self.named(self.parents_of(self.number(task)))

    @property
    def sources(self) -> tuple[Name, ...]:
        """The tasks without parents."""
        return self.named(np.flatnonzero(self.indegree == 0))

    @property
    def sinks(self) -> tuple[Name, ...]:
        """The tasks without children."""
        return self.named(np.flatnonzero(self.outdegree == 0))

    @property
    def indegree(self) -> Ints:
        """The number of parents of every task."""
        return np.diff(self.parent_ptr)

    @property
    def outdegree(self) -> Ints:
        """The number of children of every task."""
        return np.diff(self.child_ptr)

    @cached_property
    def height(self) -> Ints:
        """The number of arcs on the longest path from every task down to a sink."""
        height = np.zeros(len(self), np.int32)
        graph.heights(self.child_ptr, self.child, self.order, height)
        height.setflags(write=False)
        return height

    def longest_paths(self, seconds: NDArray[np.float64], up: bool = False) -> NDArray[np.float64]:
        """The seconds on the longest path after every task, or before it with *up*, excluding the task."""
        order = self.order if up else np.ascontiguousarray(self.order[::-1])
        ptr, rows = (self.parent_ptr, self.parent) if up else (self.child_ptr, self.child)
        length = np.zeros(len(self))
        graph.longest_after(ptr, rows, order, seconds, length)
        return length

    @property
    def depth(self) -> int:
        """The number of tasks on the longest path."""
        return int(self.level.max()) + 1 if len(self) else 0

    @property
    def level_sizes(self) -> Ints:
        """The number of tasks on each level."""
        return np.bincount(self.level, minlength=self.depth).astype(np.int32)

    def component_labels(self) -> Ints:
        """For every task, the smallest task of its connected component."""
        root = np.arange(len(self), dtype=np.int32)
        graph.join(self.tails, self.child, root)
        return root

    def components(self) -> list[tuple[Name, ...]]:
        """The tasks grouped into connected parts, both in order of appearance.

        >>> Dag.from_arcs([("a", "b"), ("c", "d")], tasks="abcde").components()
        [('a', 'b'), ('c', 'd'), ('e',)]
        """
        labels = self.component_labels()
        grouped = np.argsort(labels, kind="stable")
        cuts = np.flatnonzero(np.diff(labels[grouped])) + 1
        return [self.named(part) for part in np.split(grouped, cuts) if len(part)]

    def fingerprint(self) -> str:
        """A short string that is equal for equal dags only."""
        from hashlib import sha256  # loads a library of cryptography

        digest = sha256("\n".join(self.labels).encode())
        for array in (self.child_ptr, self.child):
            digest.update(array.astype("<i4").tobytes())
        return digest.hexdigest()[:32]

    # Operations

    def dual(self) -> "Dag":
        """The same tasks with every arc reversed.

        >>> list(Dag.from_arcs([("a", "b"), ("a", "c")]).dual().arcs())
        [('b', 'a'), ('c', 'a')]
        """
        return Dag._of_rows(self.parent_ptr, self.parent, self.child_ptr, self.child, self.names)

    def subdag(self, tasks: Iterable[Name]) -> "Dag":
        """The dag induced by *tasks*: those tasks and the arcs between them, in this dag's order of appearance."""
        return self.induced(self.indices(tasks))

    def induced(self, chosen: Ints) -> "Dag":
        """The same, by numbers."""
        numbers = np.sort(chosen)
        place = places(len(self), numbers)
        tails, heads = place[self.tails], place[self.child]
        inside = (tails >= 0) & (heads >= 0)
        return Dag.from_checked(len(numbers), tails[inside], heads[inside], lambda: self.named(numbers))

    def renumbered(self, sequence: Ints) -> "Dag":
        """The same dag with task sequence[i] as number i; names stay with their tasks.

        Numbered along a topological order, a large dag is walked several times faster: neighbours lie close in memory.
        """
        n, place = len(self), places(len(self), sequence)
        heads, degree = gather_rows(self.child_ptr, self.child, sequence)
        tails = np.repeat(np.arange(n, dtype=np.int32), degree)
        return Dag.from_checked(n, tails, place[heads], lambda: self.named(sequence))

    def grown(self, names: tuple[Name, ...], tails: Ints, heads: Ints) -> "Dag":
        """The dag with these tasks appended and these arcs, by number, added; without checks.

        >>> Dag.from_arcs([("a", "b")]).grown(("c",), np.array([0], np.int32), np.array([2], np.int32)).children("a")
        ('b', 'c')
        """
        old, n = len(self), len(self) + len(names)
        ends = np.concatenate([self.tails, tails]), np.concatenate([self.child, heads])
        dag = Dag.from_checked(n, *ends, self.tasks + names)
        vars(dag)["index"] = self.index | dict(zip(names, range(old, n), strict=True))  # faster than from scratch
        return dag

    def __add__(self, other: "Dag") -> "Dag":
        return sum_of(self, other).dag


class Composition(NamedTuple):
    """A dag made of parts: task i of part k has become task `images[k][i]` of `dag`."""

    dag: Dag
    images: tuple[Ints, ...]


def sum_of(*parts: Dag) -> Composition:
    """The sum of dags: side by side, with no arc between them.

    Names are unchanged if all are distinct; else each is prefixed with the number of its part.

    >>> a = Dag.from_arcs([("x", "y")])
    >>> sum_of(a, a).dag.tasks
    ('0.x', '0.y', '1.x', '1.y')
    """
    starts = np.cumsum([0, *(len(part) for part in parts)])
    images = tuple(np.arange(a, b, dtype=np.int32) for a, b in pairwise(starts))
    return Composition(_glued(int(starts[-1]), parts, images), images)


def compose(first: Dag, second: Dag, merge: Mapping[Name, Name]) -> Composition:
    """The composition of two dags: each chosen sink of *first* becomes one task with a chosen source of *second*.

    *merge* says which: sink -> source, one to one. A merged task keeps its name in *first*.

    >>> vee = Dag.from_arcs([("a", "b"), ("a", "c")])
    >>> lam = Dag.from_arcs([("x", "z"), ("y", "z")])
    >>> diamond = compose(vee, lam, {"b": "x", "c": "y"}).dag
    >>> list(diamond.arcs())
    [('a', 'b'), ('a', 'c'), ('b', 'z'), ('c', 'z')]
    """
    sinks, sources = first.indices(merge.keys()), second.indices(merge.values())
    _require_all(first, sinks, first.outdegree == 0, "not a sink of the first dag")
    _require_all(second, sources, second.indegree == 0, "not a source of the second dag")
    image = np.full(len(second), -1, np.int32)
    image[sources] = sinks
    fresh = image < 0
    total = len(first) + int(fresh.sum())
    image[fresh] = np.arange(len(first), total)
    images = (np.arange(len(first), dtype=np.int32), image)
    return Composition(_glued(total, (first, second), images), images)


def _require_all(dag: Dag, chosen: Ints, allowed: NDArray[np.bool_], complaint: str) -> None:
    for v in chosen[~allowed[chosen]]:
        raise InputError(f"cannot merge {dag.tasks[v]!r}: it is {complaint}")


def _glued(n: int, parts: Sequence[Dag], images: Sequence[Ints]) -> Dag:
    """The union of the parts' arcs under their images."""
    tails = np.concatenate([np.empty(0, np.int32), *(im[p.tails] for p, im in zip(parts, images, strict=True))])
    heads = np.concatenate([np.empty(0, np.int32), *(im[p.child] for p, im in zip(parts, images, strict=True))])
    owner: dict[int, tuple[int, Name]] = {}
    for k, (part, image) in enumerate(zip(parts, images, strict=True)):
        for i, name in zip(image.tolist(), part.tasks, strict=True):
            owner.setdefault(i, (k, name))
    plain = [owner[i][1] for i in range(n)]
    clash = len(set(plain)) < n
    return Dag.from_arrays(
        n, tails, heads, [f"{k}.{name}" for k, name in map(owner.__getitem__, range(n))] if clash else plain
    )


def _ends(n: int, ends: ArrayLike) -> Ints:
    """One end of every arc as int32 within 0..n-1."""
    wide = np.asarray(ends)
    if wide.size and (wide.ndim != 1 or wide.dtype.kind not in "iu"):
        raise InputError("arcs must be given as two one-dimensional arrays of integers")
    if wide.size and (wide.min() < 0 or wide.max() >= n):
        raise UnknownTaskError(str(wide.min() if wide.min() < 0 else wide.max()))
    return np.ascontiguousarray(wide, np.int32)
