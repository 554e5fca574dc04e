"""A server below a server, by its rules alone: two services with the leaf between them, and kills of either."""

import random
from collections import Counter
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import msgspec
import pytest

from eligo.client.assignment import assignments
from eligo.client.results import Delivery
from eligo.errors import FormatError
from eligo.server.rules.leaf import KEY, Leaf, given_files, grant_of, prepare_grant
from eligo.server.schema import FileWords, Outcome, ResultWords
from eligo.server.view.answers import grants_words, task_words
from eligo.stores.service import Changes
from eligo.work.attempts import Lease
from eligo.work.tries import Retries
from eligo.workflow import Workflow
from service_parts import Scene, check, flow_of, many

QUICK = Retries(most=2, lost=1000, first=0.1, longest=1.0)
DIAMOND = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}
DIAMOND_FILES: dict[str, tuple[list[str], list[str]]] = {
    "a": (["given"], ["fa"]),
    "b": (["fa"], ["fb"]),
    "c": (["fa"], ["fc"]),
    "d": (["fb", "fc"], ["fd"]),
}


def content(name: str) -> FileWords:
    return FileWords(sha256(name.encode()).hexdigest(), len(name))


class LeafScene(Scene):
    """A service whose leaf follows all that is kept."""

    leaf: Leaf

    def keep(self) -> None:
        changes = self.service.take_changes()
        if changes is not None:
            self.leaf.note(changes)
            self.store.commit([changes])


class Pair:
    """A parent, a leaf below it, and the folder in which the leaf keeps its grants."""

    def __init__(self, retries: Retries = QUICK) -> None:
        self.parent, self.below = Scene(retries=retries), LeafScene(retries=retries)
        self.parent.uploaded, self.below.uploaded = {content("given").sha256}, {content("given").sha256}
        self.client = self.parent.enrol("leaf")
        self.folder: dict[str, dict[str, Any]] = {}
        self.below.leaf = Leaf(self.below.service)

    @property
    def leaf(self) -> Leaf:
        return self.below.leaf

    # What the leaf does

    def take(self, kill: str = "", **request: Any) -> None:
        """The leaf asks its parent, and is killed before it has kept the grant, or before it is submitted."""
        ticket = self.parent.ask(self.client, **request)
        self.parent.serve()
        self.parent.service.requests.withdraw(ticket)
        for words in msgspec.to_builtins(grants_words(ticket, 60.0))["grants"]:
            if kill == "early":
                continue
            self.folder[KEY + words["tasks"][0]["lease"]] = words
            if not kill:
                self.adopt(words)
        if kill:
            self.restart()

    def adopt(self, words: dict[str, Any]) -> None:
        (tasks,) = assignments({"grants": [words]})
        grant = grant_of(KEY + tasks[0].lease, tasks, words)
        assert self.below.uploaded is not None
        self.below.uploaded |= {file.sha256 for file in given_files(tasks).values()}
        self.leaf.adopt(self.below.now, grant, prepare_grant(grant))
        self.below.keep()

    def deliver(self, kill: bool = False) -> list[str]:
        """The leaf tells its parent what is due, and is killed before it has heard the answers."""
        results = self.leaf.due()
        answers = self.told(results)
        if kill:
            self.restart()
        else:
            for key in self.leaf.settle(self.below.now, results):
                del self.folder[key]
        self.below.keep()
        return answers

    def told(self, results: list[Delivery]) -> list[str]:
        assert self.parent.uploaded is not None
        assert self.below.uploaded is not None
        sent = {file.sha256 for result in results for file in result.outputs.values()}
        assert sent <= self.below.uploaded
        self.parent.uploaded |= sent
        words = [msgspec.convert(result.document(), ResultWords) for result in results]
        return self.parent.tell(self.client, *words) if words else []

    def restart(self) -> None:
        """The leaf dies, and goes on with what it has kept."""
        self.below.restart()
        self.below.leaf = Leaf(self.below.service)
        for words in list(self.folder.values()):
            self.adopt(words)
        for workflow in self.leaf.strays():
            self.below.service.cancel(self.below.now, workflow)
        for grant in self.leaf.grants.values():
            store, workflow = self.below.store, grant.workflow
            self.leaf.note(Changes(outcomes=[*store.outcomes(workflow)], files=store.files(workflow)))

    def later(self, seconds: float, renew: bool = True) -> None:
        """Time passes at both; the leaf lives, as far as its parent hears, and its clients do."""
        self.below.later(seconds, *[client for client in self.below.service.clients if renew])
        self.parent.later(seconds, *([self.client] if renew else []))
        gone = self.parent.service.renew(self.parent.now, self.parent.client(self.client), self.leases())
        self.leaf.drop_gone(self.below.now, set(gone).__contains__)
        self.below.keep()

    def leases(self) -> list[str]:
        return [task.lease for grant in self.leaf.grants.values() for task in grant.tasks]

    # What its clients do

    def work(self, client: str, outcome: Outcome = "done", **request: Any) -> int:
        """A client of the leaf gets something and brings it; how many tasks."""
        ticket = self.below.ask(client, **request)
        self.below.service.serve(self.below.now)
        self.below.service.requests.withdraw(ticket)
        self.below.keep()
        return sum(len(self.bring(granted.leases, outcome)) for granted in ticket.grants)

    def bring(self, leases: list[Lease], outcome: Outcome = "done") -> list[str]:
        assert self.below.uploaded is not None
        results = []
        for lease in leases:
            served = self.below.service.served.get(lease.workflow)
            names = (
                ()
                if served is None or outcome != "done"
                else served.flow.task(served.flow.dag.tasks[lease.task]).outputs
            )
            outputs = {name: content(name) for name in names}
            self.below.uploaded |= {file.sha256 for file in outputs.values()}
            failure = "it broke" if outcome == "failed" else None
            results.append(
                ResultWords(lease.id, outcome, seconds=1.0, outputs=outputs, failure=failure, tail="printed")
            )
        answers = self.below.service.deliver(self.below.now, self.below.client(leases[0].client), results)
        self.below.keep()
        return answers

    def submit(self, flow: Workflow, **wishes: Any) -> str:
        workflow = self.parent.submit(flow, **wishes)
        served = self.parent.served(workflow)
        if served.files is not None:
            file = content("given")
            self.parent.service.provide(self.parent.now, workflow, [("given", file.sha256, file.size)])
            self.parent.keep()
        return workflow


