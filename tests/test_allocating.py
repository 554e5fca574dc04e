"""Allocators: each by itself against a plain twin, what clients can ask for, and what they are told."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from conftest import random_small_dag
from eligo import families, policies
from eligo.allocating import (
    PRUDENT,
    Allocator,
    Ask,
    ByBatch,
    ByCluster,
    ByPolicy,
    Grant,
    Prudent,
    Rules,
    Speeds,
    allocator,
)
from eligo.batches import Batches
from eligo.dag import Dag
from eligo.errors import InputError
from eligo.execution import Execution
from eligo.workflow import Task, Workflow
from slow_games import SlowBoard
from slow_theory import best_batch

FORK = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}
EVERY = ("balanced", "ready", "fifo", "critical-path", "batch-optimal", "cluster")


def tasks_of(grants: Sequence[Grant]) -> list[tuple[Any, ...]]:
    return [grant.tasks for grant in grants]


# By policy


@pytest.mark.parametrize("case", range(60))
def test_a_policy_follows_what_happens(case: int) -> None:
    """Takes, losses, failures and results at random, by anybody, against scores computed from scratch."""
    rng = np.random.default_rng(case)
    dag = random_small_dag(rng, 14)
    policy = policies.balanced(dag, rng.permutation(len(dag)).astype(np.int32))
    game = Execution(dag)
    live, twin = ByPolicy(policy, game), SlowBoard(policy, 0)
    while not game.finished:
        modest = bool(rng.random() < 0.3)
        if twin.ready and rng.random() < 0.6:
            v = twin.worst() if modest else twin.best()
            assert tasks_of(live.hand_out([Ask(modest=modest)])) == [(dag.tasks[v],)]
            twin.take(v)
        elif game.failed and rng.random() < 0.5:
            task = next(iter(game.failed))
            game.release(task)
            twin.arrive(dag.index[task])
        elif game.allocated:
            task = str(rng.choice(sorted(game.allocated)))
            v = dag.index[task]
            match rng.choice(["complete", "complete", "release", "fail"]):
                case "complete":
                    game.complete(task)
                    twin.finish(v)
                case "release":
                    game.release(task)
                    twin.put_back(v)
                case _:
                    game.fail(task)
                    twin.out.remove(v)
        assert {dag.index[t] for t in game.eligible} == set(twin.ready)
        if case % 3 == 0:
            live = ByPolicy(policy, game)  # as a server that starts again does
    assert live.hand_out([Ask()]) == []


def test_two_policies_serve_one_execution() -> None:
    game = Execution(FORK)
    one, two = ByPolicy(policies.fifo(game.dag), game), ByPolicy(policies.balanced(game.dag), game)
    assert tasks_of(one.hand_out([Ask()])) == [("a",)]
    assert two.hand_out([Ask()]) == []
    game.complete("a")
    assert len({*tasks_of(two.hand_out([Ask()])), *tasks_of(one.hand_out([Ask()]))}) == 2


def test_who_asks_for_several_gets_what_waits_for_nothing_else() -> None:
    game = Execution(FORK)
    rule = policies.from_order(game.dag, "abcd")
    assert tasks_of(ByPolicy(rule, game).hand_out([Ask(size=9), Ask()])) == [("a", "b", "c", "d")]
    assert (set(game.allocated), set(game.held)) == ({"a"}, {"b", "c", "d"})


def test_who_asks_for_seconds_gets_about_so_many() -> None:
    flow = Workflow(Dag.from_arcs([], "abc"), {name: Task(name=name, seconds=2.0) for name in "abc"})
    assert tasks_of(allocator("ready", flow).hand_out([Ask(seconds=4.5)])) == [("a", "b")]
    assert tasks_of(allocator("ready", flow).hand_out([Ask(seconds=1.0)])) == [("a",)]  # at least one
    assert tasks_of(allocator("ready", flow).hand_out([Ask(seconds=9.0, speed=0.5)])) == [("a", "b")]
    with pytest.raises(InputError, match="run times are not known"):
        allocator("ready", flow.dag).hand_out([Ask(seconds=3.0)])


def test_a_policy_needs_its_own_workflow() -> None:
    with pytest.raises(InputError, match="another workflow"):
        ByPolicy(policies.fifo(Dag.from_arcs([("a", "b")])), Execution({"a": [], "c": ["a"]}))


# By batch and by cluster


def test_those_who_ask_together_get_the_best_batch() -> None:
    rng = np.random.default_rng(5)
    for _ in range(60):
        dag = random_small_dag(rng, 12)
        game = Execution(dag)
        live = ByBatch(game)
        while not game.finished:
            count = int(rng.integers(1, 4))
            best = best_batch(dag, game.executed, min(count, len(game.eligible)))[1]
            for grant in live.hand_out([Ask(i) for i in range(count)]):
                game.complete(*grant.tasks)
            assert len(game.eligible) == best


def test_of_a_batch_modest_clients_get_the_shortest_paths() -> None:
    game = Execution({"a": [], "b": [], "c": ["a"], "d": ["c"]})
    grants = ByBatch(game).hand_out([Ask("slow", modest=True), Ask("fast")])
    assert tasks_of(grants) == [("b",), ("a",)]


def test_batches_are_counted_in_tasks() -> None:
    with pytest.raises(InputError, match="give a size instead"):
        ByBatch(Execution(FORK)).hand_out([Ask(seconds=1.0)])


def test_modest_clients_get_the_end_of_the_plan() -> None:
    game = Execution({"a": [], "b": [], "c": ["a"], "d": ["c"]})
    assert tasks_of(ByCluster(game.dag, game).hand_out([Ask(modest=True), Ask(size=2)])) == [("b",), ("a", "c")]


# What everybody keeps to


@pytest.mark.parametrize("name", EVERY)
def test_what_a_client_cannot_run_it_does_not_get(name: str) -> None:
    """An ask that nothing fits gets no grant, and those behind it are served."""
    flow = {"a": [], "b": [], "c": [], "d": ["a"]}
    game = Execution(flow)
    asks = [Ask("none", fits=lambda task: False), Ask("b only", fits="b".__eq__), Ask("any")]
    grants = allocator(name, flow, game).hand_out(asks)
    assert [grant.ask.client for grant in grants] == ["b only", "any"]
    assert grants[0].tasks == ("b",)
    assert set(game.allocated) == {"b", *grants[1].tasks}


@pytest.mark.parametrize("name", EVERY)
def test_every_grant_says_why(name: str) -> None:
    (grant,) = allocator(name, FORK).hand_out([Ask("ann")])
    assert len(grant.why.split()) > 3


@pytest.mark.parametrize("name", EVERY)
def test_when_nothing_happened_nothing_is_looked_at(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    game = Execution(FORK)
    live = allocator(name, FORK, game)
    live.hand_out([Ask()])
    live.hand_out([Ask()])
    monkeypatch.setattr(Execution, "since", lambda self, seen: pytest.fail("the journal was read again"))
    assert live.hand_out([Ask()]) == []


def test_tasks_may_be_any_objects() -> None:
    nodes = {1: [], (2, "x"): [1], frozenset({3}): [1]}
    for name in EVERY:
        game = Execution(nodes)
        live = allocator(name, nodes, game)
        while not game.finished:
            for grant in live.hand_out([Ask(), Ask()]):
                game.complete(*grant.tasks)
        assert set(game.executed) == set(nodes)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"size": 0}, "size must be a positive integer, got 0"),
        ({"size": True}, "got True"),
        ({"size": 1.5}, "got 1.5"),
        ({"seconds": 0.0}, "seconds must be positive, got 0.0"),
        ({"seconds": float("nan")}, "seconds must be positive, got nan"),
        ({"speed": -1.0}, "got -1.0"),
    ],
)
def test_asks_that_make_no_sense(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError, match=told):
        Ask(**wrong)


def test_an_execution_of_another_workflow_is_refused() -> None:
    for name in EVERY:
        with pytest.raises(InputError, match="another workflow"):
            allocator(name, FORK, Execution({"a": []}))


# Prudent


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def prudent(flow: object, rules: Rules = PRUDENT, name: str = "balanced") -> tuple[Prudent, Execution, Clock]:
    game, clock = Execution(flow), Clock()
    plain: Allocator = allocator(name, flow, game, rules=None)
    return Prudent(plain, rules, clock), game, clock


def test_slow_clients_get_what_matters_least() -> None:
    live, _, _ = prudent({"a": [], "b": [], "c": ["a"], "d": ["c"]})
    assert tasks_of(live.hand_out([Ask("slow", speed=0.2), Ask("new")])) == [("b",), ("a",)]


def test_speeds_are_learned() -> None:
    live, game, _ = prudent({str(i): [] for i in range(6)} | {"x": ["0"]})
    for client, seconds in (("fast", 1.0), ("fast", 1.0), ("slow", 9.0)):
        (grant,) = live.hand_out([Ask(client)])
        game.complete(*grant.tasks)
        live.learn(client, grant.tasks[0], seconds)
    assert "last, for a slow client" in live.hand_out([Ask("slow")])[0].why
    assert "the first of" in live.hand_out([Ask("fast")])[0].why


def test_long_tasks_wait_for_somebody_faster() -> None:
    """Only the long task is left: the slow client waits while a faster one is here, and takes it when that one is gone."""
    rules = Rules(slow=0.5, long=1.5, expected=np.array([1.0, 1.0, 9.0]))
    live, _, _ = prudent({"a": [], "b": [], "long": []}, rules)
    live.speeds.introduce("slow", 10.0, 1.0)
    live.speeds.introduce("fast", 1.0, 9.0)
    assert tasks_of(live.hand_out([Ask("fast", fits="b".__ne__), Ask("slow")])) == [("a",), ("b",)]
    assert live.hand_out([Ask("slow")]) == []
    live.gone("fast")
    assert tasks_of(live.hand_out([Ask("slow")])) == [("long",)]


def test_a_slow_client_does_not_wait_for_a_fast_one_that_cannot_run_the_long_task() -> None:
    rules = Rules(slow=0.5, long=1.5, expected=np.array([1.0, 1.0, 9.0, 9.0]))
    live, _, _ = prudent({"a": [], "b": [], "long": [], "longer": []}, rules)
    live.speeds.introduce("slow", 10.0, 1.0)
    live.speeds.introduce("fast", 1.0, 9.0)
    assert tasks_of(live.hand_out([Ask("fast", fits={"a", "longer"}.__contains__), Ask("slow")])) == [("a",), ("b",)]
    assert tasks_of(live.hand_out([Ask("slow")])) == [("long",)]
    assert live.hand_out([Ask("slow")]) == [], "the other one can be run by the fast client"


def test_a_copy_goes_out_when_nothing_is_ready_and_a_task_is_overdue() -> None:
    live, game, clock = prudent({"a": [], "b": []}, Rules(copies=2, overdue=2.0))
    live.hand_out([Ask("one"), Ask("two")])
    clock.now = 1.0
    game.complete("a")
    live.learn("one", "a", 1.0)
    assert live.hand_out([Ask("one")]) == []
    assert live.due == 2.0
    clock.now = 2.0
    assert live.hand_out([Ask("two")]) == []  # it has the task itself
    (copy,) = live.hand_out([Ask("one")])
    assert copy.tasks == ("b",)
    assert copy.why == "a copy: it has been running for 2.0 times the mean task time, and nothing else is ready"
    assert game.holders("b") == 2
    assert live.hand_out([Ask("three")]) == []  # two have it
    game.release("b")
    assert tasks_of(live.hand_out([Ask("three")])) == [("b",)]


def test_a_client_that_is_fast_is_served_first_where_that_is_the_rule() -> None:
    live, _, _ = prudent({"a": [], "b": ["a"], "c": []}, Rules(fastest=True))
    grants = live.hand_out([Ask("slow", speed=0.1), Ask("fast", speed=3.0)])
    assert [(grant.ask.client, grant.tasks) for grant in grants] == [("fast", ("a",)), ("slow", ("c",))]


def test_a_grant_carries_the_ask_that_was_made() -> None:
    ask = Ask("slow", speed=0.1)
    live, _, _ = prudent({"a": [], "b": []})
    assert live.hand_out([ask])[0].ask is ask


def test_speeds_know_nothing_of_strangers() -> None:
    speeds = Speeds()
    assert speeds.of("new") is None
    speeds.record("steady", 10.0, work=10.0)
    speeds.record("slow", 50.0, work=10.0)
    assert speeds.of("steady") == pytest.approx(3.0)
    assert speeds.of("slow") == pytest.approx(0.6)
    speeds.forget("slow")
    assert speeds.of("slow") is None


def test_a_poll_of_a_large_execution_reads_only_what_is_new() -> None:
    """Half of a large dag is out; a task comes back, and whoever asks gets what that made ready."""
    game = Execution(families.out_tree(12))
    live: list[Allocator] = [ByPolicy(policies.balanced(game.dag), game), ByBatch(game), ByCluster(game.dag, game)]
    for _ in range(10):
        for task in list(game.eligible):
            game.execute(task)
    for task in list(game.eligible)[1:]:
        game.take(task)
    (first,) = game.eligible
    for each in live:
        (grant,) = each.hand_out([Ask()])
        assert grant.tasks == (first,)
        game.release(first)
    assert Batches(game).best(1).tasks == (first,)


# Where something goes wrong


def odd_one(task: str) -> bool:
    if task == "b":
        raise RuntimeError("cannot tell")
    return task == "c"


@pytest.mark.parametrize("name", EVERY)
def test_an_error_while_choosing_loses_nothing(name: str) -> None:
    """Whoever asked before gets nothing either, and the next poll finds everything."""
    flow: dict[str, list[str]] = {"a": [], "b": [], "c": []}
    game = Execution(flow)
    live = allocator(name, flow, game)
    with pytest.raises(RuntimeError, match="cannot tell"):
        live.hand_out([Ask("first"), Ask("second", fits=odd_one), Ask("third", fits=odd_one)])
    assert set(game.eligible) == set(flow)
    assert {task for grant in live.hand_out([Ask(i) for i in range(3)]) for task in grant.tasks} == set(flow)


def test_seconds_that_nobody_knows_are_refused_before_anything_is_taken() -> None:
    game = Execution(FORK)
    live = allocator("balanced", FORK, game)
    with pytest.raises(InputError, match="run times are not known"):
        live.hand_out([Ask("one"), Ask("two", seconds=5.0)])
    assert tasks_of(live.hand_out([Ask("one")])) == [("a",)]


def test_asks_may_come_from_anywhere() -> None:
    for name in EVERY:
        assert len(allocator(name, FORK).hand_out(Ask(i) for i in range(3))) == 1  # type: ignore[arg-type]


def test_a_client_that_says_how_slow_it_is_does_not_wait_for_itself() -> None:
    rules = Rules(slow=0.5, long=1.5, expected=np.array([1.0, 9.0]))
    live, game, _ = prudent({"a": [], "b": []}, rules)
    live.hand_out([Ask("slow", speed=0.1)])
    game.complete("a")
    assert tasks_of(live.hand_out([Ask("slow", speed=0.1)])) == [("b",)]


def test_the_earliest_due_counts() -> None:
    """Two tasks went out at 0 and 5; whoever can run only the later one does not hide that the other is due first."""
    live, game, clock = prudent({"a": [], "b": [], "c": []}, Rules(copies=2, overdue=2.0))
    live.hand_out([Ask(1, fits="a".__eq__), Ask(2, fits="c".__eq__)])
    clock.now = 5.0
    live.hand_out([Ask(3, fits="b".__eq__)])
    game.complete("c")
    live.learn(2, "c", 5.0)
    assert live.hand_out([Ask(4), Ask(5, fits="b".__eq__)]) == []
    assert live.due == 10.0


@pytest.mark.parametrize("seconds", [float("nan"), -1.0, float("inf"), None, "x", True])
def test_what_is_learned_makes_sense(seconds: Any) -> None:
    live, _, _ = prudent(FORK)
    with pytest.raises(InputError, match="non-negative number"):
        live.learn("ann", "a", seconds)
    with pytest.raises(InputError, match="no task named 'z'"):
        live.learn("ann", "z", 1.0)
    with pytest.raises(InputError, match="each of the 4 tasks"):
        prudent(FORK, Rules(expected=np.array([1.0])))


def test_strangers_who_come_and_go_leave_nothing_behind() -> None:
    live, game, _ = prudent({"a": [], "b": []})
    live.learn("somebody", "a", 1.0)
    for i in range(2_000):
        (grant,) = live.hand_out([Ask(i, fits="a".__eq__)])
        game.give_up(*grant.tasks)
        live.gone(i)
    held = [len(value) for value in vars(live._handed).values() if isinstance(value, dict | list)]
    assert max(held) < 300
    assert len(live._present) == 0


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: allocator(5, FORK), "name of an allocator must be a string"),  # type: ignore[call-overload]
        (lambda: allocator("fifo", FORK, 5), "needs an eligo.Execution"),  # type: ignore[call-overload]
        (lambda: allocator("fifo", FORK, rules=5), "rules must be eligo.Rules"),  # type: ignore[call-overload]
        (lambda: allocator("fifo", FORK, seed=-1), "seed must be a non-negative integer"),
        (lambda: Ask(seconds="x"), "seconds must be positive, got 'x'"),  # type: ignore[arg-type]
        (lambda: Ask(speed="x"), "got 'x'"),  # type: ignore[arg-type]
        (lambda: Ask([]), "hashable"),  # type: ignore[arg-type]
        (lambda: Ask(fits=5), "a function of a task"),  # type: ignore[arg-type]
        (lambda: Rules(slow="x"), "the rule 'slow' must be a non-negative number, got x"),  # type: ignore[arg-type]
        (lambda: Execution(FORK, executed=None), "not a list of tasks"),  # type: ignore[arg-type]
    ],
)
def test_wrong_arguments_get_one_clear_error(call: Callable[[], object], told: str) -> None:
    with pytest.raises(InputError, match=told):
        call()


def test_a_few_moves_are_left_to_the_next_ask_which_follows_them() -> None:
    game = Execution({"a": [], "b": ["a"]})
    inner = ByPolicy(policies.policy("fifo", game.dag), game)
    live = Prudent(inner)
    live.hand_out([Ask("ann")])
    game.complete("a")
    assert inner.is_near
    assert live.catch_up()
    assert [grant.tasks for grant in live.hand_out([Ask("ann")])] == [("b",)]


def test_a_held_task_starts_when_the_one_before_it_is_done_not_at_the_next_ask() -> None:
    game, clock = Execution({"a": [], "b": ["a"]}), [0.0]
    live = Prudent(ByPolicy(policies.policy("fifo", game.dag), game), PRUDENT, clock=lambda: clock[0])
    live.hand_out([Ask("ann", size=2)])
    clock[0] = 100.0
    game.complete("a")
    live.learn("ann", "a", 100.0)
    live.catch_up()
    clock[0] = 150.0
    assert live.copies_from() == 100.0 + 100.0 * PRUDENT.overdue
