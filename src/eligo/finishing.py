"""A lower bound on the finish of a workflow, with a certificate of four numbers.

Let r(v) and q(v) be the longest paths in seconds before and after task v, excluding v, and S the tasks with r(v) >= t and
q(v) >= u. On N workers of speed 1 the last task ends at T, and:

* *path*: T >= r(v) + s(v) + q(v) for every v;
* *work*: T >= t + u + the seconds of S / N, for no task of S begins before t, each ends at least u before T, and at most N
  run at once;
* *succession*: of the N + k longest of S, k follow another of them on their worker, for N workers begin with one each. With
  x_1 <= x_2 <= ... the least of r(v) + s(v) among them and y_1 <= y_2 <= ... the least of s(v) + q(v), T is at least
  x_i + y_(k + 1 - i) for every i: of those that are followed, k + 1 - i have at least x_i, and one of their followers has at
  least y_(k + 1 - i);
* *pigeonhole*: if S has more than j N tasks, T >= t + u + the j + 1 shortest among its j N + 1 longest, for one worker
  runs j + 1 of these one after another between t and T - u.

If workers differ, the paths and the pigeonhole use the fastest speed, the work the sum of the speeds. If tasks share C
cores, the work is that of their cores, over C; and of tasks that take c cores or more, at most N = floor(C / c) run at
once, so that the rules hold for these alone. The thresholds are rounded down, so that the claims hold in exact arithmetic,
in which `eligo.verifying.finishes` recomputes them.
"""

import itertools
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from eligo.border import as_workflow
from eligo.dag import Dag
from eligo.errors import InputError, counted, shorten
from eligo.estimates import estimate
from eligo.kernels import pools
from eligo.pools import Floats, Pool, cores_of
from eligo.rows import Ints, distinct
from eligo.workflow import Workflow

Format = Callable[[float], str]

QUANTILES = 64  # thresholds of heads, and of tails, that the pigeonhole rule tries
FEW_QUANTILES, MANY_TASKS = (
    8,
    4_000,
)  # the same for large workflows, and the number of tasks from which they count as large
SUCCESSIONS, SOME = 3, 24  # succession rule: most tasks per worker beyond the first, and numbers of tasks it tries
WORTH = 1e-6  # the relative gain required of a rule that is harder to explain
ROUNDING = 1e-9  # relative; far more than the rounding error of sums of seconds
MOST_LEAST = 8  # the number of core requirements for which tasks are examined separately
LARGE = 200_000  # tasks; larger workflows are examined only as a whole, to take less than a second


class FinishBound(NamedTuple):
    """A lower bound: no order can finish before `seconds` on these workers or cores; the other fields are its proof."""

    seconds: float
    #: the speeds of the workers, empty for a pool of cores
    workers: tuple[float, ...]
    #: "path", "work", "pigeonhole" or "succession"
    rule: str
    #: the tasks of the bound cannot start before t, and are followed by u
    t: float
    u: float
    #: one worker runs j + 1 of them (rule "pigeonhole"), or j follow another (rule "succession")
    j: int
    #: the number of tasks of the bound, and their total seconds, or core-seconds if `least` is 0
    tasks: int
    work: float
    #: the number of cores; if `least` is not 0, only tasks that need at least that many count, each as one
    cores: int | None = None
    least: float = 0.0

    def __str__(self) -> str:
        return f"no order can finish before {self.seconds:,.6g} s: {self.why()}"

    def why(self, duration: Format = "{:,.6g} s".format, *, told: Format | None = None) -> str:
        """The reason in words; *duration* formats seconds."""
        if told is not None:
            warnings.warn(
                "this keyword of FinishBound.why is deprecated: use duration", DeprecationWarning, stacklevel=2
            )
            duration = told
        tasks = counted(self.tasks, "task")
        if self.least > 1:
            tasks += f" that need at least {self.least:g} cores"
        if self.least:
            tasks += f", at most {_at_once(self):,} at once"
        match self.rule:
            case "path":
                more = "workers" if self.cores is None else "cores"
                return f"the longest chain of tasks takes this long; more {more} do not help"
            case "work":
                what = "work" if self.cores is None or self.least else "core time"
                late = [f"cannot begin before {duration(self.t)}"] if self.t else []
                early = [f"are followed by {duration(self.u)}"] if self.u else []
                between = f", {' and '.join(late + early)}" if late + early else " in total"
                return f"{tasks}, {duration(self.work)} of {what}{between}"
            case "succession":
                where = "" if self.least else f" on {self.pool.head}"
                return f"of {tasks}{where}, {self.j:,} must wait for another of them to end"
            case _:
                if self.least:
                    return f"{tasks}: {self.j + 1} of the longest run one after another"
                return f"{tasks} on {self.pool.head}: one worker gets {self.j + 1} of the longest"

    @property
    def pool(self) -> Pool:
        """The workers or cores of the bound."""
        return Pool(self.workers, self.cores)

    def document(self) -> dict[str, Any]:
        """The bound as a dict for JSON."""
        return self._asdict()


