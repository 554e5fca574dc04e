"""The verbs that run workflows, and those that show runs."""

import os
from copy import copy
from dataclasses import replace
from json import loads
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from eligo.cli.app import app
from eligo.cli.effects import SERVER, check_look, check_run, given_names, is_server, refuse_useless
from eligo.cli.options import Access, Json, Reading, RunPlace, TaskName, Token, flag, grouped, operand, valued
from eligo.cli.requests import RunRequest

__all__ = ["app"]

FILE = "Workflow, or a command for each value: 'gzip {}' ::: a b."
#: options of `run` that the help of another verb explains
EXPLAINED = {
    "plan": ("from_", "allow_outside", "reverse", "args", "env", "columns", "trace", "history"),
    "submit": ("ignore", "token_file", "ca", "json"),
}


class RunCommand(TyperCommand):
    """The verb `run`, whose help fits two screens: it only names the options that other verbs explain."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, and below them those of other verbs."""
        brief, flags = copy(self), {each.name: each.opts[0] for each in self.params}
        brief.params = [each for each in self.params if not any(each.name in names for names in EXPLAINED.values())]
        TyperCommand.format_options(brief, ctx, formatter)
        parts = (f"{', '.join(flags[name] for name in names)} ({verb} -h)" for verb, names in EXPLAINED.items())
        formatter.write_text(f"Also {', '.join(parts)}.")


@app.command(cls=RunCommand)
@grouped
def run(
    context: typer.Context,
    file: Annotated[str | None, operand("[FILE]", FILE)] = None,
    lines: Annotated[bool, flag("Read FILE as a list of commands, one per line.", "--lines")] = False,
    values: Annotated[str | None, typer.Option("--values", hidden=True)] = None,
    *,
    request: RunRequest,
    reading: Reading,
    access: Access,
) -> int:
    """Run a workflow. Run it again to resume; finished tasks do not rerun."""
    check_run(context)
    from eligo.cli.plan_text import read_workflow, recall
    from eligo.cli.run_text import answer, flow_of_run, resumed_request
    from eligo.formats.lines import NAME, commands_for

    if file is None and request.rehearse is None:
        request = resumed_request(request, given_names(context))
    if file is not None and values is not None:
        sent_from = (request.directory or os.curdir) if request.on.startswith(SERVER) else None
        flow, file, request = commands_for(file, loads(values), sent_from), None, request.without_file()
    else:
        reading = replace(reading, from_=NAME) if lines else reading
        flow = flow_of_run(request.resume) if file is None else read_workflow(file, reading)
    if request.history or request.rehearse is not None:
        flow = recall(flow, request.history, request.place).flow
    if request.rehearse is not None:
        from eligo.cli.rehearsal_text import rehearse_all

        return rehearse_all(flow, request, request.rehearse)
    return answer(flow, request, None if file is None else reading, access)


@app.command()
@grouped
def add(
    context: typer.Context,
    folder: RunPlace,
    file: Annotated[str, operand("FILE", "Tasks to add: a workflow in JSON or YAML.")],
    directory: Annotated[
        str | None,
        valued("DIR", "Server only: folder of the files that new tasks read. [default: folder of FILE]", "--dir"),
    ] = None,
    *,
    access: Access,
    json: Json = False,
) -> int:
    """Add tasks to a run, even while it is running.

    New tasks may depend on existing tasks and read the files that these write.
    """
    from eligo.cli.operator import add_tasks, place_in

    if not is_server(context):
        refuse_useless(context, "with a run folder", "directory")
    return add_tasks(place_in(context, access), file, directory, json)


@app.command()
@grouped
def status(
    context: typer.Context,
    folder: Annotated[
        str | None,
        operand(
            "[RUN]",
            "A run's folder (such as FILE.run), its workflow FILE, or a server's URL[/WORKFLOW]."
            " [default: $ELIGO_URL, or the only run here]",
            show_default=False,
        ),
    ] = None,
    *,
    access: Access,
    json: Json = False,
) -> int:
    """Show the counts, running tasks and failures of a run."""
    from eligo.cli.effects import usual_place
    from eligo.cli.look import show_status

    folder = context.params["folder"] = usual_place(folder)
    check_look(context)
    return show_status(folder, json, access)


@app.command()
@grouped
def why(context: typer.Context, folder: RunPlace, task: TaskName, *, access: Access, json: Json = False) -> int:
    """Explain the state of one task.

    Shows what it waits for, its place in the order, and its attempts.
    """
    check_look(context)
    from eligo.cli.look import show_why, subject_of

    return show_why(subject_of(folder, access), task, json)


@app.command()
@grouped
def log(
    context: typer.Context,
    folder: RunPlace,
    task: TaskName,
    err: Annotated[bool, flag("Print standard error instead of standard output.", "--err")] = False,
    attempt: Annotated[int | None, valued("N", "Number of the attempt, from 1. [default: the last]")] = None,
    follow: Annotated[bool, flag("Print the output as it comes, until the task has ended.", "-f", "--follow")] = False,
    *,
    access: Access,
) -> int:
    """Print the output of a task, even while it is running.

    On a server, the output of an attempt is available only after the attempt has ended.
    """
    check_look(context)
    from eligo.cli.look import follow_log, show_log, subject_of

    return (follow_log if follow else show_log)(subject_of(folder, access), task, err, attempt)


@app.command()
def page(
    context: typer.Context,
    folder: Annotated[str, operand("RUN", "Run folder (such as FILE.run), its FILE, or a server's URL.")],
    port: Annotated[int | None, valued("PORT", "Port; 0: any free port. [default: each folder has its own]")] = None,
    open_: Annotated[bool, flag("Open the page in a browser.", "--open")] = False,
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
@grouped
def top(
    context: typer.Context,
    folder: Annotated[
        str | None,
        operand("[RUN]", "Run folder, its FILE, or a server's URL[/WORKFLOW]. [default: the only run in this folder]"),
    ] = None,
    *,
    access: Access,
    once: Annotated[bool, flag("Print the current state as text and exit.", "--once")] = False,
) -> int:
    """Show a run live in the terminal.

    Shows tasks by state, workers, failures, and the estimated time left.
    """
    check_look(context)
    from eligo.cli.look import source_of

    source = source_of(folder, access)
    if once:
        from eligo.cli.top_start import print_once

        return print_once(source)
    from eligo.cli.top_start import show_top

    return show_top(source)


@app.command()
@grouped
def report(
    context: typer.Context,
    folder: RunPlace,
    output: Annotated[
        str | None,
        valued("OUT", "File to write. [default: RUN/report.html; for a server, report.html]", "-o", "--output"),
    ] = None,
    *,
    access: Access,
) -> int:
    """Write a report of a run as one HTML page."""
    check_look(context)
    from eligo.cli.look import subject_of, write_report

    return write_report(subject_of(folder, access), output)
