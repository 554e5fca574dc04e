"""What people read is in plain words: no message, help, docstring or comment has a banned phrase."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer

import eligo
from eligo.cli.serve_verbs import app
from measure_prose import banned_words

ROOT = Path(eligo.__file__).parent
REPOSITORY = Path(__file__).parents[1]
#: the packages and modules whose texts are checked: errors, progress, results, reports and help
ROOMS = sorted(path.name for path in ROOT.iterdir() if path.name not in {"kernels", "__pycache__", "py.typed"})
#: the folders beside the product whose docstrings and comments are checked, too
FOLDERS = ("benchmarks", "papers", "examples", "docs/develop")
#: help is an imperative sentence or a noun phrase, and no question
QUESTION = re.compile(r"(How|Which|Where|Who|What|When|Whether|Say|Is)\b")


class Rule(NamedTuple):
    banned: re.Pattern[str]
    instead: str


def rules() -> list[Rule]:
    return [Rule(re.compile(banned, re.IGNORECASE), instead) for banned, instead in banned_words().items()]


RULES = rules()


def complaints(text: str) -> list[str]:
    """What is wrong with a text, and what to write instead."""
    plain = " ".join(text.split())
    matches = ((rule, rule.banned.search(plain)) for rule in RULES)
    return [f"{match[0]!r} in {plain!r}: write {rule.instead}" for rule, match in matches if match]


# Modules


def files_of(room: str) -> list[Path]:
    path = ROOT / room
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def texts_of(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The line and text of every string with several words, but docstrings; values within an f-string are {}."""
    passed = {id(each) for node in ast.walk(tree) for each in (*_docstring(node), *_parts(node))}
    for node in ast.walk(tree):
        if id(node) not in passed:
            text = _text(node)
            if " " in text.strip():
                yield node.lineno, text  # type: ignore[attr-defined]


