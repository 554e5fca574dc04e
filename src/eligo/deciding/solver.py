"""The whole search for a dag without shortcuts: ▷-linear segments at once, the others by the first method that fits.

A segment that is not ▷-linear is tried by the extended regimen, by enumeration, as a sum of its components, and last module
by module: exact maxima by elimination, orders by moves, heuristics, all judged by the bounds.

**Surpassing sets** render more than any set of their size that agrees with the corners: if there is one, no schedule is
best. If the maxima of a dag are out of reach, there may still be such a set between two modules: it lacks some tasks of the
first and has as many of the second in their place.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from eligo.dag import Dag
from eligo.deciding.bounds import (
    Module,
    Shares,
    best_shares,
    block_bound,
    probe_bound,
    probes_proof,
    shares_proof,
    sum_bound,
    too_long,
)
from eligo.deciding.effort import (
    LARGEST_DUAL,
    MOST_SPLITS,
    MOST_SUMMANDS,
    MOST_SURPASSING,
    MOST_TRADES,
    PART,
    PART_TASK,
    SET,
    Effort,
)
from eligo.deciding.modules import Solved, few_sets, maxima_within, solve_modules
from eligo.deciding.orders import heuristics, improve_best, merge_orders
from eligo.deciding.seriesparallel import series_parallel
from eligo.deciding.symmetry import canonical_order
from eligo.deciding.work import BOUNDED, IMPOSSIBLE, OPTIMAL, Outcome, Segment, Work, cumulative, worst
from eligo.rows import Ints, distinct
from eligo.theory.blocks import Blocks, decompose
from eligo.theory.composition import concatenated_order, extended_chain, linearise, units_order
from eligo.theory.profiles import Profile, concatenate, convolve
from eligo.theory.skeleton import segment_dag, segments
from eligo.theory.solutions import MOST_SETS, Solutions, solve_blocks
from eligo.theory.subsets import Subsets
from eligo.theory.sweep import sweep

# Sets that surpass the corners


def surpassing(dag: Dag, modules: Sequence[Module], solved: Sequence[Solved]) -> Ints | None:
    """A closed set that renders more than Mmod, found between two neighbouring modules, or None; needs exact maxima.

    >>> from eligo.deciding.bounds import best_shares
    >>> from eligo.deciding.effort import new_effort
    >>> from eligo.deciding.modules import solve_modules
    >>> arcs = [("a", "x"), ("b", "x"), ("a", "y"), ("b", "y"), ("a", "z"), ("b", "z"), ("c", "w")]
    >>> dag = Dag.from_arcs(arcs)
    >>> shares = best_shares(dag)
    >>> [dag.named(m.tasks) for m in shares.modules]
    [('a', 'b'), ('c',)]
    >>> found = surpassing(dag, shares.modules, solve_modules(dag, shares.modules, new_effort("normal")))
    >>> dag.named(found)
    ('c',)
    """
    if not all(one.exact for one in solved):
        return None
    before, base = [np.zeros(0, np.int32)], 0
    for (first, one), (second, two) in pairwise(zip(modules, solved, strict=True)):
        usual = concatenate([one.maxima, two.maxima])
        for taken, added in _trades(one.maxima, two.maxima, usual):
            tasks = np.concatenate([*before, first.tasks[one.order[:taken]], second.tasks[two.order[:added]]])
            if _count_rendered(dag, tasks) > base + usual[taken + added]:
                return tasks.astype(np.int32)
        before.append(first.tasks)
        base += len(first.renders)
    return None


def _trades(one: Profile, two: Profile, usual: Profile) -> Iterator[tuple[int, int]]:
    """How many tasks of each render more than one module after the other, if the second does not need the first."""
    if len(one) * len(two) > MOST_TRADES:
        return
    for t in np.flatnonzero(convolve(one, two) > usual)[:MOST_SURPASSING].tolist():
        taken = np.arange(max(0, t + 1 - len(two)), min(t, len(one) - 1) + 1)
        best = taken[(one[taken] + two[t - taken]).argmax()]
        yield int(best), t - int(best)


def _count_rendered(dag: Dag, tasks: Ints) -> int:
    """The number of tasks that have all their parents among these; -1 if one of these has not."""
    done = np.zeros(len(dag), np.bool_)
    done[tasks] = True
    satisfied = np.bincount(dag.child, ~done[dag.tails], minlength=len(dag)) == 0
    return int((satisfied & (dag.indegree > 0)).sum()) if satisfied[tasks].all() else -1


# The search


LARGE = 20_000  # tasks: from this size on, numbering level by level pays

#: computes the bound by blocks, or one between it and a given bound
BlockBound = Callable[[Profile], Profile]


def solve_numbered(dag: Dag, effort: Effort) -> tuple[Outcome, int]:
    """See `solve`; a large dag is first numbered level by level, for faster access to memory."""
    if len(dag) < LARGE:
        return solve(dag, effort)
    outcome, blocks = solve(dag.renumbered(dag.order), effort)
    return replace(outcome, order=dag.order[outcome.order]), blocks


def solve(dag: Dag, effort: Effort) -> tuple[Outcome, int]:
    """The outcome for a dag without shortcuts, and its number of blocks: ▷-linear segments at once, the others one by one."""
    blocks = decompose(dag)
    solutions = _solve_blocks(blocks, effort)
    label = segments(dag)
    count = int(label.max(initial=-1)) + 1
    ptr, sources = blocks.source_rows
    line = linearise(solutions, label[sources[ptr[:-1]]], count)
    order = concatenated_order(solutions, line.sequence)
    if line.linear.all():
        return in_series(dag, order, ()), len(blocks)
    if count == 1:
        return _solve_segment(dag, solutions, effort), len(blocks)
    where, solved_segments = label[order], []
    for segment in np.flatnonzero(~line.linear).tolist():
        begin, end = np.searchsorted(where, [segment, segment + 1]).tolist()
        tasks = np.sort(order[begin:end])
        outcome = _solve_part(dag, tasks, effort)
        order[begin:end] = outcome.order
        solved_segments.append(Segment(begin, end, outcome))
    return in_series(dag, order, tuple(solved_segments)), len(blocks)


def _solve_blocks(blocks: Blocks, effort: Effort) -> Solutions:
    """The solutions of the blocks, as far as the remaining work for bounds suffices."""
    solutions = solve_blocks(blocks, int(min(MOST_SETS, effort.cutting.remaining / SET)), effort.solved)
    effort.cutting.spend(SET * sum(solution.sets for solution in solutions.types))
    return solutions


def _solve_part(dag: Dag, tasks: Ints, effort: Effort) -> Outcome:
    """The outcome for a segment that is not ▷-linear, as a dag of its own."""
    part = segment_dag(dag, tasks)
    outcome = _solve_segment(part, _solve_blocks(decompose(part), effort), effort)
    return replace(outcome, order=tasks[outcome.order])


def in_series(dag: Dag, order: Ints, hard: tuple[Segment, ...]) -> Outcome:
    """The outcome for a dag in this order, from the segments that were decided separately; all others are ▷-linear."""
    bound = cumulative(dag, order)
    if not hard:
        return Outcome(order, bound, OPTIMAL, "▷-linear composition", {"rule": "chain"})
    for begin, end, outcome in hard:
        bound[begin : end + 1] = bound[begin] + outcome.bound
    verdict = worst({outcome.verdict for _, _, outcome in hard})
    method = "; ".join(dict.fromkeys(outcome.method for _, _, outcome in hard))
    proof = {"rule": "chain", "segments": [{"first": s.begin, "last": s.end, **s.outcome.proof} for s in hard]}
    area_bound = int(bound.sum()) - sum(s.slack for s in hard)
    return Outcome(order, bound, verdict, f"segments in series: {method}", proof, area_bound)


def _solve_segment(dag: Dag, solutions: Solutions, effort: Effort) -> Outcome:
    """The outcome for a dag of one segment whose blocks are not ▷-linear."""
    units = extended_chain(solutions)
    if units is not None:
        order = units_order(solutions, units)
        sizes = [sum(len(solutions[b].maxima) - 1 for b in blocks) for blocks, _ in units]
        return Outcome(order, cumulative(dag, order), OPTIMAL, "sweep", {"rule": "units", "units": sizes})
    sequence = canonical_order(dag)
    outcome = _solve_undecided(dag.renumbered(sequence), partial(block_bound, solutions), effort)
    return replace(outcome, order=sequence[outcome.order])


def _solve_undecided(dag: Dag, blocks: BlockBound, effort: Effort) -> Outcome:
    subsets = few_sets(dag, effort.cutting)
    if subsets is not None:
        return _enumerate(dag, subsets)
    labels = dag.component_labels()
    parts = [np.flatnonzero(labels == root).astype(np.int32) for root in distinct(labels[dag.outdegree > 0])]
    worthwhile = PART * len(parts) + PART_TASK * len(dag) <= effort.cutting.remaining / 2
    if 1 < len(parts) <= MOST_SUMMANDS and worthwhile:
        return _solve_sum(dag, parts, blocks, effort)
    return by_modules(dag, blocks, effort)


def _enumerate(dag: Dag, subsets: Subsets) -> Outcome:
    best, optimal = subsets.best_order()
    order = np.array(best, np.int32)
    proof = {"rule": "exact"} | ({} if optimal else {"conflict": subsets.conflict()})
    area = int(cumulative(dag, order).sum())
    return Outcome(order, subsets.maxima, OPTIMAL if optimal else IMPOSSIBLE, "enumeration", proof, area)


def _solve_sum(dag: Dag, parts: list[Ints], blocks: BlockBound, effort: Effort) -> Outcome:
    """The outcome for a sum, which admits exactly when its summands do and Sweep can interleave them."""
    dags = [dag.induced(part) for part in parts]
    half = effort.cutting.part(effort.cutting.remaining / 2)  # the other half is for the dag as one
    outcomes = _solve_parts(dags, replace(effort, cutting=half))
    verdict = worst({outcome.verdict for outcome in outcomes})
    orders = [part[outcome.order] for part, outcome in zip(parts, outcomes, strict=True)]
    proof = {
        "rule": "sum",
        "parts": [{"order": dag.named(r), **o.proof} for r, o in zip(orders, outcomes, strict=True)],
    }
    bounds = [outcome.bound for outcome in outcomes]
    long = too_long(sum(map(len, orders)))
    if verdict == OPTIMAL:
        mixed = None if long else sweep(bounds)
        if mixed is not None:
            order = np.array(mixed.merged([own.tolist() for own in orders]), np.int32)
            return Outcome(order, mixed.profile, OPTIMAL, "sweep of a sum", proof)
        verdict = BOUNDED if long else IMPOSSIBLE
    rough = by_modules(dag, blocks, replace(effort, improving=Work(0)))  # the parts are improved already
    together = sum_bound(bounds)
    bound = np.minimum(rough.bound, together)
    area_bound = min(rough.area_bound, int(bound.sum()))
    verdict = IMPOSSIBLE if rough.verdict == IMPOSSIBLE else verdict
    profiles = [cumulative(part, outcome.order) for part, outcome in zip(dags, outcomes, strict=True)]
    candidates = [(rough.method, rough.order), ("the parts, merged", merge_orders(orders, profiles))]
    method, order = improve_best(dag, candidates, effort.improving)
    verdict = OPTIMAL if np.array_equal(cumulative(dag, order), bound) else verdict
    return Outcome(order, bound, verdict, method, proof | {"modules": rough.proof}, area_bound)


def _solve_parts(dags: list[Dag], effort: Effort) -> list[Outcome]:
    """The outcome for each part of a sum; the largest costs no more than a dag with one component."""
    outcomes, largest = [], max(dags, key=len)
    for part in dags:
        effort.cutting.spend(0 if part is largest else PART + PART_TASK * len(part))
        outcomes.append(solve(part, effort)[0])
    return outcomes


def by_modules(dag: Dag, blocks: BlockBound, effort: Effort) -> Outcome:
    """The outcome module by module; the verdict follows from the modules and, if it can be computed, from M itself.

    *blocks* gives the bound by blocks. All modules attained and M = Mmod: optimal. A module refuted, or M(t) > Mmod(t) for
    some t: impossible. The area is at most the sum of the areas that the modules can have.
    """
    effort.work.tell(f"a bound for {len(dag):,} tasks")
    tree = series_parallel(dag)
    shares = best_shares(dag, effort.cutting) if tree is None else tree.shares
    solved = solve_modules(dag, shares.modules, effort)
    own = np.concatenate([m.tasks[s.order] for m, s in zip(shares.modules, solved, strict=True)])
    rough, proof = _rough_bound(shares, blocks, _best_split(solved))
    most = min(int(rough.sum()), _module_area(shares, solved))
    name, order = _largest_area(dag, shares, own, most, effort)
    proof = {
        "rule": "modules",
        "shares": shares_proof(dag, shares),
        "modules": _module_proofs(dag, shares, solved),
    } | proof
    refuted = any(s.verdict == IMPOSSIBLE for s in solved)
    attained = np.array_equal(cumulative(dag, order), rough)
    needless = attained or (refuted and all(s.exact for s in solved))
    effort.work.tell(f"the most ready tasks of {len(dag):,} tasks")
    maxima, how = (None, {}) if needless else maxima_within(dag, effort)
    exceeded = not refuted and _exceeds(maxima, shares, solved)
    better = None if needless or maxima is not None else surpassing(dag, shares.modules, solved)
    if better is not None:
        exceeded, proof = True, proof | {"better": dag.named(better)}
    bound = rough
    if maxima is not None:
        bound, proof = maxima, proof | (how if exceeded or bool((maxima < rough).any()) else {})
    elif not attained:
        bound, probes = probe_bound(dag, rough, effort.work.part(effort.probes))
        proof |= {"probes": probes_proof(dag, probes)} if probes else {}
    verdict = IMPOSSIBLE if refuted or exceeded else BOUNDED
    optimal = np.array_equal(cumulative(dag, order), bound)
    return Outcome(order, bound, OPTIMAL if optimal else verdict, name, proof, min(int(bound.sum()), most))


def _best_split(solved: list[Solved]) -> Profile | None:
    """A bound of what t tasks render, over all ways to split them among the modules; None if that takes too long.

    Rendering is supermodular: the parts of a set in the modules, each together with all modules before its own, render at
    least as much in all as the set.
    """
    lengths = np.array([len(s.maxima) for s in solved], np.int64)
    if (lengths[1:] * lengths.cumsum()[:-1]).sum() > MOST_SPLITS:
        return None
    split = np.zeros(1, np.int64)
    for s in reversed(solved):
        split = convolve(s.maxima, split)
    return split


def _rough_bound(shares: Shares, blocks: BlockBound, best: Profile | None) -> tuple[Profile, dict[str, Any]]:
    """The least of the bounds by shares, by blocks and by the best split, and the proof entries for those that are needed."""
    highest = shares.bound
    by_blocks, split = blocks(highest), highest if best is None else np.minimum(highest, best)
    rough = np.minimum(split, by_blocks)
    needed = bool((rough < np.minimum(highest, by_blocks)).any())
    return rough, {"blocks": bool((rough < (split if needed else highest)).any())} | ({"split": True} if needed else {})


def _module_proofs(dag: Dag, shares: Shares, solved: list[Solved]) -> list[dict[str, Any]]:
    """Each module's order and its proof; of several refutations only the first is kept."""
    proofs = []
    refuted = False
    for module, s in zip(shares.modules, solved, strict=True):
        own = {key: value for key, value in s.proof.items() if key != "refuted" or not refuted}
        refuted = refuted or s.verdict == IMPOSSIBLE
        proofs.append({"order": dag.named(module.tasks[s.order]), **own})
    return proofs


