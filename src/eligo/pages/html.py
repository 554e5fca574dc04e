"""Pages as files: one HTML document that holds its data, the page's program and its style, and loads nothing."""

import base64
import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from eligo.pages.built import asset
from eligo.plotting.labels import legible
from eligo.plotting.report import write_picture

Assets = Callable[[str], bytes | None]

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


def static_page(document: Mapping[str, Any], title: str, assets: Assets | None = None) -> str | None:
    """A document as one page that can be opened from a disk; None where the page is not built, or *assets* has none.

    Its policy lets run what has the hash of the page's own program, and nothing else, whatever the data hold.
    """
    program, look = (assets or asset)("page.js"), (assets or asset)("page.css")
    if program is None or look is None:
        return None
    script, style = _SCRIPT_END.sub(r"\\x3c", _text(program)), _STYLE_END.sub(r"\\3c ", _text(look))
    return PAGE.format(
        policy=policy(script, style),
        title=escape(legible(title)),
        style=style,
        no_script=NO_SCRIPT,
        data=data_text(document),
        script=script,
    )


def save_page(
    path: str | os.PathLike[str], document: Callable[[], Mapping[str, Any]], assets: Assets | None = None
) -> bool:
    """Write a document as a page; returns whether that was possible: not where the page is not built."""
    if (assets or asset)("page.js") is None:
        return False
    content = document()
    page = static_page(content, ": ".join([content["title"], *content["headline"][:1]]), assets)
    if page is not None:
        write_picture(path, page.encode())
    return page is not None


def policy(script: str, style: str) -> str:
    """What a page may do: run one program, have one style, and show pictures that it holds."""
    rules = (
        "default-src 'none'", f"script-src '{hash_of(script)}'", f"style-src '{hash_of(style)}'",
        "img-src data:", "base-uri 'none'", "form-action 'none'",
    )  # fmt: skip
    return "; ".join(rules)


def hash_of(text: str) -> str:
    """The hash of a program or a style as a policy names it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def data_text(document: Mapping[str, Any]) -> str:
    """A document as JSON that nothing in it can end, within a page.

    >>> data_text({"a": "</script>"})
    '{"a":"\\\\u003c/script>"}'
    """
    text = legible(json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")))
    for letter in ("<", "\u2028", "\u2029"):
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _text(data: bytes) -> str:
    """A file of the page as a browser reads it within a document: the ends of lines are the same everywhere."""
    return data.decode().replace("\r\n", "\n").replace("\r", "\n")
