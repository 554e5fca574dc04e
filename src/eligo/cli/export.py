"""The files that verbs write: an order in the form the user asked for, and never over a file that eligo did not write."""

import json
import os
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from eligo.errors import EligoError, InputError
from eligo.estimates import estimate
from eligo.formats import format_for_priorities, module, read, refuse_source, write_priorities
from eligo.formats.fidelity import rewritten
from eligo.formats.reader import order_text
from eligo.formats.shared.files import plain_name, save
from eligo.policies import Policy, rank_of
from eligo.theory.eligibility import eligible_counts
from eligo.workflow import Workflow

LONGEST_FILE = 17  # characters; there is no room for longer names on a line
#: the suffixes of pictures, which are always overwritten
PICTURES = (".svg", ".png", ".html", ".pdf")
#: the texts that can be written instead of a workflow, and their suffixes
TEXTS = {"names": (".txt", ".order"), "snakemake": (".smk",)}


def text_to_write(flow: Workflow, file: str, output: str | None, to: str | None) -> str | None:
    """The kind of text to write, or None for a workflow; a wrong name is refused before any work."""
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


def export(  # noqa: PLR0913, PLR0917 - the options of the command
    flow: Workflow,
    order: Sequence[str],
    output: str | None,
    text: str | None,
    override: bool,
    to: str | None,
    first: int | None,
) -> list[str]:
    """Write an order as priorities, or as one of the texts; returns remarks for the user."""
    if text is None:
        format, own = format_for_priorities(flow, output, to), flow.origin and flow.origin.format
        flow, remarks = (flow, []) if format == own else rewritten(flow, format)
        return remarks + write_priorities(flow, order, output, override, to, first=first)
    lines, more = (order_text(order), []) if text == "names" else snakemake_rules(flow, order)
    save(lines, output or "-")
    return more + ([] if output == "-" else [f"wrote {output}"])


def next_steps(flow: Workflow, file: str, timed: bool = False) -> list[tuple[str, str]]:
    """Commands that use the plan, each with its purpose; *timed* if the finish is known."""
    suffix = os.path.splitext(plain_name(file))[1]
    file = file if len(file) <= LONGEST_FILE else "FILE"
    match _engine(flow):
        case "dagman":
            writes = [("-o prio.dag", "write priorities beside it")]
        case "snakemake":
            writes = [("-o rules.smk", "write priorities of rules")]
        case "nextflow":
            writes = []  # it has no priorities of tasks
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
    """Whether the file is in a format that people write to run commands, and has all commands."""
    runnable = len(flow) and _engine(flow) in {"json", "yaml", "makeflow", "jx", "ninja", "make"}
    return bool(runnable) and all(flow.task(name).command for name in flow.dag.tasks)


def _engine(flow: Workflow) -> str | None:
    """The engine that a workflow came from if that is known, else its format."""
    return (flow.origin.engine or flow.origin.format) if flow.origin else None


def snakemake_rules(flow: Workflow, order: Sequence[str]) -> tuple[str, list[str]]:
    """A priority for every rule, by the mean place of its jobs in the order, as lines for a Snakefile; and remarks."""
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


# Files that may be written


MARK = "by eligo"  # in the first lines of files that have room for a remark
BEGINNING = 400  # the number of characters that are searched for it


def check_place(flow: Workflow, path: str | None, force: bool = False) -> None:
    """Refuse a file that was read or, without *force*, one that eligo did not write."""
    if path is None or path == "-":
        return
    refuse_source(flow, path)
    if not force and os.path.isfile(path) and not is_ours(path, flow):
        raise InputError(f"{path}: the file exists and was not written by eligo").cured_by("force")


def is_ours(path: str, flow: Workflow) -> bool:
    """Whether a file is empty, a picture, marked by eligo, a plan or order, this workflow again, or a generated one."""
    if path.lower().endswith(PICTURES) or not os.path.getsize(path):
        return True
    beginning = _beginning(path)
    if MARK in beginning or (beginning.startswith("{") and _is_plan(path)) or _is_order(path, flow):
        return True
    from eligo.families import FAMILIES  # this imports numpy's random numbers

    try:
        there = read(path)
    except EligoError:
        return False
    return _is_again(there, flow) or (there.name or " ").split()[:1] in [[family] for family in FAMILIES]


def _is_again(there: Workflow, flow: Workflow) -> bool:
    """Whether a file has this workflow, with no details that this one lacks, except priorities."""
    details = (replace(task, priority=None).details().items() for task in there.details.values())
    return there.dag == flow.dag and all(
        items <= flow.task(name).details().items() for name, items in zip(there.details, details, strict=True)
    )


def _is_order(path: str, flow: Workflow) -> bool:
    """Whether a file has an order of this workflow: the names of all its tasks, one per line."""
    try:
        with open(path, encoding="utf-8") as file:
            return sorted(file.read().splitlines()) == sorted(flow.dag.labels)
    except (OSError, ValueError):
        return False


def _beginning(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read(BEGINNING)


def _is_plan(path: str) -> bool:
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(document, dict) and {"proof", "fingerprint", "order"} <= document.keys()
