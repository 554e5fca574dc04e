"""Engines by name."""

import os
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module

from eligo.engines.jobs import Engine
from eligo.engines.room import Needs, Room, machine_memory
from eligo.errors import InputError, check_choice

#: the engines by name, and the module of each, whose `engine` makes one
ENGINES = {
    "local": "eligo.engines.local",
    "dask": "eligo.engines.dask",
    "ray": "eligo.engines.ray",
    "parsl": "eligo.engines.parsl",
    "slurm": "eligo.engines.slurm",
    "slurm-steps": "eligo.engines.slurm_steps",
    "htcondor": "eligo.engines.htcondor",
}
#: those whose tasks share this machine, unless they are given an address
SHARING = {"local", "dask", "ray", "parsl"}


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What an engine is to be made for."""

    #: what it is called
    name: str
    #: where somebody's own cluster is to be found; None: one of the run's own, on this machine
    address: str | None = None
    #: how many tasks at a time; None: as many as there are cores
    workers: int | None = None
    #: what tasks may have together: cores, as many as there are workers, and bytes of memory, all that this machine has
    cores: float | None = None
    memory: int | None = None
    #: what each task needs of these; None: one core and nothing that is known
    needs: Needs | None = None
    #: whether tasks are Python functions
    functions: bool = False
    #: a folder for files of the engine's own, which its workers see too
    scratch: str | None = None
    #: what the processes and jobs of the run are known by
    mark: str = ""

    @property
    def slots(self) -> int:
        """How many tasks at a time."""
        return len(os.sched_getaffinity(0)) if self.workers is None else self.workers

    def room(self, cores: float, memory: int | None = None) -> Room:
        """What tasks may have together, where the engine has so many cores and, if known, so many bytes of memory."""
        limit = memory if self.memory is None else self.memory
        return Room(cores if self.cores is None else self.cores, limit, self.needs)

    def queued(self) -> tuple[int, str, str]:
        """How many jobs at a time, the folder for their files, and the mark: what a batch system is used with."""
        if self.functions or self.scratch is None:
            raise InputError(f"engine {self.name} runs only commands, in a folder shared with its machines")
        return self.own().slots, self.scratch, self.mark

    def own(self) -> "Wanted":
        """The same, if it has no address: the engine has no use for one."""
        if self.address is not None:
            raise InputError(f"engine {self.name} takes no address, got {self.address!r}")
        return self


def engine_on(  # noqa: PLR0913
    name: str,
    workers: int | None = None,
    *,
    cores: float | None = None,
    memory: int | None = None,
    needs: Needs | None = None,
    functions: bool = False,
    scratch: str | None = None,
    mark: str = "",
) -> Engine:
    """The engine of that name, or NAME=ADDRESS for a cluster that is there already; see `Wanted`.

    >>> engine_on("local", 2).name
    'local'
    >>> engine_on("abacus")
    Traceback (most recent call last):
    eligo.errors.InputError: unknown engine 'abacus' (choose from local, dask, ray, parsl, slurm, ...
    """
    called, _, address = name.partition("=")
    if memory is None and shares_machine(name):
        memory = machine_memory()
    check_choice("engine", called, ENGINES)
    if workers is not None and workers < 1:
        raise InputError(f"workers must be a positive integer, got {workers}")
    wanted = Wanted(
        name=called, address=address or None, workers=workers, cores=cores, memory=memory, needs=needs,
        functions=functions, scratch=scratch, mark=mark,
    )  # fmt: skip
    engine: Engine = import_module(ENGINES[called]).engine(wanted)
    return engine


def shares_machine(name: object) -> bool:
    """Whether the tasks of an engine, or executor, all run on this machine.

    >>> shares_machine("dask"), shares_machine("dask=tcp://head:8786"), shares_machine("slurm")
    (True, False, False)
    """
    return isinstance(name, ThreadPoolExecutor | ProcessPoolExecutor) or (isinstance(name, str) and name in SHARING)


def absent(package: str, extra: str) -> InputError:
    """An engine's package is not installed."""
    return InputError(f'the engine {extra} needs {package}: pip install "eligo[{extra}]"')
