"""Simulated games: the pebble game, batched requests, volatile clients; seeded, compiled, played many times.

| game | function | result |
|---|---|---|
| one task at a time | `play`, `orders`, `profiles` | orders and E(0..n) |
| r requests at a time | `batched`; `rounds`; `trace` for one run, poll by poll | polls, starved requests |
| clients that come and go | `volatile` | makespan, utilisation, stalls, waste |
| workers that stay, or cores that tasks share | `finish_on` | makespan and its lower bound |
| clients of different sizes, fat tasks | `deal` | results sent, makespan |

`scheduler` makes a player from a name or a file: a policy, whose games run compiled, or another allocator. Every run depends
only on its seed and its number.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from eligo.simulation.batched import Rounds, Trace, batched, drawn_requests, rounds, trace
from eligo.simulation.pebble import SCHEDULERS, Live, Player, orders, play, profiles, scheduler
from eligo.simulation.steady import Finish, finish_on
from eligo.simulation.volatile import Clients, Played, volatile

if TYPE_CHECKING:
    from eligo.simulation.deals import Dealing, deal

__all__ = [
    "SCHEDULERS", "Clients", "Dealing", "Finish", "Live", "Played", "Player", "Rounds", "Trace", "batched",
    "deal", "drawn_requests", "finish_on", "orders", "play", "profiles", "rounds", "scheduler", "trace", "volatile",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import the functions for fat tasks on first use, because they import `eligo.clusters`."""
    if name not in {"Dealing", "deal"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("eligo.simulation.deals"), name)
