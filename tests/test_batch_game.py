"""The batched game, the proof of hardness that runs, and the command."""

import json
from collections.abc import Callable
from itertools import combinations, islice
from pathlib import Path

import numpy as np
import pytest

from conftest import random_small_dag
from eligo import Dag, InputError, ScheduleError, families, is_schedule, plan, profile
from eligo.batches.game import CHOOSERS, batch_optimal, in_order, periodic, play, random_requests
from eligo.batches.hardness import reduction, small_union
from eligo.cli import run
from eligo.theory.exact import best_batch

# The game


@pytest.mark.parametrize("chooser", CHOOSERS)
def test_every_game_executes_a_schedule_and_hands_out_what_it_can(chooser: str) -> None:
    rng = np.random.default_rng(31)
    for seed in range(25):
        dag = random_small_dag(rng, 20)
        game = play(dag, chooser, random_requests(3.0, seed))
        assert game.finished
        assert is_schedule(dag, game.order)
        ready = [len(dag.sources), *game.eligible]
        asked = list(islice(random_requests(3.0, seed), game.polls))
        assert list(game.handed) == [min(r, e) for r, e in zip(asked, ready, strict=False)]


def test_one_request_a_poll_is_the_plain_game() -> None:
    dag = families.random_layered(4, 5, seed=2)
    order = plan(dag).order
    game = play(dag, in_order(order), periodic(1))
    assert game.order == order
    assert (len(dag.sources), *game.eligible) == profile(dag, order)


def test_more_requests_than_tasks_take_as_many_polls_as_there_are_levels() -> None:
    dag = families.random_layered(5, 6, seed=1)
    assert {play(dag, chooser, periodic(1000)).polls for chooser in CHOOSERS} == {dag.depth}


def test_the_batch_chooser_leaves_the_most_after_each_poll() -> None:
    rng = np.random.default_rng(32)
    for _ in range(40):
        dag = random_small_dag(rng, 14)
        game = play(dag, "batch", periodic(2, 3))
        done = 0
        for size, after in zip(game.handed, game.eligible, strict=True):
            assert best_batch(dag, game.order[:done], size)[1] == after
            done += size


def test_first_come_last_come_most_children_longest_path() -> None:
    """a, b, c are ready: b has the most children, c the longest path below it; executing a renders x last of all."""
    dag = Dag.from_arcs([("a", "x"), ("b", "u"), ("b", "v"), ("c", "p"), ("p", "q")], tasks="abcxuvpq")
    first = {chooser: play(dag, chooser, [1, 1]).order for chooser in CHOOSERS}
    assert first["fifo"] == ("a", "b")
    assert first["lifo"] == ("c", "p")
    assert first["greedy"] == ("b", "a")
    assert first["critical path"] == ("c", "a")
    assert first["batch"][0] == "b"


def test_an_order_may_not_be_eligible_all_at_once() -> None:
    """Both requests could be met by E(0) = 2, but the order's second task needs its first, so the third goes out."""
    dag = Dag.from_arcs([("a", "b")], tasks=["a", "b", "c"])
    assert play(dag, in_order(["a", "b", "c"]), [2]).order == ("a", "c")


def test_requests_that_end_end_the_game() -> None:
    game = play(families.out_mesh(4), "fifo", [1, 0, 1])
    assert (game.finished, game.polls, game.handed) == (False, 3, (1, 0, 1))


def test_an_empty_dag_needs_no_poll() -> None:
    assert play(Dag.from_arcs([]), "batch", periodic(1)).polls == 0


def test_a_game_is_the_same_when_played_again() -> None:
    dag = families.random_layered(6, 9, seed=4)
    assert play(dag, batch_optimal(), random_requests(4.0, 1)) == play(dag, "batch", random_requests(4.0, 1))


@pytest.mark.parametrize(
    ("game", "message"),
    [
        (lambda dag: play(dag, "fifo", [-1]), "-1 is no number of requests"),
        (lambda dag: play(dag, "magic", [1]), "there is no chooser 'magic'"),
        (lambda dag: periodic(0, 0), "never more than 0"),
        (lambda dag: periodic(), "never more than 0"),
        (lambda dag: random_requests(0.0, 1), "the mean number of requests"),
        (lambda dag: random_requests(float("inf"), 1), "the mean number of requests"),
    ],
)
def test_what_is_no_game(game: Callable[[Dag], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        game(families.out_mesh(3))


def test_what_is_no_order() -> None:
    with pytest.raises(ScheduleError):
        play(Dag.from_arcs([("a", "b")]), in_order(["b", "a"]), [1])


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
        "tasks": ["1", "2"], "eligible_after": 3, "upper_bound": 3, "exact": True, "method": "closed form",
    }  # fmt: skip


def test_the_command_tells_people_what_to_hand_out(mesh: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["batch", mesh, "--executed", "done", "-r", "1", "--allocated", "done"]) == 2
    assert capfd.readouterr().err == "eligo: '0' cannot be both executed and allocated\n"
    assert run(["batch", mesh, "--executed", "done", "-r", "1"]) == 0
    out = capfd.readouterr().out
    assert out.startswith("Hand out: 1")
    assert "3 (no choice leaves more)" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-r", "0"], "0 tasks were asked for; at least 1 must be"),
        (["-r", "9"], "9 tasks were asked for, but only 4 are eligible"),
        (["-r", "1", "--executed", "strange"], "strange: there is no task named 'nobody'"),
        (["-r", "1", "--executed", "-", "--eligible", "-"], "standard input can be read only once"),
        (
            ["-r", "1", "--method", "magic"],
            "there is no method 'magic'; there are auto, exact, expansive, static, greedy",
        ),
    ],
)
def test_what_the_command_refuses(mesh: str, capfd: pytest.CaptureFixture[str], words: list[str], message: str) -> None:
    Path("strange").write_text("nobody\n", "utf-8")
    assert run(["batch", mesh, *words]) == 2
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", f"eligo: {message}\n")
