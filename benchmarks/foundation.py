"""The dag and the profile: against rustworkx, networkx and one Kahn pass."""

import sys
from pathlib import Path

import networkx
import numpy as np
import rustworkx

from benchmarks.timing import command_seconds, fastest, heading, row, shuffled, verdict
from eligo.dag import Dag
from eligo.families import out_mesh, random_layered
from eligo.kernels import graph
from eligo.theory.eligibility import eligible_counts

WIDTHS = (34, 10, 10, 9, 9, 8)


def kahn(dag: Dag) -> None:
    """One topological pass with levels over an existing dag."""
    level, order = np.diff(dag.parent_ptr), np.empty(len(dag), np.int32)
    graph.kahn(dag.child_ptr, dag.child, level, order, np.empty(1, np.int32))


def million_dags() -> dict[str, Dag]:
    """A million tasks, two shapes, numbered at random."""
    return {
        "out-mesh 1e6": shuffled(out_mesh(1413)),
        "layered 1e6": shuffled(random_layered(1000, 1000, seed=1, degree=5.2)),
    }


def run() -> None:
    """Print the foundation's figures."""
    heading("Topological order with levels", ("dag", "ours ms", "peer ms", "ratio", "target", ""), WIDTHS)
    for name, dag in million_dags().items():
        peer = rustworkx.PyDiGraph()
        peer.add_nodes_from(range(len(dag)))
        peer.add_edges_from_no_data(list(zip(dag.tails.tolist(), dag.child.tolist(), strict=True)))
        ours, theirs = fastest(lambda d=dag: kahn(d), lambda p=peer: rustworkx.topological_sort(p))
        target = 8.0
        row((f"{name} vs rustworkx", ours * 1e3, theirs * 1e3, theirs / ours, f">= {target:g}",
             verdict(theirs / ours >= target)), WIDTHS)  # fmt: skip
        del peer
        pass_, e = fastest(lambda d=dag: kahn(d), lambda d=dag: eligible_counts(d, d.order))
        row((f"{name}: E(t) vs Kahn pass", e * 1e3, pass_ * 1e3, e / pass_, "<= 4", verdict(e / pass_ <= 4)), WIDTHS)
        tails, heads = dag.tails, dag.child.copy()
        build, nx = fastest(
            lambda d=dag, t=tails, h=heads: Dag.from_arrays(len(d), t, h),
            lambda d=dag, t=tails, h=heads: _networkx(d, t, h), rounds=2,
        )  # fmt: skip
        row((f"{name}: build vs networkx", build * 1e3, nx * 1e3, nx / build, "< 1 s", verdict(build < 1)), WIDTHS)
    seconds = command_seconds(str(Path(sys.executable).with_name("eligo")), "--version")
    row(("eligo --version, cold shell", seconds * 1e3, "", "", "<= 150", verdict(seconds <= 0.15)), WIDTHS)


def _networkx(dag: Dag, tails: np.ndarray, heads: np.ndarray) -> None:
    digraph = networkx.DiGraph()
    digraph.add_nodes_from(range(len(dag)))
    digraph.add_edges_from(zip(tails.tolist(), heads.tolist(), strict=True))
