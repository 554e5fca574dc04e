"""The verbs of the server, its clients and the owners of workflows."""

from typing import Annotated

import typer

from eligo.cli.completing import offered
from eligo.cli.effects import check_token, refuse_useless
from eligo.cli.options import Args, Columns, Env, From, Ignore, Json, Outside, Reverse, Trace
from eligo.cli.run_verbs import Authority, Token, app

__all__ = ["app"]

Url = Annotated[str, typer.Argument(metavar="URL", help="The address of a server, such as http://127.0.0.1:8750.")]
Policy = Annotated[str, typer.Option(autocompletion=offered("policy"), help="Which ready task goes next.")]
Quorum = Annotated[int, typer.Option(help="How many results must agree, of clients that are not trusted yet.")]
NoFiles = Annotated[bool, typer.Option("--no-files", help="No file travels: clients find what they need.")]


@app.command()
def serve(
    context: typer.Context,
    files: Annotated[list[str] | None, typer.Argument(metavar="[FILE]...", help="Workflows with commands.")] = None,
    host: Annotated[str, typer.Option(help="Where to listen; elsewhere than here needs tokens and TLS.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="The port; 0: any that is free.")] = 8750,
    store: Annotated[str, typer.Option(help="Where its state is kept: FILE.db or postgresql://...")] = "eligo.db",
    folder: Annotated[str | None, typer.Option("--files", help="Where files are kept: beside the store.")] = None,
    policy: Policy = "finish",
    quorum: Quorum = 1,
    lease: Annotated[float, typer.Option(help="Seconds that a client keeps a task without a sign of life.")] = 60.0,
    gather: Annotated[float, typer.Option(help="Seconds for which requests are gathered into a batch.")] = 0.0,
    no_files: NoFiles = False,
    keep_results: Annotated[
        float, typer.Option(metavar="DAYS", help="How long files are kept that ended workflows made.")
    ] = 7.0,
    tokens: Annotated[bool, typer.Option("--tokens", help="Let in only who has a token.")] = False,
    approve: Annotated[
        bool, typer.Option("--approve", help="New clients may ask for a token, and wait for `eligo clients --approve`.")
    ] = False,
    cert: Annotated[str | None, typer.Option(help="The certificate, for https.")] = None,
    key: Annotated[str | None, typer.Option(help="The certificate's private key.")] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A name by which clients call it, such as that of a proxy.")
    ] = None,
    address: Annotated[
        str | None, typer.Option(metavar="URL", help="Where other servers on the same database find this one.")
    ] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Listen elsewhere without tokens or TLS: anybody may come.")
    ] = False,
    log: Annotated[str | None, typer.Option(help="A file for a line about every request; -: standard error.")] = None,
    until_done: Annotated[bool, typer.Option("--until-done", help="End when every workflow has ended.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Only say what is wrong with this set-up.")] = False,
    ignore: Ignore = None,
    from_: From = None,
    allow_outside: Outside = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Say only where it serves.")] = False,
    json: Json = False,
) -> int:
    """Hand out the tasks of workflows to whoever asks: `eligo work URL` on any machine. It may be killed and goes on."""
    from eligo.cli.serving import checked, served_until_stopped, set_up

    if not files:
        refuse_useless(context, "without FILE", "policy", "quorum", "no_files", "from_", "allow_outside", "ignore")
    setup = set_up(
        host=host, port=port, store=store, files=folder, lease=lease, gather=gather,
        keep_results=keep_results, tokens=tokens or approve,
        approving=approve, certificate=cert, key=key, hosts=tuple(allow_host or ()), insecure=insecure,
        address=address, until_done=until_done, log=log,
    )  # fmt: skip
    if check:
        return checked(setup, json)
    wishes = {"policy": policy, "quorum": quorum, "files": not no_files, "ignore": ",".join(ignore or ())}
    return served_until_stopped(setup, files or [], (from_, allow_outside), wishes, (quiet, json))


@app.command()
def work(
    context: typer.Context,
    url: Url,
    cores: Annotated[int | None, typer.Option(help="How many tasks at once: the cores of this machine.")] = None,
    name: Annotated[str | None, typer.Option(help="How this client is called: the machine's name.")] = None,
    token_file: Token = None,
    ca: Authority = None,
    folder: Annotated[str | None, typer.Option(help="Where everything is kept; one client a folder.")] = None,
    memory: Annotated[str | None, typer.Option(help="The most memory that a task may have, such as 2G.")] = None,
    output: Annotated[str | None, typer.Option(help="The most that a task may write or print, such as 1G.")] = None,
    size: Annotated[int, typer.Option(help="How many tasks to ask for at once.")] = 1,
    seconds: Annotated[float | None, typer.Option(help="Ask for so many seconds of work at once instead.")] = None,
    trust: Annotated[
        list[str] | None, typer.Option(help="A public key's file: only what its owner signed is run.")
    ] = None,
    sandbox: Annotated[str | None, typer.Option(help="bwrap: commands see a read-only system, no network.")] = None,
    sandbox_network: Annotated[bool, typer.Option("--sandbox-network", help="Let them have the network.")] = False,
    once: Annotated[bool, typer.Option("--once", help="Stop after one grant.")] = False,
    idle_exit: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Stop after so long without anything to do.")
    ] = None,
    grace: Annotated[float, typer.Option(help="Seconds that tasks may run on once told to stop.")] = 60.0,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="A line for every task.")] = False,
) -> int:
    """Run tasks for a server, each in a folder of its own, until it has no more or a signal says to stop."""
    from eligo.cli.remote import worked

    if sandbox is None:
        refuse_useless(context, "without --sandbox", "sandbox_network")
    if seconds is not None:
        refuse_useless(context, "with --seconds", "size")
    given = {
        "cores": cores, "name": name, "token": token_file, "ca": ca, "folder": folder, "memory": memory,
        "output": output, "size": size, "seconds": seconds, "trust": tuple(trust or ()), "sandbox": sandbox,
        "sandbox_network": sandbox_network, "once": once, "idle_exit": idle_exit, "grace": grace, "verbose": verbose,
    }  # fmt: skip
    return worked(url, {what: value for what, value in given.items() if value is not None})


