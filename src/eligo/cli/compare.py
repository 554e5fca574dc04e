"""The verb `compare`: runs comparisons and experiments, and prints or draws their results."""

import atexit
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

from eligo.cli.output import print_json, print_lines
from eligo.cli.plan_text import tell
from eligo.cli.requests import CompareRequest
from eligo.errors import InputError
from eligo.formats import generate, read_history
from eligo.formats.fidelity import words_in
from eligo.formats.histories.reader import is_run
from eligo.formats.shared.files import display_path
from eligo.simulation import Clients
from eligo.simulation.comparison import answer, comparison
from eligo.simulation.contests import contests_of
from eligo.simulation.experiments import Progress, play_experiment, with_absolute_paths
from eligo.simulation.reports import Report, Table
from eligo.simulation.settings import (
    RULES,
    WORKERS,
    Experiment,
    Game,
    Size,
    Source,
    batched_games,
    read_compared,
    steady_games,
    volatile_game,
)
from eligo.simulation.tables import Record
from eligo.times import RunTimes, fit_times, times_of
from eligo.workflow import Workflow

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 150  # characters, if there is no terminal
#: the styles of marked cells
STYLES = {"best": "bold", "yes": "green", "no": "bold red"}


@dataclass(frozen=True)
class ReadComparison:
    """An experiment, the workflows that were read for it, and their known run times by label."""

    experiment: Experiment
    flows: Mapping[Source, Workflow] = field(default_factory=dict)
    times: Mapping[str, RunTimes] = field(default_factory=dict)
    #: the experiment's own file, if it has one
    file: str | None = None


def comparison_of(request: CompareRequest) -> ReadComparison:
    """The comparison that was requested, in a file or by options."""
    if not request.files and not request.family:
        raise InputError("nothing to compare: give a workflow, an experiment or --family")
    flows, elsewhere = dict[Source, Workflow](), request.processes > 1 or request.on is not None
    for path in request.files or ():
        subject = read_compared(path, request.reverse)
        if isinstance(subject, Experiment):
            return _experiment_in(subject, path, request)
        flows[_file(path, subject, request.reverse, elsewhere)] = subject
    families = [_family(words, request.seed) for words in request.family or ()]
    return with_histories(_experiment(request, [*flows, *families]), flows, request.history or ())


def _experiment_in(experiment: Experiment, path: str, request: CompareRequest) -> ReadComparison:
    if len(request.files or ()) > 1 or request.family:
        raise InputError(f"{path} is an experiment: give it as the only file")
    if request.history:
        raise InputError(f"{path} is an experiment, which takes no --history: give a workflow")
    return ReadComparison(experiment, file=path)


def _experiment(request: CompareRequest, sources: Sequence[Source]) -> Experiment:
    lengths = {"stay": request.stay, "away": request.away}
    others = {name: value for name, value in lengths.items() if value != getattr(Clients, name)}
    pools = WORKERS if request.workers is None else tuple(map(_positive, words_in(request.workers)))
    crowds = [volatile_game(count=request.clients, **others, rules=rules) for rules in RULES]
    rates = batched_games(map(_number, words_in(request.rates)))
    return Experiment(
        sources=tuple(sources),
        schedulers=tuple(dict.fromkeys((*words_in(request.policy), *(request.order or ())))),
        games=(Game("pebble"), *rates, *crowds, *steady_games(pools), Game("space")),
        runs=request.runs,
        seeds=(request.seed,),
    )


def _file(path: str, flow: Workflow, reverse: bool, elsewhere: bool) -> Source:
    """The source for a workflow's file. Standard input is first copied to a file, which other processes can read."""
    if path != "-":
        return Source.of_file(path, reverse=reverse)
    if not elsewhere:
        return Source(label="standard input")
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix="eligo-", suffix=".json", delete=False) as copy:
        atexit.register(os.unlink, copy.name)
        copy.write(generate(flow, "json"))
    return Source(label="standard input", path=copy.name)


def _family(words: str, seed: int) -> Source:
    family, *sizes = words.split() or [""]
    return Source.of_family(family, [_size(word) for word in sizes], seed)


def _size(word: str) -> Size:
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            pass
    return word


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise InputError(f"--rates must be numbers separated by commas, got {word!r}") from None


def _positive(word: str) -> int:
    if not word.isdecimal():
        raise InputError(f"--workers must be positive integers separated by commas, got {word!r}")
    return int(word)


def compare(request: CompareRequest, check_experiment: Callable[[], None]) -> None:
    """Simulate, draw and print; *check_experiment* refuses options that have no effect with an experiment.

    If folders of runs are given, these are compared instead.
    """
    if request.files and all(map(is_run, request.files)):
        from eligo.cli.run_comparison import compare_runs

        compare_runs(request.files, request.json)
        return
    asked, output = comparison_of(request), request.output
    experiment, flows, file = asked.experiment, asked.flows, request.results
    if asked.file is not None:
        check_experiment()
        file = file or f"{os.path.splitext(asked.file)[0]}.csv"
    if request.on is not None:
        experiment = with_absolute_paths(experiment)
        flows = dict(zip(experiment.sources, flows.values(), strict=bool(flows)))
    try:
        with progress_bar("simulating") as progress:
            records = play_experiment(experiment, file, request.processes, request.on, progress, flows)
    except KeyboardInterrupt:
        if file is not None and os.path.exists(file):
            tell([f"stopped: finished results are in {file}; run the same command again to resume"])
        raise
    report = comparison(records, experiment.name or "Comparison of policies")
    if request.json:
        print_json(document(records, asked.times))
    else:
        _print_comparison(report, records, request)
        tell([f"wrote {file}"] if file is not None else [])
    if output is not None:
        _save_picture(report, output)
        tell([] if request.json else [f"wrote {output}"])


