"""Batched scheduling: r requests arrive together; which r eligible tasks leave the most tasks eligible?

| notion | where |
|---|---|
| the problem BICSO, its decision version, batches during an execution | `states` |
| the bipartite residual of a state, kept up to date | `residual` |
| one component: trees, subsets, the knapsack BBDP | `component_solver` |
| large components: orders and exchanges; search, integer program | `greedy`, `program` |
| expansive dags within a factor of 2 | `greedy` |
| components together, chains of priority; the whole choice | `best` |
| requests that arrive together, served live | `eligo.allocating.by_batch` |
| the batched game | `eligo.simulation.batched` |
| why it is NP-hard, as code | `papers.hardness`, in the repository |
"""

from eligo.batches.states import Batch, Batches, batch, decide

__all__ = ["Batch", "Batches", "batch", "decide"]
