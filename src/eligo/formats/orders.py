"""Orders of tasks as text: what a plan says and `verify` checks.

Names, one a line; empty lines and lines that begin with # are passed over, and a name that begins with a
quote is read as in JSON. Or JSON: a list of names, or an object with the key `order`, such as a plan's document is.

>>> parse("a\\nthe end\\n")
('a', 'the end')
>>> parse('["a", "b"]') == parse('{"order": ["a", "b"], "verdict": "optimal"}') == ("a", "b")
True
"""

from collections.abc import Sequence

from eligo.errors import FormatError
from eligo.formats.shared import json_text
from eligo.formats.shared.document import array, misfits_in, string


def parse(text: str) -> tuple[str, ...]:
    """The names in an order."""
    if text.lstrip()[:1] in {"[", "{"}:
        with misfits_in(text):
            return listed(json_text.load(text))
    lines = enumerate(map(str.strip, text.split("\n")), 1)
    return tuple(_name(line, number) for number, line in lines if line and not line.startswith("#"))


def generate(order: Sequence[str]) -> str:
    """The names, one per line.

    >>> generate(["a", "# b"])
    'a\\n"# b"\\n'
    """
    return "".join(f"{_quoted(name)}\n" for name in order)


def listed(document: object) -> tuple[str, ...]:
    """The names in a JSON list, or in the order of an object."""
    if isinstance(document, dict) and "order" not in document:
        raise FormatError('the document has no key "order"')
    names = array(document["order"] if isinstance(document, dict) else document, "the order")
    return tuple(string(name, f"name {number} of the order") for number, name in enumerate(names, 1))


def _name(line: str, number: int) -> str:
    return json_text.unquote(line, number) if line.startswith('"') else line


def _quoted(name: str) -> str:
    bare = name and name == name.strip() and name[0] not in '"#[{\ufeff' and name.isprintable()
    return name if bare else json_text.quote(name)
