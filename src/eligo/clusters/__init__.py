"""Fat tasks: clusters of tasks as large as the client that is to run them, taken so that what is left stays good.

| notion | where |
|---|---|
| fat task, residual, cut arcs, productivity; sets given by hand | `fat` |
| direct, staggered, donor, searched, and which of them when | `strategies` |
| ▷-chains of blocks, whole blocks (Lemma 2), the repaired condition of Theorem 6 | `chains`, `staggering` |
| goals, sets that grow, all sets of a small dag | `goals`, `growth`, `enumeration` |
| files and bytes | `traffic` |
| dealing to clients, and taking back whole, in part or never | `dealing`; a whole dag in `rounds` |
| Pegasus labels, Snakemake groups, DAGMan nodes | `export` |

docs/clusters.md tells the story.
"""

from eligo.clusters.clustering import cluster
from eligo.clusters.dealing import Dealer
from eligo.clusters.fat import FatTask, fat_task
from eligo.clusters.rounds import Dealing, deal

__all__ = ["Dealer", "Dealing", "FatTask", "cluster", "deal", "fat_task"]
