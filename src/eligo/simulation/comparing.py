"""Which order would have served best, and when: the results of an experiment put into tables and words."""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import NamedTuple

from eligo.simulation.reports import Curve, Panel, Picture, Report, Section, Table
from eligo.simulation.statistics import Mean, mean_with
from eligo.simulation.tables import Record

#: the measure that a game is about, and whether more of it is better
MAIN = {"pebble": ("share", True), "batched": ("polls", False), "volatile": ("makespan", False)}
ALIKE = 0.005  # two orders within this share of one another serve equally well
USUAL = "fifo"
MOST_PANELS = 24


class Column(NamedTuple):
    """A game with its settings."""

    game: str
    setting: str

    @property
    def title(self) -> str:
        """What stands before its values.

        >>> Column("batched", "rate=8").title, Column("volatile", "count=16 rules=prudent").title
        ('polls, ρ = 8', 'makespan, 16 clients, rules=prudent')
        """
        match self.game:
            case "pebble":
                return "area / bound"
            case "batched":
                return f"polls, ρ = {self.setting.removeprefix('rate=')}"
            case _:
                words = (word for word in self.setting.split() if word != "rules=none")
                shown = (f"{word[6:]} clients" if word.startswith("count=") else word for word in words)
                return ", ".join(("makespan", *shown))

    @property
    def rate(self) -> float | None:
        """The mean number of requests a poll, in the batched game."""
        return float(self.setting.removeprefix("rate=")) if self.game == "batched" else None


@dataclass(frozen=True)
class Contest:
    """One dag's results: the mean of each column's measure for each scheduler."""

    dag: str
    tasks: int
    means: Mapping[tuple[str, Column], Mean]

    @cached_property
    def schedulers(self) -> list[str]:
        """In the order in which they were listed."""
        return list(dict.fromkeys(name for name, _ in self.means))

    @cached_property
    def columns(self) -> list[Column]:
        """In the order in which they were listed."""
        return list(dict.fromkeys(column for _, column in self.means))

    @cached_property
    def rates(self) -> list[Column]:
        """Those of the batched game, by rate."""
        return sorted((column for column in self.columns if column.rate is not None), key=lambda c: c.rate or 0.0)

    @property
    def title(self) -> str:
        """Its name without folders, and its size."""
        return f"{os.path.basename(self.dag)}, {self.tasks:,} tasks"

    def relative(self, scheduler: str, column: Column) -> float:
        """How many times the best scheduler's value this one's is; for shares, how many times as small."""
        value, best = self.means[scheduler, column].value, self.best(column)
        over, under = (best, value) if MAIN[column.game][1] else (value, best)
        return over / under if under else 1.0

    def best(self, column: Column) -> float:
        """The best value of a column."""
        values = [self.means[name, column].value for name in self.schedulers]
        return max(values) if MAIN[column.game][1] else min(values)

    def excess(self, scheduler: str, columns: Sequence[Column]) -> float:
        """The geometric mean over columns of what it needs, relative to the best in each."""
        logs = [math.log(self.relative(scheduler, column)) for column in columns]
        return math.exp(sum(logs) / len(logs)) if logs else 1.0

    @cached_property
    def winner(self) -> str:
        """Who needs the fewest polls over all rates, or where none were played, does best on the whole."""
        return min(self.schedulers, key=lambda name: self.excess(name, self.rates or self.columns))

    def best_at(self, column: Column) -> str:
        """Who serves best: the winner where it does or nearly so, else whoever does."""
        if self.relative(self.winner, column) <= 1 + ALIKE:
            return self.winner
        return min(self.schedulers, key=lambda name: self.relative(name, column))

    @cached_property
    def rules_pay(self) -> float | None:
        """What share of its time the winner needs when the server has its rules for slow clients; None where not played."""
        for column in self.columns:
            plain = Column(column.game, column.setting.replace("rules=prudent", "rules=none"))
            if plain != column and plain in self.columns:
                return self.means[self.winner, column].value / self.means[self.winner, plain].value
        return None


def contests_of(records: Iterable[Record]) -> list[Contest]:
    """The results, dag by dag; seeds are put together."""
    found: dict[str, dict[tuple[str, Column], list[Record]]] = {}
    for record in records:
        if record.measure == MAIN[record.game][0]:
            cell = record.scheduler, Column(record.game, record.setting)
            found.setdefault(record.dag, {}).setdefault(cell, []).append(record)
    return [
        Contest(dag, next(iter(cells.values()))[0].tasks, {cell: _pooled(rows) for cell, rows in cells.items()})
        for dag, cells in found.items()
    ]


def _pooled(records: Sequence[Record]) -> Mean:
    """The mean over seeds of equally many runs."""
    runs = sum(record.runs for record in records)
    value = sum(record.mean for record in records) / len(records)
    squares = sum((r.runs - 1) * r.deviation**2 + r.runs * (r.mean - value) ** 2 for r in records)
    return mean_with(value, math.sqrt(squares / (runs - 1)) if runs > 1 else 0.0, runs)


