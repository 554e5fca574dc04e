"""Steady pools: the kernel against a plain twin and the volatile game, pools as people write them, and better orders."""

import json
import math
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eligo
from conftest import random_small_dag
from eligo import families, policies
from eligo.cli import run
from eligo.dag import Dag
from eligo.errors import InputError
from eligo.formats import read, read_order
from eligo.policies import Policy, policy
from eligo.pools import Pool, cores_of
from eligo.prioritising import order_to_follow, priorities
from eligo.schedules import MOST_PLAYED, Terms, improved_schedule, terms_of
from eligo.simulation.pebble import run_seeds
from eligo.simulation.steady import finish_on
from eligo.simulation.volatile import Clients, volatile
from eligo.verifying.finishes import finish_holds, makespan
from eligo.workflow import Task, Workflow
from slow_games import SlowBoard

REAL = Path(__file__).parents[2] / "shared" / "data" / "wfinstances"
NAMES = ("fifo", "lifo", "greedy", "random", "critical-path", "balanced")


def some_flow(rng: np.random.Generator, most: int = 20, cores: tuple[float, ...] = (1, 2, 3, 5)) -> Workflow:
    """Whole seconds, often alike, some of them 0, or any; cores of some tasks."""
    dag = random_small_dag(rng, most)
    seconds = rng.integers(0, 5, len(dag)) if rng.random() < 0.6 else rng.exponential(3.0, len(dag))
    taken = [None if rng.random() < 0.2 else float(rng.choice(cores)) for _ in dag.tasks]
    rows = zip(dag.tasks, seconds.tolist(), taken, strict=True)
    return Workflow(dag, {name: Task(name=name, seconds=float(s), cores=c) for name, s, c in rows})


def seconds_of(flow: Workflow) -> "np.ndarray[Any, Any]":
    return np.array([flow.task(name).seconds for name in flow.dag.tasks], np.float64)


def some_rule(rng: np.random.Generator, dag: Dag) -> Policy:
    name = str(rng.choice(NAMES))
    return policies.balanced(dag) if name == "balanced" else policy(name, dag)


def some_pool(rng: np.random.Generator) -> Pool:
    match rng.integers(3):
        case 0:
            return Pool.of(int(rng.integers(1, 8)))
        case 1:
            return Pool.of(rng.choice([0.5, 1.0, 2.0, 3.0], int(rng.integers(1, 6))).tolist())
        case _:
            return Pool(cores=int(rng.integers(5, 12)))


def slow_schedule(rule: Policy, flow: Workflow, pool: Pool, seed: int) -> tuple[list[float], list[int], float]:
    """When every task begins, the order of their beginnings, and when all is done; whatever can be sorted anew is."""
    board, seconds = SlowBoard(rule, seed), seconds_of(flow).tolist()
    needs = (
        [0.0] * len(flow)
        if pool.cores is None
        else [c.cores if c.cores is not None else 1.0 for c in map(flow.task, flow.dag.tasks)]
    )
    at_once = pool.size if pool.cores is None else pool.size // min(needs)
    speeds = (pool.speeds or (1.0,) * pool.size)[: min(len(flow), int(at_once))]
    waiting, out = list(range(len(speeds))), list[tuple[float, int, int]]()
    begin, order, now, left = [0.0] * len(flow), list[int](), 0.0, Fraction(pool.cores or 0)
    while board.ready or out:
        while waiting and (fit := [v for v in board.ready if Fraction(needs[v]) <= left]):
            v = min(fit, key=lambda v: (-board.score(v), board.ready[v], v))
            worker = max(waiting, key=lambda c: (speeds[c], -waiting.index(c)))
            waiting.remove(worker)
            board.take(v)
            order.append(v)
            begin[v], left = now, left - Fraction(needs[v])
            out.append((now + seconds[v] / speeds[worker], worker, v))
        now = min(out)[0]
        for event in sorted(event for event in out if event[0] == now):
            out.remove(event)
            left += Fraction(needs[event[2]])
            board.finish(event[2])
            waiting.append(event[1])
    return begin, order, now


