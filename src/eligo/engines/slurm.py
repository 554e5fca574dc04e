"""Slurm: one job per task, submitted by sbatch, followed by squeue, stopped by scancel; or steps of one job, started by srun.

Jobs are identified by their names, eligo-MARK.SESSION.NUMBER, from the run's mark, the session and the number. Slurm does
not requeue a job whose node failed: the job is lost, and eligo decides whether to retry it.
"""

import math
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from eligo.allocating.rooms import Room
from eligo.engines.batch_system import QueueEngine, Sighting, query, require, wait_until_gone
from eligo.engines.jobs import Command, Ending, Engine, Job, Work
from eligo.engines.local import LocalEngine
from eligo.engines.registry import Wanted
from eligo.engines.worker import GRACE
from eligo.errors import InputError
from eligo.work.demands import GPUS
from eligo.workflow import MEGABYTE

#: runs on a node; its first argument is the file for the worker's output
SCRIPT = '#!/bin/sh\nprinted=$1\nshift\nexec "$@" > "$printed" 2>&1\n'
#: parts of error messages after which a command is retried
UNANSWERED = (
    "unable to contact", "unable to establish", "timed out", "temporarily", "zero bytes", "connection refused",
    "connection reset", "communication connection failure", "communications connection failure", "try again", "in use",
)  # fmt: skip
OVER = {
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED",
    "SPECIAL_EXIT", "TIMEOUT",
}  # fmt: skip
NEVER = ("badconstraints", "launch")  # beginnings of reasons for which a job would wait forever
MANY = 500  # jobs per command line
ALLOCATION = "SLURM_JOB_ID"  # the variable with the id of the job of this process
#: the distance between two jobs, in numbers of workers, and the largest nice value, in such distances
ROOM, MOST_BACK = 4, 16


class _Row(NamedTuple):
    """A line of squeue."""

    key: str
    state: str
    reason: str
    name: str


class SlurmQueue:
    """A Slurm cluster; *options* are additional options of sbatch, for example `--partition=long`."""

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
            f"--cpus-per-task={max(1, math.ceil(job.demand.cores))}", *_limits(job), *self._options,
        ]  # fmt: skip
        answer = query(["sbatch", *options, script.name, f"{job.number}.txt", *words], UNANSWERED, folder)
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
        """This user's jobs with this prefix, including those that ended recently."""
        words = ["squeue", "--me", "--noheader", "--states=all", "--format=%i|%T|%r|%j"]
        for line in query(words, UNANSWERED).splitlines():
            row = _Row(*line.split("|", 3))
            if row.name.startswith(start):
                yield row

    def remove(self, keys: Collection[str]) -> None:
        """See `Queue`."""
        wanted = list(keys)
        for first in range(0, len(wanted), MANY):
            query(["scancel", "--quiet", *wanted[first : first + MANY]], UNANSWERED)

    def end_strays(self, mark: str) -> None:
        """See `Queue`."""

        def remaining() -> list[str]:
            return [row.key for row in self._rows(f"{_name(mark)}.") if row.state not in OVER]

        self.remove(remaining())
        wait_until_gone(remaining)


def _name(mark: str) -> str:
    return f"eligo-{mark}"


def _limits(job: Job) -> list[str]:
    """The limits of a job, as far as known: memory, and the minutes after which Slurm ends it."""
    limits = _room_options(job)
    seconds = [job.limit(place) for place in range(len(job.works))]
    if None not in seconds:
        limits.append(f"--time={1 + math.ceil(sum(limit + GRACE for limit in seconds if limit) / 60)}")
    return limits


def _room_options(job: Job) -> list[str]:
    memory, gpus = job.demand.memory, job.demand.amounts.get(GPUS)
    return [f"--mem={-(-memory // MEGABYTE)}M"] * bool(memory) + [f"--gres=gpu:{math.ceil(gpus or 0)}"] * bool(gpus)


def _sighting_of(row: _Row) -> Sighting:
    """The state of a job according to squeue."""
    why = f"{row.state} ({row.reason})"
    if row.state == "PENDING" and row.reason.lower().startswith(NEVER):
        return Sighting(row.key, True, why=why, lost=row.reason.lower().startswith("launch"), to_remove=True)
    return Sighting(row.key, row.state in OVER, row.state == "COMPLETED", why)


