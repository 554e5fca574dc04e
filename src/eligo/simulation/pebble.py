"""The pebble game: one task at a time, each executed before the next is chosen; and the players of this and other games.

Players are policies, which the compiled games can run, and other allocators, which are called live. Policies and best
batches are given by name, orders by their file. `playing` turns any player into an allocator for an execution.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from eligo.allocating import Allocator, Ask, ByPolicy
from eligo.border import as_workflow
from eligo.dag import Dag
from eligo.errors import InputError
from eligo.execution import EXECUTED, Execution
from eligo.kernels import games
from eligo.kernels.boards import Draws
from eligo.policies import POLICIES, Policy, policy
from eligo.rows import Ints
from eligo.theory.eligibility import Order

Runs = int | range
#: the schedulers that can be compared by name
SCHEDULERS = (*POLICIES, "batch-optimal")
LONGEST = 14  # characters of a scheduler's name


@dataclass(frozen=True, eq=False)
class Live:
    """An allocator that is not a policy: a function that creates it for an execution and a seed."""

    name: str
    dag: Dag
    make: Callable[[Execution, int], Allocator]


Player = Policy | Live


def scheduler(name: str, flow: object, order: Order | None = None) -> Player:
    """The player with this name for a workflow; *order* is the order of its plan, if known.

    >>> scheduler("fifo", {"a": [], "b": ["a"]})
    Policy('fifo', 2 tasks)
    >>> scheduler("batch-optimal", {"a": [], "b": ["a"]}).name
    'batch-optimal'
    """
    if name not in SCHEDULERS or name in POLICIES:
        return policy(name, flow, order)
    from eligo.allocating import allocator  # imports batches and clusters, which policies do not need

    workflow = as_workflow(flow)
    return Live(name, workflow.dag, lambda game, seed: allocator(name, workflow, game, rules=None, seed=seed))


def playing(player: Player, execution: Execution, seed: int = 0) -> Allocator:
    """Return the player as an allocator for an execution."""
    return ByPolicy(player, execution, seed) if isinstance(player, Policy) else player.make(execution, seed)


def name_of(scheduler: str) -> str:
    """A scheduler's name, shortened to fit a table; for a file, its name without folders.

    >>> name_of("critical-path"), name_of("orders/what-i-did-last-year.txt")
    ('critical-path', 'what-i-…ar.txt')
    """
    name = os.path.basename(scheduler)
    return name if len(name) <= LONGEST else f"{name[: LONGEST // 2]}…{name[-(LONGEST // 2 - 1) :]}"


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
