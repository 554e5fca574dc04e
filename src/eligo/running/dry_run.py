"""What a run would do: the tasks in the order of the policy, each with the reason why it runs."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from eligo.allocating import Ask
from eligo.errors import shorten
from eligo.estimates import estimate
from eligo.execution import Execution
from eligo.names import Name
from eligo.running.api import Selected, allocator_of, check_others, settle_files
from eligo.running.folder import RunFolder, digests
from eligo.running.loop import Settings
from eligo.work.demands import GPUS
from eligo.workflow import Workflow

UNDONE, CHANGED = "it is not done yet", "its command, files or parents changed"
OUTDATED, REQUESTED = "an output is missing or older than an input", "it is to run again"
RENEWED = "an input changed"


class Upcoming(NamedTuple):
    """A task that would run."""

    task: str
    reason: str
    #: its estimated run time; None if nothing is known about it
    seconds: float | None


def dry_run(everything: Workflow, settings: Settings, folder: RunFolder) -> list[Upcoming]:
    """The tasks that a run would execute, in the order of its policy on one worker; none is executed."""
    flow = settings.selection.applied(everything)
    check_others(flow, settings.resources, {GPUS})
    place, before = folder.place_of(flow, settings.directory), folder.done_before()
    selected = Selected(everything, flow)
    resumed, files, redone = settle_files(selected, folder.recall(everything), settings, folder, place)
    game = resumed.execution
    causes = ((redone.gone, OUTDATED), (redone.renewed, RENEWED), (redone.requested, REQUESTED))
    names = (everything if selected.is_narrow else files.flow).dag.labels
    reasons = {names[v]: reason for tasks, reason in causes for v in tasks}
    times, order, upcoming = _known_times(flow), _in_order(flow, game, settings), dict[str, Upcoming]()
    now = digests(flow)
    for task in (task for task in order if task not in resumed.idle):
        label, digest = str(task), before.get(str(task))
        parents = [str(parent) for parent in game.dag.parents(task) if str(parent) in upcoming]
        reason = reasons.get(label) or _reason(digest, now.get(label), parents)
        upcoming[label] = Upcoming(label, reason, times.get(task))
    return list(upcoming.values())


def _reason(before: bytes | None, now: bytes | None, parents: Sequence[str]) -> str:
    """Why a task runs, from its digests before and now, and its parents that run."""
    if before is not None and before != now:
        return CHANGED
    return f"it needs {shorten(parents[0])}, which runs" if parents and (before or not now) else UNDONE


def _known_times(flow: Workflow) -> Mapping[Name, float]:
    """The estimated run time of every task; empty if nothing is known."""
    times = estimate(flow)
    return {} if times.level == "nothing" else dict(zip(flow.dag.tasks, times.seconds.tolist(), strict=True))


def _in_order(flow: Workflow, game: Execution, settings: Settings) -> list[Name]:
    """Execute all tasks that are not done, one after another; returns their order."""
    chosen, order = allocator_of(flow, game, settings), list[Name]()
    while grants := chosen.hand_out([Ask("dry run")]):
        for grant in grants:
            for task in grant.tasks:
                game.complete(task)
                order.append(task)
    return order
