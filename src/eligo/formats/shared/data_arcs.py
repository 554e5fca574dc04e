"""Arcs that files make: from the task that writes a file to those that read it.

Some formats state arcs only so (Makeflow), some in this way too (Pegasus). To write such a format, files must make no arc
that the dag does not have; and where they make too few, Makeflow needs files that do nothing else, called marks here.

>>> made([("f",), ()], [(), ("f",)])
(array([1], dtype=int32), array([0], dtype=int32))
"""

from collections.abc import Sequence
from itertools import chain, repeat
from posixpath import normpath

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.errors import FormatError, shorten
from eligo.rows import Ints, distinct
from eligo.workflow import Workflow

Files = Sequence[Sequence[str]]
#: the same, with None for no files
SparseFiles = Sequence[Sequence[str] | None]


def made(inputs: Files, outputs: Files) -> tuple[Ints, Ints]:
    """The two ends of every arc that files make, given what each task reads and writes.

    Of several tasks that write a file the last one counts. A task that reads what it writes only changes the file: that
    makes no arc from it.
    """
    writer: dict[str, int] = {}
    for i, files in enumerate(outputs):
        changed = set(inputs[i]) if files else ()
        writer.update((file, i) for file in files if file not in changed)
    pairs = [(writer[file], i) for i, files in enumerate(inputs) for file in files if file in writer]
    return columns(pairs)


def written_once(inputs: SparseFiles, outputs: SparseFiles) -> tuple[Ints, Ints]:
    """The two ends of every arc from the task that writes a file to the others that read it, where each has one writer.

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
    """A file that two tasks write, and the two; None where there is none."""
    files, owners = _flat(outputs)
    if len(set(files)) == len(files):
        return None
    first: dict[str, int] = {}
    for file, owner in zip(files, owners.tolist(), strict=True):
        if first.setdefault(file, owner) != owner:
            return file, first[file], owner
    return None


def _flat(files: SparseFiles) -> tuple[list[str], Ints]:
    """All files in a row, each by its plain path, and the task of each."""
    counts = [0 if names is None else len(names) for names in files]
    owners = np.repeat(np.arange(len(files), dtype=np.int32), counts)
    return [plain_path(file) for file in chain.from_iterable(filter(None, files))], owners


def plain_path(file: str) -> str:
    """The path without steps that lead nowhere, so that two names of one file are seen as such.

    >>> plain_path("./a//b/../c"), plain_path("a")
    ('a/c', 'a')
    """
    return normpath(file) if "/" in file else file


def beyond(tails: Ints, heads: Ints, ends: tuple[Ints, Ints], n: int) -> tuple[Ints, Ints]:
    """Of the arcs with these two *ends*, each once, those that are not among the others."""
    codes = distinct(ends[0].astype(np.int64) * n + ends[1])
    known = np.append(np.sort(tails.astype(np.int64) * n + heads), -1)  # sorted, and searched: faster than a set
    more = codes[known[np.searchsorted(known[:-1], codes)] != codes]
    return (more // max(n, 1)).astype(np.int32), (more % max(n, 1)).astype(np.int32)


def columns(pairs: Sequence[tuple[int, int]]) -> tuple[Ints, Ints]:
    """The first and the second of every pair."""
    ends = np.array(pairs, np.int32).reshape(-1, 2)
    return ends[:, 0], ends[:, 1]


def dag_of(names: Sequence[str], *ends: tuple[Ints, Ints]) -> Dag:
    """The dag of the arcs from all these sources, each taken once: that two of them say the same is no mistake."""
    n = max(len(names), 1)
    codes = np.unique(np.concatenate([tails.astype(np.int64) * n + heads for tails, heads in ends]))
    return Dag.from_arrays(len(names), codes // n, codes % n, names)


def unmade(flow: Workflow, format: str) -> NDArray[np.bool_]:
    """Which arcs of the dag its files do not make; refused, by name, where they make one that it does not have."""
    dag, n = flow.dag, max(len(flow), 1)
    tasks = [flow.task(name) for name in dag.tasks]
    inputs = [task.inputs for task in tasks]
    tails, heads = made(inputs, [task.outputs for task in tasks])
    files = tails.astype(np.int64) * n + heads
    arcs = dag.tails.astype(np.int64) * n + dag.child
    more = ~np.isin(files, arcs)
    if more.any():
        parent, child = tasks[tails[more.argmax()]], tasks[heads[more.argmax()]]
        file = next(file for file in child.inputs if file in parent.outputs)
        raise FormatError(
            f"task {shorten(child.name)!r} reads {shorten(file)!r}, which {shorten(parent.name)!r} writes, but there is"
            f" no arc between them: {format} would make one"
        )
    return ~np.isin(arcs, files)
