"""The bound on the finish: never above what can be done, close to it, exact where it is proved, and checked by other code."""

import json
from fractions import Fraction
from functools import cache
from heapq import heappop, heappush
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import random_small_dag
from eligo import families, read
from eligo.cli import run
from eligo.dag import Dag
from eligo.errors import InputError
from eligo.finishing import FinishBound, earliest_finish, heads_and_tails, window_bound
from eligo.pools import Pool
from eligo.schedules import Terms
from eligo.simulation.steady import finish_on
from eligo.verifying.finishes import finish_holds
from eligo.workflow import Task, Workflow


def timed(dag: Dag, seconds: "np.ndarray[Any, Any]", cores: "np.ndarray[Any, Any] | None" = None) -> Workflow:
    taken = [None] * len(dag) if cores is None else cores.tolist()
    rows = zip(dag.tasks, seconds.tolist(), taken, strict=True)
    return Workflow(dag, {name: Task(name=name, seconds=float(s), cores=c) for name, s, c in rows})


def listed(dag: Dag, seconds: "np.ndarray[Any, Any]", speeds: list[float], rank: list[int]) -> float:
    """When the last task ends, if whoever is free takes the ready task of the smallest rank, the fastest worker first."""
    missing, ready = dag.indegree.tolist(), [(rank[v], v) for v in np.flatnonzero(dag.indegree == 0).tolist()]
    ready.sort()
    free = sorted(range(len(speeds)), key=lambda w: -speeds[w])
    out: list[tuple[float, int, int]] = []
    now = 0.0
    while ready or out:
        while ready and free:
            _, v = heappop(ready)
            worker = free.pop(0)
            heappush(out, (now + seconds[v] / speeds[worker], v, worker))
        now, v, worker = heappop(out)
        free.append(worker)
        for w in dag.children_of(v).tolist():
            missing[w] -= 1
            if not missing[w]:
                heappush(ready, (rank[w], w))
    return now


def optimum(dag: Dag, seconds: list[int], workers: int, cores: list[int] | None = None) -> int:
    """The least makespan on so many workers, or cores, by trying all; a task starts at 0 or when another ends."""
    needs, parents = cores or [1] * len(dag), [{*dag.parents_of(v).tolist()} for v in range(len(dag))]

    @cache
    def rest(done: frozenset[int], running: tuple[tuple[int, int], ...], first: int) -> int:
        """The least time from now on, if of the tasks that are ready only those from number *first* on start now."""
        begun, free = {v for _, v in running}, workers - sum(needs[v] for _, v in running)
        ready = [v for v in range(first, len(dag)) if v not in done | begun and parents[v] <= done and needs[v] <= free]
        times = [rest(done, tuple(sorted((*running, (seconds[v], v)))), v + 1) for v in ready]
        if running:
            step = running[0][0]
            ended = done.union(v for left, v in running if left == step)
            times.append(step + rest(ended, tuple((left - step, v) for left, v in running if left > step), 0))
        return min(times, default=0)

    return rest(frozenset(), (), 0)


def test_the_bound_is_never_above_the_optimum_and_mostly_equal() -> None:
    rng = np.random.default_rng(1)
    met = 0
    for _ in range(200):
        dag = random_small_dag(rng, 9)
        seconds, workers = rng.integers(1, 10, len(dag)), int(rng.integers(2, 5))
        bound = earliest_finish(timed(dag, seconds), workers)
        best = optimum(dag, seconds.tolist(), workers)
        assert bound.seconds <= best
        met += bound.seconds >= best * (1 - 1e-6)
    assert met > 150


def test_with_cores_the_bound_is_never_above_the_optimum_and_mostly_equal() -> None:
    rng = np.random.default_rng(21)
    met = 0
    for _ in range(300):
        dag = random_small_dag(rng, 9)
        seconds, room = rng.integers(1, 10, len(dag)), int(rng.integers(4, 12))
        cores = rng.choice(rng.integers(1, min(room, 7) + 1, 3), len(dag))
        flow = timed(dag, seconds, cores)
        bound = earliest_finish(flow, Pool(cores=room))
        best = optimum(dag, seconds.tolist(), room, cores.tolist())
        assert bound.seconds <= best
        assert best <= finish_on(flow, Pool(cores=room)).makespan
        assert finish_holds(flow, bound.document())
        met += bound.seconds >= best * (1 - 1e-6)
    assert met > 200


