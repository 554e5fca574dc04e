"""The cores and memory of an engine's machine, shared by tasks that differ in their needs."""

import math
import os
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path

from eligo.engines.jobs import Job
from eligo.names import Name
from eligo.workflow import Workflow

#: returns the needs of a task: cores, and bytes of memory
Needs = Callable[[Name], tuple[float, int]]
ROUNDING = 1e-6  # of a core: sums of thirds must add up

PROC, GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")


def machine_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def machine_memory(proc: Path = PROC, groups: Path = GROUPS) -> int:
    """The memory available to the processes of this machine in bytes: its RAM, or the limit of a control group."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical, *_group_limits(proc, groups)])


def _group_limits(proc: Path, groups: Path) -> Iterator[int]:
    """The memory limits of the control groups of this process, version 1 or 2."""
    try:
        lines = proc.read_text("utf-8").splitlines()
    except OSError:
        return
    for _, controllers, path in (line.split(":", 2) for line in lines if line.count(":") > 1):
        if controllers and "memory" not in controllers.split(","):
            continue
        place, file = (groups / "memory", "memory.limit_in_bytes") if controllers else (groups, "memory.max")
        for above in accumulate(["", *filter(None, path.split("/"))], lambda *steps: "/".join(steps)):
            try:
                yield int((place / above.lstrip("/") / file).read_text("ascii"))
            except (OSError, ValueError):  # no such file, or no limit: "max"
                continue


def in_gibibytes(memory: float) -> str:
    """Bytes of memory as text in GiB.

    >>> in_gibibytes(25_000_000_000), in_gibibytes(99e12), in_gibibytes(2**20)
    ('23.3 GiB', '92,201 GiB', '0.000977 GiB')
    """
    size = memory / 2**30
    return f"{size:,.0f} GiB" if size >= 1000 else f"{size:.3g} GiB"


class Wants:
    """The needs of each task of a workflow; empty if no task needs more than one core or declares its memory."""

    def __init__(self, flow: Workflow) -> None:
        self._wants: dict[Name, tuple[float, int]] = {}
        self.learn(flow)

    def learn(self, flow: Workflow) -> bool:
        """Add the tasks of another workflow; returns whether any needs more than one core."""
        columns = (flow.dag.tasks, flow.column("cores"), flow.column("memory"))
        new = {
            name: (cores or 1.0, memory or 0) for name, cores, memory in zip(*columns, strict=True) if cores or memory
        }
        new = {name: want for name, want in new.items() if want != (1.0, 0)}
        self._wants |= new
        return bool(new)

    def __bool__(self) -> bool:
        return bool(self._wants)

    def __call__(self, task: Name) -> tuple[float, int]:
        """The needs of a task: cores, and bytes of memory."""
        return self._wants.get(task, (1.0, 0))


class Room:
    """The free cores and memory. A task that needs more than the total gets all of it, alone.

    >>> room = Room(4.0, None, {"align": (3.0, 0), "sort": (2.0, 0), "huge": (16.0, 0)}.__getitem__)
    >>> room.enter(Job(1, "slot 1", ("align",), (), cores=3.0))
    >>> room.fits("align"), room.fits("sort"), room.fits("huge")
    (False, False, False)
    """

    def __init__(self, cores: float, memory: int | None = None, needs: Needs | None = None) -> None:
        self.cores, self.memory = float(cores), math.inf if memory is None else float(memory)
        self._free = (self.cores, self.memory)
        self.heed(needs)

    def heed(self, needs: Needs | None) -> None:
        """Use new needs from now on."""
        self._needs = needs
        #: whether a task fits now; None if no task needs more than its slot
        self.admits: Callable[[Name], bool] | None = None if needs is None else self.fits

    def fits(self, task: Name) -> bool:
        """Whether a task fits now."""
        if self._needs is None:
            return True
        cores, memory = self.share(*self._needs(task))
        return cores <= self._free[0] + ROUNDING and memory <= self._free[1]

    def share(self, cores: float, memory: float) -> tuple[float, float]:
        """The resources that a task with these needs gets."""
        return min(cores, self.cores), min(memory, self.memory)

    def enter(self, job: Job) -> None:
        """Reserve the resources of a job."""
        self._change(job, -1)

    def leave(self, job: Job) -> None:
        """Release the resources of a job."""
        self._change(job, 1)

    def _change(self, job: Job, sign: int) -> None:
        cores, memory = self.share(job.cores, job.memory)
        self._free = (self._free[0] + sign * cores, self._free[1] + sign * memory)
