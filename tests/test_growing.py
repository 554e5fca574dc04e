"""Dags that grow while they are executed: each against a twin that is built from scratch on what has grown."""

from array import array
from random import Random

import numpy as np
import pytest

from eligo.dag import Dag
from eligo.errors import CycleError, InputError, MoveError, StateError, UnknownTaskError
from eligo.execution import GROW, RELEASE, STATES, Addition, Execution, unpacked

MOVES = 40


class Play:
    """An execution at which chance plays and to which chance adds, with the dag that it should have."""

    def __init__(self, seed: int, tasks: int = 4) -> None:
        self.random = Random(seed)
        self.tasks = [f"t{i}" for i in range(tasks)]
        self.arcs = [
            (u, v) for i, u in enumerate(self.tasks) for v in self.tasks[i + 1 :] if self.random.random() < 0.4
        ]
        self.begun = Dag.from_arcs(self.arcs, self.tasks)
        self.game = Execution(self.begun)

    @property
    def grown(self) -> Dag:
        return Dag.from_arcs(self.arcs, self.tasks)

    def step(self) -> None:
        """Any move that may be made, or a few tasks more."""
        game, random = self.game, self.random
        if random.random() < 0.25:
            self.grow()
        elif game.allocated and random.random() < 0.6:
            task = random.choice(list(game.allocated))
            random.choice((game.complete, game.complete, game.complete, game.release, game.fail))(task)
        elif game.failed and random.random() < 0.5:
            game.release(random.choice(list(game.failed)))
        elif game.eligible:
            self.take()

    def take(self) -> None:
        task = self.random.choice(list(self.game.eligible))
        later = [
            v for v in self.game.dag.children(task) if all(self.done(u) or u == task for u in self.game.dag.parents(v))
        ]
        self.game.take(task, *later[: self.random.randrange(2)])

    def done(self, task: str) -> bool:
        return task in self.game.executed

    def grow(self) -> None:
        """New tasks, with arcs from anything and to what nobody has had; what would go round in a circle is refused."""
        random, game = self.random, self.game
        fresh = [f"t{len(self.tasks) + i}" for i in range(random.randint(1, 3))]
        free = [task for task in self.tasks if game.state(task) in {"waiting", "eligible"}]
        arcs = [(random.choice([*self.tasks, *fresh]), task) for task in fresh if random.random() < 0.8]
        arcs += [(random.choice(fresh), random.choice(free)) for _ in range(random.randrange(3)) if free]
        try:
            expected = Dag.from_arcs([*self.arcs, *arcs], [*self.tasks, *fresh])
        except CycleError:
            before = stands(game), bytes(game.journal), len(game.additions)
            with pytest.raises(CycleError):
                game.grow(fresh, arcs)
            assert (stands(game), bytes(game.journal), len(game.additions)) == before
            return
        ready = game.grow(fresh, arcs)
        assert set(ready) == {task for task in fresh if all(map(self.done, expected.parents(task)))}
        self.tasks, self.arcs = [*self.tasks, *fresh], [*self.arcs, *arcs]


def stands(game: Execution) -> list[tuple[object, str, int]]:
    """Where every task stands, how many have it, and in which order tasks came there."""
    inside = [list(tasks) for tasks in (game.eligible, game.allocated, game.held, game.failed, game.executed)]
    return [(task, game.state(task), game.holders(task)) for row in inside for task in row]


def twin(game: Execution, dag: Dag) -> Execution:
    """An execution that began with all of the dag, with the same moves but for what was taken in vain."""
    moves = [move for move in game.journal if move >> 32 != GROW]
    back = {move & 0xFFFFFFFF: place for place, move in enumerate(moves) if move >> 32 == RELEASE}
    return Execution.replay(dag, [move for place, move in enumerate(moves) if place > back.get(move & 0xFFFFFFFF, -1)])


@pytest.mark.parametrize("seed", range(30))
def test_what_has_grown_stands_where_one_stands_that_began_so(seed: int) -> None:
    for part in range(20):
        play = Play(1_000 * seed + part)
        for _ in range(MOVES):
            play.step()
            if play.random.random() < 0.3:
                assert play.game.dag == play.grown  # which makes one dag of it at any moment
        game, other = play.game, twin(play.game, play.grown)
        assert game.dag == play.grown
        assert bytes(game.codes) == bytes(other.codes)
        assert game.missing == other.missing
        assert (game.eligible, list(game.executed), game.left) == (other.eligible, list(other.executed), other.left)
        assert (set(game.futile), game.finished, game.stuck) == (set(other.futile), other.finished, other.stuck)


@pytest.mark.parametrize("seed", range(15))
def test_a_replay_and_whoever_follows_come_to_the_same(seed: int) -> None:
    for part in range(20):
        play = Play(1_000_000 + 1_000 * seed + part)
        follower = Execution(play.begun)
        for _ in range(MOVES):
            play.step()
            if play.random.random() < 0.3:
                follower.follow(play.game.since(len(follower.journal)), play.game.additions)
                assert stands(follower) == stands(play.game)
        game = play.game
        for again in (
            Execution.replay(play.begun, game.journal),
            Execution.replay(play.begun, array("q", bytes(game.journal)), game.additions),
        ):
            assert stands(again) == stands(game)
            assert bytes(again.journal) == bytes(game.journal)
            assert (again.additions, again.dag) == (game.additions, game.dag)
            assert again.story() == game.story()


