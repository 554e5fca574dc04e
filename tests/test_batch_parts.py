"""The parts of the batch solver, each against something obviously right."""

import math
from itertools import combinations, product
from types import ModuleType

import numpy as np
import pytest

from conftest import random_small_dag
from eligo import Dag, InputError, families
from eligo.batches import component_solver as solving
from eligo.batches import residual as residuals
from eligo.batches.best import ChainBundle, Copies, chains
from eligo.batches.component_solver import Budget, Knapsack, Ranged, TreeBatches, solve
from eligo.batches.greedy import (
    Guess,
    improve_batch,
    largest,
    most_releases,
    private_children,
    rendered_along,
    share_bound,
)
from eligo.batches.program import Program, search, solve_program
from eligo.batches.residual import Component, Residual, Shape
from eligo.batches.states import batch
from eligo.deciding.bounds import best_shares
from eligo.deciding.orders import nonsinks_of, release_order
from eligo.deciding.work import Clock
from eligo.execution import Execution
from eligo.theory.priority import Kind
from eligo.theory.trees import tree_maxima
from papers.batch import static_batch


def rendered(dag: Dag, chosen: tuple[int, ...] | list[int]) -> int:
    """How many sinks have all parents among the chosen: by the definition."""
    parents = [set(dag.parent[a:b].tolist()) for a, b in zip(dag.parent_ptr, dag.parent_ptr[1:], strict=False)]
    return sum(bool(row) and row <= set(chosen) for row in parents)


def maxima(dag: Dag, sources: int) -> list[int]:
    return [max(rendered(dag, c) for c in combinations(range(sources), k)) for k in range(sources + 1)]


def random_bipartite(rng: np.random.Generator, sources: int, sinks: int, most: int = 3) -> Dag:
    """Sources first; every source and every sink has an arc, so that the numbers tell which is which."""
    rows = [rng.choice(sources, min(sources, int(rng.integers(1, most + 1))), replace=False) for _ in range(sinks)]
    tails = np.concatenate([*rows, np.arange(sources)])
    heads = np.concatenate([np.repeat(np.arange(sinks), [len(row) for row in rows]), rng.integers(0, sinks, sources)])
    return Dag.from_arrays(sources + sinks, tails, sources + heads)


def random_tree(rng: np.random.Generator, sources: int) -> Dag:
    """Each source hangs on a new sink of an earlier source, or on a sink that is there; some get private sinks."""
    arcs: list[tuple[int, int]] = []
    sinks = 0
    for u in range(1, sources):
        if sinks and rng.random() < 0.4:
            sink = int(rng.integers(sinks))
        else:
            arcs.append((int(rng.integers(u)), sinks))
            sink, sinks = sinks, sinks + 1
        arcs.append((u, sink))
    for u in [*range(sources), 0]:
        more = int(rng.integers(0, 3)) if arcs else 1
        arcs += [(u, sinks + i) for i in range(more)]
        sinks += more
    tails, heads = zip(*arcs, strict=True)
    return Dag.from_arrays(sources + sinks, tails, sources + np.array(heads))


def is_expansive(residual: Dag) -> bool:
    """Whether each source of a bipartite dag has two private children or more, and at most as many others."""
    sources = residual.outdegree > 0
    private = private_children(residual)[sources]
    return bool((private >= 2).all() and (residual.outdegree[sources] - private <= private).all())


def counted(monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str) -> list[object]:
    """A list that grows by one whenever the module calls its function of that name."""
    calls: list[object] = []
    plain = getattr(module, name)

    def call(*args: object) -> object:
        calls.append(args)
        return plain(*args)

    monkeypatch.setattr(module, name, call)
    return calls


# The knapsack


def enumerated(functions: list[Ranged]) -> dict[int, int]:
    best: dict[int, int] = {}
    for shares in product(*(range(f.low, f.high + 1) for f in functions)):
        value = sum(int(f.values[r - f.low]) for f, r in zip(functions, shares, strict=True))
        best[sum(shares)] = max(value, best.get(sum(shares), value))
    return best


