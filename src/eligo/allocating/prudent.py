"""What an allocator should do about clients that are slow, tasks that are long and copies that are overdue.

The rules gain more than any order does where clients differ [1]_: whoever is slow must not hold what others wait for, and
at the end, when nothing else is ready, what has been out for long is given to somebody else as well.

.. [1] `eligo compare` and docs/comparison.md show by how much.
"""

import math
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush

import numpy as np
from numpy.typing import NDArray

from eligo.allocating.asking import Allocator, Ask, Fits, Grant
from eligo.dag import Name
from eligo.errors import InputError
from eligo.execution import ALLOCATED, COMPLETE, DROP, FAIL, RELEASE, TAKE, unpacked

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Rules:
    """What an allocator may do beyond its choice; by default nothing.

    Speeds are estimated from what clients brought back: expected work over time taken, as a share of all clients' mean.
    """

    #: a client slower than this share of the mean gets what matters least; 0: never
    slow: float = 0.0
    #: whether, in a simulation, speeds are known from the beginning
    known_speeds: bool = False
    #: whether, among clients that wait, the fastest is served first
    fastest: bool = False
    #: what is believed of the tasks' times, such as recorded ones or the means of their kinds; None: all alike
    expected: Floats | None = None
    #: a slow client waits rather than take a task expected to be so many times as long as the mean; 0: never
    long: float = 0.0
    #: how many clients may have one task where nothing is ready
    copies: int = 1
    #: ... once it has been out for so many mean times
    overdue: float = 1.0

    def __post_init__(self) -> None:
        amounts = {"slow": self.slow, "long": self.long, "overdue": self.overdue, "copies": self.copies - 1}
        for name, amount in amounts.items():
            if not 0 <= amount < math.inf:
                raise InputError(f"the rule {name!r} cannot be {getattr(self, name)}")


SLOW = 0.5  # of the mean speed
#: the rule for slow clients, and a second copy of what is overdue
PRUDENT = Rules(slow=SLOW, copies=2)


class Speeds:
    """How fast clients are, as shares of the mean, from what they brought back.

    >>> speeds = Speeds()
    >>> for client, seconds in (("ann", 10.0), ("bob", 30.0), ("ann", 10.0)):
    ...     speeds.record(client, seconds)
    >>> speeds.of("ann"), round(speeds.of("bob"), 2), speeds.of("eve")
    (1.6666666666666667, 0.56, None)
    >>> speeds.is_slow("bob", 0.6), speeds.is_slow("eve", 0.6)
    (True, False)
    """

    def __init__(self) -> None:
        self._past: dict[Hashable, tuple[float, float]] = {}  # the work and the seconds of each client
        self.work = self.seconds = 0.0
        self.results = 0

    def record(self, client: Hashable, seconds: float, work: float = 1.0) -> None:
        """A client took so long for a task; *work* is what the task was expected to take, where that is known."""
        self.introduce(client, seconds, work)
        self.results += 1

    def introduce(self, client: Hashable, seconds: float, work: float) -> None:
        """A client is known to do so much work in so many seconds."""
        done, spent = self._past.get(client, (0.0, 0.0))
        self._past[client] = done + work, spent + seconds
        self.work += work
        self.seconds += seconds

    def forget(self, client: Hashable) -> None:
        """Somebody else comes under this name; what it did still counts for the mean."""
        self._past.pop(client, None)

    def of(self, client: Hashable) -> float | None:
        """The speed of a client as a share of the mean, or None where it has no past."""
        work, seconds = self._past.get(client, (0.0, 0.0))
        return work / seconds * self.seconds / self.work if seconds and self.work else None

    def is_slow(self, client: Hashable, share: float) -> bool:
        """Whether a client is known to be slower than this share of the mean."""
        work, seconds = self._past.get(client, (0.0, 0.0))
        return seconds > 0 and work * self.seconds < share * self.work * seconds

    @property
    def mean_seconds(self) -> float | None:
        """How long a task takes on average, as far as is known."""
        return self.seconds / self.results if self.results else None


