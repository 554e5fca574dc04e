"""Stores of servers: how many tasks per second are handed out and taken back, written to disk, by the size of groups.

A pair is what a client's call changes that delivers a result and asks for the next task: two moves, a lease that ends, its
outcome, and a new lease. A group is what one commit keeps. Beside it: how often a second a page is synced, which a commit
waits for at least once.
"""

import os
import sys
import tempfile
import time
from array import array
from collections.abc import Iterator
from contextlib import ExitStack, closing
from itertools import count, islice
from pathlib import Path

from benchmarks.timing import heading, row, verdict
from eligo.stores.service import Changes, Moves, WorkflowRow
from eligo.stores.service_sql import ServiceStore
from eligo.stores.service_sqlite import service_store
from eligo.work.attempts import Attempt, Lease

TESTS = Path(__file__).parents[1] / "tests"
SIZES = (1, 5, 20, 50, 100, 500)
OUT = 1000  # tasks that clients have at any moment
SECONDS = 2.0
WORKFLOW = "w-0123456789ab"
WIDTHS = (34, 9, 9, 9, 9, 9, 9)
#: pairs a second in groups of 50 that a plain table with SKIP LOCKED has reached on PostgreSQL
GOAL = 10_365


def pairs() -> Iterator[Changes]:
    """The changes of one call after another."""
    for number in count(1):
        moves = [Moves(WORKFLOW, 2 * number, array("q", [number, -number]))]
        client, secret = f"c-{number % 100:012x}", f"{number:032x}"
        lease = Lease(WORKFLOW, number, number, 1, client, secret, f"key-{number}", 0, 1.7e9 + number)
        if number <= OUT:
            yield Changes(moves=moves, leases=[lease])
            continue
        before = lease._replace(number=number - OUT)
        done = Attempt(*before[:6], 1.7e9, 1.7e9 + 60, "accepted", None, 0, 2**20, secret * 2, "", 0)
        yield Changes(moves=moves, leases=[lease], ended=[(WORKFLOW, before.number)], outcomes=[done])


def rates(store: ServiceStore) -> list[float]:
    """Pairs a second in groups of each size."""
    submitted = WorkflowRow(WORKFLOW, "key", "", "", 1.0, "finish", "{}", "running", 0.0, b"", None)
    coming, found = pairs(), list[float]()
    store.commit([Changes(workflows=[submitted]), *islice(coming, OUT)])
    for size in SIZES:
        ready = [[next(coming) for _ in range(size)] for _ in range(5)]
        for group in ready:  # once around, unmeasured
            store.commit(group)
        taken, kept = 0.0, 0
        while taken < SECONDS:
            group = [next(coming) for _ in range(size)]
            begin = time.perf_counter()
            store.commit(group)
            taken += time.perf_counter() - begin
            kept += size
        found.append(kept / taken)
    return found


def syncs(folder: str) -> float:
    """How often per second a written page can be synced."""
    descriptor, done, page = os.open(f"{folder}/page", os.O_RDWR | os.O_CREAT), 0, os.urandom(4096)
    begin = time.perf_counter()
    while time.perf_counter() - begin < SECONDS:
        os.pwrite(descriptor, page, 0)
        os.fdatasync(descriptor)
        done += 1
    os.close(descriptor)
    return done / SECONDS


def run() -> None:
    """SQLite here, and PostgreSQL if it is available."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        places = {"SQLite": f"{folder}/server.db"} | _postgres(stack)
        print(f"\na page written and synced: {syncs(folder):,.0f} a second")
        heading("pairs a second, in groups of", ["store", *map(str, SIZES)], WIDTHS)
        found = {}
        for name, where in places.items():
            with closing(service_store(where)) as store:
                found[name] = dict(zip(SIZES, rates(store), strict=True))
            row([name, *(f"{rate:,.0f}" for rate in found[name].values())], WIDTHS)
        print(f"a page written and synced: {syncs(folder):,.0f} a second")
    if "PostgreSQL" in found:
        print(f"PostgreSQL, groups of 50, at least {GOAL:,}: {verdict(found['PostgreSQL'][50] >= GOAL)}")


def _postgres(stack: ExitStack) -> dict[str, str]:
    """A PostgreSQL of our own, as the tests have it."""
    sys.path[:0] = [str(TESTS), str(TESTS / "postgres")]
    from postgres_server import running_postgres

    from unpacking import UnavailableError

    try:
        return {"PostgreSQL": stack.enter_context(running_postgres()).new_database()}
    except UnavailableError as error:
        print(f"\nPOSTGRESQL IS NOT MEASURED: {error}")
        return {}
