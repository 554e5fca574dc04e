"""Bodies of requests as they come in, within the time that their senders have."""

import asyncio
import time
from collections.abc import Generator
from types import coroutine
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive

from eligo.server.http.budgets import Account
from eligo.server.http.refusals import RefusedError

LINGER, LINGER_BYTES = 1.0, 16 * 2**20  # what is read on after a refusal, so that the other side sees the refusal


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