def comparison(records: Iterable[Record], title: str = "Which order serves best") -> Report:
    """Tables, curves and a sentence or two for every dag, and for all of them together."""
    contests = contests_of(records)
    sections = [_section(contest) for contest in contests]
    if len(contests) > 1:
        sections.insert(0, _all_together(contests))
    panels = [panel for panel in map(_panel, contests) if panel is not None][:MOST_PANELS]
    if panels:
        picture = Picture(name="polls", title="Polls, as a multiple of the fewest", panels=panels, columns=2)
        sections.append(Section(title="Over the request rate", pictures=[picture]))
    return Report(title=title, words=WORDS, sections=sections)


WORDS = (
    "area / bound: the average number of ready tasks as a share of what no order can exceed. polls: how often the server is "
    "asked before all is done, when ρ clients ask each time on average, as a multiple of the fewest. makespan: time to "
    "finish with clients that come and go, likewise. ± is the 95 % margin of the mean itself: as all "
    "orders meet the same clients, differences between them are surer than that. Marked: the best, and what is within half "
    "a per cent of it.",
)


def _section(contest: Contest) -> Section:
    return Section(
        title=contest.title,
        words=sentences(contest),
        tables=[_table(contest)],
    )


def _table(contest: Contest) -> Table:
    rows, marked = [], set()
    for i, column in enumerate(contest.columns):
        row = [column.title]
        for j, name in enumerate(contest.schedulers, 1):
            row.append(_shown(contest, name, column))
            if contest.relative(name, column) <= 1 + ALIKE:
                marked.add((i, j))
        rows.append(row)
    return Table(title="", head=["", *contest.schedulers], rows=rows, marked=frozenset(marked))


def _shown(contest: Contest, name: str, column: Column) -> str:
    """A share of the bound, or a multiple of the best; with its margin where that is not small."""
    mean = contest.means[name, column]
    if column.game == "pebble":
        return f"{math.floor(1000 * mean.value + 1e-6) / 1000:.1%}"  # never rounded up to the whole
    margin = (mean.high - mean.value) / contest.best(column)
    value = f"{contest.relative(name, column):.3f}"
    return f"{value} ±{margin:.2f}" if column.game == "volatile" and margin >= ALIKE else value


def sentences(contest: Contest) -> list[str]:
    """Who serves best at which rate, and what that saves."""
    if len(contest.schedulers) < 2 or not contest.rates:
        return []
    turns = [(name, list(group)) for name, group in groupby(contest.rates, key=contest.best_at)]
    if len(turns) == 1:
        line = f"{contest.winner} needs the fewest polls, or within half a per cent of them, at every rate."
    else:
        line = "Fewest polls: " + "; ".join(f"{name} at {_range(columns)}" for name, columns in turns) + "."
    found = [line]
    if USUAL in contest.schedulers and contest.winner != USUAL:
        saved = {c: 1 - contest.relative(contest.winner, c) / contest.relative(USUAL, c) for c in contest.rates}
        most = max(saved, key=saved.__getitem__)
        if saved[most] > ALIKE:
            found.append(
                f"Against first come, first served, {contest.winner} saves up to {saved[most]:.0%} of the polls "
                f"(at {_range([most])})."
            )
    if contest.rules_pay is not None:
        found.append(
            f"With rules for slow clients {contest.winner} takes {contest.rules_pay:.0%} of the time without them."
        )
    return found


def _range(columns: Sequence[Column]) -> str:
    first, last = columns[0].rate, columns[-1].rate
    return f"{first:g} requests" if first == last else f"{first:g} to {last:g} requests"


def _all_together(contests: Sequence[Contest]) -> Section:
    names = [name for name in contests[0].schedulers if all(name in contest.schedulers for contest in contests)]
    shared = [column for column in contests[0].columns if all(column in contest.columns for contest in contests)]
    rows = []
    for column in shared:
        relative = [[contest.relative(name, column) for contest in contests] for name in names]
        rows.append([column.title, *(f"{_geometric(values):.3f} ({max(values):.2f})" for values in relative)])
    best = min(names, key=lambda name: sum(math.log(c.excess(name, c.rates or c.columns)) for c in contests))
    title = "Relative to the best in each: geometric mean over dags, and the worst in brackets"
    table = Table(title=title, head=["", *names], rows=rows)
    words = [f"Over all of them {best} is nearest to the best."]
    pay = [contest.rules_pay for contest in contests if contest.rules_pay is not None]
    if pay:
        words.append(f"With rules for slow clients the work takes {_geometric(pay):.0%} of the time without them.")
    return Section(title=f"All {len(contests)} dags", words=words, tables=[table])


def _geometric(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def _panel(contest: Contest) -> Panel | None:
    if len(contest.rates) < 2:
        return None
    rates = [column.rate or 0.0 for column in contest.rates]
    curves = []
    for colour, name in enumerate(
        contest.schedulers
    ):  # intervals of the means would mislead: requests are the same for all
        shares = [contest.relative(name, column) for column in contest.rates]
        curves.append(Curve(label=name, x=rates, y=shares, colour=colour))
    return Panel(
        title=contest.title,
        across="mean requests a poll, ρ",
        up="polls / fewest",
        curves=curves,
        logarithmic=True,
        level=1.0,
    )
