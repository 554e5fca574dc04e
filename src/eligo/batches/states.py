"""Batches for states: `batch` for one state, `Batches` during an execution, `decide` for the yes-or-no question."""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from operator import index
from typing import Any

from eligo.batches.best import SOLVERS, choose
from eligo.batches.component_solver import FULL, Budget, Limits
from eligo.batches.residual import Residual
from eligo.border import dag_of
from eligo.deciding.work import Clock
from eligo.errors import InputError, check_choice, is_amount, shorten
from eligo.execution import Execution
from eligo.names import Name, labels_of

#: the default time limit of each method; other methods need none
SECONDS = {"auto": 1.0, "exact": math.inf, "greedy": 1.0}


@dataclass(frozen=True)
class Batch:
    """Eligible tasks to hand out together, and the number of eligible tasks once they are executed.

    `eligible_after` is the most possible if `exact`; no choice of the same size can leave more than `upper_bound`.
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
        """The batch as a dict for JSON."""
        return asdict(self) | {"tasks": labels_of(self.tasks), "ready_after": self.eligible_after}


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
    """The eligible tasks to hand out to *requests* clients so that the most tasks are eligible once they are done.

    If fewer are eligible, all of them are handed out.

    *executed* tasks are done; *allocated* ones are handed out and not returned, so they are neither executed nor eligible.
    All other tasks whose parents are executed are eligible, or only those in *eligible*, if given. *method* is "auto",
    "exact" (without a time limit), "greedy" or "expansive" (within half of the largest gain on expansive dags).
    *seconds* limits the time for hard components.

    >>> batch({"a": [], "b": [], "x": [], "c": ["a", "b"], "d": ["a", "b"], "y": ["x"]}, requests=2)
    Batch(tasks=('a', 'b'), eligible_after=3, upper_bound=3, exact=True, method='closed form')
    """
    game, wanted = _state(flow, executed, allocated, eligible), _request_count(requests)
    if wanted < 1:
        raise InputError(f"requests must be at least 1, got {wanted}")
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
    """Whether some batch of *requests* tasks increases the number of eligible tasks by *increase*, which may be negative.

    This is the NP-complete decision problem; the answer is None if the time does not suffice.

    >>> flow = {"a": [], "b": [], "x": [], "c": ["a", "b"], "y": ["x"]}
    >>> decide(flow, requests=2, increase=-1), decide(flow, requests=2, increase=0)
    (True, False)
    """
    dag, done, out = dag_of(flow), tuple(executed), tuple(allocated)
    before = len(Execution(dag, done, out).eligible)
    best = batch(dag, done, requests, allocated=out, method="exact", seconds=seconds)
    if best.eligible_after >= before + increase:
        return True
    return False if best.upper_bound < before + increase else None


class Batches:
    """The best batches of a running execution; results that do not change between calls are reused.

    >>> game = Execution({"a": [], "b": [], "x": [], "c": ["a", "b"], "y": ["x"]})
    >>> batches = Batches(game)
    >>> batches.best(1).tasks
    ('x',)
    >>> game.take("x"), game.complete("x")
    (None, ('y',))
    >>> batches.best(2).tasks, batches.best(9).tasks
    (('a', 'b'), ('a', 'b', 'y'))
    """

    def __init__(self, execution: Execution, limits: Limits = FULL) -> None:
        self.execution, self._limits = execution, limits
        _ = execution.dag.index  # computed now so that no later call takes longer
        self._residual = Residual(execution)

    def best(self, requests: int, method: str = "auto", seconds: float | None = None) -> Batch:
        """The best batch of *requests* tasks, or of all eligible tasks if there are fewer."""
        self._residual.follow()
        if _request_count(requests) < 0:
            raise InputError(f"requests must not be negative, got {requests}")
        check_choice("method", method, SOLVERS)
        budget = Budget(_clock(method, seconds), self._limits)
        return _answer(self._residual, min(requests, len(self.execution.eligible)), method, budget)


def _clock(method: str, seconds: float | None) -> Clock:
    if seconds is not None and not (is_amount(seconds) or seconds == math.inf):
        raise InputError(f"seconds must be a non-negative number, got {seconds}")
    return Clock(SECONDS.get(method, math.inf) if seconds is None else seconds)


def _answer(residual: Residual, size: int, method: str, budget: Budget) -> Batch:
    choice = choose(residual, size, method, budget)
    rest = len(residual.eligible) - size
    exact = choice.rendered == choice.bound
    return Batch(residual.dag.named(choice.tasks), rest + choice.rendered, rest + choice.bound, exact, choice.method)


def _request_count(requests: int) -> int:
    try:
        return index(requests)
    except TypeError:
        raise InputError(f"requests must be an integer, got {requests!r}") from None


def _state(
    flow: object, executed: Iterable[Name], allocated: Iterable[Name], eligible: Iterable[Name] | None
) -> Execution:
    """An execution in this state; eligible tasks that may not be handed out count as taken."""
    game = Execution(flow, executed, allocated)
    if eligible is not None:
        ready = game.dag.indices(eligible).tolist()
        for v in ready:
            game.require_eligible(v, "eligible")
        for task in game.eligible - set(game.dag.named(ready)):
            game.take(task)
    return game
