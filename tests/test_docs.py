"""The pages are true: generated ones are current, code names exist, links lead somewhere, and sentences are short."""

import ast
import re
from collections.abc import Iterator
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import get_type_hints

import pytest
from _pytest.mark import ParameterSet
from _pytest.mark.expression import Expression

import draw_architecture as draw
import eligo
import measure_prose as prose
import write_reference as reference
from eligo.cli import RENAMED_OPTIONS, RENAMED_POLICIES
from eligo.cli.operator import STATES as WORKFLOW_STATES
from eligo.formats.detection import MODULES
from eligo.formats.fidelity import KEYS
from eligo.formats.shared.document import FOREACH, PARAMS, SOURCES, TASK_KEYS, TOP_KEYS
from eligo.policies import OLD_NAMES
from eligo.running.states import STATES

ROOT = Path(__file__).parents[1]
PAGES = prose.every_page()
#: texts in backticks that look like names of the code: files, options of other programs, attributes, a removed name
NO_CODE = {
    "dag.verbose", "dag.mmd", "eligo.db", "client.get", "client.unregister_scheduler_plugin", "times.sources",
    "times.histories", "Plan.after",
}  # fmt: skip
#: the ends of files' names
ENDINGS = {
    "csv", "dag", "db", "dot", "html", "json", "key", "log", "md", "pem", "py", "service", "smk", "sub", "txt", "yaml",
}  # fmt: skip
FENCE = re.compile(r"^(```|~~~).*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)
#: pages about earlier versions, which contain their names
HISTORY = {"CHANGELOG.md"}


def each_page(*left_out: str) -> list[ParameterSet]:
    """The pages as parameters of a test."""
    return [pytest.param(page) for page in PAGES if page not in left_out]


@cache
def text_of(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


# Generated pages


@cache
def generated() -> dict[Path, str]:
    return reference.pages()


@pytest.mark.parametrize("path", reference.written(), ids=lambda path: path.name)
def test_the_reference_is_current(path: Path) -> None:
    assert path.read_text("utf-8") == generated()[path], "run `make docs`"


def test_every_verb_has_its_place_in_the_reference() -> None:
    placed = [verb for verbs in reference.VERBS.values() for verb in verbs]
    assert sorted(placed) == sorted(reference.verbs()), "write_reference.VERBS"


def test_every_public_name_has_its_place_in_the_reference() -> None:
    placed = [name for names in reference.SUBJECTS.values() for name in names]
    assert sorted(placed) == sorted(eligo.__all__), "write_reference.SUBJECTS"


# Tables that people write


def first_column(page: str, title: str) -> list[str]:
    """The names in backticks in the first column of the first table below a heading."""
    section = text_of(page).partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    first = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)
    rows = [line.split("|")[1] for line in (first[0] if first else "").splitlines()][2:]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row)]


def test_every_key_of_the_workflow_file_is_documented() -> None:
    page = "docs/reference/workflow-file.md"
    assert sorted(first_column(page, "Keys of the workflow")) == sorted((*TOP_KEYS, PARAMS))
    assert sorted(first_column(page, "Keys of a task")) == sorted((*TASK_KEYS, FOREACH))
    assert all(f"`{value}`" in text_of(page) for value in SOURCES)


def test_what_run_honours_speaks_of_every_format() -> None:
    page = text_of("docs/reference/what-run-honours.md")
    assert {format for format in MODULES if f"`{format}`" not in page} == set()
    assert set(KEYS) <= set(MODULES)


def test_the_vocabulary_has_every_state_and_policy() -> None:
    page = "docs/reference/vocabulary.md"
    assert sorted(first_column(page, "States of a task")) == sorted(STATES)
    assert sorted(first_column(page, "States of a workflow")) == sorted({*WORKFLOW_STATES, "stopped"})
    assert sorted(first_column(page, "Policies")) == sorted(reference.policy_names())


def test_the_vocabulary_has_every_deprecated_name() -> None:
    old = first_column("docs/reference/vocabulary.md", "Deprecated names")
    assert {f"{verb} {option}" for verb, options in RENAMED_OPTIONS.items() for option in options} <= set(old)
    assert {f"--policy {name}" for name in {*RENAMED_POLICIES, *OLD_NAMES}} <= set(old)
    assert {"Execution.futile", "waiting", "futile", "again"} <= set(old)


# Names of the code


def code_names(page: str) -> Iterator[str]:
    """The dotted names in backticks that begin with `eligo`, a room of it, or a public name."""
    first = "|".join(sorted({draw.room_of(module) for module in draw.modules()} - {""} | set(eligo.__all__)))
    for quoted in quoted_in(page):
        match = re.match(rf"((?:eligo|{first})(?:\.\w+)+)(?![\w/*-])", quoted)
        if match and match[1] not in NO_CODE and match[1].rpartition(".")[2] not in ENDINGS:
            yield match[1]


def quoted_in(page: str) -> list[str]:
    """The texts in backticks, without blocks of code; a line break counts as a blank."""
    return [" ".join(quoted.split()) for quoted in re.findall(r"`([^`]+)`", FENCE.sub("", text_of(page)))]


def resolves(name: str) -> bool:
    """Whether a name is that of a module, or of an attribute of one."""
    words = (name if name.startswith("eligo.") else f"eligo.{name}").split(".")
    for count in range(len(words), 0, -1):
        if ".".join(words[:count]) in draw.modules():
            return _has(".".join(words[:count]), words[count:])
    return False


