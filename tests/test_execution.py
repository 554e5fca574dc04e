"""The pebble game against a model of plain sets, and its journal."""

from array import array
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from conftest import random_small_dag
from eligo import families
from eligo.dag import Dag
from eligo.errors import InputError, MoveError, StateError, UnknownTaskError
from eligo.execution import (
    AGAIN,
    COMPLETE,
    DROP,
    ELIGIBLE,
    FAIL,
    HOLD,
    MOVES,
    RELEASE,
    STATES,
    TAKE,
    Execution,
    unpacked,
)

N = 9
arcs = st.sets(st.tuples(st.integers(0, N - 1), st.integers(0, N - 1)).filter(lambda a: a[0] < a[1]), max_size=20)
names = st.integers(0, N - 1).map(str)


class Game(RuleBasedStateMachine):
    """Every legal move changes both alike; every other move is refused and changes nothing.

    The model: what is done, what failed, and for every task that is out how many have it; a task that is out and whose
    parents are not all done is held.
    """

    @initialize(arcs=arcs)
    def begin(self, arcs: set[tuple[int, int]]) -> None:
        self.game = Execution(Dag.from_arcs([(str(u), str(v)) for u, v in sorted(arcs)], tasks=map(str, range(N))))
        self.needs = {str(v): {str(u) for u, w in arcs if w == v} for v in range(N)}
        self.out: dict[str, int] = {}
        self.done: set[str] = set()
        self.broken: set[str] = set()

    def free(self) -> set[str]:
        return set(self.needs) - self.done - self.broken - set(self.out)

    def ready(self) -> set[str]:
        return {v for v in self.free() if self.needs[v] <= self.done}

    def running(self) -> set[str]:
        return {v for v in self.out if self.needs[v] <= self.done}

    def attempt(self, move: str, *tasks: str, legal: bool, **how: bool) -> bool:
        if not legal:
            before = bytes(self.game.journal)
            with pytest.raises(MoveError):
                getattr(self.game, move)(*tasks, **how)
            assert bytes(self.game.journal) == before
        return legal

    @rule(task=names)
    def take(self, task: str) -> None:
        if self.attempt("take", task, legal=task in self.ready()):
            self.game.take(task)
            self.out[task] = 1

    @rule(tasks=st.permutations(range(N)), size=st.integers(2, 4))
    def take_together(self, tasks: list[int], size: int) -> None:
        chosen = [str(v) for v in tasks[:size]]
        legal = all(v in self.free() and self.needs[v] <= self.done | set(chosen[:i]) for i, v in enumerate(chosen))
        if self.attempt("take", *chosen, legal=legal):
            self.game.take(*chosen)
            self.out |= dict.fromkeys(chosen, 1)

    @rule(task=names)
    def take_again(self, task: str) -> None:
        if self.attempt("take", task, legal=task in self.running(), again=True):
            self.game.take(task, again=True)
            self.out[task] += 1

    @rule(task=names, late=st.booleans())
    def complete(self, task: str, late: bool) -> None:
        meanwhile = self.ready() | self.broken if late else set()
        if self.attempt("complete", task, legal=task in self.running() | meanwhile, late=late):
            before = self.ready() | {task}
            fresh = self.game.complete(task, late)
            self.out.pop(task, None)
            self.broken.discard(task)
            self.done.add(task)
            assert set(fresh) == self.ready() - before

    @rule(task=names)
    def fail(self, task: str) -> None:
        if self.attempt("fail", task, legal=task in self.running()):
            self.game.fail(task)
            self.freed(task)
            if task not in self.out:
                self.broken.add(task)

    @rule(task=names)
    def release(self, task: str) -> None:
        if self.attempt("release", task, legal=task in set(self.out) | self.broken):
            self.game.release(task)
            if task in self.broken:
                self.broken.remove(task)
            else:
                self.freed(task)

    def freed(self, task: str) -> None:
        """One holder less; what was held for the task, directly or not, is nobody's any more."""
        self.out[task] -= 1
        if not self.out[task]:
            del self.out[task]
        for v in [v for v in self.out if v not in self.running() and task in self.above(v)]:
            if self.held_for(v, task):
                del self.out[v]

    def held_for(self, v: str, task: str) -> bool:
        """Whether a held task waits for the task, or for a held one that does."""
        held = {w for w in self.out if w not in self.running()}
        return task in self.needs[v] or any(self.held_for(u, task) for u in self.needs[v] & held)

    @invariant()
    def same(self) -> None:
        game = self.game
        assert set(game.eligible) == self.ready()
        assert set(game.allocated) == self.running()
        assert set(game.held) == set(self.out) - self.running()
        assert set(game.failed) == self.broken
        assert set(game.executed) == self.done
        assert game.finished == (len(self.done) == N)
        assert game.left == len(self.free())
        assert {v: game.holders(v) for v in self.needs if game.holders(v)} == self.out
        below = {v for v in self.needs if self.above(v) & self.broken}
        assert set(game.blocked) == below
        assert game.stuck == (not self.ready() and not self.out and len(self.done) < N)
        assert not game.stuck or set(self.needs) == self.done | self.broken | below

    def above(self, task: str) -> set[str]:
        return self.needs[task].union(*map(self.above, self.needs[task]))

    @invariant()
    def replayed(self) -> None:
        again = Execution.replay(self.game.dag, array("q", bytes(self.game.journal)))
        for state in STATES[1:]:
            assert list(getattr(again, state)) == list(getattr(self.game, state))
        assert again.story() == self.game.story()


