"""The verbs, a small function each."""

from typing import Annotated

import typer

from eligo.cli.completing import offered
from eligo.cli.effects import check_cluster, check_compare, check_plan
from eligo.cli.options import (
    Args,
    Columns,
    Cores,
    EffortOption,
    Env,
    File,
    Force,
    From,
    Histories,
    Json,
    OrderWritten,
    Outside,
    Override,
    Picture,
    Prefer,
    PriorityBase,
    Reverse,
    SearchSeconds,
    TextTo,
    To,
    Trace,
    Workers,
)
from eligo.cli.printing import print_facts, print_json
from eligo.cli.versions import version_line

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
def show(
    file: File,
    from_: From = None,
    allow_outside: Outside = False,
    reverse: Reverse = False,
    args: Args = None,
    env: Env = False,
    columns: Columns = None,
    trace: Trace = None,
    history: Histories = None,
    json: Json = False,
) -> None:
    """Size and shape of a workflow, and how many tasks are ready under first come, first served."""
    from eligo.cli.plans import read_told
    from eligo.cli.recalling import recall
    from eligo.cli.showing import show_shape

    show_shape(
        *recall(read_told(file, from_, allow_outside, reverse, (args, env, columns, trace)), history), file, json
    )


@app.command()
def plan(
    context: typer.Context,
    file: File,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", help="Write the workflow here with priorities; .txt: the order; .smk: rules."),
    ] = None,
    names: Annotated[bool, typer.Option("--names", help="Write the order: a name a line, here or to OUT.")] = False,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Put the priorities into FILE itself, and change nothing else.")
    ] = False,
    order: OrderWritten = "finish",
    priority_base: PriorityBase = None,
    force: Force = False,
    override: Override = False,
    to: TextTo = None,
    save: Annotated[
        str | None, typer.Option("--save", help="Write the plan with its proof here, for `verify`.")
    ] = None,
    workers: Workers = None,
    cores: Cores = None,
    history: Histories = None,
    effort: EffortOption = "normal",
    seconds: SearchSeconds = None,
    prefer: Prefer = "path",
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Also say what the verdict rests on.")] = False,
    from_: From = None,
    allow_outside: Outside = False,
    reverse: Reverse = False,
    args: Args = None,
    env: Env = False,
    columns: Columns = None,
    trace: Trace = None,
    json: Json = False,
) -> None:
    """An order in which to hand out the tasks, and how good it is: no order can have more tasks ready, or how many more."""
    check_plan(context)
    from eligo.cli.planning import PlanRequest, answer
    from eligo.cli.plans import read_told
    from eligo.cli.recalling import recall

    request = PlanRequest(
        file=file,
        output=output,
        names=names,
        in_place=in_place,
        order=order,
        priority_base=priority_base,
        force=force,
        override=override,
        to=to,
        save=save,
        workers=workers,
        cores=cores,
        histories=history or [],
        effort=effort,
        seconds=seconds,
        prefer=prefer,
        verbose=verbose,
        json=json,
    )
    answer(*recall(read_told(file, from_, allow_outside, reverse, (args, env, columns, trace)), history), request)


@app.command()
def explain(
    file: File,
    output: Picture = None,
    effort: EffortOption = "normal",
    seconds: SearchSeconds = None,
    from_: From = None,
    allow_outside: Outside = False,
    reverse: Reverse = False,
    args: Args = None,
    env: Env = False,
    columns: Columns = None,
    trace: Trace = None,
    json: Json = False,
) -> None:
    """What the workflow is made of, why the plan is right, and a picture of it."""
    from eligo.cli.plans import explain_plan, read_told

    flow = read_told(file, from_, allow_outside, reverse, (args, env, columns, trace))
    explain_plan(flow, effort, seconds, output, json)


