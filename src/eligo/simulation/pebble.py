"""The pebble game: one task at a time, each executed before the next is chosen."""

import numpy as np

from eligo.allocating import Ask
from eligo.errors import InputError
from eligo.execution import EXECUTED, Execution
from eligo.kernels import games
from eligo.kernels.boards import Draws
from eligo.policies import Policy
from eligo.rows import Ints
from eligo.simulation.players import Live, Player, playing

Runs = int | range


def play(player: Player, seed: int = 0) -> Ints:
    """The order in which a player executes the tasks, as task numbers; `eligo.profile` computes its E(t).

    >>> from eligo import Dag, policies
    >>> dag = Dag.from_arcs([("a", "c"), ("b", "d"), ("b", "e")])
    >>> dag.named(play(policies.greedy(dag)))[0]
    'b'
    """
    return orders(player, 1, seed).reshape(-1)


def orders(player: Player, runs: Runs = 1, seed: int = 0) -> Ints:
    """The orders of several games as task numbers, one row each; *runs* may be a range."""
    seeds, n = run_seeds(runs, seed), len(player.dag)
    played = np.empty((len(seeds), n), np.int32)
    _play(player, seeds, played, np.empty((1, n + 1), np.int32))
    return played


def profiles(player: Player, runs: Runs = 1, seed: int = 0) -> Ints:
    """E(0..n) of several games, one row each; *runs* as in `orders`.

    >>> from eligo import Dag, policies
    >>> profiles(policies.fifo(Dag.from_arcs([("a", "b"), ("a", "c")])), runs=2).tolist()
    [[1, 2, 1, 0], [1, 2, 1, 0]]
    """
    seeds, n = run_seeds(runs, seed), len(player.dag)
    counted = np.empty((len(seeds), n + 1), np.int32)
    _play(player, seeds, np.empty((1, n), np.int32), counted)
    return counted


def run_seeds(runs: Runs, seed: int) -> list[int]:
    """The seed of every run; it does not depend on the machine or on the other runs."""
    numbers = range(runs) if isinstance(runs, int) else runs
    if not len(numbers):
        raise InputError(f"runs must be at least 1, got {runs}")
    if seed < 0:
        raise InputError(f"seed must not be negative, got {seed}")
    root = Draws(Draws(seed % 2**64).draw())
    return [root.branch(run + 1) for run in numbers]


def _play(player: Player, seeds: list[int], order: Ints, eligible: Ints) -> None:
    """Play with every seed; if an array has a single row, each game overwrites it."""
    if isinstance(player, Policy):
        board = player.board()
        game = games.queued_pebbles if player.queue else games.pebbles
        for i, seed in enumerate(seeds):
            game(board, seed, order[i % len(order)], eligible[i % len(eligible)])
    else:
        for i, seed in enumerate(seeds):
            _play_live(player, seed, order[i % len(order)], eligible[i % len(eligible)])


def _play_live(player: Live, seed: int, order: Ints, eligible: Ints) -> None:
    game = Execution(player.dag)
    allocator = playing(player, game, seed)
    eligible[0] = len(game.eligible)
    for t in range(len(player.dag)):
        game.complete(*allocator.hand_out([Ask()])[0].tasks)
        eligible[t + 1] = len(game.eligible)
    order[:] = list(game.numbers(EXECUTED))
