"""The verbs with which owners and operators change what a server does."""

from typing import Annotated

import typer

from eligo.cli.options import Force, Json
from eligo.cli.run_verbs import Authority, Token, app

__all__ = ["Server", "WorkflowPlace", "app"]

Server = Annotated[
    str | None,
    typer.Argument(metavar="[URL]", show_default=False, help="URL of a server. [default: $ELIGO_URL]"),
]
WorkflowPlace = Annotated[
    str, typer.Argument(metavar="URL/ID", help="Workflow on a server; only its ID if ELIGO_URL is set.")
]
Tasks = Annotated[list[str] | None, typer.Argument(metavar="[TASK]...", help="Names of tasks. [default: all failed]")]


@app.command("list")
def list_(
    url: Server = None,
    state: Annotated[
        str | None,
        typer.Option(
            metavar="STATE", help="List only workflows that are running, paused, held, done, failed or cancelled."
        ),
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", help="Maximum number of workflows; 0: all.")] = 50,
    token_file: Token = None,
    ca: Authority = None,
    json: Json = False,
) -> int:
    """List the workflows of a server, newest first."""
    from eligo.cli.operator import list_workflows
    from eligo.cli.server_door import ServerDoor

    return list_workflows(ServerDoor.find(url, token_file, ca), state, limit, json)


@app.command()
def pause(url: WorkflowPlace, token_file: Token = None, ca: Authority = None, json: Json = False) -> int:
    """Pause a workflow: the server hands out no more of its tasks.

    Running tasks finish, and their results count. `eligo resume` continues it.
    """
    from eligo.cli.operator import post_to_workflow
    from eligo.cli.server_door import ServerDoor

    door = ServerDoor.find(url, token_file, ca)
    return post_to_workflow(door, "pause", "{} is paused: eligo resume continues it", json)


@app.command()
def resume(url: WorkflowPlace, token_file: Token = None, ca: Authority = None, json: Json = False) -> int:
    """Resume a paused workflow."""
    from eligo.cli.operator import post_to_workflow
    from eligo.cli.server_door import ServerDoor

    return post_to_workflow(ServerDoor.find(url, token_file, ca), "resume", "{} is resumed", json)


@app.command()
def cancel(url: WorkflowPlace, token_file: Token = None, ca: Authority = None, json: Json = False) -> int:
    """Cancel a workflow: the server hands out no more of its tasks."""
    from eligo.cli.operator import post_to_workflow
    from eligo.cli.server_door import ServerDoor

    return post_to_workflow(ServerDoor.find(url, token_file, ca), "cancel", "{} is cancelled", json)


@app.command()
def purge(url: WorkflowPlace, token_file: Token = None, ca: Authority = None, json: Json = False) -> int:
    """Delete a workflow that has ended, and its files.

    Refused if the workflow has not ended.
    """
    from eligo.cli.operator import post_to_workflow
    from eligo.cli.server_door import ServerDoor

    return post_to_workflow(ServerDoor.find(url, token_file, ca), "purge", "{} is deleted", json)


@app.command()
def retry(
    url: WorkflowPlace, tasks: Tasks = None, token_file: Token = None, ca: Authority = None, json: Json = False
) -> int:
    """Retry failed tasks of a workflow.

    Exit code 1 if no task has failed.
    """
    from eligo.cli.operator import change_tasks
    from eligo.cli.server_door import ServerDoor

    return change_tasks(ServerDoor.find(url, token_file, ca), "retry", tasks or [], json)


@app.command()
def release(
    url: WorkflowPlace,
    tasks: Annotated[list[str], typer.Argument(metavar="TASK...", help="Names of running tasks.")],
    token_file: Token = None,
    ca: Authority = None,
    json: Json = False,
) -> int:
    """Take running tasks back from their clients.

    The server reassigns them. Exit code 1 if none of them is running.
    """
    from eligo.cli.operator import change_tasks
    from eligo.cli.server_door import ServerDoor

    return change_tasks(ServerDoor.find(url, token_file, ca), "release", tasks, json)


@app.command()
def results(
    url: WorkflowPlace,
    folder: Annotated[
        str | None,
        typer.Argument(metavar="[FOLDER]", show_default=False, help="Folder to write to. [default: ID-results]"),
    ] = None,
    force: Force = False,
    token_file: Token = None,
    ca: Authority = None,
    json: Json = False,
) -> int:
    """Fetch the output files of a workflow and verify their hashes.

    Fetches the files that exist so far if the workflow is still running.
    """
    from eligo.cli.operator import fetch_results
    from eligo.cli.server_door import ServerDoor

    return fetch_results(ServerDoor.find(url, token_file, ca), folder, force, json)


@app.command()
def drain(
    url: Server = None,
    stop: Annotated[bool, typer.Option("--stop", help="Hand out tasks again.")] = False,
    token_file: Token = None,
    ca: Authority = None,
    json: Json = False,
) -> int:
    """Stop a server from handing out more tasks.

    Lasts until --stop or the next start of the server. Running tasks finish.
    """
    from eligo.cli.operator import drain as drain_server
    from eligo.cli.server_door import ServerDoor

    return drain_server(ServerDoor.find(url, token_file, ca), stop, json)


@app.command()
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
    token_file: Token = None,
    ca: Authority = None,
    json: Json = False,
) -> int:
    """List the clients of a server, or approve, pause or tag them."""
    from eligo.cli.operator import ClientChanges, list_clients
    from eligo.cli.server_door import ServerDoor

    changes = ClientChanges(approve or (), revoke or (), pause or (), resume or (), tag or ())
    return list_clients(ServerDoor.find(url, token_file, ca), changes, json)