def finish(pair: Pair, workflow: str, turn: Callable[[], object], turns: int = 10_000) -> None:
    for _ in range(turns):
        if pair.parent.state(workflow) not in {"running", "paused"}:
            return
        turn()
    raise AssertionError(pair.parent.served(workflow).counts())


def accepted(pair: Pair, workflow: str) -> Counter[int]:
    return Counter(end.task for end in pair.parent.store.outcomes(workflow) if end.answer == "accepted")


def test_a_grant_goes_down_its_results_come_up_and_nothing_stays() -> None:
    pair = Pair()
    workflow, ann = pair.submit(flow_of(DIAMOND)), pair.below.enrol()
    pair.take(size=4)
    assert [len(grant.tasks) for grant in pair.leaf.grants.values()] == [4]
    assert pair.work(ann) == 1  # what depends on it is not handed out before
    assert pair.work(ann, count=5) == 2
    assert pair.deliver() == ["accepted"] * 3
    assert pair.work(ann) == 1
    assert pair.deliver() == ["accepted"]
    assert pair.parent.state(workflow) == "done"
    assert not pair.folder
    assert not pair.leaf.grants
    (end, *_) = pair.parent.store.outcomes(workflow)
    assert end.tail == "printed"


def test_files_that_only_the_grant_needs_stay_below() -> None:
    pair = Pair()
    workflow, ann = pair.submit(flow_of(DIAMOND, DIAMOND_FILES), files=True), pair.below.enrol()
    pair.take(size=4)
    while pair.work(ann):
        pair.deliver()
    assert pair.parent.state(workflow) == "done"
    assert pair.parent.uploaded == {content("given").sha256, content("fd").sha256}


def test_a_result_is_held_until_those_who_read_its_inside_files_are_done() -> None:
    pair = Pair()
    pair.submit(flow_of(DIAMOND, DIAMOND_FILES), files=True)
    ann = pair.below.enrol()
    pair.take(size=4)
    answers = []
    while pair.work(ann):
        answers.append(pair.deliver())
    assert answers == [[], [], [], ["accepted"] * 4]


