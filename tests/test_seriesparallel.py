"""Series-parallel dags: recognised like the oracle does, of largest area, with the modules and a flow that proves them."""

from fractions import Fraction
from functools import reduce
from itertools import combinations, permutations, product

import numpy as np
import pytest

from conftest import random_small_dag
from eligo import families
from eligo.dag import Dag, sum_of
from eligo.deciding.bounds import Shares, best_shares
from eligo.deciding.modules import module_dag
from eligo.deciding.seriesparallel import BESIDE, Tree, largest_area_order, series_parallel
from eligo.deciding.work import cumulative
from eligo.theory.eligibility import area
from eligo.theory.skeleton import skeleton
from slow_theory import max_area_schedule

N = Dag.from_arcs([("a", "c"), ("a", "d"), ("b", "d")])


def random_series_parallel(rng: np.random.Generator, n: int, series: float) -> Dag:
    """Single tasks, two parts at a time put in series or side by side at random until one is left; no shortcuts."""
    mixed = rng.permutation(n).tolist()
    parts = [([v], [v]) for v in mixed]  # sources, sinks
    tails, heads = [], []
    while len(parts) > 1:
        at, other = rng.choice(len(parts), 2, replace=False).tolist()
        (first_sources, first_sinks), (second_sources, second_sinks) = parts[at], parts[other]
        if rng.random() < series:
            pairs = list(product(first_sinks, second_sources))
            tails += [u for u, _ in pairs]
            heads += [v for _, v in pairs]
            parts[at] = first_sources, second_sinks
        else:
            parts[at] = first_sources + second_sources, first_sinks + second_sinks
        del parts[other]
    return Dag.from_arrays(n, tails, heads)


def random_series_parallels(seed: int, count: int, most: int) -> list[Dag]:
    rng = np.random.default_rng(seed)
    return [random_series_parallel(rng, int(rng.integers(1, most + 1)), rng.uniform(0.1, 0.9)) for _ in range(count)]


def tree_of(dag: Dag) -> Tree:
    tree = series_parallel(dag)
    assert tree is not None
    return tree


def area_of(dag: Dag, nonsinks: np.ndarray) -> int:
    """The area of the schedule that ends with the sinks; no schedule raises."""
    return area(dag, np.concatenate([nonsinks, np.flatnonzero(dag.outdegree == 0)]).astype(np.int32))


def precedence(dag: Dag) -> np.ndarray:
    """For every two tasks, whether the first must come before the second."""
    before = np.zeros((len(dag), len(dag)), np.bool_)
    for v in dag.order.tolist():
        for u in dag.parent[dag.parent_ptr[v] : dag.parent_ptr[v + 1]].tolist():
            before[:, v] |= before[:, u]
            before[u, v] = True
    return before


def has_n(dag: Dag) -> bool:
    """Whether four tasks have a < c, a < d, b < d and no other relation."""
    before = precedence(dag)
    apart = ~(before | before.T)
    pairs = [(u, v) for u, v in permutations(range(len(dag)), 2) if before[u, v]]
    return any(
        before[a, d] and apart[a, b] and apart[b, c] and apart[c, d] for (a, c), (b, d) in permutations(pairs, 2)
    )


# Recognition


def test_every_dag_of_at_most_five_tasks_is_recognised_as_the_forbidden_order_tells() -> None:
    seen = set()
    for n in range(6):
        ends = list(combinations(range(n), 2))
        for chosen in product([False, True], repeat=len(ends)):
            arcs = [pair for pair, kept in zip(ends, chosen, strict=True) if kept]
            dag = skeleton(Dag.from_arrays(n, [u for u, _ in arcs], [v for _, v in arcs]))
            if (key := (n, dag.child_ptr.tobytes(), dag.child.tobytes())) not in seen:
                seen.add(key)
                assert (series_parallel(dag) is None) == has_n(dag), list(dag.arcs())


def test_random_dags_are_recognised_as_the_forbidden_order_tells() -> None:
    rng = np.random.default_rng(1)
    found = []
    for _ in range(4000):
        dag = skeleton(random_small_dag(rng, 8))
        found.append(series_parallel(dag) is not None)
        assert found[-1] == (not has_n(dag)), list(dag.arcs())
    assert 500 < sum(found) < len(found) - 500


def test_complete_blocks_alone_do_not_suffice() -> None:
    """a -> b, c; b -> d, e; c, d -> f: three complete blocks, but b precedes e and f, and c only f."""
    bridge = Dag.from_arcs([("a", "b"), ("a", "c"), ("b", "d"), ("b", "e"), ("c", "f"), ("d", "f")])
    assert has_n(bridge)
    assert series_parallel(bridge) is None


def test_what_is_composed_is_recognised() -> None:
    for dag in random_series_parallels(2, 300, 40):
        tree = tree_of(dag)
        assert len(tree.meets) == len(dag) - 1
        assert sorted(block for block in tree.meets if block != BESIDE) == list(range(len(tree.blocks)))


def test_one_crossing_arc_spoils_it() -> None:
    assert series_parallel(N) is None
    assert largest_area_order(N) is None
    assert series_parallel(sum_of(N, families.fork_join(4)).dag) is None


