"""Rehearsals as people see them."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from eligo.cli.plans import tell
from eligo.cli.printing import print_json, print_lines
from eligo.cli.requests import INTERRUPTED, RunRequest
from eligo.cli.running import interruptible
from eligo.cli.watching import watching
from eligo.errors import InputError
from eligo.estimating import lasting
from eligo.pages.processes import WatchedProcess
from eligo.running import Runner
from eligo.running.rehearsing import Rehearsal, Stage, rehearse, staged
from eligo.workflow import Workflow

ALIKE = 0.01  # what differs by less is alike, as far as a rehearsal tells
TITLES = ("policy", "rehearsed", "predicted", "ratio")


def rehearse_all(flow: Workflow, request: RunRequest, seconds: float) -> int:
    """Rehearse the policies that were asked for, one after another, and say how long each takes; the exit code."""
    policies = list(dict.fromkeys(name for name in request.policy.split(",") if name))
    if not policies:
        raise InputError("name at least one policy to rehearse")
    stage = staged(flow, request.settings(policies[0]), seconds)
    tell(stage.remarks)
    found = rehearse(stage, request.on, policies, partial(_shown, stage))
    if request.json:
        print_json(document(stage, found))
    else:
        print_lines([_sentence(stage)])
        sys.stdout.writelines(f"{line}\n" for line in table(found))
    return 0 if len(found) == len(policies) else INTERRUPTED


@contextmanager
def _shown(stage: Stage, runner: Runner) -> Iterator[None]:
    process = WatchedProcess(stage.flow, runner, stage.settings.slots)
    with watching(process, sys.stderr), interruptible(runner):
        yield


def document(stage: Stage, found: list[Rehearsal]) -> dict[str, Any]:
    """What JSON says of rehearsals."""
    best = min(found, key=lambda each: each.makespan, default=None)
    return {
        "tasks": len(stage.flow),
        "workers": stage.settings.slots,
        "scale": stage.scale,
        "known": stage.known.level,
        "rehearsals": [each.document() for each in found],
        "best": best and best.policy,
    }


def table(found: list[Rehearsal]) -> list[str]:
    """The policies side by side, the best marked, as far as they differ."""
    times = [each.makespan for each in found]
    most = min(times, default=0.0) * (1 + ALIKE)
    alike = max(times, default=0.0) <= most
    rows = [TITLES, *(_row(each, not alike and each.makespan <= most) for each in found)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(TITLES))]
    told = [f"They differ by less than {100 * ALIKE:g} %, so none is better."] if alike and len(found) > 1 else []
    return [
        "  ".join(f"{cell:<{wide}}" for cell, wide in zip(row, widths, strict=True)).rstrip() for row in rows
    ] + told


def _row(each: Rehearsal, best: bool) -> tuple[str, str, str, str]:
    foreseen = "not known" if each.predicted is None else lasting(each.predicted)
    ratio = "" if each.ratio is None else f"{each.ratio:.3f}"
    return (each.policy, lasting(each.makespan) + (", the best" if best else ""), foreseen, ratio)


def _sentence(stage: Stage) -> str:
    count = stage.settings.slots
    slower = 1 / stage.scale
    speed = (
        f"{slower:,.3g} times as fast as they are" if slower >= 1 else f"{stage.scale:,.3g} times as slow as they are"
    )
    return f"{len(stage.flow):,} tasks as sleeps, {speed}, on {count:,} worker{'' if count == 1 else 's'}:"
