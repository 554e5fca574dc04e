"""Contests: which scheduler is best on each dag of an experiment, and whether that is significant.

All schedulers have the same requests and clients in each run, so two of them are compared run by run. A difference counts if
it is more than `ALIKE` and its confidence interval excludes equality; the intervals of all pairs of schedulers hold together
in 95 % of cases. Anything else is a tie.
"""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean
from typing import NamedTuple

import numpy as np

from eligo.simulation.tables import Floats, Mean, Record, ratio_of

#: the main measure of each game, and whether more is better
MAIN = {
    "pebble": ("share", True),
    "batched": ("polls", False),
    "volatile": ("makespan", False),
    "steady": ("over", False),
    "space": ("over", False),
}
CERTAIN = ("pebble", "steady", "space")  # games without chance
USUAL_RATE = 16.0  # requests at a time
ALIKE = 0.005  # two orders that differ by at most this share count as equally good


class Column(NamedTuple):
    """A game with its settings."""

    game: str
    setting: str

    @property
    def title(self) -> str:
        """The title of a column's values.

        >>> Column("batched", "rate=8").title, Column("volatile", "count=16 rules=prudent").title
        ('polls, ρ = 8', 'makespan, 16 clients, rules=prudent')
        """
        match self.game:
            case "pebble":
                return "area / bound"
            case "batched":
                return f"polls, ρ = {self.setting.removeprefix('rate=')}"
            case "space":
                return "peak / bound"
            case "steady":
                return f"finish / bound, {self.workers} workers"
            case _:
                words = (word for word in self.setting.split() if word != "rules=none")
                labels = (f"{word[6:]} clients" if word.startswith("count=") else word for word in words)
                return ", ".join(("makespan", *labels))

    @property
    def rate(self) -> float | None:
        """The mean number of requests per poll, for the batched game."""
        return float(self.setting.removeprefix("rate=")) if self.game == "batched" else None

    @property
    def workers(self) -> int | None:
        """The number of workers, for the steady game."""
        return int(self.setting.removeprefix("workers=")) if self.game == "steady" else None

    @property
    def crowd(self) -> str:
        """The settings of the clients, without the server's rules."""
        return " ".join(word for word in self.setting.split() if not word.startswith("rules="))

    @property
    def prudent(self) -> bool:
        """Whether the server has rules for slow clients."""
        return "rules=prudent" in self.setting.split()


