"""Formats: what is written is read back, what is wrong is refused in one sentence that names the file."""

import gzip
import io
import json
import os
import sys
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from eligo import formats
from eligo.dag import Dag
from eligo.errors import CycleError, DuplicateTaskError, FormatError, InputError, UnknownTaskError
from eligo.formats import arcs, detect, dot, generate, json_format, parse, yaml_format
from eligo.formats.reader import order_text, parse_order
from eligo.formats.shared import document, files, yaml_text
from eligo.names import LABEL
from eligo.workflow import Task, Workflow
from format_cases import dags

READABLE = ["json", "yaml", "arcs"]


@pytest.fixture(params=["C", "Python"])
def yaml_parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """PyYAML with and without its parser in C."""
    if request.param == "Python":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    elif not hasattr(yaml, "CSafeLoader"):
        pytest.skip("PyYAML was built without libyaml")
    yaml_text._loader.cache_clear()
    yield
    yaml_text._loader.cache_clear()


# Random workflows with nasty names

nasty = st.sampled_from(["", " ", "->", "#", '"', "a b", "a->b", "#1", "1", "no", "null", "~", "- a", "a: b", "\\", "\\n",
                         "{", "[", "\ufeffx", "\u2028", "é", "😀", "'", "<<", "=", "2024-01-01", "%", "&a", "*a",
                         "!t", "1e3", "x" * 2000, "yes ", "\u3000"])  # fmt: skip
names = nasty | st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=8)
writable = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
free_text = names | st.text(writable, max_size=12)
amounts = st.floats(0, 1e300) | st.integers(0, 2**60).map(float)
known: dict[str, st.SearchStrategy[Any]] = {
    "command": free_text | st.lists(free_text, min_size=1, max_size=3).map(tuple),
    "inputs": st.lists(free_text, min_size=1, max_size=3).map(tuple),
    "outputs": st.lists(free_text, min_size=1, max_size=3).map(tuple),
    "seconds": amounts,
    "cores": amounts,
    "memory": st.integers(0, 2**63 - 1),
    "labels": st.lists(st.from_regex(LABEL, fullmatch=True), unique=True, min_size=1, max_size=3).map(tuple),
    "category": free_text,
}
knowledge = st.fixed_dictionaries({}, optional=known).filter(bool)


@st.composite
def workflows(draw: st.DrawFn) -> Workflow:
    dag = draw(dags(names))
    details = {name: Task(name=name, **draw(knowledge)) for name in dag.tasks if draw(st.booleans())}
    sizes = draw(st.dictionaries(free_text, st.integers(0, 2**63 - 1), max_size=3))
    return Workflow(dag, details, draw(st.none() | free_text), file_sizes=sizes)


@pytest.mark.parametrize("format", ["json", "yaml"])
@given(flow=workflows())
def test_everything_is_read_back_that_our_own_formats_write(format: str, flow: Workflow) -> None:
    back = parse(generate(flow, format), format)
    assert replace(back, origin=None) == flow
    assert back.origin is not None
    assert back.origin.format == format


@given(dag=dags(names))
@example(dag=Dag.from_arcs([("c", "a")], "abc"))
@example(dag=Dag.from_arcs([("a", "b")], "abc"))
def test_arc_lists_keep_names_arcs_and_order(dag: Dag) -> None:
    assert parse(generate(dag, "arcs"), "arcs").dag == dag


@given(dag=dags(names))
def test_what_is_written_is_also_recognised(dag: Dag) -> None:
    """Even without a file's name; but names alone may look like YAML keys or like DOT."""
    assert detect(None, generate(dag, "json")) == "json"
    assert detect(None, generate(dag, "yaml")) == "yaml"
    assert detect(None, generate(dag, "dot")) == "dot"


@given(flow=workflows())
def test_yaml_reads_the_same_with_a_plain_parser(flow: Workflow) -> None:
    """What we write as YAML is no dialect of ours: PyYAML's own safe loader sees the document that JSON says."""
    assert yaml.safe_load(generate(flow, "yaml")) == json.loads(generate(flow, "json"))


@given(order=st.lists(names))
def test_orders_are_read_back(order: list[str]) -> None:
    assert parse_order(order_text(order)) == tuple(order)
    assert parse_order(json.dumps(order)) == tuple(order)
    assert parse_order(json.dumps({"order": order, "area": 3})) == tuple(order)


# The native document

