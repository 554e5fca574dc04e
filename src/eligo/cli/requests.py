"""The requests of verbs with many options, each of which the verb takes as one argument."""

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eligo.cli.shorthands import FOLDER
from eligo.errors import InputError
from eligo.work.demands import amount_in
from eligo.work.tries import RETRIES

if TYPE_CHECKING:
    from eligo.running import Selection, Settings

from eligo.cli.options import (
    Concurrency,
    Cores,
    EffortOption,
    File,
    Force,
    Histories,
    Ignore,
    Json,
    OrderWritten,
    Override,
    Picture,
    Prefer,
    PriorityBase,
    Reverse,
    SearchSeconds,
    TextTo,
    Timeout,
    Workers,
    offered,
)


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """The options of `eligo plan`."""

    file: File
    workers: Workers = None
    cores: Cores = None
    policy: OrderWritten = "finish"
    history: Histories = None
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="OUT",
            help="Write the workflow with priorities; .txt: the order; .smk: rule priorities.",
        ),
    ] = None
    in_place: Annotated[bool, typer.Option("--in-place", help="Write the priorities into FILE itself.")] = False
    names: Annotated[bool, typer.Option("--names", help="Write the order, one name per line.")] = False
    save: Annotated[
        str | None, typer.Option("--save", metavar="PLAN", help="Write the plan with its proof, for `eligo verify`.")
    ] = None
    json: Json = False
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Also show how the result is proved.")] = False
    effort: EffortOption = "normal"
    seconds: SearchSeconds = None
    override: Override = False
    priority_base: PriorityBase = None
    to: TextTo = None
    force: Force = False
    prefer: Prefer = "path"

    def __post_init__(self) -> None:
        if self.in_place and self.output is not None:
            raise InputError("--in-place cannot be combined with -o: leave one of them out")
        if [self.place, self.save, "-" if self.json else None].count("-") > 1:
            raise InputError("give only one of '-o -', '--save -' and '--json': each prints to standard output")
        if self.workers is not None and self.cores is not None:
            raise InputError("--workers cannot be combined with --cores: leave one of them out")

    @property
    def place(self) -> str | None:
        """The file that gets the order, if it is not the workflow's own file; - is standard output."""
        return self.output or "-" if self.names else self.output

    @property
    def writing(self) -> bool:
        """Whether an order is written."""
        return self.in_place or self.place is not None


@dataclass(frozen=True, kw_only=True)
class ClusterRequest:
    """The options of `eligo cluster`."""

    size: Annotated[int | None, typer.Option(metavar="N", help="Number of tasks in the cluster.")] = None
    seconds: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Total run time of the cluster, if run times are known.")
    ] = None
    sizes: Annotated[
        str | None,
        typer.Option(metavar="N,...", help="Divide the whole workflow among clients of these sizes, in turn: 8,4,2."),
    ] = None
    tasks: Annotated[
        str | None, typer.Option(metavar="FILE", help="Evaluate the cluster of the tasks that this file names.")
    ] = None
    goal: Annotated[
        str,
        typer.Option(
            metavar="GOAL",
            autocompletion=offered("goal"),
            help="productive (most tasks made ready), communication (least data sent back) or mixed.",
        ),
    ] = "productive"
    weight: Annotated[
        float, typer.Option(metavar="SHARE", help="Weight of communication with --goal mixed, from 0 to 1.")
    ] = 0.5
    tolerance: Annotated[
        float, typer.Option(metavar="SHARE", help="Allowed deviation from --seconds, as a fraction.")
    ] = 0.1
    executed: Annotated[
        str | None, typer.Option(metavar="FILE", help="File that names the finished tasks, one per line or as JSON.")
    ] = None
    exchange: Annotated[
        float, typer.Option(metavar="SECONDS", help="With --sizes: time that each exchange with a client takes.")
    ] = 0.0
    strategy: Annotated[
        str,
        typer.Option(metavar="NAME", autocompletion=offered("strategy"), help="auto, direct, staggered or searched."),
    ] = "auto"
    effort: EffortOption = "normal"

    def __post_init__(self) -> None:
        ways = [self.size, self.seconds, self.sizes, self.tasks]
        if sum(way is not None for way in ways) != 1:
            raise InputError("give exactly one of --size, --seconds, --sizes and --tasks")
        if self.exchange and self.sizes is None:
            raise InputError("--exchange has no effect without --sizes: add --sizes or leave it out")
        if [self.executed, self.tasks].count("-") > 1:
            raise InputError("standard input can be read only once: give a file instead of one -")


