"""The rules of a leaf server, which serves the grants of a parent server as workflows; no network, disk or clock.

Each grant taken from the parent is submitted to this server's own service under its own key, so that submitting it again
after a restart has no effect. Its tasks are numbered by their places in the grant. The results for the parent follow from
the outcomes and files that this service keeps, so nothing else has to be stored.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from eligo.client.assignment import Assigned
from eligo.client.results import Delivery
from eligo.client.transfers import HashedFile
from eligo.dag import Dag
from eligo.errors import FormatError
from eligo.launch import Launch
from eligo.server.rules.document import pack_workflow, unpack_workflow
from eligo.server.rules.prepared import Prepared, Wishes
from eligo.server.rules.served import CANCELLED, FINAL, PAUSED, Served
from eligo.server.rules.service import Service
from eligo.stores.service import Changes
from eligo.work.attempts import Attempt
from eligo.workflow import Task, Workflow

KEY = "grant:"  # prefix of the keys of workflows that are grants of a parent
OWNER = "parent"
AHEAD = 4.0  # seconds of work that should be ready here; below half of it, this server requests more
WINDOW = 5.0  # seconds over which the rate of results is measured
RECENT = 10.0  # seconds of silence after which a client is assumed to want no tasks
MOST_WANTED = 10_000  # maximum number of tasks in one request


class Want(NamedTuple):
    """The request of a leaf to its parent: tasks for clients with up to these cores and bytes of memory."""

    tasks: int
    cores: float
    memory: float


@dataclass(slots=True)
class HeldGrant:
    """A grant of the parent, and this server's progress with it."""

    key: str
    tasks: tuple[Assigned, ...]
    #: by the place of each task, the places of the tasks that it depends on
    after: list[list[int]]
    #: maximum number of retries of a failed task, set by the owner; None: this server's default
    retries: int | None = None
    workflow: str = ""
    #: by the places of tasks: the attempts that were accepted here, and the last attempts that were not
    done: dict[int, Attempt] = field(default_factory=dict)
    undone: dict[int, Attempt] = field(default_factory=dict)
    #: the places of finished tasks whose results the parent lacks, and of tasks whose results it has
    fresh: set[int] = field(default_factory=set)
    settled: set[int] = field(default_factory=set)
    files: dict[str, HashedFile] = field(default_factory=dict)
    #: by the place of each task, the places of the tasks that read those of its files that stay inside the grant
    readers: list[set[int]] = field(init=False)

    def __post_init__(self) -> None:
        readers: dict[str, set[int]] = {}
        for v, task in enumerate(self.tasks):
            for name in task.reads():
                readers.setdefault(name, set()).add(v)
        self.readers = [set().union(*(readers.get(name, ()) for name in task.inside)) for task in self.tasks]

    def results(self, lost: Mapping[int, str]) -> list[Delivery]:
        """The results to send to the parent now, including those of *lost* tasks, which will not run here.

        The parent accepts a result only with or after the results that it depends on. It accepts a result without a file
        that stays here only with or after the results of all tasks that read the file.
        """
        ready, before = set(self.fresh), -1
        while len(ready) != before:
            before = len(ready)
            for v in sorted(ready, reverse=True):
                if any(u not in ready and u not in self.settled and u not in lost for u in self.readers[v]):
                    ready.discard(v)
            for v in sorted(ready):
                if any(u not in ready and u not in self.settled for u in self.after[v]):
                    ready.discard(v)
        return [self._result(v, lost) for v in sorted([*ready, *(v for v in lost if v not in self.settled)])]

    def _result(self, v: int, lost: Mapping[int, str]) -> Delivery:
        """The result of one task for the parent; it includes the files that stay here if a lost task reads one of them."""
        task = self.tasks[v]
        if v in lost:
            return _lost_result(task, self.undone.get(v), lost[v])
        names = task.makes if lost.keys() & self.readers[v] else task.outputs
        outputs = {name: self.files[name] for name in names if name in self.files}
        saved = sum(self.files[name].size for name in task.inside if name in self.files and name not in outputs)
        end = self.done[v]
        facts = (end.ended - end.began, end.code, end.memory)
        return Delivery(task.lease, "done", *facts, None, outputs, end.tail or "", saved)


def _lost_result(task: Assigned, end: Attempt | None, why: str) -> Delivery:
    if not why:
        return Delivery(task.lease, "returned")
    if end is None:
        return Delivery(task.lease, "failed", failure=why)
    return Delivery(task.lease, "failed", end.ended - end.began, end.code, end.memory, why, {}, end.tail or "")


