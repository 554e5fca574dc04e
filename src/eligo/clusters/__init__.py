"""Fat tasks: clusters of tasks as large as the client that is to run them, taken so that what is left stays good.

| notion | where |
|---|---|
| fat task, residual, cut arcs, productivity; sets given by hand | `fat` |
| direct, staggered, searched, and which of them when | `strategies`; how far to look: `limits` |
| ▷-chains of blocks, whole blocks (Lemma 2), the repaired condition of Theorem 6 | `chains`, `staggering` |
| goals, sets that grow, all sets of a small dag | `goals`, `growth`, `enumeration` |
| files and bytes | `traffic` |
| along an execution | `dealing`; for those who ask, `eligo.allocating.by_cluster`; a whole dag, `eligo.simulation.dealing` |
| Pegasus labels, Snakemake groups, DAGMan nodes | `export` |

docs/clusters.md tells the story.
"""

from eligo.clusters.clustering import cluster
from eligo.clusters.dealing import Clusters
from eligo.clusters.fat import FatTask, fat_task

__all__ = ["Clusters", "FatTask", "cluster", "fat_task"]
