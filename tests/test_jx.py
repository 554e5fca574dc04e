"""JX expressions: what they stand for, that they end soon, and that what is unclear is refused in one line."""

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eligo import formats
from eligo.cli import run
from eligo.errors import FormatError, InputError
from eligo.formats import jx, makeflow
from eligo.formats.jx import evaluation as evaluating
from format_cases import accepts_or_refuses, damaged

KNOWN: dict[str, Any] = {
    "a": True, "b": False, "f": 0.5, "x": 10, "name": "in", "list": [7, 8, 9], "row": {"colour": "red", "no": 1},
}  # fmt: skip

VALUES: dict[str, Any] = {
    # literals
    "[.5, 10., 007, 1e3, -2, + 3, - -4]": [0.5, 10.0, 7, 1000.0, -2, 3, 4],
    '["\\"\\t\\/", "\\u0041"]': ['"\t/', "A"],
    '{"x": 1, }': {"x": 1},
    # arithmetic, from the inside out
    "x + 2 * 3": 16,
    "(x + 2) * 3": 36,
    "[-7 / 2, -7 % 2, 7 / -2, 7 % -2, 7 / 2.0, 7.5 % 2]": [-3, -1, -3, 1, 3.5, 1.0],
    "-x + +x": 0,
    "[1] + [] + [2, [3]]": [1, 2, [3]],
    "0.1 + 0.2 + 0.3": pytest.approx(0.6),
    "x - 1 + 0": 9,
    # strings take in numbers and truth values
    '"n" + 1 + ".txt"': "n1.txt",
    'a + "/" + f + "/" + b': "true/0.5/false",
    '"e=" + 2.718281828': "e=2.718281828",
    '"" + 3.0': "3",
    # comparisons and truth
    "[1 == 1.0, 1 == true, [1] == [1.0], null == null, null != 1]": [True, False, False, True, True],
    '["b" > "a", 2 <= 2.5, [1, [2]] == [1, [2]]]': [True, True, True],
    "[a and b, a or b, a && !b, b || not a, not not a]": [False, True, True, False, True],
    "[b and missing, a or missing]": [False, True],
    "(not b) == a": True,
    # lists and objects
    "[i * i for i in range(4) if i % 2 == 1, 9]": [1, 9, 9],
    "[[i, j] for i in range(3) if i > 0 for j in range(i)]": [[1, 0], [2, 0], [2, 1]],
    '{"k" + i: i for i in range(2), "z": 0}': {"k0": 0, "k1": 1, "z": 0},
    "[list[0], list[-1], list[1:], list[:-1], list[-9:9], list[2:1], row[\"colour\"]]": [
        7, 9, [8, 9], [7, 8], [7, 8, 9], [], "red",
    ],
    "range(9)[2:5][2]": 4,
    # functions
    "[range(3), range(1, 3), range(5, 0, -2), range(3, 1), len(list)]": [[0, 1, 2], [1, 2], [5, 3, 1], [], 3],
    'format("%%%d %i %s %e", 1, 2, "s", 2.5)': "%1 2 s 2.500000e+00",
    'format("%g %G %f", 9.9e9, 2.1e-12, 2.5)': "9.9e+09 2.1E-12 2.500000",
    '[join(["a", "b"]), join(["a", "b"], ","), join([])]': ["a b", "a,b", ""],
    'template("{{{name}}} { x }.{f}{q}", {"q": "Q"})': "{in} 10.0.5Q",
    "[ceil(f), floor(-0.5), ceil(x)]": [1.0, -1.0, 10],
    '[basename("/usr/lib/"), basename("a.txt", ".txt"), basename("/"), basename("a")]': ["lib", "a", "/", "a"],
    '[dirname("/usr/lib"), dirname("/usr/"), dirname("a"), dirname("/")]': ["/usr", "/", ".", "/"],
    'escape("say \\"$x\\" `y` \\\\")': '"say \\"\\$x\\" \\`y\\` \\\\"',
    "[keys(row), values(row), items(row)]": [["no", "colour"], [1, "red"], [["no", 1], ["colour", "red"]]],
    'schema([{"x": 0, "y": "t", "z": 1.0}, {"w": null}])': {"w": "null", "z": "float", "y": "string", "x": "integer"},
    '[like("apple", ".pp.*"), like("apple", "^pp"), like("a.b", "a[.]b$"), like("ab", "x|a?b")]': [True, False, True, True],
    'select([{"n": 1}, {"n": 2}], n > 1)': [{"n": 2}],
    '[{"n": 1}, {"n": 2}].where(n < x).project(n + x).len()': 2,
    '["a", "b"].join("-")': "a-b",
}  # fmt: skip


