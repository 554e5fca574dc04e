"""Bounds of M(t) as the checker computes them: by the maxima of single blocks, by shares of worth, and by probes."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import reduce
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.verifying.documents import Refuted, require

Numbers = NDArray[np.integer[Any]]
Profile = NDArray[np.int64]

FEW_ITEMS, MOST_ITEMS, MOST_ITEMS_IN_ORDER, LARGEST_TREE = 12, 24, 20, 3_000
WORTH = 1 << 32  # of a sink, in parts: shares are rounded up to whole parts, so that every sum is exact
LARGEST_CONVOLUTION = 200_000_000  # steps squared; the planner's own limit, or its bounds could not be compared
NEVER = -(1 << 40)  # below every reachable value: no such choice
NOTHING = np.zeros(1, np.int64)


def convolve(first: Profile, second: Profile) -> Profile:
    """The most that t executions split between the two can render, for every t; profiles never fall.

    In some best split the one profile has just risen; in some, the other has; and in some, either is at a step where its
    gains start or cease to grow, since between such steps one step more of either loses nothing. The smallest of these sets
    of steps is tried.
    """
    pair, best = (first, second), np.full(len(first) + len(second) - 1, NEVER)
    gains = [np.diff(profile) for profile in pair]
    rises, bends = ([np.append(0, np.flatnonzero(g) + 1) for g in gains], [_bends(g) for g in gains])
    ways = [[(0, rises[0])], [(1, rises[1])], [(0, bends[0]), (1, bends[1])]]
    for which, places in min(ways, key=lambda way: sum(len(places) for _, places in way)):
        own, other = pair[which], pair[1 - which]
        for i in places.tolist():
            np.maximum(best[i : i + len(other)], other + own[i], out=best[i : i + len(other)])
    return np.maximum.accumulate(best)


def _bends(gains: Profile) -> Numbers:
    """Both ends of a profile, and the steps at which its gains fall."""
    return np.unique(np.concatenate([[0], np.flatnonzero(np.diff(gains) < 0) + 1, [len(gains)]]))


def precedes(first: Profile, second: Profile) -> bool:
    """Whether no mixture of the two renders more than the one after the other; it suffices if that holds for their hulls."""
    series = np.append(first, first[-1] + second[1:])
    return bool((_convolve_hulls([first, second]) <= series).all() or (convolve(first, second) <= series).all())


def bound_by_parts(maxima: list[Profile]) -> Profile:
    """A bound of what t executions render, from the maxima of all blocks, or of all parts of a sum.

    That is the convolution of the maxima, or that of their concave hulls, which are nowhere below them, if there are too many
    steps, as in the planner.
    """
    by_hulls = too_long(sum(len(profile) - 1 for profile in maxima))
    return _convolve_hulls(maxima) if by_hulls else reduce(convolve, maxima, NOTHING)


def too_long(steps: int) -> bool:
    """Whether the number of steps is too large for convolution or a sweep."""
    return steps**2 > LARGEST_CONVOLUTION


def _convolve_hulls(maxima: list[Profile]) -> Profile:
    """All sides of all hulls, the steepest first, rounded down; the value is whole where a slope ends, so nothing is lost."""
    profiles, lengths = {id(profile): profile for profile in maxima}, Counter[Fraction]()
    for key, copies in Counter(map(id, maxima)).items():
        for width, rise in _hull_sides(profiles[key].tolist()):
            lengths[Fraction(rise, width)] += copies * width
    pieces = [NOTHING]
    for slope, length in sorted(lengths.items(), reverse=True):
        pieces.append(pieces[-1][-1] + np.arange(1, length + 1) * slope.numerator // slope.denominator)
    return np.concatenate(pieces)


def _hull_sides(profile: list[int]) -> list[tuple[int, int]]:
    """The width and rise of each linear piece of the least concave function above a profile, by falling slope."""
    sides: list[tuple[int, int]] = []
    for before, after in pairwise(profile):
        width, rise = 1, after - before
        while sides and sides[-1][1] * width <= rise * sides[-1][0]:
            width, rise = width + sides[-1][0], rise + sides[-1][1]
            sides.pop()
        sides.append((width, rise))
    return sides


def sweepable(first: Profile, second: Profile) -> bool:
    """Whether a path through the largest entries of all diagonals of E1(i) + E2(j) leads from corner to corner."""
    short, long = sorted((first, second), key=len)
    i, best = np.arange(len(short)), convolve(first, second)
    reached = i == 0
    for t in range(1, len(best)):
        j = np.clip(t - i, 0, len(long) - 1)
        reached = (reached | np.append(False, reached[:-1])) & (i + j == t) & (short + long[j] == best[t])
    return bool(reached[-1])


def all_sweepable(profiles: list[Profile]) -> bool:
    """Whether Sweep interleaves them all, one after another."""
    together = accumulate(profiles, convolve)
    return all(sweepable(before, profile) for before, profile in zip(together, profiles[1:], strict=False))


def block_maxima(tails: Numbers, heads: Numbers) -> Profile:
    """M(t) of one block, or a bound of it if no method fits."""
    out, into, plain = np.bincount(tails), np.bincount(heads), not np.isin(heads, tails).any()
    s, sinks = np.count_nonzero(out), np.count_nonzero(into)
    if plain and max(out.max(), into.max()) <= 2:  # a path or a cycle
        return np.append(np.maximum(np.arange(s) - (sinks < s or len(tails) == s + sinks), 0), sinks)
    tree = plain and len(tails) == s + sinks - 1
    if tree and (even := _even_tree_maxima(out[out > 0], into[into > 0])) is not None:
        return even
    sets = Sets(tails, heads, FEW_ITEMS if tree and s <= LARGEST_TREE else MOST_ITEMS if plain else MOST_ITEMS_IN_ORDER)
    if sets.fit:
        return sets.maxima()
    if tree and s <= LARGEST_TREE:
        return _tree_maxima(tails, heads)
    dual = Sets(heads, tails, MOST_ITEMS)
    if plain and dual.fit:  # to render j sinks takes at least the sources less what the other sinks render in the dual
        return np.searchsorted(s - dual.maxima()[::-1], np.arange(s + 1), side="right") - 1
    shares = np.zeros(len(out), np.int64)
    np.add.at(shares, tails, -(-WORTH // into[heads].astype(np.int64)))
    falling = np.sort(shares[out > 0])[::-1]
    return np.append(0, np.minimum(np.cumsum(falling) // WORTH, sinks))


def _even_tree_maxima(out: Numbers, into: Numbers) -> Profile | None:
    """M(t) of a tree whose sources all have d children, or whose sinks all have e parents except one that may have fewer.

    A forest has fewer arcs than tasks: c idle sources keep at least c (d - 1) + 1 sinks waiting, and j sinks need at least
    j (e - 1) + 1 sources, less what one of them lacks. Connected sources, or connected sinks from that one on, attain that.
    """
    steps, d, least, e = np.arange(len(out) + 1, dtype=np.int64), int(out[0]), int(into.min()), int(into.max())
    if (out == d).all():
        return np.append(steps[:-1] * (d - 1), len(into))
    return np.maximum(steps - least + e - 1, 0) // (e - 1) if (into < e).sum() <= 1 else None


def _tree_maxima(tails: Numbers, heads: Numbers) -> Profile:
    """M(t) of a tree from the leaves up, by tables of a source, idle or executed, and of a sink, with any or all parents."""
    near, tables = _rows(tails, heads) | _rows(heads, tails), dict[int, tuple[Profile, Profile]]()
    walk, sources = [(int(tails[0]), -1)], set(tails.tolist())
    for v, above in walk:  # grows during the loop
        walk += [(w, v) for w in near[v] if w != above]
    for v, above in reversed(walk):
        below, source = [tables.pop(w) for w in near[v] if w != above], v in sources
        one = reduce(convolve, [a if source else np.maximum(a, b) for a, b in below], NOTHING)
        two = reduce(convolve, [np.maximum(a, b + 1) if source else b for a, b in below], NOTHING)
        tables[v] = (np.append(one, one[-1]), np.append(NEVER, two)) if source else (one, two)
    return np.maximum(*tables[walk[0][0]])


def _rows(tails: Numbers, heads: Numbers) -> dict[int, set[int]]:
    rows = defaultdict[int, set[int]](set)
    for u, v in zip(tails.tolist(), heads.tolist(), strict=True):
        rows[u].add(v)
    return rows


class Sets:
    """All sets of items, twins (equal parents, equal children) being one: closed sets, their weights, what they render."""

    def __init__(self, tails: Numbers, heads: Numbers, most: int) -> None:
        labels = np.random.default_rng(0).integers(1 << 62, size=max(tails.max(initial=0), heads.max(initial=0)) + 1)
        sums = np.zeros(len(labels), np.int64)
        np.add.at(sums, tails, labels[heads])  # equal for equal children: at least that many items are not twins
        self.fit = len(np.unique(sums[tails])) <= most
        if not self.fit:
            return
        children, parents, twins = _rows(tails, heads), _rows(heads, tails), defaultdict[Any, list[int]](list)
        for v in children:
            twins[frozenset(parents.get(v, ())), frozenset(children[v])].append(v)
        self.fit = len(twins) <= most
        if not self.fit:
            return
        item = {v: 1 << i for i, members in enumerate(twins.values()) for v in members}
        needs = {v: sum({item[u] for u in above}) for v, above in parents.items()}
        closed, weight = np.arange(1 << len(twins), dtype=np.int32), np.zeros(1, np.int32)
        rendered = np.bincount(np.fromiter(needs.values(), np.int64), minlength=1 << len(twins)).astype(np.int32)
        for i, members in enumerate(twins.values()):
            if need := needs.get(members[0], 0):
                closed = closed[(closed >> i & 1 == 0) | (closed & need == need)]
            weight = np.append(weight, weight + np.int32(len(members)))
            halves = rendered.reshape(-1, 2, 1 << i)
            halves[:, 1] += halves[:, 0]
        self.count, self.closed, self.weight, self.rendered = len(twins), closed, weight, rendered

    def maxima(self) -> Profile:
        """M(t): the most that closed sets of weight at most t render."""
        best = np.zeros(self.weight[-1] + 1, np.int32)
        np.maximum.at(best, self.weight[self.closed], self.rendered[self.closed])
        return np.maximum.accumulate(best).astype(np.int64)

    def largest_sum(self, steps: NDArray[np.bool_]) -> int:
        """The largest sum of a cumulative profile over these steps, over all ways to grow a closed set item by item."""
        best, size, counted = np.full(len(self.weight), NEVER), np.bitwise_count(self.closed), np.cumsum(steps)
        best[0] = 0
        for layer in [self.closed[size == items] for items in range(1, self.count + 1)]:
            for after, i in [(layer[layer >> i & 1 == 1], i) for i in range(self.count)]:
                before, end = after ^ 1 << i, self.weight[after]
                idle = counted[end - 1] - counted[self.weight[before]]
                gain = self.rendered[before] * idle + self.rendered[after] * steps[end]
                best[after] = np.maximum(best[after], best[before] + gain)
        return int(best[-1])


# Shares


Proof = Mapping[str, Any]
LARGEST = 1 << 62  # sums of 64 bits below it are exact
TWICE = "the modules do not have every task once"


def shares_bound(dag: Dag, shares: Proof) -> Profile:
    """The sum of the t largest shares p / q, for t = 0, 1, ...

    Each nonsource hands q units to its parents within its module, and what it gets beyond p if it is executed there itself.
    """
    modules = shares["modules"]
    executed, rendered = (homes(dag, modules, key) for key in ("tasks", "renders"))
    covered = ((executed >= 0) == (dag.outdegree > 0)) & ((rendered >= 0) == (dag.indegree > 0))
    require(covered.all(), TWICE)
    child, parent, amount = _flow(dag, shares["flow"], executed, rendered)
    kept, handed = np.zeros((2, len(dag)), np.int64)
    np.add.at(handed, child, amount)
    np.add.at(kept, parent, amount)
    due = np.array([*(m["q"] for m in modules), 0], np.int64)[rendered]
    passed = handed - due
    for v in np.flatnonzero((passed != 0) & ((passed < 0) | (executed != rendered))):
        least = "at least " if executed[v] == rendered[v] else ""
        raise Refuted(f"task {dag.tasks[v]!r} must hand on a worth of {least}{due[v]:,}, got {handed[v]:,}")
    return _sums(modules, (kept - passed)[np.argsort(executed, kind="stable")][np.count_nonzero(executed < 0) :])


def homes(dag: Dag, modules: Sequence[Proof], key: str) -> Numbers:
    """For each task the number of the module that has it under this key, -1 if none has."""
    numbers = np.array([dag.index.get(name, -1) for m in modules for name in m[key]], np.int64)
    home = np.full(len(dag), -1, np.int64)
    home[numbers] = np.repeat(np.arange(len(modules)), [len(m[key]) for m in modules])
    require(numbers.min(initial=0) >= 0 and np.count_nonzero(home >= 0) == len(numbers), TWICE)
    return home


def _flow(dag: Dag, flow: Sequence[Any], executed: Numbers, rendered: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """The flow of worth as children, parents and amounts: along arcs within modules, and small enough for exact sums."""
    index, count = dag.index, len(flow)
    child = np.fromiter((index.get(name, -1) for name, _, _ in flow), np.int64, count)
    parent = np.fromiter((index.get(name, -1) for _, name, _ in flow), np.int64, count)
    require(sum(worth for _, _, worth in flow) < LARGEST, "more worth flows than there is")
    amount = np.fromiter((worth for _, _, worth in flow), np.int64, count)
    arcs = dag.tails.astype(np.int64) * len(dag) + dag.child
    allowed = (amount >= 0) & (child >= 0) & (parent >= 0) & (executed[parent] == rendered[child])
    allowed &= np.isin(parent * len(dag) + child, arcs)
    for i in np.flatnonzero(~allowed).tolist():
        child_name, parent_name, worth = flow[i]
        way = f"{worth:,} from {child_name!r} to {parent_name!r}"
        raise Refuted(
            f"each worth must be at least 0 and flow from a task to one of its parents in the same module, got {way}"
        )
    return child, parent, amount


def _sums(modules: Sequence[Proof], kept: Profile) -> Profile:
    """The sums of the t largest shares, which fall; each module's share is the most that one of its tasks keeps.

    *kept* is what the tasks keep, module after module.
    """
    pieces, above, end = [np.zeros(1, np.int64)], (1, 0), 0
    for m in modules:
        size, renders, p, q = len(m["tasks"]), len(m["renders"]), m["p"], m["q"]
        require(size > 0, "a module has no tasks")
        full = q > 0 and (m is modules[-1] or size * p == renders * q)
        require(full and p * above[1] <= above[0] * q, "the shares do not fall from full module to full module")
        own, end = kept[end : end + size], end + size
        require(own.min() >= 0 and own.max() == p, "a module's share is not the most that one of its tasks keeps")
        pieces.append(pieces[-1][-1] + ceiling(m)[1:])
        above = (p, q)
    return np.concatenate(pieces)


def ceiling(module: Proof) -> Profile:
    """The most that t of a module's tasks can render, for every t."""
    size, p, q = len(module["tasks"]), module["p"], module["q"]
    require(q > 0 and size * p < LARGEST, "a module's share is too large")
    steps: Profile = np.arange(size + 1, dtype=np.int64) * p // q
    return np.minimum(steps, len(module["renders"]))


