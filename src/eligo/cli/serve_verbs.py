"""The verbs of the server, of its clients, and of owners who submit workflows."""

from dataclasses import replace
from typing import Annotated

import typer

from eligo.cli import options as option
from eligo.cli.effects import NOT_OF_LEAVES, OF_SERVED_FILES, check_token, refuse_useless
from eligo.cli.operator_verbs import app
from eligo.cli.options import Access, Reading, flag, grouped, operand, valued
from eligo.cli.requests import size_in
from eligo.errors import InputError
from eligo.work.tries import RETRIES

__all__ = ["app"]

MOST_DAYS = 36_500


@app.command()
def serve(
    context: typer.Context,
    files: Annotated[list[str] | None, operand("[FILE]...", "Workflows with commands, served from the start.")] = None,
    host: Annotated[str, valued("ADDRESS", "Address to listen on; other machines need TLS.")] = "127.0.0.1",
    port: Annotated[int, valued("PORT", "Port; 0: any free port.", min=0, max=65535)] = 8750,
    store: Annotated[str, valued("STORE", "Database for the state: FILE.db or postgresql://...")] = "eligo.db",
    policy: option.Policy = "finish",
    until_done: Annotated[bool, flag("Exit when every workflow has ended.", "--until-done")] = False,
    check: Annotated[bool, flag("Check this configuration and exit.", "--check")] = False,
    log: Annotated[str | None, valued("FILE", "Log file (JSON lines; -: stderr). [default: no log]")] = None,
    quiet: Annotated[bool, flag("Print only the server's URL.", "-q", "--quiet")] = False,
    json: option.Json = False,
    cert: option.Cert = None,
    key: option.CertKey = None,
    open_: option.Open = False,
    tokens: Annotated[bool, typer.Option("--tokens", hidden=True)] = False,
    insecure: option.Insecure = False,
    approve: Annotated[bool, flag("New clients wait until approved by `eligo clients`.", "--approve")] = False,
    lease: option.Lease = 60.0,
    most_tasks: Annotated[int, valued("N", "Maximum tasks per client at once.")] = 1024,
    quorum: option.Quorum = 1,
    folder: Annotated[str | None, valued("FOLDER", "Folder for files. [default: beside the store]", "--files")] = None,
    no_files: option.NoFiles = False,
    space: option.Space = None,
    clean: option.Clean = False,
    keep_results: Annotated[float, valued("DAYS", "Days to keep the output files of ended workflows.")] = 7.0,
    gather: Annotated[float, valued("SECONDS", "Time to collect requests into one batch.", min=0)] = 0.0,
    allow_host: option.AllowHost = None,
    address: Annotated[
        str | None, valued("URL", "URL at which other servers on the same database reach this one.")
    ] = None,
    ignore: option.Ignore = None,
    from_: option.From = None,
    allow_outside: option.Outside = False,
) -> int:
    """Serve workflows over HTTP to clients started with `eligo work`.

    State is durable: after a crash it resumes where it stopped.
    """
    from eligo.cli.serve_text import ServeOutput, check_setup, serve_until_stopped, set_up

    if not files:
        refuse_useless(context, "without FILE", *OF_SERVED_FILES)
    if open_:
        refuse_useless(context, "with --open", "tokens", "approve")
    setup = set_up(
        host=host, port=port, store=store, files=folder, lease=lease, gather=gather,
        most_tasks=most_tasks, keep_results=keep_results, tokens=not open_,
        approving=approve, certificate=cert, key=key, hosts=tuple(allow_host or ()), insecure=insecure,
        address=address, until_done=until_done, log=log,
    )  # fmt: skip
    if check:
        return check_setup(setup, json)
    limit = None if space is None else size_in("space", space)
    wishes = {
        "policy": policy, "quorum": quorum, "files": not no_files, "space": limit, "clean": clean,
        "ignore": ",".join(ignore or ()),
    }  # fmt: skip
    reading = Reading(from_=from_, allow_outside=allow_outside)
    return serve_until_stopped(setup, files or [], reading, wishes, ServeOutput(quiet, json))


