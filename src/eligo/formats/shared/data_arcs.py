"""Arcs that files make: from the task that writes a file to the tasks that read it.

In some formats, files are the only source of arcs (Makeflow), in others an additional one (Pegasus). A workflow can be
written in such a format only if its files make no arc that the dag lacks. If they make too few, Makeflow needs extra
files, called marks.

>>> file_arcs([("f",), ()], [(), ("f",)])
(array([1], dtype=int32), array([0], dtype=int32))

Arcs may lead through nodes that are not tasks, such as the channels of a drawing and the aliases of a build:

>>> through([(0, 1), (1, 2), (1, 3), (0, 3)], {1}, most=10)
[(0, 3), (0, 2), (0, 3)]

A document may also declare arcs. A job may change a file in place, or several jobs may write the same file, one after the
other. The files alone then do not tell which version a job reads, but the declared arcs do: the file arc comes from the last
writer that the declared arcs do not place after the reader. If there are still cycles, file arcs against the declared order
are ignored. Remarks list all ignored arcs. In a document without declared arcs, cycles are errors.

>>> jobs = Jobs(("a", "b", "c"), [(), ("f",), ()], [("f",), (), ("f",)])
>>> dag, remarks = combine(jobs, columns([(1, 2)]))
>>> list(dag.arcs()), remarks
([('a', 'b'), ('b', 'c')], ("ignored the arc from c to b through 'f', which contradicts declared arcs",))
"""

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from itertools import chain, repeat
from posixpath import normpath
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.errors import CycleError, FormatError, shorten
from eligo.rows import Ints, distinct
from eligo.workflow import Workflow


def arc_lines(dag: Dag, names: Sequence[str], between: str) -> list[str]:
    """A line for every arc, with *between* between the *names* of its tasks, and lines for tasks alone.

    If the arcs do not show the order of the tasks, all tasks come first; else tasks without arcs come last.
    """
    arcs = [f"{names[u]}{between}{names[v]}\n" for u, v in zip(dag.tails.tolist(), dag.child.tolist(), strict=True)]
    ends, first = np.unique(np.column_stack((dag.tails, dag.child)), return_index=True)
    if not np.array_equal(ends[np.argsort(first)], np.arange(len(ends))):
        return [*(f"{name}\n" for name in names), *arcs]
    return [*arcs, *(f"{name}\n" for name in names[len(ends) :])]


# Through nodes that are not tasks

Arcs = Sequence[tuple[int, int]]


def through(arcs: Arcs, passed: Set[int], most: int) -> Arcs | None:
    """The arcs between tasks, where a path through nodes in *passed* counts as an arc; None beyond *most* steps."""
    if not passed:
        return arcs
    beyond: dict[int, list[int]] = {i: [] for i in passed}
    entries: dict[int, list[int]] = {}
    for tail, head in arcs:
        if tail in beyond:
            beyond[tail].append(head)
        elif head in beyond:
            entries.setdefault(tail, []).append(head)
    direct = [arc for arc in arcs if beyond.keys().isdisjoint(arc)]
    steps = len(direct)
    for tail, heads in entries.items():
        seen, waiting = set(heads), list(heads)
        while waiting:
            onward = [head for head in beyond[waiting.pop()] if head not in seen]
            seen.update(onward)
            direct += ((tail, head) for head in onward if head not in beyond)
            waiting += (head for head in onward if head in beyond)
            steps += 1 + len(onward)
            if steps > most:
                return None
    return direct


# Made by files

Files = Sequence[Sequence[str]]
#: the files of each task; None stands for no files
SparseFiles = Sequence[Sequence[str] | None]


def file_arcs(inputs: Files, outputs: Files) -> tuple[Ints, Ints]:
    """The tails and heads of the arcs that files make, given the files that each task reads and writes.

    If several tasks write a file, the last one counts. A task that reads and writes a file only changes it, and is not
    counted as a writer.
    """
    writer: dict[str, int] = {}
    for i, files in enumerate(outputs):
        changed = set(inputs[i]) if files else ()
        writer.update((file, i) for file in files if file not in changed)
    pairs = [(writer[file], i) for i, files in enumerate(inputs) for file in files if file in writer]
    return columns(pairs)


