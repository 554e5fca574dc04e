"""Reports as pages: comparisons and fat tasks, section by section."""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from eligo.border import as_workflow
from eligo.clusters import FatTask
from eligo.errors import counted
from eligo.estimates import kind_of
from eligo.plotting.comparison import draw_clusters, draw_picture
from eligo.plotting.profiles import can_draw, svg_of
from eligo.simulation import Dealing
from eligo.simulation.reports import Panel, Picture, Report, Section, Table
from eligo.workflow import Workflow

Facts = Iterable[tuple[str, object]]
_NUMBER = re.compile(r"[*+×~·]?\s*-?[\d,]*\.?\d+\s*(?:%|M|s)?!?|[·~-]|no end|")
MOST_NAMES = 12  # of the tasks of a fat task
NOTES = "Notes"


def title_of(flow: Workflow) -> str:
    """The title of a workflow: its name, or the name of its file."""
    path = flow.origin.path if flow.origin else None
    return flow.name or (os.path.basename(path) if path else "A workflow")


def report_page(report: Report, facts: Facts = (), headline: Sequence[str] | None = None) -> dict[str, Any]:
    """The document of a report; by default its headline is the first answer of its sections."""
    answers = [section.answer for section in report.sections if section.answer]
    first = list(answers[:1] if headline is None else headline)
    notes = [Section(title=NOTES, words=[line.replace("* best", "★ best") for line in report.words])]
    return {
        "kind": "report",
        "title": report.title,
        "headline": first,
        "facts": [[name, value if isinstance(value, int | float) else str(value)] for name, value in facts],
        "sections": [_section(each, first) for each in (*report.sections, *(notes if report.words else []))],
    }


def _section(section: Section, headline: Sequence[str]) -> dict[str, Any]:
    """A section, without lines that repeat the headline."""
    panel_words = [panel.words for picture in section.pictures for panel in picture.panels if panel.words]
    return {
        "title": section.title,
        "words": [line for line in (section.answer, *section.words, *panel_words) if line and line not in headline],
        "tables": list(map(_table, (*section.tables, *section.details))),
        "figures": list(_figures(section)) if can_draw() else [],
    }


def figure_of(svg: str, title: str, alt: str) -> dict[str, str]:
    """A drawing as part of a document, without the preamble of a file."""
    return {"title": title, "svg": svg[svg.index("<svg") :], "alt": alt}


def _figures(section: Section) -> Iterator[dict[str, str]]:
    for picture in section.pictures:
        panels = [panel for panel in picture.panels if panel.curves]
        if panels:
            drawable = Picture(name=picture.name, title=picture.title, panels=panels, columns=picture.columns)
            yield figure_of(svg_of(draw_picture(drawable)), picture.title, "; ".join(map(_alt_text, panels)))
    for fat in section.fat_tasks.values():
        yield figure_of(svg_of(draw_clusters(section.flow, fat)), *_fat_caption(fat))


def _alt_text(panel: Panel) -> str:
    """The text for readers who do not see a panel: its curves, each with its first and last value."""
    ends = [
        f"{curve.label or 'a curve'} from {curve.y[0]:.4g} to {curve.y[-1]:.4g}" for curve in panel.curves if curve.y
    ]
    return f"{panel.title}: {panel.up} over {panel.across}, {', '.join(ends)}"


def _fat_caption(fat: FatTask | Dealing) -> tuple[str, str]:
    """The title of a picture of fat tasks, and its text for readers who do not see it."""
    if isinstance(fat, Dealing):
        return f"{counted(len(fat), 'fat task')} in their workflow", "each drawn as a box with its tasks"
    title = f"A fat task of {counted(len(fat), 'task')} in its workflow"
    return title, f"one box, {counted(fat.cut_arcs, 'arc')} from it, and beside it the remaining workflow"


# Tables


def _marked(word: str, mark: str | None) -> object:
    text = word.lstrip("*") if mark == "best" else word.strip()
    return {"text": text, "mark": mark} if mark and text else text


def _table(table: Table) -> dict[str, Any]:
    rows = [[_marked(word, table.marked.get((i, j))) for j, word in enumerate(row)] for i, row in enumerate(table.rows)]
    columns = [[row[j] for row in table.rows] for j in range(len(table.head))]
    numbers = [bool(cells) and all(_NUMBER.fullmatch(cell.strip()) for cell in cells) for cells in columns]
    return {"caption": table.title, "columns": list(table.head), "rows": rows, "numbers": numbers}


# Fat tasks


def cluster_report(flow: object, clusters: FatTask | Dealing) -> Report:
    """Fat tasks as a report: the picture, and a table of their contents."""
    workflow = as_workflow(flow)
    fats = [clusters] if isinstance(clusters, FatTask) else clusters.fat_tasks
    done = [len(clusters)] if isinstance(clusters, FatTask) else clusters.done
    rows = [
        _fat_row(workflow, number, fat, count) for number, (fat, count) in enumerate(zip(fats, done, strict=True), 1)
    ]
    head = ["fat task", "tasks", "kinds", "strategy", "cut arcs", "which"]
    table = Table(title="In the order of completion" if len(rows) > 1 else "", head=head, rows=rows)
    section = Section(title="Fat tasks", tables=[table], fat_tasks={"The workflow": clusters}, flow=workflow)
    return Report(title=title_of(workflow), sections=[section])


def _fat_row(flow: Workflow, number: int, fat: FatTask, done: int) -> list[str]:
    tasks = fat.tasks[:done]
    kinds = Counter(kind_of(flow.task(name)) for name in tasks)
    listed = ", ".join(f"{count:,} × {kind}" for kind, count in kinds.most_common())
    names = flow.dag.labelled().named(flow.dag.indices(tasks[:MOST_NAMES]))
    more = f" and {done - MOST_NAMES:,} more" if done > MOST_NAMES else ""
    return [f"{number:,}", f"{done:,}", listed, fat.strategy, f"{fat.cut_arcs:,}", ", ".join(map(str, names)) + more]
