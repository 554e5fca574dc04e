"""The best fat tasks of an execution while it goes on."""

from collections.abc import Callable
from itertools import groupby

from eligo.border import as_workflow
from eligo.clusters.clustering import checked_seconds, checked_size, weights_of
from eligo.clusters.fat import FatTask, fat_of
from eligo.clusters.goals import Goal
from eligo.clusters.growth import Budget, Choice
from eligo.clusters.limits import (
    EXCHANGES_DEALING,
    FEW_LEFT,
    LARGEST_PLANNED,
    LARGEST_PLANNED_AGAIN,
    OFTEN,
    SEEDS_DEALING,
)
from eligo.clusters.ranking import ranked
from eligo.clusters.state import State
from eligo.clusters.strategies import Chooser, check_strategy
from eligo.clusters.traffic import Files
from eligo.deciding.effort import check_effort
from eligo.errors import InputError
from eligo.execution import COMPLETE, ELIGIBLE, HOLD, RELEASE, TAKE, Execution, unpacked
from eligo.names import Name

TOLERANCE = 0.1  # by which seconds may be missed, as a share


class Clusters:
    """The best fat tasks of an execution while it goes on, where others may be at work too.

    A fat task is self-contained: it holds nothing that waits for another client's work. In a dag of more than 200 tasks a
    residual is not decided each time: beyond what is proved harmless, fat tasks then come only from dags that meet the
    repaired condition of Theorem 6, and what is left is decided, and planned anew, after every quarter of it.

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
            raise InputError("this execution is of another workflow")
        self._strategy, self._effort = strategy, effort
        self._goal = Goal(goal, weight)
        self._begin()

    def _begin(self) -> None:
        """See all of the dag as it is now."""
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
        """A fat task of that many tasks, or about so many seconds, or of what can go now; None where nothing can.

        A task that takes longer than the seconds goes by itself. Only tasks that the client *fits* are in it; a *modest* one
        gets what comes last in the plan.
        """
        self._follow()
        budget = self._budget(size, seconds, fits)
        if self._state.top() is None:
            return None
        self._plan_anew()
        choice = self._modest(budget) if modest else self._chosen(budget)
        return fat_of(self.flow, choice, self._effort) if choice.growth.inside else None

    def _follow(self) -> None:
        """Read what became of tasks since; those that went out one after another went together."""
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
                    self._weights = []  # of tasks that were out nobody asked whether their seconds are known

    def _budget(self, size: int | None, seconds: float | None, fits: Callable[[Name], bool] | None) -> Budget:
        if (size is None) == (seconds is None):
            raise InputError("give either the size in tasks or the seconds")
        names = self.flow.dag.tasks
        allowed = None if fits is None else lambda v: fits(names[v])
        if size is not None:
            whole = checked_size(size)
            return Budget(whole, whole, None, allowed)
        amount = checked_seconds(seconds)
        self._weights = self._weights or weights_of(self.flow, self._state)
        return Budget(amount * (1 - TOLERANCE), amount * (1 + TOLERANCE), self._weights, allowed)

    def _chosen(self, budget: Budget) -> Choice:
        """What the strategy chooses; where there is not so much to choose from, all that can go."""
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
        chooser, left = self._chooser, self._state.left
        if not (chooser.prefix or chooser.linked) and (left <= FEW_LEFT or chooser.dealt * OFTEN >= left):
            self._chooser = self._fresh()

    def _fresh(self) -> Chooser:
        """Rank what is left; what the whole dag's chain says of donors stays true of what is left of it."""
        rest, dag = self._state.remaining(), self._state.dag
        left = dag if len(rest) == len(dag) else dag.induced(rest)
        ranking = ranked(left, self._effort, LARGEST_PLANNED_AGAIN if self.execution.executed else LARGEST_PLANNED)
        ranking = ranking.renumbered(rest)
        few = len(rest) <= FEW_LEFT
        chooser = Chooser(self._state, ranking, self._goal, self._files, self._effort, trusting=not few)
        if not few:
            chooser.seeds, chooser.exchanges = SEEDS_DEALING, EXCHANGES_DEALING
        if self._goal.name != "productive":
            self._harmless = chooser.certified if self._harmless is None else self._harmless
            chooser.harmless = self._harmless or None
            chooser.follow_chain()
        return chooser