@app.command()
def submit(
    url: Url,
    file: Annotated[str, typer.Argument(help="A workflow with commands, in any format.")],
    name: Annotated[str | None, typer.Option(help="How it is called.")] = None,
    policy: Policy = "finish",
    share: Annotated[float, typer.Option(help="Of the server's work, compared with other owners.")] = 1.0,
    quorum: Quorum = 1,
    timeout: Annotated[float | None, typer.Option(help="How many seconds a task may take.")] = None,
    retries: Annotated[int | None, typer.Option(help="How often a task that failed is tried again: 5.")] = None,
    no_files: NoFiles = False,
    sign: Annotated[
        str | None, typer.Option(metavar="KEY", help="Sign every command with this private key: see `eligo key`.")
    ] = None,
    directory: Annotated[str | None, typer.Option("--dir", help="Where its files are: the folder of FILE.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for its end, and bring what it made.")] = False,
    ignore: Ignore = None,
    token_file: Token = None,
    ca: Authority = None,
    from_: From = None,
    allow_outside: Outside = False,
    reverse: Reverse = False,
    args: Args = None,
    env: Env = False,
    columns: Columns = None,
    trace: Trace = None,
    json: Json = False,
) -> int:
    """Have a server hand out a workflow's tasks; prints the workflow's id. The same file again is not served twice."""
    from eligo.cli.plans import read_told
    from eligo.cli.remote import ServerDoor, submitted
    from eligo.formats.fidelity import words_in

    flow = read_told(file, from_, allow_outside, reverse, (args, env, columns, trace))
    asked = {"name": name, "policy": policy, "share": share, "quorum": quorum, "timeout": timeout, "retries": retries}
    wishes = {what: str(value) for what, value in asked.items() if value is not None}
    if no_files:
        wishes["files"] = "false"
    door = ServerDoor(url, token_file, ca)
    return submitted(flow, door, wishes, (sign, directory), (wait, json), words_in(ignore or ()))


@app.command()
def cancel(
    url: Annotated[str, typer.Argument(metavar="URL/ID", help="A workflow of a server.")],
    token_file: Token = None,
    ca: Authority = None,
) -> int:
    """Have a server hand out nothing more of a workflow."""
    from eligo.cli.remote import ServerDoor, cancelled

    return cancelled(ServerDoor(url, token_file, ca))


@app.command()
def clients(
    url: Url,
    approve: Annotated[str | None, typer.Option(metavar="CLIENT", help="Let in one that waits.")] = None,
    revoke: Annotated[str | None, typer.Option(metavar="CLIENT", help="Give no more work to this one.")] = None,
    token_file: Token = None,
    ca: Authority = None,
    json: Json = False,
) -> int:
    """Who works for a server: what each has, has done and lost, and how fast it is."""
    from eligo.cli.remote import ServerDoor, list_clients

    return list_clients(ServerDoor(url, token_file, ca), approve, revoke, json)


@app.command()
def token(
    context: typer.Context,
    url: Annotated[
        str,
        typer.Argument(
            metavar="WHERE", help="A server's URL; or on its own machine its store, FILE.db or postgresql://..."
        ),
    ],
    name: Annotated[str | None, typer.Argument(help="Name of the token.")] = None,
    scope: Annotated[list[str] | None, typer.Option(help="What it is good for: work, submit, read, admin.")] = None,
    days: Annotated[float | None, typer.Option(help="For how long: for ever.")] = None,
    revoke: Annotated[
        bool, typer.Option("--revoke", help="Revoke the tokens of this name, and all that were made with them.")
    ] = False,
    list_: Annotated[
        bool, typer.Option("--list", help="List all tokens, each below the one it was made with.")
    ] = False,
    token_file: Token = None,
    ca: Authority = None,
    json: Json = False,
) -> int:
    """Make a token for a server, which is printed once; or revoke or list tokens."""
    from eligo.cli.remote import ServerDoor
    from eligo.cli.tokens import TokenRequest, answer

    check_token(context)
    return answer(ServerDoor(url, token_file, ca), name, TokenRequest(scope or ["work"], days, revoke, list_, json))


@app.command()
def key(
    file: Annotated[str, typer.Argument(help="Where to write the private key; the public one goes to FILE.pub.")],
) -> int:
    """Make a pair of keys to sign workflows with: `eligo submit --sign FILE`, `eligo work --trust FILE.pub`."""
    from eligo.cli.remote import made_key

    return made_key(file)


@app.command()
def backup(
    store: Annotated[str, typer.Argument(metavar="STORE", help="FILE.db or postgresql://..., as a server has it.")],
    copy: Annotated[str, typer.Argument(metavar="COPY", help="Where the copy goes; nothing is overwritten.")],
    folder: Annotated[str | None, typer.Option("--files", help="The folder of its files: beside the store.")] = None,
) -> int:
    """Copy a server's state and files as of one moment, also while it serves."""
    from eligo.cli.serving import backed_up

    return backed_up(store, copy, folder)
