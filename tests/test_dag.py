"""The dag: how it is made, what it has, what can be made of it."""

from random import Random

import networkx
import numpy as np
import pytest
import rustworkx
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import eligo
from eligo.dag import Dag, compose, sum_of
from eligo.errors import CycleError, DuplicateTaskError, InputError, UnknownTaskError
from eligo.interop.networkx import from_networkx
from eligo.interop.rustworkx import from_rustworkx
from eligo.rows import are_rows

arc_lists = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)).filter(lambda a: a[0] < a[1]), max_size=40)


@given(arc_lists, st.permutations(range(12)))
def test_rows_in_both_directions_agree_with_plain_sets(arcs: list[tuple[int, int]], labels: list[int]) -> None:
    relabelled = [(labels[u], labels[v]) for u, v in arcs]
    dag = Dag.from_arrays(12, [u for u, _ in relabelled], [v for _, v in relabelled])
    for v in range(12):
        assert dag.children(str(v)) == tuple(str(w) for w in sorted({w for u, w in relabelled if u == v}))
        assert dag.parents(str(v)) == tuple(str(u) for u in sorted({u for u, w in relabelled if w == v}))
    assert dag.duplicates == len(arcs) - len(set(arcs))


@given(arc_lists, st.randoms(use_true_random=False))
def test_arcs_that_are_rows_already_make_the_same_dag(arcs: list[tuple[int, int]], random: Random) -> None:
    rows = sorted(set(arcs))
    shuffled = random.sample(rows, len(rows))
    ordered, mixed = (Dag.from_arrays(12, [u for u, _ in some], [v for _, v in some]) for some in (rows, shuffled))
    assert are_rows(ordered.tails, ordered.child)
    for name in ("child_ptr", "child", "parent_ptr", "parent", "order", "level"):
        assert_array_equal(getattr(ordered, name), getattr(mixed, name))


@given(arc_lists)
def test_order_levels_and_heights_agree_with_networkx(arcs: list[tuple[int, int]]) -> None:
    digraph: networkx.DiGraph[int] = networkx.DiGraph()
    digraph.add_nodes_from(range(12))
    digraph.add_edges_from(arcs)
    dag = from_networkx(digraph).dag
    for level, tasks in enumerate(networkx.topological_generations(digraph)):
        assert {dag.level[v] for v in tasks} == {level}
    for height, tasks in enumerate(networkx.topological_generations(digraph.reverse())):
        assert {dag.height[v] for v in tasks} == {height}
    assert_array_equal(np.sort(dag.level), dag.level[dag.order])
    assert eligo.is_schedule(dag, dag.order)
    assert [set(map(int, part)) for part in dag.components()] == sorted(
        networkx.weakly_connected_components(digraph), key=min
    )


def test_names_keep_their_order_of_appearance() -> None:
    dag = Dag.from_arcs([("z", "a"), ("m", "a")])
    assert dag.tasks == ("z", "a", "m")


def test_from_rustworkx_survives_removed_nodes() -> None:
    digraph = rustworkx.PyDiGraph()
    digraph.add_nodes_from(["a", "gone", "b"])
    digraph.add_edge(0, 2, None)
    digraph.remove_node(1)
    assert list(from_rustworkx(digraph).dag.arcs()) == [("a", "b")]


def test_from_rustworkx_names_by_index_where_payloads_cannot_be_looked_up() -> None:
    digraph = rustworkx.PyDiGraph()
    digraph.add_nodes_from([None, {"x": 1}])
    digraph.add_edge(0, 1, None)
    assert list(from_rustworkx(digraph).dag.arcs()) == [(0, 1)]


def test_a_cycle_is_an_error_that_carries_it() -> None:
    with pytest.raises(CycleError, match="a cycle, so no order exists: b -> c -> d -> b") as caught:
        Dag.from_arcs([("a", "b"), ("b", "c"), ("c", "d"), ("d", "b"), ("d", "e")])
    assert caught.value.cycle == ("b", "c", "d", "b")


def test_a_self_loop_is_an_error_that_carries_the_task() -> None:
    with pytest.raises(CycleError, match="depends on itself: a -> a") as caught:
        Dag.from_arcs([("a", "a")])
    assert caught.value.cycle == ("a", "a")


def test_a_long_cycle_is_shown_in_part_and_carried_whole() -> None:
    with pytest.raises(CycleError, match=r"0 -> 1 -> 2 -> 3 -> 4 -> \.\.\. -> 98 -> 99 -> 0") as caught:
        Dag.from_arrays(100, range(100), [*range(1, 100), 0])
    assert len(caught.value.cycle) == 101


