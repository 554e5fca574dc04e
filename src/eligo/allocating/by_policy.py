"""An allocator that grants the ready task with the highest score, by a policy that follows the execution."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from eligo.allocating.asks import Ask, Grant, NothingFits, Refusals, Saves, all_or_none, whole_seed
from eligo.errors import InputError
from eligo.estimates import estimate
from eligo.execution import COMPLETE, ELIGIBLE, FAIL, HOLD, RELEASE, TAKE, Execution, unpacked
from eligo.names import Name
from eligo.policies import Floats, Policy, grown, in_classes
from eligo.rows import Ints
from eligo.workflow import Workflow

WINDOW = 16  # first ready tasks, of which a client may get the one that saves most bytes
NEAR = 0.01  # of the best score: how far below it the scores of these tasks may be
MOST_LOST = 0.01  # of the sum of all places: the places that may be lost to save bytes
MOST_PAIRED = 32  # asks that are compared by the bytes they save
MOST_SHORT = 1_000  # tasks in a grant that is sized by seconds, because some tasks take none
SOME = 10_000  # moves or arrivals of tasks that one call processes: other work can run between two calls
FEW = 500  # moves that the next ask processes itself, in less than a millisecond
UNTIMED = np.zeros(0)
_NOWHERE = -1  # a state that no task of a board has


class ByPolicy:
    """Gives each client the ready task with the highest score, a modest client the lowest, in O(log n) per decision.

    If the tasks of *flow* have priorities, the policy decides among those of the highest priority that is ready.

    Tasks that a client cannot run are checked one by one, as far as they come before one that it can run.

    A client that asks for several tasks gets the best of the ready tasks and of those that wait only for tasks it gets as
    well. *seconds* gives the time of each task, for asks in seconds of work. Tasks added to the execution follow the same
    policy, made again for *flow*: that takes as long as the start.

    A client that asks for one task and has `saves` gets, among the first ready tasks of equal priority whose scores are
    within 1 % of the best, the one of which it has most bytes. A grant that passes over p better tasks loses p places: after
    t grants, the places lost sum to at most 1 % of 1 + 2 + ... + t.

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
        #: the number of tasks granted, and of places lost to save bytes
        self.granted = self.lost = 0
        self._go_by(policy)

    def _go_by(self, policy: Policy) -> None:
        """Use this policy for all tasks that the dag has now."""
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
            raise InputError("run times are not known, so work cannot be requested in seconds")
        self._follow()
        if len(asks) == 1:  # the usual case in a run of short tasks: nothing to take back, no equal ask
            return self._grant(asks[0])
        refusals, grants = Refusals(), list[Grant]()
        with all_or_none(self.execution, grants):
            for ask in self._in_turn(asks, refusals):
                granted = [] if refusals.covers(ask) else self._grant(ask)
                grants += granted
                if not granted:
                    refusals.note(ask)
        return grants

    def _in_turn(self, asks: list[Ask], refusals: Refusals) -> Iterator[Ask]:
        """The asks in the order of service: each time the first, or an equivalent one whose client has more of the bytes."""
        if not any(ask.bytes_kept for ask in asks):
            yield from asks
            return
        waiting, name = list(asks), self.execution.graph.name
        while waiting:
            first, place = waiting[0], 0
            if first.bytes_kept is not None and not refusals.covers(first):
                names = list(map(name, self._near(self._admits(first))))
                saved = [_most_saved(ask, names) if ask.fits is first.fits else -1 for ask in waiting[:MOST_PAIRED]]
                place = saved.index(max(saved))
            yield waiting.pop(place)

    def _grant(self, ask: Ask) -> list[Grant]:
        """The grant for one ask, or an empty list."""
        ready = len(self.execution.ready)
        try:
            chosen = self._choose(ask)
        except NothingFits:
            return []
        except BaseException:
            self._begin()  # the board has taken tasks that no client gets
            raise
        if not chosen:
            return []
        self.execution.take_numbers(chosen)
        self.granted += len(chosen)
        self._seen += len(chosen)
        return [Grant(ask, self.execution.graph.named(chosen), self._why(ask, ready))]

    def _choose(self, ask: Ask) -> list[int]:
        """The tasks for one client, up to the size of its ask."""
        room, admits, codes = ask.work, self._admits(ask), self.execution.codes
        if ask.bytes_kept is not None:
            return self._nearest(ask.bytes_kept, admits)
        if room is None or self._seconds is None:
            return self._board.choose(ask.size, ask.modest, 0.0, UNTIMED, codes, admits)
        return self._board.choose(MOST_SHORT, ask.modest, room, self._seconds, codes, admits)

    def _admits(self, ask: Ask) -> Callable[[int], bool] | None:
        if ask.fits is None:
            return None
        single, name = ask.size == 1 and ask.seconds is None, self.execution.graph.name
        fits = ask.fits if single else ask.admits  # after NothingFits, the first tasks of several still count
        return lambda v: fits(name(v))

    def _nearest(self, saves: Saves, admits: Callable[[int], bool] | None) -> list[int]:
        """Take the task that saves most bytes among the first ready ones; among equals, the first."""
        near = self._near(admits)
        if not near:
            return []
        saved = [saves(self.execution.graph.name(v)) for v in near] if len(near) > 1 else [0]
        place = saved.index(max(saved))
        self.lost += place
        self._board.take(near[place])
        return [near[place]]

    def _near(self, admits: Callable[[int], bool] | None) -> list[int]:
        """The first ready tasks of equal priority and nearly equal score, as many as may be passed over."""
        board, near, passed = self._board, list[int](), list[int]()
        after = self.granted + 1
        most = min(WINDOW, 1 + int(MOST_LOST * after * (after + 1) / 2) - self.lost)
        try:
            while len(near) < most and (v := board.first(False, passed, admits)) >= 0 and self._is_near(v, near):
                near.append(v)
                board.hide(v)
        except NothingFits:
            return near  # those that were seen before still count
        finally:
            for v in (*passed, *near):
                board.place(v)
        return near

    def _is_near(self, v: int, near: list[int]) -> bool:
        """Whether a task has the priority of the first one and nearly its score."""
        if not near:
            return True
        lead, best = self.policy.lead, self._board.worth(near[0])
        above = lead[near[0]] if len(lead) else 0.0
        return (not len(lead) or lead[v] == above) and best - self._board.worth(v) <= NEAR * abs(best - above)

    def _begin(self) -> None:
        """Empty the board and replay the execution on it."""
        self._seen, self._arrived, self._arriving = 0, 0, self._board.empty(self._seed)
        self._follow()
        if self._grown:  # the board had later tasks from the start
            for v in self.execution.numbers(ELIGIBLE):
                self._board.take(v)
                self._board.give_back(v)

    def _grow(self) -> None:
        """Make the same policy for the dag with the added tasks."""
        self._flow = flow = self._flow.grown(self.execution.dag)
        if self._seconds is not None:
            self._seconds = np.append(self._seconds, estimate(flow).seconds[len(self._seconds) :])
        self._go_by(grown(self.policy, flow))

    @property
    def is_near(self) -> bool:
        """Whether the execution is so few moves ahead that the next ask can follow them without delay."""
        game = self.execution
        return (
            len(game.journal) - self._seen <= FEW
            and self._arrived == self._arriving
            and self._grown == len(game.additions)
            and self._bursts == len(game.bursts)  # one of these few moves may make many tasks ready
        )

    def _follow(self) -> None:
        while not self.catch_up():
            pass
        self._bursts = len(self.execution.bursts)

    def catch_up(self) -> bool:
        """Follow the execution by at most `SOME` moves or arrivals; returns whether it has caught up."""
        if self._arrived < self._arriving:
            first, self._arrived = self._arrived, min(self._arrived + SOME, self._arriving)
            self._board.arrive_some(first, self._arrived, self._arriving)
        elif self._grown < len(self.execution.additions):
            self._grow()
        elif self._seen < len(self.execution.journal):
            self._move_on()
        return self._arrived == self._arriving and self._seen == len(self.execution.journal)

    def _move_on(self) -> None:
        """Follow some moves, up to one that makes many tasks ready, because these arrive before the next move."""
        moves, bursts = self._moves, {} if self._grown else self.execution.bursts  # those of a smaller dag
        some = self.execution.since(self._seen)[:SOME]
        for place, (kind, v) in enumerate(unpacked(some), 1):
            if bursts and kind == COMPLETE and v in bursts:
                self._seen += place
                self._burst(v, bursts[v])
                return
            if kind in moves:
                moves[kind](v)
        self._seen += len(some)

    def _burst(self, v: int, ready: Ints) -> None:
        """Execute a task on the board, and queue the many tasks that it makes ready to arrive later."""
        board, states = self._board, np.frombuffer(self._board.state, np.int32)
        before, states[ready] = states[ready], _NOWHERE  # else the board lets all of them arrive at once
        board.execute(v)
        states[ready] = before
        fresh = np.zeros(len(states), np.bool_)
        fresh[ready] = True
        row = self.policy.row_of(v)
        np.frombuffer(board.group, np.int32)[: len(ready)] = row[fresh[row]]
        board.shuffle(len(ready))
        self._arrived, self._arriving = 0, len(ready)

    def _why(self, ask: Ask, ready: int) -> str:
        which = "the last, for a slow client," if ask.modest else "the first"
        classes = "by priority, then " if len(self.policy.lead) else ""
        return f"{which} of {ready:,} ready task{'' if ready == 1 else 's'} {classes}by the policy {self.policy.name!r}"


def _most_saved(ask: Ask, names: Sequence[Name]) -> int:
    """The maximum number of bytes that a client has of one of these tasks; -1 if that is irrelevant for its ask."""
    return -1 if ask.bytes_kept is None else max(map(ask.bytes_kept, names), default=0)