class Nice:
    """Chooses the nice value of each job, so that better jobs start first; users can only increase it.

    Some clusters start the jobs of one user in order of submission; then a job needs one more for each job submitted in
    between. A new job gets a value between those of better and worse waiting jobs, with gaps for others.

    >>> nice = Nice(4)
    >>> [nice.of(Job(number, "", (), (), priority)) for number, priority in ((1, 9), (2, 5), (3, 7), (4, 10))]
    [32, 48, 39, 13]
    """

    def __init__(self, workers: int) -> None:
        self._room, self._count = ROOM * workers, 0
        self._waiting: dict[int, tuple[int, int, int]] = {}  # by number: priority, number of earlier jobs, nice value

    def of(self, job: Job) -> int:
        """The nice value of a job submitted now."""
        self._count += 1
        waiting, room = self._waiting.values(), self._room
        better = max((back for priority, _, back in waiting if priority >= job.priority), default=None)
        worse_jobs = (back + at - self._count for priority, at, back in waiting if priority < job.priority)
        worse = min(worse_jobs, default=None)
        if better is None:
            chosen = 2 * room if worse is None else worse - room
        else:
            chosen = better + room if worse is None else max(better, (better + worse) // 2)
        back = max(0, min(chosen, MOST_BACK * room))
        self._waiting[job.number] = (job.priority, self._count, back)
        return back

    def waiting(self, numbers: Collection[int]) -> None:
        """Forget all jobs but these, which still wait."""
        self._waiting = {number: self._waiting[number] for number in numbers if number in self._waiting}


def make(
    workers: int, folder: str | Path, mark: str, options: Sequence[str] = (), python: str | None = None
) -> QueueEngine:
    """An engine with up to *workers* jobs in the queue; *python* is the interpreter on nodes, by default this one."""
    return QueueEngine(SlurmQueue(mark, workers, options), workers, folder, python)


class StepsEngine(LocalEngine):
    """Runs up to *workers* steps at once in the job of this process; *scratch* is the folder that collects their output."""

    name = "slurm-steps"
    requests = frozenset({GPUS})

    def __init__(self, workers: int, scratch: str, mark: str, room: Room | None = None) -> None:
        self._allocation = os.environ.get(ALLOCATION, "")
        if not self._allocation:
            raise InputError("slurm-steps must run inside a Slurm job: start it with salloc or sbatch")
        require("slurm-steps", "srun", "squeue", "scancel")
        self._job_name = f"eligo-{mark}"
        super().__init__(workers, room, scratch)

    def start(self, job: Job) -> None:
        """Start a job, with its commands wrapped in srun."""
        job.works = tuple(self._step(job, work) for work in job.works)
        super().start(job)

    def _step(self, job: Job, work: Work) -> Work:
        if not isinstance(work, Command):
            return work
        words = [
            "srun", f"--jobid={self._allocation}", "--exact", "--nodes=1", "--ntasks=1", "--input=none", "--quiet",
            f"--cpus-per-task={max(1, math.ceil(job.demand.cores))}", *_room_options(job), f"--chdir={work.folder}",
            f"--job-name={self._job_name}", "--",
        ]  # fmt: skip
        return replace(work, argv=(*words, *work.argv))

    def wait(self, seconds: float | None) -> list[Ending]:
        """See `Engine`; the memory of srun is not that of the task."""
        return [each._replace(attempt=each.attempt._replace(memory=None)) for each in super().wait(seconds)]

    def end_strays(self, mark: str) -> None:
        """Kill steps of an earlier process of this run in this job; those in another job end with it."""
        listing = ["squeue", "--steps", f"--job={self._allocation}", "--noheader", "--format=%i|%j"]

        def remaining() -> Sequence[str]:
            rows = [line.strip().split("|", 1) for line in query(listing, UNANSWERED).splitlines()]
            return [key for key, name in rows if name == f"eligo-{mark}"]

        steps = remaining()
        if steps:
            query(["scancel", "--quiet", *steps], UNANSWERED)
            wait_until_gone(remaining)


def engine(wanted: Wanted) -> Engine:
    """The engine `slurm` or `slurm-steps` for a run."""
    parts = wanted.queued()
    if wanted.name == StepsEngine.name:
        return StepsEngine(*parts, wanted.counted())
    require("slurm", "sbatch", "squeue", "scancel")
    return make(*parts).limited(wanted.counted())
