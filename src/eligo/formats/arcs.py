"""Plain lists of arcs: a line is a parent and a child, or one task alone.

    # a comment
    fetch align
    fetch -> count  # an arrow means the same
    "two words" -> align
    lonely

networkx writes data after the two names of an arc: a dictionary, or a number on every line. They are ignored, with a remark.

Names are separated by spaces or tabs. A name that is empty, contains white space or an arrow, or begins with a quote or #
is in double quotes, escaped as in JSON. Tasks are in order of appearance; a line with one task can put it first.

>>> flow = parse('a -> b\\n"the end"  # nothing needs it')
>>> flow.dag.tasks, list(flow.dag.arcs())
(('a', 'b', 'the end'), [('a', 'b')])
>>> print(generate(flow), end="")
a b
"the end"

A plain text, of millions of lines with one or two words each, is split into words by operations on arrays. A text with
quotes or comments is not plain; it is read line by line, with a line number for every error.

>>> numbered_pairs("a b\\nlonely\\na -> c")
(('a', 'b', 'lonely', 'c'), array([0, 0], dtype=int32), array([1, 3], dtype=int32))
>>> numbered_pairs("a b c") is None
True
"""

import re
import sys
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.errors import FormatError, shorten
from eligo.formats.detection import WORDS
from eligo.formats.shared import json_text
from eligo.formats.shared.data_arcs import arc_lines
from eligo.rows import Ints, places
from eligo.workflow import Origin, Workflow

NAME = "arcs"
PRIORITIES = False
CANNOT = tuple(WORDS)


# Words in bulk

Bytes = NDArray[np.uint8]
Bools = NDArray[np.bool_]
Words64 = NDArray[np.uint64]

#: The maximum length of a word in a plain text.
LONGEST = 256

_CHUNK = 8
_BLOCK = 2**19
_ODD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 over the golden ratio: a multiplier that mixes well
_MIX = np.uint64(32)
_FACTORS = [np.uint64(0x9E3779B97F4A7C15 ** (2 * k + 1) % 2**64) for k in range(30)]
#: masks for eight bytes of a word, by the number of bytes that belong to it
_MASKS = np.array([(1 << 8 * k) - 1 for k in range(_CHUNK + 1)], np.uint64)
_SPACE, _NEWLINE, _DASH, _POINT = 32, 10, ord("-"), ord(">")
#: quotes, comments, and control characters, except those that separate words and lines
_SPECIAL = frozenset('"#\x7f' + "".join(map(chr, range(_SPACE)))) - frozenset("\t\r\n")


class Words(NamedTuple):
    """The places of words in a text, and whether each is the first of a pair."""

    data: Bytes  # the text and eight more bytes
    start: Ints
    length: Ints
    paired: Bools


def numbered_pairs(text: str) -> tuple[tuple[str, ...], Ints, Ints] | None:
    """The distinct words in order of appearance, and the word numbers of each pair; None if the text is not plain."""
    words = _plain_words(text)
    owner = None if words is None else _first_equal_words(words)
    if words is None or owner is None:
        return None
    firsts = np.flatnonzero(owner == np.arange(len(owner), dtype=np.int32))
    number = places(len(owner), firsts)[owner]
    tail = np.flatnonzero(words.paired)
    begin = words.start[firsts]
    cuts = zip(begin.tolist(), (begin + words.length[firsts]).tolist(), strict=True)
    return tuple([text[a:b] for a, b in cuts]), number[tail], number[tail + 1]


def _plain_words(text: str) -> Words | None:
    """The words of a plain text, without arrows; None if the text is not plain."""
    if not text.isascii() or any(sign in text for sign in _SPECIAL) or len(text) > 2**30 or sys.byteorder != "little":
        return None
    data = np.frombuffer(text.encode() + bytes(_CHUNK), np.uint8)
    blocks: list[tuple[Ints, Ints, Bools, int]] = []
    begin = 0
    while begin < len(text) or not blocks:
        end = text.find("\n", begin + _BLOCK) + 1 or len(text)
        block = _block(data, begin, end)
        if block is None:
            return None
        blocks.append(block)
        begin = end
    start, length, paired, arrow_counts = zip(*blocks, strict=True)
    if sum(arrow_counts) != text.count("->"):  # an arrow is inside a word
        return None
    return Words(data, np.concatenate(start), np.concatenate(length), np.concatenate(paired))


def _block(data: Bytes, begin: int, end: int) -> tuple[Ints, Ints, Bools, int] | None:
    """The words of complete lines, and the number of arrows; blocks that fit the processor's cache are faster."""
    part = data[begin:end]
    inside = np.zeros(len(part) + 2, np.bool_)
    np.greater(part, _SPACE, out=inside[1:-1])
    edge = np.flatnonzero(inside[1:] != inside[:-1]).astype(np.int32)
    start, length = edge[::2], edge[1::2] - edge[::2]
    if length.max(initial=0) > LONGEST:
        return None
    event = part == _NEWLINE
    event[start] = True
    newline = part[np.flatnonzero(event)] == _NEWLINE
    line = np.cumsum(newline, dtype=np.int32)[~newline]
    arrow = (length == 2) & (part[start] == _DASH) & (part[np.minimum(start + 1, len(part) - 1)] == _POINT)
    if arrow.any() and not _all_between(np.flatnonzero(arrow), arrow, line):
        return None
    start, length, line = start[~arrow], length[~arrow], line[~arrow]
    paired = np.zeros(len(line), np.bool_)
    np.equal(line[1:], line[:-1], out=paired[:-1])
    if (paired[1:] & paired[:-1]).any():  # three in a line
        return None
    return start + np.int32(begin), length, paired, int(arrow.sum())


