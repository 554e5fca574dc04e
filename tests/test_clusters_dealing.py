"""Dealing fat tasks: whole, in part, never; exports that run; pictures; the command; and large dags."""

import json
import os
import subprocess
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import eligo
from conftest import random_small_dag
from dealer import Dealer
from eligo import families
from eligo.cli import run
from eligo.clusters import FatTask, cluster, fat_task
from eligo.clusters.export import dagman_nodes, pegasus_labels, snakemake_groups
from eligo.dag import Dag
from eligo.errors import FormatError, InputError, MoveError
from eligo.execution import Execution
from eligo.formats import dagman, pegasus
from eligo.planning import plan
from eligo.simulation import deal
from eligo.theory import exact
from eligo.theory.eligibility import check_schedule
from eligo.workflow import Task, Workflow

draws = pytest.mark.skipif(
    find_spec("matplotlib") is None, reason="pictures need matplotlib: pip install 'eligo[plot]'"
)
FORK = Dag.from_arcs([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])


# One client after another


def test_a_fat_task_holds_nothing_that_waits_for_another_client() -> None:
    dealer = Dealer(families.out_mesh(3))
    assert dealer.deal("one", 1) is not None
    assert dealer.deal("two", 5) is None


def test_what_comes_back_whole_is_executed() -> None:
    dealer = Dealer(FORK)
    dealer.deal("one", 3)
    assert dealer.take_back("one") == ("d",)
    assert set(dealer.execution.executed) == {"a", "b", "c"}


def test_of_what_comes_back_in_part_the_rest_is_released() -> None:
    dealer = Dealer(FORK)
    dealer.deal("one", 3)
    assert set(dealer.take_back("one", done=["a", "c"])) == {"b"}
    assert (list(dealer.execution.executed), list(dealer.execution.allocated)) == (["a", "c"], [])
    again = dealer.deal("two", 2)
    assert again is not None
    assert again.tasks == ("b", "d")


def test_what_never_comes_back_is_all_released() -> None:
    dealer = Dealer(FORK)
    dealer.deal("one", 2)
    dealer.lost("one")
    assert (list(dealer.execution.eligible), dealer.left) == (["a"], 4)


def test_a_running_execution_is_taken_over() -> None:
    game = Execution(FORK, ["a"])
    game.take("b")
    fat = Dealer(FORK, game).deal("one", 2)
    assert fat is not None
    assert fat.tasks == ("c",)


