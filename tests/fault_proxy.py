"""A small proxy that loses what it should pass on: for tests of what becomes of calls whose other end never hears of them.

A request is lost before the server sees it, or its answer after the server has done what it asks: in both cases the caller
sees a connection that ends. Delays, and times in which nothing passes at all, come on top.
"""

import asyncio
import random
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

from light_clients import Head, read_message


@dataclass(eq=False)
class FaultProxy:
    """Passes requests on to a server; *lost* is the chance that a request is lost, and that an answer is."""

    port: int  # of the server
    lost: float = 0.0
    #: the longest time for which a message is held back, in seconds
    delay: float = 0.0
    chance: random.Random = field(default_factory=lambda: random.Random(7))
    seen: Counter[str] = field(default_factory=Counter)
    #: while nothing passes
    cut: bool = False

    async def __aenter__(self) -> Self:
        self._open = set[asyncio.StreamWriter]()
        self._listening = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=4096)
        self.address = ("127.0.0.1", int(self._listening.sockets[0].getsockname()[1]))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._listening.close()
        self.sever()

    def sever(self) -> None:
        """Cut all connections."""
        for writer in list(self._open):
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        with suppress(OSError, EOFError, asyncio.IncompleteReadError):
            while await self._passed(reader, writer):
                pass
        self._open.discard(writer)
        writer.close()

    async def _passed(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Pass one request and its answer on; False where one of them is lost."""
        request = await read_message(reader)
        self.seen["requests"] += 1
        if self._fails():
            self.seen["requests lost"] += 1
            return False
        await asyncio.sleep(self.chance.uniform(0, self.delay))
        answer = await self._forwarded(request, reader)
        if self._fails():
            self.seen["answers lost"] += 1
            return False
        await asyncio.sleep(self.chance.uniform(0, self.delay))
        writer.write(answer)
        await writer.drain()
        return True

    def _fails(self) -> bool:
        return self.cut or self.chance.random() < self.lost

    async def _forwarded(self, request: tuple[Head, bytes], caller: asyncio.StreamReader) -> bytes:
        """The server's answer, over a connection of its own, which ends when the caller does."""
        far, onward = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            onward.write(request[0].raw + request[1])
            answering = asyncio.ensure_future(read_message(far, request[0].first.startswith("HEAD ")))
            gone = asyncio.ensure_future(_ended(caller))
            done, _ = await asyncio.wait({answering, gone}, return_when=asyncio.FIRST_COMPLETED)
            gone.cancel()
            if answering not in done:
                answering.cancel()
                raise EOFError
            head, body = answering.result()
            return head.raw + body
        finally:
            onward.close()


async def _ended(reader: asyncio.StreamReader) -> None:
    """Wait until the other side hangs up; it says nothing while it waits for an answer."""
    while not reader.at_eof():
        await asyncio.sleep(0.1)
