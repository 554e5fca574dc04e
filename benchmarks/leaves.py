"""Servers below a server: only their rules, in one process with simulated time, without network and disk.

A million clients work through a hundred leaves, ten thousand clients each, at one parent. What the parent has to do is
counted in calls and in seconds of a processor, and compared with the same work without leaves, at a feasible scale.
The second table has dependencies: the share of time in which clients wait for work, with leaves and with one server.
"""

import random
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import msgspec
import numpy as np

from benchmarks.timing import heading, row, verdict
from eligo.client.assignment import assignments
from eligo.client.results import Delivery
from eligo.dag import Dag
from eligo.formats.shared.document import Described
from eligo.server.rules.clients import Client, ServerTerms
from eligo.server.rules.document import pack_workflow
from eligo.server.rules.leaf import KEY, Leaf, grant_of, prepare_grant
from eligo.server.rules.prepared import Prepared, Wishes
from eligo.server.rules.requests import Ticket
from eligo.server.rules.service import Service
from eligo.server.schema import AskWords, ResultWords, encode
from eligo.server.view.answers import grants_words
from eligo.stores.service import Changes
from eligo.workflow import Workflow

TICK = 0.5  # simulated seconds
TASK = 20.0  # simulated seconds of a task on average: from half of it to one and a half
CLIENTS, LEAVES = 1_000_000, 100
FEW, FEW_LEAVES = 100, 4  # for simulations with and without leaves
MOST = 10_000  # tasks in a grant, as many as one request can ask for
#: a leaf may have as many tasks as its clients need, and no lease expires
TERMS = ServerTerms(first_quota=1e6, most_quota=1e6, lease=1e5)


@dataclass(eq=False)
class Node:
    """A server in the simulation, the calls that it gets and the seconds of a processor that it takes for them."""

    service: Service = field(default_factory=lambda: Service(TERMS))
    calls: Counter[str] = field(default_factory=Counter)
    busy: float = 0.0

    @contextmanager
    def work(self, call: str = "") -> Iterator[None]:
        """Something that the server does, for a call where it is named."""
        began = time.process_time()
        yield
        self.busy += time.process_time() - began
        self.calls[call] += bool(call)


@dataclass(eq=False)
class Site:
    """Clients of one server: those that wait, and the times at which the others finish."""

    node: Node
    clients: list[Client]
    rng: random.Random
    #: whether a client that has delivered asks for more in the same call
    again: bool = True
    waiting: dict[Ticket, Client] = field(default_factory=dict)
    ends: dict[int, list[tuple[Client, str]]] = field(default_factory=lambda: defaultdict(list))
    starved: float = 0.0
    done: int = 0

    def ask(self, now: float, client: Client, call: str) -> None:
        """Add the request of a client, which waits."""
        with self.node.work(call):
            ticket = self.node.service.ask(now, client, str(id(client)) + str(now), AskWords(wait=1e9))
            self.waiting[ticket] = client

    def deliver(self, tick: int) -> None:
        """Clients whose tasks are done deliver the results, and request the next tasks in the same call."""
        for client, lease in self.ends.pop(tick, ()):
            with self.node.work():
                answers = self.node.service.deliver(tick * TICK, client, [ResultWords(lease, "done", seconds=TASK)])
            self.done += answers == ["accepted"]
            if self.again:
                self.ask(tick * TICK, client, "")
            self.node.calls["deliver"] += 1

    def serve(self, tick: int) -> Changes | None:
        """Hand out what is ready."""
        with self.node.work():
            answered = self.node.service.serve(tick * TICK)
            changes = self.node.service.take_changes()
        for ticket in answered:
            client = self.waiting.pop(ticket, None)
            if client is not None and ticket.grants:
                took = max(1, round(TASK * self.rng.uniform(0.5, 1.5) / TICK))
                self.ends[tick + took].append((client, ticket.grants[0].leases[0].id))
        self.starved += TICK * len(self.waiting)
        return changes