def random_functions(rng: np.random.Generator, count: int, shortest: int = 1) -> list[Ranged]:
    lengths = rng.integers(shortest, 5, count)
    return [Ranged(int(rng.integers(-2, 4)), rng.integers(-9, 10, n).astype(np.int64)) for n in lengths]


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5])
def test_the_knapsack_agrees_with_enumeration(count: int) -> None:
    """Ranges begin below 0 and above, values are negative too, k = 0 and k = 1 are included."""
    rng = np.random.default_rng(count)
    for _ in range(60):
        functions = random_functions(rng, count)
        best = enumerated(functions)
        bag = Knapsack(functions)
        assert dict(enumerate(bag.best.values.tolist(), bag.best.low)) == best
        for total, value in best.items():
            shares = bag.split(total)
            assert sum(shares) == total
            assert value == sum(int(f.values[r - f.low]) for f, r in zip(functions, shares, strict=True))


def test_a_function_without_values_leaves_nothing_to_share() -> None:
    rng = np.random.default_rng(7)
    for _ in range(60):
        functions = [*random_functions(rng, 2, shortest=0), Ranged(1, np.empty(0, np.int64))]
        bag = Knapsack(functions)
        assert len(bag.best.values) == 0
        with pytest.raises(InputError, match="cannot distribute"):
            bag.split(2)


def test_a_limit_cuts_the_totals_and_changes_no_value_below() -> None:
    rng = np.random.default_rng(8)
    for _ in range(100):
        functions, limit = random_functions(rng, 3), int(rng.integers(-8, 12))
        kept = {total: value for total, value in enumerated(functions).items() if total <= limit}
        bag = Knapsack([Ranged(f.low + 2, f.values) for f in functions], limit + 6)
        assert dict(enumerate(bag.best.values.tolist(), bag.best.low - 6)) == kept


def test_equal_neighbours_are_joined_once(monkeypatch: pytest.MonkeyPatch) -> None:
    joins = counted(monkeypatch, solving, "max_plus")
    bag = Knapsack([Ranged(0, np.array([0, 0, 3]))] * 64)
    assert len(joins) == 6
    assert bag.best.values[-2:].tolist() == [63 * 3, 64 * 3]


# Trees


def test_trees_agree_with_enumeration_for_every_size_and_limit() -> None:
    rng = np.random.default_rng(11)
    for _ in range(150):
        sources = int(rng.integers(1, 8))
        tree, limit = random_tree(rng, sources), int(rng.integers(0, sources + 1))
        solved = TreeBatches(tree, limit)
        assert solved.table.tolist() == maxima(tree, sources)[: limit + 1]
        for k in range(limit + 1):
            chosen = solved.choose(k)
            assert len(set(chosen)) == k
            assert rendered(tree, chosen) == solved.table[k]


def test_a_tree_of_300_sources_agrees_with_the_program_of_the_theory() -> None:
    tree = random_tree(np.random.default_rng(12), 300)
    assert TreeBatches(tree, 300).table.tolist() == tree_maxima(tree).tolist()


@pytest.mark.parametrize("shape", ["path", "star", "random"])
def test_deep_and_wide_trees_of_2000_sources_need_no_recursion(shape: str) -> None:
    star = Dag.from_arrays(4001, np.tile(np.arange(2000), 2), [2000] * 2000 + list(range(2001, 4001)))
    trees = {"path": families.w_dag(2000, 2), "star": star, "random": random_tree(np.random.default_rng(13), 2000)}
    solved = TreeBatches(trees[shape], 2000)
    assert rendered(trees[shape], solved.choose(999)) == solved.table[999]
    assert solved.table[-1] == len(trees[shape]) - 2000


# One component


def test_components_with_few_sources_or_few_sinks_agree_with_enumeration() -> None:
    rng = np.random.default_rng(14)
    for _ in range(200):
        sources, sinks = int(rng.integers(2, 8)), int(rng.integers(1, 9))
        dag = random_bipartite(rng, sources, sinks)
        if len(dag.components()) > 1:
            continue
        solved = solve(dag, sources, Budget(Clock()))
        assert solved is not None
        assert solved.table.tolist() == maxima(dag, sources)
        for k in range(sources + 1):
            assert len(set(solved.choose(k))) == k
            assert rendered(dag, solved.choose(k)) == solved.table[k]


