"""Airflow 3: a weight rule with which the scheduler queues the tasks of a dag in eligo's order.

    DAG("survey", default_args={"weight_rule": "eligo.plugins.airflow.EligoPriority"})

Airflow finds the rule if eligo is installed (entry point `airflow.plugins`). A weight depends only on the dag: its tasks,
their dependencies, and the `priority_weight` of users, which takes precedence.
"""

import logging
from functools import lru_cache
from typing import Any, ClassVar

from eligo.plugins.numbers import standings

try:
    from airflow.plugins_manager import AirflowPlugin
    from airflow.task.priority_strategy import PriorityWeightStrategy
except ModuleNotFoundError:  # without Airflow, the classes below are only read, for example by documentation tools
    AirflowPlugin = PriorityWeightStrategy = object

HEAVIEST = 2**31 - 1  # the limit of Airflow's database
DAGS, RECENT = 128, 8  # the numbers of cached weights, by the shape of a dag and by the dag itself

Shape = tuple[tuple[str, tuple[str, ...], int], ...]


class EligoPriority(PriorityWeightStrategy):
    """The weight rule: n for the first task of the order, 1 for the last, plus n for each step of `priority_weight`."""

    #: the order to follow, see `eligo.prioritising`; a subclass can set another one
    order: ClassVar[str] = "finish"

    def get_weight(self, ti: Any) -> int:
        """The weight of a task instance, which is the same for all instances of a mapped task."""
        dag = ti.task.get_dag()
        if dag is None:
            return int(ti.task.priority_weight)
        return weights_within(HeldDag(dag), self.order)[ti.task.task_id]


class EligoPlugin(AirflowPlugin):
    """The plug-in that Airflow loads by its entry point."""

    name = "eligo"
    priority_weight_strategies: ClassVar[list[type]] = [EligoPriority]


class HeldDag:
    """An Airflow dag as a cache key: equal if it is the same object with the same number of tasks."""

    def __init__(self, dag: Any) -> None:
        self.dag, self._tasks = dag, len(dag.task_dict)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HeldDag) and self.dag is other.dag and self._tasks == other._tasks

    def __hash__(self) -> int:
        return id(self.dag)


@lru_cache(maxsize=RECENT)
def weights_within(held: HeldDag, order: str) -> dict[str, int]:
    """The weight of every task of a dag, cached, because Airflow asks for one task after another."""
    try:
        return weights(shape(held.dag.task_dict), order)
    except Exception:  # it would stop the scheduler, and every other dag with it
        logging.getLogger(__name__).exception(
            "eligo could not order the dag %s: keeping its own weights", held.dag.dag_id
        )
        return {name: int(task.priority_weight) for name, task in held.dag.task_dict.items()}


def shape(tasks: dict[str, Any]) -> Shape:
    """The input of weights: every task with its dependencies and its own weight."""
    return tuple(
        (name, tuple(sorted(task.upstream_task_ids & tasks.keys())), int(task.priority_weight))
        for name, task in tasks.items()
    )


@lru_cache(maxsize=DAGS)
def weights(tasks: Shape, order: str) -> dict[str, int]:
    """The weight of every task of a dag of this shape, cached, because a dag keeps its shape until its file changes.

    >>> weights((("a", (), 1), ("b", (), 1), ("c", ("b",), 1), ("d", ("b",), 1)), "finish")
    {'b': 4, 'a': 3, 'c': 2, 'd': 1}
    >>> weights((("a", (), 3), ("b", (), 1), ("c", ("b",), 2)), "finish")
    {'b': 6, 'a': 8, 'c': 4}
    """
    ranking = standings({name: needs for name, needs, _ in tasks}, {name: own for name, _, own in tasks}, order)
    return {name: _bounded(len(tasks) * (int(wish) - 1) + number) for name, (wish, number) in ranking.items()}


def _bounded(weight: int) -> int:
    return max(-HEAVIEST, min(HEAVIEST, weight))