@pytest.mark.parametrize("text", VALUES)
def test_what_expressions_stand_for(text: str) -> None:
    found = evaluating.load(text, KNOWN)
    assert found == VALUES[text]
    if type(found) in {int, float, bool}:
        assert type(found) is type(VALUES[text]) or not isinstance(VALUES[text], int | float)


REFUSED = {
    # Makeflow's manual and program disagree
    "1 - 2 - 3": "line 1: '1 - 2 - 3' is -4 from left to right and 2 from right to left (add parentheses)",
    '"x" + 1 + 2': "'x + 1 + 2' is x12 from left to right and x3 from right to left (add parentheses)",
    "7 / 2 * 2": "'7 / 2 * 2' is 6 from left to right and 1 from right to left",
    '"a" + 5 - 3': "is null from left to right and a2 from right to left",
    "a or b and a": "'and' next to 'or' is ambiguous (add parentheses)",
    "not x == x": "'not' next to '=='",
    "1 < 2 < 3": "'<' and '<' follow each other (add parentheses)",
    # what does not fit
    "nobody": "line 1: 'nobody' is not defined",
    "\n\nnobody": "line 3: 'nobody' is not defined",
    "1 + null": "'+' cannot be applied to an integer and null",
    '-"a"': "'-' cannot be applied to a string",
    "1 / 0": "division by zero",
    "5 % 0.5": "division by zero",
    "9223372036854775807 + 1": "number too large: 9223372036854775807 + 1",
    "1e308 * 10": "number too large: 1e+308 * 10",
    "1e999": "number too large: 1e999",
    "9223372036854775808": "number too large: 9223372036854775808",
    "1 and true": "'and' needs booleans, got an integer",
    "a < b": "'<' cannot compare a boolean with a boolean",
    "row == row": "objects cannot be compared",
    "list[3]": "index 3 is out of range in a list of 3",
    'row["x"]': "the object has no key 'x'",
    '"abc"[0]': "cannot index a string with an integer",
    "row[1:]": "only a list can be sliced, got an object",
    "list[f:]": "the bounds of a slice must be integers, got a float",
    "[i for i in 7]": "'for' needs a list, got an integer",
    "[i for i in list if i]": "'if' needs booleans, got an integer",
    "[i for list]": "'for' must be followed by a name, 'in' and a list",
    "{i: 1 for i in range(2)}": "a key must be a string",
    '{"k": 1 for i in range(2)}': "the key 'k' appears twice in one object",
    # functions
    'listdir("x")': "listdir() reads folders, which eligo does not (evaluate the file with `jx2json` first)",
    'fetch("http://localhost")': "fetch() reads other files, which eligo does not",
    "system(1)": "unknown function 'system'",
    "range(1.5)": "wrong arguments: got range(a float), expected range(an integer) or range(",
    "range(1, 2, 0)": "the step of range() must not be 0",
    'format("%d", "a")': "format() got a string for '%d'",
    'format("%02d", 1)': "format() supports %d %i %s %e %f %g, got '%0'",
    'format("%")': "format() supports %d %i %s %e %f %g, got '%'",
    'format("%d")': "format() got nothing for '%d'",
    'format("a", 1)': "format() got more values than its string has fields",
    "format(1)": "the first argument of format() must be a string",
    'template("{")': "template() has an unmatched '{'",
    'template("{row}")': "template() takes numbers and strings, but 'row' is an object",
    'template("{nobody}")': "'nobody' is not defined",
    "template(1)": "template() takes a string and optionally an object",
    "join([1])": "join() takes a list of strings",
    "schema([1])": "schema() takes a list of objects",
    'like("a", "(a+)+b")': "like() does not support the pattern '(a+)+b'",
    r'like("a", "\\d")': "like() does not support the pattern",
    'like("a", "[z-a]")': "like() does not support the pattern",
    "select(list, a)": "select() takes a list of objects and an expression",
    "project([row])": "project() takes a list of objects and an expression",
    'error("no")': "unexpected 'error'",
    # what is no expression
    "1 +": "unexpected end of the text",
    "* 2": "unexpected '*'",
    "1 2": "unexpected value (a comma or colon is missing before it)",
    "x y": "unexpected 'y'",
    "(1": "unexpected end of the text",
    "[1)": "unexpected ')'",
    "x.y": "unexpected end of the text",
    "x.1": "unexpected value",
    "x = 1": "unexpected '='",
    '{"define": 1}': '"define" must be an object of names and values',
    '{"define": {"a" + "b": 1}}': 'a name in "define" must be a plain string',
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused(text: str) -> None:
    with pytest.raises(FormatError) as caught:
        evaluating.load(text, KNOWN)
    assert REFUSED[text] in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "[0 for i in range(9000000000)]",
        "[i + j for i in range(3000) for j in range(3000)]",
        '{"define": {"p": p}, "rules": [p]}',
        '{"define": {"p": q, "q": [p]}, "rules": [p]}',
        '{"define": {"a0": "x", ' + ", ".join(f'"a{i + 1}": a{i} + a{i}' for i in range(60)) + '}, "rules": [a60]}',
        '{"define": {"a0": [1], ' + ", ".join(f'"a{i + 1}": a{i} + a{i}' for i in range(60)) + '}, "rules": [a60]}',
        '{"define": {"p": range(100000)}, "rules": [p[1:] for i in range(100000)]}',
        '{"define": {"p": range(100000)}, "rules": [[] + p == p for i in range(100000)]}',
        '[like("' + "a" * 40 + '", "a*a*a*a*a*a*a*a*b")]',
        '[like("a", "' + "(a|a)" * 90 + '")]',
        "[" + "-" * 100_000 + "x]",
        "[" + "!" * 100_000 + "a]",
        "list" + "[0]" * 100_000,
        "(" * 100_000,
        "[1 " + "for i in [1] " * 1000 + "]",
        "list" + ".len()" * 1000,
    ],
    ids=range(16),
)
def test_nothing_takes_for_ever(text: str) -> None:
    start = time.perf_counter()
    with pytest.raises(FormatError, match=r"too many steps, or produce too much|levels deep"):
        evaluating.load(text, KNOWN)
    assert time.perf_counter() - start < 60  # it ends; how soon is for the benchmarks


