"""What tasks ask for beside cores: memory, and to go before others."""

import json
import math
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eligo
from eligo.allocating import Ask, ByPolicy, allocator
from eligo.allocating.rooms import Room
from eligo.cli import run as command
from eligo.engines.room import machine_memory
from eligo.execution import Execution
from eligo.formats import generate, lost, parse
from eligo.policies import POLICIES, in_classes, policy
from eligo.running import api as whole
from eligo.running.rehearsal import predicted
from eligo.server.rules.prepared import Wishes, prepare
from eligo.workflow import Task, Workflow
from running_cases import attempts, ran, written

Captured = pytest.CaptureFixture[str]
GB = 10**9


def workflow(*tasks: Task) -> Workflow:
    """Tasks without arcs."""
    return Workflow(eligo.Dag.from_arcs([], [task.name for task in tasks]), {task.name: task for task in tasks})


def began(flow: Path) -> list[str]:
    """The tasks of a run on one worker in the order in which they began."""
    return [each["name"] for each in sorted(attempts(Path(f"{flow}.run")), key=lambda each: each["began"])]


# Memory


def test_a_task_that_wants_more_memory_than_there_is_is_refused_first(tmp_path: Path, capsys: Captured) -> None:
    flow = written(
        tmp_path, [{"name": "a", "run": "touch ran"}, {"name": "big", "run": "touch ran", "memory": 99 * 10**12}]
    )
    assert ran(flow) == 2
    told = capsys.readouterr().err
    assert "task 'big' needs 92,201 GiB of memory, but only " in told
    assert "lower its memory, or run it on a larger machine or cluster" in told
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("on", ["local", "dask", "ray", "parsl", ThreadPoolExecutor(1)])
def test_whoever_shares_this_machine_refuses_it_before_it_starts_anything(on: Any) -> None:
    with pytest.raises(eligo.InputError, match="needs 92,201 GiB of memory"):
        eligo.run(workflow(Task(name="a", command="true", memory=99 * 10**12)), on=on)
    with pytest.raises(eligo.InputError, match="needs 92,201 GiB of memory"):
        eligo.run(workflow(Task(name="a", memory=99 * 10**12)), lambda task: task, on=on)


def test_tasks_that_do_not_fit_together_do_not_run_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (whole, eligo.engines.registry):
        monkeypatch.setattr(place, "machine_memory", lambda: 10 * GB)
    sizes = [6, 5, 3, 2, 9, 1, 4, 4]
    tasks = [{"name": f"t{i}", "run": "sleep 0.05", "memory": size * GB} for i, size in enumerate(sizes)]
    assert ran(written(tmp_path, tasks), "--workers", "8") == 0
    found = [
        (each["began"], each["ended"], sizes[int(each["name"][1:])]) for each in attempts(tmp_path / "flow.yaml.run")
    ]
    for moment in (began for began, _, _ in found):
        assert sum(size for began, ended, size in found if began <= moment < ended) <= 10


def test_memory_counts_on_an_executor_too() -> None:
    class Watched(ThreadPoolExecutor):
        pass

    seen: list[Room] = []
    original = Room.enter

    def enter(self: Room, job: Any) -> None:
        seen.append(self)
        original(self, job)

    with Watched(2) as pool, pytest.MonkeyPatch.context() as patch:
        patch.setattr(Room, "enter", enter)
        eligo.run(workflow(Task(name="a", command="true", memory=1000)), on=pool, workers=2)
    assert {each.memory for each in seen} == {float(machine_memory())}


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        ("0::/a/b\n", {"a/memory.max": "5000", "a/b/memory.max": "max"}, 5000),
        ("0::/a/b\n", {"a/memory.max": "5000", "a/b/memory.max": "3000"}, 3000),
        ("4:memory:/a\n3:cpu:/\n0::/\n", {"memory/a/memory.limit_in_bytes": "7000"}, 7000),
        ("4:memory:/gone\n", {"memory/memory.limit_in_bytes": "8000"}, 8000),
        ("4:memory:/a\n", {"memory/a/memory.limit_in_bytes": "9223372036854771712"}, None),
        ("", {}, None),
    ],
)
def test_the_limit_of_a_control_group_counts(
    groups: str, files: dict[str, str], expected: int | None, tmp_path: Path
) -> None:
    (tmp_path / "cgroup").write_text(groups, "utf-8")
    for name, text in files.items():
        (tmp_path / "sys" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "sys" / name).write_text(text, "utf-8")
    physical = machine_memory(tmp_path / "nothing", tmp_path / "sys")
    assert machine_memory(tmp_path / "cgroup", tmp_path / "sys") == (expected or physical)
    assert physical >= 2**28


