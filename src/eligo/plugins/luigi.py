"""Luigi: its scheduler receives every task with a priority by eligo's order.

    eligo.plugins.luigi.build([Report()], workers=2, local_scheduler=True)  # as luigi.build, and run as luigi.run

Tasks are not changed. The messages of Luigi's worker to its scheduler, local or central, are held back until it has reported
the whole graph, and then passed on with priorities. Completed tasks are not ranked, because Luigi ignores their dependencies.
"""

import importlib
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from eligo.errors import InputError
from eligo.plugins.numbers import Wished, standings, timed
from eligo.prioritising import check_order


def build(tasks: Iterable[Any], order: str = "finish", history: Any = (), **options: Any) -> Any:
    """Run `luigi.build` in eligo's order; *options* and the result are those of `luigi.build`.

    *history* has run times by the ids or families of tasks: a file, or records as for `eligo.with_history`.
    """
    options["worker_scheduler_factory"] = Factory(order, history, options.get("worker_scheduler_factory"))
    return _package("luigi").build(tasks, **options)


def run(*arguments: Any, order: str = "finish", history: Any = (), **options: Any) -> Any:
    """Run `luigi.run` with these words of the command line, in eligo's order."""
    options["worker_scheduler_factory"] = Factory(order, history, options.get("worker_scheduler_factory"))
    return _package("luigi").run(*arguments, **options)


class Factory:
    """The factory of Luigi's schedulers and workers; *own* is the user's factory."""

    def __init__(self, order: str = "finish", history: Any = (), own: Any = None) -> None:
        check_order(order)
        self._ways = order, timed({}, {}, history).history  # read now, so that errors are raised before work starts
        self._own = own or _package("luigi.interface")._WorkerSchedulerFactory()

    def create_local_scheduler(self) -> "RankedScheduler":
        """A scheduler in this process."""
        return RankedScheduler(self._own.create_local_scheduler(), *self._ways)

    def create_remote_scheduler(self, url: str) -> "RankedScheduler":
        """The central scheduler at this URL."""
        return RankedScheduler(self._own.create_remote_scheduler(url), *self._ways)

    def create_worker(self, **wanted: Any) -> Any:
        """Luigi's own worker."""
        return self._own.create_worker(**wanted)


class RankedScheduler:
    """A Luigi scheduler that receives tasks with their priorities when the worker has reported all of them."""

    def __init__(self, scheduler: Any, order: str, history: Any) -> None:
        self._scheduler, self._ways = scheduler, (order, history)
        self._held: list[dict[str, Any]] | None = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._scheduler, name)

    def add_task(self, **fields: Any) -> None:
        """Record a task, or its outcome."""
        if self._held is None:
            self._scheduler.add_task(**fields)
        else:
            self._held.append(fields)

    def get_work(self, **asked: Any) -> Any:
        """The next task for the worker."""
        self._flush()
        return self._scheduler.get_work(**asked)

    def count_pending(self, **asked: Any) -> Any:
        """The number of pending tasks."""
        self._flush()
        return self._scheduler.count_pending(**asked)

    def _flush(self) -> None:
        held, self._held = self._held, None
        if held:
            ranked = ranks(held, *self._ways)
            for fields in held:
                self._scheduler.add_task(
                    **fields | {"priority": ranked.get(fields["task_id"], fields.get("priority", 0))}
                )


def ranks(tasks: Iterable[dict[str, Any]], order: str = "finish", history: Any = ()) -> dict[str, float]:
    """The priority of every pending task: its own, plus a small amount by its position in the order.

    >>> ranks([{"task_id": "a", "status": "PENDING", "deps": ["b"]}, {"task_id": "b", "status": "DONE", "deps": None}])
    {'a': 0.5}
    """
    pending = {each["task_id"]: each for each in tasks if each["status"] == "PENDING"}
    parents = {task: [need for need in each["deps"] or () if need in pending] for task, each in pending.items()}
    flow = timed(parents, {task: each.get("family") or task for task, each in pending.items()}, history)
    ranking = standings(flow, {task: each.get("priority") or 0 for task, each in pending.items()}, order)
    step = _step(ranking.values()) / (len(ranking) + 1)
    return {task: wish + step * number for task, (wish, number) in ranking.items()}


def _step(ranking: Iterable[Wished]) -> float:
    """The minimum difference between users' own priorities."""
    wishes = sorted({each.wish for each in ranking})
    return min((after - before for before, after in pairwise(wishes)), default=1.0)


def _package(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        raise InputError("eligo.plugins.luigi needs Luigi (pip install luigi)") from None
