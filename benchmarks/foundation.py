"""The dag and the profile: against rustworkx, networkx and one Kahn pass."""

import sys
from functools import partial
from pathlib import Path

import networkx
import numpy as np
import rustworkx

from benchmarks.timing import command_seconds, fastest, heading, row, shuffled, verdict
from eligo.dag import Dag
from eligo.families import out_mesh, random_layered
from eligo.kernels import graph
from eligo.theory.eligibility import eligible_counts

WIDTHS = (36, 10, 10, 9, 9, 8)


def kahn(dag: Dag) -> None:
    """One topological pass with levels over an existing dag."""
    level, order = np.diff(dag.parent_ptr), np.empty(len(dag), np.int32)
    graph.kahn(dag.child_ptr, dag.child, level, order, np.empty(1, np.int32))


def million_dags() -> dict[str, Dag]:
    """A million tasks, two shapes, numbered at random."""
    return {
        "out-mesh 1e6": shuffled(out_mesh(1413)),
        "layered 1e6": shuffled(random_layered(1000, 1000, seed=1, degree=5)),
    }


def run() -> None:
    """Print the foundation's figures."""
    heading("Topological order, E(t), building", ("dag", "ours ms", "peer ms", "ratio", "target", ""), WIDTHS)
    for name, dag in million_dags().items():
        _against_rustworkx(name, dag)
        one_pass, e = fastest(partial(kahn, dag), partial(eligible_counts, dag, dag.order))
        row(
            (f"{name}: E(t) vs Kahn", e * 1e3, one_pass * 1e3, e / one_pass, "<= 4", verdict(e / one_pass <= 4)), WIDTHS
        )
        ends = dag.tails, dag.child.copy()
        build, peer = fastest(partial(Dag.from_arrays, len(dag), *ends), partial(_networkx, len(dag), *ends), rounds=2)
        row((f"{name}: build vs networkx", build * 1e3, peer * 1e3, peer / build, "< 1 s", verdict(build < 1)), WIDTHS)
    seconds = command_seconds(str(Path(sys.executable).with_name("eligo")), "--version")
    row(("eligo --version, cold shell", seconds * 1e3, "", "", "<= 150", verdict(seconds <= 0.15)), WIDTHS)


def _against_rustworkx(name: str, dag: Dag) -> None:
    peer: rustworkx.PyDiGraph[int, None] = rustworkx.PyDiGraph()
    peer.add_nodes_from(range(len(dag)))
    peer.add_edges_from_no_data(list(zip(dag.tails.tolist(), dag.child.tolist(), strict=True)))
    ours, theirs = fastest(partial(kahn, dag), partial(rustworkx.topological_sort, peer))
    ratio = theirs / ours
    row((f"{name}: sort vs rustworkx", ours * 1e3, theirs * 1e3, ratio, ">= 8", verdict(ratio >= 8)), WIDTHS)


def _networkx(n: int, tails: np.ndarray, heads: np.ndarray) -> None:
    digraph: networkx.DiGraph[int] = networkx.DiGraph()
    digraph.add_nodes_from(range(n))
    digraph.add_edges_from(zip(tails.tolist(), heads.tolist(), strict=True))
