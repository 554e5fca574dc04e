"""Better orders by local search: tasks are moved as long as some are then eligible earlier and none has to pay more for it.

The area is largest when the steps at which tasks become eligible are least in sum, so a move is judged by that sum alone,
which it changes only between where tasks leave and where they go (`kernels.improving`). Nothing is drawn: an order and the
work that may be done decide what comes out.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from eligo.dag import Dag
from eligo.deciding.limits import IMPROVED_AT_ONCE, MOST_STARTS, REACHES
from eligo.deciding.outcomes import cumulative
from eligo.deciding.work import Work
from eligo.kernels.improving import Lineup
from eligo.rows import Ints
from eligo.theory.profiles import Profile

IMPROVED = ", improved"
STEP = 3  # units of work for each task or arc that a walk along the order looks at


def improved(dag: Dag, nonsinks: Ints, work: Work, reach: int = REACHES[0]) -> Ints:
    """An order of the nonsinks whose area is at least as large; no task is moved past more than *reach* others at once.

    >>> vee = Dag.from_arcs([("a", "x"), ("b", "y"), ("b", "z")])
    >>> vee.named(improved(vee, vee.indices(["a", "b"]), Work()))
    ('b', 'a')
    """
    order = nonsinks.astype(np.int32)
    if work.over():
        return order
    place, last = np.full((2, len(dag)), -1, np.int32)
    place[order] = np.arange(len(order))
    np.maximum.at(last, dag.child, place[dag.tails])
    arrays = (dag.child_ptr, dag.child, dag.parent_ptr, dag.parent, order, place, last)
    line, done = Lineup(reach, *(array.data for array in arrays)), False
    while not done and not work.over():
        before = line.work
        done = line.improve(before + int(min(work.left, IMPROVED_AT_ONCE) / STEP) + 1)
        work.spend(STEP * (line.work - before))
    return order


def best_improved(dag: Dag, orders: Iterable[tuple[str, Ints]], work: Work) -> tuple[str, Ints]:
    """The order of largest area that comes of the best few of some, and its name.

    Each gets as much work at first, for what is worse may come to more; what is best then gets the rest.

    >>> vee = Dag.from_arcs([("a", "x"), ("b", "y"), ("b", "z")])
    >>> name, order = best_improved(vee, [("as it came", vee.indices(["a", "b"]))], Work())
    >>> name, vee.named(order)
    ('as it came, improved', ('b', 'a'))
    """
    found = sorted(((name, order, _area(dag, order)) for name, order in orders), key=lambda entry: -entry[2])
    best, share = found[0], work.left / (2 * MOST_STARTS)
    for name, order, _ in found[:MOST_STARTS] if not work.over() else ():
        best = _better(dag, best, name, improved(dag, order, work.part(share)))
    for reach in REACHES if not work.over() else ():
        best = _better(dag, best, best[0], improved(dag, best[1], work, reach))
    return best[:2]


def _better(dag: Dag, best: tuple[str, Ints, int], name: str, order: Ints) -> tuple[str, Ints, int]:
    area = _area(dag, order)
    return best if area <= best[2] else (f"{name.removesuffix(IMPROVED)}{IMPROVED}", order, area)


def _area(dag: Dag, order: Ints) -> int:
    return int(cumulative(dag, order).sum())


def merged(orders: Sequence[Ints], profiles: Sequence[Profile]) -> Ints:
    """Orders of parts that do not touch, with their profiles, as one of largest area that keeps each.

    >>> merged([np.array([3, 5]), np.array([4])], [np.array([0, 0, 1]), np.array([0, 2])]).tolist()
    [4, 3, 5]
    """
    strings = [string for part in zip(orders, profiles, strict=True) for string in _strings(*part)]
    strings.sort(key=lambda string: -string[0])
    return np.concatenate([tasks for _, tasks in strings]).astype(np.int32)


def _strings(order: Ints, profile: Profile) -> list[tuple[float, Ints]]:
    """An order cut into stretches each of which renders less for a step than the one before, and how much each does."""
    ends, rendered = [0], profile.tolist()
    for t in range(1, len(rendered)):
        while len(ends) > 1 and _rate(rendered, ends[-2], ends[-1]) <= _rate(rendered, ends[-1], t):
            ends.pop()
        ends.append(t)
    return [(_rate(rendered, a, b), order[a:b]) for a, b in pairwise(ends)]


def _rate(rendered: Sequence[int], begin: int, end: int) -> float:
    return (rendered[end] - rendered[begin]) / (end - begin)
