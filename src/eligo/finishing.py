"""How early a workflow can end at best: a bound on the finish, with a certificate of four numbers.

Let r(v) and q(v) be the longest paths in seconds before and after task v, itself left out, and S the tasks with r(v) >= t and
q(v) >= u. On N workers of speed 1 the last task ends at T, and:

* *path*: T >= r(v) + s(v) + q(v) for every v;
* *work*: T >= t + u + the seconds of S / N, for no task of S begins before t, each ends at least u before T, and at most N
  run at once;
* *pigeonhole*: where S has more than j N tasks, T >= t + u + the j + 1 shortest among its j N + 1 longest, for one worker
  runs j + 1 of these one after another between t and T - u.

Where workers differ, the paths and the pigeonhole go by the fastest, the work by the sum of their speeds. The thresholds are
rounded down, so that what is claimed holds in exact arithmetic: `eligo.verifying.finishes` recomputes it so.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.border import as_workflow
from eligo.dag import Dag
from eligo.errors import InputError, is_amount, shorten
from eligo.estimating import estimate
from eligo.kernels import windows
from eligo.rows import Ints
from eligo.workflow import Workflow

Floats = NDArray[np.float64]

QUANTILES = 8  # of heads, and of tails, at which pigeonholes are looked for
ROUNDING = 1e-9  # as a share: far more than sums of seconds can be off


class FinishBound(NamedTuple):
    """No order can finish before `seconds` on these workers; the rest says why, and is what a checker needs."""

    seconds: float
    #: the speeds of the workers
    workers: tuple[float, ...]
    #: "path", "work" or "pigeonhole"
    rule: str
    #: the tasks meant cannot begin before t, and have u after them
    t: float
    u: float
    #: one worker runs j + 1 of them, where the rule is "pigeonhole"
    j: int
    #: how many tasks are meant, and how many seconds they take together
    tasks: int
    work: float

    def __str__(self) -> str:
        return f"no order can finish before {self.seconds:,.6g} s: {self.why()}"

    def why(self, told: Callable[[float], str] = "{:,.6g} s".format) -> str:
        """The reason in words; *told* says lengths of time."""
        match self.rule:
            case "path":
                return "the longest chain of tasks takes so long; more workers do not help"
            case "work":
                meant = f"{self.tasks:,} tasks, {told(self.work)} of work"
                return f"{meant}, cannot begin before {told(self.t)} and have {told(self.u)} after them"
            case _:
                workers = f"{len(self.workers):,} worker{'' if len(self.workers) == 1 else 's'}"
                return f"{self.tasks:,} tasks on {workers}: one worker gets {self.j + 1} of the longest"

    def document(self) -> dict[str, Any]:
        """The bound as plain data, fit for JSON."""
        return self._asdict()


def earliest_finish(flow: object, workers: int | Sequence[float]) -> FinishBound:
    """How early a workflow whose tasks' seconds are known can end at best, on so many workers or workers of these speeds.

    >>> from eligo.workflow import Task, Workflow
    >>> fork = Dag.from_parents({"a": [], "b": ["a"], "c": ["a"], "d": ["a"]})
    >>> timed = Workflow(fork, {name: Task(name=name, seconds=3.0) for name in "abcd"})
    >>> bound = earliest_finish(timed, 2)
    >>> round(bound.seconds, 6), bound.rule, bound.j
    (9.0, 'pigeonhole', 1)
    """
    known, speeds = as_workflow(flow), checked_workers(workers)
    return window_bound(known.dag, own_seconds(known), speeds)


def own_seconds(flow: Workflow) -> Floats:
    """How long every task runs, which must be known of each itself."""
    found = estimate(flow)
    for v in np.flatnonzero(~found.own)[:1]:
        name = shorten(flow.dag.tasks[v])
        unknown = f"how long {name!r} runs is not known, so nothing can be said of the finish"
        raise InputError(unknown).cured_by("history")
    return found.seconds


def checked_workers(workers: int | Sequence[float]) -> tuple[float, ...]:
    """The speeds of workers, from their number or as given."""
    if isinstance(workers, int) and not isinstance(workers, bool):
        workers = (1.0,) * min(workers, MOST_WORKERS + 1)
    try:
        speeds = tuple(workers)  # type: ignore[arg-type]
    except TypeError:
        raise InputError(f"workers are a number, or a speed for each, and {workers!r} is neither") from None
    if not speeds or len(speeds) > MOST_WORKERS or not all(is_amount(speed) and speed for speed in speeds):
        raise InputError(f"there must be from 1 to {MOST_WORKERS:,} workers, each of a speed above 0")
    return tuple(map(float, speeds))


MOST_WORKERS = 1_000_000


def window_bound(dag: Dag, seconds: Floats, speeds: tuple[float, ...]) -> FinishBound:
    """The best of the three rules."""
    if not len(dag):
        return FinishBound(0.0, speeds, "path", 0.0, 0.0, 0, 0, 0.0)
    heads, tails = heads_and_tails(dag, seconds)
    rules = (_path, _work, _pigeonhole)
    return max((rule(heads, tails, seconds, speeds) for rule in rules), key=lambda bound: bound.seconds)


def heads_and_tails(dag: Dag, seconds: Floats) -> tuple[Floats, Floats]:
    """The longest path before and after every task, itself left out."""
    heads, tails = np.zeros(len(dag)), np.zeros(len(dag))
    windows.longest_after(dag.parent_ptr, dag.parent, dag.order, seconds, heads)
    windows.longest_after(dag.child_ptr, dag.child, np.ascontiguousarray(dag.order[::-1]), seconds, tails)
    return heads, tails


def _lowered(value: float) -> float:
    return max(0.0, value * (1 - ROUNDING))


def _path(heads: Floats, tails: Floats, seconds: Floats, speeds: tuple[float, ...]) -> FinishBound:
    longest = _lowered(float((heads + seconds + tails).max()))
    return FinishBound(longest / max(speeds) * (1 - ROUNDING), speeds, "path", 0.0, 0.0, 0, len(heads), longest)


def _work(heads: Floats, tails: Floats, seconds: Floats, speeds: tuple[float, ...]) -> FinishBound:
    """By falling head, a tree over the tails: the best of all windows in O(n log n)."""
    fastest, total = max(speeds), math.fsum(speeds)
    different, which = np.unique(tails, return_inverse=True)
    order = np.argsort(-heads, kind="stable")
    leaves = 1 << max(0, (len(different) - 1).bit_length())
    tree, sums, found = np.empty(2 * leaves), np.empty(2 * leaves), np.empty(3)
    places: Ints = which[order].astype(np.int32)
    scaled = different / fastest
    windows.best_window(heads[order] / fastest, places, seconds[order] / total, scaled, tree, sums, found)
    t, u = _lowered(float(found[1]) * fastest), _lowered(float(found[2]) * fastest)
    inside = (heads >= t) & (tails >= u)
    work = math.fsum(seconds[inside])
    value = ((t + u) / fastest + work / total) * (1 - ROUNDING)
    return FinishBound(value, speeds, "work", t, u, 0, int(inside.sum()), work)


def _pigeonhole(heads: Floats, tails: Floats, seconds: Floats, speeds: tuple[float, ...]) -> FinishBound:
    """At some thresholds of heads and tails, the worker that must run several of the longest tasks."""
    n, fastest = len(speeds), max(speeds)
    order = np.argsort(-seconds, kind="stable")
    heads, tails, seconds = heads[order], tails[order], seconds[order]
    best = FinishBound(0.0, speeds, "pigeonhole", 0.0, 0.0, 0, 0, 0.0)
    for t in _quantiles(heads):
        late = heads >= t
        for u in _quantiles(tails[late]) if len(seconds) > n else ():
            inside = seconds[late & (tails >= u)]
            rounds = (len(inside) - 1) // n
            if rounds < 1:
                continue
            j = np.arange(1, rounds + 1)
            total = np.concatenate([[0.0], np.cumsum(inside)])
            together = total[j * n + 1] - total[j * n - j]
            k = int(together.argmax())
            value = (t + u + float(together[k])) / fastest * (1 - 2 * ROUNDING)
            if value > best.seconds:
                best = FinishBound(value, speeds, "pigeonhole", t, u, k + 1, len(inside), float(total[-1]))
    return best


def _quantiles(values: Floats) -> list[float]:
    """Some values, spread evenly over all of them, the least among them, each rounded down."""
    if not len(values):
        return []
    ranked = np.sort(values)
    chosen = ranked[np.linspace(0, len(ranked) - 1, QUANTILES).astype(np.int64)]
    return [_lowered(float(value)) for value in np.unique(chosen)]
