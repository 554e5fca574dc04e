"""Requests for work and the tasks granted: the types that clients, allocators, simulations and servers share."""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from eligo.errors import InputError, is_amount, whole_size
from eligo.execution import Execution
from eligo.names import Name

SLOWEST = 1e-6  # of the mean speed: every client gets some work
#: whether a client can run a task
Fits = Callable[[Name], bool]
#: the bytes of a task's inputs that a client already has
Saves = Callable[[Name], int]


class NothingFits(Exception):  # noqa: N818 - an answer, not an error
    """Raised by the function `fits` of an ask: neither this task nor any later one fits."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A request of a client for work.

    >>> Ask("ann", size=3)
    Ask(client='ann', size=3, seconds=None, speed=None, fits=None, modest=False, saves=None)
    """

    client: Hashable = None
    #: the number of tasks, to be run one after another
    size: int = 1
    #: the seconds of work that it wants, instead of a size
    seconds: float | None = None
    #: its speed as a share of the mean; None: estimated from its results
    speed: float | None = None
    #: whether it can run a task, by its cores and memory, or `NothingFits`; None: it can run all
    fits: Fits | None = None
    #: whether it should get the least urgent tasks
    modest: bool = False
    #: the bytes of a task's inputs that it already has; None: unknown, or irrelevant
    saves: Saves | None = None

    def __post_init__(self) -> None:
        if type(self.size) is not int or self.size < 1:
            object.__setattr__(self, "size", whole_size(self.size))
        if self.seconds is not None and (not is_amount(self.seconds) or not self.seconds):
            raise InputError(f"seconds must be positive, got {self.seconds!r}")
        if self.speed is not None and not is_amount(self.speed):
            raise InputError(f"speed must be a non-negative number, got {self.speed!r}")
        if self.fits is not None and not callable(self.fits):
            raise InputError(f"fits must be a function of a task, got {self.fits!r}")
        try:
            hash(self.client)
        except TypeError:
            raise InputError(f"a client must be hashable, got {self.client!r}") from None

    @property
    def work(self) -> float | None:
        """The seconds of work to give it at the mean speed: fewer for a slow client."""
        if self.seconds is None:
            return None
        return self.seconds * (1.0 if self.speed is None else max(self.speed, SLOWEST))

    @property
    def bytes_kept(self) -> Saves | None:
        """`saves` if it affects the choice: for a single task of a client that is not modest; else None."""
        return self.saves if self.size == 1 and self.seconds is None and not self.modest else None

    def admits(self, task: Name) -> bool:
        """Whether the client can run a task."""
        try:
            return self.fits is None or self.fits(task)
        except NothingFits:
            return False


def whole_seed(seed: object) -> int:
    """The argument as a seed of 64 bits. Raises `InputError` unless it is a non-negative integer."""
    if type(seed) is not int or seed < 0:
        raise InputError(f"seed must be a non-negative integer, got {seed!r}")
    return seed % 2**64


@dataclass(frozen=True, slots=True)
class Grant:
    """The tasks that a client gets, in the order in which it can run them, and the reason in one sentence.

    No task in it depends on the work of another client. The execution has already handed out the tasks.
    """

    ask: Ask
    tasks: tuple[Name, ...]
    why: str


class Allocator(Protocol):
    """Chooses the tasks for each client and takes them from the execution."""

    execution: Execution

    def hand_out(self, asks: Sequence[Ask]) -> list[Grant]:
        """The grants for these asks, served in order; an ask without a task gets no grant and keeps its place.

        Among clients with `saves`, one that already has more of a task's inputs may be served before an earlier one.
        Moves of tasks since the last call are read from the execution's journal.
        """
        ...


def answer(allocator: Allocator, asks: Sequence[Ask], adjusted: Sequence[Ask]) -> list[Grant]:
    """The grants of an allocator for the adjusted asks, each with its original ask."""
    waiting: dict[int, list[Ask]] = {}
    for ask, adjusted_ask in zip(asks, adjusted, strict=True):
        waiting.setdefault(id(adjusted_ask), []).append(ask)
    grants = []
    for grant in allocator.hand_out(adjusted):
        ask = waiting[id(grant.ask)].pop(0)
        grants.append(grant if grant.ask is ask else replace(grant, ask=ask))
    return grants


def unserved(queue: Sequence[Ask], grants: Sequence[Grant]) -> list[Ask]:
    """The asks without a grant; the same ask may be in the queue several times."""
    if len(grants) == len(queue):
        return []
    served = Counter(id(grant.ask) for grant in grants)
    waiting = []
    for ask in queue:
        served[id(ask)] -= 1
        if served[id(ask)] < 0:
            waiting.append(ask)
    return waiting


class Refusals:
    """The asks that got no task in one call, so that equal ones need not be tried."""

    def __init__(self) -> None:
        self._barren: set[tuple[int, bool]] = set()

    def covers(self, ask: Ask) -> bool:
        """Whether an ask like this one got no task."""
        return (id(ask.fits), ask.modest) in self._barren

    def note(self, ask: Ask) -> None:
        """Record that an ask got no task."""
        self._barren.add((id(ask.fits), ask.modest))


class all_or_none:  # noqa: N801 - used as a verb; a class, since a generator's way in and out costs as much as a choice
    """Return the tasks of all grants made so far if an error occurs before they are delivered."""

    __slots__ = ("_execution", "_grants")

    def __init__(self, execution: Execution, grants: list[Grant]) -> None:
        self._execution, self._grants = execution, grants

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is not None:
            for grant in self._grants:
                self._execution.give_up(*grant.tasks)
