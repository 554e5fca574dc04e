"""Dags that grow while they are executed: each against a twin that is built from scratch on what has grown."""

import subprocess
import sys
import time
from array import array
from contextlib import closing
from pathlib import Path
from random import Random

import numpy as np
import pytest

from eligo import policies
from eligo.allocating import ALLOCATORS, Allocator, Ask, ByPolicy, Rules, allocator
from eligo.batches import Batches
from eligo.dag import Dag
from eligo.engines import Function
from eligo.engines.registry import engine_on
from eligo.errors import CycleError, InputError, MoveError, StateError, UnknownTaskError
from eligo.execution import EXECUTED, GROW, RELEASE, STATES, Addition, Execution, unpacked
from eligo.pages.folder_source import WatchedProcess, WatchedRun, looked_at
from eligo.pages.ready_curve import ReadyCurve
from eligo.running.api import prepare_run, run
from eligo.running.folder import RunFolder
from eligo.running.loop import Runner, Settings
from eligo.stores import Store, read_run
from eligo.workflow import Task, Workflow
from running_cases import downgrade

MOVES = 40


class Play:
    """An execution at which chance plays and to which chance adds, with the dag that it should have."""

    def __init__(self, seed: int, tasks: int = 4) -> None:
        self.random = Random(seed)
        self.tasks = [f"t{i}" for i in range(tasks)]
        self.arcs = [
            (u, v) for i, u in enumerate(self.tasks) for v in self.tasks[i + 1 :] if self.random.random() < 0.4
        ]
        self.begun = Dag.from_arcs(self.arcs, self.tasks)
        self.game = Execution(self.begun)

    @property
    def grown(self) -> Dag:
        return Dag.from_arcs(self.arcs, self.tasks)

    def step(self) -> None:
        """Any move that may be made, or a few tasks more."""
        game, random = self.game, self.random
        if random.random() < 0.25:
            self.grow()
        elif game.allocated and random.random() < 0.6:
            task = random.choice(list(game.allocated))
            random.choice((game.complete, game.complete, game.complete, game.release, game.fail))(task)
        elif game.failed and random.random() < 0.5:
            game.release(random.choice(list(game.failed)))
        elif game.eligible:
            self.take()

    def take(self) -> None:
        task = self.random.choice(list(self.game.eligible))
        later = [
            v for v in self.game.dag.children(task) if all(self.done(u) or u == task for u in self.game.dag.parents(v))
        ]
        self.game.take(task, *later[: self.random.randrange(2)])

    def done(self, task: str) -> bool:
        return task in self.game.executed

    def grow(self) -> None:
        """New tasks, with arcs from anything and to what nobody has had; what would go round in a circle is refused."""
        random, game = self.random, self.game
        fresh = [f"t{len(self.tasks) + i}" for i in range(random.randint(1, 3))]
        free = [task for task in self.tasks if game.state(task) in {"waiting", "eligible"}]
        arcs = [(random.choice([*self.tasks, *fresh]), task) for task in fresh if random.random() < 0.8]
        arcs += [(random.choice(fresh), random.choice(free)) for _ in range(random.randrange(3)) if free]
        try:
            expected = Dag.from_arcs([*self.arcs, *arcs], [*self.tasks, *fresh])
        except CycleError:
            before = stands(game), bytes(game.journal), len(game.additions)
            with pytest.raises(CycleError):
                game.grow(fresh, arcs)
            assert (stands(game), bytes(game.journal), len(game.additions)) == before
            return
        ready = game.grow(fresh, arcs)
        assert set(ready) == {task for task in fresh if all(map(self.done, expected.parents(task)))}
        self.tasks, self.arcs = [*self.tasks, *fresh], [*self.arcs, *arcs]


def stands(game: Execution) -> list[tuple[object, str, int]]:
    """Where every task stands, how many have it, and in which order tasks came there."""
    inside = [list(tasks) for tasks in (game.eligible, game.allocated, game.held, game.failed, game.executed)]
    return [(task, game.state(task), game.holders(task)) for row in inside for task in row]


def twin(game: Execution, dag: Dag) -> Execution:
    """An execution that began with all of the dag, with the same moves but for what was taken in vain."""
    moves = [move for move in game.journal if move >> 32 != GROW]
    back = {move & 0xFFFFFFFF: place for place, move in enumerate(moves) if move >> 32 == RELEASE}
    return Execution.replay(dag, [move for place, move in enumerate(moves) if place > back.get(move & 0xFFFFFFFF, -1)])