RICH = """
{"name": "potatoes",
 "tasks": [{"name": "mash", "after": ["boil", "peel"], "run": ["masher", "--fine"], "inputs": ["p"], "outputs": ["m"]},
           {"name": "boil", "run": "boil water", "seconds": 2, "cores": 1.5, "memory": 1e3, "category": "heat"},
           {"name": "peel", "after": null, "run": null, "inputs": []}],
 "files": {"p": 1000}}
"""


def test_tasks_with_all_that_is_known() -> None:
    """The parents stand after their child, and order of appearance stays.

    boil   peel
       \\   /
       mash
    """
    flow = parse(RICH, "json")
    assert flow.name == "potatoes"
    assert flow.dag.tasks == ("mash", "boil", "peel")
    assert set(flow.dag.arcs()) == {("boil", "mash"), ("peel", "mash")}
    assert dict(flow.details) == {
        "mash": Task(name="mash", command=("masher", "--fine"), inputs=("p",), outputs=("m",)),
        "boil": Task(name="boil", command="boil water", seconds=2.0, cores=1.5, memory=1000, category="heat"),
    }
    assert dict(flow.file_sizes) == {"p": 1000}


def test_yaml_says_the_same_as_json(yaml_parser: None) -> None:
    text = """
# potatoes, for two
name: potatoes
tasks:
- name: mash
  after: [boil, peel]
  run: [masher, --fine]
  inputs: [p]
  outputs:
  - m
- {name: boil, run: boil water, seconds: 2, cores: 1.5, memory: 1e3, category: heat}
- name: peel
  after:
files: {p: 1000}
"""
    assert detect("-", text) == "yaml"
    assert replace(parse(text, "yaml"), origin=None) == replace(parse(RICH, "json"), origin=None)


def test_smallest_document() -> None:
    assert parse('{"arcs": [["a", "b"]]}', "json").dag == Dag.from_arcs([("a", "b")])
    assert parse('{"arcs": [["a", "b"]], "nodes": ["c", "b", "a"]}', "json").dag.tasks == ("c", "b", "a")
    assert parse('{"nodes": ["a"]}', "json").dag.tasks == ("a",)
    assert len(parse('{"arcs": []}', "json")) == 0


def test_json_is_written_one_task_a_line() -> None:
    flow = Workflow(Dag.from_arcs([("a", "b")]), {"b": Task(name="b", seconds=0.5)}, "two")
    assert generate(flow, "json") == (
        '{\n  "name": "two",\n  "tasks": [\n'
        '    {"name": "a"},\n    {"name": "b", "after": ["a"], "seconds": 0.5}\n  ]\n}\n'
    )
    assert generate(flow.dag, "json") == '{"arcs": [["a", "b"]], "nodes": ["a", "b"]}\n'
    assert generate(flow, "yaml") == "name: two\ntasks:\n- {name: a}\n- {name: b, after: [a], seconds: 0.5}\n"


