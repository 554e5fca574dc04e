"""The numbers of tasks for engines: users' own priorities take precedence, and eligo's order decides among equal ones."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from eligo.border import as_workflow, dag_of, with_history
from eligo.names import Name
from eligo.planning import plan
from eligo.prioritising import order_to_follow
from eligo.workflow import Task, Workflow, priority_numbers


class Wished(NamedTuple):
    """The rank of a task: the priority that its user wishes, then its number by eligo's order; larger ones run sooner."""

    wish: float
    number: int


def timed(parents: Mapping[str, Collection[str]], kinds: Mapping[str, str], history: Any) -> Workflow:
    """The workflow of tasks with these parents, and with run times from the *history*: see `eligo.with_history`.

    >>> timed({"a1": [], "b": ["a1"]}, {"a1": "a", "b": "b"}, [(None, "a", 2.0)]).task("a1").category
    'a'
    """
    tasks = {name: Task(name=name, category=kind) for name, kind in kinds.items()}
    return with_history(Workflow(dag_of(parents), tasks), history)


def quick_order(flow: object, order: str) -> tuple[Name, ...]:
    """The order for this policy, with only a quick search for the best plan.

    >>> quick_order({"a": [], "b": [], "c": ["b"], "d": ["b"]}, "finish")
    ('b', 'a', 'c', 'd')
    """
    workflow = as_workflow(flow)
    return order_to_follow(workflow, order, plan(workflow, "quick"))


def numbers(flow: object, order: str = "finish") -> dict[str, int]:
    """The priority of every task, soon and always the same: an engine waits, and its schedulers may be several.

    >>> numbers({"a": [], "b": [], "c": ["b"]})
    {'b': 3, 'a': 2, 'c': 1}
    """
    sequence = order_to_follow(flow, order) if order == "ready" else quick_order(flow, order)
    return {str(task): number for task, number in priority_numbers(sequence).items()}


def standings(flow: object, wishes: Mapping[str, float], order: str = "finish") -> dict[str, Wished]:
    """The rank of every task; a task gets at least the wish of each task that depends on it.

    >>> standings({"a": [], "b": [], "c": ["b"], "d": ["b"]}, {"a": 0, "b": 0, "c": 5, "d": 0})["b"]
    Wished(wish=5, number=4)
    """
    dag = dag_of(flow)
    priorities, raised = numbers(flow, order), dict(wishes)
    for task in reversed(priorities):  # before what it needs
        for parent in map(str, dag.parents(task)):
            raised[parent] = max(raised[parent], raised[task])
    return {task: Wished(raised[task], number) for task, number in priorities.items()}
