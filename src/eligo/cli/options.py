"""The options of verbs: each by itself, and in groups, which a verb takes as one argument."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, TypeVar, get_type_hints

import typer

from eligo.cli.completing import offered
from eligo.errors import InputError

Answer = TypeVar("Answer")

File = Annotated[str, typer.Argument(help="A workflow in any format that eligo reads; - reads standard input.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite a file that eligo did not write.")]
Workers = Annotated[
    str | None,
    typer.Option(
        "--workers", help="Say when it ends on so many workers, or on 4x1.0,2x0.5 of some speeds; order for them."
    ),
]
Cores = Annotated[
    int | None, typer.Option("--cores", help="The same for so many cores in all, which tasks share as they need.")
]
Histories = Annotated[
    list[str] | None,
    typer.Option(
        "--history",
        metavar="FILE",
        help="How long tasks took in earlier runs: a trace, log, table, workflow or folder; may be repeated.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document for programs.")]
EffortOption = Annotated[
    str,
    typer.Option(
        "--effort", autocompletion=offered("effort"), help="How long to look: quick, normal (seconds) or thorough."
    ),
]
SearchSeconds = Annotated[
    float | None, typer.Option("--seconds", help="Look no longer than this, whatever the effort.")
]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        "--format",
        autocompletion=offered("format"),
        help="The input's format, where its name and content do not tell.",
    ),
]
To = Annotated[
    str | None,
    typer.Option(
        "--to", autocompletion=offered("format"), help="The format to write, where OUT's suffix does not tell."
    ),
]
Outside = Annotated[
    bool, typer.Option("--allow-outside", help="Also read files outside the input's folder where it names them.")
]
Args = Annotated[
    list[str] | None, typer.Option("--args", help="For JX: NAME=VALUE, or a file of names and values; may be repeated.")
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore",
        metavar="WORD,...",
        help="Run without these things that the file asks for and a run does not do, such as PRE,POST; or all of them: all.",
    ),
]
Env = Annotated[bool, typer.Option("--env", help="For Makeflow: take variables from the environment.")]
Columns = Annotated[
    str | None, typer.Option("--columns", help="For tables: the titles of parents and children, FROM,TO.")
]
Trace = Annotated[
    str | None, typer.Option("--trace", help="For what Nextflow draws: the trace or report that has its tasks.")
]
Picture = Annotated[str | None, typer.Option("-o", "--output", help="A picture or page: .svg, .png or .html.")]
Reverse = Annotated[
    bool, typer.Option("--reverse", help="Turn every arc round: for graphs that point at what is needed first.")
]
OrderWritten = Annotated[
    str,
    typer.Option(
        autocompletion=offered("policy"),
        help="The order used and written: finish (ends sooner), ready (most ready), fifo, a policy or a file.",
    ),
]
TextTo = Annotated[
    str | None,
    typer.Option(
        "--to",
        autocompletion=offered("format", "text"),
        help="The format to write, where OUT's suffix does not tell; also names, and snakemake for its rules.",
    ),
]
Prefer = Annotated[
    str,
    typer.Option(
        autocompletion=offered("prefer"),
        help="Among equally good orders: path (longest remaining path first) or finish (begun branches).",
    ),
]
Override = Annotated[
    bool,
    typer.Option("--override", help="Replace the priorities that tasks have; else they part them into classes."),
]
PriorityBase = Annotated[
    int | None, typer.Option(help="The priority of the first task; the others count down from it.")
]


# In groups


def grouped(verb: Callable[..., Answer]) -> Callable[..., Answer]:
    """The verb with an option for every field of the dataclasses among its parameters."""
    hints = get_type_hints(verb, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}

    @wraps(verb)
    def called(**given: Any) -> Answer:
        made = {
            name: kind(**{each.name: given.pop(each.name) for each in fields(kind)}) for name, kind in groups.items()
        }
        return verb(**given, **made)

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
    """How the file of a workflow is read."""

    from_: From = None
    allow_outside: Outside = False
    reverse: Reverse = False
    args: Args = None
    env: Env = False
    columns: Columns = None
    trace: Trace = None


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """What is asked of `eligo plan`."""

    file: File
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", help="Write the workflow here with priorities; .txt: the order; .smk: rules."),
    ] = None
    names: Annotated[bool, typer.Option("--names", help="Write the order: a name a line, here or to OUT.")] = False
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Put the priorities into FILE itself, and change nothing else.")
    ] = False
    order: OrderWritten = "finish"
    priority_base: PriorityBase = None
    force: Force = False
    override: Override = False
    to: TextTo = None
    save: Annotated[str | None, typer.Option("--save", help="Write the plan with its proof here, for `verify`.")] = None
    workers: Workers = None
    cores: Cores = None
    history: Histories = None
    effort: EffortOption = "normal"
    seconds: SearchSeconds = None
    prefer: Prefer = "path"
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Also say what the verdict rests on.")] = False
    json: Json = False

    def __post_init__(self) -> None:
        if self.in_place and self.output is not None:
            raise InputError("--in-place writes FILE itself: leave -o out")
        if [self.place, self.save, "-" if self.json else None].count("-") > 1:
            raise InputError("only one of -o -, --save - and --json can go to standard output")
        if self.workers is not None and self.cores is not None:
            raise InputError("--workers and --cores both say what there is: give one of them")

    @property
    def place(self) -> str | None:
        """Where the order is written, if anywhere but into the workflow's own file."""
        return self.output or "-" if self.names else self.output

    @property
    def writing(self) -> bool:
        """Whether an order is written."""
        return self.in_place or self.place is not None


