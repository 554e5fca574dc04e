"""Builds: a CMake project of about a thousand statements, built by ninja; how far from the best its order was.

The seconds come from the `.ninja_log` of the build. `measured` is how long ninja took. `its order` simulates the order in
which ninja started the statements, with these seconds. `eligo` is the order made for this number of workers, and `bound`
is the lower bound. `eligo run` builds the project again, by the policy `finish` with these seconds. Other programs may use
the machine: compare the three simulated columns.

The second table simulates the same seconds on larger pools by three rules: `fifo`; `ninja's rule`, the longest remaining
path counted in statements, and the first in the file among equals, which ninja follows since 1.12; and eligo's order for
the pool.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import eligo
from benchmarks.cmake_project import write_project
from benchmarks.timing import heading, row
from eligo.prioritising import order_to_follow
from eligo.simulation import finish_on
from eligo.workflow import Workflow

WORKERS = (2, 4)
LIBRARIES, SOURCES = 30, 34
LONGEST = 1800  # seconds for a build
COLUMNS = ("ninja", "tasks", "workers", "measured", "its order", "eligo", "bound", "eligo run")
WIDTHS = (8, 6, 7, 9, 9, 9, 9, 9)
POOLS = (2, 4, 8, 16, 32)
PLAYED = ("workers", "fifo", "ninja's rule", "eligo", "bound")
PLAYED_WIDTHS = (8, 9, 12, 9, 9)


def run() -> None:
    """Print the table, for every ninja: those on the path, and those that ELIGO_NINJAS names, with colons between."""
    found = [*os.environ.get("ELIGO_NINJAS", "").split(":"), shutil.which("ninja")]
    ninjas = [ninja for ninja in found if ninja]
    if shutil.which("cmake") is None or not ninjas:
        print("builds: cmake and ninja are needed, and one of them is not on the path")
        return
    heading(f"Builds, {LIBRARIES} libraries of {SOURCES} sources: seconds", COLUMNS, WIDTHS)
    for ninja in ninjas:
        for workers in WORKERS:
            with tempfile.TemporaryDirectory() as folder:
                row(measured(Path(folder), ninja, workers), WIDTHS)
                log = log_of(Path(folder) / "build")
    heading("The last of these, played on larger pools: seconds", PLAYED, PLAYED_WIDTHS)
    for workers in POOLS:
        row(played(log, workers), PLAYED_WIDTHS)


def log_of(place: Path) -> Workflow:
    """The build in a folder, with the seconds of its log."""
    return eligo.with_history(eligo.read(place / "build.ninja"), place / ".ninja_log")


def played(flow: Workflow, workers: int) -> list[object]:
    """A row of the second table."""
    orders = ("fifo", longest_first(flow), "finish")
    bound = eligo.earliest_finish(flow, workers).seconds
    return [workers, *(finish_on(flow, workers, order).makespan for order in orders), bound]


def longest_first(flow: Workflow) -> list[str]:
    """The tasks by the number of statements on the longest path from them, as ninja counts since 1.12."""
    dag = flow.dag
    length = dict.fromkeys(dag.tasks, 1)
    for name in reversed(dag.named(dag.order)):
        length[name] = 1 + max((length[child] for child in dag.children(name)), default=0)
    return sorted(dag.tasks, key=lambda name: -length[name])


def measured(folder: Path, ninja: str, workers: int) -> list[object]:
    """A row of the table."""
    write_project(folder / "source", LIBRARIES, SOURCES)
    place = configured(folder, ninja)
    spent = seconds_of([ninja, "-C", str(place), f"-j{workers}"])
    flow = log_of(place)
    theirs = began(flow, place / ".ninja_log")
    pool = eligo.Pool.of(workers)
    ours = order_to_follow(flow, "finish", pool=pool)
    again = configured(folder / "again", ninja, folder / "source")
    verb = [sys.executable, "-m", "eligo", "run", str(again / "build.ninja"), "--workers", str(workers)]
    played = [finish_on(flow, workers, order).makespan for order in (theirs, ours)]
    bound = eligo.earliest_finish(flow, workers).seconds
    version = subprocess.run([ninja, "--version"], capture_output=True, text=True, check=True).stdout.split(".git")[0]
    known = ["--history", str(place / ".ninja_log"), "--quiet"]
    return [version.strip(), len(flow), workers, spent, *played, bound, seconds_of([*verb, *known])]


def configured(folder: Path, ninja: str, source: Path | None = None) -> Path:
    """The folder of a build that CMake has configured."""
    place = folder / "build"
    words = ["cmake", "-G", "Ninja", "-S", str(source or folder / "source"), "-B", str(place)]
    subprocess.run([*words, f"-DCMAKE_MAKE_PROGRAM={ninja}"], check=True, capture_output=True, timeout=LONGEST)
    return place


def seconds_of(command: list[str]) -> float:
    """How long a command takes."""
    begin = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, timeout=LONGEST)
    return time.perf_counter() - begin


def began(flow: Workflow, log: Path) -> list[str]:
    """The tasks in the order in which ninja started them."""
    start: dict[str, int] = {}
    for line in log.read_text("utf-8").splitlines()[1:]:
        cells = line.split("\t")
        start[cells[3]] = int(cells[0])
    place = {name: number for number, name in enumerate(flow.dag.named(flow.dag.order))}
    return sorted(place, key=lambda name: (start[name], place[name]))


if __name__ == "__main__":
    run()