def test_a_rehearsal_needs_no_memory(tmp_path: Path) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "false", "seconds": 5, "memory": 99 * 10**12}])
    assert ran(flow, "--rehearse", "0.2") == 0


def test_a_cluster_that_states_its_memory_has_that_much(tmp_path: Path, capsys: Captured) -> None:
    distributed = pytest.importorskip("distributed")
    tasks = [{"name": "a", "run": "true", "memory": 3 * GB}]
    for limit, code, words in (
        (0, 0, "state no memory limit"),
        ("1GB", 2, "needs 2.79 GiB of memory, but only 0.931"),
    ):
        with distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address=None,
            memory_limit=limit,
            protocol="tcp://",
            processes=False,
        ) as cluster:
            flow = written(tmp_path, tasks)
            options = ("--on", f"dask={cluster.scheduler_address}", "--run", str(tmp_path / str(limit)))
            assert ran(flow, *options) == code
            assert words in capsys.readouterr().err


# Priorities


@pytest.mark.parametrize("name", ["finish", "balanced", "ready", "fifo", "lifo", "greedy", "critical-path", "random"])
def test_the_larger_priority_goes_first(name: str, tmp_path: Path) -> None:
    numbers = {"a": None, "b": -5, "c": 7, "d": 2**40, "e": 0, "f": 7}
    tasks = [
        {"name": task, "run": "true"} | ({} if number is None else {"priority": number})
        for task, number in numbers.items()
    ]
    flow = written(tmp_path, tasks)
    assert ran(flow, "--workers", "1", "--policy", name) == 0
    order = began(flow)
    assert [numbers[task] or 0 for task in order] == sorted((number or 0 for number in numbers.values()), reverse=True)


def test_our_order_decides_among_equal_priorities(tmp_path: Path) -> None:
    tasks: list[dict[str, Any]] = [{"name": f"leaf{i}", "run": "true"} for i in range(3)]
    tasks += [{"name": "root", "run": "true"}, *({"name": f"c{i}", "run": "true", "after": ["root"]} for i in range(3))]
    tasks += [{"name": "late", "run": "true", "priority": -1}]
    flow = written(tmp_path, tasks)
    assert ran(flow, "--workers", "1") == 0
    assert began(flow)[0] == "root"
    assert began(flow)[-1] == "late"


@pytest.mark.parametrize(
    "name", sorted({*POLICIES} - {"dask", "critical-path-seconds", "random", "greedy", "fifo", "lifo"})
)
def test_classes_keep_the_order_inside_them(name: str) -> None:
    """On any dag, what is handed out is the best of the policy among ready tasks of the largest priority."""
    chance = random.Random(7)
    arcs = [(f"t{i}", f"t{j}") for j in range(60) for i in range(j) if chance.random() < 0.05]
    numbers = [chance.choice([None, 3, -2, 10**12]) for _ in range(60)]
    dag = eligo.Dag.from_arcs(arcs, [f"t{i}" for i in range(60)])
    details = {f"t{i}": Task(name=f"t{i}", priority=number) for i, number in enumerate(numbers)}
    flow, plain = Workflow(dag, details), Execution(dag)
    game, number_of = Execution(dag), {task: number or 0 for task, number in zip(dag.tasks, numbers, strict=True)}
    live, twin = allocator(name, flow, game, rules=None), ByPolicy(policy(name, Workflow(dag)), plain)
    while not game.finished:
        ready = list(game.eligible)
        top = max(number_of[task] for task in ready)
        best = twin.hand_out([Ask(fits={task for task in ready if number_of[task] == top}.__contains__)])[0].tasks
        assert live.hand_out([Ask()])[0].tasks == best
        game.complete(best[0])
        plain.complete(best[0])


def test_a_lead_is_beyond_any_score() -> None:
    """A task of many releases stays behind one of a larger priority."""
    dag = eligo.Dag.from_arcs(
        [("wide", f"c{i}") for i in range(5000)], ["thin", "wide", *(f"c{i}" for i in range(5000))]
    )
    rule = in_classes(policy("finish", dag), [1, *[None] * 5001])
    assert dag.named(rule.order())[0] == "thin"
    assert np.isfinite(rule.lead).all()
    assert math.log2(rule.lead.max()).is_integer()


