"""Slow, plain twins of the compiled games: whatever can be computed from scratch at every step is."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from eligo.kernels.games import Draws
from eligo.policies import Policy
from eligo.simulation import Clients, Rules


class SlowBoard:
    """Which ready task goes next: every score from its definition, every choice by sorting all ready tasks."""

    def __init__(self, policy: Policy, seed: int, late: set[int] | None = None) -> None:
        self.policy, self.late = policy, late or set()
        dag = policy.dag
        n = len(dag)
        self.children = [dag.child[dag.child_ptr[v] : dag.child_ptr[v + 1]].tolist() for v in range(n)]
        self.parents = [dag.parent[dag.parent_ptr[v] : dag.parent_ptr[v + 1]].tolist() for v in range(n)]
        self.draws = Draws(seed)
        self.out: set[int] = set()
        self.done: set[int] = set()
        self.ready: dict[int, int] = {}
        self.arrivals = 0
        self._arrive_together([v for v in range(n) if not self.parents[v]])

    def score(self, v: int) -> float:
        policy, worth = self.policy, 0.0
        for c in self.children[v]:
            awaited = sum(p not in self.out and p not in self.done for p in self.parents[c])
            worth += policy.phi[awaited] if awaited < len(policy.phi) else 0.0
        return float(policy.score[v]) + math.sqrt(policy.weight * policy.weight * worth)

    def best(self) -> int:
        return min(self.ready, key=lambda v: (-self.score(v), self.ready[v], v))

    def worst(self) -> int:
        return min(self.ready, key=lambda v: (v in self.late, self.score(v), -self.ready[v], v))

    def take(self, v: int) -> None:
        del self.ready[v]
        self.out.add(v)

    def finish(self, v: int) -> None:
        self.ready.pop(v, None)
        self.out.discard(v)
        self.done.add(v)
        self._arrive_together([c for c in self.children[v] if all(p in self.done for p in self.parents[c])])

    def put_back(self, v: int) -> None:
        self.out.remove(v)
        self.arrive(v)

    def _arrive_together(self, group: list[int]) -> None:
        rank = self.policy.rank
        group = sorted(group, key=lambda v: rank[v])
        if self.policy.ties in {"first", "last"}:
            for i in range(1, len(group)):
                begin = next(j for j in range(len(group)) if rank[group[j]] == rank[group[i]])
                if begin < i:
                    j = begin + self.draws.below(i - begin + 1)
                    group[i], group[j] = group[j], group[i]
        for v in reversed(group) if self.policy.ties == "last" else group:
            self.arrive(v)

    def arrive(self, v: int) -> None:
        self.arrivals += 1
        match self.policy.ties:
            case "rank":
                self.ready[v] = int(self.policy.rank[v])
            case "first":
                self.ready[v] = self.arrivals
            case "last":
                self.ready[v] = -self.arrivals
            case _:
                self.ready[v] = self.draws.draw() >> 2


def slow_order(policy: Policy, seed: int) -> tuple[list[int], list[int]]:
    """The pebble game: the order, and E(0..n) counted."""
    board = SlowBoard(policy, seed)
    order, eligible = [], [len(board.ready)]
    while board.ready:
        v = board.best()
        board.take(v)
        board.finish(v)
        order.append(v)
        eligible.append(len(board.ready))
    return order, eligible


def slow_polls(policy: Policy, seed: int, requests: Iterator[int]) -> int:
    """The batched game: its number of polls."""
    board, polls = SlowBoard(policy, seed), 0
    while board.ready:
        batch = []
        for _ in range(min(next(requests), len(board.ready))):
            batch.append(board.best())
            board.take(batch[-1])
        for v in batch:
            board.finish(v)
        polls += 1
    return polls


@dataclass
class SlowClient:
    number: int
    draws: Draws
    speed: float = 0.0
    here: bool = False
    came: float = 0.0
    turns: float = math.inf  # when it leaves or comes
    task: int | None = None
    ends: float = math.inf  # when its task is done, while it is here
    left: float = 0.0  # of its task, while it is away
    worked: float = 0.0
    since: float = 0.0
    believed: int | None = None
    given_up: float = math.inf
    asked: int | None = None
    pace: float = 0.0
    work_done: float = 0.0
    time_done: float = 0.0


@dataclass
class SlowCrowd:
    """Volatile clients: at every step all clients are looked through for what happens next."""

    policy: Policy
    clients: Clients
    rules: Rules
    seed: int
    times: list[float]
    drawn: bool
    expected: list[float]
    now: float = 0.0
    asks: int = 0
    work: float = 0.0
    time: float = 0.0
    results: int = 0
    useful: float = 0.0
    wasted: float = 0.0
    stalled: float = 0.0
    here: float = 0.0
    check: float = math.inf
    began: dict[int, float] = field(default_factory=dict)

    def play(self) -> tuple[float, float, float, float, float]:
        root, n = Draws(self.seed), len(self.times)
        stream = Draws(root.branch(1))
        self.actual = [t * stream.exponential() if self.drawn else t for t in self.times]
        self.unit = math.fsum(self.times) / n
        mean = math.fsum(self.expected) / n
        limit = self.rules.long * mean
        late = {v for v in range(n) if self.rules.long and self.expected[v] > limit}
        self.board = SlowBoard(self.policy, self.seed, late)
        base = Draws(root.branch(2))
        self.all = [SlowClient(c, Draws(base.branch(c))) for c in range(self.clients.count)]
        leave, come = self.rates()
        for c in self.all:
            self.introduce(c)
            u = c.draws.fraction()
            phase = c.draws.fraction() if self.clients.fixed else c.draws.exponential()
            c.here = leave == 0 or u * (leave + come) < come
            if c.here:
                c.turns = phase / leave if leave else math.inf
                self.ask(c)
            else:
                c.turns = phase / come
        self.serve()
        while len(self.board.done) < n:
            self.step()
            self.serve()
        self.here += sum(self.now - c.came for c in self.all if c.here)
        self.stalled += sum(self.now - c.since for c in self.all if c.asked is not None)
        return self.now, self.here, self.useful, self.stalled, self.wasted

    def rates(self) -> tuple[float, float]:
        stay, away = self.clients.stay * self.unit, self.clients.away * self.unit
        return (0.0 if math.isinf(stay) else 1.0 / stay), 1.0 / away

    def step(self) -> None:
        turns = [(c.turns, 0, c.number) for c in self.all]
        ends = [(c.ends, 1, c.number) for c in self.all]
        gone = [(c.given_up, 2, c.number) for c in self.all]
        self.now, kind, number = min([*turns, *ends, *gone, (self.check, 3, 0)])
        c = self.all[number]
        if kind == 0:
            self.go(c) if c.here else self.enter(c)
        elif kind == 1:
            self.deliver(c)
        elif kind == 2:
            self.give_up(c)
        else:
            self.check = math.inf

    def introduce(self, c: SlowClient) -> None:
        bits, root = c.draws.draw(), self.clients.spread
        c.speed = 1.0 / math.sqrt(root)
        for i in range(24):
            root = math.sqrt(root)
            c.speed *= root if bits >> i & 1 else 1.0
        c.work_done = c.time_done = 0.0
        if self.rules.known_speeds:
            c.work_done, c.time_done = c.speed, 1.0
            self.work += c.speed
            self.time += 1.0

    def length(self, c: SlowClient) -> float:
        x = c.draws.exponential()
        return 1.0 if self.clients.fixed else x

    def go(self, c: SlowClient) -> None:
        keeps = c.draws.fraction() < self.clients.keeps
        renewed = c.draws.fraction() < self.clients.renewal
        c.turns = self.now + self.length(c) / self.rates()[1]
        c.here = False
        self.here += self.now - c.came
        if c.task is None:
            self.stalled += self.now - c.since
            c.asked = None
        else:
            c.worked += self.now - c.since
            c.left, c.ends = c.ends - self.now, math.inf
            if renewed or not keeps:
                self.wasted += c.worked
                c.task = None
            if self.clients.patience:
                c.given_up = self.now + self.clients.patience * self.unit
            else:
                self.give_up(c)
        if renewed:
            self.introduce(c)

    def enter(self, c: SlowClient) -> None:
        c.turns = self.now + self.length(c) / self.rates()[0]
        c.here, c.came, c.given_up = True, self.now, math.inf
        if c.task is None:
            self.give_up(c)
            self.ask(c)
        else:
            c.since, c.ends = self.now, self.now + c.left

    def ask(self, c: SlowClient) -> None:
        self.asks += 1
        c.since, c.asked, c.pace = self.now, self.asks, 0.0
        if self.rules.fastest:
            c.pace = c.work_done / c.time_done * self.time / self.work if c.time_done else 1.0

    def slow(self, c: SlowClient) -> bool:
        if not c.time_done:
            return False
        return c.work_done * self.time < self.rules.slow * self.work * c.time_done

    def copies(self, v: int) -> int:
        return sum(c.believed == v for c in self.all)

    def serve(self) -> None:
        waiting = sorted((c for c in self.all if c.asked is not None), key=lambda c: (-c.pace, c.asked))
        for c in waiting:
            v = self.choose(c)
            if v is not None:
                self.hand_out(c, v)

    def choose(self, c: SlowClient) -> int | None:
        if self.board.ready:
            if not (self.rules.slow and self.slow(c)):
                return self.board.best()
            v = self.board.worst()
            faster = any(other.here and not self.slow(other) for other in self.all)
            return None if v in self.board.late and faster else v
        running = [v for v in self.board.out if self.copies(v) < self.rules.copies]
        if running and self.results and not self.slow(c):
            v = min(running, key=lambda v: (self.began[v], v))
            due = self.began[v] + self.time * self.rules.overdue / self.results
            if due <= self.now:
                return v
            self.check = due
        return None

    def hand_out(self, c: SlowClient, v: int) -> None:
        self.stalled += self.now - c.since
        if v in self.board.ready:
            self.board.take(v)
            self.began[v] = self.now
        c.task = c.believed = v
        c.asked, c.since, c.worked = None, self.now, 0.0
        c.ends = self.now + self.actual[v] / c.speed

    def deliver(self, c: SlowClient) -> None:
        v = c.task
        assert v is not None
        took = c.worked + (self.now - c.since)
        self.useful += took
        c.work_done += self.expected[v]
        c.time_done += took
        self.work += self.expected[v]
        self.time += took
        self.results += 1
        c.task = c.believed = None
        c.ends = math.inf
        self.board.finish(v)
        self.ask(c)
        for other in self.all:
            if other.task == v:
                if other.here:
                    other.worked += self.now - other.since
                self.wasted += other.worked
                other.task = other.believed = None
                other.ends = other.given_up = math.inf
                if other.here:
                    self.ask(other)

    def give_up(self, c: SlowClient) -> None:
        v, c.believed, c.given_up = c.believed, None, math.inf
        if v is not None and v not in self.board.done and not self.copies(v):
            self.board.put_back(v)
