"""What is said of how to read a file has an effect or is refused, whatever the format; nothing is ignored in silence."""

from pathlib import Path
from typing import Any

import pytest

from eligo import formats
from eligo.cli import run
from eligo.errors import InputError
from eligo.formats.reader import IN_WORDS

#: a text of each format, with an arc from a to b
TEXTS = {
    "wfcommons": '{"name": "w", "workflow": {"tasks": [{"name": "a", "children": ["b"]}, {"name": "b"}]}}',
    "jx": '{"rules": [{"command": "x " + N, "outputs": ["a"]}, {"command": "x", "inputs": ["a"], "outputs": ["b"]}]}',
    "d3dag": '[{"id": "a", "parentIds": []}, {"id": "b", "parentIds": ["a"]}]',
    "json": '{"params": {"N": 1}, "tasks": [{"name": "a", "run": "x {N}"}, {"name": "b", "after": ["a"]}]}',
    "pegasus": 'pegasus: "5"\njobs:\n- {id: a, name: x}\n- {id: b, name: x}\njobDependencies: [{id: a, children: [b]}]\n',
    "yaml": "params: {N: 1}\ntasks:\n- {name: a, run: 'x {N}'}\n- {name: b, after: [a]}\n",
    "mermaid": "flowchart TD\na --> b\n",
    "dot": "digraph { a -> b }",
    "dax": '<adag><job id="a" name="x"/><job id="b" name="x"/><child ref="b"><parent ref="a"/></child></adag>',
    "graphml": '<graphml><graph edgedefault="directed"><node id="a"/><node id="b"/>'
    '<edge source="a" target="b"/></graph></graphml>',
    "make": "Makefile:1: target 'a' does not exist\ntrue\n# GNU Make 4.3\n.DEFAULT_GOAL := a\n# Files\n\na:\n#  x\n",
    "ninja": "rule c\n  command = c $in $out\nbuild a: c\nbuild b: c a\n",
    "dagman": "JOB a a.sub\nJOB b b.sub\nPARENT a CHILD b\n",
    "makeflow": "a:\n\techo $N > a\nb: a\n\tcp a b\n",
    "csv": "x,y\na,b\n",
    "arcs": "a b\n",
    "lines": "echo a\n",
}
#: what each option is given as, and the formats that it has an effect on
OPTIONS: dict[str, tuple[Any, set[str]]] = {
    "arguments": ({"N": 3}, {"jx", "json", "yaml"}),
    "environment": ({"N": "3"}, {"makeflow"}),
    "columns": (("y", "x"), {"csv"}),
    "trace": ("trace.txt", {"dot", "mermaid"}),
}


@pytest.mark.parametrize("format", formats.MODULES)
@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_has_an_effect_or_is_refused(format: str, option: str) -> None:
    value, taking = OPTIONS[option]
    text = TEXTS[format]
    if format not in taking:
        with pytest.raises(InputError, match=f"^{format} files do not take "):
            formats.parse(text, format, **{option: value})
    elif option == "trace":
        with pytest.raises(InputError, match="a trace needs a dag drawn by Nextflow"):
            formats.parse(text, format, trace=value)
    else:
        flow = formats.parse(text, format, **{option: value})
        commands = [str(task.command) for task in flow.details.values()]
        assert list(flow.dag.arcs()) == [("b", "a")] or any("3" in command for command in commands)


@pytest.mark.parametrize("format", formats.MODULES)
def test_arcs_are_turned_round_or_that_is_refused(format: str) -> None:
    given = {"arguments": {"N": 1}} if format == "jx" else {"environment": {"N": "1"}} if format == "makeflow" else {}
    if format in IN_WORDS:
        with pytest.raises(InputError, match=f"^arcs of {format} cannot be reversed"):
            formats.parse(TEXTS[format], format, reverse=True, **given)
    else:
        assert ("b", "a") in formats.parse(TEXTS[format], format, reverse=True).dag.arcs()


@pytest.mark.parametrize("text", ['{"rules": [{"command": "x", "outputs": ["o"]}]}', TEXTS["jx"]])
def test_values_that_jx_has_no_use_for_are_told(text: str) -> None:
    flow = formats.parse(text, "jx", arguments={"N": 1, "M": 2, "K": 3})
    assert flow.origin is not None
    unused = "M, K" if "N" in text else "N, M, K"
    assert flow.origin.remarks == (f"unused values: {unused}",)


@pytest.mark.parametrize(
    "options",
    [
        ["--from", "dot"],
        ["--args", "N=1"],
        ["--env"],
        ["--columns", "a,b"],
        ["--trace", "t"],
        ["--reverse"],
        ["--allow-outside"],
    ],
    ids=lambda options: options[0],
)
def test_options_that_say_how_to_read_are_refused_where_nothing_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    assert run(["run", "--resume", str(tmp_path), *options]) == 2
    said = f"eligo: {options[0]} has no effect without FILE (the original reading options apply): leave it out\n"
    assert capsys.readouterr().err == said


def test_a_server_without_files_refuses_to_be_told_how_to_read_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("uvicorn")
    store = ["--store", str(tmp_path / "store.db"), "--port", "0"]
    assert run(["serve", *store, "--from", "dot"]) == 2
    assert capsys.readouterr().err == "eligo: --from has no effect without FILE: leave it out\n"
