"""The verbs that do the work, and those that look at it."""

from typing import Annotated

import typer

from eligo.cli.app import app
from eligo.cli.completion import offered
from eligo.cli.effects import check_look, check_run, given_names, is_server, refuse_useless
from eligo.cli.options import Histories, Ignore, Json, Reading, grouped

__all__ = ["app"]

Folder = Annotated[
    str,
    typer.Argument(metavar="RUN", help="Run folder (such as FILE.run), its FILE, or a server's URL[/WORKFLOW]."),
]
Token = Annotated[
    str | None,
    typer.Option(
        "--token-file",
        metavar="FILE",
        help="File with the token. [default: $ELIGO_TOKEN_FILE, or the token of your own server on this machine]",
    ),
]
Authority = Annotated[str | None, typer.Option("--ca", metavar="FILE", help="Certificates to trust, for https.")]
TaskName = Annotated[str, typer.Argument(metavar="TASK", help="Name of a task.")]


@app.command()
@grouped
def run(
    context: typer.Context,
    file: Annotated[
        str | None, typer.Argument(metavar="[FILE]", help="Workflow with commands, in any supported format.")
    ] = None,
    *,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            "-j",
            "--jobs",
            metavar="N",
            help="Maximum number of concurrent tasks. [default: number of cores]",
        ),
    ] = None,
    on: Annotated[
        str,
        typer.Option(
            metavar="ENGINE",
            help="Engine that runs the tasks: local, dask[=ADDRESS], ray[=ADDRESS], parsl, slurm, slurm-steps, htcondor,"
            " htcondor-dagman, or the URL of an eligo server.",
        ),
    ] = "local",
    policy: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            autocompletion=offered("policy"),
            help="Policy that chooses the next task, or a file with an order.",
        ),
    ] = "finish",
    resume: Annotated[
        str | None, typer.Option(metavar="RUN", help="Resume the run in this folder; FILE is not needed.")
    ] = None,
    retries: Annotated[int, typer.Option(metavar="N", help="Retries of a failed task.")] = 2,
    timeout: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Time limit of each attempt. [default: none]")
    ] = None,
    max_failures: Annotated[int | None, typer.Option(metavar="N", help="Start no more tasks after N failures.")] = None,
    skip_done: Annotated[
        bool, typer.Option("--skip-done", help="Skip tasks whose outputs are newer than their inputs, like make.")
    ] = False,
    page: Annotated[bool, typer.Option("--page", help="Serve a live web page of the run and print its URL.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print only the result.")] = False,
    json: Json = False,
    folder: Annotated[
        str | None, typer.Option("--run", metavar="FOLDER", help="Folder for state and logs. [default: FILE.run]")
    ] = None,
    directory: Annotated[
        str | None, typer.Option("--dir", metavar="DIR", help="Directory of the tasks. [default: FILE's folder]")
    ] = None,
    history: Histories = None,
    rehearse: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Replace tasks by sleeps, scaled to about SECONDS in all; --policy may list several to compare.",
        ),
    ] = None,
    batch: Annotated[bool, typer.Option("--batch", help="Choose tasks for all free workers together.")] = False,
    fat: Annotated[int, typer.Option(metavar="N", help="Tasks handed to a worker at once.")] = 1,
    ignore: Ignore = None,
    reading: Reading,
    token_file: Token = None,
    ca: Authority = None,
) -> int:
    """Run the tasks of a workflow.

    Run the same command again to resume, even after kill -9. Finished tasks are not repeated.
    """
    check_run(context)
    from eligo.cli.plan_text import read_told, recall
    from eligo.cli.rehearse import rehearse_all
    from eligo.cli.requests import RunRequest
    from eligo.cli.run_text import answer, facts_of_run, flow_of_run
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
    file: Annotated[str, typer.Argument(metavar="FILE", help="Tasks to add: a workflow in JSON or YAML.")],
    directory: Annotated[
        str | None,
        typer.Option(
            "--dir",
            metavar="DIR",
            help="Server only: folder of the files that new tasks read. [default: folder of FILE]",
        ),
    ] = None,
    token_file: Token = None,
    ca: Authority = None,
    json: Json = False,
) -> int:
    """Add tasks to a run, even while it is running.

    New tasks may depend on existing tasks and read the files that these write.
    """
    from eligo.cli.add import add_to_folder, add_to_server
    from eligo.cli.server_door import ServerDoor

    if is_server(context):
        return add_to_server(ServerDoor.find(folder, token_file, ca), file, directory, json)
    refuse_useless(context, "with a run folder", "directory")
    return add_to_folder(folder, file, json)


