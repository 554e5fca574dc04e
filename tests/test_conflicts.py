"""The witness for "impossible": two steps and two sets, against what the sets really render and against all sets."""

from dataclasses import replace

import pytest

import eligo
from eligo import families
from eligo.dag import Dag
from eligo.deciding import conflicts
from eligo.deciding.conflicts import Conflict, find_conflict
from eligo.deciding.effort import BEST_SET_WORK
from eligo.deciding.work import Work
from eligo.families import random_dag, random_layered
from eligo.planning import plan
from eligo.rows import Ints
from eligo.theory.exact import down_sets, max_profile
from eligo.theory.skeleton import skeleton
from eligo.theory.subsets import Subsets


def impossible_dags() -> list[Dag]:
    drawn = [random_dag(12, p, seed) for p in (0.15, 0.25) for seed in range(400)]
    drawn += [random_layered(3, 4, seed) for seed in range(300)]
    return [dag for dag in drawn if eligo.plan(dag).verdict == "impossible"]


IMPOSSIBLE = impossible_dags()


def eligible_after(dag: Dag, executed: set[int]) -> int:
    parents = [set(dag.parent[dag.parent_ptr[v] : dag.parent_ptr[v + 1]].tolist()) for v in range(len(dag))]
    assert all(parents[v] <= executed for v in executed)
    return sum(parents[v] <= executed for v in range(len(dag)) if v not in executed)


def whole_set(dag: Dag, conflict: Conflict, chosen: Ints, order: tuple[str, ...]) -> set[int]:
    """The chosen tasks in the whole dag, with what the plan has before their part."""
    nonsinks = [name for name in order if dag.outdegree[dag.index[name]]]
    return {dag.index[name] for name in (*nonsinks[: conflict.before], *conflict.part.named(chosen))}


def test_there_are_cases() -> None:
    assert len(IMPOSSIBLE) > 20


@pytest.mark.parametrize("dag", IMPOSSIBLE, ids=range(len(IMPOSSIBLE)))
def test_each_set_is_best_after_its_step(dag: Dag) -> None:
    plan = eligo.plan(dag)
    conflict = plan.conflict
    assert conflict is not None
    best = max_profile(dag)
    for step, chosen in zip(conflict.steps, conflict.sets, strict=True):
        executed = whole_set(dag, conflict, chosen, plan.proof.get("order", plan.order))
        idle = step - len(executed)  # steps that render nothing: the profile falls by one at each
        assert eligible_after(dag, executed) - idle == best[step]


@pytest.mark.parametrize("dag", IMPOSSIBLE, ids=range(len(IMPOSSIBLE)))
def test_no_order_is_best_after_the_steps_that_are_told(dag: Dag) -> None:
    conflict = eligo.plan(dag).conflict
    assert conflict is not None
    one, two = conflict.steps
    told = {one, two, *conflict.corners} | (set() if conflict.alone else set(range(one)))
    assert not some_order_is_best(dag, sorted(told))
    assert some_order_is_best(dag, sorted(told - {two}))


def some_order_is_best(dag: Dag, steps: list[int]) -> bool:
    """Whether best sets of all these steps lie inside one another: all of them are tried."""
    best, layers, alive = max_profile(dag), list(down_sets(dag)), [0]
    for step in steps:
        sets = [done for done in layers[step] if eligible_after(dag, _numbers(done)) == best[step]]
        alive = [large for large in sets if any(small & ~large == 0 for small in alive)]
    return bool(alive)


def _numbers(mask: int) -> set[int]:
    return {v for v in range(mask.bit_length()) if mask >> v & 1}


def test_a_run_of_steps_is_told_truly() -> None:
    """After steps 1, 2 and 3 no order is best, though one is after 1 and 3."""
    dag = Dag.from_arcs([("a", "x"), ("b", "x"), ("a", "y"), ("b", "y"), ("c", "u"), ("d", "v")])
    plan = eligo.plan(dag)
    assert plan.conflict is not None
    assert (plan.conflict.steps, plan.conflict.alone) == ((2, 3), False)
    assert "No order that is best after every step up to 2 is also best after step 3." in eligo.explain(dag, plan)


def test_a_conflict_inside_a_module_names_its_corners() -> None:
    tails, heads = (
        [2, 2, 3, 3, 6, 6, 6, 6, 8, 8, 8, 9, 9, 9, 10, 10, 12],
        [4, 5, 7, 11, 0, 4, 5, 11, 1, 5, 11, 1, 5, 7, 7, 11, 5],
    )
    arcs = [(str(u), str(v)) for u, v in zip(tails, heads, strict=True)]
    arcs += [(f"z{j}", f"s{i}") for i in range(15) for j in range(i, i + 8)]
    dag = Dag.from_arcs([*arcs, ("12", "s0")])
    plan = eligo.plan(dag)
    assert plan.conflict is not None
    assert plan.conflict.before in plan.conflict.corners
    assert any(f"after step {plan.conflict.before}" in line for line in eligo.explain(dag, plan))


@pytest.mark.parametrize("dag", IMPOSSIBLE, ids=range(len(IMPOSSIBLE)))
def test_the_search_finds_a_conflict_where_sets_are_not_enumerated(dag: Dag, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = skeleton(dag)
    monkeypatch.setattr(Subsets, "of", lambda *_: None)
    found = find_conflict(bare, Work())
    assert found is not None
    assert not found.alone
    best = max_profile(bare)
    for step, chosen in zip(found.steps, found.sets, strict=True):
        assert len(chosen) <= step
        assert eligible_after(bare, set(chosen.tolist())) - (step - len(chosen)) == best[step]


def test_the_second_set_is_not_looked_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Explanations wait for it, and what is found at all is found soon."""
    given: list[float] = []
    monkeypatch.setattr(Subsets, "of", lambda *_: None)
    monkeypatch.setattr(conflicts, "best_set", lambda dag, maxima, step, work: given.append(work.units))
    assert find_conflict(skeleton(IMPOSSIBLE[0]), Work()) is not None
    assert given == [BEST_SET_WORK]


def test_an_optimal_plan_has_no_conflict() -> None:
    assert eligo.plan(random_layered(2, 3)).conflict is None


def test_what_the_planner_found_is_not_searched_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The witness comes from where the planner's own search got stuck, and is the one that a search of its own finds."""
    monkeypatch.setattr("eligo.deciding.modules.FIRST_LOOK", 0)  # else a largest area says as much, and sooner
    found = next(
        made for seed in range(60) if (made := plan(families.random_layered(5, 9, seed=seed))).stuck and made.conflict
    )
    again = replace(found, stuck={}).conflict
    assert again is not None
    assert found.conflict is not None
    assert (again.steps, again.corners) == (found.conflict.steps, found.conflict.corners)
    monkeypatch.setattr("eligo.deciding.conflicts.frontier", lambda *_: pytest.fail("it was searched for again"))
    assert replace(found).conflict is not None
