"""Upper bounds of M(t), the largest cumulative profile, for every dag.

**Shares.** Let every nonsource hand one unit of worth to its parents, who may pass worth on to their own parents. What task
u keeps is its share. Executing a set renders only tasks all of whose worth was kept inside that set, so no t executions
render more than the t largest shares together. The best shares follow from minimum cuts: repeatedly the densest closed set
of the remaining dag, a *module*, in which all shares are equal; their sums are the least concave function above M(t).

**Blocks.** Forgetting that a task must be rendered before it is executed leaves the blocks independent, so M(t) is at most
the max-plus convolution of their maxima, which ▷-linear compositions and sweeps attain.

**Probes** lower the bound by shares. Every set of t tasks has task v or has it not. If it has, v and its ancestors are
executed, and the remaining tasks are a dag of their own; if it has not, no descendant of v is executed. Both dags have
shares, so M(t) is at most the larger of their bounds, whichever task is probed. At every step the least of these is taken.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.deciding.effort import LARGEST_CONVOLUTION, MOST_PROBED
from eligo.deciding.work import Work
from eligo.grown_dag import reachable_tasks
from eligo.kernels.cuts import Network
from eligo.rows import Ints
from eligo.theory.profiles import Profile, Side, convolve, hull_sides, repeat_profile
from eligo.theory.solutions import Solution, Solutions

CUT, CUT_LOOK = 15_000, 9  # units of work for a minimum cut, and for each arc or role that it examines


@dataclass(frozen=True, eq=False)
class Module:
    """A densest closed set without earlier modules: its nonsinks, what they render, and the share p / q of each."""

    tasks: Ints
    renders: Ints
    p: int
    q: int

    @property
    def ceiling(self) -> Profile:
        """The most that t of its tasks can render, floor(t p / q), for t = 0, 1, ..."""
        return np.minimum(np.arange(len(self.tasks) + 1, dtype=np.int64) * self.p // self.q, len(self.renders))


@dataclass(frozen=True, eq=False)
class Shares:
    """Modules by falling share, and the worth that flows along each arc from child to parent, in units of 1 / q."""

    modules: list[Module]
    flow: NDArray[np.int64]

    @property
    def bound(self) -> Profile:
        """The sum of the t largest shares, rounded down, for t = 0..number of nonsinks."""
        pieces, base = [np.zeros(1, np.int64)], 0
        for module in self.modules:
            pieces.append(base + module.ceiling[1:])
            base += len(module.renders)
        return np.concatenate(pieces)


def best_shares(dag: Dag, work: Work | None = None) -> Shares:
    """The shares with the least bound, by one minimum cut for each module and each split.

    >>> shares = best_shares(Dag.from_arcs([("a", "x"), ("b", "x"), ("b", "y"), ("b", "z")]))
    >>> [(m.tasks.tolist(), m.p, m.q) for m in shares.modules], shares.bound.tolist()
    ([([2], 2, 1), ([0], 1, 1)], [0, 2, 3])

    Once the work is over, all remaining tasks get the share of the next module: the bound is valid but not least.
    """
    work = work or Work()
    modules, flow = list[Module](), np.zeros(dag.arc_count, np.int64)
    nonsinks, nonsources = np.flatnonzero(dag.outdegree > 0), np.flatnonzero(dag.indegree > 0)
    parts = [(nonsinks.astype(np.int32), nonsources.astype(np.int32))]  # still to be split, the densest last
    flowing = Flowing(dag, flow)
    while parts:
        tasks, renders = parts.pop()
        if not len(tasks):
            continue
        p, q = _share(tasks, renders)
        cut = flowing.cut(tasks, renders, p, q)
        work.spend(flowing.spent())
        if cut is not None:
            parts += [(tasks[~cut[0]], renders[~cut[1]]), (tasks[cut[0]], renders[cut[1]])]
        elif parts and work.over():
            modules.append(_last_module(flowing, [*parts, (tasks, renders)], p, q))
            break
        else:
            modules.append(Module(tasks, renders, p, q))
    return Shares(modules, flow)


def _share(tasks: Ints, renders: Ints) -> tuple[int, int]:
    """The share of each task if all share equally what they render, as p / q in lowest terms."""
    common = math.gcd(len(tasks), len(renders))
    return len(renders) // common, len(tasks) // common


class Flowing:
    """Worth flowing from nonsources to nonsinks inside parts of a dag: q units into each rendered, p out of each executed."""

    def __init__(self, dag: Dag, flow: NDArray[np.int64]) -> None:
        self._n, self._height, self._counted = len(dag), np.zeros(2 * len(dag), np.int32), 0
        arrays = (dag.child_ptr, dag.child, dag.parent_ptr, dag.parent, flow, self._height)
        self._network = Network(*(array.data for array in arrays))

    def cut(self, tasks: Ints, renders: Ints, p: int, q: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]] | None:
        """A denser closed set, as masks of the tasks and of what it renders; None if all worth fits, which then flows."""
        denser = self._network.fit(p, q, tasks.data, renders.data)
        return (self._height[tasks] < 0, self._height[self._n + renders] < 0) if denser else None

    def spent(self) -> int:
        """The units of work since the last call."""
        looked, self._counted = self._network.work - self._counted, self._network.work
        return CUT + CUT_LOOK * looked


def _last_module(flowing: Flowing, parts: list[tuple[Ints, Ints]], p: int, q: int) -> Module:
    """All remaining parts as one last module, in which every task has the share of the densest: that suffices for all."""
    tasks, renders = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    if flowing.cut(tasks, renders, p, q) is not None:  # pragma: no cover - a denser set would have been found before
        raise ArithmeticError("the rest is denser than its densest module")
    return Module(tasks, renders, p, q)


def shares_proof(dag: Dag, shares: Shares) -> dict[str, Any]:
    """The shares as plain data: the modules and the flow of worth."""
    used = np.flatnonzero(shares.flow)
    parents, children = dag.named(dag.tails[used]), dag.named(dag.child[used])
    return {
        "modules": [
            {"tasks": dag.named(m.tasks), "renders": dag.named(m.renders), "p": m.p, "q": m.q} for m in shares.modules
        ],
        "flow": list(zip(children, parents, shares.flow[used].tolist(), strict=True)),
    }


def block_bound(solutions: Solutions, other: Profile | None = None) -> Profile:
    """The max-plus convolution of all blocks' maxima, or of their concave hulls if that would take too long.

    If the work did not allow all sets of a block to be enumerated, the bound is trivial, because the checker, which
    enumerates them, would compute another one. If the bound is nowhere below *other*, the result may be a bound between the
    two that takes less time.
    """
    if any(solution.scant for solution in solutions.types):
        dag = solutions.blocks.dag
        return np.full(int((dag.outdegree > 0).sum()) + 1, int((dag.indegree > 0).sum()), np.int64)
    counts = np.bincount(solutions.type_of, minlength=len(solutions.types)).tolist()
    types = list(zip(solutions.types, counts, strict=True))
    if too_long(sum(count * (len(solution.maxima) - 1) for solution, count in types)):
        return _hull_bound([(solution.sides, count) for solution, count in types])
    if other is not None and ((split := _one_split(types)) >= other).all():
        return split
    bound = np.zeros(1, np.int64)
    for solution, count in types:
        maxima = solution.maxima
        bound = convolve(bound, repeat_profile(maxima, count) if solution.follows_itself else _power(maxima, count))
    return bound


def _one_split(types: list[tuple[Solution, int]]) -> Profile:
    """The tasks rendered if blocks advance along the sides of their hulls, the steepest side first.

    At any time all blocks but one are at corners, so this is one of the splits of which the convolution is the best.
    """
    gains: dict[tuple[int, int], list[Profile]] = {}
    for solution, count in types:
        for side in solution.sides:
            gains.setdefault(side[:2], []).extend([side.gains] * count)
    steepest = [own for slope in _steepest_first(gains) for own in gains[slope]]
    return np.cumsum(np.concatenate([np.zeros(1, np.int64), *steepest]))


def too_long(steps: int) -> bool:
    """Whether the number of steps is too large for convolution or a sweep."""
    return steps * steps > LARGEST_CONVOLUTION


def sum_bound(bounds: list[Profile]) -> Profile:
    """The max-plus convolution of the bounds of a sum's parts, or that of their concave hulls."""
    if too_long(sum(len(bound) - 1 for bound in bounds)):
        return _hull_bound([(hull_sides(bound), 1) for bound in bounds])
    return reduce(convolve, bounds, np.zeros(1, np.int64))


