"""From a file or a text to the workflow in it."""

import gc
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Unpack, cast

from eligo.errors import FormatError, InputError, UnknownTaskError
from eligo.formats import orders
from eligo.formats.detecting import StrPath, detect, module, of_suffix, without_shebang
from eligo.formats.shared.files import LARGEST_FILE, Beside, Loaded, load, load_any, not_utf_8, shown
from eligo.formats.shared.interface import GIVEN, Format, Given
from eligo.formats.shared.json_text import line_of, quote
from eligo.formats.shared.json_text import load as load_json
from eligo.workflow import Origin, Workflow

#: The formats that say which task needs which in words, not by an arrow that may be meant either way.
IN_WORDS = {"dagman", "pegasus", "dax", "wfcommons", "makeflow", "jx", "ninja"}

#: The formats that are read line by line.
IN_LINES = {"dagman", "makeflow", "ninja", "mermaid", "arcs"}

#: The formats that are UTF-8 by definition. In the others, bytes that are no UTF-8 are Latin-1.
UNICODE = {"wfcommons", "jx", "d3dag", "json", "pegasus", "yaml"}


def read(
    path: StrPath,
    format: str | None = None,
    limit: int = LARGEST_FILE,
    allow_outside: bool = False,
    reverse: bool = False,
    **given: Unpack[Given],
) -> Workflow:
    """The workflow in a file, or in standard input where *path* is "-"; gzip and zstd are undone.

    Without *format*, the file's name and what is in it tell. A file of more than *limit* bytes is refused, also when it
    only becomes so large by decompression or by the files that it names. Those have to be in its folder or below, unless
    *allow_outside*. With *reverse*, every arc is turned round, as for a graph that points from what needs to what is
    needed. What the file may need beside itself is *given*: see `Given`. Every error names the file.
    """
    if format is not None:
        module(format)  # a wrong name is told before any file is opened
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
    """The workflow in the text of a file that was loaded already."""
    text, encoding = loaded
    try:
        with _collector_paused():
            format = format or detect(path, text)
            if encoding == "latin-1" and format in UNICODE:
                raise not_utf_8(text, path)
            beside = Beside(None if path == "-" else path, limit - len(text), allow_outside)
            flow = parsed(text, format, beside, reverse, **given)
            kept = text if path == "-" and hasattr(module(format), "prioritised") else None
            return replace(flow, origin=replace(_origin(flow, path, encoding), files=beside.files, text=kept))
    except InputError as error:
        raise located(error, path, text) from None


def read_order(path: StrPath, limit: int = LARGEST_FILE) -> tuple[str, ...]:
    """The order of tasks in a file, or in standard input where *path* is "-": see `eligo.formats.orders`."""
    found = read_claim(path, limit)
    return orders.listed(found) if isinstance(found, dict) else found


def read_claim(path: StrPath, limit: int = LARGEST_FILE) -> dict[str, Any] | tuple[str, ...]:
    """What `verify` takes: a plan saved with its proof, or the order of tasks in a file."""
    path = os.fspath(path)
    text = load(path, limit, may_be_empty=True)
    try:
        kinds = of_suffix(path)
        if kinds and not {"json", "arcs", "csv"} & {*kinds}:
            raise FormatError(f"this is a workflow ({kinds[-1]}), not an order: that is names, one a line, or JSON")
        document = load_json(text) if text.lstrip().startswith("{") else None
        return document if isinstance(document, dict) and "proof" in document else orders.parse(text)
    except InputError as error:
        raise located(error, path, text) from None


def parse(text: str, format: str | None = None, reverse: bool = False, **given: Unpack[Given]) -> Workflow:
    """The workflow that *text* describes; without *format*, its looks tell which it is; the rest is as for `read`."""
    with _collector_paused():
        return parsed(text, format or detect(None, text), None, reverse, **given)


def parsed(text: str, format: str, beside: Beside | None, reverse: bool, **given: Any) -> Workflow:
    """The workflow that a text of this format describes, with the files *beside* it and what else is given."""
    if reverse and format in IN_WORDS:
        raise InputError(f"{format} says in words which task needs which, so that its arcs are not turned round")
    if format in IN_LINES and "\r" in text.rstrip() and "\n" not in text:
        raise FormatError("lines end with a carriage return alone: save the file with line feeds")
    chosen = module(format)
    flow = chosen.parse(without_shebang(text), **_wanted(chosen, beside, given))
    origin = cast(Origin, flow.origin)
    if reverse:
        return replace(flow, dag=flow.dag.dual(), origin=replace(origin, reversed=True))
    return flow if origin.backward is None else replace(flow, origin=_hinted(origin))


def _wanted(chosen: Format, beside: Beside | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """Of what is given what this format takes; what it has no use for is refused."""
    takes: tuple[str, ...] = getattr(chosen, "TAKES", ())
    for name, value in given.items():
        if name not in GIVEN:
            raise TypeError(f"there is no argument {name!r}")
        if value is not None and name not in takes:
            raise InputError(f"{chosen.NAME} has no use for {GIVEN[name]}")
    return {name: value for name, value in {"beside": beside, **given}.items() if name in takes}


def _hinted(origin: Origin) -> Origin:
    """The same, telling that the arcs are likely to be turned round."""
    hint = f"{origin.backward} draws arcs from what needs to what is needed: read this graph with reverse"
    return replace(origin, remarks=(*origin.remarks, hint))


def _origin(flow: Workflow, path: str, encoding: str) -> Origin:
    """Where the workflow came from, which the format knows in part."""
    origin = cast(Origin, flow.origin)
    if encoding == "latin-1":
        origin = replace(origin, remarks=(*origin.remarks, f"{shown(path)} is not UTF-8 and was read as Latin-1"))
    return replace(origin, path=origin.path or (None if path == "-" else path), encoding=encoding)


def located(error: InputError, path: str, text: str) -> InputError:
    """The same error, saying the file and, where it is known, the line."""
    if error.path is not None:
        return error
    words = (quote(error.name), str(error.name)) if isinstance(error, UnknownTaskError) else ()
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
