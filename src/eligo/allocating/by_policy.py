"""The ready task of the highest score, by a policy kept up to date with the execution."""

from collections.abc import Callable, Sequence
from heapq import heappop, heappush

import numpy as np

from eligo.allocating.asking import Ask, Grant, Refusals, all_or_none, whole_seed
from eligo.errors import InputError
from eligo.estimating import estimate
from eligo.execution import COMPLETE, ELIGIBLE, FAIL, HOLD, RELEASE, TAKE, WAITING, Execution, unpacked
from eligo.kernels.games import Heap
from eligo.policies import Floats, Policy, grown
from eligo.workflow import Workflow

MOST_SHORT = 1_000  # tasks in a grant that is sized by seconds: some take none


class ByPolicy:
    """Gives every client the ready task of the highest score, in O(log n) a decision; a modest one that of the lowest.

    Tasks that a client cannot run are looked at one by one, as far as they come before one that it can.

    A client that asks for several gets the best of the ready tasks and of those that wait for nothing but tasks that it
    gets too. *seconds* says how long each task takes, for those who ask for so many seconds of work. What is added to the
    execution goes by the same policy, made anew for *flow*: that takes as long as to begin.

    >>> from eligo.policies import policy
    >>> game = Execution({"a": [], "b": [], "c": ["a", "b"], "d": ["b"], "e": ["d"]})
    >>> allocator = ByPolicy(policy("balanced", game.dag), game)
    >>> [grant.tasks for grant in allocator.hand_out([Ask("ann"), Ask("bob"), Ask("eve")])]
    [('b',), ('a',)]
    >>> game.complete("b"), game.release("a")
    (('d',), None)
    >>> [grant.tasks for grant in allocator.hand_out([Ask("eve", size=4)])]
    [('a', 'd', 'c', 'e')]
    """

    def __init__(
        self,
        policy: Policy,
        execution: Execution,
        seed: int = 0,
        seconds: Floats | None = None,
        flow: Workflow | None = None,
    ) -> None:
        if policy.dag.tasks != execution.dag.tasks:
            raise InputError(f"the policy {policy.name!r} was made for another workflow")
        self.execution, self._flow = execution, Workflow(execution.dag) if flow is None else flow
        self._seconds, self._seed = seconds, whole_seed(seed)
        self._go_by(policy)

    def _go_by(self, policy: Policy) -> None:
        """Go by this policy for all that the dag has now."""
        self.policy, self._grown = policy, len(self.execution.additions)
        self._board = board = policy.board(both_ends=True)
        self._moves: dict[int, Callable[[int], object]] = {
            TAKE: board.take, HOLD: board.take, COMPLETE: board.execute, FAIL: board.lose, RELEASE: board.give_back,
        }  # fmt: skip
        self._begin()

    def hand_out(self, asks: Sequence[Ask]) -> list[Grant]:
        """See `Allocator`."""
        asks = list(asks)
        if self._seconds is None and any(ask.seconds is not None for ask in asks):
            raise InputError("how long the tasks run is not known, so nobody can ask for seconds of work")
        self._follow()
        if len(asks) == 1:  # as in a run of short tasks: nothing to take back, nobody like it
            return self._granted(asks[0])
        refusals, grants = Refusals(), list[Grant]()
        with all_or_none(self.execution, grants):
            for ask in asks:
                found = [] if refusals.covers(ask) else self._granted(ask)
                grants += found
                if not found:
                    refusals.note(ask)
        return grants

    def _granted(self, ask: Ask) -> list[Grant]:
        """One grant, or none."""
        ready = len(self.execution.numbers(ELIGIBLE))
        try:
            single = ask.size == 1 and ask.seconds is None and ask.fits is None
            chosen = self._next(ask) if single else self._chosen(ask)
        except BaseException:
            self._begin()  # the board has moved with a choice that nobody gets
            raise
        if not chosen:
            return []
        self.execution.take_numbers(chosen)
        self._seen = len(self.execution.journal)
        return [Grant(ask, self.execution.graph.named(chosen), self._why(ask, ready))]

    def _begin(self) -> None:
        """A fresh board, brought to where the execution stands."""
        self._board.reset(self._seed)
        self._seen = 0
        self._follow()
        if self._grown:  # what came later is on the board from the beginning
            for v in self.execution.numbers(ELIGIBLE):
                self._board.take(v)
                self._board.give_back(v)

    def _grow(self) -> None:
        """Go by the same policy for what was added too."""
        self._flow = flow = self._flow.grown(self.execution.dag)
        if self._seconds is not None:
            self._seconds = np.append(self._seconds, estimate(flow).seconds[len(self._seconds) :])
        self._go_by(grown(self.policy, flow))

    def _follow(self) -> None:
        if self._seen == len(self.execution.journal):
            return
        if self._grown < len(self.execution.additions):
            self._grow()
            return
        for kind, v in unpacked(self.execution.since(self._seen)):
            if kind in self._moves:
                self._moves[kind](v)
        self._seen = len(self.execution.journal)

    def _next(self, ask: Ask) -> list[int]:
        """The first ready task, for a client that asks for one and can run any."""
        v = self._first(ask, [])
        if v < 0:
            return []
        self._board.take(v)
        return [v]

    def _chosen(self, ask: Ask) -> list[int]:
        """Task after task, until the client has what it asked for; what it cannot run is hidden meanwhile."""
        passed, opened, chosen, room = list[int](), _Opened(self, ask), list[int](), ask.work
        most = ask.size if room is None else MOST_SHORT
        try:
            while len(chosen) < most:
                v = opened.first_of(self._first(ask, passed))
                if v < 0 or (room is not None and chosen and self._length(v) > room):
                    break
                self._board.take(v)
                opened.takes(v)
                chosen.append(v)
                room = None if room is None else room - self._length(v)
            return chosen
        finally:
            for u in passed:
                self._board.place(u)

    def _first(self, ask: Ask, passed: list[int]) -> int:
        """The first ready task that the client can run, or -1; those before it are hidden."""
        heap: Heap = self._board.worst if ask.modest else self._board.best
        if ask.fits is None:
            return heap.top()
        name = self.execution.graph.name
        while (v := heap.top()) >= 0 and not ask.fits(name(v)):
            self._board.hide(v)
            passed.append(v)
        return v

    def _length(self, v: int) -> float:
        return 0.0 if self._seconds is None else float(self._seconds[v])

    def _why(self, ask: Ask, ready: int) -> str:
        which = "the last, for a slow client," if ask.modest else "the first"
        return f"{which} of {ready:,} ready task{'' if ready == 1 else 's'} by the rule {self.policy.name!r}"


