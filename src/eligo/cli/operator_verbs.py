"""The verbs with which owners and operators change what a server does."""

from typing import Annotated

import typer

from eligo.cli.options import Force, Json
from eligo.cli.run_verbs import Authority, Token, app

__all__ = ["Server", "WorkflowPlace", "app"]

Server = Annotated[
    str | None,
    typer.Argument(metavar="[URL]", show_default=False, help="Address of a server. [default: $ELIGO_URL]"),
]
WorkflowPlace = Annotated[
    str, typer.Argument(metavar="URL/ID", help="A workflow of a server; its ID alone where ELIGO_URL is set.")
]
Tasks = Annotated[list[str] | None, typer.Argument(metavar="[TASK]...", help="Names of tasks. [default: all failed]")]


@app.command("list")
def list_(
    url: Server = None,
    state: Annotated[
        str | None, typer.Option(help="Only those that are running, paused, held, done, failed or cancelled.")
    ] = None,
    limit: Annotated[int, typer.Option(help="How many at most; 0: all.")] = 50,
    token_file: Token = None,
    ca: Authority = None,
    json: Json = False,
) -> int:
    """List the workflows of a server, the newest first."""
    from eligo.cli.operator import list_workflows
    from eligo.cli.server_door import ServerDoor

    return list_workflows(ServerDoor.find(url, token_file, ca), state, limit, json)


@app.command()
def pause(url: WorkflowPlace, token_file: Token = None, ca: Authority = None, json: Json = False) -> int:
    """Hand out nothing of a workflow until it is resumed. Running tasks finish, and their results count."""
    from eligo.cli.operator import post_to_workflow
    from eligo.cli.server_door import ServerDoor

    door = ServerDoor.find(url, token_file, ca)
    return post_to_workflow(door, "pause", "{} is held: eligo resume continues it", json)


@app.command()
def resume(url: WorkflowPlace, token_file: Token = None, ca: Authority = None, json: Json = False) -> int:
    """Hand out tasks of a workflow again that was paused."""
    from eligo.cli.operator import post_to_workflow
    from eligo.cli.server_door import ServerDoor

    return post_to_workflow(ServerDoor.find(url, token_file, ca), "resume", "{} is resumed", json)


@app.command()
def cancel(url: WorkflowPlace, token_file: Token = None, ca: Authority = None, json: Json = False) -> int:
    """End a workflow: the server hands out nothing more of it."""
    from eligo.cli.operator import post_to_workflow
    from eligo.cli.server_door import ServerDoor

    return post_to_workflow(ServerDoor.find(url, token_file, ca), "cancel", "{} is cancelled", json)


@app.command()
def purge(url: WorkflowPlace, token_file: Token = None, ca: Authority = None, json: Json = False) -> int:
    """Forget a workflow that has ended, and its files. One that has not ended is refused."""
    from eligo.cli.operator import post_to_workflow
    from eligo.cli.server_door import ServerDoor

    return post_to_workflow(ServerDoor.find(url, token_file, ca), "purge", "{} is forgotten", json)


@app.command()
def retry(
    url: WorkflowPlace, tasks: Tasks = None, token_file: Token = None, ca: Authority = None, json: Json = False
) -> int:
    """Try failed tasks of a workflow again. Exit code 1 if there is none."""
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
    """Take running tasks back from their clients, so that others get them. Exit code 1 if none is running."""
    from eligo.cli.operator import change_tasks
    from eligo.cli.server_door import ServerDoor

    return change_tasks(ServerDoor.find(url, token_file, ca), "release", tasks, json)


@app.command()
def results(
    url: WorkflowPlace,
    folder: Annotated[
        str | None,
        typer.Argument(metavar="[FOLDER]", show_default=False, help="Where to put them. [default: ID-results]"),
    ] = None,
    force: Force = False,
    token_file: Token = None,
    ca: Authority = None,
    json: Json = False,
) -> int:
    """Fetch the files that a workflow made so far, and verify their hashes."""
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
    """Have a server hand out nothing new, until --stop or its next start. Running tasks finish."""
    from eligo.cli.operator import drain as drain_server
    from eligo.cli.server_door import ServerDoor

    return drain_server(ServerDoor.find(url, token_file, ca), stop, json)


@app.command()
def clients(
    url: Server = None,
    approve: Annotated[list[str] | None, typer.Option(metavar="CLIENT", help="Let in one that waits.")] = None,
    revoke: Annotated[list[str] | None, typer.Option(metavar="CLIENT", help="Give no more work to this one.")] = None,
    pause: Annotated[
        list[str] | None, typer.Option(metavar="CLIENT", help="Give this one no tasks until it is resumed.")
    ] = None,
    resume: Annotated[list[str] | None, typer.Option(metavar="CLIENT", help="Give this one tasks again.")] = None,
    tag: Annotated[
        list[str] | None, typer.Option(metavar="CLIENT=TAG,...", help="Replace the tags of this one; CLIENT=: none.")
    ] = None,
    token_file: Token = None,
    ca: Authority = None,
    json: Json = False,
) -> int:
    """List the clients of a server: what each has, has done and lost, and how fast it is."""
    from eligo.cli.operator import ClientChanges, list_clients
    from eligo.cli.server_door import ServerDoor

    changes = ClientChanges(approve or (), revoke or (), pause or (), resume or (), tag or ())
    return list_clients(ServerDoor.find(url, token_file, ca), changes, json)
