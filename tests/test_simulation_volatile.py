"""Volatile clients: compiled, equal event by event to the product's own allocators; and right where the answer is known."""

import math

import numpy as np
import pytest

from conftest import random_small_dag
from eligo import policies, simulation
from eligo.allocating import PRUDENT, ByCluster, Rules
from eligo.dag import Dag
from eligo.errors import InputError
from eligo.families import out_mesh
from eligo.policies import Policy
from eligo.simulation import Clients
from eligo.simulation.crowd import LiveCrowd
from eligo.simulation.pebble import run_seeds
from eligo.simulation.volatile import compiled_crowd, setting_of

STEADY = math.inf


@pytest.mark.parametrize("case", range(150))
def test_the_compiled_crowd_is_what_the_allocators_do_live(case: int) -> None:
    rng = np.random.default_rng(case)
    dag = random_small_dag(rng, 16)
    n = len(dag)
    policy = Policy(
        "odd", dag, rng.integers(1, 4, n).astype(np.float64), float(rng.choice([0.0, 1.01])), (0.0, 1.0, 0.25),
        str(rng.choice(["rank", "first", "last", "random"])), rng.integers(0, 3, n).astype(np.int32),
    )  # fmt: skip
    clients = Clients(
        count=int(rng.integers(1, 7)), spread=float(rng.choice([1.0, 30.0])), stay=float(rng.choice([0.7, 3.0, STEADY])),
        away=float(rng.choice([0.5, 2.0])), fixed=bool(rng.random() < 0.3), keeps=float(rng.choice([0.0, 0.5])),
        patience=float(rng.choice([0.0, 1.0])), renewal=float(rng.choice([0.0, 0.3])),
    )  # fmt: skip
    seconds = np.round(rng.uniform(0.25, 2.0, n), 3)
    rules = Rules(
        slow=float(rng.choice([0.0, 0.5, 0.9])), known_speeds=bool(rng.random() < 0.3), fastest=bool(rng.random() < 0.3),
        expected=seconds if rng.random() < 0.5 else None, long=float(rng.choice([0.0, 1.2])),
        copies=int(rng.integers(1, 4)), overdue=float(rng.choice([0.0, 1.0, 2.0])),
    )  # fmt: skip
    drawn = bool(rng.random() < 0.5)
    outcome = simulation.volatile(policy, clients, 3, case, seconds, drawn=drawn, rules=rules)
    setting = setting_of(clients, math.fsum(seconds) / n)
    expected = np.ones(n) if rules.expected is None else rules.expected
    compiled, again = compiled_crowd(policy, setting, rules), np.zeros(5)
    for run, seed in enumerate(run_seeds(3, case)):
        live = LiveCrowd(policy, setting, rules, seconds.tolist(), seed, drawn)
        left = live.play()
        compiled.log = []
        assert compiled.play(seed, seconds, drawn, expected, again) == left
        assert compiled.log == live.log
        if left:  # nobody stays long enough to finish some task
            assert clients.stay < STEADY
            assert np.isinf(outcome.makespan[run])
            continue
        ours = [float(field[run]) for field in vars(outcome).values()]
        assert ours == pytest.approx(live.outcome, rel=1e-12, abs=1e-12)
        assert ours[0] == live.outcome[0]
    ended = np.isfinite(outcome.makespan)
    spent = outcome.useful + outcome.wasted + outcome.stalled
    assert spent[ended] == pytest.approx(outcome.present[ended])
    assert (outcome.utilisation[ended] <= 1 + 1e-12).all()


def test_steady_equal_clients_are_a_list_schedule() -> None:
    """Three clients on a mesh of unit tasks: the levels, three at a time."""
    mesh = policies.fifo(out_mesh(4))
    outcome = simulation.volatile(mesh, Clients(count=3, spread=1.0, stay=STEADY), runs=2)
    assert outcome.makespan.tolist() == [5.0, 5.0]  # 1, 2, 3, 3, 1
    assert outcome.useful.tolist() == [10.0, 10.0]
    assert outcome.stalled.tolist() == [5.0, 5.0]


def test_a_second_copy_saves_the_end() -> None:
    """Single tasks, two clients: at the end the fast one does again what the slow one still has."""
    dag = Dag.from_arrays(12, [], [])
    clients = Clients(count=2, spread=30.0, stay=STEADY)
    alone = simulation.volatile(policies.fifo(dag), clients, 200, 1)
    copied = simulation.volatile(policies.fifo(dag), clients, 200, 1, rules=Rules(copies=2))
    assert copied.makespan.mean() < 0.97 * alone.makespan.mean()
    assert (copied.makespan <= alone.makespan + 1e-9).all()
    assert copied.wasted.mean() > alone.wasted.mean() == 0


