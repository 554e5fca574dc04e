"""The verb `plan`: prints, writes and saves one order, and shows the others beside it in a table."""

import math
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from eligo.choice import SPACE, Candidate, ChosenOrder, choose
from eligo.cli.export import check_place, export, next_steps, text_to_write
from eligo.cli.output import chart, json_text, print_json, print_lines
from eligo.cli.plan_text import first_tasks, headline, plan_document, print_details, searching, tell, tell_cut
from eligo.cli.pool_options import compared_pools, pool_in, with_assumed
from eligo.cli.requests import PlanRequest, size_in
from eligo.errors import counted
from eligo.estimates import lasting
from eligo.formats.shared.files import save
from eligo.planning import gain_words, sentence
from eligo.pools import Pool, cores_of
from eligo.predictions import SHARE
from eligo.prioritising import has_classes
from eligo.simulation.batched import REQUESTS
from eligo.simulation.pebble import name_of
from eligo.simulation.steady import Finish
from eligo.space.footprint import Footprint
from eligo.times import RunTimes
from eligo.work.demands import byte_words

WORTH_SAYING = 0.0005  # the smallest share that rounds to a tenth of a per cent
HEIGHT = 5  # lines of the chart, so that all output fits on a screen


def answer(times: RunTimes, asked: PlanRequest) -> None:
    """Plan, then print, write and save what was requested."""
    times = with_assumed(times, asked)
    flow = times.flow
    if pools := compared_pools(asked):
        from eligo.cli.scaling_text import answer_curve

        answer_curve(times, asked, pools)
        return
    pool = pool_in(asked)
    to = "names" if asked.names else asked.to
    text = text_to_write(flow, asked.file, asked.place, to) if asked.writing else None
    for place in (asked.place, asked.save):
        check_place(flow, place, asked.force)
    brief = not (asked.writing or asked.json or asked.save or pool)
    with searching(len(flow), asked.seconds) as (clock, watch):
        space = None if asked.space is None else size_in("space", asked.space)
        search = {
            "space": space,
            "effort": asked.effort,
            "prefer": asked.prefer,
            "brief": brief,
            "clock": clock,
            "watch": watch,
        }
        choice = choose(times, asked.policy, pool, asked.override, **search)
        _ = choice.plan, choice.candidates  # computed here, where the progress is shown and Ctrl-C stops the search
    tell_cut(choice.plan)
    if has_classes(choice.flow):
        tell(["tasks with higher priority go first, as in `eligo run`; --override ignores priorities"])
    remarks = []
    if asked.writing:
        remarks = export(flow, choice.order, asked.place, text, asked.override, to, asked.priority_base)
        remarks = [f"order written: {choice.used}{_pool_phrase(choice, ' for {}')}", *remarks]
    if asked.json:
        print_json(document(choice, asked))
    elif "-" not in (asked.place, asked.save):
        _print(choice, asked)
    if asked.save is not None:
        _save(document(choice, asked, ("ready", choice.used)), asked.save)
    tell(remarks)


def document(choice: ChosenOrder, asked: PlanRequest, names: Sequence[str] = ()) -> dict[str, Any]:
    """The plan as plain data with its orders, or those in *names*, and with the finish if it was requested."""
    plan = plan_document(choice.plan) | choice.document(names)
    pool = choice.asked_pool
    if asked.history or pool is not None:
        plan |= choice.times.document()
    if pool is None:
        return plan
    prediction = {} if names else {"prediction": choice.prediction and choice.prediction.document()}
    return plan | _finish_document(choice, pool) | prediction


def _finish_document(choice: ChosenOrder, pool: Pool) -> dict[str, Any]:
    """The finish as plain data; None if no time can be predicted."""
    finish = choice.finish
    return {
        "workers": pool.written,
        "makespan": finish and finish.makespan,
        "bound": finish and finish.bound.seconds,
        "certificate": finish and finish.bound.document(),
    }


