"""What tasks need and what clients offer: cores, memory and labels, by groups of tasks with equal needs, and files."""

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cache
from itertools import compress, islice
from typing import NamedTuple

import numpy as np

from eligo.engines.room import in_gibibytes
from eligo.errors import counted
from eligo.execution import COMPLETE, ELIGIBLE, EXECUTED, Execution, unpacked
from eligo.grown_dag import reachable_tasks
from eligo.names import Name
from eligo.rows import Ints
from eligo.stores.service import FileRow
from eligo.workflow import Workflow

MOST_TURNS = 1_000  # remembered changes of which groups have ready tasks, besides one per group
PREFIX = 16  # hexadecimal digits of a file's hash by which a client says that it has the file
MOST_MISSING = 1_000  # missing files in one answer
MOST_INPUTS = 256  # inputs of a task that are compared with the files of a client


class Need(NamedTuple):
    """What a task needs from a client."""

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
    """What a client offers to a task."""

    cores: float = 1.0
    memory: float = float("inf")
    labels: frozenset[str] = frozenset()

    def meets(self, need: Need) -> bool:
        """Whether it can run a task with this need."""
        return need.cores <= self.cores and need.memory <= self.memory and need.labels <= self.labels


class Unmet(NamedTuple):
    """A need of some tasks that no connected client meets, and why none does."""

    need: Need
    #: the numbers of the tasks
    tasks: Ints
    why: str

    def sentence(self, what: str = "task") -> str:
        """A sentence about it; *what* is the word for its tasks."""
        count = len(self.tasks)
        return f"{counted(count, what)} need{'s' if count == 1 else ''} {self.need}; {self.why}"


class Needs:
    """The tasks of a workflow, grouped by their needs once, so that no request has to check every task.

    >>> from eligo.formats import parse
    >>> flow = parse('{"tasks": [{"name": "a", "labels": ["gpu"]}, {"name": "b"}, {"name": "c", "memory": 17179869184}]}')
    >>> needs = Needs(flow)
    >>> [one.sentence() for one in needs.unmet({Offer(4, 2**33)}, np.arange(3, dtype=np.int32))]
    ['1 task needs gpu; no connected client has it', '1 task needs 16 GiB of memory; the largest client has 8 GiB']
    """

    def __init__(self, flow: Workflow) -> None:
        #: the group of each task, and the need of each group
        self.group, self.groups = array("i"), list[Need]()
        self._later: dict[int, list[int]] = {}  # the groups of tasks whose memory grows: at first, and after failures
        self._learn(flow)

    def _learn(self, flow: Workflow) -> None:
        """Group the tasks of a workflow too; they follow the present ones."""
        groups = {need: i for i, need in enumerate(self.groups)}
        columns = (flow.column(what) for what in ("cores", "memory", "labels", "launch"))
        keys = (
            Need(cores or 1.0, memory or 0.0, frozenset(labels) if launch is None else launch.labels.union(labels))
            for cores, memory, labels, launch in zip(*columns, strict=True)
        )
        first = len(self.group)
        self.group.extend([groups.setdefault(key, len(groups)) for key in keys])
        growing = ((v, more) for v, more in enumerate(flow.column("more_memory"), first) if more)
        for v, more in growing:
            need = next(islice(groups, self.group[v], None))
            later = (need._replace(memory=float(memory)) for memory in more)
            self._later[v] = [self.group[v], *(groups.setdefault(each, len(groups)) for each in later)]
        self.groups = list(groups)
        #: whether some client may be unable to run some task
        self.demanding = not all(need.plain for need in self.groups)

    def grow_memory(self, task: int, failures: int) -> None:
        """Let a task, which is not ready, need the memory that is listed for this number of failures."""
        if task in self._later:
            groups = self._later[task]
            self.group[task] = groups[min(failures, len(groups) - 1)]

    def grown(self, new: Workflow) -> "Needs":
        """New needs with the tasks of *new* after the present ones; this object does not change."""
        more = copy(self)
        more.group, more._later = self.group[:], self._later.copy()
        more._learn(new)
        return more

    def met_by(self, offer: Offer) -> bytes:
        """For each group, whether a client with this offer can run it."""
        return bytes(map(offer.meets, self.groups))

    def unmet(self, offers: Collection[Offer], tasks: Ints) -> list[Unmet]:
        """The needs of these tasks that none of the offers meets; plain needs count as met."""
        if not self.demanding:
            return []
        short = np.array([not (need.plain or any(offer.meets(need) for offer in offers)) for need in self.groups])
        group = np.frombuffer(self.group, np.int32)
        tasks = tasks[short[group[tasks]]]
        tasks = tasks[np.argsort(group[tasks], kind="stable")]
        begins = np.flatnonzero(np.diff(group[tasks], prepend=-1))
        rows = zip(group[tasks[begins]].tolist(), np.split(tasks, begins[1:]), strict=True) if len(tasks) else ()
        return [Unmet(self.groups[i], row, _why(self.groups[i], offers)) for i, row in rows]


