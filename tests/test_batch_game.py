"""The batched game, the proof of hardness that runs, and the command."""

import json
from collections.abc import Iterable
from itertools import combinations, cycle, repeat
from pathlib import Path

import numpy as np
import pytest

from conftest import random_small_dag
from eligo import Dag, InputError, families, is_schedule, plan, profile
from eligo.cli import run
from eligo.policies import from_order
from eligo.simulation import Trace, batched, drawn_requests, rounds, scheduler, trace
from papers.hardness import reduction, small_union
from slow_theory import best_batch

# The game

RULES = ("batch-optimal", "fifo", "lifo", "greedy-fifo", "critical-path", "balanced")


def play(dag: Dag, rule: str, requests: Iterable[int]) -> Trace:
    return trace(scheduler(rule, dag), requests)


@pytest.mark.parametrize("rule", RULES)
def test_every_game_executes_a_schedule_and_hands_out_what_it_can(rule: str) -> None:
    rng = np.random.default_rng(31)
    for seed in range(25):
        dag = random_small_dag(rng, 20)
        asked = drawn_requests(3.0, 0, seed, 60).tolist()
        game = play(dag, rule, asked)
        assert game.finished
        assert is_schedule(dag, game.order)
        before = [len(dag.sources), *game.ready]
        assert list(game.handed) == [min(r, e) for r, e in zip(asked[: game.polls], before, strict=False)]


@pytest.mark.parametrize("rule", ["batch-optimal", "balanced", "ready"])  # which have no ties to break at random
def test_a_trace_takes_as_many_polls_as_the_compiled_game(rule: str) -> None:
    for seed in range(10):
        dag = families.random_layered(5, 6, seed)
        asked = drawn_requests(4.0, 0, seed, 60).tolist()
        policy = scheduler(rule, dag)
        assert trace(policy, asked).polls == batched(policy, requests=asked)[0]


@pytest.mark.parametrize("rule", ["batch-optimal", "balanced", "ready"])
def test_the_requests_that_find_nothing_are_those_beyond_the_tasks(rule: str) -> None:
    """Every task meets one request, so of all requests up to the last poll the others are starved, compiled or traced."""
    for seed in range(10):
        dag = families.random_layered(5, 6, seed)
        asked = drawn_requests(4.0, 0, seed, 60).tolist()
        policy = scheduler(rule, dag)
        game = trace(policy, asked)
        share = 1 - len(dag) / sum(asked[: game.polls])
        assert sum(game.starved) == sum(asked[: game.polls]) - len(dag)
        assert rounds(policy, requests=asked).starved.tolist() == pytest.approx([share])
        assert rounds(policy, 4.0, 1, seed).starved.tolist() == pytest.approx([share])


def test_a_request_at_a_time_never_finds_nothing() -> None:
    dag = families.random_layered(4, 5, seed=2)
    assert rounds(scheduler("fifo", dag), requests=[1] * len(dag)).starved.tolist() == [0.0]


def test_one_request_a_poll_is_the_plain_game() -> None:
    dag = families.random_layered(4, 5, seed=2)
    order = plan(dag).order
    game = trace(from_order(dag, order), repeat(1))
    assert game.order == order
    assert (len(dag.sources), *game.ready) == profile(dag, order)


def test_more_requests_than_tasks_take_as_many_polls_as_there_are_levels() -> None:
    dag = families.random_layered(5, 6, seed=1)
    assert {play(dag, rule, repeat(1000)).polls for rule in RULES} == {dag.depth}


def test_the_best_batch_leaves_the_most_after_each_poll() -> None:
    rng = np.random.default_rng(32)
    for _ in range(40):
        dag = random_small_dag(rng, 14)
        game = play(dag, "batch-optimal", cycle((2, 3)))
        done = 0
        for size, after in zip(game.handed, game.ready, strict=True):
            assert best_batch(dag, game.order[:done], size)[1] == after
            done += size