@dataclass(frozen=True)
class Contest:
    """The values of each column's measure for each scheduler, run by run (or part by part); NaN for a run that never ends."""

    dag: str
    tasks: int
    runs: int
    values: Mapping[tuple[str, Column], Floats]
    #: the number of runs that never end
    endless: Mapping[tuple[str, Column], int] = field(default_factory=dict)
    #: in the batched game, the share of requests that find no ready task
    starved: Mapping[tuple[str, Column], float] = field(default_factory=dict)

    @cached_property
    def schedulers(self) -> list[str]:
        """The schedulers in the order in which they were listed."""
        return list(dict.fromkeys(name for name, _ in self.values))

    @cached_property
    def columns(self) -> list[Column]:
        """The columns in the order in which they were listed."""
        return list(dict.fromkeys(column for _, column in self.values))

    @cached_property
    def rates(self) -> list[Column]:
        """The columns of the batched game, by rate."""
        return sorted((column for column in self.columns if column.rate is not None), key=lambda c: c.rate or 0.0)

    @cached_property
    def pools(self) -> list[Column]:
        """The columns of the steady game, by the number of workers."""
        return sorted((column for column in self.columns if column.workers is not None), key=lambda c: c.workers or 0)

    @cached_property
    def spaces(self) -> list[Column]:
        """The column of the game that measures files between tasks, if it was played."""
        return [column for column in self.columns if column.game == "space"]

    @property
    def usual(self) -> Column | None:
        """The column of the batched game whose rate is nearest to `USUAL_RATE`, for which starved requests are shown."""
        near = min(self.rates, key=lambda c: abs(math.log((c.rate or 1.0) / USUAL_RATE)), default=None)
        return near if any(column == near for _, column in self.starved) else None

    @property
    def decisive(self) -> list[Column]:
        """The columns that decide which scheduler is best: those of the batched game, or all columns if it was not played."""
        return self.rates or self.columns

    @property
    def title(self) -> str:
        """The dag's name without folders, and its number of tasks."""
        return f"{os.path.basename(self.dag)}, {self.tasks:,} tasks"

    @cached_property
    def compared(self) -> dict[Column, dict[str, Floats]]:
        """The compared values: of orders that finish at least half of their runs, in the runs that all of them finish."""
        result: dict[Column, dict[str, Floats]] = {}
        for column in self.columns:
            values = {name: self.values[name, column] for name in self.schedulers if self._mostly(name, column)}
            mostly = {name: samples for name, samples in values.items() if np.isfinite(samples).any()}
            everywhere = np.isfinite(sum(mostly.values(), np.zeros(())))
            result[column] = {name: samples[everywhere] for name, samples in mostly.items() if everywhere.any()}
        return result

    def _mostly(self, scheduler: str, column: Column) -> bool:
        return 2 * self.endless.get((scheduler, column), 0) <= self.runs

    def ends(self, scheduler: str, column: Column) -> bool:
        """Whether the scheduler has values to compare in this column."""
        return scheduler in self.compared[column]

    @cached_property
    def _best(self) -> dict[Column, str]:
        choose = {game: max if more else min for game, (_, more) in MAIN.items()}
        means = {column: {n: float(v.mean()) for n, v in values.items()} for column, values in self.compared.items()}
        return {column: choose[column.game](row, key=row.__getitem__) for column, row in means.items() if row}

    @cached_property
    def _relative(self) -> dict[tuple[str, Column], Mean]:
        return {(name, column): self._compare(name, column) for name in self.schedulers for column in self.columns}

    def _compare(self, scheduler: str, column: Column) -> Mean:
        values = self.compared[column]
        if scheduler not in values:
            nothing = math.inf if values else 1.0
            return Mean(nothing, nothing, nothing)
        own, other = values[scheduler], values[self._best[column]]
        pairs = max(1, math.comb(len(self.schedulers), 2))
        ratio = ratio_of(other, own, pairs) if MAIN[column.game][1] else ratio_of(own, other, pairs)
        return ratio if len(own) > 1 else Mean(ratio.value, -math.inf, math.inf)

    def relative(self, scheduler: str, column: Column) -> Mean:
        """The ratio of this scheduler's value to the best one's, paired by run; inverted for shares, so 1 is best."""
        return self._relative[scheduler, column]

    def alike(self, scheduler: str, column: Column) -> bool:
        """Whether the scheduler is the best or within half a per cent of it."""
        return self.relative(scheduler, column).value <= 1 + ALIKE

    def worse(self, scheduler: str, column: Column) -> bool:
        """Whether the scheduler is significantly worse than the best, by more than half a per cent."""
        ratio = self.relative(scheduler, column)
        return ratio.value > 1 + ALIKE and ratio.low > 1

    def differs(self, column: Column) -> bool:
        """Whether any scheduler is worse than the best in this column; games without chance need no significance."""
        sure = column.game in CERTAIN
        return any(not self.alike(n, column) if sure else self.worse(n, column) for n in self.schedulers)

    @cached_property
    def leaders(self) -> list[str]:
        """The schedulers that are worse than the best in no decisive column, best first; several are a tie."""
        never = [name for name in self.schedulers if not any(self.worse(name, column) for column in self.decisive)]
        return sorted(never, key=self.excess)

    @cached_property
    def ranking(self) -> list[str]:
        """The leaders, then the other schedulers by their excess over the best."""
        return [*self.leaders, *sorted((n for n in self.schedulers if n not in self.leaders), key=self.excess)]

    def excess(self, scheduler: str) -> float:
        """The geometric mean of the scheduler's values relative to the best, over the decisive columns."""
        return geometric([self.relative(scheduler, column).value for column in self.decisive])

    @property
    def winner(self) -> str:
        """The scheduler that is best overall."""
        return self.ranking[0]

    @cached_property
    def turns(self) -> list[tuple[str, list[Column]]]:
        """The best schedulers by rate, with few changes: each leads or ties over the longest range of rates that it can."""
        turns: list[tuple[str, list[Column]]] = []
        rest = self.rates
        while rest:
            lengths = [next((i for i, c in enumerate(rest) if self.worse(name, c)), len(rest)) for name in self.ranking]
            longest = max(lengths)
            turns.append((self.ranking[lengths.index(longest)], rest[:longest]))
            rest = rest[longest:]
        return turns

    @cached_property
    def rules_pay(self) -> Mean | None:
        """The winner's time with the rules for slow clients as a share of its time without them; None if that is unknown."""
        crowds = [column for column in self.columns if column.game == "volatile"]
        pairs = [(c, d) for c in crowds for d in crowds if c.crowd == d.crowd and c.prudent and not d.prudent]
        if not pairs:
            return None
        ruled, free = (self.values[self.winner, column] for column in pairs[0])
        both = np.isfinite(ruled) & np.isfinite(free)
        return ratio_of(ruled[both], free[both]) if both.sum() > 1 else None


