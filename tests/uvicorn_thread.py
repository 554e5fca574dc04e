"""A real server on loopback, in a thread, and raw sockets to speak to it."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from eligo.server.http.protocol import Patience, protocol


@contextmanager
def served(app: Any, patience: Patience | None = None) -> Iterator[tuple[str, int]]:
    """The address of a server of this app, for as long as the block lasts."""
    config = uvicorn.Config(
        app, host="127.0.0.1", port=0, http=protocol(patience), ws="none", log_config=None, access_log=False,
        lifespan="off", timeout_graceful_shutdown=1, proxy_headers=False,
    )  # fmt: skip
    server = uvicorn.Server(config)
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.005)
    try:
        yield listener.getsockname()
    finally:
        server.should_exit = True
        thread.join(20)
        listener.close()
        assert not thread.is_alive()


def connected(address: tuple[str, int], timeout: float = 60.0) -> socket.socket:
    return socket.create_connection(address, timeout)


def rest(connection: socket.socket) -> bytes:
    """All that still comes, until the other side closes."""
    got = b""
    try:
        while part := connection.recv(65536):
            got += part
    except ConnectionResetError:
        pass
    return got


def said(address: tuple[str, int], *parts: bytes) -> bytes:
    """What a server says to these bytes, which ask it to close afterwards."""
    with connected(address) as connection:
        for part in parts:
            connection.sendall(part)
        return rest(connection)


def post(path: str = "/v1/deliver", body: bytes = b"{}", **headers: str) -> bytes:
    """The bytes of a POST that is to be the last of its connection."""
    given = {"Host": "localhost", "Connection": "close", "Content-Length": str(len(body))}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in given.items() if value)
    return f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + body


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0
