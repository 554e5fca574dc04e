"""Fat tasks: clusters of tasks as large as the client that is to run them, taken so that what is left stays good.

| notion | where |
|---|---|
| fat task, residual, cut arcs, productivity; sets given by hand | `fat` |
| direct, staggered, searched, and which of them when | `strategies` |
| ▷-chains of blocks, whole blocks (Lemma 2), the repaired condition of Theorem 6 | `chains`, `strategies` |
| goals, sets that grow, files and bytes | `growth` |
| all sets of a small dag | `strategies` |
| along an execution | `clustering`; for askers, `eligo.allocating.by_cluster`; a whole dag, `eligo.simulation.dealing` |
| Pegasus labels, Snakemake groups, DAGMan nodes | `export` |

docs/clusters.md tells the story.
"""

from eligo.clusters.clustering import Clusters, cluster
from eligo.clusters.fat import FatTask, fat_task

__all__ = ["Clusters", "FatTask", "cluster", "fat_task"]
