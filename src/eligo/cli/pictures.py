"""Pictures and pages as the command writes them; where the page is not built, what to do about that."""

from collections.abc import Iterable, Sequence

from eligo.clusters import FatTask
from eligo.errors import NotBuiltError
from eligo.pages.built import ABSENT
from eligo.pages.html import save_page
from eligo.pages.plans import plan_page
from eligo.pages.reports import cluster_report, report_page
from eligo.planning import Plan
from eligo.plotting import draw_dealing, draw_fat_task, save_explanation, save_figure
from eligo.plotting.comparison import save_report
from eligo.plotting.report import SUFFIXES, picture_suffix
from eligo.simulation import Dealing
from eligo.simulation.reports import Report
from eligo.workflow import Workflow


def save_plan(plan: Plan, flow: Workflow, words: Sequence[str], output: str) -> bool:
    """Write why a plan is right; returns whether that was possible."""
    if is_page(output):
        return save_page(output, lambda: plan_page(plan, flow, words))
    save_explanation(plan, flow, output)
    return True


def save_comparison(report: Report, output: str, headline: Sequence[str] | None = None) -> bool:
    """Write a report; returns whether that was possible."""
    if is_page(output):
        return save_page(output, lambda: report_page(report, (), headline))
    save_report(report, output)
    return True


def save_fat(
    flow: Workflow, clusters: FatTask | Dealing, output: str, headline: str, facts: Iterable[tuple[str, object]]
) -> bool:
    """Draw fat tasks, or write a page of them; returns whether that was possible."""
    if is_page(output):
        return save_page(output, lambda: report_page(cluster_report(flow, clusters), facts, [headline]))
    save_figure(
        draw_fat_task(flow, clusters) if isinstance(clusters, FatTask) else draw_dealing(flow, clusters), output
    )
    return True


def check_saved(output: str, saved: bool) -> None:
    """Raise an error where a page could not be written, which says how it can."""
    if not saved:
        raise NotBuiltError(f"cannot write {output}: {ABSENT}")


def is_page(output: str) -> bool:
    """Whether a picture's name is that of a page; refused where it is no picture's name."""
    return picture_suffix(output, SUFFIXES) == ".html"
