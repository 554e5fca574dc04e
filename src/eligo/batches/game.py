"""The batched pebble game: a whole dag against a sequence of request counts.

At each poll the server has e eligible tasks and r requests, hands out min(e, r) of them, and all of these are executed
before the next poll [1]_, section 2.2. What is chosen decides how many polls the dag takes. An order played here is a rule of
choice: at each poll its first *eligible* tasks go out. The closed form a(i) = min(r(i), E(a(0) + ... + a(i-1))), printed in
[2]_, section 4.3.1, with max for min, supposes that the next tasks of the order are eligible together, so it is not used.

.. [1] Malewicz, Rosenberg (2006): On batch-scheduling dags for Internet-based computing.
.. [2] Hall, Rosenberg, Venkataramani (2006): A comparison of dag-scheduling strategies for Internet-based computing.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from itertools import cycle, islice

import numpy as np

from eligo.batches.states import Batches, latest
from eligo.dag import Dag
from eligo.errors import InputError
from eligo.execution import Execution
from eligo.theory.eligibility import check_schedule
from eligo.workflow import Workflow, dag_of

#: chooses that many of the eligible tasks
Pick = Callable[[int], Sequence[str]]
#: a rule of choice, made for one execution
Chooser = Callable[[Execution], Pick]


@dataclass(frozen=True)
class Play:
    """A game played: how many tasks each poll handed out, and how many were eligible after it."""

    handed: tuple[int, ...]
    eligible: tuple[int, ...]
    order: tuple[str, ...]
    finished: bool

    @property
    def polls(self) -> int:
        """How many polls it took, or there were."""
        return len(self.handed)


def play(flow: Dag | Workflow, chooser: str | Chooser, requests: Iterable[int]) -> Play:
    """Play until every task is executed or the requests end; *chooser* is a rule, or the name of one in `CHOOSERS`.

    >>> dag = Dag.from_arcs([("a", "c"), ("x", "y"), ("x", "z"), ("b", "c")], tasks="abxcyz")
    >>> [play(dag, name, periodic(2)).polls for name in ("batch", "fifo")]
    [3, 3]
    >>> play(dag, "batch", [1, 2]).eligible, play(dag, "fifo", [1, 2]).eligible
    ((4, 3), (2, 3))
    """
    game = Execution(dag_of(flow))
    pick = _rule(chooser)(game)
    handed: list[int] = []
    eligible: list[int] = []
    for count in requests if not game.finished else ():
        if count < 0:
            raise InputError(f"{count} is no number of requests")
        size = min(count, len(game.eligible))
        tasks = pick(size) if size else ()
        game.take(*tasks)
        for task in tasks:
            game.complete(task)
        handed.append(size)
        eligible.append(len(game.eligible))
        if game.finished:
            break
    return Play(tuple(handed), tuple(eligible), tuple(game.executed), game.finished)


def periodic(*counts: int) -> Iterator[int]:
    """These request counts again and again.

    >>> list(islice(periodic(1, 4), 5))
    [1, 4, 1, 4, 1]
    """
    if not any(count > 0 for count in counts):
        raise InputError("requests that are never more than 0 end no game")
    return cycle(counts)


def random_requests(mean: float, seed: int) -> Iterator[int]:
    """Request counts drawn at random without end: exponential of this mean, rounded up, so at least 1.

    >>> list(islice(random_requests(4.0, seed=1), 4)) == list(islice(random_requests(4.0, seed=1), 4))
    True
    """
    if not 0 < mean < math.inf:
        raise InputError(f"the mean number of requests is above 0, and {mean} is not")
    rng = np.random.default_rng(seed)
    return (max(1, math.ceil(rng.exponential(mean))) for _ in cycle([None]))


def batch_optimal(seconds: float = 1.0) -> Chooser:
    """The batch that leaves the most tasks eligible; each poll may take so long where components are hard."""

    def make(game: Execution) -> Pick:
        batches = Batches(game)
        return lambda size: batches.best(size, seconds=seconds).tasks

    return make


def in_order(order: Sequence[str]) -> Chooser:
    """The eligible tasks that come first in an order, such as a plan's.

    >>> dag = Dag.from_arcs([("a", "b"), ("a", "c")])
    >>> play(dag, in_order(["a", "c", "b"]), periodic(1)).order
    ('a', 'c', 'b')
    """
    rank = {task: i for i, task in enumerate(order)}

    def make(game: Execution) -> Pick:
        check_schedule(game.dag, order)
        return lambda size: nsmallest(size, game.eligible, key=rank.__getitem__)

    return make


def fifo(game: Execution) -> Pick:
    """First come, first served."""
    return lambda size: list(islice(game.eligible, size))


def lifo(game: Execution) -> Pick:
    """Last come, first served."""
    return lambda size: latest(game.eligible, size)


def greedy(game: Execution) -> Pick:
    """The most children first; the oldest among equals."""
    return _by_score(game, game.dag.outdegree.tolist())


def critical_path(game: Execution) -> Pick:
    """The longest remaining path first; the oldest among equals."""
    return _by_score(game, game.dag.height.tolist())


def _by_score(game: Execution, score: list[int]) -> Pick:
    worst_last = {task: -score[i] for i, task in enumerate(game.dag.tasks)}
    return lambda size: nsmallest(size, game.eligible, key=worst_last.__getitem__)


CHOOSERS: dict[str, Chooser] = {
    "batch": batch_optimal(),
    "fifo": fifo,
    "lifo": lifo,
    "greedy": greedy,
    "critical path": critical_path,
}


def _rule(chooser: str | Chooser) -> Chooser:
    if callable(chooser):
        return chooser
    if chooser not in CHOOSERS:
        raise InputError(f"there is no chooser {chooser!r}; there are {', '.join(CHOOSERS)}")
    return CHOOSERS[chooser]
