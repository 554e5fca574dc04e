"""Servers on one PostgreSQL: durable pairs of a claim and a completion a second, by one server process and by two."""

import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from benchmarks.serving import measured, served, workflow
from benchmarks.stores import TESTS
from benchmarks.timing import heading, row

TASKS, CLIENTS = 10_000, 50
WIDTHS = (34, 10, 10, 9, 9)


def run() -> None:
    """Each server has a workflow of its own, and as many clients."""
    heading("Serving: PostgreSQL, loopback", ("what", "pairs/s", "p50 ms", "p99 ms", "CPU us"), WIDTHS)
    sys.path[:0] = [str(TESTS), str(TESTS / "postgres")]
    from postgres_server import running_postgres

    from unpacking import UnavailableError

    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        try:
            database = stack.enter_context(running_postgres())
        except UnavailableError as error:
            row((f"no PostgreSQL: {str(error).splitlines()[0]}"[: WIDTHS[0]], "", "", "", ""), WIDTHS)
            return
        for count in (1, 2):
            _measure(count, database.new_database(), Path(folder))


def _measure(count: int, where: str, folder: Path) -> None:
    """Several servers on a database, each with its crowd of clients."""
    with ExitStack() as stack, ThreadPoolExecutor(count) as crowds:
        places = []
        for i in range(count):
            flow = workflow(folder / f"{count}-{i}.json", TASKS)
            words = ("-m", "eligo", "serve", str(flow), "--port", "0", "--store", where, "--files", str(folder))
            places.append(stack.enter_context(served(sys.executable, *words, "-q", "--open", "--no-files")))
        found = list(crowds.map(lambda place: measured("together", place, CLIENTS // count), places))
    done, seconds = sum(one["done"] for one in found), max(one["seconds"] for one in found)
    p50, p99 = (max(one[what] for one in found) * 1000 for what in ("p50", "p99"))
    spent = sum(one["cpu"] for one in found) / done * 1e6
    what = f"{count} server{'s' if count > 1 else ''}, {CLIENTS} clients"
    row((what, f"{done / seconds:,.0f}", f"{p50:.1f}", f"{p99:.1f}", f"{spent:.0f}"), WIDTHS)
