"""What people and programs are told: plans on one screen, orders as text, JSON as documented, README as printed."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import eligo
from conftest import data_of
from eligo import families
from eligo.cli import run
from eligo.cli.output import chart
from eligo.planning import Plan, percent, plan
from eligo.version import SCHEMA

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
JSON_PAGE = (ROOT / "docs" / "reference" / "json.md").read_text("utf-8")
EXAMPLES = ROOT / "examples"
#: two samples, each sorted, called and counted: sorting first has the most jobs ready
SNAKEMAKE = 'digraph snakemake_dag {0[label="all"] 1[label="call"] 2[label="sort\\ns: a"] 3[label="count"] 4[label="sort\\ns: b"] 5[label="index"] 1->0 2->1 4->1 5->3 3->0}'  # noqa: E501 - as Snakemake writes it

Words = Callable[..., tuple[int, str, str]]


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Words:
    """The command, in a folder with the examples: exit code, standard output, standard error."""
    for file in ("pie.yaml", "survey.dag", "plate.dag"):
        shutil.copy(EXAMPLES / file, tmp_path)
    (tmp_path / "jobs.dot").write_text(SNAKEMAKE)
    monkeypatch.chdir(tmp_path)

    def said(*words: str) -> tuple[int, str, str]:
        code = run(list(words))
        return code, *capfd.readouterr()

    return said


def outside(*words: str, **settings: str) -> subprocess.CompletedProcess[bytes]:
    """The command as a process of its own."""
    command = [sys.executable, "-m", "eligo", *words]
    return subprocess.run(command, capture_output=True, check=False, cwd=EXAMPLES, env={**os.environ, **settings})


# On one screen, in plain words


@pytest.mark.parametrize("file", ["pie.yaml", "survey.dag", "jobs.dot", "layered.json", "long.json"])
def test_a_plan_fits_on_a_screen_and_says_what_it_means_first(say: Words, file: str) -> None:
    say("generate", "layered", "12", "15", "--seed", "4", "-o", "layered.json")
    arcs = [[f"NF.PIPELINE.STEP.PROCESS_{i}", f"NF.PIPELINE.STEP.PROCESS_{i + 1}"] for i in range(3000)]
    Path("long.json").write_text(json.dumps({"arcs": arcs}))
    code, out, _ = say("plan", file, "--effort", "quick")
    lines = out.splitlines()
    assert code == 0
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("With `") for line in lines[:4])
    assert "first come, first served" in " ".join(lines[:5])
    proved = ("No order can have more", "No single order is best", "Whether one order is best")
    assert any(line.startswith(proved) for line in lines[1:6])
    assert "tasks done" in out
    assert f"eligo plan {file} --names" in out
    assert not re.search(r"block|shortcut|▷|ρ|E\(t\)|impossible|PIPELINE", out)


def test_what_a_plan_rests_on_is_told_on_demand(say: Words) -> None:
    out = say("plan", "pie.yaml", "--verbose")[1]
    for words in ("▷-linear composition", "blocks", "attained at 6 of 6 steps", "longest remaining path first"):
        assert words in out


@pytest.mark.parametrize(
    ("file", "hint"),
    [
        ("survey.dag", "-o prio.dag"),
        ("jobs.dot", "-o rules.smk"),
        ("pie.yaml", "-o OUT.yaml"),
        ("x.arcs", "-o OUT.json"),
    ],
)
def test_what_to_do_next_fits_where_the_workflow_came_from(say: Words, file: str, hint: str) -> None:
    Path("x.arcs").write_text("a b\n")
    assert f"eligo plan {file} {hint}" in say("plan", file)[1]


def test_nextflow_which_has_no_priorities_is_offered_none(say: Words) -> None:
    Path("nf.dot").write_text(
        'digraph { v0 [shape=point,label=""]; v1 [label="FETCH"]; v2 [label="ALIGN"]; v0->v1; v1->v2 }'
    )
    out = say("plan", "nf.dot")[1]
    assert "eligo plan nf.dot --names" in out
    assert "priorities" not in out


def test_what_has_no_single_best_order_is_not_called_impossible(say: Words) -> None:
    Path("torn.arcs").write_text("a x\nb x\na y\nb y\nc u\nd v\n")
    assert json.loads(say("plan", "torn.arcs", "--json")[1])["verdict"] == "impossible"
    say("plan", "torn.arcs", "--save", "plan.json")
    for words in (["plan", "torn.arcs", "-v"], ["explain", "torn.arcs"], ["verify", "torn.arcs", "plan.json"]):
        out = say(*words)[1]
        assert "impossible" not in out
        assert re.search("(?i)no single order is best", out)


def test_the_chart_has_axes_and_all_three_curves() -> None:
    shown = chart([2, 2, 1, 0], [2, 3, 1, 0], [2, 1, 1, 0]).splitlines()
    assert shown[1:4] == [
        "       3 |      ......         . bound",
        "         |************.        o fifo",
        "       1 |      oooooo******   * this plan",
    ]
    assert shown[4:6] == ["       0 +------------------+", "          0                 3 tasks done"]


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("steps", [1, 7, 100, 30_000])
def test_the_chart_is_two_lines_in_plain_letters_as_wide_as_the_terminal(
    columns: int, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up and down again, and first come, first served at half the height: no column of either line is missing."""
    monkeypatch.setattr("eligo.cli.output.width", lambda: columns)
    high = [min(t + 1, steps - t) for t in range(steps)] + [0]
    shown = chart(high, high, [-(-value // 2) for value in high], height=6).splitlines()
    assert all(line.isascii() and len(line) <= columns for line in shown)
    assert steps < 10 or max(map(len, shown)) > columns - 5
    rows = [line[10:].partition("  o fifo")[0].partition("  * this plan")[0] for line in shown[1:-3]]
    wide = max(map(len, rows))
    assert all(any("*" in row[column : column + 1] for row in rows) for column in range(wide - 1))
    assert steps < 3 or any("o" in row for row in rows)
    assert not any("*" * 7 in above and above == below for above, below in pairwise(rows))  # no bars


def test_lines_that_are_one_are_named_together() -> None:
    shown = chart([1, 1, 0], [1, 1, 0], [1, 1, 0], name="finish")
    assert "* finish, fifo" in shown
    assert "bound" not in shown
    assert "o fifo" not in shown


# Numbers that agree


def test_nothing_is_rounded_up_to_the_whole() -> None:
    assert [percent(99_997, 100_000), percent(1, 3), percent(7, 7)] == ["99.99 %", "33.33 %", "100 %"]


@pytest.fixture(scope="module")
def undecided() -> Plan:
    found = plan(families.random_layered(5, 8, seed=2))
    assert found.profile != found.upper_bound
    return found


def test_the_terminal_and_the_page_count_the_same_steps(undecided: Plan) -> None:
    from eligo.pages.plans import facts

    tight = sum(e == u for e, u in zip(undecided.profile[1:], undecided.upper_bound[1:], strict=True))
    counted = f"{tight:,} of {len(undecided):,}"
    assert undecided.tight_steps == tight
    assert any(counted in value for _, value in facts(undecided))
    assert f"After {counted} steps" in eligo.explain(undecided.dag, undecided)[-1]
    assert plan(families.out_mesh(4)).tight_steps == 10


def test_the_average_and_the_bound_at_each_step_have_names_of_their_own(undecided: Plan) -> None:
    words = eligo.explain(undecided.dag, undecided)[-1]
    assert ("100 %" in words) == (undecided.tight_steps == len(undecided))
    assert "proven bound" not in words
    assert "average" in words


# Where the terminal has few letters


@pytest.mark.parametrize(
    "settings",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "latin-1"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
    ids=["ascii", "latin-1", "C"],
)
def test_plain_letters_stand_in(settings: dict[str, str]) -> None:
    done = outside("plan", "pie.yaml", "-v", **settings)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"|>-linear composition" in done.stdout
    assert b"* finish\n" in done.stdout
    document = json.loads(outside("plan", "pie.yaml", "--json", **settings).stdout)
    assert document["method"] == "▷-linear composition"


@pytest.mark.parametrize("words", ["explain pie.yaml", "show pie.yaml", "generate list", "--help"])
def test_everything_can_be_said_in_ascii(words: str) -> None:
    done = outside(*words.split(), PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.isascii()


# Orders as text


def test_the_order_is_written_as_names(say: Words) -> None:
    code, out, err = say("plan", "pie.yaml", "--names", "--policy", "ready")
    assert (code, out) == (0, "apples\ncrust\nfill\nbake\nsauce\nserve\n")
    assert "order written: ready" in err
    assert "wrote order.txt" in say("plan", "pie.yaml", "-o", "order.txt")[2]
    assert say("verify", "pie.yaml", "order.txt")[0] == 0


def test_an_order_is_not_written_over_the_workflow(say: Words) -> None:
    Path("flow.txt").write_text("a b\n")
    code, _, err = say("plan", "flow.txt", "-o", "flow.txt")
    assert (code, Path("flow.txt").read_text()) == (2, "a b\n")
    assert "flow.txt" in err


def test_rules_of_snakemake_get_priorities_where_that_says_something(say: Words) -> None:
    code, _, err = say("plan", "jobs.dot", "-o", "rules.smk")
    rules = re.findall(r"rule (\w+):\n    priority: (\d+)\n", Path("rules.smk").read_text())
    assert code == 0
    assert {rule for rule, _ in rules} == {"all", "call", "sort", "count", "index"}
    assert [int(number) for _, number in rules] == [5, 4, 3, 2, 1]
    assert "all jobs of a rule share one priority" in err
    Path("one.dot").write_text('digraph snakemake_dag {0[label="all"] 1[label="sort"] 1->0}')
    assert "change nothing" in say("plan", "one.dot", "--to", "snakemake", "-o", "-")[1]
    assert say("plan", "pie.yaml", "-o", "rules.smk")[2].startswith("eligo: rule priorities need a Snakemake workflow")


# Small courtesies


def test_the_module_is_the_command_and_alone_it_helps() -> None:
    assert outside("--version").stdout.startswith(b"eligo 0.")
    done = outside()
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"Usage: eligo" in done.stdout


@pytest.mark.parametrize("words", ["show pie.yaml", "plan pie.yaml", "generate list", "--help", "--version"])
def test_nobody_reads_and_it_ends_quietly(words: str) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "eligo", *words.split()]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False, cwd=EXAMPLES)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_work_is_done_and_its_exit_code_counts_where_nobody_reads(tmp_path: Path) -> None:
    """As in `eligo run FILE | head`: a failed task is still told by the exit code, and files are written."""
    (tmp_path / "bad.json").write_text('{"tasks": [{"name": "a", "run": "false"}]}')
    for words, expected in (("run bad.json --retries 0", 1), ("plan bad.json --save plan.json", 0)):
        read, write = os.pipe()
        os.close(read)
        command = [sys.executable, "-m", "eligo", *words.split()]
        done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False, cwd=tmp_path)
        os.close(write)
        assert (done.returncode, b"Traceback" in done.stderr) == (expected, False)
    assert (tmp_path / "plan.json").exists()


@pytest.mark.parametrize(
    ("words", "file"),
    [
        ("plan pie.yaml -o out.yaml", "out.yaml"),
        ("plan pie.yaml --save plan.json", "plan.json"),
        ("convert pie.yaml out.dot", "out.dot"),
        ("generate w 3 2 -o w.json", "w.json"),
        ("cluster pie.yaml --size 2 --export snakemake -o groups", "groups"),
    ],
)
def test_what_was_written_is_told(say: Words, words: str, file: str) -> None:
    assert f"eligo: wrote {file}" in say(*words.split())[2]
    assert Path(file).exists()


def test_mistakes_are_told_with_what_helps(say: Words) -> None:
    assert "`eligo explain pie.yaml -o x.svg`" in say("plan", "pie.yaml", "-o", "x.svg")[2]
    assert "eligo plan --help" in say("plan")[2]
    assert "eligo --help" in say("plam")[2]
    say("plan", "survey.dag", "-o", "prio.dag")
    assert say("verify", "survey.dag", "prio.dag")[2] == (
        "eligo: prio.dag: this is a workflow (dagman), not an order (an order is one name per line, or JSON)\n"
    )
    for name in ("x.json", "x.dag", "x.yaml"):
        Path(name).write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\xff")
        assert "not a text file" in say("show", name)[2]


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ("plan --effort", "thorough"), ("plan --policy", "critical-path"), ("plan --prefer", "finish"),
        ("plan --to", "names"),        ("generate", "out-mesh"), ("compare --policy", "lifo"), ("cluster --goal", "mixed"),
        ("cluster --strategy", "staggered"), ("cluster --export", "pegasus"), ("batch --method", "expansive"),
        ("convert --to", "mermaid"), ("show --from", "dagman"),
    ],
)  # fmt: skip
def test_shells_offer_values(words: str, value: str) -> None:
    asked = {
        "_ELIGO_COMPLETE": "complete_bash",
        "COMP_WORDS": f"eligo {words} ",
        "COMP_CWORD": str(len(words.split()) + 1),
    }
    assert value in outside(**asked).stdout.decode().split()


