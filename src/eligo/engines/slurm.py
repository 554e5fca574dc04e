"""Slurm: one job a task, handed in by sbatch, followed by squeue, stopped by scancel.

Jobs are known again by their names, which tell the run, the session and the number: eligo-MARK.SESSION.NUMBER. A job that
the system would begin anew after its node failed is not: that is a loss, and what follows from one is decided here.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from eligo.engines.batch_system import QueueEngine, Sighting, asked, require, wait_until_gone
from eligo.engines.jobs import Engine, Job
from eligo.engines.registry import Wanted
from eligo.engines.worker import GRACE
from eligo.errors import InputError
from eligo.workflow import MEGABYTE

#: what runs on a node; what the worker prints goes where its first word says
SCRIPT = '#!/bin/sh\nprinted=$1\nshift\nexec "$@" > "$printed" 2>&1\n'
#: parts of complaints after which it is worth asking again
UNANSWERED = (
    "unable to contact", "unable to establish", "timed out", "temporarily", "zero bytes", "connection refused",
    "connection reset", "communication connection failure", "communications connection failure", "try again", "in use",
)  # fmt: skip
OVER = {
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED",
    "SPECIAL_EXIT", "TIMEOUT",
}  # fmt: skip
NEVER = ("badconstraints", "launch")  # how the reasons begin for which a job waits for ever
MANY = 500  # jobs in one command line
ROOM, MOST_BACK = (
    4,
    16,
)  # times the number of workers between two jobs; times that at most, not to wait behind everybody


class _Row(NamedTuple):
    """A line of squeue."""

    key: str
    state: str
    reason: str
    name: str


class SlurmQueue:
    """A cluster; *options* are further ones of sbatch, such as `--partition=long`."""

    name = "slurm"
    looks = (2.0, 30.0)

    def __init__(self, mark: str, workers: int, options: Sequence[str] = ()) -> None:
        self._mark, self._options = mark, tuple(options)
        self._nice = Nice(workers)

    def submit(self, folder: Path, job: Job, words: Sequence[str]) -> str:
        """See `Queue`."""
        script = folder / "job.sh"
        if not script.exists():
            script.write_text(SCRIPT, "ascii")
        options = [
            "--parsable", "--no-requeue", "--export=ALL", "--output=/dev/null", f"--chdir={folder}", "--ntasks=1",
            f"--job-name={_name(self._mark)}.{folder.name}.{job.number}", f"--nice={self._nice.of(job)}",
            f"--cpus-per-task={max(1, math.ceil(job.cores))}", *_limits(job), *self._options,
        ]  # fmt: skip
        answer = asked(["sbatch", *options, script.name, f"{job.number}.txt", *words], UNANSWERED, folder)
        return answer.strip().partition(";")[0]

    def look(self, folder: Path) -> Mapping[int, Sighting] | None:
        """See `Queue`."""
        try:
            rows = list(self._rows(f"{_name(self._mark)}.{folder.name}."))
        except InputError:
            return None
        sightings = {int(row.name.rpartition(".")[2]): _sighting_of(row) for row in rows}
        self._nice.waiting({int(row.name.rpartition(".")[2]) for row in rows if row.state == "PENDING"})
        return sightings

    def _rows(self, start: str) -> Iterator[_Row]:
        """This user's jobs whose names begin so, with those that ended a short while ago."""
        words = ["squeue", "--me", "--noheader", "--states=all", "--format=%i|%T|%r|%j"]
        for line in asked(words, UNANSWERED).splitlines():
            row = _Row(*line.split("|", 3))
            if row.name.startswith(start):
                yield row

    def remove(self, keys: Collection[str]) -> None:
        """See `Queue`."""
        wanted = list(keys)
        for first in range(0, len(wanted), MANY):
            asked(["scancel", "--quiet", *wanted[first : first + MANY]], UNANSWERED)

    def end_strays(self, mark: str) -> None:
        """See `Queue`."""

        def left() -> list[str]:
            return [row.key for row in self._rows(f"{_name(mark)}.") if row.state not in OVER]

        self.remove(left())
        wait_until_gone(left)


def _name(mark: str) -> str:
    return f"eligo-{mark}"


def _limits(job: Job) -> list[str]:
    """What a job may have, as far as that is known: memory, and the minutes after which Slurm itself ends it."""
    limits = [f"--mem={-(-job.memory // MEGABYTE)}M"] if job.memory else []
    if job.timeout is not None:
        limits.append(f"--time={1 + math.ceil(len(job.works) * (job.timeout + GRACE) / 60)}")
    return limits


def _sighting_of(row: _Row) -> Sighting:
    """A line of squeue, as the engine takes it."""
    why = f"{row.state} ({row.reason})"
    if row.state == "PENDING" and row.reason.lower().startswith(NEVER):
        return Sighting(row.key, True, why=why, lost=row.reason.lower().startswith("launch"), left=True)
    return Sighting(row.key, row.state in OVER, row.state == "COMPLETED", why)


class Nice:
    """By how much each job steps back, so that among those that wait the better goes first; users may only step back.

    Some clusters take those of one user that were handed in first, and then a job must step back by one more for each that
    came between. A job goes between those that wait and are better and those that are worse, with room for others.

    >>> nice = Nice(4)
    >>> [nice.of(Job(number, "", (), (), priority)) for number, priority in ((1, 9), (2, 5), (3, 7), (4, 10))]
    [32, 48, 39, 13]
    """

    def __init__(self, workers: int) -> None:
        self._room, self._count = ROOM * workers, 0
        self._waiting: dict[
            int, tuple[int, int, int]
        ] = {}  # by number: priority, how many were before it, how far back

    def of(self, job: Job) -> int:
        """How far a job steps back that is handed in now."""
        self._count += 1
        waiting, room = self._waiting.values(), self._room
        better = max((back for priority, _, back in waiting if priority >= job.priority), default=None)
        worse = min(
            (back + at - self._count for priority, at, back in waiting if priority < job.priority), default=None
        )
        if better is None:
            chosen = 2 * room if worse is None else worse - room
        else:
            chosen = better + room if worse is None else max(better, (better + worse) // 2)
        back = max(0, min(chosen, MOST_BACK * room))
        self._waiting[job.number] = (job.priority, self._count, back)
        return back

    def waiting(self, numbers: Collection[int]) -> None:
        """Only these wait still."""
        self._waiting = {number: self._waiting[number] for number in numbers if number in self._waiting}


def make(
    workers: int, folder: str | Path, mark: str, options: Sequence[str] = (), python: str | None = None
) -> QueueEngine:
    """An engine that has so many jobs in the queue at a time; *python* is what nodes run, by default what runs here."""
    return QueueEngine(SlurmQueue(mark, workers, options), workers, folder, python)


def engine(wanted: Wanted) -> Engine:
    """One that serves a run."""
    parts = wanted.queued()
    require("slurm", "sbatch", "squeue", "scancel")
    return make(*parts)