def _save(plan: dict[str, Any], path: str) -> None:
    """Write a plan with its proof as JSON."""
    if path == "-":
        print_json(plan)
        return
    save(json_text(plan), path)
    tell([f"wrote {path}"])


# As people see it


def _print(choice: ChosenOrder, asked: PlanRequest) -> None:
    """Print the result and the table of orders; then, unless something is written, a chart and the next commands."""
    flow, pool = choice.flow, choice.asked_pool
    print_lines([*minutes(choice), *verdict(choice), *sentences(choice)])
    if len(flow):
        sys.stdout.write("\n" + "".join(f"{line}\n" for line in (*table(choice), *_remarks(choice))))
    if len(flow) and not asked.writing and asked.save is None:
        _print_rest(choice, next_steps(flow, asked.file, pool is not None))
    if asked.verbose:
        print_details(choice.plan, asked.prefer)


def minutes(choice: ChosenOrder) -> list[str]:
    """How long the workflow takes, if anything is known about it: on the requested pool, or on one and on many workers."""
    times = choice.times.estimate
    if choice.asked_pool is not None:
        return finish_lines(choice, choice.asked_pool)
    if times.level == "nothing" or not len(choice.flow):
        return []
    longest = float((choice.flow.dag.longest_paths(times.seconds) + times.seconds).max())
    ends = f"{lasting(math.fsum(times.seconds))} on 1 worker, and at least {lasting(longest)} on any number"
    return [f"All tasks take about {ends} (--workers 1..64 compares), if they take as long as {choice.times.says}."]


def verdict(choice: ChosenOrder) -> Iterator[str]:
    """Whether first come, first served would do as well."""
    if choice.chosen is None or choice.used == "fifo" or not len(choice.flow):
        return
    level = "nothing" if choice.bound else choice.times.estimate.level
    if level != "nothing" and choice.usual_does(choice.used):
        time = (
            "--workers 16 shows whether it saves time"
            if level == "seconds"
            else f"{quoted(choice.used)} may still save time"
        )
        yield f"First come, first served keeps as many tasks ready; {time}."
    elif all(map(choice.usual_does, choice.candidates)):
        yield "No order gains anything here: first come, first served does as well."
    elif choice.usual_does(choice.used):
        yield f"{quoted(choice.used)} gains nothing here: first come, first served does as well or better."


def sentences(choice: ChosenOrder) -> list[str]:
    """What is proved about which order, and what the order used gains; or that there is nothing to plan."""
    plan, chosen, ready = choice.plan, choice.chosen, choice.candidates["ready"]
    if not len(plan):
        return [headline(choice.flow, "The workflow has no tasks.")]
    if chosen is None:
        return [f"With `ready`, {_gain(choice, ready)}. You get {quoted(choice.used)}.", sentence(plan, "`ready`")]
    best = chosen if np.array_equal(chosen.counts, plan.counts) else ready
    return [f"With {quoted(choice.used)}, {_gain(choice, chosen)}.", sentence(plan, quoted(best.name))]


def _gain(choice: ChosenOrder, candidate: Candidate) -> str:
    """The gain of an order over first come, first served: in time if that is known, else in ready tasks."""
    usual, footprint = choice.candidates["fifo"].seconds, choice.footprint
    if candidate.name == SPACE and footprint is not None:
        most = space_words(footprint, candidate.peak or 0) + " of files" * footprint.sized
        return f"at most {most} exist at once between tasks, {_less(candidate.peak, choice.candidates['fifo'].peak)}"
    if candidate.seconds is None or usual is None:
        than = gain_words(candidate.area, sum(choice.plan.first_come))
        return f"{number(candidate.average)} tasks are ready, {than}"
    pool = "" if choice.pool is None else f" on {choice.pool.head}"
    return f"all tasks finish in about {lasting(candidate.seconds)}{pool}, {sooner(candidate.seconds, usual)}"