class Supply:
    """The groups that have ready tasks; following an execution costs O(1) per move."""

    def __init__(self, needs: Needs, execution: Execution) -> None:
        self._execution, self._codes, self._group = execution, execution.codes, needs.group
        self._ready = bytearray(len(self._codes))
        #: number of ready tasks of each group
        self.counts = [0] * len(needs.groups)
        #: groups that got their first ready task, or lost their last one (inverted), in order; `era` counts their clearings
        self.turns: list[int] = []
        self.era = 0
        self._seen = len(execution.journal)
        self._update_many(execution.ready.numbers)

    def follow(self) -> None:
        """Catch up with the execution."""
        moves, bursts = self._execution.since(self._seen), self._execution.bursts
        self._seen += len(moves)
        for kind, v in unpacked(moves):
            self._update((v,))
            if kind == COMPLETE and v in bursts:
                self._update_many(bursts[v])
            elif kind == COMPLETE:
                self._update(self._execution.graph.children_of(v))
        if len(self.turns) > len(self.counts) + MOST_TURNS:
            self.turns.clear()
            self.era += 1

    def _update(self, tasks: Iterable[int]) -> None:
        for v in tasks:
            ready = self._codes[v] == ELIGIBLE
            if ready != self._ready[v]:
                group, self._ready[v] = self._group[v], ready
                self.counts[group] += 1 if ready else -1
                if self.counts[group] == ready:
                    self.turns.append(group if ready else ~group)

    def _update_many(self, tasks: Ints) -> None:
        """The same as `_update`, vectorised."""
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
    """The groups that an offer meets, *met*, and whether some of their tasks are ready."""

    def __init__(self, met: bytes, supply: Supply) -> None:
        self.met, self._supply = met, supply
        self._groups, self._era, self._seen = 0, -1, 0  # number of its groups with ready tasks, as of an era and turn

    @property
    def ready(self) -> bool:
        """Whether some task that the offer meets is ready."""
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


