"""Comparisons and experiments as people ask for them and see them."""

import atexit
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from eligo.cli.plans import tell
from eligo.cli.printing import print_json
from eligo.cli.recalling import Knowledge, fitted, read_histories, recall
from eligo.errors import InputError
from eligo.formats import generate, read
from eligo.formats.histories.runs import is_run
from eligo.simulation import Clients
from eligo.simulation.comparing import answer, comparison
from eligo.simulation.contests import contests_of
from eligo.simulation.experiments import Progress, run, with_absolute_paths
from eligo.simulation.reports import Finding, Report, Table
from eligo.simulation.settings import (
    RULES,
    WORKERS,
    Experiment,
    Game,
    Size,
    Source,
    batched_games,
    is_experiment,
    read_experiment,
    steady_games,
    volatile_game,
)
from eligo.simulation.tables import Record

if TYPE_CHECKING:
    from rich.console import Console

WIDTH = 150  # characters, where nobody's terminal says how many


@dataclass(frozen=True, kw_only=True)
class CompareRequest:
    """What the command's options say."""

    files: Sequence[str]
    families: Sequence[str]
    schedulers: str
    orders: Sequence[str]
    rates: str
    workers: str | None
    clients: int
    stay: float
    away: float
    runs: int
    seed: int
    reverse: bool
    histories: Sequence[str] = ()


def experiment_of(request: CompareRequest) -> Experiment:
    """The experiment that somebody asked for, in a file of its own or by options."""
    described = [file for file in request.files if is_experiment(file)]
    if described:
        if len(request.files) > 1 or request.families:
            raise InputError(f"{described[0]} describes an experiment of its own: give it alone")
        if request.histories:
            raise InputError(f"{described[0]} describes an experiment, which takes no --history: give a workflow")
        return read_experiment(described[0])
    if not request.files and not request.families:
        raise InputError("what is to be compared? Give a workflow, an experiment, or --family")
    lengths = {"stay": request.stay, "away": request.away}
    others = {name: value for name, value in lengths.items() if value != getattr(Clients, name)}
    pools = WORKERS if request.workers is None else tuple(map(_whole, _words(request.workers)))
    crowds = [volatile_game(count=request.clients, **others, rules=rules) for rules in RULES]
    return Experiment(
        sources=(
            *(_file(path, request.reverse) for path in request.files),
            *(_family(words, request.seed) for words in request.families),
        ),
        schedulers=tuple(dict.fromkeys((*_words(request.schedulers), *request.orders))),
        games=(Game("pebble"), *batched_games(map(_number, _words(request.rates))), *crowds, *steady_games(pools)),
        runs=request.runs,
        seeds=(request.seed,),
    )


def _file(path: str, reverse: bool) -> Source:
    """Standard input is copied, for a workflow is read more than once here; the copy is gone when the command ends."""
    if path != "-":
        return Source.of_file(path, reverse=reverse)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix="eligo-", suffix=".json", delete=False) as copy:
        atexit.register(os.unlink, copy.name)
        copy.write(generate(read("-", reverse=reverse), "json"))
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


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise InputError(f"a rate is a number, and {word!r} is none") from None


def _whole(word: str) -> int:
    if not word.isdecimal():
        raise InputError(f"workers are a whole number, and {word!r} is none")
    return int(word)


def results_file(request: CompareRequest, given: str | None) -> str | None:
    """Where finished cells are kept: as given, or for an experiment in a file beside it."""
    if given is None and request.files and is_experiment(request.files[0]):
        return os.path.splitext(request.files[0])[0] + ".csv"
    return given


def compare(  # noqa: PLR0913, PLR0917 - what the command's options say
    request: CompareRequest, results: str | None, processes: int, on: str | None, output: str | None, as_json: bool
) -> None:
    """Play, draw and print."""
    experiment, known = recalled(experiment_of(request), request.histories, not any(map(is_experiment, request.files)))
    file = results_file(request, results)
    if on is not None:
        experiment = with_absolute_paths(experiment)
    try:
        with progress_bar("playing") as progress:
            records = run(experiment, file, processes, on, progress)
    except KeyboardInterrupt:
        if file is not None and os.path.exists(file):
            tell([f"stopped: what is finished is in {file}; the same command goes on from there"])
        raise
    report = comparison(records, experiment.name or "Which order serves best")
    remarks: list[str] = []
    if output is not None:
        from eligo.cli.pictures import save_comparison

        remarks = save_comparison(report, output)
    tell(remarks)
    if as_json:
        print_json(document(records, known))
        return
    print_report(report, legend=report.words)
    if any(record.endless for record in records):
        tell(["--stay (in an experiment: stay) says how many mean task times clients stay"])
    if request.workers is not None and not any(record.game == "steady" for record in records):
        tell(["how long every task runs is not known, so nothing is said of steady workers"])
    tell([f"wrote {path}" for path in (file, output) if path is not None])


