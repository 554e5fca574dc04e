"""Plans too large for quadratic work: they hold, whatever their rules, and are checked in seconds."""

import json
from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest

from eligo import families as f
from eligo.dag import Dag, sum_of
from eligo.deciding import bounds
from eligo.deciding.work import cumulative
from eligo.planning import plan
from eligo.theory.priority import Kind, has_priority, precedes
from eligo.theory.profiles import convolve
from eligo.theory.solutions import solve_one
from eligo.theory.trees import even_tree, tree_maxima
from eligo.verifying import blocks, verify
from test_verifying import Document, document, rejected
from test_verifying_searches import random_blocks


def copies(few: Dag, times: int) -> Dag:
    """The dag that many times, side by side."""
    shift = np.arange(times).reshape(-1, 1) * len(few)
    return Dag.from_arrays(times * len(few), (few.tails + shift).ravel(), (few.child + shift).ravel())


def montage(width: int) -> Dag:
    """Projections, overlaps, one join, and one task for each projection again, which is a shortcut away from it."""
    project, overlap, back = np.arange(width), width + np.arange(2 * width), 3 * width + 1 + np.arange(width)
    tails = [np.repeat(project, 2), (project.repeat(2) + 1) % width, overlap, np.full(width, 3 * width), project]
    heads = [overlap, overlap, np.full(2 * width, 3 * width), back, back]
    return Dag.from_arrays(4 * width + 1, np.concatenate(tails), np.concatenate(heads))


def even_out_tree(sources: int, children: int, seed: int = 0) -> Dag:
    """A tree whose sources all have so many children, each source hung onto a sink drawn at random."""
    rng, sinks, tails, heads = np.random.default_rng(seed), 0, list[int](), list[int]()
    for u in range(sources):
        old = [int(rng.integers(sinks))] if sinks else []
        fresh = list(range(sinks, sinks + children - len(old)))
        sinks += len(fresh)
        tails, heads = [*tails, *[u] * children], [*heads, *old, *fresh]
    return Dag.from_arrays(sources + sinks, tails, np.array(heads) + sources)


LARGE: dict[str, Callable[[], Dag]] = {
    "layers": lambda: f.random_layered(100, 200, seed=1),
    "a wide path of sources": lambda: f.w_dag(40_000, 3),
    "a wide path of sinks": lambda: f.m_dag(20_000, 3),
    "many kinds of blocks": lambda: copies(random_blocks(60, 2), 60),
    "shortcuts": lambda: montage(6_000),
    "many segments": lambda: f.random_out_tree(2_000, seed=2),
    "many blocks": lambda: f.out_mesh(200),
    "a sum": lambda: sum_of(f.w_dag(9_000, 3), f.m_dag(9_000, 2)).dag,
}


