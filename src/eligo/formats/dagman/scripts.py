"""One DAGMan file: its nodes, splices and dependencies, and the commands that need names from other files.

Almost every line of a large file is `JOB name file` or `PARENT a CHILD b c`, in thousands of consecutive lines. Such
stretches are read as a whole, everything else line by line.

A line is one command. Blank lines and lines that begin with # or // are ignored; a backslash at the end joins the next line
that is not a comment. Words are separated by spaces and tabs. Quotes group words, and a backslash inside them escapes the
next character; they remain part of a node's name, and are removed from the name of a file. Commands may have any letter
case, and - or _.

>>> tokens('JOB "a b" c'), tokens('JOB "a b" c', trim=True)
(['JOB', '"a b"', 'c'], ['JOB', 'a b', 'c'])
"""

import re
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice, repeat
from sys import intern
from typing import NamedTuple

import numpy as np

from eligo.errors import DuplicateTaskError, FormatError, InputError, shorten
from eligo.formats.dagman.submission import Facts, facts_in
from eligo.rows import Ints

# Lines and words

#: The blanks of DAGMan; str.split() has more.
BLANK = " \t\r\v\f"
#: The characters at which str.split() splits words, but DAGMan does not.
FOREIGN_BLANKS = "\v\f\x1c\x1d\x1e\x1f"

#: Commands about files that DAGMan writes, or about its own job, which do not affect nodes.
BOOKKEEPING = frozenset({"DOT", "JOBSTATE_LOG", "NODE_STATUS_FILE", "SAVE_POINT_FILE", "SET_JOB_ATTR"})
#: Commands that only affect how nodes are run, and whether their second word names a node.
NOTED = {"ABORT_DAG_ON": True, "MAXJOBS": False, "PRE_SKIP": True, "RETRY": True, "TOLERANCE": False}
#: Words that cannot be names of nodes, in any letter case.
RESERVED = frozenset(("PARENT", "CHILD", "ALL_NODES"))

