"""Slurm within an existing job: tasks are steps of the job, started by srun without queueing."""

import math
import os
from collections.abc import Sequence
from dataclasses import replace

from eligo.engines.batch_system import query, require, wait_until_gone
from eligo.engines.jobs import Command, Ending, Engine, Job, Work
from eligo.engines.local import LocalEngine
from eligo.engines.registry import Wanted
from eligo.engines.slurm import UNANSWERED
from eligo.errors import InputError
from eligo.workflow import MEGABYTE

ALLOCATION = "SLURM_JOB_ID"


class StepsEngine(LocalEngine):
    """Runs up to *workers* steps at once in the job of this process; *scratch* is the folder that collects their output."""

    name = "slurm-steps"

    def __init__(self, workers: int, scratch: str, mark: str) -> None:
        self._allocation = os.environ.get(ALLOCATION, "")
        if not self._allocation:
            raise InputError("slurm-steps must run inside a Slurm job: start it with salloc or sbatch")
        require("slurm-steps", "srun", "squeue", "scancel")
        self._mark = mark
        super().__init__(workers, scratch=scratch)

    def start(self, job: Job) -> None:
        """Start a job, with its commands wrapped in srun."""
        job.works = tuple(self._step(job, work) for work in job.works)
        super().start(job)

    def _step(self, job: Job, work: Work) -> Work:
        if not isinstance(work, Command):
            return work
        memory = [f"--mem={-(-job.memory // MEGABYTE)}M"] if job.memory else []
        words = [
            "srun", f"--jobid={self._allocation}", "--exact", "--nodes=1", "--ntasks=1", "--input=none", "--quiet",
            f"--cpus-per-task={max(1, math.ceil(job.cores))}", *memory, f"--chdir={work.folder}",
            f"--job-name=eligo-{self._mark}", "--",
        ]  # fmt: skip
        return replace(work, argv=(*words, *work.argv))

    def wait(self, seconds: float | None) -> list[Ending]:
        """See `Engine`; the memory of srun is not that of the task."""
        return [each._replace(attempt=each.attempt._replace(memory=None)) for each in super().wait(seconds)]

    def end_strays(self, mark: str) -> None:
        """Kill steps of an earlier process of this run in this job; those in another job end with it."""
        words = ["squeue", "--steps", f"--job={self._allocation}", "--noheader", "--format=%i|%j"]

        def left() -> Sequence[str]:
            rows = [line.strip().split("|", 1) for line in query(words, UNANSWERED).splitlines()]
            return [key for key, name in rows if name == f"eligo-{mark}"]

        steps = left()
        if steps:
            query(["scancel", "--quiet", *steps], UNANSWERED)
            wait_until_gone(left)


def make(workers: int, folder: str, mark: str) -> StepsEngine:
    """An engine that runs up to *workers* steps at once."""
    return StepsEngine(workers, folder, mark)


def engine(wanted: Wanted) -> Engine:
    """The engine for a run."""
    return make(*wanted.queued())
