"""Policies: which ready task to hand out next.

A policy is data, so that the simulators play it compiled and an allocator plays it live: a static score for every task, a
dynamic part, and a rule for equal scores.

    score(v) = static(v) + weight * sqrt(sum over the children c of v in reach of phi[missing(c)] * static(c) / static(v))

missing(c) counts the parents of c that are not handed out yet: a task that was handed out counts as done, until its holder
is lost. A child is in reach once all these parents are ready. The default is `balanced`: the longest remaining path plus the
releases that are certain or near. A weight just above 1 lets one certain release outbid one level of the path if as much
depends on it; the root keeps large fan-outs from outbidding long paths.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from eligo.border import as_workflow
from eligo.dag import Dag
from eligo.errors import InputError
from eligo.estimates import estimate
from eligo.formats import read_order
from eligo.kernels.boards import Board
from eligo.kernels.games import pebbles
from eligo.planning import plan
from eligo.rows import Ints, distinct, places
from eligo.theory.eligibility import Order, eligible_steps, order_indices
from eligo.theory.skeleton import skeleton
from eligo.workflow import Workflow

Floats = NDArray[np.float64]

TIES = {"rank": 0, "first": 1, "last": 2, "random": 3}  # numbers used by the kernel
#: the weight of a child with 0, 1, 2, 3 or 4 missing parents; 0 for more
RELEASES = (0.0, 1.0, 1 / 4, 1 / 16, 1 / 16)
WEIGHT = 1.1
PARTS = 65536.0  # of a mean task time: the resolution of paths in seconds
FAN_OUT = 4.0  # weighted releases at the end of a chain that justify finishing it first


@dataclass(frozen=True, eq=False)
class Policy:
    """A rule that chooses among ready tasks: the largest score first (see above).

    Equal scores go by *ties*: "rank" (the smaller rank first), "first" or "last" (to become ready), or "random". Tasks that
    become ready together arrive by rank; under "first" and "last", those of equal rank in random order.
    """

    name: str
    dag: Dag
    score: Floats
    weight: float = 0.0
    phi: tuple[float, ...] = ()
    ties: str = "rank"
    rank: Ints = field(default_factory=lambda: np.zeros(0, np.int32))
    #: offsets by which priority classes are separated; empty if there is one class
    lead: Floats = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        if not len(self.rank):
            object.__setattr__(self, "rank", np.arange(len(self.dag), dtype=np.int32))
        if not len(self.score) == len(self.rank) == len(self.dag):
            raise InputError(f"{self.name}: each of the {len(self.dag)} tasks must have a score and a rank")
        if not np.isfinite(self.score).all():
            raise InputError(f"{self.name}: scores must be finite")
        if self.weight and not (self.score > 0).all():
            raise InputError(f"{self.name}: scores must be positive if the weight of releases is not 0")
        if self.weight < 0 or any(worth < 0 for worth in self.phi):
            raise InputError(f"{self.name}: the weight of releases must not be negative")
        if self.ties not in TIES:
            raise InputError(f"unknown ties {self.ties!r} (choose from {', '.join(TIES)})")

    def __repr__(self) -> str:
        return f"Policy({self.name!r}, {len(self.dag)} tasks)"

    @property
    def drawn(self) -> bool:
        """Whether any choice is random, so that another seed may give another order."""
        if self.ties in {"first", "last"}:
            return len(distinct(self.rank)) < len(self.rank)
        return self.ties == "random"

    @property
    def queue(self) -> bool:
        """Whether all scores are equal, so that only the time of arrival counts."""
        level = not self.weight and np.ptp(self.score) == 0 if len(self.score) else True
        return level and self.ties in {"first", "last"} and not len(self.lead)

    @cached_property
    def _rows(self) -> tuple[Ints, Ints]:
        """Each task's children, and the sources, by rank."""
        order = np.lexsort((self.rank[self.dag.child], self.dag.tails))
        sources = np.flatnonzero(self.dag.indegree == 0).astype(np.int32)
        return self.dag.child[order], sources[np.argsort(self.rank[sources], kind="stable")]

    def row_of(self, v: int) -> Ints:
        """The children of task number v, by rank."""
        first = self.dag.child_ptr
        return self._rows[0][first[v] : first[v + 1]]

    def board(self, both_ends: bool = False) -> Board:
        """A new game for the kernels; *both_ends* if the lowest score is needed too."""
        dag, (children, sources) = self.dag, self._rows
        rows = (dag.child_ptr, children, dag.parent_ptr, dag.parent, sources)
        square = self.weight * self.weight
        phi = np.array(self.phi, np.float64)
        return Board(*rows, self.score, phi, square, TIES[self.ties], self.rank, self.lead, both_ends)

    def order(self, seed: int = 0) -> Ints:
        """The order in which it executes the tasks one by one, as numbers; `eligo.profile` computes its E(t).

        >>> dag = Dag.from_arcs([("a", "c"), ("b", "d"), ("b", "e")])
        >>> dag.named(greedy(dag).order())[0]
        'b'
        """
        order, eligible = np.empty(len(self.dag), np.int32), np.empty(len(self.dag) + 1, np.int32)
        pebbles(self.board(), seed, order, eligible)
        return order


