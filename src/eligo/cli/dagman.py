"""A whole workflow run by DAGMan, as people see it."""

import signal
import time
from collections import Counter
from collections.abc import Mapping
from types import FrameType
from typing import Any, NamedTuple

from eligo.cli.finishes import lasting
from eligo.cli.plans import tell
from eligo.cli.printing import harmless, print_json, print_lines
from eligo.errors import shorten
from eligo.prioritising import order_to_follow
from eligo.running import Commands, RunFolder
from eligo.running.dagman import DagmanJob, Fate, run_dagman
from eligo.running.folder import MARK
from eligo.workflow import Workflow

SELDOM = 30.0  # seconds between two lines that tell how it goes
MOST_SHOWN = 5  # failures that are told one by one
FAILED, INTERRUPTED = 1, 130


class Asked(NamedTuple):
    """What is asked of DAGMan."""

    workers: int
    policy: str
    retries: int
    timeout: float | None
    directory: str | None
    json: bool


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


def by_dagman(flow: Workflow, asked: Asked, folder: RunFolder) -> int:
    """Hand a workflow to DAGMan, follow it to its end, and say what came of it; the exit code."""
    place = folder.place_of(flow, asked.directory)
    commands = Commands(flow, place, folder.logs, ((MARK, folder.mark), ("ELIGO_WORKFLOW", flow.name or "")))
    commands.check()
    commands.make_folders()
    order = order_to_follow(flow, asked.policy)
    whole = DagmanJob(flow, folder, asked.workers, order, commands, asked.retries, asked.timeout)
    watch, began = Watch(), time.monotonic()
    before = {number: signal.signal(number, watch.stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        fates = run_dagman(whole, watch)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    _print(fates, time.monotonic() - began, folder, asked)
    if watch.stopping and any(fate.state == "waiting" for fate in fates.values()):
        tell([f"eligo run --resume {folder.path} --on htcondor-dagman goes on"])
        return INTERRUPTED
    return 0 if all(fate.state == "done" for fate in fates.values()) else FAILED


def _print(fates: Mapping[Any, Fate], seconds: float, folder: RunFolder, asked: Asked) -> None:
    counts = Counter(fate.state for fate in fates.values())
    failed = {str(task): str(fate.failure) for task, fate in fates.items() if fate.state == "failed"}
    if asked.json:
        futile = [str(task) for task, fate in fates.items() if fate.state == "futile"]
        known = {"tasks": len(fates), "done": counts["done"], "failed": failed, "futile": futile}
        ends = {
            "seconds": seconds,
            "makespan": seconds,
            "run": str(folder.path),
            "policy": asked.policy,
            "report": None,
        }
        print_json(known | ends)
        return
    told = ", ".join(f"{counts[state]:,} {state}" for state in ("done", "failed", "futile", "waiting") if counts[state])
    lines = [f"{shorten(harmless(task))}: {harmless(why)}" for task, why in list(failed.items())[:MOST_SHOWN]]
    print_lines([*lines, f"{len(fates):,} tasks: {told}, in {lasting(seconds)}; logs are in {folder.path}/logs."])
