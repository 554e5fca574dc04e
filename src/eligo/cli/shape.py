"""The size and shape of a workflow as people and programs see them."""

from typing import Any

from eligo.cli.output import print_facts, print_json, sparkline
from eligo.cli.plan_text import headline
from eligo.estimating import Estimate, all_kinds
from eligo.theory.eligibility import eligible_counts
from eligo.times import RunTimes
from eligo.workflow import Workflow

MOST_KINDS = 12


def show_shape(times: RunTimes, file: str, as_json: bool) -> None:
    """Print how large a workflow is, and how many tasks are ready under first come, first served."""
    flow, estimate = times.flow, times.estimate
    facts, kinds = _facts(flow, estimate), kinds_of(flow, estimate)
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
    """The kinds of tasks, those that take longest in all first: how many, their mean seconds, and least and most."""
    members: dict[str, list[int]] = {}
    for v, kind in enumerate(all_kinds(flow)):
        members.setdefault(kind, []).append(v)
    kinds = [_kind(kind, tasks, estimate) for kind, tasks in members.items()]
    return sorted(kinds, key=lambda kind: (-(kind["seconds"] or 0.0) * kind["tasks"], -kind["tasks"]))


def _kind(kind: str, tasks: list[int], estimate: Estimate) -> dict[str, Any]:
    own: list[float] = estimate.seconds[tasks][estimate.own[tasks]].tolist()
    mean = sum(own) / len(own) if own else float(estimate.seconds[tasks[0]]) if kind in estimate.kinds else None
    return {
        "kind": kind,
        "tasks": len(tasks),
        "seconds": mean,
        "least": min(own, default=None),
        "most": max(own, default=None),
    }


def _times(kind: dict[str, Any]) -> str:
    if kind["seconds"] is None:
        return "run time unknown"
    if kind["least"] is None:
        return f"{_number(kind['seconds'])} s, mean of earlier runs"
    spread = f" ({_number(kind['least'])} to {_number(kind['most'])})" if kind["least"] < kind["most"] else ""
    return f"{_number(kind['seconds'])} s{spread}"


def _number(amount: float) -> str:
    """A number in three digits, or all of them before the point.

    >>> _number(0.12345), _number(3720.0)
    ('0.123', '3,720')
    """
    return f"{amount:,.3g}" if amount < 1000 else f"{amount:,.0f}"


def _facts(flow: Workflow, estimate: Estimate) -> dict[str, Any]:
    dag = flow.dag
    return {
        "tasks": len(dag),
        "arcs": dag.arc_count,
        "levels": dag.depth,
        "width": max(dag.level_sizes.tolist(), default=0),
        "sources": len(dag.sources),
        "sinks": len(dag.sinks),
        "components": len(dag.components()),
        "duplicate_arcs": dag.duplicates,
        "seconds_known": int(estimate.own.sum()),
    }
