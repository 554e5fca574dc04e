"""The ready task of the highest score, by a policy kept up to date with the execution."""

from collections.abc import Callable, Sequence

import numpy as np

from eligo.allocating.asking import Ask, Grant, Refusals, all_or_none, whole_seed
from eligo.errors import InputError
from eligo.estimating import estimate
from eligo.execution import COMPLETE, ELIGIBLE, FAIL, HOLD, RELEASE, TAKE, Execution, unpacked
from eligo.policies import Floats, Policy, grown, in_classes
from eligo.workflow import Workflow

MOST_SHORT = 1_000  # tasks in a grant that is sized by seconds: some take none
UNTIMED = np.zeros(0)


class ByPolicy:
    """Gives every client the ready task of the highest score, in O(log n) a decision; a modest one that of the lowest.

    Where the tasks of *flow* have priorities, the policy decides among those of the largest one that is ready.

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
        self.policy = in_classes(policy, self._flow.column("priority"))
        self._grown = len(self.execution.additions)
        self._board = board = self.policy.board(both_ends=True)
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
            chosen = self._chosen(ask)
        except BaseException:
            self._begin()  # the board has moved with a choice that nobody gets
            raise
        if not chosen:
            return []
        self.execution.take_numbers(chosen)
        self._seen = len(self.execution.journal)
        return [Grant(ask, self.execution.graph.named(chosen), self._why(ask, ready))]

    def _chosen(self, ask: Ask) -> list[int]:
        """What a client gets, until it has what it asked for."""
        fits, name, room = ask.fits, self.execution.graph.name, ask.work
        admits = None if fits is None else lambda v: fits(name(v))
        codes = self.execution.codes
        if room is None or self._seconds is None:
            return self._board.choose(ask.size, ask.modest, 0.0, UNTIMED, codes, admits)
        return self._board.choose(MOST_SHORT, ask.modest, room, self._seconds, codes, admits)

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

    def _why(self, ask: Ask, ready: int) -> str:
        which = "the last, for a slow client," if ask.modest else "the first"
        classes = "by priority, and among equals " if len(self.policy.lead) else ""
        return f"{which} of {ready:,} ready task{'' if ready == 1 else 's'} {classes}by the rule {self.policy.name!r}"
