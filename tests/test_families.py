"""The families: their shapes, drawn where small, and what the theory says about them."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import pairwise, product
from types import UnionType

import numpy as np
import pytest

from eligo import families
from eligo.dag import Dag
from eligo.errors import InputError
from eligo.families import FAMILIES

KINDS = ["w", "m", "wnm", "q2"]


def pairs(dag: Dag) -> list[tuple[int, int]]:
    """The arcs as numbers, sorted."""
    return list(zip(dag.tails.tolist(), dag.child.tolist(), strict=True))


def backwards(dag: Dag) -> list[tuple[int, int]]:
    """The arcs of the dual, numbered backwards."""
    last = len(dag) - 1
    return sorted((last - v, last - u) for u, v in pairs(dag))


def counts(dag: Dag) -> tuple[int, int, int]:
    """The numbers of sources, of sinks and of arcs."""
    return len(dag.sources), len(dag.sinks), dag.arc_count


def connected(dag: Dag) -> bool:
    return len(dag.components()) == 1


def bipartite(dag: Dag) -> bool:
    return bool(((dag.indegree == 0) != (dag.outdegree == 0)).all())


def ancestors(dag: Dag) -> list[set[int]]:
    """For each task, itself and all that it needs."""
    found: list[set[int]] = [{v} for v in range(len(dag))]
    for v in dag.order.tolist():
        above = dag.parent[dag.parent_ptr[v] : dag.parent_ptr[v + 1]].tolist()
        found[v] = found[v].union(*(found[u] for u in above))
    return found


def eligible(needs: Sequence[int], executed: int) -> list[int]:
    """The tasks not executed whose parents all are; sets of tasks are bits."""
    return [v for v, p in enumerate(needs) if not executed >> v & 1 and not p & ~executed]


def parent_bits(dag: Dag) -> list[int]:
    needs = [0] * len(dag)
    for u, v in pairs(dag):
        needs[v] |= 1 << u
    return needs


def best_profile(dag: Dag) -> list[int]:
    """The largest number of eligible tasks after t = 0..n executions, over all executed sets."""
    needs, layer, best = parent_bits(dag), {0}, []
    for _ in range(len(dag) + 1):
        choices = {executed: eligible(needs, executed) for executed in layer}
        best.append(max(map(len, choices.values())))
        layer = {executed | 1 << v for executed, ready in choices.items() for v in ready}
    return best


def profile(dag: Dag, order: Iterable[int]) -> list[int]:
    """The numbers of eligible tasks along this order, which must be a schedule."""
    needs, executed = parent_bits(dag), 0
    values = [len(eligible(needs, executed))]
    for v in order:
        assert v in eligible(needs, executed)
        executed |= 1 << v
        values.append(len(eligible(needs, executed)))
    assert values[-1] == 0
    return values


# The closed forms: how many sinks are eligible after t = 0..(number of sources) executions.


def w_form(s: int, d: int) -> list[int]:
    return [t * (d - 1) for t in range(s)] + [s * (d - 1) + 1]


def m_form(s: int, d: int) -> list[int]:
    return [0] + [(t - 1) // (d - 1) for t in range(1, s * (d - 1) + 2)]


def n_form(s: int) -> list[int]:
    return list(range(s + 1))


def cycle_form(s: int) -> list[int]:
    return [0, *range(s - 1), s]


def clique_form(s: int) -> list[int]:
    return [0] * s + [s]


FORMS: dict[str, Callable[..., list[int]]] = {"W": w_form, "M": m_form, "N": n_form}
FORMS |= {"C": cycle_form, "Q": clique_form}
MAKERS: dict[str, Callable[..., Dag]] = {
    "W": families.w_dag,
    "M": families.m_dag,
    "N": families.n_dag,
    "C": families.cycle_dag,
    "Q": families.clique_dag,
}
SMALL_BLOCKS = [
    *product("WM", [(1, 2), (1, 3), (2, 2), (2, 3), (3, 2), (3, 3), (4, 2)]),
    *product("N", [(1,), (2,), (3,), (4,), (5,)]),
    *product("CQ", [(2,), (3,), (4,), (5,)]),
]


class TestBlocks:
    def test_w(self) -> None:
        r"""
          0       1          sources above, sinks below
        / | \   / | \
        2 3   4   5 6
        """
        dag = families.w_dag(2, 3)
        assert pairs(dag) == [(0, 2), (0, 3), (0, 4), (1, 4), (1, 5), (1, 6)]

    def test_m(self) -> None:
        r"""
        0 1   2   3 4
        \ | /   \ | /
          5       6
        """
        dag = families.m_dag(2, 3)
        assert pairs(dag) == [(0, 5), (1, 5), (2, 5), (2, 6), (3, 6), (4, 6)]

    def test_n(self) -> None:
        r"""
        0   1   2
        | \ | \ |
        3   4   5
        """
        assert pairs(families.n_dag(3)) == [(0, 3), (0, 4), (1, 4), (1, 5), (2, 5)]
        assert pairs(families.n_dag(1)) == [(0, 1)]

    def test_cycle(self) -> None:
        r"""
        0   1   2   3
        | \ | \ | \ |  and 3 -> 4
        4   5   6   7
        """
        arcs = [(0, 4), (0, 5), (1, 5), (1, 6), (2, 6), (2, 7), (3, 4), (3, 7)]
        assert pairs(families.cycle_dag(4)) == arcs

    def test_clique(self) -> None:
        """Every source has every sink; the smallest is the smallest cycle, the butterfly."""
        assert pairs(families.clique_dag(3)) == list(product(range(3), range(3, 6)))
        assert families.clique_dag(2) == families.cycle_dag(2) == families.butterfly(1)

    @pytest.mark.parametrize(("letter", "sizes"), SMALL_BLOCKS)
    def test_profiles(self, letter: str, sizes: tuple[int, ...]) -> None:
        """Running the sources from left to right is IC-optimal, with the known profile."""
        dag, form = MAKERS[letter](*sizes), FORMS[letter](*sizes)
        sources = len(dag.sources)
        assert len(form) == sources + 1
        expected = [sources - t + value for t, value in enumerate(form)]
        expected += range(expected[-1] - 1, -1, -1)
        assert best_profile(dag) == profile(dag, range(len(dag))) == expected

    @pytest.mark.parametrize(("s", "d"), [(1, 2), (3, 2), (2, 4), (100, 7)])
    def test_w_and_m_are_dual(self, s: int, d: int) -> None:
        w, m = families.w_dag(s, d), families.m_dag(s, d)
        assert counts(w) == (s, s * (d - 1) + 1, s * d)
        assert counts(m) == (s * (d - 1) + 1, s, s * d)
        assert backwards(w) == pairs(m)

    @pytest.mark.parametrize("make", [families.n_dag, families.cycle_dag, families.clique_dag])
    def test_others_are_their_own_dual(self, make: Callable[[int], Dag]) -> None:
        dag = make(5)
        degrees = sorted(dag.indegree.tolist())
        assert counts(dag) == counts(dag.dual())
        assert degrees == sorted(dag.outdegree.tolist())
        assert best_profile(dag) == best_profile(dag.dual())


class TestRandomBlocks:
    @pytest.mark.parametrize("max_degree", [2, 3, 6])
    @pytest.mark.parametrize("sources", [1, 2, 7, 300])
    def test_bipartite_tree(self, sources: int, max_degree: int) -> None:
        """A connected graph with one arc less than tasks is a tree."""
        for seed in range(5):
            dag = families.bipartite_tree(sources, seed, max_degree)
            assert len(dag.sources) == sources
            assert bipartite(dag)
            assert connected(dag)
            assert dag.arc_count == len(dag) - 1
            assert max(dag.indegree.max(), dag.outdegree.max()) <= max_degree

    def test_bipartite_tree_of_degree_2_is_a_path(self) -> None:
        degree = families.bipartite_tree(50, seed=3, max_degree=2)
        assert np.bincount(degree.indegree + degree.outdegree)[1] == 2

    @pytest.mark.parametrize("s", [1, 2, 5, 200])
    def test_expansive(self, s: int) -> None:
        """Each source has at least two private sinks, and no more shared ones than private."""
        for seed in range(10):
            dag = families.expansive_dag(s, seed)
            tails, shared = dag.tails, dag.indegree[dag.child] > 1
            private = np.bincount(tails[~shared], minlength=s)
            assert len(dag.sources) == s
            assert bipartite(dag)
            assert connected(dag)
            assert private.min() >= 2
            assert private.max() <= 4
            assert (np.bincount(tails[shared], minlength=s) <= private).all()

    def test_expansive_dags_need_not_be_trees(self) -> None:
        dag = families.expansive_dag(200, seed=1)
        assert dag.arc_count > len(dag) - 1
        assert dag.indegree.max() > 2


class TestPlanarBipartiteTrees:
    def test_base_cases(self) -> None:
        assert families.planar_bipartite_tree(4) == families.w_dag(1, 4)
        assert families.planar_bipartite_tree("1/4") == families.m_dag(1, 4)

    @pytest.mark.parametrize(("s", "d"), [(1, 2), (2, 3), (5, 2), (4, 4)])
    def test_w_and_m(self, s: int, d: int) -> None:
        """W(s,d) is P[d, 1/2, d, ..., d] and M(s,d) is P[1/d, 2, 1/d, ..., 1/d]."""
        w = [Fraction(d), *[Fraction(1, 2), Fraction(d)] * (s - 1)]
        m = [1 / entry for entry in w]
        assert families.planar_bipartite_tree(*w) == families.w_dag(s, d)
        assert families.planar_bipartite_tree(*m) == families.m_dag(s, d)

    def test_n(self) -> None:
        """N(s) is P[2, 1/2, 2, ...] with 2s-2 entries."""
        assert families.planar_bipartite_tree(2, "1/2", 2, "1/2") == families.n_dag(3)

    def test_from_the_sweep_paper(self) -> None:
        r"""
             0          1        P[5, 1/2, 2]
        / / / \ \     / |
        2 3 4 5    6    7
        """
        dag = families.planar_bipartite_tree(5, Fraction(1, 2), 2)
        assert pairs(dag) == [(0, 2), (0, 3), (0, 4), (0, 5), (0, 6), (1, 6), (1, 7)]
        assert best_profile(dag)[:3] == [2, 5, 6]

    def test_figure_9(self) -> None:
        """The tree drawn in the Sweep paper, and an IC-optimal order of its sources."""
        dag = families.planar_bipartite_tree("1/4", 3, "1/3", 3, "1/2", 2, "1/4", 3, "1/2", 4)
        assert counts(dag) == (11, 11, 21)
        assert dag.indegree[11:].tolist() == [4, 1, 3, 1, 2, 4, 1, 2, 1, 1, 1]
        assert dag.outdegree[:11].tolist() == [1, 1, 1, 3, 1, 3, 2, 1, 1, 3, 4]
        order = [10, 9, 3, 5, 4, 6, 7, 8, 0, 1, 2, *range(11, 22)]
        rendered = [e - 11 + t for t, e in enumerate(profile(dag, order)[:12])]
        assert rendered == [0, 3, 5, 6, 7, 8, 9, 9, 10, 10, 10, 11]

    @pytest.mark.parametrize("length", [1, 2, 9, 500])
    def test_random(self, length: int) -> None:
        for seed in range(5):
            dag = families.random_planar_bipartite_tree(length, seed, largest=4)
            assert bipartite(dag)
            assert connected(dag)
            assert dag.arc_count == len(dag) - 1
            assert length + 2 <= len(dag) <= 3 * length + 2

    def test_random_starts_either_way(self) -> None:
        starts = {families.random_planar_bipartite_tree(1, seed).sinks[0] for seed in range(20)}
        assert starts == {"1", "2", "3"}


class TestTreesAndMeshes:
    def test_out_tree(self) -> None:
        r"""
             0
           /   \
          1     2
         / \   / \
        3   4 5   6
        """
        assert pairs(families.out_tree(3)) == [(0, 1), (0, 2), (1, 3), (1, 4), (2, 5), (2, 6)]

    def test_in_tree(self) -> None:
        r"""
        0   1 2   3
         \ /   \ /
          4     5
           \   /
             6
        """
        assert pairs(families.in_tree(3)) == [(0, 4), (1, 4), (2, 5), (3, 5), (4, 6), (5, 6)]

    @pytest.mark.parametrize(("depth", "d"), [(1, 2), (2, 5), (4, 3), (8, 2)])
    def test_complete_trees(self, depth: int, d: int) -> None:
        out, into = families.out_tree(depth, d), families.in_tree(depth, d)
        assert out.level_sizes.tolist() == [d**k for k in range(depth)]
        assert into.level_sizes.tolist() == [d**k for k in reversed(range(depth))]
        assert out.depth == into.depth == depth
        assert backwards(out) == pairs(into)

    @pytest.mark.parametrize("n", [1, 2, 500])
    def test_random_trees(self, n: int) -> None:
        out, into = families.random_out_tree(n, seed=4), families.random_in_tree(n, seed=4)
        assert out.indegree.tolist() == [0] + [1] * (n - 1)
        assert into.outdegree.tolist() == [1] * (n - 1) + [0]
        assert connected(out)
        assert backwards(out) == pairs(into)

    def test_out_mesh(self) -> None:
        r"""
             0
            / \
           1   2
          / \ / \
         3   4   5
        """
        arcs = [(0, 1), (0, 2), (1, 3), (1, 4), (2, 4), (2, 5)]
        assert pairs(families.out_mesh(3)) == arcs

    @pytest.mark.parametrize("levels", [1, 2, 5, 40])
    def test_meshes(self, levels: int) -> None:
        """Each level of the out-mesh is a W-dag with the next; the in-mesh is its dual."""
        out, into = families.out_mesh(levels), families.in_mesh(levels)
        assert out.level_sizes.tolist() == list(range(1, levels + 1))
        assert into.level_sizes.tolist() == list(range(levels, 0, -1))
        assert backwards(out) == pairs(into)
        for k in range(levels - 1):
            level = np.flatnonzero((out.level == k) | (out.level == k + 1)).astype(np.int32)
            assert pairs(out.induced(level)) == pairs(families.w_dag(k + 1, 2))

    def test_meshes_are_run_level_by_level(self) -> None:
        out, into = families.out_mesh(4), families.in_mesh(4)
        assert profile(out, range(10)) == best_profile(out)
        assert profile(into, range(10)) == best_profile(into)

    def test_grid(self) -> None:
        """
        0 - 1 - 2
        |   |   |
        3 - 4 - 5
        """
        arcs = [(0, 1), (0, 3), (1, 2), (1, 4), (2, 5), (3, 4), (4, 5)]
        assert pairs(families.grid(2, 3)) == arcs

    def test_thin_grids_are_chains(self) -> None:
        chain = [(v, v + 1) for v in range(4)]
        assert pairs(families.grid(1, 5)) == pairs(families.grid(5, 1)) == chain
        assert families.grid(30, 20).arc_count == 29 * 20 + 30 * 19


class TestComputations:
    def test_butterfly(self) -> None:
        r"""
        0   1   2   3
        | X |   | X |
        4   5   6   7
          two by two apart: 4 and 6, 5 and 7
        8   9  10  11
        """
        first = [(0, 4), (0, 5), (1, 4), (1, 5), (2, 6), (2, 7), (3, 6), (3, 7)]
        second = [(4, 8), (4, 10), (5, 9), (5, 11), (6, 8), (6, 10), (7, 9), (7, 11)]
        assert pairs(families.butterfly(2)) == first + second

    @pytest.mark.parametrize("dimension", [1, 3, 6])
    def test_butterfly_mixes_everything(self, dimension: int) -> None:
        dag, width = families.butterfly(dimension), 2**dimension
        assert dag.level_sizes.tolist() == [width] * (dimension + 1)
        assert set(dag.indegree[width:].tolist()) == {2}
        assert set(dag.outdegree[:-width].tolist()) == {2}
        inputs = set(range(width))
        assert all(inputs <= found for found in ancestors(dag)[-width:])

    def test_diamond(self) -> None:
        r"""
             0
           /   \
          1     2
         / \   / \
        3   4 5   6
         \ /   \ /
          7     8
           \   /
             9
        """
        out = [(0, 1), (0, 2), (1, 3), (1, 4), (2, 5), (2, 6)]
        into = [(3, 7), (4, 7), (5, 8), (6, 8), (7, 9), (8, 9)]
        assert pairs(families.diamond(3)) == out + into
        assert families.diamond(3, d=4).level_sizes.tolist() == [1, 4, 16, 4, 1]
        assert len(families.diamond(1)) == 1

    def test_parallel_prefix(self) -> None:
        r"""
        0   1   2    inputs
        | \ | \ |
        3   4   5    sums of two
        |   |   |    and 3 -> 8
        6   7   8    sums of all so far
        """
        arcs = [(0, 3), (0, 4), (1, 4), (1, 5), (2, 5), (3, 6), (3, 8), (4, 7), (5, 8)]
        assert pairs(families.parallel_prefix(3)) == arcs

    @pytest.mark.parametrize("inputs", [1, 2, 5, 8, 13, 64])
    def test_parallel_prefix_computes_prefixes(self, inputs: int) -> None:
        """Output i needs inputs 0..i and no others."""
        dag = families.parallel_prefix(inputs)
        stages = int(np.ceil(np.log2(inputs)))
        assert dag.level_sizes.tolist() == [inputs] * (stages + 1)
        outputs = ancestors(dag)[-inputs:]
        for i, found in enumerate(outputs):
            assert {v for v in found if v < inputs} == set(range(i + 1))

    def test_parallel_prefix_is_made_of_n_dags(self) -> None:
        """Stage 2 of eight inputs is two N(4): those of even and those of odd positions."""
        dag = families.parallel_prefix(8)
        even = np.arange(8, 24, 2, dtype=np.int32)
        assert pairs(dag.induced(even)) == pairs(families.n_dag(4))

    def test_laplace(self) -> None:
        r"""
        0   1
        | \ |
        2   3
         \ /
          4
        """
        assert pairs(families.laplace(2)) == [(0, 2), (0, 3), (1, 3), (2, 4), (3, 4)]
        assert len(families.laplace(1)) == 1

    @pytest.mark.parametrize("inputs", [3, 6, 8, 100])
    def test_laplace_sums_the_outputs(self, inputs: int) -> None:
        """Each output of the prefix is added once, in as few levels as possible."""
        prefix, dag = families.parallel_prefix(inputs), families.laplace(inputs)
        n = len(prefix)
        assert pairs(dag.induced(np.arange(n, dtype=np.int32))) == pairs(prefix)
        assert dag.sinks == (str(len(dag) - 1),)
        assert dag.outdegree[n - inputs : -1].tolist() == [1] * (2 * inputs - 2)
        assert dag.indegree[n:].tolist() == [2] * (inputs - 1)
        assert dag.depth == prefix.depth + (inputs - 1).bit_length()

    def test_matrix_multiplication_2_x_2(self) -> None:
        """Eight inputs, eight products, four sums: C(4) twice, for k = 0 and 1, and M(1,2) x 4.

        k = 0: A00, B00, A10 and B01 (0, 4, 2, 5) make the products 8, 10, 12, 14.
        """
        dag = families.matrix_multiplication(2)
        assert dag.level_sizes.tolist() == [8, 8, 4]
        assert dag.indegree[8:].tolist() == [2] * 12
        assert dag.outdegree.tolist() == [2] * 8 + [1] * 8 + [0] * 4
        half = dag.subdag(map(str, [0, 4, 2, 5, 8, 10, 12, 14]))
        assert counts(half) == (4, 4, 8)
        assert connected(half)

    @pytest.mark.parametrize("n", [1, 2, 3, 4, 7])
    def test_matrix_multiplication_multiplies(self, n: int) -> None:
        """The dag is run on two matrices, with products above and additions below."""
        rng = np.random.default_rng(n)
        a, b = rng.integers(10, size=(2, n, n))
        dag = families.matrix_multiplication(n)
        value = [*a.ravel().tolist(), *b.ravel().tolist()]
        for v in range(2 * n * n, len(dag)):
            first, second = (value[int(u)] for u in dag.parents(str(v)))
            value.append(first * second if v < 2 * n * n + n**3 else first + second)
        assert value[-n * n :] == (a @ b).ravel().tolist()
        assert dag.depth == 2 + (n - 1).bit_length()
        assert len(dag.sinks) == n * n

    def test_fork_join(self) -> None:
        r"""
            0
          / | \
         1  2  3
         |  |  |
         4  5  6
          \ | /
            7
        """
        chains = [(0, 1), (0, 2), (0, 3), (1, 4), (2, 5), (3, 6), (4, 7), (5, 7), (6, 7)]
        assert pairs(families.fork_join(3, length=2)) == chains

    def test_fork_join_again_and_again(self) -> None:
        """The join of a stage is the fork of the next."""
        dag = families.fork_join(4, stages=3, length=2)
        assert dag.level_sizes.tolist() == [1, 4, 4, 1, 4, 4, 1, 4, 4, 1]
        assert pairs(families.fork_join(1, stages=2)) == [(0, 1), (1, 2), (2, 3), (3, 4)]
        assert families.fork_join(2) == families.diamond(2)


class TestRandomDags:
    @pytest.mark.parametrize("degree", [1, 2, 5])
    def test_layered(self, degree: int) -> None:
        dag = families.random_layered(10, 20, seed=2, degree=degree)
        assert dag.level_sizes.tolist() == [20] * 10
        assert (dag.level == np.arange(200) // 20).all()
        assert set(dag.indegree[20:].tolist()) <= set(range(1, degree + 1))
        assert dag.indegree.max() == degree
        assert dag.duplicates == 0

    def test_one_layer(self) -> None:
        assert families.random_layered(1, 5).arc_count == 0

    def test_erdos_renyi_extremes(self) -> None:
        every = [(i, j) for i in range(40) for j in range(i + 1, 40)]
        assert pairs(families.random_dag(40, 1.0)) == every
        assert pairs(families.random_dag(40, 0.0)) == pairs(families.random_dag(1, 0.5)) == []

    def test_erdos_renyi(self) -> None:
        """About p of the 499,500 arcs, all forward: within six standard deviations."""
        dag = families.random_dag(1000, 0.01, seed=5)
        assert abs(dag.arc_count - 4995) < 6 * 4995**0.5
        assert (dag.tails < dag.child).all()
        assert dag.duplicates == 0


class TestRandomCompositions:
    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("size", [1, 20, 100, 1000])
    def test_size_and_shape(self, kind: str, size: int) -> None:
        """Connected, at least as large as asked, and hardly larger than one block more."""
        for seed in range(5):
            dag, blocks = families.random_composition_blocks(kind, size, seed)
            assert size <= len(dag) <= size + 26
            assert connected(dag)
            assert {piece.name[0].lower() for piece in blocks} <= set(kind)
            assert dag == families.random_composition(kind, size, seed)

    @pytest.mark.parametrize("kind", KINDS)
    def test_made_of_its_blocks(self, kind: str) -> None:
        """The arcs are those of the blocks; a task is a source of one block at most, as a sink."""
        dag, blocks = families.random_composition_blocks(kind, 300, seed=1)
        arcs: list[tuple[int, int]] = []
        for piece in blocks:
            block, numbers = made(piece.name), [*piece.sources, *piece.sinks]
            arcs += [(numbers[u], numbers[v]) for u, v in pairs(block)]
        assert sorted(arcs) == pairs(dag)
        for ends in ([p.sources for p in blocks], [p.sinks for p in blocks]):
            flat = [v for tasks in ends for v in tasks]
            assert len(set(flat)) == len(flat)

    @pytest.mark.parametrize("kind", KINDS)
    def test_each_block_has_priority_over_the_next(self, kind: str) -> None:
        _, blocks = families.random_composition_blocks(kind, 1000, seed=2)
        names = list(dict.fromkeys(piece.name for piece in blocks))
        assert all(has_priority(form(a), form(b)) for a, b in pairwise(names))
        assert all(has_priority(form(a), form(a)) for a in names)

    @pytest.mark.parametrize("kind", KINDS)
    def test_block_after_block_is_ic_optimal(self, kind: str) -> None:
        """Theorem 2.1: the sources of each block in turn, then the sinks; by brute force."""
        composed = 0
        for seed in range(100):
            dag, blocks = families.random_composition_blocks(kind, 12, seed)
            if len(blocks) == 1 or len(dag) > 16:
                continue
            sources = [v for piece in blocks for v in piece.sources]
            order = sources + [v for v in range(len(dag)) if v not in set(sources)]
            assert profile(dag, order) == best_profile(dag)
            composed += 1
        assert composed >= 10, "too few small compositions to mean anything"

    def test_all_three_kinds_of_block_follow_one_another(self) -> None:
        _, blocks = families.random_composition_blocks("wnm", 500, seed=3)
        letters = "".join(piece.name[0] for piece in blocks)
        assert letters == "".join(sorted(letters, key="WNM".index))
        assert set(letters) == set("WNM")


def made(name: str) -> Dag:
    """The block with this name, such as W(3,2)."""
    return MAKERS[name[0]](*map(int, name[2:-1].split(",")))


def form(name: str) -> list[int]:
    return FORMS[name[0]](*map(int, name[2:-1].split(",")))


def has_priority(first: Sequence[int], second: Sequence[int]) -> bool:
    """The definition of ▷ on the profiles of two blocks."""
    s, s2 = len(first) - 1, len(second) - 1
    return all(
        first[x] + second[y] <= first[min(s, x + y)] + second[max(0, x + y - s)]
        for x, y in product(range(s + 1), range(s2 + 1))
    )


RANDOM: dict[str, Callable[[int], Dag]] = {
    "bipartite-tree": lambda seed: families.bipartite_tree(40, seed),
    "expansive": lambda seed: families.expansive_dag(40, seed),
    "random-planar-bipartite-tree": lambda seed: families.random_planar_bipartite_tree(40, seed),
    "random-out-tree": lambda seed: families.random_out_tree(40, seed),
    "random-in-tree": lambda seed: families.random_in_tree(40, seed),
    "layered": lambda seed: families.random_layered(5, 8, seed),
    "random": lambda seed: families.random_dag(40, 0.2, seed),
    "composition": lambda seed: families.random_composition("wnm", 40, seed),
}


class TestRegistry:
    def test_random_families_are_listed(self) -> None:
        seeded = {name for name, f in FAMILIES.items() if "seed" in inspect.signature(f).parameters}
        assert seeded == set(RANDOM)

    @pytest.mark.parametrize("name", RANDOM)
    def test_the_seed_decides(self, name: str) -> None:
        make = RANDOM[name]
        assert make(7) == make(7)
        assert make(7) != make(8)

    @pytest.mark.parametrize("name", FAMILIES)
    def test_parameters_can_be_read_from_the_command_line(self, name: str) -> None:
        """Each parameter is an int, a float or a str, or takes a str among others."""
        for parameter in inspect.signature(FAMILIES[name]).parameters.values():
            kind = parameter.annotation
            if isinstance(kind, UnionType):
                assert parameter.kind is inspect.Parameter.VAR_POSITIONAL
                assert str in kind.__args__
            else:
                assert kind in {int, float, str}

    @pytest.mark.parametrize("name", FAMILIES)
    def test_smallest_members(self, name: str) -> None:
        """Every family begins somewhere: the least sizes that are allowed make a dag."""
        least = {"d": 2, "kind": "w", "probability": 0.5, "zigzag": "2"}
        if name in {"cycle", "clique"}:
            least["s"] = 2
        parameters = inspect.signature(FAMILIES[name]).parameters.values()
        given = [least.get(p.name, 1) for p in parameters if p.default is p.empty]
        dag = FAMILIES[name](*given)
        assert len(dag) >= 1
        assert connected(dag)
        assert dag.duplicates == 0

    def test_every_public_function_is_there(self) -> None:
        public = {
            name
            for name, value in inspect.getmembers(families, inspect.isfunction)
            if value.__module__.startswith(families.__name__) and not name.startswith("_")
        }
        listed = {f.__name__ for f in FAMILIES.values()}
        assert public == {*listed, "random_composition_blocks"}


WHOLE = "must be an integer of at least"
BIG = "more than 100,000,000 tasks or arcs (choose smaller sizes)"
BAD: list[tuple[str, tuple[object, ...], str]] = [
    ("w", (0, 2), f"s {WHOLE} 1, got 0"),
    ("w", (1, 1), f"d {WHOLE} 2, got 1"),
    ("w", (2.5, 2), f"s {WHOLE} 1, got 2.5"),
    ("m", (-3, 2), f"s {WHOLE} 1, got -3"),
    ("n", (0,), f"s {WHOLE} 1, got 0"),
    ("cycle", (1,), f"s {WHOLE} 2, got 1"),
    ("clique", (1,), f"s {WHOLE} 2, got 1"),
    ("bipartite-tree", (0,), f"sources {WHOLE} 1, got 0"),
    ("bipartite-tree", (3, 0, 1), f"max_degree {WHOLE} 2, got 1"),
    ("bipartite-tree", (3, -1), f"seed {WHOLE} 0, got -1"),
    ("expansive", (0,), f"s {WHOLE} 1, got 0"),
    ("expansive", (3, 0, 1), f"max_private {WHOLE} 2, got 1"),
    ("random-planar-bipartite-tree", (0,), f"length {WHOLE} 1, got 0"),
    ("random-planar-bipartite-tree", (3, 0, 1), f"largest {WHOLE} 2, got 1"),
    ("out-tree", (0,), f"depth {WHOLE} 1, got 0"),
    ("in-tree", (3, 1), f"d {WHOLE} 2, got 1"),
    ("random-out-tree", (0,), f"n {WHOLE} 1, got 0"),
    ("random-in-tree", (0,), f"n {WHOLE} 1, got 0"),
    ("out-mesh", (0,), f"levels {WHOLE} 1, got 0"),
    ("in-mesh", (-1,), f"levels {WHOLE} 1, got -1"),
    ("grid", (3, 0), f"columns {WHOLE} 1, got 0"),
    ("butterfly", (0,), f"dimension {WHOLE} 1, got 0"),
    ("diamond", (0,), f"depth {WHOLE} 1, got 0"),
    ("prefix", (0,), f"inputs {WHOLE} 1, got 0"),
    ("laplace", (0,), f"inputs {WHOLE} 1, got 0"),
    ("matrix", (0,), f"n {WHOLE} 1, got 0"),
    ("fork-join", (1, 0), f"stages {WHOLE} 1, got 0"),
    ("layered", (2, 2, 0, 0), f"degree {WHOLE} 1, got 0"),
    ("random", (0, 0.5), f"n {WHOLE} 1, got 0"),
    ("random", (3, 1.5), "probability must be from 0 to 1, got 1.5"),
    ("random", (3, float("nan")), "probability must be from 0 to 1, got nan"),
    ("composition", ("x", 9), "kind must be w, m, wnm or q2, got x"),
    ("composition", ("w", 0), f"size {WHOLE} 1, got 0"),
    ("w", (10**9, 2), BIG),
    ("clique", (20_000,), BIG),
    ("out-tree", (10**9,), BIG),
    ("butterfly", (10**9,), BIG),
    ("matrix", (1000,), BIG),
    ("random", (10**6, 0.5), BIG),
    ("planar-bipartite-tree", (10**30, "1/2"), BIG),
]
ZIGZAG = "a zigzag must alternate integers above 1 and reciprocals, as in 3 1/2 4"
ENTRY = "an entry of a zigzag must be 2, 3, ... or 1/2, 1/3, ..., got {}"
BAD += [("planar-bipartite-tree", given, ZIGZAG) for given in [(), (2, 3), ("1/2", "1/2")]]
BAD += [
    ("planar-bipartite-tree", (given,), ENTRY.format(given)) for given in [0, 1, -2, "2/3", "1/0", "-1/2", "two", ""]
]


@pytest.mark.parametrize(("name", "given", "message"), BAD)
def test_bad_parameters(name: str, given: tuple[object, ...], message: str) -> None:
    """One sentence that says what is allowed."""
    with pytest.raises(InputError) as caught:
        FAMILIES[name](*given)
    assert str(caught.value) == message