@dataclass(frozen=True, kw_only=True)
class CompareRequest:
    """The options of `eligo compare`."""

    files: Annotated[
        list[str] | None, typer.Argument(metavar="FILE...", help="Workflows, or one experiment (YAML).")
    ] = None
    policy: Annotated[
        str,
        typer.Option(
            metavar="NAME,...", autocompletion=offered("scheduler"), help="Policies to compare, separated by commas."
        ),
    ] = "finish,ready,critical-path,greedy,fifo,lifo"
    workers: Annotated[
        str | None,
        typer.Option(
            "--workers",
            "-j",
            "--jobs",
            metavar="N,...",
            help="Also compare on equal workers, for each number in this list, such as 4,16,64. Needs all run times.",
        ),
    ] = None
    rates: Annotated[str, typer.Option(metavar="N,...", help="Mean numbers of simultaneous requests.")] = (
        "2,4,8,16,32,64,128,256"
    )
    order: Annotated[
        list[str] | None, typer.Option(metavar="FILE", help="Also compare the order in this file. Repeatable.")
    ] = None
    family: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            autocompletion=offered("family"),
            help="Compare on a generated workflow, such as 'out-mesh 40'. Repeatable.",
        ),
    ] = None
    history: Histories = None
    runs: Annotated[int, typer.Option(metavar="N", help="Number of simulations per setting.")] = 50
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the random numbers.")] = 0
    clients: Annotated[int, typer.Option(metavar="N", help="Number of clients that come and go.")] = 16
    stay: Annotated[
        float,
        typer.Option(metavar="TIME", help="Mean stay of a client, in multiples of the mean task time, or inf."),
    ] = 10.0
    away: Annotated[float, typer.Option(metavar="TIME", help="Mean absence, in multiples of the mean task time.")] = (
        10.0
    )
    processes: Annotated[
        int, typer.Option("-p", "--processes", metavar="N", help="Number of simulations that run at once.")
    ] = 1
    on: Annotated[str | None, typer.Option(metavar="ADDRESS", help="Simulate on a Dask cluster: dask://HOST:PORT.")] = (
        None
    )
    results: Annotated[
        str | None, typer.Option(metavar="FILE", help="Store results here (.csv, .parquet) and resume from it.")
    ] = None
    output: Picture = None
    reverse: Reverse = False
    json: Json = False


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """The options of `eligo run`."""

    workers: Concurrency = None
    on: Annotated[
        str,
        typer.Option(
            metavar="ENGINE",
            show_default=False,
            help="local, dask[=ADDR], ray[=ADDR], htcondor[-dagman], parsl, slurm[-steps], server URL."
            " [default: local]",
        ),
    ] = "local"
    resource: Annotated[
        list[str] | None,
        typer.Option("--resource", metavar="NAME=N", help="Total that tasks share, such as gpus=2. Repeatable."),
    ] = None
    label: Annotated[
        list[str] | None, typer.Option("--label", metavar="LABEL", help="Feature that the machines have. Repeatable.")
    ] = None
    policy: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            autocompletion=offered("policy"),
            help="Policy, or a file with an order.",
        ),
    ] = "finish"
    resume: Annotated[
        str | None, typer.Option(metavar="RUN", help="Resume the run in this folder; FILE is not needed.")
    ] = None
    except_: Annotated[
        list[str] | None, typer.Option("--except", metavar="TASK", help="Leave out TASK and tasks that need it.")
    ] = None
    until: Annotated[
        list[str] | None,
        typer.Option("--until", metavar="TASK", help="Of the targets, run only what TASK needs, and TASK."),
    ] = None
    start_from: Annotated[
        list[str] | None,
        typer.Option("--start-from", metavar="TASK", help="Run TASK and what needs it; the rest is done."),
    ] = None
    again: Annotated[
        list[str] | None, typer.Option("--again", metavar="TASK", help="Rerun TASK and tasks that need it.")
    ] = None
    fresh: Annotated[bool, typer.Option("--fresh", help="Rerun all tasks.")] = False
    targets: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TASK]...", help="Tasks, files or categories to run. [default: all]"),
    ] = None
    dry_run: Annotated[bool, typer.Option("-n", "--dry-run", help="Print what would run, and why.")] = False
    why: Annotated[bool, typer.Option("--why", help="Print why each task runs.")] = False
    retries: Annotated[int, typer.Option(metavar="N", help="Retries of a failed task.")] = RETRIES
    timeout: Timeout = None
    max_failures: Annotated[int | None, typer.Option(metavar="N", help="Start no more tasks after N failures.")] = None
    skip_done: Annotated[bool, typer.Option("--skip-done", help="Skip tasks with up-to-date outputs, like make.")] = (
        False
    )
    pause: Annotated[bool, typer.Option("--pause", help="Start no task until `eligo resume`.")] = False
    page: Annotated[bool, typer.Option("--page", help="Serve a live web page of the run and print its URL.")] = False
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print only the result.")] = False
    stream: Annotated[bool, typer.Option("--stream", help="Print the output of each task when it ends.")] = False
    stream_lines: Annotated[
        bool, typer.Option("--stream-lines", help="Print lines of running tasks, with task names.")
    ] = False
    joblog: Annotated[
        str | None, typer.Option(metavar="FILE", help="Append a line per attempt, as GNU parallel does.")
    ] = None
    hook: Annotated[
        list[str] | None,
        typer.Option(metavar="EVENT=COMMAND", help="Command or URL to call, such as on_end=./tell."),
    ] = None
    json: Json = False
    folder: Annotated[
        str | None, typer.Option("--run", metavar="FOLDER", help="Folder for state and logs. [default: FILE.run]")
    ] = None
    directory: Annotated[
        str | None, typer.Option("--dir", metavar="DIR", help="Directory of the tasks. [default: FILE's folder]")
    ] = None
    cache: Annotated[
        str | None, typer.Option(metavar="DIR", help="Take outputs from this cache, and add new ones.")
    ] = None
    clean: Annotated[bool, typer.Option("--clean", help="Remove intermediate files that no task needs any more.")] = (
        False
    )
    history: Histories = None
    rehearse: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="Rehearse with sleeps, scaled to SECONDS in all.",
        ),
    ] = None
    batch: Annotated[bool, typer.Option("--batch", help="Choose tasks for all free workers together.")] = False
    fat: Annotated[int, typer.Option(metavar="N", help="Tasks handed to a worker at once.")] = 1
    ignore: Ignore = None

    @property
    def place(self) -> str | None:
        """The folder of the run, if it is given."""
        return self.folder or self.resume

    def without_file(self) -> "RunRequest":
        """The same for a workflow that is in no file."""
        return replace(self, folder=self.folder or FOLDER)

    @property
    def used_policy(self) -> str:
        """The policy by its name in the library."""
        return "batch-optimal" if self.batch else self.policy

    def as_before(self, facts: Mapping[str, str], given: Collection[str]) -> "RunRequest":
        """This request with the options of the run that is resumed, except those that are given now."""
        before = json.loads(facts.get("options", "{}"))
        fixed = {*given, *(["policy"] if "batch" in given else [])}
        return replace(self, **{name: before[name] for name in REMEMBERED if name in before and name not in fixed})

    def remembered(self) -> dict[str, Any]:
        """The options that a resumed run uses unless others are given."""
        cache = self.cache and os.path.abspath(self.cache)
        return {name: getattr(self, name) for name in REMEMBERED} | {"policy": self.used_policy, "cache": cache}

    @property
    def selection(self) -> "Selection":
        """Which tasks to run."""
        from eligo.running import Selection

        words = (self.targets, self.except_, self.until, self.start_from, self.again)
        targets, except_, until, start_from, again = (tuple(each or ()) for each in words)
        return Selection(targets, except_, until, start_from, again, self.fresh)

    def settings(self, policy: str | None = None) -> "Settings":
        """The settings of the library for these options, with another policy if it is given."""
        from eligo.formats.fidelity import labels_to_check
        from eligo.running import Retries, Settings

        return Settings(
            selection=self.selection,
            workers=self.workers,
            policy=policy or self.used_policy,
            size=self.fat,
            retries=Retries(most=self.retries),
            timeout=self.timeout,
            resources=totals_in(self.resource or ()),
            labels=labels_to_check(self.label or (), self.ignore or ()),
            most_failures=float("inf") if self.max_failures is None else self.max_failures,
            skip_done=self.skip_done,
            directory=self.directory,
            paused=self.pause,
            why=self.why,
            cache=self.cache and os.path.abspath(self.cache),
            clean=self.clean,
        )


def totals_in(words: Collection[str]) -> dict[str, float]:
    """The totals of resources that options state.

    >>> totals_in(["licence=2", "memory=1G"])
    {'licence': 2.0, 'memory': 1073741824.0}
    """
    totals = dict[str, float]()
    for word in words:
        name, _, text = word.partition("=")
        amount = amount_in(text)
        if not name or amount is None:
            raise InputError(f"--resource must be NAME=N, such as licence=2 or memory=8G, got {word!r}")
        totals[name] = amount
    return totals


#: the options that a resumed run uses unless others are given
REMEMBERED = (
    "on",
    "workers",
    "policy",
    "fat",
    "retries",
    "timeout",
    "max_failures",
    "resource",
    "label",
    "targets",
    "except_",
    "until",
    "start_from",
    "hook",
    "cache",
    "clean",
)
