"""What several test files share."""

import json
import re
import signal
from collections.abc import Iterator
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


def pytest_configure() -> None:
    """What tests start heeds every signal, also where whoever started the tests ignores some, as nohup and `&` do."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in ("SIGHUP", "SIGQUIT"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)


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


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What servers and clients remember of each other goes into a folder of the tests' own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        for name in ("ELIGO_URL", "ELIGO_TOKEN_FILE"):
            patch.delenv(name, raising=False)
        yield


@pytest.fixture
def diamond() -> Dag:
    """Four tasks: a, then b and c, then d."""
    return Dag.from_arcs([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])


@pytest.fixture(scope="session", autouse=True)
def built_pages() -> Iterator[None]:
    """Pages hold their data and a program that does nothing, whether or not the page is built here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("eligo.pages.html.asset", lambda name: b"/* built */")
        yield


@pytest.fixture
def no_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page is not built."""
    monkeypatch.setattr("eligo.pages.html.asset", lambda name: None)


def data_of(page: str) -> Any:
    """The document that a page holds."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
    assert found
    return json.loads(found[1])
