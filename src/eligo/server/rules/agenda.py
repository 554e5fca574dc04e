"""Who is next and when: which workflows may have tasks, whose turn it is, and when alarms and leases are due."""

from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Generator, Hashable, Iterable, Iterator, KeysView, Mapping, Sequence
from contextlib import closing
from heapq import heappop, heappush
from itertools import chain
from typing import Any

from eligo.server.rules.needs import Offer
from eligo.server.rules.outcomes import Place
from eligo.server.rules.served import Served

MOST_KINDS = 256  # kinds of requests whose queues of workflows are remembered
MOST_CHARGE = 1e6  # for one grant: with much more, the charges of other owners would vanish in rounding
SLACK = 1_000  # outdated entries of queues, and deadlines of ended leases, that are kept besides as many as there are others
#: a deadline, and the workflow and numbers of the leases that have it
Entry = tuple[float, str, Sequence[int]]


class Alarms:
    """The times at which names are due; each name has one time, the earliest that was set.

    >>> alarms = Alarms()
    >>> alarms.set("a", 3.0), alarms.set("b", 2.0), alarms.set("a", 1.0)
    (None, None, None)
    >>> alarms.due(2.0), alarms.due(9.0)
    (['a', 'b'], [])
    """

    def __init__(self) -> None:
        self._heap: list[tuple[float, str]] = []
        self._times: dict[str, float] = {}

    def set(self, name: str, at: float) -> None:
        """Make a name due at a time, unless it is due earlier."""
        if at < self._times.get(name, float("inf")):
            self._times[name] = at
            heappush(self._heap, (at, name))

    def forget(self, name: str) -> None:
        """Cancel the alarm of a name."""
        self._times.pop(name, None)

    def due(self, now: float) -> Sequence[str]:
        """Take the names that are due."""
        names = list[str]()
        while self._heap and self._heap[0][0] <= now:
            at, name = heappop(self._heap)
            if self._times.get(name) == at:
                del self._times[name]
                names.append(name)
        return names


class Turns:
    """The positions of owners, the smallest next: each task that an owner gets moves it back by one over its share."""

    def __init__(self) -> None:
        self._passed: dict[str, float] = {}
        #: the position at which the last owner had its turn
        self.turn = 0.0

    def charge(self, owner: str, amount: float) -> None:
        """Move an owner back by *amount*, the number of its tasks handed out over the share of their workflow."""
        self.turn = self.place(owner)
        self._passed[owner] = self.turn + min(amount, MOST_CHARGE)

    def place(self, owner: str) -> float:
        """The position of an owner; a new or returning one starts at the current turn, so that absence earns nothing."""
        return max(self.turn, self._passed.get(owner, self.turn))


