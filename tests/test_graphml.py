"""GraphML: what networkx, igraph and yEd write is read, what is written is read back."""

import io
import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eligo.dag import Dag
from eligo.errors import CycleError, FormatError, InputError
from eligo.formats import graphml
from eligo.workflow import Task, Workflow
from format_cases import accepts_or_refuses, damaged, names, workflows

IGRAPH = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
  <key id="v_name" for="node" attr.name="name" attr.type="string"/>
  <key id="v_seconds" for="node" attr.name="seconds" attr.type="double"><default>9</default></key>
  <key id="v_size" for="node" attr.name="size" attr.type="double"/>
  <graph id="G" edgedefault="directed">
    <node id="n0"><data key="v_name">x</data><data key="v_seconds">1</data><data key="v_size">7</data></node>
    <node id="n1"><data key="v_name">y y</data></node>
    <edge source="n0" target="n1"/>
  </graph>
</graphml>
"""
YED = """<?xml version="1.0" encoding="UTF-8" standalone="no"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:y="http://www.yworks.com/xml/graphml">
  <key for="port" id="d0" yfiles.type="portgraphics"/>
  <key for="node" id="d6" yfiles.type="nodegraphics"/>
  <key attr.name="description" attr.type="string" for="node" id="d5"/>
  <graph edgedefault="directed" id="G">
    <data key="d0"/>
    <node id="n0"><data key="d5">!</data><data key="d6"><y:ShapeNode><y:Geometry height="30"/>
      <y:NodeLabel alignment="center"> first<y:LabelModel/> </y:NodeLabel></y:ShapeNode></data></node>
    <node id="n1"><data key="d6"><y:ShapeNode><y:NodeLabel>second</y:NodeLabel></y:ShapeNode></data><port name="p"/></node>
    <edge id="e0" source="n0" target="n1" targetport="p"><data key="d10"><y:PolyLineEdge/></data></edge>
  </graph>
  <data key="d7"><y:Resources/></data>
