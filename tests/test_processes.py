"""The processes of `eligo run`: how they are found again, stopped and started, whatever they do to hide."""

import errno
import os
import pty
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from eligo.engines import Command, local, worker
from eligo.engines.sessions import (
    PROCESSES,
    Entry,
    SessionFile,
    count_forks,
    end_marked,
    holders,
    members,
    most_processes,
    read_entries,
)
from eligo.engines.worker import Process, process_table
from eligo.errors import InputError
from running_cases import COMMAND, attempts, completed, lines, ran, written
from running_cases import started as begun

Captured = pytest.CaptureFixture[str]
LONG = 120.0  # seconds until something must have happened, also on a machine that is very busy
#: begins the words after it as they are, after a line of shell
SHELL = ("sh", "-c")
COPY = """\
echo begin $$ >> {log}
while test ! -e {go}; do sleep 0.05; done
echo end $$ >> {log}
"""
#: overwrites its environment as programs do that change their title, then does the same as the script
TITLE = """
import ctypes, os, time
words = open("/proc/self/stat").read().rpartition(")")[2].split()
first, last = int(words[47]), int(words[48])
ctypes.memset(first, 0, last - first)
assert b"ELIGO" not in open("/proc/self/environ", "rb").read()
with open({log!r}, "a") as file: file.write(f"begin {{os.getpid()}}\\n")
while not os.path.exists({go!r}): time.sleep(0.05)
with open({log!r}, "a") as file: file.write(f"end {{os.getpid()}}\\n")
"""
CLOSER = "import os, sys; os.closerange(0, 4096); os.execve('/bin/sh', ['sh', sys.argv[1]], {})"
FORMS = {
    "plain": "/bin/sh {copy}",
    "shell": "/bin/sh {copy}; true",
    "no environment": "env -i /bin/sh {copy}; true",
    "only program, no environment": "env -i /bin/sh {copy}",
    "setpriv": "setpriv --reset-env /bin/sh {copy}; true",
    "su": "su - root -c '/bin/sh {copy}'; true",
    "title": "{python} {title}; true",
    "setsid": "setsid -w /bin/sh {copy}; true",
    "setsid, no environment": "setsid -w env -i /bin/sh {copy}; true",
    "daemon": "(setsid /bin/sh {copy} &) ; {stay}",
    "daemon, no environment": "(setsid env -i /bin/sh {copy} &) ; {stay}",
    "nohup": "nohup /bin/sh {copy}; true",
    "no files, no environment": "env -i {python} {closer} {copy}; true",
    "background": "env -i /bin/sh {copy} & wait",
    "own group": "timeout 600 env -i {python} {closer} {copy}; true",
}


@contextmanager
def started(*words: Any, **settings: Any) -> "Iterator[subprocess.Popen[str]]":
    """A run in a process of its own, which a test that fails does not wait for."""
    with begun(*words, **settings) as run:
        try:
            yield run
        finally:
            if run.poll() is None:
                run.kill()


def until(what: Callable[[], object], seconds: float = LONG) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def is_over(number: int) -> bool:
    """Whether a process has ended, be it collected or not."""
    process = process_table().get(number)
    return process is None or process.state in b"ZX"


def command_of(form: str, folder: Path) -> str:
    """The line of a form, whose process says in a file when it begins and ends."""
    log, go = folder / "log", folder / "go"
    for name, text in (("copy", COPY), ("title", TITLE), ("closer", CLOSER)):
        (folder / name).write_text(text.format(log=str(log), go=str(go)) if text is not CLOSER else text)
    places = {name: str(folder / name) for name in ("copy", "title", "closer")}
    stay = f"while test ! -e {go}; do sleep 0.05; done; sleep 1"
    return FORMS[form].format(**places, python=sys.executable, stay=stay)


@pytest.mark.parametrize("form", FORMS)
def test_no_task_runs_twice_at_once_after_a_kill(form: str, tmp_path: Path) -> None:
    if form == "setpriv" and shutil.which("setpriv") is None:
        pytest.skip("setpriv is not installed")
    if form == "su" and os.getuid():
        pytest.skip("only root becomes root without a password")
    check_ended_before_it_goes_on(form, tmp_path)


@pytest.mark.skipif(find_spec("distributed") is None, reason="Dask is not installed")
@pytest.mark.parametrize("form", ["no environment", "title", "daemon, no environment"])
def test_no_task_runs_twice_at_once_on_dask_either(form: str, tmp_path: Path) -> None:
    check_ended_before_it_goes_on(form, tmp_path, "--on", "dask")