def improved(flow: Workflow, seconds: Any, pool: Any, order: Any) -> tuple[Any, ...]:
    """The order of the schedule that is made of an order and improved for a pool."""
    terms = terms_of(flow, seconds, pool)
    return flow.dag.named(improved_schedule(terms, terms.listed(flow.dag.indices(order))).sequence)


@pytest.mark.parametrize("case", range(20))
def test_the_kernel_does_what_its_plain_twin_does(case: int) -> None:
    rng = np.random.default_rng(case)
    for seed in range(25):
        flow, pool = some_flow(rng), some_pool(rng)
        rule = some_rule(rng, flow.dag)
        found = terms_of(flow, seconds_of(flow), pool).played(rule.board(), seed)
        begin, order, makespan = slow_schedule(rule, flow, pool, seed)
        assert found.sequence.tolist() == order
        assert found.begin.tolist() == begin
        assert found.makespan == makespan


def plain_end(flow: Workflow, order: list[int], pool: Pool) -> float:
    """When all is done, moment by moment: all that ends now is done, then each idle worker in turn looks along the order."""
    cores = [0.0] * len(flow) if pool.cores is None else [flow.task(name).cores for name in flow.dag.tasks]
    needs = [Fraction(1 if c is None else c) for c in cores]
    speeds = sorted(pool.speeds, reverse=True) or [1.0] * len(flow)
    seconds, now, waiting, done = seconds_of(flow).tolist(), 0.0, list(order), set[int]()
    at_work: dict[int, tuple[float, int]] = {}
    while True:
        for worker in [worker for worker, (end, _) in at_work.items() if end == now]:
            done.add(at_work.pop(worker)[1])
        for worker in (worker for worker in range(len(speeds)) if worker not in at_work):
            taken = sum((needs[task] for _, task in at_work.values()), Fraction(0))
            fits = (v for v in waiting if pool.cores is None or taken + needs[v] <= pool.cores)
            task = next((v for v in fits if done.issuperset(flow.dag.parents_of(v).tolist())), None)
            if task is not None:
                waiting.remove(task)
                at_work[worker] = now + seconds[task] / speeds[worker], task
        if not at_work:
            return now
        now = min(end for end, _ in at_work.values())


@pytest.mark.parametrize("case", range(10))
def test_plan_and_checker_agree_with_a_plain_simulation_where_many_tasks_end_together(case: int) -> None:
    rng = np.random.default_rng(300 + case)
    for _ in range(30):
        flow, pool = some_flow(rng, 25), some_pool(rng)
        order = policy("random", flow).order(int(rng.integers(1000)))
        end = plain_end(flow, order.tolist(), pool)
        assert terms_of(flow, seconds_of(flow), pool).listed(order).makespan == end
        assert makespan(flow, order.tolist(), pool) == end


@pytest.mark.skipif(not REAL.exists(), reason="the traces are not beside the checkout")
@pytest.mark.parametrize("name", ["bacass-dirt02-001", "srasearch-chameleon-20a-001", "blast-chameleon-small-001"])
def test_plan_and_checker_agree_with_a_plain_simulation_of_traces(name: str) -> None:
    flow = read(REAL / f"{name}.json")
    for pool in map(Pool.parse, ("3", "2x1.0,2x0.5", "1x1,3x0.25", "4 cores")):
        order = flow.dag.indices(order_to_follow(flow, pool=pool))
        end = plain_end(flow, order.tolist(), pool)
        assert finish_on(flow, pool).makespan == makespan(flow, order.tolist(), pool) == end


def test_a_fast_worker_that_is_free_together_with_a_slow_one_gets_the_first_task_of_both() -> None:
    dag = Dag.from_arcs([("fast", "short"), ("slow", "long")], tasks=["fast", "slow", "long", "short"])
    times = {"fast": 2.0, "slow": 1.0, "long": 10.0, "short": 1.0}
    flow = Workflow(dag, {name: Task(name=name, seconds=time) for name, time in times.items()})
    assert finish_on(flow, "1x1,1x0.5", list(times)).makespan == 12.0


