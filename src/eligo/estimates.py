"""Estimated run times of tasks, from their own times, those of their kind, or none.

| level | known |
|---|---|
| `seconds` | the run time of every task, from the file or from a history by name |
| `kinds` | those of some tasks or kinds; the others get the mean of their kind, or of all known kinds |
| `nothing` | nothing: every task takes 1 |

A bound on the finish has a certificate only at the level `seconds`; `eligo.predictions` makes a range at the others too.
"""

import math
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from eligo.errors import InputError, is_amount, shorten
from eligo.names import Name
from eligo.workflow import Measured, Task, Timed, Workflow

Floats = NDArray[np.float64]
MOST_KINDS = 50  # tasks whose kinds an error names


@dataclass(frozen=True, eq=False)
class Estimate:
    """The estimated run time of every task, and its source."""

    #: a time for every task, by number, never negative; 1 each if none is known
    seconds: Floats
    #: whether it is the task's own time, rather than that of its kind
    own: NDArray[np.bool_]
    #: numbers of tasks whose own time is from the history, and of tasks with the time of their kind
    recalled: int = 0
    by_kind: int = 0
    #: the kinds by which these are known, those with the most tasks first
    kinds: tuple[str, ...] = ()
    #: what tasks of each known kind took
    records: Mapping[str, Sequence[float]] = field(default_factory=dict, repr=False)

    @property
    def level(self) -> str:
        """The level; see above."""
        if not len(self.own) or (self.own.all() and self.seconds.any()):
            return "seconds"
        return "kinds" if (self.own.any() or self.by_kind) and self.seconds.any() else "nothing"

    @property
    def unknown(self) -> int:
        """The number of tasks with neither an own time nor a known kind."""
        return len(self.own) - int(self.own.sum()) - self.by_kind

    def __repr__(self) -> str:
        return f"Estimate({self.level!r}, {len(self.seconds)} tasks)"


def estimate(flow: Workflow) -> Estimate:
    """Estimate the run times of the tasks of a workflow.

    A task's own time is the mean of those with its name in the history, else the one in the file. A name is not matched if
    the task in the history is of another kind: runs of one application reuse their names.

    >>> from eligo.dag import Dag
    >>> flow = Workflow(Dag.from_parents({"fit_1": [], "fit_2": [], "plot": ["fit_1"]}))
    >>> estimate(flow).level, estimate(with_records(flow, [Timed("fit_1", None, 4.0)])).seconds.tolist()
    ('nothing', [4.0, 4.0, 4.0])
    >>> estimate(with_records(flow, [Timed("fit_1", None, 4.0), Timed(None, "plot", 2.0)])).seconds.tolist()
    [4.0, 4.0, 2.0]
    """
    n = len(flow)
    if not flow.history and not flow.details:
        return Estimate(np.ones(n), np.zeros(n, np.bool_))
    column = flow.column("seconds")
    if not flow.history and not any(time is not None for time in column):
        return Estimate(np.ones(n), np.zeros(n, np.bool_))
    times = np.array([np.nan if time is None else time for time in column], np.float64)
    if not flow.history and not np.isnan(times).any():
        return Estimate(times, np.ones(n, np.bool_))
    kinds = all_kinds(flow)
    past = _Past(flow, kinds)
    recalled = _recalled(flow, past)
    times = np.where(np.isnan(recalled), times, recalled)
    return _filled(times, kinds, _kind_records(flow, kinds, times, past), int((~np.isnan(recalled)).sum()))


def covers_any(flow: Workflow, history: Iterable[Timed]) -> bool:
    """Whether a history covers any task of a workflow, by name or by kind."""
    past = _Past(flow, all_kinds(flow))
    return any(past.kind(timed) in past.known or past.task(timed) is not None for timed in history)


