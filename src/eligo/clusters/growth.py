"""Sets that grow a task at a time and stay self-contained, with their cut and rendered tasks kept up to date.

The direct strategy grows a set in the order of a schedule. The search grows sets from several places so that few arcs are
cut, and then exchanges tasks one for one.

**Traffic** is the arcs that a fat task cuts, or the bytes of the files on them if their sizes are known. An arc is *cut* if
it leads from the fat task to a remaining task: the client must send that result back. A file that several tasks outside
read is sent once, so bytes are counted by file and not by arc.

**Goals** are to render many tasks eligible, to cause little traffic, or a mixture. A goal gives every growing set a value,
the less the better, and every task that could join a score by which the search grows. If sizes are in seconds, two sets may
differ in their number of tasks, so productivity is measured by the number of tasks eligible afterwards.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count

from eligo.clusters.state import State
from eligo.errors import InputError, check_choice, is_amount
from eligo.workflow import Workflow

# Files


@dataclass(frozen=True, eq=False)
class Files:
    """The files that pass between tasks, by number: the tasks that read and write them, and their sizes."""

    #: for every task, the files it writes that others read, and the files it reads that others write
    written: dict[int, list[int]]
    read: dict[int, list[int]]
    writer: list[int]
    readers: list[list[int]]
    bytes: list[int]

    @classmethod
    def of(cls, flow: Workflow) -> "Files | None":
        """The files of a workflow; None if no file passes between tasks, or one that does has an unknown size."""
        if not flow.file_sizes:
            return None
        index = flow.dag.index
        producer: dict[str, int] = {}
        for name, task in flow.details.items():
            producer.update(dict.fromkeys(task.outputs, index[name]))
        readers: dict[str, list[int]] = {}
        for name, task in flow.details.items():
            for file in dict.fromkeys(task.inputs):
                if producer.get(file, index[name]) != index[name]:
                    readers.setdefault(file, []).append(index[name])
        if not readers or any(file not in flow.file_sizes for file in readers):
            return None
        return cls._by_number(readers, producer, flow.file_sizes)

    @classmethod
    def _by_number(cls, readers: dict[str, list[int]], producer: dict[str, int], sizes: Mapping[str, int]) -> "Files":
        written: dict[int, list[int]] = {}
        read: dict[int, list[int]] = {}
        for number, (file, tasks) in enumerate(readers.items()):
            written.setdefault(producer[file], []).append(number)
            for v in tasks:
                read.setdefault(v, []).append(number)
        amounts = [sizes[file] for file in readers]
        return cls(written, read, [producer[file] for file in readers], list(readers.values()), amounts)

    @property
    def mean(self) -> float:
        """The size of an average file, at least one byte."""
        return max(1.0, sum(self.bytes) / len(self.bytes))

    def delta(self, v: int, inside: Container[int]) -> int:
        """The bytes of traffic added if task v joins those inside, which include all its parents that are not executed."""
        more = sum(self.bytes[f] for f in self.written.get(v, ()))
        for f in self.read.get(v, ()):
            if self.writer[f] in inside and all(u in inside or u == v for u in self.readers[f]):
                more -= self.bytes[f]
        return more

    def cut(self, tasks: Container[int], members: list[int]) -> int:
        """The bytes that these tasks write and other tasks read."""
        files = (f for v in members for f in self.written.get(v, ()))
        return sum(self.bytes[f] for f in files if any(u not in tasks for u in self.readers[f]))

    def needed(self, tasks: Container[int], members: list[int]) -> int:
        """The bytes that these tasks read and other tasks write."""
        files = {f for v in members for f in self.read.get(v, ()) if self.writer[f] not in tasks}
        return sum(self.bytes[f] for f in files)


# Growing sets


MOST_OPENERS = 24  # tasks that are visited to find those that a waiting task waits for
NEAR = 4  # missing parents, up to which a waiting task is considered
MOST_CHILDREN = 64  # children that a score considers
SLACK = 1e-9  # relative: seconds are added up, and 0.1 + 0.1 + 0.1 is more than 0.3


@dataclass(frozen=True)
class Budget:
    """The allowed size of a fat task, at least *low* and at most *high*, in tasks or, with *weights*, in seconds.

    *fits* says whether the client can run a task.
    """

    low: float
    high: float
    weights: Sequence[float] | None = None
    fits: Callable[[int], bool] | None = None

    def allows(self, v: int) -> bool:
        """Whether the client can run a task."""
        return self.fits is None or self.fits(v)

    def of(self, v: int) -> float:
        """The size that a task adds."""
        return 1 if self.weights is None else self.weights[v]

    def is_reached(self, weight: float) -> bool:
        """Whether a set of this size is large enough."""
        return weight >= self.low * (1 - SLACK)

    def has_room(self, weight: float) -> bool:
        """Whether a set of this size is not too large."""
        return weight <= self.high * (1 + SLACK)


class Growth:
    """A self-contained set that grows from nothing."""

    def __init__(self, state: State, budget: Budget, files: Files | None = None) -> None:
        self.state, self.budget, self.files = state, budget, files
        self.inside: dict[int, None] = {}
        #: the tasks that it renders eligible, the arcs and the bytes that it cuts, and its size
        self.rendered = self.cut = self.bytes = 0
        self.weight = 0.0
        self._missing: dict[int, int] = {}

    @property
    def reached(self) -> bool:
        """Whether it is large enough."""
        return self.budget.is_reached(self.weight)

    @property
    def exhausted(self) -> bool:
        """Whether it has every task that can go, so that no other set is larger."""
        return self.state.ready_count() + self.rendered == len(self.inside)

    def missing(self, v: int) -> int:
        """The number of parents of a task that are neither executed nor inside."""
        return self._missing.get(v, self.state.missing[v])

    def is_ready(self, v: int) -> bool:
        """Whether a task may join now."""
        fresh = not self.missing(v) and not self.state.gone(v) and v not in self.inside
        return fresh and self.budget.allows(v)

    def fits(self, v: int) -> bool:
        """Whether a task may join without making the set too large."""
        return self.budget.has_room(self.weight + self.budget.of(v))

    def delta(self, v: int) -> int:
        """The arcs, or bytes if files are known, by which the cut grows if a task joins."""
        if self.files is not None:
            return self.files.delta(v, self.inside)
        return self.state.out(v) - self.state.missing[v]

    def add(self, v: int) -> list[int]:
        """Add a ready task; returns the tasks that become ready."""
        self._count(v, 1)
        self.inside[v] = None
        fresh = []
        for w in self.state.children_of(v):
            self._missing[w] = self.missing(w) - 1
            if not self._missing[w]:
                fresh.append(w)
        self.rendered += len(fresh)
        return fresh

    def remove(self, v: int) -> None:
        """Remove a task without children inside."""
        for w in self.state.children_of(v):
            self.rendered -= not self._missing[w]
            self._missing[w] += 1
        del self.inside[v]
        self._count(v, -1)

    def _count(self, v: int, sign: int) -> None:
        self.cut += sign * (self.state.out(v) - self.state.missing[v])
        self.weight += sign * self.budget.of(v)
        if self.files is not None:
            self.bytes += sign * self.files.delta(v, self.inside)

    def ready(self) -> Iterator[int]:
        """The tasks that became ready by those inside and may join."""
        return (v for v, missing in self._missing.items() if not missing and self.is_ready(v))

    def openers(self, v: int) -> list[int]:
        """A few tasks that may join now and that a waiting task depends on, directly or not, the nearest first."""
        openers: list[int] = []
        seen, state = {v}, self.state
        queue = [v]
        for w in queue:
            for u in state.parents_of(w):
                if u in seen or u in self.inside or state.gone(u):
                    continue
                seen.add(u)
                (openers if not self.missing(u) else queue).append(u)
                if len(seen) > MOST_OPENERS:
                    return openers
        return openers

    def is_last(self, v: int) -> bool:
        """Whether a task inside can be removed: it has no child inside."""
        return not any(w in self.inside for w in self.state.children_of(v))

    def ordered(self) -> list[int]:
        """The tasks inside in the order of the ranking, which is a schedule."""
        return sorted(self.inside, key=self.state.rank.__getitem__)


@dataclass(frozen=True, eq=False)
class Choice:
    """A chosen set with its strategy and reason, and what is known of the dag that remains without it."""

    growth: Growth
    strategy: str
    why: str
    #: the verdict on the remaining dag, if known
    verdict: str | None = None
    #: why any set may be taken, if known
    certificate: str | None = None


def by_rank(growth: Growth) -> Growth:
    """Grow a set in the order of the ranking until it is large enough or no task fits: the direct strategy."""
    state = growth.state
    heap = sorted((state.rank[v], v) for v in growth.ready())
    popped: dict[int, None] = {}
    try:
        while not growth.reached:
            top = state.top()
            if top is not None and (not heap or top < heap[0]):
                v = state.pop()
                popped[v] = None
            elif heap:
                _, v = heappop(heap)
            else:
                break
            if growth.is_ready(v) and growth.fits(v):
                for w in growth.add(v):
                    heappush(heap, (state.rank[w], w))
    finally:
        state.push(popped)
    return growth


def by_last(growth: Growth) -> Growth:
    """Grow a set of tasks that can go next, the last of the ranking first: for a client that should not delay others."""
    for v in growth.state.last_ones():
        if not growth.reached and growth.is_ready(v) and growth.fits(v):
            growth.add(v)
    return growth


Score = Callable[[Growth, int], float]


def by_score(growth: Growth, seeds: Iterable[int], score: Score) -> Growth:
    """Grow a set from the first seed, each time by the task nearby with the least score; if none fits, from the next seed.

    Among equals the one found last goes first, so that a started branch is followed to its end.
    """
    heap: list[tuple[float, int, int]] = []
    remaining, turn = iter(seeds), count()

    def offer(v: int) -> None:
        if growth.is_ready(v):
            heappush(heap, (score(growth, v), -next(turn), v))

    while not growth.reached:
        if not heap:
            seed = next((v for v in remaining if growth.is_ready(v) and growth.fits(v)), None)
            if seed is None:
                break
            offer(seed)
        _, _, v = heappop(heap)
        if not growth.is_ready(v) or not growth.fits(v):
            continue
        for w in growth.add(v):
            offer(w)
        for w in growth.state.children_of(v):
            if 0 < growth.missing(w) <= NEAR:
                for u in growth.openers(w):
                    offer(u)
    return growth


Value = Callable[[Growth], tuple[float, ...]]


def exchange(growth: Growth, value: Value, others: Sequence[int], most: int) -> Growth:
    """Exchange tasks one for one while the value falls; *others* are further tasks that may join.

    A set of the wrong size is worse than any other. About *most* pairs are compared.
    """
    remaining, better = most, True
    while better and remaining > 0:
        better = False
        for x in [v for v in growth.inside if growth.is_last(v)]:
            if remaining <= 0 or not growth.is_last(x):  # a child of it has joined
                continue
            before = _value_of(growth, value)
            growth.remove(x)
            candidates = dict.fromkeys([*growth.ready(), *(v for v in others if growth.is_ready(v))])
            remaining -= len(candidates)
            worth, _, best = min((_worth(growth, y, value) for y in candidates if y != x), default=(before, 0, x))
            better = better or worth < before
            growth.add(best if worth < before else x)
    return growth


def _worth(growth: Growth, v: int, value: Value) -> tuple[tuple[float, ...], int, int]:
    """The value of the set with a task added, and the task's rank and number."""
    growth.add(v)
    worth = _value_of(growth, value)
    growth.remove(v)
    return worth, growth.state.rank[v], v