def test_equal_workers_and_cores_of_single_core_tasks_are_clients_who_stay() -> None:
    """Exactly the makespans of the volatile game, where chance decides too."""
    rng = np.random.default_rng(7)
    for _ in range(300):
        flow = some_flow(rng, 25, cores=(1.0,))
        seconds, workers, rule = seconds_of(flow), int(rng.integers(1, 9)), some_rule(rng, flow.dag)
        if not seconds.any():
            continue
        clients = Clients(count=workers, spread=1.0, stay=math.inf)
        wanted = volatile(rule, clients, runs=3, seed=5, seconds=seconds).makespan.tolist()
        for pool in (Pool.of(workers), Pool(cores=workers)):
            terms = terms_of(flow, seconds, pool)
            assert [terms.played(rule.board(), seed).makespan for seed in run_seeds(3, 5)] == wanted
        assert finish_on(flow, workers, "fifo").makespan == float(
            volatile(policy("fifo", flow), clients, seconds=seconds).makespan[0]
        )


def test_a_schedule_keeps_to_arcs_workers_and_cores() -> None:
    rng = np.random.default_rng(8)
    for _ in range(300):
        flow, pool = some_flow(rng, 30), some_pool(rng)
        seconds = seconds_of(flow)
        terms = terms_of(flow, seconds, pool)
        found = improved_schedule(terms, terms.played(some_rule(rng, flow.dag).board()))
        for u, v in zip(flow.dag.tails.tolist(), flow.dag.child.tolist(), strict=True):
            assert found.begin[v] >= found.end[u]
        taken = cores_of(flow, pool)
        for now in found.begin.tolist():
            running = (found.begin <= now) & (now < found.end)
            if taken is None:
                assert len(set(found.worker[running].tolist())) == running.sum() <= pool.size
            else:
                assert taken[running].sum() <= pool.size
        speeds = np.array(pool.speeds) if pool.speeds else np.ones(len(flow))
        assert np.allclose(found.end - found.begin, seconds / speeds[found.worker])


