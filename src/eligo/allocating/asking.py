"""Who asks for work and who gets what: the words that clients, allocators, simulations and servers share."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from operator import index
from typing import Protocol

from eligo.errors import InputError, is_amount
from eligo.execution import Execution
from eligo.names import Name

SLOWEST = 1e-6  # of the mean speed: nobody gets no work at all
#: whether a client can run a task
Fits = Callable[[Name], bool]
#: how many bytes of what a task reads a client has
Saves = Callable[[Name], int]


@dataclass(frozen=True, slots=True)
class Ask:
    """A client that asks for work.

    >>> Ask("ann", size=3)
    Ask(client='ann', size=3, seconds=None, speed=None, fits=None, modest=False, saves=None)
    """

    client: Hashable = None
    #: how many tasks, to be run one after another
    size: int = 1
    #: how long it wants to be busy, instead of a size
    seconds: float | None = None
    #: how fast it is, as a share of the mean; None: as its own past tells
    speed: float | None = None
    #: which tasks it can run, as its cores and its memory allow; None: all
    fits: Fits | None = None
    #: whether it had better get what others wait for least
    modest: bool = False
    #: how many bytes of what a task reads the client has already; None: that is not known, or does not matter
    saves: Saves | None = None

    def __post_init__(self) -> None:
        if type(self.size) is not int or self.size < 1:
            object.__setattr__(self, "size", whole_size(self.size))
        if self.seconds is not None and (not is_amount(self.seconds) or not self.seconds):
            raise InputError(f"a client is busy for some time, and {self.seconds!r} seconds are none")
        if self.speed is not None and not is_amount(self.speed):
            raise InputError(f"a speed is a share of the mean, and {self.speed!r} is none")
        if self.fits is not None and not callable(self.fits):
            raise InputError(f"what fits is told by a function of a task, and {self.fits!r} is none")
        try:
            hash(self.client)
        except TypeError:
            raise InputError(f"a client is called by something hashable, and {self.client!r} is not") from None

    @property
    def work(self) -> float | None:
        """The seconds of work that keep it busy: fewer for a slow client."""
        if self.seconds is None:
            return None
        return self.seconds * (1.0 if self.speed is None else max(self.speed, SLOWEST))

    @property
    def bytes_kept(self) -> Saves | None:
        """What it `saves`, where that decides: for a single task of a client that is not modest."""
        return self.saves if self.size == 1 and self.seconds is None and not self.modest else None

    def admits(self, task: Name) -> bool:
        """Whether its client can run a task."""
        return self.fits is None or self.fits(task)


def whole_size(size: object) -> int:
    """A size in tasks, if it is one."""
    try:
        whole = None if isinstance(size, bool) else index(size)  # type: ignore[arg-type]
    except TypeError:
        whole = None
    if whole is None or whole < 1:
        raise InputError(f"a client asks for a whole number of tasks, at least 1, and {size!r} is no such number")
    return whole


def whole_seed(seed: object) -> int:
    """A seed, if it is one."""
    if type(seed) is not int or seed < 0:
        raise InputError(f"a seed is a whole number that is not negative, and {seed!r} is none")
    return seed % 2**64


@dataclass(frozen=True, slots=True)
class Grant:
    """What a client gets: tasks in the order in which it can run them, and why these, in one plain sentence.

    Nothing in it waits for another client's work. The execution has handed the tasks out already.
    """

    ask: Ask
    tasks: tuple[Name, ...]
    why: str


class Allocator(Protocol):
    """Decides who gets what, and takes it from the execution."""

    execution: Execution

    def hand_out(self, asks: Sequence[Ask]) -> list[Grant]:
        """What those who ask get, those who asked first served first; who gets nothing has no grant and keeps its place.

        Of clients that say what they save, one that has more of what a task reads may come before one that asked sooner.
        What became of tasks since, whoever moved them, is read from the execution's journal.
        """
        ...


class Refusals:
    """The asks that found nothing while nothing changed, so that others like them are not looked at."""

    def __init__(self) -> None:
        self._barren: set[tuple[int, bool]] = set()

    def covers(self, ask: Ask) -> bool:
        """Whether an ask like this one found nothing."""
        return (id(ask.fits), ask.modest) in self._barren

    def note(self, ask: Ask) -> None:
        """An ask found nothing."""
        self._barren.add((id(ask.fits), ask.modest))


class all_or_none:  # noqa: N801 - used as a verb; a class, since a generator's way in and out costs as much as a choice
    """Where something goes wrong while grants are made, those made so far come back: nobody will hear of them."""

    __slots__ = ("_execution", "_grants")

    def __init__(self, execution: Execution, grants: list[Grant]) -> None:
        self._execution, self._grants = execution, grants

    def __enter__(self) -> None:
        """Nothing went wrong yet."""

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is not None:
            for grant in self._grants:
                self._execution.give_up(*grant.tasks)
