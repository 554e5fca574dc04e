"""The plan of what an execution has left is the plan that would be made of it from scratch."""

import gc
import pickle
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from conftest import random_small_dag
from eligo import families
from eligo.dag import Dag, sum_of
from eligo.deciding import bounds, modules, residuals, solving
from eligo.deciding.bounds import Shares, best_shares
from eligo.deciding.corners import KnownShares, begun_from
from eligo.deciding.limits import LEAST_CHAIN
from eligo.deciding.linear import LinearSegment
from eligo.errors import CycleError, InputError
from eligo.execution import EXECUTED, Execution
from eligo.planning import Plan, PlanLeft, plan
from eligo.rows import Ints
from eligo.theory.eligibility import eligible_counts
from eligo.theory.series import segment_dag
from eligo.theory.skeleton import skeleton
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


def in_series(parts: Iterable[Dag]) -> Dag:
    """Dags one after another, a task between every two that all wait for."""
    tails, heads, base = list[int](), list[int](), 0
    for part in parts:
        for v in range(len(part)):
            tails += [base] * (not part.indegree[v]) + [base + 1 + v] * (not part.outdegree[v])
            heads += [base + 1 + v] * (not part.indegree[v]) + [base + 1 + len(part)] * (not part.outdegree[v])
        tails += (part.tails + base + 1).tolist()
        heads += (part.child + base + 1).tolist()
        base += len(part) + 1
    return Dag.from_arrays(base + 1, tails, heads)


def hard_segments(seed: int, count: int) -> Dag:
    """Random dags one after another."""
    rng = np.random.default_rng(seed)
    return in_series(random_small_dag(rng, 12) for _ in range(count))


def layers(seed: int, count: int) -> Dag:
    """Random dags of layers one after another, most of which are not ▷-linear."""
    return in_series(families.random_layered(3, 5, 100 * seed + i) for i in range(count))


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


def plain(dag: Dag, shares: Shares) -> list[tuple[object, ...]]:
    """Modules whatever the numbering, by falling share."""
    return [(sorted(dag.named(m.tasks)), sorted(dag.named(m.renders)), m.p, m.q) for m in shares.modules]


def is_proved(dag: Dag, shares: Shares) -> bool:
    """Whether worth flows as it must: each nonsource hands on its own and what it gets, and nobody keeps too much."""
    gets = np.bincount(dag.tails, shares.flow, len(dag))
    hands = np.bincount(dag.child, shares.flow, len(dag))
    for m in shares.modules:
        inner = np.isin(m.tasks, m.renders)
        kept = gets[m.tasks] + inner * (m.q - hands[m.tasks])
        if (kept > m.p).any() or (hands[np.setdiff1d(m.renders, m.tasks)] != m.q).any():
            return False
    return True


