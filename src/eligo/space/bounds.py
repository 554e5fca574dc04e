"""A lower bound on the peak of every order, for any number of workers, with flows that prove it.

When task v begins, at least `Cuts.least(v)` bytes exist: the bound of a single task. Of a set of tasks, one begins first, and
then none of the set is executed; one ends last, and then all others of the set are. So the least over its members, each with
the others outside (or inside) the ideal, is a bound as well, and often a larger one.

A set is tried for the parents of each task, and for its children. A set also grows, from the best of these and from the best
single task: the ideal of the weakest member shows which tasks were executed early to make room (or late, to save it), and the
one among them that lifts the weakest member most joins the set.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from eligo.dag import Dag
from eligo.deciding.work import SECOND, Work
from eligo.errors import check_choice, shorten
from eligo.kernels import lender
from eligo.kernels.flows import spread
from eligo.rows import Ints, places
from eligo.space.cuts import Cuts, Mask, Passed
from eligo.space.footprint import Bytes, Footprint
from eligo.theory.eligibility import Order, eligible_steps

#: units of work for bounds, by effort
BOUND_WORK = {"quick": SECOND / 4, "normal": 3 * SECOND, "thorough": 60 * SECOND}
FEW = 3  # files that are named
MOST_MEMBERS = 64  # of a set of tasks
MOST_CANDIDATES = 12  # tasks that are tried as the next member of a set


class Member(NamedTuple):
    """A task of a set, and the least bytes that exist if it begins first, or ends last, with an ideal that has them.

    A flow proves them. If the work ended before the cut was *complete*, there may be more bytes, and the ideal means nothing.
    """

    task: int
    bytes: int
    ideal: Mask
    complete: bool
    passed: Passed


@dataclass(frozen=True, eq=False)
class SpaceBound:
    """The bytes that exist at once in every order, for any number of workers.

    One of the members begins *first*, or ends last, of them all; for each a flow proves that these bytes exist then.
    """

    footprint: Footprint
    bytes: int
    first: bool
    members: tuple[Member, ...]

    def __repr__(self) -> str:
        return f"SpaceBound({self.bytes:,} bytes, {'first' if self.first else 'last'} of {len(self.members)})"

    @property
    def weakest(self) -> Member:
        """The member with the fewest bytes: no order can avoid its case and do with less."""
        return min(self.members, key=lambda member: member.bytes)

    @property
    def why(self) -> str:
        """A clause: the moment at which the bytes of the bound exist, and the largest files that exist then."""
        case, many = self.weakest, len(self.members)
        task = shorten(self.footprint.dag.labels[case.task])
        when = (
            f"if {task} {'begins first' if self.first else 'ends last'} of {many:,} tasks"
            if many > 1
            else f"when {task} runs"
        )
        return f"{when}, files such as {', '.join(map(shorten, self._largest(case)))} exist"

    def _largest(self, case: Member) -> list[str]:
        """The names of the largest files that exist in a case."""
        footprint, before, labels = self.footprint, case.ideal, self.footprint.dag.labels
        writes = footprint.writer == case.task
        waits = np.add.reduceat(~before[footprint.reader], footprint.reader_ptr[:-1]) > 0
        there = np.flatnonzero(writes | (before[footprint.writer] & waits))
        largest = there[np.argsort(-footprint.sizes[there], kind="stable")][:FEW]
        files = ((footprint.names[f], footprint.writer[f]) for f in largest.tolist())
        return [names[0] if names else f"the result of {labels[v]}" for names, v in files]

    def document(self) -> dict[str, Any]:
        """The certificate, by names, that `eligo.verifying.space` checks."""
        labels = self.footprint.dag.labels
        files = [
            names[0] if names else labels[u]
            for names, u in zip(self.footprint.names, self.footprint.writer, strict=True)
        ]
        cases = [
            {
                "task": labels[member.task],
                "files": _named(member.passed.file, files, member.passed.reader, labels, member.passed.bytes),
                "returned": _named(member.passed.task, labels, member.passed.parent, labels, member.passed.returned),
            }
            for member in self.members
        ]
        return {"bytes": self.bytes, "first": self.first, "cases": cases}


def _named(ones: Ints, names: Sequence[str], others: Ints, labels: Sequence[str], amounts: Bytes) -> list[list[Any]]:
    rows = zip(ones.tolist(), others.tolist(), amounts.tolist(), strict=True)
    return [[names[x], labels[y], amount] for x, y, amount in rows]


def space_bound(footprint: Footprint, order: Order, effort: str = "normal") -> SpaceBound:
    """A lower bound on the peak of every order; *order* is any schedule, the better the sooner the bound is found.

    >>> dag = Dag.from_arcs([("a", "c"), ("b", "d"), ("c", "e"), ("d", "e")])
    >>> space_bound(Footprint.of_results(dag), dag.tasks)
    SpaceBound(3 bytes, last of 2)
    """
    check_choice("effort", effort, BOUND_WORK)
    if not len(footprint):
        return SpaceBound(footprint, 0, True, ())
    search = _Search(footprint, order, Work(BOUND_WORK[effort]))
    best = search.best_task()
    starts = [_Set(search, first, {best.task: best}) for first in (True, False)]
    relatives = search.best_relatives(footprint.dag.indices(order), best.bytes)
    sets = [start.grown() for start in starts + ([] if relatives is None else [relatives])]
    return max(sets, key=lambda members: members.value).result()


class _Search:
    """Cuts, the work that they take, and for every task an upper bound on its least bytes, by the ideals known so far."""

    def __init__(self, footprint: Footprint, order: Order, work: Work) -> None:
        self.footprint, self.dag, self.work = footprint, footprint.dag, work
        self._cuts = Cuts(footprint)
        self.upper = _uppers(footprint, self.dag.indices(order))

    def least(self, v: int, inside: Ints | None = None, outside: Ints | None = None) -> Member:
        """The least bytes while a task runs."""
        return Member(v, *self._cuts.least(v, self.work, inside, outside), self._cuts.passed())

    def best_task(self) -> Member:
        """The task whose bound is largest, as far as the work allows."""
        waiting = [(-upper, v) for v, upper in enumerate(self.upper.tolist())]
        heapify(waiting)
        best = self.least(waiting[0][1])
        while waiting and not self.work.over():
            upper, v = heappop(waiting)
            if -upper <= best.bytes:
                break
            if self.upper[v] < -upper:
                heappush(waiting, (-int(self.upper[v]), v))
                continue
            member = self.least(v)
            best = max(best, member, key=lambda one: one.bytes)
            if member.complete:
                self._learn(member)
        return best

    def best_relatives(self, order: Ints, value: int) -> "_Set | None":
        """The parents of a task, or its children, whose bound is the largest above a value; None if none is above it."""
        best = None
        for most, first, tasks in _relatives(self.footprint, order):
            if most <= value or self.work.over():
                break
            one = _Set.of(self, first, _unrelated(self.dag, tasks, first), value)
            if one is not None:
                best, value = one, one.value
        return best

    def _learn(self, member: Member) -> None:
        """Lower the upper bounds of all tasks that can begin after an ideal."""
        executed = np.bincount(self.dag.child, member.ideal[self.dag.tails], minlength=len(self.dag))
        eligible = ~member.ideal & (executed == self.dag.indegree)
        live = member.bytes - int(self.footprint.left[member.task])
        np.minimum(self.upper, live + self.footprint.left, out=self.upper, where=eligible)


def _uppers(footprint: Footprint, order: Ints) -> Bytes:
    """For every task, the bytes that exist while it runs if moved to the best place between its last parent and its own."""
    n = len(footprint.dag)
    begin, place = eligible_steps(footprint.dag, order), places(n, order)
    table, width, least = footprint.during(order) - footprint.left[order], 1, np.empty(n, np.int64)
    span = place - begin + 1
    while width <= n:
        here = (span >= width) & (span < 2 * width)
        least[here] = np.minimum(table[begin[here]], table[place[here] - width + 1])
        table = np.minimum(table[:-width], table[width:])
        width *= 2
    return least + footprint.left


def _relatives(footprint: Footprint, order: Ints) -> Iterator[tuple[int, bool, Ints]]:
    """The parents, or the children, of every task that has several, as sets of which one begins first or ends last.

    Each comes with the bytes that exist while that one runs in a known order: no set proves more. They come by falling bytes.
    """
    dag, place = footprint.dag, places(len(order), order)
    during, sets = footprint.during(order), list[tuple[int, bool, Ints]]()
    for ptr, rows in ((dag.parent_ptr, dag.parent), (dag.child_ptr, dag.child)):
        several = np.flatnonzero(np.diff(ptr) > 1)
        for first, extreme in ((True, np.minimum), (False, np.maximum)):
            at = extreme.reduceat(place[rows], ptr[:-1][np.diff(ptr) > 0]) if len(rows) else rows
            most = np.zeros(len(dag), np.int64)
            most[np.diff(ptr) > 0] = during[at]
            sets += [(most.item(w), first, rows[ptr[w] : ptr[w + 1]]) for w in several.tolist()]
    yield from sorted(sets, key=lambda one: -one[0])


def _unrelated(dag: Dag, tasks: Ints, first: bool) -> list[int]:
    """Tasks without those that cannot begin first of them, or end last, because they depend on another or it on them."""
    lend, queue, side = lender(), np.empty(len(dag), np.int32), np.zeros(len(dag), np.int32)
    ptr, rows = (dag.child_ptr, dag.child) if first else (dag.parent_ptr, dag.parent)
    for v in tasks.tolist():
        spread(v, lend(ptr), lend(rows), lend(side), 1, lend(queue))
    free: list[int] = tasks[side[tasks] == 0].tolist()
    return free


class _Set:
    """A set of tasks of which one begins first, or ends last."""

    def __init__(self, search: _Search, first: bool, members: dict[int, Member]) -> None:
        self.search, self.first, self.members = search, first, members

    @classmethod
    def of(cls, search: _Search, first: bool, tasks: list[int], value: int) -> "_Set | None":
        """The set of these tasks, at most `MOST_MEMBERS` of them, if its bound is above a value."""
        members = sorted(tasks, key=search.footprint.left.item, reverse=True)[:MOST_MEMBERS]
        chosen = cls(search, first, {})
        for v in members:
            member = chosen._least(v, members)
            if member.bytes <= value:
                return None
            chosen.members[v] = member
        return chosen if members else None

    @property
    def value(self) -> int:
        """The bound that the set proves."""
        return min(member.bytes for member in self.members.values())

    def grown(self) -> "_Set":
        """The set, as large as it was when its bound was largest."""
        best, value = self.members, self.value
        while len(self.members) < MOST_MEMBERS and not self.search.work.over():
            larger = (members for members in map(self._joined, self._candidates()) if members is not None)
            chosen = max(larger, key=_merit, default=None)
            if chosen is None:
                break
            self.members = chosen
            if self.value > value:
                best, value = self.members, self.value
        self.members = best
        return self

    def _candidates(self) -> list[int]:
        """Tasks that the ideal of the weakest member has too early or too late, and that no member is related to."""
        weakest = min(self.members.values(), key=lambda member: (member.bytes, member.task))
        related = _related(self.search.dag, list(self.members))
        pool = np.flatnonzero((weakest.ideal == self.first) & ~related)
        promising: list[int] = pool[np.argsort(-self.search.upper[pool], kind="stable")].tolist()
        return promising[:MOST_CANDIDATES]

    def _least(self, v: int, tasks: Iterable[int]) -> Member:
        others = np.array([x for x in tasks if x != v], np.int32)
        return self.search.least(v, None, others) if self.first else self.search.least(v, others, None)

    def _joined(self, x: int) -> dict[int, Member] | None:
        """The set with one task more, or None if that lowers the bound or the work is over."""
        tasks = [*self.members, x]
        own = self._least(x, tasks)
        if own.bytes < self.value or self.search.work.over():
            return None
        moved = [v for v, member in self.members.items() if member.ideal[x] == self.first]
        return self.members | {v: self._least(v, tasks) for v in moved} | {x: own}

    def result(self) -> SpaceBound:
        """The bound."""
        return SpaceBound(self.search.footprint, self.value, self.first, tuple(self.members.values()))


def _merit(members: dict[int, Member]) -> tuple[int, int]:
    """The bound of a set; of equal ones, few members that are the weakest."""
    values = [member.bytes for member in members.values()]
    return min(values), -values.count(min(values))


def _related(dag: Dag, tasks: list[int]) -> Mask:
    """The ancestors and descendants of tasks, and the tasks."""
    lend, both = lender(), np.zeros(len(dag), np.bool_)
    queue = lend(np.empty(len(dag), np.int32))
    for ptr, rows in ((dag.parent_ptr, dag.parent), (dag.child_ptr, dag.child)):
        side = np.zeros(len(dag), np.int32)
        side[tasks] = 1
        for v in tasks:
            spread(v, lend(ptr), lend(rows), lend(side), 1, queue)
        both |= side > 0
    return both