def test_what_does_not_fit_is_passed_over_and_nobody_looks_through_it() -> None:
    """Tens of thousands of wide tasks before narrow ones: each choice looks at one task of each width."""
    n = 30_000
    dag = Dag.from_arrays(n, [], [])
    cores = np.where(np.arange(n) < n // 2, 4.0, 1.0)
    terms = Terms(dag, np.random.default_rng(1).exponential(1.0, n), Pool(cores=66), cores)
    found = terms.listed(np.arange(n, dtype=np.int32))
    assert found.sequence[:18].tolist() == [*range(16), n // 2, n // 2 + 1]
    assert found.makespan < 1.01 * float((terms.seconds * cores).sum()) / 66 + 10


def test_fractions_of_cores_and_none_at_all() -> None:
    dag = Dag.from_arcs([], tasks="abcdef")
    details = {
        name: Task(name=name, seconds=1.0, cores=c)
        for name, c in zip("abcdef", (0.1, 0.2, 0.3, 0.4, 0.0, 1.0), strict=True)
    }
    found = finish_on(Workflow(dag, details), "1 core")
    assert found.makespan == 2.0
    assert found.bound.seconds == pytest.approx(2.0)
    assert finish_holds(Workflow(dag, details), found.bound.document())


# Better orders


@pytest.mark.parametrize("case", range(10))
def test_an_improved_order_is_never_worse_and_gives_its_schedule_again(case: int) -> None:
    rng = np.random.default_rng(100 + case)
    better = 0
    for _ in range(60):
        flow, pool = some_flow(rng, 30), some_pool(rng)
        seconds, order = seconds_of(flow), flow.dag.named(policy("random", flow).order(int(rng.integers(1000))))
        terms = terms_of(flow, seconds, pool)
        begun = terms.listed(flow.dag.indices(order)).makespan
        followed = improved(flow, seconds, pool, order)
        again = terms.listed(flow.dag.indices(followed))
        assert flow.dag.named(again.sequence) == followed
        assert again.makespan <= begun
        better += again.makespan < begun
    assert better > 10


@pytest.mark.parametrize("case", range(10))
def test_no_order_of_the_table_ends_sooner_than_the_one_for_the_pool(case: int) -> None:
    rng = np.random.default_rng(500 + case)
    for _ in range(15):
        flow, pool = some_flow(rng, 30), some_pool(rng)
        known = eligo.order(flow, pool).candidates
        ends = {name: each.seconds for name, each in known.items() if each.seconds is not None}
        assert ends["finish"] == min(ends.values()) == finish_on(flow, pool).makespan
        listed = terms_of(flow, seconds_of(flow), pool).listed(flow.dag.indices(order_to_follow(flow, pool=pool)))
        assert listed.makespan == ends["finish"] == makespan(flow, known["finish"].sequence.tolist(), pool)


def test_a_schedule_for_a_deadline_comes_out_again_when_its_order_is_followed() -> None:
    rng = np.random.default_rng(31)
    for _ in range(150):
        flow, speeds = some_flow(rng, 30), rng.choice([0.25, 0.5, 1.0, 2.0], int(rng.integers(2, 6))).tolist()
        terms = terms_of(flow, seconds_of(flow), Pool.of(speeds))
        due = terms.due(terms.least * float(rng.uniform(0.9, 2.0)))
        again = terms.listed(due.sequence)
        assert again.sequence.tolist() == due.sequence.tolist()
        assert again.begin.tolist() == due.begin.tolist()
        assert due.makespan >= terms.least * (1 - 1e-9)


def test_a_slow_worker_leaves_the_longest_task_to_a_fast_one() -> None:
    """By longest paths, the slow worker has one of two gates and is the one that is free when the giant is ready."""
    times = {"gate": 5.0, "other gate": 5.0} | {f"short{i}": 3.1 for i in range(20)} | {"giant": 60.0}
    dag = Dag.from_arcs([("gate", "giant"), ("other gate", "giant")], tasks=times)
    flow = Workflow(dag, {name: Task(name=name, seconds=time) for name, time in times.items()})
    assert finish_on(flow, "1x1.0,1x0.25", policy("critical-path-seconds", flow).order()).makespan == 260.0
    assert finish_on(flow, "1x1.0,1x0.25").makespan < 110.0


def test_no_more_schedules_are_looked_at_than_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    played = Terms.played

    def counted(self: Terms, board: Any, seed: int = 0) -> Any:
        looked.append(seed)
        return played(self, board, seed)

    monkeypatch.setattr(Terms, "played", counted)
    rng = np.random.default_rng(3)
    for _ in range(40):
        looked.clear()
        flow = some_flow(rng, 40)
        improved(flow, seconds_of(flow), 3, policy("random", flow).order())
        assert len(looked) <= MOST_PLAYED
    monkeypatch.setattr("eligo.schedules.MOST_TASKS", 10)
    looked.clear()
    improved(flow, seconds_of(flow), 3, policy("random", flow).order())
    assert len(looked) <= 3


def test_the_order_written_for_a_pool_ends_when_it_is_said_to() -> None:
    rng = np.random.default_rng(11)
    for _ in range(40):
        flow, pool = some_flow(rng, 25), some_pool(rng)
        said = finish_on(flow, pool)
        followed = order_to_follow(flow, pool=pool)
        assert terms_of(flow, seconds_of(flow), pool).listed(flow.dag.indices(followed)).makespan == said.makespan
        assert list(priorities(flow, pool=pool)) == list(followed)
        assert said.makespan <= finish_on(flow, pool, improve=False).makespan
        assert said.bound.seconds <= said.makespan
    bare = families.fork_join(4)
    assert order_to_follow(bare, pool=Pool.of(2)) == order_to_follow(bare)
    assert order_to_follow(flow, "ready", pool=pool) == order_to_follow(flow, "ready")


def test_compiled_and_interpreted_schedules_are_the_same() -> None:
    code = """
import sys; sys.path.insert(0, sys.argv[1])
import numpy as np
from test_pools import *
rng, total = np.random.default_rng(4), 0
for _ in range(60):
    flow, pool = some_flow(rng), some_pool(rng)
    terms = terms_of(flow, seconds_of(flow), pool)
    found = improved_schedule(terms, terms.played(some_rule(rng, flow.dag).board(), 9))
    print(found.begin.tolist(), found.worker.tolist(), found.sequence.tolist())
    print(terms.due(1.2 * terms.least).begin.tolist() if pool.speeds else "")
"""
    told = []
    for pure in ("", "1"):
        env = {"ELIGO_PURE": pure, "PYTHONPATH": str(Path(policies.__file__).parents[1]), "PATH": ""}
        words = [sys.executable, "-c", code, str(Path(__file__).parent)]
        told.append(subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout)
    assert told[0] == told[1] != ""


# Pools as people write them


@pytest.mark.parametrize(
    ("text", "told", "size"),
    [
        ("16", "16 workers", 16),
        (" 1 ", "1 worker", 1),
        ("4x1.0,2x0.5", "6 workers (4 of speed 1, 2 of 0.5)", 6),
        ("2x.5, 4", "6 workers (4 of speed 1, 2 of 0.5)", 6),
        ("3x2", "3 workers of speed 2", 3),
        ("64 cores", "64 cores", 64),
        ("1 core", "1 core", 1),
        ("1000000", "1,000,000 workers", 1_000_000),
    ],
)
def test_pools_are_read_and_told(text: str, told: str, size: int) -> None:
    pool = Pool.parse(text)
    assert (str(pool), pool.size) == (told, size)
    assert Pool.of(text) == Pool.of(pool) == pool


@pytest.mark.parametrize(
    "text", ["", "0", "-3", "4x", "x1", "4x0", "4x-1", "2.5", "nan", "inf", "4xnan", "1e9", "1000000000", "999999,2", "4,",
             "9" * 400, "0 cores", "-1 cores", "cores", "2.5 cores", "1000001 cores", "4x1 cores"],
)  # fmt: skip
def test_texts_that_are_no_pools(text: str) -> None:
    with pytest.raises(InputError, match=r"1 to 1,000,000|positive|at most|invalid pool .* .write a number of workers"):
        Pool.parse(text)


@pytest.mark.parametrize(
    "workers", [0, -1, 10**9, True, None, 2.5, float("nan"), [], [1, 0], [float("nan")], [float("inf")], ["a"], object()]
)  # fmt: skip
def test_things_that_are_no_pools(workers: object) -> None:
    with pytest.raises(InputError, match=r"positive integer|at most 1,000,000|must be (a number|positive)"):
        finish_on({"a": []}, workers)


@pytest.mark.parametrize("cores", [0, -1, 2.5, True, 10**9])
def test_cores_that_are_none(cores: Any) -> None:
    with pytest.raises(InputError, match="cores must be an integer from 1 to 1,000,000"):
        Pool(cores=cores)
    with pytest.raises(InputError, match="either workers or cores"):
        Pool((1.0,), 4)


def test_more_workers_than_tasks_are_no_harm() -> None:
    flow = some_flow(np.random.default_rng(2))
    ends = {finish_on(flow, n).makespan for n in (len(flow), 1000, 1_000_000, "1000000 cores")}
    assert len(ends) == 1
    assert finish_on(flow, [1.0] * len(flow) + [0.001] * 1000).makespan in ends


def test_a_task_that_needs_more_cores_than_there_are_is_named() -> None:
    flow = Workflow(Dag.from_arcs([("a", "b")]), {name: Task(name=name, seconds=1.0, cores=8) for name in "ab"})
    for ask in (finish_on, lambda flow, pool: order_to_follow(flow, pool=pool)):
        with pytest.raises(InputError, match="'a' needs 8 cores, but only 4 are available"):
            ask(flow, Pool(cores=4))


def test_what_does_not_belong_together_is_refused() -> None:
    dag, one, cores = Dag.from_arcs([("a", "b")]), Pool.of(1), Pool(cores=2)
    wrong: list[tuple[Any, Pool, Any]] = [
        (np.ones(3), one, None),
        (np.array([1.0, np.nan]), one, None),
        (np.array([1.0, -1.0]), one, None),
        (np.ones(2), one, np.ones(2)),
        (np.ones(2), cores, None),
        (np.ones(2), cores, np.ones(1)),
        (np.ones(2), cores, np.array([1.0, 3.0])),
    ]
    for seconds, pool, taken in wrong:
        with pytest.raises(InputError):
            Terms(dag, seconds, pool, taken)
    with pytest.raises(InputError, match="the board has 6 tasks"):
        Terms(dag, np.ones(2), one).played(policies.fifo(families.fork_join(4)).board())


def test_nothing_to_do_is_done_at_once() -> None:
    for pool in (Pool.of(3), Pool(cores=2)):
        assert finish_on(Dag.from_arcs([]), pool).makespan == 0
        assert order_to_follow(Dag.from_arcs([]), pool=pool) == ()


# The command


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    """A task, then eight of 10 minutes and 4 cores, of which two fit into 8 cores at once."""
    path = tmp_path / "flow.json"
    behind = ({"name": f"b{i}", "after": ["a"], "seconds": 600, "cores": 4} for i in range(8))
    path.write_text(json.dumps({"tasks": [{"name": "a", "seconds": 60}, *behind]}))
    return path


def said(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert run(["plan", *map(str, words)]) == 0
    return " ".join(capsys.readouterr().out.split())


def test_the_command_knows_cores(wide: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, wide, "--cores", 10)
    assert "10 cores: about 41 min, if tasks take as long as the file says. Lower bound: no order can" in out
    assert "Why: 8 tasks that need at least 4 cores, at most 2 at once" in out
    assert "Time by number of cores: 4: 1 h 21 min, 8: 41 min, 10: 41 min, 16: 21 min, 32: 11 min." in out
    document = json.loads(said(capsys, wide, "--cores", 10, "--json"))
    assert (document["workers"], document["makespan"]) == ("10 cores", 2460.0)
    assert finish_holds(wide, document["certificate"])
    assert said(capsys, wide, "--workers", "10 cores").startswith(out[:40])


def test_the_command_knows_speeds(wide: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, wide, "--workers", "2x1.0,2x0.5")
    assert "4 workers (2 of speed 1, 2 of 0.5): about 31 min" in out
    assert "Time by number of" not in out
    document = json.loads(said(capsys, wide, "--workers", "2x1.0,2x0.5", "--json"))
    assert document["workers"] == "2x1.0,2x0.5"
    assert finish_holds(wide, document["certificate"])
    assert json.loads(said(capsys, wide, "--workers", "4", "--json"))["workers"] == 4


def test_the_order_written_is_that_of_the_pool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(21)
    tasks = [
        {
            "name": f"t{i}",
            "seconds": int(rng.integers(1, 99)),
            "after": [f"t{j}" for j in range(i) if rng.random() < 0.1],
        }
        for i in range(40)
    ]
    file, out = tmp_path / "flow.json", tmp_path / "order.txt"
    file.write_text(json.dumps({"tasks": tasks}))
    assert run(["plan", str(file), "--workers", "4", "-o", str(out), "--json"]) == 0
    told = capsys.readouterr()
    assert "order written: finish for 4 workers\n" in told.err
    flow = read(file)
    followed = terms_of(flow, seconds_of(flow), 4).listed(flow.dag.indices(read_order(out)))
    assert followed.makespan == json.loads(told.out)["makespan"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--cores", "2"], "'b0' needs 4 cores, but only 2 are available"),
        (["--cores", "0"], "cores must be an integer from 1 to 1,000,000, got 0"),
        (["--workers", "4x"], "invalid pool '4x' (write a number of workers"),
        (["--workers", "0"], "workers must be a positive integer, got 0"),
        (["--workers", "2", "--cores", "4"], "leave one of them out"),
    ],
)
def test_the_command_refuses_pools_that_are_none(
    wide: Path, capsys: pytest.CaptureFixture[str], words: list[str], told: str
) -> None:
    assert run(["plan", str(wide), *words]) == 2
    assert told in capsys.readouterr().err
