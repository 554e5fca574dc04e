"""One workflow that is being served: its execution, who has what of it, and its files."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from heapq import heappop, heappush
from itertools import islice

from eligo.allocating import Allocator, Ask, Grant, Prudent, Rules, allocator, informed
from eligo.allocating.asking import Fits
from eligo.allocating.prudent import PRUDENT
from eligo.execution import ALLOCATED, ELIGIBLE, FAILED, HELD, RELEASE, Execution, unpacked
from eligo.names import Name
from eligo.rows import Ints
from eligo.running.retrying import Retries
from eligo.server.preparing import Wishes
from eligo.server.remembering import Digests, blank
from eligo.server.travelling import Travels
from eligo.stores.serving import Lease, Sums, WorkflowRow
from eligo.workflow import Workflow

RUNNING, PAUSED, DONE, BROKEN, CANCELLED = "running", "paused", "done", "failed", "cancelled"
ENDED = {DONE, BROKEN, CANCELLED}
FINAL = {DONE, CANCELLED}  # nothing more comes of these; what is broken may be tried again
MOST_VOTED = 1_000  # tasks that wait for more results, the oldest, that are looked at first
MOST_KNOWN = 10_000  # kinds of askers
MOST_AT_ONCE = 1_000  # tasks in a grant that is sized by seconds


class Served:
    """A workflow, its execution and its leases. Numbers are those of tasks; see `Service` for who calls this when."""

    def __init__(
        self, row: WorkflowRow, flow: Workflow, execution: Execution, order: Ints | None, clock: Callable[[], float]
    ) -> None:
        self.row, self.flow, self.execution = row, flow, execution
        self.codes = execution.codes
        self.id, self.state = row.id, row.state
        self.wishes = Wishes(**json.loads(row.settings))
        rules = informed(replace(PRUDENT, copies=self.wishes.copies), flow) if self.wishes.rules else Rules()
        #: the order of its plan, where its policy has to do with that; and the most tasks that can be ready after each step
        self.order = order
        self.ceiling: Ints | None = None
        self.allocator = Prudent(self._inner(order), rules, clock=clock)
        files = Travels(flow) if self.wishes.files else None
        self.files = files if files is not None and (files.makers or files.readers) else None
        self.signatures: dict[str, str] = {}
        self.leases: dict[int, Lease] = {}
        self.holding: dict[int, tuple[int, ...]] = {}  # the leases of each task that is out
        self._out: dict[int, int] = {}  # how many leases of each grant are out, by its first number
        self.number = 0
        self.tries: Counter[int] = Counter()
        self.failures: Counter[int] = Counter()
        self.losses: Counter[int] = Counter()
        self.failed_with: dict[int, set[str]] = {}
        self.causes: dict[int, str] = {}  # why tasks were set aside for good
        self.votes: dict[int, dict[str, str]] = {}
        self.later: list[tuple[float, int]] = []  # when tasks that failed are tried again
        self.kept = self._looked = len(execution.journal)  # moves that are kept, and that were looked at for orphans
        #: of the results that were accepted; None: they must be read before a result can be compared
        self.digests: Digests[int] | None = None if len(execution.journal) else blank(len(flow))
        self.lost, self.repeated, self.saved = row.lost, 0, 0
        self._fits: dict[tuple[str, float, float], Fits | None] = {}
        self._asks: dict[tuple[str, int, float, float], Ask] = {}

    def _inner(self, order: Ints | None) -> Allocator:
        return allocator(self.wishes.policy, self.flow, self.execution, rules=None, order=order)

    def follow(self, order: Ints) -> None:
        """Go by another plan from now on; what is known of clients stays known."""
        self.order = order
        self.allocator.allocator = self._inner(order)

    def make_ready(self) -> None:
        """Work out what would otherwise be worked out when the first client asks, while all wait."""
        _ = self.flow.dag.index, self.commands, self.demanding

    # What it is

    @property
    def open(self) -> bool:
        """Whether its tasks are handed out."""
        return self.state == RUNNING

    @property
    def waits(self) -> bool:
        """Whether files or signatures are missing without which nothing is handed out."""
        unsigned = self.wishes.signed and len(self.signatures) < len(self.flow)
        return unsigned or (self.files is not None and bool(self.files.missing))

    @property
    def ready(self) -> int:
        """How many tasks could be handed out."""
        return len(self.execution.eligible)

    def retries(self, usual: Retries) -> Retries:
        """How often its tasks are tried again."""
        most = self.wishes.retries
        return usual if most is None else Retries(most=most, lost=usual.lost, first=usual.first, longest=usual.longest)

    @cached_property
    def commands(self) -> Sequence[str | tuple[str, ...]]:
        """What each task runs."""
        return self.flow.column("command")

    @cached_property
    def demanding(self) -> bool:
        """Whether tasks ask for cores or memory that not every client may have."""
        return any((cores or 1) > 1 for cores in self.flow.column("cores")) or any(self.flow.column("memory"))

    def ask(self, client: str, size: int, cores: float, memory: float) -> Ask:
        """What a client asks for: so many tasks that it can run. The same each time, since it is asked often."""
        key = (client, size, cores, memory)
        known = self._asks.get(key)
        if known is None:
            if len(self._asks) > MOST_KNOWN:
                self._asks.clear()
            known = self._asks[key] = Ask(client, size=size, fits=self._fits_of(client, cores, memory))
        return known

    def _fits_of(self, client: str, cores: float, memory: float) -> Fits | None:
        """Which tasks a client can get; None: all. The same function each time, so that askers alike are seen as such."""
        key = (client if self.wishes.quorum > 1 else "", cores, memory)
        if key not in self._fits:
            if len(self._fits) > MOST_KNOWN:
                self._fits.clear()
            self._fits[key] = self._fitting(*key)
        return self._fits[key]

    def _fitting(self, client: str, cores: float, memory: float) -> Fits | None:
        if not self.demanding and not client:
            return None
        flow, votes, index = self.flow, self.votes, self.flow.dag.index

        def fits(name: Name) -> bool:
            task = flow.task(name)
            able = (task.cores or 1) <= cores and (task.memory or 0) <= memory
            return able and client not in votes.get(index[name], ())

        return fits

    def tasks_in(self, client: str, seconds: float) -> int:
        """How many tasks a client does in so many seconds, by what it and others have done so far."""
        speeds = self.allocator.speeds
        if not speeds.results or not speeds.seconds:
            return 1
        mean = speeds.seconds / speeds.results
        return max(1, min(MOST_AT_ONCE, int(seconds * (speeds.of(client) or 1.0) / mean)))

    def hand_out(self, asks: Sequence[Ask]) -> list[Grant]:
        """What those who ask get of it; first what others brought results of that need more: who lies is seen soon."""
        voted = [v for v in islice(self.votes, MOST_VOTED) if self.execution.codes[v] == ELIGIBLE] if self.votes else []
        if not voted:
            return self.allocator.hand_out(asks)
        grants, left = list[Grant](), list[Ask]()
        for ask in asks:
            v = next((v for v in voted if ask.client not in self.votes[v] and ask.admits(self.flow.dag.tasks[v])), None)
            if v is None:
                left.append(ask)
            else:
                voted.remove(v)
                grants.append(self._given(ask, self.flow.dag.tasks[v]))
        return grants + self.allocator.hand_out(left)

    def _given(self, ask: Ask, task: Name) -> Grant:
        """A task that was chosen here, and not by the allocator."""
        self.execution.take(task)
        self.allocator.has(ask.client, task)
        return Grant(ask, (task,), "others have brought a result of it, which counts once enough agree")

    # Leases

    def lease(self, tasks: Sequence[Name], client: str, secret: str, key: str, since: float) -> list[Lease]:
        """A client gets tasks, by one grant."""
        first, id, tries, made = (
            self.number + 1,
            self.id,
            self.tries,
            tuple.__new__,
        )  # by its name it takes twice as long
        self.number += len(tasks)
        found = list[Lease]()
        for number, task in enumerate(map(self.flow.dag.index.__getitem__, tasks), first):
            tries[task] = attempt = tries.get(task, 0) + 1
            found.append(made(Lease, (id, number, task, attempt, client, secret, key, first, since)))
        self.add(found)
        return found

    def add(self, leases: Sequence[Lease]) -> None:
        """Clients have tasks."""
        known, holding, out = self.leases, self.holding, self._out
        for lease in leases:
            number, task = lease.number, lease.task
            known[number] = lease
            holding[task] = (*holding[task], number) if task in holding else (number,)
            out[lease.first] = out.get(lease.first, 0) + 1
            if lease.attempt > 1:
                self.repeated += 1

    def drop(self, leases: Sequence[Lease]) -> tuple[list[Lease], list[int]]:
        """Clients have tasks no more: which they had, and the grants, by their first numbers, of which nothing is out now."""
        known, holding, out, over = self.leases, self.holding, self._out, list[int]()
        had = [lease for lease in leases if known.pop(lease.number, None) is not None]
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
        """A task comes back undone, as far as one who has it is concerned."""
        self.execution.give_up(self.flow.dag.tasks[task])

    def set_aside(self, task: int) -> None:
        """A task failed: nobody gets it for now, unless somebody else has it too."""
        self.execution.fail(self.flow.dag.tasks[task])

    def wait(self, task: int, until: float) -> None:
        """A task that was set aside is tried again then."""
        heappush(self.later, (until, task))

    def forget(self, tasks: Iterable[int]) -> None:
        """Tasks are done: how it went before does not matter any more."""
        known = [counts for counts in (self.tries, self.failures, self.losses, self.failed_with, self.causes) if counts]
        for task in tasks:
            for counts in known:
                counts.pop(task, None)

    def try_again(self, now: float) -> None:
        """What has waited long enough after a failure is ready again."""
        while self.later and self.later[0][0] <= now:
            task = heappop(self.later)[1]
            if self.codes[task] == FAILED:
                self.execution.release(self.flow.dag.tasks[task])

    def retry(self, tasks: Iterable[int]) -> list[int]:
        """Try tasks again that were set aside for good; which."""
        chosen = sorted({v for v in tasks if self.codes[v] == FAILED})
        again = set(chosen)
        self.later = sorted(entry for entry in self.later if entry[1] not in again)
        for v in chosen:
            self.failures[v] = self.losses[v] = 0
            self.causes.pop(v, None)
            self.votes.pop(v, None)
            self.execution.release(self.flow.dag.tasks[v])
        return chosen

    @property
    def verdict(self) -> str | None:
        """How it ended: None as long as it goes on."""
        if self.execution.finished:
            return DONE
        stuck = self.execution.stuck and not self.later and not self.holding
        return BROKEN if stuck and self.state in {RUNNING, BROKEN} else None

    @property
    def tally(self) -> Sums:
        """What has come of it."""
        return Sums(len(self.flow), len(self.execution.executed), self.lost, self.repeated, self.saved)

    def counts(self) -> dict[str, int]:
        """How many tasks are in which state."""
        game = self.execution
        futile = len(game.futile) if len(game.failed) else 0
        known = {"done": len(game.executed), "running": len(game.allocated) + len(game.held), "ready": self.ready}
        known |= {"failed": len(game.failed), "futile": futile}
        return known | {"waiting": len(game.dag) - sum(known.values())}
