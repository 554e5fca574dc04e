"""Requests of clients for work: what they ask for, how they wait, and the grants that answer them."""

import secrets
from collections import OrderedDict, deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush, merge
from itertools import count, islice, starmap
from math import inf
from typing import Literal, NamedTuple

from eligo.allocating import Ask
from eligo.allocating.asks import Fits
from eligo.server.rules.agenda import Alarms, TurnQueue
from eligo.server.rules.clients import Client
from eligo.server.rules.needs import Offer
from eligo.server.rules.served import Served
from eligo.server.rules.state import Books
from eligo.server.schema import AskWords
from eligo.work.attempts import Lease

MOST_KEYS = 20_000  # requests whose keys are remembered after their leases have ended
SLACK = 100  # outdated entries of `_ends` that are tolerated, besides one per waiting request
MOST_OFFERS = 16  # maximum number of different waiting offers of one client: each is tried at every change
OVER = 5.0  # seconds that a client stays away if its request may not wait


class Granted(NamedTuple):
    """A grant: leases in an order in which their tasks can run, and why these tasks were chosen."""

    served: Served
    leases: list[Lease]
    why: str


@dataclass(slots=True, eq=False)
class Ticket:
    """A request, and its answer as far as there is one."""

    client: Client
    key: str
    request: AskWords
    #: when it times out
    until: float
    #: decides which tasks fit; requests with the same offer are treated alike
    offer: Offer
    #: prefixes of the hashes of files that the client has
    files: frozenset[str]
    #: requests are answered in this order
    number: int = 0
    grants: list[Granted] = field(default_factory=list)
    #: seconds until the client should call again
    away: float = 0.0
    #: whether all work is finished
    stop: bool = False


def offer_of(client: Client, request: AskWords) -> Offer:
    """The offer of a request; an operator's tags count as labels."""
    memory = inf if request.memory is None else request.memory
    return Offer(request.cores, memory, frozenset((*request.labels, *client.tags)))


def _new_secrets() -> Iterator[str]:
    """Unguessable 64-bit secrets, drawn from the system in batches."""
    while True:
        digits = secrets.token_hex(8 * 512)
        yield from [digits[i : i + 16] for i in range(0, len(digits), 16)]


class PastGrant(NamedTuple):
    """The answer to an earlier request, by lease numbers only, so that ended leases can be freed."""

    workflow: str
    numbers: range
    why: str