@app.command()
@grouped
def work(
    context: typer.Context,
    url: option.Server = None,
    workers: option.Concurrency = None,
    cores: Annotated[int | None, valued("N", "The same as --workers.")] = None,
    name: Annotated[str | None, valued("NAME", "Name of this client. [default: hostname]")] = None,
    *,
    access: Access,
    memory: Annotated[str | None, valued("SIZE", "Memory limit of a task, such as 2G. [default: none]")] = None,
    max_output: Annotated[str | None, valued("SIZE", "Output limit of a task, such as 1G. [default: none]")] = None,
    label: Annotated[list[str] | None, valued("NAME", "Feature that tasks may require (gpu). Repeatable.")] = None,
    once: Annotated[bool, flag("Exit after one assignment.", "--once")] = False,
    idle_exit: Annotated[
        float | None, valued("SECONDS", "Exit after this long without a task. [default: never]")
    ] = None,
    grace: Annotated[float, valued("SECONDS", "Time for running tasks to finish after a signal.")] = 60.0,
    verbose: Annotated[bool, flag("Print a line for every task.", "-v", "--verbose")] = False,
    folder: Annotated[str | None, valued("FOLDER", "Folder for files and state; one client each.")] = None,
    cache: Annotated[str | None, valued("SIZE", "Size limit of the file cache. [default: 10G]")] = None,
    size: Annotated[
        int | None, valued("N", "Tasks per request. [default: 1; with --serve, as many as clients need]")
    ] = None,
    seconds: Annotated[float | None, valued("SECONDS", "Request this much work at once, instead of --size.")] = None,
    trust: Annotated[
        list[str] | None, valued("FILE", "Run only commands signed by this public key. Repeatable.")
    ] = None,
    sandbox: Annotated[str | None, valued("bwrap", "Sandbox for tasks: read-only system, no network.")] = None,
    sandbox_network: Annotated[bool, flag("Allow network access in the sandbox.", "--sandbox-network")] = False,
    serve_at: Annotated[
        str | None, valued("HOST:PORT", "Run nothing; serve the tasks to your own clients.", "--serve")
    ] = None,
    lease: option.Lease = 60.0,
    open_: option.Open = False,
    cert: option.Cert = None,
    key: option.CertKey = None,
    allow_host: option.AllowHost = None,
    insecure: option.Insecure = False,
) -> int:
    """Run tasks for a server, each in its own folder.

    Runs until the server has no more work, or until SIGINT or SIGTERM.
    """
    from eligo.cli.remote import do_work, serve_tasks_of

    if workers is not None and cores is not None:
        raise InputError("--workers and --cores are the same option: leave one of them out")
    if sandbox is None:
        refuse_useless(context, "without --sandbox", "sandbox_network")
    if seconds is not None:
        refuse_useless(context, "with --seconds", "size")
    if serve_at is None:
        refuse_useless(context, "without --serve", "lease", "open_", "cert", "key", "allow_host", "insecure")
    else:
        refuse_useless(context, "with --serve", *NOT_OF_LEAVES)
    values = {
        "cores": cores if workers is None else workers,
        "name": name, "token": access.token_file, "ca": access.ca, "folder": folder, "memory": memory,
        "output": max_output, "labels": tuple(label or ()), "size": size, "seconds": seconds, "trust": tuple(trust or ()),
        "sandbox": sandbox, "sandbox_network": sandbox_network, "once": once, "idle_exit": idle_exit, "grace": grace,
        "verbose": verbose, "cache": cache,
    }  # fmt: skip
    options = {what: value for what, value in values.items() if value is not None}
    if serve_at is None:
        return do_work(url, options)
    settings = {
        "lease": lease, "tokens": not open_, "certificate": cert, "key": key, "hosts": tuple(allow_host or ()),
        "insecure": insecure,
    }  # fmt: skip
    return serve_tasks_of(url, options, serve_at, settings)