def test_inside_files_are_brought_where_somebody_who_reads_them_fails() -> None:
    pair = Pair()
    workflow, ann = pair.submit(flow_of(DIAMOND, DIAMOND_FILES), files=True, retries=0), pair.below.enrol()
    pair.take(size=4)
    pair.work(ann)
    pair.work(ann, "failed")
    pair.work(ann)
    assert pair.deliver() == ["accepted", "failed", "accepted", "returned"]
    assert pair.parent.state(workflow) == "failed"
    assert pair.parent.uploaded is not None
    assert content("fa").sha256 in pair.parent.uploaded


@pytest.mark.parametrize("retries", [0, 2])
def test_failures_below_are_one_failure_above_after_as_many_tries_as_the_owner_allows(retries: int) -> None:
    pair = Pair()
    workflow, ann = pair.submit(many(1), retries=retries), pair.below.enrol()
    for _ in range(retries + 1):
        pair.take(size=1)
        for _ in range(retries + 1):
            pair.later(2.0)
            pair.parent.client(pair.client).paused = pair.below.client(ann).paused = 0.0
            pair.work(ann, "failed")
        assert pair.deliver() == ["failed"]
        pair.parent.client(pair.client).paused = 0.0
        pair.parent.later(2.0, pair.client)
    assert pair.parent.state(workflow) == "failed"
    ((_, cause),) = pair.parent.served(workflow).tries.causes.items()
    assert cause == "it broke"


def test_what_a_cancelled_workflow_has_out_is_given_up_below() -> None:
    pair = Pair()
    workflow, ann = pair.submit(many(3)), pair.below.enrol()
    pair.take(size=3)
    pair.parent.service.cancel(pair.parent.now, workflow)
    pair.later(1.0)
    assert pair.work(ann) == 0
    pair.deliver()
    assert not pair.folder


def test_a_leaf_that_was_cut_off_delivers_late() -> None:
    pair = Pair()
    workflow, ann = pair.submit(many(2)), pair.below.enrol()
    pair.take(size=2)
    pair.work(ann, count=2)
    pair.parent.later(500.0)
    assert pair.deliver() == ["accepted", "accepted"]
    assert pair.parent.state(workflow) == "done"


def test_what_nobody_is_there_for_goes_back_to_the_parent() -> None:
    pair = Pair()
    workflow = pair.submit(many(3))
    pair.below.enrol()
    pair.take(size=3)
    pair.leaf.give_up(pair.below.now)
    assert pair.deliver() == []
    pair.below.now += 100.0
    pair.leaf.give_up(pair.below.now)
    assert pair.deliver() == ["returned"] * 3
    assert pair.parent.served(workflow).ready == 3


def test_a_leaf_that_ends_delivers_what_is_done_and_returns_the_rest() -> None:
    pair = Pair()
    workflow, ann = pair.submit(many(3)), pair.below.enrol()
    pair.take(size=3)
    pair.work(ann)
    assert sorted(pair.told(pair.leaf.farewell())) == ["accepted", "returned", "returned"]
    assert pair.parent.served(workflow).ready == 2


def test_a_leaf_asks_for_what_its_clients_wait_for_and_will_soon_have_done() -> None:
    pair = Pair()
    assert pair.leaf.want(0.0) is None
    ann = pair.below.enrol()
    pair.submit(many(50))
    pair.below.ask(ann, count=2, size=3, wait=30.0, cores=8.0, memory=1e9)
    pair.below.serve()
    want = pair.leaf.want(0.0)
    assert want is not None
    assert (want.tasks, want.cores, want.memory) == (6, 8.0, 1e9)
    pair.take(size=2)
    assert pair.leaf.want(0.0) == want._replace(tasks=4)
    pair.take(size=2)
    assert pair.leaf.want(0.0) is None


def test_signed_tasks_go_down_as_they_came() -> None:
    pair = Pair()
    workflow = pair.submit(flow_of(DIAMOND, DIAMOND_FILES), files=True, signed=True, name="survey-1")
    signatures = {name: f"signature of {name}" for name in DIAMOND}
    pair.parent.service.sign(pair.parent.now, workflow, signatures)
    ann = pair.below.enrol()
    ticket = pair.parent.ask(pair.client, size=4)
    pair.parent.serve()
    above = {task.task: (task.signature, task.signed, task.command) for task in task_words(ticket.grants[0])}
    pair.adopt(msgspec.to_builtins(grants_words(ticket, 60.0))["grants"][0])
    below: dict[str, object] = {}
    while granted := pair.below.get(ann):
        below |= {task.task: (task.signature, task.signed, task.command) for task in task_words(granted[0])}
        pair.bring(granted[0].leases)
    assert below == above


