"""The files that tasks declare, in the folder where they run: which are missing, and which tasks must run again for that."""

import os
from collections.abc import Callable, Collection, Container, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from eligo.errors import InputError, shorten
from eligo.formats.shared.data_arcs import plain_path
from eligo.names import Name
from eligo.workflow import Workflow

MOST_LISTED = 5  # missing inputs listed in an error
#: formats in which commands need not create their declared outputs; ninja just runs them again the next time
LENIENT = {"ninja"}


def are_outputs_owed(flow: Workflow) -> bool:
    """Whether a task of this workflow fails if it does not create its declared outputs."""
    return flow.origin is None or flow.origin.format not in LENIENT


class Redone(NamedTuple):
    """Tasks that were done and must run again, by number."""

    #: tasks with a missing output that is needed
    gone: frozenset[int]
    #: tasks that depend on them
    dependent: frozenset[int]


@dataclass(frozen=True, eq=False)
class TaskFiles:
    """The files of a workflow's tasks, as paths relative to *folder*."""

    flow: Workflow
    folder: str

    @cached_property
    def _outputs(self) -> list[tuple[str, ...]]:
        owed = are_outputs_owed(self.flow)
        return [files if owed and files else () for files in self.flow.column("outputs")]

    @cached_property
    def _inputs(self) -> list[tuple[str, ...]]:
        return [files or () for files in self.flow.column("inputs")]

    @property
    def any_outputs(self) -> bool:
        """Whether any task must create a file."""
        return any(self._outputs)

    def absent(self, task: Name) -> list[str]:
        """The declared outputs of a task that do not exist."""
        return [file for file in self._outputs[self.flow.dag.number(task)] if not self._is_there(file)]

    def _is_there(self, file: str) -> bool:
        path = os.path.join(self.folder, file)
        return os.path.exists(path) or (_refreshed(os.path.dirname(path)) and os.path.exists(path))

    # Missing inputs

    def check_inputs(self, done: Container[Name], is_written: Callable[[str], bool] = lambda file: False) -> None:
        """Refuse inputs of unfinished tasks that neither exist nor are written by a task, here or elsewhere."""
        if not any(self._inputs):
            return
        written = {plain_path(file) for files in self.flow.column("outputs") for file in files or ()}
        missing = [
            (file, name)
            for name, files in zip(self.flow.dag.tasks, self._inputs, strict=True)
            for file in files
            if plain_path(file) not in written and name not in done and not self._is_there(file)
            if not self._writer(file) and not is_written(file)
        ]
        if missing:
            raise InputError(_refusal(missing))

    def check_spelling(self) -> None:
        """Refuse an input that another task writes under another spelling, or in a folder, without an arc between them."""
        for v, files in enumerate(self._inputs) if self._places else ():
            for file in files:
                writer = plain_path(file) not in self._writers and self._writer(file)
                if writer and writer[1] != v and writer[1] not in self._above(v):
                    raise InputError(self._misspelt(v, file, *writer))

    @cached_property
    def _places(self) -> dict[str, tuple[str, int]]:
        """Every output as it is spelt and its task, by absolute path."""
        return {self._resolved(file): (file, v) for v, files in enumerate(self._outputs) for file in files}

    def _resolved(self, file: str) -> str:
        return os.path.normpath(os.path.join(self.folder, file))

    def _writer(self, file: str) -> tuple[str, int] | None:
        """The output and task that write a file, under any spelling, or a folder that contains it."""
        path = self._resolved(file)
        while path not in self._places and len(path) > len(os.path.dirname(path)):
            path = os.path.dirname(path)
        return self._places.get(path)

    def _above(self, v: int) -> set[int]:
        """The tasks on which a task depends."""
        ancestors, waiting = set[int](), [v]
        while waiting:
            fresh = [u for u in self.flow.dag.parents_of(waiting.pop()).tolist() if u not in ancestors]
            ancestors.update(fresh)
            waiting += fresh
        return ancestors

    def _misspelt(self, v: int, file: str, written: str, writer: int) -> str:
        reads, writes = (shorten(self.flow.dag.labels[u]) for u in (v, writer))
        files = f"task {reads!r} reads {shorten(file)!r}, which {writes!r} writes as {shorten(written)!r}"
        return f"{files}, but does not depend on it: list {writes!r} in `after`, or use the same spelling"

    # Missing outputs

    def outdated(self, done: Iterable[int]) -> list[int]:
        """The done tasks whose files all exist and that have an input newer than an output."""
        return [v for v in done if are_current(self._outputs[v], self._inputs[v], self.folder) is False]

    def to_redo(self, done: Iterable[int], outdated: Collection[int] = ()) -> Redone:
        """The done tasks that must run again because an output is missing, or because they are *outdated*.

        An output is needed if it is final, or if an unfinished task reads it; an intermediate output whose readers are
        all done is not. A child without declared inputs counts as a reader of all outputs of its parents.
        """
        remaining, invalid, below = set(done), set[int](), set[int]()
        suspects = [v for v in remaining if self._outputs[v]]
        while suspects:
            v = suspects.pop()
            owed = (file for file in self._outputs[v] if v in remaining and self._is_owed(file, v, remaining))
            if v in remaining and (v in outdated or not all(map(self._is_there, owed))):
                invalid.add(v)
                fallen = [v, *self._dependants(v, remaining)]
                remaining.difference_update(fallen)
                below.update(fallen)
                suspects += [u for w in fallen for u in self._sources(w) if u in remaining]
        return Redone(frozenset(invalid), frozenset(below - invalid))

    def _is_owed(self, file: str, v: int, done: Collection[int]) -> bool:
        """Whether a file that task v wrote is final, or is read by a task that is not done."""
        dag, inputs = self.flow.dag, self._inputs
        readers = self._readers.get(plain_path(file)) or [w for w in dag.children_of(v).tolist() if not inputs[w]]
        return not readers or any(w not in done for w in readers)

    def _dependants(self, v: int, among: Collection[int]) -> list[int]:
        """The tasks below v, through tasks of this collection."""
        reached, visited = [v], {v}
        for u in reached:
            fresh = [w for w in self.flow.dag.children_of(u).tolist() if w in among and w not in visited]
            visited.update(fresh)
            reached += fresh
        return reached[1:]

    def _sources(self, v: int) -> list[int]:
        """The tasks that may have written what task v reads."""
        writers = (self._writers.get(plain_path(file)) for file in self._inputs[v])
        return [*(writer for writer in writers if writer is not None), *self.flow.dag.parents_of(v).tolist()]

    @cached_property
    def _readers(self) -> dict[str, list[int]]:
        readers: dict[str, list[int]] = {}
        for v, files in enumerate(self._inputs):
            for file in map(plain_path, files):
                if self._writers.get(file) != v:  # a task that changes a file in place does not wait for it
                    readers.setdefault(file, []).append(v)
        return readers

    @cached_property
    def _writers(self) -> dict[str, int]:
        return {plain_path(file): v for v, files in enumerate(self._outputs) for file in files}