def test_a_planned_file_is_run_in_the_order_of_its_plan(tmp_path: Path) -> None:
    arcs = {"a": [], "b": [], "c": ["a"], "d": ["b"], "e": ["b"], "f": []}
    flow = written(tmp_path, [{"name": name, "run": "true", "after": above} for name, above in arcs.items()])
    order = tmp_path / "order.txt"
    order.write_text("f\nb\ne\nd\na\nc\n", "utf-8")
    planned = tmp_path / "planned.yaml"
    assert command(["plan", str(flow), "--policy", str(order), "-o", str(planned)]) == 0
    assert ran(planned, "--workers", "1") == 0
    assert began(planned) == ["f", "b", "e", "d", "a", "c"]


def test_the_priorities_of_dagman_count(tmp_path: Path) -> None:
    (tmp_path / "one.sub").write_text("executable = /bin/true\nqueue\n", "utf-8")
    nodes = "".join(f"JOB {name} one.sub\n" for name in "abcd")
    flow = tmp_path / "flow.dag"
    flow.write_text(f"{nodes}PRIORITY c 10\nPRIORITY b -1\nPRIORITY d 5\n", "utf-8")
    assert ran(flow, "--workers", "1") == 0
    assert began(flow) == ["c", "d", "a", "b"]


def test_functions_go_by_priority_too() -> None:
    seen: list[object] = []
    flow = workflow(*(Task(name=name, priority=number) for name, number in (("a", 1), ("b", 3), ("c", None), ("d", 2))))
    eligo.run(flow, seen.append, workers=1)
    assert seen == ["b", "d", "a", "c"]


def test_tasks_that_come_later_have_no_priority_of_their_own() -> None:
    flow = workflow(Task(name="a", priority=-1), Task(name="b", priority=4))
    game = Execution(flow.dag)
    live = allocator("finish", flow, game, rules=None)
    live.hand_out([Ask()])
    game.grow(["new"])
    assert [grant.tasks for grant in live.hand_out([Ask(), Ask()])] == [("new",), ("a",)]


def test_a_server_goes_by_priority_too() -> None:
    flow = parse(
        generate(
            workflow(*(Task(name=n, command="true", priority=p) for n, p in (("a", 1), ("b", 3), ("c", 2)))), "json"
        )
    )
    ready = prepare(flow, Wishes())
    live = allocator("finish", ready.flow, rules=None, order=ready.order)
    assert [grant.tasks for grant in live.hand_out([Ask()] * 3)] == [("b",), ("c",), ("a",)]


@pytest.mark.parametrize(("options", "name"), [(["--batch"], "batch-optimal"), (["--policy", "cluster"], "cluster")])
def test_a_policy_that_does_not_follow_priorities_says_so(
    options: Sequence[str], name: str, tmp_path: Path, capsys: Captured
) -> None:
    tasks: list[dict[str, Any]] = [{"name": "a", "run": "true"}, {"name": "b", "run": "true", "priority": 3}]
    assert ran(written(tmp_path, tasks), *options) == 0
    assert f"policy {name} ignores the priorities of tasks" in capsys.readouterr().err
    with pytest.raises(eligo.InputError, match="does not use the priorities of tasks"):
        prepare(parse(json.dumps({"tasks": tasks})), Wishes(policy=name))
    with pytest.warns(UserWarning, match=f"policy {name} ignores the priorities of tasks"):
        eligo.run(parse(json.dumps({"tasks": tasks})), policy=name)


def test_why_a_task_stands_where_it_does_counts_its_priority(tmp_path: Path, capsys: Captured) -> None:
    tasks: list[dict[str, Any]] = [{"name": "a", "run": "true"}, {"name": "b", "run": "true", "priority": 3}]
    flow = written(tmp_path, tasks)
    assert (ran(flow), command(["why", str(flow), "b"])) == (0, 0)
    assert "Position 1 of 2 in the order of policy priority, then finish." in capsys.readouterr().out


def test_a_rehearsal_goes_by_priority(tmp_path: Path) -> None:
    tasks: list[dict[str, Any]] = [
        {"name": "long", "run": "false", "seconds": 10, "priority": -1},
        *({"name": f"t{i}", "run": "false", "seconds": 5} for i in range(4)),
    ]
    flow = written(tmp_path, tasks)
    assert predicted(eligo.read(flow), 2, "finish") == pytest.approx(20.0)


# Other resources


