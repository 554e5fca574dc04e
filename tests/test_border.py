"""Objects of other libraries: graphs of networkx, rustworkx and Dask become workflows, and workflows such graphs."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import dask
import networkx
import pytest
import rustworkx

from eligo.border import as_workflow
from eligo.dag import Dag
from eligo.errors import CycleError, InputError, UnknownTaskError
from eligo.interop.dask import from_dask
from eligo.interop.networkx import to_networkx
from eligo.interop.rustworkx import to_rustworkx
from eligo.workflow import Task, Workflow

#: a, then b and c, and one task alone
DAG = Dag.from_arcs([("a", "b"), ("a", "c")], tasks="abcd")
FLOW = Workflow(
    DAG,
    {
        "a": Task(name="a", command=("x", "y"), inputs=("f",), outputs=("g",), seconds=1.5, cores=2, memory=7),
        "b": Task(name="b", command="ls", category="list", priority=-3),
    },
    "mine",
    file_sizes={"f": 4},
)


def test_what_is_a_workflow_already() -> None:
    assert as_workflow(FLOW) is FLOW
    assert as_workflow(DAG).dag is DAG


def test_paths(tmp_path: Path) -> None:
    path = tmp_path / "flow.arcs"
    path.write_text("a b\n")
    assert as_workflow(path).dag == as_workflow(str(path)).dag == Dag.from_arcs([("a", "b")])


def test_mappings_of_any_objects_to_their_parents() -> None:
    nodes = {1: [], (1, "b"): [1], print: {1, (1, "b")}}
    assert as_workflow(nodes).dag.tasks == (1, (1, "b"), print)
    assert as_workflow(nodes).dag.parents(print) == (1, (1, "b"))
    with pytest.raises(UnknownTaskError, match="no task named '3'"):
        as_workflow({1: [], 2: [1, 3]})


def test_mappings_to_parents() -> None:
    assert as_workflow({"a": [], "b": ("a",), "c": {"a"}, "d": frozenset()}).dag == DAG
    assert len(as_workflow({})) == 0


@pytest.mark.parametrize("thing", [None, 3, [("a", "b")], object()])
def test_what_is_no_workflow(thing: object) -> None:
    with pytest.raises(InputError, match=rf"^{type(thing).__name__} is no workflow: give a Workflow, a Dag, "):
        as_workflow(thing)


# networkx


def test_networkx_there_and_back() -> None:
    assert as_workflow(to_networkx(FLOW)) == FLOW
    assert as_workflow(to_networkx(DAG)).dag == DAG


def test_networkx_nodes_of_any_kind_and_attributes_of_others() -> None:
    graph: networkx.DiGraph[Any] = networkx.DiGraph([((1, 2), "x"), (3, "x")])
    graph.nodes[3].update(seconds="long", memory=-1, cores=True, category=7, command=[], inputs="f", color="red")
    graph.nodes["x"]["seconds"] = 2
    flow = as_workflow(graph)
    assert flow.dag.tasks == ((1, 2), "x", 3)
    assert dict(flow.details) == {"x": Task(name="x", seconds=2)}


def test_networkx_graphs_that_are_no_workflows() -> None:
    with pytest.raises(InputError, match="an undirected graph has no parents and children: give a DiGraph"):
        as_workflow(networkx.Graph([("a", "b")]))
    with pytest.raises(CycleError):
        as_workflow(networkx.DiGraph([("a", "b"), ("b", "a")]))


# rustworkx


def test_rustworkx_there_and_back() -> None:
    assert as_workflow(to_rustworkx(FLOW)).dag == DAG
    assert as_workflow(to_rustworkx(DAG)).dag == DAG


def test_rustworkx_nodes_of_any_kind() -> None:
    graph: rustworkx.PyDiGraph[Any, Any] = rustworkx.PyDiGraph()
    graph.add_nodes_from([{"x": 1}, 2, 3])
    graph.add_edge(2, 0, None)
    graph.remove_node(1)
    assert list(as_workflow(graph).dag.arcs()) == [(2, 0)]  # indices: a dict cannot be looked up


def test_rustworkx_graphs_that_are_no_workflows() -> None:
    with pytest.raises(InputError, match="an undirected graph has no parents and children: give a PyDiGraph"):
        as_workflow(rustworkx.PyGraph())


# Dask


def test_dask_graphs_as_dicts() -> None:
    """Keys are strings and tuples; what is no key is data.

    ('x', 0)  ('x', 1)
          \\   /
          total
    """
    flow = from_dask({"total": (sum, [("x", 0), ("x", 1), "data"]), ("x", 0): 1, ("x", 1): (abs, -2)})
    arcs = [(("x", 0), "total"), (("x", 1), "total")]
    assert flow.dag == Dag.from_arcs(arcs, tasks=["total", ("x", 0), ("x", 1)])
    assert flow.task("total").category == "total"


def test_dask_collections() -> None:
    parts = [dask.delayed(abs, pure=True)(i) for i in range(3)]  # type: ignore[attr-defined]
    total = dask.delayed(sum, pure=True)(parts)  # type: ignore[attr-defined]
    flow = from_dask(total)
    assert flow.dag.sinks == (total.key,)
    assert set(flow.dag.parents(total.key)) == {part.key for part in parts}
    assert flow.task(parts[0].key).category == "abs"
    assert as_workflow(total.__dask_graph__()).dag == flow.dag


def test_dask_graphs_that_are_no_workflows() -> None:
    class Empty:
        def __dask_graph__(self) -> None:
            """Nothing to compute."""

    with pytest.raises(InputError, match=r"^Empty has no graph of Dask's$"):
        from_dask(Empty())
    with pytest.raises(CycleError):
        from_dask({"a": (abs, "b"), "b": (abs, "a")})


def test_no_library_is_imported_for_what_is_not_its_own() -> None:
    code = (
        "import sys; from eligo.dag import Dag; from eligo.border import as_workflow\n"
        "as_workflow(Dag.from_arcs([])); as_workflow({'a': []})\n"
        "try: as_workflow(3)\nexcept ValueError: pass\n"
        "print(*{'networkx', 'rustworkx', 'dask'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"
