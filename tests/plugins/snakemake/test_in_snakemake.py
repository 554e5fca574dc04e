"""`snakemake --scheduler eligo` in the real Snakemake: the order, and that all else stays as it was."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from engine_venv import engine_or_skip

LONGEST = 120  # seconds for one run
#: beside eight jobs that nothing needs, a job that three need, and one that needs these
FAN = """
rule all:
    input: expand("side/{s}", s=range(8)), "end"
rule side:
    output: "side/{s}"
    shell: "echo side-{wildcards.s} >> started; touch {output}"
rule begin:
    output: "begin"
    shell: "echo begin >> started; touch {output}"
rule fan:
    input: "begin"
    output: "fan/{k}"
    shell: "echo fan-{wildcards.k} >> started; touch {output}"
rule end:
    input: expand("fan/{k}", k=range(3))
    output: "end"
    shell: "echo end >> started; touch {output}"
"""
SIDES = [f"side-{i}" for i in range(8)]
ORDER = ["begin", "fan-0", "fan-1", "fan-2", "end", *SIDES]


class Place:
    """A folder with a Snakefile, and Snakemake to run there."""

    def __init__(self, python: Path, folder: Path) -> None:
        self.python, self.folder = python, folder

    def begin(self, *words: str) -> "subprocess.Popen[str]":
        command = [str(self.python), "-m", "snakemake", "--cores", "1", "--nocolor", "--latency-wait", "1", *words]
        env = {**os.environ, "PATH": f"{self.python.parent}:{os.environ['PATH']}"}
        return subprocess.Popen(
            command, cwd=self.folder, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip

    def run(self, snakefile: str, *words: str) -> tuple[int, str]:
        (self.folder / "Snakefile").write_text(snakefile, "utf-8")
        process = self.begin(*words)
        try:
            said, _ = process.communicate(timeout=LONGEST)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        return process.returncode, said

    def started(self) -> list[str]:
        return (self.folder / "started").read_text("utf-8").split()


@pytest.fixture(scope="session")
def python() -> Path:
    return engine_or_skip("snakemake")


@pytest.fixture
def place(python: Path, tmp_path: Path) -> Place:
    return Place(python, tmp_path)


def test_jobs_begin_in_eligos_order(place: Place) -> None:
    code, said = place.run(FAN, "--scheduler", "eligo")
    assert code == 0, said
    assert place.started() == ORDER


#: six temporary files of 1000 bytes, each with one reader; every job notes how many of them exist
BRANCHES = """
rule all:
    input: expand("used/{k}", k=range(6))
rule make:
    output: temp("made/{k}")
    shell: "head -c 1000 /dev/zero > {output}; sleep 0.3; ls made | wc -l >> started"
rule use:
    input: "made/{k}"
    output: "used/{k}"
    shell: "ls made | wc -l >> started; touch {output}"
