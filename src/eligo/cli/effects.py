"""Options without effect: refused, so that nobody believes that they were honoured."""

import typer

from eligo.errors import InputError

SERVER = ("http://", "https://")
#: the options that say how a workflow's file is read
READING = ("from_", "allow_outside", "reverse", "args", "env", "columns", "trace")
#: of `run`, those that a server, DAGMan and a rehearsal have no use for
NOT_ON_SERVER = ("workers", "folder", "fat", "max_failures", "skip_done", "history", "page")
NOT_ON_DAGMAN = ("batch", "fat", "max_failures", "skip_done", "page", "quiet")
NOT_REHEARSED = ("skip_done", "directory", "ignore", "page", "quiet")
#: of `work`, those that say how tasks are run
NOT_OF_LEAVES = (
    "cores", "memory", "output", "cache", "sandbox", "sandbox_network", "once", "idle_exit", "grace", "verbose",
)  # fmt: skip
#: of `compare`, those that an experiment's file says itself
BESIDE_EXPERIMENTS = "with an experiment, whose file says all of this"
NOT_OF_EXPERIMENTS = ("schedulers", "order", "rates", "workers", "clients", "stay", "away", "runs", "seed", "reverse")


def check_plan(context: typer.Context) -> None:
    """Refuse options of `eligo plan` that have no effect beside the others."""
    given = context.params
    if given["names"]:
        refuse_useless(context, "with --names", "in_place", "priority_base", "to", "verbose")
    elif given["in_place"]:
        refuse_useless(context, "with --in-place", "to", "force")
    elif given["output"] is None:
        refuse_useless(context, "unless an order is written (-o, --in-place)", "priority_base", "to")
        if given["save"] is None:
            refuse_useless(context, "unless a file is written", "force")


def check_cluster(context: typer.Context) -> None:
    """Refuse options of `eligo cluster` that have no effect beside the others."""
    given = context.params
    if given["goal"] != "mixed":
        refuse_useless(context, "unless --goal is mixed", "weight")
    if given["seconds"] is None:
        refuse_useless(context, "without --seconds", "tolerance")
    if given["output"] is None:
        refuse_useless(context, "without --output", "force")
    if given["tasks"] is not None:
        refuse_useless(context, "with --tasks", "goal", "strategy")


def check_run(context: typer.Context) -> None:
    """Refuse options of `eligo run` that have no effect beside the others."""
    given, on = context.params, str(context.params["on"])
    if given["file"] is None:
        refuse_useless(context, "without FILE (a run is resumed as it was read)", *READING)
    elif on.startswith(SERVER):
        refuse_useless(context, "with FILE", "resume")
    if given["folder"] is not None:
        refuse_useless(context, "with --run", "resume")
    if given["batch"]:
        refuse_useless(context, "with --batch", "policy")
    if given["rehearse"] is not None:
        refuse_useless(context, "with --rehearse", *NOT_REHEARSED)
    elif on.startswith(SERVER):
        refuse_useless(context, f"with --on {on}", *NOT_ON_SERVER)
    elif on == "htcondor-dagman":
        refuse_useless(context, f"with --on {on}", *NOT_ON_DAGMAN)
    if not on.startswith(SERVER):
        refuse_useless(context, "unless --on names a server", "token_file", "ca")


def check_token(context: typer.Context, place: str, name: str | None) -> None:
    """Refuse options of `eligo token` that have no effect beside the others."""
    given = context.params
    if given["list_"]:
        refuse_useless(context, "with --list", "scope", "days", "revoke")
        if name is not None:
            raise InputError(f"--list lists the tokens of every name: leave {name!r} out")
    elif given["revoke"]:
        refuse_useless(context, "with --revoke", "scope", "days")
    elif name is None:
        raise InputError("a token needs a name: eligo token WHERE NAME, or --list")
    if not place.startswith(SERVER):
        refuse_useless(context, "on a store", "token_file", "ca")


def is_server(context: typer.Context) -> bool:
    """Whether RUN is on a server; where it is a folder, options for servers are refused."""
    from eligo.cli.server_door import is_on_server

    if is_on_server(context.params["folder"]):
        return True
    refuse_useless(context, "on a folder", *({"token_file", "ca"} & context.params.keys()))
    return False


def check_look(context: typer.Context) -> None:
    """Refuse options for servers where RUN is a folder."""
    is_server(context)


def refuse_useless(context: typer.Context, reason: str, *names: str) -> None:
    """Refuse options that were given although they have no effect, for a *reason* such as "without --output"."""
    options = {str(each.name): each.opts for each in context.command.params}
    given = [next(flag for flag in options[name] if flag[:2] == "--") for name in names if _is_given(context, name)]
    if given:
        verb, them = ("has", "it") if len(given) == 1 else ("have", "them")
        raise InputError(f"{', '.join(given)} {verb} no effect {reason}: leave {them} out")


def given_names(context: typer.Context) -> set[str]:
    """The names of the options that stand on the command line."""
    return {name for name in context.params if _is_given(context, name)}


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"