FLOW = """{
  "define": {"N": 2, "OUT": "out." + i, "ALL": [OUT for i in range(N)]},
  "categories": {"sim": {"resources": {"cores": N, "memory": 10 * N}}},
  "rules": [
    {"command": template("sim {i} > out.{i}"), "inputs": ["sim"], "outputs": [OUT], "category": "sim"} for i in range(N),
    {"command": "cat " + join(ALL) + " > all", "inputs": ALL, "outputs": ["all"]},
  ],
}
"""


def test_a_workflow_of_expressions() -> None:
    flow = jx.parse(FLOW)
    assert flow.dag.tasks == ("out.0", "out.1", "all")
    assert list(flow.dag.arcs()) == [("out.0", "all"), ("out.1", "all")]
    assert (flow.task("out.1").command, flow.task("out.1").cores) == ("sim 1 > out.1", 2)
    assert flow.task("all").command == "cat out.0 out.1 > all"
    assert jx.parse(jx.generate(flow)).dag == flow.dag
    assert len(formats.parse(FLOW, arguments={"N": 5})) == 6


def test_arguments_count_more_than_definitions_and_have_to_be_plain() -> None:
    assert evaluating.load('{"define": {"N": 1}, "rules": [N]}', {"N": (2, 3)}) == {"rules": [[2, 3]]}
    with pytest.raises(InputError, match="an argument is not a JSON value"):
        evaluating.load("N", {"N": float("nan")})
    with pytest.raises(InputError, match="an argument is not a JSON value"):
        evaluating.load("N", {"N": object()})


def test_what_a_format_has_no_use_for_is_refused(tmp_path: Path) -> None:
    (tmp_path / "f.arcs").write_text("a b")
    with pytest.raises(InputError, match=r"f.arcs: arcs files do not take values for its names$"):
        formats.read(tmp_path / "f.arcs", arguments={"N": 1})
    with pytest.raises(TypeError, match="unknown argument 'nothing'"):
        formats.parse("a b", "arcs", nothing=1)  # type: ignore[call-arg]


