"""Fat tasks: clusters of tasks as large as the client that is to run them, taken so that what is left stays good.

| notion | where |
|---|---|
| fat task, residual, cut arcs, productivity; sets given by hand | `fat` |
| direct, staggered, searched, and which of them when | `strategies` |
| ▷-chains of blocks, whole blocks (Lemma 2), the repaired condition of Theorem 6 | `chains`, `strategies` |
| goals, sets that grow, files and bytes | `growth` |
| all sets of a small dag | `strategies` |
| along an execution | `fat_tasks`; for askers, `eligo.allocating.by_batch`; a whole dag, `eligo.simulation.deals` |
| Pegasus labels, Snakemake groups, DAGMan nodes | `export` |

docs/understand/clusters.md tells the story.
"""

from eligo.clusters.fat import FatTask, fat_task
from eligo.clusters.fat_tasks import Clusters, cluster

__all__ = ["Clusters", "FatTask", "cluster", "fat_task"]
