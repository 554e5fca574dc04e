"""Takes go through an allocator: who asks gets what, by policy, by batch or by cluster, and prudently.

| notion | where |
|---|---|
| ask, grant, allocator | `asking` |
| the ready task of the highest score | `by_policy` |
| the tasks that together leave the most ready (BICSO) | `by_batch` |
| fat tasks | `by_cluster` |
| slow clients, long tasks, overdue copies, around any of them | `prudent` |

Several allocators may serve one execution: each follows its journal. docs/live.md shows how.
"""

from eligo.allocating.asking import Allocator, Ask, Grant
from eligo.allocating.by_batch import ByBatch
from eligo.allocating.by_cluster import ByCluster, FatGrant
from eligo.allocating.by_policy import ByPolicy
from eligo.allocating.naming import ALLOCATORS, allocator
from eligo.allocating.prudent import PRUDENT, Prudent, Rules, Speeds, informed

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
