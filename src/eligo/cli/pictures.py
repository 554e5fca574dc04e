"""Pictures and pages as the command writes them: the page where it is built, else a plain one, with a remark."""

from collections.abc import Iterable, Sequence

from eligo.clusters import FatTask
from eligo.pages.plans import plan_page
from eligo.pages.reports import cluster_report, judged
from eligo.pages.reports import report_page as report_document
from eligo.pages.writing import save_page
from eligo.planning import Plan
from eligo.plotting import draw_dealing, draw_fat_task, save_explanation, save_figure
from eligo.plotting.comparison import report_page, save_folder, save_report
from eligo.plotting.report import SUFFIXES, page, picture_suffix
from eligo.simulation import Dealing
from eligo.simulation.reports import Report
from eligo.workflow import Workflow


def save_plan(plan: Plan, flow: Workflow, words: Sequence[str], output: str) -> list[str]:
    """Write why a plan is right; returns what is to be said of it."""
    if not is_page(output):
        save_explanation(plan, flow, output, words)
        return []
    return save_page(output, lambda: plan_page(plan, flow, words), lambda: page(plan, flow, words))


def save_comparison(report: Report, output: str, headline: Sequence[str] | None = None) -> list[str]:
    """Write a report; returns what is to be said of it."""
    if not is_page(output):
        save_report(report, output)
        return []
    return save_page(output, lambda: report_document(report, (), headline), lambda: report_page(report))


def save_reproduction(report: Report, folder: str, name: str) -> tuple[list[str], list[str]]:
    """Write a report and its pictures into a folder; returns the files, and what is to be said of them."""
    remarks: list[str] = []
    files = save_folder(
        report, folder, name, lambda each, path: remarks.extend(save_comparison(each, path, judged(each)))
    )
    return files, remarks


def save_fat(
    flow: Workflow, found: FatTask | Dealing, output: str, headline: str, facts: Iterable[tuple[str, object]]
) -> list[str]:
    """Draw fat tasks, or write a page of them; returns what is to be said of it."""
    if not is_page(output):
        save_figure(draw_fat_task(flow, found) if isinstance(found, FatTask) else draw_dealing(flow, found), output)
        return []
    report = cluster_report(flow, found)
    return save_page(output, lambda: report_document(report, facts, [headline]), lambda: report_page(report))


def is_page(output: str) -> bool:
    """Whether a picture's name is that of a page; refused where it is no picture's name."""
    return picture_suffix(output, SUFFIXES) == ".html"
