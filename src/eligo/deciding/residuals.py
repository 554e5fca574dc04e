"""What is left of a dag that is being executed: decided again only where what was found no longer holds.

Let X be what was executed.

* **Segments.** All tasks of a segment come before all of the next, so X ends inside one segment; those behind it stay as they
  were decided, with their orders, bounds and proofs.
* **In order.** Where X is the beginning of an order that attains M at every step, no set that contains X has more rendered
  than M(t), and the rest of the order has as much: it is best for what is left, and nothing needs to be done.
* **Out of order.** A ▷-linear segment is kept up to date block by block (`deciding.linear`); one that is small, or no longer
  linear, is decided as the dag that is left of it, but for modules that are as they were. What is large is numbered as it was
  before: so blocks are met again, and no canonical order needs to be found twice.
"""

from array import array
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from eligo.dag import Dag
from eligo.deciding.canonical import canonical_order
from eligo.deciding.continuing import Continuation, LinearContinuation
from eligo.deciding.effort import Stuck, begun
from eligo.deciding.limits import LEAST_CHAIN
from eligo.deciding.linear import Ground, LinearSegment
from eligo.deciding.outcomes import BOUNDED, OPTIMAL, Outcome, Segment, cumulative, worst
from eligo.deciding.preferences import preferred
from eligo.deciding.solving import in_series, numbering, solve
from eligo.rows import Ints, distinct, gathered, places
from eligo.theory.blocks import decompose
from eligo.theory.composition import Composed
from eligo.theory.series import numbered_segment, segment_dag, segments
from eligo.theory.solutions import solve_blocks


class Decided(NamedTuple):
    """A dag without shortcuts as it was decided, with the effort and the preference that it was decided with.

    `sequence` has the nonsinks as they are handed out, in an order of the same profile as the outcome's.
    """

    bare: Dag
    outcome: Outcome
    sequence: Ints
    effort: str
    prefer: str
    #: the modules that were solved
    solved: dict[object, Any]
    #: the blocks and segments, where they are at hand
    composed: Composed | None = None