@dataclass(slots=True)
class Travels:
    """The tasks that write and read each file of a workflow, and the files that the server has."""

    flow: Workflow
    #: the files that the server has
    there: dict[str, FileRow] = field(default_factory=dict)
    #: by file, the task that writes it and the tasks that read it
    makers: dict[str, int] = field(default_factory=dict)
    readers: dict[str, list[int]] = field(default_factory=dict)
    #: the files that each task reads
    inputs: Sequence[Sequence[str]] = ()
    #: the files that no task writes
    needs: list[str] = field(default_factory=list)
    #: the temporary files that some task reads, each with the place of the first reader that may not be done
    temporary: dict[str, int] = field(default_factory=dict)
    #: whether files that only the tasks of one grant read stay with its client
    inside_stays: bool = True
    #: whether every file that one task writes and another reads is temporary
    clean: bool = False
    _first: int = 0  # place in `needs` of the first file that may be missing; files never go missing again

    def __post_init__(self) -> None:
        self.grow(self.flow, self.flow)

    def _learn_temporary(self, new: Workflow) -> None:
        """Learn the temporary files of new tasks, except those that several tasks write or one changes in place."""
        names = [name for files in new.column("outputs" if self.clean else "temporary") for name in files or ()]
        writers = Counter(name for files in new.column("outputs") for name in files or ()) if names else Counter[str]()
        alone = (name for name in names if writers[name] == 1)
        self.temporary.update((name, 0) for name in alone if self.makers[name] not in self.readers.get(name, ()))

    def removable(self) -> dict[str, list[int]]:
        """The temporary files that some task reads, each with these tasks."""
        return {name: readers for name in self.temporary if (readers := self.readers.get(name))}

    def spent(self, tasks: Iterable[int], codes: Sequence[int]) -> Iterator[str]:
        """The temporary files that the server has and no task needs any more, now that these tasks are done."""
        for v in tasks if self.temporary else ():
            outputs = self.flow.task(self.flow.dag.tasks[v]).outputs
            yield from (
                name for name in (*outputs, *self.inputs[v]) if name in self.there and self._is_spent(name, codes)
            )

    def _is_spent(self, name: str, codes: Sequence[int]) -> bool:
        """Whether a file is temporary, its writer and readers are done, and one of these comes after the writer."""
        if name not in self.temporary or codes[maker := self.makers[name]] != EXECUTED:
            return False
        readers, place = self.readers.get(name, []), self.temporary[name]
        while place < len(readers) and codes[readers[place]] == EXECUTED:
            place += 1
        self.temporary[name] = place
        return place == len(readers) and not set(reachable_tasks(self.flow.dag, [maker]).tolist()).isdisjoint(readers)

    def grow(self, flow: Workflow, new: Workflow) -> None:
        """Add the tasks of *new*; *flow* is the workflow with them."""
        first, inputs, outputs = len(self.inputs), new.column("inputs"), new.column("outputs")
        self.flow, self.inputs = flow, [*self.inputs, *inputs] if self.inputs else inputs
        self.makers.update((name, v) for v, names in enumerate(outputs, first) for name in names)
        fresh = dict[str, None]()  # files that no task has read so far
        for v, names in enumerate(inputs, first):
            for file in names:
                if file not in self.readers:
                    self.readers[file], fresh[file] = [], None
                self.readers[file].append(v)
        names = (*self.needs, *fresh)
        self.needs, self._first = [name for name in names if name not in self.makers], 0
        self._learn_temporary(new)

    def is_need(self, name: str) -> bool:
        """Whether some task reads a file of this name and no task writes it."""
        return name in self.readers and name not in self.makers

    def inside_readers(self, name: str) -> Sequence[int]:
        """The tasks because of which a file may stay with its client: its readers, if files may stay."""
        return self.readers.get(name, ()) if self.inside_stays else ()

    @property
    def missing(self) -> list[str]:
        """The needed files that the server does not have."""
        return [name for name in self.needs if name not in self.there]

    @property
    def waits(self) -> bool:
        """Whether a needed file is missing; over all calls, each name is checked once."""
        while self._first < len(self.needs) and self.needs[self._first] in self.there:
            self._first += 1
        return self._first < len(self.needs)

    def some_missing(self, most: int) -> list[str]:
        """At most *most* of the missing files."""
        return list(islice((name for name in islice(self.needs, self._first, None) if name not in self.there), most))

    def kept_by(self, prefixes: frozenset[str]) -> Callable[[Name], int]:
        """The function that returns how many bytes of a task's inputs a client with files of these hash prefixes has."""
        there, inputs, index = self.there, self.inputs, self.flow.dag.index

        @cache  # lives as long as the request
        def bytes_at_client(task: Name) -> int:
            rows = (there.get(name) for name in inputs[index[task]][:MOST_INPUTS])
            return sum(row.size for row in rows if row is not None and row.sha256[:PREFIX] in prefixes)

        return bytes_at_client

    def inside(self, v: int, members: set[int]) -> list[str]:
        """The outputs of a task that only other tasks of its grant read."""
        outputs = self.flow.task(self.flow.dag.tasks[v]).outputs
        return [name for name in outputs if (readers := self.inside_readers(name)) and members.issuperset(readers)]


def _why(need: Need, offers: Collection[Offer]) -> str:
    """What the clients lack, as text."""
    if not offers:
        return "no client is connected"
    lacking = sorted(need.labels.difference(*(offer.labels for offer in offers)))
    reasons = [f"no connected client has {'it' if len(need.labels) == 1 else ' or '.join(lacking)}"] if lacking else []
    most = Offer(max(offer.cores for offer in offers), max(offer.memory for offer in offers))
    reasons += [f"the largest client has {in_gibibytes(most.memory)}"] if need.memory > most.memory else []
    reasons += [f"the largest client has {counted(int(most.cores), 'core')}"] if need.cores > most.cores else []
    return ", ".join(reasons) or "no connected client has all of it"