class Leaf:
    """The grants that this server holds from its parent."""

    def __init__(self, service: Service) -> None:
        self.service = service
        #: by key
        self.grants: dict[str, HeldGrant] = {}
        #: workflows of completed grants, which may be forgotten
        self.over: list[str] = []
        #: number of tasks that the parent has granted and that are not submitted here yet
        self.coming = 0
        self._by_workflow: dict[str, HeldGrant] = {}
        self._places: dict[str, tuple[HeldGrant, int]] = {}  # by lease
        self._changed: dict[str, None] = {}  # keys of grants that may have results for the parent
        self._rates: deque[tuple[float, int]] = deque()  # times, and the number of results accepted here at each
        self._memory = self._since = float("inf")

    # Grants

    def adopt(self, now: float, grant: HeldGrant, ready: Served | Prepared) -> None:
        """Serve the tasks of a grant; one that is already served continues."""
        service = self.service
        grant.workflow = workflow = service.submit(now, ready, grant.key)
        self.grants[grant.key] = self._by_workflow[workflow] = grant
        self._places |= {task.lease: (grant, v) for v, task in enumerate(grant.tasks)}
        self._changed[grant.key] = None
        served = service.served.get(workflow)
        if served is None:
            return
        signatures = {task.task: task.signature for task in grant.tasks if task.signature is not None}
        if signatures and not served.signatures:
            service.sign(now, workflow, signatures)
        if served.files is not None and served.state == PAUSED:
            files = given_files(grant.tasks)
            service.provide(now, workflow, [(name, *files[name]) for name in served.files.missing if name in files])

    def strays(self) -> list[str]:
        """The workflows of grants that this server no longer holds."""
        workflows = [served.id for served in self.service.served.values() if served.row.key.startswith(KEY)]
        return [workflow for workflow in workflows if workflow not in self._by_workflow]

    def note(self, changes: Changes) -> None:
        """Record the results, failures and files that this service stores."""
        by_workflow, accepted = self._by_workflow, 0
        for row in changes.files:
            if (grant := by_workflow.get(row.workflow)) is not None:
                grant.files[row.name] = HashedFile(row.sha256, row.size)
        for end in changes.outcomes:
            if (grant := by_workflow.get(end.workflow)) is None:
                continue
            self._changed[grant.key] = None
            if end.answer != "accepted":
                grant.undone[end.task] = end
            elif end.task not in grant.settled:
                grant.done[end.task] = end
                grant.fresh.add(end.task)
                accepted += 1
        self._changed |= {by_workflow[one].key: None for one, _ in changes.states if one in by_workflow}
        if accepted:
            self._rates.append((self.service.books.now, accepted))

    def drop_gone(self, now: float, is_gone: Callable[[str], bool]) -> None:
        """Cancel the grants whose unfinished tasks the parent has all taken back; *is_gone* tells that for a lease."""
        for grant in self.grants.values():
            places = {*range(len(grant.tasks))} - grant.settled - grant.done.keys()
            remaining = [grant.tasks[v].lease for v in places]
            if remaining and all(map(is_gone, remaining)):
                self._cancel(now, grant)

    def give_up(self, now: float) -> None:
        """Cancel all grants if no client has responded for so long that its leases have expired.

        This time starts no earlier than the first call, so that clients can reconnect after a restart.
        """
        self._since = min(self._since, now)
        books = self.service.books
        books.now = now
        if now >= self._since + books.terms.lease + books.terms.grace and not any(books.connected()):
            for grant in self.grants.values():
                self._cancel(now, grant)

    def _cancel(self, now: float, grant: HeldGrant) -> None:
        self._changed[grant.key] = None
        self.service.cancel(now, grant.workflow)

    # Results

    def due(self) -> list[Delivery]:
        """Take the results that are due to the parent; call `settle` once they are delivered."""
        changed, self._changed = self._changed, {}
        grants = [self.grants[key] for key in changed if key in self.grants]
        return [result for grant in grants for result in grant.results(self._failed_places(grant))]

    def farewell(self) -> list[Delivery]:
        """The final results for the parent: all finished tasks, and the rest as returned."""
        deliveries = list[Delivery]()
        for grant in self.grants.values():
            deliveries += grant.results({v: "" for v in range(len(grant.tasks)) if v not in grant.done})
        return deliveries

    def _failed_places(self, grant: HeldGrant) -> dict[int, str]:
        """The places of tasks that will not be finished here, with the reason; "" if the task itself did not fail."""
        served = self.service.served.get(grant.workflow)
        row = self.service.books.ended.get(grant.workflow)
        state = served.state if served is not None else CANCELLED if row is None else row.state
        if state == CANCELLED:
            return {v: "" for v in range(len(grant.tasks)) if v not in grant.done}
        lost = {} if served is None else dict(served.tries.causes)
        for v, places in enumerate(grant.after if lost else ()):
            if v not in lost and not lost.keys().isdisjoint(places):
                lost[v] = ""
        return lost

    def settle(self, now: float, results: Iterable[Delivery]) -> list[str]:
        """Record that the parent has these results; returns the keys of the grants that are complete with them."""
        over = list[str]()
        for result in results:
            grant, v = self._places.pop(result.lease)
            grant.settled.add(v)
            grant.fresh.discard(v)
            if len(grant.settled) == len(grant.tasks):
                over.append(grant.key)
                del self.grants[grant.key], self._by_workflow[grant.workflow]
                self.over.append(grant.workflow)
                served = self.service.served.get(grant.workflow)
                if served is not None and served.state not in FINAL:
                    self.service.cancel(now, grant.workflow)
        return over

    # How much to ask for

    def want(self, now: float) -> Want | None:
        """The request to the parent; None if there are enough tasks for the connected clients."""
        ready = sum(one.ready for key in self._by_workflow if (one := self.service.served.get(key)) is not None)
        appetite, have = self._appetite(now), self.coming + ready
        if 2 * have >= appetite:  # few large grants cost less than many small ones
            return None
        self.service.books.now = now
        cores = max((client.cores for client in self.service.books.connected()), default=1.0)
        return Want(min(appetite - have, MOST_WANTED), cores, self._memory)

    def _appetite(self, now: float) -> int:
        """The number of tasks that should be ready: those that clients wait for or will run in the next seconds."""
        waiting = self.service.requests.waiting
        if waiting:
            self._memory = max(ticket.offer.memory for ticket in waiting)
        while self._rates and self._rates[0][0] < now - WINDOW:
            self._rates.popleft()
        soon = AHEAD / WINDOW * sum(count for _, count in self._rates)
        hungry = sum(ticket.request.count * ticket.request.size for ticket in waiting) + int(soon)
        return hungry or int(any(one.seen > now - RECENT and not one.holds for one in self.service.clients.values()))


