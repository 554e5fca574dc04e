"""The verbs of owners and operators on the command line."""

from inspect import cleandoc
from typing import Annotated

import typer

from eligo.cli.effects import is_server
from eligo.cli.options import Access, Force, Json, RunPlace, Server, WorkflowPlace, flag, grouped, operand, valued
from eligo.cli.run_verbs import app
from eligo.errors import InputError

__all__ = ["app"]

Tasks = Annotated[list[str] | None, operand("[TASK]...", "Names of tasks. [default: all failed]")]


@app.command("list")
@grouped
def list_(
    url: Server = None,
    state: Annotated[
        str | None, valued("STATE", "List only workflows that are running, paused, held, done, failed or cancelled.")
    ] = None,
    limit: Annotated[int, valued("N", "Maximum number of workflows; 0: all.")] = 50,
    *,
    access: Access,
    json: Json = False,
) -> int:
    """List the workflows of a server, newest first."""
    from eligo.cli.operator import list_workflows

    return list_workflows(access.target(url), state, limit, json)


#: verbs that change a run or a workflow, each with its message and its help text
CHANGES = {
    "pause": (
        "{} is paused: eligo resume continues it",
        """Pause a run or workflow: no more of its tasks are started.

        Running tasks finish, and their results count. `eligo resume` continues it.
        """,
    ),
    "resume": ("{} is resumed", "Resume a paused run or workflow."),
    "cancel": (
        "{} is cancelled",
        """Cancel a run or workflow: no more of its tasks are started.

        Running tasks of a run on this machine are stopped; `eligo run --resume` continues it.
        """,
    ),
}


def _add_change(name: str, message: str, help: str) -> None:
    """Register a verb that changes a run or a workflow."""

    def verb(context: typer.Context, folder: RunPlace, *, access: Access, json: Json = False) -> int:
        from eligo.cli.operator import change, place_in

        return change(place_in(context, access), name, message, json)

    app.command(name, help=cleandoc(help))(grouped(verb))


for _name, _words in CHANGES.items():
    _add_change(_name, *_words)


@app.command()
@grouped
def retry(context: typer.Context, folder: RunPlace, tasks: Tasks = None, *, access: Access, json: Json = False) -> int:
    """Retry failed tasks of a run, or of a workflow on a server.

    Exit code 1 if no task has failed.
    """
    return _change_tasks(context, "retry", tasks or [], access, json)


@app.command()
@grouped
def release(
    context: typer.Context,
    folder: RunPlace,
    tasks: Annotated[list[str], operand("TASK...", "Names of running tasks.")],
    *,
    access: Access,
    json: Json = False,
) -> int:
    """Take running tasks back from their workers.

    They become ready again, and no failure counts. Exit code 1 if none of them is running.
    """
    return _change_tasks(context, "release", tasks, access, json)


def _change_tasks(context: typer.Context, verb: str, tasks: list[str], access: Access, json: bool) -> int:
    from eligo.cli.operator import change_tasks, place_in

    return change_tasks(place_in(context, access), verb, tasks, json)


@app.command()
@grouped
def workers(
    context: typer.Context,
    folder: RunPlace,
    number: Annotated[int, operand("N", "Maximum concurrent tasks from now on.")],
    *,
    access: Access,
    json: Json = False,
) -> int:
    """Change the number of concurrent tasks of a run that is running.

    Tasks that are already running finish.
    """
    from eligo.cli.operator import change_workers
    from eligo.pages.sources import run_folder

    if is_server(context):
        raise InputError("a server has no number of workers: start or stop clients (eligo work), or use eligo drain")
    return change_workers(run_folder(folder), number, json)


@app.command()
@grouped
def purge(url: WorkflowPlace, *, access: Access, json: Json = False) -> int:
    """Delete a workflow that has ended, with its files.

    Refused if the workflow has not ended.
    """
    from eligo.cli.operator import change

    return change(access.target(url), "purge", "{} is deleted", json)


@app.command()
@grouped
def results(
    url: WorkflowPlace,
    folder: Annotated[
        str | None, operand("[FOLDER]", "Folder to write to. [default: ID-results]", show_default=False)
    ] = None,
    force: Force = False,
    *,
    access: Access,
    json: Json = False,
) -> int:
    """Fetch the output files of a workflow and verify their hashes.

    Fetches the files that exist so far if the workflow is still running.
    """
    from eligo.cli.operator import fetch_results

    return fetch_results(access.target(url), folder, force, json)


@app.command()
@grouped
def drain(
    url: Server = None,
    stop: Annotated[bool, flag("Hand out tasks again.", "--stop")] = False,
    *,
    access: Access,
    json: Json = False,
) -> int:
    """Stop a server from handing out more tasks.

    Running tasks finish. The server hands out tasks again after `eligo drain --stop` or a restart.
    """
    from eligo.cli.operator import drain as drain_server

    return drain_server(access.target(url), stop, json)


@app.command()
@grouped
def clients(
    url: Server = None,
    approve: Annotated[list[str] | None, valued("CLIENT", "Approve a client that waits for approval.")] = None,
    revoke: Annotated[list[str] | None, valued("CLIENT", "Revoke a client: it gets no more tasks.")] = None,
    pause: Annotated[list[str] | None, valued("CLIENT", "Pause a client: it gets no tasks until resumed.")] = None,
    resume: Annotated[list[str] | None, valued("CLIENT", "Resume a paused client.")] = None,
    tag: Annotated[
        list[str] | None,
        valued("CLIENT=TAG,...", "Replace the tags of a client; CLIENT= removes all.", "--tag", "--tags"),
    ] = None,
    *,
    access: Access,
    json: Json = False,
) -> int:
    """List the clients of a server, or approve, pause or tag them."""
    from eligo.cli.operator import ClientChanges, list_clients

    changes = ClientChanges(approve or (), revoke or (), pause or (), resume or (), tag or ())
    return list_clients(access.target(url), changes, json)
