"""Takes go through an allocator: who asks gets what, by policy, by batch or by cluster, and prudently.

| notion | where |
|---|---|
| ask, grant, allocator | `asks` |
| the ready task of the highest score | `by_policy` |
| the tasks that together leave the most ready (BICSO) | `by_batch` |
| fat tasks | `by_cluster` |
| slow clients, long tasks, overdue copies, around any of them | `prudent` |

Several allocators may serve one execution: each follows its journal. docs/howto/hand-out-tasks.md shows how.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from eligo.allocating.asks import Allocator, Ask, Grant
from eligo.allocating.by_policy import ByPolicy
from eligo.allocating.prudent import PRUDENT, Prudent, Rules, informed
from eligo.allocating.speeds import Speeds

if TYPE_CHECKING:
    from eligo.allocating.by_batch import ByBatch
    from eligo.allocating.by_cluster import ByCluster, FatGrant
    from eligo.allocating.registry import ALLOCATORS, allocator

#: what is imported when first used, for it brings batches and clusters along
_HOME = {
    "ALLOCATORS": "eligo.allocating.registry",
    "ByBatch": "eligo.allocating.by_batch",
    "ByCluster": "eligo.allocating.by_cluster",
    "FatGrant": "eligo.allocating.by_cluster",
    "allocator": "eligo.allocating.registry",
}

__all__ = [
    "ALLOCATORS",
    "PRUDENT",
    "Allocator",
    "Ask",
    "ByBatch",
    "ByCluster",
    "ByPolicy",
    "FatGrant",
    "Grant",
    "Prudent",
    "Rules",
    "Speeds",
    "allocator",
    "informed",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
