"""What tasks need and what clients have. Tasks are grouped by their needs once, so that no request looks at each task."""

from array import array
from collections.abc import Collection, Iterable
from copy import copy
from itertools import compress
from typing import NamedTuple

import numpy as np

from eligo.engines.room import in_gibibytes
from eligo.errors import counted
from eligo.execution import COMPLETE, ELIGIBLE, Execution, unpacked
from eligo.rows import Ints
from eligo.workflow import Workflow

MOST_TURNS = 1_000  # that are remembered, beside one for each group


class Need(NamedTuple):
    """What a task needs of the client that runs it."""

    cores: float = 1.0
    memory: float = 0.0
    labels: frozenset[str] = frozenset()

    @property
    def plain(self) -> bool:
        """Whether every client can run it."""
        return self.cores <= 1 and not self.memory and not self.labels

    def __str__(self) -> str:
        cores = [] if self.cores <= 1 else [f"{self.cores:g} cores"]
        memory = [f"{in_gibibytes(self.memory)} of memory"] if self.memory else []
        return ", ".join([*sorted(self.labels), *cores, *memory])


class Offer(NamedTuple):
    """What a client has for a task."""

    cores: float = 1.0
    memory: float = float("inf")
    labels: frozenset[str] = frozenset()

    def meets(self, need: Need) -> bool:
        """Whether it can run a task of this need."""
        return need.cores <= self.cores and need.memory <= self.memory and need.labels <= self.labels


class Unmet(NamedTuple):
    """A need of some tasks that no connected client meets, and why none does."""

    need: Need
    #: the numbers of the tasks
    tasks: Ints
    why: str

    def sentence(self, what: str = "task") -> str:
        """The same in words."""
        count = len(self.tasks)
        return f"{counted(count, what)} need{'s' if count == 1 else ''} {self.need}; {self.why}"


class Needs:
    """The tasks of a workflow by what they need.

    >>> from eligo.formats import parse
    >>> flow = parse('{"tasks": [{"name": "a", "labels": ["gpu"]}, {"name": "b"}, {"name": "c", "memory": 17179869184}]}')
    >>> needs = Needs(flow)
    >>> [one.sentence() for one in needs.unmet({Offer(4, 2**33)}, np.arange(3, dtype=np.int32))]
    ['1 task needs gpu; no connected client has it', '1 task needs 16 GiB of memory; the largest client has 8 GiB']
    """

    def __init__(self, flow: Workflow) -> None:
        #: the group of each task, and the need of each group
        self.group, self.groups = array("i"), list[Need]()
        self._learn(flow)

    def _learn(self, flow: Workflow) -> None:
        """Group the tasks of a workflow too, which come behind those that there are."""
        groups = {need: i for i, need in enumerate(self.groups)}
        columns = (flow.column(what) for what in ("cores", "memory", "labels"))
        keys = (
            Need(cores or 1.0, memory or 0.0, frozenset(labels)) for cores, memory, labels in zip(*columns, strict=True)
        )
        self.group.extend([groups.setdefault(key, len(groups)) for key in keys])
        self.groups = list(groups)
        #: whether some client may be unable to run some task
        self.demanding = not all(need.plain for need in self.groups)

    def grown(self, new: Workflow) -> "Needs":
        """The same with the tasks of a workflow behind those that there are; this one stays as it is."""
        more = copy(self)
        more.group = self.group[:]
        more._learn(new)
        return more

    def met_by(self, offer: Offer) -> bytes:
        """Of each group, whether a client with this offer can run it."""
        return bytes(map(offer.meets, self.groups))

    def unmet(self, offers: Collection[Offer], tasks: Ints) -> list[Unmet]:
        """The needs of these tasks that none of the offers meets; tasks that need nothing special are left out."""
        if not self.demanding:
            return []
        short = np.array([not _is_met(need, offers) for need in self.groups])
        group = np.frombuffer(self.group, np.int32)
        tasks = tasks[short[group[tasks]]]
        tasks = tasks[np.argsort(group[tasks], kind="stable")]
        begins = np.flatnonzero(np.diff(group[tasks], prepend=-1))
        rows = zip(group[tasks[begins]].tolist(), np.split(tasks, begins[1:]), strict=True) if len(tasks) else ()
        return [Unmet(self.groups[i], row, _why(self.groups[i], offers)) for i, row in rows]