def _at_once(bound: FinishBound) -> int:
    return int((bound.cores or 0) // bound.least) if bound.least else len(bound.workers)


def earliest_finish(flow: object, workers: int | Sequence[float] | str | Pool) -> FinishBound:
    """A lower bound on the finish of a workflow with known run times, on a number of workers or a pool.

    >>> from eligo.workflow import Task, Workflow
    >>> fork = Dag.from_parents({"a": [], "b": ["a"], "c": ["a"], "d": ["a"]})
    >>> timed = Workflow(fork, {name: Task(name=name, seconds=3.0, cores=2) for name in "abcd"})
    >>> bound = earliest_finish(timed, 2)
    >>> round(bound.seconds, 6), bound.rule, bound.j
    (9.0, 'pigeonhole', 1)
    >>> round(earliest_finish(timed, "3 cores").seconds, 6)
    12.0
    """
    workflow, pool = as_workflow(flow), Pool.of(workers)
    return window_bound(workflow.dag, own_seconds(workflow), pool, cores_of(workflow, pool))


def own_seconds(flow: Workflow) -> Floats:
    """The run time of every task; raises if one is not known."""
    times = estimate(flow)
    for v in np.flatnonzero(~times.own)[:1]:
        name = shorten(flow.dag.tasks[v])
        unknown = f"the run time of {name!r} is not known, so no finish time can be predicted"
        raise InputError(unknown).cured_by("history")
    return times.seconds


def window_bound(
    dag: Dag, seconds: Floats, workers: Sequence[float] | Pool, cores: Floats | None = None
) -> FinishBound:
    """The best bound of the four rules; *cores* are those of every task if the pool has cores."""
    pool = Pool.of(workers)
    if not len(dag):
        return FinishBound(0.0, pool.speeds, "path", 0.0, 0.0, 0, 0, 0.0, pool.cores)
    heads, tails = heads_and_tails(dag, seconds)
    best = _path(heads, tails, seconds, pool)
    for rule, meant in _rules_to_try(RuleTasks(heads, tails, seconds, seconds, pool), cores):
        best = max(best, rule(meant, best.seconds), key=lambda bound: bound.seconds)
    return best


def heads_and_tails(dag: Dag, seconds: Floats) -> tuple[Floats, Floats]:
    """The longest path before and after every task, excluding the task."""
    return dag.longest_paths(seconds, up=True), dag.longest_paths(seconds)


@dataclass(frozen=True, eq=False)
class RuleTasks:
    """The tasks of a rule: all, or those that need at least a number of cores; *loads* are their work."""

    heads: Floats
    tails: Floats
    seconds: Floats
    loads: Floats
    pool: Pool
    least: float = 0.0

    @cached_property
    def at_once(self) -> int:
        """The maximum number of tasks that run at once, if cores are not counted per task."""
        return self.pool.size if self.pool.cores is None else int(self.pool.size // self.least)

    @cached_property
    def total(self) -> float:
        """The maximum amount of the loads done per second."""
        return self.at_once if self.least else math.fsum(self.pool.speeds) or self.pool.size

    def taking(self, least: float, cores: Floats) -> "RuleTasks":
        """The tasks that need at least a number of cores."""
        inside = cores >= least
        seconds = self.seconds[inside]
        return RuleTasks(self.heads[inside], self.tails[inside], seconds, seconds, self.pool, least)

    def nothing(self, rule: str) -> FinishBound:
        """The bound 0, where a rule starts."""
        return FinishBound(0.0, self.pool.speeds, rule, 0.0, 0.0, 0, 0, 0.0, self.pool.cores, self.least)


Rule = Callable[[RuleTasks, float], FinishBound]


def _rules_to_try(problem: RuleTasks, cores: Floats | None) -> Iterator[tuple[Rule, RuleTasks]]:
    """The rules to try, each with its tasks."""
    if cores is None:
        yield from ((_work, problem), (_pigeonhole, problem), (_succession, problem))
        return
    different = distinct(cores[cores > 0])
    at_once = (problem.pool.size // different).astype(np.int64)
    leasts = different[np.unique(at_once, return_index=True)[1]] if len(different) else different
    alike = len(different) == 1 and cores.all()
    if not alike:
        yield _work, RuleTasks(problem.heads, problem.tails, problem.seconds, problem.seconds * cores, problem.pool)
    for least in leasts[-MOST_LEAST if len(cores) <= LARGE else -1 :].tolist():
        alone = problem.taking(least, cores)
        if alike or len(cores) <= LARGE:
            yield _work, alone
        yield from ((_pigeonhole, alone), (_succession, alone))


def _round_down(value: float) -> float:
    return max(0.0, value * (1 - ROUNDING))


def _path(heads: Floats, tails: Floats, seconds: Floats, pool: Pool) -> FinishBound:
    longest = _round_down(float((heads + seconds + tails).max()))
    value = longest / pool.fastest * (1 - ROUNDING)
    return FinishBound(value, pool.speeds, "path", 0.0, 0.0, 0, len(heads), longest, pool.cores)


def _work(meant: RuleTasks, best_so_far: float = 0.0) -> FinishBound:
    """The work rule: scans falling heads with a tree over the tails, to find the best of all windows in O(n log n)."""
    fastest, total, heads, tails = meant.pool.fastest, meant.total, meant.heads, meant.tails
    different, which = np.unique(tails, return_inverse=True)
    order = np.argsort(-heads, kind="stable")
    leaves = 1 << max(0, (len(different) - 1).bit_length())
    tree, sums, window = np.empty(2 * leaves), np.empty(2 * leaves), np.empty(3)
    places: Ints = which[order].astype(np.int32)
    scaled = different / fastest
    pools.best_window(heads[order] / fastest, places, meant.loads[order] / total, scaled, tree, sums, window)
    t, u = _round_down(float(window[1]) * fastest), _round_down(float(window[2]) * fastest)
    inside = (heads >= t) & (tails >= u)
    work = math.fsum(meant.loads[inside])
    value = ((t + u) / fastest + work / total) * (1 - ROUNDING)
    return meant.nothing("work")._replace(seconds=value, t=t, u=u, tasks=int(inside.sum()), work=work)


def _pigeonhole(meant: RuleTasks, best_so_far: float = 0.0) -> FinishBound:
    """The pigeonhole rule at some thresholds of heads and tails; only bounds better than *best_so_far* are searched.

    It exceeds the work bound of the same tasks by at most the longest of them, and most thresholds are skipped by that.
    """
    n, fastest = meant.at_once, meant.pool.fastest
    best = meant.nothing("pigeonhole")
    if len(meant.seconds) <= n:
        return best
    for t in _quantiles(meant.heads):
        late = meant.heads >= t
        tails, seconds = meant.tails[late], meant.seconds[late]
        starts, longest = _quantiles(tails), float(seconds.max())
        for u, work in zip(starts, _work_from(starts, tails, seconds), strict=True):
            if (t + u + work / n + longest) / fastest <= max(best.seconds, best_so_far):
                continue
            inside = np.sort(seconds[tails >= u])[::-1]
            j, together = _most_together(inside, n)
            value = (t + u + together) / fastest * (1 - 2 * ROUNDING)
            if j and value > best.seconds:
                best = best._replace(seconds=value, t=t, u=u, j=j, tasks=len(inside), work=float(inside.sum()))
    return best


def _succession(meant: RuleTasks, best_so_far: float = 0.0) -> FinishBound:
    """The succession rule at some thresholds of heads and tails, and for some numbers of the longest tasks."""
    n, fastest = meant.at_once, meant.pool.fastest
    best = meant.nothing("succession")
    if not n or not n < len(meant.seconds) <= LARGE:
        return best
    first, last = meant.heads + meant.seconds, meant.seconds + meant.tails
    for t, u in itertools.product(_fewer(meant.heads), _fewer(meant.tails)):
        inside = np.flatnonzero((meant.heads >= t) & (meant.tails >= u))
        longest = inside[np.argsort(-meant.seconds[inside], kind="stable")]
        for k in _sample_sizes(min(len(longest) - n, SUCCESSIONS * n)):
            chosen = longest[: n + k]
            pairs = np.sort(first[chosen])[:k] + np.sort(last[chosen])[:k][::-1]
            value = float(pairs.max()) / fastest * (1 - 2 * ROUNDING)
            if value > max(best.seconds, best_so_far * (1 + WORTH)):
                work = float(meant.seconds[chosen].sum())
                best = best._replace(seconds=value, t=t, u=u, j=k, tasks=n + k, work=work)
    return best


def _fewer(values: Floats) -> list[float]:
    """Some of the quantiles."""
    return _quantiles(values)[:: QUANTILES // FEW_QUANTILES] if len(values) <= MANY_TASKS else [0.0]


def _sample_sizes(most: int) -> list[int]:
    """Some integers from 1 to *most*, denser among small ones."""
    return distinct(np.geomspace(1, most, SOME).round().astype(np.int64)).tolist() if most > 0 else []


def _work_from(starts: list[float], tails: Floats, seconds: Floats) -> list[float]:
    """The total time of the tasks whose tails are at least each of the starts, which ascend."""
    parts = np.bincount(np.searchsorted(starts, tails, side="right"), seconds, minlength=len(starts) + 1)
    totals: list[float] = parts[::-1].cumsum()[::-1][1:].tolist()
    return totals


def _most_together(seconds: Floats, n: int) -> tuple[int, float]:
    """The j that maximizes the sum of the j + 1 shortest of the first j n + 1 seconds (descending), and that sum; or 0."""
    rounds = (len(seconds) - 1) // n
    if rounds < 1:
        return 0, 0.0
    j = np.arange(1, rounds + 1)
    total = np.concatenate([[0.0], np.cumsum(seconds)])
    together = total[j * n + 1] - total[j * n - j]
    k = int(together.argmax())
    return k + 1, float(together[k])


def _quantiles(values: Floats) -> list[float]:
    """Some values at evenly spaced ranks, including the smallest, each rounded down."""
    if not len(values):
        return []
    count = QUANTILES if len(values) <= MANY_TASKS else FEW_QUANTILES
    ranks = np.linspace(0, len(values) - 1, count).astype(np.int64)
    chosen = np.partition(values, ranks)[ranks]
    return [_round_down(float(value)) for value in distinct(chosen)]
