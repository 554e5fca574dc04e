"""Fat tasks: the paper's figures, its false theorems, the oracle, real workflows, and what is refused."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import GOLDEN, golden_dag, random_small_dag
from eligo import families
from eligo.clusters import FatTask, cluster, fat_task
from eligo.clusters.chains import chain_of
from eligo.dag import Dag
from eligo.errors import DuplicateTaskError, InputError, NotSelfContainedError, StateError, UnknownTaskError
from eligo.execution import Execution
from eligo.formats import read
from eligo.planning import plan
from eligo.theory import exact
from eligo.workflow import Task, Workflow

REAL = Path(__file__).parents[2] / "shared" / "data" / "wfinstances"
REAL_FILES = sorted(path for path in REAL.glob("*.json*") if not path.name.startswith("synthetic"))
FIGURE_5 = next(case for case in GOLDEN if case["name"] == "Cluster.Fig5")
COUNTEREXAMPLES = [case for case in GOLDEN if "fat_task" in case]


def numbers(fat: FatTask) -> list[int]:
    return sorted(map(int, fat.tasks))


def chain(*sizes: int) -> tuple[str, ...]:
    return tuple(f"W({s},2)" for s in sizes)


# The paper's figure 5


def test_figure_5_direct() -> None:
    fat = cluster(golden_dag(FIGURE_5), 6, strategy="direct")
    assert (numbers(fat), fat.cut_arcs) == (FIGURE_5["F_direct"], 8)
    assert fat.residual_chain == chain(3, 3, 4, 4, 5, 6, 10)
    assert fat.residual_verdict == "optimal"


@pytest.mark.parametrize("strategy", ["staggered", "auto"])
def test_figure_5_with_communication_as_the_goal(strategy: str) -> None:
    fat = cluster(golden_dag(FIGURE_5), 6, "communication", strategy=strategy)
    assert (fat.strategy, fat.cut_arcs) == ("staggered", 6)
    assert fat.residual_chain == chain(1, 2, 3, 4, 4, 5, 6, 10)
    assert fat.residual_verdict == "optimal"


def test_figure_5_can_be_cut_less_than_the_paper_says() -> None:
    """A rhombus of two by three tasks has seven arcs inside, a triangle of six tasks only six."""
    fat = cluster(golden_dag(FIGURE_5), 6, "communication", strategy="searched")
    assert fat.cut_arcs == 5
    assert fat.residual_verdict == "optimal"
    assert fat.residual_chain is not None


def test_the_whole_of_figure_5_is_the_printed_chain() -> None:
    found = chain_of(golden_dag(FIGURE_5))
    assert found is not None
    assert found.kinds == chain(1, 1, 2, 2, 3, 3, 4, 4, 5, 6, 10)


# Lemma 3: what a compact fat task leaves of one block


def kinds_left(block: Dag, sources: range, count: int) -> list[str]:
    fat = fat_task(block, [str(i % count) for i in sources])
    assert fat.residual_chain is not None
    return sorted(fat.residual_chain)


@pytest.mark.parametrize("d", [2, 3, 4])
def test_lemma_3_of_w_leaves_w(d: int) -> None:
    for s in range(2, 7):
        for first in range(s):
            for last in range(first + 1, s + 1):
                left = [k for k in (first, s - last) if k]
                assert kinds_left(families.w_dag(s, d), range(first, last), s) == sorted(f"W({k},{d})" for k in left)


def test_lemma_3_of_a_cycle_leaves_one_w() -> None:
    for s in range(2, 8):
        for first in range(s):
            for size in range(1, s):
                left = kinds_left(families.cycle_dag(s), range(first, first + size), s)
                assert left == [f"W({s - size},2)"]


def test_lemma_3_of_n_leaves_w_to_the_left_and_n_to_the_right() -> None:
    for s in range(2, 8):
        for first in range(s):
            for last in range(first + 1, s + 1):
                expected = [f"W({first},2)"] * (first > 0) + [f"N({s - last})"] * (last < s)
                assert kinds_left(families.n_dag(s), range(first, last), s) == sorted(expected)


# Theorems 6 and 7 are false as printed


@pytest.mark.parametrize("case", COUNTEREXAMPLES, ids=lambda case: case["name"])
def test_a_counterexample_leaves_what_has_no_best_order(case: dict[str, Any]) -> None:
    dag = golden_dag(case)
    assert plan(dag).verdict == "optimal"
    assert fat_task(dag, map(str, case["fat_task"])).residual_verdict == "impossible"


@pytest.mark.parametrize("case", COUNTEREXAMPLES, ids=lambda case: case["name"])
@pytest.mark.parametrize("goal", ["productive", "communication", "mixed"])
def test_nothing_that_auto_takes_spoils_a_counterexample(case: dict[str, Any], goal: str) -> None:
    dag = golden_dag(case)
    for size in range(1, len(dag) + 1):
        assert cluster(dag, size, goal).residual_verdict == "optimal"


# Against the oracle


def checked(dag: Dag, fat: FatTask, size: int, executed: tuple[str, ...] = ()) -> None:
    """Self-contained, as large as asked, and measured rightly."""
    assert len(fat.tasks) == size
    game = Execution(dag, executed)
    eligible = len(game.eligible)
    for task in fat.tasks:
        game.execute(task)
    assert fat.eligible_after == len(game.eligible)
    assert fat.productivity == len(game.eligible) - eligible + size
    inside, done = set(fat.tasks), set(executed)
    assert sorted(fat.cut) == sorted((u, v) for u, v in dag.arcs() if u in inside and v not in inside)
    assert sorted(fat.inputs) == sorted((u, v) for u, v in dag.arcs() if u in done and v in inside)
    assert set(fat.residual.tasks) == set(dag.tasks) - inside - done


def admits(dag: Dag) -> bool:
    return exact.ic_optimal_schedule(dag) is not None


@pytest.mark.parametrize("seed", range(8))
def test_random_fat_tasks_against_the_oracle(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(300):
        dag = random_small_dag(rng, 9)
        size = int(rng.integers(1, len(dag) + 1))
        goal = str(rng.choice(["productive", "communication", "mixed"]))
        fat = cluster(dag, size, goal, strategy=str(rng.choice(["auto", "direct", "searched"])))
        checked(dag, fat, size)
        assert fat.residual_verdict == ("optimal" if admits(fat.residual) else "impossible")


@pytest.mark.parametrize("strategy", ["auto", "direct", "staggered"])
def test_what_has_a_best_order_keeps_one(strategy: str) -> None:
    rng = np.random.default_rng(7)
    taken = 0
    for _ in range(250):
        dag = random_small_dag(rng, 10)
        size = int(rng.integers(1, len(dag) + 1))
        try:
            fat = cluster(dag, size, "communication", strategy=strategy)
        except InputError:
            continue  # no chain of blocks, or not of one family
        taken += 1
        assert admits(fat.residual) or not admits(dag)
    assert taken > 50


def test_random_states_against_the_oracle() -> None:
    rng = np.random.default_rng(3)
    for _ in range(200):
        dag = random_small_dag(rng, 11)
        begun = int(rng.integers(0, len(dag)))
        executed = dag.named(dag.order[:begun])
        size = int(rng.integers(1, len(dag) - begun + 1))
        fat = cluster(dag, size, "communication", executed=executed)
        checked(dag, fat, size, executed)
        assert fat.residual_verdict == ("optimal" if admits(fat.residual) else "impossible")


def test_direct_is_the_most_productive_where_the_plan_is_optimal() -> None:
    rng = np.random.default_rng(11)
    for _ in range(100):
        dag = random_small_dag(rng, 9)
        best = exact.max_profile(dag)
        for size in range(1, len(dag) + 1):
            fat = cluster(dag, size)
            assert fat.eligible_after == best[size]


def test_searching_a_small_dag_finds_the_fewest_cut_arcs() -> None:
    rng = np.random.default_rng(5)
    for _ in range(60):
        dag = random_small_dag(rng, 8)
        size = int(rng.integers(1, len(dag) + 1))
        cuts = []
        for layer in exact.down_sets(dag):
            for mask in layer:
                if mask.bit_count() == size:
                    cuts.append(sum(mask >> u & 1 and not mask >> v & 1 for u, v in index_arcs(dag)))
        found = cluster(dag, size, "communication", strategy="searched")
        assert found.cut_arcs == min(cuts) or found.residual_verdict == "optimal"


def index_arcs(dag: Dag) -> list[tuple[int, int]]:
    return list(zip(dag.tails.tolist(), dag.child.tolist(), strict=True))


# Universal donors


@pytest.mark.parametrize(
    "dag",
    [families.out_mesh(5), families.in_mesh(5), families.butterfly(2), families.out_tree(4), families.in_tree(4)],
    ids=["out-mesh", "in-mesh", "butterfly", "out-tree", "in-tree"],
)
@pytest.mark.parametrize("goal", ["productive", "communication", "mixed"])
def test_a_donor_keeps_a_best_order_for_every_size(dag: Dag, goal: str) -> None:
    for size in range(1, len(dag) + 1):
        fat = cluster(dag, size, goal, strategy="searched")
        checked(dag, fat, size)
        assert admits(fat.residual)
        assert fat.residual_verdict == "optimal"


def test_the_certificate_of_a_donor() -> None:
    """Whatever is taken from a mesh leaves a chain of blocks; that is not proved of a butterfly."""
    fat = cluster(families.out_mesh(6), 7, "communication", strategy="searched")
    assert fat.certificate == "a donor: whatever is taken leaves a ▷-chain of blocks"
    assert fat.document()["certificate"] == fat.certificate
    assert cluster(families.butterfly(3), 7, "communication", strategy="searched").certificate is None


@pytest.mark.parametrize("dag", [families.out_mesh(12), families.butterfly(4)], ids=["mesh", "butterfly"])
def test_larger_donors_too(dag: Dag) -> None:
    for size in range(1, len(dag), 7):
        assert cluster(dag, size, "communication", strategy="searched").residual_verdict == "optimal"


def test_every_down_set_of_a_small_mesh_is_a_harmless_fat_task() -> None:
    mesh = families.out_mesh(4)
    for layer in exact.down_sets(mesh):
        for mask in layer:
            fat = fat_task(mesh, [str(v) for v in range(len(mesh)) if mask >> v & 1])
            assert fat.residual_verdict == "optimal"


# Seconds and bytes


def timed(*seconds: float) -> Workflow:
    """A path of tasks a, b, c, ... of these runtimes."""
    names = "abcdefghij"[: len(seconds)]
    dag = Dag.from_arcs(pairwise(names), tasks=names)
    return Workflow(dag, {n: Task(name=n, seconds=s) for n, s in zip(names, seconds, strict=True)})


def test_a_size_in_seconds_is_kept_within_the_tolerance() -> None:
    fat = cluster(timed(60.0, 300.0, 700.0, 200.0), seconds=1000, tolerance=0.1)
    assert (fat.tasks, fat.seconds) == (("a", "b", "c"), 1060.0)


def test_seconds_that_cannot_be_met_are_refused_with_the_nearest() -> None:
    with pytest.raises(InputError, match="the closest takes 60 seconds"):
        cluster(timed(60.0, 300.0, 700.0), seconds=100, tolerance=0.1)


def test_where_every_task_is_too_long_the_shortest_is_told() -> None:
    with pytest.raises(InputError, match="the closest takes 60 seconds"):
        cluster(timed(60.0, 300.0), seconds=10)


def two_pairs(a: float, b: float) -> Workflow:
    """a before c and b before d, of which the second ones take 9 seconds each."""
    seconds = {"a": a, "b": b, "c": 9.0, "d": 9.0}
    dag = Dag.from_arcs([("a", "c"), ("b", "d")])
    return Workflow(dag, {name: Task(name=name, seconds=s) for name, s in seconds.items()})


@pytest.mark.parametrize("goal", ["productive", "communication", "mixed"])
@pytest.mark.parametrize("strategy", ["auto", "searched"])
def test_seconds_that_the_beginning_of_the_plan_misses_are_found_elsewhere(goal: str, strategy: str) -> None:
    assert cluster(two_pairs(2.0, 3.0), None, goal, seconds=3, strategy=strategy).tasks == ("b",)


def test_a_set_of_the_seconds_is_found_where_there_is_one() -> None:
    rng = np.random.default_rng(6)
    missed = 0
    for _ in range(60):
        dag = random_small_dag(rng, 11)
        seconds = rng.integers(1, 40, len(dag)).tolist()
        flow = Workflow(dag, {n: Task(name=n, seconds=float(s)) for n, s in zip(dag.tasks, seconds, strict=True)})
        masks = [mask for layer in exact.down_sets(dag) for mask in layer if mask]
        sizes = {sum(s for v, s in enumerate(seconds) if mask >> v & 1) for mask in masks}
        wanted = int(rng.integers(1, sum(seconds) + 1))
        if wanted in sizes:
            assert cluster(flow, seconds=wanted, tolerance=0).seconds == wanted
        else:
            missed += 1
            with pytest.raises(InputError, match="the closest takes"):
                cluster(flow, seconds=wanted, tolerance=0)
    assert 10 < missed < 50


def test_in_a_dag_too_large_to_try_all_sets_the_search_goes_on_where_the_plan_misses_the_seconds() -> None:
    names = [f"t{i}" for i in range(40)]
    dag = Dag.from_arcs([(name, f"after_{name}") for name in names])
    first = plan(dag).order[0]
    seconds = {name: 2.0 if name == first else 3.0 if name == "t7" else 50.0 for name in dag.tasks}
    flow = Workflow(dag, {name: Task(name=name, seconds=s) for name, s in seconds.items()})
    assert cluster(flow, seconds=3).tasks == ("t7",)


@pytest.mark.parametrize("strategy", ["auto", "direct", "searched"])
def test_no_tolerance_does_not_mean_no_rounding(strategy: str) -> None:
    assert len(cluster(timed(0.1, 0.1, 0.1), seconds=0.3, tolerance=0, strategy=strategy)) == 3
    assert len(cluster(timed(*[0.1] * 10), seconds=1, tolerance=0, strategy=strategy)) == 10


@pytest.mark.parametrize("size", [2.5, float("nan"), "2", True, [2]])
def test_a_size_is_a_whole_number(size: Any) -> None:
    with pytest.raises(InputError, match="size must be a positive integer"):
        cluster(MESH, size)


@pytest.mark.parametrize("seconds", ["2", True, float("nan"), 0, -1.0, float("inf")])
def test_seconds_are_a_number(seconds: Any) -> None:
    with pytest.raises(InputError, match=r"seconds must be (a number|positive)"):
        cluster(timed(1.0, 1.0), seconds=seconds)


def test_numbers_of_numpy_are_numbers() -> None:
    assert len(cluster(MESH, np.int64(2))) == 2  # type: ignore[arg-type]
    assert len(cluster(timed(1.0, 1.0, 1.0), seconds=np.float64(2))) == 2


def test_seconds_need_runtimes() -> None:
    flow = Workflow(Dag.from_arcs([("a", "b")]), {"a": Task(name="a", seconds=1.0)})
    with pytest.raises(InputError, match="the run time of 'b' is not known"):
        cluster(flow, seconds=1)


def filed() -> Workflow:
    """Two roots with a leaf each: a sends two large files, b one small file to two leaves."""
    dag = Dag.from_arcs([("a", "c"), ("b", "d"), ("b", "e")], tasks="abcde")
    details = {
        "a": Task(name="a", outputs=("big",)),
        "b": Task(name="b", outputs=("small",)),
        "c": Task(name="c", inputs=("big",)),
        "d": Task(name="d", inputs=("small",)),
        "e": Task(name="e", inputs=("small",)),
    }
    return Workflow(dag, details, file_sizes={"big": 1000, "small": 10})


def test_bytes_are_counted_once_for_a_file_that_several_read() -> None:
    fat = fat_task(filed(), ["b"])
    assert (fat.cut_arcs, fat.bytes_out, fat.bytes_in) == (2, 10, 0)


def test_with_files_bytes_decide_but_not_at_the_cost_of_arcs() -> None:
    flow = filed()
    direct = cluster(flow, 1, "communication", strategy="direct")
    assert (direct.tasks, cluster(flow, 1, "communication").bytes_out) == (("b",), 10)


def test_files_of_unknown_size_leave_the_arcs_to_decide() -> None:
    flow = filed()
    assert cluster(Workflow(flow.dag, flow.details), 1, "communication").bytes_out is None


# Real workflows


@pytest.mark.skipif(not REAL_FILES, reason="the real workflows are not beside the checkout")
@pytest.mark.parametrize("path", REAL_FILES, ids=lambda path: path.name.split(".")[0])
def test_communication_never_cuts_more_than_direct(path: Path) -> None:
    flow = read(path)
    found = plan(flow, "quick")
    for size in (8, len(flow) // 3):
        direct = cluster(flow, size, "communication", strategy="direct", effort="quick", plan=found)
        light = cluster(flow, size, "communication", effort="quick", plan=found)
        assert light.cut_arcs <= direct.cut_arcs
        assert (light.bytes_out or 0) <= (direct.bytes_out or 0)


# What is refused


MESH = families.out_mesh(3)


def test_more_than_is_left_is_refused() -> None:
    with pytest.raises(InputError, match="at most 6, the number of remaining tasks, got 7"):
        cluster(MESH, 7)


def test_what_is_executed_is_not_left() -> None:
    with pytest.raises(InputError, match="at most 5"):
        cluster(MESH, 6, executed=["0"])


@pytest.mark.parametrize("size", [0, -1])
def test_no_size_is_refused(size: int) -> None:
    with pytest.raises(InputError, match="positive integer"):
        cluster(MESH, size)


def test_a_set_that_lacks_a_parent_is_refused_with_both() -> None:
    with pytest.raises(NotSelfContainedError) as refused:
        fat_task(MESH, ["0", "1", "4"])
    assert (refused.value.task, refused.value.parent) == ("4", "2")


def test_a_set_with_an_executed_task_is_refused() -> None:
    with pytest.raises(NotSelfContainedError, match="'0' is already executed"):
        fat_task(MESH, ["0", "1"], executed=["0"])


def test_executed_tasks_must_be_a_beginning() -> None:
    with pytest.raises(StateError, match="'1' cannot be executed: its parent '0' is not executed"):
        cluster(MESH, 1, executed=["1"])


def test_unknown_and_repeated_names_are_refused() -> None:
    with pytest.raises(UnknownTaskError):
        fat_task(MESH, ["nobody"])
    with pytest.raises(DuplicateTaskError):
        fat_task(MESH, ["0", "0"])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"goal": "speed"}, "unknown goal 'speed'"),
        ({"strategy": "luck"}, "unknown strategy 'luck'"),
        ({"weight": 2.0, "goal": "mixed"}, "weight must be from 0 to 1"),
        ({"seconds": 5.0}, "either a size in tasks or seconds"),
        ({"plan": plan(families.out_mesh(4))}, "belongs to another workflow"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        cluster(MESH, 2, **arguments)


def test_staggered_needs_a_chain() -> None:
    mixed = golden_dag(next(case for case in GOLDEN if case["name"] == "Sweep.B1+B2"))  # neither has priority
    with pytest.raises(InputError, match="needs a ▷-linear composition"):
        cluster(mixed, 2, strategy="staggered")


def test_the_same_question_has_the_same_answer() -> None:
    dag = families.random_layered(6, 8, seed=2)
    assert cluster(dag, 9, "communication").tasks == cluster(dag, 9, "communication").tasks


def test_the_last_fat_task_leaves_nothing() -> None:
    fat = cluster(MESH, 6)
    assert (len(fat.residual), fat.residual_verdict, fat.cut_arcs) == (0, "optimal", 0)
