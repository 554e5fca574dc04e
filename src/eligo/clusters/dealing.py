"""Fat tasks dealt out of a running execution, and taken back whole, in part or not at all."""

from collections.abc import Iterable
from itertools import islice

from eligo.clusters.clustering import checked_seconds, checked_size, weights_of
from eligo.clusters.fat import FatTask, fat_of
from eligo.clusters.goals import Goal
from eligo.clusters.growth import Budget
from eligo.clusters.ranking import LARGEST_PLANNED, ranked
from eligo.clusters.state import State
from eligo.clusters.strategies import Choice, Chooser, check_strategy
from eligo.clusters.traffic import Files
from eligo.dag import Dag
from eligo.errors import InputError, NotSelfContainedError
from eligo.execution import Execution
from eligo.workflow import Workflow, dag_of

FEW = 200  # tasks left: each residual is decided, and planned anew, at once
OFTEN = 4  # of more, what is left is planned anew after each quarter
LARGEST_PLANNED_AGAIN = 5_000  # tasks
TOLERANCE = 0.1  # by which seconds may be missed, as a share
FEW_SEEDS, FEW_EXCHANGES = 3, 0  # for a fat task of such a dag


class Dealer:
    """Deals fat tasks to clients out of an execution, where others may be at work too.

    What a client holds is moved by the dealer alone. Of all other tasks it notices what others did with the execution:
    those that they took, brought back done, released or set aside as failed.

    A fat task is self-contained: it holds nothing that waits for another client's work. What a client does not bring back
    done is released, and what is left is planned anew. In a dag of more than 200 tasks a residual is not decided each time:
    beyond what is proved harmless, fat tasks then come only from dags that meet the repaired condition of Theorem 6, and
    what is left is decided, and planned anew, after every quarter of it.

    >>> dealer = Dealer(Dag.from_arcs([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]))
    >>> dealer.deal("laptop", 2).tasks, dealer.deal("phone", 1)
    (('a', 'b'), None)
    >>> dealer.take_back("laptop", done=["a"])
    ('b', 'c')
    >>> dealer.deal("phone", 1).tasks
    ('b',)
    """

    def __init__(  # noqa: PLR0913
        self,
        flow: Dag | Workflow,
        execution: Execution | None = None,
        *,
        goal: str = "productive",
        strategy: str = "auto",
        weight: float = 0.5,
        effort: str = "quick",
    ) -> None:
        dag = dag_of(flow)
        check_strategy(strategy)
        self.flow, self.strategy, self.effort = flow, strategy, effort
        self.execution = Execution(dag) if execution is None else execution
        if self.execution.dag is not dag and self.execution.dag != dag:
            raise InputError("this execution is of another workflow")
        #: each client's fat task that is out
        self.held: dict[str, FatTask] = {}
        self._goal, self._files = Goal(goal, weight), Files.of(flow)
        #: the tasks that clients hold, and how many of them the execution has handed out, the others being those that wait
        self._dealt: set[str] = set()
        self._taken = 0
        #: the tasks that others have or that failed, and how many were executed when last seen
        self._away = dict.fromkeys((*self.execution.allocated, *self.execution.failed))
        self._seen = len(self.execution.executed)
        self._state = State(dag, dag.indices(tuple(self.execution.executed)), dag.indices(tuple(self._away)))
        self._harmless: bool | None = None
        self._weights: list[float] = []
        self._chooser = self._fresh()

    def deal(self, client: str, size: int | None = None, seconds: float | None = None) -> FatTask | None:
        """A fat task of that many tasks, or about so many seconds, or of what can go now; None where nothing can.

        A task that takes longer than the seconds goes by itself.
        """
        if client in self.held:
            raise InputError(f"client {client!r} has a fat task already")
        budget = self._budget(size, seconds)
        self._notice()
        if self._state.top() is None:
            return None
        self._plan_anew()
        choice = self._chosen(budget)
        fat = fat_of(self.flow, choice.growth, choice.strategy, choice.why, verdict=choice.verdict, effort=self.effort)
        self._chooser.took(choice)
        self._state.take(choice.growth.inside)
        for task in fat.tasks:
            if task in self.execution.eligible:
                self.execution.take(task)
                self._taken += 1
        self.held[client] = fat
        self._dealt.update(fat.tasks)
        return fat

    def take_back(self, client: str, done: Iterable[str] | None = None) -> tuple[str, ...]:
        """A client brings back its fat task done, or only the tasks named; returns what became eligible by it.

        The tasks that are done must be self-contained too. The others are released.
        """
        fat = self.held.get(client)
        if fat is None:
            raise InputError(f"no client {client!r} has a fat task")
        finished, rest = (list(fat.tasks), []) if done is None else _parted(fat, set(done))
        self._notice()
        taken = sum(task in self.execution.allocated for task in fat.tasks)
        fresh = self._moved(finished, rest)
        del self.held[client]
        self._dealt.difference_update(fat.tasks)
        self._taken -= taken
        self._seen += len(finished)
        self._state.bring_back([fat.dag.index[task] for task in (*finished, *rest)], len(finished))
        if rest:
            self._chooser = self._fresh()
        return fresh

    def lost(self, client: str) -> tuple[str, ...]:
        """A client will never bring anything back: all its tasks are released."""
        return self.take_back(client, done=())

    @property
    def left(self) -> int:
        """How many tasks are neither executed nor out."""
        self._notice()
        return self._state.left

    def _notice(self) -> None:
        """Follow what others did with the execution since it was last looked at."""
        game, state, number = self.execution, self._state, self._state.dag.index
        done = list(islice(game.executed, self._seen, None)) if len(game.executed) > self._seen else []
        self._seen += len(done)
        for task in done:
            self._leaves(task)
            if task not in self._dealt:
                state.bring_back([number[task]], 1)
                self._away.pop(task, None)
        released = [task for task in self._away if task in game.eligible]
        for task in released:
            del self._away[task]
        state.bring_back([number[task] for task in released], 0)
        if len(game.allocated) + len(game.failed) > self._taken + len(self._away):
            for task in (*game.allocated, *game.failed):
                self._leaves(task)
        if released:
            self._chooser = self._fresh()

    def _leaves(self, task: str) -> None:
        """A task that somebody else has is out, where it was not so before; then the plan's beginning is not what went."""
        if task in self._dealt or task in self._away:
            return
        self._away[task] = None
        self._state.take([self._state.dag.index[task]])
        self._chooser.dealt += 1
        self._chooser.prefix = self._chooser.linked = False

    def _moved(self, finished: list[str], rest: list[str]) -> tuple[str, ...]:
        """Move the execution on; returns what became eligible and still is."""
        fresh: dict[str, None] = {}
        for task in finished:
            if task in self.execution.eligible:
                self.execution.take(task)
            fresh |= dict.fromkeys(self.execution.complete(task))
        for task in rest:
            if task in self.execution.allocated:
                self.execution.release(task)
                fresh[task] = None
        return tuple(task for task in fresh if task in self.execution.eligible)

    def _budget(self, size: int | None, seconds: float | None) -> Budget:
        if (size is None) == (seconds is None):
            raise InputError("give either the size in tasks or the seconds")
        if size is not None:
            whole = checked_size(size)
            return Budget(whole, whole)
        amount = checked_seconds(seconds)
        self._weights = self._weights or weights_of(self.flow, self._state)
        return Budget(amount * (1 - TOLERANCE), amount * (1 + TOLERANCE), self._weights)

    def _chosen(self, budget: Budget) -> Choice:
        """What the strategy chooses; where there is not so much to choose from, all that can go."""
        direct = self._chooser.direct(budget)
        if not direct.growth.inside:
            return self._chooser.direct(Budget(1, 1))
        if direct.growth.exhausted and not direct.growth.reached:
            return direct
        choice = self._chooser.choose(self.strategy, budget)
        return choice if choice.growth.reached else direct

    def _plan_anew(self) -> None:
        chooser, left = self._chooser, self._state.left
        if not (chooser.prefix or chooser.linked) and (left <= FEW or chooser.dealt * OFTEN >= left):
            self._chooser = self._fresh()

    def _fresh(self) -> Chooser:
        """Rank what is left; what the whole dag's chain says of donors stays true of what is left of it."""
        rest, dag = self._state.remaining(), self._state.dag
        self._weights = []  # of tasks that were out nobody asked whether their seconds are known
        left = dag if len(rest) == len(dag) else dag.induced(rest)
        ranking = ranked(left, self.effort, LARGEST_PLANNED_AGAIN if self.execution.executed else LARGEST_PLANNED)
        ranking = ranking.renumbered(rest)
        few = len(rest) <= FEW
        chooser = Chooser(self._state, ranking, self._goal, self._files, self.effort, trusting=not few)
        if not few:
            chooser.seeds, chooser.exchanges = FEW_SEEDS, FEW_EXCHANGES
        if self._goal.name != "productive":
            self._harmless = chooser.certified if self._harmless is None else self._harmless
            chooser.harmless = self._harmless or None
            chooser.follow_chain()
        return chooser


def _parted(fat: FatTask, done: set[str]) -> tuple[list[str], list[str]]:
    """The tasks of a fat task that are done, which must be self-contained, and those that are not."""
    inside = set(fat.tasks)
    stranger = next((task for task in sorted(done) if task not in inside), None)
    if stranger is not None:
        raise InputError(f"{stranger!r} is not in the fat task of this client")
    for task in done:
        lacking = next((p for p in fat.dag.parents(task) if p in inside and p not in done), None)
        if lacking is not None:
            raise NotSelfContainedError(task, lacking)
    return [task for task in fat.tasks if task in done], [task for task in fat.tasks if task not in done]
