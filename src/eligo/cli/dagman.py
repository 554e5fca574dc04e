"""A whole workflow run by DAGMan, as people see it."""

import signal
import time
from collections import Counter
from collections.abc import Mapping
from types import FrameType
from typing import Any

from eligo.cli.plans import heeding, tell
from eligo.cli.printing import harmless, print_json, print_lines
from eligo.cli.requests import FAILED, INTERRUPTED, MOST_SHOWN, Ended, RunRequest
from eligo.errors import shorten
from eligo.estimating import lasting
from eligo.prioritising import order_to_follow
from eligo.running import RunFolder
from eligo.running.dagman import DagmanJob, Fate, run_dagman
from eligo.running.task_files import TaskFiles
from eligo.running.whole import commands_in
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
        tell(["htcondor-dagman neither checks declared outputs nor makes deleted ones again; htcondor does"])
    limits = (request.retries, request.timeout, request.directory)
    whole = DagmanJob(flow, folder, settings.slots, order, commands, *limits, files=files)
    watch, began = Watch(), time.monotonic()
    with heeding(watch.stop, signal.SIGINT, signal.SIGTERM):
        fates = run_dagman(whole, watch)
    _print(fates, Ended(len(flow), time.monotonic() - began, str(folder.path)), request)
    if watch.stopping and any(fate.state == "waiting" for fate in fates.values()):
        tell([f"eligo run --resume {folder.path} --on htcondor-dagman goes on"])
        return INTERRUPTED
    return 0 if all(fate.state == "done" for fate in fates.values()) else FAILED


def _print(fates: Mapping[Any, Fate], ended: Ended, request: RunRequest) -> None:
    counts = Counter(fate.state for fate in fates.values())
    failed = {str(task): str(fate.failure) for task, fate in fates.items() if fate.state == "failed"}
    if request.json:
        futile = [str(task) for task, fate in fates.items() if fate.state == "futile"]
        print_json(request.document(counts["done"], failed, futile, ended))
        return
    told = ", ".join(f"{counts[state]:,} {state}" for state in ("done", "failed", "futile", "waiting") if counts[state])
    lines = [f"{shorten(harmless(task))}: {harmless(why)}" for task, why in list(failed.items())[:MOST_SHOWN]]
    print_lines([*lines, f"{ended.tasks:,} tasks: {told}, in {lasting(ended.seconds)}; logs are in {ended.run}/logs."])
