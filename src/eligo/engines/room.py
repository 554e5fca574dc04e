"""The cores and memory of this machine, and what the tasks of a workflow need of them."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path

from eligo.engines.jobs import Command, Work
from eligo.estimates import estimate
from eligo.names import Name
from eligo.work.demands import GPUS, PLAIN, Demand, demand_environment
from eligo.workflow import Task, Workflow

CUDA = "CUDA_VISIBLE_DEVICES"
DEVICES = Path("/dev")
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


def machine_gpus() -> tuple[str, ...]:
    """The graphics processors that tasks of this machine may use: those of CUDA_VISIBLE_DEVICES, or all of NVIDIA.

    >>> isinstance(machine_gpus(), tuple)
    True
    """
    chosen = os.environ.get(CUDA)
    if chosen is not None:
        return tuple(filter(None, chosen.split(",")))
    return tuple(str(number) for number, _ in enumerate(DEVICES.glob("nvidia[0-9]*")))


class Devices:
    """The graphics processors that jobs get, each for itself.

    >>> devices = Devices(("0", "1", "2"))
    >>> devices.take(1, Demand(others=(("gpus", 2),))), devices.take(2, Demand(others=(("gpus", 1),)))
    ('0,1', '2')
    >>> devices.give_back(1)
    >>> devices.take(3, Demand(others=(("gpus", 1),)))
    '0'
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._free, self._order = list(names), list(names)
        self._taken: dict[int, list[str]] = {}

    def take(self, job: int, demand: Demand) -> str:
        """The devices for a job, separated by commas; empty if it needs none."""
        count = int(demand.amounts.get(GPUS, 0))
        taken, self._free = self._free[:count], self._free[count:]
        self._taken[job] = taken
        return ",".join(taken)

    def give_back(self, job: int) -> None:
        """Make the devices of a job available."""
        self._free = sorted([*self._free, *self._taken.pop(job, ())], key=self._order.index)


def equip(work: Work, demand: Demand, devices: str) -> Work:
    """The work with what it gets, also in its environment; with graphics processors, which ones."""
    if not isinstance(work, Command):
        return work
    gets = demand_environment(demand.cores, demand.memory) | ({CUDA: devices} if devices else {})
    memory = None if work.memory is None else demand.memory
    return replace(work, environment={**work.environment, **gets}, memory=memory)


class Wants:
    """The needs of each task of a workflow; empty if no task needs more than one core or declares anything else."""

    def __init__(self, flow: Workflow) -> None:
        self._wants: dict[Name, tuple[Demand, tuple[int, ...]]] = {}
        self._seconds: dict[Name, float] = {}
        #: the number of failures of a task, after each of which it may need more memory
        self.failures: Callable[[Name], int] = lambda task: 0
        self.learn(flow)

    def learn(self, flow: Workflow) -> bool:
        """Add the tasks of another workflow; returns whether any needs more than one core."""
        new = {name: want for name, task in flow.details.items() if (want := _want(task))[0] != PLAIN}
        self._wants |= new
        if self._wants and (estimates := estimate(flow)).level != "nothing":
            self._seconds |= zip(flow.dag.tasks, estimates.seconds.tolist(), strict=True)
        return bool(new)

    def __bool__(self) -> bool:
        return bool(self._wants)

    def __call__(self, task: Name) -> Demand:
        """What the next attempt at a task needs."""
        demand, more_memory = self._wants.get(task, (PLAIN, ()))
        failures = min(self.failures(task), len(more_memory)) if more_memory else 0
        memory = more_memory[failures - 1] if failures else demand.memory
        return demand._replace(memory=memory, seconds=self._seconds.get(task))


def _want(task: Task) -> tuple[Demand, tuple[int, ...]]:
    """What the first attempt at a task needs, and the memory of later ones."""
    return Demand(task.cores or 1.0, task.memory or 0, task.resources), task.more_memory
