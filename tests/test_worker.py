"""What runs commands: alone, and as the program on the nodes of a batch system."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from eligo.engines import Command
from eligo.engines import worker as worker_module
from eligo.engines.worker import NO_PROGRAM, NOT_OURS, describe_exit, run_command

WORKER = worker_module.__file__
HOSTILE = [
    "",
    " ",
    "$HOME `id` \"' \\ \n\t;&|<>*",
    "-x",
    "--",
    "ünï\U0001f600",
    os.fsdecode(b"\xff\xfe"),
    "a" * 100_000,
]


def command(code: str, **more: Any) -> Command:
    return Command((sys.executable, "-S", "-c", code), "/", **more)


def test_a_signal_without_a_name_is_told_by_its_number() -> None:
    nameless = signal.SIGRTMIN + 3
    told = run_command(command(f"import os; os.kill(os.getpid(), {nameless})"), None)
    assert (told.code, told.failure) == (-nameless, f"ended by signal {nameless}")
    assert describe_exit(-nameless) == told.failure


MEMORY = """
from eligo.engines.worker import run_command
from types import SimpleNamespace
import sys
for code in ("x = b'x' * 200_000_000", "pass"):
    words = (sys.executable, "-c", code)
    work = SimpleNamespace(argv=words, folder="/", environment={}, out="/dev/null", err="/dev/null")
    print(run_command(work, None).memory)
"""


def test_the_memory_of_a_command_is_its_own_or_not_known() -> None:
    """A process begins as a copy of the one that starts it, and that is counted too: here of a small one."""
    told = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True).stdout.split()
    assert int(told[0]) > 200_000_000
    assert told[1] == "None" or int(told[1]) < 100_000_000


@pytest.mark.parametrize("words", [("/no/such",), ("/bin/echo", "a\0b")])
def test_what_cannot_be_run_is_a_failure_of_the_task(words: tuple[str, ...]) -> None:
    told = run_command(Command(words, "/"), None)
    assert told.code == NO_PROGRAM
    assert str(told.failure).startswith(f"cannot run {words[0]!r}")


def test_where_nothing_can_be_printed_to_is_a_failure_of_the_task(tmp_path: Path) -> None:
    told = run_command(command("pass", out=str(tmp_path / "none" / "out")), None)
    assert "No such file" in str(told.failure)


@pytest.mark.parametrize("timeout", [None, 60.0])
def test_nothing_is_left_of_a_command(timeout: float | None, tmp_path: Path) -> None:
    code = "import os, time\nif not (other := os.fork()): time.sleep(60)\nprint(other)"
    told = run_command(command(code, out=str(tmp_path / "out")), timeout)
    assert told.failure is None
    status = Path("/proc", (tmp_path / "out").read_text().strip(), "status")
    until = time.monotonic() + 10
    while status.exists() and "\nState:\tZ" not in status.read_text():  # signals are on their way for a moment
        assert time.monotonic() < until


def test_a_timeout_ends_what_does_not_listen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "GRACE", 0.1)
    told = run_command(
        command("import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"), 0.5
    )
    assert (told.failure, told.code, told.lost) == ("took longer than 0.5 s", -signal.SIGKILL, False)


def write(folder: Path, works: list[Command], timeout: float | None = None, again: bool = False) -> Path:
    (folder / "done").mkdir(exist_ok=True)
    told = [{name: getattr(work, name) for name in Command.__slots__} for work in works]
    (folder / "1.json").write_text(json.dumps({"works": told, "timeout": timeout, "again": again}))
    return folder / "1.json"


def start(job: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-I", "-S", "-B", WORKER, job.name], cwd=job.parent)


def done(job: Path) -> list[list[Any]]:
    found: list[list[Any]] = json.loads((job.parent / "done" / job.name).read_text())
    return found


def test_the_program_runs_the_words_as_they_are(tmp_path: Path) -> None:
    show = "import sys, os; sys.stdout.buffer.write(b'\\0'.join(map(os.fsencode, [*sys.argv[1:], os.environ['X']])))"
    words = (sys.executable, "-c", show, *HOSTILE)
    out = str(tmp_path / "out")
    job = write(tmp_path, [Command(words, str(tmp_path), {"X": HOSTILE[2]}, out)])
    assert start(job).wait(20) == 0
    assert (tmp_path / "out").read_bytes().split(b"\0") == [*map(os.fsencode, HOSTILE), os.fsencode(HOSTILE[2])]
    ((began, ended, failure, _, code, memory, lost),) = done(job)
    assert began <= ended
    assert (failure, code, lost) == (None, 0, False)
    assert memory is None or memory > 0


def test_the_program_runs_a_job_once_and_up_to_its_first_failure(tmp_path: Path) -> None:
    append = "import sys; open('ran', 'a').write('x'); sys.exit({})"
    works = [
        Command((sys.executable, "-c", append.format(code)), str(tmp_path), out=str(tmp_path / "o"))
        for code in (0, 3, 0)
    ]
    job = write(tmp_path, works)
    assert start(job).wait(20) == 0
    assert [told[2] for told in done(job)] == [None, "exit code 3"]
    with pytest.raises(subprocess.CalledProcessError) as refused:
        subprocess.run([sys.executable, WORKER, str(job)], check=True, stderr=subprocess.DEVNULL)
    assert refused.value.returncode == NOT_OURS
    assert (tmp_path / "ran").read_text() == "xx"


def test_the_program_may_run_a_job_again_where_somebody_else_decides_that(tmp_path: Path) -> None:
    job = write(tmp_path, [Command((sys.executable, "-c", "import sys; sys.exit(3)"), "/")], again=True)
    assert [start(job).wait(20) for _ in range(2)] == [1, 1]


def test_the_program_ends_its_command_when_it_is_told_to_stop(tmp_path: Path) -> None:
    code = "open('pid', 'w').write(str(__import__('os').getpid())); __import__('time').sleep(60)"
    job = write(tmp_path, [Command((sys.executable, "-c", code), str(tmp_path))])
    process = start(job)
    for _ in range(1000):
        if (tmp_path / "pid").exists() and (tmp_path / "pid").read_text():
            break
        time.sleep(0.01)
    process.terminate()
    assert process.wait(20) == 0
    ((_, _, failure, _, _, _, lost),) = done(job)
    assert (failure, lost) == ("stopped", True)
    assert not Path("/proc", (tmp_path / "pid").read_text()).exists()


def test_the_environment_may_be_another_than_this_process_has(tmp_path: Path) -> None:
    code = "import os; print(sorted(set(os.environ) - {'LC_CTYPE'}))"
    work = command(code, out=str(tmp_path / "out"), environment={"B": "2"})
    assert run_command(work, None, base={"A": "1"}).failure is None
    assert (tmp_path / "out").read_text() == "['A', 'B']\n"
