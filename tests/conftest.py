"""What several test files share."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from eligo.dag import Dag

#: `make test-engines`, which starts real pools and a database; `make test-plugins`, which installs other engines;
#: `make test-faults`, which takes minutes
collect_ignore = ["htcondor", "plugins", "postgres", "slurm", "faults"]

pytest.register_assert_rewrite("engine_contract", "store_contract", "store_twin", "store_writing")

settings.register_profile("eligo", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("eligo")

GOLDEN: list[dict[str, Any]] = json.loads(Path(__file__).with_name("golden_cases.json").read_text("utf-8"))


def golden_dag(case: dict[str, Any]) -> Dag:
    tails, heads = zip(*case["arcs"], strict=True)
    return Dag.from_arrays(case["n"], tails, heads)


def random_small_dag(rng: np.random.Generator, most: int = 12) -> Dag:
    """A dag of at most *most* tasks: sparse or dense, layered, bipartite or a tree, its tasks in random order."""
    n = int(rng.integers(1, most + 1))
    kind = rng.choice(["any", "layered", "bipartite", "tree"])
    tails, heads = np.triu_indices(n, 1)
    if kind == "tree":
        heads, tails = np.arange(1, n), np.array([rng.integers(0, v) for v in range(1, n)], np.int64)
        if rng.random() < 0.5:
            tails, heads = n - 1 - heads, n - 1 - tails
    else:
        layer = {"any": np.arange(n), "layered": np.arange(n) * 4 // n, "bipartite": np.arange(n) * 2 // n}[str(kind)]
        gap = layer[heads] - layer[tails]
        keep = (gap > 0) & (gap < (2 if kind == "layered" else n)) & (rng.random(len(tails)) < rng.uniform(0.1, 0.7))
        tails, heads = tails[keep], heads[keep]
    mixed = rng.permutation(n)
    return Dag.from_arrays(n, mixed[tails], mixed[heads])


def complete_layers(*widths: int) -> Dag:
    """Layers of these widths, each task a parent of all in the next."""
    ends = np.cumsum([0, *widths])
    layers = [np.arange(a, b) for a, b in pairwise(ends.tolist())]
    tails = [np.repeat(above, len(below)) for above, below in pairwise(layers)]
    heads = [np.tile(below, len(above)) for above, below in pairwise(layers)]
    return Dag.from_arrays(int(ends[-1]), np.concatenate(tails), np.concatenate(heads))


@pytest.fixture
def diamond() -> Dag:
    """Four tasks: a, then b and c, then d."""
    return Dag.from_arcs([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])


@pytest.fixture
def plain_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are plain ones, whether or not the page is built here."""
    monkeypatch.setattr("eligo.pages.writing.asset", lambda name: None)