class Requests:
    """The requests that wait for work, in order of arrival, and the grants of answered requests."""

    def __init__(self, books: Books) -> None:
        self.books = books
        #: "drain" if an operator stops new assignments, "pause" if the server shuts down, "stop" if all work is finished
        self.draining: Literal["drain", "pause", "stop"] | None = None
        self._keys: OrderedDict[tuple[str, str], list[PastGrant]] = OrderedDict()  # the grants of each request
        self.waiting: dict[Ticket, None] = {}
        self._fresh: dict[Ticket, None] = {}
        self._asked: dict[str, dict[str, Ticket]] = {}  # unanswered requests, by client and key
        self._replaced: list[Ticket] = []  # requests that a newer one with the same key has replaced
        self._secrets = _new_secrets()
        self._numbers = count()
        self._kinds: dict[Hashable, dict[Ticket, None]] = {}  # waiting requests, by offer
        #: waiting requests to try with every workflow once their clients have room: they had none, or their offers changed
        self._again: dict[Ticket, None] = {}
        self._pauses = Alarms()  # when paused clients may get tasks again
        self._ends: list[tuple[float, int, Ticket]] = []  # a heap of timeouts; some entries are outdated

    def recall(self, served: Served) -> None:
        """Record the grants of a restored workflow under the requests that they answered."""
        grants: dict[tuple[str, str, int], list[Lease]] = {}
        for lease in served.leases.values():
            grants.setdefault((lease.client, lease.key, lease.first), []).append(lease)
        for (client, key, _), leases in grants.items():
            numbers = range(leases[0].number, leases[-1].number + 1)
            past = PastGrant(served.id, numbers, "assigned before the server restarted")
            self._keys.setdefault((client, key), []).append(past)

    def forget(self, workflow: str) -> None:
        """Forget the grants of a workflow that another server holds now; repeated requests are answered there."""
        for key, grants in [*self._keys.items()]:
            remaining = [past for past in grants if past.workflow != workflow]
            if not remaining:
                del self._keys[key]
            elif len(remaining) < len(grants):
                self._keys[key] = remaining

    def hurry(self, now: float) -> None:
        """Answer all waiting requests at once: another server may have tasks."""
        for ticket in self.waiting:
            ticket.until = min(ticket.until, now)
        self._ends = self._sorted_ends()

    def ask(self, now: float, client: Client, key: str, request: AskWords) -> Ticket:
        """Add a client's request for work, which `serve` answers; a repeated key gets the same tasks again."""
        self.books.now = client.seen = now
        until = now + min(request.wait, self.books.terms.longest_wait)
        ticket = Ticket(client, key, request, until, offer_of(client, request), frozenset(request.files))
        client.cores = request.cores
        self.books.learn_offer(client, ticket.offer)
        if (client.id, key) in self._keys:
            ticket.grants = [*filter(None, map(self._still_out, self._keys[client.id, key]))]
        elif self.draining:
            self._dismiss(ticket)
        elif self._offers_too_much(ticket) or not client.approved:
            ticket.away = OVER
        else:
            self._queue(ticket)
        return ticket

    def _offers_too_much(self, ticket: Ticket) -> bool:
        tickets = self._asked.get(ticket.client.id, {})
        if len(tickets) < MOST_OFFERS:
            return False
        return len({ticket.offer, *(one.offer for one in tickets.values())}) > MOST_OFFERS

    def _queue(self, ticket: Ticket) -> None:
        """Queue a request; it replaces a waiting one with the same key, so that the client does not get twice as much."""
        older = self._asked.get(ticket.client.id, {}).get(ticket.key)
        if older is not None:
            self.withdraw(older)
            self._replaced.append(older)
        self._asked.setdefault(ticket.client.id, {})[ticket.key] = ticket
        ticket.number = next(self._numbers)
        self._fresh[ticket] = None

    def pending(self, ticket: Ticket) -> bool:
        """Whether a request waits for its answer."""
        return ticket in self._fresh or ticket in self.waiting

    def withdraw(self, ticket: Ticket) -> None:
        """Remove a request whose client has left or been answered."""
        self._fresh.pop(ticket, None)
        self._again.pop(ticket, None)
        if ticket in self.waiting:
            del self.waiting[ticket]
            self._leave_kind(ticket)
        tickets = self._asked.get(ticket.client.id, {})
        if tickets.get(ticket.key) is ticket:
            del tickets[ticket.key]
            if not tickets:
                del self._asked[ticket.client.id]

    def _leave_kind(self, ticket: Ticket) -> None:
        alike = self._kinds[ticket.offer]
        del alike[ticket]
        if not alike:
            del self._kinds[ticket.offer]

    def renew_offers(self, client: Client) -> None:
        """Give the waiting requests of a client whose tags have changed a new offer; the next `serve` tries them again."""
        for ticket in self._asked.get(client.id, {}).values():
            waits = ticket in self.waiting
            if waits:
                self._leave_kind(ticket)
            ticket.offer = offer_of(client, ticket.request)
            self.books.learn_offer(client, ticket.offer)
            if waits:
                alike = [*self._kinds.get(ticket.offer, ()), ticket]
                self._kinds[ticket.offer] = dict.fromkeys(sorted(alike, key=lambda one: one.number))
                self._try_again(ticket)

    def serve(self, now: float) -> list[Ticket]:
        """Answer waiting requests in order of arrival, as far as tasks are ready; requests that have timed out get none."""
        self.books.now = now
        self._stir_due(now)
        self.books.agenda.catch_up()
        fresh, self._fresh = self._fresh, {}
        try:
            answered = [] if self.draining or not (fresh or self._kinds) else self._answer(fresh)
        finally:
            self._keep_waiting(fresh)
        over = answered + self._replaced
        if self.waiting and (self.draining or not self.books.agenda.behind):  # a workflow that is behind may have tasks
            over += self._late(now)
        self._replaced = []
        for ticket in over:
            self.withdraw(ticket)
        return over

    def _stir_due(self, now: float) -> None:
        """Check the workflows whose alarms are due: failed tasks are retried, and copies of tasks may be handed out."""
        books = self.books
        for workflow in books.agenda.alarms.due(now):
            served = books.served[workflow]
            books.agenda.stir(served)
            if served.tries.next_due <= now:
                served.try_again(now)
                books.after(served)
            if served.tries.waiting:
                books.agenda.alarms.set(served.id, served.tries.next_due)

    def _keep_waiting(self, tickets: Iterable[Ticket]) -> None:
        """Let those of the requests wait that got nothing."""
        for ticket in tickets:
            if not ticket.grants:
                self.waiting[ticket] = None
                self._kinds.setdefault(ticket.offer, {})[ticket] = None
                heappush(self._ends, (ticket.until, ticket.number, ticket))

    def _late(self, now: float) -> list[Ticket]:
        """The waiting requests that have timed out; while the server drains, all of them."""
        late = [ticket for ticket in self.waiting if not ticket.grants] if self.draining else []
        for ticket in late:
            self._dismiss(ticket)
        while not self.draining and self._ends and self._ends[0][0] <= now:
            ticket = heappop(self._ends)[2]
            if ticket in self.waiting and not ticket.grants:
                late.append(ticket)
        if len(self._ends) > 2 * len(self.waiting) + SLACK:
            self._ends = self._sorted_ends()
        return late

    def _sorted_ends(self) -> list[tuple[float, int, Ticket]]:
        return sorted((ticket.until, ticket.number, ticket) for ticket in self.waiting)

    def _dismiss(self, ticket: Ticket) -> None:
        ticket.stop = ticket.client.dismissed = self.draining == "stop"
        ticket.away = OVER

    # Assignment

    def _answer(self, fresh: Iterable[Ticket]) -> list[Ticket]:
        """Hand out tasks to new and waiting requests; returns those that got some.

        Waiting requests are tried only with workflows that have changed, since the others had nothing for them.
        """
        agenda, now = self.books.agenda, self.books.now
        stirred = agenda.take_stirred(now, self._kinds)
        sources = {ticket: agenda.queue(ticket.offer) for ticket in (*self._roomy(now), *fresh)}
        only = agenda.only({*sources.values(), *stirred.values()})
        line = self._line(sources, stirred)
        if only is not None:
            return self._answer_together(only, line)
        return [ticket for ticket, queue in line if self._answer_one(ticket, queue)]

    def _roomy(self, now: float) -> Sequence[Ticket]:
        """The requests that are to be tried with every workflow and whose clients have room now, in order of arrival."""
        changed, self.books.roomier = self.books.roomier.union(self._pauses.due(now)), set()
        roomy = list[Ticket]()
        for ticket in self._again and [one for id in changed for one in self._asked.get(id, {}).values()]:
            if ticket in self._again and ticket.client.room(now):
                del self._again[ticket]
                roomy.append(ticket)
            elif ticket.client.paused > now:
                self._pauses.set(ticket.client.id, ticket.client.paused)
        return sorted(roomy, key=lambda ticket: ticket.number)

    def _try_again(self, ticket: Ticket) -> None:
        """Try a request with every workflow as soon as its client has room."""
        self._again[ticket] = None
        self.books.roomier.add(ticket.client.id)

    def _line(
        self, sources: dict[Ticket, TurnQueue], stirred: dict[Hashable, TurnQueue]
    ) -> Iterator[tuple[Ticket, TurnQueue]]:
        """The requests that may get tasks, in order of arrival, each with the workflows that may have them."""
        if not stirred:
            return iter(sources.items())

        def those_of(kind: Hashable, queue: TurnQueue) -> Iterator[tuple[Ticket, TurnQueue]]:
            for ticket in self._kinds[kind]:
                if not queue:
                    return
                if ticket not in sources and ticket not in self._again:
                    yield ticket, queue

        return merge(sources.items(), *starmap(those_of, stirred.items()), key=lambda place: place[0].number)

    def _answer_together(self, served: Served, line: Iterator[tuple[Ticket, TurnQueue]]) -> list[Ticket]:
        """Hand out tasks of the only workflow that may have some; returns the requests that got some."""
        agenda, now, answered = self.books.agenda, self.books.now, list[Ticket]()
        while some := list(islice(line, max(1, served.ready))):
            if not agenda.offers(served, now):
                break
            asking = [place for place in some if self._may_get(*place, served)]
            self._grant(served, [ticket for ticket, _ in asking])
            for ticket, queue in asking:
                if ticket.grants:
                    answered.append(ticket)
                else:
                    self._refuse(ticket, served, queue)
        return answered

    def _answer_one(self, ticket: Ticket, queue: TurnQueue) -> bool:
        """Hand out tasks of the first workflow that has some for a request; returns whether there is one."""
        agenda, client = self.books.agenda, ticket.client
        if not client.room(self.books.now):
            self._try_again(ticket)
            return False
        with closing(agenda.in_turn(queue, self.books.now)) as workflows:
            for served in workflows:
                if self._may_get(ticket, queue, served):
                    self._grant(served, [ticket])
                    if ticket.grants:
                        return True
                    self._refuse(ticket, served, queue)
        return False

    def _may_get(self, ticket: Ticket, queue: TurnQueue, served: Served) -> bool:
        return self.books.agenda.may_give(served, queue, ticket.client.id, ticket.offer)

    def _refuse(self, ticket: Ticket, served: Served, queue: TurnQueue) -> None:
        agenda = self.books.agenda
        if ticket not in self._again:
            queues = [queue, agenda.queue(ticket.offer)]
            agenda.refuse(served, ticket.client.id, ticket.offer, queues, self.books.now)

    def _grant(self, served: Served, tickets: Sequence[Ticket]) -> None:
        """Hand out tasks of a workflow to these requests, all together."""
        waiting: dict[int, deque[Ticket]] = {}  # by ask, which several requests may share
        queue = list[Ask]()
        promised: dict[str, int] = {}  # number of tasks, by client, which may have several requests
        for ticket in tickets:
            client = ticket.client.id
            asks = self._asks(served, ticket, promised.get(client, 0))
            if not asks:
                self._try_again(ticket)
            for ask in asks:
                waiting.setdefault(id(ask), deque()).append(ticket)
                queue.append(ask)
                promised[client] = promised.get(client, 0) + ask.size
        served.allocator.bystanders, served.allocator.here_until = partial(self._idle, served), self.books.here_until
        grants, wall = served.hand_out(queue), self.books.wall
        for grant in grants:
            ticket = waiting[id(grant.ask)].popleft()
            leases = served.lease(grant.tasks, ticket.client.id, next(self._secrets), ticket.key, wall)
            ticket.grants.append(Granted(served, leases, grant.why))
            self._lend(ticket, leases)
            self.books.agenda.charge(served, len(leases))
        if grants:
            self.books.touch(served)

    def _idle(self, served: Served) -> Iterator[tuple[str, float, Fits | None]]:
        """The waiting clients that may get tasks; for each, until when it waits, and which tasks of a workflow fit it."""
        for client, tickets in self._asked.items():
            until = self.books.here_until(client)
            for ticket in tickets.values() if until > -inf else ():
                yield client, max(until, ticket.until), served.fits_of(client, ticket.offer)

    def _asks(self, served: Served, ticket: Ticket, promised: int) -> list[Ask]:
        """The asks of a request to a workflow, limited by the room of its client."""
        request, client = ticket.request, ticket.client
        room = max(0, client.room(self.books.now) - promised)
        size = request.size if request.seconds is None else served.tasks_in(client.id, request.seconds)
        if served.wishes.quorum > 1:
            size = 1  # no task can start from a result that waits for others to agree
        grants = min(request.count, room // max(1, min(size, room)) if room else 0)
        return [served.ask(client.id, min(size, room), ticket.offer, ticket.files)] * grants if grants else []

    def _lend(self, ticket: Ticket, leases: list[Lease]) -> None:
        numbers = range(leases[0].number, leases[-1].number + 1)
        self.books.due.add(leases[0].workflow, numbers, self.books.until)
        ticket.client.holds += len(leases)
        self.books.changes.leases += leases
        past = PastGrant(leases[0].workflow, numbers, ticket.grants[-1].why)
        self._keys.setdefault((ticket.client.id, ticket.key), []).append(past)
        while len(self._keys) > MOST_KEYS and self._forgets_oldest():
            pass

    def _forgets_oldest(self) -> bool:
        """Forget the oldest request unless it has active leases; returns whether it was forgotten."""
        key, grants = self._keys.popitem(last=False)
        if any(self._still_out(past) is not None for past in grants):
            self._keys[key] = grants
            return False
        return True

    def _still_out(self, past: PastGrant) -> Granted | None:
        """The part of a grant that its client still holds; None if there is none."""
        served = self.books.served.get(past.workflow)
        leases = [] if served is None else [served.leases[i] for i in past.numbers if i in served.leases]
        return Granted(served, leases, past.why) if served is not None and leases else None