@pytest.mark.parametrize("seed", range(30))
def test_what_has_grown_stands_where_one_stands_that_began_so(seed: int) -> None:
    for part in range(20):
        play = Play(1_000 * seed + part)
        for _ in range(MOVES):
            play.step()
            if play.random.random() < 0.3:
                assert play.game.dag == play.grown  # which makes one dag of it at any moment
        game, other = play.game, twin(play.game, play.grown)
        assert game.dag == play.grown
        assert bytes(game.codes) == bytes(other.codes)
        assert game.missing == other.missing
        assert (game.eligible, list(game.executed), game.left) == (other.eligible, list(other.executed), other.left)
        assert (set(game.blocked), game.finished, game.stuck) == (set(other.blocked), other.finished, other.stuck)


@pytest.mark.parametrize("seed", range(15))
def test_a_replay_and_whoever_follows_come_to_the_same(seed: int) -> None:
    for part in range(20):
        play = Play(1_000_000 + 1_000 * seed + part)
        follower = Execution(play.begun)
        for _ in range(MOVES):
            play.step()
            if play.random.random() < 0.3:
                follower.follow(play.game.since(len(follower.journal)), play.game.additions)
                assert stands(follower) == stands(play.game)
        game = play.game
        for again in (
            Execution.replay(play.begun, game.journal),
            Execution.replay(play.begun, array("q", bytes(game.journal)), game.additions),
        ):
            assert stands(again) == stands(game)
            assert bytes(again.journal) == bytes(game.journal)
            assert (again.additions, again.dag) == (game.additions, game.dag)
            assert again.story() == game.story()


def test_tasks_come_below_beside_and_above() -> None:
    game = Execution({"a": [], "b": ["a"], "c": []})
    game.take("a")
    assert game.grow({"below": ["a", "b"], "beside": []}) == ("beside",)
    assert game.grow(["above"], [("above", "c"), ("above", "b")]) == ("above",)
    assert list(game.eligible) == ["beside", "above"]
    assert (game.state("c"), game.state("below")) == ("waiting", "waiting")
    assert game.complete("a") == ()
    assert game.execute("above") == ("b", "c")
    assert game.execute("b") == ("below",)
    assert game.story()[:3] == [("take", "a"), ("grow", ("below", "beside")), ("grow", ("above",))]
    assert [kind == GROW for kind, _ in unpacked(game.since(0))].count(True) == 2
    assert game.left == 3
    assert not game.finished


def test_what_is_finished_may_go_on() -> None:
    game = Execution({"a": []})
    game.execute("a")
    assert game.finished
    assert game.grow(["b"], [("a", "b")]) == ("b",)
    assert (game.finished, game.idle) == (False, False)
    assert game.grow([]) == ()
    assert len(game.additions) == 1


@pytest.mark.parametrize(
    ("tasks", "arcs", "error", "said"),
    [
        (["x"], [("x", "done")], StateError, "'done' cannot be below 'x': it is executed"),
        (["x"], [("x", "out")], StateError, "'out' cannot be below 'x': it is allocated"),
        (["x"], [("x", "kept")], StateError, "'kept' cannot be below 'x': it is held"),
        (["x"], [("x", "bad")], StateError, "'bad' cannot be below 'x': it is failed"),
        (["x"], [("end", "x"), ("x", "wait")], CycleError, "a cycle, so no order exists: "),
        (["x", "y"], [("x", "y"), ("y", "x")], CycleError, "a cycle, so no order exists: "),
        (["x"], [("x", "x")], CycleError, "a task depends on itself: x -> x"),
        (["done"], [], InputError, "task 'done' already exists"),
        (["x", "x"], [], InputError, "duplicate task 'x'"),
        (
            ["x"],
            [("ready", "end")],
            InputError,
            "cannot add an arc between the existing tasks 'ready' and 'end'",
        ),
        (["x"], [("nobody", "x")], UnknownTaskError, "there is no task named 'nobody'"),
        (["x"], [("ready", "x", "end")], InputError, "an arc must be a pair"),
        (["x"], [(["ready"], "x")], InputError, "must be hashable"),
        ([["x"]], [], InputError, "must be hashable"),
        ([], [("ready", "wait")], InputError, "existing tasks"),
    ],
)
def test_what_cannot_be_added_is_refused_and_changes_nothing(
    tasks: list[str], arcs: list[tuple[str, str]], error: type[Exception], said: str
) -> None:
    game = Execution(
        {"done": [], "out": ["done"], "kept": ["out"], "bad": [], "ready": [], "wait": ["ready"], "end": ["wait"]}
    )
    game.execute("done")
    game.take("out", "kept")
    game.take("bad")
    game.fail("bad")
    before = stands(game), bytes(game.journal), game.dag, bytes(game.codes), list(game.missing)
    with pytest.raises(error, match=said.replace("(", r"\(")):
        game.grow(tasks, arcs)
    assert (stands(game), bytes(game.journal), game.dag, bytes(game.codes), list(game.missing)) == before
    assert game.additions == []