def _less(peak: int | None, usual: int | None) -> str:
    """How much less space an order needs than first come, first served.

    >>> _less(3, 4), _less(4, 4)
    ('25 % less than first come, first served', 'as much as first come, first served')
    """
    if not peak or not usual or peak == usual:
        return "as much as first come, first served"
    share = f"{abs(peak / usual - 1):.0%}".replace("%", " %")
    return f"{share} {'less' if peak < usual else 'more'} than first come, first served"


def _pool_phrase(choice: ChosenOrder, words: str) -> str:
    """The words with the pool that the order used was made for; empty if there is none."""
    return "" if choice.pool is None or choice.origin is None else words.format(choice.pool.head)


def _remarks(choice: ChosenOrder) -> Iterator[str]:
    """The meaning of the mark, and what the columns do not show."""
    aim = _pool_phrase(choice, ", made for {}") or (", aims to finish soonest" if choice.used == "finish" else "")
    yield f"{USED} the order you get{aim}; --policy NAME selects another"
    yield from _choice(choice)
    yield from space_lines(choice)


def _choice(choice: ChosenOrder) -> Iterator[str]:
    """The origin of the order used, an order that ends sooner, and the cost of run times in rounds, if any."""
    chosen, soonest = choice.chosen, choice.candidates.get("finish")
    if chosen is None:
        return
    if choice.origin not in (None, "finish"):
        yield f"  based on {choice.origin}, which finishes sooner here than the rule of `finish`"
    if chosen.seconds is not None and soonest is not None and (soonest.seconds or 0.0) < chosen.seconds:
        yield f"  `finish` would finish sooner: in {lasting(soonest.seconds or 0.0)}"
    share, mean = choice.extra_rounds
    if share >= WORTH_SAYING:
        yield f"  using run times costs up to {100 * share:.1f} % more rounds (at {mean:g} requests)"


def _print_rest(choice: ChosenOrder, steps: Sequence[tuple[str, str]]) -> None:
    """Print the chart of ready tasks, the first tasks of the order, and commands to run next."""
    plan, candidate = choice.plan, choice.chosen or choice.candidates["ready"]
    curve = tuple(candidate.counts.tolist())
    picture = chart(curve, plan.upper_bound, plan.first_come, height=HEIGHT, name=name_of(candidate.name))
    first = "see --names" if choice.chosen is None else first_tasks(choice.order)
    sys.stdout.write(f"\n{picture}\n\nthis order: {first}\n")
    column = max((len(command) for command, _ in steps), default=0) + 2
    for place, (command, what) in enumerate(steps):
        sys.stdout.write(f"{'' if place else 'what next:':12}{command:{column}}{what}".rstrip() + "\n")


# The table of orders


WIDTH = 80  # characters
USED = "*"
UNCOUNTED = "not computed: too many tasks"
STEPS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
ROUNDED = 1e-6  # smaller shares come from rounding
LITTLE = 0.01  # a gain below this share counts as nothing


class Phrases(NamedTuple):
    """The heads of the table, and the words for an order with the largest possible average."""

    ready: str
    of_possible: str
    rounds: str
    most: str


LONG = Phrases(
    "ready on average", "ready on average, of possible", "rounds to finish at {} requests", "most possible (proved)"
)
SHORT = LONG._replace(rounds="rounds at {} requests")
SHORTEST = SHORT._replace(rounds="rounds at {}", of_possible="ready, of possible", most="most (proved)")


#: the source of the sizes, if it is not the file itself
SIZES_FROM = {
    "sizes": "",
    "kinds": " (some sizes are means of their kind)",
    "files": " (sizes are unknown)",
    "tasks": " (files are unknown: every task leaves one result)",
}
UNITS = {"sizes": "bytes", "kinds": "bytes", "files": "files", "tasks": "results"}


def table(choice: ChosenOrder) -> Iterator[str]:
    """A row for every order, with a mark at the one used, within the width of a screen."""
    names, full_name = dict.fromkeys((*choice.compared, choice.used)), os.path.basename
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
    peak = [] if choice.footprint is None else ["peak"]
    return ["  order", phrases.ready if choice.proved else phrases.of_possible, *polls, *pool, *peak]


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
    finish = [] if each.seconds is None else [lasting(each.seconds)]
    peak = [] if each.peak is None or choice.footprint is None else [space_words(choice.footprint, each.peak)]
    return [label, ready, *(polls if each.rounds else []), *finish, *peak]


