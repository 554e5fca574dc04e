"""When a workflow ends on some workers, as people and programs see it."""

from typing import Any

from eligo.cli.printing import print_lines
from eligo.cli.recalling import Knowledge
from eligo.errors import InputError
from eligo.estimating import estimate
from eligo.finishing import checked_workers, earliest_finish
from eligo.planning import Plan
from eligo.simulation.steady import Finish, finish_on
from eligo.theory.eligibility import Order
from eligo.workflow import Workflow

STEPS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
ALIKE = 0.01  # more workers that gain less than this share gain nothing


def check_workers(flow: Workflow, workers: int | None) -> None:
    """Refuse, before the work, what nothing can be said of."""
    if workers is not None and checked_workers(workers) and estimate(flow).level != "kinds":
        earliest_finish(flow, workers)


def finish_told(flow: Workflow, plan: Plan, workers: int, order: Order, known: Knowledge) -> dict[str, Any]:
    """What JSON says of the finish; nothing where only kinds are known."""
    if known.estimate.level == "kinds":
        return {"workers": workers, "makespan": None, "bound": None, "certificate": None}
    found = finish_on(flow, workers, order, plan)
    return {
        "workers": workers,
        "makespan": found.makespan,
        "bound": found.bound.seconds,
        "certificate": found.bound.document(),
    }


def print_finish(flow: Workflow, plan: Plan, workers: int, order: Order, known: Knowledge) -> None:
    """When it ends, before when it cannot, why, and what more workers would bring; no time where only kinds are known."""
    if known.estimate.level == "kinds":
        count = int((~known.estimate.own).sum())
        unknown = f"of {count:,} task{'' if count == 1 else 's'} the own run time is not known"
        print_lines(
            [
                "",
                f"{_counted(workers)}: no time is promised, for {unknown}; the means of kinds are good for an order only.",
            ]
        )
        return
    found = finish_on(flow, workers, order, plan)
    within = f" (this one is within {_upward(found.gap)} % of that)" if found.gap > 0 else ""
    print_lines(
        [
            "",
            f"{_counted(workers)}: about {lasting(found.makespan)}, if tasks take as long as {known.says}; no order can"
            f" finish before {lasting(found.bound.seconds)}{within}.",
            f"Why: {found.bound.why(lasting)}.",
            _more(flow, plan, workers, order, found),
        ]
    )


def _more(flow: Workflow, plan: Plan, workers: int, order: Order, found: Finish) -> str:
    """What other numbers of workers come to, and from which number on nothing is gained."""
    chosen = sorted({n for n in STEPS if workers / 4 <= n <= workers * 4} | {workers})
    ends = {n: finish_on(flow, n, order, plan).makespan if n != workers else found.makespan for n in chosen}
    least = min(ends.values())
    enough = next(n for n in chosen if ends[n] <= least * (1 + ALIKE))
    told = ", ".join(f"{n:,}: {lasting(end)}" for n, end in ends.items())
    knee = f"; beyond {enough:,} nothing is gained" if enough < chosen[-1] else ""
    return f"Workers and finish: {told}{knee}."


def lasting(seconds: float) -> str:
    """A length of time as people say it.

    >>> lasting(0.25), lasting(75), lasting(7325), lasting(200000)
    ('0.25 s', '1 min 15 s', '2 h 2 min', '2 d 8 h')
    """
    if seconds < 60:
        return f"{seconds:.3g} s"
    for unit, small, size, part in (("d", "h", 86400, 3600), ("h", "min", 3600, 60), ("min", "s", 60, 1)):
        if seconds >= size:
            whole, rest = divmod(round(seconds / part), size // part)
            return f"{whole:,} {unit} {rest} {small}" if rest else f"{whole:,} {unit}"
    raise InputError(f"{seconds} is no length of time")


def _counted(workers: int) -> str:
    return f"{workers:,} worker{'' if workers == 1 else 's'}"


def _upward(share: float) -> str:
    """A share in per cent, rounded up to a tenth."""
    return f"{-(-share * 1000 // 1) / 10:g}"
