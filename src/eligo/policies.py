"""Policies: which ready task to hand out next.

A policy is data, so that the simulators play it compiled and a server plays it live: a static score for every task, a
dynamic part, and a rule for equal scores.

    score(v) = static(v) + weight * sqrt(sum over the children c of v of phi[missing(c)])

missing(c) counts the parents of c that nobody has taken yet: a task that was handed out counts as done, and is put back when
whoever has it is lost. The default is `balanced`: the longest remaining path plus the releases that are certain or near.
A weight just above 1 lets one certain release outbid exactly one level of the path; the root keeps large fan-outs from
outbidding long paths.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.errors import InputError
from eligo.execution import Execution
from eligo.kernels.games import Board
from eligo.rows import Ints
from eligo.theory.eligibility import Order, eligible_steps, order_indices
from eligo.theory.skeleton import skeleton

Floats = NDArray[np.float64]

TIES = {"rank": 0, "first": 1, "last": 2, "random": 3}  # as the kernel numbers them
#: the worth of a child that misses 0, 1, 2, 3 or 4 parents; nothing beyond
RELEASES = (0.0, 1.0, 1 / 4, 1 / 16, 1 / 16)
WEIGHT = 1.01
FAN_OUT = 4.0  # releases at the end of a chain that are worth finishing what was begun for
SLOW = 0.5  # of the mean speed: slower clients get the ready task of the lowest score


@dataclass(frozen=True, eq=False)
class Policy:
    """A rule of choice among ready tasks: the largest score first, see above.

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
    #: where several tasks are asked for together, choose the set of them that leaves the most tasks ready
    whole: bool = False

    def __post_init__(self) -> None:
        if not len(self.rank):
            object.__setattr__(self, "rank", np.arange(len(self.dag), dtype=np.int32))
        if not len(self.score) == len(self.rank) == len(self.dag):
            raise InputError(f"{self.name}: a score and a rank are needed for each of {len(self.dag)} tasks")
        if not np.isfinite(self.score).all():
            raise InputError(f"{self.name}: a score is not finite")
        if self.weight < 0 or any(worth < 0 for worth in self.phi):
            raise InputError(f"{self.name}: the weight of releases is not negative")
        if self.ties not in TIES:
            raise InputError(f"there is no way {self.ties!r} to break ties; there are {', '.join(TIES)}")

    def __repr__(self) -> str:
        return f"Policy({self.name!r}, {len(self.dag)} tasks)"

    @property
    def drawn(self) -> bool:
        """Whether chance decides anything, so that another seed may give another order."""
        if self.ties in {"first", "last"}:
            return len(np.unique(self.rank)) < len(self.rank)
        return self.ties == "random"

    @property
    def queue(self) -> bool:
        """Whether every score is the same, so that only the time of arrival counts."""
        level = not self.weight and np.ptp(self.score) == 0 if len(self.score) else True
        return level and self.ties in {"first", "last"}

    @cached_property
    def _rows(self) -> tuple[Ints, Ints]:
        """Each task's children, and the sources, by rank."""
        order = np.lexsort((self.rank[self.dag.child], self.dag.tails))
        sources = np.flatnonzero(self.dag.indegree == 0).astype(np.int32)
        return self.dag.child[order], sources[np.argsort(self.rank[sources], kind="stable")]

    def board(self, both_ends: bool = False) -> Board:
        """A fresh game for the kernels; *both_ends* where the lowest score is asked for too."""
        dag, (children, sources) = self.dag, self._rows
        rows = (dag.child_ptr, children, dag.parent_ptr, dag.parent, sources)
        square = self.weight * self.weight
        phi = np.array(self.phi, np.float64)
        return Board(*rows, self.score, phi, square, TIES[self.ties], self.rank, both_ends)

    def chooser(self, execution: Execution, seed: int = 0) -> "Chooser":
        """Play this policy live."""
        return Chooser(self, execution, seed)


