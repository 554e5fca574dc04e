"""`eligo plan --workers 1..64`: the finish against the size of the pool, as a table with bars, a picture or JSON."""

from collections.abc import Iterator, Sequence

from eligo.choice import ChosenOrder, choose
from eligo.cli.output import print_json, print_lines, table_lines
from eligo.cli.plan_text import searching, tell, working
from eligo.cli.pool_options import price_in
from eligo.cli.requests import PlanRequest
from eligo.errors import InputError, counted
from eligo.estimates import lasting
from eligo.formats.histories import seconds_in
from eligo.pools import Pool
from eligo.scaling import ScalingCurve, ScalingPoint
from eligo.times import RunTimes

BAR = 20  # characters
MANY_TASKS = 20_000  # beyond these, an order is searched at quick effort


def answer_curve(times: RunTimes, asked: PlanRequest, pools: Sequence[Pool]) -> None:
    """Simulate a policy on every pool; print, draw or save the curve."""
    if asked.in_place or asked.names or asked.save is not None or asked.space is not None:
        raise InputError("a range of sizes cannot be combined with --in-place, --names, --save or --space")
    price = None if asked.price is None else price_in(asked.price)
    deadline = None if asked.deadline is None else seconds_in(asked.deadline)
    if times.estimate.level == "nothing":
        raise InputError("sizes of a pool cannot be compared, because no run times are known").cured_by("history")
    with searching(len(times.flow), asked.seconds) as (clock, watch):
        effort = "quick" if len(times.flow) > MANY_TASKS and asked.effort == "normal" else asked.effort
        search = {"effort": effort, "prefer": asked.prefer, "brief": True, "clock": clock, "watch": watch}
        choice = choose(times, asked.policy, None, asked.override, **search)
        curve = choice.curve(pools, price, deadline)
    if asked.json:
        print_json(times.document() | {"used": choice.used, "curve": curve.document()})
    else:
        print_lines([*curve_lines(choice, curve, pools)])
    if asked.output is not None:
        _save_curve(choice, curve, asked.output, unit_of(pools))
        tell([f"wrote {asked.output}"])


def unit_of(pools: Sequence[Pool]) -> str:
    """What the pools consist of."""
    return "worker" if pools[0].cores is None else "core"


def curve_lines(choice: ChosenOrder, curve: ScalingCurve, pools: Sequence[Pool]) -> Iterator[str]:
    """The curve as people see it."""
    unit = unit_of(pools)
    yield from sentences(choice, curve, unit)
    yield ""
    longest = max(point.finish for point in curve.points)
    bars = [_bar(point, longest) for point in curve.points]
    head, rows = table_rows(curve, unit)
    lines = table_lines([head, *rows])
    yield from (f"{line:<{max(map(len, lines))}}  {bar}".rstrip() for line, bar in zip(lines, ["", *bars], strict=True))
    yield "█ no order can finish before this; ▒ the rest of the simulated finish"


def sentences(choice: ChosenOrder, curve: ScalingCurve, unit: str) -> Iterator[str]:
    """What the curve answers: how many workers are worth it, which are cheapest, and where the times come from."""
    by_size = {point.size: point for point in curve.points}
    knee, enough = by_size[curve.knee], by_size[curve.enough]
    yield (
        f"Best value: {counted(knee.size, unit)}, about {lasting(knee.finish)}"
        f"{_range(choice, Pool.of(knee.size) if unit == 'worker' else Pool(cores=knee.size))}, {_percent(knee)} busy."
    )
    if enough.size < curve.points[-1].size:
        yield f"More than {counted(enough.size, unit)} gain less than 1 %: {lasting(enough.finish)}."
    if curve.deadline is not None or curve.price is not None:
        yield from _price_words(curve, unit)
    yield f"Run times come from {' and '.join(choice.times.sources) or 'the file'}{choice.times.lacking}."


def _price_words(curve: ScalingCurve, unit: str) -> Iterator[str]:
    """The cheapest pool, and the sizes that are neither dearer nor slower than another."""
    best, by = curve.cheapest, "" if curve.deadline is None else f" that finishes within {lasting(curve.deadline)}"
    if best is None:
        proved = all(point.floor > (curve.deadline or 0.0) for point in curve.points)
        how = "no order can do it on any of these" if proved else "the simulated finish is later on all of these"
        yield f"No pool was found{by}: {how}."
    else:
        for_price = "" if best.cost is None else f" for {best.cost:.2f}"
        what = "Smallest" if best.cost is None else "Cheapest"
        yield f"{what} pool{by}: {counted(best.size, unit)}, {lasting(best.finish)}{for_price}."
    if curve.price is not None:
        yield f"No other size is both cheaper and faster than: {', '.join(f'{size:,}' for size in curve.front)}."


def _range(choice: ChosenOrder, pool: Pool) -> str:
    prediction = choice.predict(pool)
    return "" if prediction is None else f" ({lasting(prediction.low)} to {lasting(prediction.high)} in 80 % of runs)"


def table_rows(curve: ScalingCurve, unit: str) -> tuple[list[str], list[list[str]]]:
    """The titles and the rows of the table."""
    priced = curve.price is not None
    head = [f"{unit}s", "finish", "lower bound", "busy", *(["cost"] if priced else [])]
    return head, [
        [
            f"{one.size:,}",
            lasting(one.finish),
            lasting(one.floor),
            _percent(one),
            *([f"{one.cost:.2f}"] if priced else []),
        ]
        for one in curve.points
    ]


def _percent(point: ScalingPoint) -> str:
    return f"{100 * point.utilisation:.0f} %"


def _bar(point: ScalingPoint, longest: float) -> str:
    """The finish as a bar, and the part of it that is proved."""
    length = round(BAR * point.finish / longest) if longest else 0
    proved = min(length, round(BAR * point.floor / longest)) if longest else 0
    return "█" * proved + "▒" * (length - proved)


def _save_curve(choice: ChosenOrder, curve: ScalingCurve, output: str, unit: str) -> None:
    """Draw the curve, or write it as a page."""
    from eligo.pages.html import save_output
    from eligo.pages.reports import report_page, title_of
    from eligo.plotting.comparison import first_figure
    from eligo.simulation.reports import Curve, Panel, Picture, Report, Section, Table

    sizes, (head, rows) = [float(point.size) for point in curve.points], table_rows(curve, unit)
    curves = [
        Curve(label="simulated", x=sizes, y=[point.finish for point in curve.points]),
        Curve(label="lower bound", x=sizes, y=[point.floor for point in curve.points], colour=1),
    ]
    answer, *words = sentences(choice, curve, unit)
    panel = Panel(title="", across=f"{unit}s", up="finish, s", curves=curves, logarithmic=True)
    section = Section(
        title=f"Finish by number of {unit}s",
        answer=answer,
        words=words,
        tables=[Table(title="", head=head, rows=rows)],
        pictures=[Picture(name="curve", title=f"Finish by number of {unit}s", panels=[panel], columns=1)],
    )
    report = Report(title=title_of(choice.flow), sections=(section,))
    with working("drawing"):
        save_output(output, lambda: report_page(report), lambda: first_figure(report))