def check_ended_before_it_goes_on(form: str, tmp_path: Path, *options: str) -> None:
    flow = written(tmp_path, [{"name": "a", "run": command_of(form, tmp_path)}])
    log = tmp_path / "log"
    with started(flow, *options) as run:
        until(lambda: lines(log))
        run.kill()
    first = int(lines(log)[0].split()[1])
    assert not is_over(first)
    with started(flow, *options) as run:
        until(lambda: len(lines(log)) == 2)
        assert is_over(first)
        (tmp_path / "go").touch()
        run.communicate(timeout=LONG)
    assert run.returncode == 0
    until(lambda: len(lines(log)) == 3)
    assert [line.split()[0] for line in lines(log)] == ["begin", "begin", "end"]


def test_a_session_is_found_whose_first_process_is_gone(tmp_path: Path) -> None:
    """A program that has no environment, no file, and no parent: only its session says whose it is."""
    command_of("plain", tmp_path)
    line = f"env -i {sys.executable} {tmp_path}/closer {tmp_path}/copy & echo $$ > leader; wait"
    flow, log = written(tmp_path, [{"name": "a", "run": line}]), tmp_path / "log"
    with started(flow) as run:
        until(lambda: lines(log) and read_entries(next(tmp_path.glob(f"*/{PROCESSES}"))))
        run.kill()
    os.kill(int((tmp_path / "leader").read_text()), signal.SIGKILL)
    begun_before = count_forks()
    first = int(lines(log)[0].split()[1])
    assert not is_over(first)
    with started(flow) as run:
        until(lambda: len(lines(log)) == 2)
        again = count_forks() - begun_before > most_processes() // 2
        assert is_over(first) or again  # where numbers come round again, nobody can tell whose a session is
        (tmp_path / "go").touch()
        run.communicate(timeout=LONG)
    assert run.returncode == 0


def test_a_run_inside_a_task_goes_with_it(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    command_of("plain", tmp_path)
    inner = written(tmp_path / "inner", [{"name": "b", "run": f"/bin/sh {tmp_path}/copy"}])
    words = [*COMMAND, "run", str(inner), "--quiet"]
    flow, log = written(tmp_path, [{"name": "a", "run": words}]), tmp_path / "log"
    with started(flow) as run:
        until(lambda: lines(log))
        run.kill()
    first = int(lines(log)[0].split()[1])
    with started(flow) as run:
        until(lambda: len(lines(log)) == 2)
        assert is_over(first)
        (tmp_path / "go").touch()
        run.communicate(timeout=LONG)
    assert run.returncode == 0
    assert len(lines(log)) == 3


def sleeper(**settings: Any) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["/bin/sleep", "600"], **settings)


def test_a_copy_of_the_file_is_about_nobody(tmp_path: Path) -> None:
    kept = SessionFile(str(tmp_path / PROCESSES))
    with sleeper(start_new_session=True, pass_fds=[kept.file]) as process:
        kept.enter(0, process.pid, time.clock_gettime_ns(time.CLOCK_BOOTTIME) - 60 * 10**9)
        table = process_table()
        shutil.copy2(tmp_path / PROCESSES, tmp_path / "copy")
        assert process.pid in members(read_entries(tmp_path / PROCESSES), table)
        assert process.pid in holders(tmp_path / PROCESSES, table)
        assert read_entries(tmp_path / "copy") == []
        assert list(holders(tmp_path / "copy", table)) == []
        process.kill()
    kept.close()


def test_who_reads_the_file_is_no_task(tmp_path: Path) -> None:
    (tmp_path / PROCESSES).touch()
    with open(tmp_path / PROCESSES, "rb") as file, sleeper(pass_fds=[file.fileno()]) as backup:
        assert list(holders(tmp_path / PROCESSES, process_table())) == []
        backup.kill()


def test_a_number_that_is_somebody_elses_by_now_is_left_alone() -> None:
    mine = Process(b"S", 1, 50, 50, 1000)  # begun in the tick 1,000
    tick = 10**9 // os.sysconf("SC_CLK_TCK")
    now = count_forks()
    then, later = Entry(50, 1000 * tick, 1001 * tick, now), Entry(50, 5000 * tick, 5001 * tick, now)
    assert list(members([then], {50: mine})) == [50]
    assert list(members([later], {50: mine})) == []
    orphan = {60: Process(b"S", 1, 50, 50, 1200)}
    assert list(members([then], orphan)) == [60]
    assert list(members([then._replace(forks=now - 2**23)], orphan)) == []  # all numbers were given out since


