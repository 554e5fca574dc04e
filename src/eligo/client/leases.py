"""The leases of a client, renewed by one thread for all, and the cores that its tasks share."""

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from eligo.client.calls import Calls, ServerAwayError, ServerRefusedError

USUAL_LEASE = 60.0  # seconds, until the server states them
SHORTEST_LEASE, LONGEST_LEASE = 0.3, 86_400.0
LOOK = 0.1  # seconds between two checks whether to give up


class HeldLeases:
    """The leases of a client; those that the server reports as expired stay here until they are dropped."""

    def __init__(self, calls: Calls) -> None:
        self._calls, self._lock = calls, threading.Lock()
        self._gone = dict[str, bool]()
        self._seconds, self._changed, self._closed = USUAL_LEASE, threading.Event(), False
        self._thread = threading.Thread(target=self._beat, name="eligo leases", daemon=True)

    def start(self) -> None:
        """Start renewing."""
        self._thread.start()

    def hold(self, leases: Sequence[str], seconds: object) -> None:
        """Renew these leases from now on; each lasts this many seconds."""
        with self._lock:
            self._gone |= dict.fromkeys(leases, False)
            if isinstance(seconds, int | float) and seconds > 0 and seconds != self._seconds:
                self._seconds = float(min(max(seconds, SHORTEST_LEASE), LONGEST_LEASE))
                self._changed.set()

    def drop(self, lease: str) -> None:
        """Stop renewing a lease."""
        with self._lock:
            self._gone.pop(lease, None)

    def gone(self, lease: str) -> bool:
        """Whether the client has lost a lease."""
        return self._gone.get(lease, False)

    def close(self) -> None:
        """Stop renewing all leases."""
        self._closed = True
        self._changed.set()
        if self._thread.is_alive():
            self._thread.join()

    def _beat(self) -> None:
        """Renew after a third of the lease time; while the server is unreachable, sooner and at random times."""
        last, share = time.monotonic(), 1.0
        while not self._closed:
            if self._changed.wait(max(0.0, last + share * self._seconds / 3 - time.monotonic())):
                self._changed.clear()
                continue
            last, share = time.monotonic(), 1.0
            try:
                self._renew()
            except (ServerAwayError, ServerRefusedError):
                share = random.uniform(0.2, 0.8)  # noqa: S311 - no secret
        self._calls.close()

    def _renew(self) -> None:
        with self._lock:
            leases = [lease for lease, expired in self._gone.items() if not expired]
        if not leases:
            return
        reply = self._calls.post("/v1/renew", {"leases": leases}, lambda: True, patience=max(1.0, self._seconds / 3))
        expired = reply.get("gone")
        with self._lock:
            self._gone |= {
                lease: True for lease in (expired if isinstance(expired, list) else ()) if lease in self._gone
            }


class Cores:
    """The cores that tasks share, first come, first served; a task that wants more than there are gets all.

    >>> cores = Cores(2)
    >>> with cores.taken(5, lambda: False):
    ...     cores.idle()
    False
    >>> cores.idle()
    True
    """

    def __init__(self, number: int) -> None:
        self._all = self._free = number
        self._queue, self._changed = deque[object](), threading.Condition()

    def idle(self) -> bool:
        """Whether a task of one core could start now."""
        return self._free > 0 and not self._queue

    def wait_idle(self, until: Callable[[], bool]) -> None:
        """Wait until a task could start, or *until* returns True."""
        with self._changed:
            while not self.idle() and not until():
                self._changed.wait(LOOK)

    @contextmanager
    def taken(self, number: int, until: Callable[[], bool]) -> Iterator[bool]:
        """Reserve cores; yields whether they became free before *until* returned True."""
        number, ticket = min(number, self._all), object()
        with self._changed:
            self._queue.append(ticket)
            while not (mine := self._queue[0] is ticket and self._free >= number) and not until():
                self._changed.wait(LOOK)
            self._queue.remove(ticket)
            self._free -= number if mine else 0
            self._changed.notify_all()
        try:
            yield mine
        finally:
            with self._changed:
                self._free += number if mine else 0
                self._changed.notify_all()
