"""The checker of plans: short, separate from the planner, and trusting none of its results.

A proof certifies, for a dag and an order of its nonsinks, a bound U(t) of M(t), the most nonsources that t executions can
render, and perhaps that no order attains every M(t). Its rules, each a method of `_Part`, rest on these facts:

- without its shortcuts a dag has the same schedules and profiles;
- nonsinks that all others follow are executed first, whatever the order: *segments* in series have their fixed steps;
- arcs that share a tail or a head belong to one *block*, whose rendering depends on that block alone: M(t) is at most the
  max-plus convolution of the blocks' maxima, which is their concatenation if each ▷ the next;
- worth that nonsources hand to their parents, and these to theirs, stays inside every closed set that renders them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.border import as_workflow, dag_of
from eligo.dag import Dag
from eligo.errors import CycleError, InputError, ScheduleError, shorten
from eligo.rows import places
from eligo.verifying import modules, positions
from eligo.verifying.blocks import (
    MOST_ITEMS_IN_ORDER,
    NOTHING,
    Numbers,
    Profile,
    Sets,
    all_sweepable,
    block_maxima,
    bound_by_parts,
    ceiling,
    convolve,
    homes,
    precedes,
    probed_bound,
    shares_bound,
    too_long,
)
from eligo.verifying.documents import PLAN, Refuted, check_document, require, shortcut_mask
from eligo.verifying.finishes import check_finish
from eligo.verifying.modules import marks_of
from eligo.verifying.space import check_space
from eligo.version import SCHEMA

Proof = Mapping[str, Any]


@dataclass(frozen=True)
class Verification:
    """The result of checking a plan by recomputation: whether it `holds`, or the `reason` why not.

    `profile` and `area` are those of the order, None if it is not a schedule. The other fields are those of the proof, None
    if it does not hold. `first_gap` is the first step with fewer eligible tasks than `upper_bound`, if any, and `tight_steps`
    the number of steps with as many.
    """

    holds: bool
    reason: str | None = None
    verdict: str | None = None
    profile: tuple[int, ...] | None = None
    upper_bound: tuple[int, ...] | None = None
    area: int | None = None
    area_bound: int | None = None
    first_gap: int | None = None
    tight_steps: int | None = None


class Certified(NamedTuple):
    """U(0..k); how far every order's sum is below the sum of U, at least; whether no order attains every M(t)."""

    bound: Profile
    slack: int = 0
    impossible: bool = False


def verify(flow: object, plan: object) -> Verification:
    """Verify a plan, or its document, against its workflow.

    Raises `InputError` if *plan* is malformed or belongs to another workflow.

    >>> from eligo.planning import plan
    >>> mesh = Dag.from_arcs([("a", "b"), ("a", "c"), ("b", "d"), ("b", "e"), ("c", "e"), ("c", "f")])
    >>> (found := verify(mesh, plan(mesh))).holds, found.verdict
    (True, 'optimal')
    >>> verify(mesh, plan(mesh).document() | {"upper_bound": (1, 2, 2, 4, 2, 1, 0)}).reason
    'the upper_bound is not what follows from the proof'
    """
    dag, result = dag_of(flow).labelled(), Verification(holds=False)
    claim: Any = plan.document() if hasattr(plan, "document") else plan
    try:
        check_document(claim, PLAN, "the plan")
        require(claim["fingerprint"] == dag.fingerprint(), "this plan belongs to another workflow", InputError)
        profile = _eligible(dag, order := dag.indices(claim["order"]))
        result = replace(result, profile=tuple(profile.tolist()), area=int(profile.sum()))
        _agree(claim, "order", profile=result.profile, area=result.area)
        _check_summary(claim, dag, int(profile.sum()))
        _check_orders(claim, dag)
        check_finish(as_workflow(flow), claim)
        check_space(as_workflow(flow), claim)
        return _check_proof(dag, order, claim, result)
    except (Refuted, ScheduleError, OverflowError) as refutation:
        return replace(result, reason=str(refutation))
    except RecursionError:
        raise InputError("the proof is nested too deeply") from None