def _has(module: str, words: list[str]) -> bool:
    if not words:
        return True
    try:
        thing: object = import_module(module)
    except ImportError:  # a plug-in of an engine that is not installed here
        return any(getattr(node, "name", "") == words[0] for node in ast.parse(draw.modules()[module].read_text()).body)
    for word in words:
        if not hasattr(thing, word) and (isinstance(thing, ModuleType) or word not in get_type_hints(thing)):
            return False
        thing = getattr(thing, word, None)
    return True


@pytest.mark.parametrize("page", each_page(*HISTORY))
def test_every_name_of_the_code_exists(page: str) -> None:
    assert [name for name in dict.fromkeys(code_names(page)) if not resolves(name)] == []


def test_a_wrong_name_is_noticed() -> None:
    assert all(
        map(resolves, ["eligo.plan", "running.loop.Runner", "eligo.work.tries", "eligo.Task.seconds", "Plan.conflict"])
    )
    assert not any(map(resolves, ["eligo.plam", "running.whole", "dag.Dag.nothing", "Plan.nothing"]))


@cache
def names_of_tests() -> frozenset[str]:
    """The names of all tests, and of the files that they are in."""
    paths = [*(ROOT / "tests").rglob("*.py")]
    functions = {
        name for path in paths for name in re.findall(r"^ *(?:async )?def (test_\w+)", path.read_text("utf-8"), re.M)
    }
    return frozenset(functions | {path.stem for path in paths})


@pytest.mark.parametrize("page", each_page(*HISTORY))
def test_every_named_test_exists(page: str) -> None:
    """Pages name tests by function, by file, or by path; files stand at their paths."""
    names = [name for quoted in quoted_in(page) for name in re.findall(r"\btest_\w+", quoted)]
    assert [name for name in dict.fromkeys(names) if name not in names_of_tests()] == []
    paths = [
        path
        for quoted in quoted_in(page)
        for path in re.findall(r"^(?:tests|examples|benchmarks|papers)/[\w/.]+", quoted)
    ]
    assert [path for path in dict.fromkeys(paths) if not (ROOT / path).exists()] == []


# Links


@cache
def anchors(page: str) -> frozenset[str]:
    """The anchors of a page's headings; equal headings are numbered."""
    found: list[str] = []
    for heading in re.findall(r"^#{1,6} (.*)$", FENCE.sub("", text_of(page)), re.MULTILINE):
        plain = reference.anchor(re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip()))
        again = sum(each == plain or re.fullmatch(rf"{re.escape(plain)}-\d+", each) is not None for each in found)
        found.append(f"{plain}-{again}" if again else plain)
    return frozenset(found)


@pytest.mark.parametrize("page", each_page())
def test_every_link_leads_somewhere(page: str) -> None:
    wrong = []
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", text_of(page))):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        path = ((ROOT / page).parent / file).resolve() if file else ROOT / page
        inside = anchor and path.exists() and path.suffix == ".md"
        if not path.exists() or (inside and anchor not in anchors(path.relative_to(ROOT).as_posix())):
            wrong.append(target)
    assert wrong == []


# Prose


@pytest.mark.parametrize("page", PAGES)
def test_sentences_and_cells_are_short(page: str) -> None:
    assert prose.faults(page) == [], f"see `python docs/develop/measure_prose.py {page}`"


# Tables of attacks and scenarios

PLAYED = ("docs/understand/security.md", "docs/understand/reliability.md")
#: a command that plays something: a file of tests, one of them or some by -k; a test by its name alone; a benchmark
TEST = re.compile(r"(?P<file>(?:tests/(?:\w+/)?)?test_\w+\.py)(::(?P<name>test_\w+))?( -k \"?(?P<some>[\w ]+)\"?)?")
ALONE, BENCHMARK = re.compile(r"test_\w+"), re.compile(r"python -m benchmarks (?P<name>\w+)")


@cache
def all_tests(path: Path) -> frozenset[str]:
    """The names of the tests in a file."""
    return frozenset(re.findall(r"^\s*(?:async )?def (test_\w+)", path.read_text("utf-8"), re.MULTILINE))


def missing_test(span: str) -> bool:
    """Whether a command of these pages plays nothing."""
    if named := BENCHMARK.fullmatch(span):
        return not (ROOT / "benchmarks" / f"{named['name']}.py").exists()
    if ALONE.fullmatch(span):
        return not any(span in all_tests(path) for path in (ROOT / "tests").rglob("test_*.py"))
    words = TEST.fullmatch(span)
    if words is None:
        return span.startswith(("tests/test_", "python -m benchmarks"))
    paths = [ROOT / words["file"]] if "/" in words["file"] else [*(ROOT / "tests").rglob(words["file"])]
    if not paths or not paths[0].exists():
        return True
    chosen = Expression.compile(words["some"] or words["name"] or "test")
    return not any(chosen.evaluate(partial(has_part, one)) for one in all_tests(paths[0]))


def has_part(name: str, part: str, /, **_: object) -> bool:
    return part in name


@pytest.mark.parametrize("page", PLAYED)
def test_what_plays_an_attack_is_there(page: str) -> None:
    spans = re.findall(r"`([^`\n]+)`", text_of(page))
    played = [span for span in spans if TEST.fullmatch(span) or BENCHMARK.fullmatch(span) or ALONE.fullmatch(span)]
    assert len(played) > 40
    assert [span for span in spans if missing_test(span)] == []


@pytest.mark.parametrize("title", ["From a file to results: `eligo run`", "From a request to a result: `eligo serve`"])
def test_the_walk_of_a_task_has_at_most_twelve_steps(title: str) -> None:
    section = text_of("docs/develop/architecture.md").partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    steps = re.findall(r"^\| (\d+) \|", section, re.MULTILINE)
    assert steps == [str(number) for number in range(1, len(steps) + 1)]
    assert 8 <= len(steps) <= 12