class TurnQueue:
    """Workflows in the order of turns: by the position of the owner, then by number.

    The first is found in O(log) of the owners. Owners whose turn it is are ordered by their first workflows, the others by
    position. Outdated entries are corrected when they reach the front.

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
        """The number of the workflow if there is exactly one, else None."""
        return next(iter(self._owners)) if len(self._owners) == 1 else None

    def add(self, owner: str, number: int) -> None:
        """Add a workflow of an owner."""
        if number not in self._owners:
            self._owners[number] = owner
            line = self._lines.setdefault(owner, [])
            insort(line, number)
            if line[0] == number:
                self._enter(owner)

    def discard(self, number: int) -> None:
        """Remove a workflow."""
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
        """Drop outdated entries."""
        for entries in (self._front, self._behind, self._entries):
            entries.clear()
        for owner in self._lines:
            self._enter(owner)

    def _enter(self, owner: str) -> None:
        """Add an entry for the present position of an owner."""
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
        """The workflows in the order of turns; they may be removed meanwhile."""
        rest = list[tuple[float, int, str]]()  # the next workflows of owners whose earlier ones were yielded
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
        """The first workflow of the first owner that is not in *taken*."""
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
        """Replace the first entry by one with the present position of its owner."""
        entry = heappop(heap)
        self._entries.remove(entry)
        owner = entry[-1]
        if owner in self._lines and owner not in taken:
            self._enter(owner)


class Agenda:
    """The workflows that may have tasks, by kind of request, so that a request does not check all workflows.

    Requests have the same *kind* if the same tasks fit them. A workflow without tasks for a kind leaves the queue of that
    kind; it returns when it changes (`stir`) or its alarm is due.
    """

    def __init__(self) -> None:
        self.turns = Turns()
        self._stirred: dict[int, Served] = {}  # those that have changed since `take_stirred`
        self._numbers: dict[str, int] = {}  # of workflows, in order of arrival
        self._count = 0
        self._open: dict[int, Served] = {}  # those that may have tasks
        self._all = TurnQueue(self.turns)  # the same; the queue of a new kind of request is a copy of it
        #: those whose allocators still catch up with the execution, in slices; until then, none of their tasks is handed out
        self.behind: dict[int, Served] = {}
        self._queues: OrderedDict[Hashable, TurnQueue] = OrderedDict()
        #: by workflow, clients that got nothing though others may, with their offers: another offer may get something
        self._refused: dict[int, set[tuple[str, Offer]]] = {}
        #: when workflows may have tasks again
        self.alarms = Alarms()

    # What changes

    def stir(self, served: Served) -> None:
        """Queue a workflow that may have new tasks."""
        number = self._numbers.get(served.id)
        if number is None:
            number = self._numbers[served.id] = self._count
            self._count += 1
        if served.regrown or not served.allocator.catch_up():
            self._close(number)
            self.behind[number] = served
            return
        self.behind.pop(number, None)
        self._stirred[number] = self._open[number] = served
        self._refused.pop(number, None)
        for queue in (self._all, *self._queues.values()):
            queue.add(served.wishes.owner, number)

    def catch_up(self) -> None:
        """Let the next workflow that is behind catch up with its execution by a slice."""
        for number in [*self.behind][:1]:
            served = self.behind.pop(number)
            served.regrown = False
            self.stir(served)

    def forget(self, workflow: str) -> None:
        """Remove a workflow."""
        self.alarms.forget(workflow)
        number = self._numbers.pop(workflow, -1)
        self.behind.pop(number, None)
        self._close(number)

    def _close(self, number: int) -> None:
        """Remove a workflow from all queues until it changes."""
        for table in (self._stirred, self._open, self._refused):
            table.pop(number, None)
        for queue in (self._all, *self._queues.values()):
            queue.discard(number)

    def charge(self, served: Served, tasks: int) -> None:
        """Charge the owner of a workflow for tasks that were handed out."""
        self.turns.charge(served.wishes.owner, tasks / served.wishes.share)

    # Queues

    def queue(self, kind: Hashable) -> TurnQueue:
        """The workflows that may have tasks for requests of a kind."""
        queue = self._queues.get(kind)
        if queue is None:
            queue = self._queues[kind] = self._all.copy()
            if len(self._queues) > MOST_KINDS:
                self._queues.popitem(last=False)
        if len(self._queues) > 1:
            self._queues.move_to_end(kind)
        return queue

    def take_stirred(self, now: float, kinds: Collection[Hashable]) -> dict[Hashable, TurnQueue]:
        """The workflows with tasks that have changed since the last call, as one queue per kind."""
        stirred, self._stirred = self._stirred, {}
        if not kinds:
            return {}
        stirred = {number: served for number, served in stirred.items() if self.offers(served, now)}
        return {kind: self._queue(stirred) for kind in kinds} if stirred else {}

    def _queue(self, workflows: Mapping[int, Served]) -> TurnQueue:
        queue = TurnQueue(self.turns)
        for number, served in workflows.items():
            queue.add(served.wishes.owner, number)
        return queue

    def only(self, queues: Iterable[TurnQueue]) -> Served | None:
        """The workflow in these queues if there is exactly one, else None."""
        numbers = {queue.only for queue in queues if queue}
        number = numbers.pop() if len(numbers) == 1 else None
        return None if number is None else self._open.get(number)

    def in_turn(self, queue: TurnQueue, now: float) -> Generator[Served]:
        """The workflows of a queue that may have tasks, in the order of turns."""
        with closing(iter(queue)) as numbers:
            for number in numbers:
                served = self._open.get(number)
                if served is not None and self.offers(served, now):
                    yield served
                else:
                    queue.discard(number)

    def offers(self, served: Served, now: float) -> bool:
        """Whether a workflow may have tasks now; if not, it is skipped until it may."""
        if served.ready and served.open:
            return True
        due = served.allocator.copies_from() if served.open else None
        if due is not None and due <= now:
            return True
        if due is not None:
            self.alarms.set(served.id, due)
        number = self._numbers.get(served.id, -1)
        self._open.pop(number, None)
        self._all.discard(number)
        return False

    def may_give(self, served: Served, queue: TurnQueue, client: str, offer: Offer) -> bool:
        """Whether a workflow is in a queue and has refused nothing to a client with this offer since it changed."""
        number = self._numbers[served.id]
        return number in queue and not (number in self._refused and (client, offer) in self._refused[number])

    def refuse(self, served: Served, client: str, offer: Offer, queues: Iterable[TurnQueue], now: float) -> None:
        """Record that a client got nothing; the workflow leaves these queues unless other clients may get tasks of it."""
        allocator, number = served.allocator, self._numbers[served.id]
        for due in (allocator.due, allocator.fastest_from, copies := allocator.copies_from()):
            if due is not None and due > now:
                self.alarms.set(served.id, due)
        if allocator.is_slow(client):
            return
        if served.votes or client in served.distrusted_by or (copies is not None and copies <= now):
            self._refused.setdefault(number, set()).add((client, offer))
            return
        for queue in queues:
            queue.discard(number)


class Deadlines:
    """The deadlines of leases, one entry per grant, in a queue, since all leases have equal terms; ended leases are skipped.

    *active* returns the numbers of the active leases of a workflow.

    >>> deadlines = Deadlines(lambda workflow: {1: None, 3: None}.keys())
    >>> deadlines.add("w", range(1, 4), 10.0)
    >>> deadlines.renew(("w", 1), 15.0)
    >>> list(deadlines.late(9.0)), list(deadlines.late(10.0))
    ([], [('w', 3)])
    """

    def __init__(self, active: Callable[[str], KeysView[int]]) -> None:
        self._active = active
        self._queue: deque[Entry] = deque()
        self._noted = self._dropped = 0
        self._renewed: dict[Place, float] = {}  # the deadlines of renewed leases

    def add(self, workflow: str, numbers: Sequence[int], until: float) -> None:
        """Add leases with their deadline."""
        self._queue.append((until, workflow, numbers))
        self._noted += len(numbers)

    def renew(self, place: Place, until: float) -> None:
        """Extend the deadline of a lease."""
        self._renewed[place] = until
        self.add(place[0], [place[1]], until)

    def drop(self, workflow: str, numbers: Sequence[int]) -> None:
        """Remove ended leases."""
        for number in numbers if self._renewed else ():
            self._renewed.pop((workflow, number), None)
        self._dropped += len(numbers)
        if 2 * self._dropped > self._noted + SLACK:
            self._tidy(0.0)

    def shift(self, seconds: float) -> None:
        """Move all deadlines by the seconds in which the server was stalled."""
        self._renewed = {place: until + seconds for place, until in self._renewed.items()}
        self._tidy(seconds)

    def forget(self, workflow: str) -> None:
        """Remove the leases of a workflow."""
        self._queue = deque(entry for entry in self._queue if entry[1] != workflow)
        self._renewed = {place: until for place, until in self._renewed.items() if place[0] != workflow}

    def late(self, now: float) -> Iterator[Place]:
        """The overdue leases; the caller must drop each before it requests the next one."""
        while self._queue and self._queue[0][0] <= now:
            numbers = self._queue[0][2]
            yield from self._of(self._queue[0])
            if self._queue and self._queue[0][2] is numbers:  # else `_tidy` has removed it meanwhile
                self._queue.popleft()

    def __iter__(self) -> Iterator[Place]:
        """Every active lease."""
        return chain.from_iterable(map(self._of, self._queue))

    def _of(self, entry: Entry) -> Iterator[Place]:
        until, workflow, numbers = entry
        for number in numbers:
            place = workflow, number
            if number in self._active(workflow) and self._renewed.get(place, until) == until:
                yield place

    def _tidy(self, later: float) -> None:
        """Remove the grants without active leases, and move the other deadlines by *later* seconds."""
        entries = [entry for entry in self._queue if not self._active(entry[1]).isdisjoint(entry[2])]
        self._queue = deque((until + later, workflow, numbers) for until, workflow, numbers in entries)
        self._noted, self._dropped = sum(len(numbers) for _, _, numbers in entries), 0
