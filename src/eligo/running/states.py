"""The state of a workflow during a run, as status commands see it: of every task, with reasons, and the remaining time."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.allocating import ALLOCATORS
from eligo.dag import Dag
from eligo.errors import InputError, shorten
from eligo.estimates import all_kinds, estimate, lasting, stem
from eligo.execution import ALLOCATED, EXECUTED, FAILED, HELD, Execution
from eligo.execution import WAITING as NOT_READY
from eligo.grown_dag import reachable_tasks
from eligo.policies import in_classes, policy
from eligo.rows import Ints, gather_rows, places
from eligo.work.attempts import Lease
from eligo.workflow import Workflow

Curve = NDArray[np.int64]

#: the states as they are displayed, in order
DONE, RUNNING, READY, PENDING, BLOCKED, RETRYING, BAD = (
    "done", "running", "ready", "pending", "blocked", "retrying", "failed",
)  # fmt: skip
STATES = (DONE, RUNNING, READY, PENDING, BLOCKED, RETRYING, BAD)
_TOLD = (PENDING, READY, RUNNING, RUNNING, BAD, DONE)  # by the states of an execution


class Looked(ABC):
    """A workflow and its execution, live or at one moment. Tasks are numbers; `labels` has their names."""

    flow: Workflow
    execution: Execution
    #: the time of this state by the wall clock, and whether the run or server is active
    at: float
    under_way: bool
    #: the policy that chooses the next task
    policy: str
    #: running attempts by task, and failed tasks that will be retried, with the time
    trying: Mapping[int, Lease]
    again: Mapping[int, float]
    #: attempts that ran when the run was killed, by task
    cut_off: Mapping[int, Lease] = MappingProxyType({})

    def __init__(self) -> None:
        nothing = np.zeros(0, np.int32)
        self._below = (-1, nothing, nothing)  # number of tasks, failed tasks, and the tasks they block; cached

    @abstractmethod
    def curve(self, name: str) -> Curve | None:
        """A curve of the plan: "order", "plan" (ready tasks after each step), or "bound" (its upper bound)."""

    def obstacles(self, v: int) -> list[str]:
        """Sentences about what keeps a task from running, apart from its unfinished parents."""
        return []

    @abstractmethod
    def failure(self, v: int) -> str:
        """The message of a task's last failure."""

    def name_of(self, client: str) -> str:
        """The name of a worker."""
        return client

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the tasks."""
        return self.flow.dag.labels

    @cached_property
    def kinds(self) -> list[str]:
        """The kind of each task: its category; without categories its name's stem, unless there are many of these."""
        stems = list(map(stem, self.flow.dag.tasks))
        is_named = not any(self.flow.column("category")) and len(set(stems)) <= MOST_STEMS
        return stems if is_named else all_kinds(self.flow)

    @property
    def failed(self) -> list[int]:
        """The tasks that failed permanently."""
        return list(map(int, self._failed))

    @property
    def _failed(self) -> Ints:
        failed = np.asarray(self.execution.codes) == FAILED
        failed[list(self.again)] = False
        return np.flatnonzero(failed).astype(np.int32)

    def failed_for(self) -> Mapping[str, Collection[int]]:
        """The permanently failed tasks by message."""
        causes: dict[str, list[int]] = {}
        for v in self.failed:
            causes.setdefault(self.failure(v), []).append(v)
        return causes

    @property
    def blocked(self) -> Ints:
        """The tasks that depend on a permanently failed task, in the order of their numbers."""
        size, failed = len(self.execution.graph), self._failed
        if size != self._below[0] or not np.array_equal(failed, self._below[1]):
            self._below = (size, failed, reachable_tasks(self.execution.dag, failed))
        return self._below[2]

    @property
    def interrupted(self) -> list[int]:
        """The tasks of a run that were running when it was killed, and run again when it is resumed."""
        return []

    def state(self, v: int) -> str:
        """The state of a task, one of `STATES`; tasks that ran when the run was stopped are ready."""
        blocked = self.blocked
        if len(blocked) and v in blocked[np.searchsorted(blocked, v) :][:1]:
            return BLOCKED
        state = _TOLD[self.execution.codes[v]]
        if state == RUNNING and not self.under_way:
            return READY if not self.execution.missing[v] else PENDING
        return RETRYING if state == BAD and v in self.again else state

    @property
    def counts(self) -> dict[str, int]:
        """The number of tasks in each of `STATES`."""
        return count_states(self.execution, len(self._failed), len(self.blocked), self.under_way)


