"""What a verb checks on its command line before it starts: options that have no effect, and the server that is named."""

import os
import re
from typing import TYPE_CHECKING, NamedTuple

import typer

from eligo.errors import InputError

if TYPE_CHECKING:
    from eligo.client.owner import Owner

SERVER = ("http://", "https://")
URL = "ELIGO_URL"
ID = re.compile(r"w-[0-9a-f]+")
#: the options about how a workflow's file is read
READING = ("from_", "allow_outside", "reverse", "args", "env", "columns", "trace")
#: options of `run`, each with those that have no effect beside it
USELESS_BESIDE = {
    "json": ("stream", "stream_lines"), "stream": ("stream_lines",), "lines": READING, "folder": ("resume",),
    "batch": ("policy",),
    "dry_run": (
        "stream", "stream_lines", "pause", "hook", "joblog", "page", "quiet", "cache", "clean", "keep_incomplete", "space",
        "why",
    ),
}  # fmt: skip
OPTION_NAMES = {"dry_run": "dry-run", "folder": "run"}
#: the options of `run` for a run that this process dispatches itself
DISPATCHING = (
    "stream", "stream_lines", "pause", "hook", "joblog", "start_from", "again", "fresh", "dry_run", "fat", "max_failures",
    "skip_done", "page", "cache", "keep_incomplete", "why",
)  # fmt: skip
#: the options of `run` that have no effect with a server, with DAGMan, and in a rehearsal
NOT_ON_SERVER = ("resource", "label", "workers", "folder", "history", *DISPATCHING)
NOT_ON_DAGMAN = ("resource", "batch", "quiet", "clean", "space", *DISPATCHING)
NOT_REHEARSED = (
    "stream", "stream_lines", "pause", "hook", "joblog", "again", "fresh", "dry_run", "skip_done", "directory", "ignore",
    "quiet", "cache", "clean", "keep_incomplete", "space", "why",
)  # fmt: skip
#: the options of `work` about how tasks are run, which a client that serves others does not do
NOT_OF_LEAVES = (
    "workers", "cores", "memory", "max_output", "cache", "sandbox", "sandbox_network", "once", "idle_exit", "grace",
    "verbose",
)  # fmt: skip
#: the options of `serve` for the workflows of FILE
OF_SERVED_FILES = (
    "policy", "quorum", "no_files", "from_", "allow_outside", "ignore", "space", "clean",
)  # fmt: skip
#: the options of `compare` that an experiment's file sets itself
BESIDE_EXPERIMENTS = "with an experiment file, which sets these itself"
NOT_OF_EXPERIMENTS = ("policy", "order", "rates", "workers", "clients", "stay", "away", "runs", "seed", "reverse")


def check_plan(context: typer.Context) -> None:
    """Refuse options of `eligo plan` that have no effect with the others."""
    params = context.params
    if params["names"]:
        refuse_useless(context, "with --names", "in_place", "priority_base", "to", "verbose")
    elif params["in_place"]:
        refuse_useless(context, "with --in-place", "to", "force")
    elif params["output"] is None:
        refuse_useless(context, "unless an order is written (-o or --in-place)", "priority_base", "to")
        if params["save"] is None:
            refuse_useless(context, "unless a file is written", "force")


def check_cluster(context: typer.Context) -> None:
    """Refuse options of `eligo cluster` that have no effect with the others."""
    params = context.params
    if params["goal"] != "mixed":
        refuse_useless(context, "unless --goal is mixed", "weight")
    if params["seconds"] is None:
        refuse_useless(context, "without --seconds", "tolerance")
    if params["output"] is None:
        refuse_useless(context, "without --output", "force")
    if params["tasks"] is not None:
        refuse_useless(context, "with --tasks", "goal", "strategy")


def check_run(context: typer.Context) -> None:
    """Refuse options of `eligo run` that have no effect with the others."""
    params, on = context.params, str(context.params["on"])
    _check_subject(context, on.startswith(SERVER))
    for option, useless in USELESS_BESIDE.items():
        if params[option] not in {None, False}:
            refuse_useless(context, f"with --{OPTION_NAMES.get(option, option)}", *useless)
    if not params["page"]:
        refuse_useless(context, "without --page", "hold")
    if params["rehearse"] is not None:
        refuse_useless(context, "with --rehearse", *NOT_REHEARSED)
    elif on.startswith(SERVER):
        refuse_useless(context, f"with --on {on}", *NOT_ON_SERVER)
    elif on == "htcondor-dagman":
        refuse_useless(context, f"with --on {on}", *NOT_ON_DAGMAN)
    if not on.startswith(SERVER):
        refuse_useless(context, "unless --on names a server", "token_file", "ca")


