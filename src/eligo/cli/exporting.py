"""What `plan` writes: the workflow with priorities, the order as names, or a priority for every rule of a Snakefile."""

import os
from collections.abc import Sequence

import numpy as np

from eligo.errors import InputError
from eligo.estimating import estimate
from eligo.formats import format_for_priorities, module, orders, write_priorities
from eligo.formats.fidelity import rewritten
from eligo.formats.shared.files import plain_name, save
from eligo.policies import Policy, rank_of
from eligo.theory.eligibility import eligible_counts
from eligo.workflow import Workflow

LONGEST_FILE = 17  # characters: of longer ones a line has no room
PICTURES = (".svg", ".png", ".html", ".pdf")
#: what can be written that is no workflow, and how such a file's name ends
TEXTS = {"names": (".txt", ".order"), "snakemake": (".smk",)}


def text_to_write(flow: Workflow, file: str, output: str | None, to: str | None) -> str | None:
    """Which of the texts is asked for, None for the workflow; a wrong name is told before the work."""
    suffix = os.path.splitext(plain_name(output or "").lower())[1]
    if suffix in PICTURES and to is None:
        raise InputError(f"{output}: plan writes priorities; a picture comes from `eligo explain {file} -o {output}`")
    text = to if to in TEXTS else None
    if to is None:
        text = next((name for name, suffixes in TEXTS.items() if suffix in suffixes), None)
    if text is None:
        format_for_priorities(flow, output, to)
    if text == "snakemake" and _engine(flow) != "snakemake":
        raise InputError("priorities of rules need a workflow of Snakemake: snakemake --d3dag or --dag prints one")
    return text


def export(  # noqa: PLR0913, PLR0917 - what the command's options say
    flow: Workflow,
    order: Sequence[str],
    output: str | None,
    text: str | None,
    override: bool,
    to: str | None,
    first: int | None,
) -> list[str]:
    """Write an order as priorities, or as one of the texts; what to tell of it."""
    if text is None:
        format, own = format_for_priorities(flow, output, to), flow.origin and flow.origin.format
        flow, remarks = (flow, []) if format == own else rewritten(flow, format)
        return remarks + write_priorities(flow, order, output, override, to, first=first)
    lines, more = (orders.generate(order), []) if text == "names" else snakemake_rules(flow, order)
    save(lines, output or "-")
    return more + ([] if output == "-" else [f"wrote {output}"])


def next_steps(flow: Workflow, file: str, timed: bool = False) -> list[tuple[str, str]]:
    """What somebody can do with a plan, as commands, each with what it does; *timed* where it is known when it ends."""
    suffix = os.path.splitext(plain_name(file))[1]
    file = file if len(file) <= LONGEST_FILE else "FILE"
    match _engine(flow):
        case "dagman":
            writes = [("-o prio.dag", "writes priorities beside it")]
        case "snakemake":
            writes = [("-o rules.smk", "writes priorities of rules")]
        case "nextflow":
            writes = []  # it knows no priorities among tasks
        case format:
            kept = suffix if format and module(format).PRIORITIES else ".json"
            writes = [(f"-o OUT{kept}", "writes priorities")]
    steps = [*writes, ("--names", "prints the whole order")]
    if not timed and len(flow) and estimate(flow).level == "seconds":
        steps.append(("--workers 16", "says when it ends"))
    runs = (
        [(f"eligo run {file}", "runs it by this rule" if timed else "runs it in this order")]
        if _can_be_run(flow)
        else []
    )
    return [
        *((f"eligo plan {file} {option}", what) for option, what in steps),
        *runs,
        (f"eligo explain {file}", "says why, draws it with -o"),
    ]


def _can_be_run(flow: Workflow) -> bool:
    """Whether the file is one that people write to have its commands run, and has them all."""
    known = len(flow) and _engine(flow) in {"json", "yaml", "makeflow", "jx", "ninja"}
    return bool(known) and all(flow.task(name).command for name in flow.dag.tasks)


def _engine(flow: Workflow) -> str | None:
    """The engine that a workflow came from where that is known, else its format."""
    return (flow.origin.engine or flow.origin.format) if flow.origin else None


def snakemake_rules(flow: Workflow, order: Sequence[str]) -> tuple[str, list[str]]:
    """A priority for every rule, by the places of its jobs in the order, as lines for a Snakefile; and what that gives."""
    places: dict[str, list[int]] = {}
    for place, name in enumerate(order):
        places.setdefault(flow.task(name).category or "", []).append(place)
    ranked = sorted(places, key=lambda rule: -sum(places[rule]) / len(places[rule]))
    priority = {rule: number for number, rule in enumerate(ranked, 1)}
    scores = np.array([priority[flow.task(name).category or ""] for name in flow.dag.tasks], np.float64)
    followed = Policy("rules", flow.dag, scores, rank=rank_of(flow.dag, flow.dag.order)).order()
    if np.array_equal(followed, flow.dag.order):
        return "# Priorities of rules change nothing here: first come, first served does the same.\n", []
    ready = [
        f"{eligible_counts(flow.dag, o).sum() / max(1, len(flow)):,.2f}" for o in (followed, order, flow.dag.order)
    ]
    told = f"jobs of one rule stay equal: {ready[0]} are ready on average, {ready[1]} in the whole order"
    head = "# Snakemake starts ready jobs of larger priority first: put each line into its rule.\n"
    lines = [f"rule {rule}:\n    priority: {priority[rule]}\n" for rule in reversed(ranked) if rule]
    return head + "".join(lines), [f"{told}, {ready[2]} without priorities"]
