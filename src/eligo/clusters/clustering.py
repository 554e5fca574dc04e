"""One fat task out of a workflow: `cluster`."""

from collections.abc import Iterable
from numbers import Real
from operator import index
from typing import SupportsIndex

import numpy as np

from eligo.border import as_workflow
from eligo.clusters.fat import FatTask, fat_of
from eligo.clusters.goals import Goal
from eligo.clusters.growth import Budget, Growth
from eligo.clusters.limits import EXCHANGES_LARGE, LARGEST_PLANNED, SEEDS_LARGE
from eligo.clusters.ranking import Ranking, ranked
from eligo.clusters.state import State
from eligo.clusters.strategies import Chooser, check_strategy
from eligo.clusters.traffic import Files
from eligo.deciding.effort import check_effort
from eligo.errors import InputError
from eligo.estimating import estimate
from eligo.execution import Execution
from eligo.names import Name
from eligo.planning import Plan
from eligo.workflow import Workflow


def cluster(  # noqa: PLR0913
    flow: object,
    size: int | None = None,
    goal: str = "productive",
    *,
    strategy: str = "auto",
    executed: Iterable[Name] = (),
    seconds: float | None = None,
    tolerance: float = 0.1,
    weight: float = 0.5,
    effort: str = "normal",
    plan: Plan | None = None,
) -> FatTask:
    """A self-contained set of tasks for one client, and what it leaves.

    It has *size* tasks, or takes *seconds* within the *tolerance*. *goal* is "productive" (most tasks rendered eligible),
    "communication" (fewest arcs cut, or bytes where the sizes of files are known) or "mixed", where *weight*, from 0 to 1,
    says how much a cut arc counts. *strategy* is "auto", "direct", "staggered" or "searched". Where what is left has an
    IC-optimal schedule, "auto" leaves one that has. *plan* is that of the workflow, where it is known and nothing
    is executed.

    >>> mesh = {"a": [], "b": ["a"], "c": ["a"], "d": ["b"], "e": ["b", "c"], "f": ["c"]}
    >>> fat = cluster(mesh, size=3)
    >>> fat.tasks, fat.cut_arcs, fat.residual_verdict, fat.strategy
    (('a', 'b', 'c'), 4, 'optimal', 'direct')
    """
    known = as_workflow(flow)
    check_strategy(strategy)
    check_effort(effort)
    aim = Goal(goal, weight)
    state = State(Execution(known, executed))
    budget = budget_of(known, state, size, seconds, tolerance)
    chooser = Chooser(state, _ranking(state, effort, plan), aim, Files.of(known), effort)
    if state.left > LARGEST_PLANNED:
        chooser.seeds, chooser.exchanges = SEEDS_LARGE, EXCHANGES_LARGE
    choice = chooser.choose(strategy, budget)
    if not choice.growth.reached:
        raise InputError(
            f"no fat task of {budget.low:g} to {budget.high:g} seconds was found; "
            f"the nearest found takes {_nearest(state, choice.growth):g} seconds"
        )
    return fat_of(known, choice, effort)


def _nearest(state: State, growth: Growth) -> float:
    """The seconds of a set that is too small, or where it has nothing of the shortest task that can go."""
    ready = (v for v in state.remaining().tolist() if state.is_ready(v))
    return growth.weight if growth.inside else min(map(growth.budget.of, ready))


def _ranking(state: State, effort: str, plan: Plan | None) -> Ranking:
    dag, rest = state.dag, state.remaining()
    if plan is not None and plan.dag is not dag and plan.dag != dag:
        raise InputError("this plan was made for another workflow")
    if len(rest) < len(dag):
        return ranked(dag.induced(rest), effort).renumbered(rest)
    return ranked(dag, effort) if plan is None else Ranking.of_plan(plan)


def budget_of(flow: Workflow, state: State, size: int | None, seconds: float | None, tolerance: float = 0.1) -> Budget:
    """How large a fat task is to be, in tasks or in seconds, where there is that much left."""
    if (size is None) == (seconds is None):
        raise InputError("give either the size in tasks or the seconds")
    if size is not None:
        whole = checked_size(size)
        if whole > state.left:
            raise InputError(f"a fat task of {whole:,} tasks was asked for, and only {state.left:,} are left")
        return Budget(whole, whole)
    return _budget_of_seconds(flow, state, checked_seconds(seconds), tolerance)


def checked_size(size: SupportsIndex) -> int:
    """A size in tasks, if it is one.

    >>> checked_size(2.5)
    Traceback (most recent call last):
    eligo.errors.InputError: a fat task has a whole number of tasks, and 2.5 is no such number
    """
    try:
        whole = None if isinstance(size, bool) else index(size)
    except TypeError:
        whole = None
    if whole is None:
        raise InputError(f"a fat task has a whole number of tasks, and {size!r} is no such number")
    if whole < 1:
        raise InputError(f"a fat task has at least one task, and {whole} is no such size")
    return whole


def checked_seconds(seconds: object) -> float:
    """A size in seconds, if it is one.

    >>> checked_seconds("2")
    Traceback (most recent call last):
    eligo.errors.InputError: a fat task takes some seconds, and '2' is no such number
    """
    if isinstance(seconds, bool) or not isinstance(seconds, Real):
        raise InputError(f"a fat task takes some seconds, and {seconds!r} is no such number")
    amount = float(seconds)
    if not 0 < amount < float("inf"):
        raise InputError(f"a fat task takes some time, and {amount:g} seconds are none")
    return amount


def _budget_of_seconds(flow: Workflow, state: State, seconds: float, tolerance: float) -> Budget:
    if not 0 <= tolerance < 1:
        raise InputError(f"a tolerance is a share from 0 to less than 1, and {tolerance} is none")
    weights = weights_of(flow, state)
    budget = Budget(seconds * (1 - tolerance), seconds * (1 + tolerance), weights)
    total = sum(weights[v] for v in state.remaining().tolist())
    if not budget.is_reached(total):
        raise InputError(f"a fat task of {seconds:g} seconds was asked for, and only {total:g} are left")
    return budget


def weights_of(flow: Workflow, state: State) -> list[float]:
    """The seconds of every task, which must be known of those that are left."""
    known = estimate(flow)
    unknown = np.flatnonzero(~known.own[rest := state.remaining()])
    if len(unknown):
        task = flow.dag.tasks[rest[unknown[0]]]
        raise InputError(f"how long {task!r} runs is not known, so no size in seconds can be kept")
    weights: list[float] = known.seconds.tolist()
    return weights
