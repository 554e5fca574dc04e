"""How long tasks are believed to take, from whatever is known: their own seconds, those of their kind, or nothing.

| level | what is known |
|---|---|
| `seconds` | how long every task runs, from the file or from a history that has it by name |
| `kinds` | of some tasks or kinds; the others take the mean of their kind, or of all kinds that are known |
| `nothing` | nothing: every task takes 1 |

A time can be promised at the level `seconds` only: the means of kinds make good orders, and bad promises.
"""

import math
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from eligo.errors import InputError, is_amount, shorten
from eligo.names import Name
from eligo.workflow import Task, Timed, Workflow

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Estimate:
    """How long every task is believed to take, and how that is known."""

    #: a time for every task, by number, never negative; 1 each where nothing is known
    seconds: Floats
    #: whether it is the task's own time, and not that of its kind
    own: NDArray[np.bool_]
    #: of how many of these tasks the own time was taken from the history; and how many have that of their kind
    recalled: int = 0
    by_kind: int = 0

    @property
    def level(self) -> str:
        """Which of the levels above it is."""
        if not len(self.own) or (self.own.all() and self.seconds.any()):
            return "seconds"
        return "kinds" if (self.own.any() or self.by_kind) and self.seconds.any() else "nothing"

    def __repr__(self) -> str:
        return f"Estimate({self.level!r}, {len(self.seconds)} tasks)"


def estimate(flow: Workflow) -> Estimate:
    """How long the tasks of a workflow are believed to take.

    A task's own time is the mean of those that the history has under its name, else what the file says. A name does not
    count where the history says that another kind of task had it: runs of one application use their names again.

    >>> from eligo.dag import Dag
    >>> flow = Workflow(Dag.from_parents({"fit_1": [], "fit_2": [], "plot": ["fit_1"]}))
    >>> estimate(flow).level, estimate(with_history(flow, [Timed("fit_1", None, 4.0)])).seconds.tolist()
    ('nothing', [4.0, 4.0, 4.0])
    >>> estimate(with_history(flow, [Timed("fit_1", None, 4.0), Timed(None, "plot", 2.0)])).seconds.tolist()
    [4.0, 4.0, 2.0]
    """
    n, tasks = len(flow), flow.dag.tasks
    if not flow.history and not flow.details:
        return Estimate(np.ones(n), np.zeros(n, np.bool_))
    told = [flow.task(name).seconds for name in tasks]
    times = np.array([np.nan if time is None else time for time in told], np.float64)
    if not flow.history and not np.isnan(times).any():
        return Estimate(times, np.ones(n, np.bool_))
    kinds = [kind_of(flow.task(name)) for name in tasks]
    recalled = _recalled(flow, kinds)
    times = np.where(np.isnan(recalled), times, recalled)
    return _filled(times, kinds, _kind_means(flow, kinds, times), int((~np.isnan(recalled)).sum()))


def _recalled(flow: Workflow, kinds: Sequence[str]) -> Floats:
    """The times that the history has under the tasks' own names; not a number elsewhere."""
    kind_at, all_kinds = dict(zip(flow.dag.tasks, kinds, strict=True)), set(kinds)
    named = _means(
        (timed.task, timed.seconds)
        for timed in flow.history
        if timed.task in kind_at and (_past_kind(timed, kind_at) not in all_kinds - {kind_at[timed.task]})
    )
    return np.array([named.get(name, np.nan) for name in flow.dag.tasks], np.float64)


def _kind_means(flow: Workflow, kinds: Sequence[str], times: Floats) -> dict[str, float]:
    """The mean time of each kind of the workflow that is known: from the history, else from the tasks that are."""
    kind_at = dict(zip(flow.dag.tasks, kinds, strict=True))
    past = ((_past_kind(timed, kind_at), timed.seconds) for timed in flow.history)
    here = ((kind, time) for kind, time in zip(kinds, times.tolist(), strict=True) if not math.isnan(time))
    means = _means(here) | _means(past)
    return {kind: means[kind] for kind in sorted(set(kinds) & set(means))}


