"""The state of a workflow as one document, which the live page, the report and the terminal show."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from itertools import groupby, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.errors import counted
from eligo.estimates import lasting
from eligo.execution import ELIGIBLE
from eligo.pages.blame import Blame, tally_of
from eligo.pages.choices import fifo_curve, order_words
from eligo.pages.lanes import busy_share
from eligo.pages.watched import WENT_WELL, Watched, Worker
from eligo.running.states import BAD, BLOCKED, DONE, PENDING, READY, RETRYING, RUNNING, time_left
from eligo.work.attempts import Lease

MOST_COLUMNS = 480  # of a curve
MOST_RUNNING, MOST_RECENT, MOST_HELD, MOST_NAMED, MOST_CAUSES = 100, 20, 20, 10, 50
MOST_READ = 200  # failed tasks; with more of them, their output is not read
MOST_LINES = 3  # of a failure's output in a short form
ROUNDED = 10  # seconds: the idle time is rounded down to these, so that the sentence seldom changes
LONG_IDLE, MOST_COUNTED = 10.0, 10_000  # seconds after which idle workers are mentioned; tasks whose kinds are counted
MOST_KINDS = 3  # kinds in that sentence
#: states of workflows in words, where their names are not enough; and how a workflow in each final state has ended
STATE_WORDS = {"failed": "ended with failures", "stopped": "stopped, not running", "held": "paused"}
ENDED = {"cancelled": "cancelled", "failed": "ended", "stopped": "stopped", "done": "ended"}
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+")


def view(watched: Watched, who: str = "", scopes: frozenset[str] = frozenset(), every: bool = False) -> dict[str, Any]:
    """The state of a workflow, for a user with this name and these rights; *every*: with all tasks in long lists."""
    watched.ready.follow()
    overview, curve, disk = summary(watched), curve_of(watched), watched.disk
    return overview | {
        "busy": busy_share(watched), "attempts": len(watched.attempts), **watched.tallies, "curve": curve,
        "clients": clients(watched), "failures": failures(watched, every), "failures_total": overview["counts"][BAD],
        "retrying": retries(watched, every), "running": running(watched, every), "recent": recent(watched),
        "interrupted": _labels(watched, watched.interrupted), "unmet": list(watched.unmet),
        "order": {
            "words": order_words(watched, curve, overview["counts"])
            + [f"Files: {disk}."] * (disk is not None)
            + [overview["starving"]] * bool(overview["starving"])
        },
        "disk": None if disk is None else disk._asdict(),
        "can": watched.may(who, scopes),
    }  # fmt: skip


def summary(watched: Watched) -> dict[str, Any]:
    """The part of a view that is quick to make: the progress, the rate, and the estimated time left."""
    counts, remaining, spans = watched.counts, watched.remaining, watched.spans
    document = {
        "kind": "run", "workflow": watched.id, "title": watched.title, "state": watched.status,
        "source": watched.source, "under_way": watched.under_way, "now": watched.at,
        "began": spans[0][0] if spans else watched.at,
        "ended": None if watched.under_way or not spans else spans[-1][1], "seconds": watched.seconds,
        "policy": watched.policy, "engine": watched.engine, "tasks": len(watched.flow),
        "arcs": watched.flow.dag.arc_count, "counts": counts, "rate": watched.rate,
        "left": None if remaining is None else list(remaining), "left_words": time_left(remaining),
        "workers": watched.present,
        "from_cache": watched.from_cache, "starving": starving(watched),
    }  # fmt: skip
    return document | {"headline": headline(document)}


def starving(watched: Watched) -> str:
    """Which workers have been idle for how long, and why, in a sentence; empty if none are, or not for long.

    They count as idle since the last attempt ended or began.
    """
    idle = watched.present - len(watched.trying)
    if idle < 1 or watched.status != RUNNING or not watched.trying or not len(watched.attempts):
        return ""
    since = max(watched.attempts.latest, default=watched.at)
    since = max(since, *(one.since for one in watched.trying.values()))
    if watched.at - since < LONG_IDLE:
        return ""
    ready = len(watched.execution.eligible)
    tasks = watched.execution.numbers(ELIGIBLE) if ready else watched.trying
    kinds = [kind for kind, _ in Counter(watched.kinds[v] for v in islice(tasks, MOST_COUNTED)).most_common(MOST_KINDS)]
    why = f"only {', '.join(kinds)} is ready, which does not fit" if ready else f"all else waits for {', '.join(kinds)}"
    return (
        f"{counted(idle, 'worker')} idle for {lasting(ROUNDED * int((watched.at - since) // ROUNDED))}, because {why}."
    )


def headline(view: Mapping[str, Any]) -> str:
    """The progress and the estimated time left, or how it ended: "292 of 400 tasks done, 8 running; 6 s to 20 s left"."""
    counts, tasks, end = view["counts"], view["tasks"], ENDED.get(view["state"])
    done, cached = counts.get(DONE, 0), [f"{view['from_cache']:,} from the cache"] if view.get("from_cache") else []
    if end and done == tasks:
        subject = "The only task is" if tasks == 1 else f"All {tasks:,} tasks"
        return ", ".join([f"{subject} done in {lasting(view['seconds'])}", *cached])
    states = (BAD, BLOCKED) if end else (RUNNING, BAD, BLOCKED)
    parts = [
        f"{done:,} of {counted(tasks, 'task')} done",
        *cached,
        *(f"{counts[k]:,} {k}" for k in states if counts.get(k)),
    ]
    if end:
        rest = f"{end} after {lasting(view['seconds'])}"
    else:
        rest = "paused" if view["state"] in {"paused", "held"} else time_left(view["left"])
    return f"{', '.join(parts)}; {rest}"


def end_headline(counts: Mapping[str, int], tasks: int, seconds: float, from_cache: int = 0) -> str:
    """The headline of a run that has ended, from the number of tasks in each state, and of those from a cache.

    >>> end_headline({"done": 4}, 4, 2.5), end_headline({"done": 2, "failed": 1, "blocked": 1}, 4, 75.0)
    ('All 4 tasks done in 2.5 s', '2 of 4 tasks done, 1 failed, 1 blocked; ended after 1 min 15 s')
    >>> end_headline({"done": 2, "failed": 1}, 4, 2.5)
    '2 of 4 tasks done, 1 failed; stopped after 2.5 s'
    """
    settled = sum(counts.get(state, 0) for state in (DONE, BAD, BLOCKED))
    state = "stopped" if settled < tasks else "done" if counts.get(DONE, 0) == tasks else "failed"
    return headline({"counts": counts, "tasks": tasks, "state": state, "seconds": seconds, "from_cache": from_cache})


def count_words(counts: Mapping[str, int]) -> str:
    """The number of tasks in each state that has any.

    >>> count_words({"done": 1200, "failed": 0, "ready": 3})
    '1,200 done, 3 ready'
    """
    return ", ".join(f"{count:,} {state}" for state, count in counts.items() if count)


#: the keys of a view that its short form has too; and the counts among its keys, with their names in schema 1
SHORT = ("state", "under_way", "tasks", "counts")
SHORT_COUNTS = {
    "done": DONE, "ready": READY, "pending": PENDING, "blocked": BLOCKED, "retrying": RETRYING,
    "waiting": PENDING, "futile": BLOCKED, "again": RETRYING, "failed": BAD,
}  # fmt: skip


def status_document(view: Mapping[str, Any]) -> dict[str, Any]:
    """The short form of a view, for `eligo status --json`."""
    running = [
        {
            "task": one["task"], "attempt": one["attempt"], "worker": one["client"],
            "seconds": max(0.0, view["now"] - one["since"]),
        }
        for one in view["running"]
    ]  # fmt: skip
    causes = view["failures"]
    return {
        "name": view["title"],
        **{key: view[key] for key in SHORT},
        **{key: view["counts"][state] for key, state in SHORT_COUNTS.items()},
        "running": running,
        **{key: view[key] for key in ("interrupted", "seconds", "left", "policy", "workers", "engine")},
        "from_cache": view.get("from_cache", 0),
        "disk": view.get("disk"),
        "starving": view.get("starving", ""),
        "failures": [{key: one[key] for key in ("cause", "count", "tasks")} for one in causes],
        "causes": [
            {"failure": one["cause"], "tasks": one["tasks"], "lines": one["tail"][-MOST_LINES:], "log": one["log"]}
            for one in causes
        ],
    }


# The curve


class Sampled:
    """A curve of many points in a few hundred columns: the mean, least and most of each, so that no peak is lost.

    >>> columns = Sampled(5, 2)
    >>> columns.starts.tolist(), columns.sampled
    ([0, 2], True)
    >>> columns.line(np.array([1, 3, 2, 2, 8]))
    {'y': [2.0, 4.0], 'least': [1, 2], 'most': [3, 8]}
    >>> Sampled(3, 9).line(np.array([1, 3]))
    {'y': [1, 3], 'least': None, 'most': None}
    """

    def __init__(self, points: int, most: int) -> None:
        self.points, self.count = points, min(points, most)
        self.sampled = points > most

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The first point of each column."""
        return np.arange(self.count, dtype=np.int64) * self.points // max(1, self.count)

    def _starts_within(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.starts[: int(np.searchsorted(self.starts, len(values), "left"))]

    def least(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """The least value of each column, as far as there are values."""
        return np.minimum.reduceat(values, self._starts_within(values)) if len(values) else values

    def most(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """The largest value of each column, as far as there are values."""
        return np.maximum.reduceat(values, self._starts_within(values)) if len(values) else values

    def line(self, values: NDArray[np.int64]) -> dict[str, Any]:
        """Values, one for each point as far as they go, in the page's form."""
        if not self.sampled or not len(values):
            return {"y": values.tolist(), "least": None, "most": None}
        starts = self._starts_within(values)
        sizes = np.diff(np.append(starts, len(values)))
        return {
            "y": np.round(np.add.reduceat(values, starts) / sizes, 2).tolist(),
            "least": self.least(values).tolist(),
            "most": self.most(values).tolist(),
        }


def curve_of(watched: Watched) -> dict[str, Any]:
    """The number of tasks that could run after each finished one: observed, planned, at most, and under fifo."""
    size = len(watched.flow)
    columns = Sampled(size + 1, MOST_COLUMNS)
    ready_counts = np.array(watched.ready.counts, np.int64)
    plan, bound = watched.planned
    lines = {"seen": ready_counts, "plan": plan, "bound": bound, "fifo": fifo_curve(watched, ready_counts)}
    until = max(1, len(ready_counts) - 1)
    curve = curve_document(columns, lines, until, starved(watched, columns, ready_counts))
    grown = bool(watched.execution.additions)
    remark = "The plan covers only the original tasks." if grown else "No plan is available for this policy."
    return curve | ({} if plan is not None else {"remark": remark})


def curve_document(
    columns: Sampled, lines: Mapping[str, NDArray[np.int64] | None], until: int, starved: Collection[object] = ()
) -> dict[str, Any]:
    """Lines in the page's form, and the means of their first values; *starved* is drawn below them."""
    averages = {name: None if line is None else round(float(line[:until].mean()), 2) for name, line in lines.items()}
    drawn = {name: None if line is None else columns.line(line) for name, line in lines.items()}
    first = {"steps": columns.starts.tolist(), "lines": drawn, "starved": list(starved)}
    return first | {"averages": averages, "sampled": columns.sampled, "remark": ""}


def starved(watched: Watched, columns: Sampled, ready_counts: NDArray[np.int64]) -> list[list[int]]:
    """The ranges of steps in which fewer tasks could run than there were workers, although enough tasks remained."""
    least, size = columns.least(ready_counts), len(watched.flow)
    starts = columns.starts[: len(least)]
    present = _present(watched, starts)
    hungry = (least < present) & (size - starts >= present) & (starts < len(ready_counts) - 1)
    ends = np.append(columns.starts, size + 1)[1 : len(least) + 1]
    spans, place = [], 0
    for hunger, group in groupby(hungry.tolist()):
        long = len(list(group))
        if hunger:
            spans.append([int(starts[place]), int(min(ends[place + long - 1], len(ready_counts) - 1))])
        place += long
    return spans


def _present(watched: Watched, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of workers after each of these numbers of finished tasks."""
    attempts, order = watched.attempts, watched.ready.order
    rows, when = attempts.rows, list[float]()
    for step in starts.tolist():
        place = attempts.last.get(order[step - 1]) if step else None
        when.append(float(rows["ended"][place]) if place is not None else (when[-1] if when else 0.0))
    alive = {worker.client for worker in watched.workers if worker.alive}
    first = np.sort(np.array(attempts.first))
    latest = np.sort(
        [float("inf") if name in alive else end for name, end in zip(attempts.clients, attempts.latest, strict=True)]
    )
    times = np.maximum.accumulate(np.array(when)) if when else np.zeros(0)
    return np.asarray(np.searchsorted(first, times, "right") - np.searchsorted(latest, times, "left"), np.int64)


# Workers


def clients(watched: Watched) -> list[dict[str, Any]]:
    """The workers, those with problems first."""
    holds: dict[str, list[Lease]] = {}
    for trying in watched.holding.values():
        holds.setdefault(trying.client, []).append(trying)
    blame = Blame(watched)
    rows = [_client(watched, worker, holds.get(worker.client, []), blame) for worker in watched.workers]
    return sorted(rows, key=lambda one: (not one["bad"], not one["alive"], one["name"]))


def _client(watched: Watched, worker: Worker, holds: list[Lease], blame: Blame) -> dict[str, Any]:
    tally = tally_of(watched, worker, len(holds))
    remark = blame.remark(worker, tally)
    held = [
        {"task": watched.labels[one.task], "since": one.since, "attempt": one.attempt}
        for one in sorted(holds, key=lambda one: one.since)[:MOST_HELD]
    ]
    return {
        "client": worker.client, "name": worker.name, "seen": worker.seen, "alive": worker.alive,
        "approved": worker.approved, "speed": blame.speeds.get(worker.client), "quota": worker.quota,
        "done": tally.done, "failed": tally.failed, "lost": tally.lost, "paused": worker.paused, "held": len(holds),
        "holds": held, "bad": bool(remark), "remark": remark,
    }  # fmt: skip


# Tasks


def running(watched: Watched, every: bool = False) -> list[dict[str, Any]]:
    """The running tasks, the longest running first, and those that are *assigned* to a worker and not started yet."""
    attempts = sorted(watched.holding.values(), key=lambda one: one.since)[: None if every else MOST_RUNNING]
    tasks, flow = watched.flow.dag.tasks, watched.flow
    return [
        {
            "task": watched.labels[one.task], "client": watched.name_of(one.client), "since": one.since,
            "attempt": one.attempt, "kind": watched.kinds[one.task],
            "expected": flow.task(tasks[one.task]).seconds, "assigned": one.task not in watched.trying,
        }
        for one in attempts
    ]  # fmt: skip


def recent(watched: Watched) -> list[dict[str, Any]]:
    """The attempts that ended last."""
    attempts, size, rows = watched.attempts, len(watched.attempts), []
    for place in range(size - 1, max(-1, size - 1 - MOST_RECENT), -1):
        row = attempts.rows[place]
        client = attempts.clients[row["client"]]
        failure = None if row["outcome"] == WENT_WELL else attempts.failures.get(place, "no longer needed")
        took = max(0.0, float(row["ended"] - row["began"]))
        rows.append({
            "task": watched.labels[row["task"]], "client": watched.name_of(client), "ended": float(row["ended"]),
            "took": took, "failure": failure,
        })  # fmt: skip
    return rows


def failures(watched: Watched, every: bool = False) -> list[dict[str, Any]]:
    """The causes of permanent failures, most frequent first; tasks share one if their last lines differ only in numbers."""
    return _causes(watched, watched.failed_for(), every)


def retries(watched: Watched, every: bool = False) -> list[dict[str, Any]]:
    """The causes of the last failures of tasks that will be retried."""
    causes: dict[str, list[int]] = {}
    for v in sorted(watched.again):
        causes.setdefault(watched.failure(v), []).append(v)
    return _causes(watched, causes, every)


def _causes(watched: Watched, causes: Mapping[str, Collection[int]], every: bool) -> list[dict[str, Any]]:
    named = None if every else MOST_NAMED
    ranked = sorted(_alike(watched, causes), key=lambda group: (-len(group[1]), next(iter(group[1]))))
    groups = [(cause, tasks, last_lines(watched, next(iter(tasks)))) for cause, tasks in ranked[:MOST_CAUSES]]
    rest = [v for _, tasks in ranked[MOST_CAUSES:] for v in tasks]
    groups += [(f"{len(ranked) - MOST_CAUSES:,} other causes", rest, [])] if rest else []
    return [
        _cause(watched, cause, tasks, tail) | {"tasks": _labels(watched, islice(tasks, named))}
        for cause, tasks, tail in groups
    ]


def _alike(watched: Watched, causes: Mapping[str, Collection[int]]) -> list[tuple[str, Collection[int]]]:
    """The causes by their last lines too, and the tasks of each; if many tasks failed, their output is not read."""
    if sum(map(len, causes.values())) > MOST_READ:
        return list(causes.items())
    groups: dict[tuple[str, str], list[int]] = {}
    for cause, tasks in causes.items():
        for v in sorted(tasks):
            tail = last_lines(watched, v)
            groups.setdefault((cause, without_numbers(tail[-1]) if tail else ""), []).append(v)
    return [(cause, tasks) for (cause, _), tasks in groups.items()]


def without_numbers(line: str) -> str:
    """A line with its numbers masked, so that failures that differ only in numbers have the same cause."""
    return _NUMBER.sub("#", line)


def _cause(watched: Watched, cause: str, tasks: Collection[int], tail: list[str]) -> dict[str, Any]:
    attempts = watched.attempts
    who = Counter(
        attempts.clients[attempts.rows["client"][place]]
        for v in islice(tasks, 1_000)
        for place in attempts.of(v)
        if place in attempts.failures
    )
    return {
        "cause": cause, "count": len(tasks), "tail": tail, "attempts": max(len(attempts.of(v)) for v in tasks),
        "log": _log(watched, next(iter(tasks))) if tail else None,
        "clients": [[watched.name_of(client), count] for client, count in who.most_common(5)],
    }  # fmt: skip


def last_lines(watched: Watched, v: int) -> list[str]:
    """The last lines of output of a task's last failed attempt, or of its last attempt."""
    attempt = last_failure(watched, v)
    return watched.tail(v, attempt) if attempt else []


def last_failure(watched: Watched, v: int) -> int:
    """The number of a task's last failed attempt, or of its last attempt; 0 if there was none."""
    attempts = watched.attempts
    tries = attempts.of(v)
    failed = [place for place in tries if place in attempts.failures] or tries
    return int(attempts.rows["attempt"][failed[-1]]) if failed else 0


def _labels(watched: Watched, tasks: Iterable[int]) -> list[str]:
    return [watched.labels[v] for v in tasks]


def _log(watched: Watched, v: int) -> str | None:
    """The file with the last lines of output of a failed task."""
    attempt = last_failure(watched, v)
    err = bool(watched.printed(v, attempt, True).strip())
    return watched.log(v, attempt, err) or None
