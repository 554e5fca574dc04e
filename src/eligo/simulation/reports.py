"""Reports as plain data: findings beside published values, tables, curves; the command prints, `eligo.plotting` draws them.

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
    """A published value and the value computed here."""

    what: str
    published: str
    ours: str
    #: None if there is nothing to compare
    agrees: bool | None = None
    #: why our value differs, or other remarks
    why: str = ""

    @property
    def answer(self) -> str:
        """Whether the values agree, as one word."""
        return "-" if self.agrees is None else "yes" if self.agrees else "NO"


@dataclass(frozen=True, kw_only=True)
class Table:
    """Text in rows and columns; the marked cells, (row, column), are highlighted."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    marked: frozenset[tuple[int, int]] = frozenset()


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
    findings: Sequence[Finding] = ()
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
        """The report as plain data for JSON, with the curves, so that other programs can draw the figures."""
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
