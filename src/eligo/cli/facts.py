"""The verbs `show`, `verify`, `batch` and `generate`: facts about workflows, orders and batches."""

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from eligo.cli.output import figure, print_facts, print_json, sparkline
from eligo.cli.plan_text import average_share, headline, listed_names, working
from eligo.errors import InputError, ScheduleError
from eligo.estimates import Estimate, all_kinds, lasting
from eligo.planning import VERDICTS, judge
from eligo.pools import Pool
from eligo.theory.eligibility import eligible_counts
from eligo.times import RunTimes
from eligo.work.demands import byte_words
from eligo.workflow import Workflow

if TYPE_CHECKING:
    from eligo.batches import Batch
    from eligo.dag import Dag

MOST_KINDS = 12

# eligo show


def show_shape(times: RunTimes, file: str, as_json: bool) -> None:
    """Print the size of a workflow, and how many tasks are ready under first come, first served."""
    flow, estimate = times.flow, times.estimate
    facts, kinds = _size_facts(flow, estimate), kinds_of(flow, estimate)
    profile = eligible_counts(flow.dag, flow.dag.order).tolist()
    area, average = sum(profile), sum(profile) / max(1, len(flow))
    if as_json:
        named = {"name": flow.name, "format": flow.origin and flow.origin.format}
        shape = {"area": area, "average": average, "profile": profile, "kinds": kinds}
        print_json(named | facts | shape | times.document())
        return
    rows = [(key.replace("_", " "), value) for key, value in facts.items()]
    title = headline(flow, flow.name or file)
    print_facts(title, [*rows, ("ready on average", f"{average:,.2f}"), ("ready tasks", sparkline(profile))])
    if 1 < len(kinds) < len(flow) or any(kind["seconds"] is not None for kind in kinds):
        print_facts("", [(f"{kind['kind']} × {kind['tasks']:,}", _times(kind)) for kind in kinds[:MOST_KINDS]])
        more = len(kinds) - MOST_KINDS
        print_facts(f"... and {more:,} more kinds" if more > 0 else "", [])


def kinds_of(flow: Workflow, estimate: Estimate) -> list[dict[str, Any]]:
    """The kinds of tasks, those with the longest total time first: their number, and mean, least and most seconds."""
    members: dict[str, list[int]] = {}
    for v, kind in enumerate(all_kinds(flow)):
        members.setdefault(kind, []).append(v)
    kinds = [_kind(kind, tasks, estimate) for kind, tasks in members.items()]
    return sorted(kinds, key=lambda kind: (-(kind["seconds"] or 0.0) * kind["tasks"], -kind["tasks"]))


def _kind(kind: str, tasks: list[int], estimate: Estimate) -> dict[str, Any]:
    own: list[float] = estimate.seconds[tasks][estimate.own[tasks]].tolist()
    mean = sum(own) / len(own) if own else float(estimate.seconds[tasks[0]]) if kind in estimate.kinds else None
    return {
        "kind": kind, "tasks": len(tasks), "seconds": mean, "least": min(own, default=None),
        "most": max(own, default=None),
    }  # fmt: skip


def _times(kind: dict[str, Any]) -> str:
    if kind["seconds"] is None:
        return "run time unknown"
    if kind["least"] is None:
        return f"{figure(kind['seconds'])} s, mean of earlier runs"
    spread = f" ({figure(kind['least'])} to {figure(kind['most'])})" if kind["least"] < kind["most"] else ""
    return f"{figure(kind['seconds'])} s{spread}"


def _size_facts(flow: Workflow, estimate: Estimate) -> dict[str, Any]:
    dag = flow.dag
    return {
        "tasks": len(dag), "arcs": dag.arc_count, "levels": dag.depth,
        "width": max(dag.level_sizes.tolist(), default=0), "sources": len(dag.sources), "sinks": len(dag.sinks),
        "components": len(dag.components()), "duplicate_arcs": dag.duplicates,
        "seconds_known": int(estimate.own.sum()),
    }  # fmt: skip


# eligo verify


def check_order(flow: Workflow, order: Sequence[str], as_json: bool) -> int:
    """Judge an order that has no proof, and print the result."""
    try:
        judgement = judge(flow, order)
    except ScheduleError as error:
        return _print_refusal(str(error), {"task": error.task, "parent": error.parent}, as_json)
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


def check_proof(flow: Workflow, document: Mapping[str, Any], as_json: bool, recalled: bool = False) -> int:
    """Recheck a plan with its proof, its orders and its finish; *recalled* if there is a history."""
    from eligo.verifying import verify

    origin = document.get("seconds_from") or "the file"
    if document.get("certificate") and origin != "the file" and not recalled:
        again = "eligo verify FILE PLAN --history FILE"
        raise InputError(f"the finish of this plan was computed with run times from {origin}: give them again, {again}")
    with working(f"checking a plan of {len(flow):,} tasks"):
        verification = verify(flow, document)
    if not verification.holds:
        return _print_refusal(f"the proof does not hold: {verification.reason}", {}, as_json)
    if as_json:
        print_json({"valid": True, **vars(verification), "average": (verification.area or 0) / max(1, len(flow))})
        return 0
    figures = _figures(
        verification.profile or (), verification.upper_bound or (), verification.area or 0, verification.area_bound or 0
    )
    print_facts(
        f"Valid: the proof holds ({VERDICTS[str(verification.verdict)]}).", [*figures, *checked_facts(document)]
    )
    return 0


