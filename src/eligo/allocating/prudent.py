"""The rules of an allocator for slow clients, long tasks, and copies of overdue tasks.

If clients differ, the rules gain more than any order [1]_: a slow client must not hold tasks that others wait for, and at
the end, when no other task is ready, a task that has been out for long is given to another client as well.

.. [1] `eligo compare` and docs/understand/comparison.md show by how much.
"""

import math
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import chain
from operator import is_

import numpy as np
from numpy.typing import NDArray

from eligo.allocating.asks import Allocator, Ask, Fits, Grant, all_or_none, answer, unserved
from eligo.allocating.by_policy import ByPolicy
from eligo.allocating.speeds import FasterClients, Speeds
from eligo.errors import InputError, is_amount
from eligo.estimates import estimate
from eligo.execution import ALLOCATED, COMPLETE, DROP, FAIL, HELD, HOLD, RELEASE, TAKE, Execution, unpacked
from eligo.names import Name
from eligo.workflow import Workflow

Floats = NDArray[np.float64]
MOST_NOTED = 2_000  # moves that may be pending: processing them takes some milliseconds, while all clients wait
_OUT = {ALLOCATED, HELD}


@dataclass(frozen=True, kw_only=True, eq=False)
class Rules:
    """The rules of an allocator for slow clients and overdue tasks; by default there are none.

    Speeds are estimated from results: expected work divided by the time taken, relative to the mean of all clients.
    """

    #: a client slower than this share of the mean gets the least urgent tasks; 0: never
    slow: float = 0.0
    #: whether, in a simulation, speeds are known from the beginning
    known_speeds: bool = False
    #: whether, among clients that wait, the fastest is served first
    fastest: bool = False
    #: the expected times of tasks, such as recorded ones or the means of their kinds; None: all equal
    expected: Floats | None = None
    #: a slow client waits rather than take a task expected to take more than this many mean times; 0: never
    long: float = 0.0
    #: the number of clients that may have the same task if no other is ready
    copies: int = 1
    #: the mean times that the task must have been out for before that
    overdue: float = 1.0

    def __post_init__(self) -> None:
        copies = self.copies - 1 if type(self.copies) is int else None
        amounts = {"slow": self.slow, "long": self.long, "overdue": self.overdue, "copies": copies}
        for name, amount in amounts.items():
            if not is_amount(amount):
                raise InputError(f"the rule {name!r} must be a non-negative number, got {getattr(self, name)}")


SLOW = 0.5  # of the mean speed
#: the rule for slow clients, and a second copy of overdue tasks
PRUDENT = Rules(slow=SLOW, copies=2)
LONG = 3.0  # mean task times


def rules_with_times(rules: Rules, flow: Workflow) -> Rules:
    """The rules with the known run times: if all are known, slow clients get no long tasks."""
    estimates = estimate(flow)
    if estimates.level == "nothing":
        return rules
    return replace(rules, expected=estimates.seconds, long=LONG if estimates.level == "seconds" else rules.long)