def count_states(game: Execution, failed: int, blocked: int, under_way: bool = True) -> dict[str, int]:
    """The number of tasks in each of `STATES`, given how many *failed* permanently and are *blocked*."""
    held, out, ready = len(game.held), len(game.allocated), len(game.eligible)
    counts = {
        DONE: len(game.executed),
        RUNNING: held + out if under_way else 0,
        READY: ready if under_way else ready + out,
    }
    counts |= {BLOCKED: blocked, RETRYING: len(game.failed) - failed, BAD: failed}
    counts[PENDING] = len(game.graph) - sum(counts.values())
    return {state: counts[state] for state in STATES}


def cut_off_tasks(looked: Looked) -> list[int]:
    """The tasks that were assigned when the run or server was killed."""
    return [] if looked.under_way else sorted(looked.execution.numbers(ALLOCATED))


# The remaining time

Floats = NDArray[np.float64]

MOST_STEMS = 40  # kinds by the stems of names
FEWEST = 3  # finished tasks required to correct known run times, and for an estimate with the usual error
#: relative errors of run times: of a task itself, of tasks of its kind and name, of its kind, and of all tasks
OWN, ALIKE, KIND, ANY = 0.1, 0.2, 0.4, 0.5
FEW = 0.8  # the error of what was learned, if fewer tasks have finished
LATE = 0.1  # minimum remaining time of a task that exceeds its estimate, as a share of its time so far


class TimeLeft(NamedTuple):
    """Lower and upper estimate of the remaining seconds of a run."""

    least: float
    most: float


class Forecast:
    """Learns run times while a workflow runs.

    >>> from eligo.dag import Dag
    >>> from eligo.workflow import Task
    >>> flow = Workflow(Dag.from_parents({"a": [], "b": ["a"]}), {name: Task(name=name, seconds=10.0) for name in "ab"})
    >>> Forecast(flow).remaining([0, 1], {0: 4.0}, 2)
    TimeLeft(least=14.4, most=17.6)
    """

    def __init__(self, flow: Workflow) -> None:
        self._flow = flow
        self._learned: list[tuple[int, float]] = []

    @cached_property
    def _stated_times(self) -> Floats:
        """The stated run times of tasks; NaN where there is none."""
        estimates = estimate(self._flow)
        return np.where(estimates.own, estimates.seconds, np.nan)

    @cached_property
    def _groups(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """For every task, the number of its kind and name without digits, and that of its kind."""
        alike, kinds = dict[tuple[str, str], int](), dict[str, int]()
        pairs = zip(all_kinds(self._flow), map(stem, self._flow.dag.tasks), strict=True)
        numbers = [(alike.setdefault(pair, len(alike)), kinds.setdefault(pair[0], len(kinds))) for pair in pairs]
        first, second = np.array(numbers, np.int64).reshape(-1, 2).T
        return first, second

    def grown(self, dag: Dag) -> "Forecast":
        """The forecast for the workflow with a grown dag; run times that were learned are kept."""
        if dag is self._flow.dag:
            return self
        forecast = Forecast(self._flow.grown(dag))
        forecast._learned = self._learned
        return forecast

    def learn(self, took: Iterable[tuple[int, float]]) -> None:
        """Record run times in seconds, by task number."""
        self._learned += took

    @property
    def learned(self) -> int:
        """The number of recorded run times."""
        return len(self._learned)

    def believed(self) -> tuple[Floats, Floats]:
        """For every task, its estimated run time and the relative error; NaN if there is no estimate."""
        done = np.array([v for v, _ in self._learned], np.int64)
        took = np.array([seconds for _, seconds in self._learned], np.float64)
        stated = self._stated_times
        timed = ~np.isnan(stated[done])
        pace = (
            took[timed].sum() / stated[done][timed].sum()
            if timed.sum() >= FEWEST and stated[done][timed].any()
            else 1.0
        )
        mean = took.mean() if len(took) else np.nan
        *shares, usual = (ALIKE, KIND, ANY) if len(took) >= FEWEST else (FEW, FEW, FEW)
        ways = [
            (stated * pace, OWN),
            *zip((_means(group, done, took) for group in self._groups), shares, strict=True),
        ]
        seconds, off = np.full(len(stated), mean), np.full(len(stated), usual)
        for times, share in reversed(ways):
            seconds, off = np.where(np.isnan(times), seconds, times), np.where(np.isnan(times), off, share)
        return seconds, off

    def remaining(self, tasks: Iterable[int], running: Mapping[int, float], workers: int) -> TimeLeft | None:
        """Estimate the remaining time of these tasks; *running* has the elapsed seconds of those that run. None: unknown.

        At least the longest path, and at least the work divided by the workers; at most the sum of both.
        """
        dag, rest = self._flow.dag, np.array(list(tasks), np.int64)
        believed, off = self.believed()
        seconds = np.zeros(len(dag))
        seconds[rest] = believed[rest]
        for v, elapsed in running.items():
            seconds[v] = max(seconds[v] - elapsed, LATE * max(seconds[v], elapsed))
        if not len(rest) or np.isnan(seconds).any():
            return TimeLeft(0.0, 0.0) if not len(rest) else None
        work, longest = float(seconds.sum()) / workers, float((dag.longest_paths(seconds) + seconds).max())
        error = float((off[rest] * seconds[rest]).sum() / seconds.sum()) if seconds.any() else ANY
        most = work + longest * (1 - 1 / workers)
        return TimeLeft(
            round(max(work, longest) * (1 - error), 3), round(min(most, float(seconds.sum())) * (1 + error), 3)
        )


def _means(group: NDArray[np.int64], done: NDArray[np.int64], took: Floats) -> Floats:
    """For every task, the mean run time of the finished tasks of its group; NaN if there is none."""
    size = int(group.max(initial=-1)) + 1
    count, total = np.bincount(group[done], minlength=size), np.bincount(group[done], took, minlength=size)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)[group]


