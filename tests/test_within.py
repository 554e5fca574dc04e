"""A limit on the bytes that exist at once, in random plays against a twin that computes everything from scratch."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import eligo.allocating.within as within_module
from conftest import random_small_dag
from eligo.allocating import Allocator, Ask, Prudent, Rules, allocator
from eligo.allocating.within import WAITS, Within
from eligo.dag import Dag
from eligo.errors import EligoError, InputError
from eligo.execution import ALLOCATED, ELIGIBLE, EXECUTED, HELD, Execution
from eligo.grown_dag import reachable_tasks
from eligo.policies import order_grown, rank_of
from eligo.space.footprint import Footprint
from eligo.theory.eligibility import Order
from eligo.workflow import Task, Workflow
from test_space import random_files, random_order

POLICIES = ("fifo", "finish", "balanced", "critical-path", "batch-optimal", "cluster")


class Twin:
    """The bytes of a footprint, from sets of tasks."""

    def __init__(self, footprint: Footprint, game: Execution, lost: set[int]) -> None:
        ptr = footprint.reader_ptr.tolist()
        self.files = [
            (size, writer, set(footprint.reader[ptr[f] : ptr[f + 1]].tolist()))
            for f, (size, writer) in enumerate(zip(footprint.sizes.tolist(), footprint.writer.tolist(), strict=True))
        ]
        codes = game.codes
        self.ended = {v for v in range(len(codes)) if codes[v] == EXECUTED}
        self.running = {v for v in range(len(codes)) if codes[v] in {ALLOCATED, HELD}}
        self.lost = lost.union(reachable_tasks(game.dag, lost).tolist()) if lost else set()

    def live(self, running: set[int]) -> int:
        """The bytes that exist while these tasks run."""
        begun = self.ended | running
        return sum(size for size, writer, readers in self.files if writer in begun and not readers <= self.ended)

    def needed(self, running: set[int], order: list[int]) -> int:
        """The most bytes at once if these tasks end and the rest then runs one by one."""
        done, most = self.ended | running, 0
        for v in order:
            if v not in running and v not in self.lost:
                there = (size for size, writer, readers in self.files if writer in {*done, v} and not readers <= done)
                most = max(most, sum(there))
                done.add(v)
        return most

    def may_start(self, v: int, order: list[int], limit: int) -> bool:
        """Whether a ready task may start."""
        before, after = self.needed(self.running, order), {*self.running, v}
        fits = self.live(after) <= limit or self.live(after) == self.live(self.running)
        return (fits and self.needed(after, order) <= max(limit, before)) or (not self.running and v == order[0])


def order_in(within: Within) -> list[int]:
    """The reference order of the tasks that have not started."""
    ledger = within._ledger
    waits = [v for v in range(len(ledger.status)) if ledger.status[v] == WAITS]
    return sorted(waits, key=ledger.place.__getitem__)


def check(within: Within, footprint: Footprint, lost: set[int]) -> Twin:
    """The ledger is that of the twin, and the reference order can be executed."""
    twin, order = Twin(footprint, within.execution, lost), []
    live = within.live
    order = order_in(within)
    assert live == twin.live(twin.running)
    assert within.needed == twin.needed(twin.running, order)
    done = twin.ended | twin.running
    for v in order:
        assert set(within.execution.graph.parents_of(v)) <= done
        done.add(v)
    assert done | twin.lost == set(range(len(within.execution.codes)))
    return twin


class Play:
    """A random execution under a limit: workers that vanish, failures, copies, fat tasks, additions and wrong sizes."""

    def __init__(self, seed: int, kind: str) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.kind, self.seed = kind, seed
        flow = random_files(rng, random_small_dag(rng, 14))
        self.begun = flow.dag.labelled()
        self.details = {str(t): replace(flow.task(t), name=str(t)) for t in flow.dag.tasks}
        self.sizes = dict(flow.file_sizes)
        self.in_memory = rng.integers(0, 9, len(flow.dag)).tolist() if rng.random() < 0.3 and kind != "grow" else None
        if self.footprint_of(self.begun).level == "tasks":  # no files
            self.in_memory = rng.integers(0, 9, len(flow.dag)).tolist() if kind != "grow" else None
        self.footprint = self.footprint_of(self.begun)
        self.order: Order = random_order(rng, self.begun)
        peak = self.footprint.peak(self.order)
        self.limit = peak + int(rng.integers(0, 1 + peak // 2)) * int(rng.integers(2))
        self.policy = str(rng.choice(POLICIES))
        self.copies = int(rng.integers(1, 3))
        self.game = Execution(self.begun)
        self.real: dict[str, Any] = {}
        self.lost = set[int]()
        self.workers = int(rng.integers(1, 7))
        self.have: dict[int, list[str]] = {}
        self.exceeded, self.now = False, 0.0
        self.follow()

    def footprint_of(self, dag: Dag) -> Footprint:
        if self.in_memory is not None:
            return Footprint.of_results(dag, self.in_memory)
        return Footprint.of(Workflow(dag, self.details, file_sizes=self.sizes))

    def follow(self) -> None:
        """Make the allocator, at the start or after a crash."""
        dag = self.game.dag
        flow = Workflow(dag, self.details, file_sizes=self.sizes)
        inner: Allocator = allocator(self.policy, flow, self.game, rules=None, seed=1)
        order = self.order if len(dag) == len(self.begun) else order_grown(dag, rank_of(self.begun, self.order))
        self.within = Within(inner, self.footprint_of(dag), self.limit, order, grown=self.footprint_of)
        self.within.retrying = lambda v: v not in self.lost
        for task, sizes in self.real.items():
            self.within.correct(task, sizes)
        self.prudent = Prudent(self.within, Rules(copies=self.copies, overdue=0.1), clock=lambda: self.now)

    def run(self) -> None:
        steps = 0
        while not self.game.finished and not (self.game.idle and not self.retryable()):
            steps += 1
            assert steps < 3000, "no end"
            self.now += 1.0
            self.step()
            self.check()
        assert self.exceeded or self.within.most <= self.limit
        assert (self.within.remark is None) == (self.within.most <= self.limit)

    def check(self) -> None:
        twin = check(self.within, self.footprint, self.lost)
        if not self.exceeded:
            assert max(self.within.live, self.within.needed) <= self.limit
        order = order_in(self.within)
        for v in self.game.ready:
            assert self.within.may_start(v) == twin.may_start(v, order, self.limit)

    def retryable(self) -> list[str]:
        return [str(task) for task in self.game.failed if self.game.graph.number(task) not in self.lost]

    def step(self) -> None:
        free, busy, roll = [c for c in range(self.workers) if c not in self.have], [*self.have], self.rng.random()
        if free and roll < 0.5:
            self.ask(free)
        elif busy and roll < 0.8:
            self.end(int(self.rng.choice(busy)))
        elif busy and roll < 0.85:
            self.back(int(self.rng.choice(busy)))  # the worker vanishes
        elif roll < 0.9 and self.retryable():
            self.game.release(self.retryable()[0])
        elif roll < 0.93:
            self.crash()
        elif roll < 0.95 and self.lost:
            self.game.release(self.game.graph.name(self.lost.pop()))
        elif self.kind == "grow" and len(self.game.dag) < 25:
            self.grow()
        elif self.kind == "sizes":
            self.correct()
        if not self.have and not self.retryable() and self.game.eligible:
            self.ask(list(range(self.workers)), picky=False)
            assert self.have, "deadlock"

    def ask(self, free: list[int], picky: bool = True) -> None:
        largest = 4 if self.kind == "fat" else 1
        asks = [Ask(c, size=int(self.rng.integers(1, largest + 1))) for c in free]
        if picky and self.rng.random() < 0.3:
            refused = int(self.rng.integers(len(self.game.codes)))
            asks = [replace(ask, fits=lambda task: self.game.graph.number(task) != refused) for ask in asks]
        if self.rng.random() < 0.3:  # a client has some of the inputs
            asks = [replace(ask, saves=lambda task: self.game.graph.number(task) % 3) for ask in asks]
        for grant in self.prudent.hand_out(asks):
            assert grant.ask.client not in self.have
            assert self.kind == "fat" or len(grant.tasks) == 1
            self.have[int(str(grant.ask.client))] = [str(task) for task in grant.tasks]

    def end(self, c: int) -> None:
        """A worker ends the first task that it can run, or fails."""
        task = next((task for task in self.have[c] if task in self.game.allocated), None)
        if task is None:
            self.back(c)
        elif self.rng.random() < 0.2:
            self.fail(c, task)
        else:
            self.game.complete(task)
            self.tidy()

    def fail(self, c: int, task: str) -> None:
        self.game.give_up(*(other for other in self.have.pop(c) if other != task))
        if task in self.game.allocated:
            self.lose(task)
        self.tidy()

    def lose(self, task: str) -> None:
        if self.kind == "lost" and self.game.holders(task) == 1 and self.rng.random() < 0.4:
            self.lost.add(self.game.graph.number(task))
            self.exceeded = True
        self.game.fail(task)

    def back(self, c: int) -> None:
        self.game.give_up(*self.have.pop(c))
        self.tidy()

    def tidy(self) -> None:
        """Workers no longer have tasks that are done or were returned."""
        out = {str(task) for tasks in (self.game.allocated, self.game.held) for task in tasks}
        self.have = {c: kept for c, tasks in self.have.items() if (kept := [task for task in tasks if task in out])}

    def crash(self) -> None:
        """The process ends, and another one replays the journal."""
        before = self.state()
        self.game = Execution.replay(self.begun, self.game.journal)
        self.follow()
        assert self.kind in {"lost", "grow", "sizes"} or before == self.state()

    def state(self) -> tuple[int, int, list[int]]:
        return self.within.live, self.within.needed, order_in(self.within)

    def grow(self) -> None:
        """A task is added, with a file of its own, that reads an existing one."""
        name, rng, codes = f"new{len(self.game.dag)}", self.rng, self.game.codes
        tasks = [str(task) for task in self.game.dag.tasks]
        parent = str(rng.choice(tasks))
        files = self.details[parent].outputs[:1]
        children = [task for v, task in enumerate(tasks) if codes[v] <= ELIGIBLE and rng.random() < 0.3]
        arcs = [(parent, name), *((name, child) for child in children)]
        self.details[name] = Task(name=name, inputs=files, outputs=(name,))
        self.sizes[name] = int(rng.integers(9))
        try:
            self.game.grow([name], arcs)
        except EligoError:  # a cycle
            del self.details[name], self.sizes[name]
            return
        for child in children:
            self.details[child] = replace(self.details[child], inputs=(*self.details[child].inputs, name))
        self.footprint, self.exceeded = self.footprint_of(self.game.dag), True

    def correct(self) -> None:
        """The real size of a file turns out to be another one."""
        v = int(self.rng.integers(len(self.begun)))
        task, footprint = str(self.begun.tasks[v]), self.footprint
        size = int(self.rng.integers(12))
        names = self.details[task].outputs
        self.real[task] = size if self.in_memory is not None else dict.fromkeys(names, size)
        factor = [len(group) or 1 for group in footprint.names]
        mine = footprint.writer == v
        self.footprint = replace(footprint, sizes=np.where(mine, size * np.array(factor, np.int64), footprint.sizes))
        self.within.correct(task, self.real[task])
        self.exceeded = True


@pytest.mark.parametrize("look", [1, within_module.LOOK])
@pytest.mark.parametrize("kind", ["plain", "fat", "lost", "grow", "sizes"])
def test_random_plays_keep_the_limit_and_end(kind: str, look: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if only few tasks without space are passed over, as in a large workflow."""
    monkeypatch.setattr(within_module, "LOOK", look)
    for seed in range(60):
        Play(seed, kind).run()


def test_a_limit_below_the_peak_of_the_order_is_refused() -> None:
    dag = Dag.from_arcs([("a", "c"), ("b", "c")], "abc")
    footprint = Footprint.of_results(dag, [5, 6, 1])
    with pytest.raises(InputError, match="no order of the tasks fits in 10 B: every order needs at least 11 B"):
        Within(allocator("fifo", dag, rules=None), footprint, 10, "abc")
