"""Plain lists of arcs: a line is a parent and a child, or one task alone.

    # what comes after such a sign is a comment
    fetch align
    fetch -> count  # the arrow says the same
    "two words" -> align
    lonely

What networkx writes after the two names of an arc, a dictionary or, on every line, a number, is passed over and told.

Names are parted by spaces or tabs. A name that is empty, holds white space or an arrow, or begins with a quote or # stands in
double quotes, escaped as in JSON. Tasks are ordered as they appear; naming one alone first puts it first.

>>> flow = parse('a -> b\\n"the end"  # nothing needs it')
>>> flow.dag.tasks, list(flow.dag.arcs())
(('a', 'b', 'the end'), [('a', 'b')])
>>> print(generate(flow), end="")
a b
"the end"
"""

import re

import numpy as np

from eligo.dag import Dag
from eligo.errors import FormatError
from eligo.formats.shared import json_text
from eligo.formats.shared.arc_lists import shown_in_order
from eligo.formats.shared.words import numbered_pairs
from eligo.workflow import Origin, Workflow

NAME = "arcs"
PRIORITIES = False
CANNOT = (
    "name", "command", "inputs", "outputs", "seconds", "cores", "memory", "category", "priority", "file_sizes",
)  # fmt: skip

_HEAD = re.compile(r"(?:[ \t\r]*+(?:#[^\n]*+)?\n)*+")  # comments and empty lines at the top
_ARROW = re.compile(r"\s*([^\s\"#-]+)\s+->\s+([^\s\"#-]+)\s*")  # the common case
_WITH_DATA = re.compile(
    r"""^([ \t]*+[^\s"#]\S*+[ \t]++(?!->)[^\s"#]\S*+)[ \t]++"""
    r"""(\{[^\n]*\}|[-+]?(?:\d++\.?\d*+|\.\d++)(?:[eE][-+]?\d++)?)[ \t\r]*$""",
    re.MULTILINE,
)
_PAIR = re.compile(r"^[ \t]*+[^\s#]\S*+[ \t]++(?:->[ \t]++)?+\S++[ \t\r]*$", re.MULTILINE)
_WORD = re.compile(r'("(?:[^"\\]|\\.)*")(?!\S)|(#.*)|(\S+)')


def parse(text: str) -> Workflow:
    """The workflow that a list of arcs describes."""
    found = numbered_pairs(text[match.end() :]) if (match := _HEAD.match(text)) else None
    if found:
        dag = Dag.from_checked(len(found[0]), found[1], found[2], found[0])
        return Workflow(dag, origin=Origin(format=NAME, remarks=_doubts(dag)))
    text, remarks = _without_data(text)
    dag = _line_by_line(text)
    return Workflow(dag, origin=Origin(format=NAME, remarks=remarks + _doubts(dag)))


def _doubts(dag: Dag) -> tuple[str, ...]:
    """What to tell where the list may be a table: it has no arc, and each name holds a sign that separates cells."""
    if dag.arc_count or len(dag) < 2 or not all(re.search("[,;]", name) for name in dag.tasks):
        return ()
    return ("no line has two names with a space between them, so there is no arc: a table is called .csv",)


def _without_data(text: str) -> tuple[str, tuple[str, ...]]:
    """The text without what networkx writes after arcs, and what to tell of that.

    A number is only taken for a weight where every arc has one.
    """
    numbers = {data[0] != "{" for _, data in _WITH_DATA.findall(text)}
    if not numbers or (True in numbers and _PAIR.search(text)):
        return text, ()
    kept, count = _WITH_DATA.subn(r"\1", text)
    return kept, (
        f"what stands after the names of {count:,} arc{'s' if count > 1 else ''} is data and was passed over",
    )


def _line_by_line(text: str) -> Dag:
    """The dag of any list of arcs, however it is written."""
    index: dict[str, int] = {}
    ends: list[int] = []
    marks = [mark for mark in ('"', "#", "->") if mark in text]
    for number, line in enumerate(text.split("\n"), 1):
        words = line.split()
        if len(words) > 2 or (marks and any(mark in line for mark in marks)):
            words = _words(line, number)
        if len(words) == 2:
            ends.append(index.setdefault(words[0], len(index)))
            ends.append(index.setdefault(words[1], len(index)))
        elif words:
            index.setdefault(words[0], len(index))
    flat = np.array(ends, np.int32)
    return Dag.from_arrays(len(index), flat[::2], flat[1::2], tuple(index))


def generate(flow: Workflow) -> str:
    """The list of arcs of a workflow, with the tasks before them where the arcs do not show their order."""
    dag = flow.dag
    names = [_quoted(name) for name in dag.tasks]
    arcs = [f"{names[u]} {names[v]}\n" for u, v in zip(dag.tails.tolist(), dag.child.tolist(), strict=True)]
    shown = shown_in_order(dag)
    if shown is None:
        return "".join([*(f"{name}\n" for name in names), *arcs])
    return "".join([*arcs, *(f"{name}\n" for name in names[shown:])]) or "# no tasks\n"


def sniff(text: str) -> bool:
    """Whether the text begins with a name and not as a JSON object or an XML file does."""
    return re.match(r"\s*[^\s{<]", text) is not None


def _words(line: str, number: int) -> list[str]:
    """The one or two names in a line."""
    arrow = _ARROW.fullmatch(line)
    if arrow:
        return [arrow[1], arrow[2]]
    words: list[str | None] = []  # None for an arrow
    for quoted, comment, bare in _WORD.findall(line):
        if comment:
            break
        words.append(json_text.unquote(quoted, number) if quoted else _bare(bare, number))
    match words:
        case [] | [str()] | [str(), str()]:
            return [word for word in words if word is not None]
        case [str() as parent, None, str() as child]:
            return [parent, child]
    message = "a line is a parent and a child, or one task; a name that holds spaces goes in double quotes"
    raise FormatError(message, line=number)


def _bare(word: str, number: int) -> str | None:
    if word == "->":
        return None
    if word.startswith('"'):
        raise FormatError("a name in double quotes has no end, or no space after it", line=number)
    if "->" in word:
        raise FormatError("an arrow has spaces around it; a name that holds one goes in double quotes", line=number)
    return word


def _quoted(name: str) -> str:
    bare = name.split() == [name] and "->" not in name and name[0] not in '"#\ufeff'
    return name if bare else json_text.quote(name)
