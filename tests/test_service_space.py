"""A server keeps the temporary files of a workflow within a limit, with any number of clients, and never deadlocks."""

import os
from random import Random
from typing import Any

import pytest

from eligo.allocating import within
from eligo.errors import InputError
from eligo.execution import ALLOCATED, FAILED, HELD
from eligo.pages.watched import Watched
from eligo.server.rules.prepared import Wishes, footprint_of
from eligo.server.rules.results import NO_SPACE
from eligo.server.rules.served import Served
from eligo.server.schema import FileWords
from eligo.server.view.followed import WatchedServed
from eligo.space.orders import space_order
from eligo.work.attempts import Lease
from eligo.work.tries import Retries
from eligo.workflow import Workflow
from service_parts import Scene, check, flow_of

#: how many plays of each kind; more for those who have time
PLAYS = int(os.environ.get("ELIGO_MACHINE_STEPS", "6000")) // 150
#: two branches whose files do not fit together: a (5) -> c, and b (5) -> d
BRANCHES = {"a": [], "b": [], "c": ["a"], "d": ["b"]}
FILES = {"a": ([], ["A"]), "b": ([], ["B"]), "c": (["A"], ["C"]), "d": (["B"], ["D"])}
SIZES = {"A": 5, "B": 5, "C": 1, "D": 1}
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "copies": {"copies": 2},
    "quorum": {"quorum": 2, "copies": 2},
    "fat": {},
    "grow": {"grow": True},
    "failing": {},
}


def branches(**sizes: int) -> Workflow:
    return flow_of(BRANCHES, FILES, "AB", SIZES | sizes)


def outputs(served: Served, lease: Lease, sizes: dict[str, int]) -> dict[str, FileWords]:
    task = served.flow.task(served.flow.dag.tasks[lease.task])
    return {name: FileWords(f"of {name}", sizes[name]) for name in task.outputs}


def taken(served: Served, sizes: dict[str, int]) -> int:
    """The bytes of temporary files that the server has, or that running tasks will write."""
    files, codes = served.files, served.execution.codes
    assert files is not None
    running = {name for name in files.makers if codes[files.makers[name]] in {ALLOCATED, HELD}}
    return sum(sizes[name] for name in files.removable() if name in files.there or name in running)


