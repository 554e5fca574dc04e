"""The verbs, a small function each."""

from typing import Annotated

import typer

from eligo.cli.completing import offered
from eligo.cli.effects import BESIDE_EXPERIMENTS, NOT_OF_EXPERIMENTS, check_cluster, check_plan, refuse_useless
from eligo.cli.options import (
    ClusterRequest,
    CompareRequest,
    EffortOption,
    File,
    Force,
    Histories,
    Json,
    Picture,
    PlanRequest,
    Reading,
    SearchSeconds,
    To,
    grouped,
)
from eligo.cli.printing import print_facts, print_json
from eligo.cli.versions import version_line
from eligo.errors import InputError

app = typer.Typer(
    help="Which ready task of a workflow to hand out next, and how good that choice is.",
    rich_markup_mode=None,  # brackets in help texts are meant literally: URL[/WORKFLOW]
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(version_line(), nl=False)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Which ready task of a workflow to hand out next, and how good that choice is."""


@app.command()
@grouped
def show(
    file: File,
    *,
    reading: Reading,
    history: Histories = None,
    json: Json = False,
) -> None:
    """Size and shape of a workflow, and how many tasks are ready under first come, first served."""
    from eligo.cli.plans import read_told, recall
    from eligo.cli.showing import show_shape

    show_shape(recall(read_told(file, reading), history), file, json)


@app.command()
@grouped
def plan(context: typer.Context, request: PlanRequest, reading: Reading) -> None:
    """An order in which to hand out the tasks, and how good it is: no order can have more tasks ready, or how many more."""
    check_plan(context)
    from eligo.cli.planning import answer
    from eligo.cli.plans import read_told, recall

    answer(recall(read_told(request.file, reading), request.history), request)


@app.command()
@grouped
def explain(
    file: File,
    *,
    output: Picture = None,
    effort: EffortOption = "normal",
    seconds: SearchSeconds = None,
    reading: Reading,
    json: Json = False,
) -> None:
    """What the workflow is made of, why the plan is right, and a picture of it."""
    from eligo.cli.plans import explain_plan, read_told

    flow = read_told(file, reading)
    explain_plan(flow, effort, seconds, output, json)


@app.command()
@grouped
def verify(
    file: File,
    order: Annotated[str, typer.Argument(help="Names, one a line, or JSON: a list, or a plan saved with its proof.")],
    *,
    reading: Reading,
    history: Histories = None,
    json: Json = False,
) -> int:
    """Is ORDER a schedule, how far is it from the best, and does its proof hold? Exit code 1 says no."""
    from eligo.cli.plans import read_told, recall
    from eligo.cli.verifying import check_order, check_plan
    from eligo.formats import read_claim

    flow = recall(read_told(file, reading), history).flow
    claim = read_claim(order)
    return check_plan(flow, claim, json, bool(history)) if isinstance(claim, dict) else check_order(flow, claim, json)


@app.command()
@grouped
def convert(
    file: File,
    out: Annotated[str, typer.Argument(help="Where to write; - is standard output.")],
    *,
    reading: Reading,
    to: To = None,
    names: Annotated[
        str, typer.Option("--names", help="Names that OUT's format cannot hold: change, or keep and refuse to write.")
    ] = "change",
    force: Force = False,
) -> None:
    """Read a workflow in one format and write it in another; what the other has no place for is told."""
    from eligo.cli.places import check_place
    from eligo.cli.plans import read_told, tell, tell_renamed
    from eligo.formats import format_to_write, lost, write
    from eligo.formats.fidelity import rewritten

    flow = read_told(file, reading)
    format = to or format_to_write(flow, out)
    check_place(flow, out, force)
    flow, remarks = rewritten(flow, format)
    tell_renamed(write(flow, out, format, names), format)
    tell(remarks)
    missing = lost(flow, format)
    tell([f"{format} has no place for {', '.join(missing)}"] if missing else [])
    tell([] if out == "-" else [f"wrote {out}"])


@app.command()
def generate(
    family: Annotated[
        str, typer.Argument(autocompletion=offered("family"), help="The family's name; `list` shows them all.")
    ],
    parameters: Annotated[list[str] | None, typer.Argument(help="Its sizes, in order or as name=value.")] = None,
    seed: Annotated[int, typer.Option(help="For the random families.")] = 0,
    out: Annotated[str, typer.Option("-o", "--output", help="Where to write.")] = "-",
    to: To = None,
    force: Force = False,
) -> None:
    """Make a dag of a named family, such as `eligo generate out-mesh 10` or `eligo generate w 3 2`."""
    from eligo.cli.generating import family_usages, make
    from eligo.cli.places import check_place
    from eligo.cli.plans import tell
    from eligo.formats import write
    from eligo.workflow import Workflow

    if family == "list":
        print_facts("Families and their sizes", family_usages())
        return
    dag = make(family, parameters or [], seed)
    flow = Workflow(dag, name=" ".join([family, *(parameters or [])]))
    check_place(flow, out, force)
    write(flow, out, to or ("json" if out == "-" else None))
    tell([] if out == "-" else [f"wrote {out}"])


@app.command()
@grouped
def batch(
    file: File,
    *,
    requests: Annotated[int, typer.Option("-r", "--requests", help="How many tasks are asked for together.")],
    executed: Annotated[
        str | None,
        typer.Option(help="A file that names the executed tasks, one a line, or as JSON; - is standard input."),
    ] = None,
    allocated: Annotated[
        str | None, typer.Option(help="Likewise the tasks that somebody has and has not returned.")
    ] = None,
    eligible: Annotated[
        str | None, typer.Option(help="Likewise the tasks that may be handed out, where not all eligible ones may.")
    ] = None,
    method: Annotated[
        str, typer.Option(autocompletion=offered("method"), help="auto, exact, greedy or expansive.")
    ] = "auto",
    seconds: Annotated[float | None, typer.Option(help="How long to look where the choice is hard.")] = None,
    reading: Reading,
    json: Json = False,
) -> None:
    """Which ready tasks to hand out together, so that the most tasks are ready once they are done."""
    from eligo.cli.batching import ask_batch, print_batch
    from eligo.cli.plans import read_told

    flow = read_told(file, reading)
    state = {"executed": executed, "allocated": allocated, "eligible": eligible}
    found = ask_batch(flow, requests, **state, method=method, seconds=seconds)
    if json:
        print_json(found.document())
    else:
        print_batch(found, requests)


@app.command()
@grouped
def cluster(
    context: typer.Context,
    file: File,
    *,
    request: ClusterRequest,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", help="A picture or page (.svg, .png, .html), or where --export goes."),
    ] = None,
    export: Annotated[
        str | None, typer.Option(autocompletion=offered("export"), help="Write it for pegasus, snakemake or dagman.")
    ] = None,
    force: Force = False,
    reading: Reading,
    json: Json = False,
) -> None:
    """Which tasks to give to one client at once, as many as suit it, so that what is left stays good."""
    check_cluster(context)
    from eligo.cli.clustering import answer
    from eligo.cli.places import check_place
    from eligo.cli.plans import read_told

    flow = read_told(file, reading)
    check_place(flow, output, force)
    answer(flow, request, output, export, json)


@app.command()
@grouped
def compare(context: typer.Context, request: CompareRequest) -> None:
    """Which order would have served you best, and at which rate of requests: schedulers side by side."""
    from functools import partial

    from eligo.cli.comparing import compare as play

    play(request, partial(refuse_useless, context, BESIDE_EXPERIMENTS, *NOT_OF_EXPERIMENTS))


@app.command(hidden=True, context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
def reproduce() -> None:
    """Say where the papers' experiments are now."""
    raise InputError("the papers' experiments are not part of the command any more: run 'python -m papers' in a clone")
