"""YAML text changed in place: comments, order, quotes and line ends stay as they are."""

from collections.abc import Sequence
from typing import Any

from eligo.formats.shared.editing import Edit, nested
from eligo.formats.shared.yaml_text import compose

#: a node of PyYAML's: it knows where it stands
Node = Any


def value_of(node: Node, key: str) -> Node | None:
    """What stands under a key of a mapping, letters large or small; None where nothing does."""
    pairs = node.value if node is not None and node.id == "mapping" else ()
    return next((value for name, value in pairs if str(name.value).lower() == key.lower()), None)


def rows(text: str, key: str) -> list[Node]:
    """The items of the list under a key of the document."""
    found = value_of(compose(text), key)
    return list(found.value) if found is not None and found.id == "sequence" else []


def put(text: str, node: Node, keys: Sequence[str], value: int | str) -> Edit:
    """What gives a mapping this value under these keys, the later ones inside the earlier."""
    for depth, key in enumerate(keys):
        inner = value_of(node, key)
        if inner is None:
            rest = keys[depth + 1 :]
            return _added(text, node, key, nested(rest, value) if rest else str(value))
        if depth + 1 < len(keys) and inner.id != "mapping":
            return Edit(inner.start_mark.index, inner.end_mark.index, nested(keys[depth + 1 :], value))
        node = inner
    return Edit(node.start_mark.index, node.end_mark.index, str(value))


def _added(text: str, mapping: Node, key: str, value: str) -> Edit:
    """A key more: behind the last one inside braces; else on a line of its own, before the second key or the first."""
    pairs = mapping.value
    if mapping.flow_style:
        at = pairs[-1][1].end_mark.index if pairs else mapping.start_mark.index + 1
        return Edit(at, at, f"{', ' if pairs else ''}{key}: {value}")
    mark = pairs[min(1, len(pairs) - 1)][0].start_mark
    line_end = "\r\n" if "\r\n" in text else "\n"
    return Edit(mark.index, mark.index, f"{key}: {value}{line_end}{' ' * mark.column}")
