"""Workflows as text: one module a format, each with the same few names.

| format      | module        | reads | writes | suffixes                |
|-------------|---------------|-------|--------|-------------------------|
| `json`      | json_format   | yes   | yes    | .json                   |
| `yaml`      | yaml_format   | yes   | yes    | .yaml .yml              |
| `arcs`      | arcs          | yes   | yes    | .arcs .edges .txt       |
| `dot`       | dot           |       | yes    | .dot .gv                |
| `wfcommons` | wfcommons     | yes   | yes    | .json, with "workflow"  |

A format's module has `NAME`, `SUFFIXES`, `CANNOT` (what it cannot represent), `parse(text)`, `generate(flow)` and
`sniff(text)`: whether a text looks like it. To add a format is to write its module and name it in `MODULES`.

Tasks and arcs are never lost: a format that cannot write a task's name refuses to. What else a format cannot represent,
such as the commands in an arc list, is left out; `CANNOT` says so.

>>> flow = parse("a -> b", "arcs")
>>> generate(flow, "json")
'{"arcs": [["a", "b"]], "nodes": ["a", "b"]}\\n'
"""

import gc
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from typing import Protocol, cast

from eligo.dag import Dag
from eligo.errors import FormatError, InputError, UnknownTaskError
from eligo.formats import orders
from eligo.formats.files import LARGEST_FILE, load, save, shown
from eligo.formats.json_text import line_of, quote
from eligo.formats.json_text import load as load_json
from eligo.workflow import Origin, Workflow, with_priorities

__all__ = [
    "LARGEST_FILE",
    "MODULES",
    "detect",
    "generate",
    "module",
    "parse",
    "read",
    "read_document",
    "read_order",
    "write",
    "write_priorities",
]

#: The module of each format. Where several fit a text, the first one does; the last one takes what is left.
MODULES = {
    "wfcommons": "eligo.formats.wfcommons",
    "json": "eligo.formats.json_format",
    "yaml": "eligo.formats.yaml_format",
    "dot": "eligo.formats.dot",
    "arcs": "eligo.formats.arcs",
}

StrPath = str | os.PathLike[str]


class Format(Protocol):
    """What the module of a format has."""

    NAME: str
    #: how its files' names end, lower case, with the dot
    SUFFIXES: tuple[str, ...]
    #: whether a task has a place for a priority
    PRIORITIES: bool
    #: what it cannot represent, a few words each
    CANNOT: tuple[str, ...]

    def parse(self, text: str) -> Workflow:
        """The workflow that the text describes."""

    def generate(self, flow: Workflow) -> str:
        """The text that describes the workflow."""

    def sniff(self, text: str) -> bool:
        """Whether the text looks like this format, at a glance."""


def module(format: str) -> Format:
    """The module of the format of this name.

    >>> module("arcs").SUFFIXES
    ('.arcs', '.edges', '.txt')
    """
    if format not in MODULES:
        raise InputError(f"there is no format {format!r}; there are {', '.join(sorted(MODULES))}")
    return cast(Format, import_module(MODULES[format]))


def read(path: StrPath, format: str | None = None, limit: int = LARGEST_FILE) -> Workflow:
    """The workflow in a file, or in standard input where *path* is "-"; gzip is undone.

    Without *format*, the file's name and what is in it tell. A file of more than *limit* bytes is refused, also when it
    only becomes so large by decompression. Every error names the file.
    """
    if format is not None:
        module(format)  # a wrong name is told before any file is opened
    path = os.fspath(path)
    text = load(path, limit)
    try:
        with _collector_paused():
            flow = parse(text, format or detect(path, text))
            origin = cast(Origin, flow.origin)
            return replace(flow, origin=replace(origin, path=None if path == "-" else path))
    except InputError as error:
        raise _located(error, path, text) from None


def write(flow: Dag | Workflow, path: StrPath, format: str | None = None) -> None:
    """Write a workflow to a file, or to standard output where *path* is "-"; gzipped where the name ends in .gz.

    Without *format*, the file's name tells; where it leaves a choice, the format is that the workflow was read from.
    """
    path = os.fspath(path)
    try:
        text = generate(flow, format or _format_to_write(flow, path))
    except FormatError as error:
        raise FormatError(error.message, None if path == "-" else path) from None
    save(text, path)


def write_priorities(flow: Workflow, order: Sequence[str], path: StrPath) -> None:
    """Write a workflow with priorities for its tasks, so that an engine that heeds them follows *order*."""
    path = os.fspath(path)
    format = _format_to_write(flow, path)
    if not module(format).PRIORITIES:
        others = " or ".join(suffix for name in ("json", "yaml") for suffix in module(name).SUFFIXES[:1])
        raise FormatError(f"{format} has no place for priorities: write {others}", shown(path))
    write(with_priorities(flow, order), path, format)


def read_order(path: StrPath, limit: int = LARGEST_FILE) -> tuple[str, ...]:
    """The order of tasks in a file, or in standard input where *path* is "-": see `eligo.formats.orders`."""
    path = os.fspath(path)
    text = load(path, limit)
    try:
        return orders.parse(text)
    except InputError as error:
        raise _located(error, path, text) from None


def read_document(path: StrPath, limit: int = LARGEST_FILE) -> object:
    """The JSON document in a file, such as a saved plan; None where the text is no JSON object or list."""
    path = os.fspath(path)
    text = load(path, limit)
    try:
        return load_json(text) if text.lstrip()[:1] in {"[", "{"} else None
    except InputError as error:
        raise _located(error, path, text) from None


def parse(text: str, format: str | None = None) -> Workflow:
    """The workflow that *text* describes; without *format*, its looks tell which it is."""
    with _collector_paused():
        return module(format or detect(None, text)).parse(text)


def generate(flow: Dag | Workflow, format: str) -> str:
    """The text that describes a workflow in this format."""
    return module(format).generate(flow if isinstance(flow, Workflow) else Workflow(flow))


def detect(path: StrPath | None, text: str) -> str:
    """The name of the format of a text in a file of this name; the path may be None or "-".

    The suffix decides, and what the text looks like where several formats or none share the suffix.

    >>> detect("x.json.gz", '{"arcs": []}'), detect("x.json", '{"name": "m", "workflow": {}}')
    ('json', 'wfcommons')
    >>> detect("-", "tasks:\\n- {name: a}"), detect(None, "digraph {}"), detect(None, "a b")
    ('yaml', 'dot', 'arcs')
    """
    fitting = _of_suffix("-" if path is None else os.fspath(path)) or list(MODULES)
    return next((name for name in fitting[:-1] if module(name).sniff(text)), fitting[-1])


def _of_suffix(path: str) -> list[str]:
    suffix = os.path.splitext(path.lower().removesuffix(".gz"))[1]
    return [name for name in MODULES if suffix in module(name).SUFFIXES]


def _format_to_write(flow: Dag | Workflow, path: str) -> str:
    origin = flow.origin.format if isinstance(flow, Workflow) and flow.origin else "json"
    fitting = [origin] if path == "-" else _of_suffix(path)
    if not fitting:
        raise FormatError("the file's name does not tell the format to write: name the format too")
    return origin if origin in fitting else fitting[-1]


def _located(error: InputError, path: str, text: str) -> InputError:
    """The same error, saying the file and, where it is known, the line."""
    words = (quote(error.name), error.name) if isinstance(error, UnknownTaskError) else ()
    line = next((found for word in words if (found := line_of(text, word))), None)
    return error.located(shown(path), line)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Without the garbage collector, which doubles the time to build many objects at once and finds nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
