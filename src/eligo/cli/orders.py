"""The orders that a plan chooses between as people see them, and when the one used ends."""

import math
import os
from collections.abc import Iterator
from typing import NamedTuple

from eligo.choice import SHOWN, Candidate, ChosenOrder
from eligo.estimating import lasting
from eligo.pools import Pool, cores_of
from eligo.simulation.batched import REQUESTS
from eligo.simulation.pebble import name_of
from eligo.simulation.steady import Finish

WIDTH = 80  # characters
USED = "*"
UNCOUNTED = "not computed: too many tasks"
STEPS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
ROUNDED = 1e-6  # a share that only comes from rounding
LITTLE = 0.01  # more workers that gain less than this share gain nothing


class Phrases(NamedTuple):
    """What the table's heads say, and what is said of an order that has the most possible."""

    ready: str
    of_possible: str
    rounds: str
    most: str


LONG = Phrases(
    "ready on average", "ready on average, of possible", "rounds to finish at {} requests", "most possible (proved)"
)
SHORT = LONG._replace(rounds="rounds at {} requests")
SHORTEST = SHORT._replace(rounds="rounds at {}", of_possible="ready, of possible", most="most (proved)")


def table(choice: ChosenOrder) -> Iterator[str]:
    """A row for every order, the one used marked; within the width of a screen."""
    names, full_name = dict.fromkeys((*SHOWN, choice.used)), os.path.basename
    for phrases, called in ((LONG, full_name), (SHORT, full_name), (SHORTEST, full_name), (SHORTEST, name_of)):
        rows = [_head(choice, phrases), *(_row(choice, name, called(name), phrases) for name in names)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        if sum(widths) + 2 * len(widths) - 2 <= WIDTH:
            break
    for row in rows:
        yield "  ".join(f"{word:{wide}}" for word, wide in zip(row, widths, strict=True)).rstrip()


def _head(choice: ChosenOrder, phrases: Phrases) -> list[str]:
    asked = ", ".join(f"{mean:g}" for mean in REQUESTS)
    polls = [phrases.rounds.format(asked)] if choice.candidates["ready"].rounds else []
    pool = [] if choice.pool is None else [choice.pool.head]
    return ["  order", phrases.ready if choice.proved else phrases.of_possible, *polls, *pool]


def _row(choice: ChosenOrder, name: str, called: str, phrases: Phrases) -> list[str]:
    label = f"{USED if name == choice.used else ' '} {called}"
    each = choice.candidates.get(name)
    if each is None:
        return [label, UNCOUNTED, *[""] * (len(_head(choice, phrases)) - 2)]
    averages = [number(other.average) for other in choice.candidates.values()]
    ready = f"{number(each.average):>{max(map(len, averages))}}  {_share(choice, each, phrases.most)}"
    rounds = [[number(value) for value in other.rounds] for other in choice.candidates.values()]
    widths = [max(map(len, column)) for column in zip(*rounds, strict=True)]
    polls = ["  ".join(f"{number(value):>{wide}}" for value, wide in zip(each.rounds, widths, strict=True))]
    return [label, ready, *(polls if each.rounds else []), *([] if each.seconds is None else [lasting(each.seconds)])]


def _share(choice: ChosenOrder, candidate: Candidate, most: str) -> str:
    """Which share of the most possible it is, never rounded up, and whether that is known or at least so much."""
    if candidate.area == choice.plan.area_bound:
        return most
    tenths = math.floor(1000 * candidate.area / max(1, choice.plan.area_bound)) / 10
    return f"{'' if choice.proved else 'at least '}{tenths:g} %"


def number(value: float) -> str:
    """A number with as many digits as people want to see.

    >>> [number(value) for value in (1.8333, 62.917, 12345.6)]
    ['1.83', '62.9', '12,346']
    """
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 1000 else f"{value:,.0f}"


def quoted(name: str) -> str:
    """An order as it is called within a sentence; a file without its folder."""
    return f"`{os.path.basename(name)}`"


# When it ends


def finish_lines(choice: ChosenOrder, pool: Pool) -> list[str]:
    """When the order used ends on a pool, before when it cannot, why, and what more workers would bring."""
    finish = choice.finish
    if finish is None:
        count = int((~choice.times.estimate.own).sum())
        unknown = (
            f"{count:,} task{' has' if count == 1 else 's have'} no run time of {'its' if count == 1 else 'their'} own"
        )
        return [f"{pool}: no estimate, because {unknown}; averages of their kind serve for the order only."]
    within = f" (this order is within {_upward(finish.gap)} % of it)" if finish.gap > ROUNDED else ""
    about = f"{pool}: about {lasting(finish.makespan)}, if tasks take as long as {choice.times.says}"
    return [
        f"{about}. Lower bound: no order can finish before {lasting(finish.bound.seconds)}{within}.",
        f"Why: {finish.bound.why(lasting)}.",
        *([_more(choice, pool, finish)] if pool.equal else []),
    ]


def _more(choice: ChosenOrder, pool: Pool, finish: Finish) -> str:
    """What other numbers of workers or cores come to, and from which number on nothing is gained."""
    cores = cores_of(choice.flow, pool)
    fewest, most = (1.0, float(len(choice.flow))) if cores is None else (cores.max(initial=1), math.fsum(cores))
    base = min(pool.size, max(1.0, most))
    sizes = [n for n in STEPS if max(fewest, base / 4) <= n <= base * 4 and n != pool.size]
    ends = dict(sorted({**choice.ends(sizes), pool.size: finish.makespan}.items()))
    enough = next(n for n, end in ends.items() if end <= min(ends.values()) * (1 + LITTLE))
    each = ", ".join(f"{n:,}: {lasting(end)}" for n, end in ends.items())
    knee = f"; more than {enough:,} gain nothing" if enough < max(ends) else ""
    return f"Time by number of {'workers' if pool.cores is None else 'cores'}: {each}{knee}."


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
