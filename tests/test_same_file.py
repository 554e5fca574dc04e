"""A file that was renamed, compressed, or saved by another editor is the same workflow, or is refused in one line."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from eligo import formats
from eligo.dag import Dag
from eligo.errors import InputError
from eligo.workflow import Task, Workflow

DETAILS = {
    "fetch": Task(name="fetch", command="get", outputs=("raw",), seconds=1),
    "align": Task(name="align", command="align raw", inputs=("raw",), outputs=("aligned",), seconds=2),
    "count": Task(name="count", command="count raw", inputs=("raw",), outputs=("counts",), seconds=3),
    "report": Task(name="report", command="report", inputs=("aligned", "counts"), outputs=("page",), seconds=4),
}
FLOW = Workflow(
    Dag.from_arcs([("fetch", "align"), ("fetch", "count"), ("align", "report"), ("count", "report")]), DETAILS
)
COMMENTS = {
    "dot": b"// by hand\n",
    "mermaid": b"%% by hand\n",
    "dax": b"<!-- by hand -->\n",
    "graphml": b"<!-- by hand -->\n",
}
SUFFIXES = sorted(
    {suffix for _, suffixes in formats.MODULES.values() for suffix in suffixes} | {"", ".log", ".html", ".bak"}
)

#: what happens to files, and whether every format is read as before then
CHANGES: dict[str, tuple[Callable[[bytes, bytes], bytes], bool]] = {
    "a byte order mark": (lambda data, comment: b"\xef\xbb\xbf" + data, True),
    "CR LF": (lambda data, comment: data.replace(b"\n", b"\r\n"), True),
    "UTF-16": (lambda data, comment: data.decode().encode("utf-16"), True),
    "gzip": (lambda data, comment: gzip.compress(data), True),
    "no line end": (lambda data, comment: data.rstrip(b"\n"), True),
    "lines below": (lambda data, comment: data + b"\n\n  \n", True),
    "lines above": (lambda data, comment: b"\n\n" + data, True),
    "a program's name": (lambda data, comment: b"#!/usr/bin/env tool\n" + data, True),
    "both": (lambda data, comment: b"\xef\xbb\xbf#!/usr/bin/env tool\r\n" + data.replace(b"\n", b"\r\n"), True),
    "a comment": (lambda data, comment: comment + data, False),
    "a comment below lines": (lambda data, comment: b"\n" + comment + comment + b"\n" + data, False),
    "blanks above": (lambda data, comment: b"  \n\t\n" + data, False),
    "an indented line": (lambda data, comment: b"  " + data, False),
    "CR": (lambda data, comment: data.replace(b"\n", b"\r"), False),
    "the end of a text of DOS": (lambda data, comment: data + b"\x1a", False),
}


def tasks_and_arcs(flow: Workflow) -> tuple[set[str], set[tuple[str, str]]]:
    return {str(task) for task in flow.dag.tasks}, {(str(a), str(b)) for a, b in flow.dag.arcs()}


def same_or_refused(path: Path) -> bool:
    """Whether the file is read as the workflow that was written; another one fails the test."""
    try:
        flow = formats.read(path)
    except InputError as error:
        assert "\n" not in str(error)  # noqa: PT017
        return False
    assert tasks_and_arcs(flow) == tasks_and_arcs(FLOW)
    return True


#: all formats but lists of commands, which have no place for dependencies, and listings of make, which only make writes
WRITTEN = [format for format in formats.MODULES if format not in {"lines", "make"}]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("format", WRITTEN)
def test_a_file_that_was_saved_otherwise_is_the_same_workflow(tmp_path: Path, format: str, change: str) -> None:
    changed, always = CHANGES[change]
    path = tmp_path / f"flow{formats.MODULES[format][1][0]}"
    path.write_bytes(changed(formats.generate(FLOW, format).encode(), COMMENTS.get(format, b"# by hand\n")))
    assert same_or_refused(path) or not always


@pytest.mark.parametrize("format", WRITTEN)
def test_a_file_of_another_name_is_the_same_workflow(tmp_path: Path, format: str) -> None:
    text = formats.generate(FLOW, format)
    for suffix in SUFFIXES:
        path = tmp_path / f"flow{suffix}"
        path.write_text(text, "utf-8")
        same_or_refused(path)
