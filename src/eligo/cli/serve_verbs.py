"""The verbs of the server, its clients and the owners of workflows."""

from typing import Annotated

import typer

from eligo.cli.completing import offered
from eligo.cli.effects import NOT_OF_LEAVES, check_token, refuse_useless
from eligo.cli.operator_verbs import Server, app
from eligo.cli.options import From, Ignore, Json, Outside, Reading, grouped
from eligo.cli.run_verbs import Authority, Token
from eligo.errors import InputError

__all__ = ["app"]

MOST_DAYS = 36_500

Policy = Annotated[str, typer.Option(autocompletion=offered("policy"), help="Which ready task goes next.")]
Quorum = Annotated[int, typer.Option(help="How many results must agree, of clients that are not trusted yet.")]
Lease = Annotated[float, typer.Option(help="Seconds that a client keeps a task without a sign of life.")]
Open = Annotated[bool, typer.Option("--open", help="Ask for no token: anybody on this machine may use the server.")]
Tokens = Annotated[bool, typer.Option("--tokens", hidden=True)]
Cert = Annotated[str | None, typer.Option(help="The certificate, for https.")]
CertKey = Annotated[str | None, typer.Option("--key", help="The certificate's private key.")]
AllowHost = Annotated[list[str] | None, typer.Option(help="A name by which clients call it, such as that of a proxy.")]
Insecure = Annotated[
    bool, typer.Option("--insecure", help="Let other machines reach it without TLS, or with --open without tokens.")
]
NoFiles = Annotated[bool, typer.Option("--no-files", help="No file travels: clients find what they need.")]