def test_the_command_gives_arguments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, more = tmp_path / "f.jx", tmp_path / "args.jx"
    file.write_text('{"rules": [{"command": CMD, "outputs": ["o" + i]} for i in range(N)]}')
    assert run(["show", str(file)]) == 2
    assert capsys.readouterr().err == (
        f"eligo: {file}:1: 'N' is not defined: set it with --args NAME=VALUE or --args FILE\n"
    )
    more.write_text('{"N": 2 + 3, "CMD": "x"}')
    assert run(["show", str(file), "--args", str(more)]) == 0
    assert "tasks             5" in capsys.readouterr().out
    assert run(["show", str(file), "--args", str(more), "--args", "N=2", "--args", "CMD=ls -l"]) == 0
    assert "tasks             2" in capsys.readouterr().out
    more.write_text("[1]")
    assert run(["show", str(file), "--args", str(more)]) == 2
    assert "args.jx: must be one object of names and values" in capsys.readouterr().err


def test_makeflow_takes_the_environment_where_it_is_given(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "FILES=$MORE\nout: $FILES\n\tcat $FILES $HOME_OF > out\n"
    flow = makeflow.parse(text, {"MORE": "a b", "HOME_OF": "/h"})
    assert flow.task("out").inputs == ("a", "b")
    assert flow.task("out").command == "cat a b /h > out"
    assert makeflow.parse("X=own\nout: $X\n\tls\n", {"X": "theirs"}).task("out").inputs == ("own",)
    (tmp_path / "f.mf").write_text(text)
    assert run(["show", str(tmp_path / "f.mf")]) == 2
    assert capsys.readouterr().err.endswith("is not set in the file: --env reads it from the environment\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MORE", "a")
        assert run(["show", str(tmp_path / "f.mf"), "--env"]) == 0
        patch.delenv("MORE")
        capsys.readouterr()
        assert run(["show", str(tmp_path / "f.mf"), "--env"]) == 2
        assert capsys.readouterr().err.endswith("is not set in the file\n")


@pytest.mark.parametrize(
    ("size", "bytes_"), [("1MB", 2**20), ("3 GiB", 3 * 2**30), ("20k", 20480), ("7B", 7), ("8", 8), ("1 KB", 1024)]
)
def test_sizes_with_units(size: str, bytes_: int) -> None:
    assert makeflow.parse(f".SIZE in.csv {size}\nout: in.csv\n\tls\n").file_sizes == {"in.csv": bytes_}


@given(
    text=damaged(
        [FLOW],
        ["(", ")", "for i in", " if ", "+", "-", "not ", " and ", ".len()", "[1:", "%", "[0]", "range(", "N", '"%d"'],
    )
)
def test_damaged_expressions(text: str) -> None:
    accepts_or_refuses(jx.parse, text)


@given(text=st.text("ax1.0+-*/%()[]{}:,!<>=&| \"'\nforinotd", max_size=25))
def test_any_expression(text: str) -> None:
    try:
        evaluating.load(text, KNOWN)
    except FormatError as error:
        assert "\n" not in str(error)  # noqa: PT017


@pytest.mark.parametrize("name", ["flow.jx", "flow.json"])
def test_a_plan_of_jx_is_written_as_json_with_priorities(tmp_path: Path, name: str) -> None:
    path, out = tmp_path / name, tmp_path / "out.json"
    path.write_text('{"rules": [{"command": "sim " + i, "outputs": ["o" + i]} for i in range(N)]}', "utf-8")
    assert run(["plan", str(path), "--args", "N=2", "-o", str(out)]) == 0
    flow = formats.read(out)
    assert flow.origin is not None
    assert flow.origin.format == "json"
    assert {task: flow.task(task).priority is not None for task in flow.dag.tasks} == {"o0": True, "o1": True}
    assert flow.task("o1").command == "sim 1"


@pytest.mark.parametrize("options", [["-o", "-"], ["-o", "out.jx"], ["--in-place"]])
def test_where_jx_has_no_place_for_priorities_what_can_be_written_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("flow.json").write_text('{"rules": [{"command": "ls", "outputs": ["o"]}]}', "utf-8")
    assert run(["plan", "flow.json", *options]) == 2
    told = capsys.readouterr().err
    assert "jx cannot represent priorities: " in told
    assert told.startswith("eligo: flow.json: ") or "out.jx" in options
    assert "write .json or .yaml\n" in told or "name another file, .json or .yaml\n" in told


def test_keys_that_are_not_read_are_named() -> None:
    text = """{"environment": {"A": "1"}, "categories": {"big": {"resources": {"gpus": 1}}},
               "rules": [{"command": "x", "outputs": ["o"], "local_job": true, "resources": {"cores": 2, "disk": 9}}]}"""
    origin = jx.parse(text).origin
    assert origin is not None
    assert origin.remarks == ("ignored data: disk (rules)",)
    assert {each.key for each in origin.unhonoured} == {"local_job"}  # no rule is of the category
