"""One fat task of a workflow, `cluster`; and the best ones during an execution, `Clusters`."""

from collections.abc import Callable, Iterable
from itertools import groupby
from numbers import Real

import numpy as np

from eligo.border import as_workflow
from eligo.clusters.fat import FatTask, fat_of
from eligo.clusters.growth import Budget, Choice, Files, Goal, Growth
from eligo.clusters.state import LARGEST_PLANNED, Ranking, State, rank_tasks
from eligo.clusters.strategies import Chooser, check_strategy
from eligo.deciding.effort import check_effort
from eligo.errors import InputError, whole_size
from eligo.estimates import estimate
from eligo.execution import COMPLETE, ELIGIBLE, HOLD, RELEASE, TAKE, Execution, unpacked
from eligo.names import Name
from eligo.planning import Plan
from eligo.workflow import Workflow

# One fat task


SEEDS_LARGE, EXCHANGES_LARGE = 4, 200  # limits of the search in a dag of more than LARGEST_PLANNED tasks


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
    """A self-contained set of tasks for one client, with the dag that remains.

    It has *size* tasks, or takes *seconds* within the *tolerance*. *goal* is "productive" (most tasks rendered eligible),
    "communication" (fewest arcs cut, or bytes if the sizes of files are known) or "mixed", in which *weight*, from 0 to 1, is
    the weight of a cut arc. *strategy* is "auto", "direct", "staggered" or "searched". If the remaining dag has an
    IC-optimal schedule, "auto" leaves a dag that has one too. *plan* is that of the workflow, if it is known and no task is
    executed.

    >>> mesh = {"a": [], "b": ["a"], "c": ["a"], "d": ["b"], "e": ["b", "c"], "f": ["c"]}
    >>> fat = cluster(mesh, size=3)
    >>> fat.tasks, fat.cut_arcs, fat.residual_verdict, fat.strategy
    (('a', 'b', 'c'), 4, 'optimal', 'direct')
    """
    workflow = as_workflow(flow)
    check_strategy(strategy)
    check_effort(effort)
    aim = Goal(goal, weight)
    state = State(Execution(workflow, executed))
    budget = budget_of(workflow, state, size, seconds, tolerance)
    chooser = Chooser(state, _ranking(state, effort, plan), aim, Files.of(workflow), effort)
    if state.remaining_count > LARGEST_PLANNED:
        chooser.seeds, chooser.exchanges = SEEDS_LARGE, EXCHANGES_LARGE
    choice = chooser.choose(strategy, budget)
    if not choice.growth.reached:
        raise InputError(
            f"no fat task of {budget.low:g} to {budget.high:g} seconds was found; "
            f"the closest takes {_nearest(state, choice.growth):g} seconds"
        )
    return fat_of(workflow, choice, effort)


def _nearest(state: State, growth: Growth) -> float:
    """The seconds of a set that is too small, or if it is empty, of the shortest ready task."""
    ready = (v for v in state.remaining().tolist() if state.is_ready(v))
    return growth.weight if growth.inside else min(map(growth.budget.of, ready))


def _ranking(state: State, effort: str, plan: Plan | None) -> Ranking:
    dag, rest = state.dag, state.remaining()
    if plan is not None and plan.dag is not dag and plan.dag != dag:
        raise InputError("this plan belongs to another workflow")
    if len(rest) < len(dag):
        return rank_tasks(dag.induced(rest), effort).renumbered(rest)
    return rank_tasks(dag, effort) if plan is None else Ranking.of_plan(plan)


def budget_of(flow: Workflow, state: State, size: int | None, seconds: float | None, tolerance: float = 0.1) -> Budget:
    """The size of a fat task, in tasks or in seconds. Raises `InputError` if less than that remains."""
    if (size is None) == (seconds is None):
        raise InputError("give either a size in tasks or seconds")
    if size is not None:
        count = whole_size(size)
        if count > state.remaining_count:
            raise InputError(
                f"size must be at most {state.remaining_count:,}, the number of remaining tasks, got {count:,}"
            )
        return Budget(count, count)
    return _budget_of_seconds(flow, state, checked_seconds(seconds), tolerance)


