"""The files that tasks declare: which are missing, late or up to date, and which tasks must run again for that."""

import os
import time
from collections import deque
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from eligo.engines import Ending, Job
from eligo.engines.worker import STOPPED
from eligo.errors import InputError, shorten
from eligo.execution import COMPLETE, FAIL, GROW, RELEASE, Execution
from eligo.formats.shared.data_arcs import plain_path
from eligo.grown_dag import reachable_tasks
from eligo.names import Name
from eligo.stores import Store, added_names
from eligo.workflow import Task, Workflow

MOST_LISTED = 5  # missing inputs listed in an error
#: formats in which commands need not create their declared outputs; they just run again the next time
LENIENT = {"ninja", "make"}
#: formats in which a task reads nothing of a parent that writes none of its inputs: the arc only gives an order
EXACT = {"make"}


def are_outputs_owed(flow: Workflow) -> bool:
    """Whether a task of this workflow fails if it does not create its declared outputs."""
    return flow.origin is None or flow.origin.format not in LENIENT


class Redone(NamedTuple):
    """Tasks that were done and must run again, by number."""

    #: tasks with a missing output that is needed, or that must run again for another reason
    gone: frozenset[int]
    #: tasks that depend on them
    dependent: frozenset[int]
    #: tasks that are to run again on request; tasks of which an input changed, each with that input
    requested: frozenset[int] = frozenset()
    renewed: Mapping[int, str] = MappingProxyType({})
    #: tasks that come after these but read nothing that they write; they do not run
    waiting: frozenset[int] = frozenset()