@pytest.mark.parametrize("case", range(20))
def test_with_cores_the_bound_is_never_above_what_is_achieved(case: int) -> None:
    """Random dags, times, cores, some of them parts of one or none; any order's schedule is an upper bound."""
    rng = np.random.default_rng(500 + case)
    for _ in range(150):
        dag = random_small_dag(rng, 25)
        seconds = np.round(rng.exponential(5.0, len(dag)), int(rng.integers(0, 4)))
        room = int(rng.integers(1, 20))
        cores = np.minimum(np.round(rng.exponential(rng.choice([0.5, 3.0]), len(dag)), int(rng.integers(0, 2))), room)
        terms = Terms(dag, seconds, Pool(cores=room), cores)
        bound = window_bound(dag, seconds, terms.pool, cores)
        assert bound.seconds <= terms.listed(rng.permutation(len(dag)).astype(np.int32)).makespan


@pytest.mark.parametrize("case", range(40))
def test_the_bound_is_never_above_what_is_achieved(case: int) -> None:
    """Random dags, times and speeds; any order that never waits is an upper bound."""
    rng = np.random.default_rng(case)
    for _ in range(250):
        dag = random_small_dag(rng, 25)
        seconds = np.round(rng.exponential(5.0, len(dag)), int(rng.integers(0, 4)))
        workers = int(rng.integers(1, 9))
        speeds = [1.0] * workers if rng.random() < 0.5 else rng.uniform(0.2, 4.0, workers).tolist()
        bound = window_bound(dag, seconds, tuple(speeds))
        assert bound.seconds <= listed(dag, seconds, speeds, rng.permutation(len(dag)).tolist())


def test_every_bound_passes_the_checker_and_a_larger_claim_does_not() -> None:
    rng = np.random.default_rng(3)
    rules = set()
    for _ in range(300):
        dag = random_small_dag(rng, 14)
        seconds = np.round(rng.exponential(3.0, len(dag)) + 0.001, 3)
        speeds = [1.0] * int(rng.integers(1, 5)) if rng.random() < 0.7 else rng.uniform(0.5, 2.0, 3).tolist()
        flow = timed(dag, seconds)
        bound = earliest_finish(flow, speeds)
        rules.add(bound.rule)
        assert finish_holds(flow, bound.document())
        assert not finish_holds(flow, bound.document() | {"seconds": bound.seconds * 1.00001})
    assert rules == {"path", "work", "pigeonhole", "succession"}


def test_with_cores_every_bound_passes_the_checker_and_a_larger_claim_does_not() -> None:
    rng = np.random.default_rng(33)
    seen = set()
    for _ in range(300):
        dag, room = random_small_dag(rng, 14), int(rng.integers(3, 12))
        seconds = np.round(rng.uniform(2.0, 3.0, len(dag)), 3)
        flow = timed(dag, seconds, rng.choice([0.5, 1.0, 2.0, 3.0], len(dag), p=[0.1, 0.1, 0.4, 0.4]))
        bound = earliest_finish(flow, f"{room} cores")
        seen.add((bound.rule, bound.least > 0))
        assert finish_holds(flow, bound.document())
        assert not finish_holds(flow, bound.document() | {"seconds": bound.seconds * 1.00001})
        assert str(bound)
    assert seen >= {("path", False), ("work", False), ("work", True), ("pigeonhole", True), ("succession", True)}


def test_tasks_that_follow_another_wait_for_it() -> None:
    """Three chains of a short, a long and a short task on two workers: one long task follows another.

    It begins after 1 + 10 at the earliest, and 1 comes after it: 22. The work says 18, the longest two of three 21.
    """
    dag = Dag.from_arcs([arc for i in "123" for arc in ((f"a{i}", f"b{i}"), (f"b{i}", f"c{i}"))])
    seconds = {task: 10.0 if task[0] == "b" else 1.0 for task in dag.tasks}
    flow = Workflow(dag, {task: Task(name=task, seconds=time) for task, time in seconds.items()})
    bound = earliest_finish(flow, 2)
    assert (bound.rule, bound.j, round(bound.seconds, 6)) in {("succession", 1, 22.0), ("pigeonhole", 1, 22.0)}
    assert finish_holds(flow, bound.document())
    assert not finish_holds(flow, bound.document() | {"seconds": 22.1})


