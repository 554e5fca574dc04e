"""Findings: the values that a paper publishes, each beside the value computed here, as the first table of a section."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from eligo.simulation.reports import Report, Section, Table

HEAD = ("", "published", "ours", "agrees", "reason, or assessment")
MARKS = {True: "yes", False: "no"}


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
class Checked(Section):
    """A section with findings."""

    findings: Sequence[Finding] = ()

    def __post_init__(self) -> None:
        if self.findings:
            object.__setattr__(self, "tables", [table_of(self.findings), *self.tables])


def table_of(findings: Sequence[Finding]) -> Table:
    """The findings as a table."""
    rows = [[each.what, each.published, each.ours, each.answer, each.why] for each in findings]
    marked = {(i, 3): MARKS[each.agrees] for i, each in enumerate(findings) if each.agrees is not None}
    return Table(title="", head=HEAD, rows=rows, marked=marked | {(i, 4): "why" for i in range(len(rows))})


def findings_of(report: Report) -> Iterator[Finding]:
    """All findings of a report, in order."""
    return (each for section in report.sections if isinstance(section, Checked) for each in section.findings)


def document_of(report: Report) -> dict[str, Any]:
    """A report as plain data for JSON, with the curves, so that other programs can draw the figures."""
    return {"title": report.title, "words": list(report.words), "sections": list(map(_plain, report.sections))}


def _plain(section: Section) -> dict[str, Any]:
    findings = section.findings if isinstance(section, Checked) else ()
    tables = [*section.tables[bool(findings) :], *section.details]
    return {
        "title": section.title,
        "answer": section.answer,
        "words": list(section.words),
        "findings": [asdict(finding) for finding in findings],
        "tables": [asdict(table) | {"marked": sorted(table.marked)} for table in tables],
        "pictures": [asdict(picture) for picture in section.pictures],
        "fat_tasks": {name: fat.document() for name, fat in section.fat_tasks.items()},
    }
