"""Slow, plain twins of the compiled games: whatever can be computed from scratch at every step is."""

import math
from collections.abc import Iterator

from eligo.kernels.boards import Draws
from eligo.policies import Policy


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
        policy, worth, own = self.policy, 0.0, float(self.policy.score[v])
        for c in self.children[v]:
            awaited = [p for p in self.parents[c] if p not in self.out and p not in self.done]
            if len(awaited) < len(policy.phi) and all(p in self.ready for p in awaited):
                worth += policy.phi[len(awaited)] * float(policy.score[c])
        return own + math.sqrt(policy.weight * policy.weight * worth / own) if worth else own

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