def balanced(dag: Dag, rank: Ints | None = None, seconds: Floats | None = None) -> Policy:
    """The default: longest remaining path plus certain and near releases; equal scores by *rank*, for example a plan's order.

    A fixed rank keeps siblings together; the default rank follows branches to their ends. Paths are counted in tasks, or in
    *seconds* if run times are known or estimated. In tasks, a chain of single tasks that ends in a fan-out keeps the path
    length of its first task all the way down, so that a started chain continues to its fan-out before others start: one-step
    releases cannot see that far.
    """
    bare = skeleton(dag)
    place = finishing_rank(bare) if rank is None else rank
    paths = _levels(bare) + _chain_credit(bare) if seconds is None else _in_mean_tasks(bare, seconds)
    return Policy("balanced", bare, paths, WEIGHT, RELEASES, "rank", place)


def _in_mean_tasks(dag: Dag, seconds: Floats) -> Floats:
    """The longest remaining path from every task in mean task times, rounded so that sums of many are exact."""
    mean = math.fsum(seconds) / max(1, len(seconds))
    return np.maximum(np.round(_paths(dag, seconds) * (PARTS / mean)), 1.0) / PARTS


def _paths(dag: Dag, seconds: Floats) -> Floats:
    """The longest path from every task down to a sink, including the task."""
    return dag.longest_paths(seconds) + seconds


def _chain_credit(dag: Dag) -> Floats:
    """For each task of a chain that ends in a fan-out, the number of earlier tasks of the chain; 0 elsewhere."""
    n, tails, heads = len(dag), dag.tails, dag.child
    only = (dag.outdegree[tails] == 1) & (dag.indegree[heads] == 1)
    first, last = np.arange(n, dtype=np.int32), np.arange(n, dtype=np.int32)
    first[heads[only]], last[tails[only]] = tails[only], heads[only]
    first, last = _followed(first), _followed(last)
    worth = np.append(RELEASES, 0.0)[np.minimum(dag.indegree, len(RELEASES))]
    releases = np.bincount(tails, worth[heads], minlength=n)
    return np.where(releases[last] >= FAN_OUT, dag.height[first] - dag.height, 0).astype(np.float64)


def _followed(step: Ints) -> Ints:
    """The ends of chains of steps, by repeated squaring."""
    while not np.array_equal(further := step[step], step):
        step = further
    return step


def fifo(dag: Dag) -> Policy:
    """First come, first served; tasks that become ready together by outdegree, ties at random [1]_, section 3.2.

    .. [1] Hall, Rosenberg, Venkataramani (2006): A comparison of dag-scheduling strategies for Internet-based computing.
    """
    return Policy("fifo", dag, np.zeros(len(dag)), ties="first", rank=_by_outdegree(dag))


def lifo(dag: Dag) -> Policy:
    """Last come, first served; tasks that become ready together by outdegree, ties at random, as for `fifo`."""
    return Policy("lifo", dag, np.zeros(len(dag)), ties="last", rank=_by_outdegree(dag))


def greedy(dag: Dag, ties: str = "random") -> Policy:
    """The most children first; ties at random as in [1]_ of `fifo`, or by the "first" to become ready."""
    if ties not in {"random", "first"}:
        raise InputError(f'ties of the greedy policy must be "random" or "first", got {ties!r}')
    name = "greedy" if ties == "random" else "greedy-fifo"
    return Policy(name, dag, dag.outdegree.astype(np.float64), ties=ties, rank=np.zeros(len(dag), np.int32))


def random(dag: Dag) -> Policy:
    """A random ready task, all equally likely."""
    return Policy("random", dag, np.zeros(len(dag)), ties="random")


def critical_path(dag: Dag, seconds: Floats | None = None) -> Policy:
    """The longest remaining path first, in tasks or in seconds; ties by the first to become ready, then by number."""
    if seconds is None:
        return Policy("critical-path", dag, _levels(dag), ties="first")
    return Policy("critical-path-seconds", dag, _paths(dag, np.asarray(seconds, np.float64)), ties="first")


def from_order(dag: Dag, order: Order, name: str = "order") -> Policy:
    """The ready task that comes first in a schedule.

    >>> dag = Dag.from_arcs([("a", "b"), ("a", "c")])
    >>> from_order(dag, ["a", "c", "b"], "mine").rank.tolist()
    [0, 2, 1]
    """
    eligible_steps(dag, order)  # raises if it is not a schedule
    return Policy(name, dag, np.zeros(len(dag)), rank=rank_of(dag, order))


