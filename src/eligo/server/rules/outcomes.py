"""The outcomes of ended leases: recent ones in memory, all of them in the store.

The rules never wait for a disk. If they need older outcomes, they raise `ForgottenError` before they change anything. The
caller reads the outcomes, where it may wait, and calls again.
"""

from array import array
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain

from eligo.stores.service import FileRow
from eligo.stores.service_sql import ServiceStore
from eligo.work.attempts import Attempt

#: the first 64 bits of the digest of each task's accepted result; 0 if there is none
Digests = array  # of "Q"
#: a workflow, and the number of a lease or of a task
Place = tuple[str, int]
MOST_REMEMBERED = 2**20  # maximum number of tasks of ended workflows whose digests are in memory


class ForgottenError(Exception):
    """Something must be read from the store first; nothing was changed."""


@dataclass(slots=True)
class Lacking:
    """The data to read: outcomes of leases, digests of workflows, and files of workflows by name."""

    ends: set[Place] = field(default_factory=set)
    digests: set[str] = field(default_factory=set)
    files: set[tuple[str, str]] = field(default_factory=set)


@dataclass(slots=True)
class Past:
    """Data that were read; *at* is the number of leases that had ended by then."""

    at: int = 0
    ends: dict[Place, Attempt | None] = field(default_factory=dict)
    digests: "dict[str, Digests[int]]" = field(default_factory=dict)
    files: dict[tuple[str, str], FileRow | None] = field(default_factory=dict)


#: nothing was read
UNKNOWN = Past()


@dataclass(frozen=True, slots=True)
class Archive:
    """Reads outcomes that are no longer in memory from the store."""

    end: Callable[[str, int], Attempt | None] = lambda workflow, number: None
    digests: Callable[[str], Iterable[tuple[int, str | None]]] = lambda workflow: ()
    file: Callable[[str, str], FileRow | None] = lambda workflow, name: None

    @classmethod
    def of(cls, store: ServiceStore) -> "Archive":
        """The archive of a store."""
        return cls(store.outcome, store.accepted, store.file)

    def read(self, lacking: Lacking, before: Past, at: int) -> Past:
        """Read lacking data and add them to those read *before*; runs in a thread that may wait."""
        ends = before.ends | {place: self.end(*place) for place in lacking.ends}
        files = before.files | {place: self.file(*place) for place in lacking.files}
        return Past(at, ends, {workflow: gather_digests(self.digests(workflow)) for workflow in lacking.digests}, files)


class Recent:
    """The outcomes of recent leases in two generations; the older one is dropped as a whole.

    >>> recent = Recent()
    >>> recent.add([Attempt("w", number, 0, 1, "ann", "", 0.0, 1.0, "accepted") for number in range(3)])
    >>> recent.age(3), ("w", 2) in recent, recent.get(("w", 5))
    (None, True, None)
    """

    def __init__(self) -> None:
        self._new: dict[Place, Attempt] = {}
        self._old: dict[Place, Attempt] = {}

    def add(self, ends: Iterable[Attempt]) -> None:
        """Add outcomes."""
        self._new.update([(end[:2], end) for end in ends])

    def age(self, most: int) -> None:
        """Drop the older generation once the newer one has *most* outcomes, and start a new one."""
        if len(self._new) >= most:
            self._old, self._new = self._new, {}

    def get(self, place: Place) -> Attempt | None:
        """The outcome of a lease, if in memory."""
        return self._new.get(place) or self._old.get(place)

    def of(self, workflow: str) -> Iterator[Attempt]:
        """The outcomes of the leases of a workflow."""
        attempts = chain((end for place, end in self._old.items() if place not in self._new), self._new.values())
        return (end for end in attempts if end.workflow == workflow)

    def forget(self, workflow: str) -> None:
        """Drop the outcomes of a workflow."""
        for table in (self._old, self._new):
            for place in [place for place in table if place[0] == workflow]:
                del table[place]

    def __contains__(self, place: Place) -> bool:
        return place in self._new or place in self._old


class Remembered:
    """The digests of the workflows that ended last, to compare late results with."""

    def __init__(self) -> None:
        self._digests: OrderedDict[str, Digests[int]] = OrderedDict()
        self._size = 0

    def add(self, workflow: str, digests: "Digests[int]") -> None:
        """Add the digests of a workflow that has ended; the oldest ones may be dropped."""
        self.forget(workflow)
        self._digests[workflow] = digests
        self._size += len(digests)
        while self._size > MOST_REMEMBERED and len(self._digests) > 1:
            self._size -= len(self._digests.popitem(last=False)[1])

    def get(self, workflow: str) -> "Digests[int] | None":
        """The digests of a workflow, if in memory."""
        return self._digests.get(workflow)

    def forget(self, workflow: str) -> None:
        """Drop the digests of a workflow."""
        self._size -= len(self._digests.pop(workflow, ()))


def blank(tasks: int) -> "Digests[int]":
    """The digests of a workflow without accepted results."""
    return array("Q", bytes(8 * tasks))


@lru_cache(maxsize=1024)  # often all tasks have the same digest
def short(digest: str | None) -> int:
    """A digest as a number of 64 bits.

    >>> short("0000000000000010ff"), short("0" * 32), short(None)
    (16, 1, 0)
    """
    return 0 if digest is None else int(digest[:16], 16) or 1


def is_of_files(digest: int) -> bool:
    """Whether a digest, as a number, was computed from files rather than from output."""
    return bool(digest >> 63)


def gather_digests(accepted: Iterable[tuple[int, str | None]]) -> "Digests[int]":
    """The digests of accepted results, from pairs of task and digest.

    >>> gather_digests([(2, "0" * 15 + "7"), (0, None)]).tolist()
    [0, 0, 7]
    """
    digests = array("Q")
    for task, digest in accepted:
        note(digests, task, digest)
    return digests


def note(digests: "Digests[int]", task: int, digest: str | None) -> None:
    """Set the digest of a task."""
    if task >= len(digests):
        digests.frombytes(bytes(8 * (task + 1 - len(digests))))
    digests[task] = short(digest)