def written_once(inputs: SparseFiles, outputs: SparseFiles) -> tuple[Ints, Ints]:
    """The tails and heads of the arcs from the writer of each file to its other readers; each file has one writer.

    >>> written_once([None, ("f", "g"), ("h",)], [("f",), ("g",), None])
    (array([0], dtype=int32), array([1], dtype=int32))
    """
    files, owners = _flat(outputs)
    writer = dict(zip(files, owners.tolist(), strict=True))
    files, readers = _flat(inputs)
    writers = np.fromiter(map(writer.get, files, repeat(-1)), np.int32, len(files))
    others = (writers >= 0) & (writers != readers)
    return writers[others], readers[others]


def written_twice(outputs: SparseFiles) -> tuple[str, int, int] | None:
    """A file that two tasks write, and the numbers of the two tasks; None if there is none."""
    files, owners = _flat(outputs)
    if len(set(files)) == len(files):
        return None
    first: dict[str, int] = {}
    for file, owner in zip(files, owners.tolist(), strict=True):
        if first.setdefault(file, owner) != owner:
            return file, first[file], owner
    return None


def _flat(files: SparseFiles) -> tuple[list[str], Ints]:
    """The plain path of every file, and the number of its task."""
    counts = [0 if names is None else len(names) for names in files]
    owners = np.repeat(np.arange(len(files), dtype=np.int32), counts)
    return [plain_path(file) for file in chain.from_iterable(filter(None, files))], owners


def plain_path(file: str) -> str:
    """The path without . and .. steps and double slashes, so that two names of one file become equal.

    >>> plain_path("./a//b/../c"), plain_path("a")
    ('a/c', 'a')
    """
    return normpath(file) if "/" in file else file


