"""Batches for states: `batch` for one state, `Batches` along an execution, `decide` for the yes-or-no question."""

import math
from collections.abc import Iterable, KeysView
from dataclasses import asdict, dataclass
from itertools import islice
from operator import index
from typing import Any

import numpy as np

from eligo.batches.choosing import SOLVERS, choose
from eligo.batches.residual import Residual
from eligo.border import as_workflow
from eligo.dag import Dag
from eligo.deciding.clock import Clock
from eligo.errors import InputError, shorten
from eligo.execution import Execution
from eligo.rows import Ints
from eligo.workflow import Workflow, dag_of

#: how long to look where nothing is said, by method; the others take no longer anyway
SECONDS = {"auto": 1.0, "exact": math.inf, "greedy": 1.0}


@dataclass(frozen=True)
class Batch:
    """Eligible tasks to hand out together, and how many are eligible once they are executed.

    `eligible_after` is the most possible where `exact`; no choice of the same size can leave more than `upper_bound`.
    """

    tasks: tuple[str, ...]
    eligible_after: int
    upper_bound: int
    exact: bool
    method: str

    def __str__(self) -> str:
        most = "no choice leaves more" if self.exact else f"no choice leaves more than {self.upper_bound}"
        return f"{', '.join(map(shorten, self.tasks))}: {self.eligible_after} tasks eligible afterwards, {most}"

    def document(self) -> dict[str, Any]:
        """The batch as plain data, fit for JSON."""
        return asdict(self)


def batch(  # noqa: PLR0913 - the state is part of the question
    flow: object,
    executed: Iterable[str] = (),
    requests: int = 1,
    *,
    allocated: Iterable[str] = (),
    eligible: Iterable[str] | None = None,
    method: str = "auto",
    seconds: float | None = None,
) -> Batch:
    """Which eligible tasks to hand out to that many requests, so that the most tasks are eligible once they are executed.

    *executed* tasks are done; *allocated* ones are handed out and not returned, so they are neither executed nor eligible.
    All other tasks whose parents are executed are eligible, or where *eligible* is given, those only. *method* is "auto",
    "exact" (which takes what time it needs), "greedy", "expansive" (within half of the largest gain on expansive dags) or
    "static" (the paper's own, within a third). *seconds* bounds the time that hard components get.

    >>> dag = Dag.from_arcs([("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"), ("x", "y")])
    >>> batch(dag, requests=2)
    Batch(tasks=('a', 'b'), eligible_after=3, upper_bound=3, exact=True, method='closed form')
    """
    dag = dag_of(as_workflow(flow))
    residual = _state(dag, executed, allocated, eligible)
    ready, wanted = len(residual.eligible), _asked(requests)
    if wanted < 1:
        raise InputError(f"{wanted} tasks were asked for; at least 1 must be")
    if wanted > ready:
        raise InputError(f"{wanted} tasks were asked for, but only {ready} are eligible")
    return _answer(residual, wanted, method, seconds)


def decide(  # noqa: PLR0913 - the state is part of the question
    flow: Dag | Workflow,
    executed: Iterable[str] = (),
    requests: int = 1,
    increase: int = 0,
    *,
    allocated: Iterable[str] = (),
    seconds: float = math.inf,
) -> bool | None:
    """Whether some batch of that size makes the number of eligible tasks grow by *increase*, which may be negative.

    The decision version of the problem, NP-complete; None where it is not decided in time.

    >>> dag = Dag.from_arcs([("a", "c"), ("b", "c"), ("x", "y")])
    >>> decide(dag, requests=2, increase=-1), decide(dag, requests=2, increase=0)
    (True, False)
    """
    dag, done, out = dag_of(flow), tuple(executed), tuple(allocated)
    before = len(_state(dag, done, out, None).eligible)
    found = batch(dag, done, requests, allocated=out, method="exact", seconds=seconds)
    if found.eligible_after >= before + increase:
        return True
    return False if found.upper_bound < before + increase else None


class Batches:
    """The best batches of an execution while it goes on: what does not change between two calls is not computed again.

    >>> game = Execution(Dag.from_arcs([("a", "c"), ("b", "c"), ("x", "y")]))
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
        self._executed = len(execution.executed)
        self._out = execution.allocated | execution.failed
        dag = execution.dag
        _ = dag.index  # so that no later call must wait for it
        self._residual = Residual(dag, dag.indices(execution.executed), dag.indices(self._out))

    def best(self, requests: int, method: str = "auto", seconds: float | None = None) -> Batch:
        """The best batch now, of that many tasks or of all that are eligible."""
        self._follow()
        if _asked(requests) < 0:
            raise InputError(f"{requests} tasks were asked for")
        size = min(requests, len(self.execution.eligible))
        return _answer(self._residual, size, method, seconds)

    def _follow(self) -> None:
        """Tell the residual what happened since: executed tasks are kept in order, so the new ones are the last."""
        game, dag = self.execution, self.execution.dag
        executed = latest(game.executed, len(game.executed) - self._executed)
        out = game.allocated | game.failed
        taken, returned = out - self._out, self._out - out - set(executed)
        if executed or taken or returned:
            self._residual.advance(dag.indices(executed), dag.indices(taken), dag.indices(returned))
        self._executed, self._out = len(game.executed), out


def latest(view: KeysView[str], count: int) -> list[str]:
    """The tasks that came into a view of an execution last, the latest first."""
    return list(islice(reversed(view), count))  # type: ignore[call-overload]


def best(execution: Execution, requests: int, method: str = "auto", seconds: float | None = None) -> Batch:
    """The best batch of an execution as it is now; to ask again and again, keep a `Batches`."""
    return Batches(execution).best(requests, method, seconds)


def _answer(residual: Residual, size: int, method: str, seconds: float | None) -> Batch:
    if method not in SOLVERS:
        raise InputError(f"there is no method {method!r}; there are {', '.join(SOLVERS)}")
    if seconds is not None and not seconds >= 0:
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


def _state(dag: Dag, executed: Iterable[str], allocated: Iterable[str], eligible: Iterable[str] | None) -> Residual:
    """The residual of a state that is checked to be legal."""
    done, out = dag.indices(executed), dag.indices(allocated)
    _check_parents(dag, done, done, "executed")
    _check_apart(dag, done, out, "executed", "allocated")
    _check_parents(dag, out, done, "allocated")
    if eligible is None:
        return Residual(dag, done, out)
    ready = dag.indices(eligible)
    _check_apart(dag, done, ready, "executed", "eligible")
    _check_apart(dag, out, ready, "allocated", "eligible")
    _check_parents(dag, ready, done, "eligible")
    others = np.setdiff1d(Residual(dag, done).eligible, ready)
    return Residual(dag, done, others)


def _check_parents(dag: Dag, tasks: Ints, executed: Ints, state: str) -> None:
    done = np.zeros(len(dag), np.bool_)
    done[executed] = True
    claimed = np.zeros(len(dag), np.bool_)
    claimed[tasks] = True
    wrong = np.flatnonzero(claimed[dag.child] & ~done[dag.tails])
    if len(wrong):
        task, parent = dag.tasks[dag.child[wrong[0]]], dag.tasks[dag.tails[wrong[0]]]
        raise InputError(f"{shorten(task)!r} cannot be {state}: its parent {shorten(parent)!r} is not executed")


def _check_apart(dag: Dag, first: Ints, second: Ints, one: str, other: str) -> None:
    both = np.intersect1d(first, second)
    if len(both):
        raise InputError(f"{shorten(dag.tasks[both[0]])!r} cannot be both {one} and {other}")
