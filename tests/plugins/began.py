"""Whether tasks began in an order, told from the times at which each of them began and ended."""

from collections.abc import Mapping, Sequence
from pathlib import Path

#: a deep branch and a wide one: first come first served begins with w, and so does counting descendants; `finish` with d
PARENTS = {"w": [], "w0": ["w"], "w1": ["w"], "w2": ["w"], "w3": ["w"], "d": [], "d1": ["d"], "d2": ["d1"]}

Times = Mapping[str, tuple[float, float]]


def times(log: Path) -> dict[str, tuple[float, float]]:
    """When each task began and ended, of lines such as `begin NAME SECONDS`; the last try counts."""
    found: dict[str, list[float]] = {}
    for line in log.read_text("utf-8").splitlines():
        what, name, when = line.split()
        found[name] = [*(found[name] if what == "end" else []), float(when)]
    return {name: (when[0], when[-1]) for name, when in found.items()}


def overtaken(seen: Times, parents: Mapping[str, Sequence[str]], order: Sequence[str], slack: float) -> list[str]:
    """Pairs of which the second began, though the first comes before it and had been ready for a while."""
    return [
        f"{first} by {second}"
        for place, second in enumerate(order)
        for first in order[:place]
        if max((seen[parent][1] for parent in parents[first]), default=0.0) + slack < seen[second][0]
        and seen[second][0] + slack < seen[first][0]
    ]


def began(seen: Times) -> list[str]:
    """The tasks by when they began."""
    return sorted(seen, key=lambda task: seen[task][0])