@app.command()
def verify(
    file: File,
    order: Annotated[str, typer.Argument(help="Names, one a line, or JSON: a list, or a plan saved with its proof.")],
    from_: From = None,
    allow_outside: Outside = False,
    reverse: Reverse = False,
    args: Args = None,
    env: Env = False,
    columns: Columns = None,
    trace: Trace = None,
    history: Histories = None,
    json: Json = False,
) -> int:
    """Is ORDER a schedule, how far is it from the best, and does its proof hold? Exit code 1 says no."""
    from eligo.cli.plans import read_told
    from eligo.cli.recalling import recall
    from eligo.cli.verifying import check_order, check_plan
    from eligo.formats import read_claim

    flow, _ = recall(read_told(file, from_, allow_outside, reverse, (args, env, columns, trace)), history)
    claim = read_claim(order)
    return check_plan(flow, claim, json, bool(history)) if isinstance(claim, dict) else check_order(flow, claim, json)


@app.command()
def convert(
    file: File,
    out: Annotated[str, typer.Argument(help="Where to write; - is standard output.")],
    from_: From = None,
    to: To = None,
    names: Annotated[
        str, typer.Option("--names", help="Names that OUT's format cannot hold: change, or keep and refuse to write.")
    ] = "change",
    allow_outside: Outside = False,
    args: Args = None,
    env: Env = False,
    columns: Columns = None,
    trace: Trace = None,
    force: Force = False,
    reverse: Reverse = False,
) -> None:
    """Read a workflow in one format and write it in another; what the other has no place for is told."""
    from eligo.cli.places import check_place
    from eligo.cli.plans import read_told, tell, tell_renamed
    from eligo.formats import format_to_write, lost, write
    from eligo.formats.fidelity import rewritten

    flow = read_told(file, from_, allow_outside, reverse, (args, env, columns, trace))
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
def batch(
    file: File,
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
    from_: From = None,
    allow_outside: Outside = False,
    reverse: Reverse = False,
    args: Args = None,
    env: Env = False,
    columns: Columns = None,
    trace: Trace = None,
    json: Json = False,
) -> None:
    """Which ready tasks to hand out together, so that the most tasks are ready once they are done."""
    from eligo.cli.batching import ask_batch, print_batch
    from eligo.cli.plans import read_told

    flow = read_told(file, from_, allow_outside, reverse, (args, env, columns, trace))
    state = {"executed": executed, "allocated": allocated, "eligible": eligible}
    found = ask_batch(flow, requests, **state, method=method, seconds=seconds)
    if json:
        print_json(found.document())
    else:
        print_batch(found, requests)


@app.command()
def cluster(
    context: typer.Context,
    file: File,
    size: Annotated[int | None, typer.Option(help="How many tasks one client is to get.")] = None,
    sizes: Annotated[
        str | None, typer.Option(help="Deal all of it out to clients of these sizes, such as 8,4,2, again and again.")
    ] = None,
    seconds: Annotated[
        float | None, typer.Option(help="How long the client is to be busy, where runtimes are known.")
    ] = None,
    tolerance: Annotated[float, typer.Option(help="How far off the seconds may be, as a share.")] = 0.1,
    tasks: Annotated[
        str | None, typer.Option(help="A file that names the tasks, where they were chosen by hand.")
    ] = None,
    goal: Annotated[
        str,
        typer.Option(
            autocompletion=offered("goal"),
            help="productive (most tasks made ready), communication (least to send back) or mixed.",
        ),
    ] = "productive",
    weight: Annotated[float, typer.Option(help="How much sending counts when mixed, from 0 to 1.")] = 0.5,
    strategy: Annotated[
        str, typer.Option(autocompletion=offered("strategy"), help="auto, direct, staggered or searched.")
    ] = "auto",
    executed: Annotated[
        str | None, typer.Option(help="A file that names the executed tasks, one a line, or as JSON.")
    ] = None,
    exchange: Annotated[float, typer.Option(help="With --sizes: the time that every exchange takes.")] = 0.0,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", help="A picture or page (.svg, .png, .html), or where --export goes."),
    ] = None,
    export: Annotated[
        str | None, typer.Option(autocompletion=offered("export"), help="Write it for pegasus, snakemake or dagman.")
    ] = None,
    effort: EffortOption = "normal",
    force: Force = False,
    from_: From = None,
    allow_outside: Outside = False,
    reverse: Reverse = False,
    args: Args = None,
    env: Env = False,
    columns: Columns = None,
    trace: Trace = None,
    json: Json = False,
) -> None:
    """Which tasks to give to one client at once, as many as suit it, so that what is left stays good."""
    check_cluster(context)
    from eligo.cli.clustering import ClusterRequest, answer
    from eligo.cli.places import check_place
    from eligo.cli.plans import read_told

    request = ClusterRequest(
        size=size,
        seconds=seconds,
        sizes=sizes,
        tasks=tasks,
        goal=goal,
        weight=weight,
        strategy=strategy,
        tolerance=tolerance,
        executed=executed,
        exchange=exchange,
        effort=effort,
    )
    flow = read_told(file, from_, allow_outside, reverse, (args, env, columns, trace))
    check_place(flow, output, force)
    answer(flow, request, output, export, json)


