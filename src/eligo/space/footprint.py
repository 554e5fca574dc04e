"""The footprint of a workflow: the files, or results in memory, that tasks leave for other tasks, and their sizes.

A file exists from the start of the task that writes it until the end of the last task that reads it. Files that no task
writes (inputs) and that no other task reads (results of the workflow) are constants, counted apart.

| level | sizes |
|---|---|
| `sizes` | the size of every file is known |
| `kinds` | some are known; the others get the mean of their kind, or of all known files |
| `files` | none is known: every file counts 1 |
| `tasks` | no files are known: every task leaves one result for its children, and each counts 1 |
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.estimates import sizes_of_files
from eligo.rows import Ints, places, pointers
from eligo.theory.eligibility import Order, order_indices
from eligo.workflow import Workflow

Bytes = NDArray[np.int64]
Users = tuple[int, tuple[int, ...]]  # the task that writes a file, and those that read it


@dataclass(frozen=True, eq=False)
class Footprint:
    """The files that pass between tasks, by number; files of one writer with the same readers count as one.

    >>> from eligo.dag import Dag
    >>> tree = Dag.from_parents({"a": [], "b": [], "ab": ["a", "b"], "c": [], "d": [], "cd": ["c", "d"], "all": ["ab", "cd"]})
    >>> footprint = Footprint.of_results(tree, [1, 1, 1, 1, 1, 1, 1])
    >>> footprint.peak(["a", "b", "ab", "c", "d", "cd", "all"]), footprint.peak(["a", "b", "c", "d", "ab", "cd", "all"])
    (4, 5)
    """

    dag: Dag
    #: for every file: its size, the task that writes it, and the tasks that read it, reader[reader_ptr[f]:reader_ptr[f + 1]]
    sizes: Bytes
    writer: Ints
    reader_ptr: Ints
    reader: Ints
    #: the names of the files that count as one; empty for results in memory
    names: tuple[tuple[str, ...], ...]
    #: where the sizes come from; see above
    level: str
    #: the bytes of files that no task writes, and of those that no other task reads
    inputs: int = 0
    results: int = 0

    @classmethod
    def of(cls, flow: Workflow, removed: Mapping[str, Collection[int]] | None = None) -> "Footprint":
        """The footprint of a workflow.

        *removed* gives the files that are removed, with the tasks that end before; all others stay, and count as results.
        """
        writer, readers = _users(flow)
        between = {file: tasks for file, tasks in readers.items() if file in writer}
        if removed is not None:
            children = {file: set(flow.dag.children_of(writer[file]).tolist()) for file in removed if file in between}
            between = {
                file: [*{*between[file], *below.intersection(removed[file])}] for file, below in children.items()
            }
        if not between and removed is None:
            return cls.of_results(flow.dag)
        sizes, level = sizes_of_files(flow, between, writer)
        groups: dict[Users, list[str]] = {}
        for file in writer:
            if file in between:
                groups.setdefault((writer[file], tuple(sorted(between[file]))), []).append(file)
        totals = [sum(sizes[file] for file in files) for files in groups.values()]
        stated, names = flow.file_sizes, tuple(map(tuple, groups.values()))
        inputs = sum(stated.get(file, 0) for file in readers if file not in writer)
        results = sum(stated.get(file, 0) for file in writer if file not in between)
        return cls(flow.dag, *_arrays(groups, totals), names, level, inputs, results)

    @classmethod
    def of_results(cls, dag: Dag, sizes: Sequence[int] | None = None) -> "Footprint":
        """The footprint if every task leaves one result in memory for its children, with these sizes by number, or 1 each."""
        amounts = [1] * len(dag) if sizes is None else sizes
        groups = [(v, tuple(dag.children_of(v).tolist())) for v in range(len(dag)) if dag.outdegree[v]]
        outside = sum(amounts[v] for v in range(len(dag)) if not dag.outdegree[v])
        level = "tasks" if sizes is None else "sizes"
        arrays = _arrays(groups, [amounts[v] for v, _ in groups])
        return cls(dag, *arrays, ((),) * len(groups), level, 0, outside)

    def __len__(self) -> int:
        return len(self.sizes)

    def __repr__(self) -> str:
        return f"Footprint({len(self)} files, {int(self.sizes.sum()):,} bytes, {self.level!r})"

    @property
    def sized(self) -> bool:
        """Whether any size is known."""
        return self.level in {"sizes", "kinds"}

    @cached_property
    def left(self) -> Bytes:
        """For every task, the bytes that it leaves for others."""
        return np.bincount(self.writer, self.sizes, len(self.dag)).astype(np.int64)

    def during(self, order: Order) -> Bytes:
        """The bytes that exist while each task of a schedule runs, if one runs at a time."""
        n = len(self.dag)
        sequence = order_indices(self.dag, order)
        grown = np.cumsum(self.left[sequence])
        if not len(self):
            return grown
        last_use = np.maximum.reduceat(places(n, sequence)[self.reader], self.reader_ptr[:-1])
        freed = np.zeros(n + 1, np.int64)
        np.add.at(freed, last_use + 1, self.sizes)
        return grown - np.cumsum(freed)[:n]

    def peak(self, order: Order) -> int:
        """The largest number of bytes that exist at once if the tasks run one at a time in this order."""
        return int(self.during(order).max(initial=0))

    def peak_in_time(self, begin: NDArray[np.float64], end: NDArray[np.float64]) -> int:
        """The largest number of bytes that exist at once if every task runs from its time in *begin* to that in *end*.

        >>> fork = Footprint.of_results(Dag.from_parents({"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}))
        >>> fork.peak_in_time(np.array([0.0, 1.0, 1.0, 2.0]), np.array([1.0, 2.0, 2.0, 3.0]))
        3
        """
        if not len(self):
            return 0
        gone = np.maximum.reduceat(end[self.reader], self.reader_ptr[:-1])
        moments = np.concatenate([gone, begin[self.writer]])
        changes = np.concatenate([-self.sizes, self.sizes])
        order = np.lexsort((changes > 0, moments))  # files that end at a moment make room for those that begin then
        return int(np.cumsum(changes[order]).max(initial=0))


def _arrays(groups: Collection[Users], sizes: Sequence[int]) -> tuple[Bytes, Ints, Ints, Ints]:
    """The sizes, the writers, and the readers in rows."""
    ptr = pointers(np.array([len(readers) for _, readers in groups], np.int32))
    reader = np.array([v for _, readers in groups for v in readers], np.int32)
    return np.array(sizes, np.int64), np.array([writer for writer, _ in groups], np.int32), ptr, reader


def _users(flow: Workflow) -> tuple[dict[str, int], dict[str, list[int]]]:
    """The number of the task that writes each file, and of the other tasks that read it and run after that task."""
    writer: dict[str, int] = {}
    readers: dict[str, list[int]] = {}
    for v, files in enumerate(flow.column("outputs")):
        for file in files:
            writer.setdefault(file, v)
    for v, files in enumerate(flow.column("inputs")):
        for file in dict.fromkeys(files):
            if writer.get(file) != v:
                readers.setdefault(file, []).append(v)
    below = _Descendants(flow.dag)
    for file in sorted((file for file in readers if file in writer), key=writer.__getitem__):
        readers[file] = below.among(writer[file], readers[file])
    return writer, {file: tasks for file, tasks in readers.items() if tasks}


class _Descendants:
    """Which tasks come after a task: its children at a glance, others by a search for all of that task's at once."""

    def __init__(self, dag: Dag) -> None:
        self._dag = dag
        self._all: dict[int, frozenset[int]] = {}

    def among(self, u: int, tasks: Sequence[int]) -> list[int]:
        """Those of the tasks that come after task u."""
        children = set(self._dag.children_of(u).tolist())
        if children.issuperset(tasks):
            return list(tasks)
        return [v for v in tasks if v in children or v in self._below(u)]

    def _below(self, u: int) -> frozenset[int]:
        if u not in self._all:
            reached, waiting = set[int](), [u]
            while waiting:
                fresh = set(self._dag.children_of(waiting.pop()).tolist()) - reached
                reached |= fresh
                waiting += fresh
            self._all = {u: frozenset(reached)}  # only the last: files come writer by writer
        return self._all[u]