class Rest:
    """What is left of a dag, while it is executed: what no longer holds is decided when somebody asks.

    >>> vees = Dag.from_arcs([("a", "x"), ("a", "y"), ("b", "z")])
    >>> outcome, _ = solve(vees, begun("normal"))
    >>> rest = Rest(Decided(vees, outcome, outcome.order, "normal", "path", {}))
    >>> rest.verdict, vees.named(rest.next(5))
    ('optimal', ('a', 'b', 'x', 'y', 'z'))
    >>> rest.execute(vees.indices(["b"]))
    >>> rest.verdict, vees.named(rest.next(2)), rest.area
    ('optimal', ('a', 'x'), 8)
    """

    def __init__(self, decided: Decided) -> None:
        self.decided = decided
        bare = decided.bare
        #: the tasks that were executed, in order
        self.done = array("i")
        self.executed = np.zeros(len(bare), np.bool_)
        #: what searches got stuck at, by the tasks of the part
        self.stuck: dict[tuple[str, ...], Stuck] = {}
        #: modules that were solved, for the next time that they are met
        self.known = dict(decided.solved)
        self._missing = bare.indegree.copy()
        self._nonsink = bare.outdegree > 0
        self._eligible = int((self._missing == 0).sum())
        self._steps = 0  # nonsinks executed
        self._plan = _Planned(decided)
        self._going: Continuation | LinearContinuation | None = None
        self._chain: LinearSegment | None = None
        self._rank: tuple[int, Ints] | None = None  # of a large segment

    def __len__(self) -> int:
        return len(self.executed) - len(self.done)

    def execute(self, tasks: Ints) -> None:
        """These tasks are executed, and with them all that they need."""
        bare = self.decided.bare
        self.done.extend(tasks.tolist())
        self.executed[tasks] = True
        children, _ = gathered(bare.child_ptr, bare.child, tasks)
        np.subtract.at(self._missing, children, 1)
        self._eligible += len(distinct(children[self._missing[children] == 0])) - len(tasks)
        self._steps += int(self._nonsink[tasks].sum())
        if self._chain is not None:
            self._chain.execute(tasks[self._plan.label[tasks] == self._chain.segment])

    # What is known

    @property
    def verdict(self) -> str:
        """Whether an order of what is left is proved to be best, or that none is."""
        going = self._now()
        return self._plan.verdict_from(self._steps) if going is None else self._verdict(going)

    def _verdict(self, going: Continuation | LinearContinuation) -> str:
        return worst({going.verdict, self._plan.verdict_from(going.end)})

    @property
    def area(self) -> int:
        """The sum of E(t) of the order."""
        return self._area(0)

    @property
    def area_bound(self) -> int:
        """No order of what is left has a larger area."""
        return self._area(1)

    def next(self, count: int) -> list[int]:
        """The next so many tasks of the order."""
        going = self._now()
        found = going.next(count) if going is not None else []
        end = self._steps if going is None else going.end
        found += self._plan.sequence[end : end + count - len(found)].tolist()
        if len(found) < count:
            found += np.flatnonzero(~self._nonsink & ~self.executed)[: count - len(found)].tolist()
        return found

    def _area(self, which: int) -> int:
        """E(t) = eligible - t + what the first t steps render, summed; sinks come last, when all is rendered."""
        n, rendered = len(self), len(self) - self._eligible
        going = self._now()
        if isinstance(going, LinearContinuation) and going.begin < self._steps:
            going = self._going = self._decide()
        end, sums = (self._steps, (0, 0)) if going is None else (going.end, going.sums())
        later = self._plan.steps - end
        before = rendered - self._plan.renders_from(end)
        total = sums[which] + later * before + self._plan.sums_from(end)[which]
        sinks = n - (self._plan.steps - self._steps)
        return (n + 1) * self._eligible - n * (n + 1) // 2 + total + sinks * rendered

    # The segment in progress

    def _now(self) -> Continuation | LinearContinuation | None:
        """How the segment in progress goes on, decided again where it does not hold; None where nothing is in progress."""
        begin, end = self._plan.segment(self._steps)
        if self._steps == begin:
            self._going = self._chain = None
            return None
        if self._going is None or self._going.end != end:
            self._going, self._chain = self._plan.as_planned(begin, end), None
        if not self._going.holds(self.executed, self._steps):
            self._going = self._decide()
        return self._going

    def _decide(self) -> Continuation | LinearContinuation:
        """What is left of the segment in progress: kept up to date where it is large and ▷-linear, else solved."""
        begin, end = self._plan.segment(self._steps)
        if end - begin >= LEAST_CHAIN and self._plan.is_linear(begin):
            if self._chain is None:
                tasks = self._plan.sequence[begin:end]
                self._chain = LinearSegment(self._ground, int(self._plan.label[tasks[0]]))
                self._chain.execute(tasks[self.executed[tasks]])
            if self._chain.linear():
                return LinearContinuation(self._steps, end, self._chain)
        return self._solved(begin, end)

    @cached_property
    def _ground(self) -> Ground:
        decided = self.decided
        solutions = decided.composed.solutions if decided.composed else solve_blocks(decompose(decided.bare))
        return Ground(solutions, self._plan.label, decided.outcome.order)

    def _solved(self, begin: int, end: int) -> Continuation:
        """What is left of a segment, as a dag of its own."""
        tasks = self._plan.sequence[begin:end]
        part, members = numbered_segment(self.decided.bare, tasks[~self.executed[tasks]], *self._numbering)
        effort = replace(begun(self.decided.effort), stuck=self.stuck, solved=self.known)
        rank = self._ranked(begin, part, members) if end - begin >= LEAST_CHAIN else None
        outcome, _ = solve(part, effort, rank=rank)
        proved, prefer = replace(outcome, order=members[outcome.order]), self.decided.prefer
        own = cumulative(part, outcome.order)
        return Continuation(self._steps, end, lambda: members[preferred(part, outcome.order, prefer)], own, proved)

    @cached_property
    def _numbering(self) -> tuple[Ints, Ints]:
        """The order in which the whole was numbered to be decided, so that its blocks are met again, and its inverse."""
        order = numbering(self.decided.bare)
        return order, places(len(order), order)

    def _ranked(self, begin: int, part: Dag, members: Ints) -> Ints:
        """The places in the canonical order of what was left of a large segment when it was looked at first."""
        if self._rank is None or self._rank[0] != begin:
            rank = np.empty(len(self.executed), np.int32)
            rank[members] = places(len(part), canonical_order(part))
            self._rank = begin, rank
        return self._rank[1][members]

    def hard(self) -> Iterator[Outcome]:
        """What is known of segments that are not ▷-linear and in which nothing was done since they were decided."""
        parts = [(self._plan.outcome.order, self._plan.hard_from(self._steps))]
        if isinstance(self._going, Continuation) and self._going.begin == self._steps:
            parts.append((self._going.proved.order, self._going.proved.hard))
        for order, segments_of in parts:
            for begin, end, outcome in segments_of:
                yield replace(outcome, order=order[begin:end])

    # As a plan

    def whole(self) -> tuple[Ints, Dag, Outcome, Ints]:
        """The tasks that are left, the dag of them, its outcome, and its nonsinks in the order in which they go on."""
        left = np.flatnonzero(~self.executed).astype(np.int32)
        place, residual = places(len(self.executed), left), self.decided.bare.induced(left)
        going = self._now()
        if going is None:
            end, hard = self._steps, _moved(self._plan.hard_from(self._steps), -self._steps)
            outcome = in_series(residual, place[self._plan.order_from(end)], hard)
            return left, residual, outcome, place[self._plan.sequence[end:]]
        outcome = self._in_series(residual, place, self._proved(going), going.end)
        sequence = place[np.concatenate([going.rest(), self._plan.sequence[going.end :]])]
        if outcome.verdict == BOUNDED and np.array_equal(cumulative(residual, sequence), outcome.bound):
            outcome = replace(outcome, verdict=OPTIMAL)  # known from the whole, and now proved by itself
        return left, residual, outcome, sequence

    def _in_series(self, residual: Dag, place: Ints, first: Outcome, end: int) -> Outcome:
        """The outcome of what is left of the segment in progress, and behind it all segments as they were planned."""
        later = self._plan.order_from(end)
        if not len(later):
            return replace(first, order=place[first.order])
        hard = (*first.hard, *_moved(self._plan.hard_from(end), len(first.order) - end))
        return in_series(residual, place[np.concatenate([first.order, later])], hard)

    def _proved(self, going: Continuation | LinearContinuation) -> Outcome:
        """What proves how it goes on, from here on and by itself."""
        if isinstance(going, Continuation) and going.begin == self._steps:
            return going.proved
        if isinstance(going, LinearContinuation) and going.begin == self._steps:
            order = going.rest()
            part = np.sort(order)
            profile = cumulative(segment_dag(self.decided.bare, part), places_in(part, order))
            return Outcome(order, profile, OPTIMAL, "▷-linear composition", {"rule": "chain"})
        return self._solved(*self._plan.segment(self._steps)).proved


