"""Whether a bound on the finish holds: recomputed in exact fractions, trusting nothing but the rules' own proofs."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from eligo.border import as_workflow
from eligo.dag import Dag
from eligo.errors import InputError
from eligo.estimating import estimate

READ = 1e-6  # as a share: how far off the work may be that people read of


def finish_holds(flow: object, bound: Mapping[str, Any]) -> bool:
    """Whether no order can finish a workflow before the seconds that a bound claims, for the reason that it gives.

    *bound* has the keys `seconds`, `workers` (the speed of each), `rule`, `t`, `u` and `j`, and for the reader `tasks` and
    `work`, which must be right too.
    """
    known = as_workflow(flow)
    times = estimate(known)
    try:
        claimed, t, u = (Fraction(float(bound[key])) for key in ("seconds", "t", "u"))
        speeds, rule, j = [Fraction(float(speed)) for speed in bound["workers"]], bound["rule"], int(bound["j"])
        seconds = [Fraction(time) if own else Fraction(0) for time, own in zip(times.seconds, times.own, strict=True)]
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"this is no bound on a finish: {error}") from None
    if not speeds or min(speeds) <= 0 or j < 0:
        raise InputError("this is no bound on a finish: there are no workers, or some do not work")
    heads, tails = _longest(known.dag, seconds, before=True), _longest(known.dag, seconds, before=False)
    inside = [s for r, q, s in zip(heads, tails, seconds, strict=True) if r >= t and q >= u]
    match rule:
        case "path":
            work = max((r + s + q for r, s, q in zip(heads, seconds, tails, strict=True)), default=Fraction(0))
            holds = claimed <= work / max(speeds)
        case "work":
            work = sum(inside, Fraction(0))
            holds = bool(inside) and claimed <= (t + u) / max(speeds) + work / sum(speeds)
        case "pigeonhole":
            work = sum(inside, Fraction(0))
            holds = claimed <= _crowded(inside, len(speeds), j, t + u) / max(speeds)
        case _:
            raise InputError(f"this is no bound on a finish: there is no rule {rule!r}")
    return holds and _reads(bound, len(inside), float(work))


def _reads(bound: Mapping[str, Any], tasks: int, work: float) -> bool:
    """Whether what people read of it is right, where it is there."""
    return bound.get("tasks", tasks) == tasks and math.isclose(bound.get("work", work), work, rel_tol=READ)


def _crowded(inside: list[Fraction], workers: int, j: int, outside: Fraction) -> Fraction:
    """What one worker takes that must run j + 1 of these tasks, beside the time before and after them."""
    if len(inside) <= j * workers:
        return Fraction(0)
    longest = sorted(inside, reverse=True)[: j * workers + 1]
    return outside + sum(longest[-(j + 1) :], Fraction(0))


def _longest(dag: Dag, seconds: list[Fraction], before: bool) -> list[Fraction]:
    """The longest path before, or after, every task, itself left out."""
    found = [Fraction(0)] * len(dag)
    order = dag.order.tolist() if before else dag.order[::-1].tolist()
    for v in order:
        beside = (dag.parents_of(v) if before else dag.children_of(v)).tolist()
        found[v] = max((found[w] + seconds[w] for w in beside), default=Fraction(0))
    return found