def are_current(outputs: Sequence[str], inputs: Sequence[str], folder: str) -> bool | None:
    """Whether no output is older than an input; None if there is no output, or one is missing."""
    output_times = [changed(os.path.join(folder, name)) for name in outputs]
    if not output_times or None in output_times:
        return None
    used = [changed(os.path.join(folder, name)) or 0 for name in inputs]
    return max(used, default=0) <= min(time or 0 for time in output_times)


def changed(path: str) -> int | None:
    """The modification time of a file; None if it does not exist."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return None


def _refreshed(folder: str) -> bool:
    """Open a folder, so that a network file system refreshes its listing; returns whether the folder exists."""
    try:
        os.close(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _refusal(missing: list[tuple[str, Name]]) -> str:
    file, task = missing[0]
    text = f"task {shorten(task)!r} reads {shorten(file)!r}, which does not exist and no task writes"
    cure = "correct its name, create the file, or list it in the outputs of the task that writes it"
    more = [f"{shorten(other)!r} of {shorten(name)!r}" for other, name in missing[1:]]
    if not more:
        return f"{text}: {cure}"
    dots = ", ..." if len(more) > MOST_LISTED else ""
    listed = f"{', '.join(more[:MOST_LISTED])}{dots}"
    return f"{text}: {cure} ({len(more):,} more such input{'s' if len(more) > 1 else ''}: {listed})"
