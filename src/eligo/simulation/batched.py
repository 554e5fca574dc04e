"""The batched game: at each poll of the server, several clients ask at once [1]_, section 4.3.

At poll i there are r(i) requests; min(r(i), number of ready tasks) tasks are handed out, and all are executed before the next
poll. The other requests are *starved*: their clients disappear. The length of a game is its number of polls. The paper
prints max where a(i) = min(r(i), E(a(0) + ... + a(i-1))) is meant. Its closed form holds only for a fixed order, so the game
is simulated. The paper does not say how an exponential number becomes a number of requests: here r = max(1, ceil(mean * x)),
where x is exponential with mean 1. Run k of a seed has the same requests for every policy.

.. [1] Hall, Rosenberg, Venkataramani (2006): A comparison of dag-scheduling strategies for Internet-based computing.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.allocating import Ask
from eligo.dag import Dag
from eligo.errors import InputError
from eligo.execution import Execution
from eligo.kernels import games
from eligo.kernels.boards import Draws
from eligo.names import Name
from eligo.policies import Policy, from_order
from eligo.simulation.pebble import Player, Runs, playing, run_seeds
from eligo.theory.eligibility import Order, eligible_counts

Floats = NDArray[np.float64]
Longs = NDArray[np.int64]

#: requests for which the figures of an order have polls
REQUESTS = (4.0, 16.0, 64.0)
MOST_RUNS, MOST_PLAYED = 30, 300_000  # games, and tasks in all games: about 0.1 s


class Rounds(NamedTuple):
    """For each run, the number of polls, and the share of requests that find no ready task."""

    polls: Longs
    starved: Floats


def batched(
    player: Player, mean: float = 1.0, runs: Runs = 1, seed: int = 0, requests: Sequence[int] | None = None
) -> Longs:
    """The number of polls that a player takes to execute its dag, for each run; the arguments are those of `rounds`.

    >>> from eligo import Dag, policies
    >>> dag = Dag.from_arcs([("a", "c"), ("x", "y"), ("x", "z"), ("b", "c")], tasks="abxcyz")
    >>> batched(policies.balanced(dag), requests=[2, 2, 2, 2]).tolist()
    [3]
    """
    return rounds(player, mean, runs, seed, requests).polls


def rounds(
    player: Player, mean: float = 1.0, runs: Runs = 1, seed: int = 0, requests: Sequence[int] | None = None
) -> Rounds:
    """The batched game of a player, run by run.

    *mean* is the mean number of requests per poll before rounding up; or *requests* gives the number for each poll.

    >>> from eligo import Dag, policies
    >>> path = Dag.from_arcs([("a", "b"), ("b", "c")])
    >>> rounds(policies.fifo(path), requests=[1, 0, 3, 1]).starved.tolist()  # two of five requests find nothing
    [0.4]
    """
    counts = _check_requests(mean, requests)
    seeds = run_seeds(runs, seed)
    asked = np.zeros((len(seeds), 2))
    if isinstance(player, Policy):
        board, batch = player.board(), np.empty(len(player.dag), np.int32)
        rate = mean if requests is None else 0.0
        each = zip(seeds, asked, strict=True)
        polls = [games.batched_polls(board, run, rate, counts, batch, row) for run, row in each]
    else:
        played = [trace(player, _draw_requests(run, mean) if requests is None else counts) for run in seeds]
        polls = [one.polls if one.finished else -1 for one in played]
        asked[:] = [(sum(one.handed) + sum(one.starved), sum(one.starved)) for one in played]
    if -1 in polls:
        raise InputError(f"{len(counts)} polls are not enough to execute every task")
    return Rounds(np.array(polls, np.int64), asked[:, 1] / np.maximum(1.0, asked[:, 0]))


def drawn_requests(mean: float, run: int, seed: int, polls: int) -> Longs:
    """The requests of the first polls of a run, as `batched` uses them."""
    _check_requests(mean, None)
    return np.fromiter(_draw_requests(run_seeds(range(run, run + 1), seed)[0], mean), np.int64, polls)


def _draw_requests(run: int, mean: float) -> Iterator[int]:
    """Yield the requests of a run, without end, as the kernel draws them."""
    stream = Draws(Draws(run).branch(1))
    while True:
        yield max(1, math.ceil(mean * stream.exponential()))


@dataclass(frozen=True)
class Trace:
    """A game poll by poll: the number of tasks that each poll handed out, and the number of ready tasks after it.

    `starved` is the number of requests of each poll that found no ready task.
    """

    handed: tuple[int, ...]
    starved: tuple[int, ...]
    ready: tuple[int, ...]
    order: tuple[Name, ...]
    finished: bool

    @property
    def polls(self) -> int:
        """The number of polls that were played."""
        return len(self.handed)


def trace(player: Player, requests: Iterable[int], seed: int = 0) -> Trace:
    """Play one game against these requests, until every task is executed or the requests end.

    >>> from eligo import Dag, policies
    >>> dag = Dag.from_arcs([("a", "c"), ("x", "y"), ("x", "z"), ("b", "c")], tasks="abxcyz")
    >>> trace(policies.balanced(dag), [1, 2]).ready, trace(policies.from_order(dag, "abxcyz"), [1, 2]).ready
    ((4, 3), (2, 3))
    """
    game = Execution(player.dag)
    allocator = playing(player, game, seed)
    handed: list[int] = []
    starved: list[int] = []
    ready: list[int] = []
    for wanted in requests if not game.finished else ():
        count = int(_check_requests(1.0, [wanted])[0])
        asks = [Ask()] * min(count, len(game.eligible))
        grants = allocator.hand_out(asks)
        for grant in grants:
            game.complete(*grant.tasks)
        handed.append(len(grants))
        starved.append(count - len(grants))
        ready.append(len(game.eligible))
        if game.finished:
            break
    return Trace(tuple(handed), tuple(starved), tuple(ready), tuple(game.executed), game.finished)


def _check_requests(mean: float, requests: Sequence[int] | None) -> Longs:
    if requests is None:
        if not 0 < mean < math.inf:
            raise InputError(f"the mean number of requests must be positive and finite, got {mean}")
        return np.zeros(0, np.int64)
    counts = np.array(requests, np.int64)
    if (counts < 0).any():
        raise InputError(f"the number of requests must not be negative, got {int(counts.min())}")
    return counts


class OrderFigures(NamedTuple):
    """The mean number of ready tasks, and the polls for about 4, 16 or 64 simultaneous requests; large dags have no polls."""

    ready: float
    polls: tuple[float, ...]


def order_figures(dag: Dag, order: Order) -> OrderFigures:
    """The figures of an order.

    >>> order_figures(Dag.from_arcs([("a", "b"), ("a", "c")]), "abc").ready
    1.3333333333333333
    """
    ready = float(eligible_counts(dag, order).sum()) / max(1, len(dag))
    runs = min(MOST_RUNS, MOST_PLAYED // max(1, len(dag)))
    if not runs:
        return OrderFigures(ready, ())
    policy = from_order(dag, order)
    return OrderFigures(ready, tuple(float(batched(policy, mean, runs).mean()) for mean in REQUESTS))
