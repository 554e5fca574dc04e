"""How a task's command runs: its environment, folder, shell, time limit, retries, container and setup."""

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

import eligo
from eligo.cli import run as cli
from eligo.engines.command_line import Site, argv_of, shell_words, words_of
from eligo.engines.worker import process_table
from eligo.formats import generate, parse
from eligo.launch import POSIX
from launch_cases import with_podman
from running_cases import attempts, ran, started, written

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def podman(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a program in place of podman."""
    return with_podman(tmp_path, monkeypatch)


def until(holds: Callable[[], object]) -> None:
    """Wait until a condition holds, at most two minutes."""
    late = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < late
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    """Whether a process has not ended."""
    process = process_table().get(pid)
    return process is not None and process.state not in b"ZX"


def made(folder: Path, task: Mapping[str, Any], *options: str) -> int:
    """The exit code of a run of one task, called a."""
    return ran(written(folder, [{"name": "a", **task}]), *options)


def test_a_task_gets_its_own_environment_and_that_of_the_defaults(tmp_path: Path) -> None:
    tasks = [{"name": "a", "run": "echo $ONE $TWO $ELIGO_TASK > out", "env": {"TWO": "2", "ELIGO_TASK": "x"}}]
    path = tmp_path / "flow.yaml"
    path.write_text(yaml.safe_dump({"defaults": {"env": {"ONE": "1", "TWO": "0"}}, "tasks": tasks}))
    assert ran(path) == 0
    assert (tmp_path / "out").read_text() == "1 2 a\n"


@pytest.mark.parametrize("run", ["sort", ["sort"]])
def test_a_changed_path_finds_the_programs_of_the_task(run: object, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "sort"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho ours\n")
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    assert made(tmp_path, {"run": run, "env": {"PATH": path}}) == 0
    assert (tmp_path / "flow.yaml.run" / "logs" / "000" / "a.out").read_text() == "ours\n"


def test_a_command_runs_in_its_folder_and_its_files_are_those_of_the_run(tmp_path: Path) -> None:
    task = {"run": "echo x > b; pwd > ../place", "dir": "deep/er", "outputs": ["deep/er/b", "deep/place"]}
    assert made(tmp_path, task) == 0
    assert (tmp_path / "deep" / "place").read_text() == f"{tmp_path / 'deep' / 'er'}\n"


def test_a_folder_that_cannot_be_made_is_a_failure_of_the_task(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "file").touch()
    assert made(tmp_path, {"run": "true", "dir": "file/x"}, "--retries", "0") == 1
    assert "Not a directory" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("shell", "line", "code"),
    [
        (None, "false | true", 1),
        (None, "false; true", 1),
        (None, "echo $NO_SUCH_VARIABLE", 1),
        ("bash", "[[ a == a ]] && x=(1 2)", 0),
        ("sh", "false | true", 0),
        ("sh", "false; true", 1),
        (["/bin/sh", "-c"], "false; true", 0),
        ([sys.executable, "-c"], "import sys; sys.exit(3 - 3)", 0),
        ("none", "test '$HOME' = '$HO'ME", 0),
    ],
)
def test_a_line_fails_as_its_shell_says(shell: object, line: str, code: int, tmp_path: Path) -> None:
    assert made(tmp_path, {"run": line, "shell": shell}, "--retries", "0") == code


def test_where_bash_is_missing_a_line_gets_sh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for program in ("sh", "env"):
        (tmp_path / program).symlink_to(str(shutil.which(program)))
    line = (*shell_words(None, elsewhere=True), 'echo "${BASH_VERSION:-none}"; false; true')
    here = os.spawnve(os.P_WAIT, line[0], [*line[:-1], "false; true"], {"PATH": str(tmp_path)})
    assert here == 1
    there = os.spawnve(os.P_WAIT, line[0], [*line[:-1], "false | true"], {"PATH": str(tmp_path)})
    assert there == 0  # sh has no pipefail
    assert os.spawnve(os.P_WAIT, line[0], [*line[:-1], "false | true"], dict(os.environ)) == 1


def test_a_run_and_a_dry_run_say_which_shell_they_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    assert made(tmp_path, {"run": "echo a; echo b"}, "--dry-run") == 0
    assert "command lines that need a shell run with bash -euo pipefail" in capsys.readouterr().err
    monkeypatch.setattr("eligo.engines.command_line._find_program", lambda program: None)
    assert made(tmp_path, {"run": "echo a; echo b"}) == 0
    assert "run with sh -e, since bash is not on the PATH" in capsys.readouterr().err


def test_files_of_other_systems_keep_their_shell(tmp_path: Path) -> None:
    path = tmp_path / "flow.makeflow"
    path.write_text("b:\n\tfalse | true; false; touch b\n")
    assert ran(path) == 0
    again = parse(generate(eligo.read(path), "yaml"))
    assert again.task(again.dag.tasks[0]).launch == eligo.Launch(shell=POSIX)


def test_the_shell_of_another_system_is_written_once() -> None:
    flow = parse("b:\n\tls > b\n\nc: b\n\tls > c\n", "makeflow")
    assert yaml.safe_load(generate(flow, "yaml"))["defaults"] == {"shell": ["/bin/sh", "-c"]}


def test_a_time_limit_grows_with_the_attempts(tmp_path: Path) -> None:
    limits = ["0.1s", "1h"]
    assert made(tmp_path, {"run": '[ "$ELIGO_ATTEMPT" = 2 ] || sleep 60', "timeout": limits}, "--timeout", "0.01") == 0
    assert len(attempts(tmp_path / "flow.yaml.run")) == 2


@pytest.mark.parametrize(("own", "option", "count"), [(0, "3", 1), (1, "0", 2), (None, "1", 2)])
def test_the_retries_of_a_task_win_over_the_option(own: int | None, option: str, count: int, tmp_path: Path) -> None:
    assert made(tmp_path, {"run": "false", "retries": own}, "--retries", option) == 1
    assert len(attempts(tmp_path / "flow.yaml.run")) == count


@pytest.mark.parametrize(
    ("before", "after", "again"),
    [
        ({}, {"env": {"A": "1"}}, True),
        ({"env": {"A": "1"}}, {"env": {"A": "2"}}, True),
        ({}, {"shell": "sh"}, True),
        ({}, {"timeout": 60, "retries": 5}, False),
        ({"dir": "x"}, {"dir": "x"}, False),
    ],
)
def test_a_task_is_made_again_if_what_it_does_changes(
    before: dict[str, Any], after: dict[str, Any], again: bool, tmp_path: Path
) -> None:
    run = f"echo made >> {tmp_path}/out"
    assert made(tmp_path, {"run": run, **before}) == 0
    assert made(tmp_path, {"run": run, **after}) == 0
    assert (tmp_path / "out").read_text().count("made") == 1 + again


def test_a_line_for_no_shell_must_be_words(tmp_path: Path, capsys: Captured) -> None:
    assert made(tmp_path, {"run": "echo 'a", "shell": "none"}) == 2
    assert "cannot be split into words" in capsys.readouterr().err


def test_an_export_names_what_it_cannot_represent(tmp_path: Path, capsys: Captured) -> None:
    path = written(tmp_path, [{"name": "a", "run": "ls", "env": {"A": "1"}, "retries": 2}])
    words = ["cluster", str(path), "--size", "1", "--export", "snakemake", "-o", str(tmp_path / "Snakefile")]
    assert cli(words) == 0
    err = capsys.readouterr().err
    assert "exporting without env (1 task)" in err
    assert "exporting without retries (1 task)" in err


def test_a_conversion_names_what_it_cannot_represent(tmp_path: Path, capsys: Captured) -> None:
    path = written(tmp_path, [{"name": "a", "run": "ls", "outputs": ["a"], "dir": "d"}])
    assert cli(["convert", str(path), str(tmp_path / "x.makeflow")]) == 0
    assert "how commands are run (1 task)" in capsys.readouterr().err


# Setup


def test_a_conda_environment_is_entered_by_the_program_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conda = tmp_path / "conda"
    conda.write_text('#!/bin/sh\nshift; echo "$1 $2 $3"; shift 3; exec "$@"\n')
    conda.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert made(tmp_path, {"run": "echo 'one'\necho a\\\\b\n", "setup": {"conda": "align"}}) == 0
    log = tmp_path / "flow.yaml.run" / "logs" / "000" / "a.out"
    assert log.read_text() == "--no-capture-output -n align\none\na\\b\n"
    conda.rename(tmp_path / "micromamba")
    words = argv_of(("ls",), eligo.Launch(conda="./env"), Site(folder="/", place="/"))
    assert words == (str(tmp_path / "micromamba"), "run", "-p", "./env", "ls")


def test_modules_are_loaded_before_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BASH_FUNC_module%%", '() { export LOADED="$*"; }')
    assert made(tmp_path, {"run": "echo $LOADED > out", "setup": {"modules": ["gcc/12", "a b"]}}) == 0
    assert (tmp_path / "out").read_text() == "load gcc/12 a b\n"


def test_a_machine_without_conda_refuses_the_task_unless_that_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr("eligo.launch.CONDAS", ("no-such-program",))
    monkeypatch.setattr("eligo.formats.launches.CONDAS", ("no-such-program",))
    task = {"run": "touch made", "setup": {"conda": "align"}}
    assert made(tmp_path, task) == 2
    assert "unsupported in a run: setup (task 'a'" in capsys.readouterr().err
    assert made(tmp_path, task, "--ignore", "setup") == 0
    assert (tmp_path / "made").exists()


# Containers


def test_a_container_gets_the_folder_the_user_and_the_environment_of_the_task(tmp_path: Path, podman: Path) -> None:
    task = {"run": "echo $A $IMAGE $ELIGO_TASK | tee out; pwd", "env": {"A": "b c"}, "dir": "d", "container": "alpine"}
    assert made(tmp_path, {**task, "outputs": ["d/out"]}) == 0
    assert (tmp_path / "d" / "out").read_text() == "b c alpine a\n"
    seen = (podman / "seen").read_text()
    for option in (
        f"--user={os.getuid()}:{os.getgid()}", f"--volume={tmp_path}:{tmp_path}", f"--workdir={tmp_path}/d", "--env=A",
        "--rm", "--init", "--cap-drop=all", "--entrypoint= alpine",
    ):  # fmt: skip
        assert option in seen
    assert "b c" not in seen
    assert "network" not in seen


def test_a_folder_that_a_container_cannot_have_is_refused_first(tmp_path: Path, podman: Path, capsys: Captured) -> None:
    (tmp_path / "a:b").mkdir()
    assert made(tmp_path / "a:b", {"run": "pwd", "container": "alpine"}) == 2
    assert "the path of its folder has a colon" in capsys.readouterr().err
    assert made(tmp_path / "a:b", {"run": "pwd"}) == 0


def test_the_exit_code_of_a_container_is_that_of_the_task(tmp_path: Path, podman: Path, capsys: Captured) -> None:
    assert made(tmp_path, {"run": "exit 7", "container": "alpine"}, "--retries", "0") == 1
    assert "exit code 7" in capsys.readouterr().out


@pytest.mark.parametrize("line", ["trap 'echo saved > saved; exit' TERM; touch up; while :; do sleep 0.05; done"])
def test_a_container_that_is_late_may_save_its_data_and_is_stopped(line: str, tmp_path: Path, podman: Path) -> None:
    assert made(tmp_path, {"run": line, "container": "alpine", "timeout": 2}, "--retries", "0") == 1
    assert (tmp_path / "saved").exists()


def test_a_container_that_does_not_stop_is_killed(tmp_path: Path, podman: Path) -> None:
    line = "trap '' TERM; echo $$ > pid; while :; do sleep 0.05; done"
    run = started(written(tmp_path, [{"name": "a", "run": line, "container": "alpine"}]), cwd=tmp_path)
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip())
    pid = int((tmp_path / "pid").read_text())
    run.send_signal(signal.SIGTERM)
    run.send_signal(signal.SIGTERM)
    run.communicate(timeout=120)
    until(lambda: not is_running(pid))


def test_a_container_of_a_killed_run_is_ended_before_its_task_runs_again(tmp_path: Path, podman: Path) -> None:
    line = "echo $$ > pid; [ -e go ] || sleep 600"
    run = started(written(tmp_path, [{"name": "a", "run": line, "container": "alpine"}]), cwd=tmp_path)
    until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip())
    pid = int((tmp_path / "pid").read_text())
    run.kill()
    run.communicate(timeout=120)
    (tmp_path / "go").touch()
    assert ran(tmp_path / "flow.yaml") == 0
    assert not is_running(pid)


def test_a_machine_without_containers_refuses_the_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.setattr("eligo.formats.launches.CONTAINER_ENGINES", ("no-such-program",))
    task = {"run": "touch made", "container": "alpine"}
    assert made(tmp_path, task) == 2
    assert "--ignore container" in capsys.readouterr().err
    assert made(tmp_path, task, "--ignore", "container") == 0
    assert (tmp_path / "made").exists()


def test_apptainer_gets_images_of_registries_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "apptainer"
    program.touch(0o755)
    monkeypatch.setattr("eligo.engines.command_line.CONTAINER_ENGINES", (str(program),))
    site = Site(folder="/data", place="/data/d")
    for image, address in {"alpine:3": "docker://alpine:3", "x.sif": "x.sif", "library://a": "library://a"}.items():
        words = argv_of(("ls", "-l"), eligo.Launch(container=image), site)
        assert words == (str(program), "exec", "--bind", "/data", "--pwd", "/data/d", address, "ls", "-l")


# Python


def test_a_task_made_in_python_runs_as_it_says(tmp_path: Path) -> None:
    launch = eligo.Launch(env={"A": "1"}, dir=str(tmp_path / "here"), timeout="1m")
    task = eligo.Task(name="a", command="echo $A > out", launch=launch)
    flow = eligo.Workflow(eligo.Dag.from_arcs([], tasks=["a"]), {"a": task})
    assert eligo.run(flow).ok
    assert (tmp_path / "here" / "out").read_text() == "1\n"


@pytest.mark.parametrize("elsewhere", [False, True])
def test_plain_words_need_no_shell(elsewhere: bool) -> None:
    assert words_of("sort -n a.txt", elsewhere=elsewhere) == (shutil.which("sort"), "-n", "a.txt")
