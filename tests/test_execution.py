"""The pebble game against a model of plain sets."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from eligo.dag import Dag
from eligo.errors import MoveError, ScheduleError, UnknownTaskError
from eligo.execution import Execution

N = 9
arcs = st.sets(st.tuples(st.integers(0, N - 1), st.integers(0, N - 1)).filter(lambda a: a[0] < a[1]), max_size=20)
names = st.integers(0, N - 1).map(str)


class Game(RuleBasedStateMachine):
    """Every legal move changes both alike; every other move is refused and changes nothing."""

    @initialize(arcs=arcs)
    def begin(self, arcs: set[tuple[int, int]]) -> None:
        self.game = Execution(Dag.from_arcs([(str(u), str(v)) for u, v in sorted(arcs)], tasks=map(str, range(N))))
        self.needs = {str(v): {str(u) for u, w in arcs if w == v} for v in range(N)}
        self.out: set[str] = set()
        self.done: set[str] = set()
        self.broken: set[str] = set()

    def ready(self) -> set[str]:
        return {v for v in self.needs if self.needs[v] <= self.done} - self.done - self.out - self.broken

    def attempt(self, move: str, task: str, legal: bool) -> bool:
        if not legal:
            with pytest.raises(MoveError):
                getattr(self.game, move)(task)
        return legal

    @rule(task=names)
    def take(self, task: str) -> None:
        if self.attempt("take", task, task in self.ready()):
            self.game.take(task)
            self.out.add(task)

    @rule(task=names)
    def complete(self, task: str) -> None:
        if self.attempt("complete", task, task in self.out):
            before = self.ready()
            fresh = self.game.complete(task)
            self.out.remove(task)
            self.done.add(task)
            assert set(fresh) == self.ready() - before

    @rule(task=names)
    def fail(self, task: str) -> None:
        if self.attempt("fail", task, task in self.out):
            self.game.fail(task)
            self.out.remove(task)
            self.broken.add(task)

    @rule(task=names)
    def release(self, task: str) -> None:
        if self.attempt("release", task, task in self.out | self.broken):
            self.game.release(task)
            self.out.discard(task)
            self.broken.discard(task)

    @invariant()
    def same(self) -> None:
        assert self.game.eligible == self.ready()
        assert self.game.allocated == self.out
        assert self.game.failed == self.broken
        assert self.game.executed == self.done
        assert self.game.finished == (len(self.done) == N)


TestGame = Game.TestCase


def test_a_batch_is_taken_whole_or_not_at_all(diamond: Dag) -> None:
    game = Execution(diamond, executed=["a"])
    with pytest.raises(MoveError, match="cannot take 'd': it is waiting"):
        game.take("b", "d")
    with pytest.raises(MoveError, match="named twice"):
        game.take("b", "b")
    assert list(game.eligible) == ["b", "c"]


def test_a_released_task_goes_behind_the_others(diamond: Dag) -> None:
    game = Execution(diamond, executed=["a"])
    game.take("b")
    game.release("b")
    assert list(game.eligible) == ["c", "b"]


def test_it_can_begin_anywhere_that_is_closed_under_parents(diamond: Dag) -> None:
    assert list(Execution(diamond, executed=["c", "b", "a"]).eligible) == ["d"]
    with pytest.raises(ScheduleError, match="'d' comes before 'b'"):
        Execution(diamond, executed=["a", "c", "d"])


def test_unknown_tasks_are_named(diamond: Dag) -> None:
    game = Execution(diamond)
    for move in (game.take, game.complete, game.release, game.fail, game.state):
        with pytest.raises(UnknownTaskError, match="no task named 'x'"):
            move("x")