def test_an_order_may_not_be_eligible_all_at_once() -> None:
    """Both requests could be met by E(0) = 2, but the order's second task needs its first, so the third goes out."""
    dag = Dag.from_arcs([("a", "b")], tasks=["a", "b", "c"])
    assert trace(from_order(dag, ["a", "b", "c"]), [2]).order == ("a", "c")


def test_requests_that_end_end_the_game() -> None:
    game = play(families.out_mesh(4), "fifo", [1, 0, 1])
    assert (game.finished, game.polls, game.handed) == (False, 3, (1, 0, 1))


def test_an_empty_dag_needs_no_poll() -> None:
    assert play(Dag.from_arcs([]), "batch-optimal", repeat(1)).polls == 0


def test_a_negative_number_of_requests() -> None:
    with pytest.raises(InputError, match="the number of requests must not be negative, got -1"):
        play(families.out_mesh(3), "fifo", [-1])


# Hardness


def random_family(rng: np.random.Generator) -> list[set[int]]:
    n = int(rng.integers(1, 7))
    family = [set((rng.choice(n, rng.integers(1, n + 1), replace=False) + 1).tolist()) for _ in range(n)]
    family[0] |= set(range(1, n + 1)) - set().union(*family)
    return family


def test_the_reduction_answers_many_subsets_with_small_union() -> None:
    rng = np.random.default_rng(33)
    for _ in range(60):
        family = random_family(rng)
        m, b = int(rng.integers(0, len(family) + 1)), int(rng.integers(1, len(family) + 1))
        fits = any(len(set().union(*chosen)) <= b for chosen in combinations(family, m))
        assert reduction(family, m, b).answer() == fits
        found = small_union(family, m, b)
        assert (found is not None) == fits
        if found is not None:
            assert len(found) == m
            assert len(set().union(*(family[j - 1] for j in found))) <= b


@pytest.mark.parametrize(
    ("family", "m", "b"), [([set()], 1, 1), ([{1}, {1}], 1, 1), ([{1, 2}], 1, 1), ([{1}], 2, 1), ([{1}], 1, 0)]
)
def test_what_is_no_instance(family: list[set[int]], m: int, b: int) -> None:
    with pytest.raises(InputError):
        reduction(family, m, b)


# The command


@pytest.fixture
def mesh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The in-mesh of 4 levels, sources 0 to 3, in a file; "done" names task 0, "both" tasks 0 and 1."""
    monkeypatch.chdir(tmp_path)
    assert run(["generate", "in-mesh", "4", "-o", "mesh.json"]) == 0
    Path("done").write_text("0\n", "utf-8")
    Path("both").write_text('["0", "1"]', "utf-8")
    return "mesh.json"


def test_the_command_prints_one_document(mesh: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["batch", mesh, "--executed", "done", "--requests", "2", "--json"]) == 0
    assert json.loads(capfd.readouterr().out) == {
        "schema": 2, "tasks": ["1", "2"], "eligible_after": 3, "ready_after": 3, "upper_bound": 3, "exact": True,
        "method": "closed form",
    }  # fmt: skip


def test_the_command_tells_people_what_to_hand_out(mesh: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["batch", mesh, "--executed", "done", "-r", "1", "--allocated", "done"]) == 2
    assert capfd.readouterr().err == "eligo: '0' cannot be allocated: it is executed\n"
    assert run(["batch", mesh, "--executed", "done", "-r", "1"]) == 0
    out = capfd.readouterr().out
    assert out.startswith("Tasks to hand out: 1")
    assert "3 (proved: no choice leaves more)" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-r", "0"], "requests must be at least 1, got 0"),
        (["-r", "1", "--executed", "strange"], "strange: there is no task named 'nobody'"),
        (
            ["-r", "1", "--executed", "-", "--eligible", "-"],
            "standard input can be read only once: give a file instead of one -",
        ),
        (
            ["-r", "1", "--method", "magic"],
            "unknown method 'magic' (choose from auto, exact, expansive, greedy)",
        ),
    ],
)
def test_what_the_command_refuses(mesh: str, capfd: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    Path("strange").write_text("nobody\n", "utf-8")
    assert run(["batch", mesh, *words]) == 2
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", f"eligo: {message}\n")