def _all_between(where: NDArray[np.intp], arrow: Bools, line: Ints) -> bool:
    """Whether each arrow is between two words of its line."""
    if where[0] == 0 or where[-1] == len(arrow) - 1 or arrow[where - 1].any():
        return False
    return bool(((line[where - 1] == line[where]) & (line[where + 1] == line[where])).all())


def _first_equal_words(words: Words) -> Ints | None:
    """For every word, the number of the first equal word; None if hashes of different words collide."""
    key = np.zeros(len(words.start), np.uint64)
    several = int(words.length.max(initial=0)) > _CHUNK
    for offset in range(0, int(words.length.max(initial=0)), _CHUNK):
        key ^= _chunk(words, offset)
        if several:
            key *= _ODD
            key ^= key >> _MIX
    owner = _first_equal(key)
    return None if owner is None or (several and not _all_same(words, owner)) else owner


def _chunk(words: Words, offset: int) -> Words64:
    """Eight bytes of every word from *offset* on, padded with zeros."""
    wide: Words64 = np.ndarray(len(words.data) - _CHUNK + 1, np.uint64, words.data.data, strides=(1,))
    lengths = np.clip(words.length - offset, 0, _CHUNK)
    return wide[np.minimum(words.start + offset, len(wide) - 1)] & _MASKS[lengths]


def _all_same(words: Words, owner: Ints) -> bool:
    """Whether every word has the same letters as its owner."""
    if not np.array_equal(words.length[owner], words.length):
        return False
    chunks = (_chunk(words, offset) for offset in range(0, int(words.length.max()), _CHUNK))
    return all(np.array_equal(chunk[owner], chunk) for chunk in chunks)


def _first_equal(key: Words64) -> Ints | None:
    """For every place, the first place with the same key; None for keys that were chosen to make this slow.

    Each round hashes the remaining keys into slots. The first place in a slot is the answer for all places with its key.
    Other keys in the slot remain for the next round, which has another multiplier.
    """
    owner = np.empty(len(key), np.int32)
    remaining = np.arange(len(key), dtype=np.int32)
    for factor in _FACTORS:
        if not len(remaining):
            break
        mine = key if len(remaining) == len(key) else key[remaining]
        bits = max(len(remaining).bit_length() + 1, 4)
        slot = (((mine ^ (mine >> _MIX)) * factor) >> np.uint64(64 - bits)).astype(np.int32)
        table = np.empty(1 << bits, np.int32)
        table[slot[::-1]] = remaining[::-1]  # reversed, so that the first of several places in a slot is written last
        first = table[slot]
        settled = key[first] == mine
        owner[remaining[settled]] = first[settled]
        remaining = remaining[~settled]
    return None if len(remaining) else owner


# Workflows


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
    pairs = numbered_pairs(text[match.end() :]) if (match := _HEAD.match(text)) else None
    if pairs:
        dag = Dag.from_checked(len(pairs[0]), pairs[1], pairs[2], pairs[0])
        return Workflow(dag, origin=Origin(format=NAME, remarks=_doubts(dag)))
    text, remarks = _without_data(text)
    dag = _line_by_line(text)
    return Workflow(dag, origin=Origin(format=NAME, remarks=remarks + _doubts(dag)))


def _doubts(dag: Dag) -> tuple[str, ...]:
    """The remark on a list that may be a table: it has no arc, and each name contains a separator of cells."""
    if dag.arc_count or len(dag) < 2 or not all(re.search("[,;]", name) for name in dag.tasks):
        return ()
    return ("no line has two names separated by a space, so there are no arcs (a table must be named .csv)",)


def _without_data(text: str) -> tuple[str, tuple[str, ...]]:
    """The text without the data that networkx writes after arcs, and the remark on it.

    Numbers are weights only if every arc has one.
    """
    numbers = {data[0] != "{" for _, data in _WITH_DATA.findall(text)}
    if not numbers or (True in numbers and _PAIR.search(text)):
        return text, ()
    plain, count = _WITH_DATA.subn(r"\1", text)
    return plain, (f"ignored data after the names of {count:,} arc{'s' if count > 1 else ''}",)


def _line_by_line(text: str) -> Dag:
    """The dag of any list of arcs."""
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
    """The list of arcs of a workflow, after a list of its tasks if the arcs do not show their order."""
    return "".join(arc_lines(flow.dag, list(map(_quote, flow.dag.tasks)), " ")) or "# no tasks\n"


def sniff(text: str) -> bool:
    """Whether the text begins with a name, and not like a JSON object or an XML file."""
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
    message = f"a line must be a parent and a child, or one task, got {shorten(line.strip())!r}"
    raise FormatError(f"{message} (put names with spaces in double quotes)", line=number)


def _bare(word: str, number: int) -> str | None:
    if word == "->":
        return None
    if word.startswith('"'):
        raise FormatError(f"the name {shorten(word)} has no closing quote, or no space after it", line=number)
    if "->" in word:
        raise FormatError("an arrow must have spaces around it (put names with arrows in double quotes)", line=number)
    return word


def _quote(name: str) -> str:
    bare = name.split() == [name] and "->" not in name and name[0] not in '"#\ufeff'
    return name if bare else json_text.quote(name)
