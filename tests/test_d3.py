"""Graphs as D3.js takes them: what Snakemake prints, and networkx."""

import json
from itertools import pairwise
from typing import Any

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eligo.dag import Dag
from eligo.errors import CycleError, DuplicateTaskError, FormatError, InputError, UnknownTaskError
from eligo.formats import detect
from eligo.formats.d3 import generate, parse, sniff
from eligo.workflow import Task, Workflow


def job(number: int, rule: str) -> dict[str, Any]:
    return {"id": number, "value": {"jobid": number, "label": rule, "rule": rule}}


SNAKEMAKE: dict[str, Any] = {
    "nodes": [job(0, "all"), job(1, "sort"), job(2, "fetch"), job(3, "sort")],
    "edges": [{"u": 1, "v": 0}, {"u": 3, "v": 0}, {"u": 2, "v": 1}],
}


@pytest.mark.parametrize("edges", ["edges", "links"])
def test_snakemake(edges: str) -> None:
    """The arcs go from the job that comes first, and rules that several jobs share are told apart by number."""
    text = json.dumps({"nodes": SNAKEMAKE["nodes"], edges: SNAKEMAKE["edges"]})
    flow = parse(text)
    assert sniff(text)
    assert flow.dag.tasks == ("all", "sort 1", "fetch", "sort 3")
    assert set(flow.dag.arcs()) == {("sort 1", "all"), ("sort 3", "all"), ("fetch", "sort 1")}
    assert flow.task("sort 3") == Task(name="sort 3", category="sort")
    assert flow.origin is not None
    assert flow.origin.format == "d3dag"


def test_networkx() -> None:
    text = json.dumps(networkx.node_link_data(networkx.DiGraph([("a", "b"), ("a", 3)]), edges="links"))
    assert sniff(text)
    assert list(parse(text).dag.arcs()) == [("a", "b"), ("a", "3")]


def test_d3_dag() -> None:
    """Its own list has the parents of each task, and none where a task has none."""
    text = '[{"id": "fetch"}, {"id": 2, "parentIds": ["fetch"]}, {"id": "c", "parentIds": ["fetch", "2"], "x": 1}]'
    assert sniff(text)
    assert detect("x.json", text) == "d3dag"
    flow = parse(text)
    assert flow.dag.tasks == ("fetch", "2", "c")
    assert set(flow.dag.arcs()) == {("fetch", "2"), ("fetch", "c"), ("2", "c")}
    with pytest.raises(UnknownTaskError, match="there is no task named 'b'"):
        parse('[{"id": "a", "parentIds": ["b"]}]')
    with pytest.raises(FormatError, match="the id of task 1 is missing"):
        parse('[{"parentIds": []}]')
    with pytest.raises(FormatError, match='"parentIds" must be a list, got a string'):
        parse('[{"id": "a", "parentIds": "b"}]')


names = st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=6) | st.sampled_from(["0", "1", "a", "b", ""])


@given(ordered=st.lists(names, max_size=5, unique=True), kind=st.none() | names)
def test_what_is_written_is_read_back(ordered: list[str], kind: str | None) -> None:
    dag = Dag.from_arcs(pairwise(ordered), ordered[::-1])
    details = {name: Task(name=name, category=kind) for name in ordered[:2]} if kind is not None else {}
    back = parse(generate(Workflow(dag, details)))
    assert back.dag == dag
    assert dict(back.details) == details


@pytest.mark.parametrize(
    ("document", "error", "message"),
    [
        ([], FormatError, "the document must be an object, got a list: []"),
        ({"nodes": {}}, FormatError, '"nodes" must be a list, got an object'),
        ({"nodes": ["a"]}, FormatError, "an item of nodes must be an object, got a string: a"),
        ({"nodes": [{}]}, FormatError, "the id of node 1 is missing"),
        ({"nodes": [{"id": 1.5}]}, FormatError, "the id of node 1 must be a string, got a number (put it in quotes)"),
        ({"nodes": [{"id": "a"}, {"id": "a"}]}, DuplicateTaskError, "duplicate task 'a'"),
        ({"nodes": [{"id": 1}, {"id": "1"}]}, DuplicateTaskError, "duplicate task '1'"),
        ({"nodes": [{"id": "a"}], "edges": [{"u": "a", "v": "b"}]}, UnknownTaskError, "there is no task named 'b'"),
        ({"nodes": [{"id": "a"}], "edges": [{"u": "a"}]}, FormatError, "the end of an edge is missing"),
        ({"nodes": [{"id": "a"}], "edges": [["a"]]}, FormatError, "an edge must be an object, got a list: ['a']"),
        ({"nodes": [{"id": "a"}], "links": [{"u": "a", "v": "a"}]}, CycleError,
         "a task depends on itself: a -> a"),
        (
            {"directed": False, "nodes": []},
            FormatError,
            "an undirected graph does not say which task depends on which (make the graph directed)",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused(document: object, error: type[InputError], message: str) -> None:
    with pytest.raises(error) as caught:
        parse(json.dumps(document))
    assert str(caught.value).removeprefix("line 1: ") == message


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.sampled_from(["a", "b", "0"])
keys = st.sampled_from(["nodes", "edges", "links", "id", "u", "v", "value", "rule", "label", "source", "directed"])
values = st.recursive(scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(keys, v, max_size=4), max_leaves=12)


@given(value=values, data=st.data())
def test_any_change_to_a_good_document(value: object, data: st.DataObject) -> None:
    """Any other exception than an InputError of one line fails the test."""
    place: Any = json.loads(json.dumps(SNAKEMAKE))
    document = place
    while True:
        key = data.draw(st.sampled_from(list(place) if isinstance(place, dict) else range(len(place))))
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = value
    message = ""
    try:
        parse(json.dumps(document))
    except InputError as error:
        message = str(error)
    assert "\n" not in message


@pytest.mark.parametrize("text", ['{"nodes": ["a"]}', '{"arcs": [["a", "b"]]}', '{"workflow": {}}', "[]", "a b"])
def test_other_documents_do_not_look_like_it(text: str) -> None:
    assert not sniff(text)


def test_keys_that_are_not_read_are_named() -> None:
    nodes, links = '[{"id": "a", "seconds": 3}, {"id": "b"}]', '[{"source": "a", "target": "b", "weight": 2}]'
    node_link = f'{{"directed": true, "nodes": {nodes}, "links": {links}}}'
    stratified = '[{"id": "a", "seconds": 3}, {"id": "b", "parentIds": ["a"]}]'
    for text, told in ((node_link, "seconds (nodes), weight (edges)"), (stratified, "seconds (tasks)")):
        origin = parse(text).origin
        assert origin is not None
        assert origin.remarks == (f"ignored data: {told}",)