def test_many_sources_with_few_sinks_are_solved_through_the_sinks() -> None:
    rng = np.random.default_rng(15)
    dag = Dag.from_arrays(45, np.repeat(np.arange(40), 3), 40 + np.argsort(rng.random((40, 5)), axis=1)[:, :3].ravel())
    solved = solve(dag, 40, Budget(Clock()))
    assert solved is not None
    for k in range(41):
        assert rendered(dag, solved.choose(k)) == solved.table[k]
    found = solve_program(Program.of(dag), np.zeros(1, np.int64), 30, [], math.inf)
    assert found is not None
    assert found.bound == solved.table[30]


# Components together


def named(letter: str, s: int, d: int) -> Dag:
    makers = {"N": lambda: families.n_dag(s), "C": lambda: families.cycle_dag(s), "Q": lambda: families.clique_dag(s)}
    return {"W": families.w_dag, "M": families.m_dag}[letter](s, d) if letter in "WM" else makers[letter]()


def test_a_chain_of_named_blocks_is_what_the_knapsack_finds() -> None:
    rng = np.random.default_rng(16)
    for _ in range(150):
        kinds = {Kind(str(rng.choice(list("WNM"))), int(rng.integers(1, 5)), int(rng.integers(2, 5))) for _ in range(4)}
        kinds = {Kind(k.letter, k.s, 0 if k.letter == "N" else k.d) for k in kinds}
        shapes, copies = [], []
        for kind in kinds:
            count = int(rng.integers(1, 4))
            sources = np.arange(len(kind.profile) - 1, dtype=np.int32)
            shapes.append(Shape(kind, dict.fromkeys(range(count), Component(kind, sources, 1))))
            copies += [Ranged(0, kind.profile)] * count
        (chain,) = chains(shapes, limit=1000)
        assert chain.table.tolist() == Knapsack(copies).best.values.tolist()
        assert ChainBundle(shapes, limit=5).table.tolist() == chain.table[:6].tolist()
        for size in (1, 4, len(chain.table) - 1):
            assert sum(len(tasks) for tasks in chain.deal(size)) == size


def test_copies_of_a_solved_shape_are_dealt_as_the_table_says() -> None:
    dag = Dag.from_arrays(7, [0, 0, 1, 1, 2, 2, 2], [3, 4, 4, 5, 5, 6, 3])
    solved = solve(dag, 3, Budget(Clock()))
    assert solved is not None
    key = (3, 4, b"")
    members = {i: Component(key, np.arange(3 * i, 3 * i + 3, dtype=np.int32), 1) for i in range(5)}
    copies = Copies(Shape(key, members), solved, limit=12)
    for size in range(13):
        tasks = [part.tolist() for part in copies.deal(size)]
        assert sum(map(len, tasks)) == size
        assert copies.table[size] == sum(rendered(dag, [u % 3 for u in part]) for part in tasks)


@pytest.mark.parametrize(("letter", "s", "d"), [("W", 4, 3), ("M", 3, 3), ("N", 5, 0), ("C", 5, 0), ("Q", 4, 0)])
def test_named_blocks_are_found_under_any_numbers(letter: str, s: int, d: int) -> None:
    dag = named(letter, s, d)
    mixed = dag.renumbered(np.random.default_rng(s).permutation(len(dag)).astype(np.int32))
    (shape,) = Residual(Execution(mixed)).shapes.values()
    assert shape.key == Kind(letter, s, d)
    (member,) = shape.members.values()
    profile = rendered_along(mixed, member.sources)
    assert profile.tolist() == Kind(letter, s, d).profile.tolist()


# The residual


def test_following_in_steps_gives_the_residual_of_the_state() -> None:
    """Components, named by their sets of sources, are those of a residual made anew; numbers of sinks agree too."""
    rng = np.random.default_rng(17)
    for _ in range(80):
        dag = random_small_dag(rng, 30)
        game = Execution(dag)
        kept = Residual(game)
        while not game.finished:
            for task in [task for task in game.eligible if rng.random() < 0.5]:
                game.take(task)
            for task in list(game.allocated):
                if rng.random() < 0.8:
                    getattr(game, str(rng.choice(["release", "complete", "complete"])))(task)
            kept.follow()
            fresh = Residual(game)
            assert picture(kept) == picture(fresh)
            assert kept.eligible.tolist() == fresh.eligible.tolist()


