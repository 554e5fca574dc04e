"""The stated memory of a task as a limit: in a control group of its own, with all its processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from client_server import StandIn, task
from eligo.client.options import WorkOptions
from eligo.client.worker import work
from eligo.dag import Dag
from eligo.engines import Command, cgroups
from eligo.engines.room import equip
from eligo.engines.worker import process_table
from eligo.launch import Launch
from eligo.running.commands import Commands
from eligo.running.folder import RunFolder
from eligo.work.demands import Demand
from eligo.workflow import Origin, Task, Workflow
from running_cases import attempts, ran, started, written

PATIENCE = 60.0
HUNGRY = f"{sys.executable} -c 'x = b\"x\" * 200_000_000'"
GROW = {"name": "grow", "run": HUNGRY, "memory": ["64M", "1G"]}


@pytest.fixture
def base() -> Path:
    """The group in which this process creates those of tasks; a test without one is skipped."""
    made = cgroups.groups("probe")
    if made is None:
        pytest.skip("control groups with a memory limit cannot be created here")
    return Path(made.base)


def remaining(base: Path, flow: Path) -> list[str]:
    """The groups of a run."""
    folder = RunFolder(f"{flow}.run")
    folder.close()
    return [each.name for each in base.glob(f"eligo-{folder.mark}-*")]


def outcomes(flow: Path) -> list[str | None]:
    """The failures of a run's attempts, None for success."""
    return [each["failure"] for each in attempts(Path(f"{flow}.run"))]


def test_a_task_that_exceeds_its_memory_fails_and_gets_more_after_it(base: Path, tmp_path: Path) -> None:
    flow = written(tmp_path, [GROW])
    assert ran(flow, "--retries", "1") == 0
    assert outcomes(flow) == ["exceeded the memory limit of 64 MiB", None]
    first, second = (each["memory"] for each in attempts(Path(f"{flow}.run")))
    assert first <= 64 * 2**20 < 200_000_000 <= second, "the peak is that of the group"
    assert remaining(base, flow) == []


def test_a_background_process_counts_too(base: Path, tmp_path: Path) -> None:
    """Each of the two fits into the limit, both together do not; whichever the system kills, the task has failed."""
    hold = f"{sys.executable} -c 'x = b\"x\" * 60_000_000; print(1, flush=True); input()'"
    command = f"mkfifo in out; exec 3<>in 4<>out; {hold} <&3 >&4 & {hold} <&3 >&4 & wait -n; exit 0"
    flow = written(tmp_path, [{"name": "two", "run": command, "memory": "100M"}])
    assert ran(flow, "--retries", "0", "--timeout", "30") == 1
    assert outcomes(flow) == ["exceeded the memory limit of 100 MiB"]
    assert remaining(base, flow) == []


def test_what_left_its_session_ends_with_its_task(base: Path, tmp_path: Path) -> None:
    command = "setsid sh -c 'echo $$ > pid; mv pid pid.new; exec env -i sleep 60' & until [ -e pid.new ]; do :; done"
    flow = written(tmp_path, [{"name": "a", "run": command, "memory": "1G"}])
    assert ran(flow) == 0
    table, pid = process_table(), int((tmp_path / "pid.new").read_text())
    assert pid not in table or table[pid].state in b"ZX"
    assert remaining(base, flow) == []


def test_after_kill_9_the_next_run_removes_the_groups(base: Path, tmp_path: Path) -> None:
    tasks = [{"name": "a", "run": "test -e second || { touch first; sleep 60; }", "memory": "100M"}]
    flow = written(tmp_path, tasks)
    with started(flow) as run:
        until = time.monotonic() + PATIENCE
        while not (tmp_path / "first").exists() and time.monotonic() < until:
            time.sleep(0.01)
        run.send_signal(signal.SIGKILL)
    assert len(remaining(base, flow)) == 1
    (tmp_path / "second").touch()
    assert ran(flow) == 0
    assert remaining(base, flow) == []


def test_a_program_that_does_not_exist_and_other_failures_keep_their_reason(base: Path, tmp_path: Path) -> None:
    tasks: list[dict[str, Any]] = [
        {"name": "absent", "run": ["/no/such/program"], "memory": "100M"},
        {"name": "wrong", "run": "exit 3", "memory": "100M"},
        {"name": "slow", "run": "sleep 60", "memory": "100M", "timeout": 0.2},
    ]
    flow = written(tmp_path, tasks)
    assert ran(flow, "--retries", "0") == 1
    assert set(outcomes(flow)) == {"exit code 127", "exit code 3", "took longer than 0.2 s"}
    assert remaining(base, flow) == []


def test_a_limited_task_has_the_same_environment(base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some shells drop variables with other names, such as functions that bash exports."""
    monkeypatch.setenv("BASH_FUNC_greet%%", "() { echo hello\n}")
    flow = written(tmp_path, [{"name": "a", "run": "greet > said", "shell": ["bash", "-c"], "memory": "1G"}])
    assert ran(flow) == 0
    assert (tmp_path / "said").read_text() == "hello\n"


def test_only_tasks_that_state_memory_have_a_group(base: Path, tmp_path: Path) -> None:
    show = "grep -E 'memory|^0:' /proc/self/cgroup > $ELIGO_TASK"
    flow = written(tmp_path, [{"name": "free", "run": show, "cores": 2}, {"name": "kept", "run": show, "memory": "1G"}])
    assert ran(flow) == 0
    assert "eligo-" not in (tmp_path / "free").read_text()
    assert "eligo-" in (tmp_path / "kept").read_text()


def test_what_a_container_engine_starts_is_not_limited(tmp_path: Path) -> None:
    """Its processes may belong to a service; the group of its client would end what stops the container."""
    launch = Launch(container="podman:alpine")
    details = {"a": Task(name="a", command="true", launch=launch, memory=2**30), "b": Task(name="b", command="true")}
    commands = Commands(Workflow(Dag.from_arcs([], ["a", "b"]), details), str(tmp_path), str(tmp_path))
    limits = [equip(commands(name, 1), Demand(memory=2**30), "") for name in ("a", "b")]
    assert [each.memory for each in limits if isinstance(each, Command)] == [None, 2**30]


def test_without_control_groups_memory_is_only_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eligo.engines.local.groups", lambda mark: None)
    flow = written(tmp_path, [GROW])
    assert ran(flow) == 0
    assert outcomes(flow) == [None]


def test_a_client_limits_its_tasks_in_the_same_way(base: Path, tmp_path: Path) -> None:
    with StandIn() as server:
        server.grant(task("hungry", HUNGRY, memory=64 * 2**20))
        work(WorkOptions(server.url, 1, folder=str(tmp_path / "client"), once=True))
        assert server.result("hungry")["failure"] == "exceeded the memory limit of 64 MiB"


def test_a_group_that_is_removed_takes_its_processes_and_subgroups_with_it(base: Path) -> None:
    made = cgroups.groups("removal")
    assert made is not None
    group = made.limited(2**30)
    with subprocess.Popen(group.around(["sleep", "60"], {})):
        os.mkdir(f"{group.path}/inner")
        group.close()
    assert not os.path.exists(group.path)


def test_memory_that_a_trace_recorded_is_no_limit(tmp_path: Path) -> None:
    flow = Workflow(
        Dag.from_arcs([], ["a"]),
        {"a": Task(name="a", command=("true",), memory=2**20)},
        origin=Origin(format="wfcommons"),
    )
    stated = Workflow(flow.dag, dict(flow.details), origin=Origin(format="json"))
    assert [Commands(each, str(tmp_path), str(tmp_path))("a", 1).memory for each in (flow, stated)] == [None, 0]