class _Past:
    """Matches records of a history to the tasks of a workflow; labels match too if names are not strings."""

    def __init__(self, flow: Workflow, kinds: Sequence[str]) -> None:
        numbers = range(len(flow))
        self.number: dict[Name, int] = dict(zip(flow.dag.labels, numbers, strict=True))
        self.number |= dict(zip(flow.dag.tasks, numbers, strict=True))
        self.kinds, self.known = kinds, set(kinds)

    def _number_of(self, timed: Timed) -> int | None:
        return None if timed.task is None else self.number.get(timed.task)

    def kind(self, timed: Timed) -> str:
        """The kind of a record: as given, else that of the task with its name."""
        named = self._number_of(timed) if timed.kind is None else None
        return kind_of(Task(name=timed.task, category=timed.kind)) if named is None else self.kinds[named]

    def task(self, timed: Timed) -> int | None:
        """The task that a record names; None if the history has a task of another kind under that name."""
        named, kind = self._number_of(timed), self.kind(timed)
        return None if named is None or (kind != self.kinds[named] and kind in self.known) else named


def _recalled(flow: Workflow, past: _Past) -> Floats:
    """The times of the tasks' own names in the history; NaN elsewhere."""
    named = _means((past.task(timed), timed.seconds) for timed in flow.history)
    return np.array([named.get(v, np.nan) for v in range(len(flow))], np.float64)


def _kind_records(flow: Workflow, kinds: Sequence[str], times: Floats, past: _Past) -> dict[str, list[float]]:
    """The times of each known kind of the workflow: from the history, else from its own tasks."""
    there = ((past.kind(timed), timed.seconds) for timed in flow.history)
    here = ((kind, time) for kind, time in zip(kinds, times.tolist(), strict=True) if not math.isnan(time))
    records = _groups(here) | _groups(there)
    return {kind: records[kind] for kind in sorted(past.known & set(records))}


def _filled(times: Floats, kinds: Sequence[str], records: Mapping[str, Sequence[float]], recalled: int) -> Estimate:
    """The estimate with unknown times replaced by those of their kinds, or of all kinds."""
    own, means = ~np.isnan(times), {kind: _mean(numbers) for kind, numbers in records.items()}
    usual = _mean(list(means.values())) if means else 1.0
    of_kind = np.array([means.get(kind, usual) for kind in kinds], np.float64)
    lent = Counter(kind for kind, is_own in zip(kinds, own.tolist(), strict=True) if not is_own and kind in means)
    names = tuple(kind for kind, _ in lent.most_common())
    return Estimate(np.where(own, times, of_kind), own, recalled, lent.total(), names, records)


Key = TypeVar("Key", bound=Hashable)


def _means(pairs: Iterable[tuple[Key, float]]) -> dict[Key, float]:
    """The mean of the numbers for each key."""
    return {key: _mean(numbers) for key, numbers in _groups(pairs).items()}


def _groups(pairs: Iterable[tuple[Key, float]]) -> dict[Key, list[float]]:
    """The numbers for each key."""
    groups: dict[Key, list[float]] = {}
    for key, number in pairs:
        groups.setdefault(key, []).append(number)
    return groups


def _mean(numbers: Sequence[float]) -> float:
    try:
        return math.fsum(numbers) / len(numbers)
    except OverflowError:  # the sum overflows, but not the mean
        return math.fsum(number / len(numbers) for number in numbers)


def with_records(flow: Workflow, history: Iterable[tuple[Name | None, str | None, float]]) -> Workflow:
    """The workflow with records of earlier runs appended to its history."""
    added = tuple(map(_check_record, history))
    return replace(flow, history=(*flow.history, *added))