def picture(residual: Residual) -> set[tuple[tuple[int, ...], int]]:
    return {
        (tuple(sorted(member.sources.tolist())), shape.sinks)
        for shape in residual.shapes.values()
        for member in shape.members.values()
    }


def test_a_change_leaves_other_components_alone() -> None:
    game = Execution(families.butterfly(6))
    residual = Residual(game)
    before = {number: id(member) for shape in residual.shapes.values() for number, member in shape.members.items()}
    first = next(iter(next(iter(residual.shapes.values())).members.values()))
    for task in game.dag.named(first.sources):
        game.execute(task)
    residual.follow()
    after = {number: id(member) for shape in residual.shapes.values() for number, member in shape.members.items()}
    assert len(before.items() & after.items()) == len(before) - 1


def test_a_shape_is_solved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted(monkeypatch, residuals, "solve")
    one = Dag.from_arrays(7, [0, 0, 1, 1, 2, 2, 2], [3, 4, 4, 5, 5, 6, 3])
    many = one + one + one + one
    assert batch(many, requests=6).exact
    assert len(calls) == 1


# Orders, exchanges, search, program


def test_picking_one_by_one_is_the_order_of_the_theory() -> None:
    rng = np.random.default_rng(18)
    for _ in range(20):
        dag = random_bipartite(rng, 200, 150, most=6)
        whole = nonsinks_of(dag, release_order(dag))
        assert most_releases(dag, 12).tolist() == whole[:12].tolist()


def test_guesses_lie_between_what_they_render_and_the_maximum() -> None:
    rng = np.random.default_rng(19)
    for _ in range(60):
        sources = int(rng.integers(2, 9))
        dag = random_bipartite(rng, sources, int(rng.integers(2, 9)))
        best = maxima(dag, sources)
        for guess in (Guess.of(dag, sources), Guess.of(dag, sources).with_modules(1.0)):
            for k in range(sources + 1):
                assert rendered(dag, guess.choose(k)) == guess.table[k] <= best[k] <= guess.bound[k]


def test_rounds_bring_the_bound_of_shares_close_to_that_of_cuts() -> None:
    dag = families.random_layered(2, 300, seed=1, degree=3)
    least, equal, few = best_shares(dag).bound, share_bound(dag, 0), share_bound(dag)
    assert (least <= few).all()
    assert (few - least).sum() < 0.2 * (equal - least).sum()


def test_exchanges_never_lose_and_keep_the_size() -> None:
    rng = np.random.default_rng(20)
    gained = 0
    for _ in range(100):
        dag, size = random_bipartite(rng, 12, 14), int(rng.integers(1, 12))
        before = sorted(rng.choice(12, size, replace=False).tolist())
        after = improve_batch(dag, before, Clock())
        assert len(set(after)) == size
        assert rendered(dag, after) >= rendered(dag, before)
        gained += rendered(dag, after) > rendered(dag, before)
    assert gained > 50


def joint_maximum(dag: Dag, sources: int, easy: list[int], requests: int) -> int:
    best = maxima(dag, sources)
    return max(best[k] + easy[min(requests - k, len(easy) - 1)] for k in range(min(requests, sources) + 1))


@pytest.mark.parametrize("solver", ["search", "program"])
def test_search_and_program_agree_with_enumeration(solver: str) -> None:
    """Both share the requests between the hard part and a table of what the other components render."""
    rng = np.random.default_rng(21)
    for _ in range(60):
        sources = int(rng.integers(2, 9))
        dag = random_bipartite(rng, sources, int(rng.integers(2, 10)), most=4)
        easy = np.cumsum(rng.integers(0, 3, int(rng.integers(1, 5)))) * np.array(1)
        easy -= easy[0]
        requests = int(rng.integers(1, sources + len(easy)))
        best = joint_maximum(dag, sources, easy.tolist(), requests)
        if solver == "search":
            assert search(Program.of(dag), easy.tolist(), requests, best - 1, Clock()).rendered == best
            assert search(Program.of(dag), easy.tolist(), requests, best, Clock()).chosen is None
        else:
            found = solve_program(Program.of(dag), easy, requests, [], math.inf)
            assert found is not None
            rest = easy[min(requests - len(found.chosen), len(easy) - 1)]
            assert rendered(dag, found.chosen) + rest == found.bound == best