def recalled(
    experiment: Experiment, paths: Sequence[str], earlier: bool = False
) -> tuple[Experiment, dict[str, Knowledge]]:
    """The experiment with the histories in these files, each for the dags that it fits, and what is known of these.

    Where there are none and *earlier* runs count, each workflow has those of its own, FILE.run.
    """
    if "-" in paths:
        raise InputError("a history is read more than once here, which standard input is not: give a file")
    histories = read_histories(paths)
    several = len(experiment.sources) > 1
    if histories:
        known = {
            each.label: fitted(each.load(), histories, each.label if several else "")[1] for each in experiment.sources
        }
    else:
        ran = [each for each in experiment.sources if earlier and each.path and is_run(f"{each.path}.run")]
        known = {each.label: recall(each.load(), ())[1] for each in ran}
    sources = tuple(
        replace(each, histories=known[each.label].histories) if each.label in known else each
        for each in experiment.sources
    )
    return replace(experiment, sources=sources), known


def document(records: Sequence[Record], known: Mapping[str, Knowledge]) -> dict[str, object]:
    """The results as plain data, with what is known of earlier runs where there is a history."""
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
            **(known[contest.dag].document() if contest.dag in known else {}),
        }
        for contest in contests_of(records)
    }
    return {"best": best, "results": [asdict(record) for record in records]}


@contextmanager
def progress_bar(what: str) -> Iterator[Progress]:
    """How much is done and how long the rest will take, where somebody watches."""
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
    """A report in the terminal: answers, words, tables, published values beside ours, and what the signs mean."""
    from rich.text import Text

    console = _console()
    for section in report.sections:
        if not (section.words or section.tables or section.findings):
            continue
        console.print(Text(section.answer or section.title, "bold"))
        for line in section.words:
            console.print(Text(line))
        if section.findings:
            _print_findings(section.findings, console)
        if section.answer:
            console.print(Text(section.title, "dim"))
        for table in section.tables:
            _print_table(table, console)
        console.print()
    for line in legend:
        console.print(Text(line, "dim"))


def _console() -> "Console":
    """As wide as the terminal, or as COLUMNS says, or wide enough for a table where it goes to a file."""
    from rich.console import Console

    told = sys.stdout.isatty() or os.environ.get("COLUMNS")
    return Console(highlight=False, width=None if told else WIDTH)


def _print_table(table: Table, console: "Console") -> None:
    """A table; columns for which there is no room stand below the others, beside the first one again."""
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
            grid.add_row(*(Text(row[j], "bold" if (i, j) in table.marked else "") for j in columns))
        console.print(grid)


def _fitting(widths: Sequence[int], gap: int, width: int) -> list[list[int]]:
    """Which columns stand side by side: the first and so many of the others as there is room for.

    >>> _fitting([8, 3, 3, 3], 1, 16), _fitting([8, 9], 1, 16)
    ([[0, 1, 2], [0, 3]], [[0, 1]])
    """
    found, room = [[0]], width - widths[0]
    for j, wide in enumerate(widths[1:], 1):
        if wide + gap > room and len(found[-1]) > 1:
            found.append([0])
            room = width - widths[0]
        found[-1].append(j)
        room -= wide + gap
    return found


def _longest_word(head: str) -> int:
    """How wide a column is at least, so that no word of its head is broken."""
    return max(map(len, head.split()), default=0)


def _print_findings(findings: Sequence[Finding], console: "Console") -> None:
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("", "published", "ours", "agrees"):
        grid.add_column(name, overflow="fold", min_width=_longest_word(name))
    for finding in findings:
        style = {True: "green", False: "bold red", None: ""}[finding.agrees]
        words = (Text(finding.what), Text(finding.published), Text(finding.ours), Text(finding.answer, style))
        grid.add_row(*words)
    console.print(grid)