@app.command()
def compare(
    context: typer.Context,
    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE...", help="Workflows, or one experiment (YAML).")
    ] = None,
    family: Annotated[
        list[str] | None,
        typer.Option(
            autocompletion=offered("family"), help="A dag of a family, such as 'out-mesh 40'; may be repeated."
        ),
    ] = None,
    schedulers: Annotated[
        str,
        typer.Option(
            autocompletion=offered("scheduler"), help="Which orders to compare, by name, with commas between them."
        ),
    ] = "finish,plan,critical-path,greedy,fifo,lifo",
    order: Annotated[list[str] | None, typer.Option(help="A file with an order of yours; may be repeated.")] = None,
    rates: Annotated[str, typer.Option(help="How many clients ask at once, on average.")] = "2,4,8,16,32,64,128,256",
    workers: Annotated[
        str | None, typer.Option(help="How many steady workers, where every task's run time is known: 4,16,64.")
    ] = None,
    clients: Annotated[int, typer.Option(help="How many clients come and go, for the times.")] = 16,
    stay: Annotated[float, typer.Option(help="How long one stays on average, in mean task times; inf: always.")] = 10.0,
    away: Annotated[float, typer.Option(help="How long one is away on average, likewise.")] = 10.0,
    runs: Annotated[int, typer.Option(help="How often each game is played.")] = 50,
    seed: Annotated[int, typer.Option(help="For all that is random.")] = 0,
    processes: Annotated[int, typer.Option("-p", "--processes", help="How many play at once.")] = 1,
    on: Annotated[str | None, typer.Option(help="A Dask cluster that plays instead: dask://HOST:PORT.")] = None,
    results: Annotated[
        str | None, typer.Option(help="Keep finished results here (.csv, .parquet), and go on from what it has.")
    ] = None,
    output: Picture = None,
    reverse: Reverse = False,
    history: Histories = None,
    json: Json = False,
) -> None:
    """Which order would have served you best, and at which rate of requests: schedulers side by side."""
    check_compare(context)
    from eligo.cli.comparing import CompareRequest
    from eligo.cli.comparing import compare as play

    request = CompareRequest(
        files=files or [],
        families=family or [],
        schedulers=schedulers,
        orders=order or [],
        rates=rates,
        workers=workers,
        clients=clients,
        stay=stay,
        away=away,
        runs=runs,
        seed=seed,
        reverse=reverse,
        histories=history or [],
    )
    play(request, results, processes, on, output, json)


@app.command()
def reproduce(
    paper: Annotated[
        str, typer.Argument(autocompletion=offered("paper"), help="comparison, sweep, batch or clustering.")
    ],
    output: Annotated[
        str | None, typer.Option("-o", "--output", help="A folder for the page and the pictures.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller dags and fewer runs: within a minute.")] = False,
    processes: Annotated[int, typer.Option("-p", "--processes", help="How many play at once.")] = 1,
    json: Json = False,
) -> None:
    """A paper's tables and figures made again: each published value beside ours, and whether they agree."""
    from eligo.cli.reproducing import reproduce as play_again

    play_again(paper, output, quick, processes, json)
