"""The verbs that do the work, and those that look at it."""

from typing import Annotated

import typer

from eligo.cli.app import app
from eligo.cli.completing import offered
from eligo.cli.effects import check_run, given_names, is_server, refuse_useless
from eligo.cli.options import Args, Columns, Env, From, Histories, Ignore, Json, Outside, Reverse, Trace

__all__ = ["app"]

Folder = Annotated[
    str,
    typer.Argument(metavar="RUN", help="The folder of a run, such as FILE.run, or FILE; or a server's URL[/WORKFLOW]."),
]
Token = Annotated[str | None, typer.Option("--token-file", help="A file with the token that a server wants.")]
Authority = Annotated[str | None, typer.Option("--ca", help="A file with the certificates to trust, for https.")]
TaskName = Annotated[str, typer.Argument(metavar="TASK", help="A task of it, by its name.")]


@app.command()
def run(
    context: typer.Context,
    file: Annotated[str | None, typer.Argument(help="A workflow with commands, in any format.")] = None,
    on: Annotated[
        str,
        typer.Option(
            help="Who runs the tasks: local, dask[=ADDRESS], ray[=ADDRESS], parsl, slurm, slurm-steps, htcondor,"
            " htcondor-dagman, or the clients of a server: http://..."
        ),
    ] = "local",
    workers: Annotated[
        int | None, typer.Option(help="How many tasks run at a time: the cores of this machine.")
    ] = None,
    policy: Annotated[
        str,
        typer.Option(
            autocompletion=offered("order", "policy"),
            help="Which ready task goes next, or an order's file; to rehearse, several with commas.",
        ),
    ] = "finish",
    folder: Annotated[str | None, typer.Option("--run", help="Where its state and logs go: FILE.run.")] = None,
    resume: Annotated[str | None, typer.Option(metavar="RUN", help="Go on with this run; FILE is not needed.")] = None,
    batch: Annotated[bool, typer.Option("--batch", help="Choose for all free workers together.")] = False,
    fat: Annotated[int, typer.Option(help="How many tasks a worker gets at once.")] = 1,
    retries: Annotated[int, typer.Option(help="How often a task that failed is tried again.")] = 2,
    timeout: Annotated[float | None, typer.Option(help="How many seconds a task may take.")] = None,
    max_failures: Annotated[int | None, typer.Option(help="Begin nothing more once so many tasks failed.")] = None,
    skip_done: Annotated[
        bool, typer.Option("--skip-done", help="Skip tasks whose outputs are newer than their inputs, like make.")
    ] = False,
    history: Histories = None,
    rehearse: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="Run nothing: sleep instead, all in about so long, to see how long it takes."
        ),
    ] = None,
    directory: Annotated[str | None, typer.Option("--dir", help="Where tasks run: the folder of FILE.")] = None,
    ignore: Ignore = None,
    from_: From = None,
    allow_outside: Outside = False,
    reverse: Reverse = False,
    args: Args = None,
    env: Env = False,
    columns: Columns = None,
    trace: Trace = None,
    page: Annotated[bool, typer.Option("--page", help="Show it in a browser while it goes on: says where.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Say only how it ended.")] = False,
    json: Json = False,
) -> int:
    """Run the tasks of a workflow in the order that eligo decides; the same command again goes on after any stop."""
    check_run(context)
    from eligo.cli.plans import read_told
    from eligo.cli.recalling import recall
    from eligo.cli.rehearsing import rehearse_all
    from eligo.cli.requests import RunRequest
    from eligo.cli.running import answer, facts_of_run, flow_of_run
    from eligo.formats.fidelity import words_in

    reading = (from_, allow_outside, reverse, (args, env, columns, trace))
    request = RunRequest(
        folder=folder or resume,
        on=on,
        workers=workers,
        policy="batch-optimal" if batch else policy,
        fat=fat,
        retries=retries,
        timeout=timeout,
        max_failures=max_failures,
        skip_done=skip_done,
        directory=directory,
        json=json,
        quiet=quiet,
        page=page,
        ignore=words_in([*(ignore or ()), facts_of_run(resume).get("ignored", "")]),
        reading=None if file is None else reading,
    )
    if file is None and rehearse is None:
        request = request.as_before(facts_of_run(resume), given_names(context))
    flow = flow_of_run(resume) if file is None else read_told(file, *reading)
    flow, _ = recall(flow, history, folder or resume)
    return answer(flow, request) if rehearse is None else rehearse_all(flow, request, rehearse)