TASKS_HAVE, DOCUMENTS_HAVE = (", ".join(keys) for keys in (document.TASK_KEYS, document.TOP_KEYS))
MISFITS = {
    '{"tasks": [{"name": "a", "afer": []}]}': "1: task 1 has the unknown key 'afer' (known keys:"
    f" {TASKS_HAVE}, foreach)",
    '{"arks": []}': f"1: the document has the unknown key 'arks' (known keys: {DOCUMENTS_HAVE}, params)",
    '{"nodes": [1]}': "the name of a node must be a string, got a number (put it in quotes)",
    '{"nodes": [true]}': "the name of a node must be a string, got true (put it in quotes)",
    '{"nodes": [null]}': "the name of a node is missing",
    '{"nodes": [["a"]]}': "the name of a node must be a string, got a list",
    '{"nodes": "abc"}': '"nodes" must be a list, got a string',
    '{"arcs": [[1, "b"]]}': "the name of a task in an arc must be a string, got a number (put it in quotes)",
    '{"arcs": [["a", "b", "c"]]}': 'arc 1 must be a pair of names such as ["a", "b"], got a list of 3',
    '{"arcs": [["a", "b"], "ab"]}': 'arc 2 must be a pair of names such as ["a", "b"], got a string',
    '{"arcs": {"a": "b"}}': '"arcs" must be a list, got an object',
    '{"tasks": [{"name": 1}]}': "the name of task 1 must be a string, got a number (put it in quotes)",
    '{"tasks": [{"run": "ls"}]}': "the name of task 1 is missing",
    '{"tasks": ["a"]}': f"task 1 must be an object with the keys {TASKS_HAVE}, got a string",
    '{"tasks": [{"name": "a", "after": "b"}]}': "\"after\" of 'a' must be a list of strings, got a string",
    '{"tasks": [{"name": "a", "after": [1]}]}': "an item of \"after\" of 'a' must be a string,"
    " got a number (put it in quotes)",
    '{"tasks": [{"name": "a", "run": 1}]}': "\"run\" of 'a' must be a list of strings, got a number",
    '{"tasks": [{"name": "a", "seconds": "2"}]}': "\"seconds\" of 'a' must be a number, got a string",
    '{"tasks": [{"name": "a", "seconds": true}]}': "\"seconds\" of 'a' must be a number, got true",
    '{"tasks": [{"name": "a", "seconds": 99999999999999999999}]}': "\"seconds\" of 'a' must have at most 63 bits, got 67",
    '{"tasks": [{"name": "a", "memory": 1.5}]}': (
        "\"memory\" of 'a' must be an integer number of bytes, or text such as 2G, got 1.5"
    ),
    '{"tasks": [{"name": "a", "memory": -1}]}': (
        "\"memory\" of 'a' must be an integer number of bytes, or text such as 2G, got -1"
    ),
    '{"tasks": [{"name": "a", "labels": "gpu"}]}': "\"labels\" of 'a' must be a list of strings, got a string",
    '{"tasks": [{"name": "a", "labels": ["two words"]}]}': "1: task 'a': label 'two words' must be 1 to 64 letters,"
    " digits or _.:/=+- and begin with a letter or digit",
    '{"tasks": [{"name": "a", "category": 7}]}': "\"category\" of 'a' must be a string,"
    " got a number (put it in quotes)",
    '{"tasks": [], "arcs": []}': '1: "tasks" and "arcs" cannot be combined (give one of them)',
    '{"arcs": [], "files": {"f": "big"}}': (
        "\"size\" of 'f' must be an integer number of bytes, or text such as 2G, got 'big'"
    ),
    '{"arcs": [], "files": ["f"]}': '"files" must be an object with the size in bytes of each file, got a list',
    '{"name": "empty"}': 'no tasks (give "tasks", "arcs" or "nodes")',
    '{"name": 5, "arcs": []}': "the workflow's name must be a string, got a number (put it in quotes)",
    "[]": f"the document must be an object with the keys {DOCUMENTS_HAVE}, got a list",
}


@pytest.mark.parametrize(
    ("format", "text"),
    [("json", text) for text in MISFITS] + [("yaml", text) for text in MISFITS if "true" not in text],
)
def test_documents_that_do_not_fit(tmp_path: Path, format: str, text: str) -> None:
    """JSON is YAML, so both refuse alike; but truth values are refused before in YAML."""
    path = tmp_path / f"flow.{format}"
    path.write_text(text)
    with pytest.raises(FormatError) as caught:
        formats.read(path)
    assert str(caught.value).removeprefix(str(path)) in {f":{MISFITS[text]}", f": {MISFITS[text]}"}


# Lists of arcs


def test_arc_lists_in_all_their_spellings() -> None:
    flow = parse('# comment\n\n a b\na\t->  c # why\r\n"two words" "->"\nd#1\n   lonely   ', "arcs")
    assert list(flow.dag.arcs()) == [("a", "b"), ("a", "c"), ("two words", "->")]
    assert flow.dag.tasks == ("a", "b", "c", "two words", "->", "d#1", "lonely")


