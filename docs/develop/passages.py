"""Draws passages at random from help, errors, pages and docstrings, for a reader who does not know the project.

python docs/develop/passages.py SEED [NUMBER]     # ten by default, as many of each kind as of any other

A passage that has to be read twice is rewritten, and the next ten are drawn with another seed, until none has to be.
"""

import ast
import re
import sys
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from measure_prose import GENERATED, ROOT, every_page

SOURCES = ROOT / "src" / "eligo"
LEAST_WORDS = 6


class Passage(NamedTuple):
    """A text and where it stands."""

    place: str
    text: str


def from_pages() -> Iterator[Passage]:
    """The paragraphs of the pages that people write; the help of every verb is a page of its own."""
    for page in every_page():
        if page not in GENERATED:
            for block in re.split(r"\n\s*\n", (ROOT / page).read_text("utf-8")):
                if not block.lstrip().startswith(("#", "|", "```", "<!--", "+-")):
                    yield Passage(page, block.strip())


def from_help() -> Iterator[Passage]:
    """The lines of the generated reference of the verbs, one option each, and what each verb does."""
    for line in (ROOT / "docs/reference/commands.md").read_text("utf-8").splitlines():
        if line.strip() and not line.startswith(("#", "```", "|--", "<!--")):
            yield Passage("docs/reference/commands.md", line.strip())


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
    """So many passages, the kinds in turn; a seed always draws the same from the same sources."""
    random, kinds = Random(seed), [*passages().values()]
    return [random.choice(kinds[i % len(kinds)]) for i in range(number)]


if __name__ == "__main__":
    for passage in draw(*map(int, sys.argv[1:3])):
        print(f"--- {passage.place}\n{passage.text}\n")
