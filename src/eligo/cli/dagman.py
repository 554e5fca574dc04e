"""A whole workflow run by DAGMan, as people see it."""

import signal
import time
from collections import Counter
from collections.abc import Mapping
from types import FrameType
from typing import Any

from eligo.cli.output import harmless, print_json, print_lines
from eligo.cli.plan_text import heeding, tell
from eligo.cli.requests import FAILED, INTERRUPTED, MOST_SHOWN, Ended, RunRequest
from eligo.errors import shorten
from eligo.estimating import lasting
from eligo.prioritising import order_to_follow
from eligo.running import RunFolder
from eligo.running.api import commands_in
from eligo.running.dagman import DagmanJob, Fate, run_dagman
from eligo.running.task_files import TaskFiles
from eligo.workflow import Workflow, in_priority_order

SELDOM = 30.0  # seconds between two lines that tell how it goes


class Watch:
    """Tells now and then how it goes, and whether somebody wants it to stop."""

    def __init__(self) -> None:
        self.stopping = False
        self._due = time.monotonic()

    def __call__(self, events: Mapping[str, int]) -> bool:
        """How many events of each kind there were; whether to stop."""
        if time.monotonic() >= self._due and events:
            self._due = time.monotonic() + SELDOM
            tell([", ".join(f"{count:,} {kind}" for kind, count in events.items())])
        return self.stopping

    def stop(self, number: int, frame: FrameType | None) -> None:
        """Somebody wants it to stop."""
        self.stopping = True
        tell(["removing the jobs of this run"])


def by_dagman(flow: Workflow, request: RunRequest, folder: RunFolder) -> int:
    """Hand a workflow to DAGMan, follow it to its end, and say what came of it; the exit code."""
    settings, order = request.settings(), tuple(in_priority_order(flow, order_to_follow(flow, request.policy)))
    commands = commands_in(folder, flow, request.directory)
    files = TaskFiles(flow, commands.folder)
    if files.any_outputs:
        tell(["htcondor-dagman does not check declared outputs or recreate deleted ones; engine htcondor does"])
    limits = (request.retries, request.timeout, request.directory)
    job = DagmanJob(flow, folder, settings.slots, order, commands, *limits, files=files)
    watch, began = Watch(), time.monotonic()
    with heeding(watch.stop, signal.SIGINT, signal.SIGTERM):
        fates = run_dagman(job, watch)
    _print(fates, Ended(len(flow), time.monotonic() - began, str(folder.path)), request)
    if watch.stopping and any(fate.state == "pending" for fate in fates.values()):
        tell([f"to resume: eligo run --resume {folder.path} --on htcondor-dagman"])
        return INTERRUPTED
    return 0 if all(fate.state == "done" for fate in fates.values()) else FAILED


def _print(fates: Mapping[Any, Fate], ended: Ended, request: RunRequest) -> None:
    counts = Counter(fate.state for fate in fates.values())
    failed = {str(task): str(fate.failure) for task, fate in fates.items() if fate.state == "failed"}
    if request.json:
        blocked = [str(task) for task, fate in fates.items() if fate.state == "blocked"]
        print_json(request.document(counts["done"], failed, blocked, ended))
        return
    summary = ", ".join(
        f"{counts[state]:,} {state}" for state in ("done", "failed", "blocked", "pending") if counts[state]
    )
    lines = [f"{shorten(harmless(task))}: {harmless(why)}" for task, why in list(failed.items())[:MOST_SHOWN]]
    print_lines([*lines, f"{ended.tasks:,} tasks: {summary}, in {lasting(ended.seconds)}; logs: {ended.run}/logs"])