@dataclass(frozen=True, eq=False)
class TaskFiles:
    """The files of a workflow's tasks, as paths relative to *folder*."""

    flow: Workflow
    folder: str

    @cached_property
    def outputs(self) -> list[tuple[str, ...]]:
        """The files that each task must create."""
        return [files or () for files in self.flow.column("outputs")]

    @cached_property
    def _inputs(self) -> list[tuple[str, ...]]:
        return [files or () for files in self.flow.column("inputs")]

    @property
    def any_outputs(self) -> bool:
        """Whether any task must create a file."""
        return are_outputs_owed(self.flow) and any(self.outputs)

    def absent(self, task: Name) -> list[str]:
        """The declared outputs of a task that do not exist."""
        return [file for file in self.outputs[self.flow.dag.number(task)] if not self._is_there(file)]

    def _is_there(self, file: str) -> bool:
        path = os.path.join(self.folder, file)
        return os.path.exists(path) or (_refresh(os.path.dirname(path)) and os.path.exists(path))

    # Inputs that no task writes

    def sources(self) -> dict[str, list[int]]:
        """The input files that no task writes, each with the tasks that read it."""
        return {
            file: readers
            for file, readers in self._readers.items()
            if file not in self._written and not self._writer(file)
        }

    @cached_property
    def _written(self) -> set[str]:
        """The declared outputs, also those that need not be created."""
        return {plain_path(file) for files in self.flow.column("outputs") for file in files or ()}

    # Inputs that other tasks write

    def between(self, done: Container[int]) -> dict[str, list[int]]:
        """The files that done tasks wrote and others read, each with the tasks that read it."""
        return {file: readers for file, readers in self._readers.items() if self._writers.get(file, -1) in done}

    def is_older(self, v: int, time: int) -> bool:
        """Whether an output of a task was last changed before this time, in nanoseconds.

        The time of the change of a file's state counts: the modification time may be that of an unpacked original.
        """
        with suppress(OSError):
            return any(os.stat(os.path.join(self.folder, file)).st_ctime_ns < time for file in self.outputs[v])
        return False

    def check_inputs(self, done: Container[Name], is_written: Callable[[str], bool] = lambda file: False) -> None:
        """Refuse inputs of unfinished tasks that neither exist nor are written by a task, here or elsewhere."""
        if not any(self._inputs):
            return
        missing = [
            (file, name)
            for name, files in zip(self.flow.dag.tasks, self._inputs, strict=True)
            if name not in done
            for file in files
            if plain_path(file) not in self._written and not self._is_there(file)
            if not self._writer(file) and not is_written(file)
        ]
        if missing:
            raise InputError(_refusal(missing))

    def check_spelling(self) -> None:
        """Refuse an input that another task writes under another spelling, or in a folder, without an arc between them."""
        suspects = {file for file in self._readers if file not in self._writers and self._writer(file)}
        for v, files in enumerate(self._inputs) if suspects else ():
            for file in files:
                writer = plain_path(file) in suspects and self._writer(file)
                if writer and writer[1] != v and writer[1] not in self._above(v):
                    raise InputError(self._misspelt(v, file, *writer))

    @cached_property
    def _places(self) -> dict[str, tuple[str, int]]:
        """Every output as it is spelt and its task, by absolute path."""
        return {self.absolute(file): (file, v) for v, files in enumerate(self.outputs) for file in files}

    def absolute(self, file: str) -> str:
        """The absolute path of a file."""
        return os.path.normpath(os.path.join(self.folder, file))

    def _writer(self, file: str) -> tuple[str, int] | None:
        """The output and task that write a file, under any spelling, or a folder that contains it."""
        path = self.absolute(file)
        return self._places.get(path) or self._writer_of_folder(os.path.dirname(path))

    def _writer_of_folder(self, folder: str) -> tuple[str, int] | None:
        """The output and task that write a folder, or one that contains it."""
        if folder not in self._folder_writers:
            above = os.path.dirname(folder)
            writer = self._places.get(folder)
            self._folder_writers[folder] = writer or (None if above == folder else self._writer_of_folder(above))
        return self._folder_writers[folder]

    @cached_property
    def _folder_writers(self) -> dict[str, tuple[str, int] | None]:
        """The results of `_writer_of_folder`, since many files share few folders."""
        return {}

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
        return [v for v in done if are_current(self.outputs[v], self._inputs[v], self.folder) is False]

    def to_redo(self, done: Iterable[int], outdated: Collection[int] = ()) -> Redone:
        """The done tasks that must run again because an output is missing, or because they are *outdated*.

        An output is needed if it is final, or if an unfinished task reads it; an intermediate output whose readers are
        all done is not. A child without declared inputs counts as a reader of all outputs of its parents.
        """
        remaining, invalid, below = set(done), set[int](), set[int]()
        suspects = [v for v in remaining if self.outputs[v] or v in outdated]
        while suspects:
            v = suspects.pop()
            owed = (file for file in self.outputs[v] if v in remaining and self._is_owed(file, v, remaining))
            if v in remaining and (v in outdated or not all(map(self._is_there, owed))):
                invalid.add(v)
                fallen = [v, *self._dependants(v, remaining)]
                remaining.difference_update(fallen)
                below.update(fallen)
                suspects += [u for w in fallen for u in self._sources(w) if u in remaining]
        waiting = remaining.intersection(reachable_tasks(self.flow.dag, invalid).tolist()) if self._is_exact else ()
        return Redone(frozenset(invalid), frozenset(below - invalid), waiting=frozenset(waiting))

    def _is_owed(self, file: str, v: int, done: Collection[int]) -> bool:
        """Whether a file that task v wrote is final, or is read by a task that is not done."""
        readers = self.readers_of(file, v)
        return not readers or any(w not in done for w in readers)

    def spared(self, done: Collection[int]) -> set[str]:
        """The temporary outputs that no task needs if these tasks are done."""
        temporary = ((file, v) for v, files in enumerate(self.flow.column("temporary")) for file in files or ())
        return {file for file, v in temporary if not self._is_owed(file, v, done)}

    def _dependants(self, v: int, among: Collection[int]) -> list[int]:
        """The tasks below v that may read what it writes, through tasks of this collection."""
        below, visited = [v], {v}
        for u in below:
            fresh = [w for w in self.flow.dag.children_of(u).tolist() if w in among and w not in visited]
            fresh = [w for w in fresh if self._is_reader(w, u)]
            visited.update(fresh)
            below += fresh
        return below[1:]

    def _is_reader(self, w: int, u: int) -> bool:
        """Whether a task may read what its parent u writes."""
        return not (self._is_exact and self.outputs[u]) or not set(self.outputs[u]).isdisjoint(self._inputs[w])

    @cached_property
    def _is_exact(self) -> bool:
        return self.flow.origin is not None and self.flow.origin.format in EXACT

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

    def readers_of(self, file: str, v: int) -> list[int]:
        """The tasks that may read a file that task v writes: those that declare it, or a folder above or a file below it.

        A child of v without declared inputs may read all of its outputs.
        """
        dag, inputs = self.flow.dag, self._inputs
        silent = (w for w in dag.children_of(v).tolist() if not inputs[w])
        return [*self.declared_readers(file, v), *silent]

    def declared_readers(self, file: str, v: int) -> list[int]:
        """The tasks that declare to read a file that task v writes, or a folder above or a file below it."""
        direct = self._readers.get(plain_path(file), [])
        if not self._odd_inputs:
            return direct
        path = self.absolute(file)
        around = (w for place in _upward(path) for w in self._odd_inputs.get(place, ()))
        return list(dict.fromkeys([*direct, *(w for w in (*around, *self._below.get(path, ())) if w != v)]))

    @cached_property
    def _odd_inputs(self) -> dict[str, list[int]]:
        """The readers of inputs, by absolute path, that no task writes under the same name: a folder, or another spelling."""
        odd: dict[str, list[int]] = {}
        for file, readers in self._readers.items():
            if file not in self._writers and (self._writer(file) or self.absolute(file) in self._output_folders):
                odd[self.absolute(file)] = readers
        return odd

    def has_outputs_below(self, path: str) -> bool:
        """Whether an output is inside a folder, given by its absolute path."""
        return path in self._output_folders

    @cached_property
    def _output_folders(self) -> set[str]:
        """The folders that contain outputs, by absolute path."""
        folders, waiting = set[str](), {os.path.dirname(path) for path in self._places}
        while waiting:
            folders |= waiting
            waiting = {os.path.dirname(path) for path in waiting} - folders
        return folders

    @cached_property
    def _below(self) -> dict[str, list[int]]:
        """For each folder with such an input inside, by absolute path, the readers of these."""
        readers: dict[str, list[int]] = {}
        for path, tasks in self._odd_inputs.items():
            for folder in _upward(os.path.dirname(path)):
                readers.setdefault(folder, []).extend(tasks)
        return readers

    @cached_property
    def _writers(self) -> dict[str, int]:
        return {plain_path(file): v for v, files in enumerate(self.outputs) for file in files}