class Play:
    """One workflow with a limit, and clients that do anything."""

    def __init__(self, seed: int, kind: str) -> None:
        self.random, self.kind = Random(seed), kind
        lost = 0 if kind == "failing" else 1_000
        retries = Retries(most=0 if kind == "failing" else 1_000, lost=lost, first=1.0, longest=2.0)
        self.scene = Scene(retries=retries, first_quota=50.0, first_pause=0.1, longest_pause=0.1, trusted=10**6)
        flow = self.flow()
        wishes: dict[str, Any] = {"files": True, "clean": True, "policy": self.random.choice(["fifo", "finish"])}
        wishes |= KINDS[kind]
        footprint = footprint_of(Wishes(**wishes), flow)
        self.limit = footprint.peak(space_order(footprint)) + self.random.randrange(4)
        self.workflow = self.scene.submit(flow, space=self.limit, **wishes)
        self.clients = [self.scene.enrol(f"c{i}") for i in range(self.random.randrange(2, 7))]
        self.leases = list[Lease]()
        self.added = 0
        self.exceeded = False

    def flow(self) -> Workflow:
        random, size = self.random, self.random.randrange(3, 13)
        dag = {f"t{i}": [f"t{j}" for j in range(i) if random.random() < 2 / (i + 1)] for i in range(size)}
        dag["t1"] = ["t0"]  # so that a file is temporary
        files = {name: ([f"of {parent}" for parent in parents], [f"of {name}"]) for name, parents in dag.items()}
        self.sizes = {f"of {name}": random.randrange(9) for name in dag} | {"of t0": 3}
        return flow_of(dag, files, (), self.sizes)

    @property
    def served(self) -> Served | None:
        return self.scene.service.served.get(self.workflow)

    def run(self) -> None:
        for _ in range(60):
            self.step()
            self.check()
        for _ in range(400):
            if self.served is None:
                break
            self.finish()
            self.check()
        assert self.scene.state(self.workflow) == "done"

    def step(self) -> None:
        roll, scene = self.random.random(), self.scene
        if self.served is None:
            return
        if roll < 0.4:
            self.leases += self.ask(self.random.choice(self.clients), 3 if self.kind == "fat" else 1)
        elif roll < 0.75 and self.leases:
            self.deliver(self.leases.pop(self.random.randrange(len(self.leases))))
        elif roll < 0.85:
            scene.later(100.0)  # all leases expire; results may still come
        elif roll < 0.93:
            scene.restart()
        elif self.kind == "failing" and self.served.execution.failed:
            scene.service.retry(scene.now, self.workflow)
            scene.kept()

    def ask(self, client: str, size: int) -> list[Lease]:
        files = ["0" * 16] * self.random.randrange(2)  # that it has
        ticket = self.scene.ask(client, count=self.random.randrange(1, 4), size=size, wait=0.0, files=files)
        self.scene.serve()
        self.scene.service.requests.withdraw(ticket)
        return [lease for grant in ticket.grants for lease in grant.leases]

    def deliver(self, lease: Lease, honest: bool = False) -> None:
        served, roll = self.served, 0.0 if honest else self.random.random()
        if served is None:
            return
        if roll < 0.75:
            added = self.addition(lease) if self.kind == "grow" and not honest and self.added < 4 else None
            brought = outputs(served, lease, self.sizes)
            self.scene.bring(lease, outputs=brought, seconds=1.0, added=added)
        else:
            self.scene.bring(lease, "failed" if roll < 0.9 else "returned")
        codes = None if self.served is None else self.served.execution.codes
        self.exceeded |= codes is not None and self.kind == "failing" and FAILED in bytes(codes)

    def addition(self, lease: Lease) -> str:
        """A task that reads the file of this one, and writes one that nobody reads."""
        name, self.added, self.exceeded = f"new{self.added}", self.added + 1, True
        self.sizes[f"of {name}"] = 2
        task = f'"name": "{name}", "run": "true", "inputs": ["of t{lease.task}"], "outputs": ["of {name}"]'
        return f'{{"tasks": [{{{task}, "after": ["t{lease.task}"]}}]}}'

    def finish(self) -> None:
        """Every client runs all that it gets; failed tasks are tried again."""
        self.scene.now += 5.0
        if self.scene.state(self.workflow) == "failed":
            self.scene.service.retry(self.scene.now, self.workflow)
        for client in self.clients:
            for lease in self.ask(client, 1):
                self.deliver(lease, honest=True)
        self.scene.later(30.0)

    def check(self) -> None:
        check(self.scene)
        served = self.served
        if served is None or served.state in {"done", "cancelled"}:
            return
        assert served.within is not None
        assert taken(served, self.sizes) <= served.within.live
        if not (self.exceeded or self.kind == "failing"):
            assert served.within.most <= self.limit
            assert served.within.needed <= self.limit
            assert served.space_notes() == [] or "wait" in served.space_notes()[0]