def test_after_a_loss_what_is_left_is_planned_anew() -> None:
    rng = np.random.default_rng(2)
    for _ in range(60):
        dag = random_small_dag(rng, 9)
        dealer = Dealer(dag)
        fat = dealer.deal("one", max(1, len(dag) // 2))
        assert fat is not None
        done = fat.tasks[: int(rng.integers(0, len(fat)))]
        dealer.take_back("one", done)
        following = dealer.deal("two", 1)
        assert following is not None
        assert following.eligible_after == exact.max_profile(dag.subdag([t for t in dag.tasks if t not in done]))[1]


def test_what_is_held_cannot_be_done_before_what_it_waits_for() -> None:
    dealer = Dealer(FORK)
    dealer.deal("one", 3)
    with pytest.raises(MoveError, match="cannot complete 'b': it is held"):
        dealer.execution.complete("b")
    assert dealer.take_back("one") == ("d",)


@pytest.mark.parametrize("size", [0, -3])
def test_a_client_of_no_size_is_refused(size: int) -> None:
    with pytest.raises(InputError, match="size must be a positive integer"):
        Dealer(FORK).deal("one", size)


def test_an_execution_of_another_workflow_is_refused() -> None:
    with pytest.raises(InputError, match="another workflow"):
        Dealer(FORK, Execution(families.out_mesh(3)))


def test_seconds_size_a_fat_task_and_a_longer_task_goes_alone() -> None:
    seconds = {"a": 5.0, "b": 1.0, "c": 1.0, "d": 90.0}
    flow = Workflow(FORK, {name: Task(name=name, seconds=s) for name, s in seconds.items()})
    dealer = Dealer(flow)
    first = dealer.deal("one", seconds=7)
    assert first is not None
    assert (set(first.tasks), first.seconds) == ({"a", "b", "c"}, 7.0)
    dealer.take_back("one")
    last = dealer.deal("one", seconds=7)
    assert last is not None
    assert last.tasks == ("d",)


def test_seconds_that_the_beginning_of_the_plan_misses_are_dealt_from_elsewhere() -> None:
    seconds = {"a": 2.0, "b": 3.0, "c": 9.0, "d": 9.0}
    dag = Dag.from_arcs([("a", "c"), ("b", "d")])
    dealer = Dealer(Workflow(dag, {name: Task(name=name, seconds=s) for name, s in seconds.items()}))
    fats = [dealer.deal(client, seconds=3) for client in ("one", "two")]
    assert [fat.tasks for fat in fats if fat] == [("b",), ("a",)]


def test_in_a_large_dag_too() -> None:
    dag = families.out_tree(8)
    seconds = dict.fromkeys(dag.tasks, 2.0) | {"0": 1.0, plan(dag).order[1]: 7.0}
    dealer = Dealer(Workflow(dag, {name: Task(name=name, seconds=s) for name, s in seconds.items()}))
    dealer.deal("one", seconds=1)
    dealer.take_back("one")
    fat = dealer.deal("one", seconds=8)
    assert fat is not None
    assert fat.seconds == 8.0


# Beside others


TWO_PAIRS = Dag.from_arcs([("a", "c"), ("b", "d")])


def test_what_others_bring_back_done_is_noticed() -> None:
    game = Execution(TWO_PAIRS)
    game.take("a")
    dealer = Dealer(TWO_PAIRS, game)
    first = dealer.deal("p", 4)
    assert first is not None
    assert set(first.tasks) == {"b", "d"}
    dealer.take_back("p")
    assert dealer.deal("p", 4) is None
    game.complete("a")
    last = dealer.deal("p", 4)
    assert last is not None
    assert last.tasks == ("c",)
    dealer.take_back("p")
    assert game.finished


def test_what_others_release_is_dealt_and_what_failed_is_not() -> None:
    game = Execution(TWO_PAIRS)
    game.take("a")
    game.take("b")
    game.fail("b")
    dealer = Dealer(TWO_PAIRS, game)
    assert dealer.deal("p", 4) is None
    game.fail("a")
    game.release("b")
    fat = dealer.deal("p", 4)
    assert fat is not None
    assert (fat.tasks, dealer.left) == (("b", "d"), 1)


def test_what_others_take_meanwhile_is_not_dealt() -> None:
    game = Execution(TWO_PAIRS)
    dealer = Dealer(TWO_PAIRS, game)
    game.take("a")
    game.execute("b")
    fat = dealer.deal("p", 4)
    assert fat is not None
    assert (fat.tasks, dealer.left) == (("d",), 1)


@pytest.mark.parametrize("goal", ["productive", "communication"])
@pytest.mark.parametrize("seed", range(3))
def test_a_dealer_and_others_finish_an_execution_together(goal: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(25):
        dag = random_small_dag(rng, 14)
        game = Execution(dag)
        dealer = Dealer(dag, game, goal=goal)
        theirs: list[str] = []
        while not game.finished:
            theirs = moved_by_others(game, theirs, rng)
            held = dealer.held.get("p")
            if held is not None:
                dealer.take_back("p", held.tasks[: int(rng.integers(0, len(held) + 1))])
            elif dealer.deal("p", 3) is None and not theirs:
                assert game.failed or game.finished
                for task in tuple(game.failed):
                    game.release(task)
            dealt = [task for fat in dealer.held.values() for task in fat.tasks]
            assert dealer.left == len(dag) - len({*game.executed, *game.failed, *theirs, *dealt})
        assert dealer.left == 0


def moved_by_others(game: Execution, theirs: list[str], rng: np.random.Generator) -> list[str]:
    """Others take a task, and do whatever may be done with one that they have; returns what they have then."""
    if game.eligible and rng.random() < 0.5:
        theirs = [*theirs, str(rng.choice(list(game.eligible)))]
        game.take(theirs[-1])
    if theirs and rng.random() < 0.7:
        getattr(game, str(rng.choice(["complete", "release", "fail"])))(theirs[0])
        theirs = theirs[1:]
    return theirs


def test_while_others_are_out_no_set_is_called_the_best() -> None:
    flow = {"a": [], "b": [], "x": [], "e": ["a"], "c": ["a", "b"], "d": ["a", "b"], "y": ["x"]}
    dealer = Dealer(flow)
    first, second = dealer.deal("one", 1), dealer.deal("two", 1)
    assert first is not None
    assert second is not None
    assert "no other set" in first.why
    assert "no other set" not in second.why


# A whole dag


@pytest.mark.parametrize("goal", ["productive", "communication", "mixed"])
def test_dealing_executes_every_task_once(goal: str) -> None:
    rng = np.random.default_rng(4)
    for _ in range(60):
        dag = random_small_dag(rng, 14)
        dealing = deal(dag, rng.integers(1, 5, 3).tolist(), goal)
        check_schedule(dag, dealing.order)
        assert dealing.finished
        assert dealing.cut_arcs <= dag.arc_count


def test_dealing_survives_clients_that_bring_back_a_part_or_nothing() -> None:
    rng = np.random.default_rng(9)

    def returns(fat: FatTask) -> int:
        return int(rng.integers(0, len(fat) + 1))

    for _ in range(40):
        dag = random_small_dag(rng, 14)
        dealing = deal(dag, [3] * 40, "communication", returns=returns)
        check_schedule(dag, dealing.order)


def test_what_went_back_and_out_again_is_counted() -> None:
    dealing = deal(Dag.from_arcs([("a", "b")]), [2], returns=lambda fat: 1)
    assert (dealing.cut_arcs, [fat["cut_arcs"] for fat in dealing.document()["fat_tasks"]]) == (1, [1, 0])


def test_the_arcs_cut_are_those_between_what_was_done_at_different_times() -> None:
    rng = np.random.default_rng(12)
    for _ in range(30):
        dag = random_small_dag(rng, 12)
        dealing = deal(dag, [3] * 30, returns=lambda fat: int(rng.integers(0, len(fat) + 1)))
        parts = [set(f.tasks[:done]) for f, done in zip(dealing.fat_tasks, dealing.done, strict=True)]
        expected = [sum(u in part and v not in part for u, v in dag.arcs()) for part in parts]
        assert [fat["cut_arcs"] for fat in dealing.document()["fat_tasks"]] == expected
        assert dealing.cut_arcs == sum(expected)


def test_a_dealing_of_nothing_cuts_nothing() -> None:
    dealing = deal(FORK, iter(()))
    assert (dealing.cut_arcs, dealing.document()["fat_tasks"]) == (0, [])


def test_when_every_client_is_gone_the_rest_is_never_done() -> None:
    dealing = deal(FORK, [2, 2], returns=lambda fat: 0)
    assert not dealing.finished
    assert dealing.order == ()


def test_a_stream_of_clients_comes_once_each() -> None:
    dealing = deal(families.out_mesh(4), iter([3, 3, 2]))
    assert [len(fat) for fat in dealing.fat_tasks] == [3, 3, 2]
    assert not dealing.finished


@pytest.mark.parametrize("sizes", [np.array([2, 1]), {2, 1}, (2, 1), dict.fromkeys([2, 1]), range(1, 3)])
def test_whatever_is_no_iterator_is_clients_that_come_again(sizes: Iterable[int]) -> None:
    dealing = deal(families.out_mesh(4), sizes)
    assert dealing.finished
    assert max(map(len, dealing.fat_tasks)) == 2


@pytest.mark.parametrize("size", [2.5, float("nan"), "2", True])
def test_sizes_are_whole_numbers_for_sequences_streams_and_dealers(size: Any) -> None:
    for attempt in (
        lambda: deal(FORK, [1, size]),
        lambda: deal(FORK, iter([1, size, 1])),
        lambda: Dealer(FORK).deal("one", size),
    ):
        with pytest.raises(InputError, match=r"size must be a positive integer, got .*"):
            attempt()


def test_a_strategy_that_there_is_not_is_refused_before_anything_is_dealt() -> None:
    with pytest.raises(InputError, match="unknown strategy 'zz'"):
        Dealer(FORK, strategy="zz")


def test_dealt_directly_one_by_one_nothing_is_lost() -> None:
    dealing = deal(families.out_mesh(6), iter([4, 1, 6, 3, 7]))
    assert dealing.eligible == dealing.eligible_singly


def test_the_time_of_one_client_is_its_work_and_its_exchanges() -> None:
    dealing = deal(families.out_mesh(4), [5], exchange=1.0)
    assert (dealing.makespan, dealing.makespan_singly) == pytest.approx((2 * (1 + 1.0), 10 * (0.2 + 1.0)))


def test_no_client_at_all_is_refused() -> None:
    with pytest.raises(InputError, match="no clients to deal to"):
        deal(FORK, [])


def test_more_cannot_come_back_than_went_out() -> None:
    with pytest.raises(InputError, match="between 0 and 2, got 3"):
        deal(FORK, [2], returns=lambda fat: 3)


# Large dags


LARGE: dict[str, Callable[[], Dag]] = {
    "out-mesh": lambda: families.out_mesh(200),
    "in-tree": lambda: families.in_tree(14),
}


@pytest.mark.parametrize("name", LARGE)
def test_a_fat_task_of_a_large_dag(name: str) -> None:
    assert len(cluster(LARGE[name](), 100, "communication")) == 100


def test_a_large_dag_is_dealt_out() -> None:
    dealing = deal(LARGE["out-mesh"](), [100, 100, 50], "communication")
    assert dealing.finished
    assert dealing.cut_arcs < dealing.cut_arcs_singly // 4


# Exports


AWKWARD = ["it's", 'say "hi"', "$HOME", "a b", "{x}", "back\\slash", "semi;colon", "new*star"]


def printing(tmp_path: Path) -> Workflow:
    """Tasks in a row that each append an awkward word to a file."""
    names = [f"t{i}" for i in range(len(AWKWARD))]
    dag = Dag.from_arcs(pairwise(names), tasks=names)
    script = f'printf "%s\\n" "$1" >> {tmp_path / "log"}'
    commands = {name: ("/bin/sh", "-c", script, "sh", word) for name, word in zip(names, AWKWARD, strict=True)}
    return Workflow(dag, {name: Task(name=name, command=command) for name, command in commands.items()})


def test_the_scripts_of_fat_nodes_run_what_the_tasks_would(tmp_path: Path) -> None:
    flow = printing(tmp_path)
    files = dagman_nodes(flow, deal(flow, [3]).fat_tasks)
    for name, text in files.items():
        if name.endswith(".sh"):
            subprocess.run(["/bin/sh", "-c", text], check=True)
    assert (tmp_path / "log").read_text("utf-8").splitlines() == AWKWARD


def test_a_line_for_a_shell_cannot_leave_the_script(tmp_path: Path) -> None:
    dag = Dag.from_arcs([("a", "b")])
    flow = Workflow(dag, {"a": Task(name="a", command="cd / && exit 0"), "b": Task(name="b", command="pwd")})
    script = dagman_nodes(flow, [cluster(flow, 2)])["fat_1.sh"]
    done = subprocess.run(["/bin/sh", "-c", script], check=True, capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.strip() == os.path.realpath(tmp_path)


@pytest.mark.parametrize(
    "command",
    [
        ("exit", "0"),
        ("set", "+e"),
        ("exec", "true"),
        ("PATH=/nowhere",),
        ("if", "x"),
        ("{",),
        ("return",),
        ("eval", "exit 0"),
        (".", "/dev/null"),
        ("trap", "exit 0", "EXIT"),
    ],
    ids=" ".join,
)
def test_words_of_the_shell_are_no_programs(command: tuple[str, ...], tmp_path: Path) -> None:
    details = {"a": Task(name="a", command=command), "b": Task(name="b", command=("touch", "reached"))}
    flow = Workflow(Dag.from_arcs([("a", "b")]), details)
    script = dagman_nodes(flow, [cluster(flow, 2)])["fat_1.sh"]
    done = subprocess.run(["/bin/sh", "-c", script], check=False, capture_output=True, cwd=tmp_path)
    assert done.returncode != 0
    assert not (tmp_path / "reached").exists()


def test_a_program_of_the_name_of_a_word_of_the_shell_is_run(tmp_path: Path) -> None:
    for name in ("cd", "exit", "if", "A=1"):
        (tmp_path / name).write_text(f'#!/bin/sh\necho "{name} $1"\n', "utf-8")
        (tmp_path / name).chmod(0o755)
    names = ["cd", "exit", "if", "A=1"]
    dag = Dag.from_arcs(pairwise(names), tasks=names)
    flow = Workflow(dag, {name: Task(name=name, command=(name, "$0 *")) for name in names})
    script = dagman_nodes(flow, [cluster(flow, 4)])["fat_1.sh"]
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(["/bin/sh", "-c", script], check=True, capture_output=True, text=True, env=path)
    assert done.stdout.splitlines() == [f"{name} $0 *" for name in names]


@pytest.mark.parametrize("sign", ["-", "+"])
def test_a_line_that_looks_like_an_option_is_a_line(sign: str, tmp_path: Path) -> None:
    program = tmp_path / f"{sign}e"
    program.write_text("#!/bin/sh\necho run $1\n", "utf-8")
    program.chmod(0o755)
    flow = Workflow(Dag.from_arcs([], ["a"]), {"a": Task(name="a", command=f"{sign}e 1 && echo too")})
    script = dagman_nodes(flow, [cluster(flow, 1)])["fat_1.sh"]
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(["/bin/sh", "-c", script], check=True, capture_output=True, text=True, env=path)
    assert done.stdout == "run 1\ntoo\n"
    text = dagman.generate(flow)
    assert f"-c -- '{sign}e 1" in text
    assert dagman.parse(text).task("a").command == flow.task("a").command


def test_a_program_that_looks_like_an_option_is_refused() -> None:
    flow = Workflow(Dag.from_arcs([("a", "b")]), {"a": Task(name="a", command=("-a", "x", "true"))})
    for export in (dagman_nodes, snakemake_groups):
        with pytest.raises(FormatError, match="cannot represent the program of task 'a'"):
            export(flow, [cluster(flow, 2)])


@pytest.mark.parametrize("program", ["-weird", "--", "A=1", "a=b=c"])
def test_a_program_that_env_would_not_look_for_is_refused(program: str) -> None:
    flow = Workflow(Dag.from_arcs([], ["a"]), {"a": Task(name="a", command=(program, "x"))})
    with pytest.raises(FormatError, match="DAGMan cannot represent the program of task 'a': "):
        dagman.generate(flow)


@pytest.mark.parametrize(
    "command", [("./-weird", "a=b"), ("/opt/a=b/run",), ("/usr/bin/env", "A=1", "-x"), ("x", "-a")]
)
def test_with_a_folder_or_behind_it_such_words_are_kept(command: tuple[str, ...]) -> None:
    flow = Workflow(Dag.from_arcs([], ["a"]), {"a": Task(name="a", command=command)})
    assert dagman.parse(dagman.generate(flow)).task("a").command == command


def test_what_env_is_told_in_a_description_stays_its_own() -> None:
    text = 'JOB a {\n    executable = /usr/bin/env\n    arguments = "A=1 run"\n}\n'
    flow = dagman.parse(text)
    assert flow.task("a").command == ("/usr/bin/env", "A=1", "run")
    assert dagman.parse(dagman.generate(flow)).task("a").command == flow.task("a").command


def test_a_fat_node_ends_with_the_first_task_that_fails(tmp_path: Path) -> None:
    flow = printing(tmp_path)
    failing = Workflow(flow.dag, {**flow.details, "t1": Task(name="t1", command="false")})
    script = dagman_nodes(failing, [cluster(failing, 3)])["fat_1.sh"]
    assert subprocess.run(["/bin/sh", "-c", script], check=False).returncode != 0
    assert (tmp_path / "log").read_text("utf-8").splitlines() == AWKWARD[:1]


def test_fat_nodes_depend_on_one_another_as_their_tasks_do() -> None:
    flow = Workflow(families.out_mesh(4))
    fats = deal(flow, [4]).fat_tasks
    owner = {task: f"fat_{i}" for i, fat in enumerate(fats, 1) for task in fat.tasks}
    between = {(owner[u], owner[v]) for u, v in flow.dag.arcs() if owner[u] != owner[v]}
    assert set(dagman.parse(dagman_nodes(flow, fats)["fat.dag"]).dag.arcs()) == between


def test_a_fat_node_asks_for_what_its_largest_task_needs() -> None:
    details = {"a": Task(name="a", command="true", cores=2), "b": Task(name="b", command="true", cores=4)}
    flow = Workflow(Dag.from_arcs([("a", "b")]), details)
    assert "request_cpus = 4" in dagman_nodes(flow, [cluster(flow, 2)])["fat.dag"]


def test_pegasus_labels_the_jobs_of_a_fat_task() -> None:
    flow = Workflow(FORK, {"a": Task(name="a", command=("cut", "-f1"), priority=3)})
    text = pegasus_labels(flow, [fat_task(flow, ["a", "b"])])
    labels = {
        job["id"]: job.get("profiles", {}).get("pegasus", {}).get("label") for job in yaml.safe_load(text)["jobs"]
    }
    assert labels == {"a": "fat_1", "b": "fat_1", "c": None, "d": None}
    assert pegasus.parse(text).task("a").priority == 3


def test_a_snakefile_groups_the_rules_of_a_fat_task() -> None:
    flow = Workflow(FORK, {"a": Task(name="a", command="echo {braces} 'quoted'")})
    text = snakemake_groups(flow, [fat_task(flow, ["a", "b"])])
    assert text.count("group: 'fat_1'") == 2
    shell = next(line for line in text.splitlines() if "braces" in line).split("shell: ", 1)[1]
    quoted = eval(shell).format()
    assert (
        subprocess.run(["/bin/sh", "-c", quoted], capture_output=True, text=True, check=True).stdout
        == "{braces} quoted\n"
    )


def test_a_group_of_several_parts_is_told_to_snakemake() -> None:
    flow = Workflow(Dag.from_arcs([("a", "b"), ("c", "d")]))
    assert "--group-components fat_1=2" in snakemake_groups(flow, [fat_task(flow, ["a", "c"])])


def test_a_task_in_two_fat_tasks_cannot_be_exported() -> None:
    flow = Workflow(FORK)
    with pytest.raises(InputError, match="'a' is in two fat tasks"):
        pegasus_labels(flow, [fat_task(flow, ["a"]), fat_task(flow, ["a", "b"])])


EXPORTERS: list[Callable[..., object]] = [pegasus_labels, snakemake_groups, dagman_nodes]


@pytest.mark.parametrize("export", EXPORTERS)
def test_clusters_that_wait_for_one_another_cannot_be_exported(export: Callable[..., object]) -> None:
    flow = Workflow(Dag.from_arcs([("a", "b"), ("c", "d"), ("a", "d"), ("c", "b")]))
    fats = [fat_task(flow, ["a", "b"], executed=["c"]), fat_task(flow, ["c", "d"], executed=["a"])]
    with pytest.raises(InputError, match=r"in a cycle.* fat_[12] -> fat_[12] -> fat_[12]"):
        export(flow, fats)


def test_what_is_executed_is_left_out_of_an_export() -> None:
    flow = Workflow(FORK, {name: Task(name=name, command=("touch", name)) for name in FORK.tasks})
    fats = [cluster(flow, 2, executed=["a"])]
    assert fats[0].tasks == ("b", "c")
    assert set(pegasus.parse(pegasus_labels(flow, fats, ["a"])).dag.arcs()) == {("b", "d"), ("c", "d")}
    nodes = dagman.parse(dagman_nodes(flow, fats, ["a"])["fat.dag"])
    assert list(nodes.dag.arcs()) == [("fat_1", "task_3")]
    text = snakemake_groups(flow, fats, ["a"])
    assert [line.split()[1] for line in text.splitlines() if line.startswith("rule task")] == [
        "task_1:",
        "task_2:",
        "task_3:",
    ]
    assert ".eligo/0.done" not in text


@pytest.mark.parametrize("export", EXPORTERS)
def test_an_executed_task_in_a_cluster_cannot_be_exported(export: Callable[..., object]) -> None:
    flow = Workflow(FORK)
    with pytest.raises(InputError, match="'a' is in a fat task but already executed"):
        export(flow, [cluster(flow, 2)], ["a"])


# Pictures and the command


def drawn_boxes(figure: Any) -> dict[str, tuple[float, float, float, float]]:
    """Where each node of a picture is, in pixels, by what it is called in the picture."""
    extents = {artist.get_gid(): artist.get_window_extent() for artist in figure.findobj() if artist.get_gid()}
    return {gid: (box.x0, box.y0, box.x1, box.y1) for gid, box in extents.items()}


def apart(one: tuple[float, ...], two: tuple[float, ...]) -> bool:
    """Whether two boxes have no point in common."""
    return one[2] < two[0] or two[2] < one[0] or one[3] < two[1] or two[3] < one[1]


@draws
def test_a_fat_task_is_one_box_beside_what_is_left() -> None:
    from eligo.plotting import draw_fat_task

    mesh = families.out_mesh(5)
    boxes = drawn_boxes(draw_fat_task(mesh, cluster(mesh, 5)))
    assert sum(gid.startswith("fat-") for gid in boxes) == 10 + 1  # what is in none, and the fat task
    assert sum(gid.startswith("fat0-") for gid in boxes) == 5  # what is in it


@draws
def test_of_a_deep_dag_the_neighbourhood_is_drawn() -> None:
    from eligo.plotting import draw_fat_task

    mesh = families.out_mesh(60)
    fat = cluster(mesh, 20, "communication")
    figure = draw_fat_task(mesh, fat)
    near = {*fat.tasks, *(v for _, v in fat.cut)}
    assert len(drawn_boxes(figure)) == len(near) - len(fat) + 1
    assert any("only neighbours among" in text.get_text() for text in figure.findobj() if hasattr(text, "get_text"))


@draws
@pytest.mark.parametrize("sizes", [[4, 2], [8], [16, 8, 4]])
@pytest.mark.parametrize("dag", [families.out_mesh(5), families.butterfly(4), families.random_layered(8, 30, seed=2)])
def test_nothing_but_its_members_is_within_the_outline_of_a_fat_task(dag: Dag, sizes: list[int]) -> None:
    from eligo.plotting import draw_dealing

    boxes = drawn_boxes(draw_dealing(dag, deal(dag, sizes)))
    outer = {gid: box for gid, box in boxes.items() if gid.startswith("fat-")}
    assert outer
    assert all(apart(one, two) for (_, one), (_, two) in combinations(outer.items(), 2))
    for gid, box in boxes.items():
        around = [name for name, other in outer.items() if not apart(box, other)]
        assert len(around) == 1, gid  # a member is in one box, a box only in itself


@draws
def test_a_fat_task_tells_how_many_tasks_of_which_kinds_it_has() -> None:
    from eligo.plotting import draw_dealing

    dag = Dag.from_arcs([(f"map_{i}", f"sort_{i}") for i in range(40)])
    figure = draw_dealing(dag, deal(dag, [20]))
    written = {text.get_text() for text in figure.findobj() if hasattr(text, "get_text")}
    assert any("20 tasks" in text for text in written)
    assert any(text.endswith("× map") for text in written)


@pytest.fixture
def mesh_file(tmp_path: Path) -> str:
    mesh = families.out_mesh(4)
    path = tmp_path / "mesh.json"
    path.write_text(json.dumps({"arcs": list(mesh.arcs()), "nodes": mesh.tasks}), "utf-8")
    return str(path)


def test_the_command_gives_one_document(mesh_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["cluster", mesh_file, "--size", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["tasks"], found["cut_arcs"]) == (["0", "1", "2"], 4)
    assert (found["residual_verdict"], found["strategy"]) == ("optimal", "direct")


def test_the_command_deals_everything_out(mesh_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["cluster", mesh_file, "--sizes", "4,2", "--goal", "communication", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["finished"]
    assert sorted(map(int, found["tasks"])) == list(range(10))


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--size", "0"], "positive integer"),
        (["--size", "11"], "at most 10"),
        ([], "give exactly one of"),
        (["--sizes", "4,x"], "integers separated by commas"),
        (["--sizes", "4,0"], "--sizes must be at least 1, got 0"),
        (["--size", "2", "--goal", "speed"], "unknown goal 'speed'"),
        (["--size", "2", "--export", "slurm"], "unknown export 'slurm'"),
        (["--size", "2", "-o", "out.txt"], "must be .svg, .png or .html"),
        (["--size", "2", "--export", "dagman"], "several files"),
        (["--seconds", "5"], "is not known"),
    ],
)
def test_the_command_refuses_in_one_line(
    mesh_file: str, words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["cluster", mesh_file, *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert told in captured.err


def test_the_command_writes_scripts_that_can_be_run(mesh_file: str, tmp_path: Path) -> None:
    assert run(["cluster", mesh_file, "--sizes", "5", "--export", "dagman", "-o", str(tmp_path / "deal.dag")]) == 0
    assert os.access(tmp_path / "fat_1.sh", os.X_OK)
    assert len(dagman.parse((tmp_path / "deal.dag").read_text("utf-8"))) == 2


def test_the_command_leaves_out_what_is_executed(mesh_file: str, tmp_path: Path) -> None:
    done, target = tmp_path / "done", tmp_path / "rest.dag"
    done.write_text("0\n1\n", "utf-8")
    assert (
        run(["cluster", mesh_file, "--size", "3", "--executed", str(done), "--export", "dagman", "-o", str(target)])
        == 0
    )
    nodes = dagman.parse(target.read_text("utf-8")).dag.tasks
    assert len(nodes) == 1 + 10 - 3 - 2
    assert not {"task_0", "task_1"} & set(nodes)


def test_a_set_given_by_hand_is_read_from_a_file(
    mesh_file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = tmp_path / "chosen"
    chosen.write_text("4\n", "utf-8")
    assert run(["cluster", mesh_file, "--tasks", str(chosen)]) == 2
    assert "not self-contained: '4' depends on '1'" in capsys.readouterr().err


def dagman_folder(tmp_path: Path, **descriptions: str) -> Path:
    (tmp_path / "f.dag").write_text("JOB a a.sub\nJOB b b.sub\nJOB c c.sub\nPARENT a CHILD b c\n")
    for name in "abc":
        plain = f'executable = /bin/echo\narguments = "{name} one"\nrequest_cpus = 2\nqueue\n'
        (tmp_path / f"{name}.sub").write_text(descriptions.get(name, plain))
    return tmp_path / "f.dag"


def test_fat_nodes_of_a_dagman_file_run_what_its_submit_files_say(tmp_path: Path) -> None:
    flow = eligo.read(dagman_folder(tmp_path))
    files = dagman_nodes(flow, [cluster(flow, 2)])
    assert "request_cpus = 2" in files["fat.dag"]
    script = tmp_path / "fat_1.sh"
    script.write_text(files["fat_1.sh"])
    done = subprocess.run(["/bin/sh", script], capture_output=True, text=True, check=True)
    assert done.stdout == "a one\nb one\n"


@pytest.mark.parametrize(
    ("description", "told"),
    [
        ("executable = x\narguments = $(JOB)\nqueue\n", r"'b': b.sub uses \$\(JOB\), which eligo run does not expand"),
        ("executable = x\nqueue 5\n", "'b': b.sub submits several jobs"),
        ("executable = x\nqueue f from list.txt\n", "'b': b.sub submits several jobs"),
    ],
)
def test_what_a_script_cannot_stand_for_is_refused(tmp_path: Path, description: str, told: str) -> None:
    flow = eligo.read(dagman_folder(tmp_path, b=description))
    with pytest.raises(FormatError, match=told):
        dagman_nodes(flow, [cluster(flow, 2)])


def test_a_submit_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    flow = eligo.read(dagman_folder(tmp_path))
    (tmp_path / "b.sub").unlink()
    with pytest.raises(FormatError, match=r"'b': submit file .*b\.sub"):
        dagman_nodes(flow, [cluster(flow, 2)])
