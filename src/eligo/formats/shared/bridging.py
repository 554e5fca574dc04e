"""Arcs that lead through nodes that are no tasks: the channels of a drawing, the aliases of a build.

>>> through([(0, 1), (1, 2), (1, 3), (0, 3)], {1}, most=10)
[(0, 3), (0, 2), (0, 3)]
"""

from collections.abc import Sequence, Set

Arcs = Sequence[tuple[int, int]]


def through(arcs: Arcs, passed: Set[int], most: int) -> Arcs | None:
    """The arcs between tasks, those through the nodes that are *passed* included; None where it takes more than *most*.

    A task needs another where a path through such nodes leads there.
    """
    if not passed:
        return arcs
    beyond: dict[int, list[int]] = {i: [] for i in passed}
    entries: dict[int, list[int]] = {}
    for tail, head in arcs:
        if tail in beyond:
            beyond[tail].append(head)
        elif head in beyond:
            entries.setdefault(tail, []).append(head)
    found = [arc for arc in arcs if beyond.keys().isdisjoint(arc)]
    steps = len(found)
    for tail, heads in entries.items():
        seen, waiting = set(heads), list(heads)
        while waiting:
            onward = [head for head in beyond[waiting.pop()] if head not in seen]
            seen.update(onward)
            found += ((tail, head) for head in onward if head not in beyond)
            waiting += (head for head in onward if head in beyond)
            steps += 1 + len(onward)
            if steps > most:
                return None
    return found
