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
    """Receives the parts of a body; the client may pause for *patience* seconds, and longer the more it has sent.

    Sent bytes earn a pause of at most *stall* seconds; otherwise one large part would allow hours of silence.
    """

    __slots__ = ("rate", "receive", "seconds", "stall")

    def __init__(self, receive: Receive, patience: float, rate: float, stall: float) -> None:
        self.receive, self.seconds, self.rate, self.stall = receive, patience, rate, max(patience, stall)

    async def next(self) -> Message:
        """The next message; only the time spent waiting for it counts against the client."""
        call: Any = self.receive()
        try:
            pending = call.send(None)
        except StopIteration as result:  # mostly it came with the headers; a timer would cost as much as the rest
            message: Message = result.value
        else:
            message = await self._await_message(call, pending)
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        return message

    async def _await_message(self, call: Any, pending: Any) -> Message:
        began = time.monotonic()
        try:
            async with asyncio.timeout(self.seconds):
                message: Message = await _resume(call, pending)
        except TimeoutError:
            raise RefusedError(408, "the body arrived too slowly", connection="close") from None
        earned = len(message.get("body", b"")) / self.rate - (time.monotonic() - began)
        self.seconds = min(self.seconds + earned, self.stall)
        return message


@coroutine
def _resume(call: Any, pending: Any) -> Generator[Any, Any, Message]:
    """Let the event loop continue a coroutine that was started by hand and is waiting for *pending*."""
    try:
        yield pending
    except BaseException as error:
        call.throw(error)
        raise
    message: Message = yield from call
    return message


class Upload:
    """The ASGI `receive` of an upload: passes on each part as it arrives, within the time limit."""

    __slots__ = ("_account", "_done", "_waiting")

    def __init__(self, waiting: Waiting, account: Account) -> None:
        self._waiting, self._done, self._account = waiting, False, account

    async def __call__(self) -> Message:
        """The next part, or the message after the last one."""
        if self._done:
            return await self._waiting.receive()
        try:
            message = await self._waiting.next()
        except ClientDisconnect:
            self._account.gone = True
            raise
        self._account.read = self._done = not message.get("more_body")
        self._account.taken += len(message["body"])
        return message


class Replay:
    """The ASGI `receive` of a request whose body is read already."""

    __slots__ = ("_body", "_receive")

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Message:
        """The body, or the message after it."""
        body, self._body = self._body, None
        if body is None:
            return await self._receive()
        return {"type": "http.request", "body": body, "more_body": False}


async def linger(receive: Receive) -> None:
    """Read a little more: closing a connection with unread bytes resets it, and the client would lose the refusal."""
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
    """How many bytes of incomplete bodies may be in memory; unnamed files in *folder* take the rest."""

    #: of one body, and of all bodies
    each: int = 4 * MEGABYTE
    all: int = 32 * MEGABYTE
    folder: str | None = None
    #: bytes in memory now
    taken: int = 0


class Body:
    """A body that is collected part by part; it must be closed."""

    __slots__ = ("_file", "_parts", "_size", "_spool")

    def __init__(self, spool: Spool) -> None:
        self._spool, self._size = spool, 0  # bytes in memory
        self._parts: list[bytes] = []
        self._file: IO[bytes] | None = None

    async def add(self, part: bytes) -> None:
        """Append a part."""
        spool = self._spool
        self._parts.append(part)
        self._size += len(part)
        spool.taken += len(part)
        most = spool.each if self._file is None else PIECE
        if self._size > most or spool.taken > spool.all:
            await self._spill()

    async def content(self) -> bytes:
        """The complete body."""
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
        """Free the memory and the file of the body."""
        self._spool.taken -= self._size
        self._size = 0
        if self._file is not None:
            self._file.close()
