"""The games: E(t) is the theory's, polls are those counted by hand, and the compiled games equal their plain twins."""

import subprocess
import sys
from itertools import repeat
from pathlib import Path

import numpy as np
import pytest

from conftest import random_small_dag
from eligo import policies, simulation
from eligo.dag import Dag
from eligo.errors import InputError, ScheduleError
from eligo.families import out_mesh
from eligo.kernels.boards import Draws
from eligo.policies import Policy
from eligo.simulation.batched import drawn_requests
from eligo.simulation.pebble import run_seeds
from eligo.theory.eligibility import eligible_counts, is_schedule
from slow_games import SlowBoard, slow_order, slow_polls


def every_policy(dag: Dag, rng: np.random.Generator) -> list[Policy]:
    """One of each kind, and one with every part drawn at random."""
    n = len(dag)
    odd = Policy(
        "odd", dag, rng.integers(1, 4, n).astype(np.float64), 1.5, (0.0, 0.5, 0.25), str(rng.choice(["first", "last"])),
        rng.integers(0, 3, n).astype(np.int32),
    )  # fmt: skip
    return [
        policies.fifo(dag), policies.lifo(dag), policies.greedy(dag), policies.greedy(dag, "first"),
        policies.random(dag), policies.critical_path(dag), policies.critical_path(dag, rng.random(n)),
        policies.balanced(dag), policies.balanced(dag, seconds=rng.exponential(3.0, n)),
        policies.from_order(dag, dag.order), odd,
    ]  # fmt: skip


@pytest.mark.parametrize("case", range(60))
def test_pebble_game_equals_its_twin_and_the_theory(case: int) -> None:
    rng = np.random.default_rng(case)
    for policy in every_policy(random_small_dag(rng, 14), rng):
        orders = simulation.orders(policy, runs=3, seed=case)
        profiles = simulation.profiles(policy, runs=3, seed=case)
        assert simulation.play(policy, case).tolist() == orders[0].tolist()
        for seed, order, profile in zip(run_seeds(3, case), orders, profiles, strict=True):
            assert (order.tolist(), profile.tolist()) == slow_order(policy, seed)
            assert profile.tolist() == eligible_counts(policy.dag, order).tolist()


def test_a_fixed_order_is_played_as_it_is() -> None:
    dag = out_mesh(9)
    order = np.random.default_rng(3).permutation(len(dag)).astype(np.int32)
    by_level = order[np.argsort(dag.level[order], kind="stable")]
    assert is_schedule(dag, by_level)
    assert simulation.play(policies.from_order(dag, by_level)).tolist() == by_level.tolist()


@pytest.mark.parametrize("case", range(60))
def test_batched_game_equals_its_twin(case: int) -> None:
    rng = np.random.default_rng(100 + case)
    mean = float(rng.choice([0.3, 1.0, 2.5, 6.0]))
    for policy in every_policy(random_small_dag(rng, 14), rng):
        polls = simulation.batched(policy, mean, runs=3, seed=case)
        for run, seed in enumerate(run_seeds(3, case)):
            requests = iter(drawn_requests(mean, run, case, 200).tolist())
            assert polls[run] == slow_polls(policy, seed, requests)


def test_polls_counted_by_hand() -> None:
    r"""Two requests at a time.

    a   b     c - d - e      The chain first: {a, c}, {b, d}, {e, x}, done in 3.
     \ /                     By first come, {a, b}, {c, x}, {d}, {e}: 4.
      x
    """
    dag = Dag.from_arcs([("a", "x"), ("b", "x"), ("c", "d"), ("d", "e")], tasks="abcxde")
    plain = Policy("plain fifo", dag, np.zeros(6), ties="first")
    assert simulation.batched(plain, requests=[2] * 9).tolist() == [4]
    assert simulation.batched(policies.critical_path(dag), requests=[2] * 9).tolist() == [3]
    assert simulation.batched(policies.balanced(dag), requests=[2] * 9).tolist() == [3]
    assert simulation.batched(policies.balanced(dag), requests=[0, 1, 0, 9, 9, 9]).tolist() == [5]
    assert simulation.batched(policies.balanced(dag), requests=[100] * 3).tolist() == [3]
    assert simulation.batched(policies.balanced(dag), requests=[1] * 6).tolist() == [6]
    with pytest.raises(InputError, match="2 polls are not enough"):
        simulation.batched(plain, requests=[1, 1])


def test_best_batches_take_fewest_polls_here() -> None:
    """Each of x, y makes two tasks ready; a and b together only one."""
    dag = Dag.from_arcs([("a", "c"), ("b", "c"), ("x", "x1"), ("x", "x2"), ("y", "y1"), ("y", "y2")])
    best = simulation.scheduler("batch-optimal", dag)
    assert simulation.batched(best, requests=[2, 4, 3]).tolist() == [3]
    assert simulation.batched(best, 3.0, runs=4, seed=1).shape == (4,)
    assert dag.tasks[simulation.play(best)[0]] == "x"
    with pytest.raises(InputError, match="not enough"):
        simulation.batched(best, requests=[2, 4])


