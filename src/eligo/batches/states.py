"""Batches for states: `batch` for one state, `Batches` along an execution, `decide` for the yes-or-no question."""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from operator import index
from typing import Any

from eligo.batches.choosing import SOLVERS, choose
from eligo.batches.residual import Residual
from eligo.border import dag_of
from eligo.deciding.work import Clock
from eligo.errors import InputError, check_choice, is_amount, shorten
from eligo.execution import Execution
from eligo.names import Name, labels_of

#: how long to look where nothing is said, by method; the others take no longer anyway
SECONDS = {"auto": 1.0, "exact": math.inf, "greedy": 1.0}


@dataclass(frozen=True)
class Batch:
    """Eligible tasks to hand out together, and how many are eligible once they are executed.

    `eligible_after` is the most possible where `exact`; no choice of the same size can leave more than `upper_bound`.
    """

    tasks: tuple[Name, ...]
    eligible_after: int
    upper_bound: int
    exact: bool
    method: str

    def __str__(self) -> str:
        most = "no choice leaves more" if self.exact else f"no choice leaves more than {self.upper_bound}"
        return f"{', '.join(map(shorten, self.tasks))}: {self.eligible_after} tasks eligible afterwards, {most}"

    def document(self) -> dict[str, Any]:
        """The batch as plain data, fit for JSON."""
        return asdict(self) | {"tasks": labels_of(self.tasks)}


def batch(  # noqa: PLR0913 - the state is part of the question
    flow: object,
    executed: Iterable[Name] = (),
    requests: int = 1,
    *,
    allocated: Iterable[Name] = (),
    eligible: Iterable[Name] | None = None,
    method: str = "auto",
    seconds: float | None = None,
) -> Batch:
    """Which eligible tasks to hand out to that many requests, so that the most tasks are eligible once they are executed.

    Where fewer are eligible, all of them are handed out.

    *executed* tasks are done; *allocated* ones are handed out and not returned, so they are neither executed nor eligible.
    All other tasks whose parents are executed are eligible, or where *eligible* is given, those only. *method* is "auto",
    "exact" (which takes what time it needs), "greedy" or "expansive" (within half of the largest gain on expansive dags).
    *seconds* bounds the time that hard components get.

    >>> batch({"a": [], "b": [], "x": [], "c": ["a", "b"], "d": ["a", "b"], "y": ["x"]}, requests=2)
    Batch(tasks=('a', 'b'), eligible_after=3, upper_bound=3, exact=True, method='closed form')
    """
    game, wanted = _state(flow, executed, allocated, eligible), _asked(requests)
    if wanted < 1:
        raise InputError(f"{wanted} tasks were asked for; at least 1 must be")
    return Batches(game).best(wanted, method, seconds)


def decide(  # noqa: PLR0913 - the state is part of the question
    flow: object,
    executed: Iterable[Name] = (),
    requests: int = 1,
    increase: int = 0,
    *,
    allocated: Iterable[Name] = (),
    seconds: float = math.inf,
) -> bool | None:
    """Whether some batch of that size makes the number of eligible tasks grow by *increase*, which may be negative.

    The decision version of the problem, NP-complete; None where it is not decided in time.

    >>> flow = {"a": [], "b": [], "x": [], "c": ["a", "b"], "y": ["x"]}
    >>> decide(flow, requests=2, increase=-1), decide(flow, requests=2, increase=0)
    (True, False)
    """
    dag, done, out = dag_of(flow), tuple(executed), tuple(allocated)
    before = len(Execution(dag, done, out).eligible)
    found = batch(dag, done, requests, allocated=out, method="exact", seconds=seconds)
    if found.eligible_after >= before + increase:
        return True
    return False if found.upper_bound < before + increase else None


class Batches:
    """The best batches of an execution while it goes on: what does not change between two calls is not computed again.

    >>> game = Execution({"a": [], "b": [], "x": [], "c": ["a", "b"], "y": ["x"]})
    >>> batches = Batches(game)
    >>> batches.best(1).tasks
    ('x',)
    >>> game.take("x"), game.complete("x")
    (None, ('y',))
    >>> batches.best(2).tasks, batches.best(9).tasks
    (('a', 'b'), ('a', 'b', 'y'))
    """

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        _ = execution.dag.index  # so that no later call must wait for it
        self._residual = Residual(execution)

    def best(self, requests: int, method: str = "auto", seconds: float | None = None) -> Batch:
        """The best batch now, of that many tasks or of all that are eligible."""
        self._residual.follow()
        if _asked(requests) < 0:
            raise InputError(f"{requests} tasks were asked for")
        return _answer(self._residual, min(requests, len(self.execution.eligible)), method, seconds)


def _answer(residual: Residual, size: int, method: str, seconds: float | None) -> Batch:
    check_choice("method", method, SOLVERS)
    if seconds is not None and not (is_amount(seconds) or seconds == math.inf):
        raise InputError(f"{seconds} seconds is no time")
    clock = Clock(SECONDS.get(method, math.inf) if seconds is None else seconds)
    found = choose(residual, size, method, clock)
    left = len(residual.eligible) - size
    exact = found.rendered == found.bound
    return Batch(residual.dag.named(found.tasks), left + found.rendered, left + found.bound, exact, found.method)


def _asked(requests: int) -> int:
    try:
        return index(requests)
    except TypeError:
        raise InputError(f"the number of requests is a whole number, and {requests!r} is not") from None


def _state(
    flow: object, executed: Iterable[Name], allocated: Iterable[Name], eligible: Iterable[Name] | None
) -> Execution:
    """The execution that stands there; eligible tasks that may not be handed out count as somebody's."""
    game = Execution(flow, executed, allocated)
    if eligible is not None:
        ready = game.dag.indices(eligible).tolist()
        for v in ready:
            game.require_eligible(v, "eligible")
        for task in game.eligible - set(game.dag.named(ready)):
            game.take(task)
    return game
