"""Results: means with confidence intervals, and one tidy table with a row for every measure of every cell.

The statistics are only those that a comparison of schedulers needs [1]_, section 5.1. The table is a CSV file that grows cell
by cell.

A cell's rows are appended in a single write, so the table stays readable whenever the program stops; a cell that was cut off
is played again. A file name that ends in .parquet selects that format (`pip install pyarrow`), which is written at the end;
until then the rows are in a CSV file beside it.

.. [1] Hall, Rosenberg, Venkataramani (2006), A comparison of dag-scheduling strategies for Internet-based computing.
"""

import csv
import io
import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eligo.errors import FormatError, InputError

# Means


Floats = NDArray[np.float64]

SURE = 0.95
NEARLY_NORMAL = 100  # from this many degrees of freedom a series for Student's distribution is exact enough


class Mean(NamedTuple):
    """The mean of several runs, and its 95 % confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        margin = f" ± {_digits(self.high - self.value, 2)}" if self.high > self.value else ""
        return f"{_digits(self.value, 4)}{margin}"


def _digits(value: float, most: int) -> str:
    """A number with at most this many digits, or all digits before the point.

    >>> _digits(3.14159, 4), _digits(99.9, 2), _digits(12345.6, 4)
    ('3.142', '100', '12,346')
    """
    return f"{value:.{most}g}" if abs(value) < 10**most - 0.5 else f"{value:,.0f}"


def mean_of(values: ArrayLike, together: int = 1) -> Mean:
    """The mean of the values with its interval, wide enough that *together* such intervals all hold in 95 % of cases.

    >>> print(mean_of([1.0, 2.0, 3.0]))
    2 ± 2.5
    """
    runs = np.asarray(values, np.float64)
    deviation = float(runs.std(ddof=1)) if len(runs) > 1 else 0.0
    return mean_with(float(runs.mean()), deviation, len(runs), together)


def mean_with(value: float, deviation: float, runs: int, together: int = 1) -> Mean:
    """A mean with its interval, from the standard deviation of its runs; a single run gets a margin of 0."""
    margin = student(runs - 1, together) * deviation / math.sqrt(runs) if runs > 1 else 0.0
    return Mean(value, value - margin, value + margin)


@lru_cache(maxsize=256)
def student(freedom: int, together: int = 1) -> float:
    """The number of deviations that cover 95 % of Student's distribution with these degrees of freedom.

    With *together* intervals, all of them hold in at least 95 % of cases (Bonferroni).

    >>> [round(student(k), 3) for k in (1, 5, 49, 1000)], round(student(49, 15), 3)
    ([12.706, 2.571, 2.01, 1.962], 3.086)
    """
    chance = (1 - SURE) / together
    if freedom < NEARLY_NORMAL:
        return _student(freedom, chance)
    z = NormalDist().inv_cdf(1 - chance / 2)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3


def _student(freedom: int, chance: float) -> float:
    """Compute it by bisection of the angle whose tangent is t / sqrt(freedom), for which the distribution is a finite sum."""
    low, high = 0.0, math.pi / 2
    for _ in range(60):
        angle = (low + high) / 2
        odd = freedom % 2
        term = total = 0.0 if freedom == 1 else math.cos(angle) if odd else 1.0
        for k in range(2 + odd, freedom - 1, 2):
            term *= math.cos(angle) ** 2 * (k - 1) / k
            total += term
        within = math.sin(angle) * total
        within = (angle + within) * 2 / math.pi if odd else within
        low, high = (angle, high) if within < 1 - chance else (low, angle)
    return math.sqrt(freedom) * math.tan(low)


def ratio_of(values: ArrayLike, base: ArrayLike, together: int = 1) -> Mean:
    """The ratio of the means of paired runs, with its interval (first order).

    >>> ratio_of([2.0, 4.0, 6.0], [1.0, 2.0, 3.0])
    Mean(value=2.0, low=2.0, high=2.0)
    """
    over, under = np.asarray(values, np.float64), np.asarray(base, np.float64)
    ratio = float(over.mean() / under.mean())
    spread = mean_of((over - ratio * under) / under.mean(), together)
    margin = spread.high - spread.value
    return Mean(ratio, ratio - margin, ratio + margin)


# The table


class CellKey(NamedTuple):
    """The identity of a cell; `fingerprint` changes if the dag or the order behind the names changes."""

    dag: str
    fingerprint: str
    scheduler: str
    game: str
    setting: str
    seed: int
    runs: int


@dataclass(frozen=True, kw_only=True)
class Record:
    """A row: the mean and standard deviation of one measure over a cell's runs that ended, None if none did.

    `parts` are the means of at most `PARTS` consecutive groups of runs of equal length (single runs if there are at most
    `PARTS`), None for a group in which no run ends. All schedulers have the same clients in run k, so two of them are
    compared part by part.
    """

    dag: str
    fingerprint: str
    tasks: int
    scheduler: str
    game: str
    setting: str
    seed: int
    runs: int
    measure: str
    mean: float | None
    deviation: float | None
    #: the number of runs that never end
    endless: int
    parts: tuple[float | None, ...]

    @property
    def key(self) -> CellKey:
        """The key of the row's cell."""
        return CellKey(*(getattr(self, name) for name in CellKey._fields))


PARTS = 100
COLUMNS = tuple(field.name for field in fields(Record))
COLUMNS_BEFORE = COLUMNS[: COLUMNS.index("endless")]  # of older versions
PARQUET, WAITING = ".parquet", ".waiting.csv"