@app.command()
def status(
    context: typer.Context, folder: Folder, token_file: Token = None, ca: Authority = None, json: Json = False
) -> int:
    """Where a run stands, also while it goes on: counts, what runs since when, and failures by cause."""
    if is_server(context):
        from eligo.cli.remote import ServerDoor, show_remote

        return show_remote(ServerDoor(folder, token_file, ca), json)
    from eligo.cli.seeing import show_status

    return show_status(folder, json)


@app.command()
def why(
    context: typer.Context,
    folder: Folder,
    task: TaskName,
    token_file: Token = None,
    ca: Authority = None,
    json: Json = False,
) -> int:
    """Why a task of a run stands where it does: what it waits for, its place in the order, and how it was tried."""
    if is_server(context):
        from eligo.cli.remote import ServerDoor, show_remote_task

        return show_remote_task(ServerDoor(folder, token_file, ca), task, "why", json)
    from eligo.cli.seeing import show_why

    return show_why(folder, task, json)


@app.command()
def log(
    context: typer.Context,
    folder: Folder,
    task: TaskName,
    err: Annotated[bool, typer.Option("--err", help="Standard error instead of standard output.")] = False,
    attempt: Annotated[int | None, typer.Option(help="Which attempt, from 1: the last.")] = None,
    token_file: Token = None,
    ca: Authority = None,
) -> int:
    """What a task of a run printed, also while it runs."""
    if is_server(context):
        from eligo.cli.remote import ServerDoor, show_remote_task

        refuse_useless(context, "on a server, which keeps the last lines of the last attempt", "err", "attempt")
        return show_remote_task(ServerDoor(folder, token_file, ca), task, "log")
    from eligo.cli.seeing import show_log

    return show_log(folder, task, err, attempt)


@app.command()
def page(
    folder: Annotated[str, typer.Argument(metavar="RUN", help="The folder of a run, such as FILE.run, or FILE.")],
    port: Annotated[int, typer.Option(help="The port on this machine; 0: any that is free.")] = 8751,
    open_: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    with_parent: Annotated[bool, typer.Option("--with-parent", hidden=True)] = False,
) -> int:
    """A run as a live page, also while it goes on and after: what is ready, running, failed, by whom, and how long yet."""
    from eligo.cli.paging import show_page

    return show_page(folder, port, open_, with_parent)


@app.command()
def top(
    context: typer.Context,
    folder: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]", help="As for status: RUN, FILE or a server's URL[/WORKFLOW]; the only run here."
        ),
    ] = None,
    token_file: Token = None,
    ca: Authority = None,
    once: Annotated[bool, typer.Option("--once", help="Print how it stands now, as text, and end.")] = False,
) -> int:
    """A run or a server's workflow in the terminal, as it goes on: what is ready, running, failed, by whom, how long yet."""
    from eligo.cli.remote import ServerDoor
    from eligo.cli.top_sources import ServerSource, folder_source

    remote = is_server(context)
    source = ServerSource(ServerDoor(str(folder), token_file, ca)) if remote else folder_source(folder)
    if once:
        from eligo.cli.top_frame import print_once

        return print_once(source)
    from eligo.cli.top_start import show_top

    return show_top(source)


@app.command()
def report(
    folder: Folder,
    output: Annotated[str | None, typer.Option("-o", "--output", help="Where to write it: RUN/report.html.")] = None,
) -> int:
    """The report of a run, as one page: ready tasks, what each worker did, what decided its end, failures."""
    from eligo.cli.seeing import write_report

    return write_report(folder, output)