def places_in(tasks: Ints, order: Ints) -> Ints:
    """The places that tasks have among these, which ascend."""
    return np.searchsorted(tasks, order).astype(np.int32)


def _moved(hard: tuple[Segment, ...], by: int) -> tuple[Segment, ...]:
    return tuple(segment._replace(begin=segment.begin + by, end=segment.end + by) for segment in hard)


class _Planned:
    """What was decided of the whole, looked up by segments."""

    def __init__(self, decided: Decided) -> None:
        self.sequence, self.outcome = decided.sequence, decided.outcome
        self.steps = len(self.sequence)
        #: the segment of every nonsink
        self.label = decided.composed.label if decided.composed else segments(decided.bare)
        self._ends = np.flatnonzero(np.diff(self.label[self.sequence], prepend=-1, append=-2))
        if not self.steps:
            self._ends = np.zeros(1, np.intp)
        self._own = cumulative(decided.bare, self.sequence)
        self._hard = {segment.begin: segment for segment in decided.outcome.hard} if self.steps else {}
        self._begins = np.array(sorted(self._hard), np.int64)
        self._verdicts, self._slack = [OPTIMAL], [0]
        for begin in self._begins[::-1].tolist():
            self._verdicts.append(worst({self._verdicts[-1], self._hard[begin].outcome.verdict}))
            self._slack.append(self._slack[-1] + self._hard[begin].slack)
        self._sums = [np.cumsum(profile)[self._ends] for profile in (self._own, self.outcome.bound)]

    def segment(self, steps: int) -> tuple[int, int]:
        """Where the segment of the next step begins and ends; the end of all, twice, where there is none."""
        i = int(np.searchsorted(self._ends, steps, side="right"))
        return int(self._ends[i - 1]), int(self._ends[min(i, len(self._ends) - 1)])

    def is_linear(self, begin: int) -> bool:
        """Whether the segment that begins there was decided as a ▷-linear composition."""
        return begin not in self._hard

    def as_planned(self, begin: int, end: int) -> Continuation:
        """A segment as it was planned."""
        own = self._own[begin : end + 1] - self._own[begin]
        proved = Outcome(self.outcome.order[begin:end], own, OPTIMAL, "▷-linear composition", {"rule": "chain"})
        if begin in self._hard:
            proved = replace(self._hard[begin].outcome, order=self.outcome.order[begin:end])
        return Continuation(begin, end, lambda: self.sequence[begin:end], own, proved)

    def _later(self, begin: int) -> int:
        """How many hard segments do not come before a place."""
        return len(self._begins) - int(np.searchsorted(self._begins, begin))

    def verdict_from(self, begin: int) -> str:
        """The verdict of all segments from one on."""
        return self._verdicts[self._later(begin)]

    def hard_from(self, begin: int) -> tuple[Segment, ...]:
        """The hard segments from one on."""
        return tuple(self._hard[b] for b in self._begins[len(self._begins) - self._later(begin) :].tolist())

    def order_from(self, begin: int) -> Ints:
        """The order that the proof speaks of, from a segment on."""
        return self.outcome.order[begin:]

    def renders_from(self, begin: int) -> int:
        """How many tasks the segments from one on render."""
        return int(self._own[-1] - self._own[begin])

    def sums_from(self, begin: int) -> tuple[int, int]:
        """The sums of the profile, and of its bound less the slack, from a segment on and on top of what is before it."""
        i = int(np.searchsorted(self._ends, begin))
        base = (self.steps - begin) * int(self._own[begin])
        own, bound = (int(sums[-1] - sums[i]) - base for sums in self._sums)
        return own, bound - self._slack[self._later(begin)]