class Chooser:
    """A policy over a running execution: takes and gives back by its rule, in O(log n) a decision.

    Every move goes through the chooser, which makes it in the execution.

    >>> dag = Dag.from_arcs([("a", "c"), ("b", "c"), ("b", "d"), ("d", "e")])
    >>> chooser = balanced(dag).chooser(Execution(dag))
    >>> chooser.take(), chooser.take(), chooser.take()
    ('b', 'a', None)
    >>> chooser.complete("b"), chooser.release("a"), chooser.take()
    (('d',), None, 'a')
    """

    def __init__(self, policy: Policy, execution: Execution, seed: int = 0) -> None:
        if policy.dag.tasks != execution.dag.tasks:
            raise InputError(f"the policy {policy.name!r} was made for another dag")
        self.policy, self.execution = policy, execution
        self._board = policy.board(both_ends=True)
        self._board.reset(seed)
        dag = policy.dag
        for task in execution.executed:
            self._take(dag.index[task])
            self._board.finish(dag.index[task])
        for task in (*execution.allocated, *execution.failed):
            self._take(dag.index[task])
        for task in execution.failed:
            self._board.lose(dag.index[task])

    def peek(self, speed: float | None = None) -> str | None:
        """The task that `take` would hand out, or None where none is ready.

        *speed* is what is known of the client, as a share of the mean: one slower than half of it gets the ready task of
        the lowest score, so that it does not hold up what much depends on. A client without a history counts as normal.
        """
        slow = speed is not None and speed < SLOW
        v = self._board.worst.top() if slow else self._board.best.top()
        return None if v < 0 else self.policy.dag.tasks[v]

    def take(self, speed: float | None = None) -> str | None:
        """Hand out the next task, or None where none is ready."""
        task = self.peek(speed)
        if task is not None:
            self.execution.take(task)
            self._take(self.policy.dag.index[task])
        return task

    def complete(self, task: str) -> tuple[str, ...]:
        """A task came back done. Returns those that became ready by it."""
        fresh = self.execution.complete(task)
        self._board.finish(self.policy.dag.index[task])
        return fresh

    def fail(self, task: str) -> None:
        """A task failed: nobody gets it until it is released, and what needs it waits for it again."""
        self.execution.fail(task)
        self._board.lose(self.policy.dag.index[task])

    def release(self, task: str) -> None:
        """A task whose client was lost, or that failed, is ready again."""
        failed = task in self.execution.failed
        self.execution.release(task)
        v = self.policy.dag.index[task]
        if not failed:
            self._board.lose(v)
        self._board.arrive(v)

    def _take(self, v: int) -> None:
        self._board.take(v)


class Speeds:
    """How fast clients are, as shares of the mean, from what they brought back.

    >>> speeds = Speeds()
    >>> for client, seconds in (("ann", 10.0), ("bob", 30.0), ("ann", 10.0)):
    ...     speeds.record(client, seconds)
    >>> speeds.of("ann"), round(speeds.of("bob"), 2), speeds.of("eve")
    (1.6666666666666667, 0.56, None)
    """

    def __init__(self) -> None:
        self._work: dict[str, float] = {}
        self._seconds: dict[str, float] = {}
        self._total_work = self._total_seconds = 0.0

    def record(self, client: str, seconds: float, work: float = 1.0) -> None:
        """A client took so long for a task; *work* is what the task was expected to take, where that is known."""
        self._work[client] = self._work.get(client, 0.0) + work
        self._seconds[client] = self._seconds.get(client, 0.0) + seconds
        self._total_work += work
        self._total_seconds += seconds

    def of(self, client: str) -> float | None:
        """The speed of a client as a share of the mean, or None where it has no history."""
        if not self._seconds.get(client) or not self._total_work:
            return None
        return self._work[client] / self._seconds[client] * self._total_seconds / self._total_work


def balanced(dag: Dag, rank: Ints | None = None) -> Policy:
    """The default: longest remaining path plus certain and near releases; equal scores by *rank*, such as a plan's order.

    A fixed rank keeps siblings together; without one, the order in which branches are begun and finished is used. A chain
    of single tasks that ends in a fan-out keeps its first task's path all the way down, so that a chain that was begun goes
    on and fans out before others are begun: one-step releases cannot see that far.
    """
    bare = skeleton(dag)
    place = finishing_rank(bare) if rank is None else rank
    return Policy("balanced", bare, _levels(bare) + _chain_credit(bare), WEIGHT, RELEASES, "rank", place)