def checked_seconds(seconds: object) -> float:
    """The argument as a size in seconds, a float. Raises `InputError` unless it is a positive number.

    >>> checked_seconds("2")
    Traceback (most recent call last):
    eligo.errors.InputError: seconds must be a number, got '2'
    """
    if isinstance(seconds, bool) or not isinstance(seconds, Real):
        raise InputError(f"seconds must be a number, got {seconds!r}")
    amount = float(seconds)
    if not 0 < amount < float("inf"):
        raise InputError(f"seconds must be positive and finite, got {amount:g}")
    return amount


def _budget_of_seconds(flow: Workflow, state: State, seconds: float, tolerance: float) -> Budget:
    if not 0 <= tolerance < 1:
        raise InputError(f"tolerance must be at least 0 and less than 1, got {tolerance}")
    weights = weights_of(flow, state)
    budget = Budget(seconds * (1 - tolerance), seconds * (1 + tolerance), weights)
    total = sum(weights[v] for v in state.remaining().tolist())
    if not budget.is_reached(total):
        raise InputError(f"seconds must be at most {total:g}, the remaining work, got {seconds:g}")
    return budget


def weights_of(flow: Workflow, state: State) -> list[float]:
    """The seconds of every task. Raises `InputError` if the seconds of a remaining task are unknown."""
    estimates = estimate(flow)
    unknown = np.flatnonzero(~estimates.own[rest := state.remaining()])
    if len(unknown):
        task = flow.dag.tasks[rest[unknown[0]]]
        raise InputError(f"the run time of {task!r} is not known, so the size cannot be given in seconds")
    weights: list[float] = estimates.seconds.tolist()
    return weights


# One after another


SEEDS_DEALING, EXCHANGES_DEALING = 3, 0  # limits of the search during the dealing of a large dag
LARGEST_PLANNED_AGAIN = 5_000  # tasks
FEW_REMAINING = 200  # tasks, up to which each residual is decided, and planned again, at once
OFTEN = 4  # larger residuals are planned again after each quarter
TOLERANCE = 0.1  # relative error allowed in a size in seconds