def _check_proof(dag: Dag, order: Numbers, claim: Proof, result: Verification) -> Verification:
    shortcuts = shortcut_mask(dag)
    bare = Dag.from_checked(len(dag), dag.tails[~shortcuts], dag.child[~shortcuts], dag.names)
    spoken_of = dag.indices(claim["proof"].get("order", claim["order"]))
    part = _Part(bare, spoken_of[dag.outdegree[spoken_of] > 0])
    require(
        part.k == np.count_nonzero(dag.outdegree), "the proof's order does not have every task that others depend on"
    )
    _agree(claim, "workflow", tasks=len(dag), arcs=dag.arc_count, shortcuts=int(shortcuts.sum()))
    _agree(claim, "workflow", blocks=len(part.blocks[0]))
    proved = part.certified(claim["proof"])
    steps, profile = np.arange(len(dag) + 1), np.array(result.profile)
    bound = profile[0] - steps + proved.bound[np.minimum(steps, part.k)]
    gaps = np.flatnonzero(profile != bound).tolist()
    derived: dict[str, Any] = {
        "verdict": "impossible" if proved.impossible else "bounded" if gaps else "optimal",
        "upper_bound": tuple(bound.tolist()),
        "area_bound": int(bound.sum()) - proved.slack,
    }
    _agree(claim, "proof", **derived)
    return replace(result, holds=True, first_gap=min(gaps, default=None), tight_steps=len(dag) - len(gaps), **derived)


def _check_summary(claim: Proof, dag: Dag, area: int) -> None:
    """Check the figures for people in a plan's document, if it has them."""
    schema, usual = claim.get("schema", SCHEMA), int(_eligible(dag, dag.order).sum())
    require(
        schema in range(1, SCHEMA + 1), f"the plan has schema {schema}; this version reads up to {SCHEMA}", InputError
    )
    steps = max(1, len(dag))
    derived = {"average": area / steps, "average_first_come": usual / steps, "gain": area / usual - 1 if usual else 0.0}
    _agree(claim, "order", **{key: value for key, value in derived.items() if key in claim})


def _check_orders(claim: Proof, dag: Dag) -> None:
    """Check each order in a document: it is a schedule with the claimed averages; the plan's own order is `ready`."""
    entries = claim.get("orders", ())
    orders = {entry["name"]: entry["order"] for entry in entries}
    require(len(orders) == len(entries), "two orders have the same name", InputError)
    require(claim.get("used") in (orders or [None]), "the order used is not among the orders", InputError)
    require(
        tuple(orders.get("ready") or claim["order"]) == tuple(claim["order"]),
        "the order 'ready' is not the order of the plan",
    )
    for entry in entries:
        area = int(_eligible(dag, dag.indices(entry["order"])).sum())
        derived = {"average": area / max(1, len(dag)), "share": area / max(1, claim["area_bound"])}
        _agree(entry, f"order {shorten(entry['name'])!r}", **derived)


def _agree(claim: Proof, origin: str, **derived: Any) -> None:
    for key, value in derived.items():
        claimed = tuple(claim[key]) if isinstance(value, tuple) else claim[key]
        require(claimed == value, f"the {key} is not what follows from the {origin}")


def _eligible(dag: Dag, order: Numbers) -> Profile:
    """E(0..n) of a schedule."""
    place, step = places(len(dag), order), np.zeros(len(dag), np.int64)
    for v in np.flatnonzero(place < 0):
        raise ScheduleError(dag.tasks[v])
    for arc in np.flatnonzero(place[dag.tails] > place[dag.child]):
        raise ScheduleError(dag.tasks[dag.child[arc]], dag.tasks[dag.tails[arc]])
    np.maximum.at(step, dag.child, place[dag.tails] + 1)
    return np.cumsum(np.bincount(step, minlength=len(dag) + 1)) - np.arange(len(dag) + 1, dtype=np.int64)


def _count_spans(begin: Numbers, end: Numbers, k: int) -> Numbers:
    """For each step t = 0..k, the number of pairs with begin < t <= end."""
    held = end > begin
    changes = np.bincount(begin[held] + 1, minlength=k + 2) - np.bincount(end[held] + 1, minlength=k + 2)
    return np.cumsum(changes)[: k + 1]


