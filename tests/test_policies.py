"""Policies as data."""

import numpy as np
import pytest

from conftest import random_small_dag
from eligo import policies, simulation
from eligo.allocating import Ask, ByPolicy
from eligo.dag import Dag
from eligo.errors import InputError, ScheduleError
from eligo.execution import Execution
from eligo.policies import Policy
from eligo.theory.eligibility import is_schedule


def chain_then_fan(count: int, length: int, fan: int) -> Dag:
    """Chains that each end in a fan-out."""
    arcs = [(f"c{i}.{j}", f"c{i}.{j + 1}") for i in range(count) for j in range(length - 1)]
    arcs += [(f"c{i}.{length - 1}", f"f{i}.{k}") for i in range(count) for k in range(fan)]
    return Dag.from_arcs(arcs)


def test_certain_releases_outbid_a_level() -> None:
    """a and b share k children; d and e share z, which z1 needs. a is out, so what b releases is certain.

    d scores 3 + 1.1 sqrt(1/4 * 2/3) = 3.449 (z misses two parents), b scores 2 + 1.1 sqrt(k / 2): 2.78, 3.1, 3.35, 3.56.
    """
    for children, expected in (("x", "d"), ("xy", "d"), ("xyw", "d"), ("xywv", "b")):
        shared = [(parent, child) for parent in "ab" for child in children]
        dag = Dag.from_arcs([*shared, ("d", "z"), ("e", "z"), ("z", "z1")])
        game = Execution(dag, allocated=["a"])
        assert ByPolicy(policies.balanced(dag), game).hand_out([Ask()])[0].tasks == (expected,)


def test_a_release_out_of_reach_does_not_count() -> None:
    """x waits for b and for f, which waits for e: until f is ready, and again once it is lost, b releases nothing."""
    dag = Dag.from_arcs([("b", "x"), ("e", "f"), ("f", "x")])
    board = policies.balanced(dag).board()
    board.reset(0)
    b, e, f = (dag.number(name) for name in "bef")
    assert board.worth(b) == 2.0
    board.take(e)
    board.finish(e)
    assert board.worth(b) == 2 + np.sqrt(1.1 * 1.1 * 0.25 / 2)
    board.take(f)
    assert board.worth(b) == 2 + np.sqrt(1.1 * 1.1 / 2)
    board.lose(f)
    assert board.worth(b) == 2.0


def test_a_release_counts_by_what_hangs_below_it() -> None:
    """p releases a sink for sure, q the head of a path; both have a path of 3 below them in all."""
    dag = Dag.from_arcs([("p", "p1"), ("p1", "p2"), ("p", "sink"), ("q", "q1"), ("q1", "q2")])
    board = policies.balanced(dag).board()
    board.reset(0)
    p, q = dag.number("p"), dag.number("q")
    assert board.worth(p) == 3 + np.sqrt(1.1 * 1.1 * (2 + 1) / 3)
    assert board.worth(q) == 3 + np.sqrt(1.1 * 1.1 * 2 / 3)


def test_paths_in_seconds_are_in_mean_tasks() -> None:
    dag = Dag.from_arcs([("a", "b"), ("b", "c")], tasks="abcd")
    policy = policies.balanced(dag, seconds=np.array([1.0, 2.0, 3.0, 0.0]))
    assert policy.score.tolist()[:3] == [4.0, 5 / 1.5 // (1 / 65536) / 65536, 2.0]
    assert 0 < policy.score[3] < 1e-4


def test_balanced_is_the_studys_score() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        dag = random_small_dag(rng, 12)
        policy = policies.balanced(dag)
        assert policy.phi == (0.0, 1.0, 0.25, 0.0625, 0.0625)
        assert policy.weight == 1.1
        assert (policy.score >= policy.dag.height + 1).all()
        assert sorted(policy.rank.tolist()) == list(range(len(dag)))
        assert is_schedule(dag, simulation.play(policy))


def test_a_chain_that_was_begun_fans_out_before_another_is_begun() -> None:
    """Chains of 3 with a fan of 5: one after the other; with a fan of 2 side by side, the longest path first."""
    wide, narrow = chain_then_fan(3, 3, 5), chain_then_fan(3, 3, 2)
    begun = wide.named(simulation.play(policies.balanced(wide)))[:3]
    assert begun == ("c0.0", "c0.1", "c0.2")
    assert set(narrow.named(simulation.play(policies.balanced(narrow)))[:3]) == {"c0.0", "c1.0", "c2.0"}


def test_shortcuts_change_nothing() -> None:
    rng = np.random.default_rng(1)
    for _ in range(30):
        dag = random_small_dag(rng, 12)
        grandchildren = [(a, c) for a in dag.tasks for b in dag.children(a) for c in dag.children(b)]
        more = Dag.from_arcs([*dag.arcs(), *grandchildren], tasks=dag.tasks)
        rank = policies.finishing_rank(dag)
        orders = [simulation.play(policies.balanced(each, rank)).tolist() for each in (dag, more)]
        assert orders[0] == orders[1]


def test_fifo_and_lifo_by_outdegree_as_the_paper_words_them() -> None:
    """Of tasks that become ready together, the one with more children comes first, in both."""
    dag = Dag.from_arcs([("b", "x"), ("c", "y"), ("c", "z")], tasks=["a", "b", "c", "x", "y", "z"])
    for policy in (policies.fifo(dag), policies.lifo(dag)):
        firsts = {dag.tasks[simulation.play(policy, seed)[0]] for seed in range(20)}
        assert firsts == {"c"}
    assert dag.named(simulation.play(policies.fifo(dag)))[:3] == ("c", "b", "a")
    assert set(dag.named(simulation.play(policies.lifo(dag)))[1:3]) == {"y", "z"}


def test_which_policies_chance_plays_a_part_in() -> None:
    dag = Dag.from_arcs([("a", "b"), ("a", "c")])
    made = [policies.fifo, policies.lifo, policies.random, policies.balanced, policies.critical_path]
    assert [make(dag).drawn for make in made] == [True, True, True, False, False]
    assert [make(dag).queue for make in made] == [True, True, False, False, False]


def test_wrong_policies_are_refused() -> None:
    dag = Dag.from_arcs([("a", "b")])
    with pytest.raises(InputError, match="each of the 2 tasks"):
        Policy("short", dag, np.zeros(1))
    with pytest.raises(InputError, match="finite"):
        Policy("endless", dag, np.array([0.0, np.inf]))
    with pytest.raises(InputError, match="unknown ties 'coin'"):
        Policy("odd", dag, np.zeros(2), ties="coin")
    with pytest.raises(InputError, match="negative"):
        Policy("odd", dag, np.ones(2), -1.0)
    with pytest.raises(InputError, match="must be positive"):
        Policy("odd", dag, np.zeros(2), 1.0)
    with pytest.raises(InputError, match="greedy"):
        policies.greedy(dag, "last")
    with pytest.raises(ScheduleError):
        policies.from_order(dag, ["b", "a"])


def test_critical_path_counts_tasks_or_seconds() -> None:
    """a -> b -> c beside d: by tasks a is first, by seconds d."""
    dag = Dag.from_arcs([("a", "b"), ("b", "c")], tasks="abcd")
    assert dag.tasks[simulation.play(policies.critical_path(dag))[0]] == "a"
    slow = policies.critical_path(dag, np.array([1.0, 1.0, 1.0, 9.0]))
    assert slow.score.tolist() == [3.0, 2.0, 1.0, 9.0]
    assert dag.tasks[simulation.play(slow)[0]] == "d"
