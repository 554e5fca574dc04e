"""Reads a file or a text: the workflow in it, or an order of tasks.

An order, which a plan writes and `verify` checks, has one name per line. Empty lines and lines that begin with # are
ignored; a name that begins with a quote is a JSON string. Or it is JSON: a list of names, or an object with the key
`order`, such as the document of a plan.

>>> parse_order("a\\nthe end\\n")
('a', 'the end')
>>> parse_order('["a", "b"]') == parse_order('{"order": ["a", "b"], "verdict": "optimal"}') == ("a", "b")
True
"""

import gc
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Unpack, cast

from eligo.errors import FormatError, InputError, UnknownTaskError
from eligo.formats.detection import GIVEN, Format, Given, StrPath, detect, module, of_suffix, without_shebang
from eligo.formats.shared import json_text
from eligo.formats.shared.document import array, misfits_in, string
from eligo.formats.shared.files import LARGEST_FILE, Beside, Loaded, display_path, load, load_any, not_utf_8
from eligo.workflow import Origin, Workflow

#: The formats that name dependencies in words; an arrow, in contrast, may have either direction.
IN_WORDS = {"dagman", "pegasus", "dax", "wfcommons", "makeflow", "jx", "ninja", "make", "lines"}

#: The formats that are read line by line.
IN_LINES = {"dagman", "makeflow", "ninja", "make", "mermaid", "arcs", "lines"}

#: The formats that are UTF-8 by definition. In the others, bytes that are not UTF-8 are Latin-1.
UNICODE = {"wfcommons", "jx", "d3dag", "json", "pegasus", "yaml"}


def read(
    path: StrPath,
    format: str | None = None,
    limit: int = LARGEST_FILE,
    allow_outside: bool = False,
    reverse: bool = False,
    **given: Unpack[Given],
) -> Workflow:
    """Read a workflow from a file, or from standard input if *path* is "-"; gzip and zstd are decompressed.

    Without *format*, it is detected from the file's name and content. A file of more than *limit* bytes is refused, counted
    after decompression and with the files that it includes. Those must be in its folder or below, unless *allow_outside*.
    *reverse* reverses every arc, for graphs that point from a task to its dependencies. *given* has further input for some
    formats (see `Given`). Every error names the file.
    """
    if format is not None:
        module(format)  # raises for a wrong name, before any file is opened
    path = os.fspath(path)
    return read_loaded(load_any(path, limit), path, format, limit, allow_outside, reverse, **given)


def read_loaded(  # noqa: PLR0913, PLR0917 - what `read` takes
    loaded: Loaded,
    path: str,
    format: str | None = None,
    limit: int = LARGEST_FILE,
    allow_outside: bool = False,
    reverse: bool = False,
    **given: Unpack[Given],
) -> Workflow:
    """The workflow in the text of a loaded file; other arguments are as for `read`."""
    text, encoding = loaded
    try:
        with _collector_paused():
            format = format or detect(path, text)
            if encoding == "latin-1" and format in UNICODE:
                raise not_utf_8(text, path)
            beside = Beside(None if path == "-" else path, limit - len(text), allow_outside)
            flow = parse_as(text, format, beside, reverse, **given)
            source = text if path == "-" and hasattr(module(format), "prioritised") else None
            return replace(flow, origin=replace(_origin(flow, path, encoding), files=beside.files, text=source))
    except InputError as error:
        raise located(error, path, text) from None


def read_order(path: StrPath, limit: int = LARGEST_FILE) -> tuple[str, ...]:
    """Read an order of tasks from a file, or from standard input if *path* is "-"."""
    claim = read_claim(path, limit)
    return _order_names(claim) if isinstance(claim, dict) else claim


def read_claim(path: StrPath, limit: int = LARGEST_FILE) -> dict[str, Any] | tuple[str, ...]:
    """Read a plan with its proof, or an order of tasks, from a file, for `verify`."""
    path = os.fspath(path)
    text = load(path, limit, may_be_empty=True)
    try:
        kinds = of_suffix(path)
        if kinds and not {"json", "arcs", "csv"} & {*kinds}:
            raise FormatError(
                f"this is a workflow ({kinds[-1]}), not an order (an order is one name per line, or JSON)"
            )
        document = json_text.load(text) if text.lstrip().startswith("{") else None
        return document if isinstance(document, dict) and "proof" in document else parse_order(text)
    except InputError as error:
        raise located(error, path, text) from None