def test_a_search_that_is_stopped_proves_nothing() -> None:
    dag = random_bipartite(np.random.default_rng(22), 30, 40)
    assert not search(Program.of(dag), [0], 15, -1, Clock(0.0)).proved


# Expansive dags


def test_the_largest_scores_are_those_of_a_stable_sort() -> None:
    rng = np.random.default_rng(23)
    for _ in range(100):
        scores, size = rng.integers(0, 4, 9), int(rng.integers(0, 11))
        assert largest(scores, size).tolist() == sorted(sorted(range(9), key=lambda i: (-scores[i], i))[:size])


def test_the_families_expansive_dags_are_expansive() -> None:
    assert all(is_expansive(families.expansive_dag(s, seed=s)) for s in range(1, 12))


def gain(dag: Dag, requests: int, method: str, executed: tuple[str, ...] = ()) -> int:
    """How many tasks more are eligible after the batch than before."""
    if method == "static":
        return static_batch(dag, list(executed), requests) - len(Execution(dag, executed).eligible)
    found = batch(dag, executed, requests, method=method)
    return found.eligible_after - len(Execution(dag, executed).eligible)


@pytest.mark.parametrize(("method", "factor"), [("expansive", 2), ("static", 3), ("auto", 1)])
def test_expansive_dags_are_served_within_the_factor(method: str, factor: int) -> None:
    rng = np.random.default_rng(24)
    for seed in range(60):
        dag = families.expansive_dag(int(rng.integers(2, 8)), seed=seed, max_private=3)
        sources = len(dag.sources)
        executed = dag.named(rng.permutation(sources)[: rng.integers(0, sources)])
        requests = int(rng.integers(1, sources - len(executed) + 1))
        assert gain(dag, requests, "exact", executed) <= factor * gain(dag, requests, method, executed)


def test_factor_2_is_tight() -> None:
    """Sources in pairs that share two sinks, two private sinks each: whole pairs gain twice as much as half ones.

    a a b b   c c d d      a, b, c, d have two private sinks each; x, x' are shared by a and b, y, y' by c and d.
     \\x x'/    \\y y'/     Numbered a, c, b, d, the first two of equal phi are a and c.
    """
    shared = [("a", "x"), ("b", "x"), ("a", "x'"), ("b", "x'"), ("c", "y"), ("d", "y"), ("c", "y'"), ("d", "y'")]
    private = [(u, f"{u}{i}") for u in "acbd" for i in (1, 2)]
    arcs = shared + private
    tasks = [*"acbd", *dict.fromkeys(v for _, v in arcs)]
    dag = Dag.from_arcs(arcs, tasks=tasks)
    assert is_expansive(dag.renumbered(np.arange(len(dag), dtype=np.int32)))
    assert (gain(dag, 2, "expansive"), gain(dag, 2, "exact")) == (2, 4)


def test_factor_3_is_tight_for_the_static_rule() -> None:
    """w has two private sinks; so has u, and two shared ones whose other parents p and q are executed: all four count."""
    private = [(v, f"{v}{i}") for v in "wupq" for i in (1, 2)]
    shared = [("u", "x"), ("p", "x"), ("u", "y"), ("q", "y")]
    dag = Dag.from_arcs(private + shared, tasks=[*"wupq", *dict.fromkeys(v for _, v in private + shared)])
    assert is_expansive(dag)
    assert [gain(dag, 1, method, ("p", "q")) for method in ("static", "expansive", "exact")] == [1, 3, 3]


def test_private_children_by_the_definition() -> None:
    rng = np.random.default_rng(25)
    for _ in range(30):
        dag = random_small_dag(rng)
        expected = [sum(len(dag.parents(c)) == 1 for c in dag.children(task)) for task in dag.tasks]
        assert private_children(dag).tolist() == expected
    assert private_children(Dag.from_arcs([])).tolist() == []