def with_assumed_times(flow: Workflow, seconds: Mapping[str, float], usual: float | None = None) -> Workflow:
    """The workflow with assumed seconds for every task of some kinds, and *usual* for kinds of unknown time.

    Assumed seconds replace all that is known about the kind.

    >>> from eligo.dag import Dag
    >>> flow = Workflow(Dag.from_parents({"fit_1": [], "fit_2": [], "plot": ["fit_1"]}), history=(Timed("plot", None, 9.0),))
    >>> estimate(with_assumed_times(flow, {"fit": 4.0})).seconds.tolist()
    [4.0, 4.0, 9.0]
    >>> estimate(with_assumed_times(flow, {"plot": 1.0}, 4.0)).seconds.tolist()
    [4.0, 4.0, 1.0]
    """
    kinds = all_kinds(flow)
    for kind in seconds:
        if kind not in kinds:
            names = ", ".join(map(shorten, dict.fromkeys(kinds[:MOST_KINDS])))
            raise InputError(f"no task is of kind {shorten(repr(kind))} (kinds: {names}, ...)")
    past, assumed = _Past(flow, kinds), {**seconds}
    history = [timed for timed in flow.history if past.kind(timed) not in assumed]
    replaced = [name for name, kind in zip(flow.dag.tasks, kinds, strict=True) if kind in assumed]
    details = {name: replace(flow.details[name], seconds=None) for name in replaced if name in flow.details}
    flow = replace(flow, history=tuple(history), details={**flow.details, **details})
    if usual is not None:
        assumed |= dict.fromkeys({*kinds} - {*estimate(flow).records} - {*assumed}, usual)
    return with_records(flow, [(None, kind, time) for kind, time in assumed.items()])


def kind_of_file(kind: str, file: str) -> tuple[str, str]:
    """The kind of a file: that of the task that writes it, and the suffix."""
    return kind, PurePosixPath(file).suffix


def writer_kinds(flow: Workflow) -> dict[str, str]:
    """The kind of the task that writes each file."""
    columns = zip(all_kinds(flow), flow.column("outputs"), strict=True)
    return {file: kind for kind, files in columns for file in files or ()}


def measured_files(flow: Workflow, sizes: Mapping[str, int]) -> tuple[Measured, ...]:
    """The files of a workflow that tasks wrote, with these sizes."""
    kinds = writer_kinds(flow) if sizes else {}
    return tuple(Measured(file, kinds[file], size) for file, size in sizes.items() if file in kinds)


def with_sizes(flow: Workflow, measured: Iterable[Measured]) -> Workflow:
    """The workflow with sizes of files in an earlier run.

    The size of a file with the same name replaces that in the workflow, which is only stated. A name is not matched if the
    task that wrote it is of another kind of the workflow. Files of the same kind are kept for the means of kinds.
    """
    if not (measured := list(measured)):
        return flow
    kinds = writer_kinds(flow)
    tasks, files = {*all_kinds(flow)}, {kind_of_file(kind, file) for file, kind in kinds.items()}
    named = (each for each in measured if each.file in kinds)
    sizes = {each.file: each.size for each in named if each.kind == kinds[each.file] or each.kind not in tasks}
    others = [each for each in measured if each.file not in sizes and kind_of_file(each.kind, each.file) in files]
    return replace(flow, file_sizes={**flow.file_sizes, **sizes}, size_history=(*flow.size_history, *others))


def without_seconds(flow: Workflow) -> Workflow:
    """The workflow without run times."""
    timed = any(task.seconds is not None for task in flow.details.values())
    bare = {name: replace(task, seconds=None) for name, task in flow.details.items()} if timed else flow.details
    return replace(flow, details=bare, history=()) if timed or flow.history else flow


def _check_record(timed: object) -> Timed:
    """The record, checked to name a task or a kind and to have a duration."""
    try:
        hash(timed)
        entry = Timed(*timed)  # type: ignore[misc]
    except TypeError:
        raise InputError(
            f"an entry of a history must be a task, a kind and seconds, got {shorten(repr(timed))}"
        ) from None
    what = shorten(entry.kind if entry.task is None else entry.task)
    if not isinstance(entry.kind, str | None):
        raise InputError(f"the kind of {what!r} in the history must be a string, got {shorten(repr(entry.kind))}")
    if not is_amount(entry.seconds):
        raise InputError(f"the seconds of {what!r} in the history must be a non-negative number, got {entry.seconds!r}")
    return entry


def kind_of(task: Task) -> str:
    """The kind of a task: its category, else its program, else its name without its number.

    For a path of names, as in Nextflow, it is the last part.

    >>> kind_of(Task(name="mProject_ID0000012")), kind_of(Task(name="t7", command=("/usr/bin/python3", "bin/align.py", "-x")))
    ('mProject', 'align.py')
    >>> kind_of(Task(name="x", category="NFCORE_RNASEQ:RNASEQ:FASTQC (sample 1)"))
    'FASTQC'
    """
    return _short(task.category or _program(task.command) or stem(task.name))