def test_unknown_and_duplicate_names_are_errors_that_carry_the_name() -> None:
    with pytest.raises(UnknownTaskError, match="no task named 'x'") as unknown:
        Dag.from_arcs([("a", "x")], tasks=["a", "b"])
    assert unknown.value.name == "x"
    with pytest.raises(DuplicateTaskError, match="duplicate task 'a'") as twice:
        Dag.from_arcs([("a", "b")], tasks=["a", "b", "a"])
    assert twice.value.name == "a"
    with pytest.raises(DuplicateTaskError, match="duplicate task 'a'"):
        Dag.from_arrays(2, [0], [1], ["a", "a"])


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("tab\there", "control character"),
        ("nul\0", "control character"),
        ("\ud800", "control character"),
        ("x" * 10_001, "10,001 characters"),
    ],
)
def test_names_that_no_format_could_carry_are_refused(name: str, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        Dag.from_arcs([], tasks=["fine", name])


def test_unusual_names_are_welcome() -> None:
    names = ("", " ", "naïve task", "任务", "a\u00a0b", "🦉", '"quoted"')
    assert Dag.from_arcs([], tasks=names).tasks == names


@pytest.mark.parametrize(
    ("tails", "heads", "complaint"),
    [
        ([0], [2], "no task named '2'"),
        ([-1], [0], "no task named '-1'"),
        ([0, 1], [1], "got 2 and 1"),
        ([0.5], [1], "integers"),
    ],
)
def test_arrays_that_are_no_arcs_are_refused(tails: list[int], heads: list[int], complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        Dag.from_arrays(2, tails, heads)


def test_an_undirected_graph_is_refused() -> None:
    with pytest.raises(InputError, match="use a DiGraph"):
        from_networkx(networkx.Graph([("a", "b")]))  # type: ignore[arg-type]


def test_the_empty_dag_has_nothing() -> None:
    dag = Dag.from_arcs([])
    assert (len(dag), dag.depth, dag.sources, dag.sinks, dag.components()) == (0, 0, (), (), [])
    assert dag.dual() == dag == dag + dag


def test_the_arrays_cannot_be_changed(diamond: Dag) -> None:
    with pytest.raises(ValueError, match="read-only"):
        diamond.child[0] = 3
    with pytest.raises(AttributeError):
        diamond.child = diamond.parent  # type: ignore[misc]


@given(arc_lists)
def test_dual_turns_arcs_around_and_twice_is_nothing(arcs: list[tuple[int, int]]) -> None:
    dag = Dag.from_arrays(12, [u for u, _ in arcs], [v for _, v in arcs])
    assert sorted((v, u) for u, v in dag.dual().arcs()) == sorted(dag.arcs())
    assert dag.dual().dual() == dag
    assert_array_equal(dag.dual().level, dag.height)


def test_sum_keeps_names_that_differ_and_numbers_those_that_clash(diamond: Dag) -> None:
    other = Dag.from_arcs([("x", "y")])
    assert (diamond + other).tasks == ("a", "b", "c", "d", "x", "y")
    both = sum_of(diamond, diamond)
    assert both.dag.tasks[4:] == ("1.a", "1.b", "1.c", "1.d")
    assert both.dag.named(both.images[1]) == both.dag.tasks[4:]


def test_compose_merges_sinks_with_sources() -> None:
    r"""W(1,2) up M(1,2), all merged, is the diamond; with one pair merged a tail remains.

    a          a
   / \        / \
  b   c  and b   c  y
   \ /            \ /
    z              z
    """
    vee, lam = Dag.from_arcs([("a", "b"), ("a", "c")]), Dag.from_arcs([("x", "z"), ("y", "z")])
    one = compose(vee, lam, {"c": "x"})
    assert list(one.dag.arcs()) == [("a", "b"), ("a", "c"), ("c", "z"), ("y", "z")]
    assert one.dag.named(one.images[1]) == ("c", "z", "y")
    assert compose(vee, lam, {}).dag == vee + lam


def test_compose_refuses_inner_tasks(diamond: Dag) -> None:
    with pytest.raises(InputError, match="cannot merge 'b': it is not a sink of the first dag"):
        compose(diamond, diamond, {"b": "a"})
    with pytest.raises(InputError, match="'d': it is not a source of the second dag"):
        compose(diamond, diamond, {"d": "d"})


def test_subdag_has_the_arcs_between(diamond: Dag) -> None:
    assert list(diamond.subdag(["d", "a", "b"]).arcs()) == [("a", "b"), ("b", "d")]
    with pytest.raises(DuplicateTaskError):
        diamond.subdag(["a", "a"])


def test_equality_is_by_tasks_and_arcs(diamond: Dag) -> None:
    same = Dag.from_parents({"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]})
    assert same == diamond
    assert hash(same) == hash(diamond)
    assert diamond != diamond.dual()


def test_labels_are_text_and_differ() -> None:
    """A name that is no string is told as Python prints it; all are where two would read the same."""
    assert Dag.from_arcs([("a", "b")]).labels == ("a", "b")
    assert Dag.from_arcs([(1, (2, 3))]).labels == ("1", "(2, 3)")
    assert Dag.from_arcs([("1", 1)]).labels == ("'1'", "1")

    class Twin:
        def __repr__(self) -> str:
            return "twin"

    assert Dag.from_arcs([(Twin(), Twin())]).labels == ("twin#1", "twin#2")
    assert list(Dag.from_arcs([(1, 2)]).labelled().arcs()) == [("1", "2")]


def test_what_cannot_be_looked_up_is_no_task() -> None:
    with pytest.raises(InputError, match="hashable"):
        Dag.from_arrays(1, [], [], [[]])
    with pytest.raises(InputError, match="must be hashable"):
        Dag.from_arcs([([], "a")])
    with pytest.raises(UnknownTaskError):
        Dag.from_arcs([("a", "b")]).children([])


def test_labels_differ_whatever_objects_print() -> None:
    class Odd:
        def __init__(self, text: str) -> None:
            self.text = text

        def __repr__(self) -> str:
            return self.text

    dag = Dag.from_parents({Odd("x"): [], Odd("x"): [], Odd("x#1"): [], Odd("a\nb"): []})
    assert len(set(dag.labels)) == 4
    assert all(map(str.isprintable, dag.labels))


def test_arcs_are_pairs() -> None:
    with pytest.raises(InputError, match="an arc must be a pair"):
        Dag.from_arcs([("a", "b", "c"), ("d", "e", "f")])  # type: ignore[list-item]


def test_none_and_zero_are_tasks_like_others() -> None:
    with pytest.raises(eligo.NotSelfContainedError, match="'1' depends on '0'"):
        eligo.fat_task({0: [], 1: [0]}, [1])
    with pytest.raises(eligo.ScheduleError, match="'1' comes before 'None'"):
        eligo.profile(Dag.from_parents({None: [], 1: [None]}), [1, None])  # type: ignore[list-item]