class Prudent:
    """An allocator that applies `Rules` around another one; for one execution, whose assignments it records.

    Call `learn` with the time that a client took, and `gone` when a client has left. Times are those of *clock*. If a client
    got no task only because no copy is overdue yet, `due` is the time to ask again.

    >>> from eligo.allocating.by_policy import ByPolicy
    >>> from eligo.execution import Execution
    >>> from eligo.policies import policy
    >>> game, now = Execution({"a": [], "b": [], "c": ["a"]}), [0.0]
    >>> prudent = Prudent(ByPolicy(policy("balanced", game.dag), game), PRUDENT, clock=lambda: now[0])
    >>> [grant.tasks for grant in prudent.hand_out([Ask("slow", speed=0.1), Ask("fast")])]
    [('b',), ('a',)]
    >>> now[0] = 2.0
    >>> game.complete("a"), prudent.learn("fast", "a", 2.0)
    (('c',), None)
    >>> [grant.tasks for grant in prudent.hand_out([Ask("fast"), Ask("eve")])]
    [('c',), ('b',)]
    """

    def __init__(
        self, allocator: Allocator, rules: Rules = PRUDENT, clock: Callable[[], float] = time.monotonic
    ) -> None:
        if not isinstance(rules, Rules):
            raise InputError(f"rules must be eligo.Rules, got {rules!r}")
        self.allocator, self.rules, self.clock = allocator, rules, clock
        self.execution = allocator.execution
        self.speeds = Speeds()
        #: the present clients, with the speed they stated and what fits them, as of their last request
        self._present: dict[Hashable, tuple[float | None, Fits | None]] = {}
        #: whether a ready task may fit an ask; if not, no task is tried for it
        self.may_fit: Callable[[Ask], bool] = lambda ask: True
        #: the time until which a client counts as connected unless it asks again
        self.here_until: Callable[[Hashable], float] = lambda client: math.inf
        #: other idle clients that have not asked this allocator, the time until which each is connected, and what fits it
        self.bystanders: Callable[[], Iterable[tuple[Hashable, float, Fits | None]]] = tuple
        #: when a slow client that got no long task may be the fastest; None if no slow client waits for that
        self.fastest_from: float | None = None
        self._faster: Hashable = None  # the last client that was faster, tried first
        self._long = _long(rules, len(self.execution.dag))
        self._handed = Handed(self.execution, rules, clock)

    @property
    def due(self) -> float | None:
        """The time at which a task becomes overdue for a client that got none; None if no client waits for one."""
        return self._handed.due

    def copies_from(self) -> float | None:
        """The time of the next possible copy of a task; None if there is none before another change."""
        return self._handed.first_due(self.speeds) if self.rules.copies > 1 else None

    def is_slow(self, client: Hashable) -> bool:
        """Whether a client is known to be slow, so that it gets the least urgent tasks."""
        return self.speeds.is_slow(client, self.rules.slow)

    def hand_out(self, asks: Sequence[Ask]) -> list[Grant]:
        """See `Allocator`: slow clients get the least urgent tasks, and idle ones copies of overdue tasks."""
        asks = list(asks)
        self.fastest_from = None
        self._handed.note()
        for ask in asks:
            self._present[ask.client] = ask.speed, ask.fits
        queue = sorted(asks, key=self._pace, reverse=True) if self.rules.fastest else asks
        grants = self._grant_prudently([ask for ask in queue if self.may_fit(ask)])
        if self.rules.copies > 1:
            with all_or_none(self.execution, grants):
                self._handed.note(grants)
                grants += self._handed.copies_for(unserved(queue, grants), self._is_slow, self.speeds)
        in_order = len(grants) == len(queue) and all(map(is_, (grant.ask for grant in grants), queue))
        return grants if in_order else sorted(grants, key=_places(queue))

    def catch_up(self) -> bool:
        """Process more of the journal; returns whether nothing is left that would delay the next ask.

        A few moves are left to the next ask, since many are processed faster together, unless held tasks may start by them.
        """
        allocator = self.allocator if isinstance(self.allocator, ByPolicy) else None
        if not self._handed.holds and (allocator is None or allocator.is_near):
            return True
        self._handed.note()
        return allocator is None or allocator.catch_up()

    def learn(self, client: Hashable, task: Name, seconds: float) -> None:
        """Record how long a client took for a task."""
        if not is_amount(seconds):
            raise InputError(f"seconds must be a non-negative number, got {seconds!r}")
        self.learn_numbers(client, [self.execution.graph.number(task)], seconds)

    def learn_numbers(self, client: Hashable, tasks: Sequence[int], seconds: float) -> None:
        """Record how long a client took for several tasks together, by number."""
        work = float(len(tasks)) if self.rules.expected is None else sum(map(self._believed_time, tasks))
        self.speeds.record(client, seconds, work, len(tasks))

    def _believed_time(self, v: int) -> float:
        """The expected time of a task; for tasks added later, the mean of the others."""
        expected = self.rules.expected
        if expected is None or not len(expected):
            return 1.0
        return float(expected[v] if v < len(expected) else expected.mean())

    def joined(self, client: Hashable) -> None:
        """Record that a client is connected and busy; an ask records it too."""
        self._present.setdefault(client, (None, None))

    def has(self, client: Hashable, task: Name) -> None:
        """Record that a client holds a task that was handed out earlier."""
        self._present.setdefault(client, (None, None))
        self._handed.note([Grant(Ask(client), (task,), "")])

    def gone(self, client: Hashable) -> None:
        """Record that a client has left and holds nothing."""
        self._present.pop(client, None)
        self._handed.gone(client)

    def copy_no_more(self, v: int) -> None:
        """Make no more copies of a task, by number, until it is returned."""
        self._handed.copy_no_more(v)

    def forget(self, clients: Set[Hashable]) -> None:
        """Drop clients that will not return; their times still count for the mean."""
        for client in self._present.keys() & clients:
            self.gone(client)
        for client in self.speeds.clients & clients:
            self.speeds.forget(client)

    def _grant_prudently(self, queue: Sequence[Ask]) -> list[Grant]:
        """The grants with slow clients as modest ones; they get long tasks only if no faster client can run them."""
        if not any(ask.seconds is not None or self._is_slow(ask) for ask in queue):
            return self.allocator.hand_out(queue)
        shorts: dict[int, Fits] = {}  # by identity: a function need not be hashable
        adjusted = [self._modest(ask, shorts) if self._is_slow(ask) else self._with_speed(ask) for ask in queue]
        grants = answer(self.allocator, queue, adjusted)
        slow = [ask for ask in unserved(queue, grants) if self._is_slow(ask)] if self._long else []
        faster = FasterClients(self._faster_clients())
        if slow and not faster.can_run_all():
            with all_or_none(self.execution, grants):
                grants += answer(self.allocator, slow, self._asks_for_long(slow, faster))
        self.fastest_from = faster.until
        return grants

    def _asks_for_long(self, slow: Sequence[Ask], faster: FasterClients) -> list[Ask]:
        """The asks of slow clients, narrowed to tasks that no faster client can run."""
        narrowed: dict[int, Fits] = {}
        fits = [narrowed.setdefault(id(ask.fits), faster.leave(ask.fits)) for ask in slow]
        return [replace(self._with_speed(ask), modest=True, fits=fit) for ask, fit in zip(slow, fits, strict=True)]

    def _with_speed(self, ask: Ask) -> Ask:
        """The ask; if it is in seconds, with the known speed of its client."""
        speed = None if ask.seconds is None or ask.speed is not None else self.speeds.of(ask.client)
        return ask if speed is None else replace(ask, speed=speed)

    def _modest(self, ask: Ask, shorts: dict[int, Fits]) -> Ask:
        """The ask of a slow client as a modest one, without long tasks."""
        fits = ask.fits
        if self._long:
            fits = shorts.setdefault(id(ask.fits), self._short(ask.fits))
        return replace(self._with_speed(ask), modest=True, fits=fits)

    def _short(self, fits: Fits | None) -> Fits:
        number, long = self.execution.graph.number, self._long
        return lambda task: number(task) not in long and (fits is None or fits(task))

    def _pace(self, ask: Ask) -> float:
        speed = ask.speed if ask.speed is not None else self.speeds.of(ask.client)
        return 1.0 if speed is None else speed

    def _is_slow(self, ask: Ask) -> bool:
        return self.speeds.is_slow(ask.client, self.rules.slow) if ask.speed is None else ask.speed < self.rules.slow

    def _faster_clients(self) -> Iterator[tuple[float, Fits | None]]:
        """The connected clients that are not slow, each by the end of its connection and its `fits`."""
        now, last = self.clock(), self._present.get(self._faster)
        present = chain([] if last is None else [(self._faster, last)], self._present.items())
        connected = ((client, self.here_until(client), fits) for client, (_, fits) in present)
        for client, until, fits in chain(connected, self.bystanders()):
            if until > now and not self._stays_slow(client):
                self._faster = client
                yield until, fits

    def _stays_slow(self, client: Hashable) -> bool:
        stated = self._present.get(client, (None, None))[0]
        return self.is_slow(client) if stated is None else stated < self.rules.slow


