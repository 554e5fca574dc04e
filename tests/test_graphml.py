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


def yed_node(id: str, label: str, inside: str = "") -> str:
    kind = ' yfiles.foldertype="group"' if inside else ""
    shape = f"<y:ShapeNode><y:NodeLabel>{label}<y:LabelModel>\n <y:X/>\n</y:LabelModel></y:NodeLabel></y:ShapeNode>"
    nested = f'<graph edgedefault="directed" id="{id}:">{inside}</graph>' if inside else ""
    return f'<node id="{id}"{kind}><data key="d6">{shape}</data>{nested}</node>'


def yed(*inside: str) -> str:
    head, tail = YED[: YED.index("<node")], YED[YED.index("  </graph>") :]
    return "\n".join([head, *inside, tail])


def yed_edge(source: str, target: str, arrows: str = 'source="none" target="standard"') -> str:
    return f'<edge source="{source}" target="{target}"><data key="d10"><y:Arrows {arrows}/></data></edge>'


def remarks(flow: Workflow) -> tuple[str, ...]:
    assert flow.origin is not None
    return flow.origin.remarks


def test_a_label_of_several_lines_is_a_name_of_one() -> None:
    text = yed(yed_node("n0", "align\nthe\r\n reads "), yed_node("n1", "count"), yed_edge("n0", "n1"))
    flow = graphml.parse(text)
    assert list(flow.dag.arcs()) == [("align the reads", "count")]
    assert remarks(flow) == ()


def test_a_label_that_nodes_share_has_the_id_after_it_and_a_node_without_one_its_id() -> None:
    nodes = (yed_node("n0", "sort"), yed_node("n1", "sort"), yed_node("n2", ""), yed_node("n3", "all"))
    assert graphml.parse(yed(*nodes)).dag.tasks == ("sort n0", "sort n1", "n2", "all")


GROUPS = yed(
    yed_node("n0", "fetch"),
    yed_node("n1", "Group 1", yed_node("n1::n0", "a") + yed_node("n1::n1", "Group 2", yed_node("n1::n1::n0", "b"))
             + yed_edge("n1::n0", "n1::n1")),
    yed_node("n2", "report"),
    yed_edge("n0", "n1"),
    yed_edge("n1", "n2"),
)  # fmt: skip


def test_groups_are_no_tasks_and_an_edge_at_one_stands_for_edges_at_all_in_it() -> None:
    flow = graphml.parse(GROUPS)
    assert flow.dag.tasks == ("fetch", "a", "b", "report")
    arcs = {("fetch", "a"), ("fetch", "b"), ("a", "b"), ("a", "report"), ("b", "report")}
    assert set(flow.dag.arcs()) == arcs
    assert remarks(flow) == (
        "groups of nodes, not read as tasks: 2",
        "edges of groups, read as edges of all tasks in them: 3",
    )


def test_nodes_in_groups_are_given_priorities_in_place() -> None:
    flow = graphml.parse(GROUPS)
    text = graphml.prioritised(GROUPS, flow, {name: i for i, name in enumerate(flow.dag.tasks)})
    assert text is not None
    again = graphml.parse(text)
    assert again.dag == flow.dag
    assert [again.task(name).priority for name in again.dag.tasks] == [0, 1, 2, 3]


def test_a_group_that_is_described_as_a_task_is_refused() -> None:
    text = GROUPS.replace('<key for="port"', '<key id="s" for="node" attr.name="seconds"/><key for="port"')
    text = text.replace('yfiles.foldertype="group">', 'yfiles.foldertype="group"><data key="s">3</data>', 1)
    with pytest.raises(FormatError, match="node 'n1' contains a graph and cannot have 'seconds'"):
        graphml.parse(text)


def test_arrowheads_that_say_something_else_are_told() -> None:
    nodes = (yed_node("n0", "a"), yed_node("n1", "b"), yed_node("n2", "c"))
    backward, headless = 'source="standard" target="none"', 'source="none" target="none"'
    flow = graphml.parse(yed(*nodes, yed_edge("n0", "n1", backward), yed_edge("n1", "n2", headless)))
    assert list(flow.dag.arcs()) == [("a", "b"), ("b", "c")]
    assert remarks(flow) == (
        "edges without an arrowhead, read from source to target: 1",
        "edges with an arrowhead only at the source, read from source to target: 1",
    )