# The page of a plan


def test_a_page_is_called_by_its_workflow_and_says_what_is_gained(say: Words) -> None:
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    for file, title, gain in (("survey.dag", "survey.dag", "+7 %"), ("pie.yaml", "apple pie", "+22 %")):
        say("explain", file, "-o", "page.html")
        document = data_of(Path("page.html").read_text("utf-8"))
        assert (document["title"], document["facts"][0]) == (title, ["gain", gain])


# JSON as docs/reference/json.md says


DOCUMENTED = {
    "show": "show pie.yaml",
    "plan": "plan pie.yaml",
    "plan with a history": "plan timed.json --workers 2 --history timed.json",
    "plan by kinds": "plan pie.yaml --workers 2 --history kinds.csv",
    "explain": "explain torn.arcs",
    "verify an order": "verify pie.yaml order.txt",
    "verify no order": "verify pie.yaml wrong.json",
    "verify a plan": "verify pie.yaml plan.json",
    "batch": "batch pie.yaml -r 1",
    "cluster one": "cluster pie.yaml --size 2",
    "cluster by seconds": "cluster timed.json --seconds 3",
    "cluster all": "cluster pie.yaml --sizes 2,1",
    "run": "run small.yaml --retries 0",
    "run as if": "run timed.json --rehearse 0.2",
    "status": "status small.yaml",
    "why": "why small.yaml b",
    "compare": "compare pie.yaml --runs 2 --rates 2,4",
}
#: whose keys are names of dags, rates or pictures, or docs/understand/theory.md's
FREE = {"best", "rates", "proof", "panels", "failed", "counts"}