def test_slow_clients_with_the_lowest_score_help() -> None:
    """A long chain beside many single tasks: whoever is slow must not hold the chain."""
    chain = [(f"c{i}", f"c{i + 1}") for i in range(20)]
    dag = Dag.from_arcs(chain, tasks=[f"c{i}" for i in range(21)] + [f"s{i}" for i in range(60)])
    policy = policies.balanced(dag)
    clients = Clients(count=4, spread=30.0, stay=STEADY)
    plain = simulation.volatile(policy, clients, 200, 2)
    careful = simulation.volatile(policy, clients, 200, 2, rules=Rules(slow=0.5))
    assert careful.makespan.mean() < 0.9 * plain.makespan.mean()


def test_clients_who_never_stay_long_enough_are_reported() -> None:
    hasty = Clients(count=2, spread=1.0, stay=0.5, fixed=True)
    for player in (policies.fifo(out_mesh(2)), simulation.scheduler("batch-optimal", out_mesh(2))):
        outcome = simulation.volatile(player, hasty, 3)
        assert outcome.endless == 3
        assert np.isinf(outcome.makespan).all()
        assert np.isnan([outcome.utilisation, outcome.stalled, outcome.wasted]).all()


def test_a_run_without_an_end_leaves_the_others_alone() -> None:
    """One task is 300 times as long as the others: some runs end and some do not, each as it would alone."""
    seconds = np.ones(21)
    seconds[3] = 300.0
    policy, clients = policies.fifo(out_mesh(6)), Clients(count=4, stay=2.0)
    outcome = simulation.volatile(policy, clients, 40, 1, seconds)
    assert 0 < outcome.endless < 40
    ended = np.flatnonzero(np.isfinite(outcome.makespan)).tolist()
    assert np.isfinite(outcome.wasted[ended]).all()
    alone = [simulation.volatile(policy, clients, range(r, r + 1), 1, seconds).makespan[0] for r in ended[:5]]
    assert alone == outcome.makespan[ended[:5]].tolist()


def test_lost_work_is_done_again() -> None:
    outcome = simulation.volatile(policies.fifo(out_mesh(4)), Clients(count=3, stay=1.0, away=1.0), 100, 3)
    assert outcome.wasted.mean() > 0
    kept = simulation.volatile(
        policies.fifo(out_mesh(4)), Clients(count=3, stay=1.0, away=1.0, keeps=1.0, patience=1e6), 100, 3
    )
    assert kept.wasted.tolist() == [0.0] * 100


def test_the_setting_does_not_depend_on_company() -> None:
    policy, clients = policies.balanced(out_mesh(8)), Clients()
    whole = simulation.volatile(policy, clients, 6, 5).makespan.tolist()
    assert whole == [float(simulation.volatile(policy, clients, range(r, r + 1), 5).makespan[0]) for r in range(6)]


@pytest.mark.parametrize(
    "wrong",
    [
        {"count": 0}, {"spread": 0.5}, {"spread": STEADY}, {"stay": 0.0}, {"away": STEADY}, {"keeps": 2.0},
        {"renewal": -1.0}, {"patience": -1.0}, {"stay": math.nan},
    ],
)  # fmt: skip
def test_impossible_clients_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError):
        Clients(**wrong)  # type: ignore[arg-type]


def test_impossible_rules_and_times_are_refused() -> None:
    policy = policies.fifo(out_mesh(2))
    for rule in ({"slow": -1.0}, {"copies": 0}, {"long": STEADY}):
        with pytest.raises(InputError):
            Rules(**rule)
    for seconds in ([1.0], [0.0, 0.0, 0.0], [1.0, 1.0, -1.0], [1.0, 1.0, math.nan]):
        with pytest.raises(InputError):
            simulation.volatile(policy, Clients(), seconds=np.array(seconds))


def test_other_allocators_meet_the_same_clients() -> None:
    """Best batches and fat tasks are played live, with the same rules around them."""
    dag, clients = out_mesh(5), Clients(count=5, spread=10.0)
    best = simulation.volatile(simulation.scheduler("batch-optimal", dag), clients, 3, 1, rules=PRUDENT)
    assert (best.useful + best.wasted + best.stalled) == pytest.approx(best.present)
    fat = simulation.Live("cluster", dag, lambda game, seed: ByCluster(dag, game))
    for size in (1, 3):
        crowd = LiveCrowd(fat, setting_of(clients, 1.0), PRUDENT, [1.0] * len(dag), 7, drawn=False, size=size)
        assert crowd.play() == 0
        assert crowd.game.finished