def _filled(times: Floats, kinds: Sequence[str], means: Mapping[str, float], recalled: int) -> Estimate:
    """The times that are not known taken from their kinds, or from all kinds."""
    own = ~np.isnan(times)
    usual = math.fsum(means.values()) / len(means) if means else 1.0
    of_kind = np.array([means.get(kind, usual) for kind in kinds], np.float64)
    by_kind = sum(kind in means for kind, known in zip(kinds, own.tolist(), strict=True) if not known)
    return Estimate(np.where(own, times, of_kind), own, recalled, by_kind)


def _past_kind(timed: Timed, kind_at: Mapping[Name, str]) -> str:
    """The kind of task that took so long: as it says, else that of the task of this name."""
    if timed.kind is None and timed.task in kind_at:
        return kind_at[timed.task]
    return kind_of(Task(name=timed.task, category=timed.kind))


Key = TypeVar("Key", bound=Hashable)


def _means(pairs: Iterable[tuple[Key, float]]) -> dict[Key, float]:
    """The mean of the numbers under each key."""
    found: dict[Key, list[float]] = {}
    for key, number in pairs:
        found.setdefault(key, []).append(number)
    return {key: math.fsum(numbers) / len(numbers) for key, numbers in found.items()}


def with_history(flow: Workflow, history: Iterable[Timed]) -> Workflow:
    """The workflow with what is known of earlier runs, after what it had of them."""
    added = tuple(history)
    for timed in added:
        if not is_amount(timed.seconds):
            what = shorten(timed.kind if timed.task is None else timed.task)
            raise InputError(f"in the history {what!r} takes {timed.seconds!r} seconds, which is no length of time")
    return replace(flow, history=(*flow.history, *added))


def without_seconds(flow: Workflow) -> Workflow:
    """The workflow without anything that is known of how long its tasks take."""
    timed = any(task.seconds is not None for task in flow.details.values())
    bare = {name: replace(task, seconds=None) for name, task in flow.details.items()} if timed else flow.details
    return replace(flow, details=bare, history=()) if timed or flow.history else flow


def kind_of(task: Task) -> str:
    """What kind of task it is: its category, else the program that it runs, else its name without its number.

    Of a path of names, such as Nextflow's, the last part counts.

    >>> kind_of(Task(name="mProject_ID0000012")), kind_of(Task(name="t7", command=("/usr/bin/python3", "bin/align.py", "-x")))
    ('mProject', 'align.py')
    >>> kind_of(Task(name="x", category="NFCORE_RNASEQ:RNASEQ:FASTQC (sample 1)"))
    'FASTQC'
    """
    text = task.category or _program(task.command) or _NUMBER.sub("", str(task.name)) or str(task.name)
    text = _SAMPLE.sub("", text)
    nextflow = _PROCESS.fullmatch(text)
    return nextflow[1] if nextflow else text.rpartition(":")[2] or text


_NUMBER = re.compile(r"[\W_]*(?:ID)?\d+$")
_PROCESS = re.compile(r"(?:[A-Z0-9_]+[.:])+([A-Z0-9_]+)")
_SAMPLE = re.compile(r" \(.*\)$")
_RUNNERS = re.compile(r"(?:ba|da|k|z)?sh|env|nice|time|python[\d.]*|perl|ruby|Rscript|java|node|julia")


def _program(command: str | tuple[str, ...] | None) -> str | None:
    """The program that a command runs, without its folder; of what only runs others, the first that it runs."""
    words = command.split() if isinstance(command, str) else command or ()
    names = (word.rpartition("/")[2] for word in words if not word.startswith("-") and "=" not in word)
    found = next((name for name in names if name and not _RUNNERS.fullmatch(name)), None)
    return found if found is None or re.fullmatch(r"[\w.+-]+", found) else None
