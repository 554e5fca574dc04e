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


def offered(*kinds: str) -> Callable[[str], Iterator[str]]:
    """A completer for values of these kinds; in a comma-separated list it completes the last one."""

    def completed(incomplete: str) -> Iterator[str]:
        before = incomplete[: incomplete.rfind(",") + 1]
        return (before + value for kind in kinds for value in values_of(kind))

    return completed


def values_of(kind: str) -> list[str]:
    """The values of one kind.

    >>> values_of("effort")
    ['quick', 'normal', 'thorough']
    """
    module, name = VALUES[kind]
    return [*getattr(import_module(module), name)]


# Options that several verbs have, each in one place

WITH_COMMANDS = "Workflow with commands, in any supported format."
File = Annotated[str, typer.Argument(metavar="FILE", help="Workflow in any supported format; - reads standard input.")]
Token = Annotated[
    str | None,
    typer.Option(
        "--token-file",
        metavar="FILE",
        help="File with the token. [default: $ELIGO_TOKEN_FILE]",
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that eligo did not write.")]
Workers = Annotated[
    str | None,
    typer.Option(
        "--workers",
        "-j",
        "--jobs",
        metavar="N",
        help="Estimate the time on N workers; 4x1.0,2x0.5 gives counts and relative speeds.",
    ),
]
Cores = Annotated[
    int | None,
    typer.Option("--cores", metavar="N", help="Estimate the time on N cores that tasks share."),
]
Histories = Annotated[
    list[str] | None,
    typer.Option("--history", metavar="FILE", help="Run times: trace, log, table or run. Repeatable."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
EffortOption = Annotated[
    str,
    typer.Option(
        "--effort",
        metavar="LEVEL",
        autocompletion=offered("effort"),
        help="Search budget: quick, normal or thorough.",
    ),
]
SearchSeconds = Annotated[
    float | None, typer.Option("--seconds", metavar="SECONDS", help="Time limit of the search. [default: none]")
]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        "--format",
        metavar="NAME",
        autocompletion=offered("format"),
        help="Input format. [default: detected from the content]",
    ),
]
To = Annotated[
    str | None,
    typer.Option(
        "--to", metavar="NAME", autocompletion=offered("format"), help="Output format. [default: by the suffix]"
    ),
]
Outside = Annotated[bool, typer.Option("--allow-outside", help="Allow included files outside the input's folder.")]
Args = Annotated[
    list[str] | None,
    typer.Option("--args", "-p", metavar="NAME=VALUE", help="JSON, YAML, JX: set a parameter, or all in a file."),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option("--ignore", metavar="WORD,...", help="Skip unsupported features: PRE,POST,... or all."),
]
Env = Annotated[bool, typer.Option("--env", help="Makeflow: expand environment variables.")]
Columns = Annotated[
    str | None, typer.Option("--columns", metavar="FROM,TO", help="Tables: titles of the parent and child columns.")
]
Trace = Annotated[
    str | None, typer.Option("--trace", metavar="FILE", help="Nextflow: trace or report that lists the tasks.")
]
Picture = Annotated[str | None, typer.Option("-o", "--output", metavar="OUT", help="Draw it: .svg, .png or .html.")]
Reverse = Annotated[bool, typer.Option("--reverse", help="Reverse every dependency in the input.")]
OrderWritten = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        autocompletion=offered("policy"),
        help="Policy that chooses the next task: finish (shortest time), ready (most tasks ready), fifo, another policy,"
        " or a file with an order.",
    ),
]
TextTo = Annotated[
    str | None,
    typer.Option(
        "--to",
        metavar="NAME",
        autocompletion=offered("format", "text"),
        help="Format; or names (the order), snakemake (rule priorities). [default: by OUT's suffix]",
    ),
]
Prefer = Annotated[
    str,
    typer.Option(
        metavar="RULE",
        autocompletion=offered("prefer"),
        help="Tie-break: path (longest remaining path first) or finish (started branches first).",
    ),
]
Override = Annotated[
    bool,
    typer.Option(
        "--override",
        help="Ignore existing priorities. By default tasks are ordered only within equal priority.",
    ),
]
PriorityBase = Annotated[
    int | None,
    typer.Option(metavar="N", help="Priority of the first task; later ones count down."),
]
Concurrency = Annotated[
    int | None,
    typer.Option("--workers", "-j", "--jobs", metavar="N", help="Maximum concurrent tasks. [default: all cores]"),
]
Timeout = Annotated[float | None, typer.Option(metavar="SECONDS", help="Time limit of each attempt. [default: none]")]
RunPlace = Annotated[
    str, typer.Argument(metavar="RUN", help="Run folder (such as FILE.run), its FILE, or a server's URL[/WORKFLOW].")
]
TaskName = Annotated[str, typer.Argument(metavar="TASK", help="Name of a task.")]
Server = Annotated[
    str | None, typer.Argument(metavar="[URL]", show_default=False, help="URL of a server. [default: $ELIGO_URL]")
]
WorkflowPlace = Annotated[
    str, typer.Argument(metavar="URL/ID", help="Workflow on a server; only its ID if ELIGO_URL is set.")
]
Policy = Annotated[
    str, typer.Option(metavar="NAME", autocompletion=offered("policy"), help="Policy that chooses the next task.")
]
Quorum = Annotated[int, typer.Option(metavar="N", help="Matching results needed from clients not yet trusted.")]
Lease = Annotated[float, typer.Option(metavar="SECONDS", help="Time after which a silent client loses its tasks.")]
Open = Annotated[bool, typer.Option("--open", help="Require no token: anyone on this machine may use it.")]
Insecure = Annotated[
    bool,
    typer.Option("--insecure", help="Allow access from other machines without TLS, or with --open without tokens."),
]
Cert = Annotated[str | None, typer.Option(metavar="FILE", help="TLS certificate.")]
CertKey = Annotated[str | None, typer.Option("--key", metavar="FILE", help="Private key of the certificate.")]
AllowHost = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="Additional accepted Host name, such as a proxy's.")
]
NoFiles = Annotated[bool, typer.Option("--no-files", help="Transfer no files: clients must already have them.")]


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
    ca: Annotated[str | None, typer.Option("--ca", metavar="FILE", help="Certificates to trust, for https.")] = None

    def target(self, place: str | None) -> "ServerTarget":
        """The address that URL, URL/ID, ID or nothing stands for, with this access."""
        from eligo.cli.effects import ServerTarget, full_address

        return ServerTarget(full_address(place), self.token_file, self.ca)
