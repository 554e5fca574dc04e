"""Live simulation of volatile clients: any allocator with its rules, event by event.

It simulates a server with clients that come and go: asks, grants, results, losses, late results and copies all go through
the library's own execution and allocators. The compiled `eligo.kernels.crowds` plays the same game for policies, some
hundred times as fast, and is tested against this module event by event.
"""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from eligo.allocating import Ask, Grant, Prudent, Rules
from eligo.execution import Execution
from eligo.kernels.boards import Draws
from eligo.names import Name
from eligo.simulation.pebble import Player, playing

PATIENT = 3000  # events without a result, per client, after which a game counts as endless


class Setting(NamedTuple):
    """The rates at which clients come and go, in the unit of the tasks' times; see `eligo.simulation.Clients`."""

    clients: int
    leave: float
    come: float
    fixed: bool
    keeps: float
    patience: float
    renewal: float
    spread: float


@dataclass(eq=False)
class Member:
    """A client: whether it is present, the tasks it has, and the tasks the server believes it has."""

    number: int
    draws: Draws
    speed: float = 0.0
    here: bool = False
    came: float = 0.0
    #: the times at which it next leaves or comes, finishes its task if present, and is given up by the server
    turns: float = math.inf
    ends: float = math.inf
    given_up: float = math.inf
    #: its tasks, of which the first is running; for that one, the remaining time while the client is away, and the time spent
    #: on it before `since`
    tasks: list[Name] = field(default_factory=list)
    remaining: float = 0.0
    worked: float = 0.0
    since: float = 0.0
    believed: list[Name] = field(default_factory=list)


