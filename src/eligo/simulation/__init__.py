"""Games played many times over: the pebble game, batched requests, volatile clients; seeded, compiled.

| game | function | result |
|---|---|---|
| one task at a time | `play`, `orders`, `profiles` | orders and E(0..n) |
| r requests at a time | `batched`; one told poll by poll: `trace` | polls |
| clients that come and go | `volatile` | makespan, utilisation, stalls, waste |
| workers who stay, or cores that tasks share | `finish_on` | makespan, and a bound on it |
| clients of different sizes, fat tasks | `deal` | what is sent, makespan |

`scheduler` makes a player from a name or a file: a policy, which is played compiled, or another allocator. Every run depends
on its seed and number alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from eligo.simulation.batched import Trace, batched, drawn_requests, trace
from eligo.simulation.pebble import orders, play, profiles
from eligo.simulation.players import SCHEDULERS, Live, Player, scheduler
from eligo.simulation.steady import Finish, finish_on
from eligo.simulation.volatile import Clients, Played, volatile

if TYPE_CHECKING:
    from eligo.simulation.deals import Dealing, deal

__all__ = [
    "SCHEDULERS",
    "Clients",
    "Dealing",
    "Finish",
    "Live",
    "Played",
    "Player",
    "Trace",
    "batched",
    "deal",
    "drawn_requests",
    "finish_on",
    "orders",
    "play",
    "profiles",
    "scheduler",
    "trace",
    "volatile",
]


def __getattr__(name: str) -> Any:
    """Fat tasks are imported when first used, for they bring clusters along."""
    if name not in {"Dealing", "deal"}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("eligo.simulation.deals"), name)
