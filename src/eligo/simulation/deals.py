"""Deals: a whole dag handed out in fat tasks to returning clients or a stream of clients, with the cost.

Times are estimates: a client of size k does k tasks, or k seconds of work, in one unit of time, one after another, and every
exchange with it takes a fixed time in addition. The comparison deals single tasks to the same clients in the plan's order.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from itertools import accumulate, cycle, repeat
from typing import Any, cast

import numpy as np

from eligo.allocating import Ask, ByCluster, ByPolicy, FatGrant
from eligo.border import as_workflow
from eligo.clusters import FatTask
from eligo.clusters.state import rank_tasks
from eligo.dag import Dag
from eligo.errors import InputError, whole_size
from eligo.estimates import estimate
from eligo.execution import Execution
from eligo.names import Name
from eligo.policies import from_order
from eligo.theory.eligibility import eligible_counts
from eligo.workflow import Workflow

#: the number of leading tasks of a fat task that a client returns finished: all, some, or none (then the client is gone)
Returns = Callable[[FatTask], int]


@dataclass(frozen=True, eq=False)
class Dealing:
    """The result of dealing a dag to clients."""

    dag: Dag
    #: the fat tasks in the order in which clients returned them, and the number of finished tasks of each
    fat_tasks: tuple[FatTask, ...]
    done: tuple[int, ...]
    #: when the last fat task came back, and when the last single task would have come back; see the module
    makespan: float
    makespan_singly: float
    #: the plan's E(0..n)
    profile: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.fat_tasks)

    @cached_property
    def cuts(self) -> tuple[int, ...]:
        """For each fat task, the arcs from its finished tasks to others: the results that were sent back."""
        owner = np.full(len(self.dag), -1, np.int32)
        owner[self.dag.indices(self.order)] = np.repeat(np.arange(len(self)), np.array(self.done, np.int64))
        tails, heads = owner[self.dag.tails], owner[self.dag.child]
        counts = np.bincount(tails[(tails >= 0) & (tails != heads)], minlength=len(self))
        return tuple(counts.tolist())

    @property
    def cut_arcs(self) -> int:
        """The arcs cut by all fat tasks together."""
        return sum(self.cuts)

    @property
    def cut_arcs_singly(self) -> int:
        """The arcs cut when single tasks are dealt: every one."""
        return self.dag.arc_count

    @cached_property
    def order(self) -> tuple[Name, ...]:
        """The tasks in the order in which they were executed."""
        return tuple(task for fat, done in zip(self.fat_tasks, self.done, strict=True) for task in fat.tasks[:done])

    @property
    def finished(self) -> bool:
        """Whether every task was executed."""
        return len(self.order) == len(self.dag)

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """The number of executed tasks after each return."""
        return tuple(accumulate(self.done))

    @cached_property
    def eligible(self) -> tuple[int, ...]:
        """The number of eligible tasks after each return."""
        executed = self.dag.indices(self.order)
        rest = self.dag.order[~np.isin(self.dag.order, executed)]
        counts = eligible_counts(self.dag, np.concatenate([executed, rest]).astype(np.int32))
        return tuple(counts[list(self.steps)].tolist())

    @cached_property
    def eligible_singly(self) -> tuple[int, ...]:
        """The number of eligible tasks under the plan after as many single tasks."""
        return tuple(self.profile[step] for step in self.steps)

    def document(self) -> dict[str, Any]:
        """The dealing as a dict for JSON."""
        label = dict(zip(self.dag.tasks, self.dag.labels, strict=True)).__getitem__
        fat = [
            {"tasks": tuple(map(label, f.tasks)), "cut_arcs": cut, "strategy": f.strategy, "done": done}
            for f, done, cut in zip(self.fat_tasks, self.done, self.cuts, strict=True)
        ]
        last = self.fat_tasks[-1] if self.fat_tasks else None
        return {
            "tasks": tuple(map(label, self.order)), "fat_tasks": fat, "finished": self.finished,
            "cut_arcs": self.cut_arcs, "cut_arcs_singly": self.cut_arcs_singly, "makespan": self.makespan,
            "makespan_singly": self.makespan_singly, "steps": self.steps, "eligible": self.eligible,
            "eligible_singly": self.eligible_singly, "strategy": sorted({f.strategy for f in self.fat_tasks}),
            "residual_verdict": last.residual_verdict if last is not None else "optimal",
        }  # fmt: skip


def deal(  # noqa: PLR0913
    flow: object,
    sizes: Iterable[int],
    goal: str = "productive",
    *,
    strategy: str = "auto",
    weight: float = 0.5,
    effort: str = "quick",
    exchange: float = 0.0,
    returns: Returns | None = None,
) -> Dealing:
    """Deal a dag to clients of these sizes.

    The clients work in parallel and return until nothing is left. An iterator is a stream of clients that come once each,
    one after another. *returns* gives how many tasks of a fat task are returned done; a client that returns nothing does
    not come again.

    >>> mesh = Dag.from_arcs([("a", "b"), ("a", "c"), ("b", "d"), ("b", "e"), ("c", "e"), ("c", "f")])
    >>> dealing = deal(mesh, [3, 1])
    >>> [fat.tasks for fat in dealing.fat_tasks], dealing.cut_arcs, dealing.makespan
    ([('a', 'b', 'c'), ('e', 'f'), ('d',)], 4, 2.0)
    """
    workflow = as_workflow(flow)
    dag, pool = workflow.dag, _Pool(sizes, _work(workflow), exchange)
    dealer = ByCluster(workflow, Execution(dag), goal=goal, strategy=strategy, weight=weight, effort=effort)
    log = list(pool.played(dealer, returns or len))
    sequence = rank_tasks(dag, effort).sequence
    profile = tuple(eligible_counts(dag, sequence).tolist())
    makespan = max((now for now, _, _ in log), default=0.0)
    singly = pool.played_singly(ByPolicy(from_order(dag, sequence), Execution(dag)))
    return Dealing(dag, tuple(fat for _, fat, _ in log), tuple(done for _, _, done in log), makespan, singly, profile)


def _work(flow: Workflow) -> list[float]:
    """The work of each task: its seconds if the seconds of all tasks are known, otherwise one unit each."""
    times = estimate(flow)
    work: list[float] = times.seconds.tolist() if times.own.all() else [1.0] * len(flow)
    return work


class _Pool:
    """The clients as seats: each seat yields the sizes of its clients, one client for all time or a stream of clients."""

    def __init__(self, sizes: Iterable[int], work: list[float], exchange: float) -> None:
        if not 0 <= exchange < float("inf"):
            raise InputError(f"the time of an exchange must not be negative, got {exchange}")
        self.work, self.exchange = work, exchange
        self.stream = isinstance(sizes, Iterator)
        self.sizes = [] if self.stream else [whole_size(size) for size in sizes]
        self.seats: list[Iterator[int]] = (
            [map(whole_size, sizes)] if self.stream else [repeat(size) for size in self.sizes]
        )
        if not self.stream and not self.sizes:
            raise InputError("no clients to deal to")

    def played(self, dealer: ByCluster, returns: Returns) -> Iterator[tuple[float, FatTask, int]]:
        """Yield each fat task with the time at which it came back and the number of its finished tasks."""
        out: list[tuple[float, int, int, FatTask]] = []
        idle, now, number = list(range(len(self.seats))), 0.0, 0
        while True:
            for seat in idle.copy():
                size = next(self.seats[seat], None) if dealer.execution.left else None
                for grant in [] if size is None else dealer.hand_out([Ask(seat, size)]):
                    self.sizes += [grant.ask.size] if self.stream else []
                    fat = cast(FatGrant, grant).fat
                    heappush(
                        out, (now + self._takes(fat.dag.indices(fat.tasks).tolist(), grant.ask.size), number, seat, fat)
                    )
                    idle.remove(seat)
                    number += 1
            if not out:
                return
            now, _, seat, fat = heappop(out)
            done = returns(fat)
            if not 0 <= done <= len(fat):
                raise InputError(f"the number of tasks that come back must be between 0 and {len(fat)}, got {done}")
            _bring_back(dealer.execution, fat, done)
            yield now, fat, done
            idle += [seat] if done or self.stream else []

    def played_singly(self, dealer: ByPolicy) -> float:
        """The time at which the last task is back if single tasks are dealt, each as soon as it is eligible."""
        seats = [cycle(self.sizes)] if self.stream and self.sizes else [repeat(size) for size in self.sizes]
        game = dealer.execution
        out: list[tuple[float, int, int, Name]] = []
        idle, now = list(range(len(seats))), 0.0
        while True:
            for grant in dealer.hand_out([Ask(seat) for seat in idle]):
                seat, v = idle.pop(0), game.dag.number(grant.tasks[0])
                heappush(out, (now + self._takes([v], next(seats[seat])), v, seat, grant.tasks[0]))
            if not out:
                return now
            now, _, seat, task = heappop(out)
            game.complete(task)
            idle.append(seat)

    def _takes(self, tasks: list[int], size: int) -> float:
        return self.exchange + sum(self.work[v] for v in tasks) / size


def _bring_back(game: Execution, fat: FatTask, done: int) -> None:
    """Complete the first *done* tasks of a fat task and give up the others."""
    for task in fat.tasks[:done]:
        game.complete(task)
    game.give_up(*fat.tasks[done:])