def _chain_credit(dag: Dag) -> Floats:
    """For each task of a chain that ends in a fan-out, how many tasks of the chain come before it; 0 elsewhere."""
    n, tails, heads = len(dag), dag.tails, dag.child
    only = (dag.outdegree[tails] == 1) & (dag.indegree[heads] == 1)
    first, last = np.arange(n, dtype=np.int32), np.arange(n, dtype=np.int32)
    first[heads[only]], last[tails[only]] = tails[only], heads[only]
    first, last = _followed(first), _followed(last)
    worth = np.append(RELEASES, 0.0)[np.minimum(dag.indegree, len(RELEASES))]
    releases = np.bincount(tails, worth[heads], minlength=n)
    return np.where(releases[last] >= FAN_OUT, dag.height[first] - dag.height, 0).astype(np.float64)


def _followed(step: Ints) -> Ints:
    """Where steps lead in the end: after k rounds, 2 ** k of them are made at once."""
    while not np.array_equal(further := step[step], step):
        step = further
    return step


def fifo(dag: Dag) -> Policy:
    """First come, first served; tasks that become ready together by outdegree, equals at random [1]_, section 3.2.

    .. [1] Hall, Rosenberg, Venkataramani (2006): A comparison of dag-scheduling strategies for Internet-based computing.
    """
    return Policy("fifo", dag, np.zeros(len(dag)), ties="first", rank=_by_outdegree(dag))


def lifo(dag: Dag) -> Policy:
    """Last come, first served; tasks that become ready together by outdegree, equals at random: as [1]_ of `fifo`."""
    return Policy("lifo", dag, np.zeros(len(dag)), ties="last", rank=_by_outdegree(dag))


def greedy(dag: Dag, ties: str = "random") -> Policy:
    """The most children first; equals at random as in [1]_ of `fifo`, or the "first" to become ready."""
    if ties not in {"random", "first"}:
        raise InputError(f'ties of the greedy policy are "random" or "first", not {ties!r}')
    name = "greedy" if ties == "random" else "greedy-fifo"
    return Policy(name, dag, dag.outdegree.astype(np.float64), ties=ties, rank=np.zeros(len(dag), np.int32))


def batch_optimal(dag: Dag) -> Policy:
    """The batch that leaves the most tasks ready; of single tasks, the one that makes the most others ready."""
    return Policy("batch-optimal", dag, np.zeros(len(dag)), 1.0, (0.0, 1.0), whole=True)


def random(dag: Dag) -> Policy:
    """Any ready task, each as likely as the others."""
    return Policy("random", dag, np.zeros(len(dag)), ties="random")


def critical_path(dag: Dag, seconds: Floats | None = None) -> Policy:
    """The longest remaining path first, in tasks or in seconds; equals by the first to become ready, then by number."""
    if seconds is None:
        return Policy("critical-path", dag, _levels(dag), ties="first")
    length = np.array(seconds, np.float64)
    for v in dag.order[::-1].tolist():
        below = length[dag.children_of(v)]
        length[v] += below.max(initial=0.0)
    return Policy("critical-path-seconds", dag, length, ties="first")


def from_order(dag: Dag, order: Order, name: str = "order") -> Policy:
    """The ready task that comes first in a schedule.

    >>> dag = Dag.from_arcs([("a", "b"), ("a", "c")])
    >>> from_order(dag, ["a", "c", "b"], "mine").rank.tolist()
    [0, 2, 1]
    """
    eligible_steps(dag, order)  # raises where it is none
    return Policy(name, dag, np.zeros(len(dag)), rank=rank_of(dag, order))


def rank_of(dag: Dag, order: Order) -> Ints:
    """The place of every task in an order."""
    rank = np.empty(len(dag), np.int32)
    rank[order_indices(dag, order)] = np.arange(len(dag), dtype=np.int32)
    return rank


def finishing_rank(dag: Dag) -> Ints:
    """The place of every task in a depth-first walk up from the sinks: what one sink needs stands together, parents first."""
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
    """The rank of every outdegree, the largest first; equal for equals."""
    return np.asarray(dag.outdegree.max(initial=0) - dag.outdegree, np.int32)


def _levels(dag: Dag) -> Floats:
    """How many tasks are on the longest path from every task down to a sink, itself included."""
    return np.asarray(dag.height + 1, np.float64)
