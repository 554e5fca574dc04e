"""Upper bounds of M(t), the largest cumulative profile, for every dag.

**Shares.** Let every nonsource hand one unit of worth to its parents, who may pass worth on to their own parents. What task
u keeps is its share. Executing a set renders only tasks all of whose worth was kept inside that set, so no t executions
render more than the t largest shares together. The best shares follow from minimum cuts: repeatedly the densest closed set
of what is left, a *module*, in which all shares are equal; their sums are the least concave function above M(t).

**Blocks.** Forgetting that a task must be rendered before it is executed leaves the blocks independent, so M(t) is at most
the max-plus convolution of their maxima, which ▷-linear compositions and sweeps attain.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.deciding.limits import LARGEST_CONVOLUTION
from eligo.deciding.work import Work
from eligo.kernels.cuts import Network
from eligo.rows import Ints
from eligo.theory.priority import precedes
from eligo.theory.profiles import Profile, convolved, hull_corners, repeated
from eligo.theory.solutions import Solutions

CUT, CUT_LOOK = 15_000, 9  # units of work for a minimum cut, and for each arc or role that is looked at for it


@dataclass(frozen=True, eq=False)
class Module:
    """A densest closed set of what earlier modules left: its nonsinks, what they render, and each one's share p / q."""

    tasks: Ints
    renders: Ints
    p: int
    q: int

    @property
    def ceiling(self) -> Profile:
        """floor(t p / q) for t = 0..: what t of its tasks can render at most."""
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


class Begun(NamedTuple):
    """Shares of which the first and the last modules are known, with their flow, and what lies between them is not."""

    first: list[Module]
    last: list[Module]
    #: tasks and what they render, each ascending, to be split; the densest at the end
    parts: list[tuple[Ints, Ints]]
    flow: NDArray[np.int64]


def best_shares(dag: Dag, work: Work | None = None, begun: Begun | None = None) -> Shares:
    """The shares that give the least bound, by one minimum cut for each module and each split.

    >>> shares = best_shares(Dag.from_arcs([("a", "x"), ("b", "x"), ("b", "y"), ("b", "z")]))
    >>> [(m.tasks.tolist(), m.p, m.q) for m in shares.modules], shares.bound.tolist()
    ([([2], 2, 1), ([0], 1, 1)], [0, 2, 3])

    Once the work is over all that is left gets the share of the next module, and the bound is valid but not least.
    """
    work = work or Work()
    modules, last, parts, flow = begun or _from_scratch(dag)
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
            modules.append(_closed(flowing, [*parts, (tasks, renders)], p, q))
            break
        else:
            modules.append(Module(tasks, renders, p, q))
    return Shares(modules + last, flow)


def _from_scratch(dag: Dag) -> Begun:
    nonsinks, nonsources = np.flatnonzero(dag.outdegree > 0), np.flatnonzero(dag.indegree > 0)
    whole = nonsinks.astype(np.int32), nonsources.astype(np.int32)
    return Begun([], [], [whole], np.zeros(dag.arc_count, np.int64))


def _share(tasks: Ints, renders: Ints) -> tuple[int, int]:
    """What each of the tasks gets where they share what they render, as p / q."""
    common = math.gcd(len(tasks), len(renders))
    return len(renders) // common, len(tasks) // common


class Flowing:
    """Worth flowing from nonsources to nonsinks inside parts of a dag: q units into each rendered, p out of each executed."""

    def __init__(self, dag: Dag, flow: NDArray[np.int64]) -> None:
        self._n, self._height, self._counted = len(dag), np.zeros(2 * len(dag), np.int32), 0
        arrays = (dag.child_ptr, dag.child, dag.parent_ptr, dag.parent, flow, self._height)
        self._network = Network(*(array.data for array in arrays))

    def cut(self, tasks: Ints, renders: Ints, p: int, q: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]] | None:
        """None where all worth fits, which then flows; else a denser closed set: which tasks, and what it renders."""
        denser = self._network.fit(p, q, tasks.data, renders.data)
        return (self._height[tasks] < 0, self._height[self._n + renders] < 0) if denser else None

    def spent(self) -> int:
        """Units of work since the last time."""
        looked, self._counted = self._network.work - self._counted, self._network.work
        return CUT + CUT_LOOK * looked


