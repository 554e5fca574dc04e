"""Volatile clients: they arrive, leave, return late or never, and differ in speed.

This is an event-driven simulation. A client that is present and idle asks for a task, and the allocator chooses among the
ready tasks. If there are none, the client waits (it is *stalled*) until one becomes ready; clients are served in the order
in which they asked. All events of one moment are processed before any client is served.
A task takes its seconds divided by the client's speed. `Clients` describes how clients come and go, `eligo.allocating.Rules`
what the server may do besides choosing tasks. Run k of a seed has the same clients and task times for every player.

Policies run compiled (`eligo.kernels.crowds`), other allocators live (`eligo.simulation.crowd`).
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
from eligo.simulation.pebble import Player, Runs, run_seeds

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Clients:
    """The clients of a simulation. Times are in units of the mean task time at speed 1."""

    #: the number of clients, including those that are away
    count: int = 16
    #: the largest possible ratio of two clients' speeds; speeds are uniform on a logarithmic scale around 1
    spread: float = 30.0
    #: the mean length of a stay; infinite if clients never leave
    stay: float = 10.0
    #: the mean length of an absence
    away: float = 10.0
    #: whether all stays and absences have exactly these lengths; otherwise lengths are exponential with these means
    fixed: bool = False
    #: the probability that a leaving client keeps its task and resumes it when it returns; otherwise its work is lost
    keeps: float = 0.0
    #: the time after a client's departure until the server reassigns its task
    patience: float = 0.0
    #: the probability that a leaving client never returns and a new client takes its place
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
        """The mean number of clients that are present."""
        share = 1.0 if math.isinf(self.stay) else self.stay / (self.stay + self.away)
        return self.count * share


@dataclass(frozen=True, eq=False)
class Played:
    """The results of all runs; times are in the unit of the tasks' seconds.

    Clients spend their time present on results, on work that is lost or done twice (*wasted*), or waiting (*stalled*).
    A run never ends if clients always leave before they finish a task: its makespan is infinite and its other values are NaN.
    """

    makespan: Floats
    present: Floats
    useful: Floats
    stalled: Floats
    wasted: Floats

    @property
    def utilisation(self) -> Floats:
        """The share of the clients' time present that led to a result."""
        return self.useful / np.maximum(self.present, 1e-300)

    @property
    def endless(self) -> int:
        """The number of runs that never end."""
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
    """Convert the clients' times to rates, where a mean task takes *unit*."""
    leave = 0.0 if math.isinf(clients.stay) else 1.0 / (clients.stay * unit)
    come = 1.0 / (clients.away * unit)
    lasting = (clients.fixed, clients.keeps, clients.patience * unit, clients.renewal, clients.spread)
    return Setting(clients.count, leave, come, *lasting)


def compiled_crowd(policy: Policy, setting: Setting, rules: Rules) -> Crowd:
    """The compiled game of a policy with these rules."""
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
        raise InputError(f"{what}: expected a time for each of the {n:,} tasks, got {len(times):,}")
    if not (np.isfinite(times).all() and (times >= 0).all()):
        raise InputError(f"{what}: a time is negative or not finite")
    if len(times) and not times.any():
        raise InputError(f"{what}: all times are 0")
    return times
