"""Pages as files: one HTML document that holds its data, the page's program and its style, and loads nothing.

`make page` builds the program and the style: they come with the wheel, and are not in the repository.
"""

import base64
import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from typing import Any

from eligo.errors import NotBuiltError
from eligo.formats.shared.files import save_bytes
from eligo.plotting.labels import legible

Assets = Callable[[str], bytes | None]
Document = Callable[[], Mapping[str, Any]]

ASSETS = {"index.html": "text/html; charset=utf-8", "page.js": "text/javascript", "page.css": "text/css"}
ABSENT = "the page is not built: run `make page` (needs Node 20 or later); released packages include it"

_SCRIPT_END = re.compile(r"<(?=/script|script|!--)", re.IGNORECASE)
_STYLE_END = re.compile(r"<(?=/style|!--)", re.IGNORECASE)
NO_SCRIPT = "This page needs JavaScript, which is disabled. It loads nothing else: everything is in this file."

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<div id="page"></div>
<noscript>{no_script}</noscript>
<script type="application/json" id="data">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def asset(name: str) -> bytes | None:
    """A file of the page, or None if it was not built."""
    try:
        return Path(__file__).with_name("built").joinpath(name).read_bytes()
    except OSError:
        return None


def is_built() -> bool:
    """Whether the page was built."""
    return all(asset(name) is not None for name in ASSETS)


def save_output(path: str | os.PathLike[str], page: Document, figure: Callable[[], Any]) -> None:
    """Write a page (.html) or a picture (.svg, .png), by the suffix."""
    from eligo.plotting.dags import SUFFIXES, picture_suffix, save_figure

    if picture_suffix(path, SUFFIXES) == ".html":
        save_page(path, page)
    else:
        save_figure(figure(), path)


def save_page(path: str | os.PathLike[str], document: Document, assets: Assets | None = None) -> None:
    """Write a document as a page; raises `NotBuiltError` if the page is not built."""
    if (assets or asset)("page.js") is None:
        raise NotBuiltError(f"cannot write {os.fspath(path)}: {ABSENT}")
    content = document()
    page = static_page(content, ": ".join([content["title"], *content["headline"][:1]]), assets)
    save_bytes(page.encode(), os.fspath(path))


def static_page(document: Mapping[str, Any], title: str, assets: Assets | None = None) -> str:
    """A document as one page that can be opened from a disk; raises `NotBuiltError` if the page is not built.

    Its policy allows only the program with the hash of the page's own, whatever the data contain.
    """
    program, look = (assets or asset)("page.js"), (assets or asset)("page.css")
    if program is None or look is None:
        raise NotBuiltError(ABSENT)
    script, style = _SCRIPT_END.sub(r"\\x3c", _text(program)), _STYLE_END.sub(r"\\3c ", _text(look))
    return PAGE.format(
        policy=policy(script, style), title=escape(legible(title)), style=style, no_script=NO_SCRIPT,
        data=data_text(document), script=script,
    )  # fmt: skip


def policy(script: str, style: str) -> str:
    """The content security policy of a page: one program, one style, and pictures within the page."""
    rules = (
        "default-src 'none'", f"script-src '{hash_of(script)}'", f"style-src '{hash_of(style)}'",
        "img-src data:", "base-uri 'none'", "form-action 'none'",
    )  # fmt: skip
    return "; ".join(rules)


def hash_of(text: str) -> str:
    """The hash of a program or a style in the form of a policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def data_text(document: Mapping[str, Any]) -> str:
    """A document as JSON that cannot end the element of the page that contains it.

    >>> data_text({"a": "</script>"})
    '{"a":"\\\\u003c/script>"}'
    """
    text = legible(json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")))
    for letter in ("<", "\u2028", "\u2029"):
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _text(data: bytes) -> str:
    """A file of the page as a browser reads it within a document, with uniform line ends."""
    return data.decode().replace("\r\n", "\n").replace("\r", "\n")