def test_processes_that_cannot_be_ended_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with sleeper(env={"ELIGO_TEST": "7"}) as process:
        with monkeypatch.context() as patch:
            patch.setattr(os, "kill", lambda number, how: None)
            with pytest.raises(InputError, match=f"a process of an earlier run cannot be killed.* {process.pid}"):
                end_marked("ELIGO_TEST", "7", patience=0.1)
        process.kill()


# Time to save

SAVER = """
import os, signal, sys, time
def save(*rest):
    with open(sys.argv[1] + ".part", "w") as file:
        for number in range(15):
            file.write(f"{number}\\n")
            file.flush()
            time.sleep(0.1)
    os.rename(sys.argv[1] + ".part", sys.argv[1])
    sys.exit(3)
signal.signal(signal.SIGTERM, save)
open(sys.argv[1] + ".began", "w").close()
while True: time.sleep(600)
"""
SHELL_LINES = {
    "redirected": "{saver} redirected > printed",
    "and": "{saver} and && true",
    "then": "{saver} then; true",
    "piped": "{saver} piped | cat",
    "bash": "bash -c '{saver} bash; true'",
    "timeout": "timeout 600 {saver} timeout; true",
}


def saving(folder: Path) -> Path:
    """A workflow of shell lines whose programs save their state when they are told to stop."""
    (folder / "saver.py").write_text(SAVER)
    saver = f"{sys.executable} -I -S {folder}/saver.py"
    return written(folder, [{"name": name, "run": line.format(saver=saver)} for name, line in SHELL_LINES.items()])


def check_saved(folder: Path) -> None:
    assert [name for name in SHELL_LINES if not (folder / name).exists()] == []


WAYS = {"interrupt": [signal.SIGINT, signal.SIGINT], "terminate": [signal.SIGTERM], "hangup": [signal.SIGHUP]}


@pytest.mark.parametrize("on", ["local", "dask"])
@pytest.mark.parametrize("way", WAYS)
def test_programs_in_shell_lines_have_time_to_save(on: str, way: str, tmp_path: Path) -> None:
    if on == "dask" and (way != "terminate" or find_spec("distributed") is None):
        pytest.skip("one way is enough, and Dask may not be installed")
    flow = saving(tmp_path)
    with started(flow, "--on", on, "--workers", str(len(SHELL_LINES)), start_new_session=True) as run:
        until(lambda: all((tmp_path / f"{name}.began").exists() for name in SHELL_LINES))
        for number in WAYS[way]:
            run.send_signal(number)
            time.sleep(0.3)
        _, err = run.communicate(timeout=LONG)
    assert run.returncode == 130, err
    assert f"eligo run --resume {flow}.run" in err
    check_saved(tmp_path)


@pytest.mark.parametrize("on", ["local", "dask"])
def test_programs_in_shell_lines_have_time_to_save_when_they_are_late(on: str, tmp_path: Path) -> None:
    if on == "dask" and find_spec("distributed") is None:
        pytest.skip("Dask is not installed")
    flow = saving(tmp_path)
    more = ["--on", on, "--workers", str(len(SHELL_LINES)), "--timeout", "10", "--retries", "0"]
    with started(flow, *more) as run:
        run.communicate(timeout=LONG)
    assert run.returncode == 1
    told = [attempt["failure"] for attempt in attempts(tmp_path / "flow.yaml.run")]
    assert told == ["took longer than 10 s"] * len(SHELL_LINES)
    check_saved(tmp_path)


def test_a_program_that_does_not_stop_is_made_to(tmp_path: Path) -> None:
    line = "sh -c \"trap '' TERM; echo \\$\\$ > deaf; while :; do sleep 0.1; done\"; true"
    flow = written(tmp_path, [{"name": "a", "run": line}])
    with started(flow) as run:
        until((tmp_path / "deaf").exists)
        until((tmp_path / "deaf").read_text)
        run.send_signal(signal.SIGTERM)
        run.communicate(timeout=LONG)
    assert run.returncode == 130
    until(lambda: is_over(int((tmp_path / "deaf").read_text())))


@pytest.mark.parametrize("on", ["local", "dask"])
def test_what_a_task_leaves_in_another_group_is_ended(on: str, tmp_path: Path) -> None:
    if on == "dask" and find_spec("distributed") is None:
        pytest.skip("Dask is not installed")
    line = "timeout 600 sh -c 'echo $$ > left; sleep 600' & while test ! -s left; do sleep 0.05; done"
    flow = written(tmp_path, [{"name": "a", "run": line}])
    with started(flow, "--on", on) as run:
        run.communicate(timeout=LONG)
    assert run.returncode == 0
    until(lambda: is_over(int((tmp_path / "left").read_text())))