def record_of(key: CellKey, tasks: int, measure: str, values: Floats) -> Record:
    """A cell's row for one measure, from its values run by run; a run never ends if its value is not finite."""
    ended = values[np.isfinite(values)]
    cuts = np.linspace(0, len(values), min(PARTS, len(values)) + 1).astype(int).tolist()
    return Record(
        **key._asdict(), tasks=tasks, measure=measure, mean=float(ended.mean()) if len(ended) else None,
        deviation=(float(ended.std(ddof=1)) if len(ended) > 1 else 0.0) if len(ended) else None,
        endless=len(values) - len(ended), parts=tuple(_part(values[begin:end]) for begin, end in pairwise(cuts)),
    )  # fmt: skip


def _part(values: Floats) -> float | None:
    """The mean of the runs that end, rounded to seven digits as in the file, to keep the file small."""
    ended = values[np.isfinite(values)]
    return float(f"{ended.mean():.7g}") if len(ended) else None


class Results:
    """The finished cells of an experiment, stored in a file if one is given.

    *complete* is the number of rows that a cell of each game has; cells with another number were cut off and are dropped.
    """

    def __init__(self, path: str | None, complete: dict[str, int]) -> None:
        self.path, self.complete = path, complete
        self.cells: dict[CellKey, list[Record]] = {}
        self._journal = None if path is None else path + WAITING if path.endswith(PARQUET) else path
        if path is not None and path.endswith(PARQUET):
            _check_parquet()  # fail before anything is played
        for file in dict.fromkeys((path, self._journal)):
            if file is not None and os.path.exists(file) and os.path.getsize(file):
                self._take(_read_parquet(file) if file.endswith(PARQUET) else read_records(file))
        if self._journal is not None and os.path.exists(self._journal):
            self._rewrite(self._journal)  # without cells that were cut off

    def _take(self, records: Iterable[Record]) -> None:
        cells: dict[CellKey, list[Record]] = {}
        for record in records:
            cells.setdefault(record.key, []).append(record)
        self.cells |= {key: rows for key, rows in cells.items() if len(rows) == self.complete.get(key.game)}

    def add(self, records: Sequence[Record]) -> None:
        """Add a finished cell; its rows are appended to the file in one write."""
        self.cells[records[0].key] = list(records)
        if self._journal is None:
            return
        head = [] if os.path.exists(self._journal) else [COLUMNS]
        _append(self._journal, _csv([*head, *map(_row, records)]))

    def finish(self, order: Iterable[CellKey]) -> list[Record]:
        """Write the file and return the rows of these cells in this order; rows of other experiments follow in the file."""
        wanted = dict.fromkeys(order)
        rest = [key for key in self.cells if key not in wanted]
        self.cells = {key: self.cells[key] for key in (*wanted, *rest)}
        if self.path is not None and self._journal is not None:
            if self.path.endswith(PARQUET):
                _write_parquet(self.path, self.rows())
                if os.path.exists(self._journal):
                    os.remove(self._journal)
            else:
                self._rewrite(self.path)
        return [record for key in wanted for record in self.cells[key]]

    def rows(self) -> list[Record]:
        """All rows."""
        return [record for records in self.cells.values() for record in records]

    def _rewrite(self, path: str) -> None:
        replace_file(path, _csv([COLUMNS, *map(_row, self.rows())]).encode())


def read_records(path: str) -> list[Record]:
    """The rows of a CSV file; an incomplete last line is skipped."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    rows = csv.reader(io.StringIO(text[: text.rfind("\n") + 1]))
    _check_head(next(rows, ()), path)
    return [_record(row, path, rows.line_num) for row in rows if row]


def _check_head(names: Iterable[str], path: str) -> None:
    if tuple(names) == COLUMNS_BEFORE:
        raise FormatError("this file has results of an older version without single runs (give another file)", path)
    if tuple(names) != COLUMNS:
        raise FormatError("not a table of results (give another file)", path, 1)


def _record(row: Sequence[str], path: str, line: int) -> Record:
    try:
        words: dict[str, Any] = dict(zip(COLUMNS, row, strict=True))
        return Record(**{name: KINDS.get(name, str)(word) for name, word in words.items()})
    except ValueError:
        raise FormatError("not a row of results", path, line) from None


def _number(word: str) -> float | None:
    return float(word) if word else None


def _parts(words: str) -> tuple[float | None, ...]:
    return tuple(None if word == NO_END else float(word) for word in words.split())


NO_END = "-"
KINDS: dict[str, Callable[[str], Any]] = {
    "tasks": int, "seed": int, "runs": int, "mean": _number, "deviation": _number, "endless": int, "parts": _parts,
}  # fmt: skip


def _row(record: Record) -> tuple[object, ...]:
    """The fields of a record in a CSV file; None is an empty field."""
    parts = " ".join(NO_END if part is None else f"{part:.7g}" for part in record.parts)
    return (*astuple(record)[:-1], parts)


def replace_file(path: str, data: bytes) -> None:
    """Write a file atomically."""
    part = f"{path}.part"
    try:
        with open(part, "wb") as file:
            file.write(data)
        os.replace(part, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {(error.strerror or str(error)).lower()}") from None


def _append(path: str, text: str) -> None:
    try:
        with open(path, "ab", buffering=0) as file:
            file.write(text.encode())
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {(error.strerror or str(error)).lower()}") from None


def _csv(rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _check_parquet() -> None:
    from eligo.interop.pyarrow import check_pyarrow

    check_pyarrow()


def _read_parquet(path: str) -> list[Record]:
    from eligo.interop.pyarrow import read_rows

    names, rows = read_rows(path)
    _check_head(names, path)
    return [Record(**(row | {"parts": tuple(row["parts"])})) for row in rows]


def _write_parquet(path: str, records: Sequence[Record]) -> None:
    from eligo.interop.pyarrow import table_bytes

    columns = {name: [getattr(record, name) for record in records] for name in COLUMNS}
    replace_file(path, table_bytes(columns | {"parts": [list(record.parts) for record in records]}))
