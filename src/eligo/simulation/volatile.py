"""Clients that nobody controls: they arrive, leave, return late or never, and differ in speed.

An event-driven simulation. A client that is here and has nothing to do asks; the allocator chooses among the ready tasks;
where there are none the client waits (it is *stalled*) and is served when one becomes ready, the first to have asked first.
All that happens at one moment has happened before anybody is served.
A task takes its seconds divided by the client's speed. See `Clients` for how they come and go, `eligo.allocating.Rules` for
what the server may do beyond its choice. Run k of a seed meets the same clients, and the same task times, whoever plays.

Policies are played compiled (`eligo.kernels.crowds`), other allocators live (`eligo.simulation.crowd`).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eligo.allocating import Rules
from eligo.errors import InputError
from eligo.kernels.crowds import Crowd
from eligo.policies import Policy
from eligo.simulation.crowd import LiveCrowd, Setting
from eligo.simulation.pebble import Runs, run_seeds
from eligo.simulation.players import Player

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Clients:
    """The clients of a simulation. Times are in units of the mean task time at speed 1."""

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
            (self.count >= 1, f"the number of clients must be at least 1, got {self.count}"),
            (1 <= self.spread < math.inf, f"spread must be finite and at least 1, got {self.spread}"),
            (self.stay > 0, f"stay must be positive, got {self.stay}"),
            (0 < self.away < math.inf, f"away must be positive and finite, got {self.away}"),
            (0 <= self.keeps <= 1, f"keeps must be a probability, got {self.keeps}"),
            (0 <= self.renewal <= 1, f"renewal must be a probability, got {self.renewal}"),
            (0 <= self.patience < math.inf, f"patience must be a non-negative, finite time, got {self.patience}"),
        )
        for holds, complaint in checks:
            if not holds:
                raise InputError(complaint)

    @property
    def present(self) -> float:
        """How many are here on average."""
        share = 1.0 if math.isinf(self.stay) else self.stay / (self.stay + self.away)
        return self.count * share


@dataclass(frozen=True, eq=False)
class Played:
    """The results of all runs; times are in the unit of the tasks' seconds.

    The clients' time here is spent on results, on work that is lost or done twice (*wasted*), or waiting (*stalled*).
    A run has no end where clients always leave before they are done: its makespan is infinite, and the rest is not known
    (not a number).
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

    @property
    def endless(self) -> int:
        """How many runs have no end."""
        return int(np.isinf(self.makespan).sum())


def volatile(  # noqa: PLR0913 - the setting is the question
    player: Player,
    clients: Clients,
    runs: Runs = 1,
    seed: int = 0,
    seconds: Floats | None = None,
    *,
    drawn: bool = False,
    rules: Rules | None = None,
) -> Played:
    """Play against volatile clients; *seconds* are the tasks' times at speed 1, all 1 if None.

    With *drawn*, each task's time is multiplied by an exponential number of mean 1, drawn anew in each run.

    >>> from eligo import Dag, policies
    >>> chain = policies.fifo(Dag.from_arcs([("a", "b"), ("b", "c")]))
    >>> steady = Clients(count=2, spread=1.0, stay=float("inf"))
    >>> outcome = volatile(chain, steady)
    >>> outcome.makespan.tolist(), outcome.stalled.tolist()
    ([3.0], [3.0])
    """
    rules = Rules() if rules is None else rules
    n, times = len(player.dag), _times(len(player.dag), seconds, "seconds")
    expected = _times(n, rules.expected, "expected")
    setting = setting_of(clients, _mean(times))
    outcomes = np.zeros((len(seeds := run_seeds(runs, seed)), 5))
    if isinstance(player, Policy):
        crowd = compiled_crowd(player, setting, rules)
        unfinished = [crowd.play(run, times, drawn, expected, outcomes[i]) for i, run in enumerate(seeds)]
    else:
        live = [LiveCrowd(player, setting, rules, times.tolist(), run, drawn) for run in seeds]
        unfinished = [crowd.play() for crowd in live]
        outcomes[:] = [crowd.outcome for crowd in live]
    outcomes[np.array(unfinished, bool)] = (math.inf, *(4 * [math.nan]))
    return Played(*np.ascontiguousarray(outcomes.T))


def setting_of(clients: Clients, unit: float) -> Setting:
    """How clients come and go where a mean task takes *unit*."""
    leave = 0.0 if math.isinf(clients.stay) else 1.0 / (clients.stay * unit)
    come = 1.0 / (clients.away * unit)
    lasting = (clients.fixed, clients.keeps, clients.patience * unit, clients.renewal, clients.spread)
    return Setting(clients.count, leave, come, *lasting)


def compiled_crowd(policy: Policy, setting: Setting, rules: Rules) -> Crowd:
    """The compiled game of a policy and the rules around it."""
    board = policy.board(both_ends=rules.slow > 0)
    if rules.long and rules.expected is not None:
        for v in np.flatnonzero(rules.expected > rules.long * _mean(rules.expected)).tolist():
            board.late[v] = 1
    return Crowd(board, *setting, rules.slow, rules.known_speeds, rules.fastest, rules.copies, rules.overdue)


def _mean(times: Floats) -> float:
    """The mean, rounded once, so that it is the same on every machine."""
    return math.fsum(times) / len(times) if len(times) else 1.0


def _times(n: int, seconds: Floats | None, what: str) -> Floats:
    if seconds is None:
        return np.ones(n)
    times = np.ascontiguousarray(seconds, np.float64)
    if len(times) != n:
        raise InputError(f"{what}: {len(times)} times for {n} tasks")
    if not (np.isfinite(times).all() and (times >= 0).all()):
        raise InputError(f"{what}: a time is negative or not finite")
    if len(times) and not times.any():
        raise InputError(f"{what}: all times are 0")
    return times