def overlapping(run: Path, names: str) -> int:
    """The largest number of attempts at tasks with this first letter at once."""
    spans: list[tuple[float, float]] = [
        (each["began"], each["ended"]) for each in attempts(run) if each["name"].startswith(names)
    ]
    return max(sum(began <= moment < ended for began, ended in spans) for moment, _ in spans)


def test_running_tasks_never_use_more_of_a_resource_than_there_is(tmp_path: Path) -> None:
    tasks = [{"name": f"l{i}", "run": "sleep 0.05", "resources": {"licence": 1, "scratch": "2K"}} for i in range(8)]
    flow = written(tmp_path, tasks)
    assert ran(flow, "--workers", "8", "--resource", "licence=2", "--resource", "scratch=1M") == 0
    assert overlapping(Path(f"{flow}.run"), "l") <= 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "needs 3 of the resource 'licence', but its total is not given: give its total with --resource NAME=N"),
        (("--resource", "licence=2"), "needs 3 of the resource 'licence', but only 2 are available"),
        (("--resource", "licence"), "--resource must be NAME=N, such as licence=2 or memory=8G, got 'licence'"),
        (("--resource", "licence=3", "--resource", "cores=2"), "use workers for cores"),
    ],
)
def test_a_task_that_asks_for_more_of_a_resource_is_refused_first(
    options: Sequence[str], words: str, tmp_path: Path, capsys: Captured
) -> None:
    flow = written(
        tmp_path, [{"name": "a", "run": "touch ran"}, {"name": "b", "run": ":", "resources": {"licence": 3}}]
    )
    assert ran(flow, *options) == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "ran").exists()


def test_a_resumed_run_keeps_the_totals_and_labels(tmp_path: Path) -> None:
    tasks = [{"name": "a", "run": "test -e go", "resources": {"licence": 1}, "labels": ["gpu"]}]
    flow = written(tmp_path, tasks)
    assert ran(flow, "--resource", "licence=1", "--label", "gpu", "--retries", "0") == 1
    (tmp_path / "go").touch()
    assert command(["run", "--resume", f"{flow}.run", "-q"]) == 0


def test_added_tasks_keep_to_resources_and_labels_too(tmp_path: Path, capsys: Captured) -> None:
    for key, words in (({"resources": {"licence": 2}}, "only 1 are available"), ({"labels": ["gpu"]}, "needs gpu")):
        added = json.dumps({"tasks": [{"name": "new", "run": "true", **key}]})
        flow = written(tmp_path, [{"name": "a", "run": f"echo '{added}' > $ELIGO_ADD"}], f"{next(iter(key))}.yaml")
        assert ran(flow, "--resource", "licence=1", "--retries", "0") == 1
        assert words in capsys.readouterr().out


def test_functions_share_resources_too() -> None:
    flow = workflow(Task(name="a", resources=(("licence", 1),)))
    assert eligo.run(flow, str, resources={"licence": 1}).values == {"a": "a"}
    with pytest.raises(eligo.InputError, match="its total is not given"):
        eligo.run(flow, str)


def test_every_task_has_its_own_graphics_processors(tmp_path: Path) -> None:
    tasks = [{"name": f"g{i}", "run": f"echo $CUDA_VISIBLE_DEVICES > {i}; sleep 0.05", "gpus": 1} for i in range(6)]
    flow = written(tmp_path, [*tasks, {"name": "two", "run": "echo $CUDA_VISIBLE_DEVICES > two", "gpus": 2}])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_VISIBLE_DEVICES", "5,7")
        assert ran(flow, "--workers", "4") == 0
    assert {(tmp_path / str(i)).read_text("ascii") for i in range(6)} <= {"5\n", "7\n"}
    assert (tmp_path / "two").read_text("ascii") == "5,7\n"
    assert overlapping(Path(f"{flow}.run"), "g") <= 2


def test_a_machine_without_graphics_processors_refuses_tasks_that_need_one(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert ran(written(tmp_path, [{"name": "a", "run": "true", "gpus": 1}])) == 2
    assert "task 'a' needs 1 of the resource 'gpus', but only 0 are available" in capsys.readouterr().err


def test_labels_that_the_machine_has_are_honoured(tmp_path: Path, capsys: Captured) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "true", "labels": ["gpu", "avx"]}])
    assert ran(flow, "--label", "gpu") == 2
    assert "labels (task 'a', avx)" in capsys.readouterr().err
    assert ran(flow, "--label", "gpu", "--label", "avx") == 0


