"""The report of a run as a document: the same as the live page shows, and all that it would ask for."""

from typing import Any

from eligo.pages.folders import WatchedRun
from eligo.pages.tables import Query, stand, states_of, table
from eligo.pages.timelines import gantt
from eligo.pages.views import last_lines, view

MOST_LOGS = 1_000  # failed tasks whose last lines come with the page
MOST_BARS = 20_000


def run_document(run: WatchedRun) -> dict[str, Any]:
    """Everything that the page of a run shows."""
    run.foresight()()
    shown = view(run)
    logs = {run.labels[v]: {"log": last_lines(run, v)} for v in run.failed[:MOST_LOGS]}
    return {
        "kind": "run", "view": shown, "dag": run.drawing.document(states_of(run)), "gantt": gantt(run, most=MOST_BARS),
        "table": table(run, stand(run), Query(most=None)), "details": logs,
    }  # fmt: skip


def run_title(run: WatchedRun) -> str:
    """What the page of a run is called: the workflow, and how far it has come."""
    counts = run.counts
    return f"{run.title}: {counts['done']:,} of {len(run.flow):,} done"
