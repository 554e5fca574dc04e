"""Comparison of orders: the results of an experiment as sentences, tables and curves."""

import math
from collections.abc import Iterable, Sequence

from eligo.errors import counted
from eligo.simulation.contests import ALIKE, Column, Contest, contests_of, together
from eligo.simulation.pebble import name_of
from eligo.simulation.reports import Curve, Panel, Picture, Report, Section, Table
from eligo.simulation.tables import Record, mean_of

USUAL = "fifo"
MOST_PANELS = 24
TIE, PERHAPS, NEVER, NOT_ALWAYS, BEST = "·", "~", "no end", "!", "*"
STARVED = "starved"


def comparison(records: Iterable[Record], title: str = "Which order is best") -> Report:
    """Report the answer as a sentence, a table and curves, for every dag and for all of them together."""
    contests = contests_of(records)
    sections = [_section(contest) for contest in contests]
    if len(contests) > 1:
        sections.insert(0, _all_together(contests))
    panels = [panel for panel in map(_panel, contests) if panel is not None]
    panels = sorted(panels, key=lambda panel: not panel.curves)[:MOST_PANELS]
    if panels:
        picture = Picture(
            name="polls", title="Rounds of requests, as a multiple of the fewest", panels=panels, columns=2
        )
        sections.append(Section(title="By request rate", pictures=[picture]))
    cells = [word for section in sections for table in section.tables for row in table.rows for word in row]
    heads = {word for section in sections for table in section.tables for word in table.head}
    legend = [line for line in _heads_told(contests[0]) if line.partition(":")[0].split(" to ")[0] in heads]
    return Report(title=title, words=[*_signs(cells), *legend], sections=sections)


# Words


def answer(contest: Contest) -> str:
    """Which order is best, in a sentence; empty if there is only one."""
    leaders, where = contest.leaders, _everywhere(contest)
    if len(contest.schedulers) < 2:
        return ""
    if len(leaders) == len(contest.schedulers):
        between = _list_names(leaders) if len(leaders) == 2 else f"the {len(leaders)} orders"
        runs = _so_far(contest, leaders)
        return f"no {'significant ' if runs else ''}difference between {between}{runs or ' above 0.5 %'}."
    if leaders:
        verb = "is" if len(leaders) == 1 else "are"
        runs = _so_far(contest, leaders)
        best = (
            f"best {where}, or not significantly worse{runs}" if runs else f"best {where}, or within 0.5 % of the best"
        )
        return f"{_list_names(leaders)} {verb} {best}."
    if not contest.turns:
        return f"{name_of(contest.winner)} is closest to the best overall; no order is best {where}."
    (first, columns), *rest = contest.turns
    parts = [f"{name_of(first)} is best {_range(columns, 'up to')}"]
    parts += [f"{name_of(name)} {_range(columns)}" for name, columns in rest[:-1]]
    return ", ".join([*parts, f"{name_of(rest[-1][0])} beyond."])


def _so_far(contest: Contest, schedulers: Sequence[str]) -> str:
    """The number of runs as text, if an order differs from the best by more than 0.5 %, but not significantly; else empty."""
    sure = all(contest.alike(name, column) for name in schedulers for column in contest.decisive)
    return "" if sure else f" in {counted(contest.runs, 'run')}"


def sentences(contest: Contest) -> list[str]:
    """The sentences on what the best order saves, on the rules for slow clients, and on runs that never end."""
    return [line for line in (_savings(contest), _rules_effect(contest), _endless(contest)) if line]


def _savings(contest: Contest) -> str:
    """The sentence on what the winner saves compared with the usual order, if that is significant."""
    if USUAL not in contest.schedulers or contest.winner == USUAL:
        return ""
    sure = [c for c in contest.rates if contest.worse(USUAL, c) and not contest.worse(contest.winner, c)]
    saved = {c: 1 - contest.relative(contest.winner, c).value / contest.relative(USUAL, c).value for c in sure}
    if not saved or max(saved.values()) <= ALIKE:
        return ""
    who, most = name_of(contest.winner), percent(max(saved.values()))
    return f"Compared with {USUAL} (first come, first served), {who} saves up to {most} of the rounds."