def test_a_circle_is_told_by_its_tasks() -> None:
    game = Execution({"a": [], "b": ["a"], "c": ["b"]})
    with pytest.raises(CycleError) as caught:
        game.grow(["x", "y"], [("c", "x"), ("x", "y"), ("y", "a")])
    assert set(caught.value.cycle) == {"a", "b", "c", "x", "y"}


def test_names_may_be_anything_and_the_dag_as_given_stays_as_it_is() -> None:
    dag = Dag.from_arcs([((1, 2), 3)])
    game = Execution(dag)
    game.grow([4.5, frozenset()], [(3, 4.5)])
    assert (4.5 in game.eligible, frozenset() in game.eligible, 4.5 in dag, len(dag)) == (False, True, False, 2)
    assert game.dag.tasks == ((1, 2), 3, 4.5, frozenset())
    with pytest.raises(UnknownTaskError):
        game.state([])


def test_a_late_result_of_what_waits_again_is_refused() -> None:
    game = Execution({"a": []})
    game.take("a")
    game.release("a")
    game.grow(["b"], [("b", "a")])
    with pytest.raises(MoveError, match="it is waiting"):
        game.complete("a", late=True)
    assert game.execute("b") == ("a",)


def test_a_journal_without_what_was_added_is_refused() -> None:
    game = Execution({"a": []})
    game.grow(["b"])
    with pytest.raises(InputError, match="not possible in that state"):
        Execution.replay({"a": []}, list(game.journal))
    for wrong in (
        Addition(("a",), ()),
        Addition(("b",), ((0, 7),)),
        Addition(("b",), ((0, 1), (0, 1))),
        Addition(("b",), ((0, 0),)),
    ):
        with pytest.raises(InputError):
            Execution.replay({"a": []}, list(game.journal), [wrong])


def test_what_was_left_is_told_of_the_tasks_that_there_were() -> None:
    game = Execution({"a": [], "b": []})
    game.take("a")
    game.grow(["c"])
    game.take("c")
    assert [game.journal.left_at(seen, 3).tolist() for seen in range(4)] == [
        [True, True],
        [False, True],
        [False, True, True],
        [False, True, False],
    ]


def test_to_add_costs_what_is_added() -> None:
    """Whoever adds to a large dag one task at a time does not wait for the dag."""
    n = 200_000
    game = Execution(Dag.from_arrays(n, np.arange(n - 1), np.arange(1, n)))
    before = game.graph._dag
    for i in range(100):
        game.grow([f"more {i}"], [("5", f"more {i}")])
    assert game.graph._dag is before  # nobody asked for it
    assert (len(game.dag), game.dag.children("5")[-1]) == (n + 100, "more 99")
    assert STATES[game.codes[n + 99]] == "waiting"


# Those who follow

NAMES = sorted({*policies.POLICIES, *ALLOCATORS} - {"dask"})


def drained(game: Execution, follower: Allocator, asks: int = 3) -> list[object]:
    """Everything that is left, handed out and done."""
    given: list[object] = []
    game.give_up(*list(game.allocated), *list(game.held))
    for task in list(game.failed):
        game.release(task)
    while not game.finished:
        grants = follower.hand_out([Ask(client) for client in range(asks)])
        assert len(grants) == min(asks, len(grants) + len(game.eligible))
        for grant in grants:
            given += grant.tasks
            for task in grant.tasks:
                game.complete(task)
    return given


