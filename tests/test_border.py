"""Objects of other libraries: graphs of networkx, rustworkx and Dask become workflows, and workflows such graphs."""

import json
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import networkx
import numpy as np
import pytest
import rustworkx

import eligo
from conftest import GOLDEN, golden_dag
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


def test_parents_may_be_any_collection() -> None:
    """Nothing but a list of tasks is taken for one, and nothing is dropped on the way."""
    for needs in (range(1, 2), {1: 0}.keys(), {1}, (1,), iter([1]), deque([1]), np.array([1])):
        assert list(as_workflow({1: [], 2: needs}).dag.arcs()) == [(1, 2)]
    for wrong in (None, "1", 1, b"1"):
        with pytest.raises(InputError, match=r"the dependencies of '2' must be a list of tasks"):
            as_workflow({1: [], 2: wrong})


def test_views_of_a_graph_are_none() -> None:
    graph = networkx.DiGraph([("a", "b")])
    for view in (graph.pred, graph.adj, graph.nodes, graph.edges):
        with pytest.raises(InputError, match="is not a workflow"):
            as_workflow(view)


def test_mappings_to_parents() -> None:
    assert as_workflow({"a": [], "b": ("a",), "c": {"a"}, "d": frozenset()}).dag == DAG
    assert len(as_workflow({})) == 0


@pytest.mark.parametrize("thing", [None, 3, [("a", "b")], object()])
def test_what_is_no_workflow(thing: object) -> None:
    with pytest.raises(InputError, match=rf"^{type(thing).__name__} is not a workflow: give a Workflow, a Dag, "):
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
    with pytest.raises(InputError, match="an undirected graph does not say which task depends on which"):
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
    with pytest.raises(InputError, match="an undirected graph does not say which task depends on which"):
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

    with pytest.raises(InputError, match=r"^expected a Dask graph, got Empty$"):
        from_dask(Empty())
    for wrong in (3, dask._task_spec.DataNode("a", 1)):
        with pytest.raises(InputError, match="expected a Dask graph"):
            from_dask(wrong)
    for circle in ({"a": (abs, "b"), "b": (abs, "a")}, {"a": "a"}):
        with pytest.raises(CycleError):
            from_dask(circle)


def test_a_dask_graph_is_one_by_its_type_or_by_what_is_said() -> None:
    """A dict of tuples is a table of functions, in which every parent must be a task."""
    legacy = {"x": 1, "y": (abs, "x"), "z": (sum, ["x", "y"])}
    with pytest.raises(
        InputError, match=r"the value of 'x' must be .*, got 1 \(for a Dask graph, give eligo.from_dask\(graph\)\)"
    ):
        as_workflow(legacy)
    flow = eligo.from_dask(legacy)
    assert list(flow.dag.arcs()) == [("x", "y"), ("x", "z"), ("y", "z")]
    assert as_workflow(flow) is flow
    assert as_workflow(dict(flow.nodes)).dag == flow.dag


def test_a_dask_task_that_refers_to_nothing() -> None:
    task = dask._task_spec.Task("total", abs, dask._task_spec.TaskRef("prat"))
    with pytest.raises(
        UnknownTaskError, match=r"no task named 'prat', which task 'total' depends on; did you mean 'part'\?"
    ):
        as_workflow({"part": dask._task_spec.DataNode("part", 1), "total": task})


# Tables of functions


@pytest.mark.parametrize("name", ["plan", "priorities", "Execution", "batch"])
def test_every_door_takes_a_table_of_functions_and_refuses_unknown_parents(name: str) -> None:
    DOORS[name]({"typo": (list, []), "n": (len, ["typo"])})
    with pytest.raises(UnknownTaskError) as caught:
        DOORS[name]({"typo": (list, []), "n": (len, ["typo"]), "oops": (len, ["tpyo"])})
    assert str(caught.value) == "there is no task named 'tpyo', which task 'oops' depends on; did you mean 'typo'?"
    assert (caught.value.name, caught.value.task) == ("tpyo", "oops")


def test_an_unknown_parent_of_another_type() -> None:
    with pytest.raises(UnknownTaskError, match=r"did you mean '1' \(type str, not int\)\?$"):
        as_workflow({"1": [], "b": [1]})


IS_PAIR, FOR_DASK = "must be (function, [parents]), got", "(for a Dask graph, give eligo.from_dask(graph))"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (len, "the value of 'n' is a function without a list of parents: write (len, [])"),
        (["x"], "'n' has parents but no function, unlike 'x': write (function, ['x'])"),
        ((len, "x"), f"the value of 'n' {IS_PAIR} ({len!r}, 'x'): write (len, ['x']) {FOR_DASK}"),
        ([len, ["x"]], f"the value of 'n' {IS_PAIR} [{len!r}, ['x']]: write (len, ['x']) {FOR_DASK}"),
        ((len,), f"the value of 'n' {IS_PAIR} ({len!r},): write (len, []) {FOR_DASK}"),
        (5, f"the value of 'n' {IS_PAIR} 5 {FOR_DASK}"),
        ((max, {"x", "y"}), "the parents of 'n' are a set, which has no order: use a list"),
    ],
)  # fmt: skip
def test_a_value_that_is_not_a_function_with_its_parents(value: object, said: str) -> None:
    for door in (eligo.plan, eligo.run):
        with pytest.raises(InputError) as caught:
            door({"x": (list, []), "y": (list, []), "n": value})
        assert str(caught.value) == said


