"""Requests: who asks is answered as soon as something is ready for it."""

import secrets
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Literal, NamedTuple

from eligo.allocating import Ask
from eligo.server.asking import Granted, Request, Ticket
from eligo.server.books import Books
from eligo.server.clients import Client
from eligo.server.served import Served
from eligo.server.sharing import Turns
from eligo.stores.serving import Lease

MOST_KEYS = 20_000  # requests whose keys are remembered though what they got has come back
INFINITE = float("inf")
OVER = 5.0  # seconds that a client stays away that has all it may have


class Secrets:
    """Words that nobody can guess, of 64 bits each; the system is asked for many at a time."""

    def __init__(self) -> None:
        self._words: list[str] = []

    def next(self) -> str:
        """Another one."""
        if not self._words:
            found = secrets.token_hex(8 * 512)
            self._words = [found[i : i + 16] for i in range(0, len(found), 16)]
        return self._words.pop()


class Got(NamedTuple):
    """What a request got, by numbers only: whatever has come back must not stay in memory because of it."""

    workflow: str
    numbers: range
    why: str


class Requests:
    """Those who wait for work, the first come first, and what requests got."""

    def __init__(self, books: Books) -> None:
        self.books = books
        #: "pause" where nothing new is handed out for now, "stop" where nothing ever is
        self.draining: Literal["pause", "stop"] | None = None
        self._keys: OrderedDict[tuple[str, str], list[Got]] = OrderedDict()  # what each request got
        self.waiting: dict[Ticket, None] = {}
        self._fresh: dict[Ticket, None] = {}
        self._asked: dict[tuple[str, str], Ticket] = {}  # those who wait, by client and key
        self._replaced: list[Ticket] = []  # those whose clients have asked again under the same key
        self._secrets = Secrets()
        self._soonest = INFINITE  # when the first of those who wait gives up
        self._shares = Turns()

    def recall(self, served: Served) -> None:
        """What clients have of a workflow that is gone on with, they got as answers to requests."""
        grants: dict[tuple[str, str, int], list[Lease]] = {}
        for lease in served.leases.values():
            grants.setdefault((lease.client, lease.key, lease.first), []).append(lease)
        for (client, key, _), leases in grants.items():
            numbers = range(leases[0].number, leases[-1].number + 1)
            self._keys.setdefault((client, key), []).append(Got(served.id, numbers, "it was handed out before"))

    def forget(self, workflow: str) -> None:
        """What requests got of a workflow that another server holds now, they may ask for there."""
        for key, grants in [*self._keys.items()]:
            left = [got for got in grants if got.workflow != workflow]
            if not left:
                del self._keys[key]
            elif len(left) < len(grants):
                self._keys[key] = left

    def hurry(self, now: float) -> None:
        """Let nobody wait any longer: there may be something elsewhere."""
        for ticket in self.waiting:
            ticket.until = min(ticket.until, now)
        self._soonest = now

    def ask(self, now: float, client: Client, key: str, request: Request) -> Ticket:
        """A client asks for work; `serve` answers. The same key again gets what it got before."""
        self.books.now = client.seen = now
        ticket = Ticket(client, key, request, now + min(request.wait, self.books.terms.longest_wait))
        client.cores = request.cores
        if (client.id, key) in self._keys:
            ticket.grants = [again for got in self._keys[client.id, key] if (again := self._still_out(got)) is not None]
        elif self.draining:
            self._dismiss(ticket)
        elif not client.room(now):
            ticket.away = max(client.paused - now, OVER) if client.approved else OVER
        else:
            self._queue(ticket)
        return ticket

    def _queue(self, ticket: Ticket) -> None:
        """A request waits; one that waits under the same key gets nothing: its client would get twice as much."""
        older = self._asked.setdefault((ticket.client.id, ticket.key), ticket)
        if older is not ticket:
            self.withdraw(older)
            self._replaced.append(older)
            self._asked[ticket.client.id, ticket.key] = ticket
        self._fresh[ticket] = None

    def pending(self, ticket: Ticket) -> bool:
        """Whether a request waits for its answer."""
        return ticket in self._fresh or ticket in self.waiting

    def withdraw(self, ticket: Ticket) -> None:
        """Whoever asked is gone, or has its answer."""
        self._fresh.pop(ticket, None)
        self.waiting.pop(ticket, None)
        newest = self._asked.pop((ticket.client.id, ticket.key), ticket)
        if newest is not ticket:
            self._asked[ticket.client.id, ticket.key] = newest

    def serve(self, now: float) -> list[Ticket]:
        """Answer those who wait, the first come first, as far as anything is ready; those whose time is over get nothing."""
        books = self.books
        books.now = now
        for served in books.served.values():
            if served.later and served.later[0][0] <= now:
                served.try_again(now)
                books.after(served)
        queue = [*self.waiting, *self._fresh] if books.awake or self._copies_due() else list(self._fresh)
        self.waiting.update(self._fresh)
        self._soonest = min(self._soonest, *(ticket.until for ticket in self._fresh), INFINITE)
        self._fresh, books.awake = {}, False
        if queue and not self.draining:
            self._answer(queue)
        over = [ticket for ticket in queue if ticket.grants] + self._late(now) + self._replaced
        self._replaced = []
        for ticket in over:
            self.withdraw(ticket)
        return over

    def _late(self, now: float) -> list[Ticket]:
        """Those who wait no longer; when nothing more is handed out, that is everybody."""
        if now < self._soonest and not self.draining:
            return []
        late = [ticket for ticket in self.waiting if not ticket.grants and (self.draining or ticket.until <= now)]
        for ticket in late:
            if self.draining:
                self._dismiss(ticket)
        self._soonest = min((ticket.until for ticket in self.waiting if ticket.until > now), default=INFINITE)
        return late

    def _dismiss(self, ticket: Ticket) -> None:
        ticket.stop = ticket.client.dismissed = self.draining == "stop"
        ticket.away = OVER

    def _copies_due(self) -> bool:
        return any(
            (due := one.allocator.due) is not None and due <= self.books.now for one in self.books.served.values()
        )

    def _answer(self, queue: list[Ticket]) -> None:
        able = [served for served in self.books.served.values() if served.open and (served.ready or served.holding)]
        if len(able) == 1:
            self._grant(able[0], queue)
            return
        for ticket in queue:
            for served in self._shares.in_turn(able):
                self._grant(served, [ticket])
                if ticket.grants:
                    break

    def _grant(self, served: Served, tickets: Sequence[Ticket]) -> None:
        """Whatever a workflow has for these, all together."""
        waiting: dict[int, deque[Ticket]] = {}  # by what they ask for, which several may do alike
        queue = list[Ask]()
        promised: dict[str, int] = {}  # tasks, to clients with several requests
        for ticket in tickets:
            client = ticket.client.id
            for ask in self._asks(served, ticket, promised.get(client, 0)):
                waiting.setdefault(id(ask), deque()).append(ticket)
                queue.append(ask)
                promised[client] = promised.get(client, 0) + ask.size
        grants, wall = served.hand_out(queue), self.books.wall
        for grant in grants:
            ticket = waiting[id(grant.ask)].popleft()
            leases = served.lease(grant.tasks, ticket.client.id, self._secrets.next(), ticket.key, wall)
            ticket.grants.append(Granted(served, leases, grant.why))
            self._lend(ticket, leases)
            self._shares.charge(served, len(leases))
        if grants:
            self.books.touch(served)

    def _asks(self, served: Served, ticket: Ticket, promised: int) -> list[Ask]:
        """What a client asks of a workflow, no more than it may have."""
        request, client = ticket.request, ticket.client
        room = max(0, client.room(self.books.now) - promised)
        size = request.size if request.seconds is None else served.tasks_in(client.id, request.seconds)
        if served.wishes.quorum > 1:
            size = 1  # what waits for others to agree cannot be built upon
        grants = min(request.grants, room // max(1, min(size, room)) if room else 0)
        return [served.ask(client.id, min(size, room), request.cores, request.memory)] * grants if grants else []

    def _lend(self, ticket: Ticket, leases: list[Lease]) -> None:
        numbers = range(leases[0].number, leases[-1].number + 1)
        self.books.due.add(leases[0].workflow, numbers, self.books.until)
        ticket.client.holds += len(leases)
        self.books.changes.leases += leases
        got = Got(leases[0].workflow, numbers, ticket.grants[-1].why)
        self._keys.setdefault((ticket.client.id, ticket.key), []).append(got)
        while len(self._keys) > MOST_KEYS and self._forgets_oldest():
            pass

    def _forgets_oldest(self) -> bool:
        """Forget the oldest request, unless something of it is out."""
        key, grants = self._keys.popitem(last=False)
        if any(self._still_out(got) is not None for got in grants):
            self._keys[key] = grants
            return False
        return True

    def _still_out(self, got: Got) -> Granted | None:
        """What of a grant its client still has; None: nothing."""
        served = self.books.served.get(got.workflow)
        leases = [] if served is None else [served.leases[i] for i in got.numbers if i in served.leases]
        return Granted(served, leases, got.why) if served is not None and leases else None