@pytest.mark.parametrize("name", NAMES)
def test_every_allocator_hands_out_what_was_added_and_all_of_it(name: str) -> None:
    for seed in range(20):
        play = Play(seed, tasks=6)
        follower = allocator(name, play.game.dag, play.game, rules=None if seed % 2 else Rules(slow=0.5, copies=2))
        for _ in range(MOVES):
            play.step()
            if play.random.random() < 0.4:
                for grant in follower.hand_out([Ask("ann", size=play.random.randint(1, 3)), Ask("bob", modest=True)]):
                    assert set(grant.tasks) <= set(play.game.allocated) | set(play.game.held)
        drained(play.game, follower)
        assert play.game.dag == play.grown


@pytest.mark.parametrize("name", ["balanced", "critical-path", "ready"])
def test_a_policy_chooses_as_one_does_that_was_made_for_what_has_grown(name: str) -> None:
    for seed in range(20):
        play = Play(seed, tasks=6)
        order = play.begun.named(play.begun.order)
        follower = allocator(name, play.begun, play.game, rules=None, order=order)
        assert isinstance(follower, ByPolicy)
        for _ in range(MOVES):
            play.step()
            follower.hand_out([])
        other = Execution.replay(play.begun, play.game.journal)
        fresh = allocator(name, play.begun, other, rules=None, order=order)
        assert isinstance(fresh, ByPolicy)
        assert follower.policy.score.tolist() == fresh.policy.score.tolist()
        assert set(ready_on(follower)) == set(play.game.eligible)
        drained(play.game, follower)
        drained(other, fresh)


def ready_on(follower: ByPolicy) -> list[object]:
    """What an allocator would hand out, the first first."""
    game = Execution.replay(follower.execution.begun, follower.execution.journal)
    again = ByPolicy(follower.policy, game)
    return [task for grant in again.hand_out([Ask(i) for i in range(len(game.eligible))]) for task in grant.tasks]


def test_what_hangs_below_a_task_since_counts_for_it() -> None:
    for name in ("critical-path", "finish", "balanced", "greedy"):
        game = Execution({"a": [], "b": []})
        follower = allocator(name, game.dag, game, rules=None)
        game.grow({"c": ["b"], "d": ["c"]})
        assert [grant.tasks for grant in follower.hand_out([Ask(), Ask()])] == [("b",), ("a",)]


def test_first_come_is_first_served_among_what_was_added_too() -> None:
    game = Execution({"a": [], "b": ["a"], "c": ["a"]})
    follower = allocator("fifo", game.dag, game, rules=None)
    follower.hand_out([Ask()])
    game.grow(["early"])
    game.complete("a")
    game.grow({"late": ["a"]})
    found = [grant.tasks[0] for grant in follower.hand_out([Ask(i) for i in range(4)])]
    assert (found[0], set(found[1:3]), found[3]) == ("early", {"b", "c"}, "late")


def test_a_policy_that_nobody_knows_by_name_keeps_its_scores() -> None:
    dag = Dag.from_arcs([], tasks=["a", "b"])
    game = Execution(dag)
    follower = ByPolicy(policies.Policy("mine", dag, np.array([1.0, 2.0])), game)
    game.grow({"c": [], "d": ["c"]})
    assert [grant.tasks[0] for grant in follower.hand_out([Ask(i) for i in range(3)])] == ["b", "a", "c"]
    assert follower.policy.score.tolist() == [1.0, 2.0, 1.0, 1.0]


def test_an_allocator_can_begin_with_what_has_grown() -> None:
    begun = {"a": [], "b": ["a"]}
    game = Execution(begun)
    game.grow({"c": ["b"], "d": ["a"]})
    for name in NAMES:
        for flow in (begun, game.dag):
            follower = allocator(name, flow, Execution.replay(begun, game.journal), order=None)
            assert set(drained(follower.execution, follower)) == {"a", "b", "c", "d"}
    with pytest.raises(InputError, match="another workflow"):
        allocator("finish", {"a": [], "x": []}, game)