ONE_ARC = "a line must be a parent and a child, or one task"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b\na b c", f"{ONE_ARC}, got 'a b c' (put names with spaces in double quotes)"),
        ("a b\na ->", f"{ONE_ARC}, got 'a ->' (put names with spaces in double quotes)"),
        ("a b\n-> a b", f"{ONE_ARC}, got '-> a b' (put names with spaces in double quotes)"),
        ("a b\na -> b -> c", f"{ONE_ARC}, got 'a -> b -> c' (put names with spaces in double quotes)"),
        ("a b\nb->c", "an arrow must have spaces around it (put names with arrows in double quotes)"),
        ('a b\n"b c', 'the name "b has no closing quote, or no space after it'),
        ('a b\n"b"c', 'the name "b"c has no closing quote, or no space after it'),
        ('a b\n"\\q" c', '"\\q" is not a valid JSON string'),
        ('a b\n"\\ud800" c', '"\\ud800" is not a valid JSON string'),
    ],
)
def test_lines_that_are_no_arcs(text: str, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse(text, "arcs")
    assert (caught.value.message, caught.value.line) == (message, 2)


def test_dot_quotes_what_needs_it() -> None:
    dag = Dag.from_arcs([('say "hi"', "back\\slash"), ("a->b", "ends in \\")], tasks=None)
    assert generate(Workflow(dag, name="my dag"), "dot") == (
        'digraph "my dag" {\n'
        '  "say \\"hi\\"";\n  "back\\\\slash";\n  "a->b";\n  "ends in \\\\";\n'
        '  "say \\"hi\\"" -> "back\\\\slash";\n  "a->b" -> "ends in \\\\";\n}\n'
    )
    assert generate(Dag.from_arcs([]), "dot") == "digraph {\n}\n"


# Which format


@pytest.mark.parametrize(
    ("path", "text", "format"),
    [
        ("flow.json", '{"arcs": []}', "json"),
        ("FLOW.JSON.GZ", '{"arcs": []}', "json"),
        ("flow.json", '{"name": "x", "workflow" : {}}', "wfcommons"),
        ("flow.json", '{"nodes": ["workflow", "\\"workflow\\": "]}', "json"),
        ("flow.json", "a b", "json"),
        ("flow.yml", "{}", "yaml"),
        ("flow.txt", "name: x", "arcs"),
        ("flow.edges", "a b", "arcs"),
        ("flow.gv", "a b", "dot"),
        ("flow", ' \n{"arcs": []}', "json"),
        ("flow.1", '{"workflow": {}}', "wfcommons"),
        ("-", "# hello\nname: x\ntasks:\n- {name: a}", "yaml"),
        ("-", "arcs: []", "yaml"),
        ("-", "strict digraph G {\n}", "dot"),
        ("-", "digraph -> graph", "arcs"),
        ("-", "a -> b\n", "arcs"),
        (None, "lonely", "arcs"),
    ],
)
def test_the_format_is_told_by_name_and_content(path: str | None, text: str, format: str) -> None:
    assert detect(path, text) == format


def test_formats_that_do_not_exist() -> None:
    with pytest.raises(InputError, match="unknown format 'xls' \\(choose from arcs, csv, d3dag, dagman, dax, dot, "):
        parse("a b", "xls")
    with pytest.raises(InputError, match=r"^unknown format 'xls'"):
        formats.read("none.xls", "xls")


def test_every_format_has_the_same_names() -> None:
    for name in formats.MODULES:
        module = formats.module(name)
        assert name == module.NAME
        assert all(isinstance(what, str) for what in module.CANNOT)
    assert {arcs.NAME, dot.NAME, json_format.NAME, yaml_format.NAME} <= set(formats.MODULES)


def test_yaml_is_imported_only_when_needed() -> None:
    import subprocess

    code = "import sys, eligo.formats as f; f.parse('a b'); f.detect('x.yaml', ''); print('yaml' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == "False\n"


# Files and streams


@pytest.mark.parametrize("suffix", ["json", "yaml", "yml", "arcs", "edges", "txt", "json.gz", "arcs.GZ"])
def test_files_are_written_and_read(tmp_path: Path, suffix: str, diamond: Dag) -> None:
    path = tmp_path / f"flow.{suffix}"
    formats.write(diamond, path)
    flow = formats.read(path)
    assert flow.dag == diamond
    assert flow.origin is not None
    assert flow.origin.path == str(path)
    assert path.read_bytes().startswith(b"\x1f\x8b") == suffix.lower().endswith("gz")


def test_writing_keeps_the_format_it_was_read_from(tmp_path: Path) -> None:
    """.json may be ours or WfCommons'; a workflow that was read from one is written as the same."""
    text = '{"name": "w", "workflow": {"specification": {"tasks": [{"id": "a", "name": "a"}]}}}'
    formats.write(parse(text), tmp_path / "again.json")
    formats.write(parse(text), tmp_path / "ours.json", "json")
    assert "workflow" in (tmp_path / "again.json").read_text()
    assert (tmp_path / "ours.json").read_text() == '{"name": "w", "arcs": [], "nodes": ["a"]}\n'


def test_the_same_bytes_every_time(tmp_path: Path, diamond: Dag) -> None:
    """A gzip file holds no time."""
    formats.write(diamond, tmp_path / "one.json.gz")
    formats.write(diamond, tmp_path / "two.json.gz")
    assert (tmp_path / "one.json.gz").read_bytes() == (tmp_path / "two.json.gz").read_bytes()


def test_gzip_is_known_by_its_first_bytes(tmp_path: Path) -> None:
    (tmp_path / "flow.arcs").write_bytes(gzip.compress(b"a b\n") + gzip.compress(b"b c\n"))
    assert list(formats.read(tmp_path / "flow.arcs").dag.arcs()) == [("a", "b"), ("b", "c")]


PIPED = {"arcs": b"a b", "gzip": gzip.compress(b'{"arcs": [["a", "b"]]}'), "yaml": b"arcs: [[a, b]]"}


@pytest.mark.parametrize("data", PIPED.values(), ids=PIPED.keys())
def test_standard_input(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    flow = formats.read("-")
    assert list(flow.dag.arcs()) == [("a", "b")]
    assert flow.origin is not None
    assert flow.origin.path is None


def test_standard_input_in_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a b c")))
    with pytest.raises(FormatError, match=r"^<stdin>:1: a line must be a parent and a child"):
        formats.read("-")


def test_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    formats.write(Dag.from_arcs([("é", "b")]), "-")
    formats.write(parse("a b"), "-")
    assert capfdbinary.readouterr().out == '{"arcs": [["é", "b"]], "nodes": ["é", "b"]}\na b\n'.encode()


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path: Path) -> None:
    (tmp_path / "flow.arcs").write_bytes(b"\xef\xbb\xbfa b\r\nb c\r\n")
    assert formats.read(tmp_path / "flow.arcs").dag.tasks == ("a", "b", "c")


def test_a_path_without_a_telling_suffix_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"flow.x: cannot determine the format to write from the file's name"):
        formats.write(Dag.from_arcs([]), tmp_path / "flow.x")
    assert not (tmp_path / "flow.x").exists()


