"""`eligo run --rehearse`: the policies that are rehearsed, and how long each takes."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from eligo.cli.endings import INTERRUPTED
from eligo.cli.live_display import watching
from eligo.cli.output import figure, print_json, print_lines, table_lines
from eligo.cli.plan_text import tell
from eligo.cli.requests import RunRequest
from eligo.cli.run_page import live_page, port_of
from eligo.cli.run_text import default_folder, interruptible
from eligo.errors import InputError, counted
from eligo.estimates import lasting
from eligo.pages.folder_source import WatchedProcess
from eligo.running import Runner
from eligo.running.rehearsal import Rehearsal, Stage, build_stage, rehearse
from eligo.workflow import Workflow

ALIKE = 0.01  # rehearsals that differ by a smaller share count as equal
TITLES = ("policy", "rehearsed", "predicted", "ratio")


def rehearse_all(flow: Workflow, request: RunRequest, seconds: float) -> int:
    """Rehearse the requested policies one after another, and print how long each takes; returns the exit code."""
    policies = list(dict.fromkeys(name for name in request.used_policy.split(",") if name))
    if not policies:
        raise InputError("--policy must name at least one policy to rehearse")
    stage = build_stage(request.selection.applied(flow), request.settings(policies[0]), seconds)
    tell(stage.remarks)
    beside = partial(_page, stage, request) if request.page else nullcontext
    rehearsals = rehearse(stage, request.on, policies, partial(_live_display, stage), beside)
    if request.json:
        print_json(rehearsal_document(stage, rehearsals))
    else:
        print_lines([_rehearsal_sentence(stage)])
        sys.stdout.writelines(f"{line}\n" for line in rehearsal_table(rehearsals))
    return 0 if len(rehearsals) == len(policies) else INTERRUPTED


@contextmanager
def _live_display(stage: Stage, runner: Runner) -> Iterator[None]:
    process = WatchedProcess(stage.flow, runner)
    with watching(process, sys.stderr), interruptible(runner):
        yield


def _page(stage: Stage, request: RunRequest, folder: Path) -> AbstractContextManager[None]:
    """The page of one rehearsal, at the address of the workflow's runs: its own folder is a temporary one."""
    return live_page(str(folder), request.hold, port_of(request.place or default_folder(stage.flow)))


def rehearsal_document(stage: Stage, rehearsals: list[Rehearsal]) -> dict[str, Any]:
    """The results of rehearsals as plain data."""
    best = min(rehearsals, key=lambda each: each.makespan, default=None)
    return {
        "tasks": len(stage.flow), "workers": stage.settings.slots, "scale": stage.scale,
        "known": stage.estimates.level, "rehearsals": [each.document() for each in rehearsals],
        "best": best and best.policy,
    }  # fmt: skip


def rehearsal_table(rehearsals: list[Rehearsal]) -> list[str]:
    """A row for every policy, with a mark at the best unless they are alike."""
    times = [each.makespan for each in rehearsals]
    most = min(times, default=0.0) * (1 + ALIKE)
    alike = max(times, default=0.0) <= most
    rows = [TITLES, *(_rehearsal_row(each, not alike and each.makespan <= most) for each in rehearsals)]
    remark = f"They differ by less than {100 * ALIKE:g} %, so none is better."
    return [*table_lines(rows), *([remark] if alike and len(rehearsals) > 1 else [])]


def _rehearsal_row(each: Rehearsal, best: bool) -> tuple[str, str, str, str]:
    foreseen = "unknown" if each.predicted is None else lasting(each.predicted)
    ratio = "" if each.ratio is None else f"{each.ratio:.3f}"
    return (each.policy, lasting(each.makespan) + (", the best" if best else ""), foreseen, ratio)


def _rehearsal_sentence(stage: Stage) -> str:
    count = stage.settings.slots
    slower = 1 / stage.scale
    speed = (
        f"{figure(slower)} times faster than real time"
        if slower >= 1
        else f"{figure(stage.scale)} times slower than real time"
    )
    return f"Rehearsed {len(stage.flow):,} tasks as sleeps, {speed}, on {counted(count, 'worker')}:"