def test_seconds_of_what_was_added_are_believed_to_be_the_mean() -> None:
    flow = Workflow(
        Dag.from_arcs([], ["a", "b"]), {name: Task(name=name, seconds=s) for name, s in (("a", 2.0), ("b", 4.0))}
    )
    game = Execution(flow)
    follower = allocator("finish", flow, game)
    game.grow(["c", "d"])
    (grant,) = follower.hand_out([Ask("ann", seconds=10.0)])
    assert len(grant.tasks) == 3
    follower.learn("ann", "c", 5.0)
    follower.learn("ann", "a", 5.0)
    assert follower.speeds.work == 3.0 + 2.0


def test_the_best_batch_is_that_of_what_has_grown() -> None:
    for seed in range(40):
        play = Play(seed, tasks=6)
        batches = Batches(play.game)
        for _ in range(MOVES):
            play.step()
            size = play.random.randint(1, 3)
            assert batches.best(size).eligible_after == Batches(play.game).best(size).eligible_after


def test_a_curve_of_ready_tasks_follows_what_was_added() -> None:
    for seed in range(100):
        play, often, ready = Play(seed), list[int](), dict[int, int]()
        curve = ReadyCurve(play.game)
        for _ in range(MOVES):
            play.step()
            game = play.game
            ready[len(game.executed)] = sum(
                game.codes[v] != EXECUTED and not game.missing[v] for v in range(len(game.dag))
            )
            if play.random.random() < 0.3:
                curve.follow()
                often.append(curve.counts[-1])
        curve.follow()
        once = ReadyCurve(Execution.replay(play.begun, play.game.journal))
        once.follow()
        assert (curve.counts, curve.order) == (once.counts, once.order)
        assert curve._ready == ready[len(play.game.executed)]


# Stores and runs


