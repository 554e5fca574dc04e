"""Orders and saved plans, checked, as people see it."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from eligo.cli.orders import number
from eligo.cli.output import print_facts, print_json, sparkline
from eligo.cli.plan_text import average_share, working
from eligo.errors import InputError, ScheduleError
from eligo.estimating import lasting
from eligo.planning import VERDICTS, judge
from eligo.pools import Pool
from eligo.simulation.pebble import name_of
from eligo.verifying import verify
from eligo.workflow import Workflow


def check_order(flow: Workflow, order: Sequence[str], as_json: bool) -> int:
    """Judge an order without a proof."""
    try:
        judgement = judge(flow, order)
    except ScheduleError as error:
        return _no(str(error), {"task": error.task, "parent": error.parent}, as_json)
    if as_json:
        print_json({"valid": True, **vars(judgement), "average": judgement.area / max(1, len(flow))})
        return 0
    answers = {
        "optimal": "Valid: no order can have more tasks ready at any moment.",
        "not optimal": "Valid, but not the best at every moment.",
        "undecided": "Valid; undecided whether it is the best at every moment.",
    }
    print_facts(
        answers[judgement.verdict],
        _figures(judgement.profile, judgement.upper_bound, judgement.area, judgement.area_bound),
    )
    return 0


def check_plan(flow: Workflow, document: Mapping[str, Any], as_json: bool, recalled: bool = False) -> int:
    """Recheck a plan with its proof, and all that it says of orders and of the finish; *recalled*: with a history."""
    origin = document.get("seconds_from") or "the file"
    if document.get("certificate") and origin != "the file" and not recalled:
        again = "eligo verify FILE PLAN --history FILE"
        raise InputError(f"the finish of this plan was computed with run times from {origin}: give them again, {again}")
    with working(f"checking a plan of {len(flow):,} tasks"):
        verification = verify(flow, document)
    if not verification.holds:
        return _no(f"the proof does not hold: {verification.reason}", {}, as_json)
    if as_json:
        print_json({"valid": True, **vars(verification), "average": (verification.area or 0) / max(1, len(flow))})
        return 0
    figures = _figures(
        verification.profile or (), verification.upper_bound or (), verification.area or 0, verification.area_bound or 0
    )
    print_facts(f"Valid: the proof holds ({VERDICTS[str(verification.verdict)]}).", [*figures, *carried(document)])
    return 0


def _no(why: str, witness: Mapping[str, Any], as_json: bool) -> int:
    if as_json:
        print_json({"valid": False, "why": why, **witness})
    else:
        sys.stdout.write(f"Not valid: {why}.\n")
    return 1


def _figures(profile: Sequence[int], bound: Sequence[int], area: int, area_bound: int) -> Iterator[tuple[str, object]]:
    gaps = [(t, u - e) for t, (e, u) in enumerate(zip(profile, bound, strict=True)) if e < u]
    yield "tasks", len(profile) - 1
    yield "largest possible average", average_share(area, area_bound)
    if gaps:
        step, widest = max(gaps, key=lambda gap: gap[1])
        yield "first gap", f"after step {gaps[0][0]}: {profile[gaps[0][0]]} ready, at most {bound[gaps[0][0]]} possible"
        yield "widest gap", f"after step {step}: up to {widest} fewer than possible"
    yield "ready tasks", sparkline(profile)


def carried(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What else was checked of a plan's document, as facts."""
    for entry in document.get("orders", ()):
        end = f", finishes in {lasting(entry['makespan'])}" if "makespan" in entry else ""
        mark = ", used" if entry["name"] == document["used"] else ""
        yield f"order {name_of(entry['name'])}{mark}", f"valid, {number(entry['average'])} ready{end}"
    if bound := document.get("certificate"):
        pool = Pool(tuple(bound["workers"]), bound.get("cores"))
        yield "lower bound", f"no order finishes before {lasting(bound['seconds'])} on {pool}"