class Supply:
    """The groups that have ready tasks, as an execution moves: a look costs O(1) for each move since the last one."""

    def __init__(self, needs: Needs, execution: Execution) -> None:
        self._execution, self._codes, self._group = execution, execution.codes, needs.group
        self._ready = bytearray(len(self._codes))
        #: how many tasks of each group are ready
        self.counts = [0] * len(needs.groups)
        #: the groups that got their first ready task, or lost their last one (inverted), in this order since the era began
        self.turns: list[int] = []
        self.era = 0
        self._seen = len(execution.journal)
        self._look_at_many(execution.ready.numbers)

    def follow(self) -> None:
        """Catch up with the execution."""
        moves, bursts = self._execution.since(self._seen), self._execution.bursts
        self._seen += len(moves)
        for kind, v in unpacked(moves):
            self._look((v,))
            if kind == COMPLETE and v in bursts:
                self._look_at_many(bursts[v])
            elif kind == COMPLETE:
                self._look(self._execution.graph.children_of(v))
        if len(self.turns) > len(self.counts) + MOST_TURNS:
            self.turns.clear()
            self.era += 1

    def _look(self, tasks: Iterable[int]) -> None:
        for v in tasks:
            ready = self._codes[v] == ELIGIBLE
            if ready != self._ready[v]:
                group, self._ready[v] = self._group[v], ready
                self.counts[group] += 1 if ready else -1
                if self.counts[group] == ready:
                    self.turns.append(group if ready else ~group)

    def _look_at_many(self, tasks: Ints) -> None:
        """The same, all at once."""
        ready, group = np.frombuffer(self._ready, np.uint8), np.frombuffer(self._group, np.int32)
        codes = np.frombuffer(self._codes, np.uint8)
        now = (codes[tasks] == ELIGIBLE).astype(np.uint8)
        change = now.astype(np.int64) - ready[tasks]
        ready[tasks] = now
        sums = np.bincount(group[tasks], change, len(self.counts)).astype(np.int64)
        for i in np.flatnonzero(sums).tolist():
            before, self.counts[i] = self.counts[i], self.counts[i] + int(sums[i])
            if not before or not self.counts[i]:
                self.turns.append(~i if before else i)


class Match:
    """The tasks whose groups an offer meets, and whether some of them are ready."""

    def __init__(self, met: bytes, supply: Supply) -> None:
        self.met, self._supply = met, supply
        self._groups, self._era, self._seen = 0, -1, 0  # how many of its groups have ready tasks, as of when

    @property
    def ready(self) -> bool:
        """Whether some task is ready that the offer meets."""
        supply, met = self._supply, self.met
        supply.follow()
        if self._era != supply.era:
            self._groups = sum(map(bool, compress(supply.counts, met)))
            self._era, self._seen = supply.era, len(supply.turns)
        for turn in supply.turns[self._seen :]:
            if met[max(turn, ~turn)]:
                self._groups += 1 if turn >= 0 else -1
        self._seen = len(supply.turns)
        return self._groups > 0


def _is_met(need: Need, offers: Iterable[Offer]) -> bool:
    return need.plain or any(offer.meets(need) for offer in offers)


def _why(need: Need, offers: Collection[Offer]) -> str:
    """What the clients lack, in words."""
    if not offers:
        return "no client is connected"
    lacking = sorted(need.labels.difference(*(offer.labels for offer in offers)))
    reasons = [f"no connected client has {'it' if len(need.labels) == 1 else ' or '.join(lacking)}"] if lacking else []
    most = Offer(max(offer.cores for offer in offers), max(offer.memory for offer in offers))
    reasons += [f"the largest client has {in_gibibytes(most.memory)}"] if need.memory > most.memory else []
    reasons += [f"the largest client has {counted(int(most.cores), 'core')}"] if need.cores > most.cores else []
    return ", ".join(reasons) or "no connected client has all of it"