class _Opened:
    """The tasks that wait for nothing but what one client gets, by their scores when they came to wait so."""

    def __init__(self, allocator: ByPolicy, ask: Ask) -> None:
        self._ask, self._worth, self._rank = ask, allocator._board.worth, allocator.policy.rank.data
        self._graph = allocator.execution.graph
        self._single = ask.modest or (ask.seconds is None and ask.size == 1)
        self._heap: list[tuple[float, int, int]] = []
        self._parents: dict[int, int] = {}
        self._codes, self._missing = allocator.execution.codes, allocator.execution.missing

    def takes(self, v: int) -> None:
        """The client gets task v too."""
        if self._heap and self._heap[0][2] == v:
            heappop(self._heap)
        if self._single:
            return
        for w in self._graph.children_of(v):
            self._parents[w] = taken = self._parents.get(w, 0) + 1
            if taken == self._missing[w] and self._codes[w] == WAITING and self._ask.admits(self._graph.name(w)):
                heappush(self._heap, self._key(w))

    def first_of(self, v: int) -> int:
        """The best of them, or the ready task v where that goes before it."""
        if not self._heap:
            return v
        return v if v >= 0 and self._key(v) < self._heap[0] else self._heap[0][2]

    def _key(self, v: int) -> tuple[float, int, int]:
        return -self._worth(v), self._rank[v], v
