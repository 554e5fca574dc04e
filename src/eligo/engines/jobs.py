"""The types that the loop and all engines share: commands, functions, jobs and endings."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from eligo.names import Name
from eligo.work.attempts import Attempt, Lease
from eligo.work.demands import PLAIN, Demand

if TYPE_CHECKING:  # workers import this module and need only the standard library
    from eligo.allocating import Ask


@dataclass(frozen=True, slots=True)
class Command:
    """A program with its arguments, and the folder in which it runs; standard input is closed."""

    argv: tuple[str, ...]
    #: working folder
    folder: str
    #: variables added to the environment of the engine's processes
    environment: Mapping[str, str] = field(default_factory=dict)
    #: files for standard output and standard error
    out: str = "/dev/null"
    err: str = "/dev/null"
    #: a file that its processes hold open, by which they are found after their parent is gone
    marker: str = ""
    #: its own time limit in seconds; None: that of its job
    timeout: float | None = None
    #: bytes of memory that its processes may use together, if the engine can limit that; 0: any; None: the engine cannot,
    #: because another program starts the processes
    memory: int | None = 0


@dataclass(frozen=True, slots=True)
class Function:
    """A Python function with its arguments."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()


#: the speed of slots without a worker of their own: past run times predict nothing
ALIKE = 1.0

#: the work of a task
Work = Command | Function


@dataclass(slots=True, eq=False)
class Job:
    """A submitted grant: the tasks that one client runs one after another."""

    number: int
    client: Hashable
    tasks: tuple[Name, ...]
    works: tuple[Work, ...]
    #: in an engine's own queue, jobs with a larger number go first
    priority: int = 0
    #: what its tasks need
    demand: Demand = PLAIN
    #: time limit in seconds of each task without one of its own; None: unlimited
    timeout: float | None = None
    #: the lease of each task; empty if attempts are not counted, then each is the first one
    leases: tuple[Lease, ...] = ()
    #: number of tasks that have ended, and the start of the next one by the wall clock
    ended: int = 0
    since: float = 0.0

    def limit(self, place: int) -> float | None:
        """The time limit of one of its tasks in seconds: the task's own, or that of the job."""
        work = self.works[place]
        return work.timeout if isinstance(work, Command) and work.timeout is not None else self.timeout


class Ending(NamedTuple):
    """The end of one task of a job."""

    job: Job
    #: the index of the task in the job
    place: int
    attempt: Attempt
    #: the value that the function returned, or the exception that it raised
    value: Any = None

    @property
    def task(self) -> Name:
        """The name of the task."""
        return self.job.tasks[self.place]

    @property
    def last(self) -> bool:
        """Whether the job has ended: this was its last task, or it failed."""
        return self.attempt.failure is not None or self.place == len(self.job.tasks) - 1

    def failed(self, why: str, *, lost: bool = False) -> "Ending":
        """The same ending as a failure, without a value."""
        return self._replace(attempt=self.attempt.failed(why, lost=lost), value=None)


class Engine(Protocol):
    """Runs jobs: as local processes, or through another system's workers."""

    #: the engine's name
    name: str

    def asks(self) -> "Sequence[Ask]":
        """The clients that could start a task now. If tasks differ in their needs, one at a time."""
        ...

    def start(self, job: Job) -> None:
        """Start a job for the client that asked."""
        ...

    def wait(self, seconds: float | None) -> list[Ending]:
        """Wait up to this many seconds, or without limit, for tasks to end; returns their endings."""
        ...

    def cancel(self, jobs: Sequence[Job]) -> None:
        """Stop jobs; `wait` still returns their endings."""
        ...

    def close(self) -> None:
        """Stop all jobs and release resources."""
        ...


@runtime_checkable
class Heeding(Protocol):
    """An engine that manages cores, memory and other resources itself."""

    def heed(self, needs: Callable[[Name], Demand]) -> None:
        """Use new needs from now on."""
        ...


@runtime_checkable
class Resizable(Protocol):
    """An engine whose number of workers can change while it runs."""

    def resize(self, workers: int) -> None:
        """Run at most this many tasks at once from now on; tasks that are already running finish."""
        ...


@runtime_checkable
class Lingering(Protocol):
    """An engine whose jobs survive the process that submitted them."""

    def end_strays(self, mark: str) -> None:
        """Kill the jobs of an earlier process of the run with this mark, so that no task runs twice at once."""
        ...
