"""Disks that fill, folders that cannot be written, and tasks that print without end."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from eligo.formats import read_history
from hardship_scenarios import small_disk
from running_cases import COMMAND, completed, lines, started, state_of, written

MEGABYTE = 2**20
PRINTED = 200 * 10**6


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "small", "1m") as place:
        yield place


def test_a_disk_that_fills(tmp_path: Path, disk: Path) -> None:
    tasks = [{"name": f"t{i:03}", "run": f"echo >> out/{i:03}; test $(wc -l < out/{i:03}) -lt 99"} for i in range(300)]
    filler = {"name": "fill", "run": "test -e roomy || dd if=/dev/zero of=small/fill bs=4096 2> /dev/null; true"}
    (tmp_path / "out").mkdir()
    flow = written(
        tmp_path, [*tasks[:100], filler | {"after": ["t099"]}, *[t | {"after": ["fill"]} for t in tasks[100:]]]
    )
    options = ("--workers", "2", "--run", str(disk / "run"), "--retries", "0")
    with started(flow, *options) as run:
        _, err = run.communicate(timeout=240)
    assert run.returncode == 2
    assert "cannot be written" in err
    assert "disk" in err
    assert "Traceback" not in err
    kept = completed(disk / "run")
    assert set(kept.values()) <= {1}
    before = {name: len(lines(tmp_path / "out" / name[1:])) for name in kept if name != "fill"}
    (tmp_path / "roomy").touch()
    (disk / "fill").unlink()
    with started(flow, *options) as run:
        _, err = run.communicate(timeout=240)
    assert run.returncode == 0, err
    assert completed(disk / "run") == {str(t["name"]): 1 for t in [*tasks, filler]}
    assert {name: len(lines(tmp_path / "out" / name[1:])) for name in before} == before
    with closing(state_of(disk / "run")) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_folder_that_cannot_be_written(tmp_path: Path, disk: Path) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "touch ran"}])
    options = ("--run", str(disk / "run"))
    (disk / "other").mkdir()
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    with started(flow, *options) as run:
        _, err = run.communicate(timeout=240)
    assert run.returncode == 2
    assert "cannot write the run: Read-only file system" in err
    assert not (tmp_path / "ran").exists()


def test_a_run_is_a_history_where_nothing_can_be_written(tmp_path: Path, disk: Path) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "true"}])
    with started(flow, "--run", str(disk / "run")) as run:
        run.communicate(timeout=240)
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    assert [timed.task for timed in read_history(disk / "run").records] == ["a"]


def test_tasks_that_print_without_end_cost_no_memory(tmp_path: Path) -> None:
    flow = written(tmp_path, [
        {"name": "quiet", "run": "true"},
        {"name": "loud", "run": f"head -c {PRINTED} /dev/zero | tr '\\0' y", "after": ["quiet"]},
        {"name": "after", "run": "sleep 1", "after": ["loud"]},
    ])  # fmt: skip
    peaks = []
    with started(flow, "--workers", "1") as run:
        while run.poll() is None:
            status = Path("/proc", str(run.pid), "status")
            peaks += [int(line.split()[1]) for line in lines(status) if line.startswith("VmHWM")]
            time.sleep(0.05)
        run.communicate()
    assert run.returncode == 0
    assert (tmp_path / "flow.yaml.run" / "logs" / "000" / "loud.out").stat().st_size == PRINTED
    assert max(peaks) * 1024 < 150 * MEGABYTE


def test_a_thousand_tasks_and_one_that_hangs(tmp_path: Path) -> None:
    flow = written(tmp_path, [
        *({"name": f"t{i}", "run": "true"} for i in range(1000)),
        {"name": "hung", "run": "sleep 1000"}, {"name": "slow", "run": "sleep 2"},
    ])  # fmt: skip
    done = subprocess.run(
        [*COMMAND, "run", str(flow), "--workers", "3", "--timeout", "4", "--retries", "0"],
        check=False, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 1
    assert "1,001 of 1,002 tasks done, 1 failed" in done.stdout
    assert "hung: took longer than 4 s" in done.stdout
