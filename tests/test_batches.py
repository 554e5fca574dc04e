"""Batches against enumeration: the best choice for small states, bounds that hold, errors that say what is wrong."""

import time
from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pytest

from conftest import random_small_dag
from eligo import Batches, Dag, Execution, InputError, UnknownTaskError, batch, families
from eligo.batches import decide
from eligo.batches.best import SOLVERS
from eligo.batches.component_solver import Budget
from eligo.errors import DuplicateTaskError
from slow_theory import best_batch

SEED = 20060919


class State(NamedTuple):
    """A dag with tasks executed and tasks that somebody has."""

    dag: Dag
    executed: list[str]
    allocated: list[str]

    @property
    def eligible(self) -> list[str]:
        return [task for task in Execution(self.dag, self.executed).eligible if task not in self.allocated]

    def after(self, chosen: tuple[str, ...]) -> int:
        """How many tasks are eligible once these are executed: by the one state machine."""
        game = Execution(self.dag, self.executed, self.allocated)
        for task in chosen:
            game.execute(task)
        return len(game.eligible)


def random_state(rng: np.random.Generator, dag: Dag) -> State:
    game = Execution(dag)
    for _ in range(int(rng.integers(0, len(dag)))):
        ready = list(game.eligible)
        if len(ready) < 2:
            break
        game.execute(ready[rng.integers(len(ready))])
    allocated = [task for task in game.eligible if rng.random() < 0.1]
    return State(dag, list(game.executed), allocated)


def random_block(rng: np.random.Generator, most: int = 9) -> Dag:
    """A bipartite dag in which each sink needs one to four sources, so that the choice matters."""
    sources, sinks = int(rng.integers(3, most)), int(rng.integers(3, most + 2))
    rows = [rng.choice(sources, int(rng.integers(1, 5)) % sources + 1, replace=False) for _ in range(sinks)]
    tails = np.concatenate(rows)
    heads = sources + np.repeat(np.arange(sinks), [len(row) for row in rows])
    mixed = rng.permutation(sources + sinks)
    return Dag.from_arrays(sources + sinks, mixed[tails], mixed[heads])


def states(count: int, seed: int = SEED) -> Iterator[tuple[State, int, int]]:
    """Random small states, each with a number of requests and the most tasks that can be eligible afterwards."""
    rng = np.random.default_rng(seed)
    for i in range(count):
        state = random_state(rng, random_small_dag(rng, 13) if i % 2 else random_block(rng))
        if ready := state.eligible:
            requests = int(rng.integers(1, len(ready) + 1))
            yield state, requests, max(map(state.after, combinations(ready, requests)))