def _closed(flowing: Flowing, parts: list[tuple[Ints, Ints]], p: int, q: int) -> Module:
    """All that is left as one last module, in which all have the share of the densest: that suffices for everyone."""
    tasks, renders = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    if flowing.cut(tasks, renders, p, q) is not None:  # pragma: no cover - a denser set would have been found before
        raise ArithmeticError("what is left is denser than its densest module")
    return Module(tasks, renders, p, q)


def shares_proof(dag: Dag, shares: Shares) -> dict[str, Any]:
    """The shares as plain data: modules and the worth that flows."""
    used = np.flatnonzero(shares.flow)
    parents, children = dag.named(dag.tails[used]), dag.named(dag.child[used])
    return {
        "modules": [
            {"tasks": dag.named(m.tasks), "renders": dag.named(m.renders), "p": m.p, "q": m.q} for m in shares.modules
        ],
        "flow": list(zip(children, parents, shares.flow[used].tolist(), strict=True)),
    }


def block_bound(solutions: Solutions) -> Profile:
    """The max-plus convolution of all blocks' maxima; concave hulls stand in for them where that would take too long.

    Where sets were scant it bounds nothing, for whoever checks it would find another.
    """
    if any(solution.scant for solution in solutions.types):
        dag = solutions.blocks.dag
        return np.full(int((dag.outdegree > 0).sum()) + 1, int((dag.indegree > 0).sum()), np.int64)
    counts = np.bincount(solutions.type_of, minlength=len(solutions.types)).tolist()
    total = sum(count * (len(t.maxima) - 1) for t, count in zip(solutions.types, counts, strict=True))
    if too_long(total):
        profiles = [(t.maxima, count) for t, count in zip(solutions.types, counts, strict=True)]
        return _hull_bound(profiles, [t.corners for t in solutions.types])
    bound = np.zeros(1, np.int64)
    for solution, count in zip(solutions.types, counts, strict=True):
        own = solution.kind or solution.maxima
        together = repeated(solution.maxima, count) if precedes(own, own) else _power(solution.maxima, count)
        bound = convolved(bound, together)
    return bound


def too_long(steps: int) -> bool:
    """Whether so many steps are too many to be convolved or swept."""
    return steps * steps > LARGEST_CONVOLUTION


def sum_bound(bounds: list[Profile]) -> Profile:
    """The max-plus convolution of the bounds of a sum's parts, or that of their concave hulls."""
    if too_long(sum(len(bound) - 1 for bound in bounds)):
        return _hull_bound([(bound, 1) for bound in bounds])
    return reduce(convolved, bounds, np.zeros(1, np.int64))


def _power(profile: Profile, times: int) -> Profile:
    """The convolution of that many copies, by doubling."""
    result, square = np.zeros(1, np.int64), profile
    while times:
        if times & 1:
            result = convolved(result, square)
        times >>= 1
        square = convolved(square, square) if times else square
    return result


def _hull_bound(profiles: list[tuple[Profile, int]], known: list[list[int]] | None = None) -> Profile:
    """The convolution of the concave hulls, rounded down: all their sides, the steepest first, in whole numbers.

    The corners of each may be *known*.
    """
    lengths: dict[Fraction, int] = {}
    found = known or [hull_corners(profile) for profile, _ in profiles]
    for (profile, count), corners in zip(profiles, found, strict=True):
        for width, rise in zip(np.diff(corners).tolist(), np.diff(profile[corners]).tolist(), strict=True):
            slope = Fraction(rise, width)
            lengths[slope] = lengths.get(slope, 0) + width * count
    slopes = sorted(lengths, reverse=True)
    widths = [lengths[slope] for slope in slopes]
    p, q = (np.repeat([getattr(s, part) for s in slopes], widths) for part in ("numerator", "denominator"))
    ends = np.cumsum([0, *widths])
    within = np.arange(1, ends[-1] + 1) - np.repeat(ends[:-1], widths)
    bases = np.cumsum([0, *(int(slope * width) for slope, width in zip(slopes, widths, strict=True))])
    return np.concatenate([[0], np.repeat(bases[:-1], widths) + within * p // q]).astype(np.int64)