def probed_bound(dag: Dag, bound: Profile, probes: Sequence[Proof]) -> Profile:
    """The bound, lowered by each probe: every set has the probed task and its ancestors, or none of its descendants."""
    for probe in probes:
        require(probe["task"] in dag.index, f"unknown task {probe['task']!r} in a probe")
        v = dag.index[probe["task"]]
        bound = np.minimum(bound, np.maximum(_with(dag, v, bound, probe), _without(dag, v, bound, probe)))
    return bound


def _with(dag: Dag, v: int, bound: Profile, probe: Proof) -> Profile:
    """The most that t executions render if task v is one of them."""
    needed = {v, *_walk(v, _row_lists(dag.parent_ptr, dag.parent))}
    parents = _row_lists(dag.parent_ptr, dag.parent)
    at_once = sum(bool(row) and needed.issuperset(row) for row in parents)
    rest = shares_bound(_rest(dag, needed), probe["executed"])
    result = np.full(len(bound), NEVER)
    require(len(rest) + len(needed) == len(bound), f"the probe of {probe['task']!r} is not of all the other tasks")
    result[len(needed) :] = at_once + rest
    return result


def _without(dag: Dag, v: int, bound: Profile, probe: Proof) -> Profile:
    """The most that t executions render if task v is not one of them."""
    lost = set(_walk(v, _row_lists(dag.child_ptr, dag.child)))
    working = sum(bool(dag.outdegree[u]) for u in {v, *lost})
    least = shares_bound(_rest(dag, lost), probe["waiting"]).tolist()
    most = len(bound) - working
    return np.array([least[min(t, len(least) - 1)] if t < most else NEVER for t in range(len(bound))], np.int64)


def _row_lists(ptr: NDArray[np.int32], rows: NDArray[np.int32]) -> list[list[int]]:
    return [rows[a:b].tolist() for a, b in pairwise(ptr.tolist())]


def _walk(v: int, rows: list[list[int]]) -> list[int]:
    """The tasks that can be reached from v."""
    seen = dict.fromkeys(rows[v])
    for u in (reached := list(seen)):
        fresh = [w for w in rows[u] if w not in seen]
        seen.update(dict.fromkeys(fresh))
        reached += fresh
    return reached


def _rest(dag: Dag, removed: set[int]) -> Dag:
    """The dag without some tasks."""
    names = dag.tasks
    arcs = [(names[u], names[w]) for u, w in zip(dag.tails.tolist(), dag.child.tolist(), strict=True)]
    out = {names[u] for u in removed}
    return Dag.from_arcs(
        [(u, w) for u, w in arcs if u not in out and w not in out], [name for name in names if name not in out]
    )
