"""Games played many times over: the pebble game, batched requests, volatile clients; seeded, compiled.

| game | function | result |
|---|---|---|
| one task at a time | `play`, `orders`, `profiles` | orders and E(0..n) |
| r requests at a time | `batched` | polls |
| clients that come and go | `volatile` | makespan, utilisation, stalls, waste |

`scheduler` makes a policy from a name or a file. Every run depends on its seed and number alone.
"""

from eligo.simulation.batched import batched
from eligo.simulation.pebble import orders, play, profiles
from eligo.simulation.schedulers import SCHEDULERS, kind_seconds, scheduler, static_order, task_seconds
from eligo.simulation.volatile import PRUDENT, Clients, Outcome, Rules, volatile

__all__ = [
    "PRUDENT",
    "SCHEDULERS",
    "Clients",
    "Outcome",
    "Rules",
    "batched",
    "kind_seconds",
    "orders",
    "play",
    "profiles",
    "scheduler",
    "static_order",
    "task_seconds",
    "volatile",
]