def _docstring(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
        first = node.body[0]
        if isinstance(first, ast.Expr):
            yield first.value


def _parts(node: ast.AST) -> Iterator[ast.AST]:
    """The pieces of an f-string, which are read together; strings within its values are read by themselves."""
    if isinstance(node, ast.JoinedStr):
        yield from (part for part in node.values if isinstance(part, ast.Constant))


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


@pytest.mark.parametrize("room", ROOMS)
def test_no_text_of_a_room_has_a_banned_word(room: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {complaint}"
        for path in files_of(room)
        for line, text in texts_of(ast.parse(path.read_text("utf-8")))
        for complaint in complaints(text)
    ]
    assert not found, "\n".join(found)


# Errors

#: what a message says of a value that is out of its limits
LIMIT = re.compile(r"must be (at least \d|at most|between \S+ and|(a )?(positive|finite)|an? (integer|number))")
#: the messages that name no value: it is long, a part of a program, or there are several
WITHOUT_VALUE = {
    '"define" must be an object of names and values',
    'a name in "define" must be a plain string',
    "the file must be a Nextflow trace or report (use the output of -with-trace or -with-report)",
    "invalid description of a file from the server",
    "invalid answer from the server: 'after' does not name earlier tasks of the grant",
    "an addition must be at most {} MiB",
    "cores and size must be at least 1",
    "{} must be an integer",
    "the depth of pool {} must be a number",
    "{}: scores must be finite",
    "{}: scores must be positive if the weight of releases is not 0",
    "not a bound on a finish: workers must be at least 1, with positive speeds",
}


#: what a message says of a value that it must name
VALUE = re.compile(r"^(unknown|invalid) |must be (an?|one of) ")
#: the names with which a message may begin although it begins no sentence
PROPER = re.compile(r"Parquet|PostgreSQL|Pegasus|WfCommons|Content-\w+|Idempotency-Key")


def messages(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The line and text of the message of every error that is made, also of one that a variable holds."""
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    for function in functions:
        nodes = list(ast.walk(function))
        held: dict[str, list[ast.expr]] = {}
        for node in nodes:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                held.setdefault(node.targets[0].id, []).append(node.value)
        for call in (node for node in nodes if isinstance(node, ast.Call)):
            if getattr(call.func, "id", "").endswith("Error"):
                for argument in call.args:
                    texts = held.get(argument.id, []) if isinstance(argument, ast.Name) else [argument]
                    yield from ((call.lineno, text) for each in texts if " " in (text := _text(each)).strip())


def faults_of_message(text: str) -> list[str]:
    """What is wrong with the form of a message."""
    faults = ["begin it with a small letter"] if re.match("[A-Z][a-z]", text) and not PROPER.match(text) else []
    faults += ["end it without a full stop"] if text.rstrip().endswith((".", "!", "?")) else []
    unnamed = (LIMIT.search(text) and ", got" not in text) or (VALUE.search(text) and "{}" not in text)
    return [*faults, *(["name the value"] if unnamed and text not in WITHOUT_VALUE else [])]


@pytest.mark.parametrize("room", ROOMS)
def test_an_error_has_the_form_of_all_errors(room: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text!r}: {fault}"
        for path in files_of(room)
        for line, text in messages(ast.parse(path.read_text("utf-8")))
        for fault in faults_of_message(text)
    ]
    assert not found, "\n".join(found)


def test_the_form_of_an_error_is_checked_wherever_its_text_is() -> None:
    source = """
def f(x):
    why = f"Wrong {x}."
    raise InputError(why).cured_by("run")
def g():
    raise InputError("unknown word")
def h(x):
    return FormatError(f"unknown word {x!r}: give another")
"""
    found = [faults_of_message(text) for _, text in messages(ast.parse(source))]
    assert found == [["begin it with a small letter", "end it without a full stop"], ["name the value"], []]


# Docstrings and comments


def prose_of(source: str) -> Iterator[tuple[int, str]]:
    """The line and text of every docstring, and of every block of comments."""
    for node in ast.walk(ast.parse(source)):
        for docstring in _docstring(node):
            text = _text(docstring)
            yield docstring.lineno, text.split(">>>", maxsplit=1)[0]  # type: ignore[attr-defined]
    start, last, lines = 0, 0, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row = token.start[0]
            if row > last + 1 and lines:
                yield start, " ".join(lines)
                lines.clear()
            start, last = row if not lines else start, row
            lines.append(token.string.lstrip("#: "))
    if lines:
        yield start, " ".join(lines)


def faults_of_prose(path: Path) -> list[str]:
    """The banned phrases in the docstrings and comments of a file, each with its line."""
    prose = prose_of(path.read_text("utf-8"))
    return [f"{path.relative_to(REPOSITORY)}:{line}: {words}" for line, text in prose for words in complaints(text)]


@pytest.mark.parametrize("room", [*ROOMS, "kernels"])
def test_no_docstring_or_comment_of_a_room_has_a_banned_word(room: str) -> None:
    found = [fault for path in files_of(room) for fault in faults_of_prose(path)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_docstring_or_comment_beside_the_product_has_a_banned_word(folder: str) -> None:
    found = [fault for path in sorted((REPOSITORY / folder).rglob("*.py")) for fault in faults_of_prose(path)]
    assert not found, "\n".join(found)


# The page


#: a string of one line, or a comment; templates are strings, and an address is no comment
SCRIPT = re.compile(r'"(?:[^"\\\n]|\\.)*"|`[^`]*`|(?<![:"\'])//[^\n]*|/\*.*?\*/', re.DOTALL)
#: a text between two tags, in a line of its own or between them
MARKUP = re.compile(r">([^<>{}]*[A-Za-z] [A-Za-z][^<>{}]*)<|^\s*([A-Z][^<>{}=;()]*[a-z] [^<>{}=;()]*)$", re.MULTILINE)


def texts_of_page(source: str) -> Iterator[tuple[int, str]]:
    """The comments of a module of the page, its strings of several words, and the texts between tags, with their lines."""
    for match in SCRIPT.finditer(source):
        text = re.sub(r"\$\{[^}]*\}", "{}", match[0])
        if " " in text.strip('`"/* '):
            yield source.count("\n", 0, match.start()) + 1, text
    for match in MARKUP.finditer(source):
        yield source.count("\n", 0, match.start()) + 1, match[1] or match[2]


PAGE = sorted((REPOSITORY / "page" / "src").rglob("*.ts*"))


@pytest.mark.parametrize("path", PAGE, ids=lambda path: path.name)
def test_no_text_or_comment_of_the_page_has_a_banned_word(path: Path) -> None:
    found = [f"{line}: {words}" for line, text in texts_of_page(path.read_text("utf-8")) for words in complaints(text)]
    assert not found, "\n".join(found)


def test_texts_of_the_page_are_found() -> None:
    source = """// Who asks.
const a = `at ${it}: ${b} told`;   /** in vain */
<p>
  Whoever runs it <b>makes one</b>
</p>
const url = "http://x y";
"""
    texts = [(line, text.strip()) for line, text in texts_of_page(source)]
    expected = {"// Who asks.": 1, "`at {}: {} told`": 2, "/** in vain */": 2, '"http://x y"': 6, "makes one": 4}
    assert {text: line for line, text in texts if text in expected} == expected
    assert any(text.startswith("Whoever runs it") for _, text in texts)


# Names


#: participles that name no thing; `left` is also a direction
PARTICIPLES = {"found", "told", "known", "whole", "made", "begun", "shown"}
#: names that are public, or those of columns of databases
OLD_NAMES = {
    "errors.py": {"known"}, "finishing.py": {"told"}, "running/api.py": {"begun"},
    "server/schema.py": {"made"}, "stores/service.py": {"made"},
}  # fmt: skip


def names_in(tree: ast.Module) -> Iterator[str]:
    """The names of functions, of their parameters, and of variables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from (node.name, *(argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def test_names_say_what_things_are() -> None:
    wrong = {
        str(path.relative_to(ROOT)): names
        for path in sorted(ROOT.rglob("*.py"))
        if (names := PARTICIPLES.intersection(names_in(ast.parse(path.read_text("utf-8")))))
    }
    assert wrong == OLD_NAMES


# Help


def commands() -> dict[str, Any]:
    group = typer.main.get_command(app)
    return {"": group, **getattr(group, "commands", {})}


@pytest.mark.parametrize("verb", sorted(commands()))
def test_help_is_in_plain_words_and_no_question(verb: str) -> None:
    command = commands()[verb]
    shown = [each for each in command.params if not getattr(each, "hidden", False)]
    helps = {"": command.help or "", **{str(each.name): getattr(each, "help", None) or "" for each in shown}}
    assert all(text.strip() for name, text in helps.items()), helps
    assert not [complaint for text in helps.values() for complaint in complaints(text)]
    assert not [text for text in helps.values() if QUESTION.match(text)]
    assert not [text for text in helps.values() if not (text[0].isupper() or text[0] in "-$") and "," not in text]


# The list itself


@pytest.mark.parametrize(
    "text",
    [
        "there is at least one worker, and 0 is none", "c failed for good", "what fails is told", "the run goes on",
        "It failed, and is tried again in 3 s.", "all end within .5% of one another", "stopped: nobody is at it now",
        "the own run time of 51 tasks is not known", "begin nothing more once so many tasks failed", "this is no number",
    ],
)  # fmt: skip
def test_the_list_finds_what_it_is_for(text: str) -> None:
    assert complaints(text)


@pytest.mark.parametrize(
    "text",
    [
        "workers must be a positive integer, got 0", "retrying in 0.5 s", "there is no task named 'a'",
        "the server is no longer reachable", "Maximum number of concurrent tasks.", "version 1.5 %s",
    ],
)  # fmt: skip
def test_the_list_leaves_plain_words_alone(text: str) -> None:
    assert not complaints(text)