def rank_of(dag: Dag, order: Order) -> Ints:
    """The position of every task in an order."""
    return places(len(dag), order_indices(dag, order))


def in_classes(policy: Policy, priorities: Sequence[int | None]) -> Policy:
    """The policy applied within equal priorities, larger priorities first; None counts as 0.

    >>> dag = Dag.from_arcs([], "abc")
    >>> dag.named(in_classes(from_order(dag, "abc"), [None, 7, 7]).order())
    ('b', 'c', 'a')
    """
    numbers = [number or 0 for number in priorities]
    classes = {number: place for place, number in enumerate(sorted(set(numbers)))}
    if len(classes) < 2:
        return replace(policy, lead=np.zeros(0))
    places = np.fromiter((classes[number] for number in numbers), np.float64, len(numbers))
    return replace(policy, lead=places * _widest(policy))


def _widest(policy: Policy) -> float:
    """A power of two above the difference of any two scores, including all that releases can add."""
    score, dag = policy.score, policy.dag
    most = score.copy()
    if policy.weight:
        below = np.bincount(dag.tails, score[dag.child], minlength=len(dag)) * max(policy.phi, default=0.0)
        most += policy.weight * np.sqrt(below / score)
    return float(2.0 ** np.ceil(np.log2(most.max() - score.min() + 1.0)))


def grown(policy: Policy, flow: Workflow) -> Policy:
    """The policy for its grown workflow; scores are recomputed if possible, else new tasks get the lowest.

    The order by which ties are broken is kept, with new tasks just before the tasks that need them, or at the end.

    >>> dag = Dag.from_arcs([("a", "b"), ("c", "d"), ("new", "d"), ("b", "last")], tasks=["a", "b", "c", "d", "new", "last"])
    >>> dag.named(grown(from_order(Dag.from_arcs([("a", "b"), ("c", "d")]), "cdab"), Workflow(dag)).order())
    ('c', 'new', 'd', 'a', 'b', 'last')
    """
    bare = skeleton(flow.dag)
    order, more = order_grown(bare, policy.rank), len(bare) - len(policy.rank)
    if policy.name in POLICIES and policy.name not in KEPT:
        return POLICIES[policy.name](flow, bare, order)
    score = np.append(policy.score, np.full(more, policy.score.min(initial=1.0)))
    return replace(policy, dag=bare, score=score, rank=rank_of(bare, order))


def order_grown(dag: Dag, rank: Ints) -> Ints:
    """A schedule of a grown dag by the ranks of its first tasks; new ones come just before their children, or at the end."""
    old, n, last = len(rank), len(dag), 2 * int(rank.max(initial=0)) + 2
    key = dict.fromkeys(range(old, n), last)  # twice the rank of a position just before a task
    for v in dag.order[dag.order >= old][::-1].tolist():
        below = dag.children_of(v).tolist()
        key[v] = min((key[w] if w >= old else 2 * rank.item(w) for w in below), default=last)
    keys = np.append(2 * rank.astype(np.int64) + 1, np.array(list(key.values()), np.int64))
    return Policy("", dag, np.zeros(n), rank=places(n, np.argsort(keys, kind="stable"))).order()


def finishing_rank(dag: Dag) -> Ints:
    """The position of every task in a depth-first walk up from the sinks, which keeps the ancestors of a sink together."""
    seen, order = np.zeros(len(dag), np.bool_).tolist(), []
    ptr, parent = dag.parent_ptr.tolist(), dag.parent.tolist()
    for sink in np.flatnonzero(dag.outdegree == 0).tolist():
        stack = [sink]
        while stack:
            v = stack.pop()
            if v < 0:
                order.append(~v)
            elif not seen[v]:
                seen[v] = True
                stack.append(~v)
                stack += [u for u in reversed(parent[ptr[v] : ptr[v + 1]]) if not seen[u]]
    return rank_of(dag, np.array(order, np.int32))


def _by_outdegree(dag: Dag) -> Ints:
    """The rank of each task by outdegree, largest first; equal for ties."""
    return np.asarray(dag.outdegree.max(initial=0) - dag.outdegree, np.int32)


def _levels(dag: Dag) -> Floats:
    """The number of tasks on the longest path from every task down to a sink, including the task."""
    return np.asarray(dag.height + 1, np.float64)


# By name


#: policies that use the order of the workflow's plan, and the effort of that plan. If it only breaks ties, more effort gains
#: nothing: on 28 real workflows, a normal plan changed four orders and no number of rounds by 0.01 %
PLAN_EFFORT = {"finish": "quick", "balanced": "quick", "ready": "normal"}


