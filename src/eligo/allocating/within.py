"""A limit on the bytes that exist at once: an allocator that holds tasks back, and never deadlocks.

Two things hold at every moment. The bytes that exist now, with the outputs of all running tasks, are within the limit. And if
all running tasks ended now, the rest could run one by one in a *reference order* within the limit. A ready task may start
if both still hold with it. If none may start, the next one waits: once all running tasks have ended, the next task of the
reference order may start.

A returned task goes to the front of the reference order, because space for its outputs is available. A permanently failed
task and all tasks below it leave the order, and their inputs stay. If real sizes are larger than expected, or tasks are
added, the limit may be exceeded: then only tasks start that make it no worse, and if none runs, the next one of the order.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from eligo.allocating.asks import Allocator, Ask, Grant, NothingFits, all_or_none, answer, unserved
from eligo.allocating.by_policy import ByPolicy
from eligo.dag import Dag
from eligo.errors import InputError
from eligo.estimates import estimate
from eligo.execution import COMPLETE, ELIGIBLE, FAIL, FAILED, GROW, HOLD, RELEASE, TAKE, WAITING, Execution, unpacked
from eligo.grown_dag import reachable_tasks
from eligo.kernels.ledgers import STATES, Ledger
from eligo.names import Name
from eligo.policies import from_order, order_grown
from eligo.rows import Ints, places, pointers
from eligo.space.footprint import Footprint
from eligo.space.orders import space_order
from eligo.theory.eligibility import Order, order_indices
from eligo.work.demands import byte_words
from eligo.workflow import Workflow

WAITS, RUNS, _, LOST = STATES
#: tasks without space that are passed over in one choice, before the first ones of the reference order are tried
LOOK = 8
#: the tasks that became ready last and are compared then, since they may read what waits
NEWEST = 16
#: free places in front of the order, for returned tasks
SPARE = 64
#: the share by which the mean size of results must change to be expected of others
MUCH = 0.25
#: the bytes of a task's files by name, or of its result in memory
Sizes = Mapping[str, int] | int
#: creates an allocator for an execution
Make = Callable[[Execution], Allocator]
#: the largest workflow that is simulated to choose a policy
MOST_PLAYED = 5_000


@dataclass(frozen=True)
class Space:
    """A limit on the bytes between tasks, and what counts as such for a workflow."""

    limit: int
    footprint: Callable[[Workflow], Footprint] = Footprint.of
    #: whether sizes are learned: each unknown one is taken as the mean of those known so far
    learned: bool = False
    #: the number of equal workers; if known, the policy `finish` is replaced by the reference order where that ends sooner
    workers: int | None = None

    def reference(self, flow: Workflow) -> tuple[Footprint, Ints]:
        """What counts for a workflow, and an order for the limit, which may be too small; an error if sizes are unknown."""
        footprint = self.footprint(flow)
        if not (footprint.sized or self.learned):
            cure = "state them with the key `files` of the workflow, or run it once without a limit"
            raise InputError(f"the files between tasks cannot be limited, because no sizes are known: {cure}")
        order = space_order(footprint, "quick")
        if not self.learned and footprint.peak(order) > self.limit:
            order = space_order(footprint)  # the one that `eligo plan` shows
        return footprint, order

    def around(self, make: Make, flow: Workflow, game: Execution, *, free: bool) -> "Within":
        """An allocator that keeps the limit; an error if sizes are unknown or it is too small.

        *make* creates the allocator inside; if that is *free*, the reference order may take its place.
        """
        footprint, order = self.reference(flow)

        def within(make: Make, game: Execution) -> Within:
            grown = lambda dag: self.footprint(flow.grown(dag))  # noqa: E731
            return Within(make(game), footprint, self.limit, order, grown=grown, learned=self.learned)

        def in_order(game: Execution) -> Allocator:
            return ByPolicy(from_order(game.dag, order, "space"), game, flow=flow)

        times = estimate(flow)
        if free and self.workers is not None and times.level == "seconds" and len(flow) <= MOST_PLAYED:
            ends = [finish(within(each, Execution(flow.dag)), times.seconds, self.workers) for each in (make, in_order)]
            make = min((make, in_order), key=lambda each: ends[each is in_order])
        return within(make, game)


def finish(allocator: Allocator, seconds: NDArray[np.float64], workers: int) -> float:
    """When the last task ends if equal workers run all tasks of an allocator."""
    game, now, running = allocator.execution, 0.0, list[tuple[float, int]]()
    while not game.finished:
        for grant in allocator.hand_out([Ask()] * (workers - len(running))):
            v = game.graph.number(grant.tasks[0])
            heappush(running, (now + seconds.item(v), v))
        now, v = heappop(running)
        game.complete_number(v)
    return now


class Within:
    """An allocator that keeps the files, or results in memory, between tasks within a limit, around another allocator.

    *order* is the reference order; the limit must be at least its peak. *grown* returns the footprint with added tasks; by
    default, these leave nothing. With *learned*, a result in memory is taken to be as large as the mean of the known ones. If
    sizes are only *estimated*, no limit is refused.

    >>> from eligo.policies import policy
    >>> game = Execution({"a": [], "b": [], "c": [], "ab": ["a", "b"], "abc": ["ab", "c"]})
    >>> footprint = Footprint.of_results(game.dag)
    >>> within = Within(ByPolicy(policy("fifo", game.dag), game), footprint, 3, ["a", "b", "ab", "c", "abc"])
    >>> [grant.tasks for grant in within.hand_out([Ask(), Ask(), Ask()])]
    [('a',), ('b',)]
    """

    def __init__(  # noqa: PLR0913
        self,
        allocator: Allocator,
        footprint: Footprint,
        limit: int,
        order: Order,
        *,
        grown: Callable[[Dag], Footprint] | None = None,
        learned: bool = False,
        estimated: bool = False,
    ) -> None:
        self.allocator, self.execution, self.limit = allocator, allocator.execution, limit
        self._footprint, self._grown = footprint, grown or (lambda dag: replace(self._footprint, dag=dag))
        sequence = order_indices(footprint.dag, order)
        self._in_order = ByPolicy(from_order(footprint.dag, sequence, "space"), self.execution)
        #: whether a failed task will be retried, by number; a permanently failed one never runs again
        self.retrying: Callable[[int], bool] = lambda v: True
        self._most = 0
        self._real: dict[int, Sizes] = {}  # the real sizes of the files of tasks
        self._learned, self._total, self._mean = learned, 0, float(limit)  # one task at a time until a size is known
        self._seen = 0
        self._started = list[int]()  # the last starts that can be undone: since then, nothing else changed the order
        self._held, self._lost = set[int](), set[int]()  # tasks that were held, and permanently failed ones
        self._failed = set[int]()  # failed tasks of the order, which may still turn out to have failed permanently
        self._rebuild(np.zeros(len(footprint.dag), np.int32), places(len(sequence), sequence))
        if not (learned or estimated or len(self.execution.journal)):  # once tasks have started, the rest runs anyhow
            check_limit(footprint, sequence, limit)

    @property
    def needed(self) -> int:
        """The bytes that exist at once if all running tasks end and the rest then runs one by one in the reference order."""
        return int(self._ledger.peak())

    @property
    def live(self) -> int:
        """The bytes that exist now, with the expected outputs of running tasks."""
        self._follow()
        return int(self._ledger.live)

    @property
    def most(self) -> int:
        """The maximum number of bytes that existed at once so far, as far as sizes are known."""
        return max(self._most, self.live)

    def _note(self) -> None:
        """Note the bytes that exist before there are fewer; tasks that were taken and returned at once do not count."""
        self._most = max(self._most, self._ledger.live)

    @property
    def remark(self) -> str | None:
        """One sentence if the limit was exceeded; otherwise None."""
        if self.most <= self.limit or self._learned:
            return None
        why = "files were larger than expected, tasks were added, or failed tasks kept their inputs"
        return f"the limit of {byte_words(self.limit)} was exceeded by {byte_words(self.most - self.limit)}: {why}"

    def hand_out(self, asks: Sequence[Ask]) -> list[Grant]:
        """See `Allocator`; an ask gets no task while none has space."""
        asks = list(asks)
        if len(asks) < 2 or all(ask.size == 1 and ask.seconds is None for ask in asks):
            return self._grants(asks)
        grants = list[Grant]()
        with all_or_none(self.execution, grants):
            for ask in asks:  # several tasks for each: what the first ones get decides about the others
                grants += self._grants([ask])
        return grants

    def waiting(self, most: int) -> int:
        """How many of the first *most* ready tasks wait for space."""
        return sum(not self.may_start(v) for v in islice(self.execution.ready, most))

    def may_start(self, v: int) -> bool:
        """Whether a ready task may start, by number: there is space for it, or no task runs and it is the next one."""
        ledger = self._ledger
        return self.fits(v) or bool(not ledger.running and v == ledger.next_task())

    def fits(self, v: int) -> bool:
        """Whether there is space for a ready or failed task, by number."""
        if self._seen != len(self.execution.journal):
            self._follow()
        ledger = self._ledger
        if ledger.status[v] == LOST:  # it would return to the order
            return bool(ledger.live + ledger.left[v] <= self.limit)
        return bool(ledger.may_start(v, self.limit))

    def begin(self, tasks: Sequence[Name], forced: bool = False) -> bool:
        """Hand out tasks together if there is space for all of them, or if they are *forced*; returns whether they are."""
        live, needed = max(self.live, self.limit), max(self.needed, self.limit)
        if not forced and len(tasks) == 1:
            forced = self.fits(self.execution.graph.number(tasks[0]))
            if not forced:
                return False
        self.execution.take(*tasks)
        if forced or (self.live <= live and self.needed <= needed):
            return True
        for task in reversed(tasks):
            self.execution.release(task)
        return False

    def may_follow(self, v: int) -> bool:
        """Whether there may be space for a task that is ready, or waits only for tasks of the same grant."""
        ledger = self._ledger
        if self.execution.codes[v] != WAITING:
            return self.may_start(v)
        return not ledger.left[v] or bool(ledger.live + ledger.left[v] <= self.limit)

    def correct(self, task: Name, sizes: Sizes) -> None:
        """Use the real sizes of the files that a task wrote, by name, or the bytes of its result in memory."""
        self._follow()
        self._correct(self.execution.graph.number(task), sizes)

    def correct_files(self, sizes: Mapping[str, int]) -> None:
        """Use the real sizes of files, by name."""
        self._follow()
        files: dict[int, dict[str, int]] = {}
        for name in sizes.keys() & self._writer_of.keys():
            files.setdefault(self._writer_of[name], {})[name] = sizes[name]
        for v, own in files.items():
            self._correct(v, own)

    def resume(self, sizes: Mapping[str, int]) -> None:
        """Follow what an earlier process did, with the real sizes of the files that exist; others were removed."""
        self.correct_files(sizes)
        self._most = 0

    def _correct(self, v: int, sizes: Sizes) -> None:
        self._note()
        self._real[v] = sizes
        if self._learned and isinstance(sizes, int):
            self._learn(sizes)
        self._resize(v, sizes)

    def _learn(self, size: int) -> None:
        """Expect the mean of the known results of all others, if it has changed much."""
        self._total += size
        mean = self._total / len(self._real)
        if abs(mean - self._mean) > MUCH * self._mean:
            self._mean = mean
            self._rebuild(np.asarray(self._ledger.status), np.asarray(self._ledger.place))

    def _resize(self, v: int, sizes: Sizes) -> None:
        ptr, files = self._written
        for f in files[ptr[v] : ptr[v + 1]].tolist():
            if isinstance(sizes, int):
                self._ledger.resize(f, sizes)
            elif all(name in sizes for name in self._footprint.names[f]):
                self._ledger.resize(f, sum(sizes[name] for name in self._footprint.names[f]))

    # The choice

    def _grants(self, asks: Sequence[Ask]) -> list[Grant]:
        """The grants by the allocator inside, and by the reference order if that passed over too many tasks."""
        self._follow()
        if not asks or not self.execution.ready:
            return []
        looks: dict[int, _Look] = {}
        grants = self._with_space(self.allocator, asks, looks)
        if any(look.cut for look in looks.values()):
            with all_or_none(self.execution, grants):
                grants += self._with_space(self._in_order, unserved(asks, grants), {})
                grants += self._others(unserved(asks, grants))
        return grants

    def _others(self, asks: Sequence[Ask]) -> list[Grant]:
        """Grants of the next task of the reference order, and of new ones that leave few bytes, if there is space."""
        if not asks:
            return []
        waiting, grants, game = list(asks), list[Grant](), self.execution
        few = sorted(islice(reversed(game.ready), NEWEST), key=self._ledger.left.__getitem__)[: len(waiting) + 3]
        for v in dict.fromkeys([self._ledger.next_task(), *few]):
            if not waiting or v < 0 or game.codes[v] != ELIGIBLE or not self.may_start(v):
                continue
            task = game.graph.name(v)
            place = next((i for i, ask in enumerate(waiting) if ask.admits(task)), None)
            if place is not None:
                game.take_numbers([v])
                grants.append(Grant(waiting.pop(place), (task,), "it fits into the limit of space, unlike better ones"))
        return grants

    def _with_space(self, allocator: Allocator, asks: Sequence[Ask], looks: "dict[int, _Look]") -> list[Grant]:
        """The grants of an allocator for these asks, limited to tasks for which there is space."""
        live, needed = self._ledger.live, self.needed
        adjusted = [replace(ask, fits=looks.setdefault(id(ask.fits), _Look(self, ask))) for ask in asks]
        grants = answer(allocator, asks, adjusted)
        if any(len(grant.tasks) > 1 for grant in grants):
            with all_or_none(self.execution, grants):
                grants = [self._shortened(grant, max(live, self.limit), max(needed, self.limit)) for grant in grants]
        return grants

    def _shortened(self, grant: Grant, live: int, needed: int) -> Grant:
        """The grant with as many of its tasks as there is space for; the others are returned, the last one first."""
        tasks = grant.tasks
        self._follow()
        while len(tasks) > 1 and (self._ledger.live > live or self.needed > needed):
            self.execution.release(tasks[-1])
            tasks = tasks[:-1]
            self._follow()
        return grant if tasks is grant.tasks else replace(grant, tasks=tasks)

    # The journal

    def _follow(self) -> None:
        """Read the moves since the last call, and take permanently failed tasks out of the order."""
        if self._seen != len(self.execution.journal):
            self._read_moves()
        for v in [v for v in self._failed if not self.retrying(v)] if self._failed else ():
            self._lose(v)

    def _read_moves(self) -> None:
        game = self.execution
        moves, self._seen = game.since(self._seen), len(game.journal)
        grows = False
        for kind, v in unpacked(moves):
            if kind in {TAKE, HOLD}:
                self._start(v, kind == HOLD)
            elif kind == COMPLETE:
                self._held.discard(v)
                self._note()
                self._ledger.finish(v)
            elif kind in {FAIL, RELEASE}:
                self._return(v)
                if kind == RELEASE and v in self._lost:
                    self._regain(v)
                elif kind == FAIL and game.codes[v] == FAILED:
                    self._failed.add(v)
                else:
                    self._failed.discard(v)
            elif kind == GROW and not grows:
                grows = True
                self._grow()
        if grows:  # a returned task may have got a new parent that is not at the front
            self._grow()

    def _start(self, v: int, held: bool) -> None:
        self._ledger.start(v)
        self._started.append(v)
        if held:
            self._held.add(v)

    def _return(self, v: int) -> None:
        """Return a running task with those held for it: undo the last starts, put the others at the front of the order."""
        ledger, started = self._ledger, self._started
        if ledger.status[v] != RUNS:
            return
        back = self._with_held(v)
        self._held -= back
        while started and started[-1] in back:
            back.remove(started[-1])
            ledger.give_back(started.pop(), True)
        if ledger.front < len(back):
            self._rebuild(np.asarray(ledger.status), np.asarray(ledger.place))
        if back:
            self._note()
        for w in sorted(back, key=self._ledger.place.__getitem__, reverse=True):
            self._ledger.give_back(w, False)
            started.clear()

    def _with_held(self, v: int) -> set[int]:
        """A task and all tasks that are held because of it."""
        together, waiting = {v}, [v]
        while waiting and self._held:
            fresh = self._held.intersection(self.execution.graph.children_of(waiting.pop())) - together
            together |= fresh
            waiting += fresh
        return together

    def _lose(self, v: int) -> None:
        """Take a permanently failed task and those below it out of the order."""
        self._lost.add(v)
        self._failed.discard(v)
        ledger, below = self._ledger, reachable_tasks(self._footprint.dag, [v]).tolist()
        for w in (v, *sorted(below, key=ledger.place.__getitem__)):
            if ledger.status[w] == WAITS:
                ledger.lose(w)
        self._started.clear()

    def _regain(self, v: int) -> None:
        """Put a task that will be retried after all back into the order, with those below it that can now run."""
        self._lost.remove(v)
        status = np.array(self._ledger.status)
        status[status == LOST] = WAITS
        self._rebuild(status, np.asarray(self._ledger.place))
        for w in self._lost:
            self._lose(w)

    def _rebuild(self, status: Ints, rank: Ints) -> None:
        """Make the ledger for tasks in these states, with the places of the order numbered anew."""
        footprint, n = self._footprint, len(rank)
        leaves = 1 << (n + max(SPARE, n // 4) - 1).bit_length()
        place = places(n, np.argsort(rank)) + np.int32(leaves - n)
        file = np.repeat(np.arange(len(footprint), dtype=np.int32), np.diff(footprint.reader_ptr))
        reader = footprint.reader[np.lexsort((place[footprint.reader], file))]
        self._written = _rows(n, footprint.writer)
        writers = zip(footprint.names, footprint.writer.tolist(), strict=True)
        self._writer_of = {name: v for names, v in writers for name in names}
        sizes = np.full(len(footprint), round(self._mean), np.int64) if self._learned else footprint.sizes.copy()
        self._ledger = Ledger(
            sizes, footprint.writer, footprint.reader_ptr, reader,
            *self._written, *_rows(n, reader), status.copy(), place, leaves,
        )  # fmt: skip
        self._started.clear()
        for v, real in self._real.items():
            self._resize(v, real)

    def _grow(self) -> None:
        """Follow additions: new tasks come just before their children in the order, or at its end."""
        status, dag = np.asarray(self._ledger.status), self.execution.dag
        order = order_grown(dag, places(len(status), np.argsort(np.asarray(self._ledger.place))))
        self._footprint = self._grown(dag)
        self._rebuild(np.append(status, np.zeros(len(dag) - len(status), np.int32)), places(len(dag), order))
        for v in self._lost:
            self._lose(v)


def check_limit(footprint: Footprint, order: Ints, limit: int) -> None:
    """Refuse a limit below the peak of an order, with a bound that no order beats."""
    peak = footprint.peak(order)
    if peak <= limit:
        return
    from eligo.space.bounds import space_bound  # imports solvers, which a limit that fits does not need

    bound = space_bound(footprint, order, "quick")
    amounts = (limit, bound.bytes, peak)
    rounded = [byte_words(amount) for amount in amounts]
    differ = len(set(rounded)) == len(set(amounts))
    stated, least, needed = rounded if differ else [f"{amount:,} B" for amount in amounts]
    if bound.bytes > limit:
        other = "" if needed == least else f", and the one found {needed}"
        why = f"no order of the tasks fits in {stated}: every order needs at least {least}{other} ({bound.why})"
    else:
        why = f"the order found needs {needed}, more than the limit of {stated}; no order needs less than {least}"
    raise InputError(why).cured_by("space")


class _Look:
    """The test of tasks for one kind of client: whether it can run them, and whether there is space for them."""

    def __init__(self, within: Within, ask: Ask) -> None:
        self._fits, self._number = ask.fits, within.execution.graph.number
        self._seen, self._refused = set[int](), 0  # tasks may be tested several times
        self._has_space = within.may_start if ask.size == 1 and ask.seconds is None else within.may_follow
        #: whether tasks were passed over that may have had space
        self.cut = False

    def __call__(self, task: Name) -> bool:
        v = self._number(task)
        fresh = v not in self._seen
        if fresh and self._refused >= LOOK:
            self.cut = True
            raise NothingFits
        self._seen.add(v)
        if not self._has_space(v):
            self._refused += fresh
            return False
        return self._fits is None or self._fits(task)


def _rows(n: int, tasks: Ints) -> tuple[Ints, Ints]:
    """The positions of each of n tasks in a list, as rows."""
    return pointers(np.bincount(tasks, minlength=n)), np.argsort(tasks, kind="stable").astype(np.int32)
