"""One workflow that is being served: its execution, who has what of it, and its files."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import NamedTuple

import numpy as np

from eligo.additions import LiveWorkflow, NewTasks, read_addition
from eligo.allocating import ALLOCATORS, Allocator, Ask, ByBatch, ByPolicy, Grant, Prudent, Rules, allocator, informed
from eligo.allocating.asks import Fits
from eligo.allocating.prudent import PRUDENT
from eligo.batches.limits import BRIEF
from eligo.errors import EligoError, InputError, shorten
from eligo.execution import ALLOCATED, ELIGIBLE, FAILED, HELD, RELEASE, Execution, unpacked
from eligo.growing import reached
from eligo.names import Name
from eligo.policies import POLICIES, from_order, order_grown
from eligo.rows import Ints, places
from eligo.running.states import count_states
from eligo.server.rules.file_travel import Travels
from eligo.server.rules.needs import Match, Needs, Offer, Supply
from eligo.server.rules.outcomes import Digests, blank
from eligo.server.rules.prepared import MOST_ARCS, MOST_TASKS, Wishes, needed_arcs
from eligo.stores.service import Sums, WorkflowRow
from eligo.theory.skeleton import skeleton
from eligo.work.attempts import Lease
from eligo.work.tries import Retries, Tries
from eligo.workflow import Workflow

RUNNING, PAUSED, DONE, BROKEN, CANCELLED = "running", "paused", "done", "failed", "cancelled"
UNAVAILABLE = "unavailable"  # what is kept of it cannot be restored; never written to a store
HELD_BACK = "held"  # by its owner or an operator, until it is resumed; paused is what waits for files or signatures
ENDED = {DONE, BROKEN, CANCELLED}
FINAL = {DONE, CANCELLED}  # nothing more comes of these; what is broken may be tried again
MOST_VOTED = 1_000  # tasks that wait for more results, the oldest, that are looked at first
MOST_KNOWN = 10_000  # kinds of askers
BATCH_SECONDS = 0.005  # for one batch, while all others wait
MOST_POSTPONED = 1_000  # tasks: for more, an allocator takes too long to be made while clients wait
MOST_GROWN = 100_000  # tasks: for more, every client waits too long while some are added
MOST_AT_ONCE = 1_000  # tasks in a grant that is sized by seconds


class Vote(NamedTuple):
    """A result that waits for others to agree."""

    client: str
    digest: str


class Postponed:
    """An allocator that is made when it is asked first: a server with many workflows starts sooner."""

    def __init__(self, execution: Execution, make: Callable[[], Allocator]) -> None:
        self.execution, self._make = execution, make

    def hand_out(self, asks: Sequence[Ask]) -> list[Grant]:
        """See `Allocator`."""
        return self._allocator.hand_out(asks)

    @cached_property
    def _allocator(self) -> Allocator:
        return self._make()


class Fitting:
    """Which tasks of a workflow clients of an owner can get whose offers meet some of its needs."""

    def __init__(self, served: "Served", owner: str, met: bytes) -> None:
        self.match = Match(met, served.supply) if served.needs.demanding else None
        self._served, self._owner = served, owner
        self._index, self._group, self._met = served.flow.dag.index, served.needs.group, met

    def __call__(self, task: Name) -> bool:
        """Whether they can get a task: not one of which the owner has brought a result."""
        v, served = self._index[task], self._served
        return bool(self._met[self._group[v]]) and (v not in served.votes or self._owner not in served.voters(v))


def _fits_nothing(task: Name) -> bool:
    return False


class Served:
    """A workflow, its execution and its leases. Numbers are those of tasks; see `Service` for who calls this when."""

    def __init__(
        self, row: WorkflowRow, flow: Workflow, execution: Execution, order: Ints | None, clock: Callable[[], float]
    ) -> None:
        self.live = LiveWorkflow(flow, execution)
        self.row, self.flow, self.execution = row, self.live.flow, execution
        self.codes = execution.codes
        self.id, self.state = row.id, row.state
        self.wishes = Wishes(**json.loads(row.settings))
        #: the order that its policy goes by, such as that of its plan; and the most tasks that can be ready after each step
        self.order = order
        self.ceiling: Ints | None = None
        small = len(self.flow) <= MOST_POSTPONED and self.wishes.policy in {*POLICIES, *ALLOCATORS}
        inner = Postponed(execution, lambda: self._inner(self.order)) if small else self._inner(order)
        rules = informed(replace(PRUDENT, copies=self.wishes.copies), self.flow) if self.wishes.rules else Rules()
        self.allocator = Prudent(inner, rules, clock=clock)
        self.allocator.may_fit = self._may_fit
        self.files = self._travels()
        self.signatures: dict[str, str] = {}
        self.leases: dict[int, Lease] = {}
        self.holding: dict[int, tuple[int, ...]] = {}  # the leases of each task that is out
        self._out: dict[int, int] = {}  # how many leases of each grant are out, by its first number
        self.number = 0
        self.tries = Tries()
        self.failed_with: dict[int, set[str]] = {}
        self.votes: dict[int, dict[int, Vote]] = {}  # by task and number of the lease
        #: whose vote a client's result is; None: it does not count
        self.owner_of: Callable[[str], str | None] = lambda client: client
        self.retried: dict[int, int] = {}  # the number up to which leases of a task that its owner retried do not count
        self.kept = self._looked = len(execution.journal)  # moves that are kept, and that were looked at for orphans
        self.grown = len(execution.additions)  # additions that are kept
        #: of the results that were accepted; None: they must be read before a result can be compared
        self.digests: Digests[int] | None = None if len(execution.journal) else blank(len(self.flow))
        self.lost, self.repeated, self.saved = row.lost, 0, 0
        #: clients that refuse its tasks, as far as they have said so since the server began
        self.distrusted_by: set[str] = set()
        self._fits: dict[tuple[str, Offer], Fits | None] = {}
        self._fitting_by_met: dict[tuple[str, bytes], Fits] = {}
        self._asks: dict[tuple[str, int, Offer], Ask] = {}

    def _travels(self) -> Travels | None:
        files = (
            Travels(self.flow, inside_stays=self.wishes.inside and not self.wishes.grow) if self.wishes.files else None
        )
        return files if files is not None and (files.makers or files.needs) else None

    # How it grows

    def grow(self, new: NewTasks) -> tuple[str, ...]:
        """Add tasks; returns their names. Per-task data are rebuilt; allocators follow by themselves."""
        self._check_growth(new)
        names = self.live.add(new)
        if not names:
            return ()
        self.flow, self.codes = self.live.flow, self.execution.codes
        for cached in ("commands", "needs", "supply"):
            self.__dict__.pop(cached, None)
        self._fits, self._fitting_by_met, self._asks = {}, {}, {}
        there = {} if self.files is None else self.files.there
        self.files = self._travels()
        if self.files is not None:
            self.files.there = there
        if self.digests is not None:
            self.digests.frombytes(bytes(8 * len(names)))
        if self.order is not None:
            self.order = order_grown(self.flow.dag, places(len(self.order), self.order))
        self.ceiling = None
        return names

    def refusal(self, added: str) -> str | None:
        """Add the tasks that a task adds; why they are refused, or None."""
        if not self.wishes.grow:
            return "tasks of this workflow may not add tasks (submit it with --grow)"
        try:
            new = read_addition(added)
            self._check_inputs(new)
            self.grow(new)
        except EligoError as error:
            return f"added tasks were refused: {error}"
        return None

    def _check_inputs(self, new: NewTasks) -> None:
        """Refuse tasks that read what is not there and no task makes: nobody would bring it."""
        if not self.wishes.files:
            return
        available = {
            *Travels(new.flow).makers,
            *(() if self.files is None else (*self.files.makers, *self.files.there)),
        }
        for name in new.flow.dag.tasks:
            for file in new.flow.task(name).inputs:
                if file not in available:
                    raise InputError(f"new task {shorten(name)!r} reads {shorten(file)!r}, which no task writes")

    def _check_growth(self, new: NewTasks) -> None:
        """Refuse tasks for what cannot grow: who signed it signed all of it, and some policies serve few tasks only."""
        size, most = len(self.flow) + len(new.flow), MOST_TASKS.get(self.wishes.policy, MOST_GROWN)
        if self.wishes.signed:
            raise InputError("cannot add tasks to a signed workflow")
        if size > most:
            policy = f" with the policy {self.wishes.policy!r}" if most < MOST_GROWN else ""
            raise InputError(f"a growing workflow may have at most {most:,} tasks{policy}, got {size:,}")
        if self.wishes.policy in MOST_ARCS:
            self._check_arcs(new, MOST_ARCS[self.wishes.policy])

    def _check_arcs(self, new: NewTasks, most: int) -> None:
        """Refuse tasks that may make too many dependencies: every file that a new task reads may be one."""
        inside = sum(len(new.flow.task(name).inputs) for name in new.flow.dag.tasks) if new.linked else 0
        arcs = needed_arcs(self.flow.dag) + new.flow.dag.arc_count + len(new.after) + inside
        if arcs > most:
            raise InputError(
                f"a growing workflow may have at most {most:,} dependencies with the policy {self.wishes.policy!r},"
                f" got up to {arcs:,}"
            )

    def _inner(self, order: Ints | None) -> Allocator:
        if self.wishes.policy == "batch-optimal":
            return ByBatch(self.execution, seconds=BATCH_SECONDS, limits=BRIEF)
        if self.wishes.policy == "dask" and order is not None:
            return ByPolicy(from_order(skeleton(self.flow.dag), order, "dask"), self.execution, flow=self.flow)
        return allocator(self.wishes.policy, self.flow, self.execution, rules=None, order=order)

    def follow(self, order: Ints) -> None:
        """Go by another plan from now on; what is known of clients stays known."""
        self.order = order
        self.allocator.allocator = self._inner(order)

    def make_ready(self) -> None:
        """Work out what would otherwise be worked out when the first client asks, while all wait."""
        _ = self.flow.dag.index, self.commands, self.needs.demanding and self.supply
        self.allocator.hand_out([])

    # What it is

    @property
    def open(self) -> bool:
        """Whether its tasks are handed out."""
        return self.state == RUNNING

    @property
    def waits(self) -> bool:
        """Whether files or signatures are missing without which nothing is handed out."""
        return bool(self.unsigned) or (self.files is not None and self.files.waits)

    @property
    def unsigned(self) -> int:
        """How many signatures are missing."""
        return len(self.flow) - len(self.signatures) if self.wishes.signed else 0

    @property
    def ready(self) -> int:
        """How many tasks could be handed out."""
        return len(self.execution.eligible)

    def retries(self, usual: Retries) -> Retries:
        """The number of retries of its tasks."""
        most = self.wishes.retries
        return usual if most is None else Retries(most=most, lost=usual.lost, first=usual.first, longest=usual.longest)

    @cached_property
    def commands(self) -> Sequence[str | tuple[str, ...]]:
        """What each task runs."""
        return self.flow.column("command")

    @cached_property
    def needs(self) -> Needs:
        """What tasks need that not every client may have."""
        return Needs(self.flow)

    def counts_for(self, lease: Lease) -> bool:
        """Whether what comes of a lease counts: not where its task was retried by its owner since."""
        return lease.number > self.retried.get(lease.task, 0)

    def voters(self, task: int, digest: str | None = None) -> set[str]:
        """The owners of the clients that brought a result of a task; those that brought this one."""
        votes = self.votes.get(task, {}).values()
        owners = {self.owner_of(vote.client) for vote in votes if digest is None or vote.digest == digest}
        return {owner for owner in owners if owner is not None}

    def ask(self, client: str, size: int, offer: Offer, files: frozenset[str] = frozenset()) -> Ask:
        """The ask of a client that has some files, for a number of tasks that it can run."""
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
        self.distrusted_by.add(client)
        self._asks = {key: ask for key, ask in self._asks.items() if key[0] != client}

    def fits_of(self, client: str, offer: Offer) -> Fits | None:
        """Which tasks a client can get; None: all. The same function for all who can get the same."""
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
        """The needs of the tasks that are ready."""
        return Supply(self.needs, self.execution)

    def _may_fit(self, ask: Ask) -> bool:
        """Whether a ready task may fit, without a look at each."""
        if ask.fits is _fits_nothing:
            return False
        match = ask.fits.match if isinstance(ask.fits, Fitting) else None
        return match is None or match.ready

    def tasks_in(self, client: str, seconds: float) -> int:
        """The number of tasks that a client does in some seconds, estimated from results so far."""
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
        grants, remaining = list[Grant](), list[Ask]()
        for ask in asks:
            v = next((v for v in voted if ask.admits(self.flow.dag.tasks[v])), None)
            if v is None:
                remaining.append(ask)
            else:
                voted.remove(v)
                grants.append(self._grant_chosen(ask, self.flow.dag.tasks[v]))
        return grants + self.allocator.hand_out(remaining)

    def _grant_chosen(self, ask: Ask, task: Name) -> Grant:
        """A task that was chosen here, and not by the allocator."""
        self.execution.take(task)
        self.allocator.has(ask.client, task)
        return Grant(ask, (task,), "other clients have delivered results for it; they count once enough agree")

    # Leases

    def lease(self, tasks: Sequence[Name], client: str, secret: str, key: str, since: float) -> list[Lease]:
        """A client gets tasks, by one grant."""
        first, id, tries = self.number + 1, self.id, self.tries.begun
        make = tuple.__new__  # by its name it takes twice as long
        self.number += len(tasks)
        leases = list[Lease]()
        for number, task in enumerate(map(self.flow.dag.index.__getitem__, tasks), first):
            tries[task] = attempt = tries.get(task, 0) + 1
            leases.append(make(Lease, (id, number, task, attempt, client, secret, key, first, since)))
        self.add(leases)
        return leases

    def add(self, leases: Sequence[Lease]) -> None:
        """Clients have tasks."""
        by_number, holding, out = self.leases, self.holding, self._out
        for lease in leases:
            number, task = lease.number, lease.task
            by_number[number] = lease
            holding[task] = (*holding[task], number) if task in holding else (number,)
            out[lease.first] = out.get(lease.first, 0) + 1
            if lease.attempt > 1:
                self.repeated += 1

    def drop(self, leases: Sequence[Lease]) -> tuple[list[Lease], list[int]]:
        """Clients have tasks no more: which they had, and the grants, by their first numbers, of which nothing is out now."""
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
        """The leases of tasks that, since this was asked before, came back because what they wait for did."""
        moves, self._looked = self.execution.since(self._looked), len(self.execution.journal)
        codes = self.codes
        back = {v for kind, v in unpacked(moves) if kind == RELEASE and codes[v] not in {ALLOCATED, HELD}}
        return [lease for v in back for lease in self.holders(v)]

    # What comes of tasks

    def come_back(self, task: int) -> None:
        """Return a task undone for one of its holders."""
        self.execution.give_up(self.flow.dag.tasks[task])

    def set_aside(self, task: int) -> None:
        """Mark a task as failed for one of its holders."""
        self.execution.fail(self.flow.dag.tasks[task])

    def forget(self, tasks: Sequence[int]) -> None:
        """Tasks are done: how it went before does not matter any more."""
        self.tries.forget(tasks)
        for task in tasks if self.failed_with else ():
            self.failed_with.pop(task, None)

    def try_again(self, now: float) -> None:
        """What has waited long enough after a failure is ready again."""
        for task in self.tries.due(now):
            if self.codes[task] == FAILED:
                self.execution.release(self.flow.dag.tasks[task])

    def retry(self, tasks: Iterable[int]) -> list[int]:
        """Retry permanently failed tasks; returns which."""
        chosen = sorted({v for v in tasks if self.codes[v] == FAILED})
        self.tries.restart(chosen)
        for v in chosen:
            self.retried[v] = self.number
            self.votes.pop(v, None)
            self.execution.release(self.flow.dag.tasks[v])
        return chosen

    @property
    def verdict(self) -> str | None:
        """The final state; None while it is running."""
        if self.execution.finished:
            return DONE
        stuck = self.execution.stuck and not self.tries.later and not self.holding
        return BROKEN if stuck and self.state in {RUNNING, BROKEN} else None

    @property
    def tally(self) -> Sums:
        """What has come of it."""
        return Sums(len(self.flow), len(self.execution.executed), self.lost, self.repeated, self.saved)

    def counts(self) -> dict[str, int]:
        """How many tasks are in which state."""
        game = self.execution
        failed = np.asarray(game.codes) == FAILED
        failed[[v for _, v in self.tries.later]] = False
        count = int(np.count_nonzero(failed))
        return count_states(game, count, len(reached(game.dag, np.flatnonzero(failed))) if count else 0)
