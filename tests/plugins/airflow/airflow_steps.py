"""Dags of Airflow, each with a run of its own as soon as the scheduler sees it."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, BaseOperator, TaskGroup
from began import PARENTS

FOLDER = Path(os.environ["AIRFLOW_HOME"])
RULES = {"own": "downstream", "eligo": "eligo.plugins.airflow.EligoPriority"}

ONCE: dict[str, Any] = {"schedule": "@once", "start_date": datetime(2025, 1, 1, tzinfo=UTC)}


class Step(BaseOperator):
    """Does nothing, or fails: always, or the first time."""

    def __init__(self, *, fails: str = "", item: int = 0, **known: Any) -> None:
        super().__init__(**known)
        self.fails, self.item = fails, item

    def execute(self, context: Any) -> None:
        if self.fails == "always" or (self.fails == "once" and context["ti"].try_number == 1):
            raise RuntimeError("on purpose")


def branches(name: str, rule: str) -> DAG:
    """The deep branch and the wide one, a task at a time."""
    with DAG(f"order_{name}", **ONCE, max_active_tasks=1, default_args={"weight_rule": rule}) as dag:
        steps = {task: Step(task_id=task) for task in PARENTS}
        for task, parents in PARENTS.items():
            for parent in parents:
                steps[parent] >> steps[task]
    return dag


def troubles(name: str, rule: str) -> DAG:
    """A mapped task, a group, a task that is tried again, and one that fails for good."""
    known = {"weight_rule": rule, "retry_delay": timedelta(seconds=0)}
    with DAG(f"trouble_{name}", **ONCE, default_args=known) as dag:
        start = Step(task_id="start", fails="once", retries=1)
        mapped = Step.partial(task_id="mapped").expand(item=[1, 2])
        with TaskGroup("group") as group:
            Step(task_id="inside")
        broken = Step(task_id="broken", fails="always")
        start >> [mapped, broken]
        mapped >> group
        broken >> Step(task_id="never")
    return dag


for name, rule in RULES.items():
    globals()[f"order_{name}"] = branches(name, rule)
    globals()[f"trouble_{name}"] = troubles(name, rule)
