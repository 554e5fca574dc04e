"""Results as plain data: findings beside published values, tables, curves; the command prints them, `eligo.plotting` draws.

A report has sections; a section has an answer, words, findings, tables and pictures; a picture has panels; a panel has
curves.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from eligo.clusters import FatTask
from eligo.simulation.deals import Dealing


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A published value and ours."""

    what: str
    published: str
    ours: str
    #: None where there is nothing to compare
    agrees: bool | None = None
    #: why ours differs, or what else must be known
    why: str = ""

    @property
    def answer(self) -> str:
        """Whether they agree, in a word."""
        return "-" if self.agrees is None else "yes" if self.agrees else "NO"


@dataclass(frozen=True, kw_only=True)
class Table:
    """Words in rows and columns; the marked cells, (row, column), stand out."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    marked: frozenset[tuple[int, int]] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Points, or a line through them; `low` and `high` are the ends of intervals where there are any."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    #: "line" (with a mark at every point), "points", "fit" (a thin line without marks)
    style: str = "line"
    #: which of the palette's colours
    colour: int = 0


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Curves over one pair of axes; `level` is a value to which the eye should compare, such as a ratio of 1.

    Where curves would show nothing there are none, and words instead.
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
    #: what a reader wants to know first
    answer: str = ""
    words: Sequence[str] = ()
    findings: Sequence[Finding] = ()
    tables: Sequence[Table] = ()
    #: tables for a page, which has room
    details: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()
    #: fat tasks to be drawn in their dags, alone or all that were dealt, by the names of their pictures
    fat_tasks: Mapping[str, FatTask | Dealing] = field(default_factory=dict)
    #: the workflow that they are of, where more is known than its dag
    flow: object = None


@dataclass(frozen=True, kw_only=True)
class Report:
    """What was found, section by section."""

    title: str
    words: Sequence[str] = ()
    sections: Sequence[Section] = field(default_factory=tuple)

    def findings(self) -> Iterator[Finding]:
        """All findings, in order."""
        return (finding for section in self.sections for finding in section.findings)

    def fat_tasks(self) -> Iterator[tuple[str, FatTask | Dealing]]:
        """All fat tasks to be drawn, in order."""
        return (pair for section in self.sections for pair in section.fat_tasks.items())

    def pictures(self) -> Iterator[Picture]:
        """All pictures, in order."""
        return (picture for section in self.sections for picture in section.pictures)

    def document(self) -> dict[str, Any]:
        """The report as plain data, fit for JSON; curves included, so that the figures can be drawn elsewhere."""
        return {"title": self.title, "words": list(self.words), "sections": [_plain(each) for each in self.sections]}


def _plain(section: Section) -> dict[str, Any]:
    return {
        "title": section.title,
        "answer": section.answer,
        "words": list(section.words),
        "findings": [asdict(finding) for finding in section.findings],
        "tables": [asdict(table) | {"marked": sorted(table.marked)} for table in (*section.tables, *section.details)],
        "pictures": [asdict(picture) for picture in section.pictures],
        "fat_tasks": {name: fat.document() for name, fat in section.fat_tasks.items()},
    }
