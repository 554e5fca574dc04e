"""Unreliable results: an executed task has a good result with probability p; which order keeps the most tasks ready?

Clients may be wrong, as in [1]_. Two settings of ours are solved exactly for small dags over all adaptive orders, by the sum
of expected ready tasks after each execution:

- **repeated**: a bad result is noticed, and its task is ready again. An execution changes nothing with probability 1 - p,
  whatever was chosen. So the orders are those of reliable clients, and a largest area is best for every p.
- **final**: a bad result is never replaced, and no task that needs it becomes ready. Then the choice may depend on p.

.. [1] Gao, Malewicz (2007): Toward maximizing the quality of results of dependent tasks computed unreliably.
"""

from collections.abc import Iterable, Sequence
from functools import cache

from eligo.dag import Dag
from eligo.planning import plan
from papers.findings import Checked, Finding

SURE = (0.5, 0.9)  # probabilities of a good result


def expected_ready(dag: Dag, p: float, final: bool, order: Sequence[int] | None = None) -> float:
    """The sum of expected ready tasks after each execution, for the first ready task of an order, or else the best choices.

    If bad results are repeated, the sum ends with the last good one.

    >>> fork = Dag.from_arcs([("a", "c"), ("b", "d"), ("b", "e")])
    >>> expected_ready(fork, 1.0, final=True), expected_ready(fork, 1.0, final=True, order=[0, 2, 1, 3, 4])
    (9.0, 8.0)
    >>> expected_ready(fork, 0.5, final=False) / expected_ready(fork, 1.0, final=False) > 2
    True
    """
    needs = [sum(1 << u for u in dag.parents_of(v).tolist()) for v in range(len(dag))]

    def ready(good: int, tried: int) -> list[int]:
        return [v for v in order or range(len(dag)) if not tried >> v & 1 and needs[v] & ~good == 0]

    @cache
    def value(good: int, tried: int) -> float:
        choices = ready(good, tried)
        return max((after(good, tried, v) for v in (choices[:1] if order else choices)), default=0.0)

    def after(good: int, tried: int, v: int) -> float:
        now, done = good | 1 << v, tried | 1 << v
        better = len(ready(now, done)) + value(now, done)
        if final:
            return p * better + (1 - p) * (len(ready(good, done)) + value(good, done))
        return better + (1 / p - 1) * len(ready(good, tried))  # executions that change nothing

    return value(0, 0)


def findings(dags: Iterable[Dag]) -> Checked:
    """How far the plan's order is from the best adaptive one, in both settings."""
    small = [dag for dag in dags if len(dag) <= 8]
    rows = [_finding(small, p, final) for final in (False, True) for p in SURE]
    return Checked(title="Unreliable results", findings=rows)


def _finding(dags: Sequence[Dag], p: float, final: bool) -> Finding:
    losses = [1 - _share(dag, p, final) for dag in dags]
    best = sum(loss < 1e-9 for loss in losses)
    setting = "a bad result is final" if final else "a bad result is repeated"
    return Finding(
        what=f"{setting}, good with probability {p:g}: the order of the plan",
        published="",
        ours=f"best in {best} of {len(losses)} dags, at most {100 * max(losses):.2g} % below",
        agrees=None if final else best == len(losses),
        why="A setting of ours; the best choice may depend on p." if final else "A bad result changes nothing.",
    )


def _share(dag: Dag, p: float, final: bool) -> float:
    best = expected_ready(dag, p, final)
    return expected_ready(dag, p, final, plan(dag).sequence.tolist()) / best if best else 1.0