def test_a_dag_with_a_shortcut_is_not_taken() -> None:
    assert series_parallel(Dag.from_arcs([("a", "b"), ("b", "c"), ("a", "c")])) is None


@pytest.mark.parametrize(
    "dag",
    [
        families.out_tree(4, 3),
        families.in_tree(4, 3),
        families.fork_join(5, 3, 2),
        families.diamond(3),
        families.random_out_tree(60, 1),
        families.random_in_tree(60, 1),
    ],
    ids=str,
)
def test_trees_and_fork_joins_are_series_parallel(dag: Dag) -> None:
    assert series_parallel(dag) is not None


@pytest.mark.parametrize("dag", [families.out_mesh(3), families.butterfly(2), families.grid(3, 3)], ids=str)
def test_meshes_and_butterflies_are_not(dag: Dag) -> None:
    assert (series_parallel(dag) is None) == has_n(dag)


# The largest area


String = tuple[int, int, int]  # renders, runs, area


def area_by_lists(dag: Dag) -> int | None:
    """The largest sum of a cumulative profile, a second time: parents and children as sets, strings in sorted lists."""
    children = {u: frozenset(dag.children(u)) for u in dag.tasks}
    parents = {v: frozenset(dag.parents(v)) for v in dag.tasks}
    parts: dict[tuple[frozenset[str], frozenset[str]], list[String]] = {}
    for task in dag.tasks:  # a node is the set of tasks that leave it; those that enter it are their common parents
        parts[frozenset() if not parents[task] else children[min(parents[task])], children[task]] = []
    nodes = {c for c in children.values() if c}
    if any(parents[v] != parents[min(node)] for node in nodes for v in node):
        return None
    changed = True
    while changed:
        changed = False
        for node in sorted(nodes, key=sorted):
            into, out = [k for k in parts if k[1] == node], [k for k in parts if k[0] == node and node]
            if len(into) == len(out) == 1:
                block = (len(node), len(parents[min(node)]), len(node))
                joined = _pooled([*parts.pop(into[0]), block, *parts.pop(out[0])])
                beside = parts.get((into[0][0], out[0][1]), [])
                parts[into[0][0], out[0][1]] = sorted(joined + beside, key=lambda s: Fraction(-s[0], s[1]))
                nodes.remove(node)
                changed = True
    if nodes:
        return None
    return reduce(_concatenated, next(iter(parts.values()), []), (0, 0, 0))[2]


def _concatenated(one: String, other: String) -> String:
    return one[0] + other[0], one[1] + other[1], one[2] + other[2] + one[0] * other[1]


def _pooled(strings: list[String]) -> list[String]:
    """Neighbours put together until the ratios fall."""
    kept: list[String] = []
    for string in strings:
        grown = string
        while kept and kept[-1][0] * grown[1] <= grown[0] * kept[-1][1]:
            grown = _concatenated(kept.pop(), grown)
        kept.append(grown)
    return kept


def test_a_second_program_finds_the_same_area() -> None:
    for dag in random_series_parallels(17, 150, 60):
        assert cumulative(dag, tree_of(dag).order).sum() == area_by_lists(dag)


def test_the_area_is_the_largest() -> None:
    """Against enumeration; sinks last loses nothing."""
    for dag in random_series_parallels(3, 1500, 10) + random_series_parallels(4, 100, 13):
        order = tree_of(dag).order
        assert sorted(order.tolist()) == np.flatnonzero(dag.outdegree).tolist()
        assert area_of(dag, order) == area(dag, max_area_schedule(dag)), list(dag.arcs())


def test_the_area_is_the_largest_on_all_recognised_dags() -> None:
    rng = np.random.default_rng(5)
    for _ in range(600):
        dag = skeleton(random_small_dag(rng, 10))
        order = largest_area_order(dag)
        if order is not None:
            assert area_of(dag, order) == area(dag, max_area_schedule(dag)), list(dag.arcs())


def test_a_long_first_step_that_pays_later_comes_first() -> None:
    """
    Ratio 2: x -> y -> 1, 2, 3. Ratio 1: a -> b. Neither of x and a renders more than the other by itself.
    """
    dag = Dag.from_arcs([("a", "b"), ("x", "y"), ("y", "1"), ("y", "2"), ("y", "3")])
    assert dag.named(tree_of(dag).order) == ("x", "y", "a")


def test_nothing_and_nothing_to_order() -> None:
    for n in range(3):
        tree = tree_of(Dag.from_arrays(n, [], []))
        assert tree.order.tolist() == []
        assert tree.strings == []
        assert tree.shares.modules == []
        assert tree.shares.bound.tolist() == [0]


def test_the_area_does_not_depend_on_the_numbering() -> None:
    rng = np.random.default_rng(6)
    for dag in random_series_parallels(7, 150, 60):
        mixed = dag.renumbered(rng.permutation(len(dag)).astype(np.int32))
        assert area_of(dag, tree_of(dag).order) == area_of(mixed, tree_of(mixed).order)
        assert tree_of(dag).order.tolist() == tree_of(dag).order.tolist()