def _power(profile: Profile, times: int) -> Profile:
    """The convolution of *times* copies, by doubling."""
    result, square = np.zeros(1, np.int64), profile
    while times:
        if times & 1:
            result = convolve(result, square)
        times >>= 1
        square = convolve(square, square) if times else square
    return result


def _hull_bound(hulls: list[tuple[list[Side], int]]) -> Profile:
    """The convolution of concave hulls, each with its number of copies, rounded down: all sides, the steepest first."""
    lengths: dict[tuple[int, int], int] = {}
    for sides, count in hulls:
        for side in sides:
            lengths[side[:2]] = lengths.get(side[:2], 0) + len(side.gains) * count
    slopes = _steepest_first(lengths)
    widths = [lengths[slope] for slope in slopes]
    p, q = (np.repeat(np.array(ends, np.int64), widths) for ends in (zip(*slopes, strict=True) if slopes else ([], [])))
    ends = np.cumsum([0, *widths])
    within = np.arange(1, ends[-1] + 1) - np.repeat(ends[:-1], widths)
    bases = np.cumsum([0, *(rise * width // run for (rise, run), width in zip(slopes, widths, strict=True))])
    return np.concatenate([[0], np.repeat(bases[:-1], widths) + within * p // q]).astype(np.int64)


def _steepest_first(slopes: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Slopes p / q sorted, the steepest first."""
    return sorted(slopes, key=lambda slope: Fraction(*slope), reverse=True)


# Probes


NEVER = -(1 << 40)  # stands for sets that do not exist: with anything added to it, it stays below all areas
PROBE, PROBE_ARC = 300_000, 600  # units of work for a probe and for each arc, besides its cuts


@dataclass(frozen=True, eq=False)
class Probe:
    """The result of probing one task: a bound, and the shares of the two dags that prove it."""

    task: int
    bound: Profile
    executed: tuple[Dag, Shares]
    waiting: tuple[Dag, Shares]


def probe_bound(dag: Dag, bound: Profile, work: Work | None = None) -> tuple[Profile, list[Probe]]:
    """A bound of M(0..k) nowhere above *bound*, and the probes that lower it, as far as the work suffices.

    >>> seven = Dag.from_arrays(7, [0, 0, 0, 1, 2, 2, 3, 3], [1, 2, 3, 4, 5, 6, 5, 6])
    >>> rough = best_shares(seven).bound
    >>> rough.tolist(), probe_bound(seven, rough)[0].tolist()
    ([0, 3, 4, 5, 6], [0, 3, 4, 5, 6])
    """
    work = work or Work()
    rough, probes = bound, list[Probe]()
    for v in np.flatnonzero(dag.outdegree > 0).tolist() if len(dag) <= MOST_PROBED else ():
        if work.over():
            break
        work.spend(PROBE + PROBE_ARC * dag.arc_count)
        probe = probe_task(dag, v, len(bound) - 1, work)
        if (probe.bound < bound).any():
            probes.append(probe)
            bound = np.minimum(bound, probe.bound)
    return bound, _choose_probes(probes, bound, bound < rough)


def _choose_probes(probes: list[Probe], bound: Profile, lowered: NDArray[np.bool_]) -> list[Probe]:
    """Probes that suffice for the lowered steps of the bound, chosen in one pass from the last to the first."""
    chosen = []
    for probe in reversed(probes):
        hit = lowered & (probe.bound == bound)
        if hit.any():
            chosen.append(probe)
            lowered = lowered & ~hit
    return chosen


def probes_proof(dag: Dag, probes: list[Probe]) -> list[dict[str, Any]]:
    """The probes as plain data: the task, and the shares of the two dags."""
    return [
        {
            "task": dag.tasks[probe.task],
            "executed": shares_proof(*probe.executed),
            "waiting": shares_proof(*probe.waiting),
        }
        for probe in probes
    ]


def probe_task(dag: Dag, v: int, k: int, work: Work | None = None) -> Probe:
    """Probe nonsink v of a dag with k nonsinks."""
    needed, lost = _reach(dag, v, up=True), _reach(dag, v, up=False)
    missing = np.bincount(dag.child, ~needed[dag.tails], minlength=len(dag))
    rendered = int(((missing == 0) & (dag.indegree > 0)).sum())
    possible = k - int((lost & (dag.outdegree > 0)).sum())
    lost[v] = False  # v itself can still be rendered
    executed, waiting = (
        _with_shares(dag.induced(np.flatnonzero(~mask).astype(np.int32)), work) for mask in (needed, lost)
    )
    with_it, without_it = np.full(k + 1, NEVER), np.full(k + 1, NEVER)
    done = int(needed.sum())
    with_it[done:] = rendered + executed[1].bound[: k + 1 - done]
    least = waiting[1].bound
    without_it[: possible + 1] = least[np.minimum(np.arange(possible + 1), len(least) - 1)]
    return Probe(v, np.maximum(with_it, without_it), executed, waiting)


def _with_shares(dag: Dag, work: Work | None) -> tuple[Dag, Shares]:
    return dag, best_shares(dag, work)


def _reach(dag: Dag, v: int, up: bool) -> NDArray[np.bool_]:
    """The mask of task v and all its ancestors or descendants."""
    mask = np.zeros(len(dag), np.bool_)
    mask[[v, *reachable_tasks(dag, [v], up)]] = True
    return mask