@pytest.mark.parametrize("dual", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_corners_that_were_not_touched_are_corners_of_what_is_left(seed: int, dual: bool) -> None:
    rng = np.random.default_rng(seed)
    dag = skeleton(random_small_dag(rng, 25) if seed % 2 else families.random_layered(4, 6, seed))
    game, full = Execution(dag), dag.dual() if dual else dag
    known = KnownShares(full.tasks, full.tails, full.child, best_shares(full))
    while not game.finished:
        for task in rng.permutation(list(game.eligible))[: int(rng.integers(1, 4))].tolist():
            game.execute(task)
        left = np.flatnonzero((np.frombuffer(game.codes, np.uint8) != EXECUTED) & (dag.outdegree > 0))
        part = segment_dag(dag, left.astype(np.int32))
        part = part.renumbered(rng.permutation(len(part)).astype(np.int32))
        part = part.dual() if dual else part
        begun = begun_from(known, part, dual)
        assert begun is not None
        found = best_shares(part, None, begun)
        assert plain(part, found) == plain(part, best_shares(part))
        assert is_proved(part, found)
        if rng.random() < 0.5:
            known = KnownShares(part.tasks, part.tails, part.child, found)


def test_corners_are_not_taken_from_another_dag() -> None:
    dag = Dag.from_arcs([("a", "b"), ("b", "c"), ("d", "c")])
    known = KnownShares(dag.tasks, dag.tails, dag.child, best_shares(dag))
    for other in (
        Dag.from_arcs([("a", "b"), ("b", "c")]),  # what is left when d is executed
        Dag.from_arcs([("a", "b"), ("d", "c")], ["a", "b", "c", "d"]),
        Dag.from_arcs([("a", "b"), ("b", "c"), ("d", "c"), ("d", "e")]),
        Dag.from_arcs([("a", "b")]),
    ):
        begun = begun_from(known, other, False)
        assert (begun is not None) == (len(other) == 3)


def test_modules_that_were_not_touched_are_not_cut_again(monkeypatch: pytest.MonkeyPatch) -> None:
    dag = families.random_layered(12, 9, 1)
    best, game = plan(dag, "quick"), Execution(dag)
    first = best.after(game)
    cuts, cut = list[int](), bounds.Flowing.cut

    def spy(flowing: bounds.Flowing, tasks: Ints, *part: Any) -> Any:
        cuts.append(len(tasks))
        return cut(flowing, tasks, *part)

    monkeypatch.setattr(bounds.Flowing, "cut", spy)
    game.execute(best.order[0])
    left = first.after(game)
    assert left.verdict == "impossible"
    again = sum(cuts)
    agree(left, plan(residual(game), "quick"))
    assert 0 < again < (sum(cuts) - again) / 2


def test_components_that_were_not_touched_are_not_decided_again(monkeypatch: pytest.MonkeyPatch) -> None:
    dag = sum_of(*(families.random_layered(4, 5, seed) for seed in range(4))).dag
    best, game = plan(dag), Execution(dag)
    solved = spied(monkeypatch, solving, "solve")
    game.execute(best.order[0])
    left = best.after(game)
    assert left.verdict == "impossible"
    again = len(solved)
    agree(left, plan(residual(game)))
    assert again == 2 < len(solved) - again  # what is left, and the component that was touched


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


# Dags that grow


def grow(game: Execution, rng: np.random.Generator, most: int = 3) -> None:
    """A few tasks more, below anything and above what nobody has had; what would be a circle is not added."""
    fresh = [f"new {len(game.graph) + i}" for i in range(int(rng.integers(1, most + 1)))]
    old = list(game.dag.tasks)
    free = [task for task in old if game.state(task) in {"waiting", "eligible"}]
    arcs = [(rng.choice([*old, *fresh]), task) for task in fresh for _ in range(int(rng.integers(0, 3)))]
    arcs += [(rng.choice(fresh), rng.choice(free)) for _ in range(int(rng.integers(0, 3))) if free]
    with suppress(CycleError):
        game.grow(fresh, [(str(u), str(v)) for u, v in arcs if u != v])


def follow_growing(dag: Dag, rng: np.random.Generator, growths: int = 4, effort: str = "normal") -> None:
    """Grown and executed as chance has it, and compared with a plan from scratch after each."""
    best, game, loyal = plan(dag, effort), Execution(dag), rng.choice([0.0, 0.5, 0.9])
    left, seen = best.after(game), False
    while not game.finished:
        if growths and rng.random() < 0.4:
            grow(game, rng)
            growths -= 1
        for _ in range(int(rng.integers(0, 4))):
            if game.eligible:
                step(game, left, rng, loyal)
        seen = rng.random() < 0.7  # now and then both happen before anybody looks
        if seen:
            left = (left if rng.random() < 0.5 else best).after(game)
            twin = plan(residual(game), effort)
            agree(left, twin)
            if rng.random() < 0.3:
                agree_in_full(left, game, twin)


@pytest.mark.parametrize("large", [LEAST_CHAIN, 1], ids=["segments", "blocks"])
@pytest.mark.parametrize("seed", range(6))
def test_small_dags_that_grow(seed: int, large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(residuals, "LEAST_CHAIN", large)
    rng = np.random.default_rng(seed)
    for _ in range(40):
        follow_growing(random_small_dag(rng, 10), rng)


@pytest.mark.parametrize("large", [solving.LARGE, 1], ids=["as numbered", "level by level"])
def test_segments_in_series_that_grow(large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solving, "LARGE", large)
    for seed in range(2):
        follow_growing(layers(seed, 3), np.random.default_rng(seed), 6)


@pytest.mark.parametrize("seed", range(3))
def test_modules_that_grow(seed: int) -> None:
    follow_growing(families.random_layered(5, 9, seed), np.random.default_rng(seed), 4, "quick")


@pytest.mark.parametrize("dag", [families.out_mesh(7), families.in_tree(4), families.fork_join(5, 3, 2)])
def test_families_that_grow(dag: Dag) -> None:
    for seed in range(3):
        follow_growing(dag, np.random.default_rng(seed), 6)


@pytest.mark.parametrize("large", [solving.LARGE, 1], ids=["as numbered", "level by level"])
def test_segments_to_which_nothing_was_added_are_not_decided_again(large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solving, "LARGE", large)
    dag = layers(1, 6)
    best, game = plan(dag), Execution(dag)
    for _ in range(3):
        game.execute(next(iter(game.eligible)))
    left = best.after(game)
    assert left.verdict == "impossible"
    solved = spied(monkeypatch, solving, "_solve_segment")
    last = dag.tasks[-1]
    game.grow(["below", "beside"], [(last, "below"), (dag.tasks[-2], "beside"), ("beside", last)])
    left = left.after(game)
    again = list(solved)
    twin = plan(residual(game))
    agree(left, twin)
    agree_in_full(left, game, twin)
    assert len(again) <= 1 < len(solved) - len(again)


def test_a_new_task_between_two_others_takes_their_arc_away() -> None:
    game = Execution({"a": [], "b": ["a"], "c": ["a", "b"], "d": ["b"], "e": ["d"], "f": ["c"]})
    left = plan(game.dag).after(game)
    game.grow(["x"], [("b", "x"), ("x", "d")])
    left = left.after(game)
    agree_in_full(left, game, plan(residual(game)))
    assert list(left.dag.arcs()) == list(game.dag.arcs())


def test_labels_that_change_are_not_taken_over() -> None:
    dag = layers(1, 3)
    game = Execution(Dag.from_arrays(len(dag), dag.tails, dag.child, list(range(len(dag)))))
    best = plan(game.dag)
    game.grow(["1"], [(0, "1")])  # now that number is called "1" no more, in text
    left, twin = best.after(game), plan(residual(game))
    agree(left, twin)
    agree_in_full(left, game, twin)


def test_an_earlier_moment_stays_as_it_was_before_the_growth() -> None:
    dag = families.out_mesh(5)
    game = Execution(dag, executed=["0"])
    early = plan(dag).after(game)
    twin = plan(residual(game))
    game.grow(["late"], [("0", "late"), ("late", "2")])
    grown = early.after(game)
    game.execute("1")
    later = grown.after(game)
    assert (len(early), len(grown), len(later)) == (14, 15, 14)
    agree(early, twin)
    assert early.after(game).order == later.order
    assert repr(later) == "PlanLeft(14 of 16 tasks, optimal)"


def test_what_has_grown_and_is_done_already() -> None:
    game = Execution({"a": [], "b": ["a"]})
    best = plan(game.dag)
    game.grow({"c": [], "d": ["c"]})
    for task in ("c", "d", "a", "b"):
        game.execute(task)
        agree(best.after(game), plan(residual(game)))
    assert best.after(game).order == ()
    game.grow({"e": ["b"]})
    assert best.after(game).order == ("e",)


def test_another_growth_is_refused() -> None:
    best = plan({"a": [], "b": ["a"]})
    one, two = Execution(best.dag), Execution(best.dag)
    one.grow({"c": ["a"]})
    two.grow({"d": ["a"], "e": ["d"]})
    left = best.after(one)
    with pytest.raises(InputError, match="another workflow"):
        left.after(two)
    one.execute("a")
    left = left.after(one)
    one.grow({"f": ["a"]})
    left = left.after(one)
    three = Execution(one.dag, executed=["a", "b"])
    assert left.after(one) is left
    assert len(left.after(three)) == 2
    with pytest.raises(InputError, match="not the execution"):
        left.after(Execution(one.dag))


def test_another_workflow_or_execution_is_refused() -> None:
    best = plan({"a": [], "b": ["a"]})
    with pytest.raises(InputError, match="another workflow"):
        best.after(Execution({"a": [], "c": ["a"]}))
    left = best.after(Execution({"a": [], "b": ["a"]}, executed=["a"]))
    with pytest.raises(InputError, match="another workflow"):
        left.after(Execution({"a": [], "b": []}))
    with pytest.raises(InputError, match="not the execution"):
        left.after(Execution({"a": [], "b": ["a"]}))
