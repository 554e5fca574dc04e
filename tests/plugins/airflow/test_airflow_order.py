"""Inside a real Airflow: its scheduler begins tasks in eligo's order, and all else is as with its own rule."""

import shutil

import pytest
from airflow_home import HERE, Home
from began import PARENTS
from engine_venv import engine_or_skip

import eligo

WEIGHTS = {str(task): weight for task, weight in eligo.priorities(PARENTS).items()}
STATES = (
    """select task_id, map_index, state, try_number from task_instance where dag_id = ? order by task_id, map_index"""
)
STARTS = """select task_id, priority_weight from task_instance where dag_id = ? order by start_date"""


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """An Airflow in which every dag of `airflow_steps.py` has had a run."""
    made = Home(engine_or_skip("airflow"), tmp_path_factory.mktemp("airflow"))
    shutil.copy(HERE / "airflow_steps.py", made.folder / "dags")
    made.run("db", "migrate")
    made.play(240)
    return made


def test_the_scheduler_begins_tasks_in_the_order(home: Home) -> None:
    own, other = home.asked(STARTS, ["order_own"]), home.asked(STARTS, ["order_eligo"])
    assert own[0][0] == "w"
    assert other == list(WEIGHTS.items())


def test_mapped_tasks_groups_retries_and_failures_are_the_same(home: Home) -> None:
    own, other = home.asked(STATES, ["trouble_own"]), home.asked(STATES, ["trouble_eligo"])
    assert other == own == [
        ("broken", -1, "failed", 1),
        ("group.inside", -1, "success", 1),
        ("mapped", 0, "success", 1),
        ("mapped", 1, "success", 1),
        ("never", -1, "upstream_failed", 0),
        ("start", -1, "success", 2),
    ]  # fmt: skip
    assert home.asked("select state from dag_run where dag_id like 'trouble%'") == [("failed",), ("failed",)]
