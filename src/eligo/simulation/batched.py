"""The batched game: the server polls, and each time so many clients ask at once [1]_, section 4.3.

At poll i there are r(i) requests; min(r(i), number of ready tasks) are handed out and all are executed before the next poll.
The length of a game is its number of polls. Read a(i) = min(r(i), E(a(0) + ... + a(i-1))) where the paper prints max, and its
closed form holds for a fixed order only, so the game is played. The paper leaves open how an exponential number becomes
a number of requests: here r = max(1, ceil(mean * x)), x exponential of mean 1. Run k of a seed has the same requests
whatever the policy.

.. [1] Hall, Rosenberg, Venkataramani (2006): A comparison of dag-scheduling strategies for Internet-based computing.
"""

import math
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from eligo.batches.states import Batches
from eligo.errors import InputError
from eligo.execution import Execution
from eligo.kernels import games
from eligo.policies import Policy
from eligo.simulation.pebble import Runs, run_seeds

Longs = NDArray[np.int64]
SECONDS = 1.0  # for a batch, where components are hard


def batched(
    policy: Policy, mean: float = 1.0, runs: Runs = 1, seed: int = 0, requests: Sequence[int] | None = None
) -> Longs:
    """How many polls a policy takes to execute its dag, for each run.

    *mean* is that of the number of requests before it is rounded up; or *requests* gives every poll's number.

    >>> from eligo import Dag, policies
    >>> dag = Dag.from_arcs([("a", "c"), ("x", "y"), ("x", "z"), ("b", "c")], tasks="abxcyz")
    >>> batched(policies.balanced(dag), requests=[2, 2, 2, 2]).tolist()
    [3]
    """
    given = _checked(mean, requests)
    seeds = run_seeds(runs, seed)
    if policy.whole:
        polls = [_whole_batches(policy, _asked(run, mean) if requests is None else given) for run in seeds]
    else:
        board, batch = policy.board(), np.empty(len(policy.dag), np.int32)
        rate = mean if requests is None else 0.0
        polls = [games.batched_polls(board, run, rate, given, batch) for run in seeds]
    if -1 in polls:
        raise InputError(f"{len(given)} polls are too few to execute every task")
    return np.array(polls, np.int64)


def drawn_requests(mean: float, run: int, seed: int, polls: int) -> Longs:
    """The requests that the first polls of a run meet: what `batched` plays against."""
    _checked(mean, None)
    return np.fromiter(_asked(run_seeds(range(run, run + 1), seed)[0], mean), np.int64, polls)


def _asked(run: int, mean: float) -> Iterator[int]:
    """The requests of a run, without end: as the kernel draws them."""
    stream = games.Draws(games.Draws(run).branch(1))
    while True:
        yield max(1, math.ceil(mean * stream.exponential()))


def _whole_batches(policy: Policy, requests: Iterable[int]) -> int:
    """The polls of a game in which each batch is chosen as a whole, or -1 where the requests end before."""
    game, polls = Execution(policy.dag), -1
    batches = Batches(game)
    for polls, wanted in enumerate(requests):
        if game.finished:
            return polls
        tasks = batches.best(int(wanted), seconds=SECONDS).tasks
        game.take(*tasks)
        for task in tasks:
            game.complete(task)
    return polls + 1 if game.finished else -1


def _checked(mean: float, requests: Sequence[int] | None) -> Longs:
    if requests is None:
        if not 0 < mean < math.inf:
            raise InputError(f"the mean number of requests is above 0 and finite, and {mean} is not")
        return np.zeros(0, np.int64)
    given = np.array(requests, np.int64)
    if (given < 0).any():
        raise InputError(f"{int(given.min())} is no number of requests")
    return given