def contests_of(records: Iterable[Record]) -> list[Contest]:
    """The results as one contest per dag; the runs of all seeds are combined."""
    by_dag: dict[str, dict[tuple[str, Column], list[Record]]] = {}
    starved: dict[str, dict[tuple[str, Column], list[float]]] = {}
    for record in records:
        cell = record.scheduler, Column(record.game, record.setting)
        if record.measure == MAIN[record.game][0]:
            by_dag.setdefault(record.dag, {}).setdefault(cell, []).append(record)
        elif record.measure == "starved":
            starved.setdefault(record.dag, {}).setdefault(cell, []).append(record.mean or 0.0)
    return [_contest(dag, cells, starved.get(dag, {})) for dag, cells in by_dag.items()]


def _contest(
    dag: str,
    cells: Mapping[tuple[str, Column], Sequence[Record]],
    starved: Mapping[tuple[str, Column], Sequence[float]],
) -> Contest:
    first = next(iter(cells.values()))
    parts = {cell: [part for record in rows for part in record.parts] for cell, rows in cells.items()}
    return Contest(
        dag,
        first[0].tasks,
        sum(record.runs for record in first),
        {cell: np.array([math.nan if part is None else part for part in values]) for cell, values in parts.items()},
        {cell: sum(record.endless for record in rows) for cell, rows in cells.items()},
        {cell: fmean(shares) for cell, shares in starved.items()},
    )


def together(contests: Sequence[Contest]) -> Contest:
    """All dags as one contest with equal weights: in each run, the mean over the dags of scaled values."""
    shared = [cell for cell in contests[0].values if all(cell in contest.values for contest in contests)]
    scaled: dict[tuple[str, Column], Floats] = {}
    for name, column in shared:
        each = [contest.values[name, column] / _scale(contest, column) for contest in contests]
        runs = min(map(len, each))
        scaled[name, column] = np.mean([values[:runs] for values in each], axis=0)
    endless = {cell: sum(contest.endless.get(cell, 0) for contest in contests) for cell in shared}
    tasks, runs = sum(contest.tasks for contest in contests), sum(contest.runs for contest in contests)
    counted = [cell for cell in contests[0].starved if all(cell in contest.starved for contest in contests)]
    starved = {cell: fmean(contest.starved[cell] for contest in contests) for cell in counted}
    return Contest(f"All {len(contests)} dags", tasks, runs, scaled, endless, starved)


def _scale(contest: Contest, column: Column) -> float:
    """The mean value of this column on this dag, the same with and without rules; 1 for ratios, which need no scaling."""
    if column.game in CERTAIN:
        return 1.0
    alike = [c for c in contest.columns if (c.game, c.crowd) == (column.game, column.crowd)]
    samples = [values for c in alike for values in contest.compared[c].values()]
    return float(np.mean([values.mean() for values in samples])) if samples else 1.0


def geometric(values: Sequence[float]) -> float:
    """The geometric mean; 1 if there are no values.

    >>> geometric([2.0, 8.0])
    4.0
    """
    return math.exp(sum(map(math.log, values)) / len(values)) if values else 1.0
