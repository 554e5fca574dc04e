"""The verbs that do the work, and those that look at it."""

from typing import Annotated

import typer

from eligo.cli.app import app
from eligo.cli.completing import offered
from eligo.cli.effects import check_look, check_run, given_names, is_server, refuse_useless
from eligo.cli.options import Histories, Ignore, Json, Reading, grouped

__all__ = ["app"]

Folder = Annotated[
    str,
    typer.Argument(metavar="RUN", help="The folder of a run, such as FILE.run, or FILE; or a server's URL[/WORKFLOW]."),
]
Token = Annotated[
    str | None,
    typer.Option(
        "--token-file",
        help="A file with the token for the server. [default: $ELIGO_TOKEN_FILE, or what your own server offers here]",
    ),
]
Authority = Annotated[str | None, typer.Option("--ca", help="A file with the certificates to trust, for https.")]
TaskName = Annotated[str, typer.Argument(metavar="TASK", help="A task of it, by its name.")]


@app.command()
@grouped
def run(
    context: typer.Context,
    file: Annotated[str | None, typer.Argument(help="A workflow with commands, in any format.")] = None,
    *,
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
            autocompletion=offered("policy"),
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
    reading: Reading,
    token_file: Token = None,
    ca: Authority = None,
    page: Annotated[bool, typer.Option("--page", help="Show it in a browser while it goes on: says where.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Say only how it ended.")] = False,
    json: Json = False,
) -> int:
    """Run the tasks of a workflow in the order that eligo decides; the same command again goes on after any stop."""
    check_run(context)
    from eligo.cli.plans import read_told, recall
    from eligo.cli.rehearsing import rehearse_all
    from eligo.cli.requests import RunRequest
    from eligo.cli.running import answer, facts_of_run, flow_of_run
    from eligo.formats.fidelity import words_in

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
        token=token_file,
        ca=ca,
        ignore=words_in([*(ignore or ()), facts_of_run(resume).get("ignored", "")]),
        reading=None if file is None else reading,
    )
    if file is None and rehearse is None:
        request = request.as_before(facts_of_run(resume), given_names(context))
    flow = flow_of_run(resume) if file is None else read_told(file, reading)
    flow = recall(flow, history, folder or resume).flow
    return answer(flow, request) if rehearse is None else rehearse_all(flow, request, rehearse)


@app.command()
def add(
    context: typer.Context,
    folder: Folder,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A workflow in JSON or YAML: the tasks to add.")],
    directory: Annotated[
        str | None,
        typer.Option(
            "--dir", help="Where the files are that new tasks of a server read. [default: the folder of FILE]"
        ),
    ] = None,
    token_file: Token = None,
    ca: Authority = None,
    json: Json = False,
) -> int:
    """Add tasks to a run, also while it is under way. They may come after its tasks, and read the files these write."""
    from eligo.cli.adding import add_to_folder, add_to_server
    from eligo.cli.server_door import ServerDoor

    if is_server(context):
        return add_to_server(ServerDoor.find(folder, token_file, ca), file, directory, json)
    refuse_useless(context, "on a folder", "directory")
    return add_to_folder(folder, file, json)


@app.command()
def status(
    context: typer.Context, folder: Folder, token_file: Token = None, ca: Authority = None, json: Json = False
) -> int:
    """Where a run stands, also while it goes on: counts, what runs since when, and failures by cause."""
    check_look(context)
    from eligo.cli.seeing import show_status

    return show_status(folder, json, token_file, ca)


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
    check_look(context)
    from eligo.cli.seeing import show_why, sight_of

    return show_why(sight_of(folder, token_file, ca), task, json)


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
    check_look(context)
    from eligo.cli.seeing import show_log, sight_of

    return show_log(sight_of(folder, token_file, ca), task, err, attempt)


@app.command()
def page(
    context: typer.Context,
    folder: Annotated[
        str, typer.Argument(metavar="RUN", help="The folder of a run, such as FILE.run, or FILE; or a server's URL.")
    ],
    port: Annotated[int, typer.Option(help="The port on this machine; 0: any that is free.")] = 8751,
    open_: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    with_parent: Annotated[bool, typer.Option("--with-parent", hidden=True)] = False,
    token_file: Token = None,
) -> int:
    """Show a run as a live page, while it runs and after; or print the link to a server's page, which holds your token."""
    from eligo.cli.paging import link_page, show_page

    if is_server(context):
        refuse_useless(context, "on a server", "port")
        return link_page(folder, token_file, open_)
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
    check_look(context)
    from eligo.cli.seeing import source_of

    source = source_of(folder, token_file, ca)
    if once:
        from eligo.cli.top_frame import print_once

        return print_once(source)
    from eligo.cli.top_start import show_top

    return show_top(source)


@app.command()
def report(
    context: typer.Context,
    folder: Folder,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", help="Where to write it. [default: RUN/report.html; of a server, report.html]"),
    ] = None,
    token_file: Token = None,
    ca: Authority = None,
) -> int:
    """The report of a run, as one page: ready tasks, what each worker did, what decided its end, failures."""
    check_look(context)
    from eligo.cli.seeing import sight_of, write_report

    return write_report(sight_of(folder, token_file, ca), output)
