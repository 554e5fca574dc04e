"""Games on a dag: the pebble game and the batched game. A seed gives the same game on every machine, compiled or not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from eligo.kernels.boards import Board, Draws

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int32]
    Longs = NDArray[np.int64]


def pebbles(board: Board, seed: int, order: Ints, eligible: Ints) -> None:
    """Play the pebble game: the tasks in the order of execution, and E(0..n)."""
    board.reset(seed)
    eligible[0] = board.best.size
    for t in range(board.n):
        v = board.best.top()
        board.take(v)
        board.finish(v)
        order[t] = v
        eligible[t + 1] = board.best.size


def queued_pebbles(board: Board, seed: int, order: Ints, eligible: Ints) -> None:
    """Play the pebble game if the first or the last task to arrive goes next, whatever its score: this needs no heap."""
    board.draws.state = seed
    for v in range(board.n):
        board.missing[v] = board.parent_ptr[v + 1] - board.parent_ptr[v]
    count = board.sources.shape[0]
    for i in range(count):
        board.group[i] = board.sources[i]
    ready = 0
    first = board.is_queue()
    for t in range(board.n + 1):
        board.shuffle(count)
        if first:
            for i in range(count):
                order[t + ready + i] = board.group[i]
        else:
            for i in range(count):
                board.awaited[ready + i] = board.group[count - 1 - i]
        ready += count
        eligible[t] = ready
        if t == board.n:
            break
        ready -= 1
        if not first:
            order[t] = board.awaited[ready]
        v = order[t]
        count = 0
        for i in range(board.child_ptr[v], board.child_ptr[v + 1]):
            w = board.child[i]
            board.missing[w] -= 1
            if board.missing[w] == 0:
                board.group[count] = w
                count += 1


def batched_polls(board: Board, seed: int, mean: float, requests: Longs, batch: Ints, asked: Floats) -> int:
    """Play the batched game; returns the number of polls, or -1 if the requests end first.

    At each poll r tasks are requested and as many of the ready ones are handed out one by one; all are executed, in that
    order, before the next poll. r comes from *requests*, or if *mean* is above 0 it is max(1, ceil(mean * exponential)).
    *asked* gets the number of requests, and of those that found no ready task.
    """
    stream = Draws(seed)
    stream.state = stream.branch(1)
    board.reset(seed)
    polls = 0
    asked[0] = asked[1] = 0.0
    while board.done < board.n:
        if mean > 0.0:
            wanted = max(1.0, math.ceil(mean * stream.exponential()))
        elif polls < requests.shape[0]:
            wanted = requests[polls]
        else:
            return -1
        polls += 1
        count = 0
        while count < wanted and board.best.size > 0:
            v = board.best.top()
            board.take(v)
            batch[count] = v
            count += 1
        asked[0] += wanted
        asked[1] += wanted - count
        for i in range(count):
            board.finish(batch[i])
    return polls
