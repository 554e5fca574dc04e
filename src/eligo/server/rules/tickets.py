"""What a client says to the server, and what it gets: the words that the rules work with."""

from dataclasses import dataclass, field
from typing import NamedTuple

from eligo.server.rules.clients import Client
from eligo.server.rules.needs import Offer
from eligo.server.rules.served import Served
from eligo.work.attempts import Lease


class Request(NamedTuple):
    """What a client asks for."""

    #: how many grants at most, and how many tasks in each, or instead so many seconds of work
    grants: int = 1
    size: int = 1
    seconds: float | None = None
    #: how long it waits for something
    wait: float = 0.0
    cores: float = 1.0
    memory: float = float("inf")
    labels: frozenset[str] = frozenset()
    #: the beginnings of the hashes of files that it has
    files: frozenset[str] = frozenset()


def offer_of(client: Client, request: Request) -> Offer:
    """What a client has for tasks; an operator's tags count as labels."""
    return Offer(request.cores, request.memory, request.labels.union(client.tags))


class Granted(NamedTuple):
    """What a client gets: the leases of tasks in the order in which it can run them, and why these."""

    served: Served
    leases: list[Lease]
    why: str


@dataclass(slots=True, eq=False)
class Ticket:
    """A request that waits for its answer."""

    client: Client
    key: str
    request: Request
    until: float
    #: all that decides which tasks fit: requests of one offer are answered alike
    offer: Offer
    #: requests are answered in this order
    number: int = 0
    grants: list[Granted] = field(default_factory=list)
    #: how many seconds the client shall stay away
    away: float = 0.0
    #: whether nothing will come any more
    stop: bool = False