def all_kinds(flow: Workflow) -> list[str]:
    """The kind of every task, by number."""
    programs: dict[str | tuple[str, ...] | None, str | None] = {}
    short_names: dict[str, str] = {}
    kinds = []
    for name, category, command in zip(flow.dag.tasks, flow.column("category"), flow.column("command"), strict=True):
        if not category and command not in programs:
            programs[command] = _program(command)
        text = category or programs[command] or stem(name)
        if text not in short_names:
            short_names[text] = _short(text)
        kinds.append(short_names[text])
    return kinds


def stem(name: Name) -> str:
    """A task's name without its number."""
    return _NUMBER.sub("", str(name)) or str(name)


def _short(text: str) -> str:
    text = _SAMPLE.sub("", text)
    nextflow = _PROCESS.fullmatch(text)
    return nextflow[1] if nextflow else text.rpartition(":")[2] or text


_NUMBER = re.compile(r"[\W_]*(?:ID)?\d+$")
_PROCESS = re.compile(r"(?:[A-Z0-9_]+[.:])+([A-Z0-9_]+)")
_SAMPLE = re.compile(r" \(.*\)$")
_RUNNERS = re.compile(r"(?:ba|da|k|z)?sh|env|nice|time|python[\d.]*|perl|ruby|Rscript|java|node|julia")


def _program(command: str | tuple[str, ...] | None) -> str | None:
    """The program of a command without its folder; for wrappers such as `env`, the first program that they run."""
    words = command.split() if isinstance(command, str) else command or ()
    names = (word.rpartition("/")[2] for word in words if not word.startswith("-") and "=" not in word)
    program = next((name for name in names if name and not _RUNNERS.fullmatch(name)), None)
    return program if program is None or re.fullmatch(r"[\w.+-]+", program) else None


def lasting(seconds: float) -> str:
    """A duration in readable form.

    >>> lasting(0.25), lasting(75), lasting(7325), lasting(200000)
    ('0.25 s', '1 min 15 s', '2 h 2 min', '2 d 8 h')
    """
    if seconds < 60:
        return f"{seconds:.3g} s"
    for unit, small, size, part in (("d", "h", 86400, 3600), ("h", "min", 3600, 60), ("min", "s", 60, 1)):
        if seconds >= size:
            count, rest = divmod(round(seconds / part), size // part)
            return f"{count:,} {unit} {rest} {small}" if rest else f"{count:,} {unit}"
    raise InputError(f"invalid duration {seconds}")


# Sizes of files


def sizes_of_files(flow: Workflow, files: Iterable[str], writer: Mapping[str, int]) -> tuple[dict[str, int], str]:
    """The size of each file, and how well the sizes are known: "sizes", "kinds" or "files"."""
    sizes, files = flow.file_sizes, list(files)
    missing = [file for file in files if file not in sizes]
    if len(missing) == len(files) and not flow.size_history:
        return dict.fromkeys(files, 1), "files"
    if not missing:
        return {file: sizes[file] for file in files}, "sizes"
    kinds = all_kinds(flow)
    kind = {file: kind_of_file(kinds[writer[file]], file) for file in writer}
    past = [(kind_of_file(each.kind, each.file), each.size) for each in flow.size_history]
    here = [(kind[file], sizes[file]) for file in writer if file in sizes]
    means = _mean_sizes([*here, *past], [*sizes.values(), *(size for _, size in past)])
    return {file: sizes.get(file, means.get(kind[file], means[None])) for file in files}, "kinds"


def _mean_sizes(pairs: Iterable[tuple[object, int]], every: Iterable[int]) -> dict[object, int]:
    """The mean size of the files of each kind, and of all files under None, in whole bytes."""
    groups: dict[object, list[int]] = {None: list(every)}
    for kind, size in pairs:
        groups.setdefault(kind, []).append(size)
    return {kind: round(sum(sizes) / len(sizes)) for kind, sizes in groups.items()}
