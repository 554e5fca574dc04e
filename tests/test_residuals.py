"""The plan of what an execution has left is the plan that would be made of it from scratch."""

import gc
import pickle
from typing import Any

import numpy as np
import pytest

from conftest import random_small_dag
from eligo import families
from eligo.dag import Dag, sum_of
from eligo.deciding import modules, residuals
from eligo.deciding.limits import LEAST_CHAIN
from eligo.deciding.linear import LinearSegment
from eligo.errors import InputError
from eligo.execution import EXECUTED, Execution
from eligo.planning import Plan, PlanLeft, plan
from eligo.theory.eligibility import eligible_counts
from eligo.verifying import verify


def residual(game: Execution) -> Dag:
    return game.dag.induced(np.flatnonzero(np.frombuffer(game.codes, np.uint8) != EXECUTED).astype(np.int32))


def step(game: Execution, left: PlanLeft, rng: np.random.Generator, loyal: float) -> None:
    """One completion: of the first task of the plan that is ready, or of any."""
    ready = list(game.eligible)
    wanted = [task for task in left.next(4) if task in game.eligible]
    game.execute(wanted[0] if wanted and rng.random() < loyal else ready[int(rng.integers(len(ready)))])


def agree(left: PlanLeft, twin: Plan) -> None:
    """What is known at once is what is found from scratch."""
    assert len(left) == len(twin)
    assert (left.verdict, left.area_bound) == (twin.verdict, twin.area_bound)
    # among orders that none proves to be of largest area, the heuristics differ with the numbering
    assert left.area <= left.area_bound if twin.area < twin.area_bound else left.area == twin.area


def agree_in_full(left: PlanLeft, game: Execution, twin: Plan) -> None:
    """And so is the whole of it, with a proof that holds."""
    assert left.upper_bound == twin.upper_bound
    assert left.profile == tuple(eligible_counts(left.dag, left.order))
    assert left.order[:5] == left.next(5)
    assert (left.plan.verdict, left.plan.area_bound) == (left.verdict, left.area_bound)
    found = verify(residual(game), left)
    assert found.holds, found.reason


def spied(monkeypatch: pytest.MonkeyPatch, owner: object, name: str, place: int = 0) -> list[int]:
    """How large the part is that something is called with, each time that it is."""
    sizes, real = list[int](), getattr(owner, name)

    def call(*given: Any) -> Any:
        sizes.append(len(given[place]))
        return real(*given)

    monkeypatch.setattr(owner, name, call)
    return sizes


def follow(dag: Dag, rng: np.random.Generator, most: int = 3, effort: str = "normal") -> None:
    best, game, loyal = plan(dag, effort), Execution(dag), rng.choice([0.0, 0.5, 0.9, 1.0])
    left = best.after(game)
    while not game.finished:
        for _ in range(int(rng.integers(1, most + 1))):
            if not game.finished:
                step(game, left, rng, loyal)
        left = left.after(game)
        twin = plan(residual(game), effort)
        agree(left, twin)
        if rng.random() < 0.3:
            agree_in_full(left, game, twin)