def beyond(tails: Ints, heads: Ints, ends: tuple[Ints, Ints], n: int) -> tuple[Ints, Ints]:
    """The arcs with these *ends*, each once, that are not among the arcs of *tails* and *heads*."""
    codes = distinct(ends[0].astype(np.int64) * n + ends[1])
    existing = np.append(np.sort(tails.astype(np.int64) * n + heads), -1)  # sorted, and searched: faster than a set
    more = codes[existing[np.searchsorted(existing[:-1], codes)] != codes]
    return (more // max(n, 1)).astype(np.int32), (more % max(n, 1)).astype(np.int32)


def columns(pairs: Sequence[tuple[int, int]]) -> tuple[Ints, Ints]:
    """The first and the second items of the pairs."""
    ends = np.array(pairs, np.int32).reshape(-1, 2)
    return ends[:, 0], ends[:, 1]


def dag_of(names: Sequence[str], *ends: tuple[Ints, Ints]) -> Dag:
    """The dag of the arcs with all these ends; repeated arcs count once."""
    n = max(len(names), 1)
    codes = np.unique(np.concatenate([tails.astype(np.int64) * n + heads for tails, heads in ends]))
    return Dag.from_arrays(len(names), codes // n, codes % n, names)


def unmade(flow: Workflow, format: str) -> NDArray[np.bool_]:
    """A mask of the arcs of the dag that its files do not make; raises if files make an arc that the dag lacks."""
    dag, n = flow.dag, max(len(flow), 1)
    tasks = [flow.task(name) for name in dag.tasks]
    inputs = [task.inputs for task in tasks]
    tails, heads = file_arcs(inputs, [task.outputs for task in tasks])
    files = tails.astype(np.int64) * n + heads
    arcs = dag.tails.astype(np.int64) * n + dag.child
    more = ~np.isin(files, arcs)
    if more.any():
        parent, child = tasks[tails[more.argmax()]], tasks[heads[more.argmax()]]
        file = next(file for file in child.inputs if file in parent.outputs)
        raise FormatError(
            f"task {shorten(child.name)!r} reads {shorten(file)!r}, which {shorten(parent.name)!r} writes, but there is"
            f" no arc between them; {format} would add one"
        )
    return ~np.isin(arcs, files)


# Made by files, and declared

#: The maximum number of steps along declared arcs, to find file arcs that contradict them.
MOST_STEPS = 1_000_000
#: The maximum number of ignored arcs that remarks list.
MOST_NAMED = 5


class Jobs(NamedTuple):
    """The names of tasks, and the files that each reads and writes."""

    names: tuple[str, ...]
    inputs: Files
    outputs: Files


class _FileArc(NamedTuple):
    tail: int
    head: int
    file: str


def combine(jobs: Jobs, declared: tuple[Ints, Ints]) -> tuple[Dag, tuple[str, ...]]:
    """The dag of the declared arcs and those that files make, and remarks on ignored file arcs."""
    try:
        return dag_of(jobs.names, declared, file_arcs(jobs.inputs, jobs.outputs)), ()
    except CycleError:
        if not len(declared[0]):
            raise
    stated = dag_of(jobs.names, declared)  # raises if declared arcs form a cycle
    return _Choice(jobs, stated).dag(declared)


def _cyclic_tasks(arcs: list[tuple[int, int]]) -> set[int]:
    """The tasks on cycles, and on paths between cycles: those that remain when sources and sinks are removed repeatedly."""
    remaining = {end for arc in arcs for end in arc}
    for ahead in (0, 1):
        count = Counter(arc[1 - ahead] for arc in arcs if remaining.issuperset(arc))
        beyond: dict[int, list[int]] = {}
        for arc in arcs:
            beyond.setdefault(arc[ahead], []).append(arc[1 - ahead])
        waiting = [task for task in remaining if not count[task]]
        while waiting:
            task = waiting.pop()
            remaining.discard(task)
            for other in beyond.get(task, ()):
                count[other] -= 1
                waiting += [other] if not count[other] else []
    return remaining


class _Choice:
    """The choice of the file arcs that agree with the declared arcs."""

    def __init__(self, jobs: Jobs, stated: Dag) -> None:
        self.jobs, self.stated = jobs, stated
        self.place = np.empty(len(stated), np.int64)
        self.place[stated.order] = np.arange(len(stated))
        self.steps = 0
        self.out: list[_FileArc] = []

    def dag(self, declared: tuple[Ints, Ints]) -> tuple[Dag, tuple[str, ...]]:
        """The dag of declared and chosen arcs, and remarks."""
        arcs = list(self._chosen_arcs())
        try:
            return self._dag(declared, arcs), self._remarks()
        except CycleError:
            tasks = _cyclic_tasks(
                [*zip(*(ends.tolist() for ends in declared), strict=True), *(arc[:2] for arc in arcs)]
            )
            against = {arc for arc in arcs if {arc.tail, arc.head} <= tasks and not self._is_forward(arc)}
            self.out += (arc for arc in arcs if arc in against)
            return self._dag(declared, [arc for arc in arcs if arc not in against]), self._remarks()

    def _is_forward(self, arc: _FileArc) -> bool:
        return bool(self.place[arc.tail] < self.place[arc.head])

    def _dag(self, declared: tuple[Ints, Ints], arcs: list[_FileArc]) -> Dag:
        return dag_of(self.jobs.names, declared, columns([arc[:2] for arc in arcs]))

    def _chosen_arcs(self) -> Iterator[_FileArc]:
        """For each file that a task reads, the arc from its last writer that may run before the task."""
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
        """The tasks that write each file, in order, without those that also read it."""
        writers: dict[str, list[int]] = {}
        for task, files in enumerate(self.jobs.outputs):
            changed = set(self.jobs.inputs[task]) if files else set()
            for file in files:
                if file not in changed:
                    writers.setdefault(file, []).append(task)
        return writers

    def _behind(self, task: int) -> set[int]:
        """The task and its descendants along declared arcs, as far as `MOST_STEPS` allows."""
        seen, waiting = {task}, [task]
        while waiting and self.steps < MOST_STEPS:
            below = [child for child in self.stated.children_of(waiting.pop()).tolist() if child not in seen]
            self.steps += 1 + len(below)
            seen.update(below)
            waiting += below
        return seen

    def _remarks(self) -> tuple[str, ...]:
        names = self.jobs.names
        remarks = [
            f"ignored the arc from {shorten(names[arc.tail])} to {shorten(names[arc.head])} through {shorten(arc.file)!r},"
            " which contradicts declared arcs"
            for arc in self.out[:MOST_NAMED]
        ]
        more = len(self.out) - len(remarks)
        return (*remarks, f"more arcs ignored for the same reason: {more:,}") if more else tuple(remarks)
