"""Engines by name."""

import math
from concurrent.futures import Executor
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from eligo.allocating.rooms import Needs, Room
from eligo.engines.jobs import Engine
from eligo.engines.room import machine_cores, machine_memory
from eligo.errors import InputError, check_choice
from eligo.work.demands import Amounts

#: the engines by name, with the module of each, whose `engine` creates it
ENGINES = {
    "local": "eligo.engines.local",
    "dask": "eligo.engines.dask",
    "ray": "eligo.engines.ray",
    "parsl": "eligo.engines.parsl",
    "slurm": "eligo.engines.slurm",
    "slurm-steps": "eligo.engines.slurm",
    "htcondor": "eligo.engines.htcondor",
}
#: engines whose tasks share this machine, unless an address is given
SHARING = {"local", "dask", "ray", "parsl"}


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The specification of an engine."""

    #: the engine's name
    name: str
    #: the address of an existing cluster; None: a cluster of the run's own, on this machine
    address: str | None = None
    #: maximum number of concurrent tasks; None: the number of cores
    workers: int | None = None
    #: total cores and bytes of memory for tasks; None: the number of workers, and all memory of this machine
    cores: float | None = None
    memory: int | None = None
    #: total amounts of other resources, by name
    resources: Amounts = field(default_factory=dict)
    #: the needs of each task; None: one core and unknown memory
    needs: Needs | None = None
    #: whether tasks are Python functions
    functions: bool = False
    #: a folder for the engine's own files, which its workers see too
    scratch: str | None = None
    #: the mark of the run's processes and jobs
    mark: str = ""

    @property
    def slots(self) -> int:
        """The maximum number of concurrent tasks."""
        return self.workers or machine_cores()

    def room(self, cores: float, memory: int | None = None, others: Amounts | None = None) -> Room:
        """The resources for all tasks, if the engine has this many cores and, if known, bytes of memory and others."""
        limit = memory if self.memory is None else self.memory
        resources = {**(others or {}), **self.resources}
        return Room(cores if self.cores is None else self.cores, limit, self.needs, resources)

    def counted(self) -> Room:
        """The resources that even a batch system does not count: those with a total."""
        return Room(math.inf, self.memory, self.needs if self.resources or self.memory else None, self.resources)

    def queued(self) -> tuple[int, str, str]:
        """The arguments for a batch system: maximum number of jobs, folder for their files, and mark."""
        if self.functions or self.scratch is None:
            raise InputError(f"engine {self.name} runs only commands, in a folder shared with its machines")
        return self.own().slots, self.scratch, self.mark

    def own(self) -> "Wanted":
        """The specification itself, if it has no address; raises an error for engines that take none."""
        if self.address is not None:
            raise InputError(f"engine {self.name} takes no address, got {self.address!r}")
        return self


def engine_on(  # noqa: PLR0913
    on: "str | Executor | Engine",
    workers: int | None = None,
    *,
    cores: float | None = None,
    memory: int | None = None,
    resources: Amounts | None = None,
    needs: Needs | None = None,
    functions: bool = False,
    scratch: str | None = None,
    mark: str = "",
) -> Engine:
    """The engine with this name (NAME=ADDRESS: on an existing cluster), one for an executor, or the engine itself.

    See `Wanted` for the options.

    >>> engine_on("local", 2).name
    'local'
    >>> engine_on("abacus")
    Traceback (most recent call last):
    eligo.errors.InputError: unknown engine 'abacus' (choose from local, dask, ray, parsl, slurm, ...
    """
    if memory is None and shares_machine(on):
        memory = machine_memory()
    if isinstance(on, Executor):
        from eligo.engines.futures import on_executor

        slots = workers or machine_cores()
        return on_executor(on, slots, Room(slots, memory, needs, resources))
    if not isinstance(on, str):
        return _checked_engine(on)
    called, _, address = on.partition("=")
    check_choice("engine", called, ENGINES)
    if workers is not None and workers < 1:
        raise InputError(f"workers must be a positive integer, got {workers}")
    wanted = Wanted(
        name=called, address=address or None, workers=workers, cores=cores, memory=memory, resources=resources or {},
        needs=needs, functions=functions, scratch=scratch, mark=mark,
    )  # fmt: skip
    engine: Engine = import_module(ENGINES[called]).engine(wanted)
    return engine


def _checked_engine(on: Engine) -> Engine:
    if not all(hasattr(on, verb) for verb in ("asks", "start", "wait", "cancel", "close")):
        raise InputError(f"on must be the name of an engine, an executor or an engine, got {on!r}")
    return on


def shares_machine(name: object) -> bool:
    """Whether the tasks of an engine, or executor, all run on this machine.

    >>> shares_machine("dask"), shares_machine("dask=tcp://head:8786"), shares_machine("slurm")
    (True, False, False)
    """
    if not isinstance(name, Executor):
        return isinstance(name, str) and name in SHARING
    from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

    return isinstance(name, ThreadPoolExecutor | ProcessPoolExecutor)


def package_of(module: str, package: str, extra: str) -> Any:
    """The module of an engine's package; refused if the package is not installed."""
    try:
        return import_module(module)
    except ModuleNotFoundError:
        raise absent(package, extra) from None


def absent(package: str, extra: str) -> InputError:
    """The error for an engine whose package is not installed."""
    return InputError(f'the engine {extra} needs {package}: pip install "eligo[{extra}]"')
