"""A plan as a page: its gain and the reasons, the curve, the dag, and every task with its place and the reason for it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.border import as_workflow
from eligo.dag import Dag
from eligo.errors import counted
from eligo.estimates import estimate, kind_of
from eligo.pages.dag_picture import Drawn
from eligo.pages.reports import figure_of, title_of
from eligo.pages.views import MOST_COLUMNS, Sampled, curve_document
from eligo.planning import VERDICTS, Plan, gain_sentence, percent
from eligo.plotting.dags import picture_of
from eligo.plotting.profiles import can_draw, svg_of
from eligo.plotting.sketches import Anatomy, Sketch, sketch_of_blocks, sketch_of_conflict
from eligo.plotting.space import picture_of_space
from eligo.rows import Ints, places
from eligo.space.footprint import Footprint
from eligo.workflow import Workflow

COLUMNS = ["place", "task", "kind", "why", "seconds"]
FEW = 3  # names in a reason
MOST_SEEN = 40  # nodes of a figure whose texts are in its text for readers who do not see it


def plan_page(plan: Plan, flow: object, words: Sequence[str] = ()) -> dict[str, Any]:
    """The document of a plan; *words* explain it."""
    workflow = as_workflow(flow)
    kinds = [kind_of(workflow.task(name)) for name in workflow.dag.tasks]
    return {
        "kind": "plan", "title": title_of(workflow), "headline": [str(plan), gain_sentence(plan)],
        "facts": [["gain", f"{100 * plan.gain:+.0f} %"], *map(list, facts(plan))],
        "words": [line for line in words if line != str(plan)], "curve": curve_of(plan),
        "dag": Drawn(workflow, kinds).document(), "figures": figures_of(plan, workflow),
        "table": {"columns": COLUMNS, "rows": rows_of(plan, workflow, kinds)},
    }  # fmt: skip


def facts(plan: Plan) -> list[tuple[str, str]]:
    """The facts about a plan in the page's table."""
    steps, arcs = len(plan), f"{plan.dag.arc_count:,}"
    return [
        ("tasks", f"{len(plan):,}"),
        ("arcs", f"{arcs}, of which {plan.shortcuts:,} are shortcuts" if plan.shortcuts else arcs),
        ("blocks", f"{plan.blocks:,}"),
        ("verdict", VERDICTS[plan.verdict]),
        ("found by", plan.method),
        ("ready on average", f"{plan.average:,.2f}"),
        ("first come, first served", f"{sum(plan.first_come) / max(1, steps):,.2f}"),
        ("share of the largest possible average", _at_least(plan)),
        ("steps at which it is proved best", f"{plan.tight_steps:,} of {steps:,} ({percent(plan.tight_steps, steps)})"),
    ]


def _at_least(plan: Plan) -> str:
    share = percent(plan.area, plan.area_bound)
    return share if share == "100 %" else f"at least {share}"


def curve_of(plan: Plan) -> dict[str, Any]:
    """The number of ready tasks after every step: in the plan, at most, and with first come, first served."""
    curves = {"plan": plan.profile, "bound": plan.upper_bound, "fifo": plan.first_come}
    lines = {"seen": None} | {name: np.asarray(curve, np.int64) for name, curve in curves.items()}
    return curve_document(Sampled(len(plan) + 1, MOST_COLUMNS), lines, max(1, len(plan)))


def figures_of(plan: Plan, flow: Workflow) -> list[dict[str, str]]:
    """The files between tasks if sizes are known, the super-dag and a conflict; none if nothing can be drawn here."""
    parts = Anatomy(flow.dag, plan)
    if not can_draw():
        return []
    sketches: list[Sketch] = [sketch_of_blocks(parts)] if len(parts.blocks) else []
    sketches += [] if plan.conflict is None else [sketch_of_conflict(plan.conflict)]
    footprint = Footprint.of(flow)
    title = "Files between tasks, one task at a time"
    space = [figure_of(svg_of(picture_of_space(plan, footprint)), title, title)] if footprint.sized else []
    return [
        *space,
        *(figure_of(svg_of(picture_of(sketch)), sketch.title, _alt_text(sketch)) for sketch in sketches),
    ]


def _alt_text(sketch: Sketch) -> str:
    """The text for readers who do not see the picture: the texts of its nodes."""
    named = [" ".join(lines) for lines in sketch.lines[:MOST_SEEN]]
    more = [f"and {len(sketch.lines) - MOST_SEEN:,} more"] if len(sketch.lines) > MOST_SEEN else []
    return f"{counted(len(sketch.dag), 'node')}, {counted(sketch.dag.arc_count, 'arc')}: {', '.join([*named, *more])}"


# Tasks


def rows_of(plan: Plan, flow: Workflow, kinds: Sequence[str]) -> list[list[Any]]:
    """Every task in the plan's order: its place, name, kind, the reason for its place, and its seconds if known."""
    estimates, why = estimate(flow), reasons(flow.dag, plan.sequence)
    seconds: list[float | None] = [None] * len(flow)
    if estimates.level != "nothing":
        seconds = np.round(estimates.seconds, 3).tolist()
    order, labels = plan.sequence.tolist(), flow.dag.labels
    return [[place, labels[v], kinds[v], why[v], seconds[v]] for place, v in enumerate(order, 1)]


def reasons(dag: Dag, sequence: Ints) -> list[str]:
    """The reason for each task's place in an order, as a short sentence.

    >>> dag = Dag.from_arcs([("a", "x"), ("a", "y"), ("b", "y")])
    >>> reasons(dag, dag.indices(["a", "b", "x", "y"]))
    ['Makes x ready.', 'No task depends on it.', 'No task depends on it.', 'Makes y ready.']
    """
    place = places(len(dag), sequence)
    last = _last_parents(dag, place)
    released: list[list[int]] = [[] for _ in range(len(dag))]
    for v in sequence[last[sequence] >= 0].tolist():
        released[last[v]].append(v)
    needed, labels, needs = _first_children(dag, place), dag.labels, dag.indegree.tolist()
    return [
        _makes([labels[w] for w in released[v][:FEW]], len(released[v]))
        if released[v]
        else "No task depends on it."
        if needed[v] < 0
        else f"One of {counted(needs[needed[v]], 'task')} that {labels[needed[v]]} depends on."
        for v in range(len(dag))
    ]


def _makes(names: Sequence[str], many: int) -> str:
    if many == 1:
        return f"Makes {names[0]} ready."
    more = f" and {many - len(names):,} more" if many > len(names) else ""
    return f"Makes {many:,} tasks ready: {', '.join(names)}{more}."


def _first_children(dag: Dag, place: Ints) -> list[int]:
    """The child of each task that comes first; -1 if it has none."""
    earliest = np.full(len(dag), len(dag), np.int64)
    np.minimum.at(earliest, dag.tails, place[dag.child])
    order = np.append(np.argsort(place), -1)
    return [int(v) for v in order[earliest]]


def _last_parents(dag: Dag, place: Ints) -> NDArray[np.int64]:
    """The parent of each task that comes last, after which the task is ready; -1 if it has none."""
    latest = np.full(len(dag), -1, np.int64)
    np.maximum.at(latest, dag.child, place[dag.tails])
    order = np.argsort(place)
    return np.where(latest >= 0, order[latest], -1)
