"""Fat tasks: clusters of tasks sized for one client, chosen so that the remaining tasks keep a good order.

| notion | where |
|---|---|
| fat task, residual, cut arcs, productivity; sets given by hand | `fat` |
| direct, staggered, searched, and the choice between them | `strategies` |
| ▷-chains of blocks, whole blocks (Lemma 2), the condition under which any set may be taken | `chains`, `strategies` |
| goals, sets that grow, files and bytes | `growth` |
| all sets of a small dag | `strategies` |
| during an execution | `fat_tasks`; for clients, `eligo.allocating.by_batch`; a whole dag, `eligo.simulation.deals` |
| Pegasus labels, Snakemake groups, DAGMan nodes | `export` |

docs/understand/clusters.md explains them.
"""

from eligo.clusters.fat import FatTask, fat_task
from eligo.clusters.fat_tasks import Clusters, cluster

__all__ = ["Clusters", "FatTask", "cluster", "fat_task"]
