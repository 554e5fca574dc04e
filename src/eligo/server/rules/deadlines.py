"""When leases end: all last equally long, so the first that was given or renewed is the first to end."""

from collections import deque
from collections.abc import Callable, Iterator, KeysView, Sequence
from itertools import chain

from eligo.server.rules.outcomes import Place

#: until when, of which workflow, the numbers of which leases
Entry = tuple[float, str, Sequence[int]]
SLACK = 1_000  # leases that may be noted though they are no more, beside as many as there are


class Deadlines:
    """The ends of leases, noted together with those of the same grant; what came back is passed over when its turn comes.

    *out* gives the numbers of the leases of a workflow that are out.

    >>> known = Deadlines(lambda workflow: {1: None, 3: None}.keys())
    >>> known.add("w", range(1, 4), 10.0)
    >>> known.renew(("w", 1), 15.0)
    >>> list(known.late(9.0)), list(known.late(10.0))
    ([], [('w', 3)])
    """

    def __init__(self, out: Callable[[str], KeysView[int]]) -> None:
        self._out = out
        self._queue: deque[Entry] = deque()
        self._noted = self._dropped = 0
        self._renewed: dict[Place, float] = {}  # until when, of those that were

    def add(self, workflow: str, numbers: Sequence[int], until: float) -> None:
        """Leases are given."""
        self._queue.append((until, workflow, numbers))
        self._noted += len(numbers)

    def renew(self, place: Place, until: float) -> None:
        """A lease is good for longer."""
        self._renewed[place] = until
        self.add(place[0], [place[1]], until)

    def drop(self, workflow: str, numbers: Sequence[int]) -> None:
        """Drop leases."""
        for number in numbers if self._renewed else ():
            self._renewed.pop((workflow, number), None)
        self._dropped += len(numbers)
        if 2 * self._dropped > self._noted + SLACK:
            self._tidy(0.0)

    def shift(self, seconds: float) -> None:
        """All end so much later, as so much time has passed unseen."""
        self._renewed = {place: until + seconds for place, until in self._renewed.items()}
        self._tidy(seconds)

    def forget(self, workflow: str) -> None:
        """Drop the leases of a workflow."""
        self._queue = deque(entry for entry in self._queue if entry[1] != workflow)
        self._renewed = {place: until for place, until in self._renewed.items() if place[0] != workflow}

    def late(self, now: float) -> Iterator[Place]:
        """The leases that should have ended by now, one after another, each to be dropped before the next is asked for."""
        while self._queue and self._queue[0][0] <= now:
            numbers = self._queue[0][2]
            yield from self._of(self._queue[0])
            if self._queue and self._queue[0][2] is numbers:  # else it was tidied away meanwhile
                self._queue.popleft()

    def __iter__(self) -> Iterator[Place]:
        """Every lease that is."""
        return chain.from_iterable(map(self._of, self._queue))

    def _of(self, entry: Entry) -> Iterator[Place]:
        until, workflow, numbers = entry
        for number in numbers:
            place = workflow, number
            if number in self._out(workflow) and self._renewed.get(place, until) == until:
                yield place

    def _tidy(self, later: float) -> None:
        """Forget the grants of which nothing is out."""
        entries = [entry for entry in self._queue if not self._out(entry[1]).isdisjoint(entry[2])]
        self._queue = deque((until + later, workflow, numbers) for until, workflow, numbers in entries)
        self._noted, self._dropped = sum(len(numbers) for _, _, numbers in entries), 0
