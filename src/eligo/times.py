"""Run times and their sources: the workflow's file, given histories, or an earlier run of the same file."""

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from eligo.errors import InputError, counted
from eligo.estimates import (
    Estimate,
    covers_any,
    estimate,
    measured_files,
    with_assumed_times,
    with_records,
    with_sizes,
)
from eligo.formats import History, read_history
from eligo.formats.histories.reader import is_run, read_sizes
from eligo.formats.shared.files import display_path
from eligo.workflow import Workflow

if TYPE_CHECKING:
    from eligo.border import Record
    from eligo.formats.detection import StrPath

    Histories = StrPath | History | Iterable[StrPath | History | Record]

FIRST_KINDS = 3


@dataclass(frozen=True, eq=False)
class RunTimes:
    """The run times of a workflow's tasks, and the histories they come from."""

    flow: Workflow
    histories: tuple[str, ...] = ()
    #: sentences about histories that match, and those that do not
    remarks: tuple[str, ...] = field(default=(), repr=False)
    #: whether some are assumptions of the user
    assumed: bool = False

    @cached_property
    def estimate(self) -> Estimate:
        """The estimate, computed on access."""
        return estimate(self.flow)

    @property
    def complete(self) -> bool:
        """Whether every task has its own run time, so that a finish can be predicted."""
        return bool(self.estimate.own.all())

    @property
    def sources(self) -> list[str]:
        """The sources of the run times."""
        in_file = int(self.estimate.own.sum()) > self.estimate.recalled
        guess = ["your estimate"] if self.assumed else []
        return [*(["the file"] if in_file else []), *map(display_path, self.histories), *guess]

    @property
    def says(self) -> str:
        """The sources as the subject of a sentence, and its verb."""
        return f"{' and '.join(self.sources) or 'the file'} {'say' if len(self.sources) > 1 else 'says'}"

    @property
    def lacking(self) -> str:
        """A remark on the tasks whose time is that of their kind, or of all kinds; empty if there are none."""
        count = int((~self.estimate.own).sum())
        return f" ({counted(count, 'task')} without a time of {'its' if count == 1 else 'their'} own)" if count else ""

    def document(self) -> dict[str, Any]:
        """The same as plain data."""
        times = self.estimate
        counts = {"by_name": int(times.own.sum()), "by_kind": times.by_kind, "unknown": times.unknown}
        return {"seconds_from": " and ".join(self.sources) or None, "known": {"level": times.level, **counts}}


def times_of(flow: Workflow, histories: "Histories" = (), run: str | None = None) -> RunTimes:
    """The run times of a workflow, with those of histories: files, folders, `History` objects, or records.

    If none are given and the workflow has no run times of its own, those of its earlier *run* are used: FILE.run.
    """
    several = [histories] if isinstance(histories, str | os.PathLike | History) else list(histories)
    if not several:
        return _of_earlier_run(flow, run)
    if not all(isinstance(each, str | os.PathLike | History) for each in several):
        return RunTimes(with_records(flow, several))  # type: ignore[arg-type]
    sources = [each if isinstance(each, History) else read_history(each) for each in several]  # type: ignore[arg-type]
    times = fit_times(flow, sources)
    remarks = (f"{display_path(history.path)}: {words}" for history in sources for words in history.remarks)
    return replace(times, remarks=(*remarks, *times.remarks))


def with_assumptions(times: RunTimes, seconds: Mapping[str, float], usual: float | None = None) -> RunTimes:
    """The run times with assumed ones for some kinds, and a *usual* one for kinds of unknown time."""
    return replace(times, flow=with_assumed_times(times.flow, seconds, usual), assumed=True)


def fit_times(flow: Workflow, histories: Sequence[History], whose: str = "") -> RunTimes:
    """The run times with those histories that match the workflow; remarks mention *whose* they are."""
    fitting = [history for history in histories if covers_any(flow, history.records)]
    for history in fitting:
        flow = with_records(flow, history.records)
    for history in histories:
        flow = with_sizes(flow, history.sizes)
    times = RunTimes(flow, tuple(history.path for history in fitting))
    named = ", ".join(map(display_path, times.histories)) + (f" for {whose}" if whose else "")
    remarks = [_left_out(history, whose) for history in histories if history not in fitting]
    return replace(times, remarks=(*remarks, *([f"{named}: {match_summary(times.estimate)}"] if fitting else [])))


def _left_out(history: History, whose: str) -> str:
    held = f"no task with a name or kind of {whose or 'the workflow'}" if history.records else "no run times"
    return f"{display_path(history.path)} has {held}: ignored"


def _of_earlier_run(flow: Workflow, run: str | None) -> RunTimes:
    """The run times in the folder of an earlier run, if there are any and nothing else is known; and its sizes of files."""
    path = flow.origin.path if flow.origin else None
    place = run or (f"{path}.run" if path else "")
    if not is_run(place):
        return RunTimes(flow)
    flow = _with_recorded_sizes(flow, place)
    if flow.history or any(task.seconds is not None for task in flow.details.values()):
        return RunTimes(flow)
    try:
        history = read_history(place)
    except InputError as error:
        return RunTimes(flow, remarks=(f"{error}: the run times of that run are not used",))
    if not covers_any(flow, history.records):
        return RunTimes(flow)
    times = RunTimes(with_records(flow, history.records), (history.path,))
    remark = f"run times from an earlier run, {history.path}: {match_summary(times.estimate)}"
    return replace(times, remarks=(remark,))


def _with_recorded_sizes(flow: Workflow, place: str) -> Workflow:
    """The workflow with the sizes of its files that a run of it recorded, instead of those in its file."""
    with suppress(InputError):  # which reading the run times reports
        return with_sizes(flow, measured_files(flow, read_sizes(place)))
    return flow


def match_summary(times: Estimate) -> str:
    """The numbers of tasks with known run times, by source, in words."""
    named = f" ({', '.join(times.kinds[:FIRST_KINDS])}{', ...' if len(times.kinds) > FIRST_KINDS else ''})"
    counts = (
        (times.recalled, "by name"),
        (int(times.own.sum()) - times.recalled, "from the file itself"),
        (times.by_kind, "by kind" + named),
        (times.unknown, "unknown, estimated by the mean of all kinds"),
    )
    first, *others = [f"{count:,} {how}" for count, how in counts if count]
    count, _, how = first.partition(" ")
    return ", ".join([f"{count} task{'' if count == '1' else 's'} {how}", *others])