def _save_picture(report: Report, output: str) -> None:
    from eligo.pages.html import save_output
    from eligo.pages.reports import report_page
    from eligo.plotting.comparison import first_figure

    save_output(output, lambda: report_page(report), lambda: first_figure(report))


def _print_comparison(report: Report, records: Sequence[Record], request: CompareRequest) -> None:
    print_lines([_introduction(records)])
    print_report(report, legend=report.words)
    if any(record.endless for record in records):
        tell(["some simulations did not end: raise --stay (in an experiment: stay), the mean time that clients stay"])
    if request.workers is not None and not any(record.game == "steady" for record in records):
        tell(["--workers is ignored: not all run times are known"])


def _introduction(records: Sequence[Record]) -> str:
    """The summary of a comparison in a sentence, for readers who do not know the games."""
    policies = len({record.scheduler for record in records})
    workflows = list(dict.fromkeys(record.dag for record in records))
    where = (
        f"{os.path.basename(workflows[0])} finishes" if len(workflows) == 1 else f"{len(workflows):,} workflows finish"
    )
    return f"Simulated how soon {where} under {policies:,} polic{'y' if policies == 1 else 'ies'}."


def with_histories(experiment: Experiment, flows: Mapping[Source, Workflow], paths: Sequence[str]) -> ReadComparison:
    """The experiment with the histories in these files, each for the dags that it matches.

    Without histories, each workflow has the run times of its own earlier run, FILE.run.
    """
    if "-" in paths:
        raise InputError("--history cannot be read from standard input here: give a file")
    histories, several = [read_history(path) for path in paths], len(experiment.sources) > 1
    tell([f"{display_path(history.path)}: {words}" for history in histories for words in history.remarks])
    timed_flows, times = dict[Source, Workflow](), dict[str, RunTimes]()
    for source in experiment.sources:
        flow = flows[source] if source in flows else source.load()
        fitting = fit_times(flow, histories, source.label if several else "") if paths else times_of(flow)
        tell(fitting.remarks)
        timed_flows[replace(source, histories=fitting.histories)] = fitting.flow
        times |= {source.label: fitting} if paths or fitting.histories else {}
    return ReadComparison(replace(experiment, sources=tuple(timed_flows)), timed_flows, times)


def document(records: Sequence[Record], times: Mapping[str, RunTimes]) -> dict[str, object]:
    """The results as plain data, with the known run times of workflows with histories."""
    best = {
        contest.dag: {
            "answer": answer(contest),
            "overall": contest.winner,
            "rates": {f"{column.rate:g}": name for name, columns in contest.turns for column in columns},
            "ties": {
                f"{column.rate:g}": [name for name in contest.ranking if not contest.worse(name, column)]
                for column in contest.rates
            },
            "steady": {
                f"{column.workers}": {name: float(contest.compared[column][name].mean()) for name in contest.ranking}
                for column in contest.pools
            },
            **(times[contest.dag].document() if contest.dag in times else {}),
        }
        for contest in contests_of(records)
    }
    return {"best": best, "results": [asdict(record) | {"policy": record.scheduler} for record in records]}


@contextmanager
def progress_bar(what: str) -> Iterator[Progress]:
    """Show the progress and the time left, if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def print_report(report: Report, legend: Sequence[str] = ()) -> None:
    """Print a report: answers, words, tables and a legend."""
    from rich.text import Text

    console = _console()
    for section in report.sections:
        if not (section.words or section.tables):
            continue
        console.print(Text(section.answer or section.title, "bold"))
        for line in section.words:
            console.print(Text(line))
        if section.answer:
            console.print(Text(section.title, "dim"))
        for table in section.tables:
            _print_table(table, console)
        console.print()
    for line in legend:
        console.print(Text(line, "dim"))


def _console() -> "Console":
    """A console as wide as the terminal or COLUMNS, or wide enough for a table if output goes to a file."""
    from rich.console import Console

    has_width = sys.stdout.isatty() or os.environ.get("COLUMNS")
    return Console(highlight=False, width=None if has_width else WIDTH)


def _print_table(table: Table, console: "Console") -> None:
    """Print a table; columns that do not fit are printed below the others, beside the first one again."""
    from rich.table import Table as Grid
    from rich.text import Text

    if table.title:
        console.print(Text(table.title, "dim"))
    widths = [max(len(word) for word in column) for column in zip(table.head, *table.rows, strict=True)]
    gap = 2 if sum(widths) + 2 * (len(widths) - 1) <= console.width else 1
    for columns in _fitting(widths, gap, console.width):
        grid = Grid(box=None, padding=(0, gap, 0, 0), pad_edge=False, header_style="dim")
        for j in columns:
            head, least = table.head[j], _longest_word(table.head[j])
            grid.add_column(Text(head), justify="right" if j else "left", overflow="fold", min_width=least)
        for i, row in enumerate(table.rows):
            grid.add_row(*(Text(row[j], STYLES.get(table.marked.get((i, j), ""), "")) for j in columns))
        console.print(grid)


def _fitting(widths: Sequence[int], gap: int, width: int) -> list[list[int]]:
    """The columns of each part of a table: the first one, and as many others as fit.

    >>> _fitting([8, 3, 3, 3], 1, 16), _fitting([8, 9], 1, 16)
    ([[0, 1, 2], [0, 3]], [[0, 1]])
    """
    groups, room = [[0]], width - widths[0]
    for j, wide in enumerate(widths[1:], 1):
        if wide + gap > room and len(groups[-1]) > 1:
            groups.append([0])
            room = width - widths[0]
        groups[-1].append(j)
        room -= wide + gap
    return groups


def _longest_word(head: str) -> int:
    """The minimum width of a column, so that no word of its head is broken."""
    return max(map(len, head.split()), default=0)