def parse_order(text: str) -> tuple[str, ...]:
    """The names in the text of an order."""
    if text.lstrip()[:1] in {"[", "{"}:
        with misfits_in(text):
            return _order_names(json_text.load(text))
    lines = enumerate(map(str.strip, text.split("\n")), 1)
    return tuple(
        json_text.unquote(line, number) if line.startswith('"') else line
        for number, line in lines
        if line and not line.startswith("#")
    )


def order_text(order: Sequence[str]) -> str:
    """The text of an order, one name per line.

    >>> order_text(["a", "# b"])
    'a\\n"# b"\\n'
    """
    return "".join(f"{_order_line(name)}\n" for name in order)


def _order_line(name: str) -> str:
    bare = name and name == name.strip() and name[0] not in '"#[{\ufeff' and name.isprintable()
    return name if bare else json_text.quote(name)


def _order_names(document: object) -> tuple[str, ...]:
    """The names in a JSON list, or in the order of an object."""
    if isinstance(document, dict) and "order" not in document:
        raise FormatError('the document has no key "order" (an order is a list of names, or an object with that key)')
    names = array(document["order"] if isinstance(document, dict) else document, "the order")
    return tuple(string(name, f"name {number} of the order") for number, name in enumerate(names, 1))


def parse(text: str, format: str | None = None, reverse: bool = False, **given: Unpack[Given]) -> Workflow:
    """The workflow in a text; without *format*, it is detected. Other arguments are as for `read`."""
    with _collector_paused():
        return parse_as(text, format or detect(None, text), None, reverse, **given)


def parse_as(text: str, format: str, beside: Beside | None, reverse: bool, **options: Any) -> Workflow:
    """The workflow in a text of this format, with the files *beside* it and further *options*."""
    if reverse and format in IN_WORDS:
        raise InputError(f"arcs of {format} cannot be reversed: the format states dependencies explicitly")
    if format in IN_LINES and "\r" in text.rstrip() and "\n" not in text:
        raise FormatError("lines end in a carriage return only (save the file with line feeds)")
    chosen = module(format)
    flow = chosen.parse(without_shebang(text), **_accepted_options(chosen, beside, options))
    origin = cast(Origin, flow.origin)
    if reverse:
        return replace(flow, dag=flow.dag.dual(), origin=replace(origin, reversed=True))
    return flow if origin.backward is None else replace(flow, origin=_with_hint(origin))


def _accepted_options(chosen: Format, beside: Beside | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that this format takes; raises for options that it does not take."""
    takes: tuple[str, ...] = getattr(chosen, "TAKES", ())
    for name, value in options.items():
        if name not in GIVEN:
            raise TypeError(f"unknown argument {name!r}")
        if value is not None and name not in takes:
            raise InputError(f"{chosen.NAME} files do not take {GIVEN[name]}")
    return {name: value for name, value in {"beside": beside, **options}.items() if name in takes}


def _with_hint(origin: Origin) -> Origin:
    """The origin with the remark that the arcs probably have the opposite direction."""
    hint = f"{origin.backward} draws arcs from a task to its dependencies: read this graph with reverse"
    return replace(origin, remarks=(*origin.remarks, hint))


def _origin(flow: Workflow, path: str, encoding: str) -> Origin:
    """The origin of a workflow, completed with the path and the encoding."""
    origin = cast(Origin, flow.origin)
    if encoding == "latin-1":
        origin = replace(
            origin, remarks=(*origin.remarks, f"{display_path(path)} is not UTF-8 and was read as Latin-1")
        )
    return replace(origin, path=origin.path or (None if path == "-" else path), encoding=encoding)


def located(error: InputError, path: str, text: str) -> InputError:
    """The error with the file and, if known, the line."""
    if error.path is not None:
        return error
    words = (json_text.quote(error.name), str(error.name)) if isinstance(error, UnknownTaskError) else ()
    line = next((number for word in words if (number := json_text.line_of(text, word))), None)
    return error.located(display_path(path), line)


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Run without the garbage collector, which doubles the time to build many objects and frees none."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