def test_a_store_keeps_what_was_added_and_a_restart_replays_it(tmp_path: Path) -> None:
    for seed in range(10):
        play, path = Play(seed), tmp_path / f"{seed}.db"
        for _ in range(4):  # opened and closed again and again
            with closing(Store(path)) as store:
                if not store.tasks():
                    store.begin(dict.fromkeys(play.begun.tasks, b""))
                for _ in range(MOVES // 4):
                    play.step()
                    store.add(play.game.since(store.kept), (), play.game.additions[store.grown :])
                store.flush()
                assert (store.kept, store.grown) == (len(play.game.journal), len(play.game.additions))
        with closing(Store(path)) as store:
            again = Execution.replay(play.begun, store.moves(), store.additions())
        assert (stands(again), again.dag) == (stands(play.game), play.grown)
        assert read_run(path).additions == play.game.additions


def test_what_is_added_goes_to_the_disk_with_the_move_that_adds_it(tmp_path: Path) -> None:
    """Killed at any moment, a store has both or neither."""
    code = """
import sys
from eligo.execution import Execution
from eligo.stores import Store
game, store = Execution({"a": []}), Store(sys.argv[1])
store.begin({"a": b""})
for i in range(10**9):
    game.grow({f"b{i}": ["a"]})
    store.add(game.since(store.kept), (), game.additions[store.grown :])
    print(i, flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "run.db")], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        deadline = time.monotonic() + 30.0
        while time.monotonic() < deadline and not kept_moves(tmp_path / "run.db"):
            process.stdout.readline()
        process.kill()
    with closing(Store(tmp_path / "run.db")) as store:
        again = Execution.replay({"a": []}, store.moves(), store.additions())
        assert len(again.additions) == store.kept == store.grown > 0


def kept_moves(path: Path) -> int:
    try:
        return len(read_run(path).moves)
    except InputError:  # it is only being made
        return 0


def test_an_older_store_is_brought_up_to_date_and_can_be_looked_at_before(tmp_path: Path) -> None:
    path = tmp_path / "run.db"
    with closing(Store(path)) as store:
        store.begin({"a": b""})
    downgrade(path, "DROP TABLE addition; PRAGMA user_version = 1;")
    assert read_run(path).additions == []
    with closing(Store(path)) as store:
        assert (store.additions(), list(store.tasks())) == ([], ["a"])


def test_only_text_can_be_kept_as_a_name(tmp_path: Path) -> None:
    game = Execution({"a": []})
    game.grow([7])
    with (
        closing(Store(tmp_path / "run.db")) as store,
        pytest.raises(InputError, match="must be a string, got 7"),
    ):
        store.add(game.since(0), (), game.additions)


def test_a_run_that_grows_goes_on_after_it_was_stopped(tmp_path: Path) -> None:
    flow = Workflow(Dag.from_parents({"a": [], "b": ["a"]}), {name: Task(name=name, command=":") for name in "ab"})

    def growing(runner: Runner) -> None:
        game = runner.execution
        if "a" in game.executed and not game.additions:
            game.grow({"c": ["a"], "d": ["b", "c"]})
        if "c" in game.executed and "e" not in game.dag:
            game.grow({"e": ["d"], "f": []})
            runner.stop()

    results = []
    for turn in range(2):
        with closing(RunFolder(tmp_path / "run")) as folder:
            folder.begin(flow, resumed := folder.resume(flow))
            game = resumed.execution
            assert len(game.additions) == 2 * turn
            follower = allocator("finish", flow, game, rules=Rules(slow=0.5))
            engine = engine_on("local", 2, functions=True)
            runner = Runner(game, follower, engine, lambda task, attempt: Function(len, (task,)), folder.store)
            runner.watch = growing if not turn else lambda runner: None
            runner.run()
            engine.close()
            results.append(game.finished)
    assert results == [False, True]
    seen = WatchedRun(tmp_path / "run")
    assert (seen.flow.dag, seen.counts["done"], seen.labels) == (game.dag, 6, ("a", "b", "c", "d", "e", "f"))
    seen.ready.follow()
    assert len(seen.ready.counts) == 7
    assert seen.curve("plan") is None
    assert {seen.labels[task] for task in seen.attempts.last} == set("abcdef")


def test_a_run_that_grew_can_be_looked_at_while_it_goes_on(tmp_path: Path) -> None:
    flow = Workflow(Dag.from_parents({"a": [], "b": ["a"]}), {name: Task(name=name, command=":") for name in "ab"})
    with closing(RunFolder(tmp_path / "run")) as folder:
        folder.begin(flow, resumed := folder.resume(flow))
        game = resumed.execution
        watched = looked_at(tmp_path / "run")
        assert len(watched.flow) == 2
        for grow, task in (({"c": ["a"]}, "a"), ({"d": []}, "c")):
            game.grow(grow)
            game.execute(task)
            folder.store.add(game.since(folder.store.kept), (), game.additions[folder.store.grown :])
            folder.store.flush()
            watched = looked_at(tmp_path / "run", watched)
            assert (watched.flow.dag, stands(watched.execution)) == (game.dag, stands(game))
            assert watched.ready.counts[-1] == len(game.eligible)


def test_a_task_that_was_added_without_a_command_is_refused(tmp_path: Path) -> None:
    flow = Workflow(Dag.from_parents({"a": []}), {"a": Task(name="a", command="true")})
    with closing(RunFolder(tmp_path / "run")) as folder:
        folder.begin(flow, resumed := folder.resume(flow))
        game = resumed.execution
        game.grow({"b": ["a"]})
        folder.store.add(game.since(folder.store.kept), (), game.additions)
    with pytest.raises(InputError, match="task 'b' was added to this run without a command"):
        run(flow, folder=tmp_path / "run")
    other = Workflow(Dag.from_parents({"a": []}), {"a": Task(name="a", command="echo 2")})  # begun anew, as ever
    assert run(other, folder=tmp_path / "run").ok


def test_the_display_goes_on_with_what_was_added(tmp_path: Path) -> None:
    flow = Workflow(Dag.from_parents({"a": [], "b": ["a"]}), {name: Task(name=name, command=":") for name in "ab"})
    with closing(RunFolder(tmp_path / "run")) as folder:
        runner, _ = prepare_run(flow, "local", Settings(workers=2), folder)
        process, game = WatchedProcess(flow, runner), runner.execution
        game.execute("a")
        process.look()
        game.grow({"c": ["b"], "d": [], "e": ["d"]})
        game.take("d")
        runner.tries.causes[game.graph.number("d")] = "exit code 1"
        game.fail("d")
        process.look()
        assert (len(process.flow), sum(process.counts.values())) == (5, 5)
        assert (process.counts["failed"], process.counts["blocked"], process.counts["ready"]) == (1, 1, 1)
        runner.took.extend((task, 2.0) for task in ("a", "d", "a"))
        process.look()
        process.foresight()()
        assert process.remaining is not None
        runner.engine.close()
