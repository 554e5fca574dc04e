"""Draws passages at random from help, errors, pages and docstrings, for a reader who does not know the project.

python docs/develop/passages.py SEED [NUMBER]     # ten by default, as many of each kind as of any other

A passage that has to be read twice is rewritten, and the next ten are drawn with another seed, until none has to be.
docs/develop/passages.md lists what was changed because of it.
"""

import ast
import re
import sys
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from measure_prose import GENERATED, ROOT, every_page

SOURCES = ROOT / "src" / "eligo"
COMMANDS = "docs/reference/commands.md"
LEAST_WORDS = 6
#: the first letters of lines that are not prose: headings, tables, fences, comments and drawings
NO_PROSE = ("#", "|", "```", "~~~", "<!--", "+-")


class Passage(NamedTuple):
    """A text, and the file and line where it begins."""

    place: str
    text: str


def from_pages() -> Iterator[Passage]:
    """The paragraphs of the pages that people write, without code."""
    for page in every_page():
        if page not in GENERATED:
            yield from paragraphs(page, (ROOT / page).read_text("utf-8"))


def paragraphs(page: str, text: str) -> Iterator[Passage]:
    """The paragraphs and the items of lists of a page, each with the number of its first line.

    >>> [*paragraphs("x.md", "# Title\\n\\nOne.\\n\\n```sh\\nls\\n\\nls\\n```\\n* An item.\\n* Another.\\n")]
    ... # doctest: +NORMALIZE_WHITESPACE
    [Passage(place='x.md:3', text='One.'), Passage(place='x.md:10', text='* An item.'),
     Passage(place='x.md:11', text='* Another.')]
    """
    fence = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
    plain = fence.sub(lambda code: "\n" * code[0].count("\n"), text)
    item = r"(?:[-*]|\d+\.) "
    for block in re.finditer(rf"^.*\S.*\n?(?:^(?!\s*{item}).*\S.*\n?)*", plain, re.MULTILINE):
        if not block[0].lstrip().startswith(NO_PROSE):
            yield Passage(f"{page}:{plain.count(chr(10), 0, block.start()) + 1}", block[0].strip())


def from_help() -> Iterator[Passage]:
    """The lines of the reference of the verbs: what each verb does, and each option once, also if several verbs have it."""
    seen = set[str]()
    for number, line in enumerate((ROOT / COMMANDS).read_text("utf-8").splitlines(), 1):
        text = line.strip()
        if text and text not in seen and not text.startswith(("#", "```", "|--", "| --", "<!--")):
            seen.add(text)
            yield Passage(f"{COMMANDS}:{number}", text)


def from_sources() -> Iterator[tuple[str, Passage]]:
    """The docstrings and the messages of errors, each with its kind."""
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            place = f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                yield "docstring", Passage(place, (ast.get_docstring(node) or "").partition("\n\n")[0])
            elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                yield "error", Passage(place, ast.unparse(node.exc.args[0]))


def passages() -> dict[str, list[Passage]]:
    """All passages by kind, without those that are too short to be misread."""
    kinds: dict[str, list[Passage]] = {"page": [*from_pages()], "help": [*from_help()], "docstring": [], "error": []}
    for kind, passage in from_sources():
        kinds[kind].append(passage)
    return {kind: [each for each in some if len(each.text.split()) >= LEAST_WORDS] for kind, some in kinds.items()}


def draw(seed: int, number: int = 10) -> list[Passage]:
    """Draw passages, the kinds in turn and none twice; a seed always draws the same ones from the same sources."""
    random, kinds = Random(seed), [*passages().values()]
    drawn: list[Passage] = []
    for i in range(number):
        drawn.append(random.choice([each for each in kinds[i % len(kinds)] if each not in drawn]))
    return drawn


if __name__ == "__main__":
    for passage in draw(*map(int, sys.argv[1:3])):
        print(f"--- {passage.place}\n{passage.text}\n")