"""


@pytest.mark.parametrize(("limit", "most"), [((), 4), (("--scheduler-eligo-space", "2500"), 2)])
def test_temporary_files_stay_within_a_limit(place: Place, limit: tuple[str, ...], most: int) -> None:
    code, said = place.run(BRANCHES, "--cores", "4", "--scheduler", "eligo", "--scheduler-eligo-policy", "fifo", *limit)
    assert code == 0, said
    assert len(list((place.folder / "used").iterdir())) == 6
    counts = [*map(int, place.started())]
    assert (max(counts) <= most) if limit else (max(counts) >= most)


def test_what_failed_for_good_does_not_stop_others_that_wait_for_space(place: Place) -> None:
    snakefile = BRANCHES.replace("ls made | wc -l >> started; touch", "test {wildcards.k} != 2; touch")
    code, said = place.run(
        snakefile, "--cores", "4", "--keep-going", "--scheduler", "eligo", "--scheduler-eligo-space", "1500"
    )
    assert code == 1, said
    assert len(list((place.folder / "used").iterdir())) == 5


def test_a_limit_that_is_no_size_is_refused_at_the_start(place: Place) -> None:
    code, said = place.run(FAN, "--scheduler", "eligo", "--scheduler-eligo-space", "much")
    assert (code, "space must be a size, such as 200G, got 'much'" in said) == (1, True)


def test_without_it_they_begin_in_another(place: Place) -> None:
    code, said = place.run(FAN)
    assert code == 0, said
    assert sorted(place.started()) == sorted(ORDER)
    assert place.started() != ORDER


def test_another_policy_and_the_users_own_priorities_first(place: Place) -> None:
    first = FAN.replace("rule side:", "rule side:\n    priority: 5")
    code, said = place.run(first, "--scheduler", "eligo", "--scheduler-eligo-policy", "critical-path")
    assert code == 0, said
    assert place.started() == [*SIDES, *ORDER[:5]]


def test_a_policy_that_there_is_not_is_refused_in_one_sentence(place: Place) -> None:
    code, said = place.run(FAN, "--scheduler", "eligo", "--scheduler-eligo-policy", "quickest")
    assert code == 1
    assert "Error: scheduler eligo: unknown policy 'quickest' (choose from finish, ready, balanced)" in said
    assert "Traceback" not in said
    assert not (place.folder / "started").exists()


def test_a_history_that_there_is_not_is_told_before_anything_begins(place: Place) -> None:
    code, said = place.run(FAN, "--scheduler", "eligo", "--scheduler-eligo-history", "nowhere")
    assert code == 1
    assert "scheduler eligo: nowhere" in said
    assert "Traceback" not in said
    assert not (place.folder / "started").exists()


def test_a_history_counts(place: Place) -> None:
    (place.folder / "took.csv").write_text("kind,seconds\nside,100\nbegin,1\nfan,1\nend,1\n", "utf-8")
    code, said = place.run(FAN, "--scheduler", "eligo", "--scheduler-eligo-history", "took.csv")
    assert code == 0, said
    assert place.started() == ["begin", *SIDES, *ORDER[1:5]]  # what takes long comes before what is brief


#: one of the fan fails once, one always; what does not need it goes on
FAILING = FAN.replace(
    'shell: "echo fan-{wildcards.k} >> started; touch {output}"',
    'shell: "echo fan-{wildcards.k} >> started; test {wildcards.k} -ne 2;'
    ' test {wildcards.k} -ne 1 -o -e tried || {{ touch tried; exit 1; }}; touch {output}"',
)


def test_failures_are_retried_and_the_rest_goes_on(place: Place) -> None:
    code, said = place.run(FAILING, "--scheduler", "eligo", "--keep-going", "--retries", "1")
    assert code == 1
    started = place.started()
    assert {name: started.count(name) for name in ("fan-0", "fan-1", "fan-2", "end")} == {
        "fan-0": 1, "fan-1": 2, "fan-2": 2, "end": 0,
    }, said  # fmt: skip
    assert sorted(set(started)) == sorted(set(ORDER) - {"end"})
    assert started[:2] == ["begin", "fan-0"]
    assert started[-8:] == SIDES  # a second attempt has the place of the first
    repaired = FAN.replace("side-", "again-")  # nothing of these is run again
    code, said = place.run(repaired, "--scheduler", "eligo", "--rerun-triggers", "mtime")
    assert code == 0, said
    assert place.started()[len(started) :] == ["fan-2", "end"]


def test_after_a_kill_the_run_goes_on(place: Place) -> None:
    slow = FAN.replace(
        "echo fan-{wildcards.k} >> started;", "echo fan-{wildcards.k} >> started; test -e go || sleep 60;"
    )
    (place.folder / "Snakefile").write_text(slow, "utf-8")
    process = place.begin("--scheduler", "eligo")
    end = time.monotonic() + LONGEST
    while not (place.folder / "started").exists() or "fan-0" not in place.started():
        assert time.monotonic() < end
        assert process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=LONGEST)
    (place.folder / "fan").mkdir(exist_ok=True)
    (place.folder / "fan" / "0").touch()  # incomplete: it must be made again
    (place.folder / "go").touch()
    code, said = place.run(slow, "--scheduler", "eligo", "--nolock", "--rerun-incomplete")
    assert code == 0, said
    assert place.started() == ["begin", "fan-0", *ORDER[1:]]


#: what the checkpoint finds is what is split, and only then known
CHECKPOINT = """
def found(wildcards):
    folder = checkpoints.split.get().output[0]
    return expand("part/{p}", p=sorted(glob_wildcards(os.path.join(folder, "{p,[a-z]}")).p))
rule all:
    input: expand("side/{s}", s=range(4)), "sum"
checkpoint split:
    output: directory("split")
    shell: "echo split >> started; mkdir {output}; touch {output}/x {output}/y {output}/z"
rule part:
    input: "split/{p}"
    output: "part/{p}"
    shell: "echo part-{wildcards.p} >> started; touch {output}"
rule sum:
    input: found
    output: "sum"
    shell: "echo sum >> started; touch {output}"
rule side:
    output: "side/{s}"
    shell: "echo side-{wildcards.s} >> started; touch {output}"
"""


def test_jobs_that_a_checkpoint_adds_are_ranked(place: Place) -> None:
    code, said = place.run(CHECKPOINT, "--scheduler", "eligo")
    assert code == 0, said
    started = place.started()
    assert started[:4] == ["split", "part-x", "part-y", "part-z"]  # they come before what was ready before them
    assert sorted(started[4:]) == [*SIDES[:4], "sum"]


#: groups are made for clusters only; jobs of a "cluster" that is a shell here
GROUP = """
localrules: all
rule all:
    input: "alone/0", "both"
rule alone:
    output: "alone/{s}"
    shell: "echo alone-{wildcards.s} >> started; touch {output}"
rule first:
    output: "first"
    group: "g"
    shell: "echo first >> started; touch {output}"
rule both:
    input: "first"
    output: "both"
    group: "g"
    shell: "echo both >> started; touch {output}"
"""


def test_a_group_has_the_place_of_its_best_job(place: Place) -> None:
    cluster = ("--executor", "cluster-generic", "--cluster-generic-submit-cmd", "sh", "--jobs", "1")
    brisk = ("--seconds-between-status-checks", "1")
    code, said = place.run(GROUP, "--scheduler", "eligo", *cluster, *brisk)
    assert code == 0, said
    assert place.started() == ["first", "both", "alone-0"]