def test_functions_may_be_tasks() -> None:
    assert as_workflow({len: [], max: [], min: (len, max)}).dag.parents(min) == (len, max)
    with pytest.raises(UnknownTaskError, match="no task named '<built-in function max>', which task"):
        as_workflow({len: [], min: [max]})


def test_no_library_is_imported_for_what_is_not_its_own() -> None:
    code = (
        "import sys; from eligo.dag import Dag; from eligo.border import as_workflow\n"
        "as_workflow(Dag.from_arcs([])); as_workflow({'a': []})\n"
        "try: as_workflow(3)\nexcept ValueError: pass\n"
        "print(*{'networkx', 'rustworkx', 'dask'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "\n"


# Every public function lets the same things in

DOORS: dict[str, Callable[[Any], object]] = {
    "plan": eligo.plan,
    "verify": lambda flow: eligo.verify(flow, {}),
    "judge": lambda flow: eligo.judge(flow, []),
    "explain": eligo.explain,
    "batch": eligo.batch,
    "cluster": lambda flow: eligo.cluster(flow, 1),
    "fat_task": lambda flow: eligo.fat_task(flow, []),
    "deal": lambda flow: eligo.deal(flow, [1]),
    "Execution": eligo.Execution,
    "allocator": lambda flow: eligo.allocator("fifo", flow),
    "priorities": eligo.priorities,
}


@pytest.mark.parametrize("name", DOORS)
@pytest.mark.parametrize("thing", [None, 3, 2.5, [("a", "b")], object(), {"a": 1.5}.keys()])
def test_what_is_no_workflow_gets_one_clear_error(name: str, thing: object) -> None:
    with pytest.raises(InputError, match="is not a workflow: give a Workflow, a Dag, the path of a file"):
        DOORS[name](thing)


def graphs() -> dict[str, Any]:
    """The same dag of objects in every form: 1 needs nothing, (2, "b") and frozenset({3}) need 1, and 4.5 needs both."""
    nodes: list[Any] = [1, (2, "b"), frozenset({3}), 4.5]
    arcs = [(nodes[0], nodes[1]), (nodes[0], nodes[2]), (nodes[1], nodes[3]), (nodes[2], nodes[3])]
    digraph: networkx.DiGraph[Any] = networkx.DiGraph()
    digraph.add_nodes_from(nodes)
    digraph.add_edges_from(arcs)
    other: rustworkx.PyDiGraph[Any, None] = rustworkx.PyDiGraph()
    other.add_nodes_from(nodes)
    other.add_edges_from_no_data([(0, 1), (0, 2), (1, 3), (2, 3)])
    parents = {node: [u for u, v in arcs if v == node] for node in nodes}
    keys = from_dask({1: 0, (2, "b"): (abs, 1), "c": (abs, 1), 4.5: (max, (2, "b"), "c")})
    return {
        "networkx": digraph,
        "rustworkx": other,
        "mapping": parents,
        "dask": keys,
        "dag": as_workflow(parents).dag,
    }


@pytest.mark.parametrize("form", graphs())
def test_tasks_of_a_graph_stay_the_users_own_objects(form: str, tmp_path: Path) -> None:
    graph = graphs()[form]
    nodes = list(as_workflow(graph).dag.tasks)
    found = eligo.plan(graph)
    assert sorted(map(nodes.index, found.order)) == [0, 1, 2, 3]
    assert all(any(task is node for node in nodes) for task in found.order)
    assert eligo.verify(graph, found).holds
    assert eligo.verify(graph, json.loads(json.dumps(found.document()))).holds
    assert eligo.judge(graph, found.order).verdict == "optimal"
    assert eligo.explain(graph, found)[0] == str(found)
    assert eligo.batch(graph).tasks == (1,)
    assert eligo.cluster(graph, 2).tasks[0] == 1
    assert json.dumps(eligo.cluster(graph, 2).document())
    assert set(eligo.priorities(graph)) == set(nodes)
    assert sorted(map(nodes.index, eligo.deal(graph, [2]).order)) == [0, 1, 2, 3]
    game = eligo.Execution(graph)
    live = eligo.allocator("balanced", graph, game)
    while not game.finished:
        for grant in live.hand_out([eligo.Ask("ann"), eligo.Ask("bob")]):
            game.complete(*grant.tasks)
    eligo.write(as_workflow(graph), tmp_path / "flow.json")
    assert eligo.read(tmp_path / "flow.json").dag.tasks == as_workflow(graph).dag.labels


def test_graphs_of_objects_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from eligo.plotting import draw_dealing, draw_explanation, draw_fat_task, save_figure

    graph = graphs()["networkx"]
    save_figure(draw_explanation(eligo.plan(graph), graph), tmp_path / "plan.svg")
    assert "(2," in (tmp_path / "plan.svg").read_text("utf-8")
    draw_fat_task(graph, eligo.cluster(graph, 2))
    draw_dealing(graph, eligo.deal(graph, [2]))


def test_an_impossible_dag_of_objects_tells_its_conflict() -> None:
    """The smallest kind of dag without a best order, under numbers for names."""
    case = next(case for case in GOLDEN if case.get("verdict") == "impossible" or case["name"] == "Sweep.B1+B2")
    dag = golden_dag(case)
    numbers = Dag.from_arrays(len(dag), dag.tails, dag.child, list(range(len(dag))))
    found = eligo.plan(numbers)
    assert found.verdict == eligo.plan(dag).verdict
    assert eligo.explain(numbers, found) == eligo.explain(dag, eligo.plan(dag))