def _planned(name: str, flow: Workflow, order: Order | None) -> Order:
    return plan(flow, PLAN_EFFORT[name]).sequence if order is None else order


def _of_dask(bare: Dag) -> Policy:
    from eligo.interop.dask import dask_rank

    return Policy("dask", bare, np.zeros(len(bare)), rank=dask_rank(bare))


def _of_space(flow: Workflow, bare: Dag) -> Policy:
    from eligo.space.footprint import Footprint
    from eligo.space.orders import space_order

    return from_order(bare, space_order(Footprint.of(flow)), "space")


def finish(flow: Workflow, bare: Dag, order: Order | None) -> Policy:
    """The earliest expected finish: `balanced` in tasks, or in the seconds of tasks or of their kinds."""
    times, place = estimate(flow), rank_of(bare, _planned("finish", flow, order))
    if times.level == "nothing" or not len(flow):
        return replace(balanced(bare, _larger_twins_first(flow, bare, place)), name="finish")
    larger = places(len(bare), np.lexsort((place, -_input_sizes(flow))).astype(np.int32))
    return replace(balanced(bare, larger, times.seconds), name="finish")


def _input_sizes(flow: Workflow) -> Floats:
    """The bytes that every task reads, as far as known."""
    size = flow.file_sizes
    if not size:
        return np.zeros(len(flow))
    return np.array([sum(size.get(file, 0) for file in flow.task(name).inputs) for name in flow.dag.tasks], np.float64)


def _larger_twins_first(flow: Workflow, bare: Dag, place: Ints) -> Ints:
    """The ranks of tasks, with those of twins (same parents and children) redistributed by input size."""
    sizes = _input_sizes(flow)
    if not sizes.any():
        return place
    twins: dict[tuple[bytes, bytes], list[int]] = {}
    for v in np.lexsort((place, -sizes)).tolist():
        around = (np.sort(bare.parents_of(v)).tobytes(), np.sort(bare.children_of(v)).tobytes())
        twins.setdefault(around, []).append(v)
    dealt = place.copy()
    for group in twins.values():
        dealt[group] = np.sort(place[group])
    return dealt


#: every policy by name: a function of a workflow, its dag without shortcuts, and its plan's order (None: computed)
POLICIES: dict[str, Callable[[Workflow, Dag, Order | None], Policy]] = {
    "finish": finish,
    "balanced": lambda flow, bare, order: balanced(bare, rank_of(bare, _planned("balanced", flow, order))),
    "ready": lambda flow, bare, order: from_order(bare, _planned("ready", flow, order), "ready"),
    "fifo": lambda flow, bare, order: fifo(bare),
    "lifo": lambda flow, bare, order: lifo(bare),
    "greedy": lambda flow, bare, order: greedy(bare),
    "greedy-fifo": lambda flow, bare, order: greedy(bare, "first"),
    "random": lambda flow, bare, order: random(bare),
    "critical-path": lambda flow, bare, order: critical_path(bare),
    "critical-path-seconds": lambda flow, bare, order: critical_path(bare, estimate(flow).seconds),
    "dask": lambda flow, bare, order: _of_dask(bare),
    "space": lambda flow, bare, order: _of_space(flow, bare),
}


#: policies whose order takes too long to be computed each time that a workflow grows: new tasks are added to it
KEPT = ("space",)

#: the old names of policies
OLD_NAMES = {"plan": "ready"}


def present_name(policy: str) -> str:
    """The present name of a policy; warns if the name is deprecated."""
    if policy not in OLD_NAMES:
        return policy
    new = OLD_NAMES[policy]
    warnings.warn(f"policy {policy!r} is deprecated: use {new!r}", DeprecationWarning, stacklevel=3)
    return new


def policy(name: str, flow: object, order: Order | None = None) -> Policy:
    """Create the policy with this name for a workflow, or one that follows the order in a file.

    "finish", "balanced" and "ready" use the order of the workflow's plan, which is computed if it is not given.
    Shortcuts are removed first: they do not affect which tasks are ready, but would count as children.

    >>> policy("fifo", {"a": [], "b": ["a"], "c": ["a"]})
    Policy('fifo', 3 tasks)
    >>> policy("quickest", {"a": []})
    Traceback (most recent call last):
    eligo.errors.InputError: unknown policy 'quickest' (choose from finish, balanced, ready, ...
    """
    workflow = as_workflow(flow)
    bare = skeleton(workflow.dag)
    name = present_name(name)
    if name in POLICIES:
        return POLICIES[name](workflow, bare, order)
    if not Path(name).is_file():
        raise InputError(f"unknown policy {name!r} (choose from {', '.join(POLICIES)}, or give a file with an order)")
    return from_order(bare, read_order(name), Path(name).stem)
