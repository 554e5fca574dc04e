"""What is started and what comes of it: the words that the loop and every engine share."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from eligo.names import Name
from eligo.work.attempts import Attempt, Lease

if TYPE_CHECKING:  # workers read this module, and need no more than Python to do their work
    from eligo.allocating import Ask


@dataclass(frozen=True, slots=True)
class Command:
    """A program with its arguments, and where it runs; standard input is closed."""

    argv: tuple[str, ...]
    #: the folder it runs in
    folder: str
    #: what is set in its environment beside what the engine's own processes have
    environment: Mapping[str, str] = field(default_factory=dict)
    #: where its standard output and standard error go
    out: str = "/dev/null"
    err: str = "/dev/null"
    #: a file that its processes hold open, by which they are found once whoever started them is gone
    marker: str = ""


@dataclass(frozen=True, slots=True)
class Function:
    """A Python function with its arguments."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()


#: the speed of a slot that is no worker: what it did last says nothing of what it does next
ALIKE = 1.0

#: what a task does
Work = Command | Function


@dataclass(slots=True, eq=False)
class Job:
    """One grant on its way: the tasks that one client runs one after another."""

    number: int
    client: Hashable
    tasks: tuple[Name, ...]
    works: tuple[Work, ...]
    #: among jobs that wait in an engine's own queue, the one with the larger number goes first
    priority: int = 0
    cores: float = 1.0
    #: in bytes; 0 where nothing is known
    memory: int = 0
    #: how many seconds each task may take; None: as long as it likes
    timeout: float | None = None
    #: of each of its tasks; where nobody counts attempts, it is the first one at the task of this place
    leases: tuple[Lease, ...] = ()
    #: how many of its tasks have ended, and since when the next one is under way, by the clock on the wall
    ended: int = 0
    since: float = 0.0


class Ending(NamedTuple):
    """One task of a job has ended."""

    job: Job
    #: which of the job's tasks
    place: int
    attempt: Attempt
    #: what the function returned, or the exception that it raised
    value: Any = None

    @property
    def task(self) -> Name:
        """The task."""
        return self.job.tasks[self.place]

    @property
    def last(self) -> bool:
        """Whether nothing more comes of this job: it was the last task, or those after it cannot be run."""
        return self.attempt.failure is not None or self.place == len(self.job.tasks) - 1

    def failed(self, why: str, *, lost: bool = False) -> "Ending":
        """The same, as a failure."""
        return self._replace(attempt=self.attempt.failed(why, lost=lost))


class Engine(Protocol):
    """Whoever runs jobs: local processes, or another system's workers."""

    #: how it is called
    name: str
    #: how many tasks may begin out of order, by how the engine works
    slack: int

    def asks(self) -> "Sequence[Ask]":
        """Those who could begin something now. Where tasks differ in what they need, one at a time."""
        ...

    def start(self, job: Job) -> None:
        """Begin a job, for the client that asked."""
        ...

    def wait(self, seconds: float | None) -> list[Ending]:
        """What came of tasks since; waits up to so many seconds, or for ever, until there is something."""
        ...

    def cancel(self, jobs: Sequence[Job]) -> None:
        """Stop jobs; what becomes of them is still told by `wait`."""
        ...

    def close(self) -> None:
        """Stop all that runs, and free what it has."""
        ...


@runtime_checkable
class Heeding(Protocol):
    """An engine that shares out cores and memory itself."""

    def heed(self, needs: Callable[[Name], tuple[float, int]]) -> None:
        """Go by what tasks need from now on: cores, and bytes of memory."""
        ...


@runtime_checkable
class Lingering(Protocol):
    """An engine whose jobs go on without whoever handed them in."""

    def end_strays(self, mark: str) -> None:
        """End the jobs of an earlier process of the run with this mark, so that no task runs twice at once."""
        ...