@pytest.fixture
def no_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every component that has no name counts as too large for tables."""
    monkeypatch.setattr(Budget, "items", 0)
    monkeypatch.setattr(Budget, "allows_tree", lambda *_: False)


def test_thousands_of_small_states_are_solved_exactly() -> None:
    for state, requests, most in states(2_500):
        found = batch(state.dag, state.executed, requests, allocated=state.allocated)
        assert len(set(found.tasks)) == requests
        assert set(found.tasks) <= set(state.eligible)
        assert state.after(found.tasks) == found.eligible_after == found.upper_bound == most
        assert found.exact


def test_the_oracle_of_the_theory_agrees() -> None:
    for state, requests, _ in states(200, seed=1):
        if not state.allocated:
            _, most = best_batch(state.dag, state.executed, requests)
            assert batch(state.dag, state.executed, requests).eligible_after == most


@pytest.mark.usefixtures("no_tables")
def test_large_components_by_search_and_program_are_solved_exactly_when_they_say_so() -> None:
    methods = set()
    for state, requests, most in states(250, seed=2):
        found = batch(state.dag, state.executed, requests, allocated=state.allocated, method="exact")
        assert state.after(found.tasks) == found.eligible_after == found.upper_bound == most
        assert found.exact
        methods.add(found.method.split(" + ")[-1])
    assert {"greedy", "search"} <= methods


@pytest.mark.usefixtures("no_tables")
def test_without_time_the_bound_holds_and_exact_is_no_lie() -> None:
    proved = 0
    for state, requests, most in states(400, seed=3):
        found = batch(state.dag, state.executed, requests, allocated=state.allocated, seconds=0)
        assert state.after(found.tasks) == found.eligible_after <= most <= found.upper_bound
        assert found.exact == (found.eligible_after == found.upper_bound)
        proved += found.exact
    assert proved > 100


@pytest.mark.parametrize("method", SOLVERS)
def test_every_method_gives_a_legal_batch_and_a_bound(method: str) -> None:
    for state, requests, most in states(150, seed=4):
        found = batch(state.dag, state.executed, requests, allocated=state.allocated, method=method)
        assert len(set(found.tasks)) == requests
        assert set(found.tasks) <= set(state.eligible)
        assert state.after(found.tasks) == found.eligible_after <= most <= found.upper_bound


def test_renumbering_the_tasks_changes_no_number() -> None:
    rng = np.random.default_rng(5)
    for state, requests, _ in states(150, seed=5):
        found = batch(state.dag, state.executed, requests, allocated=state.allocated)
        mixed = state.dag.renumbered(rng.permutation(len(state.dag)).astype(np.int32))
        again = batch(mixed, state.executed, requests, allocated=state.allocated)
        assert (again.eligible_after, again.upper_bound) == (found.eligible_after, found.upper_bound)


def test_the_same_question_has_the_same_answer() -> None:
    dag = families.random_layered(4, 12, seed=3)
    assert batch(dag, requests=5) == batch(dag, requests=5)


def test_shortcuts_change_nothing() -> None:
    arcs = [("a", "b"), ("b", "c"), ("x", "c"), ("y", "z")]
    plain, longer = Dag.from_arcs(arcs), Dag.from_arcs([*arcs, ("a", "c")])
    assert batch(plain, ["a"], 2) == batch(longer, ["a"], 2)


def test_isolated_tasks_come_before_sinks_of_the_dag() -> None:
    """Nothing can be rendered: p and q wait for w, s is a sink; the longer path goes first."""
    dag = Dag.from_arcs([("p", "v"), ("w", "v"), ("q", "u"), ("w", "u"), ("u", "t")], tasks="spqwvut")
    assert batch(dag, requests=1, allocated=["w"]).tasks == ("q",)
    assert batch(dag, requests=2, allocated=["w"]).tasks == ("p", "q")


def test_a_task_that_somebody_has_renders_nothing_and_does_not_count() -> None:
    dag = Dag.from_arcs([("a", "c"), ("b", "c"), ("a", "d"), ("e", "f")])
    found = batch(dag, requests=1, allocated=["b"])
    assert (found.tasks, found.eligible_after) == (("a",), 2)


def test_only_the_tasks_named_eligible_are_handed_out() -> None:
    dag = Dag.from_arcs([("a", "c"), ("a", "d"), ("b", "e"), ("x", "y")])
    assert batch(dag, requests=1, eligible=["b", "x"]).tasks == ("b",)


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"requests": 0}, "requests must be at least 1, got 0"),
        ({"requests": -2}, "requests must be at least 1, got -2"),
        ({"requests": 1.5}, "requests must be an integer, got 1.5"),
        ({"executed": ["c"]}, "'c' cannot be executed: its parent 'a' is not executed"),
        ({"allocated": ["c"]}, "'c' cannot be allocated: its parent 'a' is not executed"),
        ({"eligible": ["c"]}, "'c' cannot be eligible: its parent 'a' is not executed"),
        ({"executed": ["a"], "eligible": ["a"]}, "'a' cannot be eligible: it is executed"),
        ({"executed": ["a"], "allocated": ["a"]}, "'a' cannot be allocated: it is executed"),
        ({"allocated": ["a"], "eligible": ["a"]}, "'a' cannot be eligible: it is allocated"),
        ({"method": "magic"}, "unknown method 'magic' (choose from auto, exact, expansive, greedy)"),
        ({"seconds": -1.0}, "seconds must be a non-negative number, got -1.0"),
        ({"seconds": float("nan")}, "seconds must be a non-negative number, got nan"),
    ],
)
def test_one_clear_error(question: dict[str, object], message: str) -> None:
    dag = Dag.from_arcs([("a", "c"), ("b", "c")])
    with pytest.raises(InputError) as caught:
        batch(dag, **question)  # type: ignore[arg-type]
    assert str(caught.value) == message


@pytest.mark.parametrize("state", ["executed", "allocated", "eligible"])
def test_unknown_and_repeated_names_are_told(state: str) -> None:
    dag = Dag.from_arcs([("a", "c"), ("b", "c")])
    with pytest.raises(UnknownTaskError):
        batch(dag, **{state: ["nobody"]})  # type: ignore[arg-type]
    with pytest.raises(DuplicateTaskError):
        batch(dag, **{state: ["a", "a"]})  # type: ignore[arg-type]


def test_a_dag_without_tasks_has_nothing_to_hand_out() -> None:
    assert batch(Dag.from_arcs([]), requests=1).tasks == ()


def test_where_fewer_are_eligible_all_are_handed_out() -> None:
    assert batch(Dag.from_arcs([("a", "c"), ("b", "c")]), requests=5).tasks == ("a", "b")


def test_the_decision_agrees_with_enumeration() -> None:
    for state, requests, most in states(150, seed=6):
        for increase in range(-3, 4):
            answer = decide(state.dag, state.executed, requests, increase, allocated=state.allocated)
            assert answer == (most >= len(state.eligible) + increase)


def test_the_decision_says_when_it_is_not_made() -> None:
    dag = dense_block(0.2)
    assert decide(dag, requests=45, increase=-25, seconds=0.05) is None


# Large residuals


def dense_block(density: float, sources: int = 60, sinks: int = 80, seed: int = 5) -> Dag:
    tails, heads = np.nonzero(np.random.default_rng(seed).random((sources, sinks)) < density)
    return Dag.from_arrays(sources + sinks, tails, sources + heads)


@pytest.mark.parametrize("density", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("requests", [10, 30])
def test_dense_blocks_are_solved_or_bounded_in_the_time_given(density: float, requests: int) -> None:
    dag = dense_block(density)
    begin = time.monotonic()
    found = batch(dag, requests=requests, seconds=0.5)
    assert time.monotonic() - begin < 60  # it ends; how soon is for the benchmarks
    assert State(dag, [], []).after(found.tasks) == found.eligible_after <= found.upper_bound
    assert found.exact == (found.eligible_after == found.upper_bound)


def test_a_dense_block_in_which_little_fits_is_solved() -> None:
    assert batch(dense_block(0.4), requests=30).method == "search"


def test_the_answer_along_an_execution_is_that_of_the_state() -> None:
    """Tasks are taken, executed, failed and released between the polls; a new start must always agree."""
    rng = np.random.default_rng(8)
    for i in range(30):
        game = Execution(random_small_dag(rng, 24) if i % 3 else families.random_layered(4, 8, seed=i))
        batches = Batches(game)
        while not game.finished:
            random_moves(game, rng)
            requests = int(rng.integers(0, len(game.eligible) + 2))
            kept, fresh = batches.best(requests), Batches(game).best(requests)
            assert kept.eligible_after == fresh.eligible_after
            assert kept.exact
            assert len(kept.tasks) == min(requests, len(game.eligible))
            assert set(kept.tasks) <= game.eligible


def random_moves(game: Execution, rng: np.random.Generator) -> None:
    for task in list(game.failed):
        if rng.random() < 0.7:
            game.release(task)
    for task in list(game.eligible):
        if rng.random() < 0.3:
            game.take(task)
    for task in list(game.allocated):
        getattr(game, str(rng.choice(["complete", "complete", "release", "fail"])))(task)


def test_along_an_execution_any_number_of_requests_is_served() -> None:
    game = Execution(families.w_dag(3, 2))
    batches = Batches(game)
    assert batches.best(0).tasks == ()
    assert len(batches.best(100).tasks) == 3
    with pytest.raises(InputError, match="requests must not be negative, got -1"):
        batches.best(-1)


def test_a_batch_says_what_it_is() -> None:
    dag = Dag.from_arcs([("a", "c"), ("b", "c")])
    assert str(batch(dag, requests=1)) == "a: 1 tasks eligible afterwards, no choice leaves more"
