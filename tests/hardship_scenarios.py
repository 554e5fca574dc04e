"""Disks that fill, stores that are locked or torn, clocks that jump, herds of clients, and ends that are asked for."""

import asyncio
import os
import pickle
import random
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import pytest

from eligo.execution import COMPLETE, unpacked
from fault_scenarios import Size, ended, watched
from light_clients import Ledger, percentile, working
from running_cases import COMMAND
from server_faults import Line, ServerProcess, kept, layered, light, line, worker

FAKETIME = (
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
)
DAY = 86_400


# The store


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[Path]:
    """A disk of few bytes; only the administrator can make one."""
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place], check=False, capture_output=True
    )
    if made.returncode:
        pytest.skip(f"A FULL DISK WAS NOT TESTED: no disk can be made here: {made.stderr.decode().strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def full_disk(folder: Path, size: Size, seconds: float) -> Line:
    """The disk of the store fills, and has room again after so many seconds."""
    began, ledger = time.monotonic(), Ledger()

    async def play(server: ServerProcess, over: asyncio.Event) -> None:
        doing = asyncio.ensure_future(working(light(size.clients, server.address, ledger, nap=size.nap), over, 120))
        await asyncio.sleep(1.0)
        with suppress(OSError), open(Path(server.store).parent / "fill", "wb", buffering=0) as file:
            while file.write(bytes(4096)):
                pass
        until = time.monotonic() + 20
        while (await asyncio.to_thread(server.get, "/ready")).status != 503:
            assert time.monotonic() < until, "the disk is full and nobody says so"
            await asyncio.sleep(0.1)
        assert server.get("/health").words["status"] == "failing"  # it lives, and says so
        await asyncio.sleep(seconds)
        assert server.state(workflow)["state"] == "running"  # it can be looked at
        (Path(server.store).parent / "fill").unlink()
        assert await doing, "it did not heal"

    with small_disk(folder / "small", "8m") as disk:
        server = ServerProcess(folder, "-q", "--files", str(folder / "files"))
        server.store = disk / "served.db"
        with server:
            workflow = server.submit(layered(size.tasks, size.wide))
            asyncio.run(watched(server, workflow, play))
            assert "the store is writable again" in server.log()
            verdict = ended(server, workflow, ledger)
    assert ledger.codes[503] > 0
    what = ("19", "the store's disk is full", str(size))
    return line(what, began, f"{ledger.codes[503]:,} calls told 503; went on by itself when there was room", verdict)


def locked_store(folder: Path, size: Size, seconds: float) -> Line:
    """Somebody else locks the store's file for so many seconds."""
    began, ledger = time.monotonic(), Ledger()

    async def play(server: ServerProcess, over: asyncio.Event) -> None:
        doing = asyncio.ensure_future(
            working(light(size.clients, server.address, ledger, nap=size.nap), over, 120 + 2 * seconds)
        )
        await asyncio.sleep(0.7)
        with closing(sqlite3.connect(server.store, isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            await asyncio.sleep(seconds)
            database.execute("ROLLBACK")
        assert await doing, "it did not heal"

    with ServerProcess(folder, "-q") as server:
        workflow = server.submit(layered(size.tasks, size.wide))
        asyncio.run(watched(server, workflow, play))
        verdict = ended(server, workflow, ledger)
    what = ("20", f"the store's file is locked for {seconds:g} s", str(size))
    return line(what, began, f"{ledger.codes[503]:,} calls told 503, the others waited; went on by itself", verdict)


def torn_store(folder: Path, size: Size, cuts: int) -> Line:
    """The log of a killed server's store is cut at any byte, as by a power cut: what opens is whole, and a past moment."""
    began, ledger, rng = time.monotonic(), Ledger(), random.Random(8)

    async def play(server: ServerProcess, over: asyncio.Event) -> None:
        doing = asyncio.ensure_future(working(light(size.clients, server.address, ledger, nap=size.nap), over, 60))
        while len(ledger.accepted) < size.tasks // 2:
            await asyncio.sleep(0.05)
        server.kill()
        over.set()
        doing.cancel()
        await asyncio.gather(doing, return_exceptions=True)

    with ServerProcess(folder, "-q") as server:
        workflow = server.submit(layered(size.tasks, size.wide))
        asyncio.run(watched(server, workflow, play))
    length = Path(f"{server.store}-wal").stat().st_size
    whole = _torn(Path(server.store), length)
    assert len(whole) >= len(ledger.accepted), "acknowledged results were lost"
    for _ in range(cuts):
        found = _torn(Path(server.store), rng.randrange(length))
        assert whole[: len(found)] == found
    what = ("22", "the store's log cut at a random byte", f"{cuts} cuts, {length:,} bytes")
    return line(what, began, "each opened whole, as of an earlier moment")


def _torn(store: Path, length: int) -> list[int]:
    """The tasks that were completed, in their order, by a copy of which so much of the log is there."""
    copy = store.with_name("copy.db")
    shutil.copyfile(store, copy)
    shutil.copyfile(f"{store}-wal", f"{copy}-wal")
    os.truncate(f"{copy}-wal", length)
    try:
        return _completed(copy)
    finally:
        for name in (str(copy), f"{copy}-wal", f"{copy}-shm"):
            Path(name).unlink(missing_ok=True)


def _completed(store: Path) -> list[int]:
    with closing(sqlite3.connect(store)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'journal'").fetchall():
            return []
        moves = array("q")
        for (packed,) in database.execute("SELECT moves FROM journal ORDER BY workflow, first"):
            moves.frombytes(packed)
    return [v for kind, v in unpacked(moves) if kind == COMPLETE]


def second_server(folder: Path) -> Line:
    """A second server on the same file."""
    began = time.monotonic()
    with ServerProcess(folder, "-q") as server:
        command = [*COMMAND, "serve", "--open", "--store", str(server.store), "--port", "0"]
        second = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
        assert server.answers()
    assert second.returncode == 2
    assert "another server is using this file" in second.stderr
    what = ("21", "a second server on one SQLite file", "2 servers")
    return line(what, began, "refused in clear words")


# Clocks


def clocks(folder: Path, size: Size) -> Line:
    """The server's clock on the wall jumps by a day forth and back, also over a restart; clients tell absurd times."""
    library = next(filter(os.path.exists, FAKETIME), None)
    if library is None:
        pytest.skip("JUMPING CLOCKS WERE NOT TESTED: there is no libfaketime here (Debian: faketime)")
    began, ledger, rng = time.monotonic(), Ledger(), random.Random(9)
    hand = folder / "clock"
    hand.write_text("+0\n")

    async def play(server: ServerProcess, over: asyncio.Event) -> None:
        absurd = light(size.clients, server.address, ledger, nap=size.nap,
                       does=lambda task: {"seconds": rng.choice([0.0, 1e15, float(DAY), 1e-300])})  # fmt: skip
        doing = asyncio.ensure_future(working(absurd, over, 120))
        for offset in (f"+{DAY}", f"-{DAY}", "+0"):
            await asyncio.sleep(0.5)
            hand.write_text(f"{offset}\n")
            if offset.startswith("-"):
                await asyncio.sleep(0.3)
                server.kill()
                await asyncio.to_thread(server.start)
        assert await doing, "somebody waits for a clock"

    faked = {"LD_PRELOAD": library, "FAKETIME_TIMESTAMP_FILE": str(hand), "FAKETIME_CACHE_DURATION": "1",
             "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}  # fmt: skip
    with ServerProcess(folder, "--lease", "10", "-q", environment=faked) as server:
        workflow = server.submit(layered(size.tasks, size.wide))
        asyncio.run(watched(server, workflow, play))
        verdict = ended(server, workflow, ledger)
    assert verdict.late == 0, "a lease was lost by a clock"
    what = ("10", "the server's clock jumps by a day forth and back (faketime), clients tell absurd times", str(size))
    return line(what, began, "no lease lost, nobody stuck", verdict)


# Many at once


def herd(folder: Path, clients: int, processes: int = 1) -> Line:
    """All clients, each with a connection that it keeps, come at once after the server was killed."""
    began, ledger = time.monotonic(), Ledger()
    with ServerProcess(folder, "-q") as server, ExitStack() as herds:
        workflow = server.submit(layered(clients, clients))
        crowds = [herds.enter_context(_crowd(server, clients // processes, i)) for i in range(processes)]
        _heard(crowds, "enrolled")
        server.kill()
        _heard(crowds, "")
        time.sleep(0.2)
        server.start()
        back = time.monotonic()
        _heard(crowds, "served")
        files, memory, computed = server.files(), server.memory(), server.computed()
        _heard(crowds, "")
        given = sum((_learnt(folder / f"herd{i}", ledger) for i in range(processes)), start=list[float]())
        verdict = ended(server, workflow, ledger)
    assert files > clients, f"{files} files are open: not all clients were there together"
    took, refused = [max(0.0, at - back) for at in given], ledger.codes[429] + ledger.codes[503]
    assert len(took) == clients
    said = f"all served; half within {percentile(took, 0.5):.2f} s of its return, 99 % within {percentile(took):.2f} s"
    said += f"; {refused} told to come again, {ledger.cuts:,} tries cut off or refused"
    said += f"; the server took {memory / 2**20:.0f} MiB and {computed:.1f} s of a processor, its start among it"
    what = ("12", "all clients at once after a restart", f"{clients:,} clients in {processes} processes")
    return line(what, began, said, verdict)


@contextmanager
def _crowd(server: ServerProcess, number: int, place: int) -> Iterator["subprocess.Popen[str]"]:
    """A process of many clients."""
    program, file = Path(__file__).with_name("herd_clients.py"), server.folder / f"herd{place}"
    words = [sys.executable, str(program), *map(str, (server.port, number, place * 100_003, file))]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as crowd:
        try:
            yield crowd
        finally:
            crowd.kill()


def _heard(crowds: "list[subprocess.Popen[str]]", word: str, seconds: float = 180.0) -> None:
    """Wait until each of them says this; with no word, tell them to go on."""
    until = time.monotonic() + seconds
    for crowd in crowds:
        assert crowd.stdin is not None
        assert crowd.stdout is not None
        if word:
            assert select.select([crowd.stdout], [], [], until - time.monotonic())[0], f"not {word} in {seconds:g} s"
            assert crowd.stdout.readline().strip() == word
        else:
            crowd.stdin.write("\n")
            crowd.stdin.flush()


def _learnt(file: Path, ledger: Ledger) -> list[float]:
    """Add what a crowd knows to what all know; when its clients were given their tasks."""
    known, given = pickle.loads(file.read_bytes())
    ledger.add(known)
    return list(given)


# Ends that are asked for


def drains(folder: Path) -> Line:
    """SIGTERM: the server answers who waits and ends; a client returns what it has and ends."""
    began = time.monotonic()
    with ServerProcess(folder, "--lease", "60", "-q") as server:
        workflow = server.submit([{"name": f"t{i}", "run": "sleep 60 # $ELIGO_TASK"} for i in range(2)])
        with worker(server, folder / "w", "--grace", "0.5") as client:
            _until(lambda: server.state(workflow)["counts"]["running"] == 1)
            client.send_signal(signal.SIGTERM)
            told = time.monotonic()
            code = client.wait(15)
            gone = time.monotonic() - told
            _until(lambda: server.state(workflow)["counts"]["ready"] == 2)
            back = time.monotonic() - told
        waiting = asyncio.run(_drained(server))
        server.start()
        assert server.state(workflow)["counts"]["running"] == 2  # who had them has them still
        server.kill()
        answers = Counter(answer for _, answer in kept(server.store, workflow).ends.values())
    assert code == 0
    assert answers == {"returned": 1}
    assert max(gone, back) < 10
    said = f"client gone in {gone:.1f} s, its task back; server gone in {waiting:.1f} s, who waited was answered"
    what = ("33", "SIGTERM of `eligo work` and of the server", "2 tasks")
    return line(what, began, said)


async def _drained(server: ServerProcess) -> float:
    """Stop a server for which one waits; the seconds until it was gone."""
    idle, late = light(2, server.address, Ledger(), wait=30.0)
    for client in (idle, late):
        await client.enrol()
    await idle.once("POST", "/v1/request", b'{"count": 2, "size": 2}', "k1")
    waiting = asyncio.ensure_future(late.once("POST", "/v1/request", b'{"wait": 30.0}', "k2"))
    await asyncio.sleep(0.3)
    code, seconds = await asyncio.to_thread(server.stop)
    head, _ = await waiting
    assert (code, head.status) == (0, 200)
    assert seconds < 10
    for client in (idle, late):
        client.hang_up()
    return seconds


def _until(holds: Callable[[], bool], seconds: float = 240.0) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)