class LiveCrowd:
    """Clients served by an allocator; *seconds* are the tasks' times at speed 1, by task number."""

    def __init__(  # noqa: PLR0913, PLR0917
        self,
        player: Player,
        setting: Setting,
        rules: Rules,
        seconds: list[float],
        seed: int,
        drawn: bool,
        size: int = 1,
    ) -> None:
        self.setting, self.rules, self.size = setting, rules, size
        self.game = Execution(player.dag)
        self.prudent = Prudent(playing(player, self.game, seed), rules, clock=lambda: self.now)
        root = Draws(seed)
        stream, base = Draws(root.branch(1)), Draws(root.branch(2))
        self.work = [time * stream.exponential() if drawn else time for time in seconds]
        self.clients = [Member(c, Draws(base.branch(c))) for c in range(setting.clients)]
        self.waiting: dict[int, Ask] = {}
        self.now = self.here = self.useful = self.stalled = self.wasted = 0.0
        self.check = math.inf  # when an assigned task becomes overdue
        #: (time, client number, task number) of every start of a task
        self.log: list[tuple[float, int, int]] = []

    def play(self) -> int:
        """Play until every task is executed. Return the number of unexecuted tasks; some remain if no client stays long."""
        for client in self.clients:
            self._come_first(client)
        self._serve()
        fruitless = 0
        while not self.game.finished and fruitless < PATIENT * (len(self.clients) + 1):
            fruitless = 0 if self._step() else fruitless + 1
            if self._next_event()[0] > self.now:
                self._serve()
        self.here += sum(self.now - client.came for client in self.clients if client.here)
        self.stalled += sum(self.now - self.clients[c].since for c in self.waiting)
        return len(self.game.dag) - len(self.game.executed)

    @property
    def outcome(self) -> tuple[float, float, float, float, float]:
        """The makespan, and the clients' total time present, useful, stalled and wasted."""
        return self.now, self.here, self.useful, self.stalled, self.wasted

    def _next_event(self) -> tuple[float, int, int]:
        """The time, kind and client of the next event."""
        turns = [(client.turns, 0, client.number) for client in self.clients]
        ends = [(client.ends, 1, client.number) for client in self.clients]
        departures = [(client.given_up, 2, client.number) for client in self.clients]
        return min([*turns, *ends, *departures, (self.check, 3, 0)])

    def _step(self) -> bool:
        """Process the next event. Return whether it brought a result."""
        self.now, kind, number = self._next_event()
        client = self.clients[number]
        if kind == 0:
            (self._go if client.here else self._enter)(client)
        elif kind == 1:
            self._deliver(client)
        elif kind == 2:
            self._give_up(client)
        else:
            self.check = math.inf
        return kind == 1

    # Clients come and go

    def _come_first(self, client: Member) -> None:
        self._introduce(client)
        leave, come = self.setting.leave, self.setting.come
        u = client.draws.fraction()
        phase = client.draws.fraction() if self.setting.fixed else client.draws.exponential()
        client.here = leave == 0 or u * (leave + come) < come
        if client.here:
            client.turns = phase / leave if leave else math.inf
            self._ask(client)
        else:
            client.turns = phase / come

    def _introduce(self, client: Member) -> None:
        """Draw the speed of a new client and forget its predecessor's speed; with known speeds, record the new one."""
        bits, root = client.draws.draw(), self.setting.spread
        client.speed = 1.0 / math.sqrt(root)
        for i in range(24):
            root = math.sqrt(root)
            client.speed *= root if bits >> i & 1 else 1.0
        self.prudent.speeds.forget(client.number)
        if self.rules.known_speeds:
            self.prudent.speeds.introduce(client.number, 1.0, client.speed)

    def _length(self, client: Member) -> float:
        drawn = client.draws.exponential()
        return 1.0 if self.setting.fixed else drawn

    def _go(self, client: Member) -> None:
        keeps = client.draws.fraction() < self.setting.keeps
        renewed = client.draws.fraction() < self.setting.renewal
        client.turns = self.now + self._length(client) / self.setting.come
        client.here = False
        self.prudent.gone(client.number)
        self.here += self.now - client.came
        if not client.tasks:
            self.stalled += self.now - client.since
            del self.waiting[client.number]
        else:
            client.worked += self.now - client.since
            client.remaining, client.ends = client.ends - self.now, math.inf
            if renewed or not keeps:
                self.wasted += client.worked
                client.tasks = []
            if self.setting.patience > 0.0:
                client.given_up = self.now + self.setting.patience
            else:
                self._give_up(client)
        if renewed:
            self._introduce(client)

    def _enter(self, client: Member) -> None:
        client.turns = self.now + self._length(client) / self.setting.leave
        client.here, client.came, client.given_up = True, self.now, math.inf
        self.prudent.joined(client.number)
        if client.tasks:
            client.since, client.ends = self.now, self.now + client.remaining
        else:
            self._give_up(client)
            self._ask(client)

    # Work

    def _ask(self, client: Member) -> None:
        client.since = self.now
        self.waiting[client.number] = Ask(client.number, self.size)

    def _serve(self) -> None:
        if not self.waiting:
            return
        for grant in self.prudent.hand_out(list(self.waiting.values())):
            self._begin(grant)
        if self.prudent.due is not None:
            self.check = self.prudent.due

    def _begin(self, grant: Grant) -> None:
        client = self.clients[grant.ask.client]  # type: ignore[call-overload]
        del self.waiting[client.number]
        self.stalled += self.now - client.since
        client.tasks, client.believed = list(grant.tasks), list(grant.tasks)
        self._run(client)

    def _run(self, client: Member) -> None:
        """Start the client's first task."""
        v = self.game.dag.number(client.tasks[0])
        self.log.append((self.now, client.number, v))
        client.since, client.worked = self.now, 0.0
        client.ends = self.now + self._takes(client)

    def _takes(self, client: Member) -> float:
        """The time that the client takes for its first task."""
        return self.work[self.game.dag.number(client.tasks[0])] / client.speed

    def _deliver(self, client: Member) -> None:
        """Take a client's result of its first task; no other client finished that task before."""
        task = client.tasks.pop(0)
        took = client.worked + (self.now - client.since)
        self.useful += took
        self.prudent.learn(client.number, task, took)
        client.ends = math.inf
        if task in client.believed:
            client.believed.remove(task)
        self.game.complete(task, late=True)
        if client.tasks:
            self._run(client)
        else:
            self._ask(client)
        for other in self.clients:
            if task in other.tasks:
                self._stop(other, task)

    def _stop(self, client: Member, task: Name) -> None:
        """Withdraw a task from this client because another client finished it first."""
        under_way = client.tasks[0] == task
        client.tasks.remove(task)
        if task in client.believed:
            client.believed.remove(task)
        if not under_way:
            return
        if client.here:
            client.worked += self.now - client.since
        self.wasted += client.worked
        client.ends = client.given_up = math.inf
        if client.here and client.tasks:
            self._run(client)
        elif client.here:
            self._ask(client)
        elif client.tasks:  # it starts the next one when it returns
            client.worked, client.remaining = 0.0, self._takes(client)

    def _give_up(self, client: Member) -> None:
        """Stop waiting for the tasks that the server believes this client has."""
        tasks, client.believed, client.given_up = client.believed, [], math.inf
        self.game.give_up(*tasks)