def test_paths_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"none/flow.json: cannot be written: no such file or directory$"):
        formats.write(Dag.from_arcs([]), tmp_path / "none" / "flow.json")
    half = Workflow(Dag.from_arcs([("a", "b")]), name="\ud800")
    with pytest.raises(FormatError, match=r"flow.dot: cannot be written: '\\ud800' is not a valid character$"):
        formats.write(half, tmp_path / "flow.dot")


def test_orders_in_files(tmp_path: Path) -> None:
    path = tmp_path / "order"
    path.write_text('# best first\na\n"b"\nthe end\n')
    assert formats.read_order(path) == ("a", "b", "the end")
    path.write_text('{"verdict": "optimal"}')
    with pytest.raises(FormatError, match=r'order: the document has no key "order" \(an order is'):
        formats.read_order(path)
    path.write_text('["a", 1]')
    with pytest.raises(FormatError, match="order: name 2 of the order must be a string, got a number"):
        formats.read_order(path)
    path.write_text('a\n"b')
    with pytest.raises(FormatError, match='order:2: "b is not a valid JSON string'):
        formats.read_order(path)


# Hostile input: refused in one sentence that names the file, soon, and in little memory

BOMB = "a: &a [x, x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [*{chr(97 + i)}, *{chr(97 + i)}]\n" for i in range(20)
)