class LeafSite:
    """A leaf with its clients, and the way to the parent."""

    def __init__(self, parent: Node, site: Site) -> None:
        self.parent, self.site, self.leaf = parent, site, Leaf(site.node.service)
        self.client = parent.service.enrol(0.0, "leaf")
        self.ticket: Ticket | None = None

    def turn(self, tick: int) -> None:
        """All steps of a leaf in a tick, in their order."""
        self.site.deliver(tick)
        changes = self.site.serve(tick)
        with self.site.node.work():
            if changes is not None:
                self.leaf.note(changes)
            results = self.leaf.due()
        if results:
            self.deliver(tick * TICK, results)
        self.ask(tick * TICK)

    def deliver(self, now: float, results: list[Delivery]) -> None:
        """The parent gets results."""
        words = [ResultWords(one.lease, "done", seconds=one.seconds, tail=one.tail) for one in results]
        with self.parent.work("deliver"):
            self.parent.service.deliver(now, self.client, words)
        with self.site.node.work():
            self.leaf.settle(now, results)

    def ask(self, now: float) -> None:
        """Request the wanted tasks from the parent, unless a request is pending."""
        with self.site.node.work():
            want = self.leaf.want(now)
        if want is not None and self.ticket is None:
            size = min(want.tasks, MOST)
            request = AskWords(count=-(-want.tasks // size), size=size, wait=1e9)
            with self.parent.work("ask"):
                self.ticket = self.parent.service.ask(now, self.client, f"{id(self)} {now}", request)

    def take(self, now: float) -> None:
        """The parent has answered: serve the granted tasks."""
        ticket, self.ticket = self.ticket, None
        with self.parent.work():
            body = encode(grants_words(ticket, 60.0))
        with self.site.node.work():
            for words in msgspec.json.decode(body)["grants"]:
                (tasks,) = assignments({"grants": [words]})
                grant = grant_of(KEY + tasks[0].lease, tasks, words)
                self.leaf.adopt(now, grant, prepare_grant(grant))


def flow_of(tasks: int, wide: int, seed: int = 1) -> Prepared:
    """Tasks in layers of some width, each but the first below two of the layer above."""
    rng = np.random.default_rng(seed)
    heads = np.arange(wide, tasks, dtype=np.int32)
    other = heads - heads % wide - wide + rng.integers(0, wide, len(heads))
    tails = np.concatenate([heads - wide, other]).astype(np.int32)
    dag = Dag.from_arrays(tasks, tails, np.concatenate([heads, heads]), [f"t{i}" for i in range(tasks)])
    flow = Workflow(dag, Described(dag, {"command": ["true"] * tasks}))
    return Prepared(
        flow, Wishes(name="many", policy="ready", copies=1, rules=False, files=False), pack_workflow(flow), dag.order
    )


def site(node: Node, clients: int, seed: int, again: bool) -> Site:
    """The clients of a server, all of which send a request at once."""
    known = [node.service.enrol(0.0, f"c{i}") for i in range(clients)]
    made = Site(node, known, random.Random(seed), again)
    for client in made.clients:
        made.ask(0.0, client, "ask")
    node.service.take_changes()
    return made


@dataclass
class Found:
    """The result of a simulation."""

    seconds: float
    parent: Node
    sites: list[Site]
    tasks: int

    @property
    def starved(self) -> float:
        """The share of their time that clients waited for work."""
        clients = sum(len(one.clients) for one in self.sites)
        return sum(one.starved for one in self.sites) / (clients * self.seconds)

    @property
    def below(self) -> float:
        """Microseconds of a processor for a task below the parent."""
        return 1e6 * sum(one.node.busy for one in self.sites if one.node is not self.parent) / self.tasks

    def columns(self) -> tuple[str, ...]:
        """A row of the table."""
        calls = sum(self.parent.calls.values())
        cpu = 1e6 * self.parent.busy / self.tasks
        return f"{calls:,}", f"{calls / self.tasks:.4f}", f"{cpu:.1f}", f"{self.below:.1f}", f"{self.starved:.1%}"


def simulated(tasks: int, wide: int, clients: int, leaves: int) -> Found:
    """Do all tasks; with 0 leaves all clients are the parent's own. Clients that have one task each ask once."""
    again = tasks > clients
    parent = Node()
    workflow = parent.service.submit(0.0, flow_of(tasks, wide), "many")
    parent.service.take_changes()
    if leaves:
        below = [LeafSite(parent, site(Node(), clients // leaves, i, again)) for i in range(leaves)]
        sites, front = [one.site for one in below], Site(parent, [], random.Random(0))
    else:
        below, front = [], site(parent, clients, 0, again)
        sites = [front]
    tick = 0
    while workflow not in parent.service.books.ended:
        front.deliver(tick)
        for one in below:
            one.turn(tick)
        front.serve(tick)
        for one in below:
            if one.ticket is not None and not parent.service.requests.pending(one.ticket):
                one.take(tick * TICK)
        tick += 1
    return Found(tick * TICK, parent, sites, tasks)


WIDTHS = (44, 11, 11, 13, 12, 9, 8)
COLUMNS = ("what", "calls", "a task", "parent us", "leaf us", "waiting", "")


def run(clients: int = CLIENTS, leaves: int = LEAVES) -> None:
    """Print both tables."""
    heading("Servers below a server: calls and CPU at the parent for each task", COLUMNS, WIDTHS)
    direct = simulated(100 * FEW, 100 * FEW, 100 * FEW, 0)
    row((f"{100 * FEW:,} clients, no leaf, a task each", *direct.columns(), ""), WIDTHS)
    found = simulated(clients, clients, clients, leaves)
    fewer = sum(found.parent.calls.values()) < clients // 100
    row((f"{clients:,} clients, {leaves} leaves, a task each", *found.columns(), verdict(fewer)), WIDTHS)
    heading("With dependencies: the share of their time that clients wait", COLUMNS, WIDTHS)
    for wide in (FEW, 2 * FEW, 4 * FEW):
        for number in (0, FEW_LEAVES):
            name = f"{FEW:,} clients, {number} leaves, {wide:,} tasks wide"
            row((name, *simulated(10 * FEW, wide, FEW, number).columns(), ""), WIDTHS)
