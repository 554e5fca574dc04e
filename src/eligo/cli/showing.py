"""The size and shape of a workflow as people and programs see them."""

from typing import Any

from eligo.cli.plans import headline
from eligo.cli.printing import print_facts, print_json, sparkline
from eligo.theory.eligibility import eligible_counts
from eligo.workflow import Workflow


def show_shape(flow: Workflow, file: str, as_json: bool) -> None:
    """Print how large a workflow is, and how many tasks are ready under first come, first served."""
    facts, profile = _facts(flow), eligible_counts(flow.dag, flow.dag.order).tolist()
    area, average = sum(profile), sum(profile) / max(1, len(flow))
    if as_json:
        known = {"name": flow.name, "format": flow.origin and flow.origin.format}
        print_json(known | facts | {"area": area, "average": average, "profile": profile})
        return
    told = [(key.replace("_", " "), value) for key, value in facts.items()]
    title = headline(flow, flow.name or file)
    print_facts(title, [*told, ("ready on average", f"{average:,.2f}"), ("ready tasks", sparkline(profile))])


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
