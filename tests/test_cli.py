"""The command as a person or a program types it: output, exit codes, and what it says of bad input."""

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import typer

from eligo.cli import run
from eligo.cli.output import chart, sparkline
from eligo.cli.serve_verbs import app
from eligo.estimates import kind_of
from eligo.workflow import Task

SCREEN = 24  # lines of a terminal
#: words that nobody needs to know who looks for a verb or an option
THEORY = re.compile(
    r"(?<!-)\b(arcs?|dags?|eligib\w+|optimal\w*|blocks?|schedules?|profiles?|residuals?|sinks?)\b", re.IGNORECASE
)


class Result(NamedTuple):
    code: int
    out: str
    err: str


Command = Callable[..., Result]


@pytest.fixture
def eligo(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command, run in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def command(*words: str) -> Result:
        code = run(list(words))
        out, err = capfd.readouterr()
        return Result(code, out, err)

    return command


@pytest.fixture
def mesh(eligo: Command) -> str:
    """A small mesh in a file."""
    assert eligo("generate", "out-mesh", "4", "-o", "mesh.json").code == 0
    return "mesh.json"


def refused(result: Result, message: str) -> None:
    """Exit code 2, nothing on standard output, one line on standard error."""
    assert result.code == 2
    assert result.out == ""
    assert result.err == f"eligo: {message}\n"


def test_version_as_a_command_of_its_own() -> None:
    command = Path(sys.executable).with_name("eligo")
    done = subprocess.run([command, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("eligo 0.")
    pure = subprocess.run(
        [command, "--version"], capture_output=True, text=True, check=True, env={**os.environ, "ELIGO_PURE": "1"}
    )
    assert "(interpreted kernels)" in pure.stdout


def test_a_closed_pipe_ends_quietly(tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("eligo")
    words = f"'{command}' generate out-mesh 200 | head -c 10"
    done = subprocess.run(["sh", "-c", words], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stderr == ""


def test_all_is_written_before_the_process_ends_at_once(tmp_path: Path) -> None:
    command, order = Path(sys.executable).with_name("eligo"), tmp_path / "order.json"
    flow = tmp_path / "chain.txt"
    flow.write_text("".join(f"{i} {i + 1}\n" for i in range(5000)))
    names = subprocess.run([command, "plan", flow, "--names"], capture_output=True, text=True, check=True)
    assert names.stdout.split() == [str(i) for i in range(5001)]
    closed = subprocess.run(
        ["sh", "-c", f"'{command}' plan '{flow}' --names | head -c 10"], capture_output=True, text=True, check=True
    )
    assert (closed.stdout, closed.stderr) == ("0\n1\n2\n3\n4\n", "eligo: order written: finish\n")
    order.write_text(json.dumps(["1", "0"]))
    refused = subprocess.run([command, "verify", flow, order], capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stdout[:27]) == (1, "Not valid: not a schedule: ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("words", [["--json"], []])
def test_a_full_disk_is_told_in_one_line(mesh: str, words: list[str]) -> None:
    command = Path(sys.executable).with_name("eligo")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [command, "plan", mesh, *words], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (2, "eligo: cannot write the output: no space left on device\n")


def test_help_names_every_verb(eligo: Command) -> None:
    out = eligo("--help").out
    for verb in ("plan", "explain", "verify", "show", "convert", "generate"):
        assert verb in out
    assert "--install-completion" in out


def _verbs() -> list[str]:
    """Every verb, hidden ones included."""
    return sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


LOOKING = {"status", "why", "log", "top", "report"}
CHANGING = {"add", "pause", "resume", "retry", "release", "cancel", "workers"}


@pytest.mark.parametrize("verb", _verbs())
def test_every_verb_has_help_in_which_brackets_stay(verb: str, eligo: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = eligo(verb, "--help")
    assert (result.code, result.err) == (0, "")
    shown = " ".join(result.out.split())
    command = typer.main.get_command(app).commands[verb]  # type: ignore[attr-defined]
    texts = [command.help, *(param.help for param in command.params if not getattr(param, "hidden", False))]
    for bracketed in {word for text in texts for word in (text or "").split() if "[" in word}:
        assert bracketed in shown
    assert ("URL[/WORKFLOW]" in shown) == (verb in LOOKING | CHANGING)


@pytest.mark.parametrize("words", [(), *((verb,) for verb in _verbs())])
def test_help_fits_two_screens_and_names_no_theory_on_the_first(
    words: tuple[str, ...], eligo: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = eligo(*words, "--help").out.splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 2 * SCREEN
    assert not THEORY.findall("\n".join(lines[:SCREEN]))


def test_the_list_of_verbs_cuts_no_sentence(eligo: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert "..." not in eligo("--help").out.partition("Commands:")[2]


def test_plan_begins_with_a_plain_sentence(eligo: Command, mesh: str) -> None:
    result = eligo("plan", mesh)
    assert result.code == 0
    verdict, first, second = result.out.splitlines()[:3]
    assert verdict == "No order gains anything here: first come, first served does as well."
    assert first == "With `finish`, 2.40 tasks are ready, as many as under first come, first served."
    assert second == "No order can have more tasks ready at any moment than `finish`."


def test_plan_json_has_the_promised_keys(eligo: Command, mesh: str) -> None:
    document = json.loads(eligo("plan", mesh, "--json").out)
    promised = {"tasks", "arcs", "shortcuts", "blocks", "verdict", "method", "order", "profile", "upper_bound", "area"}
    assert promised | {"area_bound", "seconds"} <= set(document)
    assert (document["tasks"], document["verdict"], document["area"]) == (10, "optimal", 24)


def test_plan_writes_priorities_in_the_inputs_format(eligo: Command, mesh: str) -> None:
    assert eligo("plan", mesh, "-o", "prio.json").code == 0
    tasks = json.loads(Path("prio.json").read_text())["tasks"]
    assert [task["priority"] for task in tasks] == list(range(10, 0, -1))
    assert eligo("plan", mesh, "-o", "prio.yaml").code == 0
    assert "priority: 10" in Path("prio.yaml").read_text()


def test_plan_says_when_a_format_has_no_place_for_priorities(eligo: Command, mesh: str) -> None:
    result = eligo("plan", mesh, "-o", "prio.arcs")
    refused(result, "prio.arcs: arcs cannot represent priorities: write .json or .yaml")


def test_a_saved_plan_is_verified(eligo: Command, mesh: str) -> None:
    assert eligo("plan", mesh, "--save", "plan.json").code == 0
    assert "the proof holds (optimal" in eligo("verify", mesh, "plan.json").out
    document = json.loads(eligo("verify", mesh, "plan.json", "--json").out)
    assert (document["valid"], document["verdict"], document["first_gap"]) == (True, "optimal", None)


def test_a_changed_plan_is_rejected(eligo: Command, mesh: str) -> None:
    eligo("plan", mesh, "--save", "plan.json")
    document = json.loads(Path("plan.json").read_text())
    document["upper_bound"][3] += 1
    Path("plan.json").write_text(json.dumps(document))
    result = eligo("verify", mesh, "plan.json")
    assert result.code == 1
    assert result.out.startswith("Not valid: the proof does not hold: ")
    assert json.loads(eligo("verify", mesh, "plan.json", "--json").out)["valid"] is False


def test_a_plan_of_another_workflow_is_refused(eligo: Command, mesh: str) -> None:
    eligo("generate", "out-mesh", "5", "-o", "other.json")
    eligo("plan", "other.json", "--save", "plan.json")
    refused(eligo("verify", mesh, "plan.json"), "this plan belongs to another workflow")


def test_a_truncated_plan_is_refused(eligo: Command, mesh: str) -> None:
    eligo("plan", mesh, "--save", "plan.json")
    text = Path("plan.json").read_text()
    Path("plan.json").write_text(text[: len(text) // 2])
    result = eligo("verify", mesh, "plan.json")
    assert result.code == 2
    assert result.err.startswith("eligo: plan.json:1: ")
    assert result.err.count("\n") == 1


def test_an_order_is_judged(eligo: Command, mesh: str) -> None:
    Path("good.txt").write_text("\n".join(map(str, range(10))))
    assert eligo("verify", mesh, "good.txt").out.startswith("Valid: no order can have more tasks ready")
    Path("poor.txt").write_text("\n".join(["0", "1", "3", "6", "2", "4", "5", "7", "8", "9"]))
    document = json.loads(eligo("verify", mesh, "poor.txt", "--json").out)
    assert (document["valid"], document["verdict"], document["first_gap"]) == (True, "not optimal", 3)


def test_what_is_no_schedule_gets_a_no(eligo: Command, mesh: str) -> None:
    Path("order.json").write_text(json.dumps(["1", "0", *map(str, range(2, 10))]))
    result = eligo("verify", mesh, "order.json")
    assert (result.code, result.err) == (1, "")
    assert result.out == "Not valid: not a schedule: '1' comes before '0', which it depends on.\n"
    document = json.loads(eligo("verify", mesh, "order.json", "--json").out)
    assert (document["valid"], document["task"], document["parent"]) == (False, "1", "0")


@pytest.mark.parametrize(
    ("names", "message"),
    [(["0", "nobody"], "there is no task named 'nobody'"), (["0", "0"], "duplicate task '0'")],
)
def test_orders_with_wrong_names_are_refused(eligo: Command, mesh: str, names: list[str], message: str) -> None:
    Path("order.json").write_text(json.dumps(names))
    refused(eligo("verify", mesh, "order.json"), message)


def test_explain_in_words_and_chart(eligo: Command, mesh: str) -> None:
    out = eligo("explain", mesh).out
    assert "W(2,2) ▷ W(3,2): of equal degree" in out
    assert "* this plan" in out
    assert "words" in json.loads(eligo("explain", mesh, "--json").out)


@pytest.mark.parametrize("suffix", ["svg", "png", "html"])
def test_explain_draws(eligo: Command, mesh: str, suffix: str) -> None:
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    assert eligo("explain", mesh, "-o", f"picture.{suffix}").code == 0
    assert Path(f"picture.{suffix}").stat().st_size > 1000


@pytest.mark.usefixtures("no_pages")
def test_explain_prints_its_words_where_the_page_is_not_built(eligo: Command, mesh: str) -> None:
    said = eligo("explain", mesh, "-o", "picture.html")
    assert said.code == 1
    assert "W(2,2) ▷ W(3,2): of equal degree" in said.out
    assert "picture.html: the page is not built: run `make page`" in " ".join(said.err.split())
    assert not Path("picture.html").exists()


def test_show_tells_size_and_shape(eligo: Command, mesh: str) -> None:
    out = eligo("show", mesh).out
    assert "levels" in out
    document = json.loads(eligo("show", mesh, "--json").out)
    facts = ("tasks", "arcs", "levels", "width", "sources", "sinks", "area")
    assert [document[key] for key in facts] == [10, 12, 4, 4, 1, 4, 24]


def test_convert_there_and_back(eligo: Command, mesh: str) -> None:
    eligo("convert", mesh, "mesh.arcs")
    eligo("convert", "mesh.arcs", "again.json")
    assert json.loads(Path("again.json").read_text())["arcs"] == json.loads(Path(mesh).read_text())["arcs"]
    assert eligo("convert", mesh, "-", "--to", "dot").out.startswith("digraph")


def test_generate_knows_families_sizes_and_seeds(eligo: Command) -> None:
    words = ("generate", "composition", "wnm")
    one, same, other = (
        eligo(*words, size, "--to", "arcs", "--seed", seed).out
        for size, seed in (("40", "7"), ("size=40", "7"), ("40", "8"))
    )
    assert one == same != other
    assert "out-mesh LEVELS" in eligo("generate", "list").out
    assert eligo("generate", "planar-bipartite-tree", "5", "1/2", "2", "--to", "arcs").out.endswith("0 6\n1 6\n1 7\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["generate", "mush"], "there is no family named 'mush': `eligo generate list` lists all"),
        (["generate", "w", "x", "2"], "s must be a number, got 'x'"),
        (["generate", "w", "3"], "w takes S D: missing a required argument: 'd'"),
        (["generate", "w", "0", "2"], "s must be an integer of at least 1, got 0"),
        (["plan", "missing.json"], "missing.json: cannot be read: no such file or directory"),
        (["plan", "."], ".: cannot be read: is a directory"),
    ],
)
def test_wrong_words_are_told_in_one_line(eligo: Command, words: list[str], message: str) -> None:
    refused(eligo(*words), message)


def test_wrong_usage_is_told_in_one_line(eligo: Command) -> None:
    for words in (["plam", "x"], ["plan"], ["plan", "x", "--effort=never"]):
        result = eligo(*words)
        assert (result.code, result.out) == (2, "")
        assert result.err.startswith("eligo: ")
        assert result.err.count("\n") == 1


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{c}: &{c} [{','.join([f'*{p}'] * 9)}]\n" for p, c in zip("abcdefgh", "bcdefghi", strict=True)
)
HOSTILE = {
    "cycle.json": ('{"arcs": [["a", "b"], ["b", "a"]]}', "cycle.json: a cycle, so no order exists: a -> b -> a"),
    "loop.json": ('{"arcs": [["a", "a"]]}', "loop.json: a task depends on itself: a -> a"),
    "unknown.json": ('{"arcs": [["a", "z"]],\n"nodes": ["a"]}', "unknown.json:1: there is no task named 'z'"),
    "twice.json": ('{"nodes": ["a", "a"]}', "twice.json: duplicate task 'a'"),
    "nan.json": ('{"tasks": [{"name": "a", "seconds": NaN}]}', "nan.json"),
    "keys.json": ('{"arcs": [], "arcs": []}', "keys.json"),
    "deep.json": ("[" * 100_000, "deep.json"),
    "control.json": ('{"nodes": ["a\\u0007b"]}', "control.json: task name 'a\\x07b' contains a control character"),
    "long.json": ('{"nodes": ["' + "x" * 10_000_000 + '"]}', "long.json: a task name has 10,000,000 characters"),
    "bomb.yaml": (BOMB, "bomb.yaml"),
    "nul.json": ('{"nodes": ["a\0b"]}', "nul.json"),
    "half.json": ('{"nodes": ["a"', "half.json"),
    "empty.json": ("", "empty.json"),
    "wrong.json": ('{"noodles": []}', "wrong.json"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_get_one_clear_line(eligo: Command, name: str) -> None:
    text, message = HOSTILE[name]
    Path(name).write_text(text)
    for verb in ("show", "plan"):
        result = eligo(verb, name)
        assert (result.code, result.out) == (2, "")
        assert result.err.startswith(f"eligo: {message}")
        assert result.err.count("\n") == 1
        assert len(result.err) < 400


def test_a_huge_file_is_refused_unread(eligo: Command) -> None:
    with Path("huge.json").open("wb") as file:
        file.truncate(2 << 30)
    result = eligo("show", "huge.json")
    assert result.code == 2
    assert "huge.json" in result.err


def test_standard_input_and_gzip(mesh: str) -> None:
    command = Path(sys.executable).with_name("eligo")
    packed = gzip.compress(Path(mesh).read_bytes())
    done = subprocess.run([command, "show", "-", "--json"], input=packed, capture_output=True, check=True)
    assert json.loads(done.stdout)["tasks"] == 10


def test_bugs_do_not_show_a_traceback(eligo: Command, mesh: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eligo.choice.make_plan", lambda *words, **more: 1 / 0)
    refused(
        eligo("plan", mesh), "internal error: ZeroDivisionError: division by zero (set ELIGO_DEBUG=1 for a traceback)"
    )


def test_interruption_ends_cleanly(eligo: Command, mesh: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*words: object, **more: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("eligo.choice.make_plan", interrupted)
    assert eligo("plan", mesh) == Result(130, "", "eligo: stopped\n")


def test_pictures_of_nothing() -> None:
    assert sparkline([]) == ""
    assert sparkline([0]) == " "
    assert "tasks done" in chart([0], [0], [0], height=2)


def test_effort_and_preference_are_passed_on(eligo: Command, mesh: str) -> None:
    assert (
        json.loads(eligo("plan", mesh, "--effort", "quick", "--prefer", "finish", "--json").out)["verdict"] == "optimal"
    )
    refused(eligo("plan", mesh, "--effort", "heroic"), "unknown effort 'heroic' (choose from quick, normal, thorough)")
    refused(eligo("plan", mesh, "--prefer", "luck"), "unknown preference 'luck' (choose from path, finish)")


def test_seconds_end_a_search_and_the_plan_says_so(eligo: Command, mesh: str) -> None:
    eligo("generate", "random-out-tree", "3000", "--seed", "1", "-o", "wide.json")
    short = eligo("plan", "wide.json", "--effort", "thorough", "--seconds", "0.1", "--json")
    assert json.loads(short.out)["cut_short"]
    assert "the search was cut short" in short.err
    assert not json.loads(eligo("plan", mesh, "--seconds", "60", "--json").out)["cut_short"]
    refused(eligo("plan", mesh, "--seconds", "0"), "--seconds must be positive, got 0")


def processor_seconds(pid: int) -> float:
    """The processor time that a process has taken."""
    words = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def test_the_first_interruption_gives_the_best_so_far(eligo: Command) -> None:
    eligo("generate", "random-out-tree", "3000", "--seed", "1", "-o", "wide.json")
    command = [str(Path(sys.executable).with_name("eligo")), "plan", "wide.json", "--json", "--effort"]
    before = os.times()
    subprocess.run([*command, "quick"], capture_output=True, check=True)
    quick = os.times().children_user + os.times().children_system - before.children_user - before.children_system
    with subprocess.Popen(
        [*command, "thorough"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as planning:
        while processor_seconds(planning.pid) < max(2.0, 2 * quick):  # by then it searches, however slow the machine is
            assert planning.poll() is None, "the plan was too easy"
            time.sleep(0.05)
        planning.send_signal(signal.SIGINT)
        out, err = planning.communicate(timeout=120)
    assert "stopping with the best order so far" in err
    document = json.loads(out)
    assert (planning.returncode, document["tasks"]) == (0, 3000)


@pytest.mark.parametrize(
    ("task", "kind"),
    [
        (Task(name="mProject_ID0000001"), "mProject"),
        (Task(name="align_12"), "align"),
        (Task(name="align.12"), "align"),
        (Task(name="7"), "7"),
        (Task(name="NF:A:B:SORT (s1)"), "SORT"),
        (Task(name="x", category="NFCORE_BACASS.BACASS.FASTQC"), "FASTQC"),
        (Task(name="x", category="fastqc"), "fastqc"),
        (Task(name="x", command=("/opt/bin/bwa", "mem", "ref.fa")), "bwa"),
        (Task(name="x", command="env A=1 bash -c ./run.sh"), "run.sh"),
        (Task(name="step 3", command="$(make) it"), "step"),
        (Task(name=(1, 2)), "(1, 2)"),
    ],
)
def test_kinds(task: Task, kind: str) -> None:
    assert kind_of(task) == kind
