"""The functions of JX, each a small one of ours. Those that look at the file system or the network are refused.

>>> call("format", ["%s.%d", "out", 3]), call("join", [["a", "b"]]), call("basename", ["/tmp/a.txt", ".txt"])
('out.3', 'a b', 'a')
"""

import re
from collections.abc import Callable, Sequence
from math import ceil, floor
from typing import Any

from eligo.errors import FormatError, shorten
from eligo.formats.jx import patterns
from eligo.formats.jx.arithmetic import is_number, kind, shown

_OUTSIDE = {"listdir": "folders", "fetch": "other files"}
_FIELD = re.compile(r"\{\{|\}\}|\{\s*([A-Za-z_][A-Za-z_0-9]*)\s*\}|([{}])")
_TYPES = {type(None): "null", bool: "boolean", int: "integer", float: "float", str: "string", list: "array"}

Values = list[Any]


def unknown(name: str) -> str:
    """What to say of a function that there is not."""
    if name in _OUTSIDE:
        return f"{name}() looks at {_OUTSIDE[name]}, which is not done here: `jx2json` evaluates it"
    return f"there is no function {shorten(name)!r}"


def call(name: str, values: Values) -> Any:
    """What the function of this name makes of the values."""
    if name == "format":
        return _formatted(values)
    function, usages = FUNCTIONS[name]
    if not any(_fit(values, types) for types in usages):
        usage = " or ".join(f"{name}({', '.join(map(_said, types))})" for types in usages if types)
        raise FormatError(f"{name}() got ({', '.join(map(kind, values))}), and takes {usage}")
    return function(*values)


def cost(name: str, values: Values) -> int:
    """How many steps a call takes beside those for what it makes."""
    if name == "range" and all(type(value) is int for value in values):
        return len(range(*values)) if 0 < len(values) < 4 and values[2:] != [0] else 0
    if name == "like" and len(values) == 2 and all(isinstance(value, str) for value in values):
        return patterns.cost(values[0], values[1])
    return 0


def _fit(values: Sequence[Any], types: Sequence[type]) -> bool:
    found = [dict if isinstance(value, dict) else type(value) for value in values]
    return found == list(types)


def _said(type_: type) -> str:
    return kind({} if type_ is dict else type_())


def _range(*bounds: int) -> list[int]:
    if bounds[2:] == (0,):
        raise FormatError("range() takes steps other than 0")
    return list(range(*bounds))


def _formatted(values: Values) -> str:
    """The text with the values in place of %d, %s and so on."""
    text, *rest = values or [None]
    if not isinstance(text, str):
        raise FormatError("format() begins with a string")
    rest.reverse()
    parts = [part if part[0] != "%" else _field(part, rest) for part in re.findall(r"%.?|[^%]+", text, re.DOTALL)]
    if rest:
        raise FormatError("format() got more values than its string has fields")
    return "".join(parts)


def _field(spec: str, rest: Values) -> str:
    if spec == "%%":
        return "%"
    type_ = {"d": int, "i": int, "s": str}.get(spec[1:]) or (float if spec[1:] in tuple("eEfFgG") else None)
    if type_ is None:
        raise FormatError(f"format() knows %d %i %s %e %f %g, and no {spec!r}")
    value = rest.pop() if rest else None
    if type(value) is not type_:
        raise FormatError(f"format() got {kind(value) if value is not None else 'nothing'} for {spec!r}")
    return spec % value


def template_values(given: Values, lookup: Callable[[str], Any]) -> Values:
    """What template() is given, with the names in its text looked up."""
    if not given or not isinstance(given[0], str) or len(given) > 2 or not isinstance(given[-1], str | dict):
        raise FormatError("template() takes a string, and after it an object or nothing")
    own = given[1] if len(given) == 2 else {}
    names = {found[1] for found in _FIELD.finditer(given[0]) if found[1]}
    return [given[0], {name: own[name] if name in own else lookup(name) for name in sorted(names)}]


def _template(text: str, values: dict[str, Any]) -> str:
    def filled(found: re.Match[str]) -> str:
        if found[2]:
            raise FormatError(f"template() has a {found[2]!r} that stands alone: a field is one name in braces")
        if not found[1]:
            return found[0][0]
        value = values[found[1]]
        if not is_number(value) and not isinstance(value, str):
            raise FormatError(f"template() takes numbers and strings, and {found[1]!r} is {kind(value)}")
        return shown(value)

    return _FIELD.sub(filled, text)


def _joined(words: list[Any], between: str = " ") -> str:
    if not all(isinstance(word, str) for word in words):
        raise FormatError("join() takes a list of strings")
    return between.join(words)


def _basename(path: str, suffix: str = "") -> str:
    last = path.rstrip("/").rpartition("/")[2] or ("/" if path else ".")
    return last.removesuffix(suffix)


def _dirname(path: str) -> str:
    parent = path.rstrip("/").rpartition("/")
    return parent[0].rstrip("/") or ("/" if path.startswith("/") else ".")


def _escape(text: str) -> str:
    return '"' + re.sub(r'["\\$`]', r"\\\g<0>", text) + '"'


def _schema(rows: list[Any]) -> dict[str, str]:
    if not all(isinstance(row, dict) for row in rows):
        raise FormatError("schema() takes a list of objects")
    found: dict[str, str] = {}
    for row in rows:
        for key, value in row.items():
            found.setdefault(key, _TYPES.get(type(value), "object"))
    return dict(reversed(found.items()))


#: Of each function what it does, and the types of what it may be given; objects are told from their last key to the first.
FUNCTIONS: dict[str, tuple[Callable[..., Any], Sequence[Sequence[type]]]] = {
    "format": (_formatted, ()),
    "range": (_range, ((int,), (int, int), (int, int, int))),
    "template": (_template, ((str, dict),)),
    "join": (_joined, ((list,), (list, str))),
    "len": (len, ((list,),)),
    "ceil": (lambda x: x if type(x) is int else float(ceil(x)), ((int,), (float,))),
    "floor": (lambda x: x if type(x) is int else float(floor(x)), ((int,), (float,))),
    "basename": (_basename, ((str,), (str, str))),
    "dirname": (_dirname, ((str,),)),
    "escape": (_escape, ((str,),)),
    "schema": (_schema, ((list,),)),
    "like": (patterns.like, ((str, str),)),
    "keys": (lambda row: list(reversed(row)), ((dict,),)),
    "values": (lambda row: list(reversed(row.values())), ((dict,),)),
    "items": (lambda row: [[key, value] for key, value in reversed(row.items())], ((dict,),)),
}
