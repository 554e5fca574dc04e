"""Curves of finish against the size of the pool, and predictions with a range."""

import itertools
import json
import random
from pathlib import Path

import numpy as np
import pytest

import eligo
from eligo import Dag, Task, Timed, Workflow
from eligo.choice import choose
from eligo.cli import run
from eligo.estimates import estimate
from eligo.pools import Pool
from eligo.predictions import AGAIN, SHARE, drawn_times, predicted_finish
from eligo.scaling import ScalingCurve, ScalingPoint, size_between, sizes_between
from eligo.schedules import terms_of
from eligo.times import RunTimes, with_assumptions


def random_flow(seed: int, timed: float = 1.0) -> Workflow:
    """A random workflow of at most 30 tasks of three kinds, a share of which have a run time, and up to 4 cores."""
    chance = random.Random(seed)
    names = [f"{'abc'[i % 3]}_{i}" for i in range(chance.randint(2, 30))]
    arcs = [pair for pair in itertools.combinations(names, 2) if chance.random() < 0.1]
    details = {
        name: Task(
            name=name,
            seconds=chance.choice([1.0, 2.5, 9.0]) if chance.random() < timed else None,
            cores=chance.randint(1, 4),
        )
        for name in names
    }
    return Workflow(Dag.from_arcs(arcs, names), details, history=(Timed(None, "a", 3.0),))


@pytest.mark.parametrize("seed", range(25))
@pytest.mark.parametrize("timed", [1.0, 0.5])
def test_the_floor_is_never_above_a_simulated_finish(seed: int, timed: float) -> None:
    flow = random_flow(seed, timed)
    times = RunTimes(flow)
    for pools in ([Pool.of(n) for n in range(1, 8)], [Pool(cores=n) for n in range(4, 9)]):
        for policy in ("finish", "fifo"):
            curve = choose(times, policy, None, False).curve(pools, price=1.0)
            for point, pool in zip(curve.points, pools, strict=True):
                assert point.floor <= point.finish
                assert 0 < point.utilisation <= 1 + 1e-9
                assert point.cost == pytest.approx(point.size * point.finish / 3600)
                chance = np.random.default_rng(seed)
                terms = terms_of(flow, times.estimate.seconds, pool)
                assert point.floor <= terms.listed(chance.permutation(len(flow)).astype(np.int32)).makespan


def curve_of(*pairs: tuple[int, float], deadline: float | None = None) -> ScalingCurve:
    """A curve of sizes and finishes at a price of 1."""
    points = tuple(ScalingPoint(size, end, end, 1.0, size * end / 3600) for size, end in pairs)
    return ScalingCurve(points, 1.0, deadline)


@pytest.mark.parametrize("seed", range(20))
def test_the_front_is_what_no_other_size_beats(seed: int) -> None:
    chance = random.Random(seed)
    curve = curve_of(*((size, float(chance.randint(1, 9))) for size in range(1, 9)))

    def beats(one: ScalingPoint, other: ScalingPoint) -> bool:
        mine, its = (one.cost or 0.0, one.finish, one.size), (other.cost or 0.0, other.finish, other.size)
        return (mine[:2] != its[:2] and mine[0] <= its[0] and mine[1] <= its[1]) or (mine[:2] == its[:2] and mine < its)

    slow = {point.size for point in curve.points if not any(beats(other, point) for other in curve.points)}
    assert set(curve.front) == slow


def test_the_knee_and_the_cheapest_pool() -> None:
    curve = curve_of((1, 80.0), (2, 40.0), (4, 20.0), (8, 18.0), (16, 18.0), deadline=30.0)
    assert (curve.knee, curve.enough) == (4, 8)
    assert curve.cheapest is not None
    assert curve.cheapest.size == 4
    assert curve_of((1, 80.0), deadline=30.0).cheapest is None


def test_the_smallest_pool_for_a_deadline_is_searched_between_the_sizes() -> None:
    details = {f"t{i}": Task(name=f"t{i}", seconds=1.0) for i in range(64)}
    times = RunTimes(Workflow(Dag.from_arcs([], list(details)), details))
    curve = choose(times, "finish", None, False).curve([Pool.of(size) for size in (1, 2, 64)], 1.0, 5.0)
    sizes = [point.size for point in curve.points]
    assert sizes == sorted(set(sizes))
    assert min(point.size for point in curve.points if point.finish <= 5.0) == 13
    assert size_between(curve.points, 5.0) is None
    assert size_between(curve.points, None) is None


