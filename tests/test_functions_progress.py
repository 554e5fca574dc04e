"""The progress of functions, and how a run is stopped: by a progress function, an exception, or a signal."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import eligo
from eligo import Progress
from eligo.errors import InputError

LONG = 60.0  # seconds that no test waits for unless something is wrong


def chain(n: int) -> dict[int, list[int]]:
    return {i: [i - 1] if i else [] for i in range(n)}


# Progress


def test_a_progress_function_gets_the_state_of_the_run_and_its_end() -> None:
    seen: list[Progress] = []
    started, released = threading.Event(), threading.Event()

    def work(task: int) -> None:
        if task == 2:
            started.set()
            released.wait(LONG)

    def watch(now: Progress) -> None:
        seen.append(now)
        if started.is_set():
            released.set()

    eligo.run(chain(4), work, progress=watch)
    assert any((now.done, now.running) == (2, 1) for now in seen)
    last = seen[-1]
    assert (last.tasks, last.done, last.running, last.failed) == (4, 4, 0, 0)
    assert [now.done for now in seen] == sorted(now.done for now in seen)
    assert last.seconds >= seen[0].seconds >= 0.0


def test_progress_counts_failures_and_tasks_of_earlier_calls(tmp_path: Path) -> None:
    seen: list[Progress] = []
    table: dict[str, Any] = {"a": (list, []), "b": (lambda a: a[0], ["a"]), "c": (len, ["b"])}
    for _ in range(2):
        eligo.run(table, folder=tmp_path / "run", check=False, progress=seen.append)
        assert (seen[-1].done, seen[-1].failed) == (1, 1)
    assert seen[-2].done == 1


def test_commands_have_progress_too() -> None:
    flow = eligo.Workflow(eligo.Dag.from_arcs([], ["a"]), {"a": eligo.Task(name="a", command="true")})
    seen: list[Progress] = []
    eligo.run(flow, progress=seen.append)
    assert seen[-1].done == 1


def test_progress_is_a_bar_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    eligo.run(chain(3), str, progress=True)
    said = capsys.readouterr()
    assert said.out == ""
    assert "3/3" in said.err
    assert said.err.endswith("\n")


def test_any_other_progress_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="progress must be True, False or a function, got 'bar'"):
        eligo.run(chain(3), str, folder=tmp_path / "run", progress="bar")  # type: ignore[arg-type]
    assert not (tmp_path / "run").exists()


# Stopping


def test_stop_iteration_stops_the_run_and_keeps_what_is_done(tmp_path: Path) -> None:
    def stop(now: Progress) -> None:
        if now.done >= 3:
            raise StopIteration

    def slow(task: int) -> int:
        threading.Event().wait(0.05)  # longer than two calls of the progress function are apart, for three of them
        return task

    result = eligo.run(chain(40), slow, folder=tmp_path / "run", progress=stop)
    assert not result.ok
    assert 3 <= len(result.values) < 40
    assert not result.failed
    rest = eligo.run(chain(40), slow, folder=tmp_path / "run")
    assert rest.ok
    assert rest.begun == 40 - len(result.values)


@pytest.mark.parametrize("error", [ValueError, OSError, KeyboardInterrupt])
def test_another_exception_of_the_progress_function_ends_the_run(error: type[BaseException]) -> None:
    done: list[int] = []
    go = threading.Event()

    def work(task: int) -> None:
        go.wait(LONG)
        done.append(task)

    def fail(now: Progress) -> None:
        raise error

    with pytest.raises(error):
        eligo.run(chain(40), work, progress=fail)
    go.set()
    assert len(done) <= 1


def test_an_interrupt_ends_the_run_at_once_and_starts_nothing_more() -> None:
    running, go, begun = threading.Event(), threading.Event(), list[int]()

    def work(task: int) -> None:
        begun.append(task)
        running.set()
        go.wait(LONG)

    def interrupt() -> None:
        running.wait(LONG)
        os.kill(os.getpid(), signal.SIGINT)

    sender = threading.Thread(target=interrupt)
    sender.start()
    with pytest.raises(KeyboardInterrupt):
        eligo.run({i: [] for i in range(40)}, work, workers=1)
    go.set()
    sender.join()
    assert begun == [0]


def test_a_program_does_not_wait_for_functions_after_an_interrupt(tmp_path: Path) -> None:
    """With a folder, the next call resumes."""
    script, folder = tmp_path / "script.py", tmp_path / "run"
    script.write_text(
        "import sys, time, eligo\n"
        "def slow(a): print('ready', flush=True); time.sleep(float(sys.argv[2]))\n"
        "print(eligo.run({'a': (list, []), 'b': (slow, ['a'])}, folder=sys.argv[1]).begun)\n"
    )
    words = [sys.executable, str(script), str(folder)]
    with subprocess.Popen([*words, str(10 * LONG)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=LONG)
    assert (process.returncode, errors.splitlines()[-1]) == (-signal.SIGINT, b"KeyboardInterrupt")
    said = subprocess.run([*words, "0"], check=True, capture_output=True, text=True, timeout=LONG).stdout
    assert said.split() == ["ready", "1"]