def _check_subject(context: typer.Context, on_server: bool) -> None:
    """Refuse options of `eligo run` that do not fit what it runs: a file, a command for many values, or an earlier run."""
    params = context.params
    if params["values"] is not None:
        if params["file"] is None:
            raise InputError("give the command before `:::`, in quotes")
        refuse_useless(context, "with `:::`", "resume", "lines", *READING)
    elif params["file"] is None:
        refuse_useless(context, "without FILE (the original reading options apply)", "lines", *READING)
    elif on_server:
        refuse_useless(context, "with FILE", "resume")


def check_token(context: typer.Context, place: str, name: str | None) -> None:
    """Refuse options of `eligo token` that have no effect with the others."""
    params = context.params
    if params["list_"]:
        refuse_useless(context, "with --list", "scope", "days", "revoke")
        if name is not None:
            raise InputError(f"--list takes no name, got {name!r}: leave it out")
    elif params["revoke"]:
        refuse_useless(context, "with --revoke", "scope", "days")
    elif name is None:
        raise InputError("give the NAME of the token: eligo token URL NAME (or STORE NAME), or use --list")
    if not place.startswith(SERVER):
        refuse_useless(context, "with a store", "token_file", "ca")


def is_server(context: typer.Context) -> bool:
    """Whether RUN is on a server; if it is a folder, options for servers are refused."""
    if is_on_server(context.params["folder"]):
        return True
    refuse_useless(context, "with a run folder", *({"token_file", "ca"} & context.params.keys()))
    return False


def check_look(context: typer.Context) -> None:
    """Refuse options for servers if RUN is a folder."""
    is_server(context)


def refuse_useless(context: typer.Context, reason: str, *names: str) -> None:
    """Refuse options that were given but have no effect, for a *reason* such as "without --output"."""
    options = {str(each.name): each.opts for each in context.command.params}
    flags = [next(flag for flag in options[name] if flag[:2] == "--") for name in names if _is_given(context, name)]
    if flags:
        verb, them = ("has", "it") if len(flags) == 1 else ("have", "them")
        raise InputError(f"{', '.join(flags)} {verb} no effect {reason}: leave {them} out")


def given_names(context: typer.Context) -> set[str]:
    """The names of the options on the command line."""
    return {name for name in context.params if _is_given(context, name)}


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


# The server that a command line names


def is_on_server(text: str | None) -> bool:
    """Whether a text names a server or a workflow there, by an ID if no file has this name.

    >>> is_on_server("http://127.0.0.1:8750/w-1a"), is_on_server("mosaic.run"), is_on_server(None)
    (True, False, False)
    """
    if text is None or text.startswith(SERVER):
        return text is not None
    return ID.fullmatch(text) is not None and not any(map(os.path.exists, (text, f"{text}.run")))


def full_address(text: str | None) -> str:
    """The address that URL, URL/ID, ID or nothing stands for; ELIGO_URL supplies the server if it is omitted."""
    if text is not None and text.startswith(SERVER):
        return text
    if text is not None and ID.fullmatch(text) is None:
        raise InputError(
            f"{text!r} is neither a server's URL (http://... or https://...) nor the id of a workflow;"
            " the URL comes before FILE"
        )
    server = os.environ.get(URL)
    if not server:
        raise InputError(f"unknown server: give its URL{'/' + text if text else ''}, or set {URL}")
    from eligo.client.owner import split_address

    server = split_address(server)[0]
    return server if text is None else f"{server}/{text}"


def usual_place(text: str | None) -> str | None:
    """The given RUN, else the server of ELIGO_URL, else None."""
    return text if text is not None else os.environ.get(URL) or None


class ServerTarget(NamedTuple):
    """The address of a server or of a workflow there, with the token and the certificates to trust."""

    url: str
    token: str | None = None
    ca: str | None = None

    def owner(self) -> "Owner":
        """A connection to the server."""
        from eligo.client.owner import Owner

        return Owner(self.server, self.token, self.ca)

    @property
    def server(self) -> str:
        """The address of the server itself."""
        from eligo.client.owner import split_address

        return split_address(self.url)[0]

    @property
    def workflow(self) -> str:
        """The workflow that the address names."""
        from eligo.client.owner import split_address

        workflow = split_address(self.url)[1]
        if workflow is None:
            raise InputError(f"missing workflow id: give {self.url.rstrip('/')}/ID")
        return workflow
