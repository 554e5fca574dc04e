"""Small dags by enumeration of every down-set: slow but obviously right, an oracle for tests of all faster methods.

The set of executed tasks is always a *down-set*: with a task it has the task's parents. A schedule walks from the empty
set to the full one, a task at a time, so the maximal E(t) is the largest number of eligible tasks over the down-sets of
size t, and an IC-optimal schedule is a walk through down-sets that are all maximal. Sets are bit masks: bit v is task v.
"""

from collections.abc import Callable, Iterable, Iterator

from eligo.dag import Dag
from eligo.errors import InputError

LARGEST = 22

Layer = dict[int, int]


def down_sets(dag: Dag) -> Iterator[Layer]:
    """For t = 0..n, every possible set of t executed tasks, with the set of tasks that are then eligible.

    >>> [len(layer) for layer in down_sets(Dag.from_arcs([("a", "b"), ("a", "c")]))]
    [1, 1, 2, 1]
    """
    if len(dag) > LARGEST:
        raise InputError(f"cannot enumerate more than {LARGEST} tasks, got {len(dag)}")
    parents, children = _masks(dag, dag.parents), _masks(dag, dag.children)
    layer = {0: sum(1 << v for v in range(len(dag)) if not parents[v])}
    yield layer
    for _ in range(len(dag)):
        following: Layer = {}
        for executed, eligible in layer.items():
            for v in _members(eligible):
                after = executed | 1 << v
                fresh = sum(1 << w for w in _members(children[v]) if not parents[w] & ~after)
                following[after] = eligible ^ 1 << v | fresh
        layer = following
        yield layer


def max_profile(dag: Dag) -> tuple[int, ...]:
    """For t = 0..n, the maximum number of eligible tasks after t steps, over all schedules.

    >>> max_profile(Dag.from_arcs([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]))
    (1, 2, 1, 1, 0)
    """
    return tuple(_most_eligible(layer) for layer in down_sets(dag))


def ic_optimal_schedule(dag: Dag) -> tuple[str, ...] | None:
    """A schedule that has the most eligible tasks after every step, or None if there is none.

    >>> ic_optimal_schedule(Dag.from_arcs([("a", "c"), ("b", "d"), ("b", "e")]))
    ('b', 'a', 'c', 'd', 'e')
    """
    walk: list[Layer] = []  # each layer: a maximal set reached through maximal sets -> the task executed last
    for layer in down_sets(dag):
        best = _most_eligible(layer)
        maximal = [executed for executed, eligible in layer.items() if eligible.bit_count() == best]
        if not walk:
            walk.append(dict.fromkeys(maximal, -1))
            continue
        steps = ((executed, v) for executed in maximal for v in _members(executed))
        walk.append({executed: v for executed, v in steps if executed ^ 1 << v in walk[-1]})
        if not walk[-1]:
            return None
    return _retrace(dag, walk)


def _masks(dag: Dag, neighbours: Callable[[str], Iterable[str]]) -> list[int]:
    return [sum(1 << dag.index[u] for u in neighbours(task)) for task in dag.tasks]


def _members(mask: int) -> Iterator[int]:
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1


def _most_eligible(layer: Layer) -> int:
    return max(eligible.bit_count() for eligible in layer.values())


def _retrace(dag: Dag, walk: list[Layer]) -> tuple[str, ...]:
    """The tasks executed on the way to the full set."""
    executed, backwards = (1 << len(dag)) - 1, []
    for layer in reversed(walk[1:]):
        v = layer[executed]
        backwards.append(v)
        executed ^= 1 << v
    return dag.named(reversed(backwards))
