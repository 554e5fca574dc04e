"""Clients that nobody controls: they arrive, leave, return late or never, and differ in speed.

An event-driven simulation. A client that is here and has nothing to do asks; the policy chooses among the ready tasks; where
there are none the client waits (it is *stalled*) and is served when one becomes ready, the first to have asked first. A task
takes its seconds divided by the client's speed. See `Clients` for how they come and go, `Rules` for what the server may do
beyond its policy. Run k of a seed meets the same clients, and the same task times, whatever the policy and the rules.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eligo.errors import InputError
from eligo.kernels.crowds import Crowd
from eligo.policies import SLOW, Policy
from eligo.simulation.pebble import Runs, run_seeds

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Clients:
    """Who asks for work. Lengths of time are in mean task times at speed 1."""

    #: how many there are, those away included
    count: int = 16
    #: the fastest is at most so many times as fast as the slowest; evenly spread on a logarithmic scale around 1
    spread: float = 30.0
    #: how long one stays, on average; infinite where nobody ever leaves
    stay: float = 10.0
    #: how long one is away, on average
    away: float = 10.0
    #: whether stays and absences have these lengths, rather than exponential ones of this mean
    fixed: bool = False
    #: the probability that who leaves keeps its task and returns with it, late; otherwise its work is lost
    keeps: float = 0.0
    #: how long after a client left the server gives its task to others
    patience: float = 0.0
    #: the probability that who leaves never returns and a stranger comes instead
    renewal: float = 0.0

    def __post_init__(self) -> None:
        checks = (
            (self.count >= 1, f"{self.count} clients execute nothing: at least 1 is needed"),
            (1 <= self.spread < math.inf, f"the spread of speeds is at least 1 and finite, not {self.spread}"),
            (self.stay > 0, f"clients stay longer than 0, not {self.stay}"),
            (0 < self.away < math.inf, f"absences are longer than 0 and finite, not {self.away}"),
            (0 <= self.keeps <= 1, f"{self.keeps} is no probability to keep a task"),
            (0 <= self.renewal <= 1, f"{self.renewal} is no probability of renewal"),
            (0 <= self.patience < math.inf, f"{self.patience} is no length of time to be patient for"),
        )
        for holds, complaint in checks:
            if not holds:
                raise InputError(complaint)

    @property
    def present(self) -> float:
        """How many are here on average."""
        share = 1.0 if math.isinf(self.stay) else self.stay / (self.stay + self.away)
        return self.count * share


@dataclass(frozen=True, kw_only=True, eq=False)
class Rules:
    """What a server may do beyond its policy; by default nothing.

    Speeds are estimated from what clients brought back: expected work over time taken, as a share of all clients' mean.
    """

    #: a client slower than this share of the mean gets the ready task of the lowest score; 0: never
    slow: float = 0.0
    #: whether speeds are known from the beginning
    known_speeds: bool = False
    #: whether, among clients that wait, the fastest is served first
    fastest: bool = False
    #: what the server believes of the tasks' times, such as recorded ones or the means of their kinds; None: all alike
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


#: the rule for slow clients, and a second copy of what is overdue: what eligo's own server does
PRUDENT = Rules(slow=SLOW, copies=2)


@dataclass(frozen=True, eq=False)
class Outcome:
    """What came of each run; lengths of time are in the unit of the tasks' seconds.

    The clients' time here is spent on results, on work that is lost or done twice (*wasted*), or waiting (*stalled*).
    """

    makespan: Floats
    present: Floats
    useful: Floats
    stalled: Floats
    wasted: Floats

    @property
    def utilisation(self) -> Floats:
        """The share of the clients' time here that led to a result."""
        return self.useful / np.maximum(self.present, 1e-300)


def volatile(  # noqa: PLR0913 - the setting is the question
    policy: Policy,
    clients: Clients,
    runs: Runs = 1,
    seed: int = 0,
    seconds: Floats | None = None,
    *,
    drawn: bool = False,
    rules: Rules | None = None,
) -> Outcome:
    """Play a policy against volatile clients; *seconds* are the tasks' times at speed 1, all 1 where None.

    With *drawn*, each task's time is multiplied by an exponential number of mean 1, drawn anew in each run.

    >>> from eligo import Dag, policies
    >>> chain = policies.fifo(Dag.from_arcs([("a", "b"), ("b", "c")]))
    >>> steady = Clients(count=2, spread=1.0, stay=float("inf"))
    >>> outcome = volatile(chain, steady)
    >>> outcome.makespan.tolist(), outcome.stalled.tolist()
    ([3.0], [3.0])
    """
    rules = Rules() if rules is None else rules
    times = _times(policy, seconds, "seconds")
    expected = _times(policy, rules.expected, "expected")
    unit = _mean(times)
    crowd = _crowd(policy, clients, rules, expected, unit)
    outcomes = np.zeros((len(seeds := run_seeds(runs, seed)), 5))
    for i, run in enumerate(seeds):
        if crowd.play(run, times, drawn, expected, outcomes[i]):
            raise InputError(f"no end: clients who stay for {clients.stay} mean task times leave before they are done")
    return Outcome(*np.ascontiguousarray(outcomes.T))


def _crowd(policy: Policy, clients: Clients, rules: Rules, expected: Floats, unit: float) -> Crowd:
    board = policy.board(both_ends=rules.slow > 0)
    if rules.long and len(expected):
        for v in np.flatnonzero(expected > rules.long * _mean(expected)).tolist():
            board.late[v] = 1
    leave = 0.0 if math.isinf(clients.stay) else 1.0 / (clients.stay * unit)
    come = 1.0 / (clients.away * unit)
    coming = (leave, come, clients.fixed, clients.keeps, clients.patience * unit, clients.renewal, clients.spread)
    ruling = (rules.slow, rules.known_speeds, rules.fastest, rules.copies, rules.overdue)
    return Crowd(board, clients.count, *coming, *ruling)


def _mean(times: Floats) -> float:
    """The mean, rounded once, so that it is the same on every machine."""
    return math.fsum(times) / len(times) if len(times) else 1.0


def _times(policy: Policy, given: Floats | None, what: str) -> Floats:
    if given is None:
        return np.ones(len(policy.dag))
    times = np.ascontiguousarray(given, np.float64)
    if len(times) != len(policy.dag):
        raise InputError(f"{what}: {len(times)} times for {len(policy.dag)} tasks")
    if not (np.isfinite(times).all() and (times >= 0).all()):
        raise InputError(f"{what}: a time is negative or not finite")
    if len(times) and not times.any():
        raise InputError(f"{what}: all times are 0")
    return times