def time_left(remaining: Sequence[float] | None) -> str:
    """A range of time in words, with the lower end rounded down and the upper end up.

    >>> time_left(None), time_left(TimeLeft(50, 63)), time_left(TimeLeft(100, 260))
    ('time left not known yet', '50 s to 1 min 3 s left', '1 min 40 s to 4 min 20 s left')
    >>> time_left(TimeLeft(0.2, 0.7)), time_left(TimeLeft(3.0, 3.0)), time_left(TimeLeft(3000.2, 6599))
    ('at most 1 s left', 'about 3 s left', '50 min to 1 h 50 min left')
    """
    if remaining is None:
        return "time left not known yet"
    least, most = (
        sign * (sign * seconds // _unit(seconds)) * _unit(seconds)
        for sign, seconds in zip((1, -1), remaining, strict=True)
    )
    if least == most:
        return f"about {lasting(most)} left"
    return f"{lasting(least)} to {lasting(most)} left" if least else f"at most {lasting(most)} left"


def _unit(seconds: float) -> int:
    """The unit for rounding: seconds, ten seconds, minutes or ten minutes, since estimates are no more precise."""
    return 1 if seconds < 120 else 10 if seconds < 600 else 60 if seconds < 7200 else 600


# Why a task is in its state: unfinished parents, failures that block it, and its position in the order

MOST_NAMES = 6  # most tasks named in one sentence


class Place(NamedTuple):
    """The position of a task in the order of a policy, from 1, and the criteria behind it."""

    policy: str
    place: int
    #: number of tasks on the longest path from it to an end, including it, and the largest such number in the workflow
    path: int
    longest: int
    #: duration of that path, if run times are known
    seconds: float | None
    #: number of tasks that depend on it, and number of those that wait only for it
    children: int
    releases: int


def order_of(looked: Looked) -> Ints | None:
    """The order of the policy; None if the policy has none, or its file is gone. Computing it takes a moment."""
    if looked.policy in ALLOCATORS:
        return None
    order = looked.curve("order")
    try:
        rule = policy(looked.policy, looked.flow, None if order is None else order.astype(np.int32))
    except InputError:
        return None
    return in_classes(rule, looked.flow.column("priority")).order()


def place_of(looked: Looked, v: int, order: Ints | None) -> Place | None:
    """The position of a task in an order; None if there is no order."""
    if order is None:
        return None
    dag = looked.flow.dag
    children = dag.children_of(v).tolist()
    estimates = estimate(looked.flow)
    return Place(
        policy=looked.policy,
        place=int(places(len(dag), order)[v]) + 1,
        path=int(dag.height[v]) + 1,
        longest=dag.depth,
        seconds=_path_seconds(looked, v, estimates.seconds) if estimates.level != "nothing" else None,
        children=len(children),
        releases=sum(looked.execution.missing[w] == 1 for w in children) if looked.state(v) != DONE else 0,
    )


def _path_seconds(looked: Looked, v: int, seconds: NDArray[np.float64]) -> float:
    """The length in seconds of the longest path from a task to an end."""
    return float(looked.flow.dag.longest_paths(seconds)[v] + seconds[v])


def waits_for(looked: Looked, v: int) -> list[int]:
    """The parents of a task that are not done."""
    return [u for u in looked.flow.dag.parents_of(v).tolist() if looked.execution.codes[u] != EXECUTED]


def nearest(looked: Looked, v: int) -> list[int]:
    """The nearest ancestors of a task that are neither done nor pending: those that must end next."""
    dag, codes = looked.flow.dag, np.frombuffer(looked.execution.codes, np.uint8)
    passed = codes == NOT_READY if looked.under_way else (codes == NOT_READY) | (codes == HELD)
    visited, parts, level = np.zeros(len(dag), np.bool_), list[Ints](), np.array([v], np.int32)
    visited[v] = True
    while len(level):
        above = np.unique(gather_rows(dag.parent_ptr, dag.parent, level)[0])
        fresh = above[~visited[above] & (codes[above] != EXECUTED)]
        visited[fresh] = True
        level = fresh[passed[fresh]]
        parts.append(fresh[~passed[fresh]])
    return [int(u) for part in parts for u in part]


def blocking_failures(looked: Looked, v: int) -> list[int]:
    """The failed tasks that block a task."""
    return [u for u in nearest(looked, v) if looked.state(u) in {BAD, RETRYING}] if looked.state(v) == BLOCKED else []


# In words


def explain_state(looked: Looked, v: int, place: Place | None) -> list[str]:
    """Sentences that explain the state of a task."""
    obstacles = looked.obstacles(v) if looked.state(v) in {READY, PENDING, RETRYING} else []
    state = "Ready." if obstacles and looked.state(v) == READY else state_sentence(looked, v)
    return [state, *obstacles, *_dependency_sentences(looked, v), *_place_sentences(looked, place)]


def state_sentence(looked: Looked, v: int) -> str:
    """The state of a task, in a sentence."""
    state, trying = looked.state(v), looked.trying.get(v)
    if state == RUNNING:
        if trying is None:
            return "Assigned to a worker that has not started it yet."
        return f"Running for {since(looked, trying)} on {looked.name_of(trying.client)}."
    if state == RETRYING:
        return f"Failed; retrying in {lasting(max(0.0, round(looked.again[v] - looked.at)))}."
    ready = "Ready, waiting for a worker." if looked.under_way else "Ready, but the run is not running."
    if v in looked.interrupted:
        ready = "Was running when the run was killed; starts again when the run is resumed."
    sentences = {
        DONE: "Done.",
        READY: ready,
        PENDING: "Pending: waits for other tasks.",
        BAD: "Failed permanently.",
    }
    return sentences.get(state, "Blocked: depends on a failed task.")


def since(looked: Looked, trying: Lease) -> str:
    """The time for which a task has been running, in words."""
    return lasting(round(max(0.0, looked.at - trying.since), 1))


def _dependency_sentences(looked: Looked, v: int) -> list[str]:
    blamed = blocking_failures(looked, v)
    sentences = [f"Blocked by {shorten(looked.labels[u])}: {looked.failure(u)}." for u in blamed[:MOST_NAMES]]
    sentences += [f"... and {len(blamed) - MOST_NAMES:,} more failed tasks."] if len(blamed) > MOST_NAMES else []
    parents = waits_for(looked, v)
    if parents:
        sentences.append(f"Waits for {_list_tasks(looked, parents)}.")
    nexts = [u for u in nearest(looked, v) if u not in parents]
    return sentences + ([f"These wait in turn for {_list_tasks(looked, nexts)}."] if nexts else [])


def _list_tasks(looked: Looked, tasks: list[int]) -> str:
    more = f" and {len(tasks) - MOST_NAMES:,} more" if len(tasks) > MOST_NAMES else ""
    return ", ".join(f"{shorten(looked.labels[u])} ({looked.state(u)})" for u in tasks[:MOST_NAMES]) + more


def _place_sentences(looked: Looked, place: Place | None) -> list[str]:
    if place is None:
        return ["No fixed position: this policy chooses among all ready tasks together."]
    length = f"{place.path:,} task{'' if place.path == 1 else 's'} long, itself included"
    seconds = f", {lasting(place.seconds)}" if place.seconds is not None else ""
    most = (
        "the longest in this workflow"
        if place.path == place.longest
        else f"the longest in this workflow has {place.longest:,}"
    )
    hangs = f"{place.children:,} task{' depends' if place.children == 1 else 's depend'} on it"
    only = f" ({'' if place.releases == place.children else f'{place.releases:,} of them '}on it alone)"
    only = only if place.releases else ""
    classes = "priority, then " if any(looked.flow.column("priority")) else ""
    return [
        f"Position {place.place:,} of {len(looked.flow):,} in the order of policy {classes}{place.policy}."
        f" The longest path from it to the end is {length}{seconds} ({most});"
        f" {hangs if place.children else 'no task depends on it'}{only}."
    ]