class Handed:
    """The tasks that are out, the time and the clients of each, and which of them may be copied.

    This is needed only if some client gets no task. Until then moves are only recorded, and processed later.
    """

    def __init__(self, execution: Execution, rules: Rules, clock: Callable[[], float]) -> None:
        self.execution, self.rules, self.clock = execution, rules, clock
        self.due: float | None = None
        self._began: dict[int, float] = {}  # when each task was handed out first
        self._heap: list[tuple[float, int]] = []  # the same, the longest out first; some entries are outdated
        self._given: dict[int, tuple[Hashable, ...]] = {}  # the clients of each task
        self._has: dict[Hashable, set[int]] = {}  # the tasks of each client
        self._held: set[int] = set()  # tasks of fat tasks that wait, or waited, for others of the same fat task
        self._seen = self._marked = 0  # the numbers of moves processed, and recorded
        #: whether tasks were held after the last recorded move
        self.holds = False
        #: recorded but not yet processed: the number of moves so far, the time, and the grants
        self._noted: list[tuple[int, float, Sequence[Grant]]] = []
        self.note()

    def copies_for(self, asks: Sequence[Ask], is_slow: Callable[[Ask], bool], speeds: Speeds) -> list[Grant]:
        """Grants of copies of overdue tasks, for asks that got no task from clients that are not slow."""
        self.due = None
        if not asks or not speeds.results:
            return []
        self._follow()
        grants, barren = list[Grant](), set[tuple[Hashable, int]]()
        with all_or_none(self.execution, grants):
            for ask in asks:
                like = ask.client, id(ask.fits)
                copies = [] if like in barren or is_slow(ask) else self._copy(ask, speeds)
                grants += copies
                self._note_holders(copies)
                if not copies:
                    barren.add(like)
        return grants

    def first_due(self, speeds: Speeds) -> float | None:
        """The time at which the longest running task becomes overdue; None if no task can be copied."""
        if not speeds.results:
            return None
        self.note()
        self._follow()
        while self._heap and not self._may_be_copied(*self._heap[0]):
            heappop(self._heap)
        return self._heap[0][0] + speeds.seconds * self.rules.overdue / speeds.results if self._heap else None

    def _copy(self, ask: Ask, speeds: Speeds) -> list[Grant]:
        """A copy of the task that has been out longest among those that the client can run and does not have, if overdue."""
        passed: list[tuple[float, int]] = []
        try:
            while self._heap:
                began, v = self._heap[0]
                if not self._may_be_copied(began, v):
                    heappop(self._heap)
                elif not self._suits(ask, v):
                    passed.append(heappop(self._heap))
                elif (due := began + speeds.seconds * self.rules.overdue / speeds.results) > self.clock():
                    self.due = due if self.due is None else min(self.due, due)
                    return []
                else:
                    return [self._take_copy(ask, v, speeds.seconds / speeds.results)]
            return []
        finally:
            for entry in passed:
                heappush(self._heap, entry)

    def _may_be_copied(self, began: float, v: int) -> bool:
        game = self.execution
        return self._began.get(v) == began and game.holders(game.graph.name(v)) < self.rules.copies

    def _suits(self, ask: Ask, v: int) -> bool:
        return ask.client not in self._given.get(v, ()) and ask.admits(self.execution.graph.name(v))

    def _take_copy(self, ask: Ask, v: int, mean: float) -> Grant:
        task = self.execution.graph.name(v)
        self.execution.take(task, again=True)
        times = (self.clock() - self._began[v]) / mean if mean else math.inf
        why = f"a copy: it has been running for {times:.1f} times the mean task time, and nothing else is ready"
        return Grant(ask, (task,), why)

    def note(self, grants: Sequence[Grant] = ()) -> None:
        """Record the moves since the last call, as of now, and these grants."""
        moves = len(self.execution.journal)
        if self.rules.copies < 2 or not (grants or moves > self._marked):  # only copies need this
            return
        self._noted.append((moves, self.clock(), grants))
        self._marked, self.holds = moves, bool(self.execution.numbers(HELD))
        if moves - self._seen > MOST_NOTED or len(self._noted) > MOST_NOTED:
            self._follow()

    def gone(self, client: Hashable) -> None:
        """Record that a client holds no tasks."""
        self._follow()
        for v in self._has.pop(client, ()):
            self._given[v] = tuple(other for other in self._given[v] if other != client)

    def copy_no_more(self, v: int) -> None:
        """See `Prudent`."""
        self.note()
        self._follow()
        self._began.pop(v, None)

    def _follow(self) -> None:
        """Process the recorded moves and grants."""
        noted, self._noted = self._noted, []
        for moves, now, grants in noted:
            if moves > self._seen:
                self._follow_moves(moves, now)
            self._note_holders(grants)
        if len(self._heap) > 2 * len(self._began) + 100:
            self._heap = sorted((began, v) for v, began in self._began.items())

    def _note_holders(self, grants: Sequence[Grant]) -> None:
        """Note the clients of granted tasks that are still out."""
        holders, codes = self._given, self.execution.codes
        for grant in grants:
            client, alone = grant.ask.client, (grant.ask.client,)
            numbers = [v for v in self.execution.graph.numbers(grant.tasks) if codes[v] in _OUT]
            if numbers:
                self._has.setdefault(client, set()).update(numbers)
            for v in numbers:
                clients = holders.get(v)
                holders[v] = alone if clients is None else clients if client in clients else (*clients, client)

    def _follow_moves(self, moves: int, now: float) -> None:
        """Process moves up to this number and time; tasks that have been returned since are skipped."""
        codes, children = self.execution.codes, self.execution.graph.children_of
        packed, self._seen = self.execution.since(self._seen)[: moves - self._seen], moves
        for kind, v in unpacked(packed):
            if kind == TAKE:
                if codes[v] == ALLOCATED:
                    self._begin(v, now)
            elif kind == HOLD:
                if codes[v] in _OUT:
                    self._held.add(v)
            elif kind == DROP and v in self._began:
                heappush(self._heap, (self._began[v], v))
            elif kind in {COMPLETE, FAIL, RELEASE}:
                self._back(v)
                for w in children(v) if kind == COMPLETE and self._held else ():
                    if w in self._held and codes[w] == ALLOCATED:  # the client has held it, perhaps until now
                        self._begin(w, now)

    def _back(self, v: int) -> None:
        """Note that no client has a task any longer."""
        self._began.pop(v, None)
        self._held.discard(v)
        for client in self._given.pop(v, ()):
            self._has[client].discard(v)
            if not self._has[client]:
                del self._has[client]

    def _begin(self, v: int, now: float) -> None:
        self._began[v] = now
        heappush(self._heap, (now, v))


def _places(queue: Sequence[Ask]) -> Callable[[Grant], int]:
    place: dict[int, int] = {}
    for i, ask in enumerate(queue):
        place.setdefault(id(ask), i)
    return lambda grant: place[id(grant.ask)]


def _long(rules: Rules, n: int) -> frozenset[int]:
    """The tasks that are too long for slow clients."""
    if rules.expected is None:
        return frozenset()
    expected = np.asarray(rules.expected, np.float64)
    if expected.shape != (n,) or not (np.isfinite(expected).all() and (expected >= 0).all()):
        raise InputError(f"expected: each of the {n} tasks must have a non-negative time")
    mean = math.fsum(expected) / n if n else 0.0
    return frozenset(np.flatnonzero(expected > rules.long * mean).tolist()) if rules.long else frozenset()