class Clusters:
    """The best fat tasks of a running execution that other clients may work on too.

    A fat task is self-contained: no task in it depends on the work of another client. If more than 200 tasks remain, the
    residual is not planned each time: fat tasks then come from strategies and chains that are proved harmless, and the
    remaining dag is planned again after every quarter of it.

    >>> game = Execution({"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]})
    >>> clusters = Clusters(game.dag, game)
    >>> clusters.best(2).tasks
    ('a', 'b')
    >>> game.take("a", "b")
    >>> clusters.best(1) is None
    True
    """

    def __init__(  # noqa: PLR0913
        self,
        flow: object,
        execution: Execution,
        *,
        goal: str = "productive",
        strategy: str = "auto",
        weight: float = 0.5,
        effort: str = "quick",
    ) -> None:
        check_strategy(strategy)
        check_effort(effort)
        self.flow, self.execution = as_workflow(flow), execution
        if execution.dag is not self.flow.dag and execution.dag != self.flow.dag:
            raise InputError("this execution belongs to another workflow")
        self._strategy, self._effort = strategy, effort
        self._goal = Goal(goal, weight)
        self._begin()

    def _begin(self) -> None:
        """Set up all state from the dag as it is now."""
        self.flow, self._grown = self.flow.grown(self.execution.dag), len(self.execution.additions)
        self._files = Files.of(self.flow)
        self._state, self._seen = State(self.execution), len(self.execution.journal)
        self._harmless: bool | None = None
        self._weights: list[float] = []
        self._chooser = self._fresh()

    def best(
        self,
        size: int | None = None,
        seconds: float | None = None,
        *,
        fits: Callable[[Name], bool] | None = None,
        modest: bool = False,
    ) -> FatTask | None:
        """A fat task of *size* tasks or about *seconds*, or of all that can run now if they are fewer; None if none can.

        A task that takes longer than *seconds* is given alone. *fits* selects the tasks that the client can run; a *modest*
        client gets the last tasks of the plan.
        """
        self._follow()
        budget = self._budget(size, seconds, fits)
        if self._state.top() is None:
            return None
        self._plan_anew()
        choice = self._modest(budget) if modest else self._choose(budget)
        return fat_of(self.flow, choice, self._effort) if choice.growth.inside else None

    def _follow(self) -> None:
        """Read the moves since the last call; tasks handed out in successive moves count as one set."""
        game, state = self.execution, self._state
        if self._seen == len(game.journal):
            return
        if self._grown < len(game.additions):
            self._begin()
            return
        moves, self._seen = unpacked(game.since(self._seen)), len(game.journal)
        codes = game.codes
        for went, run in groupby(moves, key=lambda move: move[0] in {TAKE, HOLD}):
            tasks = list(run)
            if went:
                self._chooser.went([v for _, v in tasks])
                continue
            for kind, v in tasks:
                fresh = state.children_of(v) if kind == COMPLETE else [v] if kind == RELEASE else []
                state.push(w for w in fresh if codes[w] == ELIGIBLE)
                if kind == RELEASE:
                    self._chooser.came_back()
                    self._weights = []  # tasks that were out may have unknown seconds

    def _budget(self, size: int | None, seconds: float | None, fits: Callable[[Name], bool] | None) -> Budget:
        if (size is None) == (seconds is None):
            raise InputError("give either a size in tasks or seconds")
        names = self.flow.dag.tasks
        allowed = None if fits is None else lambda v: fits(names[v])
        if size is not None:
            count = whole_size(size)
            return Budget(count, count, None, allowed)
        amount = checked_seconds(seconds)
        self._weights = self._weights or weights_of(self.flow, self._state)
        return Budget(amount * (1 - TOLERANCE), amount * (1 + TOLERANCE), self._weights, allowed)

    def _choose(self, budget: Budget) -> Choice:
        """The tasks that the strategy chooses, or all that can run if these are fewer than wanted."""
        direct = self._chooser.direct(budget)
        if not direct.growth.inside:
            return self._chooser.direct(Budget(1, 1, None, budget.fits))
        if direct.growth.exhausted and not direct.growth.reached:
            return direct
        choice = self._chooser.choose(self._strategy, budget)
        return choice if choice.growth.reached else direct

    def _modest(self, budget: Budget) -> Choice:
        choice = self._chooser.modest(budget)
        return choice if choice.growth.inside else self._chooser.modest(Budget(1, 1, None, budget.fits))

    def _plan_anew(self) -> None:
        chooser, remaining = self._chooser, self._state.remaining_count
        if not (chooser.prefix or chooser.linked) and (
            remaining <= FEW_REMAINING or chooser.dealt * OFTEN >= remaining
        ):
            self._chooser = self._fresh()

    def _fresh(self) -> Chooser:
        """A chooser that ranks the remaining tasks; if the whole dag is a donor, so is the remaining dag."""
        rest, dag = self._state.remaining(), self._state.dag
        residual = dag if len(rest) == len(dag) else dag.induced(rest)
        ranking = rank_tasks(
            residual, self._effort, LARGEST_PLANNED_AGAIN if self.execution.executed else LARGEST_PLANNED
        )
        ranking = ranking.renumbered(rest)
        few = len(rest) <= FEW_REMAINING
        chooser = Chooser(self._state, ranking, self._goal, self._files, self._effort, trusting=not few)
        if not few:
            chooser.seeds, chooser.exchanges = SEEDS_DEALING, EXCHANGES_DEALING
        if self._goal.name != "productive":
            self._harmless = chooser.certified if self._harmless is None else self._harmless
            chooser.harmless = self._harmless or None
            chooser.follow_chain()
        return chooser