def _print_refusal(why: str, witness: Mapping[str, Any], as_json: bool) -> int:
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


def checked_facts(document: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What else was checked of a plan's document, as facts."""
    from eligo.cli.plan import number
    from eligo.simulation.pebble import name_of

    for entry in document.get("orders", ()):
        end = f", finishes in {lasting(entry['makespan'])}" if "makespan" in entry else ""
        mark = ", used" if entry["name"] == document["used"] else ""
        yield f"order {name_of(entry['name'])}{mark}", f"valid, {number(entry['average'])} ready{end}"
    if bound := document.get("certificate"):
        pool = Pool(tuple(bound["workers"]), bound.get("cores"))
        yield "lower bound", f"no order finishes before {lasting(bound['seconds'])} on {pool}"
    if bound := document.get("space"):
        yield "space", f"every order needs at least {byte_words(bound['bytes'])} between tasks"


# eligo batch


class State(NamedTuple):
    """Files that name the finished tasks, the running ones, and those to choose from."""

    executed: str | None
    allocated: str | None
    eligible: str | None


def ask_batch(flow: Workflow, requests: int, state: State, method: str, seconds: float | None) -> "Batch":
    """The best batch in the state that these files describe."""
    from eligo.batches import batch

    from_stdin = flow.origin is not None and flow.origin.path is None
    if state.count("-") + from_stdin > 1:
        raise InputError("standard input can be read only once: give a file instead of one -")
    ready = None if state.eligible is None else listed_names(flow, state.eligible)
    done, out = listed_names(flow, state.executed), listed_names(flow, state.allocated)
    with working(f"choosing {requests:,} tasks"):
        return batch(flow, done, requests, allocated=out, eligible=ready, method=method, seconds=seconds)


def print_batch(choice: "Batch", requests: int) -> None:
    """Print the tasks, and how good the choice is."""
    from eligo.batches.program import can_solve

    if not choice.tasks:
        print_facts("No task is ready.", [])
        return
    fewer = f" of {requests:,} requested: no more are ready" if len(choice.tasks) < requests else ""
    most = "proved: no choice leaves more" if choice.exact else f"not proved: at most {choice.upper_bound:,} possible"
    if not choice.exact and not can_solve():
        most += '; pip install "eligo[batch]" may prove more'
    print_facts(
        f"Tasks to hand out: {', '.join(choice.tasks)}",
        [
            ("tasks", f"{len(choice.tasks):,}{fewer}"),
            ("ready afterwards", f"{choice.eligible_after:,} ({most})"),
            ("method", choice.method),
        ],
    )


# eligo generate


def family_usages() -> Iterator[tuple[str, str]]:
    """Every family with its parameters and the first line of its definition."""
    from eligo.families import FAMILIES

    for name, function in FAMILIES.items():
        summary = (function.__doc__ or "").partition("\n")[0]
        yield f"{name} {_usage(function)}".rstrip(), summary


def make_dag(family: str, words: Sequence[str], seed: int) -> "Dag":
    """The dag of a family with these sizes."""
    from eligo.families import FAMILIES

    if family not in FAMILIES:
        raise InputError(f"there is no family named {family!r}").cured_by("family")
    function = FAMILIES[family]
    signature = inspect.signature(function)
    positional = [word for word in words if "=" not in word]
    named = dict(word.split("=", 1) for word in words if "=" in word)
    if "seed" in signature.parameters:
        named.setdefault("seed", str(seed))
    try:
        bound = signature.bind(*positional, **named)
    except TypeError as error:
        raise InputError(f"{family} takes {_usage(function)}: {error}") from None
    for name, value in bound.arguments.items():
        bound.arguments[name] = _convert(signature.parameters[name], value)
    return function(*bound.args, **bound.kwargs)


def _usage(function: Callable[..., "Dag"]) -> str:
    parameters = (p for p in inspect.signature(function).parameters.values() if p.name != "seed")
    return " ".join(_usage_of(p) for p in parameters)


def _usage_of(parameter: inspect.Parameter) -> str:
    if parameter.kind is parameter.VAR_POSITIONAL:
        return f"{parameter.name.upper()}..."
    return parameter.name.upper() if parameter.default is parameter.empty else f"[{parameter.name}={parameter.default}]"


def _convert(parameter: inspect.Parameter, value: Any) -> Any:
    kinds: dict[Any, Callable[[str], Any]] = {int: int, float: float}
    convert = kinds.get(parameter.annotation)
    if convert is None:
        return value
    try:
        return convert(value)
    except ValueError:
        raise InputError(f"{parameter.name} must be a number, got {value!r}") from None
