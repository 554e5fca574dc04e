"""A plan in words: the parts of the workflow, the order in which they run, and why that is right."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from eligo.border import dag_of
from eligo.dag import Dag
from eligo.deciding.conflicts import Conflict
from eligo.errors import counted
from eligo.planning import Plan, percent
from eligo.planning import plan as make_plan
from eligo.theory.blocks import Blocks, decompose
from eligo.theory.priority import Kind
from eligo.theory.skeleton import segments, skeleton
from eligo.theory.solutions import Solution, Solutions, solve_blocks

LONGEST_CHAIN = 12


def explain(flow: object, plan: Plan | None = None) -> list[str]:
    """The plan in words, one fact per line; computed if it is not given.

    >>> mesh = {"a": [], "b": ["a"], "c": ["a"], "d": ["b"], "e": ["b", "c"], "f": ["c"]}
    >>> for line in explain(mesh): print(line)
    No order can have more tasks ready at any moment.
    6 tasks, 6 arcs.
    2 blocks: 1 × W(1,2), 1 × W(2,2).
    1 task ('a') comes before or after every other task: the parts between are planned separately.
    W(1,2), then W(2,2): each must be finished before the next starts.
    After each of the 6 steps the number of ready tasks is proved to be the largest possible.
    """
    dag = dag_of(flow)
    plan = make_plan(dag) if plan is None else plan
    bare = skeleton(dag.labelled())
    blocks = decompose(bare)
    solutions = solve_blocks(blocks)
    return [
        str(plan),
        _size(plan),
        _blocks(blocks, solutions),
        *_segments(bare),
        *_chain(bare, plan, solutions),
        *_rules(plan.proof),
        *(_witness(plan.conflict) if plan.conflict is not None else ()),
        _tightness(plan),
    ]


def _size(plan: Plan) -> str:
    shortcuts = f", of which {plan.shortcuts:,} are shortcuts that change nothing" if plan.shortcuts else ""
    return f"{counted(len(plan), 'task')}, {counted(plan.dag.arc_count, 'arc')}{shortcuts}."


def _blocks(blocks: Blocks, solutions: Solutions) -> str:
    if not len(blocks):
        return "No task depends on another, so all orders are equally good."
    counts = Counter(solutions.types[t].name for t in solutions.type_of.tolist())
    kinds = [f"{count:,} × {name}" for name, count in counts.most_common(8)]
    more = f" and {len(counts) - 8} other kinds" if len(counts) > 8 else ""
    failure = f" It is not a composition of bipartite blocks: {blocks.parse_failure}." if blocks.parse_failure else ""
    return f"{counted(len(blocks), 'block')}: {', '.join(kinds)}{more}.{failure}"


def _segments(bare: Dag) -> Iterator[str]:
    label = segments(bare)
    inside = label[label >= 0]
    alone = np.flatnonzero(np.bincount(inside) == 1) if len(inside) else inside
    if len(alone) and inside.max() > 0:
        example = bare.tasks[np.flatnonzero(label == alone[0])[0]]
        come = f"({example!r}) comes" if len(alone) == 1 else f"(for example {example!r}) come"
        every = "before or after every other task: the parts between are planned separately"
        yield f"{counted(len(alone), 'task')} {come} {every}."
    elif len(inside) and inside.max() > 0:
        parts = f"{inside.max() + 1:,} parts follow one another, each finished before the next starts"
        yield f"{parts}; each is planned separately."


def _chain(bare: Dag, plan: Plan, solutions: Solutions) -> Iterator[str]:
    """The runs of equal blocks in the order of the plan, each with the reason why it may precede the next."""
    if plan.proof.get("rule") != "chain":
        return
    hard = [(part["first"], part["last"]) for part in plan.proof.get("segments", ())]
    order = plan.sequence
    nonsinks = order[bare.outdegree[order] > 0]
    where = segments(bare)[nonsinks].tolist()
    types = solutions.type_of[solutions.blocks.source_of[nonsinks]].tolist()
    linear = [(w, t) for i, (w, t) in enumerate(zip(where, types, strict=True)) if not any(a <= i < b for a, b in hard)]
    runs = [key for key, _ in groupby(linear)]
    links = [(solutions.types[a[1]], solutions.types[b[1]], a[0] == b[0]) for a, b in pairwise(runs)]
    stretches = [list(group) for _, group in groupby(links, key=lambda link: _why(*link))]
    for stretch in stretches[:LONGEST_CHAIN]:
        yield _stretch(stretch)
    if len(stretches) > LONGEST_CHAIN:
        yield f"... and {len(stretches) - LONGEST_CHAIN:,} more such steps."


def _stretch(links: Sequence[tuple[Solution, Solution, bool]]) -> str:
    """A sentence for several links of the chain that have the same reason."""
    sign = " ▷ " if links[0][2] else ", then "
    names = [links[0][0].name, *(second.name for _, second, _ in links)]
    excerpt = names if len(names) <= 4 else [*names[:2], "...", names[-1]]
    return f"{sign.join(excerpt)}: {_why(*links[0])}."


def _why(first: Solution, second: Solution, together: bool) -> str:
    return reason(first, second) if together else "each must be finished before the next starts"


def reason(first: Solution, second: Solution) -> str:
    """Why one block may be run completely before the other."""
    if first.kind is None or second.kind is None:
        return f"no mixture of {_profile(first)} and {_profile(second)} renders more at any step"
    return _named_reason(first.kind, second.kind)


def _profile(solution: Solution) -> str:
    values = solution.maxima.tolist()
    return f"({', '.join(map(str, values[:8]))}{', ...' if len(values) > 8 else ''})"


def _named_reason(a: Kind, b: Kind) -> str:
    match a.letter + b.letter:
        case "WW" if a.d > b.d:
            return f"each step of the first renders {a.d - 1} tasks or more, of the second {b.d - 1} but for its last"
        case "WW":
            return "of equal degree, the one with fewer sources gains its extra task sooner"
        case "MM" if a.d < b.d:
            return f"the first renders a task every {a.d - 1} steps, the second every {b.d - 1}"
        case "MM":
            return "of equal degree, the one with more sinks pays for its first task only once"
        case "WQ" | "QM":
            return "the clique renders everything at its last step, at a rate between the two"
        case "NN" | "CC" | "QQ":
            return "two of a kind"
        case _:
            return {"W": "W-dags grow", "N": "N-dags keep the number", "C": "cycles lose one and regain it"}.get(
                a.letter, "it gains"
            ) + {"M": ", M-dags shrink", "N": ", N-dags keep it", "C": ", cycles lose one first"}.get(b.letter, "")


def _rules(proof: Mapping[str, Any]) -> Iterator[str]:
    """The rules used for blocks that are not ▷-linear."""
    parts: Sequence[Mapping[str, Any]] = proof.get("segments", ()) if proof.get("rule") == "chain" else (proof,)
    for part in parts[:LONGEST_CHAIN]:
        span = f"Steps {part['first'] + 1} to {part['last']}: " if "first" in part else ""
        yield span + _rule(part, part.get("first", 0)) if span else _rule(part, 0).capitalize()
    if len(parts) > LONGEST_CHAIN:
        yield f"... and {len(parts) - LONGEST_CHAIN:,} more such parts."


def _witness(conflict: Conflict) -> Iterator[str]:
    """For two steps in conflict, the tasks that each requires to be executed."""
    one, two = conflict.steps
    first, second = (_list_names(conflict.part.named(chosen)) for chosen in conflict.sets)
    earlier = f" beside the first {counted(conflict.before, 'task')}" if conflict.before else ""
    yield f"To be best after step {one}, {first} (or others as good) must be done by then{earlier}."
    if second:
        yield f"To be best after step {two}, {second} (or others as good) must be done by then{earlier}."
    conditions = [f"after every step up to {one}"] if not conflict.alone else []
    conditions += [f"after step {step}" for step in conflict.corners if conflict.alone or step > one]
    if conflict.alone and not conditions:
        yield "No choice of the second contains one of the first, so no order is best after both."
    elif conflict.alone:
        yield f"No order that is best {' and '.join(conditions)} is best after both steps {one} and {two}."
    else:
        yield f"No order that is best {' and '.join(conditions)} is also best after step {two}."


def _list_names(names: Sequence[str]) -> str:
    text = ", ".join(map(repr, names[:6]))
    return text if len(names) <= 6 else f"{text} and {len(names) - 6} more"


def _rule(part: Mapping[str, Any], offset: int) -> str:
    match part["rule"]:
        case "units":
            units = counted(len(part["units"]), "unit")
            return f"blocks that no order by priority fits are interleaved by Sweep, in {units}."
        case "exact" if part.get("conflict"):
            steps = [str(t + offset) for t in part["conflict"]]
            return (
                f"all sets of executed tasks were enumerated; no order is best both after step {steps[0]} "
                f"and after step {steps[-1]}"
                + (f", and after {', '.join(steps[1:-1])} between" if steps[1:-1] else "")
                + "."
            )
        case "exact":
            return "all sets of executed tasks were enumerated."
        case "sum":
            return (
                f"{counted(len(part['parts']), 'part')} side by side, each planned separately and interleaved by Sweep."
            )
        case _:
            return _modules(part)


def _modules(part: Mapping[str, Any]) -> str:
    """The number of modules, and what is proved about them."""
    first, solved = part["shares"]["modules"][0], part["modules"]
    kinds = Counter(_module_kind(entry) for entry in solved)
    text = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    exact = "; the largest possible number at every step is known exactly" if "elimination" in part else ""
    densest = f"{counted(len(first['tasks']), 'task')} rendering {len(first['renders']):,}"
    return f"{counted(len(solved), 'module')} by minimum cuts ({text}), the densest first: {densest}{exact}."


def _module_kind(entry: Mapping[str, Any]) -> str:
    if entry["rule"] == "bound":
        return "bounded by shares"
    return "without an order that is best at every step" if entry.get("refuted") else "solved exactly"


def _tightness(plan: Plan) -> str:
    if plan.verdict == "optimal":
        steps = counted(len(plan), "step")
        return f"After each of the {steps} the number of ready tasks is proved to be the largest possible."
    share = percent(plan.area, plan.area_bound)
    average = "the largest possible" if share == "100 %" else f"at least {share} of the largest possible"
    return (
        f"After {plan.tight_steps:,} of {counted(len(plan), 'step')} ({percent(plan.tight_steps, len(plan))}) the number of "
        f"ready tasks is proved to be the largest possible; its average is {average}."
    )
