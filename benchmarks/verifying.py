"""The checker of plans: seconds and memory of `verify` beside those of the quick plans, up to a million tasks.

And on real workflows, how many times as long as the plan it takes, both measured in one process.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import run as call
from tempfile import TemporaryDirectory

from benchmarks.planner import SIZED, montage_like
from benchmarks.timing import REAL, heading, peak_kilobytes, row, shuffled, verdict
from eligo import families
from eligo.dag import Dag
from eligo.formats import read
from eligo.planning import plan
from eligo.verifying import verify

CASES: dict[str, Callable[[int], Dag]] = {
    "out-mesh": SIZED["out-mesh"],
    "in-tree": SIZED["in-tree"],
    "compositions": lambda n: families.random_composition("wnm", n, seed=1),
    "Montage-like": lambda n: montage_like(n // 5),
    "layered": lambda n: families.random_layered(n // 1000, 1000, seed=1),
}


MOST_TASKS = 2_000  # of a real workflow
MOST_TIMES = 3.0  # as long as the plan, which no check of a real workflow may take
LISTED = 5
SHORT = 0.01  # seconds: shorter plans tell nothing of ratios


def run() -> None:
    """Print the checker's figures: quick plans of large dags, and ratios on real workflows."""
    large()
    ratios()


def ratios() -> None:
    """Processor seconds of a check over those of the plan, on real workflows, the largest first."""
    found = dict(_ratios())
    widths = (56, 10, 10, 10)
    heading(
        "verify() over plan(), processor seconds, the largest ratios",
        ("workflow", "plan s", "verify s", "ratio"),
        widths,
    )
    if not found:
        print("  none beside the checkout: skipped")
        return
    worst = sorted(found, key=lambda name: -found[name][1] / found[name][0])
    for name in worst[:LISTED]:
        row((name, *found[name], f"{found[name][1] / found[name][0]:.2f}"), widths)
    most = found[worst[0]][1] / found[worst[0]][0]
    print(f"  at most {most:.2f} times on {len(found)} workflows <= {MOST_TIMES:g}: {verdict(most <= MOST_TIMES)}")


def _ratios() -> Iterator[tuple[str, tuple[float, float]]]:
    for path in sorted(REAL.glob("*.json*")) if REAL.exists() else list[Path]():
        dag = read(path).dag
        if len(dag) > MOST_TASKS:
            continue
        begin = time.process_time()
        document, planned = plan(dag).document(), time.process_time()
        verify(dag, document)
        if planned - begin >= SHORT:
            yield path.name, (planned - begin, time.process_time() - planned)


def large() -> None:
    """Each plan is made, saved and checked by processes of their own."""
    widths = (24, 10, 10, 10, 10, 10, 12, 8)
    columns = ("dag", "tasks", "verdict", "plan MB", "plan s", "verify s", "verify MB", "")
    heading("verify() of quick plans, the document read included; MB beside the workflow", columns, widths)
    with TemporaryDirectory() as folder:
        path = Path(folder, "plan.json")
        for name in CASES:
            for tasks in (10_000, 100_000, 1_000_000):
                planned, checked = (_alone(verb, name, tasks, path) for verb in ("made", "checked"))
                told = (
                    name,
                    f"{planned['tasks']:,}",
                    planned["verdict"],
                    path.stat().st_size / 1e6,
                    planned["seconds"],
                )
                row((*told, checked["seconds"], checked["megabytes"], verdict(bool(checked["holds"]))), widths)


def _alone(verb: str, name: str, tasks: int, path: Path) -> dict[str, float]:
    code = f"from benchmarks.verifying import {verb}; {verb}({name!r}, {tasks}, {str(path)!r})"
    done = call([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def made(name: str, tasks: int, path: str) -> None:
    """Plan, save, and print how long the planning took."""
    found = plan(shuffled(CASES[name](tasks)), "quick")
    Path(path).write_text(json.dumps(found.document()))
    print(json.dumps({"tasks": len(found), "verdict": found.verdict, "seconds": found.seconds}))


def checked(name: str, tasks: int, path: str) -> None:
    """Check a saved plan, and print whether it holds, how long that took, and the most memory beside the workflow."""
    dag = shuffled(CASES[name](tasks))
    before, begin = peak_kilobytes(), time.perf_counter()
    found = verify(dag, json.loads(Path(path).read_text()))
    seconds, megabytes = time.perf_counter() - begin, (peak_kilobytes() - before) / 1024
    print(json.dumps({"holds": found.holds, "seconds": seconds, "megabytes": megabytes}))
