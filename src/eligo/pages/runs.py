"""The report of a workflow as a document: the same as the live page shows, and all that it would ask for."""

from typing import Any

from eligo.pages.chains import chain_words
from eligo.pages.tables import Query, Stand, stand, table
from eligo.pages.timelines import gantt
from eligo.pages.views import last_lines, view
from eligo.pages.watched import Watched

MOST_LOGS = 1_000  # failed tasks whose last lines come with the page
MOST_BARS = 20_000


def run_document(watched: Watched) -> dict[str, Any]:
    """Everything that the page of a run shows."""
    return completed(watched, view(watched), stand(watched))


def completed(watched: Watched, summary: dict[str, Any], stood: Stand) -> dict[str, Any]:
    """The same from its view and its tasks as they stood; it may be called in another thread."""
    summary["order"]["words"] += chain_words(watched)
    logs = {watched.labels[v]: {"log": last_lines(watched, v)} for v in watched.failed[:MOST_LOGS]}
    return {
        "kind": "run", "title": watched.title, "headline": [summary["headline"]], "view": summary,
        "dag": watched.drawing.document(stood.states), "gantt": gantt(watched, most=MOST_BARS),
        "table": table(watched, stood, Query(most=None)), "details": logs,
    }  # fmt: skip
