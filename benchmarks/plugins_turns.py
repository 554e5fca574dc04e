"""The same workflow in an engine in several ways, in turns: medians, and how far apart runs are.

Tasks sleep, so that a busy machine matters little. The ways take turns, so that its load affects all of them: every
other round begins at the other end. The first way is the engine's own, to which the others are compared.
"""

import statistics
from collections.abc import Callable, Iterable, Sequence

from benchmarks.timing import heading, row

ROUNDS = 3

#: a workflow: its name, how many tasks it has, and the seconds of one run in the way that is named
Rehearsed = tuple[str, int, Callable[[str], float]]


def compare(title: str, workflows: Iterable[Rehearsed], ways: Sequence[str], rounds: int = ROUNDS) -> None:
    """Print a row for every workflow as soon as it is measured, and then the largest loss, which may be a gain."""
    widths = (44, 7, *(30 for _ in ways))
    heading(f"{title}: medians of {rounds} runs (least and most)", ("workflow", "tasks", *ways), widths)
    changes: list[tuple[float, str]] = []
    for name, tasks, seconds in workflows:
        found = in_turns(ways, seconds, rounds)
        own = statistics.median(found[ways[0]])
        change = {way: 100 * (statistics.median(times) / own - 1) for way, times in found.items()}
        told = {way: "" if way == ways[0] else f" {change[way]:+.1f} %" for way in ways}
        row((name[:43], tasks, *(f"{spread(times)}{told[way]}" for way, times in found.items())), widths)
        changes += [(change[way], f"{name}, {way}") for way in ways[1:]]
        print(end="", flush=True)
    for change_most, where in sorted(changes)[-1:]:
        print(f"the largest loss: {change_most:+.1f} % ({where})", flush=True)


def in_turns(ways: Sequence[str], seconds: Callable[[str], float], rounds: int) -> dict[str, list[float]]:
    """The seconds of every run of each way."""
    found: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(rounds):
        for way in ways if number % 2 == 0 else reversed(ways):
            found[way].append(seconds(way))
    return found


def spread(times: Sequence[float]) -> str:
    """The median, and the least and the greatest.

    >>> spread([3.0, 1.0, 2.5])
    '2.50 s (1.00-3.00)'
    """
    return f"{statistics.median(times):.2f} s ({min(times):.2f}-{max(times):.2f})"
