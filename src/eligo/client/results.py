"""The leases of a client, renewed by one thread for all, and its results, each stored until the server has it."""

import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from eligo.client.calls import Calls, ServerAwayError, ServerRefusedError
from eligo.client.folder import WorkFolder
from eligo.client.transfers import Depot, HashedFile, parse_file
from eligo.errors import EligoError, FormatError

USUAL_LEASE = 60.0  # seconds, until the server states them
SHORTEST_LEASE, LONGEST_LEASE = 0.3, 86_400.0
LONG = 1.0  # seconds of work that justify waiting for the disk
TOO_LARGE = 413
NOT_KNOWN = frozenset({401, 403, 404})  # codes that concern the client's identity rather than the result


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
            for lease in expired if isinstance(expired, list) else ():
                if lease in self._gone:
                    self._gone[lease] = True


@dataclass(frozen=True, slots=True)
class Delivery:
    """The result of one task, as sent to the server."""

    lease: str
    #: "done", "failed" or "returned"
    outcome: str
    seconds: float = 0.0
    code: int | None = None
    memory: int | None = None
    failure: str | None = None
    outputs: Mapping[str, HashedFile] = field(default_factory=dict)
    #: the end of its output
    tail: str = ""
    #: bytes of files that did not have to be sent
    saved: int = 0
    #: for returned tasks: whether the client died while running the task
    died: bool = False
    #: for returned tasks: whether no signature of the task is trusted
    distrusted: bool = False
    #: the document of the tasks that it adds
    added: str | None = None

    def document(self) -> dict[str, Any]:
        """The result as a message; without `added` if that is None, since older servers do not know it."""
        outputs = {name: file._asdict() for name, file in self.outputs.items()}
        words = {**asdict(self), "outputs": outputs}
        return words if self.added is not None else {name: word for name, word in words.items() if name != "added"}

    @staticmethod
    def from_document(words: Mapping[str, Any]) -> "Delivery":
        """A stored result."""
        values = {each.name: words[each.name] for each in fields(Delivery) if each.name in words}
        outputs = {name: parse_file(file) for name, file in words.get("outputs", {}).items()}
        return Delivery(**{**values, "outputs": outputs})


@dataclass(slots=True)
class Tally:
    """A client's totals."""

    done: int = 0
    failed: int = 0
    returned: int = 0
    #: bytes
    fetched: int = 0
    sent: int = 0
    saved: int = 0

    def __str__(self) -> str:
        tasks = f"{self.done:,} tasks done, {self.failed:,} failed, {self.returned:,} returned"
        return f"{tasks}; {self.fetched:,} bytes fetched, {self.sent:,} bytes sent, {self.saved:,} bytes saved"


class Courier:
    """Delivers results, and stores each until the server has it."""

    def __init__(
        self, calls: Calls, depot: Depot, folder: WorkFolder, leases: HeldLeases, say: Callable[[str], None]
    ) -> None:
        self._calls, self._depot, self._folder, self._leases, self._say = calls, depot, folder, leases, say
        self._tally, self._lock = Tally(), threading.Lock()

    def tally(self) -> Tally:
        """The totals so far."""
        depot, inside = self._depot, self._tally.saved
        return replace(self._tally, fetched=depot.fetched, sent=depot.sent, saved=depot.saved + inside)

    def began(self, leases: Sequence[str], seconds: object) -> None:
        """Record that the client has these leases: after a crash they are returned."""
        self._leases.hold(leases, seconds)
        for lease in leases:
            self.mark(lease, running=False)

    def mark(self, lease: str, running: bool) -> None:
        """Record whether a task is *running*: after a crash, the next client with this folder reports such a task as lost."""
        self._folder.owe(lease, Delivery(lease, "returned", died=running).document(), durable=False)

    def ended(self, result: Delivery) -> None:
        """Store a result for delivery after a crash; results of long tasks also survive a failure of the machine."""
        self._folder.owe(result.lease, result.document(), durable=result.seconds >= LONG)

    def forget(self, lease: str) -> None:
        """Drop a lease that the client has lost: its result is not delivered."""
        self._folder.settle(lease)
        self._leases.drop(lease)

    def owed(self) -> list[Delivery]:
        """The results that an earlier client left for delivery."""
        results = list[Delivery]()
        for words in self._folder.owed():
            with suppress(FormatError):  # not written by a client
                results.append(Delivery.from_document(words))
                self._depot.pin(*results[-1].outputs.values())
        return results

    def deliver(
        self, results: Sequence[Delivery], until: Callable[[], bool], ask: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Deliver results, with a request for more tasks if *ask*; returns the server's answer."""
        if not results:
            return {}
        taken = [self._upload_files(result, until) for result in results]
        words = {"results": [result.document() for result in taken], "ask": ask}
        try:
            reply = self._calls.post("/v1/deliver", words, until)
        except ServerRefusedError as error:
            if error.code in NOT_KNOWN:
                raise
            if error.code == TOO_LARGE and len(taken) > 1:
                half = len(taken) // 2
                self.deliver(taken[:half], until)
                return self.deliver(taken[half:], until, ask)
            self._say(f"{len(taken)} results were not delivered: {error}")
            reply = {}
        self._settle(taken)
        return reply

    def _upload_files(self, result: Delivery, until: Callable[[], bool]) -> Delivery:
        """Send the files of a result; if the server rejects one, the result is a failure."""
        for name, file in result.outputs.items():
            try:
                self._depot.send(file, until)
            except (ServerRefusedError, FileNotFoundError) as error:
                if isinstance(error, ServerRefusedError) and error.code in {401, 403}:
                    raise
                self._depot.unpin(*result.outputs.values())
                why = error if isinstance(error, EligoError) else "no longer there"
                return replace(result, outcome="failed", outputs={}, failure=f"cannot send {name!r}: {why}")
        return result

    def _settle(self, results: Sequence[Delivery]) -> None:
        for result in results:
            self.forget(result.lease)
            self._depot.unpin(*result.outputs.values())
            with self._lock:
                setattr(self._tally, result.outcome, getattr(self._tally, result.outcome) + 1)
                self._tally.saved += result.saved