def test_words_say_why_with_cores() -> None:
    wide = families.fork_join(9)
    alike = earliest_finish(timed(wide, np.full(len(wide), 60.0), np.full(len(wide), 4.0)), "10 cores")
    assert (
        alike.why() == "9 tasks that need at least 4 cores, at most 2 at once: 5 of the longest run one after another"
    )
    chain = Dag.from_arcs([("a", "b")])
    assert earliest_finish(timed(chain, np.ones(2)), "4 cores").why().endswith("more cores do not help")
    mixed = Dag.from_arcs([], tasks=range(40))
    seconds, cores = np.linspace(1, 2, 40), np.tile([1.0, 2.0], 20)
    assert earliest_finish(timed(mixed, seconds, cores), "8 cores").why().startswith("40 tasks, 90.2564 s of core time")


def slow_window(dag: Dag, seconds: "np.ndarray[Any, Any]", workers: int) -> Fraction:
    """The work rule by its definition: every pair of thresholds."""
    heads, tails = (list(map(Fraction, each.tolist())) for each in heads_and_tails(dag, seconds))
    exact = list(map(Fraction, seconds.tolist()))
    return max(
        t
        + u
        + sum((s for r, q, s in zip(heads, tails, exact, strict=True) if r >= t and q >= u), Fraction(0)) / workers
        for t in set(heads)
        for u in set(tails)
        if any(r >= t and q >= u for r, q in zip(heads, tails, strict=True))
    )


def test_the_sweep_finds_the_best_window() -> None:
    from eligo.finishing import RuleTasks, _work

    rng = np.random.default_rng(5)
    for _ in range(200):
        dag = random_small_dag(rng, 15)
        seconds, workers = rng.integers(0, 9, len(dag)).astype(np.float64), int(rng.integers(1, 5))
        found = _work(RuleTasks(*heads_and_tails(dag, seconds), seconds, seconds, Pool.of(workers)))
        assert found.seconds == pytest.approx(float(slow_window(dag, seconds, workers)), rel=1e-7)


def test_more_workers_and_renumbering_change_nothing_for_the_worse() -> None:
    rng = np.random.default_rng(6)
    for _ in range(60):
        dag = random_small_dag(rng, 20)
        seconds = rng.exponential(2.0, len(dag))
        bounds = [window_bound(dag, seconds, (1.0,) * n).seconds for n in (1, 2, 4, 8, 64)]
        assert all(a >= b * (1 - 1e-9) for a, b in pairwise(bounds))
        mixed = rng.permutation(len(dag)).astype(np.int32)
        again = window_bound(dag.renumbered(mixed), seconds[mixed], (1.0,) * 2)
        assert again.seconds == pytest.approx(bounds[1])


def test_words_say_why() -> None:
    chain = Dag.from_arcs([("a", "b"), ("b", "c")])
    assert str(earliest_finish(timed(chain, np.ones(3)), 4)).startswith(
        "no order can finish before 3 s: the longest chain"
    )
    wide = families.fork_join(40)
    told = str(earliest_finish(timed(wide, np.full(len(wide), 2.0)), 4))
    assert "cannot begin before" in told or "one worker gets" in told


@pytest.mark.parametrize(
    ("workers", "told"),
    [
        (0, "positive integer"),
        (-3, "positive integer"),
        ([], "positive integer"),
        ([1.0, 0.0], "must be positive"),
        ([float("nan")], "must be positive"),
        (None, "must be a number"),
    ],
)
def test_workers_that_are_none(workers: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        earliest_finish(timed(Dag.from_arcs([("a", "b")]), np.ones(2)), workers)


def test_seconds_that_are_not_known_are_named() -> None:
    with pytest.raises(InputError, match="the run time of 'a' is not known"):
        earliest_finish({"a": [], "b": ["a"]}, 2)


def test_nothing_to_do_and_no_time_to_do_it() -> None:
    assert earliest_finish(Dag.from_arcs([]), 3).seconds == 0
    assert earliest_finish(timed(Dag.from_arcs([("a", "b")]), np.zeros(2)), 9).seconds == 0
    assert earliest_finish(timed(Dag.from_arcs([], "abc"), np.array([1.0, 2.0, 3.0])), 100).seconds == pytest.approx(
        3.0
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"rule": "magic"},
        {"workers": []},
        {"workers": [0.0]},
        {"t": None},
        {"j": -1},
        {"seconds": "x"},
        {"cores": 0},
        {"least": -1},
        {"cores": "x"},
    ],
)
def test_what_is_no_bound_is_refused(wrong: dict[str, Any]) -> None:
    flow = timed(Dag.from_arcs([("a", "b")]), np.ones(2))
    with pytest.raises(InputError, match="not a bound on a finish"):
        finish_holds(flow, earliest_finish(flow, 2).document() | wrong)