@pytest.mark.parametrize("large", [LEAST_CHAIN, 1], ids=["segments", "blocks"])
@pytest.mark.parametrize("seed", range(10))
def test_small_dags_at_every_step(seed: int, large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(residuals, "LEAST_CHAIN", large)
    rng = np.random.default_rng(seed)
    for _ in range(100):
        follow(random_small_dag(rng, 12), rng)


@pytest.mark.parametrize("large", [LEAST_CHAIN, 1], ids=["segments", "blocks"])
@pytest.mark.parametrize(
    "dag",
    [
        families.out_mesh(9),
        families.in_mesh(8),
        families.butterfly(3),
        families.diamond(4),
        families.fork_join(5, 3, 2),
        families.parallel_prefix(8),
        families.out_tree(5),
        families.in_tree(5),
        sum_of(*(families.w_dag(s, 2) for s in (1, 2, 2, 3)), families.m_dag(2, 2), families.n_dag(4)).dag,
    ],
)
def test_families_at_every_step(dag: Dag, large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(residuals, "LEAST_CHAIN", large)
    for seed in range(3):
        follow(dag, np.random.default_rng(seed), 8)


def hard_segments(seed: int, count: int) -> Dag:
    """Random dags one after another, a task between every two that all wait for."""
    rng, tails, heads, base = np.random.default_rng(seed), list[int](), list[int](), 0
    for _ in range(count):
        part = random_small_dag(rng, 12)
        for v in range(len(part)):
            tails += [base] * (not part.indegree[v]) + [base + 1 + v] * (not part.outdegree[v])
            heads += [base + 1 + v] * (not part.indegree[v]) + [base + 1 + len(part)] * (not part.outdegree[v])
        tails += (part.tails + base + 1).tolist()
        heads += (part.child + base + 1).tolist()
        base += len(part) + 1
    return Dag.from_arrays(base + 1, tails, heads)


@pytest.mark.parametrize("seed", range(3))
def test_segments_in_series_at_every_step(seed: int) -> None:
    follow(hard_segments(seed, 5), np.random.default_rng(seed), 6)


@pytest.mark.parametrize("seed", range(3))
def test_modules_at_every_step(seed: int) -> None:
    follow(families.random_layered(5, 9, seed), np.random.default_rng(seed), 4, "quick")


def test_modules_that_were_not_touched_are_not_solved_again(monkeypatch: pytest.MonkeyPatch) -> None:
    dag = families.random_layered(8, 9, 1)
    best, game = plan(dag, "quick"), Execution(dag)
    solved = spied(monkeypatch, modules, "_at_once")
    game.execute(best.order[0])
    left = best.after(game)
    assert left.verdict == "bounded"
    again = len(solved)
    agree(left, plan(residual(game), "quick"))
    assert again == 1 < len(solved) - again


def test_segments_behind_the_one_in_progress_are_not_decided_again(monkeypatch: pytest.MonkeyPatch) -> None:
    dag = hard_segments(1, 8)
    best, game = plan(dag), Execution(dag)
    solved = spied(monkeypatch, residuals, "solve_numbered")
    left, rng = best.after(game), np.random.default_rng(0)
    while not game.finished:
        step(game, left, rng, 0.0)
        left = left.after(game)
        assert left.verdict == plan(residual(game)).verdict
    assert 0 < max(solved) <= 14


def test_a_best_order_that_is_followed_is_never_decided_again(monkeypatch: pytest.MonkeyPatch) -> None:
    dag = families.butterfly(3)
    best, game = plan(dag), Execution(dag)
    monkeypatch.setattr(residuals, "solve_numbered", None)
    for task in best.order:
        game.execute(task)
        left = best.after(game)
        assert left.verdict == "optimal"
        assert left.next(3) == best.order[len(game.executed) :][:3]
        assert left.area == left.area_bound == sum(best.profile[len(game.executed) :])


def test_only_touched_blocks_are_solved_again(monkeypatch: pytest.MonkeyPatch) -> None:
    dag = families.out_mesh(80)
    best, game = plan(dag), Execution(dag)
    left, looked = best.after(game), spied(monkeypatch, LinearSegment, "_cut_up", 1)
    for v in (0, 1, 2, 4):
        game.execute(dag.tasks[v])
    left = left.after(game)
    agree(left, plan(residual(game)))
    assert looked == [2]


def test_an_earlier_moment_stays_as_it_was() -> None:
    dag = families.out_mesh(6)
    best, game = plan(dag), Execution(dag)
    game.execute("0")
    early = best.after(game)
    twin = plan(residual(game))
    game.execute("2")
    game.execute("1")
    late = early.after(game)
    assert (len(early), len(late)) == (20, 18)
    agree(early, twin)
    agree(late, plan(residual(game)))
    assert early.order == early.next(20)


def test_one_plan_follows_several_executions_and_forgets_them() -> None:
    dag = families.diamond(3)
    best, one, two = plan(dag), Execution(dag), Execution(dag, executed=dag.tasks[:3])
    assert (len(best.after(one)), len(best.after(two))) == (len(dag), len(dag) - 3)
    del one
    gc.collect()
    assert len(best._followed) == 1


def test_a_plan_that_follows_can_be_stored() -> None:
    dag = families.diamond(3)
    best, game = plan(dag), Execution(dag)
    assert best.after(game).verdict == "optimal"
    assert pickle.loads(pickle.dumps(best)).after(game).order == best.order


def test_tasks_out_failed_or_released_are_left() -> None:
    game = Execution({"a": [], "b": [], "c": ["a"], "d": ["a"]})
    best = plan(game.dag)
    game.take("a", "c")
    game.take("b")
    game.fail("b")
    assert best.after(game).next(4) == best.order
    game.complete("a")
    game.release("c")
    assert best.after(game).order == best.order[1:]


def test_the_end() -> None:
    game = Execution({"a": [], "b": ["a"]}, executed=["a", "b"])
    left = plan(game.dag).after(game)
    assert (left.verdict, left.area, left.area_bound, left.next(1), left.order) == ("optimal", 0, 0, (), ())
    assert verify(residual(game), left).holds


def test_names_may_be_any_objects() -> None:
    game = Execution({1: [], (2, 3): [1], 4: [1], 5: [4]}, executed=[1])
    left = plan(game.dag).after(game)
    assert left.next(1) == (4,)
    assert verify(left.dag, left).holds


def test_another_workflow_or_execution_is_refused() -> None:
    best = plan({"a": [], "b": ["a"]})
    with pytest.raises(InputError, match="another workflow"):
        best.after(Execution({"a": [], "c": ["a"]}))
    left = best.after(Execution({"a": [], "b": ["a"]}, executed=["a"]))
    with pytest.raises(InputError, match="another workflow"):
        left.after(Execution({"a": [], "b": []}))
    with pytest.raises(InputError, match="not the execution"):
        left.after(Execution({"a": [], "b": ["a"]}))
