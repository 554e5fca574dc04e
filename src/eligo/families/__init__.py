"""The dags the theory is about: building blocks, trees, meshes, known computations, random dags.

Each family is a function that returns a `Dag` whose tasks are named by their numbers: for a
bipartite block the sources from left to right, then the sinks; for the others level by level,
unless said otherwise. `FAMILIES` lists them by name.

.. [1] Malewicz, Rosenberg, Yurkewych (2006): Toward a theory for scheduling dags in Internet-based
   computing. IEEE Trans. Comput. 55, 757-768.
.. [2] Hall, Rosenberg, Venkataramani (2006): A comparison of dag-scheduling strategies for
   Internet-based computing. Univ. of Massachusetts; see also 21st IEEE IPDPS (2007).
.. [3] Malewicz, Rosenberg (2005): On batch-scheduling dags for Internet-based computing. Euro-Par
   2005, LNCS 3648, 262-271.
.. [4] Cordasco, Malewicz, Rosenberg (2008): Extending IC-scheduling via the Sweep algorithm. 16th
   Euromicro PDP, 366-373. Sections are those of the long version.
.. [5] Sims, Cordasco, Rosenberg: On clustering tasks in IC-optimal dags.
"""

from collections.abc import Callable

from eligo.dag import Dag
from eligo.families.blocks import (
    bipartite_tree,
    clique_dag,
    cycle_dag,
    expansive_dag,
    m_dag,
    n_dag,
    planar_bipartite_tree,
    random_planar_bipartite_tree,
    w_dag,
)
from eligo.families.shapes import (
    Piece,
    butterfly,
    diamond,
    fork_join,
    grid,
    in_mesh,
    in_tree,
    laplace,
    matrix_multiplication,
    out_mesh,
    out_tree,
    parallel_prefix,
    random_composition,
    random_composition_blocks,
    random_dag,
    random_in_tree,
    random_layered,
    random_out_tree,
)

__all__ = [
    "FAMILIES", "Piece", "bipartite_tree", "butterfly", "clique_dag", "cycle_dag", "diamond", "expansive_dag",
    "fork_join", "grid", "in_mesh", "in_tree", "laplace", "m_dag", "matrix_multiplication", "n_dag", "out_mesh",
    "out_tree", "parallel_prefix", "planar_bipartite_tree", "random_composition", "random_composition_blocks",
    "random_dag", "random_in_tree", "random_layered", "random_out_tree", "random_planar_bipartite_tree", "w_dag",
]  # fmt: skip

FAMILIES: dict[str, Callable[..., Dag]] = {
    "w": w_dag,
    "m": m_dag,
    "n": n_dag,
    "cycle": cycle_dag,
    "clique": clique_dag,
    "bipartite-tree": bipartite_tree,
    "expansive": expansive_dag,
    "planar-bipartite-tree": planar_bipartite_tree,
    "random-planar-bipartite-tree": random_planar_bipartite_tree,
    "out-tree": out_tree,
    "in-tree": in_tree,
    "random-out-tree": random_out_tree,
    "random-in-tree": random_in_tree,
    "out-mesh": out_mesh,
    "in-mesh": in_mesh,
    "grid": grid,
    "butterfly": butterfly,
    "diamond": diamond,
    "prefix": parallel_prefix,
    "laplace": laplace,
    "matrix": matrix_multiplication,
    "fork-join": fork_join,
    "layered": random_layered,
    "random": random_dag,
    "composition": random_composition,
}
