"""The verbs of owners and operators on the command line."""

from inspect import cleandoc
from typing import Annotated

import typer

from eligo.cli.options import Access, Force, Json, Server, WorkflowPlace, grouped
from eligo.cli.run_verbs import app

__all__ = ["app"]

Tasks = Annotated[list[str] | None, typer.Argument(metavar="[TASK]...", help="Names of tasks. [default: all failed]")]


@app.command("list")
@grouped
def list_(
    url: Server = None,
    state: Annotated[
        str | None,
        typer.Option(
            metavar="STATE", help="List only workflows that are running, paused, held, done, failed or cancelled."
        ),
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", help="Maximum number of workflows; 0: all.")] = 50,
    *,
    access: Access,
    json: Json = False,
) -> int:
    """List the workflows of a server, newest first."""
    from eligo.cli.operator import list_workflows

    return list_workflows(access.target(url), state, limit, json)


#: verbs that change a workflow, each with its message and its help text
CHANGES = {
    "pause": (
        "{} is paused: eligo resume continues it",
        """Pause a workflow: the server hands out no more of its tasks.

        Running tasks finish, and their results count. `eligo resume` continues it.
        """,
    ),
    "resume": ("{} is resumed", "Resume a paused workflow."),
    "cancel": ("{} is cancelled", "Cancel a workflow: the server hands out no more of its tasks."),
    "purge": (
        "{} is deleted",
        """Delete a workflow that has ended, and its files.

        Refused if the workflow has not ended.
        """,
    ),
}


def _add_change(name: str, message: str, help: str) -> None:
    """Register a verb that changes a workflow."""

    def change(url: WorkflowPlace, *, access: Access, json: Json = False) -> int:
        from eligo.cli.operator import post_to_workflow

        return post_to_workflow(access.target(url), name, message, json)

    app.command(name, help=cleandoc(help))(grouped(change))


for _name, _words in CHANGES.items():
    _add_change(_name, *_words)


@app.command()
@grouped
def retry(
    url: WorkflowPlace,
    tasks: Tasks = None,
    *,
    access: Access,
    json: Json = False,
) -> int:
    """Retry failed tasks of a workflow.

    Exit code 1 if no task has failed.
    """
    from eligo.cli.operator import change_tasks

    return change_tasks(access.target(url), "retry", tasks or [], json)


@app.command()
@grouped
def release(
    url: WorkflowPlace,
    tasks: Annotated[list[str], typer.Argument(metavar="TASK...", help="Names of running tasks.")],
    *,
    access: Access,
    json: Json = False,
) -> int:
    """Take running tasks back from their clients.

    The server reassigns them. Exit code 1 if none of them is running.
    """
    from eligo.cli.operator import change_tasks

    return change_tasks(access.target(url), "release", tasks, json)


@app.command()
@grouped
def results(
    url: WorkflowPlace,
    folder: Annotated[
        str | None,
        typer.Argument(metavar="[FOLDER]", show_default=False, help="Folder to write to. [default: ID-results]"),
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
    stop: Annotated[bool, typer.Option("--stop", help="Hand out tasks again.")] = False,
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
    approve: Annotated[
        list[str] | None, typer.Option(metavar="CLIENT", help="Approve a client that waits for approval.")
    ] = None,
    revoke: Annotated[
        list[str] | None, typer.Option(metavar="CLIENT", help="Revoke a client: it gets no more tasks.")
    ] = None,
    pause: Annotated[
        list[str] | None, typer.Option(metavar="CLIENT", help="Pause a client: it gets no tasks until resumed.")
    ] = None,
    resume: Annotated[list[str] | None, typer.Option(metavar="CLIENT", help="Resume a paused client.")] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option(
            "--tag", "--tags", metavar="CLIENT=TAG,...", help="Replace the tags of a client; CLIENT= removes all."
        ),
    ] = None,
    *,
    access: Access,
    json: Json = False,
) -> int:
    """List the clients of a server, or approve, pause or tag them."""
    from eligo.cli.operator import ClientChanges, list_clients

    changes = ClientChanges(approve or (), revoke or (), pause or (), resume or (), tag or ())
    return list_clients(access.target(url), changes, json)