def keys(document: Any) -> Iterator[str]:
    """Every key of a document, but for those that stand for names."""
    if isinstance(document, list):
        for each in document:
            yield from keys(each)
    elif isinstance(document, dict):
        for key, value in document.items():
            yield key
            yield from (
                () if key in FREE else keys([*value.values()] if key == "fat_tasks" and "title" in document else value)
            )


@pytest.mark.parametrize("case", DOCUMENTED)
def test_every_key_is_documented(say: Words, case: str) -> None:
    Path("torn.arcs").write_text("a x\nb x\na y\nb y\nc u\nd v\n")
    Path("timed.json").write_text(
        '{"tasks": [{"name": "a", "seconds": 1}, {"name": "b", "seconds": 2, "after": ["a"]}]}'
    )
    Path("wrong.json").write_text('["serve"]')
    Path("kinds.csv").write_text("kind,seconds\nbake,60\n")
    say("plan", "pie.yaml", "--save", "plan.json", "-o", "order.txt")
    Path("small.yaml").write_text(
        "tasks: [{name: a, run: 'true'}, {name: b, run: 'false', after: [a]}, {name: c, run: 'true', after: [b]}]"
    )
    if case in {"status", "why"}:
        say("run", "small.yaml", "--retries", "0")
    document = json.loads(say(*DOCUMENTED[case].split(), "--json")[1])
    assert document["schema"] == SCHEMA
    verb = case.partition(" ")[0]
    sections = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", JSON_PAGE, re.M | re.S))
    also = {"explain": ["plan"]}.get(verb, [])
    told = {*re.findall(r"`(\w+)`", "".join(sections[title] for title in (verb, *also))), "schema"}
    assert {*keys(document)} - told == set()


