"""Why the best batch is hard to find: the proof of NP-hardness, as code that runs.

*Many Subsets with Small Union*: given nonempty sets S_1, ..., S_n of numbers 1..n that cover them all, are there m of them
whose union has at most b numbers? That is NP-complete [1]_. Make a bipartite dag of it: a source for each number, a sink for
each set, an arc where the number is in the set. Executing b sources renders exactly the sets inside them, so m sets fit into
b numbers exactly when some batch of b leaves at least n - b + m tasks eligible, m - b more than the n of the beginning (the
paper prints m - n - b once; m - b may well be negative).

.. [1] Malewicz, Rosenberg (2006): On batch-scheduling dags for Internet-based computing, section 3.
"""

from collections.abc import Iterable
from typing import NamedTuple

from eligo.batches import batch, decide
from eligo.dag import Dag
from eligo.errors import InputError


class BatchQuestion(NamedTuple):
    """Does some batch of `requests` tasks make the number of eligible tasks of `dag` grow by `increase`?"""

    dag: Dag
    requests: int
    increase: int

    def answer(self) -> bool | None:
        """By the solver of batches."""
        return decide(self.dag, requests=self.requests, increase=self.increase)


def reduction(sets: Iterable[Iterable[int]], m: int, b: int) -> BatchQuestion:
    """The question about batches that has the answer of "have m of these sets a union of at most b numbers?".

    >>> sets = [{1, 2}, {2, 3}, {1, 3}, {4}]
    >>> reduction(sets, m=3, b=3).answer(), reduction(sets, m=3, b=2).answer()
    (True, False)
    >>> reduction(sets, m=3, b=3)
    BatchQuestion(dag=Dag(8 tasks, 7 arcs), requests=3, increase=0)
    """
    family = _checked(sets, m, b)
    n = len(family)
    names = [*map(str, range(1, n + 1)), *(f"S{j}" for j in range(1, n + 1))]
    arcs = [(str(i), f"S{j}") for j, members in enumerate(family, 1) for i in sorted(members)]
    return BatchQuestion(Dag.from_arcs(arcs, tasks=names), b, m - b)


def small_union(sets: Iterable[Iterable[int]], m: int, b: int) -> tuple[int, ...] | None:
    """The numbers of m sets whose union has at most b numbers, or None: solved as a batch and read back.

    >>> small_union([{1, 2}, {2, 3}, {1, 3}, {4}], m=3, b=3)
    (1, 2, 3)
    """
    family = _checked(sets, m, b)
    executed = {int(name) for name in batch(reduction(family, m, b).dag, requests=b, method="exact").tasks}
    inside = tuple(j for j, members in enumerate(family, 1) if members <= executed)
    return inside[:m] if len(inside) >= m else None


def _checked(sets: Iterable[Iterable[int]], m: int, b: int) -> list[frozenset[int]]:
    family = [frozenset(members) for members in sets]
    n = len(family)
    if not all(family) or frozenset().union(*family) != frozenset(range(1, n + 1)):
        raise InputError(f"{n} nonempty sets must cover the numbers 1 to {n}, and have no others")
    if not (0 <= m <= n and 1 <= b <= n):
        raise InputError(f"m = {m} and b = {b} are not between 0 and {n}, or 1 and {n}")
    return family