@app.command()
def status(
    context: typer.Context,
    folder: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]",
            show_default=False,
            help="The folder of a run, such as FILE.run, or FILE; or a server's URL[/WORKFLOW]."
            " [default: $ELIGO_URL, or the only run here]",
        ),
    ] = None,
    token_file: Token = None,
    ca: Authority = None,
    json: Json = False,
) -> int:
    """Show the counts, running tasks and failures of a run."""
    from eligo.cli.look import show_status
    from eligo.cli.server_door import usual_place

    folder = context.params["folder"] = usual_place(folder)
    check_look(context)
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
    """Explain the state of one task.

    Shows what it waits for, its place in the order, and its attempts.
    """
    check_look(context)
    from eligo.cli.look import show_why, sight_of

    return show_why(sight_of(folder, token_file, ca), task, json)


@app.command()
def log(
    context: typer.Context,
    folder: Folder,
    task: TaskName,
    err: Annotated[bool, typer.Option("--err", help="Print standard error instead of standard output.")] = False,
    attempt: Annotated[
        int | None, typer.Option(metavar="N", help="Number of the attempt, from 1. [default: the last]")
    ] = None,
    token_file: Token = None,
    ca: Authority = None,
) -> int:
    """Print the output of a task, even while it is running."""
    check_look(context)
    from eligo.cli.look import show_log, sight_of

    return show_log(sight_of(folder, token_file, ca), task, err, attempt)


@app.command()
def page(
    context: typer.Context,
    folder: Annotated[
        str, typer.Argument(metavar="RUN", help="Run folder (such as FILE.run), its FILE, or a server's URL.")
    ],
    port: Annotated[int, typer.Option(metavar="PORT", help="Port on this machine; 0: any free port.")] = 8751,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    with_parent: Annotated[bool, typer.Option("--with-parent", hidden=True)] = False,
    token_file: Token = None,
) -> int:
    """Show a run as a live web page.

    For a server, print the link to its page; the link contains your token.
    """
    from eligo.cli.run_page import link_page, show_page

    if is_server(context):
        refuse_useless(context, "with a server", "port")
        return link_page(folder, token_file, open_)
    return show_page(folder, port, open_, with_parent)


@app.command()
def top(
    context: typer.Context,
    folder: Annotated[
        str | None,
        typer.Argument(
            metavar="[RUN]",
            help="Run folder, its FILE, or a server's URL[/WORKFLOW]. [default: the only run in this folder]",
        ),
    ] = None,
    token_file: Token = None,
    ca: Authority = None,
    once: Annotated[bool, typer.Option("--once", help="Print the current state as text and exit.")] = False,
) -> int:
    """Show a run live in the terminal.

    Shows tasks by state, workers, failures, and the estimated time left.
    """
    check_look(context)
    from eligo.cli.look import source_of

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
        typer.Option(
            "-o", "--output", metavar="OUT", help="File to write. [default: RUN/report.html; for a server, report.html]"
        ),
    ] = None,
    token_file: Token = None,
    ca: Authority = None,
) -> int:
    """Write a report of a run as one HTML page."""
    check_look(context)
    from eligo.cli.look import sight_of, write_report

    return write_report(sight_of(folder, token_file, ca), output)
