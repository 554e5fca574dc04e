"""Lists of commands, and one command for many values."""

import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from eligo import formats
from eligo.cli import run
from eligo.errors import InputError
from eligo.formats.lines import commands_for

texts = st.text(st.characters(blacklist_categories=["Cc", "Cs"], blacklist_characters="\x85\u2028\u2029"), min_size=1)
several = st.lists(texts, min_size=1, max_size=3, unique=True)


def test_a_list_of_commands_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.txt").write_text("# twice\necho a > a\n\necho b > b\n")
    assert run(["run", "--lines", "c.txt"]) == 0
    assert (Path("a").read_text(), Path("b").read_text()) == ("a\n", "b\n")
    assert formats.read("c.txt", "lines").dag.tasks == ("echo a > a", "echo b > b")


def test_a_list_of_commands_has_no_dependencies() -> None:
    with pytest.raises(InputError, match="no place for dependencies"):
        formats.generate(formats.parse("a b"), "lines")
    flow = formats.parse("echo a\n", "lines")
    assert formats.generate(flow, "lines") == "echo a\n"


@pytest.mark.parametrize(
    ("text", "message"), [("\n# nothing\n", "no commands"), ("echo \\\n a\n", "ends in a backslash")]
)
def test_a_wrong_list_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        formats.parse(text, "lines")


def test_a_command_is_run_for_each_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["run", "echo {} > {.}.out", ":::", "a.txt", "b c.txt"]
    assert run(command) == 0
    assert Path("b c.out").read_text() == "b c.txt\n"
    capsys.readouterr()
    assert run(command) == 0
    assert "all 2 tasks are already done" in capsys.readouterr().out
    assert run([*command, "d"]) == 0
    assert "1 new" in capsys.readouterr().err
    assert run(["log", "eligo.run", "d"]) == 0
    assert run(["run", "--resume", "eligo.run"]) == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["echo {}", ":::"], "at least one value"),
        ([":::", "a"], "give the command before"),
        (["--reverse", "echo", ":::", "a"], "--reverse has no effect"),
        (["echo {3}", ":::", "a", ":::", "b"], "must be 1 to 2"),
        (["echo", ":::", "a", "a"], "'a' are given twice"),
        (["cat '{}'", ":::", "a;b"], "{} is inside quotes, where 'a;b' cannot be inserted"),
        (["echo", *[word for _ in range(4) for word in (":::", *map(str, range(100)))]], "100,000,000 combinations"),
    ],
)
def test_wrong_values_are_refused(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["run", *words]) == 2
    assert message in capsys.readouterr().err


@given(first=several, second=several)
def test_values_reach_the_command_as_they_are(first: list[str], second: list[str]) -> None:
    assume(len({f"{a} {b}" for a in first for b in second}) == len(first) * len(second))
    flow = commands_for("printf %s {2} {1}", [first, second])
    for name, pair in zip(flow.dag.tasks, ((a, b) for a in first for b in second), strict=True):
        assert shlex.split(str(flow.task(name).command)) == ["printf", "%s", pair[1], pair[0]]


def test_placeholders_are_those_of_parallel() -> None:
    command = commands_for("echo {} {.} {/} {//} {/.} {#}", [["d/a.b.c"]]).task("d/a.b.c").command
    out = subprocess.run(["/bin/sh", "-c", str(command)], capture_output=True, text=True, check=True).stdout
    assert out == "d/a.b.c d/a.b a.b.c d a.b 1\n"