def test_a_bound_about_nothing_proves_nothing() -> None:
    """Thresholds that no task meets."""
    flow = timed(Dag.from_arcs([("a", "b")]), np.ones(2))
    forged = FinishBound(100.0, (1.0,), "work", 60.0, 60.0, 0, 0, 0.0)
    assert not finish_holds(flow, forged.document())
    assert not finish_holds(flow, forged._replace(rule="pigeonhole").document())
    of_cores = forged._replace(workers=(), cores=2, t=0.0, u=0.0)
    for wrong in (of_cores._replace(rule="pigeonhole"), of_cores._replace(least=3.0), of_cores):
        assert not finish_holds(flow, wrong.document())


# On a steady pool, and as people see it


def test_the_finish_is_that_of_a_list_schedule_and_within_its_bound() -> None:
    rng = np.random.default_rng(8)
    for _ in range(60):
        dag = random_small_dag(rng, 16)
        seconds = rng.integers(1, 9, len(dag)).astype(np.float64)
        workers = int(rng.integers(1, 5))
        flow = timed(dag, seconds)
        found = finish_on(flow, workers)
        assert found.bound.seconds <= found.makespan <= sum(seconds)
        assert found.makespan <= 2 * optimum(dag, seconds.astype(int).tolist(), workers)
        assert finish_on(flow, 1).makespan == sum(seconds)


@pytest.mark.parametrize("workers", [0, -1, 2.5, True, None, "2.5"])
def test_pools_that_are_none(workers: Any) -> None:
    with pytest.raises(
        InputError, match=r"1 to 1,000,000|must be a (number|positive)|invalid pool|must be positive|at most"
    ):
        finish_on(timed(Dag.from_arcs([("a", "b")]), np.ones(2)), workers)


def test_the_command_says_when_and_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "flow.json"
    tasks = [{"name": "a", "seconds": 60}, *({"name": f"b{i}", "after": ["a"], "seconds": 600} for i in range(9))]
    path.write_text(json.dumps({"tasks": tasks}))
    assert run(["plan", str(path), "--workers", "4"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert (
        "4 workers: about 31 min, if tasks take as long as the file says. Lower bound: no order can finish before 31 min"
        in out
    )
    assert "Why: 9 tasks on 4 workers: one worker gets 3 of the longest." in out
    assert "Time by number of workers: 1: 1 h 31 min, 2: 51 min, 4: 31 min, 8: 21 min, 16: 11 min." in out
    assert run(["plan", str(path), "--workers", "16"]) == 0
    assert "more than 16 gain nothing" in " ".join(capsys.readouterr().out.split())
    assert run(["plan", str(path), "--workers", "4", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["makespan"] == 1860.0
    assert document["bound"] == pytest.approx(1860.0)
    assert finish_holds(read(path), document["certificate"])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--workers", "0"], "workers must be a positive integer, got 0"),
        (["--workers", "1..4"], "sizes of a pool cannot be compared, because no run times are known"),
        (["--workers", "4..1"], "a range must rise, from 1 to at most 1,000,000, got 4..1"),
        (["--workers", "2", "--price", "1"], "give a range, as in --workers 1..64"),
        (["--price", "1/week"], "--price must be an amount for an h, min, s or d, such as 0.04/h, got '1/week'"),
        (["--assume", "5m"], "--assume must be KIND=TIME, such as align=5m, got '5m'"),
        (["--assume", "b=5m", "--workers", "1..2", "--names"], "cannot be combined with"),
    ],
)
def test_the_command_refuses_before_it_plans(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    path = tmp_path / "flow.json"
    path.write_text('{"tasks": [{"name": "a"}, {"name": "b"}]}')
    assert run(["plan", str(path), *words]) == 2
    assert told in capsys.readouterr().err


def test_what_is_no_reason_is_not_told() -> None:
    even = Workflow(Dag.from_arcs([], tasks="abcd"), {name: Task(name=name, seconds=3.0) for name in "abcd"})
    assert earliest_finish(even, 2)._replace(rule="work").why().endswith("12 s of work in total")
    told = earliest_finish(even, 2)._replace(rule="work", u=2.0).why()
    assert told.endswith("12 s of work, are followed by 2 s")