@pytest.mark.parametrize("name", LARGE)
def test_large_plans_hold_and_changes_are_noticed(name: str) -> None:
    dag = LARGE[name]()
    document: Document = json.loads(json.dumps(plan(dag, "quick").document()))
    found = verify(dag, document)
    assert found.holds, found.reason
    other = [*document["upper_bound"]]
    other[len(other) // 3] += 1
    assert rejected(dag, document | {"upper_bound": other})


def test_a_sum_too_long_is_not_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by the planner nor by the checker, who then conclude nothing from it."""
    dag, swept = document("sum, optimal")
    assert verify(dag, swept).holds
    for module in (blocks, bounds):
        monkeypatch.setattr(module, "LARGEST_CONVOLUTION", 100)
    assert verify(dag, swept).reason == "the verdict is not what follows from the proof"
    other = plan(dag)
    assert (swept["method"], other.method) == ("sweep of a sum", "module by module")
    assert verify(dag, other).holds


# What planner and checker compute by themselves, against each other and against definitions


@pytest.mark.parametrize("seed", range(12))
def test_even_trees_are_run_optimally(seed: int) -> None:
    sources, children = 3 + 2 * seed, 2 + seed % 3
    for tree in (out := even_out_tree(sources, children, seed), out.dual()):
        bare = tree.renumbered(np.argsort(tree.outdegree == 0, kind="stable").astype(np.int32))
        even = even_tree(bare)
        assert even is not None
        maxima, order = even
        assert maxima.tolist() == tree_maxima(bare).tolist()
        assert cumulative(bare, np.array(order, np.int32)).tolist() == maxima.tolist()
        assert blocks.block_maxima(bare.tails, bare.child).tolist() == maxima.tolist()


@pytest.mark.parametrize("seed", range(12))
def test_even_trees_with_a_sink_that_misses_fewer_are_run_optimally(seed: int) -> None:
    """As when one of its sources was executed that has no other child."""
    whole = even_out_tree(3 + 2 * seed, 3 + seed % 3, seed).dual()
    leaves = np.flatnonzero((whole.outdegree == 1) & (whole.indegree == 0))
    for gone in (1, 1 + seed % 2):
        sink = whole.child[whole.child_ptr[leaves[seed % len(leaves)]]]
        alike = [v for v in leaves.tolist() if whole.child[whole.child_ptr[v]] == sink][:gone]
        tree = whole.induced(np.setdiff1d(np.arange(len(whole), dtype=np.int32), alike))
        bare = tree.renumbered(np.argsort(tree.outdegree == 0, kind="stable").astype(np.int32))
        even = even_tree(bare)
        assert even is not None
        assert even[0].tolist() == tree_maxima(bare).tolist()
        assert cumulative(bare, np.array(even[1], np.int32)).tolist() == even[0].tolist()
        assert blocks.block_maxima(bare.tails, bare.child).tolist() == even[0].tolist()


def test_convolutions_try_enough_splits() -> None:
    """Profiles with few rises, with few bends, and with many of both."""
    rng = np.random.default_rng(8)
    for _ in range(400):
        draws = (rng.integers(0, 3, 8), np.sort(rng.integers(0, 5, 9)), (rng.random(12) < 0.2) * 4)
        one, two = (np.append(0, np.cumsum(draws[i])) for i in rng.integers(0, 3, 2))
        found = blocks.convolve(one, two)
        assert found.tolist() == convolve(one, two).tolist()
        assert blocks.precedes(one, two) == has_priority(one, two)


@pytest.mark.parametrize(("letter", "first", "second"), [("C", 0, 0), ("W", 0, 1), ("M", 1, 0)])
def test_long_blocks_are_compared_at_once(letter: str, first: int, second: int) -> None:
    """Two equal cycles; two paths of sources, the shorter first, or of sinks, the longer first."""
    one, two = (Kind(letter, 200_000 + more, 0 if letter == "C" else 3) for more in (first, second))
    assert precedes(one, two)
    assert blocks.precedes(one.profile, two.profile)


def test_an_uneven_tree_has_no_closed_form() -> None:
    assert even_tree(f.bipartite_tree(20, seed=1)) is None


def test_a_large_even_tree_is_optimal_and_holds() -> None:
    tree = even_out_tree(4_000, 3)
    best = plan(tree, "quick")
    assert best.verdict == "optimal"
    assert verify(tree, best).holds


def test_equal_shares_are_summed_exactly() -> None:
    """The same by planner, checker and fractions, also where floating point would not know whole numbers."""
    rng = np.random.default_rng(6)
    for width in (30, 200):
        tails, heads = np.nonzero(rng.random((width, width)) < 0.3)
        block = Dag.from_arrays(2 * width, tails, width + heads)
        into = block.indegree.tolist()
        shares = sorted((sum(Fraction(1, into[v]) for v in block.children_of(u)) for u in range(width)), reverse=True)
        exact = [0, *(int(total) for total in accumulate(shares))]
        assert solve_one(block).maxima.tolist() == exact
        assert blocks.block_maxima(block.tails, block.child).tolist() == exact
