"""Plug-ins without their engines: the numbers that they would hand over. Inside the real engines: tests/plugins."""

import logging
import tomllib
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pytest

from eligo.plugins.airflow import HEAVIEST, EligoPriority, weights
from eligo.plugins.doit import ReadyNodes, tasks_to_run
from eligo.plugins.luigi import RankedScheduler, ranks
from eligo.plugins.numbers import numbers, standings

PARENTS = {"w": [], "w0": ["w"], "w1": ["w"], "d": [], "d1": ["d"], "d2": ["d1"]}


def instance(dag: SimpleNamespace, task: str) -> SimpleNamespace:
    return SimpleNamespace(task=dag.task_dict[task])


def a_dag(**own: int) -> SimpleNamespace:
    """A dag as Airflow holds one."""
    dag = SimpleNamespace(dag_id="d", task_dict={})
    for task, parents in PARENTS.items():
        known = {"task_id": task, "upstream_task_ids": set(parents), "priority_weight": own.get(task, 1)}
        dag.task_dict[task] = SimpleNamespace(**known, get_dag=lambda: dag)
    return dag


def test_what_a_user_wishes_comes_first_also_for_what_is_needed() -> None:
    found = standings(PARENTS, {**dict.fromkeys(PARENTS, 0), "w1": 2, "d2": 1})
    assert sorted(found, key=found.__getitem__, reverse=True) == ["w", "w1", "d", "d1", "d2", "w0"]


def test_a_large_graph_is_numbered_soon_and_always_alike() -> None:
    parents = {f"t{i}": [f"t{j}" for j in sorted({i // 2, i // 3, i - 1}) if 0 <= j < i] for i in range(2000)}
    assert numbers(parents) == numbers(parents)


def test_airflow_gets_the_order_as_weights() -> None:
    dag = a_dag()
    found = {task: EligoPriority().get_weight(instance(dag, task)) for task in PARENTS}
    assert found == numbers(PARENTS)


def test_airflow_weights_follow_the_dag_when_it_changes() -> None:
    dag, rule = a_dag(), EligoPriority()
    assert rule.get_weight(instance(dag, "d")) == len(PARENTS)
    dag.task_dict["new"] = SimpleNamespace(
        task_id="new", upstream_task_ids={"d2"}, priority_weight=1, get_dag=lambda: dag
    )
    assert rule.get_weight(instance(dag, "d")) == len(PARENTS) + 1


def test_airflow_weights_fit_into_its_database() -> None:
    found = weights((("a", (), HEAVIEST), ("b", (), -HEAVIEST)), "finish")
    assert found == {"a": HEAVIEST, "b": -HEAVIEST}


def test_airflow_goes_on_where_there_is_no_order(caplog: pytest.LogCaptureFixture) -> None:
    class Odd(EligoPriority):
        order = "nonsense"

    with caplog.at_level(logging.ERROR):
        assert Odd().get_weight(instance(a_dag(w=7), "w")) == 7
    assert "keeping its own weights" in caplog.text


def test_airflow_takes_a_task_without_a_dag_as_it_is() -> None:
    alone = SimpleNamespace(task=SimpleNamespace(get_dag=lambda: None, priority_weight=3))
    assert EligoPriority().get_weight(alone) == 3


def test_the_entry_points_are_there() -> None:
    text = (Path(__file__).parent.parent / "pyproject.toml").read_text("utf-8")
    for ends in tomllib.loads(text)["project"]["entry-points"].values():
        for target in ends.values():
            module, _, name = target.partition(":")
            assert getattr(import_module(module), name)


def told(task: str, **known: object) -> dict[str, object]:
    return {"task_id": task, "status": "PENDING", "deps": PARENTS[task], "priority": 0} | known


def test_luigi_keeps_priorities_apart_that_users_gave() -> None:
    found = ranks([told(task, priority={"w": 0.25, "d": 0.5}.get(task, 0)) for task in PARENTS])
    assert sorted(found, key=found.__getitem__, reverse=True)[:2] == ["d", "w"]
    assert 0.5 < found["d"] < 0.75
    assert 0.25 < found["w"] < 0.5
    assert all(0 < found[task] < 0.25 for task in ("w0", "w1", "d1", "d2"))


def test_luigi_puts_first_what_took_long_by_id_or_by_family() -> None:
    alike = [{"task_id": task, "family": task.upper(), "status": "PENDING", "deps": []} for task in "abc"]
    assert max(ranks(alike), key=ranks(alike).__getitem__) == "a"
    for history in ([("b", None, 9.0), ("a", None, 1.0), ("c", None, 1.0)], [(None, "B", 9.0), (None, "A", 1.0)]):
        found = ranks(alike, "finish", history)
        assert max(found, key=found.__getitem__) == "b"


def test_luigi_is_told_once_all_is_known() -> None:
    class Central:
        def __init__(self) -> None:
            self.calls: list[str] = []

        def add_task(self, **known: object) -> None:
            self.calls.append(f"{known['task_id']} {known['status']} {known.get('priority')}")

        def get_work(self) -> None:
            self.calls.append("work")

        def ping(self) -> str:
            return "pong"

    central = Central()
    ranked = RankedScheduler(central, "finish", ())
    ranked.add_task(**told("d1", deps=["d"]))
    ranked.add_task(**told("d", status="DONE", deps=None))
    assert (ranked.ping(), central.calls) == ("pong", [])
    ranked.get_work()
    ranked.add_task(task_id="d1", status="DONE")
    assert central.calls == ["d1 PENDING 0.5", "d DONE 0", "work", "d1 DONE None"]


def test_doit_takes_turns_by_place_and_by_whom_a_task_was_made_for() -> None:
    ready = ReadyNodes({"a": 0, "b": 1})
    for ancestors in (["b"], ["x"], ["a", "made"], ["b"]):
        ready.append(SimpleNamespace(ancestors=ancestors))
    assert [ready.popleft().ancestors[0] for _ in range(4)] == ["a", "b", "b", "x"]
    assert not ready


def test_doit_ranks_what_is_selected_and_all_that_it_needs() -> None:
    tasks = {task: SimpleNamespace(task_dep=parents, setup_tasks=[]) for task, parents in PARENTS.items()}
    tasks["d2"].setup_tasks = ["w0"]
    assert tasks_to_run(tasks, ["d2"], ["task_dep"]) == {"d2": ["d1"], "d1": ["d"], "d": []}
    assert set(tasks_to_run(tasks, ["d2"], ["task_dep", "setup_tasks"])) == {"d2", "d1", "d", "w0", "w"}