def test_data_that_are_not_read_are_named() -> None:
    keys = "<key id='w' for='edge' attr.name='weight'/><key id='o' for='node' attr.name='disabled'/>"
    nodes = "<node id='a'><data key='o'>true</data></node><node id='b'><data key='o'> </data></node>"
    text = graph(f"{nodes}<edge source='a' target='b'><data key='w'>2</data></edge>")
    flow = graphml.parse(text.replace("<graphml>", f"<graphml>{keys}"))
    assert remarks(flow) == ("ignored data: disabled (nodes), weight (edges)",)


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
    graph("\n<edge source='a' target='b'/>", "edgedefault='undirected'"): "line 4: an undirected edge",
    graph("\n<edge source='a' target='b'/>", ""): "line 4: an undirected edge",
    graph("<node id='a'/>\n<edge source='a' target='a' directed='false'/>"): "line 4: an undirected edge",
    graph("<node id='a'/>\n<node id='a'/>"): "line 4: duplicate task 'a'",
    graph("<node id='a'/>\n<edge source='a' target='b'/>"): "line 4: there is no task named 'b'",
    graph("<edge source='a'/>"): "line 3: <edge> has no attribute target",
    graph("<node/>"): "line 3: <node> has no attribute id",
    graph("<hyperedge/>"): "line 3: hyperedges are not supported",
    graph("<node id='g'><graph/></node>\n<node id='g'/>"): "line 4: duplicate task 'g'",
    graph("<node id='g'><graph/></node><node id='a'/>\n<edge source='a' target='g'/>"): "line 4: an edge ends at the empty",
    graph("<node id='g'><graph><node id='a'/></graph></node>\n<edge source='a' target='g'/>"): "line 4: an edge joins 'a'",
    graph("<node id='g'><graph><hyperedge/></graph></node>"): "line 3: hyperedges are not supported",
    graph("<node id='g'><graph><edge source='a' target='b'/></graph></node>"): "line 3: an undirected edge",
    graph("</graph>\n<graph>"): "line 4: the file has a second graph",
    "<graphml/>": "no <graph> element",
    "<svg/>": "line 1: not GraphML: the root element must be <graphml>, got <svg>",
    detail("seconds", "soon"): "line 3: \"seconds\" of 'a' must be a number, got 'soon'",
    detail("seconds", "-1"): "line 3: task 'a': seconds must be non-negative and finite, got -1.0",
    detail("seconds", "nan"): "line 3: task 'a': seconds must be non-negative and finite, got nan",
    detail("memory", "1.5"): "line 3: \"memory\" of 'a' must be an integer, got '1.5'",
    detail("memory", "-1"): "line 3: \"memory\" of 'a' must be an integer number of bytes, or text such as 2G, got -1",
    detail("priority", "high"): "line 3: \"priority\" of 'a' must be an integer, got 'high'",
    detail("inputs", "f g"): "line 3: \"inputs\" of 'a': not valid JSON",
    detail("inputs", '"f"'): "line 3: \"inputs\" of 'a' must be a list of strings, got a string",
    "<!DOCTYPE graphml [<!ENTITY x 'y'>]><graphml/>": "line 1: the document declares entities, which are not supported",
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
        assert re.match(r"(task ['\"]|the workflow).* contains .*, which XML cannot represent", error.message)  # noqa: PT017
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


@pytest.mark.parametrize("above", ["\n\n", "  ", "<!-- drawn - by > hand -->\n", "\n<!-- a -->\n<!-- b -->"])
def test_a_declaration_may_stand_below_blank_lines_and_comments(above: str) -> None:
    assert graphml.parse(above + IGRAPH).dag == graphml.parse(IGRAPH).dag
    with pytest.raises(FormatError) as caught:
        graphml.parse(above + "<?xml version='1.0'?>\n<svg/>")
    assert caught.value.line == 2 + above.count("\n")
    flow = graphml.parse(above + IGRAPH)
    text = graphml.prioritised(above + IGRAPH, flow, {"x": 2, "y y": 1})
    assert text is not None
    assert text.startswith(above + "<?xml")
    assert graphml.parse(text).task("x").priority == 2
