"""Request bodies: received within a time limit, and kept in memory or, if they are large, in a file.

Disk work for bodies and files has threads of its own, so that transfers never wait for other work.
"""

import asyncio
import tempfile
import time
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import coroutine
from typing import IO, Any, ParamSpec, TypeVar

from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive

from eligo.server.http.budgets import Account
from eligo.server.http.refusals import RefusedError

MEGABYTE = 2**20
PIECE = MEGABYTE  # bytes for which it is worth going to a thread
THREADS = 16  # more threads do not make disks faster
LINGER, LINGER_BYTES = 1.0, 16 * MEGABYTE  # limits of reading on after a refusal, so that the client sees the refusal
P = ParamSpec("P")
T = TypeVar("T")
_POOL = ThreadPoolExecutor(THREADS, thread_name_prefix="eligo files")


async def in_file_thread(function: Callable[P, T], *given: P.args, **named: P.kwargs) -> T:
    """Call a function that waits for a disk, in a thread for such functions."""
    return await asyncio.get_running_loop().run_in_executor(_POOL, lambda: function(*given, **named))


# Receiving


class Waiting:
    """The parts of a body: the client may let us wait *patience* seconds, and longer the more it has brought.

    What it has brought earns it a pause of at most *stall* seconds: else a large part would pay for hours of silence.
    """

    __slots__ = ("left", "rate", "receive", "stall")

    def __init__(self, receive: Receive, patience: float, rate: float, stall: float) -> None:
        self.receive, self.left, self.rate, self.stall = receive, patience, rate, max(patience, stall)

    async def next(self) -> Message:
        """The next message; only the time that is waited for it counts, not what we do between."""
        call: Any = self.receive()
        try:
            pending = call.send(None)
        except (
            StopIteration
        ) as there:  # mostly it came with the headers, and a timer would cost as much as all the rest
            message: Message = there.value
        else:
            message = await self._later(call, pending)
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        return message

    async def _later(self, call: Any, pending: Any) -> Message:
        began = time.monotonic()
        try:
            async with asyncio.timeout(self.left):
                message: Message = await _resumed(call, pending)
        except TimeoutError:
            raise RefusedError(408, "the body arrived too slowly", connection="close") from None
        earned = len(message.get("body", b"")) / self.rate - (time.monotonic() - began)
        self.left = min(self.left + earned, self.stall)
        return message


@coroutine
def _resumed(call: Any, pending: Any) -> Generator[Any, Any, Message]:
    """A coroutine that was begun by hand, and that waits for something, taken up again by the loop."""
    try:
        yield pending
    except BaseException as error:
        call.throw(error)
        raise
    message: Message = yield from call
    return message


class Upload:
    """What comes in for a file: passed on as it comes, within its time."""

    __slots__ = ("_account", "_done", "_waiting")

    def __init__(self, waiting: Waiting, account: Account) -> None:
        self._waiting, self._done, self._account = waiting, False, account

    async def __call__(self) -> Message:
        """The next part, or what comes after the last."""
        if self._done:
            return await self._waiting.receive()
        try:
            message = await self._waiting.next()
        except ClientDisconnect:
            self._account.gone = True
            raise
        self._done = not message.get("more_body")
        self._account.taken += len(message["body"])
        return message


class Replay:
    """A body that was read already, and then whatever comes after it."""

    __slots__ = ("_body", "_receive")

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Message:
        """The body, or what comes after it."""
        body, self._body = self._body, None
        if body is None:
            return await self._receive()
        return {"type": "http.request", "body": body, "more_body": False}


async def linger(receive: Receive) -> None:
    """Read on a little: a connection that is closed over unread bytes is reset, and the refusal lost with it."""
    remaining = LINGER_BYTES
    try:
        async with asyncio.timeout(LINGER):
            while remaining > 0:
                message = await receive()
                remaining -= len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body"):
                    return
    except TimeoutError:
        return


# Keeping


@dataclass(slots=True)
class Spool:
    """How much of bodies that are not whole yet may be in memory; files without a name in *folder* take the rest."""

    #: of one body, and of all
    each: int = 4 * MEGABYTE
    all: int = 32 * MEGABYTE
    folder: str | None = None
    #: how much is in memory now
    taken: int = 0


class Body:
    """A body that comes part by part; `close` it in any case."""

    __slots__ = ("_file", "_parts", "_size", "_spool")

    def __init__(self, spool: Spool) -> None:
        self._spool, self._size = spool, 0  # what of it is in memory
        self._parts: list[bytes] = []
        self._file: IO[bytes] | None = None

    async def add(self, part: bytes) -> None:
        """Another part."""
        spool = self._spool
        self._parts.append(part)
        self._size += len(part)
        spool.taken += len(part)
        most = spool.each if self._file is None else PIECE
        if self._size > most or spool.taken > spool.all:
            await self._spill()

    async def whole(self) -> bytes:
        """All of it."""
        if self._file is None:
            return b"".join(self._parts)
        await self._spill()
        return await in_file_thread(self._read)

    async def _spill(self) -> None:
        parts, self._parts = self._parts, []
        self._spool.taken -= self._size
        self._size = 0
        try:
            await in_file_thread(self._write, parts)
        except OSError as error:
            sentence = f"the server has no space for a body of this size: {error.strerror}"
            raise RefusedError(503, sentence, after=60) from None

    def _write(self, parts: list[bytes]) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._spool.folder)  # noqa: SIM115 - `close` closes it
        self._file.writelines(parts)

    def _read(self) -> bytes:
        if self._file is None:
            return b""
        self._file.seek(0)
        return self._file.read()

    def close(self) -> None:
        """Free the body."""
        self._spool.taken -= self._size
        self._size = 0
        if self._file is not None:
            self._file.close()
