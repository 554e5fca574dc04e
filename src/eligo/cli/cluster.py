"""The verb `cluster`: finds fat tasks, prints, draws and exports them."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from eligo.cli.output import print_facts, print_json, sparkline
from eligo.cli.plan_text import accept, listed_names, tell, working
from eligo.cli.requests import ClusterRequest
from eligo.clusters import FatTask, cluster, fat_task
from eligo.clusters.chains import chain_text
from eligo.clusters.export import EXPORTS, export_files
from eligo.errors import InputError, counted
from eligo.formats.fidelity import ALL
from eligo.formats.launches import launch_keys
from eligo.formats.shared.files import save
from eligo.planning import VERDICT_CLAUSES
from eligo.simulation import Dealing, deal
from eligo.workflow import Workflow

PICTURES = (".svg", ".png", ".html")
FIRST_TASKS = 12


def answer(flow: Workflow, request: ClusterRequest, output: str | None, export: str | None, json: bool) -> None:
    """Find the clusters that were requested, write them if requested, and print them."""
    if export is not None and export not in EXPORTS:
        raise InputError(f"unknown export {export!r}: choose one of {', '.join(EXPORTS)}")
    with working(f"clustering {len(flow):,} tasks"):
        executed = listed_names(flow, request.executed)
        clusters = _find_clusters(flow, request, executed)
    picture = output is not None and output.lower().endswith(PICTURES)
    if not picture or export is not None:
        _write(flow, clusters, executed, output, export)
    if json:
        print_json(clusters.document())
    elif output != "-" and not (export is not None and output is None):
        _print(clusters)
    if picture and output is not None:
        _draw(flow, clusters, output)


def _find_clusters(flow: Workflow, request: ClusterRequest, executed: Sequence[str]) -> FatTask | Dealing:
    if request.tasks is not None:
        return fat_task(flow, listed_names(flow, request.tasks), executed, request.effort)
    how: dict[str, Any] = {"strategy": request.strategy, "weight": request.weight, "effort": request.effort}
    if request.sizes is not None:
        if executed:
            raise InputError("--executed has no effect with --sizes, which uses the whole workflow: leave it out")
        return deal(flow, _sizes(request.sizes), request.goal, exchange=request.exchange, **how)
    how |= {"executed": executed, "seconds": request.seconds, "tolerance": request.tolerance}
    return cluster(flow, request.size, request.goal, **how)


def _sizes(text: str) -> list[int]:
    try:
        sizes = [int(word) for word in text.split(",")]
    except ValueError:
        raise InputError(f"--sizes must be integers separated by commas, such as 8,4,2, got {text!r}") from None
    for size in sizes:
        if size < 1:
            raise InputError(f"--sizes must be at least 1, got {size}")
    return sizes


def _write(
    flow: Workflow, clusters: FatTask | Dealing, executed: Sequence[str], output: str | None, export: str | None
) -> None:
    if output is not None and output.lower().endswith(PICTURES):
        raise InputError(f"{output} is a picture: leave --export out, or choose another file name")
    if export is not None:
        if export in {"dagman", "snakemake"}:
            flow = accept(flow, [ALL], what="exporting")
            tell([f"warning: exporting without {key}" for key in launch_keys(flow)])
        _export(export_files(flow, _fats(clusters), export, executed), output or "-")
    elif output is not None:
        raise InputError(f"{output}: the suffix must be .svg, .png or .html, unless --export is given")


def _fats(clusters: FatTask | Dealing) -> Sequence[FatTask]:
    return [clusters] if isinstance(clusters, FatTask) else clusters.fat_tasks


def _draw(flow: Workflow, clusters: FatTask | Dealing, output: str) -> None:
    from eligo.pages.html import save_output
    from eligo.pages.reports import cluster_report, report_page
    from eligo.plotting.comparison import draw_clusters

    headline, facts = _summary(clusters)
    with working("drawing"):
        figure = partial(draw_clusters, flow, clusters)
        save_output(output, lambda: report_page(cluster_report(flow, clusters), facts, [headline]), figure)
    tell([f"wrote {output}"])


def _export(texts: Mapping[str, str], output: str) -> None:
    """Write the files of an export: a single file, or a main file with the others beside it."""
    if list(texts) == [""]:
        save(texts[""], output)
        tell([] if output == "-" else [f"wrote {output}"])
        return
    if output == "-":
        raise InputError(
            "this export consists of several files: give the first with -o; the others are written beside it"
        )
    main, *others = texts
    save(texts[main], output)
    for name in others:
        path = Path(output).with_name(name)
        save(texts[name], str(path))
        path.chmod(path.stat().st_mode | 0o111)
    tell([f"wrote {output} and, beside it, {counted(len(others), 'script')}"])


def _print(clusters: FatTask | Dealing) -> None:
    headline, facts = _summary(clusters)
    drawn = [] if isinstance(clusters, FatTask) else _profiles(clusters)
    print_facts(headline, [*facts, *drawn])


def _summary(clusters: FatTask | Dealing) -> tuple[str, list[tuple[str, object]]]:
    """A sentence, and the other facts."""
    return _fat_summary(clusters) if isinstance(clusters, FatTask) else _dealing_summary(clusters)


def _fat_summary(fat: FatTask) -> tuple[str, list[tuple[str, object]]]:
    chain = fat.residual_chain if len(fat.residual) <= 5_000 else None
    facts: list[tuple[str, object]] = [
        ("tasks", len(fat)),
        ("strategy", f"{fat.strategy}: {fat.why}"),
        ("results to send back", f"{fat.cut_arcs:,} arcs" + _bytes(fat.bytes_out)),
        ("inputs to send", f"{len(fat.inputs):,} arcs" + _bytes(fat.bytes_in)),
        ("makes ready", f"{fat.productivity:,} tasks; {fat.eligible_after:,} are ready afterwards"),
        ("remaining workflow", f"{len(fat.residual):,} tasks; {VERDICT_CLAUSES[fat.residual_verdict]}"),
    ]
    facts += [("certificate", fat.certificate)] if fat.certificate else []
    facts += [("seconds", f"{fat.seconds:,.1f}")] if fat.seconds is not None else []
    facts += [("its blocks", chain_text(chain))] if chain else []
    return f"Tasks for one client: {_shorten_list(fat.tasks)}", facts


def _bytes(amount: int | None) -> str:
    return "" if amount is None else f", {amount:,} bytes"


def _shorten_list(tasks: Sequence[str]) -> str:
    return ", ".join(tasks[:FIRST_TASKS]) + (", ..." if len(tasks) > FIRST_TASKS else "")


def _dealing_summary(dealing: Dealing) -> tuple[str, list[tuple[str, object]]]:
    done = "" if dealing.finished else f"; {len(dealing.dag) - len(dealing.order):,} tasks were never finished"
    return f"{len(dealing.dag):,} tasks in {len(dealing):,} clusters{done}", [
        ("results sent back", f"{dealing.cut_arcs:,} arcs of {dealing.cut_arcs_singly:,}"),
        ("exchanges", f"{len(dealing):,} instead of {len(dealing.dag):,}"),
        ("time", f"{dealing.makespan:,.2f} (estimate; {dealing.makespan_singly:,.2f} with single tasks)"),
        ("strategies", ", ".join(sorted({fat.strategy for fat in dealing.fat_tasks}))),
    ]


def _profiles(dealing: Dealing) -> list[tuple[str, object]]:
    top = max((*dealing.eligible, *dealing.eligible_singly), default=0)
    return [
        ("ready after each", sparkline(dealing.eligible, top=top)),
        ("with single tasks", sparkline(dealing.eligible_singly, top=top)),
    ]