class _Part:
    """Some nonsinks of a dag without shortcuts, numbered 0..k-1 in the order to be checked; then their other children."""

    def __init__(self, dag: Dag, nonsinks: Numbers) -> None:
        begin, sizes = dag.child_ptr[nonsinks], dag.child_ptr[nonsinks + 1] - dag.child_ptr[nonsinks]
        heads = dag.child[np.arange(sizes.sum()) + np.repeat(begin - np.cumsum(sizes) + sizes, sizes)]
        outside = np.setdiff1d(heads, nonsinks)
        members, tails = np.append(nonsinks, outside), np.repeat(np.arange(len(nonsinks), dtype=np.int32), sizes)
        sequence = np.argsort(members).astype(np.int32)
        place = sequence[np.searchsorted(members, heads, sorter=sequence)]
        self.dag = Dag.from_checked(len(members), tails, place, lambda: dag.named(members))
        self.k, self.tails, self.heads = len(nonsinks), self.dag.tails, self.dag.child
        eligible = _eligible(self.dag, np.arange(len(members)))[: self.k + 1]
        self.cumulative = eligible - eligible[0] + np.arange(self.k + 1)

    def segment_ends(self) -> Numbers:
        """The steps at which segments begin and end: every task before such a step has a path to every task after it.

        As there are no shortcuts, that is so exactly when the number of arcs between the tasks before without a child before,
        and the tasks after without a parent after, is the product of the numbers of these tasks.
        """
        k, inner = self.k, self.heads < self.k
        tails, heads = self.tails[inner], self.heads[inner]
        soonest, latest = np.full(k, k), np.full(k, -1)
        np.minimum.at(soonest, tails, heads)
        np.maximum.at(latest, heads, tails)
        above, below = _count_spans(np.arange(k), soonest, k), _count_spans(latest, np.arange(k), k)
        meeting = _count_spans(latest[heads], soonest[tails], k)
        return np.unique(np.append(np.flatnonzero(above * below == meeting), [0, k]))

    @cached_property
    def blocks(self) -> tuple[Numbers, Numbers]:
        """The first nonsink of each block and the block of each nonsink; blocks on a cycle of dependencies are one."""
        n = len(self.dag)  # task v is v as a parent, n + v as a child
        role = Dag.from_checked(2 * n, self.tails, self.heads + np.int32(n), None).component_labels()
        inner, label = np.flatnonzero(self.dag.indegree[: self.k]), np.arange(n, dtype=np.int32)
        while True:
            above, below = label[role[n + inner]], label[role[inner]]
            try:
                Dag.from_checked(n, above[above != below], below[above != below], None)
            except CycleError as error:
                circle = np.array(error.cycle, np.int32)
                label[np.isin(label, circle)] = circle.min()
            else:
                return np.unique(label[role[: self.k]], return_index=True, return_inverse=True)[1:]

    def maxima(self, blocks: Numbers) -> list[Profile]:
        """The maxima of these blocks; blocks with equal arcs, if their tasks are numbered in order, share one profile."""
        owner, by_shape, profiles = self.blocks[1][self.tails], dict[bytes, Profile](), []
        arcs, ends = np.argsort(owner, kind="stable"), np.append(0, np.cumsum(np.bincount(owner))).tolist()
        shape = self._shapes(owner)[arcs]
        for b in blocks.tolist():
            own = shape[ends[b] : ends[b + 1]]
            if (key := own.tobytes()) not in by_shape:
                by_shape[key] = block_maxima(*own.T)
            profiles.append(by_shape[key])
        return profiles

    def _shapes(self, owner: Numbers) -> NDArray[np.int32]:
        """The two ends of every arc, as places among the tasks of its block."""
        keys = owner * np.int64(len(self.dag)) + np.stack([self.tails, self.heads])
        tasks, place = np.unique(keys, return_inverse=True)
        begin = np.searchsorted(tasks, np.arange(owner.max(initial=-1) + 1) * np.int64(len(self.dag)))
        return np.ascontiguousarray((place - begin[owner]).T, np.int32)

    def certified(self, proof: Proof) -> Certified:
        """The facts that a proof certifies by the rule that it names. Raises `Refuted` if it does not hold."""
        result: Certified = getattr(self, f"_{proof['rule']}")(proof)
        return result

    def _chain(self, proof: Proof) -> Certified:
        """Rule `chain`: segments in series; those that are not listed run block by block, each block ▷ the next."""
        ends, first, gains = self.segment_ends(), self.blocks[0], np.diff(self.cumulative)
        spans, listed, slack, impossible = set(pairwise(ends.tolist())), np.zeros(self.k, np.bool_), 0, False
        for entry in proof.get("segments", ()):
            span = (entry["first"], entry["last"])
            require(
                span in spans and entry["rule"] != "chain", f"{span} is not a segment that can be proved separately"
            )
            spans.remove(span)
            inner = _Part(self.dag, np.arange(*span)).certified(entry)
            gains[slice(*span)], listed[slice(*span)] = np.diff(inner.bound), True
            slack, impossible = slack + inner.slack, impossible or inner.impossible
        linear = np.flatnonzero(~listed[first])
        segment = np.searchsorted(ends, first[linear], side="right")
        _check_run(self.maxima(linear), gains[~listed], segment[:-1] == segment[1:])
        return Certified(np.append(0, np.cumsum(gains)), slack, impossible)

    def _units(self, proof: Proof) -> Certified:
        """Rule `units`: units of whole blocks, each ▷ the next."""
        sizes, (first, block) = proof["units"], self.blocks
        require(min(sizes, default=0) > 0 and sum(sizes) == self.k, "the units are not made of all tasks")
        unit = np.repeat(np.arange(len(sizes)), sizes)
        require((unit == unit[first][block]).all(), "a block is divided between units")
        maxima = [NOTHING] * len(sizes)
        for u, own in zip(unit[first].tolist(), self.maxima(np.arange(len(first))), strict=True):
            maxima[u] = convolve(maxima[u], own)
        _check_run(maxima, np.diff(self.cumulative), np.ones(len(sizes) - 1, np.bool_))
        return Certified(self.cumulative)

    def _exact(self, proof: Proof) -> Certified:
        """Rule `exact`: all closed sets; an order attains M(t) at some steps exactly when no sum over these is larger."""
        sets = Sets(self.tails, self.heads, MOST_ITEMS_IN_ORDER)
        require(sets.fit, "too many tasks to enumerate all sets")
        bound, steps, conflict = sets.maxima(), np.arange(self.k + 1), proof.get("conflict", ())
        attained, chosen = np.array_equal(self.cumulative, bound), np.isin(steps, conflict)
        area = int(bound.sum()) if attained else sets.largest_sum(steps >= 0)
        require(area == self.cumulative.sum(), "the order does not have the largest area")
        apart = not conflict or (chosen.sum() == len(conflict) and sets.largest_sum(chosen) < bound[chosen].sum())
        require(apart, "one order is best after all the steps said to be in conflict")
        return Certified(bound, int(bound.sum()) - area, area < bound.sum())

    def _sum(self, proof: Proof) -> Certified:
        """Rule `sum`: connected parts admit an optimal order exactly when each does and Sweep can interleave them."""
        labels, index = self.dag.component_labels()[: self.k], self.dag.index
        missing = [np.flatnonzero(labels == home).tolist() for home in np.unique(labels)]
        bounds, attained, impossible = list[Profile](), True, False
        for entry in proof["parts"]:
            tasks = [index.get(name, -1) for name in entry["order"]]
            require(sorted(tasks) in missing and len(tasks) < self.k, "a part is not one of several connected ones")
            missing.remove(sorted(tasks))
            part = _Part(self.dag, np.array(tasks))
            proved = part.certified(entry)
            attained = attained and np.array_equal(part.cumulative, proved.bound)
            bounds, impossible = [*bounds, proved.bound], impossible or proved.impossible
        require(not missing, "a connected part is missing")
        bound, decided = bound_by_parts(bounds), attained and not too_long(self.k)
        impossible = impossible or (decided and not all_sweepable(bounds))
        if "modules" not in proof:
            return Certified(bound, impossible=impossible)
        require(proof["modules"]["rule"] == "modules", "the modules of a sum are not given as modules", InputError)
        by_modules = self._modules(proof["modules"])
        area, bound = int(by_modules.bound.sum()) - by_modules.slack, np.minimum(bound, by_modules.bound)
        return Certified(bound, max(0, int(bound.sum()) - area), impossible or by_modules.impossible)

    def _modules(self, proof: Proof) -> Certified:
        """Rule `modules`: module by module between strict corners of the hull; see `deciding.modules` for the lemmas."""
        bound, corners = shares_bound(self.dag, proof["shares"]), proof["shares"]["modules"]
        strict = all(a["p"] * b["q"] > b["p"] * a["q"] for a, b in pairwise(corners))
        require(strict and len(corners) == len(proof["modules"]), "the modules are not those of the strict corners")
        area, pieces, alone, exact, impossible = 0, [NOTHING], list[Profile](), True, False
        inner = self._within(corners)
        for module, entry in zip(corners, proof["modules"], strict=True):
            require(sorted(entry["order"]) == sorted(module["tasks"]), "a module's order does not have its tasks")
            part = _Part(inner, np.array([inner.index[name] for name in entry["order"]], np.int32))
            proved = part.certified(entry) if entry["rule"] != "bound" else part.below(ceiling(module), entry)
            area += int(proved.bound.sum()) - proved.slack + int(pieces[-1][-1]) * part.k
            pieces.append(pieces[-1][-1] + proved.bound[1:])
            alone.append(proved.bound)
            exact = exact and (entry["rule"] != "bound" or np.array_equal(part.cumulative, proved.bound))
            impossible = impossible or proved.impossible
        if proof["blocks"]:
            bound = np.minimum(bound, bound_by_parts(self.maxima(np.arange(len(self.blocks[0])))))
        if proof.get("split"):
            bound = np.minimum(bound, reduce(convolve, alone))
        bound = probed_bound(self.dag, bound, proof.get("probes", ()))
        if "elimination" in proof:
            bound = self._eliminate(proof["elimination"])
            impossible = impossible or (exact and bool((bound > np.concatenate(pieces)).any()))
        if "better" in proof:
            require(exact and self._surpasses(proof["better"], np.concatenate(pieces)), "no set surpasses the modules")
            impossible = True
        return Certified(bound, max(0, int(bound.sum()) - area), impossible)

    def _surpasses(self, names: Sequence[str], usual: Profile) -> bool:
        """Whether these tasks, with their parents, render more than as many tasks that agree with the corners can."""
        index, done = self.dag.index, np.zeros(len(self.dag), np.bool_)
        require(len(set(names)) == len(names) < len(usual) and all(name in index for name in names), "no set of tasks")
        done[[index[name] for name in names]] = True
        satisfied = np.bincount(self.heads, ~done[self.tails], minlength=len(self.dag)) == 0
        working = np.bincount(self.tails, minlength=len(self.dag)) > 0
        rendered = satisfied & (np.bincount(self.heads, minlength=len(self.dag)) > 0)
        return bool(satisfied[done].all() and working[done].all() and rendered.sum() > usual[len(names)])

    def _within(self, corners: Sequence[Proof]) -> Dag:
        """The dag of the arcs within modules; the tasks before a module count as executed."""
        done, out = (homes(self.dag, corners, key) for key in ("tasks", "renders"))
        before, rendered, after = done[self.tails], out[self.heads], done[self.heads]
        closed = ((before <= rendered) & ((rendered <= after) | (after < 0))).all()
        require(closed, "a module depends on a later one")
        own = before == rendered
        return Dag.from_checked(len(self.dag), self.tails[own], self.heads[own], self.dag.tasks)

    def _eliminate(self, how: Proof) -> Profile:
        """M(t), by eliminating the tasks in the given order."""
        roles = modules.roles(self.dag, how["order"], how.get("executed_first"))
        require(sorted(roles) == modules.all_roles(self.dag), "not every task is eliminated once")
        require(modules.swaps_hold(self.dag, how["alike"]), "tasks said to be alike cannot be swapped")
        return modules.exact_maxima(self.dag, roles, how["alike"])

    def below(self, ceiling: Profile, proof: Proof) -> Certified:
        """A module under a ceiling, lowered by probes; if the proof has an area, no order has a larger one."""
        bound = probed_bound(self.dag, ceiling, proof.get("probes", ()))
        slack = int(bound.sum()) - self._largest(proof) if "area" in proof else 0
        return Certified(bound, max(slack, self._piece_slack(bound, proof)))

    def _piece_slack(self, bound: Profile, proof: Proof) -> int:
        """How far the area of every order is below a bound, by the pieces of the proof: see `deciding.modules`.

        If t of k tasks never render more than t / k of all, some order of largest area passes through a chain of sets that
        render exactly that. Between two of these sets, only tasks count that are rendered after the second but not after the
        first.
        """
        if not proof.get("pieces"):
            return 0
        order = [self.dag.index.get(name, -1) for entry in proof["pieces"] for name in entry["order"]]
        filled = all(entry["order"] for entry in proof["pieces"])
        require(filled and sorted(order) == list(range(self.k)), "the pieces do not have every task once")
        chain, steps, every = _Part(self.dag, np.array(order)), np.arange(self.k + 1), int(bound[-1])
        ends = np.cumsum([0, *(len(entry["order"]) for entry in proof["pieces"])])
        tight = (bound * self.k <= steps * every).all() and (chain.cumulative[ends] * self.k == ends * every).all()
        require(tight, "a piece is not as dense as its module")
        last = np.zeros(len(chain.dag), np.int64)
        np.maximum.at(last, chain.heads, chain.tails)
        own = np.searchsorted(ends, chain.tails, side="right") == np.searchsorted(ends, last[chain.heads], side="right")
        inner, area = Dag.from_checked(len(chain.dag), chain.tails[own], chain.heads[own], chain.dag.tasks), 0
        for entry, (begin, end) in zip(proof["pieces"], pairwise(ends.tolist()), strict=True):
            part, before = _Part(inner, np.arange(begin, end)), int(chain.cumulative[begin])
            require("pieces" not in entry and entry["rule"] != "chain", "a piece is not proved separately")
            most = np.minimum(np.arange(part.k + 1) * every // self.k, part.cumulative[-1])
            proved = part.certified(entry) if entry["rule"] != "bound" else part.below(most, entry)
            area += int(proved.bound.sum()) - proved.slack + before * part.k
        return max(0, int(bound.sum()) - area)

    def _largest(self, proof: Proof, maxima: Profile | None = None, marks: positions.Marks | None = None) -> int:
        """The sum of the order's profile, checked to be the largest: as a series-parallel dag, or by search."""
        own, best = int(self.cumulative.sum()), positions.series_parallel_area(self.dag)
        if best is None and maxima is not None:
            best = positions.largest_area(self.dag, maxima, own, proof.get("swaps", ()), marks)
        require(best == own == proof["area"], "the order does not have the largest area")
        return own

    def _bound(self, proof: Proof) -> Certified:
        raise Refuted("the rule outside modules must be chain, units, exact, sum, modules or elimination, got 'bound'")

    def _elimination(self, proof: Proof) -> Certified:
        """Rule `elimination`: a module of small width; perhaps no order attains its maxima, or none has a larger area."""
        bound, marks = self._eliminate(proof["elimination"]), marks_of(self.dag, proof.get("marked"))
        refuted, closed, swaps = bool(proof.get("refuted")), "area" in proof, proof.get("swaps", ())
        require(all(modules.exchange_holds(self.dag, pairs) for pairs in swaps), "parts said to be alike are not")
        slack = int(bound.sum() - marks.to_come[0, 0]) if marks is not None else 0
        if closed:
            slack = int(bound.sum()) - self._largest(proof, bound, marks)
        slack = max(slack, self._piece_slack(bound, proof))
        if refuted:
            apart = slack > 0 or (not closed and not positions.attains_maxima(self.dag, bound, swaps))
            require(apart, "an order attains the maxima")
        return Certified(bound, slack, refuted)


def _check_run(profiles: list[Profile], gains: Profile, joined: NDArray[np.bool_]) -> None:
    """Check that every profile is attained in turn, and where *joined* is ▷ the next, so that no mixture renders more."""
    own = {id(profile): np.diff(profile) for profile in {id(profile): profile for profile in profiles}.values()}
    attained = np.array_equal(gains, np.concatenate([gains[:0], *(own[id(profile)] for profile in profiles)]))
    require(attained, "a block or unit is not run at its maxima")
    pairs = {(id(profiles[i]), id(profiles[i + 1])): profiles[i : i + 2] for i in np.flatnonzero(joined).tolist()}
    require(all(precedes(a, b) for a, b in pairs.values()), "a block or unit does not have priority over the next")