# Memory that grows


def test_memory_grows_after_every_failure_and_the_last_repeats(tmp_path: Path) -> None:
    line = 'echo "$ELIGO_CORES $ELIGO_MEMORY" >> seen; test -e enough'
    flow = written(tmp_path, [{"name": "a", "run": line, "memory": ["16M", 20_000_000, "1G"], "cores": 2}])
    assert ran(flow, "--retries", "3") == 1
    amounts = ["2 16777216", "2 20000000", "2 1073741824", "2 1073741824"]
    assert (tmp_path / "seen").read_text("ascii").splitlines() == amounts


def test_a_retry_with_more_memory_than_there_is_is_refused_first(tmp_path: Path, capsys: Captured) -> None:
    flow = written(tmp_path, [{"name": "a", "run": "touch ran", "memory": ["1K", "99T"]}])
    assert ran(flow) == 2
    assert "task 'a' needs, after a failure, 101,376 GiB of memory, but only" in capsys.readouterr().err
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("keys", "warns"),
    [
        ({"memory": ["1G", "2G"]}, True),
        ({"timeout": ["1m", "2m", "3m"], "retries": 1}, True),
        ({"memory": ["1G", "2G"], "retries": 1}, False),
        ({"timeout": "1m"}, False),
    ],
)
def test_amounts_that_no_attempt_uses_are_named(
    keys: dict[str, Any], warns: bool, tmp_path: Path, capsys: Captured
) -> None:
    assert ran(written(tmp_path, [{"name": "a", "run": "true", **keys}]), "--retries", "0") == 0
    assert ("'a' states more amounts of memory or time limits than it has" in capsys.readouterr().err) == warns


@pytest.mark.parametrize(
    ("memory", "first", "more"),
    [("2G", 2**31, ()), ("1.5k", 1536, ()), (8e9, 8 * GB, ()), (["500M", "1T"], 500 * 2**20, (2**40,)), ([7], 7, ())],
)
def test_memory_is_read_with_units_and_written_back(memory: object, first: int, more: tuple[int, ...]) -> None:
    flow = parse(json.dumps({"tasks": [{"name": "a", "memory": memory}]}))
    assert (flow.task("a").memory, flow.task("a").more_memory) == (first, more)
    assert parse(generate(flow, "yaml")).task("a") == flow.task("a")


@pytest.mark.parametrize(
    "keys",
    [
        {"memory": "2 apples"},
        {"memory": ["1G", -1]},
        {"gpus": 1.5},
        {"resources": {"cores": 1}},
        {"resources": {"licence": 0}},
        {"resources": {"a b": 1}},
        {"resources": ["licence"]},
    ],
)
def test_needs_that_mean_nothing_are_refused(keys: dict[str, object]) -> None:
    with pytest.raises(eligo.InputError, match="a"):
        parse(json.dumps({"tasks": [{"name": "a", **keys}]}))


def test_what_other_formats_cannot_represent_is_told() -> None:
    tasks = [{"name": "a", "run": "true", "gpus": 2, "resources": {"licence": 1}, "memory": [1, 2]}]
    flow = parse(json.dumps({"tasks": tasks}))
    assert lost(flow, "json") == []
    assert {"other resources (1 task)", "memory after failures (1 task)"} <= {*lost(flow, "wfcommons")}


def test_a_server_refuses_resources_unless_they_are_ignored() -> None:
    flow = parse(json.dumps({"tasks": [{"name": "a", "run": "true", "resources": {"licence": 1}, "gpus": 1}]}))
    with pytest.raises(eligo.InputError, match=r"resources \(task 'a', gpus/licence\)"):
        prepare(flow, Wishes())
    assert prepare(flow, Wishes(ignore="resources")).flow.task("a").name == "a"


# Rehearsals


def test_a_rehearsal_knows_cores_memory_and_resources(tmp_path: Path, capsys: Captured) -> None:
    for key in ({"cores": 2}, {"memory": "99T"}, {"resources": {"licence": 1}}):
        tasks = [{"name": f"t{i}", "run": "false", "seconds": 10} | json.loads(json.dumps(key)) for i in range(4)]
        flow = written(tmp_path, tasks)
        assert ran(flow, "--rehearse", "0.4", "--resource", "licence=1", "--json") == 0
        (rehearsal,) = json.loads(capsys.readouterr().out)["rehearsals"]
        assert rehearsal["makespan"] > 38, key
