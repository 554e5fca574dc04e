"""Side-by-side timing: the contestants take turns in one process, and the least time of each counts."""

import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from eligo.dag import Dag

#: the real workflows, where they lie beside the checkout
REAL = Path(__file__).parents[2] / "shared" / "data" / "wfinstances"


def fastest(*contestants: Callable[[], Any], rounds: int = 5) -> list[float]:
    """The least seconds of each contestant over that many interleaved rounds."""
    times = [float("inf")] * len(contestants)
    for _ in range(rounds):
        for i, contestant in enumerate(contestants):
            begin = time.perf_counter()
            contestant()
            times[i] = min(times[i], time.perf_counter() - begin)
    return times


def command_seconds(*words: str, rounds: int = 7) -> float:
    """The least wall-clock seconds of a whole command."""
    return fastest(lambda: subprocess.run(words, check=True, capture_output=True), rounds=rounds)[0]


def shuffled(dag: Dag, seed: int = 0) -> Dag:
    """The same dag with its tasks numbered at random, as a file would have them."""
    mixed = np.random.default_rng(seed).permutation(len(dag)).astype(np.int32)
    return Dag.from_arrays(len(dag), mixed[dag.tails], mixed[dag.child])


def heading(title: str, columns: Sequence[str], widths: Sequence[int]) -> None:
    """Print the head of a table."""
    print(f"\n{title}")
    row(columns, widths)


def row(cells: Sequence[object], widths: Sequence[int]) -> None:
    """Print a row of a table, with numbers aligned to the right."""
    shown = (f"{c:.4g}" if isinstance(c, float) else str(c) for c in cells)
    print("  ".join(f"{c:<{w}}" if i == 0 else f"{c:>{w}}" for i, (c, w) in enumerate(zip(shown, widths, strict=True))))


def verdict(holds: bool) -> str:
    """Whether a target is met."""
    return "met" if holds else "NOT MET"


def peak_kilobytes() -> int:
    """The peak memory of this process; that of rusage would include the process that started it."""
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))
