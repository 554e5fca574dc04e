"""Chooses which ready task of a workflow to hand out next, and proves how good that choice is.

>>> import eligo
>>> dag = eligo.Dag.from_arcs([("a", "b"), ("a", "c")], tasks=["a", "b", "c", "lonely"])
>>> eligo.profile(dag, ["a", "b", "c", "lonely"])
(2, 3, 2, 1, 0)

Names are imported on first use, so that `import eligo` is fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from eligo.version import __version__

if TYPE_CHECKING:
    from eligo.allocating import Allocator, Ask, Grant, Prudent, Rules, allocator
    from eligo.batches import Batch, Batches, batch
    from eligo.border import as_workflow, with_history
    from eligo.choice import Candidate, ChosenOrder, order
    from eligo.clusters import Clusters, FatTask, cluster, fat_task
    from eligo.dag import Composition, Dag, compose, sum_of
    from eligo.errors import (
        CycleError,
        DuplicateTaskError,
        EligoError,
        FormatError,
        InputError,
        MoveError,
        NotSelfContainedError,
        ScheduleError,
        StateError,
        TaskFailedError,
        UnhonouredError,
        UnknownTaskError,
    )
    from eligo.execution import Execution
    from eligo.explaining import explain
    from eligo.finishing import FinishBound, earliest_finish
    from eligo.formats import History, read, read_history, write
    from eligo.interop.dask import from_dask
    from eligo.planning import Judgement, Plan, judge, plan
    from eligo.pools import Pool
    from eligo.prioritising import priorities
    from eligo.running import Progress, Result, Retries, run
    from eligo.simulation import Dealing, deal
    from eligo.theory.eligibility import (
        area,
        check_schedule,
        cumulative_profile,
        is_schedule,
        normalised_area,
        profile,
    )
    from eligo.verifying import Verification, verify
    from eligo.workflow import Origin, Task, Timed, Workflow

_HOMES = {
    "eligo.allocating": ("Allocator", "Ask", "Grant", "Prudent", "Rules", "allocator"),
    "eligo.batches": ("Batch", "Batches", "batch"),
    "eligo.choice": ("Candidate", "ChosenOrder", "order"),
    "eligo.clusters": ("Clusters", "FatTask", "cluster", "fat_task"),
    "eligo.dag": ("Composition", "Dag", "compose", "sum_of"),
    "eligo.errors": (
        "CycleError",
        "DuplicateTaskError",
        "EligoError",
        "FormatError",
        "InputError",
        "MoveError",
        "NotSelfContainedError",
        "ScheduleError",
        "StateError",
        "TaskFailedError",
        "UnhonouredError",
        "UnknownTaskError",
    ),
    "eligo.execution": ("Execution",),
    "eligo.explaining": ("explain",),
    "eligo.finishing": ("FinishBound", "earliest_finish"),
    "eligo.formats": ("History", "read", "read_history", "write"),
    "eligo.interop.dask": ("from_dask",),
    "eligo.border": ("as_workflow", "with_history"),
    "eligo.planning": ("Judgement", "Plan", "judge", "plan"),
    "eligo.pools": ("Pool",),
    "eligo.prioritising": ("priorities",),
    "eligo.running": ("Progress", "Result", "Retries", "run"),
    "eligo.simulation": ("Dealing", "deal"),
    "eligo.theory.eligibility": (
        "area",
        "check_schedule",
        "cumulative_profile",
        "is_schedule",
        "normalised_area",
        "profile",
    ),
    "eligo.verifying": ("Verification", "verify"),
    "eligo.workflow": ("Origin", "Task", "Timed", "Workflow"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Allocator",
    "Ask",
    "Batch",
    "Batches",
    "Candidate",
    "ChosenOrder",
    "Clusters",
    "Composition",
    "CycleError",
    "Dag",
    "Dealing",
    "DuplicateTaskError",
    "EligoError",
    "Execution",
    "FatTask",
    "FinishBound",
    "FormatError",
    "Grant",
    "History",
    "InputError",
    "Judgement",
    "MoveError",
    "NotSelfContainedError",
    "Origin",
    "Plan",
    "Pool",
    "Progress",
    "Prudent",
    "Result",
    "Retries",
    "Rules",
    "ScheduleError",
    "StateError",
    "Task",
    "TaskFailedError",
    "Timed",
    "UnhonouredError",
    "UnknownTaskError",
    "Verification",
    "Workflow",
    "__version__",
    "allocator",
    "area",
    "as_workflow",
    "batch",
    "check_schedule",
    "cluster",
    "compose",
    "cumulative_profile",
    "deal",
    "earliest_finish",
    "explain",
    "fat_task",
    "from_dask",
    "is_schedule",
    "judge",
    "normalised_area",
    "order",
    "plan",
    "priorities",
    "profile",
    "read",
    "read_history",
    "run",
    "sum_of",
    "verify",
    "with_history",
    "write",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'eligo' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
