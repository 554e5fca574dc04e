"""Who goes first when several owners have work: each gets what it has a share in, and who was away does not save up."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Generator
from heapq import heappop, heappush
from typing import Any

SLACK = 64  # entries of a queue that are out of date, before they are dropped
MOST_CHARGE = 1e6  # for one grant: with much more, what others are charged would vanish in rounding


class Turns:
    """Owners take turns, each as often as its share says: every task it gets moves it back by one over its share."""

    def __init__(self) -> None:
        self._passed: dict[str, float] = {}
        #: where the owner stood who had the last turn
        self.turn = 0.0

    def charge(self, owner: str, amount: float) -> None:
        """An owner got clients for tasks: *amount* is their number over the share of their workflow."""
        self.turn = self.place(owner)
        self._passed[owner] = self.turn + min(amount, MOST_CHARGE)

    def place(self, owner: str) -> float:
        """The position of an owner; a new or returning one starts where the others are."""
        return max(self.turn, self._passed.get(owner, self.turn))


class TurnQueue:
    """Workflows, by owner and number: owners in turn, an owner's workflows and equal owners by number.

    The first is found in O(log) of the owners. Owners who may go at once are ordered by their first workflows, the others
    by their places first; entries that are out of date are put right when they come to the front.

    >>> turns = Turns()
    >>> queue = TurnQueue(turns)
    >>> for number, owner in enumerate(("ann", "ann", "bob")):
    ...     queue.add(owner, number)
    >>> turns.charge("ann", 1.0)
    >>> list(queue)
    [2, 0, 1]
    """

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._owners: dict[int, str] = {}
        self._lines: dict[str, list[int]] = {}  # the numbers of each owner's workflows, in order
        self._front: list[tuple[int, str]] = []
        self._behind: list[tuple[float, int, str]] = []
        self._entries: set[tuple[Any, ...]] = set()

    def __len__(self) -> int:
        return len(self._owners)

    def __contains__(self, number: int) -> bool:
        return number in self._owners

    @property
    def only(self) -> int | None:
        """The number of the workflow, where there is just one."""
        return next(iter(self._owners)) if len(self._owners) == 1 else None

    def add(self, owner: str, number: int) -> None:
        """A workflow joins."""
        if number not in self._owners:
            self._owners[number] = owner
            line = self._lines.setdefault(owner, [])
            insort(line, number)
            if line[0] == number:
                self._enter(owner)

    def discard(self, number: int) -> None:
        """A workflow leaves."""
        owner = self._owners.pop(number, None)
        if owner is not None:
            line = self._lines[owner]
            del line[bisect_left(line, number)]
            if not line:
                del self._lines[owner]
            elif number < line[0]:
                self._enter(owner)
            if len(self._entries) > 4 * len(self._lines) + SLACK:
                self._enter_all()

    def copy(self) -> "TurnQueue":
        """Another queue of the same workflows, in O(log) of the owners for each of them."""
        other = TurnQueue(self._turns)
        other._owners, other._lines = self._owners.copy(), {owner: line[:] for owner, line in self._lines.items()}
        other._enter_all()
        return other

    def _enter_all(self) -> None:
        """Drop entries that are out of date."""
        for entries in (self._front, self._behind, self._entries):
            entries.clear()
        for owner in self._lines:
            self._enter(owner)

    def _enter(self, owner: str) -> None:
        """Note where an owner stands now."""
        place, first = self._turns.place(owner), self._lines[owner][0]
        if place <= self._turns.turn:
            self._push(self._front, (first, owner))
        else:
            self._push(self._behind, (place, first, owner))

    def _push(self, heap: list[Any], entry: tuple[Any, ...]) -> None:
        if entry not in self._entries:
            self._entries.add(entry)
            heappush(heap, entry)

    def __iter__(self) -> Generator[int]:
        """The workflows in turn; they may leave meanwhile."""
        rest = list[tuple[float, int, str]]()  # the next workflows of owners whose first were given
        taken = set[str]()
        try:
            while True:
                head = self._head(taken)
                if rest and (head is None or rest[0] < head):
                    head = heappop(rest)
                elif head is None:
                    return
                place, number, owner = head
                taken.add(owner)
                yield number
                line = self._lines.get(owner, [])
                at = bisect_right(line, number)
                if at < len(line):
                    heappush(rest, (place, line[at], owner))
        finally:
            for owner in taken & self._lines.keys():
                self._enter(owner)

    def _head(self, taken: set[str]) -> tuple[float, int, str] | None:
        """The first workflow of the first owner that was not taken."""
        turns, front, behind = self._turns, self._front, self._behind
        while behind and behind[0][0] <= turns.turn:
            self._renew(behind, taken)
        while front:
            first, owner = front[0]
            if self._is_first(owner, first, taken) and turns.place(owner) <= turns.turn:
                return turns.turn, first, owner
            self._renew(front, taken)
        while behind:
            place, first, owner = behind[0]
            if self._is_first(owner, first, taken) and turns.place(owner) == place:
                return behind[0]
            self._renew(behind, taken)
        return None

    def _is_first(self, owner: str, number: int, taken: set[str]) -> bool:
        return owner in self._lines and self._lines[owner][0] == number and owner not in taken

    def _renew(self, heap: list[Any], taken: set[str]) -> None:
        """Replace the first entry by where its owner stands now."""
        entry = heappop(heap)
        self._entries.remove(entry)
        owner = entry[-1]
        if owner in self._lines and owner not in taken:
            self._enter(owner)
