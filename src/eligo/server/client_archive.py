"""The client as one file, `/client.pyz`: the modules that it imports, for every Python from 3.9 on and nothing else.

The modules are those that are installed, with what newer versions of Python added taken out of the text.
"""

import ast
import io
import re
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

MAIN, PATH = "eligo.client.__main__", "/client.pyz"
#: what runs it where it is made executable
SHEBANG = b"#!/usr/bin/env python3\n"
BEGIN = f"from {MAIN} import main\nraise SystemExit(main())\n"
#: what Python 3.9 does not know, and what it gets instead
OLDER = (
    (re.compile(r"(?m)^(@dataclass\(.*)"), lambda line: re.sub(r"\b(slots|kw_only)=True(, )?", "", line[0])),
    (re.compile(r"(?m)^([A-Z][a-z]\w*) = (.*\|.*)$"), r'\1 = "\2"'),  # names of types
    (re.compile(r", strict=(True|False)\b"), ""),
    (re.compile(r"\bisinstance\((\w+), (\w+) \| (\w+)\)"), r"isinstance(\1, (\2, \3))"),
    (
        re.compile(r"(?m)^from typing import (?:Self|(.*), Self)$"),
        lambda line: f"from typing import {line[1] or 'Any'}",
    ),
)


def client_routes() -> list[Route]:
    """The routes of the archive and its hash."""
    return [Route(PATH, _archive, methods=["GET"]), Route(f"{PATH}.sha256", _hash, methods=["GET"])]


async def _archive(request: Request) -> Response:
    return Response(client_archive(), media_type="application/zip")


async def _hash(request: Request) -> Response:
    return Response(f"{sha256(client_archive()).hexdigest()}  {PATH[1:]}\n", media_type="text/plain")


@cache
def client_archive() -> bytes:
    """The archive; the same modules always give the same bytes."""
    content = io.BytesIO()
    content.write(SHEBANG)
    with ZipFile(content, "w", ZIP_DEFLATED) as archive:
        archive.writestr(ZipInfo("__main__.py"), BEGIN, ZIP_DEFLATED)
        for name, path in sorted(_modules().items()):
            place = name.replace(".", "/") + ("/__init__.py" if path.name == "__init__.py" else ".py")
            archive.writestr(ZipInfo(place), _for_older(path.read_text("utf-8")), ZIP_DEFLATED)
    return content.getvalue()


def _modules() -> dict[str, Path]:
    """The modules that the client imports at its start, and those that these import, by name."""
    paths, waiting = dict[str, Path](), [MAIN]
    while waiting:
        name = waiting.pop()
        path = None if name in paths else _path_of(name)
        if path is not None:
            paths[name] = path
            waiting += [name.rpartition(".")[0] or MAIN, *_imports(path)]
    return paths


def _path_of(name: str) -> Path | None:
    """The file of a module of ours; None for anything else."""
    try:
        spec = find_spec(name)
    except ModuleNotFoundError:  # a name that is imported from a module, and is not a module itself
        return None
    return None if spec is None or spec.origin is None else Path(spec.origin)


def _imports(path: Path) -> Iterator[str]:
    """The modules of ours that a module may import at its start, among other names."""
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "eligo":
            yield str(node.module)
            yield from (f"{node.module}.{each.name}" for each in node.names)


def _for_older(text: str) -> str:
    """The text of a module for older versions of Python; annotations are not evaluated."""
    for pattern, new in OLDER:
        text = pattern.sub(new, text)
    first = ast.parse(text).body[0]
    lines = text.splitlines(keepends=True)
    at = first.end_lineno or 0 if isinstance(first, ast.Expr) else 0
    return "".join([*lines[:at], "from __future__ import annotations\n", *lines[at:]])