@app.command()
def serve(
    context: typer.Context,
    files: Annotated[list[str] | None, typer.Argument(metavar="[FILE]...", help="Workflows with commands.")] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; one that other machines reach needs TLS.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0: any that is free.")] = 8750,
    store: Annotated[str, typer.Option(help="Where its state is kept: FILE.db or postgresql://...")] = "eligo.db",
    folder: Annotated[str | None, typer.Option("--files", help="Where files are kept: beside the store.")] = None,
    policy: Policy = "finish",
    quorum: Quorum = 1,
    lease: Lease = 60.0,
    gather: Annotated[float, typer.Option(min=0, help="Seconds for which requests are gathered into a batch.")] = 0.0,
    most_tasks: Annotated[int, typer.Option(help="Maximum number of tasks that one client holds at once.")] = 1024,
    no_files: NoFiles = False,
    keep_results: Annotated[
        float, typer.Option(metavar="DAYS", help="How long files are kept that ended workflows made.")
    ] = 7.0,
    open_: Open = False,
    tokens: Tokens = False,
    approve: Annotated[
        bool, typer.Option("--approve", help="New clients may ask for a token, and wait for `eligo clients --approve`.")
    ] = False,
    cert: Cert = None,
    key: CertKey = None,
    allow_host: AllowHost = None,
    address: Annotated[
        str | None, typer.Option(metavar="URL", help="Where other servers on the same database find this one.")
    ] = None,
    insecure: Insecure = False,
    log: Annotated[
        str | None, typer.Option(help="File for the log, in JSON lines; - is standard error. [default: no log]")
    ] = None,
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
    if open_:
        refuse_useless(context, "with --open", "tokens", "approve")
    setup = set_up(
        host=host, port=port, store=store, files=folder, lease=lease, gather=gather,
        most_tasks=most_tasks, keep_results=keep_results, tokens=not open_,
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
    url: Server = None,
    cores: Annotated[int | None, typer.Option(help="How many tasks at once: the cores of this machine.")] = None,
    name: Annotated[str | None, typer.Option(help="How this client is called: the machine's name.")] = None,
    token_file: Token = None,
    ca: Authority = None,
    folder: Annotated[str | None, typer.Option(help="Where everything is kept; one client a folder.")] = None,
    memory: Annotated[str | None, typer.Option(help="The most memory that a task may have, such as 2G.")] = None,
    output: Annotated[str | None, typer.Option(help="The most that a task may write or print, such as 1G.")] = None,
    cache: Annotated[
        str | None, typer.Option(help="Most bytes of files kept for later tasks, such as 500M. [default: 10G]")
    ] = None,
    label: Annotated[
        list[str] | None, typer.Option(help="What this machine has that tasks may ask for, such as gpu. Repeatable.")
    ] = None,
    size: Annotated[
        int | None, typer.Option(help="How many tasks to ask for at once. [default: 1; with --serve, as needed]")
    ] = None,
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
    serve_at: Annotated[
        str | None,
        typer.Option("--serve", metavar="HOST:PORT", help="Run nothing here: serve the tasks to clients of your own."),
    ] = None,
    lease: Lease = 60.0,
    open_: Open = False,
    cert: Cert = None,
    key: CertKey = None,
    allow_host: AllowHost = None,
    insecure: Insecure = False,
) -> int:
    """Run tasks for a server, each in a folder of its own, until it has no more or a signal says to stop."""
    from eligo.cli.remote import served_below, worked

    if sandbox is None:
        refuse_useless(context, "without --sandbox", "sandbox_network")
    if seconds is not None:
        refuse_useless(context, "with --seconds", "size")
    if serve_at is None:
        refuse_useless(context, "without --serve", "lease", "open_", "cert", "key", "allow_host", "insecure")
    else:
        refuse_useless(context, "with --serve", *NOT_OF_LEAVES)
    given = {
        "cores": cores, "name": name, "token": token_file, "ca": ca, "folder": folder, "memory": memory,
        "output": output, "labels": tuple(label or ()), "size": size, "seconds": seconds, "trust": tuple(trust or ()),
        "sandbox": sandbox, "sandbox_network": sandbox_network, "once": once, "idle_exit": idle_exit, "grace": grace,
        "verbose": verbose, "cache": cache,
    }  # fmt: skip
    known = {what: value for what, value in given.items() if value is not None}
    if serve_at is None:
        return worked(url, known)
    settings = {
        "lease": lease, "tokens": not open_, "certificate": cert, "key": key, "hosts": tuple(allow_host or ()),
        "insecure": insecure,
    }  # fmt: skip
    return served_below(url, known, serve_at, settings)


@app.command()
@grouped
def submit(
    context: typer.Context,
    url: Server = None,
    file: Annotated[str | None, typer.Argument(metavar="FILE", help="A workflow with commands, in any format.")] = None,
    *,
    name: Annotated[str | None, typer.Option(help="Name of the workflow. [default: that of FILE]")] = None,
    policy: Policy = "finish",
    share: Annotated[float, typer.Option(help="Of the server's work, compared with other owners.")] = 1.0,
    quorum: Quorum = 1,
    timeout: Annotated[float | None, typer.Option(help="How many seconds a task may take.")] = None,
    retries: Annotated[int | None, typer.Option(help="How often a failed task is tried again. [default: 2]")] = None,
    no_files: NoFiles = False,
    no_locality: Annotated[
        bool, typer.Option("--no-locality", help="Choose tasks regardless of which files a client has.")
    ] = False,
    grow: Annotated[
        bool, typer.Option("--grow", help="Let tasks add tasks through $ELIGO_ADD. Their commands run on any client.")
    ] = False,
    sign: Annotated[
        str | None, typer.Option(metavar="KEY", help="Sign every command with this private key: see `eligo key`.")
    ] = None,
    sign_days: Annotated[
        float, typer.Option(metavar="DAYS", help="Days until the signatures expire: clients refuse tasks from then on.")
    ] = 30.0,
    directory: Annotated[str | None, typer.Option("--dir", help="Where its files are: the folder of FILE.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for its end, and bring what it made.")] = False,
    ignore: Ignore = None,
    token_file: Token = None,
    ca: Authority = None,
    reading: Reading,
    json: Json = False,
) -> int:
    """Have a server hand out a workflow's tasks; prints the workflow's id. The same file again is not served twice."""
    from eligo.cli.plans import read_told
    from eligo.cli.remote import Signer, submitted
    from eligo.cli.server_door import ServerDoor
    from eligo.formats.fidelity import words_in

    if sign is None:
        refuse_useless(context, "without --sign", "sign_days")
    if not 0 < sign_days <= MOST_DAYS:
        raise InputError(f"--sign-days must be more than 0 and at most {MOST_DAYS:,}, got {sign_days:g}")
    if file is None:  # the only argument is the file
        url, file = None, url
    if file is None:
        raise InputError("no FILE to submit: eligo submit [URL] FILE")
    door = ServerDoor.find(url, token_file, ca)
    flow = read_told(file, reading)
    asked = {"name": name, "policy": policy, "share": share, "quorum": quorum, "timeout": timeout, "retries": retries}
    wishes = {what: str(value) for what, value in asked.items() if value is not None}
    if no_files:
        wishes["files"] = "false"
    if no_locality:
        wishes["locality"] = "false"
    if grow:
        wishes["grow"] = "true"
    signer = None if sign is None else Signer(sign, sign_days)
    return submitted(flow, door, wishes, (signer, directory), (wait, json), words_in(ignore or ()))


@app.command()
def token(
    context: typer.Context,
    url: Annotated[
        str | None,
        typer.Argument(
            metavar="[WHERE]",
            show_default=False,
            help="A server's URL [default: $ELIGO_URL]; or on its own machine its store, FILE.db or postgresql://...",
        ),
    ] = None,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Name of the token.")] = None,
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
    from eligo.cli.tokens import TokenRequest, answer, place_and_name

    url, name = place_and_name(url, name, list_)
    check_token(context, url, name)
    request = TokenRequest(scope or ["work"], days, revoke, list_, json)
    return answer(url, (token_file, ca), name, request)


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
