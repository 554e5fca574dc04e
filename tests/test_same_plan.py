"""The same workflow gets the same plan: on a busy machine, on one core, compiled and interpreted."""

import os
import shutil
import subprocess
import sys

import pytest

#: dags that take elimination, searches for orders and for areas, symmetry and probes
PLANS = """
import json
from eligo import families, plan
from eligo.dag import Dag
arcs = []
for sample in range(3):
    s = f"s{sample}."
    arcs += [("begin", s + "trim"), (s + "trim", s + "align"), (s + "trim", s + "quality"), (s + "align", s + "sort")]
    arcs += [(s + "sort", s + f"count{i}") for i in range(3)] + [(s + f"count{i}", s + "join") for i in range(3)]
    arcs += [(s + "join", "merge"), (s + "sort", s + "peaks"), (s + "peaks", s + "annotate"), (s + "quality", "report")]
    arcs += [(s + "annotate", "report"), ("merge", f"plot{sample}"), (s + "join", f"plot{sample}")]
dags = [families.random_layered(4, 12, seed=4), families.random_layered(5, 9, seed=2), Dag.from_arcs(arcs)]
for dag in dags:
    told = plan(dag).document()
    del told["seconds"]
    print(json.dumps(told))
"""
HOG = "while True: pass"


def planned(words: list[str], **environment: str) -> str:
    """What a process of its own prints."""
    done = subprocess.run(
        [*words, sys.executable, "-c", PLANS], env=os.environ | environment, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_the_same_plan_on_a_busy_core_and_interpreted() -> None:
    usual = planned([])
    assert usual.count("\n") == 3
    assert '"elimination"' in usual
    assert '"cut_short": false' in usual
    assert planned([], ELIGO_PURE="1") == usual
    if shutil.which("taskset") is None:
        pytest.skip("taskset is not on this machine")
    core = ["taskset", "-c", "0"]
    hog = subprocess.Popen([*core, sys.executable, "-c", HOG])
    try:
        assert planned(core) == usual
    finally:
        hog.kill()
        hog.wait()