@pytest.mark.parametrize("kind", KINDS)
def test_random_plays_keep_the_limit_and_end(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(within, "LOOK", 2)  # few tasks without space are passed over, as in a large workflow
    for seed in range(PLAYS):
        try:
            Play(seed, kind).run()
        except Exception as error:
            error.add_note(f"play {seed}")
            raise


def test_a_limit_that_no_order_keeps_is_refused_with_the_bound_the_task_and_files() -> None:
    flow = flow_of({"a": [], "b": [], "c": ["a", "b"]}, {**FILES, "c": (["A", "B"], [])}, "AB", SIZES)
    with pytest.raises(InputError, match=r"every order needs at least 10 B.*when c runs, files such as A, B exist"):
        Scene().submit(flow, files=True, space=9)


@pytest.mark.parametrize(
    ("flow", "wishes", "why"),
    [
        (branches(), {"files": False}, "space has no effect if the server does not transfer files"),
        (branches(), {"space": None, "clean": True, "files": False}, "clean has no effect if the server"),
        (branches(), {"space": -1}, "space must be a number of bytes, got -1"),
        (flow_of(BRANCHES, FILES, "", SIZES), {}, "no file between tasks is temporary, so that none is removed"),
        (flow_of(BRANCHES, FILES, "AB"), {}, "no sizes are known"),
    ],
)
def test_what_cannot_be_limited_is_refused(flow: Workflow, wishes: dict[str, Any], why: str) -> None:
    with pytest.raises(InputError, match=why):
        Scene().submit(flow, **{"files": True, "space": 10, **wishes})


def test_a_branch_waits_for_space_which_is_said_and_gets_it() -> None:
    scene = Scene()
    workflow, ann, bob = scene.submit(branches(), files=True, space=5), scene.enrol(), scene.enrol("bob")
    first, served = scene.lease(ann), scene.served(workflow)
    waiting = scene.ask(bob, wait=60.0)
    assert scene.serve() == []
    other = "ab".replace(scene.tasks([first])[0], "")
    assert scene.service.notes(served, served.execution.ready.numbers, "ready task") == [
        "1 ready task waits for space: 5 B of 5 B are in use or reserved"
    ]
    watched: Watched = WatchedServed(served, scene.service)
    assert watched.obstacles(served.flow.dag.number(other)) == [
        "It waits for space: the files between tasks would exceed the limit."
    ]
    assert list(watched.unmet) == ["1 ready task waits for space: 5 B of 5 B are in use or reserved"]
    scene.bring(first, outputs=outputs(served, first, SIZES))
    scene.serve()
    (grant,) = waiting.grants
    assert scene.tasks(grant.leases) == [{"a": "c", "b": "d"}[scene.tasks([first])[0]]]
    scene.bring(grant.leases[0], outputs=outputs(served, grant.leases[0], SIZES))
    assert scene.tasks([scene.lease(ann)]) == [other]
    assert served.space_notes() == []


def test_clean_makes_every_file_between_tasks_temporary() -> None:
    scene = Scene()
    flow = flow_of(BRANCHES, FILES, "", SIZES)
    workflow, ann = scene.submit(flow, files=True, space=5, clean=True), scene.enrol()
    served = scene.served(workflow)
    for _ in BRANCHES:
        lease = scene.lease(ann)
        scene.bring(lease, outputs=outputs(served, lease, SIZES))
        assert taken(served, SIZES) <= 5
    assert scene.state(workflow) == "done"
    assert {row.name for row in scene.store.files(workflow)} == {"C", "D"}


def test_a_late_result_without_space_is_refused_and_its_task_runs_again() -> None:
    scene = Scene()
    workflow, ann, bob = scene.submit(branches(B=1), files=True, space=6), scene.enrol(), scene.enrol("bob")
    late, other = scene.lease(ann), scene.lease(bob)
    assert scene.tasks([late, other]) == ["a", "b"]
    scene.later(100.0, bob)
    assert scene.bring(other, outputs={"B": FileWords("of B", 6)}) == "accepted"  # larger than stated
    assert scene.bring(late, outputs={"A": FileWords("of A", 5)}) == "refused"
    assert scene.store.ends[late[:2]].failure == NO_SPACE
    scene.restart()
    for _ in range(3):
        lease = scene.lease(bob)
        scene.bring(lease, outputs=outputs(scene.served(workflow), lease, SIZES))
    assert scene.state(workflow) == "done"


def test_a_file_larger_than_stated_is_said() -> None:
    scene = Scene()
    workflow, ann = scene.submit(branches(), files=True, space=5), scene.enrol()
    lease = scene.lease(ann)
    scene.bring(lease, outputs={name: FileWords("x", 7) for name in "AB" if name.lower() in scene.tasks([lease])})
    assert "the limit of 5 B was exceeded by 2 B" in scene.served(workflow).space_notes()[-1]