def are_current(outputs: Sequence[str], inputs: Sequence[str], folder: str) -> bool | None:
    """Whether no output is older than an input; None if there is no output, or one is missing."""
    output_times = [change_time(os.path.join(folder, name)) for name in outputs]
    if not output_times or None in output_times:
        return None
    used = [change_time(os.path.join(folder, name)) or 0 for name in inputs]
    return max(used, default=0) <= min(time or 0 for time in output_times)


def _upward(path: str) -> Iterator[str]:
    """An absolute path, and the folders that contain it."""
    while path != (above := os.path.dirname(path)):
        yield path
        path = above


def change_time(path: str) -> int | None:
    """The modification time of a file; None if it does not exist."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return None


def _refresh(folder: str) -> bool:
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


# Tasks that are up to date

SECOND = 10**9  # in the unit of file times, which may lag slightly behind the clock


@dataclass(frozen=True)
class Doubts:
    """Reasons why an existing output may be incomplete."""

    #: labels of tasks that were started in this run and never completed
    unfinished: frozenset[str] = frozenset()
    #: start and end times of dispatchers that were killed: their last starts may be missing from the store
    killed: tuple[tuple[float, float], ...] = ()

    def without(self, labels: Iterable[str]) -> "Doubts":
        """The doubts about other tasks."""
        return Doubts(self.unfinished.difference(labels), self.killed)

    def touch(self, modified: int) -> bool:
        """Whether a file with this modification time may belong to a task that was killed with its dispatcher."""
        return any(SECOND * (began - 1) <= modified < SECOND * until for began, until in self.killed)


NO_DOUBTS = Doubts()


def unfinished_tasks(store: Store, earlier: frozenset[str] = frozenset()) -> frozenset[str]:
    """The labels of tasks that were started and never completed: the last attempt failed, or the dispatcher was killed.

    *earlier* are those of earlier journals; tasks that completed since are left out.
    """
    names = [*store.tasks(), *added_names(store.additions())]
    moves = np.array(store.moves(), np.int64)
    moves = moves[moves >> 32 != GROW]
    last = np.full(len(names), -1)
    last[moves & 0xFFFFFFFF] = moves >> 32  # of several moves of a task, the last one counts
    out = np.flatnonzero(~np.isin(last, (-1, COMPLETE, FAIL, RELEASE))).tolist()
    started = {names[v] for v in (*out, *store.failing()) if v < len(names)}
    return (earlier | started) - {names[v] for v in np.flatnonzero(last == COMPLETE).tolist()}


def skip_up_to_date(flow: Workflow, game: Execution, place: str, doubts: Doubts = NO_DOUBTS) -> None:
    """Execute tasks that are up to date and whose parents are executed, without running them."""
    for v in flow.dag.order.tolist():
        name = flow.dag.tasks[v]
        complete = flow.dag.labels[v] not in doubts.unfinished
        if complete and name in game.eligible and is_up_to_date(flow.task(name), place, doubts):
            game.execute(name)


def is_up_to_date(task: Task, place: str, doubts: Doubts = NO_DOUBTS) -> bool:
    """Whether a task has outputs, all of which exist and can be trusted, and none is older than an input."""
    if not are_current(task.outputs, task.inputs, place):
        return False
    return not any(doubts.touch(change_time(os.path.join(place, name)) or 0) for name in task.outputs)


# Outputs that appear late

#: seconds until a file appears here after its writer on another machine has ended
LATENESS = 5.0
#: returns the declared outputs of a task that do not exist here
Absent = Callable[[Name], Sequence[str]]
#: returns why a successful task with all outputs has failed anyway, or None
Refusal = Callable[[Ending], str | None]


class Inspection:
    """Turns successful endings into failures if outputs are missing or the ending is refused.

    A job may continue with its next task before this one is checked. Then the job is cancelled, its later endings do not
    count, and the failure is reported once the job has ended, so that no task runs twice at the same time.
    """

    def __init__(
        self,
        absent: Absent,
        lateness: float,
        cancel: Callable[[list[Job]], object],
        refusal: Refusal = lambda ending: None,
    ) -> None:
        self._absent, self._lateness, self._cancel, self._refusal = absent, lateness, cancel, refusal
        self._waiting: dict[int, deque[Ending]] = {}  # by job, in order
        self._until: dict[int, float] = {}  # time when the first of them fails, by the monotonic clock
        self._spoiled: dict[int, Ending] = {}  # jobs that still run after a task without its outputs
        self._discarded: list[Ending] = []

    def settled(self, endings: Iterable[Ending]) -> Iterator[Ending]:
        """The checked endings among these and those that were held back before."""
        for ending in endings:
            self._waiting.setdefault(ending.job.number, deque()).append(ending)
        for number in list(self._waiting):
            yield from self._of_job(number, self._waiting[number])
            if not self._waiting[number]:
                del self._waiting[number]

    def discarded(self) -> list[Ending]:
        """Endings that did not count, because an earlier task of the same job was turned into a failure."""
        endings, self._discarded = self._discarded, []
        return [each.failed(each.attempt.failure or STOPPED, lost=True) for each in endings]

    def _of_job(self, number: int, queue: "deque[Ending]") -> Iterator[Ending]:
        while queue:
            ending = queue[0]
            if number in self._spoiled:
                self._discarded.append(queue.popleft())
                if ending.last:
                    yield self._spoiled.pop(number)
                continue
            lacking = self._absent(ending.task) if ending.attempt.failure is None else ()
            if lacking and not self._overdue(number):
                return
            self._until.pop(number, None)
            why = (
                not_made(lacking) if lacking else None if ending.attempt.failure is not None else self._refusal(ending)
            )
            yield from self._judge(queue.popleft(), why)

    def _overdue(self, number: int) -> bool:
        now = time.monotonic()
        return now >= self._until.setdefault(number, now + self._lateness)

    def _judge(self, ending: Ending, why: str | None) -> Iterator[Ending]:
        """The ending; as a failure if there is a reason *why*, which is reported once its job has ended."""
        if why is None:
            yield ending
        elif ending.last:
            yield ending.failed(why)
        else:
            self._spoiled[ending.job.number] = ending.failed(why)
            self._cancel([ending.job])


def not_made(files: Sequence[str]) -> str:
    """The message for a task that did not create these outputs.

    >>> not_made(["a.txt"]), not_made(["a.txt", "b.txt", "c.txt"])
    ("the task did not create 'a.txt'", "the task did not create 'a.txt' and 2 other outputs")
    """
    more = len(files) - 1
    others = f" and {more:,} other output{'s' if more > 1 else ''}" if more else ""
    return f"the task did not create {shorten(files[0])!r}{others}"