@dataclass(frozen=True, kw_only=True)
class ClusterRequest:
    """What is asked of `eligo cluster`."""

    size: Annotated[int | None, typer.Option(help="How many tasks one client is to get.")] = None
    sizes: Annotated[
        str | None, typer.Option(help="Deal all of it out to clients of these sizes, such as 8,4,2, again and again.")
    ] = None
    seconds: Annotated[
        float | None, typer.Option(help="How long the client is to be busy, where runtimes are known.")
    ] = None
    tolerance: Annotated[float, typer.Option(help="How far off the seconds may be, as a share.")] = 0.1
    tasks: Annotated[str | None, typer.Option(help="A file that names the tasks, where they were chosen by hand.")] = (
        None
    )
    goal: Annotated[
        str,
        typer.Option(
            autocompletion=offered("goal"),
            help="productive (most tasks made ready), communication (least to send back) or mixed.",
        ),
    ] = "productive"
    weight: Annotated[float, typer.Option(help="How much sending counts when mixed, from 0 to 1.")] = 0.5
    strategy: Annotated[
        str, typer.Option(autocompletion=offered("strategy"), help="auto, direct, staggered or searched.")
    ] = "auto"
    executed: Annotated[
        str | None, typer.Option(help="A file that names the executed tasks, one a line, or as JSON.")
    ] = None
    exchange: Annotated[float, typer.Option(help="With --sizes: the time that every exchange takes.")] = 0.0
    effort: EffortOption = "normal"

    def __post_init__(self) -> None:
        ways = [self.size, self.seconds, self.sizes, self.tasks]
        if sum(way is not None for way in ways) != 1:
            raise InputError("say how much to take: one of --size, --seconds, --sizes and --tasks")
        if self.exchange and self.sizes is None:
            raise InputError("--exchange is the time of an exchange with one of several clients: it goes with --sizes")
        if [self.executed, self.tasks].count("-") > 1:
            raise InputError("standard input can be read only once")


@dataclass(frozen=True, kw_only=True)
class CompareRequest:
    """What is asked of `eligo compare`."""

    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE...", help="Workflows, or one experiment (YAML).")
    ] = None
    family: Annotated[
        list[str] | None,
        typer.Option(
            autocompletion=offered("family"), help="A dag of a family, such as 'out-mesh 40'; may be repeated."
        ),
    ] = None
    schedulers: Annotated[
        str,
        typer.Option(
            autocompletion=offered("scheduler"), help="Which orders to compare, by name, with commas between them."
        ),
    ] = "finish,plan,critical-path,greedy,fifo,lifo"
    order: Annotated[list[str] | None, typer.Option(help="A file with an order of yours; may be repeated.")] = None
    rates: Annotated[str, typer.Option(help="How many clients ask at once, on average.")] = "2,4,8,16,32,64,128,256"
    workers: Annotated[
        str | None, typer.Option(help="How many steady workers, where every task's run time is known: 4,16,64.")
    ] = None
    clients: Annotated[int, typer.Option(help="How many clients come and go, for the times.")] = 16
    stay: Annotated[float, typer.Option(help="How long one stays on average, in mean task times; inf: always.")] = 10.0
    away: Annotated[float, typer.Option(help="How long one is away on average, likewise.")] = 10.0
    runs: Annotated[int, typer.Option(help="How often each game is played.")] = 50
    seed: Annotated[int, typer.Option(help="For all that is random.")] = 0
    processes: Annotated[int, typer.Option("-p", "--processes", help="How many play at once.")] = 1
    on: Annotated[str | None, typer.Option(help="A Dask cluster that plays instead: dask://HOST:PORT.")] = None
    results: Annotated[
        str | None, typer.Option(help="Keep finished results here (.csv, .parquet), and go on from what it has.")
    ] = None
    output: Picture = None
    reverse: Reverse = False
    history: Histories = None
    json: Json = False
