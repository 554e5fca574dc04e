"""Measures the pages: words per sentence, the longest cell of a table, and phrases to avoid. A test checks every page.

python docs/develop/measure_prose.py              # every page that people read
python docs/develop/measure_prose.py PAGE...      # these pages, with their longest sentences and cells
"""

import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
MOST_WORDS, MOST_LETTERS = 25, 200
#: the pages that are generated from texts of the code
GENERATED = {"docs/reference/commands.md", "docs/reference/python.md"}
_FENCE = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+\.)\s+")
#: a full stop, question mark or exclamation mark before a space ends a sentence, and so does the end of a paragraph
_END = re.compile(r"(?<=[.?!])[)\"'*_]*\s+(?=[^a-z])")


class Measured(NamedTuple):
    """What was measured on a page."""

    words: int
    sentences: tuple[str, ...]
    cells: tuple[str, ...]
    headings: tuple[str, ...] = ()

    @property
    def average(self) -> float:
        """The average number of words in a sentence."""
        return self.words / max(len(self.sentences), 1)

    @property
    def longest_cell(self) -> str:
        """The longest cell of any table."""
        return max(self.cells, key=len, default="")


def measure(text: str) -> Measured:
    """The sentences and the cells of a page; code and comments do not count.

    >>> found = measure("Two words. And three more.\\n\\n| a cell | b |\\n|---|---|\\n")
    >>> found.average, found.cells
    (2.5, ('a cell', 'b'))
    """
    text = _COMMENT.sub("", _FENCE.sub("", text))
    lines = text.splitlines()
    cells = tuple(cell for line in lines if _is_row(line) for cell in _cells(line))
    sentences = tuple(sentence for part in _paragraphs(lines) for sentence in _sentences(part))
    headings = tuple(line.lstrip("# ") for line in lines if line.startswith("#"))
    return Measured(sum(len(sentence.split()) for sentence in sentences), sentences, cells, headings)


def _is_row(line: str) -> bool:
    return line.lstrip().startswith("|")


def _cells(line: str) -> Iterator[str]:
    """The cells of a row as a reader sees them: of a link, its text."""
    row = _LINK.sub(r"\1", line.strip().strip("|").replace("\\|", "/"))
    yield from (cell.strip() for cell in row.split("|") if set(cell.strip()) - set(":-"))


def _paragraphs(lines: list[str]) -> Iterator[str]:
    """The paragraphs and the items of lists, each on one line; headings and tables are neither."""
    part: list[str] = []
    for line in [*lines, ""]:
        outside = not line.strip() or _is_row(line) or line.startswith("#")
        if (outside or _ITEM.match(line)) and part:
            yield " ".join(part)
            part = []
        if not outside:
            part.append(_ITEM.sub("", line).strip())


def _sentences(part: str) -> Iterator[str]:
    yield from (sentence for sentence in _END.split(_LINK.sub(r"\1", part)) if re.search(r"\w", sentence))


def faults(page: str) -> list[str]:
    """What is too long on a page, given by its path from the root, and the phrases to avoid."""
    found = measure((ROOT / page).read_text("utf-8"))
    wrong = [f"{page}: {found.average:.1f} words per sentence"] if found.average > MOST_WORDS else []
    wrong += [f"{page}: {sentence} ({cure})" for sentence, cure in idioms(found)]
    return wrong + [f"{page}: {len(cell)} characters: {cell}" for cell in found.cells if len(cell) > MOST_LETTERS]


def idioms(found: Measured) -> Iterator[tuple[str, str]]:
    """The sentences, cells and headings that have a phrase to avoid, and what to write instead; code does not count."""
    rules = banned_words()
    for text in (*found.sentences, *found.cells, *found.headings):
        plain = re.sub(r"`[^`]*`", "`", text)
        yield from ((text, cure) for idiom, cure in rules.items() if re.search(idiom, plain, re.IGNORECASE))


@cache
def banned_words() -> dict[str, str]:
    """The phrases to avoid, as regular expressions, and what to write instead: one list for messages and pages."""
    lines = (ROOT / "tests" / "banned_words.txt").read_text("utf-8").splitlines()
    pairs = (line.partition("\t") for line in lines if line and not line.startswith("#"))
    return {idiom: cure for idiom, _, cure in pairs}


def every_page() -> list[str]:
    """The paths of all pages that people read."""
    single = [ROOT / page for page in ("README.md", "CHANGELOG.md", "examples/README.md", "page/README.md")]
    return [path.relative_to(ROOT).as_posix() for path in (*single, *sorted((ROOT / "docs").rglob("*.md")))]


def main(pages: list[str]) -> None:
    """Print what was measured."""
    for page in pages or every_page():
        found = measure((ROOT / page).read_text("utf-8"))
        mark = "-" if page in GENERATED else " "
        print(f"{mark} {page:40} {found.average:5.1f} words a sentence, longest cell {len(found.longest_cell):4}")
        if pages:
            for sentence in sorted(found.sentences, key=lambda each: -len(each.split()))[:8]:
                print(f"    {len(sentence.split()):4} words: {sentence}")
            for sentence, cure in idioms(found):
                print(f"    {cure}: {sentence}")
            for cell in sorted(found.cells, key=len)[::-1][:5]:
                print(f"    {len(cell):4} characters: {cell}")


if __name__ == "__main__":
    main(sys.argv[1:])
