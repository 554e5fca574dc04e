"""What a run would do: the tasks in the order of the policy, each with the reason why it runs."""

from collections.abc import Mapping
from typing import NamedTuple

from eligo.allocating import Ask
from eligo.estimates import estimate
from eligo.execution import Execution
from eligo.names import Name
from eligo.running.api import Selected, allocator_of, check_others, settle_files
from eligo.running.folder import RunFolder
from eligo.running.loop import Settings
from eligo.running.reasons import reasons_of
from eligo.work.demands import GPUS
from eligo.workflow import Workflow


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
    place = folder.place_of(flow, settings.directory)
    selected = Selected(everything, flow)
    resumed, files, redone = settle_files(selected, folder.recall(everything), settings, folder, place)
    labels = (everything if selected.is_narrow else files.flow).dag.labels
    reasons = reasons_of(flow, resumed, folder, redone, labels)
    times, order = _known_times(flow), _in_order(flow, resumed.execution, settings)
    return [Upcoming(str(v), reasons[str(v)], times.get(v)) for v in order if v not in resumed.idle]


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