@pytest.mark.parametrize(("first", "last"), [(1, 1), (3, 18), (5, 300), (1, 10_000)])
def test_compared_sizes_rise_and_have_both_ends(first: int, last: int) -> None:
    sizes = sizes_between(first, last)
    assert sizes == sorted(set(sizes))
    assert (sizes[0], sizes[-1]) == (first, last)
    assert len(sizes) <= 32


# Predictions


@pytest.mark.parametrize("seed", range(10))
def test_a_prediction_is_the_same_every_time_and_scales_with_the_times(seed: int) -> None:
    flow = random_flow(seed, 0.3)
    longer = Workflow(
        flow.dag,
        {name: Task(name=name, seconds=task.seconds and 4 * task.seconds) for name, task in flow.details.items()},
        history=(Timed(None, "a", 12.0),),
    )
    first, again, scaled = (
        predicted_finish(one, estimate(one), Pool.of(3), flow.dag.order) for one in (flow, flow, longer)
    )
    assert first is not None
    assert first == again
    assert first.low <= first.seconds <= first.high
    assert scaled == pytest.approx(tuple(4 * value for value in first))


def test_draws_take_the_times_of_the_kind_and_keep_own_times() -> None:
    flow = Workflow(
        Dag.from_arcs([], ["a_1", "a_2", "b_1", "c_1"]),
        {"b_1": Task(name="b_1", seconds=7.0)},
        history=(Timed(None, "a", 1.0), Timed(None, "a", 5.0)),
    )
    draws = drawn_times(["a", "a", "b", "c"], estimate(flow), 50, 0)
    assert {value for draw in draws for value in draw[:2].tolist()} == {1.0, 5.0}
    assert {draw[2] for draw in draws} == {7.0}
    assert {draw[3] for draw in draws} == {3.0, 7.0}  # the means of the known kinds


def test_the_range_of_own_times_holds_the_share_that_it_states() -> None:
    flow = Workflow(Dag.from_arcs([], ["a"]), {"a": Task(name="a", seconds=1.0)})
    found = predicted_finish(flow, estimate(flow), Pool.of(1), flow.dag.order)
    assert found is not None
    factors = np.random.default_rng(1).lognormal(0.0, AGAIN, 20_000)
    assert np.mean((factors >= found.low) & (factors <= found.high)) == pytest.approx(SHARE, abs=0.02)


def test_assumed_times_replace_all_that_is_known_of_a_kind() -> None:
    flow = Workflow(Dag.from_arcs([], ["a_1", "b_1"]), {"a_1": Task(name="a_1", seconds=7.0)})
    times = with_assumptions(RunTimes(flow), {"a": 2.0}, 5.0)
    assert times.estimate.seconds.tolist() == [2.0, 5.0]
    assert (times.sources, times.says) == (["your estimate"], "your estimate says")
    with pytest.raises(eligo.InputError, match="no task is of kind 'z'"):
        with_assumptions(RunTimes(flow), {"z": 2.0})


# The command


def test_the_curve_is_printed_drawn_and_in_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "flow.json"
    file.write_text(json.dumps({"tasks": [{"name": f"t{i}", "seconds": 60} for i in range(12)]}))
    assert run(["plan", str(file), "--workers", "1..4", "--price", "6/h", "--deadline", "3m"]) == 0
    out = capsys.readouterr().out
    assert "Cheapest pool that finishes within 3 min: 4 workers, 3 min for 1.20." in out
    assert "\n1        12 min  12 min       100 %  1.20  " in out
    assert max(map(len, out.splitlines())) <= 80
    assert run(["plan", str(file), "--cores", "1..4", "--json", "-o", str(tmp_path / "curve.svg")]) == 0
    curve = json.loads(capsys.readouterr().out)["curve"]
    assert [point["finish"] for point in curve["points"]] == [720.0, 360.0, 240.0, 180.0]
    assert "<svg" in (tmp_path / "curve.svg").read_text()
    assert run(["plan", str(file), "--workers", "1..4", "--deadline", "1m"]) == 0
    assert "No pool was found that finishes within 1 min: no order can do it" in capsys.readouterr().out
