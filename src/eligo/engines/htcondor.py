"""HTCondor: one job per task, submitted by condor_submit, followed through the event log, stopped by condor_rm.

The command-line programs are used, not the Python bindings: they work with any version of the pool, read its settings at
each call, and reach a remote queue as the user has configured it.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from eligo.engines.batch_system import QueueEngine, Sighting, query, require, wait_until_gone
from eligo.engines.jobs import Engine, Job
from eligo.engines.registry import Wanted
from eligo.errors import FormatError, InputError
from eligo.formats.histories.htcondor import END, SUBMITTED, TERMINATED, Event, events
from eligo.work.demands import GPUS, Demand

UNANSWERED = (
    "failed to connect", "can't find address", "cannot find address", "failed to fetch ads", "unable to connect", "secman",
    "cedar", "timed out", "try again", "can't connect", "failed to commit job submission",
)  # fmt: skip
LOG = "events.log"
EVICTED, SHADOW_DIED, ABORTED, HELD, NOT_FOUND = "004", "007", "009", "012", "024"
#: events after which HTCondor would restart a job
TROUBLE = {
    EVICTED: "evicted", SHADOW_DIED: "lost by the submit machine", NOT_FOUND: "could not reconnect to its machine",
}  # fmt: skip
_NUMBER = re.compile(r"\beligo job ([0-9]+)\b")
_WELL = "(1) Normal termination (return value 0)"
_ENDED = "Couldn't find/remove all jobs"
_MARK = re.compile(r"[0-9A-Za-z_-]+")


class EventLog:
    """HTCondor's event log, read while it grows."""

    def __init__(self, path: Path) -> None:
        self._path, self._read = path, 0

    def new(self) -> list[Event]:
        """The events since the last call; an incomplete event is returned by a later call."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._read)
            text = file.read()
        complete, end, _ = text.rpartition(f"\n{END}\n".encode())
        self._read += len(complete) + len(end)
        try:
            return list(events((complete + end).decode("utf-8", "replace"), Counter()))
        except FormatError as error:
            raise InputError(f"{self._path}: cannot read the HTCondor event log: {error}") from None


class CondorQueue:
    """A pool; *settings* are additional lines of every submit description, for example `+ProjectName = "x"`."""

    name = "htcondor"
    looks = (0.05, 1.0)

    def __init__(self, mark: str, settings: Sequence[str] = ()) -> None:
        if not _MARK.fullmatch(mark):
            raise InputError(f"mark must consist of letters and digits, got {mark!r}")
        self._mark, self._settings = mark, tuple(settings)
        self._log: EventLog | None = None
        self._numbers: dict[str, int] = {}
        self._sightings: dict[int, Sighting] = {}

    def submit(self, folder: Path, job: Job, words: Sequence[str]) -> str:
        """See `Queue`."""
        lines = [
            *description(words, self._mark, job.demand.cores, job.demand.memory), *gpu_lines(job.demand),
            f"output = {job.number}.txt", f"error = {job.number}.txt", f"log = {LOG}", f"priority = {job.priority}",
            f"submit_event_notes = eligo job {job.number}", *self._settings, "queue",
        ]  # fmt: skip
        answer = query(["condor_submit", "-terse", "-"], UNANSWERED, folder, "\n".join(lines) + "\n")
        key = answer.split(".")[0].strip()
        self._sightings[job.number] = Sighting(key)
        return key

    def look(self, folder: Path) -> Mapping[int, Sighting]:
        """See `Queue`; reads the event log and does not query the scheduler."""
        if self._log is None:
            self._log = EventLog(folder / LOG)
        for event in self._log.new():
            key = str(int(event.job.partition(".")[0]))
            if event.number == SUBMITTED and (match := _NUMBER.search(event.body)):
                self._numbers[key] = int(match[1])
            if key in self._numbers:
                self._sightings[self._numbers[key]] = _sighting_of(key, event)
        return self._sightings

    def remove(self, keys: Collection[str]) -> None:
        """See `Queue`."""
        if keys:
            take_out(keys)

    def end_strays(self, mark: str) -> None:
        """See `Queue`."""
        chosen = ["-constraint", f'EligoRun == "{mark}"']

        def remaining() -> str:
            return query(["condor_q", *chosen, "-af", "ClusterId"], UNANSWERED).strip()

        if remaining():
            take_out(chosen)
            wait_until_gone(remaining)


def gpu_lines(demand: Demand) -> list[str]:
    """The line of a submit description that requests graphics processors, if any are needed."""
    gpus = demand.amounts.get(GPUS)
    return [f"request_gpus = {math.ceil(gpus)}"] if gpus else []


def take_out(chosen: Collection[str]) -> None:
    """Remove the jobs that match these arguments of condor_rm; jobs that have already ended are ignored."""
    try:
        query(["condor_rm", *chosen], UNANSWERED)
    except InputError as error:
        if _ENDED not in str(error):
            raise


def description(words: Sequence[str], mark: str, cores: float | str, memory: int | str) -> list[str]:
    """The submit description of a job that runs this command on a node that sees our files; cores and bytes, or macros."""
    program = words[0]
    if re.search(r"[\r\n]|^\s|\s$|\\$", program):
        raise InputError(f"HTCondor cannot run a program with the name {program!r}")
    lines = [
        "universe = vanilla",
        f"executable = {program.replace('$', '$(DOLLAR)')}",
        "transfer_executable = false",
        f'arguments = "{" ".join(words[1:])}"',
        "should_transfer_files = no",
        "getenv = true",
        "notification = never",
        f"batch_name = eligo-{mark}",
        f'+EligoRun = "{mark}"',
        f"request_cpus = {cores if isinstance(cores, str) else max(1, math.ceil(cores))}",
    ]
    if memory:
        lines.append(f"request_memory = {memory if isinstance(memory, str) else f'{-(-memory // 1024)}K'}")
    return lines


def _sighting_of(key: str, event: Event) -> Sighting:
    """The state of a job after an event."""
    reason = " ".join(line.strip() for line in event.body.splitlines()[:2]).strip()
    if event.number == TERMINATED:
        return Sighting(key, True, _WELL in event.body, f"its worker exited: {reason}")
    if event.number == ABORTED:
        return Sighting(key, True, why=f"removed: {reason}")
    if event.number == HELD:
        return Sighting(key, True, why=f"held: {reason}", lost=False, to_remove=True)
    if event.number in TROUBLE:
        return Sighting(key, True, why=f"{TROUBLE[event.number]}: {reason}", to_remove=True)
    return Sighting(key)


def make(
    workers: int, folder: str | Path, mark: str, settings: Sequence[str] = (), python: str | None = None
) -> QueueEngine:
    """An engine with up to *workers* jobs in the queue; *python* is the interpreter on nodes, by default this one."""
    return QueueEngine(CondorQueue(mark, settings), workers, folder, python)


def engine(wanted: Wanted) -> Engine:
    """The engine for a run."""
    parts = wanted.queued()
    require("htcondor", "condor_submit", "condor_q", "condor_rm")
    return make(*parts).limited(wanted.counted())
