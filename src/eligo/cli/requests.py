"""The requests of verbs with many options, each of which the verb takes as one argument."""

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from eligo.cli.shorthands import FOLDER
from eligo.errors import InputError
from eligo.work.demands import amount_in, bytes_in
from eligo.work.tries import RETRIES

if TYPE_CHECKING:
    from eligo.running import Selection, Settings

from eligo.cli import options as option
from eligo.cli.options import flag, operand, valued


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """The options of `eligo plan`."""

    file: option.File
    workers: option.Workers = None
    cores: option.Cores = None
    policy: option.OrderWritten = "finish"
    history: option.Histories = None
    seconds_per_task: Annotated[float | None, valued("N", "Assumed seconds of tasks of unknown time.")] = None
    assume: Annotated[list[str] | None, valued("KIND=TIME", "Assumed time of a kind, as in align=5m. Repeatable.")] = (
        None
    )
    price: Annotated[str | None, valued("PRICE", "Price of a worker or core, such as 0.04/h.")] = None
    deadline: Annotated[str | None, valued("TIME", "Latest finish, such as 2h.")] = None
    output: Annotated[
        str | None,
        valued("OUT", "Write the workflow with priorities; .txt: the order; .smk: rule priorities.", "-o", "--output"),
    ] = None
    in_place: Annotated[bool, flag("Write the priorities into FILE itself.", "--in-place")] = False
    names: Annotated[bool, flag("Write the order, one name per line.", "--names")] = False
    save: Annotated[str | None, valued("PLAN", "Write the plan with its proof, for `eligo verify`.", "--save")] = None
    json: option.Json = False
    verbose: Annotated[bool, flag("Also show how the result is proved.", "-v", "--verbose")] = False
    effort: option.EffortOption = "normal"
    seconds: option.SearchSeconds = None
    override: option.Override = False
    space: Annotated[
        str | None, valued("SIZE", "Keep files between tasks within SIZE, such as 200G, one task at a time.", "--space")
    ] = None
    priority_base: option.PriorityBase = None
    to: option.TextTo = None
    force: option.Force = False
    prefer: option.Prefer = "path"

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

    size: Annotated[int | None, valued("N", "Number of tasks in the cluster.")] = None
    seconds: Annotated[float | None, valued("SECONDS", "Total run time of the cluster, if run times are known.")] = None
    sizes: Annotated[
        str | None, valued("N,...", "Divide the whole workflow among clients of these sizes, in turn: 8,4,2.")
    ] = None
    tasks: Annotated[str | None, valued("FILE", "Evaluate the cluster of the tasks that this file names.")] = None
    goal: Annotated[
        str,
        valued("GOAL", "productive (most tasks made ready), communication (least data sent back) or mixed.", of="goal"),
    ] = "productive"
    weight: Annotated[float, valued("SHARE", "Weight of communication with --goal mixed, from 0 to 1.")] = 0.5
    tolerance: Annotated[float, valued("SHARE", "Allowed deviation from --seconds, as a fraction.")] = 0.1
    executed: Annotated[str | None, valued("FILE", "File that names the finished tasks, one per line or as JSON.")] = (
        None
    )
    exchange: Annotated[float, valued("SECONDS", "With --sizes: time that each exchange with a client takes.")] = 0.0
    strategy: Annotated[str, valued("NAME", "auto, direct, staggered or searched.", of="strategy")] = "auto"
    effort: option.EffortOption = "normal"

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
        list[str] | None, operand("FILE...", "Workflows; one experiment (YAML); or two folders of runs.")
    ] = None
    policy: Annotated[str, valued("NAME,...", "Policies to compare, separated by commas.", of="scheduler")] = (
        "finish,ready,critical-path,greedy,fifo,lifo"
    )
    workers: Annotated[
        str | None,
        valued(
            "N,...",
            "Also compare on equal workers, for each number in this list, such as 4,16,64. Needs all run times.",
            "--workers",
            "-j",
            "--jobs",
        ),
    ] = None
    rates: Annotated[str, valued("N,...", "Mean numbers of simultaneous requests.")] = "2,4,8,16,32,64,128,256"
    order: Annotated[list[str] | None, valued("FILE", "Also compare the order in this file. Repeatable.")] = None
    family: Annotated[
        list[str] | None,
        valued("NAME", "Compare on a generated workflow, such as 'out-mesh 40'. Repeatable.", of="family"),
    ] = None
    history: option.Histories = None
    runs: Annotated[int, valued("N", "Number of simulations per setting.")] = 50
    seed: Annotated[int, valued("N", "Seed of the random numbers.")] = 0
    clients: Annotated[int, valued("N", "Number of clients that come and go.")] = 16
    stay: Annotated[float, valued("TIME", "Mean stay of a client, in multiples of the mean task time, or inf.")] = 10.0
    away: Annotated[float, valued("TIME", "Mean absence, in multiples of the mean task time.")] = 10.0
    processes: Annotated[int, valued("N", "Number of simulations that run at once.", "-p", "--processes")] = 1
    on: Annotated[str | None, valued("ADDRESS", "Simulate on a Dask cluster: dask://HOST:PORT.")] = None
    results: Annotated[str | None, valued("FILE", "Store results here (.csv, .parquet) and resume from it.")] = None
    output: option.Picture = None
    reverse: option.Reverse = False
    json: option.Json = False


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """The options of `eligo run`."""

    workers: option.Concurrency = None
    on: Annotated[
        str,
        valued(
            "ENGINE",
            "local, dask[=ADDR], ray[=ADDR], htcondor[-dagman], parsl, slurm[-steps], server URL. [default: local]",
            show_default=False,
        ),
    ] = "local"
    resource: Annotated[
        list[str] | None, valued("NAME=N", "Total that tasks share, such as gpus=2. Repeatable.", "--resource")
    ] = None
    label: Annotated[list[str] | None, valued("LABEL", "Feature that the machines have. Repeatable.", "--label")] = None
    policy: Annotated[str, valued("NAME", "Policy, or a file with an order.", of="policy")] = "finish"
    resume: Annotated[str | None, valued("RUN", "Resume the run in this folder; FILE is not needed.")] = None
    except_: Annotated[list[str] | None, valued("TASK", "Leave out TASK and tasks that need it.", "--except")] = None
    until: Annotated[list[str] | None, valued("TASK", "Run only TASK and what it needs, nothing after.", "--until")] = (
        None
    )
    start_from: Annotated[
        list[str] | None, valued("TASK", "Run TASK and what needs it; count the rest as done.", "--start-from")
    ] = None
    again: Annotated[list[str] | None, valued("TASK", "Rerun TASK and tasks that need it.", "--again")] = None
    fresh: Annotated[bool, flag("Rerun all tasks.", "--fresh")] = False
    targets: Annotated[list[str] | None, operand("[TASK]...", "Tasks, files or categories to run. [default: all]")] = (
        None
    )
    dry_run: Annotated[bool, flag("Print what would run, and why.", "-n", "--dry-run")] = False
    why: Annotated[bool, flag("Print why each task runs.", "--why")] = False
    retries: Annotated[int, valued("N", "Retries of a failed task.")] = RETRIES
    timeout: option.Timeout = None
    max_failures: Annotated[int | None, valued("N", "Start no more tasks after N failures.")] = None
    skip_done: Annotated[bool, flag("Skip tasks with up-to-date outputs, like make.", "--skip-done")] = False
    pause: Annotated[bool, flag("Start no task until `eligo resume`.", "--pause")] = False
    page: Annotated[bool, flag("Serve a live web page of the run and print its URL.", "--page")] = False
    hold: Annotated[bool, flag("Keep serving the page after the end, until Ctrl-C.", "--hold")] = False
    quiet: Annotated[bool, flag("Print only the result.", "-q", "--quiet")] = False
    stream: Annotated[bool, flag("Print the output of each task when it ends.", "--stream")] = False
    stream_lines: Annotated[bool, flag("Print lines of running tasks, with task names.", "--stream-lines")] = False
    joblog: Annotated[str | None, valued("FILE", "Append a line per attempt, as GNU parallel does.")] = None
    hook: Annotated[list[str] | None, valued("EVENT=COMMAND", "Command or URL to call, such as on_end=./notify.")] = (
        None
    )
    json: option.Json = False
    folder: Annotated[str | None, valued("FOLDER", "Folder for state and logs. [default: FILE.run]", "--run")] = None
    directory: Annotated[str | None, valued("DIR", "Directory of the tasks. [default: FILE's folder]", "--dir")] = None
    cache: Annotated[str | None, valued("DIR", "Take outputs from this cache, and add new ones.")] = None
    space: option.Space = None
    clean: option.Clean = False
    keep_incomplete: Annotated[bool, flag("Leave outputs of a failed attempt for the next.", "--keep-incomplete")] = (
        False
    )
    history: option.Histories = None
    rehearse: Annotated[float | None, valued("SECONDS", "Sleep instead of running tasks, SECONDS in total.")] = None
    batch: Annotated[bool, flag("Choose tasks for all free workers together.", "--batch")] = False
    fat: Annotated[int, valued("N", "Tasks handed to a worker at once.")] = 1
    ignore: option.Ignore = None

    @property
    def place(self) -> str | None:
        """The folder of the run, if it is given."""
        return self.folder or self.resume

    def without_file(self) -> "RunRequest":
        """This request for a workflow that is in no file."""
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
            selection=self.selection, workers=self.workers, policy=policy or self.used_policy, size=self.fat,
            retries=Retries(most=self.retries), timeout=self.timeout, resources=totals_in(self.resource or ()),
            labels=labels_to_check(self.label or (), self.ignore or ()),
            most_failures=float("inf") if self.max_failures is None else self.max_failures, skip_done=self.skip_done,
            directory=self.directory, paused=self.pause, why=self.why,
            cache=self.cache and os.path.abspath(self.cache),
            clean=self.clean, keep_incomplete=self.keep_incomplete,
            space=None if self.space is None else size_in("space", self.space),
        )  # fmt: skip


def size_in(option: str, text: str) -> int:
    """The bytes that the value of an option states."""
    size = bytes_in(text)
    if size is None:
        raise InputError(f"--{option} must be a size, such as 200G, got {text!r}")
    return size


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
    "on", "workers", "policy", "fat", "retries", "timeout", "max_failures", "resource", "label", "targets", "except_",
    "until", "start_from", "hook", "cache", "clean", "space", "keep_incomplete",
)  # fmt: skip
