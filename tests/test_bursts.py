"""A task that makes many others ready: the same grants as one by one, in slices between which others are answered."""

from itertools import pairwise
from random import Random

import numpy as np
import pytest

from eligo import execution as executions
from eligo.allocating import Ask, ByPolicy, by_policy
from eligo.dag import Dag
from eligo.execution import ELIGIBLE, Execution
from eligo.policies import POLICIES, policy
from eligo.rows import SLACK, Arrivals
from eligo.server.rules.needs import Needs, Supply
from eligo.server.rules.requests import Ticket
from eligo.server.schema import AskWords, ResultWords
from eligo.workflow import Task, Workflow
from service_parts import Scene, flow_of, many

NAMES = [name for name in POLICIES if name != "dask"]


def fan(children: int, hubs: int = 1) -> Dag:
    """Some tasks that all others wait for."""
    return Dag.from_arcs([(f"hub{h}", f"t{i}") for i in range(children) for h in range(hubs)])


def layered(seed: int) -> Dag:
    """Three layers with rows of more and of fewer children than arrays pay for."""
    draws = Random(seed)
    sizes = draws.choice([(3, 200, 5), (90, 90, 90), (1, 150, 150)])
    layers = [[f"{i}.{j}" for j in range(size)] for i, size in enumerate(sizes)]
    pairs = [(u, v) for above, below in pairwise(layers) for u in above for v in below]
    arcs = [pair for pair in pairs if draws.random() < 0.9]
    return Dag.from_arcs(arcs, tasks=[name for layer in layers for name in layer])


def stands(game: Execution) -> tuple[object, ...]:
    views = (game.eligible, game.allocated, game.held, game.failed, game.executed)
    return (*map(list, views), list(game.missing), bytes(game.codes), bytes(game.journal), game.blocked)


@pytest.mark.parametrize("seed", range(12))
def test_a_task_with_many_children_is_completed_as_one_by_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    dag, draws = layered(seed), Random(seed)
    games = [Execution(dag), Execution(dag)]
    while not games[0].finished:
        out, ready = list(games[0].allocated), list(games[0].eligible)
        task, what = draws.choice([*out, *ready]), draws.random()
        rendered = []
        for game, most in zip(games, (executions.MANY, 10**9), strict=True):
            monkeypatch.setattr(executions, "MANY", most)
            if task in ready:
                held = [w for w in dag.children(task) if game.missing[dag.index[w]] == 1] if what < 0.3 else []
                game.take(task, *held)
            elif what < 0.1:
                game.release(task)
            else:
                rendered.append(game.complete(task))
            monkeypatch.undo()
        assert not rendered or rendered[0] == rendered[1]
    assert stands(games[0]) == stands(games[1])


def test_arrivals_are_a_dictionary_in_less_room() -> None:
    draws, plain, ready = Random(1), dict[int, None](), Arrivals(50)
    for _ in range(5 * SLACK):
        v = draws.randrange(50)
        if v in plain:
            del plain[v], ready[v]
        elif draws.random() < 0.1:
            some = [w for w in range(50) if w not in plain][:5]
            plain.update(dict.fromkeys(some))
            ready.extend(np.array(some, np.int32))
        else:
            plain[v] = ready[v] = None
        assert len(plain) == len(ready)
    assert list(plain) == list(ready) == ready.numbers.tolist() == list(ready.keys())


def played(game: Execution, allocator: ByPolicy, seed: int) -> list[tuple[object, ...]]:
    """What clients get, whatever becomes of it."""
    draws, grants = Random(seed), list[tuple[object, ...]]()
    while not game.finished:
        asks = [Ask(size=draws.choice([1, 1, 3]), modest=draws.random() < 0.2) for _ in range(40)]
        grants += [grant.tasks for grant in allocator.hand_out(asks)]
        for task in list(game.allocated):
            game.complete(task) if draws.random() < 0.8 else game.release(task)
    return grants


