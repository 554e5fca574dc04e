"""When a workflow ends on some workers, as people and programs see it."""

import math
from typing import Any

from eligo.cli.printing import print_lines
from eligo.cli.recalling import Knowledge
from eligo.errors import InputError
from eligo.estimating import lasting
from eligo.finishing import own_seconds
from eligo.pools import Pool, cores_of
from eligo.simulation.steady import Finish, Steady

STEPS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
ROUNDED = 1e-6  # a share that only comes from rounding
ALIKE = 0.01  # more workers that gain less than this share gain nothing


def asked_pool(known: Knowledge, workers: str | None, cores: int | None) -> Pool | None:
    """The pool that is asked about, if any; refuses, before the work, what nothing can be said of."""
    if workers is not None and cores is not None:
        raise InputError("--workers and --cores both say what there is: give one of them")
    if workers is None and cores is None:
        return None
    pool = Pool.parse(workers) if workers is not None else Pool(cores=cores)
    if known.estimate.level != "kinds":
        own_seconds(known.flow)
    cores_of(known.flow, pool)
    return pool


def finish_told(pool: Pool, found: Finish | None) -> dict[str, Any]:
    """What JSON says of the finish; nothing where no time can be promised."""
    if found is None:
        return {"workers": pool.written, "makespan": None, "bound": None, "certificate": None}
    bound = found.bound
    return {
        "workers": pool.written,
        "makespan": found.makespan,
        "bound": bound.seconds,
        "certificate": bound.document(),
    }


def print_unpromised(pool: Pool, known: Knowledge) -> None:
    """That only kinds are known, so that no time is given."""
    count = int((~known.estimate.own).sum())
    unknown = f"the own run time of {count:,} task{'' if count == 1 else 's'} is not known"
    print_lines(["", f"{pool}: no time is promised, for {unknown}; the means of kinds are good for an order only."])


def print_finish(pool: Pool, known: Knowledge, found: Finish, steady: Steady) -> None:
    """When it ends, before when it cannot, why, and what more workers would bring."""
    within = f" (this one is within {_upward(found.gap)} % of that)" if found.gap > ROUNDED else ""
    print_lines(
        [
            "",
            f"{pool}: about {lasting(found.makespan)}, if tasks take as long as {known.says}; no order can finish before"
            f" {lasting(found.bound.seconds)}{within}.",
            f"Why: {found.bound.why(lasting)}.",
            *([_more(steady, pool, found.makespan)] if pool.equal else []),
        ]
    )


def _more(steady: Steady, pool: Pool, makespan: float) -> str:
    """What other numbers of workers or cores come to, and from which number on nothing is gained."""
    cores = cores_of(steady.flow, pool)
    fewest, most = (1.0, float(len(steady.flow))) if cores is None else (cores.max(initial=1), math.fsum(cores))
    base = min(pool.size, max(1.0, most))
    chosen = sorted({n for n in STEPS if max(fewest, base / 4) <= n <= base * 4} | {pool.size})
    ends = {n: makespan if n == pool.size else steady.schedule(pool.resized(n)).makespan for n in chosen}
    enough = next(n for n in chosen if ends[n] <= min(ends.values()) * (1 + ALIKE))
    told = ", ".join(f"{n:,}: {lasting(end)}" for n, end in ends.items())
    knee = f"; beyond {enough:,} nothing is gained" if enough < chosen[-1] else ""
    return f"{'Workers' if pool.cores is None else 'Cores'} and finish: {told}{knee}."


def sooner(makespan: float, usual: float) -> str:
    """How much sooner than first come, first served, which ends at *usual*, something ends.

    >>> sooner(90.0, 120.0), sooner(5.0, 5.0)
    ('25 % sooner than first come, first served', 'as soon as first come, first served')
    >>> sooner(120.5, 120.0)
    'less than 1 % later than first come, first served'
    """
    if makespan == usual:
        return "as soon as first come, first served"
    share = abs(makespan / usual - 1) if usual else math.inf
    amount = f"{share:.0%}".replace("%", " %") if share >= 0.01 else "less than 1 %"
    return f"{amount} {'sooner' if makespan < usual else 'later'} than first come, first served"


def _upward(share: float) -> str:
    """A share in per cent, rounded up to a tenth."""
    return f"{-(-share * 1000 // 1) / 10:g}"
