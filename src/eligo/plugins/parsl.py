"""Parsl: its high-throughput executor follows eligo's order, with `ParslPriorities(parsl.load(config))`.

Parsl learns of a task when an app is called, and passes ready tasks to the executor at once, which fixes their priority.
Therefore ready tasks are held back until no app has been called for a moment. Then all known tasks are ranked, and the ready
ones are passed on. When more apps are called, the tasks that were not passed on are ranked again, relative to those that
wait at the executor.
"""

import logging
import threading
import time
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from eligo.engines.registry import package_of
from eligo.errors import InputError
from eligo.plugins.numbers import quick_order
from eligo.prioritising import check_order

#: a task in Parsl
Record = dict[str, Any]


class ParslPriorities:
    """Ranks the tasks of a DataFlowKernel; of the tasks waiting at an executor, the smallest rank runs first.

    *settle* is the time in seconds without a call of an app, and *patience* the maximum time that a task waits for it.
    """

    def __init__(self, kernel: Any, order: str = "finish", settle: float = 0.05, patience: float = 1.0) -> None:
        check_order(order)
        self._executor = _executor()
        for label, executor in kernel.executors.items():
            if self._ranks(executor) and executor.prefetch_capacity:
                raise InputError(f"the executor {label!r} prefetches tasks (set prefetch_capacity=0)")
        self._kernel, self._order, self._settle, self._patience = kernel, order, settle, patience
        self._lock, self._held = threading.Lock(), list[Record]()
        self._ranked = set[int]()  # tasks whose priority was set here, not by the user
        self._seen = 0  # tasks from this number on have not been ranked
        self._launch = kernel.launch_if_ready
        kernel.launch_if_ready = self._launch_if_ready

    def _launch_if_ready(self, record: Record) -> None:
        """Replace Parsl's method: pass the task on at once, unless there are tasks without a rank."""
        with self._lock:
            if self._held or record["id"] >= self._seen:
                self._held.append(record)
                if len(self._held) == 1:
                    threading.Thread(target=self._release, name="eligo-ranking", daemon=True).start()
                return
        self._launch(record)

    def _release(self) -> None:
        """Rank the tasks and pass on those held back, the best first, until none is left."""
        while self._held:
            self._wait_for_quiet()
            try:
                self._rank()
            except Exception:  # the tasks must be passed on in any case
                logging.getLogger(__name__).exception("ranking failed: keeping the order of Parsl")
            with self._lock:
                going = sorted((record for record in self._held if record["id"] < self._seen), key=place_of)
                self._held = [record for record in self._held if record["id"] >= self._seen]
                for record in going if not self._kernel.cleanup_called else ():
                    self._launch(record)

    def _wait_for_quiet(self) -> None:
        deadline, count = time.monotonic() + self._patience, -1
        while count < self._kernel.task_count and time.monotonic() < deadline:
            count = self._kernel.task_count
            time.sleep(self._settle)

    def _rank(self) -> None:
        """Rank all tasks that have not been passed to an executor."""
        tasks = list(self._kernel.tasks.values())
        self._seen = max([self._seen, *(record["id"] + 1 for record in tasks)])
        records = {record["id"]: record for record in tasks if not record["app_fu"].done()}
        needs = {task: parents_of(record, records) for task, record in records.items()}
        free = {task for task in self._ranked & records.keys() if records[task]["status"].name == "pending"}
        specs = {task: record["resource_specification"] for task, record in records.items() if task not in free}
        fixed = {task: spec["priority"] for task, spec in specs.items() if "priority" in spec}
        for task, number in numbers(quick_order(needs, self._order), fixed).items():
            if self._ranks(self._kernel.executors[records[task]["executor"]]):
                self._ranked.add(int(task))
                records[task]["resource_specification"] = {
                    **records[task]["resource_specification"],
                    "priority": number,
                }

    def _ranks(self, executor: object) -> bool:
        """Whether this executor uses priorities; the one for MPI does not."""
        return isinstance(executor, self._executor) and type(executor).__name__ != "MPIExecutor"


def parents_of(record: Record, records: Mapping[int, Record]) -> list[int]:
    """The known tasks that must finish before this one; Parsl may wait for other futures, too.

    An app that returns futures of other apps, one or a list, ends when those apps end.
    """
    joined = record["joins"] or []
    awaited = [*record["depends"], *(joined if isinstance(joined, list) else [joined])]
    ids = (getattr(future, "tid", None) for future in awaited if not future.done())
    return [task for task in dict.fromkeys(ids) if task is not None and task in records]


def place_of(record: Record) -> tuple[float, int]:
    """The sort key of the executor."""
    return record["resource_specification"].get("priority", float("inf")), record["id"]


def numbers(order: Sequence[Any], fixed: Mapping[Any, float]) -> dict[Any, float]:
    """A number for each task without one, smaller is earlier, after all numbered tasks that precede it in the order.

    >>> numbers("abc", {})
    {'a': 1.0, 'b': 2.0, 'c': 3.0}
    >>> numbers("abxcy", {"a": 1.0, "b": 2.0, "c": 3.0})
    {'x': 2.5, 'y': 4.0}
    """
    groups, last = dict[float, list[Any]](), 0.0
    for task in order:
        last = max(last, fixed.get(task, last))
        if task not in fixed:
            groups.setdefault(last, []).append(task)
    taken = sorted(fixed.values())
    return {
        task: number
        for low, tasks in groups.items()
        for task, number in zip(tasks, numbers_between(low, taken, len(tasks)), strict=True)
    }


def numbers_between(low: float, taken: Sequence[float], count: int) -> Iterable[float]:
    """Numbers above *low* and below the next one in *taken*."""
    after = bisect_right(taken, low)
    step = 1.0 if after == len(taken) else (taken[after] - low) / (count + 1)
    return (low + step * i for i in range(1, count + 1))


def _executor() -> type:
    executor: type = package_of("parsl", "parsl", "parsl").HighThroughputExecutor
    return executor
