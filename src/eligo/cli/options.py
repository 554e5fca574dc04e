"""The options that several verbs share, and how a verb takes a group of options as one argument."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer

if TYPE_CHECKING:
    from eligo.cli.effects import ServerTarget

Answer = TypeVar("Answer")

#: the module and name that list the values of an option
VALUES = {
    "effort": ("eligo.deciding.effort", "EFFORTS"),
    "prefer": ("eligo.deciding.moves", "PREFERENCES"),
    "format": ("eligo.formats", "MODULES"),
    "text": ("eligo.cli.export", "TEXTS"),
    "family": ("eligo.families", "FAMILIES"),
    "policy": ("eligo.policies", "POLICIES"),
    "method": ("eligo.batches.best", "SOLVERS"),
    "goal": ("eligo.clusters.growth", "GOALS"),
    "strategy": ("eligo.clusters.strategies", "STRATEGIES"),
    "export": ("eligo.clusters.export", "EXPORTS"),
    "scheduler": ("eligo.simulation.pebble", "SCHEDULERS"),
}


def values_of(kind: str) -> list[str]:
    """The values of one kind.

    >>> values_of("effort")
    ['quick', 'normal', 'thorough']
    """
    module, name = VALUES[kind]
    return [*getattr(import_module(module), name)]


def flag(help: str, *words: str, **more: Any) -> Any:
    """An option without a value, which is given by these words."""
    return typer.Option(*words, help=help, **more)


def valued(metavar: str, help: str, *words: str, of: str | tuple[str, ...] = (), **more: Any) -> Any:
    """An option with a value; the command line completes values of these kinds."""
    return typer.Option(*words, metavar=metavar, help=help, autocompletion=_completer(of), **more)


def operand(metavar: str, help: str, of: str | tuple[str, ...] = (), **more: Any) -> Any:
    """A positional argument; the command line completes values of these kinds."""
    return typer.Argument(metavar=metavar, help=help, autocompletion=_completer(of), **more)


def _completer(kinds: str | tuple[str, ...]) -> Callable[[str], Iterator[str]] | None:
    """A completer for values of these kinds, if there are any; in a comma-separated list it completes the last one."""

    def completed(incomplete: str) -> Iterator[str]:
        before = incomplete[: incomplete.rfind(",") + 1]
        return (before + value for kind in names for value in values_of(kind))

    names = (kinds,) if isinstance(kinds, str) else kinds
    return completed if names else None


# Options that several verbs have, each in one place

WITH_COMMANDS = "Workflow with commands, in any supported format."
File = Annotated[str, operand("FILE", "Workflow in any supported format; - reads standard input.")]
Token = Annotated[str | None, valued("FILE", "File with the token. [default: $ELIGO_TOKEN_FILE]", "--token-file")]
Force = Annotated[bool, flag("Overwrite files that eligo did not write.", "--force")]
Workers = Annotated[
    str | None,
    valued("N", "Time on N workers, 1..64, or 4x1.0,2x0.5 (speeds).", "--workers", "-j", "--jobs"),
]
Cores = Annotated[str | None, valued("N", "Time on N cores that tasks share, or 1..64.", "--cores")]
Histories = Annotated[list[str] | None, valued("FILE", "Run times: trace, log, table or run. Repeatable.", "--history")]
Json = Annotated[bool, flag("Print one JSON document.", "--json")]
EffortOption = Annotated[str, valued("LEVEL", "Search budget: quick, normal or thorough.", "--effort", of="effort")]
SearchSeconds = Annotated[float | None, valued("SECONDS", "Time limit of the search. [default: none]", "--seconds")]
From = Annotated[
    str | None, valued("NAME", "Input format. [default: detected from the content]", "--from", "--format", of="format")
]
To = Annotated[str | None, valued("NAME", "Output format. [default: by the suffix]", "--to", of="format")]
Outside = Annotated[bool, flag("Allow included files outside the input's folder.", "--allow-outside")]
Args = Annotated[
    list[str] | None, valued("NAME=VALUE", "JSON, YAML, JX: set a parameter, or all in a file.", "--args", "-p")
]
Ignore = Annotated[list[str] | None, valued("WORD,...", "Skip unsupported features: PRE,POST,... or all.", "--ignore")]
Env = Annotated[bool, flag("Makeflow: expand environment variables.", "--env")]
Columns = Annotated[str | None, valued("FROM,TO", "Tables: titles of the parent and child columns.", "--columns")]
Trace = Annotated[str | None, valued("FILE", "Nextflow: trace or report that lists the tasks.", "--trace")]
Picture = Annotated[str | None, valued("OUT", "Draw it: .svg, .png or .html.", "-o", "--output")]
Reverse = Annotated[bool, flag("Reverse every dependency in the input.", "--reverse")]
OrderWritten = Annotated[
    str,
    valued(
        "NAME",
        "Policy: finish (soonest), ready (most tasks ready), fifo, another, or a file.",
        of="policy",
    ),
]
TextTo = Annotated[
    str | None,
    valued(
        "NAME",
        "Format; or names (the order), snakemake (rule priorities). [default: by OUT's suffix]",
        "--to",
        of=("format", "text"),
    ),
]
Prefer = Annotated[
    str,
    valued("RULE", "Tie-break: path (longest remaining path first) or finish (started branches first).", of="prefer"),
]
Override = Annotated[
    bool, flag("Ignore existing priorities. By default tasks are ordered only within equal priority.", "--override")
]
PriorityBase = Annotated[int | None, valued("N", "Priority of the first task; later ones count down.")]
Concurrency = Annotated[
    int | None, valued("N", "Maximum concurrent tasks. [default: all cores]", "--workers", "-j", "--jobs")
]
Timeout = Annotated[float | None, valued("SECONDS", "Time limit of each attempt. [default: none]")]
RunPlace = Annotated[str, operand("RUN", "Run folder (such as FILE.run), its FILE, or a server's URL[/WORKFLOW].")]
TaskName = Annotated[str, operand("TASK", "Name of a task.")]
Server = Annotated[str | None, operand("[URL]", "URL of a server. [default: $ELIGO_URL]", show_default=False)]
WorkflowPlace = Annotated[str, operand("URL/ID", "Workflow on a server; only its ID if ELIGO_URL is set.")]
Policy = Annotated[str, valued("NAME", "Policy that chooses the next task.", of="policy")]
Quorum = Annotated[int, valued("N", "Matching results needed from clients not yet trusted.")]
Lease = Annotated[float, valued("SECONDS", "Time after which a silent client loses its tasks.")]
Open = Annotated[bool, flag("Require no token: anyone on this machine may use it.", "--open")]
Insecure = Annotated[
    bool, flag("Allow access from other machines without TLS, or with --open without tokens.", "--insecure")
]
Cert = Annotated[str | None, valued("FILE", "TLS certificate.")]
CertKey = Annotated[str | None, valued("FILE", "Private key of the certificate.", "--key")]
AllowHost = Annotated[list[str] | None, valued("NAME", "Additional accepted Host name, such as a proxy's.")]
Space = Annotated[str | None, valued("SIZE", "Limit of temporary files, such as 200G.", "--space")]
Clean = Annotated[bool, flag("Remove files between tasks after their last reader.", "--clean")]
NoFiles = Annotated[bool, flag("Transfer no files: clients must already have them.", "--no-files")]


# Groups of options


def grouped(verb: Callable[..., Answer]) -> Callable[..., Answer]:
    """The verb with an option for every field of the dataclasses among its parameters."""
    hints = get_type_hints(verb, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}

    @wraps(verb)
    def called(**values: Any) -> Answer:
        instances = {
            name: kind(**{each.name: values.pop(each.name) for each in fields(kind)}) for name, kind in groups.items()
        }
        return verb(**values, **instances)

    own = inspect.signature(verb).parameters
    options = [each for name in own for each in (_options(groups[name]) if name in groups else [own[name]])]
    keywords = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in options]
    called.__annotations__ = hints | {each.name: each.annotation for each in keywords if each.name not in hints}
    called.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]
    return called


def _options(group: Any) -> Iterator[inspect.Parameter]:
    """A parameter for every field of a dataclass."""
    hints = get_type_hints(group, include_extras=True)
    for each in fields(group):
        default = inspect.Parameter.empty if each.default is MISSING else each.default
        yield inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[each.name])


@dataclass(frozen=True, kw_only=True)
class Reading:
    """The options about how a workflow's file is read."""

    from_: From = None
    allow_outside: Outside = False
    reverse: Reverse = False
    args: Args = None
    env: Env = False
    columns: Columns = None
    trace: Trace = None


@dataclass(frozen=True, kw_only=True)
class Access:
    """The options about access to a server: the token, and the certificates to trust."""

    token_file: Token = None
    ca: Annotated[str | None, valued("FILE", "Certificates to trust, for https.", "--ca")] = None

    def target(self, place: str | None) -> "ServerTarget":
        """The address that URL, URL/ID, ID or nothing stands for, with this access."""
        from eligo.cli.effects import ServerTarget, full_address

        return ServerTarget(full_address(place), self.token_file, self.ca)