def grant_of(key: str, tasks: Sequence[Assigned], words: Mapping[str, Any]) -> HeldGrant:
    """The grant in an answer of the parent; if the answer has no dependencies, each task depends on the one before it."""
    after = words.get("after")
    if after is None:
        after = [[v - 1] if v else [] for v in range(len(tasks))]
    after = after or [[] for _ in tasks]
    good = isinstance(after, list) and len(after) == len(tasks)
    if not good or not all(isinstance(u, int) and 0 <= u < v for v, places in enumerate(after) for u in places):
        raise FormatError("invalid answer from the server: 'after' does not name earlier tasks of the grant")
    makers = {name: v for v, task in enumerate(tasks) for name in task.makes}
    for v, task in enumerate(tasks):
        producers = {makers[name] for name, file in task.inputs.items() if file is None and makers.get(name, v) < v}
        after[v] = sorted({*after[v], *producers})
    retries = words.get("retries")
    return HeldGrant(key, tuple(tasks), after, retries if isinstance(retries, int) and retries >= 0 else None)


def given_files(tasks: Iterable[Assigned]) -> dict[str, HashedFile]:
    """The files that the tasks of a grant read and the parent has."""
    return {name: file for task in tasks for name, file in task.inputs.items() if file is not None}


def prepare_grant(grant: HeldGrant) -> Prepared:
    """The workflow of a grant, in the parent's order; the signed content is unchanged, so that clients can check it."""
    tasks = grant.tasks
    arcs = [(u, v) for v, places in enumerate(grant.after) for u in places]
    tails, heads = (np.array([arc[end] for arc in arcs], np.int32) for end in (0, 1))
    dag = Dag.from_arrays(len(tasks), tails, heads, [task.task for task in tasks])
    details = {task.task: _task(task) for task in tasks}
    wishes = Wishes(
        name=str(tasks[0].signed.get("workflow") or tasks[0].workflow),
        owner=OWNER,
        policy="ready",
        retries=grant.retries,
        signed=all(task.signature is not None for task in tasks),
        copies=1,  # the owner decides whether slow tasks are duplicated, and the parent does it
        rules=False,
        files=any(task.inputs or task.makes for task in tasks),
        inside=False,
    )
    document = pack_workflow(Workflow(dag, details))
    return Prepared(unpack_workflow(document), wishes, document, np.arange(len(tasks), dtype=np.int32))


def _task(task: Assigned) -> Task:
    signed = task.signed
    return Task(
        name=task.task,
        command=task.command,
        inputs=tuple(signed.get("inputs", task.inputs)),
        outputs=tuple(signed.get("outputs", task.makes)),
        cores=task.cores,
        memory=task.memory,
        launch=task.launch if task.timeout is None else replace(task.launch or Launch(), timeout=task.timeout),
    )
