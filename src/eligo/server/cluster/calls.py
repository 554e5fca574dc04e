"""Calls from one server to another: HTTP/1.1 on connections that stay open, and no more at a time than a few."""

import asyncio
import ssl
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import urlsplit

MOST_AT_A_TIME = 32  # calls to one server
MOST_IDLE = 8  # connections to one server that are kept open
LARGEST = 256 * 2**20
CONNECTING = 2.0  # seconds

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class PassedOn(NamedTuple):
    """What another server answered."""

    status: int
    headers: dict[str, str]
    body: bytes


class Neighbour:
    """Another server, at its address."""

    def __init__(self, address: str, tls: ssl.SSLContext | None = None) -> None:
        url = urlsplit(address)
        self.name, self.host = url.netloc, url.hostname or ""
        self.tls = tls if url.scheme == "https" else None
        self.port = url.port or (443 if self.tls else 80)
        self._idle: list[Streams] = []
        self._places = asyncio.Semaphore(MOST_AT_A_TIME)

    async def call(
        self, method: str, path: str, headers: dict[str, str], body: bytes = b"", patience: float = 10.0
    ) -> PassedOn:
        """What it answers; `OSError` where it does not, or not in time."""
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self.name}", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        request = "\r\n".join([*lines, "", ""]).encode("latin-1") + body
        async with self._places:
            while self._idle:  # the other side may have closed it meanwhile, which is seen only now
                with suppress(ConnectionError, asyncio.IncompleteReadError):
                    return await self._exchange(self._idle.pop(), request, patience)
            try:
                return await self._exchange(await self._connected(), request, patience)
            except asyncio.IncompleteReadError:
                raise OSError(f"{self.name} closed the connection before its answer was complete") from None

    async def _connected(self) -> Streams:
        async with asyncio.timeout(CONNECTING):
            return await asyncio.open_connection(self.host, self.port, ssl=self.tls)

    async def _exchange(self, streams: Streams, request: bytes, patience: float) -> PassedOn:
        reader, writer = streams
        complete = False
        try:
            async with asyncio.timeout(patience):
                writer.write(request)
                await writer.drain()
                answer = await _read(reader)
                complete = True
        except (asyncio.LimitOverrunError, ValueError) as error:
            raise OSError(f"invalid answer from {self.name}: {error}") from None
        finally:
            if complete and answer.headers.get("connection") != "close" and len(self._idle) < MOST_IDLE:
                self._idle.append(streams)
            else:
                writer.close()
        return answer

    def close(self) -> None:
        """Let go of its connections."""
        for _, writer in self._idle:
            writer.close()
        self._idle.clear()


async def _read(reader: asyncio.StreamReader) -> PassedOn:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {}
    for line in head[1:-2]:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    if "content-length" not in headers:
        raise ValueError("no Content-Length header")
    size = int(headers["content-length"])
    if not 0 <= size <= LARGEST:
        raise ValueError("answer too large")
    return PassedOn(int(head[0].split(" ")[1]), headers, await reader.readexactly(size))