def test_tasks_come_below_beside_and_above() -> None:
    game = Execution({"a": [], "b": ["a"], "c": []})
    game.take("a")
    assert game.grow({"below": ["a", "b"], "beside": []}) == ("beside",)
    assert game.grow(["above"], [("above", "c"), ("above", "b")]) == ("above",)
    assert list(game.eligible) == ["beside", "above"]
    assert (game.state("c"), game.state("below")) == ("waiting", "waiting")
    assert game.complete("a") == ()
    assert game.execute("above") == ("b", "c")
    assert game.execute("b") == ("below",)
    assert game.story()[:3] == [("take", "a"), ("grow", ("below", "beside")), ("grow", ("above",))]
    assert [kind == GROW for kind, _ in unpacked(game.since(0))].count(True) == 2
    assert game.left == 3
    assert not game.finished


def test_what_is_finished_may_go_on() -> None:
    game = Execution({"a": []})
    game.execute("a")
    assert game.finished
    assert game.grow(["b"], [("a", "b")]) == ("b",)
    assert (game.finished, game.idle) == (False, False)
    assert game.grow([]) == ()
    assert len(game.additions) == 1


@pytest.mark.parametrize(
    ("tasks", "arcs", "error", "said"),
    [
        (["x"], [("x", "done")], StateError, "'done' cannot be below 'x': it is executed"),
        (["x"], [("x", "out")], StateError, "'out' cannot be below 'x': it is allocated"),
        (["x"], [("x", "kept")], StateError, "'kept' cannot be below 'x': it is held"),
        (["x"], [("x", "bad")], StateError, "'bad' cannot be below 'x': it is failed"),
        (["x"], [("end", "x"), ("x", "wait")], CycleError, "a cycle, so no order exists: "),
        (["x", "y"], [("x", "y"), ("y", "x")], CycleError, "a cycle, so no order exists: "),
        (["x"], [("x", "x")], CycleError, "a task that must come before itself: x -> x"),
        (["done"], [], InputError, "there is a task 'done' already, so it cannot be added"),
        (["x", "x"], [], InputError, "the task 'x' is named twice"),
        (
            ["x"],
            [("ready", "end")],
            InputError,
            "'ready' and 'end' are there already, so no arc can be added between them",
        ),
        (["x"], [("nobody", "x")], UnknownTaskError, "there is no task named 'nobody'"),
        (["x"], [("ready", "x", "end")], InputError, "an arc is a pair"),
        (["x"], [(["ready"], "x")], InputError, "looked up in a dict"),
        ([["x"]], [], InputError, "called by something hashable"),
        ([], [("ready", "wait")], InputError, "are there already"),
    ],
)
def test_what_cannot_be_added_is_refused_and_changes_nothing(
    tasks: list[str], arcs: list[tuple[str, str]], error: type[Exception], said: str
) -> None:
    game = Execution(
        {"done": [], "out": ["done"], "kept": ["out"], "bad": [], "ready": [], "wait": ["ready"], "end": ["wait"]}
    )
    game.execute("done")
    game.take("out", "kept")
    game.take("bad")
    game.fail("bad")
    before = stands(game), bytes(game.journal), game.dag, bytes(game.codes), list(game.missing)
    with pytest.raises(error, match=said.replace("(", r"\(")):
        game.grow(tasks, arcs)
    assert (stands(game), bytes(game.journal), game.dag, bytes(game.codes), list(game.missing)) == before
    assert game.additions == []


def test_a_circle_is_told_by_its_tasks() -> None:
    game = Execution({"a": [], "b": ["a"], "c": ["b"]})
    with pytest.raises(CycleError) as caught:
        game.grow(["x", "y"], [("c", "x"), ("x", "y"), ("y", "a")])
    assert set(caught.value.cycle) == {"a", "b", "c", "x", "y"}


def test_names_may_be_anything_and_the_dag_as_given_stays_as_it_is() -> None:
    dag = Dag.from_arcs([((1, 2), 3)])
    game = Execution(dag)
    game.grow([4.5, frozenset()], [(3, 4.5)])
    assert (4.5 in game.eligible, frozenset() in game.eligible, 4.5 in dag, len(dag)) == (False, True, False, 2)
    assert game.dag.tasks == ((1, 2), 3, 4.5, frozenset())
    with pytest.raises(UnknownTaskError):
        game.state([])


def test_a_late_result_of_what_waits_again_is_refused() -> None:
    game = Execution({"a": []})
    game.take("a")
    game.release("a")
    game.grow(["b"], [("b", "a")])
    with pytest.raises(MoveError, match="it is waiting"):
        game.complete("a", late=True)
    assert game.execute("b") == ("a",)


def test_a_journal_without_what_was_added_is_refused() -> None:
    game = Execution({"a": []})
    game.grow(["b"])
    with pytest.raises(InputError, match="no move that could be made then"):
        Execution.replay({"a": []}, list(game.journal))
    for wrong in (
        Addition(("a",), ()),
        Addition(("b",), ((0, 7),)),
        Addition(("b",), ((0, 1), (0, 1))),
        Addition(("b",), ((0, 0),)),
    ):
        with pytest.raises(InputError):
            Execution.replay({"a": []}, list(game.journal), [wrong])


def test_what_was_left_is_told_of_the_tasks_that_there_were() -> None:
    game = Execution({"a": [], "b": []})
    game.take("a")
    game.grow(["c"])
    game.take("c")
    assert [game.left_at(seen).tolist() for seen in range(4)] == [
        [True, True],
        [False, True],
        [False, True, True],
        [False, True, False],
    ]


def test_to_add_costs_what_is_added() -> None:
    """Whoever adds to a large dag one task at a time does not wait for the dag."""
    n = 200_000
    game = Execution(Dag.from_arrays(n, np.arange(n - 1), np.arange(1, n)))
    before = game._graph._dag
    for i in range(100):
        game.grow([f"more {i}"], [("5", f"more {i}")])
    assert game._graph._dag is before  # nobody asked for it
    assert (len(game.dag), game.dag.children("5")[-1]) == (n + 100, "more 99")
    assert STATES[game.codes[n + 99]] == "waiting"
