"""The verbs that read a workflow and print or write something about it, each in a small function."""

from typing import Annotated

import typer

from eligo.cli import options as option
from eligo.cli.effects import BESIDE_EXPERIMENTS, NOT_OF_EXPERIMENTS, check_cluster, check_plan, refuse_useless
from eligo.cli.options import Reading, flag, grouped, operand, valued
from eligo.cli.output import print_facts, print_json, version_line
from eligo.cli.requests import ClusterRequest, CompareRequest, PlanRequest

app = typer.Typer(
    help="Decide which ready task of a workflow runs next, and prove how good the choice is.",
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
        bool, flag("Print the version and exit.", "--version", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Decide which ready task of a workflow runs next, and prove how good the choice is."""


@app.command()
@grouped
def plan(context: typer.Context, request: PlanRequest, reading: Reading) -> None:
    """Compute an order for the tasks and prove how good it is.

    Reports the estimated time, a lower bound that no order can beat, and whether first come, first served would do as
    well.
    """
    check_plan(context)
    from eligo.cli.plan import answer
    from eligo.cli.plan_text import read_workflow, recall

    answer(recall(read_workflow(request.file, reading), request.history), request)


@app.command()
@grouped
def show(file: option.File, *, reading: Reading, history: option.Histories = None, json: option.Json = False) -> None:
    """Show the size and shape of a workflow.

    Also shows how many tasks are ready at a time if they run first come, first served.
    """
    from eligo.cli.facts import show_shape
    from eligo.cli.plan_text import read_workflow, recall

    show_shape(recall(read_workflow(file, reading), history), file, json)


@app.command()
@grouped
def explain(
    file: option.File,
    *,
    output: option.Picture = None,
    effort: option.EffortOption = "normal",
    seconds: option.SearchSeconds = None,
    reading: Reading,
    json: option.Json = False,
) -> None:
    """Explain why the plan is good, and draw the workflow."""
    from eligo.cli.plan_text import explain_plan, read_workflow

    flow = read_workflow(file, reading)
    explain_plan(flow, effort, seconds, output, json)


@app.command()
@grouped
def compare(context: typer.Context, request: CompareRequest) -> None:
    """Compare policies on workflows by simulation.

    Shows how long each policy takes, by the number of workers or the rate of requests.
    """
    from functools import partial

    from eligo.cli.compare import compare as play

    play(request, partial(refuse_useless, context, BESIDE_EXPERIMENTS, *NOT_OF_EXPERIMENTS))


@app.command()
@grouped
def verify(
    file: option.File,
    order: Annotated[str, operand("ORDER", "Task names, one per line or as JSON; or a plan from `eligo plan --save`.")],
    *,
    reading: Reading,
    history: option.Histories = None,
    json: option.Json = False,
) -> int:
    """Check an order, or a saved plan and its proof.

    Exit code 1 if the order is not valid or the proof does not hold.
    """
    from eligo.cli.facts import check_order, check_proof
    from eligo.cli.plan_text import read_workflow, recall
    from eligo.formats import read_claim

    flow = recall(read_workflow(file, reading), history).flow
    claim = read_claim(order)
    return check_proof(flow, claim, json, bool(history)) if isinstance(claim, dict) else check_order(flow, claim, json)


@app.command()
@grouped
def batch(
    file: option.File,
    *,
    requests: Annotated[int, valued("N", "Number of tasks to choose.", "-r", "--requests")],
    executed: Annotated[
        str | None,
        valued("FILE", "File that names the finished tasks, one per line or as JSON; - reads standard input."),
    ] = None,
    allocated: Annotated[str | None, valued("FILE", "File that names the running tasks.")] = None,
    eligible: Annotated[
        str | None, valued("FILE", "File that names the tasks to choose from. [default: all ready]")
    ] = None,
    method: Annotated[str, valued("NAME", "auto, exact, greedy or expansive.", of="method")] = "auto",
    seconds: option.SearchSeconds = None,
    reading: Reading,
    json: option.Json = False,
) -> None:
    """Choose a set of ready tasks to hand out together.

    It is the set that, once finished, leaves the most tasks ready.
    """
    from eligo.cli.facts import State, ask_batch, print_batch
    from eligo.cli.plan_text import read_workflow

    flow = read_workflow(file, reading)
    state = State(executed, allocated, eligible)
    choice = ask_batch(flow, requests, state, method, seconds)
    if json:
        print_json(choice.document())
    else:
        print_batch(choice, requests)


@app.command()
@grouped
def cluster(
    context: typer.Context,
    file: option.File,
    *,
    request: ClusterRequest,
    output: Annotated[
        str | None, valued("OUT", "Picture (.svg, .png, .html), or the file of --export.", "-o", "--output")
    ] = None,
    export: Annotated[
        str | None, valued("NAME", "Write the workflow for pegasus, snakemake or dagman.", of="export")
    ] = None,
    force: option.Force = False,
    reading: Reading,
    json: option.Json = False,
) -> None:
    """Choose a cluster of tasks for one client to run as a unit.

    Chooses tasks so that the remaining workflow can still be ordered well.
    """
    check_cluster(context)
    from eligo.cli.cluster import answer
    from eligo.cli.export import check_place
    from eligo.cli.plan_text import read_workflow

    flow = read_workflow(file, reading)
    check_place(flow, output, force)
    answer(flow, request, output, export, json)


@app.command()
@grouped
def convert(
    file: option.File,
    out: Annotated[str, operand("OUT", "File to write; - is standard output.")],
    *,
    reading: Reading,
    to: option.To = None,
    names: Annotated[
        str, valued("MODE", "Names that are invalid in OUT's format: change them, or keep them and fail.", "--names")
    ] = "change",
    force: option.Force = False,
) -> None:
    """Convert a workflow to another format.

    Reports what the target format cannot represent.
    """
    from eligo.cli.export import check_place
    from eligo.cli.plan_text import read_workflow, tell, tell_renamed
    from eligo.formats import format_to_write, lost, write
    from eligo.formats.fidelity import rewritten

    flow = read_workflow(file, reading)
    format = to or format_to_write(flow, out)
    check_place(flow, out, force)
    flow, remarks = rewritten(flow, format)
    tell_renamed(write(flow, out, format, names), format)
    tell(remarks)
    missing = lost(flow, format)
    tell([f"{format} cannot represent {', '.join(missing)}: left out"] if missing else [])
    tell([] if out == "-" else [f"wrote {out}"])


@app.command()
def generate(
    family: Annotated[str, operand("FAMILY", "Name of the family; `list` lists all.", of="family")],
    parameters: Annotated[list[str] | None, operand("[SIZE]...", "Sizes, in order or as name=value.")] = None,
    seed: Annotated[int, valued("N", "Seed of the random families.")] = 0,
    out: Annotated[str, valued("OUT", "File to write; - is standard output.", "-o", "--output")] = "-",
    to: option.To = None,
    force: option.Force = False,
) -> None:
    """Generate a workflow of a named family.

    For example, `eligo generate out-mesh 10` or `eligo generate w 3 2`.
    """
    from eligo.cli.export import check_place
    from eligo.cli.facts import family_usages, make_dag
    from eligo.cli.plan_text import tell
    from eligo.formats import write
    from eligo.workflow import Workflow

    if family == "list":
        print_facts("Families and their sizes", family_usages())
        return
    dag = make_dag(family, parameters or [], seed)
    flow = Workflow(dag, name=" ".join([family, *(parameters or [])]))
    check_place(flow, out, force)
    write(flow, out, to or ("json" if out == "-" else None))
    tell([] if out == "-" else [f"wrote {out}"])