def test_repeated_arcs_change_nothing() -> None:
    for dag in random_series_parallels(8, 50, 30):
        twice = Dag.from_arrays(len(dag), np.tile(dag.tails, 2), np.tile(dag.child, 2))
        assert tree_of(twice).order.tolist() == tree_of(dag).order.tolist()


def test_lonely_tasks_change_nothing() -> None:
    for dag in random_series_parallels(9, 50, 30):
        more = Dag.from_arrays(len(dag) + 3, dag.tails, dag.child)
        assert tree_of(more).order.tolist() == tree_of(dag).order.tolist()


def test_copies_side_by_side_only_repeat_the_strings() -> None:
    for dag in random_series_parallels(10, 50, 20):
        copies = tree_of(sum_of(dag, dag, dag).dag)
        assert sorted(map(len, copies.strings)) == sorted(3 * list(map(len, tree_of(dag).strings)))


# The bound


def assert_same_modules(mine: Shares, theirs: Shares) -> None:
    assert len(mine.modules) == len(theirs.modules)
    for one, other in zip(mine.modules, theirs.modules, strict=True):
        assert (one.p, one.q) == (other.p, other.q)
        assert one.tasks.tolist() == other.tasks.tolist()
        assert one.renders.tolist() == other.renders.tolist()


def assert_flow_holds(dag: Dag, shares: Shares) -> None:
    """Every rendered task hands over its q units and what it was passed, every executed one keeps its p, in one module."""
    done, out = np.full(len(dag), -1), np.full(len(dag), -2)
    keeps, hands = np.zeros(len(dag), np.int64), np.zeros(len(dag), np.int64)
    for i, module in enumerate(shares.modules):
        done[module.tasks], keeps[module.tasks] = i, module.p
        out[module.renders], hands[module.renders] = i, module.q
    assert (shares.flow >= 0).all()
    assert (done[dag.tails] == out[dag.child])[shares.flow > 0].all()
    given, taken = np.zeros(len(dag), np.int64), np.zeros(len(dag), np.int64)
    np.add.at(given, dag.child, shares.flow)
    np.add.at(taken, dag.tails, shares.flow)
    passed = given - hands
    assert (passed >= 0).all()
    assert (passed[done != out] == 0).all()
    assert (taken == keeps + passed).all()


def test_modules_are_those_of_the_minimum_cuts() -> None:
    for dag in random_series_parallels(11, 400, 30) + random_series_parallels(12, 60, 200):
        assert_same_modules(tree_of(dag).shares, best_shares(dag))


def test_the_flow_proves_the_shares() -> None:
    for dag in random_series_parallels(13, 600, 30) + random_series_parallels(14, 100, 300):
        assert_flow_holds(dag, tree_of(dag).shares)


def test_worth_from_one_task_fills_many_branches() -> None:
    """Chains of different lengths join in a task with many children: each gets what it lacks, and no more."""
    chains = [(f"{k}.{i}", f"{k}.{i + 1}" if i + 1 < k else "join") for k in (1, 2, 5) for i in range(k)]
    dag = Dag.from_arcs(chains + [("join", f"end {i}") for i in range(20)])
    shares = tree_of(dag).shares
    assert len(shares.modules) == 1
    assert_flow_holds(dag, shares)


def test_the_order_goes_from_corner_to_corner() -> None:
    """At the end of every module the profile meets the bound."""
    for dag in random_series_parallels(15, 100, 100):
        tree = tree_of(dag)
        ends = np.cumsum([len(module.tasks) for module in tree.shares.modules], dtype=np.int64)
        profile = cumulative(dag, tree.order)
        assert (profile <= tree.shares.bound).all()
        assert (profile[ends] == tree.shares.bound[ends]).all()


def test_a_module_by_itself_is_series_parallel_too() -> None:
    """And the orders of the modules make up that of the whole."""
    for dag in random_series_parallels(16, 60, 60):
        tree = tree_of(dag)
        own = [m.tasks[tree_of(module_dag(dag, m)).order] for m in tree.shares.modules]
        assert area_of(dag, np.concatenate([*own, np.empty(0, np.int32)])) == area_of(dag, tree.order)


# Size


def test_deep_and_wide_dags() -> None:
    """A chain nests as deep as it is long, a comb alternates series and parallel at every step."""
    n = 20_000
    chain = Dag.from_arrays(n, np.arange(n - 1), np.arange(1, n))
    assert tree_of(chain).order.tolist() == list(range(n - 1))
    comb = Dag.from_arrays(
        2 * n, np.repeat(np.arange(n - 1), 2), np.stack([np.arange(1, n), np.arange(n, 2 * n - 1)], 1).ravel()
    )
    star = Dag.from_arrays(n, np.zeros(n - 1, np.int64), np.arange(1, n))
    for dag in (chain, comb, comb.dual(), star, star.dual()):
        tree = tree_of(dag)
        assert len(tree.order) == (dag.outdegree > 0).sum()
        assert_flow_holds(dag, tree.shares)