# Signals and terminals


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT])
def test_a_lost_terminal_stops_the_run(number: int, tmp_path: Path) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "echo $$ > began; test -e go || sleep 600"}])
    with started(flow) as run:
        until(lambda: lines(tmp_path / "began"))
        run.send_signal(number)
        _, err = run.communicate(timeout=LONG)
    assert run.returncode == 130
    assert "stopping running tasks" in err
    until(lambda: is_over(int((tmp_path / "began").read_text())))
    (tmp_path / "go").touch()
    assert ran(flow) == 0


def test_a_lost_terminal_is_ignored_where_it_was_before(tmp_path: Path) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "touch began; while test ! -e go; do sleep 0.05; done"}])
    with started(flow, inside=[*SHELL, "trap '' HUP; exec \"$@\"", "sh"]) as run:
        until((tmp_path / "began").exists)
        run.send_signal(signal.SIGHUP)
        time.sleep(0.3)
        (tmp_path / "go").touch()
        out, _ = run.communicate(timeout=LONG)
    assert run.returncode == 0
    assert "The only task is done" in out


def test_a_task_that_asks_at_the_terminal_fails(tmp_path: Path) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "read answer < /dev/tty"}])
    child, terminal = pty.fork()
    if not child:
        os.execv(sys.executable, [*COMMAND, "run", str(flow), "--retries", "0"])
    text, deadline = b"", time.monotonic() + LONG
    try:
        while more := os.read(terminal, 4096):
            text += more
            assert time.monotonic() < deadline
    except OSError as error:  # so a terminal says that nobody is there any more
        assert error.errno == errno.EIO  # noqa: PT017
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
    assert b"0 of 1 task done, 1 failed" in text


def test_a_terminal_that_goes_away_leaves_no_task(tmp_path: Path) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "echo $$ > began; sleep 600"}])
    child, terminal = pty.fork()
    if not child:
        os.execv(sys.executable, [*COMMAND, "run", str(flow)])
    try:
        until(lambda: lines(tmp_path / "began"))
    finally:
        os.close(terminal)
    until(lambda: is_over(int((tmp_path / "began").read_text())))
    os.waitpid(child, 0)


# What a machine lacks