def _value_of(growth: Growth, value: Value) -> tuple[float, ...]:
    """The value of a set, or the worst possible value if its size is wrong."""
    right = growth.reached and growth.budget.has_room(growth.weight)
    return value(growth) if right else (float("inf"),)


# Goals


GOALS = ("productive", "communication", "mixed")


@dataclass(frozen=True)
class Goal:
    """One of `GOALS`; *weight*, from 0 to 1, is that of a cut arc against an eligible task in the goal "mixed"."""

    name: str = "productive"
    weight: float = 0.5

    def __post_init__(self) -> None:
        check_choice("goal", self.name, GOALS)
        if not is_amount(self.weight) or self.weight > 1:
            raise InputError(f"weight must be from 0 to 1, got {self.weight}")

    def value(self, growth: Growth) -> tuple[float, ...]:
        """The value of a set, the less the better: the most important number first."""
        eligible, travels = growth.rendered - len(growth.inside), self._travels(growth)
        match self.name:
            case "productive":
                return (-eligible, *travels)
            case "communication":
                return (*travels, -eligible)
            case _:
                return (self.weight * growth.cut - (1 - self.weight) * eligible, *travels)

    def _travels(self, growth: Growth) -> tuple[float, ...]:
        return (growth.cut,) if growth.files is None else (growth.bytes, growth.cut)

    def score(self, growth: Growth, v: int) -> float:
        """The score of a task that could join, the less the better: the cut it adds and the tasks it renders, now or soon."""
        match self.name:
            case "productive":
                return -_releases(growth, v)
            case "communication":
                return _lightness(growth, v)
            case _:
                return self.weight * _lightness(growth, v) - (1 - self.weight) * _releases(growth, v)


def _lightness(growth: Growth, v: int) -> float:
    """The growth of the cut, less what the children will save once they can join: the sooner they can, the more it counts."""
    state, saved = growth.state, 0.0
    for w in state.children_of(v)[:MOST_CHILDREN]:
        missing = growth.missing(w)
        if missing <= NEAR:
            saved += max(0, state.missing[w] - state.out(w) + 1) / 4 ** (missing - 1)
    return growth.delta(v) - saved * (1.0 if growth.files is None else growth.files.mean)


def _releases(growth: Growth, v: int) -> float:
    """The sum over the children of a weight that falls with the number of other parents they miss."""
    missing = (growth.missing(w) for w in growth.state.children_of(v)[:MOST_CHILDREN])
    return sum(0.25 ** (m - 1) for m in missing if m <= NEAR)
