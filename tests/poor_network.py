"""A server and its clients in networks of their own, joined by a wire that loses packets and delays the others.

The wire is between two TUN devices and is made here, so that it needs nothing of the kernel but these: tc's netem is not
in every one. Loss and delay are those of packets, and TCP has to see to the rest, as between real machines. A namespace is a
thread's: what a thread in it opens, and whom it starts, is in it.
"""

import asyncio
import ctypes
import fcntl
import heapq
import os
import queue
import random
import select
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest

from fault_scenarios import Size, ended, watched, with_real
from light_clients import Ledger, working
from server_faults import Line, ServerProcess, layered, light, line, worker

T = TypeVar("T")
NEWNET, TUNSETIFF, TUN, BARE = 0x40000000, 0x400454CA, 0x0001, 0x1000  # as the kernel calls them
HERE, THERE = "10.77.0.2", "10.77.0.1"  # of the clients, of the server
LARGEST = 65_536


class NoNetworkError(Exception):
    """Why there can be no network of one's own."""


def own_network(address: str) -> int:
    """Put this thread into a network of its own; the end of its wire, which has that address."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEWNET):
        raise NoNetworkError(f"a network of one's own: {os.strerror(ctypes.get_errno())}")
    try:
        end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH22x", b"wire", TUN | BARE))
        for words in (f"address add {address}/30 dev wire", "link set wire up", "link set lo up"):
            subprocess.run(["ip", *words.split()], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise NoNetworkError(f"a TUN device: {error}") from None
    return end


@dataclass(eq=False)
class Wire:
    """Carries packets both ways, and loses this share of them; the others are late by so many seconds."""

    ends: tuple[int, int]
    loss: float = 0.0
    delay: float = 0.0
    carried: int = 0
    lost: int = 0
    over: bool = False
    _late: list[tuple[float, int, int, bytes]] = field(default_factory=list)
    _chance: random.Random = field(default_factory=lambda: random.Random(11))

    def carry(self) -> None:
        """Until it is over."""
        while not self.over:
            soonest = self._late[0][0] - time.monotonic() if self._late else 0.1
            for end in select.select(self.ends, [], [], min(0.1, max(0.0, soonest)))[0]:
                self._take(end, self.ends[end == self.ends[0]])
            while self._late and self._late[0][0] <= time.monotonic():
                *_, to, packet = heapq.heappop(self._late)
                os.write(to, packet)

    def _take(self, end: int, to: int) -> None:
        packet = os.read(end, LARGEST)
        if self._chance.random() < self.loss:
            self.lost += 1
            return
        self.carried += 1
        heapq.heappush(self._late, (time.monotonic() + self.delay, self.carried, to, packet))


@contextmanager
def joined() -> Iterator[tuple[Wire, str]]:
    """Put this thread into a network of its own, from which a wire leads to another; and where that one is to be found."""
    made, done = queue.SimpleQueue[tuple[int, int] | NoNetworkError](), threading.Event()

    def there() -> None:
        try:
            made.put((own_network(THERE), threading.get_native_id()))
        except NoNetworkError as error:
            made.put(error)
        done.wait()

    with ExitStack() as stack:
        stack.callback(done.set)
        threading.Thread(target=there, daemon=True).start()
        found = made.get()
        if isinstance(found, NoNetworkError):
            raise found
        ends = (own_network(HERE), found[0])
        for end in ends:
            stack.callback(os.close, end)
        wire = Wire(ends)
        carrying = threading.Thread(target=wire.carry)
        carrying.start()
        stack.callback(carrying.join)
        stack.callback(setattr, wire, "over", True)
        yield wire, f"/proc/{os.getpid()}/task/{found[1]}/ns/net"


def aside(function: Callable[[], T]) -> T:
    """What a function gives in a thread of its own, whose network may become another."""
    given = Future[T]()

    def run() -> None:
        try:
            given.set_result(function())
        except BaseException as error:
            given.set_exception(error)

    threading.Thread(target=run).start()
    try:
        return given.result()
    except NoNetworkError as error:
        pytest.skip(f"PACKETS THAT ARE LOST WERE NOT TESTED: the administrator's rights are needed, for {error}")


def lossy(folder: Path, size: Size, loss: float, delay: float, cut: float = 0.0) -> Line:
    """Packets are lost and late both ways; after a while none arrives for so many seconds."""
    return aside(lambda: _lossy(folder, size, (loss, delay, cut)))


def _lossy(folder: Path, size: Size, how: tuple[float, float, float]) -> Line:
    began, ledger = time.monotonic(), Ledger()
    with joined() as (wire, network), ExitStack() as real:
        server = ServerProcess(folder, "--host", THERE, "--allow-host", THERE, "--insecure", "--lease", "30", "-q")
        server.host, server.before = THERE, ("nsenter", f"--net={network}")
        with server:
            workflow = server.submit(layered(size.tasks, size.wide, run=f"sleep {size.nap}"))
            for i in range(size.workers):
                real.enter_context(worker(server, folder / f"w{i}"))

            async def play(server: ServerProcess, over: asyncio.Event) -> None:
                doing = asyncio.ensure_future(
                    working(light(size.clients, server.address, ledger, nap=size.nap), over, 240)
                )
                wire.loss, wire.delay, cut = how
                if cut:
                    await asyncio.sleep(5.0)
                    wire.loss = 1.0
                    await asyncio.sleep(cut)
                    wire.loss = how[0]
                assert await doing, f"it took too long: {server.kills}"

            asyncio.run(watched(server, workflow, play))
            server.kill()
            verdict = ended(server, workflow, with_real(ledger, server, workflow, size.workers))
    said = f"{wire.carried:,} packets carried, {wire.lost:,} lost; {ledger.cuts} tries given up; goes on by itself"
    tried = f"{how[0]:.0%} of packets lost, {1000 * how[1]:g} ms late each way"
    tried += f", none for {how[2]:g} s" if how[2] else ""
    return line(("11", tried + " (two network namespaces)", str(size)), began, said, verdict)