class Prudent:
    """Any allocator, with `Rules` around it.

    `learn` tells it how long a client took, `left` that one is gone. Times are those of *clock*. Where somebody got
    nothing only because no copy is overdue yet, `due` is when to ask again.

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
        self.allocator, self.rules, self.clock = allocator, rules, clock
        self.execution = allocator.execution
        self.speeds = Speeds()
        self.due: float | None = None
        self._present: dict[Hashable, None] = {}
        self._stays: dict[Hashable, int] = {}  # how often each client left: what it had then, it has no more
        self._late = _late(rules, len(self.execution.dag))
        self._began: dict[int, float] = {}  # when each task that is out was handed out first
        self._given: dict[int, dict[Hashable, int]] = {}  # to whom each was given, in which of its stays
        self._running: list[tuple[float, int]] = []  # the tasks that may get another copy, the longest out first
        self._seen = 0
        self._follow()

    def hand_out(self, asks: Sequence[Ask]) -> list[Grant]:
        """See `Allocator`: slow clients get what matters least, and who gets nothing a copy of what is overdue."""
        self._follow()
        self.due = None
        queue = self._queue(asks)
        self._present.update(dict.fromkeys(ask.client for ask in asks))
        granted: dict[int, Grant] = {}
        self._serve([(i, self._modest(ask)) for i, ask in queue], granted)
        if self._late and not self._somebody_faster():
            slow = [(i, ask) for i, ask in queue if i not in granted and self._is_slow(ask)]
            self._serve([(i, replace(ask, modest=True)) for i, ask in slow], granted)
        self._follow()
        for i, ask in queue:
            if i not in granted and (copy := self._copy(ask)) is not None:
                granted[i] = copy
        for i, grant in granted.items():
            granted[i] = replace(grant, ask=asks[i])
            for v in map(self.execution.dag.number, grant.tasks):
                self._given.setdefault(v, {})[grant.ask.client] = self._stays.get(grant.ask.client, 0)
        return [granted[i] for i, _ in queue if i in granted]

    def learn(self, client: Hashable, task: Name, seconds: float) -> None:
        """A client took so long for a task."""
        expected = self.rules.expected
        work = 1.0 if expected is None else float(expected[self.execution.dag.number(task)])
        self.speeds.record(client, seconds, work)

    def joined(self, client: Hashable) -> None:
        """A client is here, and busy; one that asks is here anyway."""
        self._present[client] = None

    def left(self, client: Hashable) -> None:
        """A client is gone."""
        self._present.pop(client, None)
        self._stays[client] = self._stays.get(client, 0) + 1

    def _serve(self, asks: list[tuple[int, Ask]], granted: dict[int, Grant]) -> None:
        """Let the allocator answer; its grants come in the order of the asks that they answer."""
        number = {id(ask): i for i, ask in asks}
        for grant in self.allocator.hand_out([ask for _, ask in asks]):
            granted[number[id(grant.ask)]] = grant

    def _queue(self, asks: Sequence[Ask]) -> list[tuple[int, Ask]]:
        """The asks by number, in the order in which they are served."""
        queue = list(enumerate(asks))
        return sorted(queue, key=lambda item: -self._pace(item[1])) if self.rules.fastest else queue

    def _pace(self, ask: Ask) -> float:
        speed = ask.speed if ask.speed is not None else self.speeds.of(ask.client)
        return 1.0 if speed is None else speed

    def _is_slow(self, ask: Ask) -> bool:
        if ask.speed is not None:
            return ask.speed < self.rules.slow
        return self.speeds.is_slow(ask.client, self.rules.slow)

    def _modest(self, ask: Ask) -> Ask:
        """What a client is to ask for: a slow one for what matters least, and for nothing long."""
        if not self._is_slow(ask):
            return replace(ask)
        return replace(ask, modest=True, fits=self._short(ask.fits) if self._late else ask.fits)

    def _short(self, fits: Fits | None) -> Fits:
        index, late = self.execution.dag.index, self._late
        return lambda task: index[task] not in late and (fits is None or fits(task))

    def _somebody_faster(self) -> bool:
        return any(not self.speeds.is_slow(client, self.rules.slow) for client in self._present)

    # Copies

    def _copy(self, ask: Ask) -> Grant | None:
        """Another copy of what has been out for longest, if that is overdue and the client is not slow."""
        mean = self.speeds.mean_seconds
        if self.rules.copies < 2 or mean is None or self._is_slow(ask):
            return None
        passed, found = [], None
        while self._running and found is None:
            began, v = self._running[0]
            if not self._may_be_copied(began, v):
                heappop(self._running)
            elif not self._suits(ask, v):
                passed.append(heappop(self._running))
            elif (due := began + self.speeds.seconds * self.rules.overdue / self.speeds.results) > self.clock():
                self.due = due
                break
            else:
                found = self._copied(ask, v, mean)
        for entry in passed:
            heappush(self._running, entry)
        return found

    def _may_be_copied(self, began: float, v: int) -> bool:
        game = self.execution
        return self._began.get(v) == began and game.holders(game.dag.tasks[v]) < self.rules.copies

    def _suits(self, ask: Ask, v: int) -> bool:
        given = self._given.get(v, {}).get(ask.client)
        return given != self._stays.get(ask.client, 0) and ask.admits(self.execution.dag.tasks[v])

    def _copied(self, ask: Ask, v: int, mean: float) -> Grant:
        task = self.execution.dag.tasks[v]
        self.execution.take(task, again=True)
        times = (self.clock() - self._began[v]) / mean if mean else math.inf
        why = f"another copy: it has been out for {times:.1f} mean task times, and nothing else is ready"
        return Grant(ask, (task,), why)

    def _follow(self) -> None:
        """Note when tasks went out and came back."""
        game = self.execution
        if self._seen == len(game.journal):
            return
        now, codes = self.clock(), game.codes
        for kind, v in unpacked(game.since(self._seen)):
            if kind == TAKE:
                self._begin(v, now)
            elif kind in {COMPLETE, FAIL, RELEASE}:
                self._began.pop(v, None)
                self._given.pop(v, None)
            elif kind == DROP and v in self._began:
                heappush(self._running, (self._began[v], v))
            if kind == COMPLETE:
                for w in game.dag.children_of(v).tolist():
                    if codes[w] == ALLOCATED and w not in self._began:  # it was held for its client until now
                        self._begin(w, now)
        self._seen = len(game.journal)

    def _begin(self, v: int, now: float) -> None:
        self._began[v] = now
        heappush(self._running, (now, v))


def _late(rules: Rules, n: int) -> frozenset[int]:
    """The tasks that a slow client should rather not get."""
    if not rules.long or rules.expected is None:
        return frozenset()
    if len(rules.expected) != n:
        raise InputError(f"expected: {len(rules.expected)} times for {n} tasks")
    mean = math.fsum(rules.expected) / n if n else 0.0
    return frozenset(np.flatnonzero(rules.expected > rules.long * mean).tolist())
