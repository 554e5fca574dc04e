"""What `plan` writes: the workflow with priorities, the order as names, or a priority for every rule of a Snakefile."""

import os
from collections.abc import Sequence

import numpy as np

from eligo.errors import InputError
from eligo.estimating import estimate
from eligo.formats import format_for_priorities, module, write_priorities
from eligo.formats.fidelity import rewritten
from eligo.formats.reader import order_text
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
        raise InputError(f"{output}: plan writes no pictures: use `eligo explain {file} -o {output}`")
    text = to if to in TEXTS else None
    if to is None:
        text = next((name for name, suffixes in TEXTS.items() if suffix in suffixes), None)
    if text is None:
        format_for_priorities(flow, output, to)
    if text == "snakemake" and _engine(flow) != "snakemake":
        raise InputError("rule priorities need a Snakemake workflow: export one with snakemake --d3dag or --dag")
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
    lines, more = (order_text(order), []) if text == "names" else snakemake_rules(flow, order)
    save(lines, output or "-")
    return more + ([] if output == "-" else [f"wrote {output}"])


def next_steps(flow: Workflow, file: str, timed: bool = False) -> list[tuple[str, str]]:
    """What somebody can do with a plan, as commands, each with what it does; *timed* where it is known when it ends."""
    suffix = os.path.splitext(plain_name(file))[1]
    file = file if len(file) <= LONGEST_FILE else "FILE"
    match _engine(flow):
        case "dagman":
            writes = [("-o prio.dag", "write priorities beside it")]
        case "snakemake":
            writes = [("-o rules.smk", "write priorities of rules")]
        case "nextflow":
            writes = []  # it knows no priorities among tasks
        case format:
            out_suffix = suffix if format and module(format).PRIORITIES else ".json"
            writes = [(f"-o OUT{out_suffix}", "write priorities")]
    steps = [*writes, ("--names", "print the whole order")]
    if not timed and len(flow) and estimate(flow).level == "seconds":
        steps.append(("--workers 16", "estimate the time"))
    runs = (
        [(f"eligo run {file}", "run it with this policy" if timed else "run it in this order")]
        if _can_be_run(flow)
        else []
    )
    return [
        *((f"eligo plan {file} {option}", what) for option, what in steps),
        *runs,
        (f"eligo explain {file}", "explain the order; -o draws it"),
    ]


def _can_be_run(flow: Workflow) -> bool:
    """Whether the file is one that people write to have its commands run, and has them all."""
    runnable = len(flow) and _engine(flow) in {"json", "yaml", "makeflow", "jx", "ninja"}
    return bool(runnable) and all(flow.task(name).command for name in flow.dag.tasks)


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
        return "# Rule priorities change nothing here: first come, first served gives the same order.\n", []
    ready = [
        f"{eligible_counts(flow.dag, o).sum() / max(1, len(flow)):,.2f}" for o in (followed, order, flow.dag.order)
    ]
    remark = f"all jobs of a rule share one priority: {ready[0]} jobs ready on average, {ready[1]} with the full order"
    head = "# Snakemake starts ready jobs with higher priority first: put each line into its rule.\n"
    lines = [f"rule {rule}:\n    priority: {priority[rule]}\n" for rule in reversed(ranked) if rule]
    return head + "".join(lines), [f"{remark}, {ready[2]} without priorities"]