def _largest_area(dag: Dag, shares: Shares, own: Ints, most: int, effort: Effort) -> tuple[str, Ints]:
    """The modules' own orders, or an improved heuristic if its area is larger; no order's area exceeds *most*."""
    if cumulative(dag, own).sum() == most:
        return "module by module", own
    late = effort.cutting.over() or len(dag) > LARGEST_DUAL
    dual = [] if late else best_shares(dag.dual(), effort.cutting.part(effort.cutting.remaining / 2)).modules
    candidates = [("module by module", own), *heuristics(dag, effort.work.over(), shares.modules, dual)]
    return improve_best(dag, candidates, effort.improving.part(effort.improving.remaining / 2))


def _exceeds(maxima: Profile | None, shares: Shares, solved: list[Solved]) -> bool:
    """Whether M(t) > Mmod(t) for some t: no schedule can then be best there and at the corners."""
    if maxima is None or not all(s.exact for s in solved):
        return False
    pieces = [s.maxima[1:] + base for s, base in zip(solved, _bases(shares), strict=True)]
    return bool((maxima[1:] > np.concatenate(pieces)).any())


def _bases(shares: Shares) -> list[int]:
    """The number of tasks rendered before each module."""
    return [0, *np.cumsum([len(m.renders) for m in shares.modules])[:-1].tolist()]


def _module_area(shares: Shares, solved: list[Solved]) -> int:
    """A bound of the area: each module's own bound, on top of what is rendered before it."""
    return sum(s.area_bound + base * len(s.order) for s, base in zip(solved, _bases(shares), strict=True))