</graphml>
"""


def graph(inside: str, attributes: str = 'edgedefault="directed"') -> str:
    return f"<graphml>\n<graph {attributes}>\n{inside}\n</graph></graphml>"


def test_igraph() -> None:
    """Names are data, a default fills in what is missing, and data of other names are passed over."""
    flow = graphml.parse(IGRAPH)
    assert flow.dag == Dag.from_arcs([("x", "y y")])
    assert dict(flow.details) == {"x": Task(name="x", seconds=1.0), "y y": Task(name="y y", seconds=9.0)}


def test_yed() -> None:
    assert graphml.parse(YED).dag == Dag.from_arcs([("first", "second")])


def test_networkx_reads_and_writes_the_same() -> None:
    nx = pytest.importorskip("networkx")
    digraph = nx.DiGraph(name="my <graph>")
    digraph.add_node("a b", seconds=2.5, command="x & y")
    digraph.add_node(3, priority=4)
    digraph.add_edge("a b", 3, weight=2)
    file = io.BytesIO()
    nx.write_graphml_xml(digraph, file)
    flow = graphml.parse(file.getvalue().decode())
    assert flow.name == "my <graph>"
    assert list(flow.dag.arcs()) == [("a b", "3")]
    assert flow.task("a b") == Task(name="a b", seconds=2.5, command="x & y")
    assert flow.task("3").priority == 4
    back = nx.parse_graphml(graphml.generate(flow))
    assert dict(back.nodes(data=True)) == {
        "n0": {"name": "a b", "seconds": 2.5, "command": "x & y"},
        "n1": {"name": "3", "priority": 4},
    }
    assert list(back.edges) == [("n0", "n1")]


@pytest.mark.parametrize("labels", [("x", "x"), ("x", None)], ids=["twice", "missing"])
def test_names_that_do_not_tell_tasks_apart_are_not_taken(labels: tuple[str | None, str | None]) -> None:
    data = ["" if label is None else f"<data key='l'>{label}</data>" for label in labels]
    nodes = f"<node id='a'>{data[0]}</node><node id='b'>{data[1]}</node>"
    assert graphml.parse(f"<graphml><key id='l' for='node' attr.name='label'/>{graph(nodes)[9:]}").dag.tasks == (
        "a",
        "b",
    )


def test_an_edge_may_have_a_direction_of_its_own() -> None:
    text = graph(
        "<node id='a'/><node id='b'/><edge source='a' target='b' directed='true'/>", "edgedefault='undirected'"
    )
    assert graphml.parse(text).dag.arc_count == 1


def detail(key: str, text: str) -> str:
    keys = f"<key id='k' for='node' attr.name='{key}'/>"
    return graph(f"<node id='a'><data key='k'>{text}</data></node>").replace("<graphml>", f"<graphml>{keys}")


WRONG = {
    graph("\n<edge source='a' target='b'/>", "edgedefault='undirected'"): "line 4: an edge has no direction",
    graph("\n<edge source='a' target='b'/>", ""): "line 4: an edge has no direction",
    graph("<node id='a'/>\n<edge source='a' target='a' directed='false'/>"): "line 4: an edge has no direction",
    graph("<node id='a'/>\n<node id='a'/>"): "line 4: the task 'a' is named twice",
    graph("<node id='a'/>\n<edge source='a' target='b'/>"): "line 4: there is no task named 'b'",
    graph("<edge source='a'/>"): "line 3: <edge> has no target",
    graph("<node/>"): "line 3: <node> has no id",
    graph("<hyperedge/>"): "line 3: a hyperedge is no arc between two tasks",
    graph("<node id='g'>\n<graph><node id='a'/></graph></node>"): "line 3: node 'g' holds a graph of its own",
    graph("</graph>\n<graph>"): "line 4: a second graph begins",
    "<graphml/>": "there is no <graph>",
    "<svg/>": "line 1: the file begins with <svg>, not <graphml>",
    detail("seconds", "soon"): "line 3: \"seconds\" of 'a' is 'soon', and should be a number",
    detail("seconds", "-1"): "line 3: task 'a': seconds is -1.0, which is no amount",
    detail("seconds", "nan"): "line 3: task 'a': seconds is nan, which is no amount",
    detail("memory", "1.5"): "line 3: \"memory\" of 'a' is '1.5', and should be a whole number",
    detail("memory", "-1"): "line 3: \"memory\" of 'a' is -1, and should be a whole number of bytes",
    detail("priority", "high"): "line 3: \"priority\" of 'a' is 'high', and should be a whole number",
    detail("inputs", "f g"): "line 3: \"inputs\" of 'a' is not valid JSON",
    detail("inputs", '"f"'): "line 3: \"inputs\" of 'a' is a string, and should be a list of strings",
    "<!DOCTYPE graphml [<!ENTITY x 'y'>]><graphml/>": "line 1: the document declares entities, which are not read",
}  # fmt: skip


@pytest.mark.parametrize("text", WRONG)
def test_graphs_that_do_not_fit(text: str) -> None:
    with pytest.raises(InputError) as caught:
        graphml.parse(text)
    assert WRONG[text] in str(caught.value)


def test_a_cycle() -> None:
    nodes = "<node id='a'/><node id='b'/>"
    with pytest.raises(CycleError):
        graphml.parse(graph(f"{nodes}<edge source='a' target='b'/><edge source='b' target='a'/>"))


free_text = names | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
known = {
    "command": free_text | st.lists(free_text, min_size=1, max_size=3).map(tuple),
    "seconds": st.floats(0, 1e300),
    "cores": st.integers(0, 2**60) | st.floats(0, 1e300),
    "memory": st.integers(0, 2**63 - 1),
    "category": free_text,
    "priority": st.integers(-(2**63), 2**63),
}


@settings(max_examples=60)
@given(flow=workflows(names, free_text, **known), name=st.none() | free_text)
def test_everything_is_read_back(flow: Workflow, name: str | None) -> None:
    flow = replace(flow, name=name)
    try:
        text = graphml.generate(flow)
    except FormatError as error:
        assert re.match(r"(task ['\"]|the workflow).* holds .*, for which XML has no place", error.message)  # noqa: PT017
        return
    assert replace(graphml.parse(text), origin=None) == flow
    assert graphml.sniff(text)


@given(
    text=damaged(
        [IGRAPH, YED], ["<node>", "<graph>", "</graph>", "<data key='v_name'>", "&#0;", "<key/>", "'", '"', "nan"]
    )
)
def test_damaged_graphs(text: str) -> None:
    accepts_or_refuses(graphml.parse, text)


@given(text=st.text(max_size=30))
def test_any_text(text: str) -> None:
    graphml.sniff(text)
    accepts_or_refuses(graphml.parse, text)