HOSTILE: dict[str, tuple[str, bytes, str]] = {
    "alias bomb": (
        "f.yaml",
        BOMB.encode(),
        ":1: anchors and aliases are not allowed, got 'a' (write out the value)",
    ),
    "lone alias": ("f.yaml", b"nodes: *x", ":1: anchors and aliases are not allowed, got 'x' (write out the value)"),
    "python tag": (
        "f.yaml",
        b"nodes:\n- !!python/object/apply:os.system ['true']",
        ":2: the tag 'tag:yaml.org,2002:python/object/apply:os.system' is not allowed",
    ),
    "own tag": ("f.yaml", b"nodes: !mine [a]", ":1: the tag '!mine' is not allowed"),
    "deep flow yaml": ("f.yaml", b"[" * 100_000, ":1: the YAML is nested more than 16 levels deep"),
    "deep block yaml": ("f.yaml", b"- " * 100_000, ":1: the YAML is nested more than 16 levels deep"),
    "deep map yaml": ("f.yaml", b"{a: " * 100_000, ":1: the YAML is nested more than 16 levels deep"),
    "deep keys yaml": ("f.yaml", b"? " * 100_000, ":1: the YAML is nested more than 16 levels deep"),
    "yaml duplicate": ("f.yaml", b"nodes: [a]\nnodes: [b]\n", ":2: the key 'nodes' appears twice in one mapping"),
    "yaml merge": (
        "f.yaml",
        b"tasks:\n- {name: a, <<: {run: ls}}",
        f":2: task 1 has the unknown key '<<' (known keys: {TASKS_HAVE}, foreach)",
    ),
    "yaml bool": ("f.yaml", b"nodes:\n- a\n- no\n", ":3: YAML reads no as a boolean (put it in quotes)"),
    "yaml date": ("f.yaml", b"nodes:\n- 2024-01-01\n", ":2: YAML reads 2024-01-01 as a date (put it in quotes)"),
    "yaml number": (
        "f.yaml",
        b"nodes:\n- 1\n",
        ": the name of a node must be a string, got a number (put it in quotes)",
    ),
    "yaml key": ("f.yaml", b"1: a", ":1: a key must be a string, got 1 (put it in quotes)"),
    "yaml list key": ("f.yaml", b"? [a]\n: b", ":1: a key must be a string, got ['a'] (put it in quotes)"),
    "two documents": (
        "f.yaml",
        b"nodes: [a]\n---\nnodes: [b]",
        ":2: the file has a second document, but only one is allowed",
    ),
    "yaml comment only": (
        "f.yaml",
        b"# nothing",
        f": the document must be an object with the keys {DOCUMENTS_HAVE}, got nothing",
    ),
    "sexagesimal": (
        "f.yaml",
        b"tasks: [{name: a, seconds: 1" + b":0" * 500_000 + b"}]",
        ": \"seconds\" of 'a' must be a number, got a string",
    ),
    "yaml nan": (
        "f.yaml",
        b"tasks: [{name: a, seconds: .nan}]",
        ": task 'a': seconds must be non-negative and finite, got nan",
    ),
    "yaml nul": ("f.yaml", b'nodes: ["\\0"]', ":1: a string contains '\\x00', which is not a valid character"),
    "deep json": ("f.json", b"[" * 100_000, ": the JSON is nested too deeply"),
    "deep json object": ("f.json", b'{"a":' * 100_000, ": the JSON is nested too deeply"),
    "nan": ("f.json", b'{"tasks": [{"name": "a", "seconds": NaN}]}', ": NaN is not a valid JSON number"),
    "infinity": ("f.json", b'{"files": {"f": -Infinity}}', ": -Infinity is not a valid JSON number"),
    "too large a float": (
        "f.json",
        b'{"tasks": [{"name": "a", "seconds": 1e999}]}',
        ": task 'a': seconds must be non-negative and finite, got inf",
    ),
    "negative": (
        "f.json",
        b'{"tasks": [{"name": "a", "seconds": -1}]}',
        ": task 'a': seconds must be non-negative and finite, got -1.0",
    ),
    "digits": ("f.json", b'{"files": {"f": ' + b"9" * 5000 + b"}}", ": a number has too many digits"),
    "many digits": (
        "f.json",
        b'{"arcs": [], "files": {"f": ' + b"9" * 4000 + b"}}",
        ": \"size\" of 'f' must be an integer number of bytes, or text such as 2G, got a number",
    ),
    "json duplicate": ("f.json", b'{"arcs": [], "arcs": []}', ": the key 'arcs' appears twice in one object"),
    "half a pair": (
        "f.json",
        b'{"nodes": ["\\ud800"]}',
        ": a string contains '\\ud800', which is not a valid character",
    ),
    "nul escape": ("f.json", b'{"nodes": ["a\\u0000"]}', ": a string contains '\\x00', which is not a valid character"),
    "not json": ("f.json", b'{"arcs": [\n["a" "b"]]}', ":2: not valid JSON: expecting ',' delimiter at column 6"),
    "json and more": ("f.json", b'{"arcs": []} {}', ":1: not valid JSON: extra data at column 14"),
    "control character": (
        "f.json",
        b'{"nodes": ["a\\u0007"]}',
        ": task name 'a\\x07' contains a control character",
    ),
    "escape sequence": ("f.arcs", b"a \x1b[2J", ": task name '\\x1b[2J' contains a control character"),
    "long name": (
        "f.json",
        b'{"nodes": ["' + b"x" * 10_000_000 + b'"]}',
        ": a task name has 10,000,000 characters, more than the limit of 10,000",
    ),
    "long name in arcs": (
        "f.arcs",
        b"x" * 10_000_000,
        ": a task name has 10,000,000 characters, more than the limit of 10,000",
    ),
    "long key": (
        "f.json",
        b'{"' + b"x" * 10_000_000 + b'": 1}',
        f":1: the document has the unknown key '{'x' * 30}...{'x' * 10}' (known keys: {DOCUMENTS_HAVE}, params)",
    ),
    "a long way to go": (
        "f.arcs",
        b'"a" b' + b" " * 1_000_000 + b"c",
        f""":1: {ONE_ARC}, got '"a" b{25 * " "}...{9 * " "}c' (put names with spaces in double quotes)""",
    ),
    "a quote without end": (
        "f.arcs",
        b'"' + b'\\" ' * 500_000,
        r""":1: the name "\" has no closing quote, or no space after it""",
    ),
    "nul": ("f.arcs", b"a b\nc \0", ":2: byte 6 is NUL: not a text file"),
    "latin-1": ("f.yaml", b"nodes:\n- caf\xe9", ":2: byte 12 (0xe9) is not UTF-8 (save the file as UTF-8)"),
    "utf-16": (
        "f.arcs",
        b"\xff\xfe\xe9",
        ": byte 2 is not UTF-16, although the file is marked as UTF-16 (save it as UTF-8)",
    ),
    "empty": ("f.arcs", b"", ": the file is empty"),
    "blank": ("f.json", b" \n\n", ": the file is empty"),
    "bom only": ("f.json", b"\xef\xbb\xbf", ": the file is empty"),
    "cut gzip": (
        "f.arcs",
        gzip.compress(b"a b")[:-3],
        ": the gzip data are damaged: compressed file ended before the end-of-stream marker was reached",
    ),
    "bad gzip": ("f.arcs", b"\x1f\x8b\x07" + bytes(20), ": the gzip data are damaged: unknown compression method"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_texts(tmp_path: Path, case: str, yaml_parser: None) -> None:
    name, data, message = HOSTILE[case]
    path = tmp_path / name
    path.write_bytes(data)
    start = time.perf_counter()
    with pytest.raises(InputError) as caught:
        formats.read(path)
    assert str(caught.value) == f"{path}{message}"
    assert time.perf_counter() - start < 60  # it ends; how soon is for the benchmarks


@pytest.mark.usefixtures("yaml_parser")
def test_broken_yaml_says_where(tmp_path: Path) -> None:
    """The words are the parser's own."""
    path = tmp_path / "flow.yaml"
    path.write_text("name: x\nnodes: [a\n")
    with pytest.raises(FormatError, match=r"flow.yaml:3: not valid YAML: "):
        formats.read(path)
    path.write_text("name: \x01")
    with pytest.raises(FormatError, match=r"flow.yaml(:\d)?: not valid YAML: "):
        formats.read(path)


def test_files_that_are_too_large_are_not_even_opened_up(tmp_path: Path) -> None:
    path = tmp_path / "sparse.json"
    with path.open("wb") as file:
        file.truncate(files.LARGEST_FILE + 1)
    with pytest.raises(
        FormatError, match=r"sparse.json: has 1,073,741,825 bytes, more than the limit of 1,073,741,824$"
    ):
        formats.read(path)


def test_gzip_bombs_go_off_in_a_small_room(tmp_path: Path) -> None:
    """100 MB of spaces are 100 kB; they are refused with the first byte over the limit."""
    path = tmp_path / "bomb.json"
    path.write_bytes(gzip.compress(b" " * 100_000_000))
    tracemalloc.start()
    with pytest.raises(FormatError, match=r"bomb.json: has more than the limit of 2,000,000 bytes$"):
        formats.read(path, limit=2_000_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10_000_000


def test_streams_have_the_same_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a b\n" * 1000)))
    with pytest.raises(FormatError, match=r"^<stdin>: has more than the limit of 3,999 bytes$"):
        formats.read("-", limit=3999)


def test_paths_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reasons: dict[Path | str, str] = {
        tmp_path: "is a directory",
        tmp_path / "none.json": "no such file or directory",
        tmp_path / ("x" * 300): "file name too long",
        "nul\0.json": "embedded null byte",
    }
    for path, reason in reasons.items():
        with pytest.raises(FormatError) as caught:
            formats.read(path)
        assert str(caught.value) == f"{path}: cannot be read: {reason}"

    def forbidden(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(files, "open", forbidden, raising=False)
    with pytest.raises(FormatError, match=r"^secret.json: cannot be read: permission denied$"):
        formats.read("secret.json")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_files_that_may_not_be_read(tmp_path: Path) -> None:
    path = tmp_path / "secret.json"
    path.write_text("{}")
    path.chmod(0)
    with pytest.raises(FormatError, match=r"secret.json: cannot be read: permission denied$"):
        formats.read(path)


def test_errors_of_the_dag_keep_their_class_and_witness_and_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "flow.json"
    path.write_text('{"arcs": [["a", "b"], ["b", "a"]]}')
    with pytest.raises(CycleError) as cyclic:
        formats.read(path)
    assert cyclic.value.cycle == ("a", "b", "a")
    assert str(cyclic.value) == f"{path}: a cycle, so no order exists: a -> b -> a"
    path.write_text('{"tasks": [\n{"name": "a", "after": ["b"]}\n]}')
    with pytest.raises(UnknownTaskError) as unknown:
        formats.read(path)
    assert unknown.value.name == "b"
    assert str(unknown.value) == f"{path}:2: there is no task named 'b'"
    yaml_path = tmp_path / "flow.yaml"
    yaml_path.write_text("tasks:\n- name: a\n  after:\n  - mistake\n")
    with pytest.raises(UnknownTaskError, match=r"flow.yaml:4: there is no task named 'mistake'$"):
        formats.read(yaml_path)
    path.write_text('{"tasks": [{"name": "a"}, {"name": "a"}]}')
    with pytest.raises(DuplicateTaskError) as duplicate:
        formats.read(path)
    assert duplicate.value.name == "a"
    assert str(duplicate.value) == f"{path}: duplicate task 'a'"


# Whatever the text, nothing but our own errors comes out

keys = st.sampled_from([*document.TOP_KEYS, *document.TASK_KEYS, "workflow", "id", "x"])
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | names
values = st.recursive(scalars, lambda v: st.lists(v, max_size=3) | st.dictionaries(keys, v, max_size=4), max_leaves=12)


def accepts_or_refuses(text: str, format: str) -> None:
    """Any other exception than an InputError of one line fails the test."""
    message = ""
    try:
        parse(text, format)
    except InputError as error:
        message = str(error)
    assert "\n" not in message


@pytest.mark.parametrize("format", READABLE)
@given(text=st.text(max_size=40) | st.text('ab "->#\\\n:[]{},&*!|>%0123', max_size=40))
def test_any_text(format: str, text: str) -> None:
    accepts_or_refuses(text, format)


@pytest.mark.parametrize("format", ["json", "yaml"])
@given(value=st.dictionaries(keys, values))
def test_any_document(format: str, value: dict[str, Any]) -> None:
    accepts_or_refuses(json.dumps(value), format)


@pytest.mark.parametrize("format", ["json", "yaml"])
@given(data=st.data())
def test_any_change_to_a_good_document(format: str, data: st.DataObject) -> None:
    value = json.loads(RICH)
    place = value
    while True:
        key = data.draw(st.sampled_from(list(place) if isinstance(place, dict) else range(len(place))))
        if not place[key] or not isinstance(place[key], dict | list) or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = data.draw(values)
    accepts_or_refuses(json.dumps(value), format)


@pytest.mark.parametrize("format", ["dagman", "makeflow", "ninja", "mermaid", "arcs"])
def test_lines_that_end_with_a_carriage_return_alone_are_refused(format: str) -> None:
    with pytest.raises(FormatError, match="lines end in a carriage return only"):
        parse("# a comment\rJOB a a.sub\rJOB b b.sub\r", format)


def test_a_list_of_arcs_with_commas_may_be_a_table() -> None:
    doubtful, sure = parse("a,b\nb,c\n", "arcs").origin, parse("a,b c\n", "arcs").origin
    assert doubtful is not None
    assert sure is not None
    assert doubtful.remarks == (
        "no line has two names separated by a space, so there are no arcs (a table must be named .csv)",
    )
    assert sure.remarks == ()
