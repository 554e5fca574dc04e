"""Reports as plain data: words, tables, curves; the command prints, `eligo.plotting` draws them.

A report has sections; a section has an answer, words, tables and pictures; a picture has panels; a panel has curves.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from eligo.clusters import FatTask
from eligo.simulation.deals import Dealing


@dataclass(frozen=True, kw_only=True)
class Table:
    """Text in rows and columns; marked cells, (row, column), are highlighted: "best", "yes", "no", or "why" for a reason."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    marked: Mapping[tuple[int, int], str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Points, or a line through them; `low` and `high` are the ends of their intervals, if any."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    #: "line" (with a mark at every point), "points", "fit" (a thin line without marks)
    style: str = "line"
    #: index of the colour in the palette
    colour: int = 0


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Curves on one pair of axes; `level` is a reference value, such as a ratio of 1.

    If curves would show nothing, the panel has words instead.
    """

    title: str
    across: str = ""
    up: str = ""
    curves: Sequence[Curve] = ()
    words: str = ""
    logarithmic: bool = False
    level: float | None = None


@dataclass(frozen=True, kw_only=True)
class Picture:
    """Panels side by side, with the number per row; `name` is the name of its file."""

    name: str
    title: str
    panels: Sequence[Panel]
    columns: int = 2


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of a report."""

    title: str
    #: the main result in one sentence
    answer: str = ""
    words: Sequence[str] = ()
    tables: Sequence[Table] = ()
    #: further tables, for a page with more room
    details: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()
    #: fat tasks to be drawn in their dags, single ones or whole dealings, by the names of their pictures
    fat_tasks: Mapping[str, FatTask | Dealing] = field(default_factory=dict)
    #: the workflow of the fat tasks, if more than its dag is known
    flow: object = None


@dataclass(frozen=True, kw_only=True)
class Report:
    """The results, section by section."""

    title: str
    words: Sequence[str] = ()
    sections: Sequence[Section] = field(default_factory=tuple)
