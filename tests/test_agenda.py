"""Requests are answered as by a loop over everything that waits and everything that is served, at a cost that is flat."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from eligo.allocating import Ask, Grant
from eligo.dag import Dag
from eligo.errors import MoveError
from eligo.execution import Execution
from eligo.server.rules.agenda import TurnQueue, Turns
from eligo.server.rules.clients import Client
from eligo.server.rules.needs import Match, Needs, Offer, Supply
from eligo.server.rules.prepared import Wishes, prepare
from eligo.server.rules.requests import MOST_OFFERS, Requests, Ticket
from eligo.server.rules.served import Fitting, Served
from eligo.server.rules.service import Service
from eligo.server.schema import AskWords, ResultWords
from eligo.workflow import Task, Workflow
from service_parts import Scene, many


class PlainRequests(Requests):
    """The same rules without an agenda: every serve tries everybody who waits with every workflow, in turn."""

    def _stir_due(self, now: float) -> None:
        for served in [*self.books.served.values()]:
            if served.tries.later and served.tries.later[0][0] <= now:
                served.try_again(now)
                self.books.after(served)

    def _answer(self, fresh: Iterable[Ticket]) -> list[Ticket]:
        queue, able = [*self.waiting, *fresh], [one for one in self.books.served.values() if self._offers(one)]
        place = self.books.agenda.turns.place
        for ticket in queue:
            for served in sorted(able, key=lambda one: place(one.wishes.owner)):
                if not ticket.grants:
                    self._grant(served, [ticket])
        return [ticket for ticket in queue if ticket.grants]

    def _offers(self, served: Served) -> bool:
        due = served.allocator.copies_from()
        return served.open and bool(served.ready or (due is not None and due <= self.books.now))


class World:
    """A service that is told the same as its twin; workflows, clients and leases go by number."""

    def __init__(self, requests: type[Requests], seed: int) -> None:
        self.service = Service()
        self.service.requests = requests(self.service.books)
        self.service.books.random.seed(seed)
        self.flows: list[str] = []
        self.clients: list[Client] = []
        self.tickets: list[Ticket] = []
        self.leases: list[tuple[int, str]] = []
        self.grants: list[tuple[Any, ...]] = []

    def submit(self, now: float, flow: Workflow, wishes: Wishes) -> None:
        self.flows.append(self.service.submit(now, prepare(flow, wishes), f"k{len(self.flows)}"))

    def enrol(self, now: float) -> None:
        self.clients.append(self.service.enrol(now, "one"))

    def ask(self, now: float, client: int, request: AskWords) -> None:
        self.tickets.append(self.service.ask(now, self.clients[client], f"a{len(self.tickets)}", request))

    def deliver(self, now: float, place: int, outcome: Any, digest: str, seconds: float) -> None:
        client, lease = self.leases.pop(place)
        told = ResultWords(lease, outcome, seconds, tail=digest)
        self.grants.append(tuple(self.service.deliver(now, self.clients[client], [told])))

    def cancel(self, now: float, flow: int) -> None:
        self.service.cancel(now, self.flows[flow])

    def tag(self, now: float, client: int, tags: Sequence[str]) -> None:
        self.service.mark_client(self.clients[client].id, tags=tags)

    def withdraw(self, now: float, ticket: int) -> None:
        self.service.requests.withdraw(self.tickets[ticket])

    def serve(self, now: float) -> None:
        self.service.expire(now)
        for ticket in sorted(self.service.serve(now), key=self.tickets.index):
            self.grants.append((self.tickets.index(ticket), *map(self._grant, ticket.grants)))
            client = self.clients.index(ticket.client)
            self.leases += [(client, lease.id) for one in ticket.grants for lease in one.leases]
        self.service.take_changes()

    def _grant(self, one: Any) -> tuple[Any, ...]:
        return self.flows.index(one.served.id), *(lease.task for lease in one.leases)

    def open(self) -> list[int]:
        return [i for i, flow in enumerate(self.flows) if flow in self.service.served]


def steps(random: Random, world: World) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """A random course of events: the moves of a world."""
    now, cores = 0.0, [random.choice((1.0, 2.0, 4.0)) for _ in range(12)]
    for _ in cores:
        yield "enrol", (now,)
    while True:
        now += random.choice((0.0, 0.0, 0.1, 1.0, 5.0)) if random.random() < 0.95 else 90.0
        kind = random.random()
        if kind < 0.08 and len(world.open()) < 12:
            flow, wishes = random_flow(random), random_wishes(random)
            yield "submit", (now, flow, wishes)
        elif kind < 0.45:
            client = random.randrange(len(cores))
            request = AskWords(random.choice((1, 1, 3)), wait=random.choice((0.0, 20.0, 50.0)), cores=cores[client])
            yield "ask", (now, client, request)
        elif kind < 0.75 and world.leases:
            place = random.randrange(len(world.leases))
            outcome = random.choices(("done", "failed", "returned"), (8, 1, 1))[0]
            digest, seconds = random.choice("aaab"), random.choice((0.1, 1.0, 3.0))
            yield "deliver", (now, place, outcome, digest, seconds)
        elif kind < 0.76 and world.open():
            flow_number = random.choice(world.open())
            yield "cancel", (now, flow_number)
        elif kind < 0.78 and world.tickets:
            ticket = random.randrange(len(world.tickets))
            yield "withdraw", (now, ticket)
        elif kind < 0.81:
            client = random.randrange(len(cores))
            yield "tag", (now, client, random.choice(((), ("gpu",), ("gpu", "big"))))
        else:
            yield "serve", (now,)


def random_flow(random: Random) -> Workflow:
    n = random.randrange(1, 9)
    arcs = [(i, j) for j in range(n) for i in range(j) if random.random() < 0.3]
    names = [f"t{i}" for i in range(n)]
    dag = Dag.from_arrays(n, [i for i, _ in arcs], [j for _, j in arcs], names)
    needs = random.choice(((None,), (None,), (None, 2.0, 4.0), (8.0, None)))
    labels = random.choice((((),), ((),), ((),), ((), (), ("gpu",)), ((), ("gpu",), ("big",))))
    tasks = [
        Task(name=name, command="true", cores=random.choice(needs), labels=random.choice(labels)) for name in names
    ]
    return Workflow(dag, dict(zip(names, tasks, strict=True)))


def random_wishes(random: Random) -> Wishes:
    return Wishes(
        owner=random.choice("abc"),
        share=random.choice((1.0, 1.0, 2.0)),
        policy=random.choice(("finish", "fifo")),
        quorum=random.choice((1, 1, 1, 2)),
        copies=random.choice((1, 2, 2)),
        retries=random.choice((None, 0)),
        files=False,
    )


@pytest.mark.parametrize("seed", range(12))
def test_grants_are_those_of_a_loop_over_everything(seed: int) -> None:
    ours, plain, random = World(Requests, seed), World(PlainRequests, seed), Random(seed)
    course = steps(random, ours)
    for step in range(500):
        move, words = next(course)
        getattr(ours, move)(*words)
        getattr(plain, move)(*words)
        assert ours.grants == plain.grants, (seed, step)
        assert len(ours.service.requests.waiting) == len(plain.service.requests.waiting)
    assert sum(len(grant) > 1 for grant in ours.grants) > 20


def chain(names: str, cores: float | None = None) -> Workflow:
    dag = Dag.from_arrays(len(names), range(len(names) - 1), range(1, len(names)), list(names))
    return Workflow(dag, {name: Task(name=name, command="true", cores=cores) for name in names})


def looked_at(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> int:
    """At how many workflows somebody looked meanwhile, to see whether they have anything."""
    seen = set[str]()

    def ready(served: Served) -> int:
        seen.add(served.id)
        return len(served.execution.eligible)

    with monkeypatch.context() as patch:
        patch.setattr(Served, "ready", property(ready))
        work()
    return len(seen)


@pytest.mark.parametrize("cores", [None, 8.0], ids=["all fit", "one fits"])
def test_a_request_looks_at_few_of_a_thousand_workflows(monkeypatch: pytest.MonkeyPatch, cores: float | None) -> None:
    scene = Scene(first_quota=100.0)
    ann = scene.enrol()
    ready = prepare(chain("ab", cores), Wishes(files=False))
    for i in range(1_000):
        scene.service.submit(0.0, ready, f"k{i}")
    scene.submit(many(50))
    scene.lease(ann)  # what fits nobody is found out once

    def pairs() -> None:
        for _ in range(10):
            scene.bring(scene.lease(ann))
            scene.now += 0.1
            scene.serve()

    assert looked_at(monkeypatch, pairs) <= 10


def test_a_result_is_offered_to_the_first_of_a_thousand_who_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    clients = [scene.enrol() for _ in range(1_001)]
    workflow = scene.submit(chain("abc"))
    lease = scene.lease(clients[0])
    tickets = [scene.ask(client, wait=60.0) for client in clients[1:]]
    scene.serve()
    asked, served = list[int](), scene.served(workflow)
    hand_out = served.hand_out

    def counted(asks: Sequence[Ask]) -> list[Grant]:
        asked.append(len(asks))
        return hand_out(asks)

    monkeypatch.setattr(served, "hand_out", counted)
    scene.bring(lease)
    assert scene.serve() == tickets[:1]
    assert asked == [1]


def test_alarms_bring_back_what_had_nothing() -> None:
    scene = Scene(first_quota=10.0)
    ann, eve = scene.enrol(), scene.enrol()
    workflow = scene.submit(many(2), copies=2)
    first = scene.lease(ann)
    scene.now += 10.0
    scene.bring(first, seconds=10.0)
    scene.lease(ann)
    ticket = scene.ask(eve, wait=60.0)
    assert scene.serve() == []
    due = scene.served(workflow).allocator.copies_from()
    assert due is not None
    scene.now = due
    assert scene.serve() == [ticket]


def labelled(**labels: list[str]) -> Workflow:
    """Tasks that wait for nothing, by name, and the labels of each."""
    tasks = {name: Task(name=name, command="true", labels=tuple(needed)) for name, needed in labels.items()}
    return Workflow(Dag.from_parents({name: [] for name in labels}), tasks)


def test_a_client_that_got_nothing_is_tried_again_with_other_labels() -> None:
    scene = Scene()
    ann = scene.enrol()
    scene.submit(labelled(v=[], g=["gpu"]), quorum=2)
    scene.bring(scene.lease(ann))
    assert scene.get(ann) == []
    assert scene.tasks([scene.lease(ann, labels=frozenset({"gpu"}))]) == ["g"]


def test_a_tag_reaches_a_request_that_waits() -> None:
    scene = Scene()
    ann = scene.enrol()
    scene.submit(labelled(g=["gpu"]))
    ticket = scene.ask(ann, wait=60.0)
    assert scene.serve() == []
    scene.service.mark_client(ann, tags=["gpu"])
    assert scene.serve() == [ticket]


def test_a_tag_that_is_removed_no_longer_matches() -> None:
    scene = Scene()
    ann, bob = scene.enrol(), scene.enrol()
    scene.service.mark_client(ann, tags=["gpu"])
    waiting = [scene.ask(ann, wait=60.0), scene.ask(bob, wait=60.0, labels=frozenset({"gpu"}))]
    assert scene.serve() == []
    scene.service.mark_client(ann, tags=[])
    scene.submit(labelled(g=["gpu"]))
    assert scene.serve() == waiting[1:]


def test_requests_of_one_offer_keep_their_order_when_one_is_tagged_later() -> None:
    scene = Scene()
    ann, bob = scene.enrol(), scene.enrol()
    waiting = [scene.ask(ann, wait=60.0), scene.ask(bob, wait=60.0, labels=frozenset({"gpu"}))]
    assert scene.serve() == []
    scene.service.mark_client(ann, tags=["gpu"])
    assert scene.serve() == []
    scene.submit(labelled(g=["gpu"]))
    assert scene.serve() == waiting[:1]


def fits_asked(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> int:
    """About how many tasks it was asked meanwhile whether they fit a client."""
    asked, fits = list[str](), Fitting.__call__

    def counted(self: Fitting, task: Any) -> bool:
        asked.append(task)
        return fits(self, task)

    with monkeypatch.context() as patch:
        patch.setattr(Fitting, "__call__", counted)
        work()
    return len(asked)


def test_a_delivery_looks_at_few_tasks_that_do_not_fit_those_who_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    scene, gpu = Scene(), frozenset({"gpu"})
    ann, bob = scene.enrol(), scene.enrol()
    scene.submit(labelled(**{f"t{i}": ["gpu"] for i in range(1_000)}), copies=2)
    labels = [frozenset[str](), *(frozenset({f"l{i}"}) for i in range(10))]
    waiting = [scene.ask(bob, wait=60.0, labels=one) for one in labels]

    def pairs() -> None:
        for _ in range(10):
            scene.bring(scene.lease(ann, labels=gpu))
            assert scene.serve() == []

    assert fits_asked(monkeypatch, pairs) <= 50
    assert all(map(scene.service.requests.pending, waiting))


def test_ready_tasks_are_counted_by_what_they_need() -> None:
    random, names = Random(0), [f"t{i}" for i in range(60)]
    parents = {name: random.sample(names[:i], min(i, random.randrange(3))) for i, name in enumerate(names)}
    tasks = {name: Task(name=name, command="true", labels=(random.choice("abcdefg"),)) for name in names}
    flow = Workflow(Dag.from_parents(parents), tasks)
    needs, game = Needs(flow), Execution(flow)
    supply = Supply(needs, game)
    offers = [Offer(labels=frozenset(some)) for some in ("", "a", "ab", "cde", "abcdefg")]
    matches = [Match(needs.met_by(offer), supply) for offer in offers]
    for step in range(20_000):
        move = random.choice((game.take, game.complete, game.release, game.fail, game.give_up))
        with suppress(MoveError):
            move(random.choice(names) if move != game.take or not game.eligible else random.choice([*game.eligible]))
        i = random.randrange(len(offers))
        fitting = offers[i].labels
        assert matches[i].ready == any(not fitting.isdisjoint(tasks[name].labels) for name in game.eligible), step
        if game.finished:
            game = Execution(flow)
            supply = Supply(needs, game)
            matches = [Match(needs.met_by(offer), supply) for offer in offers]


def test_a_client_waits_with_few_different_offers() -> None:
    scene = Scene()
    ann = scene.enrol()
    tickets = [scene.ask(ann, wait=60.0, labels=frozenset({f"l{i}"})) for i in range(MOST_OFFERS + 1)]
    again = scene.ask(ann, wait=60.0, labels=frozenset({"l0"}))
    assert scene.serve() == []
    assert [*map(scene.service.requests.pending, (*tickets, again))] == [True] * MOST_OFFERS + [False, True]
    assert tickets[-1].away > 0


class Race:
    """A fast and a slow client, and a long task that is ready and nothing else."""

    def __init__(self) -> None:
        self.scene = Scene(longest_wait=1_000.0)
        self.fast, self.slow = self.scene.enrol("fast"), self.scene.enrol("slow")
        names = [f"s{i}" for i in range(8)]
        tasks = {name: Task(name=name, command="true", seconds=1.0) for name in names}
        tasks["long"] = Task(name="long", command="true", seconds=100.0, cores=2.0)
        dag = Dag.from_parents({**{name: [] for name in names}, "long": names})
        self.workflow = self.scene.submit(Workflow(dag, tasks))
        for client, seconds in [(self.slow, 10.0), *[(self.fast, 0.1)] * 7]:
            lease = self.scene.lease(client, cores=2.0)
            self.scene.now += seconds
            self.scene.bring(lease, seconds=seconds)

    def waiting(self, client: str, wait: float, cores: float = 2.0) -> Ticket:
        """A request that got nothing at once."""
        ticket = self.scene.ask(client, wait=wait, cores=cores)
        assert self.scene.serve() == []
        return ticket

    def serve_at(self, now: float) -> list[Ticket]:
        self.scene.now = now
        return self.scene.serve()


def test_a_slow_client_gets_a_long_task_once_the_fast_one_is_gone() -> None:
    race = Race()
    gone = race.scene.now + race.scene.terms.lease + race.scene.terms.grace
    ticket = race.waiting(race.slow, 600.0)
    assert race.serve_at(gone - 0.1) == []
    assert race.serve_at(gone) == [ticket]


def test_a_slow_client_waits_as_long_as_the_fast_one_is_heard_of() -> None:
    race = Race()
    ticket, seen = race.waiting(race.slow, 900.0), race.scene.now
    for _ in range(10):
        seen = race.scene.now = race.scene.now + 30.0
        race.scene.service.renew(seen, race.scene.client(race.fast), [])
        assert race.scene.serve() == []
    assert race.serve_at(seen + race.scene.terms.lease + race.scene.terms.grace) == [ticket]


@pytest.mark.parametrize("verb", ["held", "revoked"])
def test_a_slow_client_does_not_wait_for_a_fast_one_that_gets_no_tasks(verb: str) -> None:
    race = Race()
    if verb == "held":
        race.scene.service.mark_client(race.fast, held=True)
    else:
        race.scene.service.approve(race.fast, approved=False)
    assert race.scene.tasks([race.scene.lease(race.slow, cores=2.0)]) == ["long"]


def test_a_slow_client_lets_a_fast_one_that_asks_at_the_same_time_have_a_long_task() -> None:
    race = Race()
    race.scene.service.mark_client(race.fast, held=True)
    slow = race.scene.ask(race.slow, wait=900.0, cores=2.0)
    fast = race.scene.ask(race.scene.enrol("new"), wait=300.0, cores=2.0)
    assert race.scene.serve() == [fast]
    assert race.scene.service.requests.pending(slow)


def test_a_slow_client_does_not_wait_for_fast_ones_that_have_too_few_cores() -> None:
    race = Race()
    race.scene.service.mark_client(race.fast, held=True)
    race.waiting(race.scene.enrol("new"), 300.0, cores=1.0)
    assert race.scene.tasks([race.scene.lease(race.slow, cores=2.0)]) == ["long"]


def test_a_request_of_a_client_that_has_all_it_may_have_waits_for_its_results() -> None:
    scene = Scene(first_quota=1.0)
    ann = scene.enrol()
    scene.submit(many(3))
    tickets = [scene.ask(ann, wait=60.0) for _ in range(2)]
    assert scene.serve() == tickets[:1]
    scene.bring(tickets[0].grants[0].leases[0])
    assert scene.serve() == tickets[1:]


def test_workflows_of_many_owners_come_in_turn_as_if_sorted() -> None:
    random, turns, members = Random(0), Turns(), dict[int, str]()
    queue = TurnQueue(turns)
    for step in range(3_000):
        number = random.randrange(60)
        kind = random.random()
        if kind < 0.4:
            members.setdefault(number, f"o{number % 7}")
            queue.add(members[number], number)
        elif kind < 0.7:
            members.pop(number, None)
            queue.discard(number)
        else:
            turns.charge(f"o{random.randrange(7)}", random.choice((0.5, 1.0, 2.0)))
        expected = sorted(members, key=lambda one: (turns.place(members[one]), one))
        stop = random.randrange(len(members) + 1)
        assert [number for number, _ in zip(queue, range(stop), strict=False)] == expected[:stop], step