TestGame = Game.TestCase


def test_a_fat_task_is_taken_whole_or_not_at_all(diamond: Dag) -> None:
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
    with pytest.raises(StateError, match="'d' cannot be executed: its parent 'b' is not executed"):
        Execution(diamond, executed=["a", "c", "d"])
    with pytest.raises(StateError, match="'b' cannot be allocated: its parent 'a' is not executed"):
        Execution(diamond, allocated=["b"])
    with pytest.raises(StateError, match="'a' cannot be allocated: it is executed"):
        Execution(diamond, executed=["a"], allocated=["a"])


def test_beginning_in_the_middle_is_as_if_it_had_been_played() -> None:
    """All at once, or move by move from the journal: the same tasks in the same order."""
    rng = np.random.default_rng(3)
    for _ in range(100):
        dag = random_small_dag(rng, 20)
        done = dag.named(dag.order[: int(rng.integers(0, len(dag)))])
        at_once = Execution(dag, rng.permutation(np.array(done, object)).tolist())
        played = Execution.replay(dag, at_once.journal)
        assert list(at_once.eligible) == list(played.eligible)
        assert list(at_once.executed) == list(played.executed)
        assert at_once.missing == played.missing


def test_unknown_tasks_are_named(diamond: Dag) -> None:
    game = Execution(diamond)
    for move in (game.take, game.complete, game.release, game.fail, game.state):
        with pytest.raises(UnknownTaskError, match="no task named 'x'"):
            move("x")


def test_the_first_completion_wins_and_the_others_are_told(diamond: Dag) -> None:
    game = Execution(diamond)
    game.take("a")
    game.take("a", again=True)
    assert game.complete("a") == ("b", "c")
    with pytest.raises(MoveError, match="cannot complete 'a': it is executed"):
        game.complete("a", late=True)


def test_what_is_left_when_something_failed_is_told(diamond: Dag) -> None:
    """a is done, b failed: c can be done, and then everything left hangs on b."""
    game = Execution(diamond, executed=["a"])
    game.take("b")
    game.fail("b")
    assert (game.stuck, game.blocked) == (False, ("d",))
    game.execute("c")
    assert (game.stuck, game.finished) == (True, False)
    game.release("b")
    assert (game.stuck, game.blocked) == (False, ())


def test_a_move_takes_8_bytes() -> None:
    game = Execution(families.out_mesh(4))
    for task in list(game.dag.named(game.dag.order)):
        game.execute(task)
    assert len(bytes(game.journal)) == 8 * len(game.journal) == 8 * 2 * len(game.dag)
    assert list(unpacked(game.since(len(game.journal) - 1))) == [(COMPLETE, 9)]