def test_people_and_programs_are_told_the_same_numbers(say: Words) -> None:
    document = json.loads(say("plan", "pie.yaml", "--json")[1])
    assert (document["average"], document["average_first_come"]) == (11 / 6, 9 / 6)
    assert document["gain"] == pytest.approx(11 / 9 - 1)
    Path("plan.json").write_text(json.dumps(document | {"gain": 0.5}))
    assert say("verify", "pie.yaml", "plan.json")[1] == (
        "Not valid: the proof does not hold: the gain is not what follows from the order.\n"
    )
    Path("plan.json").write_text(json.dumps(document | {"schema": 99}))
    assert say("verify", "pie.yaml", "plan.json")[0] == 2


# README as printed


def samples() -> Iterator[tuple[str, str]]:
    """Every command of README's console blocks, with what is said to be printed."""
    for block in re.findall(r"```console\n(.*?)```", README, re.S):
        for sample in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, printed = sample.partition("\n")
            if command.startswith("eligo "):
                yield command.partition(" #")[0].strip(), printed


def test_readme_shows_what_is_printed(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES, tmp_path, dirs_exist_ok=True)
    (tmp_path / "pie.yaml").write_text(re.findall(r"```yaml\n(.*?)```", README, re.S)[0])
    count = 0
    for command, printed in samples():
        words = [sys.executable, "-m", "eligo", *shlex.split(command)[1:]]
        done = subprocess.run(
            words,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            check=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        )
        assert re.sub(r"\d+\.\d+ s\b", "... s", done.stdout) == re.sub(r"\d+\.\d+ s\b", "... s", printed), command
        count += 1
    assert count >= 2