def test_empty_and_single() -> None:
    for n in (0, 1):
        dag = Dag.from_arrays(n, [], [])
        for policy in (policies.balanced(dag), policies.fifo(dag), simulation.scheduler("batch-optimal", dag)):
            assert len(simulation.play(policy)) == n
            assert simulation.batched(policy, 2.0, runs=2).tolist() == [n, n]
            assert simulation.profiles(policy).tolist() == [[1, 0][1 - n :]]


def test_policies_meet_the_same_requests_and_runs_do_not_depend_on_company() -> None:
    dag = out_mesh(12)
    policy = policies.lifo(dag)
    whole = simulation.batched(policy, 5.0, runs=10, seed=7)
    parts = [simulation.batched(policy, 5.0, runs=range(a, a + 5), seed=7) for a in (0, 5)]
    assert whole.tolist() == np.concatenate(parts).tolist()
    assert simulation.batched(policies.fifo(dag), 1e9, runs=2, seed=7).tolist() == [12, 12]
    assert np.array_equal(simulation.orders(policy, 4, seed=1)[2:], simulation.orders(policy, range(2, 4), seed=1))
    assert not np.array_equal(simulation.orders(policy, 1, seed=1), simulation.orders(policy, 1, seed=2))


def test_draws_are_what_they_are_everywhere() -> None:
    """Numbers that must not change: the published splitmix64 of seed 0, and exponentials made of comparisons."""
    stream = Draws(0)
    assert [stream.draw() for _ in range(3)] == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert [round(Draws(seed).exponential(), 12) for seed in range(4)] == [
        0.883310808214, 0.566561575172, 0.591189734198, 0.113450342057,
    ]  # fmt: skip
    many = np.array([(s := Draws(9)).draw(), *(s.exponential() for _ in range(40_000))][1:])
    assert abs(many.mean() - 1) < 0.02
    assert abs((many > 1).mean() - np.exp(-1)) < 0.01
    assert abs((many > 3).mean() - np.exp(-3)) < 0.005


def test_interpreted_kernels_give_the_same_numbers() -> None:
    code = (
        "from eligo import Rules, policies, simulation; from eligo.families import out_mesh; d = out_mesh(9);"
        "print([simulation.batched(p, 3.0, 5, 1).tolist() for p in (policies.balanced(d), policies.lifo(d))],"
        "simulation.volatile(policies.balanced(d), simulation.Clients(keeps=.5, patience=2., renewal=.1), 3, 1,"
        "drawn=True, rules=Rules(slow=.5, copies=2)).makespan.tolist())"
    )
    answers = []
    for pure in ("", "1"):
        env = {"ELIGO_PURE": pure, "PYTHONPATH": str(Path(policies.__file__).parents[1]), "PATH": ""}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
        answers.append(done.stdout)
    assert answers[0] == answers[1]
    assert "[[" in answers[0]


def test_wrong_settings_are_refused() -> None:
    policy = policies.fifo(out_mesh(3))
    for mean in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(InputError, match="mean number of requests"):
            simulation.batched(policy, mean)
    with pytest.raises(InputError, match="number of requests must not be negative"):
        simulation.batched(policy, requests=[1, -1])
    with pytest.raises(InputError, match="runs must be at least 1"):
        simulation.batched(policy, 2.0, runs=0)
    with pytest.raises(InputError, match="seed"):
        simulation.play(policy, -1)


def test_schedulers_by_name_and_from_files(tmp_path: Path) -> None:
    dag = out_mesh(5)
    for name in simulation.SCHEDULERS:
        policy = simulation.scheduler(name, dag)
        assert policy.name == name
        assert is_schedule(dag, simulation.play(policy))
    path = tmp_path / "mine.txt"
    path.write_text("\n".join(dag.named(dag.order)))
    assert simulation.play(simulation.scheduler(str(path), dag)).tolist() == dag.order.tolist()
    assert simulation.scheduler(str(path), dag).name == "mine"
    path.write_text("\n".join(dag.named(dag.order[::-1])))
    with pytest.raises(ScheduleError):
        simulation.scheduler(str(path), dag)
    with pytest.raises(InputError, match="unknown policy 'nobody'"):
        simulation.scheduler("nobody", dag)


def test_the_twin_counts_arrivals_as_the_board_does() -> None:
    """The lowest score too, which the slow-client rule asks for."""
    rng = np.random.default_rng(4)
    for _ in range(30):
        for policy in every_policy(random_small_dag(rng, 12), rng):
            twin, board = SlowBoard(policy, 5), policy.board(both_ends=True)
            board.reset(5)
            for turn in repeat(True):
                if not twin.ready:
                    break
                assert (board.best.top(), board.worst.top()) == (twin.best(), twin.worst())
                v = twin.best() if rng.random() < 0.5 else twin.worst()
                twin.take(v)
                board.take(v)
                if turn and rng.random() < 0.3:
                    twin.put_back(v)
                    board.lose(v)
                    board.arrive(v)
                else:
                    twin.finish(v)
                    board.finish(v)