@app.command()
@grouped
def submit(
    context: typer.Context,
    url: option.Server = None,
    file: Annotated[str | None, operand("FILE", option.WITH_COMMANDS)] = None,
    *,
    wait: Annotated[bool, flag("Wait for the workflow to end, then fetch its files.", "--wait")] = False,
    name: Annotated[str | None, valued("NAME", "Name of the workflow. [default: that of FILE]")] = None,
    policy: option.Policy = "finish",
    retries: Annotated[int | None, valued("N", f"Retries of a failed task. [default: {RETRIES}]")] = None,
    timeout: option.Timeout = None,
    share: Annotated[
        float, valued("WEIGHT", "This owner's share of the server's capacity, relative to other owners.")
    ] = 1.0,
    quorum: option.Quorum = 1,
    directory: Annotated[
        str | None, valued("DIR", "Folder of the input files. [default: folder of FILE]", "--dir")
    ] = None,
    access: Access,
    json: option.Json = False,
    no_files: option.NoFiles = False,
    space: option.Space = None,
    clean: option.Clean = False,
    no_locality: Annotated[bool, flag("Ignore which files a client already has.", "--no-locality")] = False,
    grow: Annotated[
        bool,
        flag(
            "Let running tasks add tasks through $ELIGO_ADD: any client can then run any command on the others.",
            "--grow",
        ),
    ] = False,
    sign: Annotated[str | None, valued("KEY", "Sign every command with this private key (see `eligo key`).")] = None,
    sign_days: Annotated[float, valued("DAYS", "Days until the signatures expire.")] = 30.0,
    ignore: option.Ignore = None,
    reading: Reading,
) -> int:
    """Submit a workflow to a server and print its id.

    Submitting the same file again does not create a second workflow.
    """
    from eligo.cli.plan_text import read_workflow, recall
    from eligo.cli.remote import Signer, SubmitOptions, space_wishes
    from eligo.cli.remote import submit as submit_workflow
    from eligo.formats.fidelity import words_in

    if sign is None:
        refuse_useless(context, "without --sign", "sign_days")
    if not 0 < sign_days <= MOST_DAYS:
        raise InputError(f"--sign-days must be more than 0 and at most {MOST_DAYS:,}, got {sign_days:g}")
    if file is None:  # a single argument is the file
        url, file = None, url
    if file is None:
        raise InputError("no FILE to submit: eligo submit [URL] FILE")
    target = access.target(url)
    flow = read_workflow(file, reading)
    if space is not None:  # the sizes that an earlier run of the file recorded
        flow = replace(flow, file_sizes=recall(flow, None).flow.file_sizes)
    asked = {"name": name, "policy": policy, "share": share, "quorum": quorum, "timeout": timeout, "retries": retries}
    wishes = {what: str(value) for what, value in asked.items() if value is not None} | space_wishes(space, clean)
    if no_files:
        wishes["files"] = "false"
    if no_locality:
        wishes["locality"] = "false"
    if grow:
        wishes["grow"] = "true"
    signer = None if sign is None else Signer(sign, sign_days)
    return submit_workflow(flow, target, wishes, SubmitOptions(signer, directory, wait, json, words_in(ignore or ())))


@app.command()
@grouped
def token(
    context: typer.Context,
    url: Annotated[
        str | None,
        operand(
            "[WHERE]",
            "URL of a server [default: $ELIGO_URL]; or its store, FILE.db or postgresql://...",
            show_default=False,
        ),
    ] = None,
    name: Annotated[str | None, operand("[NAME]", "Name of the token.")] = None,
    scope: Annotated[
        list[str] | None, valued("SCOPE", "Permission: work, submit, read or admin. Repeatable. [default: work]")
    ] = None,
    days: Annotated[float | None, valued("DAYS", "Days until it expires. [default: never]")] = None,
    revoke: Annotated[
        bool, flag("Revoke the tokens of this name, and all tokens created with them.", "--revoke")
    ] = False,
    list_: Annotated[bool, flag("List all tokens, each below the one that created it.", "--list")] = False,
    *,
    access: Access,
    json: option.Json = False,
) -> int:
    """Create, revoke or list tokens of a server.

    A new token is printed once.
    """
    from eligo.cli.operator import TokenRequest, change_tokens, place_and_name

    url, name = place_and_name(url, name, list_)
    check_token(context, url, name)
    request = TokenRequest(scope or ["work"], days, revoke, list_, json)
    return change_tokens(url, access, name, request)


@app.command()
def key(file: Annotated[str, operand("FILE", "File for the private key; the public key goes to FILE.pub.")]) -> int:
    """Create a key pair to sign workflows with.

    Sign with `eligo submit --sign FILE`; clients check with `eligo work --trust FILE.pub`.
    """
    from eligo.cli.remote import make_key

    return make_key(file)


@app.command()
def backup(
    store: Annotated[str, operand("STORE", "Store of the server: FILE.db or postgresql://...")],
    copy: Annotated[str, operand("COPY", "File for the copy; must not exist.")],
    folder: Annotated[
        str | None, valued("FOLDER", "Folder of the server's files. [default: beside the store]", "--files")
    ] = None,
) -> int:
    """Copy a server's state and files, even while it is running."""
    from eligo.cli.serve_text import back_up

    return back_up(store, copy, folder)
