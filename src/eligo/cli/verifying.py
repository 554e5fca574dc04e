"""Orders and saved plans, checked, as people see it."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eligo.cli.orders import number
from eligo.cli.plans import average_share, working
from eligo.cli.printing import print_facts, print_json, sparkline
from eligo.errors import InputError, ScheduleError
from eligo.estimating import lasting
from eligo.planning import VERDICTS, judge
from eligo.pools import Pool
from eligo.simulation.players import name_of
from eligo.verifying import verify
from eligo.workflow import Workflow


def check_order(flow: Workflow, order: Sequence[str], as_json: bool) -> int:
    """Judge an order without a proof."""
    try:
        found = judge(flow, order)
    except ScheduleError as error:
        return _no(str(error), {"task": error.task, "parent": error.parent}, as_json)
    if as_json:
        print_json({"valid": True, **vars(found), "average": found.area / max(1, len(flow))})
        return 0
    answers = {
        "optimal": "Yes, a schedule, and no order can have more tasks ready at any moment.",
        "not optimal": "Yes, a schedule, but not the best at every moment.",
        "undecided": "Yes, a schedule; whether it is the best at every moment is not decided.",
    }
    print_facts(answers[found.verdict], _figures(found.profile, found.upper_bound, found.area, found.area_bound))
    return 0


def check_plan(flow: Workflow, document: Mapping[str, Any], as_json: bool, recalled: bool = False) -> int:
    """Recheck a plan with its proof, and all that it says of orders and of the finish; *recalled*: with a history."""
    origin = document.get("seconds_from") or "the file"
    if document.get("certificate") and origin != "the file" and not recalled:
        again = "eligo verify FILE PLAN --history FILE"
        raise InputError(f"when this plan ends rests on run times from {origin}, which are needed again: {again}")
    with working(f"checking a plan of {len(flow):,} tasks"):
        found = verify(flow, document)
    if not found.holds:
        return _no(f"the proof does not hold: {found.reason}", {}, as_json)
    if as_json:
        print_json({"valid": True, **vars(found), "average": (found.area or 0) / max(1, len(flow))})
        return 0
    figures = _figures(found.profile or (), found.upper_bound or (), found.area or 0, found.area_bound or 0)
    print_facts(f"Yes, the proof holds: {VERDICTS[str(found.verdict)]}.", [*figures, *carried(document)])
    return 0


def _no(why: str, witness: Mapping[str, Any], as_json: bool) -> int:
    if as_json:
        print_json({"valid": False, "why": why, **witness})
    else:
        sys.stdout.write(f"No: {why}.\n")
    return 1


def _figures(profile: Sequence[int], bound: Sequence[int], area: int, area_bound: int) -> Iterator[tuple[str, object]]:
    gaps = [(t, u - e) for t, (e, u) in enumerate(zip(profile, bound, strict=True)) if e < u]
    yield "tasks", len(profile) - 1
    yield "largest possible average", average_share(area, area_bound)
    if gaps:
        step, widest = max(gaps, key=lambda gap: gap[1])
        yield "first gap", f"after step {gaps[0][0]}: {profile[gaps[0][0]]} ready, at most {bound[gaps[0][0]]} possible"
        yield "widest gap", f"after step {step}: {widest} fewer than possible, as far as is proved"
    yield "ready tasks", sparkline(profile)


def carried(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What else was checked of a plan's document, as facts."""
    for entry in document.get("orders", ()):
        end = f", ends after {lasting(entry['makespan'])}" if "makespan" in entry else ""
        mark = ", used" if entry["name"] == document["used"] else ""
        yield f"order {name_of(entry['name'])}{mark}", f"a schedule, {number(entry['average'])} ready{end}"
    if bound := document.get("certificate"):
        pool = Pool(tuple(bound["workers"]), bound.get("cores"))
        yield "earliest finish", f"no order ends before {lasting(bound['seconds'])} on {pool}"