def limited(soft: int, hard: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_too_few_files_are_no_failure_of_a_task(tmp_path: Path) -> None:
    flow = written(tmp_path, [{"name": f"t{i}", "run": "sleep 0.2"} for i in range(60)])
    with started(flow, "--workers", "60", "--retries", "0", preexec_fn=limited(64, 64)) as run:
        out, err = run.communicate(timeout=2 * LONG)
    assert run.returncode == 0, err
    assert "All 60 tasks done" in out
    assert err.count("warning: ") == err.count("Too many open files") == 1
    assert len(attempts(tmp_path / "flow.yaml.run")) == 60


def test_as_many_files_as_allowed_are_used_and_tasks_keep_their_limit(tmp_path: Path) -> None:
    line = 'until test "$(ulimit -Sn)" = 64; do sleep 0.1; done'
    flow = written(tmp_path, [{"name": f"t{i}", "run": line} for i in range(40)])
    with started(flow, "--workers", "40", "--retries", "0", preexec_fn=limited(64, 1024)) as run:
        out, err = run.communicate(timeout=2 * LONG)
    assert run.returncode == 0, err
    assert "All 40 tasks done" in out
    assert "warning" not in err


def test_a_run_stops_where_nothing_can_be_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    def refuse(*rest: object) -> int:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    flow = written(tmp_path, [{"name": "a", "run": "true"}, {"name": "b", "run": "true"}])
    with monkeypatch.context() as patch:
        patch.setattr(local, "MOST_WAITED", 0.5)
        patch.setattr(local.LocalEngine, "_spawn", refuse)
        assert ran(flow) == 2
    err = capsys.readouterr().err
    assert err.count("warning: ") == 1
    assert "no task could be started" in err
    assert "ulimit -u" in err
    assert f"eligo run --resume {flow}.run" in err
    assert attempts(tmp_path / "flow.yaml.run") == []
    assert ran(flow) == 0
    assert completed(tmp_path / "flow.yaml.run") == {"a": 1, "b": 1}


def test_a_worker_tries_again_to_start_what_its_machine_has_no_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    failures = [OSError(errno.EMFILE, "Too many open files")] * 2
    spawned = worker._spawn

    def spawn(*rest: Any) -> Any:
        if failures:
            raise failures.pop()
        return spawned(*rest)

    monkeypatch.setattr(worker, "_spawn", spawn)
    assert worker.run_command(Command(("true",), "/"), None).failure is None
    failures += [OSError(errno.EMFILE, "Too many open files")] * 9
    monkeypatch.setattr(worker, "SHORTAGE", 0.0)
    told = worker.run_command(Command(("true",), "/"), None)
    assert (told.lost, told.failure) == (True, "cannot run 'true': Too many open files")


# What is printed


def test_what_a_daemon_prints_later_is_in_the_log_of_its_task(tmp_path: Path) -> None:
    wait = "while test ! -e {}; do sleep 0.05; done"
    daemon = f"(setsid sh -c 'touch up; {wait.format('second')}; echo late; echo late >&2; touch printed' &)"
    tasks: list[dict[str, Any]] = [
        {"name": "first", "run": f"{daemon}; {wait.format('up')}"},
        {"name": "second", "run": f"touch second; {wait.format('printed')}", "after": ["first"]},
        {"name": "third", "run": "echo third", "after": ["second"]},
    ]
    flow = written(tmp_path, tasks)
    with started(flow, "--workers", "1") as run:
        run.communicate(timeout=LONG)
    assert run.returncode == 0
    logs = {path.name: path.read_text() for path in (tmp_path / "flow.yaml.run" / "logs").rglob("*") if path.is_file()}
    assert logs == {"first.out": "late\n", "first.err": "late\n", "third.out": "third\n"}


# Odd surroundings


ODD = {
    "children are ignored": "trap '' CHLD; exec \"$@\"",
    "no standard output": 'exec "$@" >&-',
    "no standard error": 'exec "$@" 2>&-',
    "no standard streams": 'exec "$@" <&- >&- 2>&-',
    "no working folder": 'mkdir gone; cd gone; rmdir ../gone; exec "$@"',
}


@pytest.mark.parametrize("way", ODD)
def test_a_run_goes_on_in_odd_surroundings(way: str, tmp_path: Path) -> None:
    tasks: list[dict[str, Any]] = [
        {"name": "a", "run": "echo to out; echo to err >&2"},
        {"name": "b", "run": "false"},
        {"name": "c", "run": "sh -c 'sleep 0.1 & wait'", "after": ["a"]},
    ]
    flow = written(tmp_path, tasks)
    with started(flow, "--retries", "0", inside=[*SHELL, ODD[way], "sh"], cwd=tmp_path) as run:
        out, err = run.communicate(timeout=LONG)
    assert run.returncode == 1, err
    assert "Traceback" not in err
    assert "internal error" not in err
    if "output" not in way and "streams" not in way:
        assert "2 of 3 tasks done, 1 failed" in out
    logs = tmp_path / "flow.yaml.run" / "logs" / "000"
    assert ((logs / "a.out").read_text(), (logs / "a.err").read_text()) == ("to out\n", "to err\n")


def test_a_process_that_ignores_its_children_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        with pytest.raises(InputError, match="SIGCHLD is ignored"):
            local.LocalEngine(1)
    finally:
        signal.signal(signal.SIGCHLD, before)


@pytest.mark.parametrize("size", [4, 60, 80, 100, 150])
def test_a_disk_that_is_full_at_the_start_is_told(size: int, tmp_path: Path) -> None:
    place = tmp_path / "small"
    place.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", str(place)]
    if (
        os.getuid()
        or shutil.which("mount") is None
        or subprocess.run(words, capture_output=True, check=False).returncode
    ):
        pytest.skip("a small file system cannot be had here")
    try:
        flow = written(tmp_path, [{"name": f"t{i}", "run": "echo hello"} for i in range(300)])
        with started(flow, "--run", str(place / "run")) as run:
            _, err = run.communicate(timeout=LONG)
        assert run.returncode == 2, err
        check_plain(err)
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.parametrize("most", [0, 4096, 20_000])
def test_files_that_may_not_grow_are_told(most: int, tmp_path: Path) -> None:
    flow = written(tmp_path, [{"name": f"t{i}", "run": "true"} for i in range(300)])
    files: Callable[[], None] = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))  # noqa: E731
    with started(flow, preexec_fn=files) as run:
        _, err = run.communicate(timeout=LONG)
    assert run.returncode == 2, err
    check_plain(err)


def check_plain(err: str) -> None:
    """An error is told in sentences."""
    assert "Traceback" not in err
    assert "internal error" not in err
    assert err.startswith("eligo: ")
