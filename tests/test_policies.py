"""Policies as data, and played live over an execution."""

import numpy as np
import pytest

from conftest import random_small_dag
from eligo import policies, simulation
from eligo.dag import Dag
from eligo.errors import InputError, MoveError, ScheduleError
from eligo.execution import Execution
from eligo.policies import Policy, Speeds
from eligo.theory.eligibility import is_schedule
from slow_games import SlowBoard


def chain_then_fan(count: int, length: int, fan: int) -> Dag:
    """Chains that each end in a fan-out."""
    arcs = [(f"c{i}.{j}", f"c{i}.{j + 1}") for i in range(count) for j in range(length - 1)]
    arcs += [(f"c{i}.{length - 1}", f"f{i}.{k}") for i in range(count) for k in range(fan)]
    return Dag.from_arcs(arcs)


def test_certain_releases_outbid_a_level() -> None:
    """a and b share k children; d and e share z, which z1 needs. a is out, so what b releases is certain.

    d scores 3 + 1.01 / 2 = 3.505 (z misses two parents), b scores 2 + 1.01 * sqrt(k): 3.01, 3.43, 3.75.
    """
    for children, expected in (("x", "d"), ("xy", "d"), ("xyw", "b")):
        shared = [(parent, child) for parent in "ab" for child in children]
        dag = Dag.from_arcs([*shared, ("d", "z"), ("e", "z"), ("z", "z1")])
        game = Execution(dag)
        game.take("a")
        assert policies.balanced(dag).chooser(game).peek() == expected


def test_balanced_is_the_studys_score() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        dag = random_small_dag(rng, 12)
        policy = policies.balanced(dag)
        assert policy.phi == (0.0, 1.0, 0.25, 0.0625, 0.0625)
        assert policy.weight == 1.01
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


@pytest.mark.parametrize("case", range(60))
def test_the_chooser_follows_what_happens(case: int) -> None:
    """Takes, losses, failures and results at random, against scores computed from scratch."""
    rng = np.random.default_rng(case)
    dag = random_small_dag(rng, 14)
    policy = policies.balanced(dag, rng.permutation(len(dag)).astype(np.int32))
    game = Execution(dag)
    chooser, twin = policy.chooser(game), SlowBoard(policy, 0)
    while not game.finished:
        speed = float(rng.choice([0.2, 1.0])) if rng.random() < 0.7 else None
        if twin.ready and rng.random() < 0.6:
            v = twin.worst() if speed == 0.2 else twin.best()
            assert chooser.peek(speed) == chooser.take(speed) == dag.tasks[v]
            twin.take(v)
        elif game.failed and rng.random() < 0.5:
            task = next(iter(game.failed))
            chooser.release(task)
            twin.arrive(dag.index[task])
        elif game.allocated:
            task = str(rng.choice(sorted(game.allocated)))
            v = dag.index[task]
            match rng.choice(["complete", "complete", "release", "fail"]):
                case "complete":
                    chooser.complete(task)
                    twin.finish(v)
                case "release":
                    chooser.release(task)
                    twin.put_back(v)
                case _:
                    chooser.fail(task)
                    twin.out.remove(v)
        assert {dag.index[t] for t in game.eligible} == set(twin.ready)
        if case % 3 == 0:
            chooser = policy.chooser(game)  # as a server that starts again does
    assert chooser.take() is None


def test_a_forbidden_move_changes_nothing() -> None:
    dag = Dag.from_arcs([("a", "b")])
    chooser = policies.fifo(dag).chooser(Execution(dag))
    for move in (chooser.complete, chooser.fail, chooser.release):
        with pytest.raises(MoveError):
            move("a")
    assert (chooser.take(), chooser.take()) == ("a", None)


def test_a_chooser_needs_its_own_dag() -> None:
    with pytest.raises(InputError, match="another dag"):
        policies.fifo(Dag.from_arcs([("a", "b")])).chooser(Execution(Dag.from_arcs([("a", "c")])))


def test_speeds_know_nothing_of_strangers() -> None:
    speeds = Speeds()
    assert speeds.of("new") is None
    speeds.record("steady", 10.0, work=10.0)
    speeds.record("slow", 50.0, work=10.0)
    assert speeds.of("steady") == pytest.approx(3.0)
    assert speeds.of("slow") == pytest.approx(0.6)


def test_wrong_policies_are_refused() -> None:
    dag = Dag.from_arcs([("a", "b")])
    with pytest.raises(InputError, match="each of 2 tasks"):
        Policy("short", dag, np.zeros(1))
    with pytest.raises(InputError, match="finite"):
        Policy("endless", dag, np.array([0.0, np.inf]))
    with pytest.raises(InputError, match="no way 'coin'"):
        Policy("odd", dag, np.zeros(2), ties="coin")
    with pytest.raises(InputError, match="not negative"):
        Policy("odd", dag, np.zeros(2), -1.0)
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
