"""Delivers results to the server, after the files they contain; each is stored until the server has it."""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from eligo.client.calls import Calls, ServerRefusedError
from eligo.client.folder import WorkFolder
from eligo.client.leases import HeldLeases
from eligo.client.transfers import Depot, HashedFile, parse_file
from eligo.errors import EligoError, FormatError

LONG = 1.0  # seconds of work that justify waiting for the disk
TOO_LARGE = 413
NOT_KNOWN = frozenset({401, 403, 404})  # codes that concern the client's identity rather than the result


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
        taken = [self._uploaded(result, until) for result in results]
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

    def _uploaded(self, result: Delivery, until: Callable[[], bool]) -> Delivery:
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