def _rules_effect(contest: Contest) -> str:
    """The sentence on the effect of the rules for slow clients, if that is significant."""
    pay = contest.rules_pay
    if pay is None or abs(pay.value - 1) <= ALIKE or pay.low <= 1 <= pay.high:
        return ""
    who = name_of(contest.winner)
    return f"With rules for slow clients, {who} takes {percent(pay.value)} of the time that it takes without them."


def _endless(contest: Contest) -> str:
    counts = [count for count in contest.endless.values() if count]
    if not counts:
        return ""
    span = "to ".join(f"{count:,} " for count in dict.fromkeys((min(counts), max(counts))))
    runs = f"{span}of {counted(contest.runs, 'run')}"
    return f"{runs} did not finish: clients left before the longest task was done."


def percent(share: float) -> str:
    """A share in per cent, with one more digit if it is small.

    >>> percent(0.0316), percent(0.316), percent(0.0051)
    ('3.2 %', '32 %', '0.5 %')
    """
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.1f} %"


def _list_names(schedulers: Sequence[str]) -> str:
    return _enumeration([name_of(name) for name in schedulers])


def _enumeration(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _everywhere(contest: Contest) -> str:
    if not contest.rates:
        return "in every game" if len(contest.columns) > 1 else "in this game"
    return "at every rate" if len(contest.rates) > 1 else _range(contest.rates)


def _capital(text: str) -> str:
    """Capitalise a sentence unless it begins with the name of an order."""
    return f"N{text[1:]}" if text.startswith("no ") else text


def _range(columns: Sequence[Column], begin: str = "") -> str:
    first, last = columns[0].rate, columns[-1].rate
    if first == last:
        return f"at {first:g} requests"
    return f"up to {last:g} requests" if begin == "up to" else f"from {first:g} to {last:g}"


# Tables


def _section(contest: Contest) -> Section:
    return Section(
        title=f"{contest.title}, {counted(contest.runs, 'run')}",
        answer=_capital(answer(contest)),
        words=[*_undiffering(contest), *sentences(contest)],
        tables=_tables(contest),
        details=[_means(contest)],
    )


def _all_together(contests: Sequence[Contest]) -> Section:
    combined = together(contests)
    summary = answer(combined)
    return Section(
        title=f"{combined.dag}, equally weighted",
        answer=f"Over all of them, {summary}" if summary else "",
        words=[*_undiffering(combined), _worst(contests, combined.winner), *sentences(combined)] if summary else (),
        tables=_tables(combined),
    )


def _worst(contests: Sequence[Contest], scheduler: str) -> str:
    """The most by which an order is worse than the best, on any dag in any decisive column."""
    cells = [
        (c.relative(scheduler, column).value, c)
        for c in contests
        for column in c.decisive
        if c.worse(scheduler, column)
    ]
    if not cells:
        return f"{name_of(scheduler)} is not significantly worse than the best on any of them."
    most, contest = max(cells, key=lambda cell: cell[0])
    return f"{name_of(scheduler)} is at most {_more(most).removeprefix('+')} worse than the best (on {contest.title})."


TAKEN = "with recorded run times, without failures or transfers"
STEADY = f"Finish time divided by its lower bound (1 is optimal), {TAKEN}"
SPACE = "Peak size of files between tasks divided by its lower bound (1 is optimal), one task at a time"


def _tables(contest: Contest) -> list[Table]:
    """A table of the games of chance and of ready tasks, one of steady workers and one of space, where orders differ."""
    games = [*([_table(contest)] if _any_differs(contest, _heads(contest)) else [])]
    counts = [counted(column.workers or 0, "worker") for column in contest.pools]
    ratios = [(STEADY, contest.pools, counts), (SPACE, contest.spaces, ["peak / bound"])]
    return [*games, *(_over_bound(contest, *each) for each in ratios if _any_differs(contest, each[1]))]


def _any_differs(contest: Contest, columns: Iterable[Column]) -> bool:
    """Whether a table of these columns has something to show: a difference, a run that never ends, or a single order."""
    endless = {column for (_, column), count in contest.endless.items() if count}
    return any(len(contest.schedulers) == 1 or column in endless or contest.differs(column) for column in columns)


def _undiffering(contest: Contest) -> list[str]:
    """The sentences that replace a table or curves in which all orders would be alike."""
    heads, pools, many = _heads(contest), contest.pools, len(contest.schedulers)
    lines = []
    if heads and not _any_differs(contest, heads):
        what = {"pebble": "ready tasks", "batched": "rounds of requests", "volatile": "time to completion"}
        games = [word for game, word in what.items() if any(column.game == game for column in heads)]
        lines.append(f"No difference in {_enumeration(games)}: {_alike(contest, heads)}.")
    if pools and not _any_differs(contest, pools):
        counts = _enumeration([f"{column.workers:,}" for column in pools])
        bound = ", and no order can finish earlier" if all(_at_bound(contest, column) for column in pools) else ""
        lines.append(
            f"No difference on {counts} steady workers: all {many} orders finish within 0.5 % of each other{bound}, {TAKEN}."
        )
    if contest.spaces and not _any_differs(contest, contest.spaces):
        lines.append(f"No difference in the peak size of files between tasks: {_alike(contest, contest.spaces)}.")
    return lines


def _alike(contest: Contest, columns: Iterable[Column]) -> str:
    """The statement that all orders are alike, with the statistical error if it matters."""
    who = f"all {len(contest.schedulers)} orders are within"
    sure = all(contest.alike(name, column) for name in contest.schedulers for column in columns)
    chance = "the statistical error of " + counted(contest.runs, "run")
    return f"{who} 0.5 % of each other" if sure else f"{who} 0.5 % of each other or {chance}"


def _at_bound(contest: Contest, column: Column) -> bool:
    return all(float(values.mean()) <= 1 + ALIKE for values in contest.compared[column].values())


def _over_bound(contest: Contest, title: str, columns: Sequence[Column], heads: Sequence[str]) -> Table:
    """The table of values relative to their bounds; the best in each column are marked."""
    best = {(i, j) for i, n in enumerate(contest.ranking) for j, c in enumerate(columns) if contest.alike(n, c)}
    rows = [
        [f" {name_of(name)}", *(_over(contest, name, column, (i, j) in best) for j, column in enumerate(columns))]
        for i, name in enumerate(contest.ranking)
    ]
    return Table(title=title, head=["", *heads], rows=rows, marked={(i, j + 1): "best" for i, j in best})


def _over(contest: Contest, name: str, column: Column, best: bool) -> str:
    return f"{BEST if best else ''}{contest.compared[column][name].mean():.3f}"


def _table(contest: Contest) -> Table:
    """The table of all other games: one row per scheduler, best first."""
    heads = _heads(contest)
    best = contest.leaders or [contest.winner]
    rows = [
        [(BEST if name in best else " ") + name_of(name), *(_share_text(contest, name, column) for column in heads)]
        for name in contest.ranking
    ]
    head = ["", *heads.values()]
    if contest.usual is not None:
        head.append(STARVED)
        for row, name in zip(rows, contest.ranking, strict=True):
            row.append(percent(contest.starved[name, contest.usual]))
    return Table(title="", head=head, rows=rows, marked={(i, 0): "best" for i in range(len(best))})


def _heads(contest: Contest) -> dict[Column, str]:
    """The head of every column: ready, the rates, then the times."""
    volatile = [column for column in contest.columns if column.game == "volatile"]
    crowds = list(dict.fromkeys(column.crowd for column in volatile))
    heads = {column: "ready" for column in contest.columns if column.game == "pebble"}
    heads |= {column: f"{column.rate:g}" for column in contest.rates}
    for column in sorted(volatile, key=lambda column: (crowds.index(column.crowd), column.prudent)):
        number = f" {crowds.index(column.crowd) + 1}" if len(crowds) > 1 else ""
        heads[column] = ("rules" if column.prudent else "time") + number
    return heads


def _share_text(contest: Contest, name: str, column: Column) -> str:
    """The text of a cell: a share of the bound, or the excess over the best."""
    if not contest.ends(name, column):
        return NEVER
    if column.game == "pebble":
        share = float(contest.compared[column][name].mean())
        return "100 %" if share >= 1 else f"{math.floor(share * 1000) / 10:.1f} %"
    mark = NOT_ALWAYS if contest.endless.get((name, column)) else ""
    relative = contest.relative(name, column).value
    return (_more(relative) if contest.alike(name, column) or contest.worse(name, column) else PERHAPS) + mark


def _more(relative: float) -> str:
    """The excess of a ratio over 1 in per cent, without the sign, so that the table stays narrow.

    >>> [_more(value) for value in (1.004, 1.0316, 1.316, 31.6, math.inf)]
    ['·', '+3.2', '+32', '×32', 'no end']
    """
    if math.isinf(relative):
        return NEVER
    if relative <= 1 + ALIKE:
        return TIE
    return f"+{percent(relative - 1)}".removesuffix(" %") if relative < 10 else f"×{relative:.0f}"


def _signs(cells: Sequence[str]) -> list[str]:
    """The legend of the signs that occur in these cells."""
    legend = {
        BEST: f"{BEST} best",
        TIE: f"{TIE} within 0.5 % of the best",
        "+": "+N: N % more than the best",
        PERHAPS: f"{PERHAPS} more, not significant",
        NOT_ALWAYS: f"{NOT_ALWAYS} mean of the runs that finish",
        NEVER: f"{NEVER}: too few runs finish to compare",
    }
    lines = [""]
    for words in (words for sign, words in legend.items() if any(sign in word for word in cells)):
        longer = f"{lines[-1]}   {words}" if lines[-1] else words
        lines = [*lines[:-1], longer] if len(longer) < 80 else [*lines, words]
    return [line for line in lines if line]


def _heads_told(contest: Contest) -> list[str]:
    """The legend of the column heads."""
    heads = _heads(contest)
    lines = ["ready: mean number of ready tasks, as a share of the upper bound"] if "ready" in heads.values() else []
    if contest.rates:
        span = " to ".join(dict.fromkeys(heads[contest.rates[i]] for i in (0, -1)))
        lines.append(f"{span}: mean number of simultaneous requests; values: rounds to completion")
    if contest.usual is not None:
        lines.append(f"{STARVED}: share of requests that find no ready task, at {contest.usual.rate:g} at a time")
    for column, head in heads.items():
        if column.game == "volatile":
            again = column.prudent and any(c.crowd == column.crowd and not c.prudent for c in heads)
            what = "the same" if again else _crowd(column)
            lines.append(f"{head}: {what}{' with rules for slow clients' if column.prudent else ''}")
    return lines


def _crowd(column: Column) -> str:
    """The description of a game with volatile clients.

    >>> _crowd(Column("volatile", "count=4 stay=2 rules=none"))
    'time to completion with 4 clients that come and go (stay=2)'
    """
    words = dict(word.split("=") for word in column.crowd.split())
    count = words.pop("count", "16")
    others = f" ({', '.join(f'{key}={value}' for key, value in words.items())})" if words else ""
    return f"time to completion with {count} clients that come and go{others}"


def _means(contest: Contest) -> Table:
    """The table of every column's mean values with their margins."""
    rows = [[column.title, *(_mean(contest, name, column) for name in contest.ranking)] for column in _heads(contest)]
    title = (
        "Means with 95 % margins; all orders face the same clients, so differences are more certain than the margins"
    )
    return Table(title=title, head=["", *map(name_of, contest.ranking)], rows=rows)


def _mean(contest: Contest, name: str, column: Column) -> str:
    return str(mean_of(contest.compared[column][name])) if contest.ends(name, column) else NEVER


# Curves


def _panel(contest: Contest) -> Panel | None:
    if len(contest.rates) < 2:
        return None
    if not _any_differs(contest, contest.rates):
        span = " to ".join(f"{contest.rates[i].rate:g}" for i in (0, -1))
        words = f"No difference at {span} simultaneous requests: {_alike(contest, contest.rates)}."
        return Panel(title=contest.title, words=words)
    rates = [column.rate or 0.0 for column in contest.rates]
    curves = []
    for colour, name in enumerate(contest.schedulers):
        means = [contest.relative(name, column) for column in contest.rates]
        value, low, high = ([mean[end] for mean in means] for end in range(3))
        sure = all(map(math.isfinite, low))  # false after a single run
        curves.append(
            Curve(label=name, x=rates, y=value, low=low if sure else (), high=high if sure else (), colour=colour)
        )
    return Panel(
        title=contest.title, across="mean simultaneous requests, ρ", up="rounds / fewest", curves=curves,
        logarithmic=True, level=1.0,
    )  # fmt: skip
