"""The size and shape of a workflow as people and programs see them."""

from typing import Any

from eligo.cli.plans import headline
from eligo.cli.printing import print_facts, print_json, sparkline
from eligo.estimating import kind_of
from eligo.theory.eligibility import eligible_counts
from eligo.workflow import Workflow

MOST_KINDS = 12


def show_shape(flow: Workflow, file: str, as_json: bool) -> None:
    """Print how large a workflow is, and how many tasks are ready under first come, first served."""
    facts, profile, kinds = _facts(flow), eligible_counts(flow.dag, flow.dag.order).tolist(), kinds_of(flow)
    area, average = sum(profile), sum(profile) / max(1, len(flow))
    if as_json:
        known = {"name": flow.name, "format": flow.origin and flow.origin.format}
        print_json(known | facts | {"area": area, "average": average, "profile": profile, "kinds": kinds})
        return
    told = [(key.replace("_", " "), value) for key, value in facts.items()]
    title = headline(flow, flow.name or file)
    print_facts(title, [*told, ("ready on average", f"{average:,.2f}"), ("ready tasks", sparkline(profile))])
    if 1 < len(kinds) < len(flow) or any(kind["seconds"] is not None for kind in kinds):
        print_facts("", [(f"{kind['kind']} × {kind['tasks']:,}", _times(kind)) for kind in kinds[:MOST_KINDS]])
        more = len(kinds) - MOST_KINDS
        print_facts(f"... and {more:,} more kinds" if more > 0 else "", [])


def kinds_of(flow: Workflow) -> list[dict[str, Any]]:
    """The kinds of tasks, those that take longest in all first: how many, their mean seconds, and least and most."""
    seconds: dict[str, list[float | None]] = {}
    for name in flow.dag.tasks:
        task = flow.task(name)
        seconds.setdefault(kind_of(task), []).append(task.seconds)
    found = [_kind(kind, times) for kind, times in seconds.items()]
    return sorted(found, key=lambda kind: (-(kind["seconds"] or 0.0) * kind["tasks"], -kind["tasks"]))


def _kind(kind: str, times: list[float | None]) -> dict[str, Any]:
    known = [time for time in times if time is not None]
    mean = sum(known) / len(known) if known else None
    ends = {"least": min(known, default=None), "most": max(known, default=None)}
    return {"kind": kind, "tasks": len(times), "seconds": mean, **ends}


def _times(kind: dict[str, Any]) -> str:
    if kind["seconds"] is None:
        return "how long is not known"
    spread = f" ({kind['least']:,.3g} to {kind['most']:,.3g})" if kind["least"] < kind["most"] else ""
    return f"{kind['seconds']:,.3g} s{spread}"


def _facts(flow: Workflow) -> dict[str, Any]:
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
        "seconds_known": sum(task.seconds is not None for task in flow.details.values()),
    }
