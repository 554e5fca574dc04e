"""Games played many times over: the pebble game, batched requests, volatile clients; seeded, compiled.

| game | function | result |
|---|---|---|
| one task at a time | `play`, `orders`, `profiles` | orders and E(0..n) |
| r requests at a time | `batched`; one told poll by poll: `trace` | polls |
| clients that come and go | `volatile` | makespan, utilisation, stalls, waste |

`scheduler` makes a policy from a name or a file. Every run depends on its seed and number alone.
"""

from eligo.simulation.batched import Trace, batched, drawn_requests, trace
from eligo.simulation.pebble import orders, play, profiles
from eligo.simulation.schedulers import SCHEDULERS, kind_seconds, scheduler, static_order, task_seconds
from eligo.simulation.volatile import PRUDENT, Clients, Outcome, Rules, volatile

__all__ = [
    "PRUDENT",
    "SCHEDULERS",
    "Clients",
    "Outcome",
    "Rules",
    "Trace",
    "batched",
    "drawn_requests",
    "kind_seconds",
    "orders",
    "play",
    "profiles",
    "scheduler",
    "static_order",
    "task_seconds",
    "trace",
    "volatile",
]