def test_an_older_parent_that_does_not_say_what_depends_on_what_is_taken_in_its_order() -> None:
    words = {"workflow": "w", "why": "", "tasks": [{"lease": str(i), "task": str(i), "command": "x"} for i in range(3)]}
    (tasks,) = assignments({"grants": [words]})
    assert grant_of("k", tasks, words).after == [[], [0], [1]]
    assert grant_of("k", tasks, {**words, "after": []}).after == [[], [], []]


@pytest.mark.parametrize("after", [[[]], [[1], [], []], [[], ["x"], []], "abc", [[], [1], []]])
def test_a_parent_that_makes_no_sense_is_refused(after: object) -> None:
    words = {"workflow": "w", "why": "", "tasks": [{"lease": str(i), "task": str(i), "command": "x"} for i in range(3)]}
    (tasks,) = assignments({"grants": [words]})
    with pytest.raises(FormatError, match="'after'"):
        grant_of("k", tasks, {**words, "after": after})


class Chaos:
    """Random moves of clients, of the leaf and of the parent, each of which may be killed at any moment."""

    def __init__(self, pair: Pair, seed: int) -> None:
        self.pair, self.rng, self.out = pair, random.Random(seed), list[list[Lease]]()
        self.clients = [pair.below.enrol(f"c{i}") for i in range(3)]
        self.kills = Counter[str]()

    def turn(self) -> None:
        moves = [self.ask] * 6 + [self.bring] * 6 + [self.take] * 4 + [self.deliver] * 4 + [self.wait, self.parent_dies]
        self.rng.choice(moves)()
        for client in [*self.pair.below.service.clients.values(), *self.pair.parent.service.clients.values()]:
            client.paused, client.quota = 0.0, max(client.quota, 4.0)
        check(self.pair.parent)
        check(self.pair.below)

    def killed(self, what: str) -> bool:
        dies = self.rng.random() < 0.1
        self.kills[what] += dies
        return dies

    def take(self) -> None:
        kill = self.rng.choice(["early", "kept"]) if self.killed("leaf takes") else ""
        self.pair.take(kill, size=self.rng.randint(1, 6), count=self.rng.randint(1, 2))

    def deliver(self) -> None:
        self.pair.deliver(self.killed("leaf delivers"))

    def ask(self) -> None:
        pair, client = self.pair, self.rng.choice(self.clients)
        ticket = pair.below.ask(client, size=self.rng.randint(1, 3))
        pair.below.service.serve(pair.below.now)
        pair.below.service.requests.withdraw(ticket)
        if self.killed("leaf answers"):
            pair.restart()
            return
        pair.below.keep()
        if not self.killed("client"):
            self.out += [granted.leases for granted in ticket.grants]

    def bring(self) -> None:
        if self.out:
            leases = self.out.pop(self.rng.randrange(len(self.out)))
            self.pair.bring(leases, "failed" if self.rng.random() < 0.02 else "done")

    def wait(self) -> None:
        self.pair.later(self.rng.choice([1.0, 100.0]), renew=self.rng.random() < 0.5)

    def parent_dies(self) -> None:
        self.kills["parent"] += 1
        self.pair.parent.restart()


@pytest.mark.parametrize("files", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_kills_at_either_level_lose_nothing_and_accept_nothing_twice(seed: int, files: bool) -> None:
    rng = random.Random(seed)
    names = [f"t{i}" for i in range(40)]
    dag = {name: rng.sample(names[:i], min(i, rng.randint(0, 2))) for i, name in enumerate(names)}
    made = {name: ([*(f"f{u}" for u in dag[name]), *([] if dag[name] else ["given"])], [f"f{name}"]) for name in names}
    pair = Pair(retries=Retries(most=1000, lost=1000, first=0.1, longest=1.0))
    workflow = pair.submit(flow_of(dag, made), files=files, retries=1000)
    chaos = Chaos(pair, seed)
    finish(pair, workflow, chaos.turn)
    assert pair.parent.state(workflow) == "done"
    assert set(accepted(pair, workflow).values()) == {1}
    assert len(accepted(pair, workflow)) == len(dag)
    for _ in range(3):
        pair.later(1.0)
        pair.deliver()
    assert not pair.folder
