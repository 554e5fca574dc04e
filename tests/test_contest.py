"""The contest of orders: no gap is negative, orders of others follow their rules, and losses are what the page says."""

from pathlib import Path

import numpy as np
import pytest

from conftest import random_small_dag
from contest import __main__ as command
from contest.adversary import makespan, worst_losses
from contest.entrants import all_entrants, heft
from contest.scores import Arena
from eligo.dag import Dag
from eligo.theory.eligibility import is_schedule
from eligo.workflow import Task, Workflow


def timed(dag: Dag, seconds: list[float]) -> Workflow:
    return Workflow(dag, {name: Task(name=name, seconds=time) for name, time in zip(dag.tasks, seconds, strict=True)})


def test_gaps_are_at_least_zero_and_orders_are_schedules() -> None:
    rng = np.random.default_rng(1)
    for _ in range(15):
        dag = random_small_dag(rng, most=14)
        flow = timed(dag, rng.integers(1, 10, len(dag)).astype(float).tolist())
        arena = Arena(flow, 3)
        for name, entrant in all_entrants({}, ("balanced",)).items():
            assert is_schedule(dag, entrant(flow, 3).order()), name
            assert all(gap is not None and gap >= -1e-9 for gap in arena.scores(entrant)), name


def test_heft_fills_gaps() -> None:
    """On one worker every order is without gaps; on two, the short task goes into the gap before the join."""
    dag = Dag.from_arcs([("a", "c"), ("b", "c"), ("c", "d")], tasks="abcde")
    flow = timed(dag, [4.0, 1.0, 2.0, 1.0, 3.0])
    assert dag.named(heft(flow, 2).order()) == ("a", "b", "e", "c", "d")


def test_a_loss_is_as_the_entrants_play() -> None:
    entrants = all_entrants({}, ())
    chosen = {name: entrants[name] for name in ("finish", "HEFT", "fifo")}
    losses = worst_losses(chosen, steps=20)
    assert losses.keys() == {"HEFT", "fifo"}
    for name, loss in losses.items():
        assert loss.share == makespan(entrants["finish"], loss.flow) / makespan(entrants[name], loss.flow) - 1 >= 0


def test_an_order_in_a_file_takes_part_and_the_page_has_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "flow.json").write_text('{"tasks": [{"name": "a", "seconds": 2}, {"name": "b", "seconds": 1}]}')
    (tmp_path / "mine.txt").write_text("b\na\n")
    (tmp_path / "broken.json").write_text("{")
    files = [str(tmp_path / name) for name in ("flow.json", "broken.json")]
    assert command.main([*files, "--order", str(tmp_path / "mine.txt"), "--workers", "2", "--adversary", "2"]) == 0
    out, err = capsys.readouterr()
    assert "| mine | 0.0 %, 0.0 % |" in out
    assert "over 1 workflows" in out
    assert "broken.json" in err