@pytest.mark.parametrize(
    ("moves", "told"),
    [
        ([TAKE << 32 | 7], "move 0 of this journal is not possible in that state"),
        ([TAKE << 32 | 0, 99 << 32], "move 1 of this journal is not possible"),
        ([-1], "move 0 of this journal is not possible"),
        ([TAKE << 32, DROP << 32], "move 1 of this journal"),
        ([HOLD << 32 | 1], "move 0 of this journal"),
        ([TAKE << 32, AGAIN << 32, FAIL << 32], "move 2 of this journal"),
        ([2**70], "8-byte integers"),
        ([1.5], "8-byte integers"),
        (b"abc", "8-byte integers"),
        (None, "8-byte integers"),
    ],
)
def test_a_journal_of_something_else_is_refused(diamond: Dag, moves: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        Execution.replay(diamond, moves)


@pytest.mark.parametrize("kind", range(len(MOVES)))
def test_a_journal_that_skips_a_move_is_refused(diamond: Dag, kind: int) -> None:
    with pytest.raises(InputError, match="move 0"):
        Execution.replay(diamond, [kind << 32 | 3 if kind in {TAKE, COMPLETE, RELEASE} else kind << 32])


def test_a_journal_that_was_cut_off_leaves_nothing_held_for_nobody(diamond: Dag) -> None:
    """A release of a fat task's first task releases the others too: the crash came between."""
    game = Execution(diamond)
    game.take("a", "b", "c")
    game.release("a")
    for cut in range(1, len(game.journal) + 1):
        again = Execution.replay(diamond, list(game.journal)[:cut])
        for task in again.held:
            assert set(diamond.parents(task)) <= {*again.allocated, *again.held, *again.executed}


def test_a_journal_that_was_cut_off_behind_a_copy_is_mended_too() -> None:
    game = Execution({"a": [], "b": ["a"]})
    game.take("a", "b")
    game.take("a", again=True)
    game.fail("a")
    assert game.story()[-2:] == [("drop", "a"), ("release", "b")]
    again = Execution.replay(game.dag, list(game.journal)[:-1])
    assert again.complete("a") == ("b",)


def test_a_copy_that_fails_leaves_nothing_with_nobody() -> None:
    """The first holder of a fat task fails while somebody else has a copy of its first task."""
    game = Execution({"a": [], "b": ["a"]})
    game.take("a", "b")
    game.take("a", again=True)
    game.fail("a")
    assert game.complete("a") == ("b",)


def test_all_that_a_lost_client_has_comes_back(diamond: Dag) -> None:
    game = Execution(diamond)
    game.take("a", "b", "c")
    game.complete("a")
    game.give_up("a", "b", "c")
    assert list(game.eligible) == ["b", "c"]


def test_where_it_stood_before_can_be_told(diamond: Dag) -> None:
    game = Execution(diamond, executed=["a"])
    game.take("b")
    game.release("b")
    assert [game.journal.left_at(seen, 4).tolist() for seen in (0, 2, 3, 4)] == [
        [True] * 4, [False, True, True, True], [False, False, True, True], [False, True, True, True],
    ]  # fmt: skip


def test_views_are_sets_of_tasks(diamond: Dag) -> None:
    game = Execution(diamond, executed=["a"])
    assert game.eligible & {"b", "x"} == {"b"}
    assert game.eligible | game.executed == {"a", "b", "c"}
    assert "x" not in game.eligible
    assert repr(game.eligible) == "Tasks(['b', 'c'])"
    assert list(game.numbers(ELIGIBLE)) == [1, 2]
    game.take("b")
    assert list(game.eligible) == ["c"]


def test_long_chains_are_held_and_released_whole() -> None:
    chain = Dag.from_arrays(5_000, np.arange(4_999), np.arange(1, 5_000))
    game = Execution(chain)
    game.take(*chain.tasks)
    assert len(game.held) == 4_999
    game.release("0")
    assert (len(game.held), game.left) == (0, 5_000)
    assert [kind for kind, _ in unpacked(game.since(0))].count(HOLD) == 4_999
