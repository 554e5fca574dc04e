"""What the workers of a run spent their time on, and two runs side by side."""

import json
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from eligo import Dag, Task, Workflow
from eligo.cli import run
from eligo.pages.lost_time import actual_terms, crews_of, lost_time, lost_time_words, played_finish, workers_of
from eligo.pages.views import starving
from eligo.pages.watched import Attempts, Watched
from eligo.schedules import terms_of
from eligo.stores import Attempt


def attempt(number: int, task: int, worker: int, span: tuple[float, float], answer: str = "accepted") -> Attempt:
    """An attempt that has ended."""
    return Attempt("", number, task, 1, f"w{worker}", "", *span, answer)


def played(seed: int) -> Any:
    """A run of random tasks of whole seconds on three workers, in which a few attempts fail and some starts are late."""
    chance = random.Random(seed)
    size = chance.randint(2, 14)
    arcs = [(u, v) for v in range(size) for u in range(v) if chance.random() < 0.25]
    dag = Dag.from_arcs(arcs, range(size))
    seconds = [float(chance.randint(1, 6)) for _ in range(size)]
    attempts, free, ends = Attempts(), [0.0] * 3, [0.0] * size
    for number, v in enumerate(dag.order.tolist()):
        worker = min(range(3), key=free.__getitem__)
        ready = max((ends[u] for u in dag.parents_of(v).tolist()), default=0.0)
        begin = max(free[worker], ready) + chance.randint(0, 1)
        if chance.random() < 0.2:
            attempts.add([attempt(100 + number, v, worker, (begin, begin + 1), "failed")])
            begin += 1
        ends[v] = free[worker] = begin + seconds[v]
        attempts.add([attempt(number, v, worker, (begin, ends[v]))])
    end = max(ends)
    flow = Workflow(dag, {v: Task(name=v) for v in range(size)})
    return SimpleNamespace(
        flow=flow, attempts=attempts, spans=[(0.0, end)], crews=[(0.0, end, 3)], trying={}, at=end,
        seconds=end, under_way=False, cache_client=-1, source="run", labels=dag.labels,
    )  # fmt: skip


def second_by_second(watched: Any) -> list[float]:
    """The same parts, counted for every second and worker."""
    rows, dag = watched.attempts.rows, watched.flow.dag
    parts = [0.0] * 6
    good = {int(row["task"]): row for row in rows if row["outcome"] == 0}
    first = {v: min(row["began"] for row in rows if row["task"] == v) for v in range(len(dag))}
    ready = {v: max((good[u]["ended"] for u in dag.parents_of(v).tolist()), default=0.0) for v in first}
    for now in range(int(watched.seconds)):
        active = [row for row in rows if row["began"] <= now < row["ended"]]
        for row in active:
            parts[int(row["outcome"])] += 1
        idle, queue = 3 - len(active), sum(ready[v] <= now < first[v] for v in first)
        parts[5] += min(idle, queue)
        parts[4 if now >= max(row["began"] for row in rows) else 3] += max(0, idle - queue)
    return parts


@pytest.mark.parametrize("seed", range(40))
def test_lost_time_is_that_of_every_second(seed: int) -> None:
    watched = played(seed)
    parts = lost_time(cast(Watched, watched))
    assert list(parts) == pytest.approx(second_by_second(watched))
    assert parts.total == pytest.approx(3 * watched.seconds)


@pytest.mark.parametrize("seed", range(10))
def test_a_run_takes_no_less_than_its_bound_and_words_say_where_time_went(seed: int) -> None:
    watched = cast(Watched, played(seed))
    terms = actual_terms(watched)
    assert terms is not None
    assert terms.pool.size == 3
    words = lost_time_words(watched)
    assert words[0].startswith("Of ")
    assert " on results" in words[0]
    assert "no order on 3 workers with these run times can take less than" in words[1]
    assert words[2].startswith("Simulated without failures and dispatch: `finish` ")


def test_clients_count_as_often_as_they_ran_tasks_at_a_time() -> None:
    watched = SimpleNamespace(crews=None, attempts=Attempts(), trying={}, at=9.0)
    spans = [(0.0, 4.0), (1.0, 3.0), (3.0, 6.0)]
    watched.attempts.add([attempt(number, number, 0, span) for number, span in enumerate(spans)])
    watched.attempts.add([attempt(3, 3, 1, (2.0, 8.0))])
    assert crews_of(cast(Watched, watched)) == [(0.0, 6.0, 2), (2.0, 8.0, 1)]
    assert workers_of(cast(Watched, watched)) == 3


def test_a_run_with_unknown_times_has_no_bound() -> None:
    watched = played(1)
    watched.cache_client = 0
    assert actual_terms(cast(Watched, watched)) is None
    watched.under_way = True
    assert lost_time_words(cast(Watched, watched)) == []


def test_a_policy_is_played_with_the_run_times() -> None:
    terms = terms_of(Dag.from_arcs([], tasks="abcd"), np.array([1.0, 1.0, 1.0, 3.0]), 2)
    assert (played_finish(terms, "fifo"), played_finish(terms, "finish")) == (4.0, 3.0)


def test_idle_workers_are_mentioned_with_the_kinds_that_all_wait_for() -> None:
    watched = SimpleNamespace(
        present=3, trying={1: SimpleNamespace(since=100.0)}, status="running", attempts=Attempts(), at=340.0,
        execution=SimpleNamespace(eligible=()), kinds=["trim", "align", "merge"],
    )  # fmt: skip
    watched.attempts.add([attempt(0, 0, 0, (90.0, 100.0))])
    view = cast(Watched, watched)
    assert starving(view) == "2 workers idle for 4 min, because all else waits for align."
    watched.execution = SimpleNamespace(eligible=(2,), numbers=lambda state: [2])
    assert starving(view) == "2 workers idle for 4 min, because only merge is ready, which does not fit."
    watched.at = 105.0
    assert starving(view) == ""
    watched.at, watched.present = 340.0, 1
    assert starving(view) == ""


# The command


def test_two_runs_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    tasks = [{"name": f"t{i}", "run": "true"} for i in range(4)]
    Path("flow.json").write_text(json.dumps({"tasks": tasks}))
    for folder, workers in (("one.run", "1"), ("two.run", "2")):
        assert run(["run", "flow.json", "--run", folder, "-j", workers, "-q"]) == 0
    capsys.readouterr()
    assert run(["compare", "one.run", "two.run"]) == 0
    out = capsys.readouterr().out
    assert "two.run took " in out
    assert "mean of t" in out
    assert run(["compare", "one.run", "two.run", "--json"]) == 0
    one, two = json.loads(capsys.readouterr().out)["runs"]
    assert (one["workers"], two["workers"], one["done"], one["tasks"]) == (1, 2, 4, 4)
    for each in (one, two):
        assert sum(each["parts"].values()) == pytest.approx(each["workers"] * each["seconds"], rel=0.05)
        assert each["bound"] <= each["seconds"]
    assert run(["compare", "one.run", "two.run", "one.run"]) == 2
    assert "two runs can be compared, got 3" in capsys.readouterr().err
