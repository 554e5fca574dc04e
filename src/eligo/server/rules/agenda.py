"""Which workflows may have something for clients, and when others will: nobody looks at all that is served."""

from collections import OrderedDict
from collections.abc import Collection, Generator, Hashable, Iterable, Mapping, Sequence
from contextlib import closing
from heapq import heappop, heappush

from eligo.server.rules.needs import Offer
from eligo.server.rules.served import Served
from eligo.server.rules.shares import TurnQueue, Turns

MOST_KINDS = 256  # kinds of requests for which it is remembered what has nothing for them


class Alarms:
    """When to look at things again, by their names: the first time that was set for each counts.

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
        """Something is due then, unless it is before."""
        if at < self._times.get(name, float("inf")):
            self._times[name] = at
            heappush(self._heap, (at, name))

    def forget(self, name: str) -> None:
        """Something is not looked at again."""
        self._times.pop(name, None)

    def due(self, now: float) -> Sequence[str]:
        """What is due, each once."""
        names = list[str]()
        while self._heap and self._heap[0][0] <= now:
            at, name = heappop(self._heap)
            if self._times.get(name) == at:
                del self._times[name]
                names.append(name)
        return names


class Agenda:
    """Workflows by what may be had of them.

    Requests of one *kind* are those that the same tasks fit. A workflow that has nothing for a kind leaves the queue of that
    kind; it comes back when it changes (`stir`), or when its time comes (`alarm`).
    """

    def __init__(self) -> None:
        self.turns = Turns()
        self._stirred: dict[int, Served] = {}  # those that have changed since those who wait were looked at
        self._numbers: dict[str, int] = {}  # of workflows, as they came
        self._count = 0
        self._open: dict[int, Served] = {}  # those that may have something for somebody
        self._all = TurnQueue(self.turns)  # the same, of which the queue of a new kind is a copy
        #: those whose allocators have much to follow, a slice at a time: nothing is handed out of them before that is done
        self.behind: dict[int, Served] = {}
        self._queues: OrderedDict[Hashable, TurnQueue] = OrderedDict()
        #: clients that got nothing though others may, each with what it offered: another offer may get something
        self._refused: dict[int, set[tuple[str, Offer]]] = {}
        #: when workflows will have something
        self.alarms = Alarms()

    # What changes

    def stir(self, served: Served) -> None:
        """A workflow may have something now that it had not before."""
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
        """Let the next workflow that is behind follow its execution by a slice."""
        for number in [*self.behind][:1]:
            served = self.behind.pop(number)
            served.regrown = False
            self.stir(served)

    def forget(self, workflow: str) -> None:
        """A workflow is served no longer."""
        self.alarms.forget(workflow)
        number = self._numbers.pop(workflow, -1)
        self.behind.pop(number, None)
        self._close(number)

    def _close(self, number: int) -> None:
        """A workflow has nothing for anybody for now."""
        for table in (self._stirred, self._open, self._refused):
            table.pop(number, None)
        for queue in (self._all, *self._queues.values()):
            queue.discard(number)

    def charge(self, served: Served, tasks: int) -> None:
        """An owner got clients for tasks of a workflow."""
        self.turns.charge(served.wishes.owner, tasks / served.wishes.share)

    # What may be had

    def queue(self, kind: Hashable) -> TurnQueue:
        """The workflows that may have something for requests of a kind."""
        queue = self._queues.get(kind)
        if queue is None:
            queue = self._queues[kind] = self._all.copy()
            if len(self._queues) > MOST_KINDS:
                self._queues.popitem(last=False)
        if len(self._queues) > 1:
            self._queues.move_to_end(kind)
        return queue

    def take_stirred(self, now: float, kinds: Collection[Hashable]) -> dict[Hashable, TurnQueue]:
        """The workflows that have changed since this was asked before and have something, for each of some kinds."""
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
        """The workflow that is in some queues, where there is just one."""
        numbers = {queue.only for queue in queues if queue}
        number = numbers.pop() if len(numbers) == 1 else None
        return None if number is None else self._open.get(number)

    def in_turn(self, queue: TurnQueue, now: float) -> Generator[Served]:
        """The workflows of a queue that may have tasks, in their turn."""
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
        """A client got nothing of a workflow, which leaves the queues of its kind unless others of that kind may get some."""
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
