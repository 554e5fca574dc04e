"""Games played many times over: the pebble game, batched requests, volatile clients; seeded, compiled.

| game | function | result |
|---|---|---|
| one task at a time | `play`, `orders`, `profiles` | orders and E(0..n) |
| r requests at a time | `batched`; one told poll by poll: `trace` | polls |
| clients that come and go | `volatile` | makespan, utilisation, stalls, waste |
| clients of different sizes, fat tasks | `deal` | what is sent, makespan |

`scheduler` makes a player from a name or a file: a policy, which is played compiled, or another allocator. Every run depends
on its seed and number alone.
"""

from eligo.simulation.batched import Trace, batched, drawn_requests, trace
from eligo.simulation.dealing import Dealing, deal
from eligo.simulation.pebble import orders, play, profiles
from eligo.simulation.players import SCHEDULERS, Live, Player, scheduler
from eligo.simulation.volatile import Clients, Played, volatile

__all__ = [
    "SCHEDULERS",
    "Clients",
    "Dealing",
    "Live",
    "Played",
    "Player",
    "Trace",
    "batched",
    "deal",
    "drawn_requests",
    "orders",
    "play",
    "profiles",
    "scheduler",
    "trace",
    "volatile",
]
