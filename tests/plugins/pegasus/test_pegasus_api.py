"""Priorities in workflows of Pegasus' own API: what eligo writes is what the API itself would have written."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from engine_venv import engine_or_skip

import eligo

LONGEST = 120
#: Writes a workflow with the API, with the priorities that it is given; then what Pegasus' own reader makes of it.
WRITER = """
import json, sys
from Pegasus.api import File, Job, Workflow
import Pegasus.yaml
path, numbers = sys.argv[1], json.loads(sys.argv[2])
wf, files = Workflow("diamond"), [File(f"f.{i}") for i in range(6)]
jobs = [Job("split", _id="a").add_outputs(files[0], files[1]),
        Job("work", _id="b").add_inputs(files[0]).add_outputs(files[2]),
        Job("work", _id="c").add_args("-i", files[1]).add_inputs(files[1]).add_outputs(files[3]),
        Job("late", _id="d").add_pegasus_profile(runtime=60).add_dagman_profile(retry=2),
        Job("join", _id="e").add_inputs(files[2], files[3]).add_outputs(files[4])]
for job in jobs:
    if job._id in numbers:
        job.add_condor_profile(priority=numbers[job._id])
        job.add_dagman_profile(priority=numbers[job._id])
wf.add_jobs(*jobs)
wf.add_dependency(jobs[3], parents=[jobs[0]])
wf.write(path)
"""
READER = "import json, sys, Pegasus.yaml; print(json.dumps(Pegasus.yaml.loads(open(sys.argv[1]).read()), default=str))"


@pytest.fixture(scope="module")
def python() -> Path:
    return engine_or_skip("pegasus", with_eligo=False)


def document(python: Path, path: Path) -> dict[str, Any]:
    """What Pegasus' own reader makes of a file, without when and by whom it was written."""
    done = subprocess.run(
        [python, "-c", READER, str(path)], check=True, capture_output=True, text=True, timeout=LONGEST
    )
    found: dict[str, Any] = json.loads(done.stdout)
    found.pop("x-pegasus", None)
    return found


def written(python: Path, path: Path, numbers: dict[str, int]) -> Path:
    words = [str(python), "-c", WRITER, str(path), json.dumps(numbers)]
    steady = os.environ | {"PYTHONHASHSEED": "0"}  # the API keeps files in sets
    subprocess.run(words, check=True, capture_output=True, timeout=LONGEST, env=steady)
    return path


@pytest.mark.parametrize("base", [None, 100])
def test_the_priorities_are_those_that_the_api_would_write(python: Path, tmp_path: Path, base: int | None) -> None:
    plain, out = written(python, tmp_path / "plain.yml", {}), tmp_path / "out.yml"
    chosen = [] if base is None else ["--priority-base", str(base)]
    verb = [sys.executable, "-m", "eligo", "plan", str(plain), "-o", str(out), *chosen]
    told = subprocess.run(verb, check=True, capture_output=True, text=True, timeout=LONGEST).stderr
    order = [str(name) for name in eligo.priorities(plain)]
    numbers = {name: (-1 if base is None else base) - i for i, name in enumerate(order)}
    assert {name: eligo.read(out).task(name).priority for name in order} == numbers
    assert document(python, out) == document(python, written(python, tmp_path / "theirs.yml", numbers))
    assert "dagman.maxjobs" in told


def test_priorities_that_were_there_are_kept_as_classes(python: Path, tmp_path: Path) -> None:
    plain, out = written(python, tmp_path / "plain.yml", {"e": 50}), tmp_path / "out.yml"
    verb = [sys.executable, "-m", "eligo", "plan", str(plain), "-o", str(out)]
    subprocess.run(verb, check=True, capture_output=True, timeout=LONGEST)
    profiles = {job["id"]: job["profiles"] for job in document(python, out)["jobs"]}
    assert profiles["e"] == {"condor": {"priority": -1}, "dagman": {"PRIORITY": -1}}
    assert profiles["d"]["dagman"]["RETRY"] == 2
    assert all(profiles[name]["condor"]["priority"] < -1 for name in "abcd")