@pytest.mark.parametrize("name", NAMES)
def test_a_burst_in_slices_is_granted_as_all_at_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dag = Dag.from_arcs(
        [("hub", f"t{i}") for i in range(1_200)]
        + [("other", f"t{i}") for i in range(0, 1_200, 9)]
        + [(f"t{i}", f"end{i % 7}") for i in range(900)]
    )
    sliced, plain = Execution(dag), Execution(dag)
    monkeypatch.setattr(by_policy, "SOME", 100)
    grants = played(sliced, ByPolicy(policy(name, dag), sliced, seed=5), 1)
    monkeypatch.setattr(executions, "BURST", 10**9)
    assert grants == played(plain, ByPolicy(policy(name, dag), plain, seed=5), 1)
    assert len(sliced.bursts) == 1
    assert not plain.bursts


def test_a_burst_takes_one_call_to_begin_and_one_for_each_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_policy, "SOME", 1_000)
    game = Execution(fan(2_500))
    allocator = ByPolicy(policy("fifo", game.dag), game)
    allocator.hand_out([Ask()])
    assert allocator.is_near
    game.complete("hub0")
    assert not allocator.is_near  # one move, which would keep the next ask waiting
    assert [allocator.catch_up() for _ in range(5)] == [False, False, False, True, True]


def test_what_was_added_after_a_burst_is_waited_for() -> None:
    game = Execution(fan(1_500))
    allocator = ByPolicy(policy("finish", game.dag), game)
    game.execute("hub0")
    game.grow(["late"], [("late", "t0"), ("hub0", "late")])
    assert {task for grant in allocator.hand_out([Ask()] * 2_000) for task in grant.tasks} == set(game.allocated)
    assert len(game.allocated) == 1_500
    assert game.state("t0") == "waiting"


def test_supply_after_a_burst_counts_as_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    dag = fan(1_300)
    details = {
        name: Task(name=name, command="true", labels=("gpu",) * (i % 3 == 0)) for i, name in enumerate(dag.tasks)
    }
    counts = []
    for most in (executions.BURST, 10**9):
        monkeypatch.setattr(executions, "BURST", most)
        game = Execution(dag)
        supply = Supply(Needs(Workflow(dag, details)), game)
        game.execute("hub0")
        game.take(*list(game.eligible)[:700])
        supply.follow()
        counts.append((supply.counts, sorted(supply.turns)))
    assert counts[0] == counts[1]
    assert sum(counts[0][0]) == 600


# On a server


class Behind:
    """A server with a workflow whose first task has just made many ready."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(by_policy, "SOME", 500)
        self.scene = Scene(keeping=False)
        self.service, self.agenda = self.scene.service, self.scene.service.books.agenda
        self.large = self.scene.submit(flow_of({"hub": [], **{f"t{i}": ["hub"] for i in range(2_000)}}))
        self.client = self.service.enrol(0.0, "one")
        (granted,) = self.ask("first").grants
        self.service.deliver(0.0, self.client, [ResultWords(granted.leases[0].id, "done", 0.1)])

    def ask(self, key: str, wait: float = 0.0) -> Ticket:
        ticket = self.service.ask(0.0, self.client, key, AskWords(wait=wait))
        self.service.serve(0.0)
        return ticket


def test_nothing_is_handed_out_of_a_workflow_that_is_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Behind(monkeypatch)
    ticket = server.ask("second", wait=10)
    assert not ticket.grants
    assert server.agenda.behind
    assert server.service.served[server.large].ready == 2_000


def test_others_are_served_between_two_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Behind(monkeypatch)
    small = server.scene.submit(many(1))
    ticket = server.ask("second")
    assert [granted.served.id for granted in ticket.grants] == [small]
    assert server.agenda.behind


def test_who_does_not_want_to_wait_waits_for_the_slices_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Behind(monkeypatch)
    ticket = server.ask("second")
    answers = [server.service.serve(0.0) for _ in range(4)]
    assert [ticket in answered for answered in answers] == [False, False, True, False]
    assert [granted.served.id for granted in ticket.grants] == [server.large]


def test_a_workflow_that_is_behind_and_cancelled_is_followed_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Behind(monkeypatch)
    server.service.cancel(0.0, server.large)
    server.service.take_changes()
    assert not server.agenda.behind
    assert not server.ask("second").grants


def test_what_is_ready_can_be_had_as_an_array() -> None:
    game = Execution(fan(70))
    game.execute("hub0")
    game.take("t3")
    game.release("t3")
    assert game.ready.numbers.tolist() == list(game.numbers(ELIGIBLE))
    assert game.ready.numbers[-1] == game.dag.index["t3"]
