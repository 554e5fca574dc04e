"""Shared capacity: how much memory for bodies, and how many of the concurrent requests, each caller may take."""

import asyncio
import time
from collections.abc import Callable
from ipaddress import ip_address, ip_network
from operator import attrgetter
from typing import Any


class Account:
    """One request: its id, its caller and the caller's owner, the capacity that it holds, and its totals.

    *most* is the largest body that it may have, and *read* whether all of it has arrived.
    """

    __slots__ = ("began", "caller", "dropped", "gone", "holds", "most", "owner", "read", "request", "sent", "status",
                 "taken", "task")  # fmt: skip

    def __init__(self, request: str) -> None:
        self.request, self.caller, self.owner, self.began = request, "", "", time.perf_counter()
        self.status = self.sent = self.taken = self.most = 0
        self.dropped = self.gone = self.read = False
        self.holds: dict[Capacity, int] = {}
        self.task: asyncio.Task[Any] | None = None  # the task that answers it, if it may be dropped

    def drop(self) -> None:
        """Cancel the request, because other callers need the capacity that it holds."""
        self.dropped = True
        if self.task is not None:
            self.task.cancel()

    def close(self) -> None:
        """Release all capacity that the request holds."""
        for capacity in tuple(self.holds):
            capacity.release(self)


class Capacity:
    """An amount of a resource that all callers share and that no caller can use up.

    A caller may hold at most as much as then stays free: the first one gets half, the next one half of the rest, so some is
    always free. That alone would leave little for the last of many callers, or of many names of one caller. So a request that
    finds too little replaces droppable requests of callers that hold at least as much, the one of most *weight* first.
    *by* is the attribute of a request that names its caller.
    """

    def __init__(self, total: int, weight: Callable[[Account], float] | None = None, by: str = "caller") -> None:
        self.total = self.free = total
        self.weight = weight
        self._caller: Callable[[Account], str] = attrgetter(by)
        #: the amount that each caller holds; callers that hold nothing are missing
        self.held: dict[str, int] = {}
        self._droppable: set[Account] = set()

    def take(self, account: Account, size: int = 1) -> bool:
        """Add *size* to what a request holds; if that is too much, release all that it holds and return False."""
        caller = self._caller(account)
        account.holds[self] = account.holds.get(self, 0) + size
        mine = self.held[caller] = self.held.get(caller, 0) + size
        self.free -= size
        if self.free >= mine or self._make_room(account):
            return True
        self.release(account)
        return False

    def release(self, account: Account) -> None:
        """Release all that a request holds."""
        size = account.holds.pop(self, 0)
        self._droppable.discard(account)
        self.free += size
        caller = self._caller(account)
        remaining = self.held.pop(caller, 0) - size
        if remaining > 0:
            self.held[caller] = remaining

    def expose(self, account: Account) -> None:
        """Allow this request, which the current task answers, to be dropped in favour of others."""
        account.task = asyncio.current_task()
        self._droppable.add(account)

    def protect(self, account: Account) -> None:
        """No longer allow this request to be dropped."""
        self._droppable.discard(account)

    def _make_room(self, account: Account) -> bool:
        while self.free < self.held[self._caller(account)]:
            victim = self._victim(account)
            if victim is None:
                return False
            self.release(victim)
            victim.drop()
        return True

    def _victim(self, account: Account) -> Account | None:
        """The heaviest request to drop for this one: of a caller that holds as much, or of this caller if twice as large."""
        if self.weight is None:
            return None
        caller, size = self._caller(account), account.holds[self]
        mine = self.held[caller]
        heaviest = max(
            (one for one in self._droppable
             if (one.holds[self] >= 2 * size if (other := self._caller(one)) == caller else self.held[other] >= mine)),
            key=self.weight, default=None,
        )  # fmt: skip
        return heaviest if heaviest is not None and self.weight(heaviest) > 0 else None


def origin(peer: Any) -> str:
    """The address under which a connection is counted; for IPv6 its /64 network, which one subscriber has.

    >>> origin(("192.0.2.7", 50000)), origin(("2001:db8::5", 50000, 0, 0)), origin("")
    ('192.0.2.7', '2001:db8::/64', '')
    """
    if not isinstance(peer, tuple):
        return ""  # a socket of this machine
    host = str(peer[0]).partition("%")[0]
    return host if ip_address(host).version == 4 else str(ip_network((host, 64), strict=False))
