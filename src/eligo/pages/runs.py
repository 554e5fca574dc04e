"""The report of a run as a document: the same as the live page shows, and all that it would ask for."""

from typing import Any

from eligo.pages.folders import WatchedRun
from eligo.pages.tables import Query, stand, states_of, table
from eligo.pages.timelines import gantt
from eligo.pages.views import last_lines, view
from eligo.running.looked import DONE

MOST_LOGS = 1_000  # failed tasks whose last lines come with the page
MOST_BARS = 20_000


def run_document(run: WatchedRun) -> dict[str, Any]:
    """Everything that the page of a run shows."""
    run.foresight()()
    shown = view(run)
    logs = {run.labels[v]: {"log": last_lines(run, v)} for v in run.failed[:MOST_LOGS]}
    return {
        "kind": "run", "title": run.title, "headline": [done_told(run)], "view": shown,
        "dag": run.drawing.document(states_of(run)), "gantt": gantt(run, most=MOST_BARS),
        "table": table(run, stand(run), Query(most=None)), "details": logs,
    }  # fmt: skip


def done_told(run: WatchedRun) -> str:
    """How far a run has come."""
    return f"{run.counts[DONE]:,} of {len(run.flow):,} done"
