"""Whether another order would have helped: whether there was a choice, and what first come, first served does."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.errors import counted
from eligo.pages.watched import WENT_WELL, Watched
from eligo.running.states import BLOCKED, Curve
from eligo.theory.eligibility import counts_without

SHARE, LEAST = 0.1, 0.005  # a shorter wait is none: a share of the median run time, but at least these seconds
NO_CHOICE = "No: every ready task began at once, so the order made no difference."


def had_choice(watched: Watched) -> bool:
    """Whether a ready task has waited, with all workers busy, while another one was started."""
    rows, began = watched.attempts.rows, begins_of(watched)
    if not len(rows):
        return False
    ready = ready_times_of(watched)
    took, half = rows["ended"] - rows["began"], len(rows) // 2
    least = max(LEAST, SHARE * float(np.partition(took, half)[half]))
    late = np.minimum(began, watched.at) - ready > least
    starts = _starts_when_full(watched, np.sort(began[np.isfinite(began)]))
    others = np.searchsorted(starts, began[late], "left") - np.searchsorted(starts, ready[late], "left")
    return bool((others > 0).any())


def begins_of(watched: Watched) -> NDArray[np.float64]:
    """When the first attempt of each task began; infinite before."""
    rows, began = watched.attempts.rows, np.full(len(watched.flow), np.inf)
    np.minimum.at(began, rows["task"], rows["began"])
    for v, lease in watched.trying.items():
        began[v] = min(began[v], lease.since)
    return began


def ready_times_of(watched: Watched) -> NDArray[np.float64]:
    """When the last parent of each task ended; infinite before."""
    dag, rows = watched.flow.dag, watched.attempts.rows
    ended = np.full(len(dag), np.inf)
    good = rows[rows["outcome"] == WENT_WELL]
    ended[good["task"]] = good["ended"]
    ready = np.full(len(dag), watched.spans[0][0] if watched.spans else watched.at)
    inner = np.flatnonzero(dag.indegree)
    if len(inner):
        ready[inner] = np.maximum.reduceat(ended[dag.parent], dag.parent_ptr[inner])
    return ready


def _starts_when_full(watched: Watched, begins: NDArray[np.float64]) -> NDArray[np.float64]:
    """The begins of tasks after which no worker was free; all begins if it is not known what a worker can hold."""
    if watched.slots is None or any(any(watched.flow.column(name)) for name in ("cores", "memory", "resources")):
        return begins
    ends, running = watched.attempts.rows["ended"], [one.since for one in watched.trying.values()]
    tries = np.sort(np.concatenate([watched.attempts.rows["began"], running]))
    out = np.searchsorted(tries, begins, "right") - np.searchsorted(np.sort(ends), begins, "right")
    return begins[out >= watched.slots]


def fifo_curve(watched: Watched, counts: Curve) -> Curve:
    """First come, first served with the failures of the run, which had these numbers of ready tasks: at the same steps."""
    fifo, dag = watched.fifo, watched.flow.dag
    if not watched.attempts.failures:
        return fifo
    done = np.array(watched.ready.order, np.int32)
    rest = dag.order[~np.isin(dag.order, done)]
    unfailing = counts_without(dag, np.concatenate([done, rest]), watched.held)[: len(counts)]
    failed = counts[: len(unfailing)] - unfailing
    return fifo + np.pad(failed, (0, len(fifo) - len(failed)), "edge")


def order_words(watched: Watched, curve: Mapping[str, Any], counts: Mapping[str, int]) -> list[str]:
    """Whether another order would have helped, in sentences."""
    done = len(watched.ready.order)
    if not done:
        return ["No task is done yet, so the order cannot be assessed."]
    blocked = [f"Failed tasks block {counted(counts[BLOCKED], 'task')}, whatever the order."] * (counts[BLOCKED] > 0)
    if not had_choice(watched):
        return [NO_CHOICE, *_hunger_words(curve, done), *blocked]
    enough = ["There were always enough ready tasks for all workers."] if watched.attempts.clients else []
    return [*_average_words(curve["averages"]), *(_hunger_words(curve, done) or enough), *blocked]


def _average_words(averages: Mapping[str, Any]) -> list[str]:
    """The mean number of ready tasks, compared with first come, first served, and with the bound."""
    average, fifo, bound = (averages[name] for name in ("seen", "fifo", "bound"))
    more = 100 * (average / fifo - 1) if fifo else 0.0
    than = "as many as" if abs(more) < 0.5 else f"{abs(more):.0f} % {'more' if more > 0 else 'fewer'} than"
    sentences = [
        f"This order had {average:,.1f} tasks ready on average so far, {than} first come, first served ({fifo:,.1f})."
    ]
    if bound is not None:
        room = 100 * (bound / average - 1) if average else 0.0
        most = f"No order could have had more than {bound:,.1f} ({room:.1f} % more)."
        sentences.append("No other order could have had more." if room < 0.05 else most)
    return sentences


def _hunger_words(curve: Mapping[str, Any], done: int) -> list[str]:
    """For how long fewer tasks were ready than there were workers, if ever."""
    hungry = sum(end - begin for begin, end in curve["starved"])
    share = f"{100 * hungry / done:.0f} %" if 100 * hungry >= done else "less than 1 %"
    return [f"For {share} of the finished tasks, fewer tasks were ready than there were workers."] * (hungry > 0)