def _share(choice: ChosenOrder, candidate: Candidate, most: str) -> str:
    """The share of the largest possible average, never rounded up, marked "at least" if the maximum is not proved."""
    if candidate.area == choice.plan.area_bound:
        return most
    tenths = math.floor(1000 * candidate.area / max(1, choice.plan.area_bound)) / 10
    return f"{'' if choice.proved else 'at least '}{tenths:g} %"


def space_lines(choice: ChosenOrder) -> Iterator[str]:
    """What the column of peaks means, and the lower bound on them."""
    footprint, bound = choice.footprint, choice.space_bound
    if footprint is None or bound is None:
        return
    how = "one task at a time" if choice.pool is None else f"on {choice.pool.head}"
    least = space_words(footprint, bound.bytes)
    yield f"peak: most {UNITS[footprint.level]} that exist between tasks at once, {how}"
    yield f"  no order needs less than {least}{SIZES_FROM[footprint.level]}"


def space_words(footprint: Footprint, amount: int) -> str:
    """An amount of space: in bytes if sizes are known, else as a number of files."""
    return byte_words(amount) if footprint.sized else counted(amount, UNITS[footprint.level].removesuffix("s"))


def number(value: float) -> str:
    """A number with three digits, or all digits before the point.

    >>> [number(value) for value in (1.8333, 62.917, 12345.6)]
    ['1.83', '62.9', '12,346']
    """
    return f"{value:.2f}" if value < 10 else f"{value:.1f}" if value < 1000 else f"{value:,.0f}"


def quoted(name: str) -> str:
    """The name of an order within a sentence; a file without its folder."""
    return f"`{os.path.basename(name)}`"


# The finish


def finish_lines(choice: ChosenOrder, pool: Pool) -> list[str]:
    """The finish of the order used on a pool, its lower bound and reason, and the effect of other pool sizes."""
    finish, prediction = choice.finish, choice.prediction
    if prediction is None:
        cure = "add --history FILE, or a guess with --seconds-per-task 60"
        return [f"{pool}: no estimate, because no run times are known ({cure})."]
    spread = f"Range: {lasting(prediction.low)} to {lasting(prediction.high)} in {SHARE:.0%} of runs".replace("%", " %")
    if finish is None:
        about = f"{pool}: about {lasting(prediction.seconds)}, if tasks take as long as {choice.times.says}"
        return [f"{about}{choice.times.lacking}.", f"{spread}."]
    within = f" (this order is within {_upward(finish.gap)} % of it)" if finish.gap > ROUNDED else ""
    about = f"{pool}: about {lasting(finish.makespan)}, if tasks take as long as {choice.times.says}"
    return [
        f"{about}. Lower bound: no order can finish before {lasting(finish.bound.seconds)}{within}.",
        f"Why: {finish.bound.why(lasting)}.",
        f"{spread}.",
        *([_more(choice, pool, finish)] if pool.equal else []),
        *([_limits(choice, finish)] if choice.front else []),
    ]


def _limits(choice: ChosenOrder, finish: Finish) -> str:
    """The finish within some limits on space, and without one."""
    each = [f"{byte_words(one.limit)}: {lasting(one.seconds or 0.0)}" for one in choice.front]
    free = "" if choice.chosen is None or choice.chosen.peak is None else f" ({byte_words(choice.chosen.peak)})"
    each.append(f"no limit{free}: {lasting(finish.makespan)}")
    return f"Time by limit of space (`eligo run --space`): {', '.join(each)}."


def _more(choice: ChosenOrder, pool: Pool, finish: Finish) -> str:
    """The finish on other numbers of workers or cores, and the number beyond which more gain nothing."""
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
    """How much sooner something ends than first come, first served, which ends at *usual*.

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
