"""A workflow that is being served: its execution, its leases and its files."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import islice
from typing import NamedTuple

import numpy as np

from eligo.additions import LiveWorkflow, NewTasks
from eligo.allocating import (
    ALLOCATORS,
    Allocator,
    Ask,
    ByBatch,
    ByPolicy,
    Grant,
    Prudent,
    Rules,
    allocator,
    rules_with_times,
)
from eligo.allocating.asks import Fits
from eligo.allocating.prudent import PRUDENT
from eligo.allocating.within import Within
from eligo.batches.component_solver import BRIEF
from eligo.errors import EligoError, InputError, counted, shorten
from eligo.execution import ALLOCATED, ELIGIBLE, EXECUTED, FAILED, HELD, RELEASE, Execution, unpacked
from eligo.grown_dag import reachable_tasks
from eligo.launch import Launch
from eligo.names import Name
from eligo.policies import POLICIES, from_order, order_grown
from eligo.rows import places
from eligo.running.states import count_states
from eligo.server.rules.document import StoredPlan
from eligo.server.rules.needs import Match, Needs, Offer, Supply, Travels
from eligo.server.rules.outcomes import Digests, blank
from eligo.server.rules.prepared import MOST_ARCS, MOST_TASKS, Wishes, footprint_of, needed_arcs
from eligo.stores.service import FileRow, Sums, WorkflowRow
from eligo.theory.skeleton import skeleton
from eligo.work.attempts import Lease
from eligo.work.demands import byte_words
from eligo.work.tries import Retries, Tries
from eligo.workflow import Workflow

RUNNING, PAUSED, DONE, BROKEN, CANCELLED = "running", "paused", "done", "failed", "cancelled"
UNAVAILABLE = "unavailable"  # its stored state cannot be restored; never written to a store
HELD_BACK = "held"  # by its owner or an operator, until it is resumed; PAUSED waits for files or signatures
ENDED = {DONE, BROKEN, CANCELLED}
FINAL = {DONE, CANCELLED}  # these never change again; a failed workflow may be retried
MOST_VOTED = 1_000  # the oldest tasks that wait for more results, which are considered first
MOST_KNOWN = 10_000  # maximum number of entries in each cache of asks and fits
BATCH_SECONDS = 0.005  # to compute one batch, while all other clients wait
MOST_POSTPONED = 1_000  # tasks: a larger allocator takes too long to build while clients wait
#: tasks and dependencies: adding to a larger workflow makes every client wait too long
MOST_GROWN, MOST_GROWN_ARCS = 10_000, 50_000
MOST_ADDED, MOST_ADDED_ARCS = 1_000, 10_000  # tasks of one addition; dependencies, and names of files
#: the order of the policy "dask", which is computed only at submission: every client would wait for a new computation
DASK_ORDER = "dask order"
MOST_AT_ONCE = 1_000  # maximum number of tasks in a grant that is sized by seconds


class UnreadError(Exception):
    """Raised if the tasks that a result adds have not been read yet; the result is not processed then."""


class Vote(NamedTuple):
    """A result that waits for others to agree."""

    client: str
    digest: str


class Postponed:
    """An allocator that is built on its first use, so that a server with many workflows starts sooner."""

    def __init__(self, execution: Execution, make: Callable[[], Allocator]) -> None:
        self.execution, self._make = execution, make

    def hand_out(self, asks: Sequence[Ask]) -> list[Grant]:
        """See `Allocator`."""
        return self._allocator.hand_out(asks)

    @cached_property
    def _allocator(self) -> Allocator:
        return self._make()


class Fitting:
    """The test of which tasks of a workflow the clients of one owner can get, for offers that meet the same needs."""

    def __init__(self, served: "Served", owner: str, met: bytes) -> None:
        self.match = Match(met, served.supply) if served.needs.demanding else None
        self._served, self._owner = served, owner
        self._index, self._group, self._met = served.flow.dag.index, served.needs.group, met

    def __call__(self, task: Name) -> bool:
        """Whether they can get a task; they cannot if the owner has already delivered a result of it."""
        v, served = self._index[task], self._served
        return bool(self._met[self._group[v]]) and (v not in served.votes or self._owner not in served.voters(v))


def _fits_nothing(task: Name) -> bool:
    return False


class Served:
    """A workflow, its execution and its leases. Numbers are those of tasks; `Service` calls these methods."""

    def __init__(
        self, row: WorkflowRow, flow: Workflow, execution: Execution, plan: StoredPlan, clock: Callable[[], float]
    ) -> None:
        self.live = LiveWorkflow(flow, execution)
        self.row, self.flow, self.execution = row, self.live.flow, execution
        self.codes = execution.codes
        self.id, self.state = row.id, row.state
        self.wishes = Wishes(**json.loads(row.settings))
        #: the order that its policy follows, such as that of its plan; the maximum number of ready tasks after each step;
        #: the order that keeps its limit of space, without added tasks
        self.order, self.ceiling, self.reference = plan
        small = len(self.flow) <= MOST_POSTPONED and self.wishes.policy in {*POLICIES, *ALLOCATORS}
        inner = Postponed(execution, self._inner) if small else self._inner()
        #: the part of its allocator that keeps the limit of space; None if there is no limit
        self.within = self._within(inner)
        rules = (
            rules_with_times(replace(PRUDENT, copies=self.wishes.copies), self.flow) if self.wishes.rules else Rules()
        )
        self.allocator = Prudent(self.within or inner, rules, clock=clock)
        self.allocator.may_fit = self._may_fit
        self.files = self._travels()
        self.signatures: dict[str, str] = {}
        self.leases: dict[int, Lease] = {}
        self.holding: dict[int, tuple[int, ...]] = {}  # the lease numbers of each assigned task
        self._out: dict[int, int] = {}  # how many leases of each grant are active, by its first number
        self.number = 0
        self.tries = Tries(self._own_retries)
        self.failed_with: dict[int, set[str]] = {}
        self.votes: dict[int, dict[int, Vote]] = {}  # by task and lease number
        #: the owner for whom a client's result counts as a vote; None: it does not count
        self.owner_of: Callable[[str], str | None] = lambda client: client
        self.kept = self._looked = len(execution.journal)  # moves that are stored, and that were searched for orphans
        self.grown = len(execution.additions)  # additions that are stored
        #: whether its allocator still has to follow an addition, which takes a slice of its own
        self.regrown = False
        #: digests of the accepted results; None: they must be read before a result can be compared
        self.digests: Digests[int] | None = None if len(execution.journal) else blank(len(self.flow))
        self.lost, self.repeated, self.saved = row.lost, 0, 0
        #: clients that have refused its tasks since the server started
        self.distrusted_by: set[str] = set()
        #: the state for which its tasks were last counted, and the counts
        self._counted: tuple[tuple[int, int, int], dict[str, int]] = (-1, -1, -1), {}
        self._fits: dict[tuple[str, Offer], Fits | None] = {}
        self._fitting_by_met: dict[tuple[str, bytes], Fits] = {}
        self._asks: dict[tuple[str, int, Offer], Ask] = {}

    def _travels(self) -> Travels | None:
        if not self.wishes.files:
            return None
        stays = self.wishes.inside and not self.wishes.grow
        files = Travels(self.flow, inside_stays=stays, clean=self.wishes.clean)
        return files if files.makers or files.needs else None

    # Growth

    @property
    def has_grown(self) -> bool:
        """Whether additions are not stored yet."""
        return self.grown < len(self.execution.additions)

    def grow(self, new: NewTasks) -> tuple[str, ...]:
        """Add tasks; returns their names. Per-task data are rebuilt; allocators follow by themselves."""
        self._check_growth(new)
        names = self.live.add(new)
        if not names:
            return ()
        self.flow, self.codes = self.live.flow, self.execution.codes
        self.regrown = True
        for cached in ("commands", "launches", "supply"):
            self.__dict__.pop(cached, None)
        if "needs" in self.__dict__:
            self.needs = self.needs.grown(new.flow)
        self._fits, self._fitting_by_met, self._asks = {}, {}, {}
        if self.files is None:
            self.files = self._travels()
        else:
            self.files.grow(self.flow, new.flow)
        if self.digests is not None:
            self.digests.frombytes(bytes(8 * len(names)))
        if self.order is not None:
            self.order = order_grown(self.flow.dag, places(len(self.order), self.order))
        self.ceiling = None
        return names

    def refusal(self, new: NewTasks | InputError | None) -> str | None:
        """Add the tasks that a task adds; returns why they are refused, or None.

        They must have been read before (`UnreadError`): nothing is read while clients wait.
        """
        if not self.wishes.grow:
            return "tasks of this workflow may not add tasks (submit it with --grow)"
        if new is None:
            raise UnreadError
        try:
            if isinstance(new, InputError):
                raise new
            self._check_inputs(new)
            self.grow(new)
        except EligoError as error:
            return f"added tasks were refused: {error}"
        return None

    def _check_inputs(self, new: NewTasks) -> None:
        """Refuse tasks that read a file that is not stored and that no task writes: it would never arrive."""
        if not self.wishes.files:
            return
        available = {file for task in new.tasks.values() for file in task.outputs}
        files = self.files or Travels(new.flow)
        for name, task in ((name, task) for name, task in new.tasks.items() if name not in self.execution.graph):
            for file in task.inputs:
                if not (file in available or file in files.makers or file in files.there):
                    raise InputError(f"new task {shorten(name)!r} reads {shorten(file)!r}, which no task writes")
                if file in files.temporary and file not in files.there and self.codes[files.makers[file]] == EXECUTED:
                    what = f"new task {shorten(name)!r} reads {shorten(file)!r}, a temporary file that was removed"
                    raise InputError(f"{what}: submit a workflow with this task and those that it needs")

    def _check_growth(self, new: NewTasks) -> None:
        """Refuse tasks for a signed workflow, whose signatures cover all of it, and tasks beyond the limit of its policy."""
        if len(new.flow) > MOST_ADDED:
            raise InputError(f"an addition may have at most {MOST_ADDED:,} tasks, got {len(new.flow):,}")
        size, most = len(self.flow) + len(new.flow), MOST_TASKS.get(self.wishes.policy, MOST_GROWN)
        if self.wishes.signed:
            raise InputError("cannot add tasks to a signed workflow")
        if size > most:
            policy = f" with the policy {self.wishes.policy!r}" if most < MOST_GROWN else ""
            raise InputError(f"a growing workflow may have at most {most:,} tasks{policy}, got {size:,}")
        self._check_arcs(self.live.most_arcs(new))

    def _check_arcs(self, more: int) -> None:
        """Refuse tasks that may add too many dependencies."""
        if more > MOST_ADDED_ARCS:
            raise InputError(f"an addition may have at most {MOST_ADDED_ARCS:,} dependencies, got up to {more:,}")
        limits = [(self.flow.dag.arc_count, MOST_GROWN_ARCS, "")]
        if self.wishes.policy in MOST_ARCS:
            policy = f" with the policy {self.wishes.policy!r}"
            limits.insert(0, (needed_arcs(self.flow.dag), MOST_ARCS[self.wishes.policy], policy))
        for arcs, most, which in limits:
            if arcs + more > most:
                limit = f"at most {most:,} dependencies{which}"
                raise InputError(f"a growing workflow may have {limit}, got up to {arcs + more:,}")

    def _inner(self) -> Allocator:
        if self.wishes.policy == "batch-optimal":
            return ByBatch(self.execution, seconds=BATCH_SECONDS, limits=BRIEF)
        if self.wishes.policy == "dask" and self.order is not None:
            planned = from_order(skeleton(self.flow.dag), self.order, DASK_ORDER)
            return ByPolicy(planned, self.execution, flow=self.flow)
        return allocator(self.wishes.policy, self.flow, self.execution, rules=None, order=self.order)

    # The limit of space

    def _within(self, inner: Allocator) -> Within | None:
        if self.reference is None or self.wishes.space is None:
            return None
        order, footprint = self.reference, partial(footprint_of, self.wishes)
        if len(order) < len(self.flow):
            order = order_grown(self.flow.dag, places(len(order), order))
        limit, retried = self.wishes.space, lambda v: v in self.tries.waiting
        within = Within(inner, footprint(self.flow), limit, order, grown=lambda dag: footprint(self.flow))
        within.retrying = retried
        return within

    def resume_space(self) -> None:
        """Follow what happened before a restart, as far as space is concerned."""
        if self.within is not None and self.files is not None:
            self.within.resume({name: row.size for name, row in self.files.there.items()})

    def may_start(self, task: int) -> bool:
        """Whether a ready task does not wait for space."""
        return self.within is None or self.within.may_start(task)

    def may_end(self, task: int) -> bool:
        """Whether there is space for the files of a task, which may have come back while it was still run."""
        return self.within is None or self.codes[task] in {ALLOCATED, HELD} or self.within.fits(task)

    def take_file(self, row: FileRow) -> None:
        """Record a file that a task wrote."""
        if self.files is not None:
            self.files.there[row.name] = row
        if self.within is not None:
            self.within.correct_files({row.name: row.size})

    def space_notes(self) -> list[str]:
        """Sentences about the limit of space: how many ready tasks wait, and whether it was exceeded."""
        if self.within is None:
            return []
        limit, live, waiting = self.within.limit, self.within.live, self.within.waiting(MOST_VOTED)
        many = f"{counted(waiting, 'ready task')} {'waits' if waiting == 1 else 'wait'} for space"
        notes = (
            [f"{many}: {byte_words(live)} of {byte_words(limit)} are in use or reserved"] if waiting and live else []
        )
        return notes if self.within.remark is None else [*notes, self.within.remark]

    def make_ready(self) -> None:
        """Compute in advance what the first request would otherwise compute while all clients wait."""
        _ = self.flow.dag.index, self.commands, self.launches, self.needs.demanding and self.supply
        self.allocator.hand_out([])

    # Properties

    @property
    def open(self) -> bool:
        """Whether its tasks are handed out."""
        return self.state == RUNNING

    @property
    def waits(self) -> bool:
        """Whether files or signatures are missing, so that no tasks are handed out."""
        return bool(self.unsigned) or (self.files is not None and self.files.waits)

    @property
    def unsigned(self) -> int:
        """The number of missing signatures."""
        return len(self.flow) - len(self.signatures) if self.wishes.signed else 0

    @property
    def ready(self) -> int:
        """The number of ready tasks."""
        return len(self.execution.eligible)

    def retries(self, usual: Retries) -> Retries:
        """The number of retries of its tasks."""
        most = self.wishes.retries
        return usual if most is None else replace(usual, most=most)

    def _own_retries(self, task: int) -> int | None:
        """The number of retries that a task asks for itself."""
        launch = self.flow.task(self.flow.dag.tasks[task]).launch
        return None if launch is None else launch.retries

    @cached_property
    def commands(self) -> Sequence[str | tuple[str, ...]]:
        """The command of each task."""
        return self.flow.column("command")

    @cached_property
    def launches(self) -> Sequence[Launch | None]:
        """How the command of each task is run; empty if no task states it."""
        column = self.flow.column("launch")
        return column if any(launch is not None for launch in column) else ()

    @cached_property
    def needs(self) -> Needs:
        """The needs of tasks, which not every client may meet."""
        needs = Needs(self.flow)
        for task, failures in self.tries.failures.items():
            needs.grow_memory(task, failures)
        return needs

    def memory_of(self, task: int) -> int | None:
        """The memory of the next attempt at a task, or of the running one, by number."""
        return int(self.needs.groups[self.needs.group[task]].memory) or None

    def voters(self, task: int, digest: str | None = None) -> set[str]:
        """The owners of the clients that delivered a result of a task; with *digest*, only those that delivered this one."""
        votes = self.votes.get(task, {}).values()
        owners = {self.owner_of(vote.client) for vote in votes if digest is None or vote.digest == digest}
        return {owner for owner in owners if owner is not None}

    def ask(self, client: str, size: int, offer: Offer, files: frozenset[str] = frozenset()) -> Ask:
        """The ask of a client for up to *size* tasks that its offer fits; *files* are hash prefixes of files that it has."""
        if files and self.files is not None and self.wishes.locality:
            return Ask(client, size=size, fits=self.fits_of(client, offer), saves=self.files.kept_by(files))
        key = (client, size, offer)
        ask = self._asks.get(key)
        if ask is None:
            if len(self._asks) > MOST_KNOWN:
                self._asks.clear()
            ask = self._asks[key] = Ask(client, size=size, fits=self.fits_of(client, offer))
        return ask

    def shun(self, client: str) -> None:
        """Stop giving tasks of this workflow to a client that does not trust its signature."""
        if client in self.distrusted_by:
            return
        self.distrusted_by.add(client)
        self._asks = {key: ask for key, ask in self._asks.items() if key[0] != client}

    def fits_of(self, client: str, offer: Offer) -> Fits | None:
        """The test of which tasks a client can get; None: all. Clients that can get the same tasks share one function."""
        if client in self.distrusted_by:
            return _fits_nothing
        key = ((self.owner_of(client) or client) if self.wishes.quorum > 1 else "", offer)
        if key not in self._fits:
            if len(self._fits) > MOST_KNOWN:
                self._fits.clear()
                self._fitting_by_met.clear()
            self._fits[key] = self._fitting(*key)
        return self._fits[key]

    def _fitting(self, owner: str, offer: Offer) -> Fits | None:
        if not self.needs.demanding and not owner:
            return None
        met = self.needs.met_by(offer)
        return self._fitting_by_met.setdefault((owner, met), Fitting(self, owner, met))

    @cached_property
    def supply(self) -> Supply:
        """The groups of needs that have ready tasks."""
        return Supply(self.needs, self.execution)

    def _may_fit(self, ask: Ask) -> bool:
        """Whether a ready task may fit, without a test of each."""
        if ask.fits is _fits_nothing:
            return False
        match = ask.fits.match if isinstance(ask.fits, Fitting) else None
        return match is None or match.ready

    def tasks_in(self, client: str, seconds: float) -> int:
        """The number of tasks that a client runs in some seconds, estimated from the results so far."""
        speeds = self.allocator.speeds
        if not speeds.results or not speeds.seconds:
            return 1
        mean = speeds.seconds / speeds.results
        return max(1, min(MOST_AT_ONCE, int(seconds * (speeds.of(client) or 1.0) / mean)))

    def hand_out(self, asks: Sequence[Ask]) -> list[Grant]:
        """The grants for these asks; tasks that need more agreeing results come first, so that wrong results show early."""
        voted = [v for v in islice(self.votes, MOST_VOTED) if self.execution.codes[v] == ELIGIBLE] if self.votes else []
        if not voted:
            return self.allocator.hand_out(asks)
        grants, remaining, fits_none = list[Grant](), list[Ask](), set[Fits | None]()
        for ask in asks:
            fitting = (v for v in voted if ask.fits not in fits_none and self._may_have(ask, v))
            v = next(fitting, None)
            if v is None:
                fits_none.add(ask.fits)  # of all these tasks none fits any longer
                remaining.append(ask)
            else:
                voted.remove(v)
                grants.append(self._grant_chosen(ask, self.flow.dag.tasks[v]))
        return grants + self.allocator.hand_out(remaining)

    def _may_have(self, ask: Ask, v: int) -> bool:
        return self.may_start(v) and ask.admits(self.flow.dag.tasks[v])

    def _grant_chosen(self, ask: Ask, task: Name) -> Grant:
        """Grant a task that was chosen here and not by the allocator."""
        self.execution.take(task)
        self.allocator.has(ask.client, task)
        return Grant(ask, (task,), "other clients have delivered results for it; they count once enough agree")

    # Leases

    def lease(self, tasks: Sequence[Name], client: str, secret: str, key: str, since: float) -> list[Lease]:
        """Lease tasks to a client as one grant; returns the leases."""
        first, id, tries = self.number + 1, self.id, self.tries.begun
        make = tuple.__new__  # calling the class by its name takes twice as long
        self.number += len(tasks)
        leases = list[Lease]()
        for number, task in enumerate(map(self.flow.dag.index.__getitem__, tasks), first):
            tries[task] = attempt = tries.get(task, 0) + 1
            leases.append(make(Lease, (id, number, task, attempt, client, secret, key, first, since)))
        self.add(leases)
        return leases

    def add(self, leases: Sequence[Lease]) -> None:
        """Record active leases."""
        by_number, holding, out = self.leases, self.holding, self._out
        for lease in leases:
            number, task = lease.number, lease.task
            by_number[number] = lease
            holding[task] = (*holding[task], number) if task in holding else (number,)
            out[lease.first] = out.get(lease.first, 0) + 1
            if lease.attempt > 1:
                self.repeated += 1

    def drop(self, leases: Sequence[Lease]) -> tuple[list[Lease], list[int]]:
        """Remove leases; returns those that were active, and the first numbers of the grants without active leases now."""
        by_number, holding, out, over = self.leases, self.holding, self._out, list[int]()
        had = [lease for lease in leases if by_number.pop(lease.number, None) is not None]
        for lease in had:
            holders, first = holding[lease.task], lease.first
            if len(holders) == 1:
                del holding[lease.task]
            else:
                holding[lease.task] = tuple(number for number in holders if number != lease.number)
            out[first] -= 1
            if not out[first]:
                del out[first]
                over.append(first)
        return had, over

    def holders(self, task: int) -> list[Lease]:
        """The leases of a task."""
        return [self.leases[number] for number in self.holding.get(task, ())]

    def orphans(self) -> list[Lease]:
        """The leases of tasks that were returned since the last call because a task that they wait for was returned."""
        moves, self._looked = self.execution.since(self._looked), len(self.execution.journal)
        codes = self.codes
        back = {v for kind, v in unpacked(moves) if kind == RELEASE and codes[v] not in {ALLOCATED, HELD}}
        return [lease for v in back for lease in self.holders(v)]

    # Outcomes of tasks

    def come_back(self, task: int) -> None:
        """Take an unfinished task back from one of its holders."""
        self.execution.give_up(self.flow.dag.tasks[task])

    def fail(self, task: int) -> None:
        """Mark a task as failed for one of its holders."""
        self.execution.fail(self.flow.dag.tasks[task])

    def forget(self, tasks: Sequence[int]) -> None:
        """Drop the records of earlier attempts at finished tasks."""
        self.tries.forget(tasks)
        for task in tasks if self.failed_with else ():
            self.failed_with.pop(task, None)

    def try_again(self, now: float) -> None:
        """Make the failed tasks ready whose retry is due."""
        for task in self.tries.due(now):
            if self.codes[task] == FAILED:
                self._release(task)

    def _release(self, task: int) -> None:
        """Make a failed task ready."""
        self.needs.grow_memory(task, self.tries.failures[task])
        self.execution.release(self.flow.dag.tasks[task])

    def retry(self, tasks: Iterable[int]) -> list[int]:
        """Make failed tasks ready, with all their retries again; returns which."""
        chosen = sorted({v for v in tasks if self.codes[v] == FAILED})
        self.tries.restart(chosen, self.number)
        for v in chosen:
            self.votes.pop(v, None)
            self._release(v)
        return chosen

    @property
    def verdict(self) -> str | None:
        """The final state; None while it is running."""
        if self.execution.finished:
            return DONE
        stuck = self.execution.stuck and not self.tries.waiting and not self.holding
        return BROKEN if stuck and self.state in {RUNNING, BROKEN} else None

    @property
    def tally(self) -> Sums:
        """Its totals so far."""
        return Sums(len(self.flow), len(self.execution.executed), self.lost, self.repeated, self.saved)

    def counts(self) -> dict[str, int]:
        """The number of tasks in each state."""
        stand = len(self.execution.journal), len(self.tries.waiting), len(self.flow)
        if self._counted[0] != stand:
            self._counted = stand, self._count()
        return dict(self._counted[1])

    def _count(self) -> dict[str, int]:
        game = self.execution
        failed = np.asarray(game.codes) == FAILED
        failed[[*self.tries.waiting]] = False
        count = int(np.count_nonzero(failed))
        return count_states(game, count, len(reachable_tasks(game.dag, np.flatnonzero(failed))) if count else 0)