_PIECE = re.compile(
    r"""(?P<blank>[ \t\r]+) | (?P<plain>[^ \t\r"']+) | "[^"\\]*(?:\\.[^"\\]*)*" | '[^'\\]*(?:\\.[^'\\]*)*'""",
    re.DOTALL | re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def keyword(word: str) -> str:
    """The normal spelling of a command or an option.

    >>> keyword("Pre-Skip")
    'PRE_SKIP'
    """
    return word.upper().replace("-", "_")


def tokens(line: str, trim: bool = False) -> list[str]:
    """The words of a line; with *trim*, without their quotes."""
    if '"' not in line and "'" not in line:
        return [word for word in re.split(r"[ \t\r]+", line) if word]
    words, word, at = [], "", 0
    while at < len(line):
        piece = _PIECE.match(line, at)
        if piece is None:
            raise FormatError("missing closing quote")
        if piece["blank"]:
            words.append(word)
            word = ""
        else:
            word += piece["plain"] or _unquote(piece[0], trim)
        at = piece.end()
    return [word for word in [*words, word] if word]


def _unquote(quoted: str, trim: bool) -> str:
    inner = _ESCAPE.sub(r"\1", quoted[1:-1])
    return inner if trim else quoted[0] + inner + quoted[0]


class Lines:
    """The lines of a text, taken a stretch at a time.

    `number` is the number of the last line taken, `start` that of the first line of the current command.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.number = 0
        self.start = 0
        self.end = 0
        self._stretch: Iterator[str] = iter(())

    def chunk(self, size: int) -> str:
        """The next complete lines of about *size* characters, which are not taken yet."""
        cut = self.text.find("\n", self.end + size)
        return self.text[self.end : len(self.text) if cut < 0 else cut + 1]

    def skip(self, chunk: str) -> None:
        """Take a chunk at once."""
        self.end += len(chunk)
        self.number += chunk.count("\n")

    def take(self, chunk: str) -> Iterator[str]:
        """Take the commands in a chunk, with joined lines; `pull` can take lines between them, also beyond the chunk."""
        self.end += len(chunk)
        self._stretch = stretch = iter(chunk.removesuffix("\n").split("\n"))
        for raw in stretch:
            self.number += 1
            line = raw.strip(BLANK)
            if line and line[0] != "#" and not line.startswith("//"):
                self.start = self.number
                if line[-1] != "\\" or (line := self._join(line)):
                    yield line

    def pull(self) -> str | None:
        """Take the next line that is not blank or a comment, without surrounding blanks; returns None at the end."""
        while True:
            raw = next(self._stretch, None)
            if raw is None:
                if self.end >= len(self.text):
                    return None
                self._more()
                continue
            self.number += 1
            line = raw.strip(BLANK)
            if line and line[0] != "#" and not line.startswith("//"):
                return line

    def description(self, opening: str) -> tuple[list[str], str] | None:
        """Take an inline submit description: its lines, and the rest of its last line; None if there is none here."""
        if opening[0] != "{" and not opening.startswith("@="):
            return None
        inner: list[str] = []
        end = "}" if opening[0] == "{" else "@" + opening[2:]
        if end == "@":
            raise FormatError("@= must be followed directly by the word that ends the description")
        while (line := self.pull()) is not None:
            if line == end or line.startswith(end + " "):
                return inner, line[len(end) :]
            inner.append(line)
        raise FormatError(f"the submit description is not closed (it needs {shorten(end)} on its own line)")

    def _join(self, line: str) -> str:
        parts: list[str] = []
        more: str | None = line
        while more is not None and more.endswith("\\"):
            parts.append(more[:-1])
            more = self.pull()
        return " ".join([*parts, more or ""]).strip(BLANK)

    def _more(self) -> None:
        """Extend the chunk by one line."""
        cut = self.text.find("\n", self.end)
        cut = len(self.text) if cut < 0 else cut
        self._stretch = iter((self.text[self.end : cut],))
        self.end = cut + 1


def integer(word: str, what: str, least: int = -(2**31)) -> int:
    """The integer in a word, which must have 32 bits as in DAGMan."""
    if word.isdecimal() and word.isascii() and len(word) < 10 and int(word) >= least:
        return int(word)
    if not re.fullmatch(r"[+-]?[0-9]{1,10}", word) or not least <= int(word) < 2**31:
        raise FormatError(f"{what} must be {'a positive' if least > 0 else 'an'} integer, got {shorten(word)!r}")
    return int(word)


# Commands

#: The number of characters that are read together.
STRETCH = 2**18
#: The signs that prevent a stretch from being read as a whole.
_MARKS = ('"', "'", "\\", "{", "+", "@", *FOREIGN_BLANKS)
_UNKNOWN = -1
#: Commands whose quotes are part of their values.
_VERBATIM = {*NOTED, "SCRIPT", "VARS"}
_SCRIPTS = {"PRE", "POST", "HOLD"}
#: The numbers of words after the options of SCRIPT.
_SCRIPT_OPTIONS = {"DEFER": 2, "DEBUG": 2}

#: The command of a node: the file of its submit description, the facts in an inline description, or None for NOOP nodes.
NodeFacts = str | Facts | None


class Statement(NamedTuple):
    """A command with names of nodes, which may be defined further down or in another file."""

    kind: str
    line: int
    words: list[str]


class Remark(NamedTuple):
    """A setting of how nodes are run, which does not affect the graph; *key* is its name for a run."""

    key: str
    line: int
    #: a node or ALL_NODES; empty if it concerns the whole file
    node: str = ""
    text: str = ""


class Splice(NamedTuple):
    """A file to be inserted as a part of the workflow."""

    name: str
    file: str
    folder: str
    line: int


@dataclass(slots=True)
class Script:
    """The contents of a DAGMan file. Nodes are numbered in the order of their definition."""

    path: str | None
    index: dict[str, int] = field(default_factory=dict)
    facts: list[NodeFacts] = field(default_factory=list)
    tails: list[Ints] = field(default_factory=list)
    heads: list[Ints] = field(default_factory=list)
    splices: list[Splice] = field(default_factory=list)
    statements: list[Statement | Remark] = field(default_factory=list)
    #: the nodes that run before, beside or after all others, with the kind of each
    outside: dict[str, str] = field(default_factory=dict)
    descriptions: dict[str, Facts] = field(default_factory=dict)
    #: the lines that only count in the submitted file: CONFIG, ENV, SET_JOB_ATTR
    settings: list[str] = field(default_factory=list)


def script_of(text: str, path: str | None) -> Script:
    """The contents of a text; errors have the *path* and the line."""
    reading = _Reading(text, path)
    try:
        return reading.read()
    except InputError as error:
        raise at(error, path, reading.lines.start) from None


def at(error: InputError, path: str | None, line: int) -> InputError:
    """The error with this place, unless it already has one."""
    if error.path is None:
        error.path, error.line = path, line if error.line is None else error.line
    return error


class _Reading:
    """The state while one text is read."""

    def __init__(self, text: str, path: str | None) -> None:
        self.lines = Lines(text)
        self.script = Script(path)
        self.marks = [mark for mark in _MARKS if mark in text]
        self.splits_alike = text.isascii() and not any(mark in text for mark in FOREIGN_BLANKS)
        self.tails, self.heads = array("i"), array("i")
        self.kinds: dict[str, str] = {}
        self.spliced: set[str] = set()
        self.takers: dict[str, Callable[[str, list[str]], None]] = {
            "JOB": self._job, "NODE": self._job, "SUBDAG": self._subdag, "SPLICE": self._splice, "PARENT": self._parent,
            "WEAK": self._weak, "PRIORITY": self._priority, "CATEGORY": self._pair, "DONE": self._done,
            "PIN_IN": self._pin, "PIN_OUT": self._pin, "CONNECT": self._pair, "INCLUDE": self._include,
            "FINAL": self._outside, "PROVISIONER": self._outside, "SERVICE": self._outside, "REJECT": self._reject,
            "SUBMIT_DESCRIPTION": self._description,
            "CONFIG": self._setting, "ENV": self._setting, "SET_JOB_ATTR": self._setting,
            "SCRIPT": self._script, "VARS": self._vars, **dict.fromkeys(NOTED, self._note),
        }  # fmt: skip

    def read(self) -> Script:
        while chunk := self.lines.chunk(STRETCH):
            if self._is_plain(chunk) and (self._jobs(chunk) or self._arcs(chunk)):
                self.lines.skip(chunk)
            else:
                self._commands(chunk)
        self.script.tails.append(np.array(self.tails, np.int32))
        self.script.heads.append(np.array(self.heads, np.int32))
        return self.script

    # Whole stretches

    def _is_plain(self, chunk: str) -> bool:
        return chunk.isascii() and not any(mark in chunk for mark in self.marks)

    def _jobs(self, chunk: str) -> bool:
        """Read a stretch if each line is `JOB name file`; returns whether it is."""
        count = chunk.count("\n") + (not chunk.endswith("\n"))
        if not chunk.startswith("JOB ") or chunk.count("\nJOB ") != count - 1:
            return False
        words = chunk.split()
        names, index, before = words[1::3], self.script.index, len(self.script.index)
        if len(words) != 3 * count or not words.count("JOB") == words[::3].count("JOB") == count:
            return False
        loud, others = chunk.upper(), self.script.outside.keys() | self.spliced
        if any(word in loud for word in RESERVED) or not others.isdisjoint(names):
            return False
        index.update(zip(names, range(before, before + count), strict=True))
        if len(index) < before + count:
            self._blame_repeated(names, before)
        self.script.facts.extend(map(intern, words[2::3]))
        return True

    def _blame_repeated(self, names: list[str], before: int) -> None:
        new = set(islice(self.script.index, before, None))
        for line, name in enumerate(names, self.lines.number + 1):
            if name not in new:
                self.lines.start = line
                raise DuplicateTaskError(name)
            new.remove(name)

    def _arcs(self, chunk: str) -> bool:
        """Read a stretch if all lines are `PARENT a CHILD b c ...`, or all `PARENT a b ... CHILD c`, with known names.

        Returns whether it is one.
        """
        count = chunk.count("\n") + (not chunk.endswith("\n"))
        if not chunk.startswith("PARENT ") or chunk.count("\nPARENT ") != count - 1:
            return False
        words = chunk.split()
        codes = np.fromiter(map(self.script.index.get, words, repeat(_UNKNOWN)), np.int32, len(words))
        keys = np.flatnonzero(codes == _UNKNOWN)
        first, middle = keys[::2], keys[1::2]
        if len(keys) != 2 * count or [words[i] for i in first.tolist()].count("PARENT") != count:
            return False
        if chunk.count(" CHILD ") != count:
            return False
        parents, children = middle - first - 1, np.append(first[1:], len(words)) - middle - 1
        if parents.min() < 1 or children.min() < 1 or (parents.max() > 1 and children.max() > 1):
            return False
        ends, lines = codes[codes != _UNKNOWN], 2 * np.arange(count)
        lone, times = (first - lines, children) if parents.max() == 1 else (middle - lines - 1, parents)
        repeated, others = np.repeat(ends[lone], times), np.delete(ends, lone)
        self.script.tails.append(repeated if parents.max() == 1 else others)
        self.script.heads.append(others if parents.max() == 1 else repeated)
        return True

    # Line by line

    def _commands(self, chunk: str) -> None:
        kinds, takers, quotes = self.kinds, self.takers, '"' in self.marks or "'" in self.marks
        for line in self.lines.take(chunk):
            words = line.split() if self.splits_alike else tokens(line.replace('"', "").replace("'", "")) or [line]
            kind = kinds.get(words[0]) or self._kind(words[0])
            if kind in takers:
                if quotes and ('"' in line or "'" in line) and kind not in _VERBATIM:
                    words = tokens(line)
                words[0] = kind
                takers[kind](line, words)

    def _kind(self, word: str) -> str:
        kind = keyword(word)
        if kind not in self.takers and kind not in BOOKKEEPING:
            raise FormatError(f"unknown DAGMan command {shorten(word)!r}")
        self.kinds[word] = kind
        return kind

    def _job(self, line: str, words: list[str]) -> None:
        description, rest = self._description_at(line, words, 2)
        self._define(words[1], description, rest)

    def _subdag(self, line: str, words: list[str]) -> None:
        rest = _unquoted_words(line, words)[3:]
        if not rest or keyword(words[1]) != "EXTERNAL":
            raise FormatError(f"a sub-DAG must be SUBDAG EXTERNAL, a name and a file, got {shorten(line)!r}")
        self._define(words[2], Facts(("condor_submit_dag", rest[0])), rest[1:])
        if self.script.facts[-1] is not None:
            self._remark("SUBDAG", words[2])

    def _define(self, name: str, description: NodeFacts, options: list[str]) -> None:
        """Add a node with the options after its description: DIR and a folder, NOOP, DONE."""
        script = self.script
        if options:
            description = self._with_options(name, description, options)
        self._check_name(name)
        script.index[name] = len(script.facts)
        script.facts.append(description)

    def _with_options(self, name: str, description: NodeFacts, options: list[str]) -> NodeFacts:
        words, moved = iter(options), ""
        for word in words:
            option = keyword(word)
            if option == "DONE":
                self.script.statements.append(Statement("DONE", self.lines.start, [name]))
            elif option == "NOOP":
                description = None
            elif option == "DIR" and (folder := next(words, None)):
                description = f"{folder}/{description}" if isinstance(description, str) else description
                moved = "" if folder == "." else folder
            else:
                raise FormatError(f"unexpected {shorten(word)!r} (only DIR with a folder, NOOP or DONE may follow)")
        if moved and description is not None:
            self._remark("DIR", name, moved)
        return description

    def _check_name(self, name: str) -> None:
        if name in self.script.index or name in self.script.outside or name in self.spliced:
            raise DuplicateTaskError(name)
        if "+" in name:
            raise FormatError(f"node name {shorten(name)!r} contains +, which separates the names of splices and nodes")
        if name.upper() in RESERVED:
            raise FormatError(f"{shorten(name)!r} is a reserved word of DAGMan and cannot be a name")

    def _description_at(self, line: str, words: list[str], place: int) -> tuple[NodeFacts, list[str]]:
        """The submit description at a place in the line, and the words after it."""
        trimmed = _unquoted_words(line, words)
        if len(trimmed) <= place:
            raise FormatError(f"{words[0]} needs a name and a submit description, got {shorten(line)!r}")
        inline = self.lines.description(words[place])
        if inline is not None:
            return facts_in(inline[0])._replace(lines=tuple(inline[0])), tokens(inline[1], trim=True)
        return intern(trimmed[place]), trimmed[place + 1 :]

    def _outside(self, line: str, words: list[str]) -> None:
        kind = words[0]
        self._description_at(line, words, 2)
        if kind != "SERVICE" and kind in self.script.outside.values():
            raise FormatError(f"at most one {kind} node is allowed")
        self._check_name(words[1])
        self.script.outside[words[1]] = kind
        self._remark(kind)

    def _description(self, line: str, words: list[str]) -> None:
        description, _ = self._description_at(line, words, 2)
        if not isinstance(description, Facts):
            raise FormatError(f"SUBMIT-DESCRIPTION needs a name and a description in {{ }}, got {shorten(line)!r}")
        self.script.descriptions[words[1]] = description

    def _splice(self, line: str, words: list[str]) -> None:
        options = _unquoted_words(line, words)[2:]
        if len(options) not in {1, 3} or (len(options) == 3 and keyword(options[1]) != "DIR"):
            message = f"a splice must be SPLICE, a name and a file, optionally DIR and a folder, got {shorten(line)!r}"
            raise FormatError(message)
        self._check_name(words[1])
        self.spliced.add(words[1])
        self.script.splices.append(
            Splice(words[1], options[0], options[2] if len(options) == 3 else "", self.lines.start)
        )

    def _weak(self, line: str, words: list[str]) -> None:
        if len(words) < 2 or keyword(words[1]) != "PARENT":
            raise FormatError(f"WEAK must be followed by PARENT, got {shorten(line)!r}")
        self._parent(line, words[1:])
        for name in words[_child(words) + 1 :]:
            self._remark("WEAK", name)

    def _parent(self, line: str, words: list[str]) -> None:
        middle = 2 if len(words) > 2 and words[2] == "CHILD" else _child(words)
        parents, children = words[1:middle], words[middle + 1 :]
        if not parents or not children:
            message = f"a dependency must be PARENT, nodes, CHILD, and nodes, got {shorten(line)!r}"
            raise FormatError(message)
        index = self.script.index
        if len(parents) == 1 or len(children) == 1:
            try:
                tails, heads = [index[name] for name in parents], [index[name] for name in children]
            except KeyError:  # defined further down, or a splice
                pass
            else:
                self.tails.extend(tails * len(heads))
                self.heads.extend(heads * len(tails))
                return
        children = [name for name in children if keyword(name) != "CHILD"]
        self.script.statements.append(Statement("PARENT", self.lines.start, [*parents, "", *children]))

    def _priority(self, line: str, words: list[str]) -> None:
        self._expect(words, 3, "a node and an integer")
        integer(words[2], f"the priority of {shorten(words[1])!r}")

    def _pin(self, line: str, words: list[str]) -> None:
        self._expect(words, 3, "a node and the number of a pin")
        integer(words[2], "the number of the pin", least=1)

    def _pair(self, line: str, words: list[str]) -> None:
        self._expect(words, 3, "two splices" if words[0] == "CONNECT" else "a node and the name of a category")

    def _done(self, line: str, words: list[str]) -> None:
        self._expect(words, 2, "a node")

    def _include(self, line: str, words: list[str]) -> None:
        words[1:] = _unquoted_words(line, words)[1:]
        self._expect(words, 2, "a file")

    def _setting(self, line: str, words: list[str]) -> None:
        self.script.settings.append(line)
        if words[0] != "SET_JOB_ATTR":
            self._remark(words[0])

    def _script(self, line: str, words: list[str]) -> None:
        place = 1
        while place < len(words) and (skipped := _SCRIPT_OPTIONS.get(keyword(words[place]))):
            place += 1 + skipped
        kind, node = keyword("".join(words[place : place + 1])), "".join(words[place + 1 : place + 2])
        self._remark(kind if kind in _SCRIPTS else "SCRIPT", node)

    def _vars(self, line: str, words: list[str]) -> None:
        if len(words) > 2:
            self._remark("VARS", words[1], line.split(None, 2)[2])

    def _note(self, line: str, words: list[str]) -> None:
        of_node = NOTED[words[0]]
        self._remark(words[0].replace("_", "-"), "".join(words[1:2]) if of_node else "", " ".join(words[2:]))

    def _remark(self, key: str, node: str = "", text: str = "") -> None:
        self.script.statements.append(Remark(key, self.lines.start, node, text))

    def _reject(self, line: str, words: list[str]) -> None:
        raise FormatError("REJECT marks this file as not to be run (remove that line to read it)")

    def _expect(self, words: list[str], count: int, what: str) -> None:
        """Record a command, which must have *count* words, to be executed when all names are known."""
        if len(words) != count:
            raise FormatError(f"{words[0]} takes {what}, got {shorten(' '.join(words[1:])) or 'nothing'}")
        self.script.statements.append(Statement(words[0], self.lines.start, words[1:]))


def _child(words: list[str]) -> int:
    return next((i for i, word in enumerate(words) if i and keyword(word) == "CHILD"), len(words))


def _unquoted_words(line: str, words: list[str]) -> list[str]:
    return tokens(line, trim=True) if '"' in line or "'" in line else words
