"""The words of a DAGMan file: commands, comments, quotes and lines that go on.

A line is one command; blank lines and lines that begin with # or // are passed over; a backslash at the end joins the next
line that is no comment. Words are parted by spaces and tabs. Quotes hold words together, and inside them a backslash takes
the next sign as it is; they stay part of a node's name and are taken off the name of a file. Commands are spelt in any
case, with - or _.

>>> tokens('JOB "a b" c'), tokens('JOB "a b" c', trim=True)
(['JOB', '"a b"', 'c'], ['JOB', 'a b', 'c'])
"""

import re
from collections.abc import Iterator

from eligo.errors import FormatError, shorten

#: What blanks are to DAGMan; str.split() knows more.
BLANK = " \t\r\v\f"
#: Characters that str.split() parts words at, and DAGMan does not.
FOREIGN_BLANKS = "\v\f\x1c\x1d\x1e\x1f"

#: Commands about files that DAGMan writes, or about its own job: they change nothing that a node does.
BOOKKEEPING = frozenset({"DOT", "JOBSTATE_LOG", "NODE_STATUS_FILE", "SAVE_POINT_FILE", "SET_JOB_ATTR"})
#: Commands that say nothing of the tasks and their order, but how nodes are run; whether the second word names a node.
NOTED = {"ABORT_DAG_ON": True, "MAXJOBS": False, "PRE_SKIP": True, "RETRY": True, "TOLERANCE": False}
COMMANDS = (
    BOOKKEEPING
    | NOTED.keys()
    | frozenset(
        {"CONFIG", "ENV", "SCRIPT", "VARS"}
        | {"CATEGORY", "CONNECT", "DONE", "FINAL", "INCLUDE", "JOB", "NODE", "PARENT", "PIN_IN", "PIN_OUT", "PRIORITY"}
        | {"PROVISIONER", "REJECT", "SERVICE", "SPLICE", "SUBDAG", "SUBMIT_DESCRIPTION", "WEAK"}
    )
)
#: Words that are no names of nodes, in any case.
RESERVED = frozenset(("PARENT", "CHILD", "ALL_NODES"))

_PIECE = re.compile(
    r"""(?P<blank>[ \t\r]+) | (?P<plain>[^ \t\r"']+) | "[^"\\]*(?:\\.[^"\\]*)*" | '[^'\\]*(?:\\.[^'\\]*)*'""",
    re.DOTALL | re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


def keyword(word: str) -> str:
    """The one spelling of a command or of a word that belongs to one.

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
            raise FormatError("a quote has no end")
        if piece["blank"]:
            words.append(word)
            word = ""
        else:
            word += piece["plain"] or _unquoted(piece[0], trim)
        at = piece.end()
    return [word for word in [*words, word] if word]


def _unquoted(quoted: str, trim: bool) -> str:
    inner = _ESCAPE.sub(r"\1", quoted[1:-1])
    return inner if trim else quoted[0] + inner + quoted[0]


class Lines:
    """The lines of a text, taken a stretch at a time.

    `number` is that of the last line taken, `begun` that of the line where the command began.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.number = 0
        self.begun = 0
        self.end = 0
        self._stretch: Iterator[str] = iter(())

    def chunk(self, size: int) -> str:
        """About *size* characters from here on, whole lines, not taken yet."""
        cut = self.text.find("\n", self.end + size)
        return self.text[self.end : len(self.text) if cut < 0 else cut + 1]

    def skip(self, chunk: str) -> None:
        """Take a whole chunk at once."""
        self.end += len(chunk)
        self.number += chunk.count("\n")

    def take(self, chunk: str) -> Iterator[str]:
        """The commands in a chunk, joined where they go on; `pull` takes lines from between them, also beyond the chunk."""
        self.end += len(chunk)
        self._stretch = stretch = iter(chunk.removesuffix("\n").split("\n"))
        for raw in stretch:
            self.number += 1
            line = raw.strip(BLANK)
            if line and line[0] != "#" and not line.startswith("//"):
                self.begun = self.number
                if line[-1] != "\\" or (line := self._joined(line)):
                    yield line

    def pull(self) -> str | None:
        """The next line that is neither blank nor a comment, without blanks around it."""
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
        """The lines of a submit description that stands in the file, and what follows its end; None where it does not."""
        if opening[0] != "{" and not opening.startswith("@="):
            return None
        inner: list[str] = []
        end = "}" if opening[0] == "{" else "@" + opening[2:]
        if end == "@":
            raise FormatError("@= needs a word right after it, which ends the description")
        while (line := self.pull()) is not None:
            if line == end or line.startswith(end + " "):
                return inner, line[len(end) :]
            inner.append(line)
        raise FormatError(f"the submit description has no end: {shorten(end)} on a line of its own")

    def _joined(self, line: str) -> str:
        parts: list[str] = []
        more: str | None = line
        while more is not None and more.endswith("\\"):
            parts.append(more[:-1])
            more = self.pull()
        return " ".join([*parts, more or ""]).strip(BLANK)

    def _more(self) -> None:
        """Go beyond the chunk by one line."""
        cut = self.text.find("\n", self.end)
        cut = len(self.text) if cut < 0 else cut
        self._stretch = iter((self.text[self.end : cut],))
        self.end = cut + 1


def whole(word: str, what: str, least: int = -(2**31)) -> int:
    """The whole number that a word stands for, of 32 bits as DAGMan's are."""
    if word.isdecimal() and word.isascii() and len(word) < 10 and int(word) >= least:
        return int(word)
    if not re.fullmatch(r"[+-]?[0-9]{1,10}", word) or not least <= int(word) < 2**31:
        raise FormatError(
            f"{what} is {shorten(word)!r}, and should be a whole number" + (" from 1 up" if least > 0 else "")
        )
    return int(word)
