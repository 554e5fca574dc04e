"""Tasks of doit that note when they begin and end; the variable FAILS names one that fails."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from began import PARENTS
from doit import create_after, get_var

DOIT_CONFIG = {"verbosity": 0}


def note(what: str, name: str) -> None:
    with Path("log").open("a", encoding="utf-8") as log:
        log.write(f"{what} {name} {time.time():.4f}\n")


def work(name: str) -> bool:
    note("begin", name)
    time.sleep(0.2)
    note("end", name)
    if name == FAILS:
        return False
    Path(f"{name}.out").write_text(name, "utf-8")
    return True


FAILS = get_var("FAILS", "")


def task_steps() -> Iterator[dict[str, Any]]:
    """Tasks tied by files, as most are."""
    for name, parents in PARENTS.items():
        yield {
            "basename": name,
            "actions": [(work, [name])],
            "file_dep": [f"{parent}.out" for parent in parents],
            "targets": [f"{name}.out"],
            "uptodate": [True],
        }


def task_extra() -> dict[str, Any]:
    """A task with a setup task, which is run for it alone; both are run only where they are asked for."""
    return {"actions": [(work, ["extra"])], "setup": ["before"], "task_dep": ["w"]}


def task_before() -> dict[str, Any]:
    return {"actions": [(work, ["before"])]}


@create_after(executed="d")
def task_late() -> Iterator[dict[str, Any]]:
    """Tasks that exist only when another is done."""
    for part in "xy":
        yield {"name": part, "actions": [(work, [f"late-{part}"])]}
