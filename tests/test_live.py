"""One execution, served by every allocator at once, with all that clients do: nothing is lost, nothing accepted twice."""

from collections import Counter
from collections.abc import Callable
from itertools import count

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from eligo import policies
from eligo.allocating import Allocator, Ask, ByBatch, ByCluster, ByPolicy, Grant, Prudent, Rules
from eligo.dag import Dag
from eligo.errors import MoveError
from eligo.execution import Execution

N = 10
arcs = st.sets(st.tuples(st.integers(0, N - 1), st.integers(0, N - 1)).filter(lambda a: a[0] < a[1]), max_size=18)
some = st.integers(0, 10**6)  # picks one of what there is
ALWAYS = Rules(slow=0.5, copies=3, overdue=0.0)

MAKERS: dict[str, Callable[[Execution], Allocator]] = {
    "balanced": lambda game: ByPolicy(policies.balanced(game.dag), game),
    "fifo": lambda game: ByPolicy(policies.fifo(game.dag), game, seed=5),
    "random": lambda game: ByPolicy(policies.random(game.dag), game, seed=6),
    "batch": ByBatch,
    "cluster": lambda game: ByCluster(game.dag, game),
    "prudent": lambda game: Prudent(ByPolicy(policies.balanced(game.dag), game), ALWAYS, clock=lambda: 0.0),
    "prudent batch": lambda game: Prudent(ByBatch(game), ALWAYS, clock=lambda: 0.0),
    "prudent cluster": lambda game: Prudent(ByCluster(game.dag, game), ALWAYS, clock=lambda: 0.0),
}


class Live(RuleBasedStateMachine):
    """Clients are strangers, each of whom asks once; what a client has and was not given up is believed of it."""

    @initialize(arcs=arcs)
    def begin(self, arcs: set[tuple[int, int]]) -> None:
        self.dag = Dag.from_arcs([(str(u), str(v)) for u, v in sorted(arcs)], tasks=map(str, range(N)))
        self.game = Execution(self.dag)
        self.allocators = {name: make(self.game) for name, make in MAKERS.items()}
        self.numbers = count()
        self.believed: dict[int, list[str]] = {}
        self.lost: dict[int, list[str]] = {}  # clients who were given up but may yet bring something
        self.accepted: Counter[str] = Counter()

    # Asking

    @rule(
        name=st.sampled_from(sorted(MAKERS)),
        sizes=st.lists(st.integers(1, 4), min_size=1, max_size=3),
        odd=st.booleans(),
    )
    def ask(self, name: str, sizes: list[int], odd: bool) -> None:
        fits = (lambda task: int(task) % 2 == 1) if odd else None
        speed = 0.1 if odd else None
        asks = [Ask(next(self.numbers), size, speed=speed, fits=fits) for size in sizes]
        before = set(self.game.eligible)
        fresh = self.fresh(name)
        expected = fresh.hand_out(asks)
        grants = self.allocators[name].hand_out(asks)
        self.agree(name, grants, expected, fresh.execution)
        for grant in grants:
            self.check_self_contained(grant)
            assert not odd or all(int(task) % 2 for task in grant.tasks)
            self.believed[grant.ask.client] = list(grant.tasks)  # type: ignore[index]
        first = {grant.tasks[0] for grant in grants}
        assert first <= before or "prudent" in name

    def fresh(self, name: str) -> Allocator:
        """The same allocator, made from the journal: as after a restart."""
        again = MAKERS[name](Execution.replay(self.dag, self.game.journal))
        kept = self.allocators[name]
        if isinstance(again, Prudent) and isinstance(kept, Prudent):
            again.speeds = kept.speeds
        return again

    def agree(self, name: str, grants: list[Grant], expected: list[Grant], elsewhere: Execution) -> None:
        """Policies choose the same tasks; the best batch leaves as many ready; fat tasks are as large."""
        assert [grant.ask for grant in grants] == [grant.ask for grant in expected]
        assert [len(grant.tasks) for grant in grants] == [len(grant.tasks) for grant in expected]
        if "batch" in name:
            assert self.ready_when_done(self.game) == self.ready_when_done(elsewhere)
        elif "cluster" not in name:
            assert [grant.tasks for grant in grants] == [grant.tasks for grant in expected]

    def ready_when_done(self, game: Execution) -> int:
        """How many tasks are eligible once all that is out is done."""
        done = {*game.executed, *game.allocated, *game.held}
        return sum(done.issuperset(self.dag.parents(task)) for task in self.dag.tasks if task not in done)

    def check_self_contained(self, grant: Grant) -> None:
        for i, task in enumerate(grant.tasks):
            assert {*self.game.executed, *grant.tasks[:i]}.issuperset(self.dag.parents(task))

    # What clients do

    def client(self, pick: int) -> int:
        return sorted(self.believed)[pick % len(self.believed)]

    @precondition(lambda self: self.believed)
    @rule(pick=some)
    def complete_next(self, pick: int) -> None:
        """A client brings the next of its tasks, or one that somebody else brought before."""
        client = self.client(pick)
        task = self.believed[client].pop(0)
        if not self.believed[client]:
            del self.believed[client]
        self.bring(task, late=False)
        for prudent in self.allocators.values():
            if isinstance(prudent, Prudent):
                prudent.learn(client, task, 1.0)

    def bring(self, task: str, late: bool) -> None:
        if self.accepted[task]:
            with pytest.raises(MoveError, match="it is executed"):
                self.game.complete(task, late)
        else:
            self.game.complete(task, late)
            self.accepted[task] += 1

    @precondition(lambda self: self.believed)
    @rule(pick=some)
    def fail_next(self, pick: int) -> None:
        """A client fails with the next of its tasks, and gives the others back."""
        tasks = self.believed.pop(self.client(pick))
        if not self.accepted[tasks[0]]:
            self.game.fail(tasks[0])
        self.give_back(tasks[1:])

    @precondition(lambda self: self.believed)
    @rule(pick=some)
    def lose_client(self, pick: int) -> None:
        """Nobody waits for a client any longer; it may yet come."""
        client = self.client(pick)
        self.lost[client] = self.believed.pop(client)
        self.give_back(self.lost[client])

    def give_back(self, tasks: list[str]) -> None:
        """As a server does: what was accepted meanwhile, or went back with its parent, is not given back again."""
        for task in tasks:
            if self.game.holders(task) > sum(task in others for others in self.believed.values()):
                self.game.release(task)
        self.read_journal()

    def read_journal(self) -> None:
        """What was held for a task that somebody gave back is nobody's any more, and its holder hears of it."""
        for client in list(self.believed):
            self.believed[client] = [t for t in self.believed[client] if self.accepted[t] or self.game.holders(t)]
            if not self.believed[client]:
                del self.believed[client]

    @precondition(lambda self: self.lost)
    @rule(pick=some)
    def come_late(self, pick: int) -> None:
        """A lost client brings what it can: tasks whose parents are done, in its own order."""
        tasks = self.lost.pop(sorted(self.lost)[pick % len(self.lost)])
        for task in tasks:
            if set(self.dag.parents(task)) <= set(self.game.executed):
                self.bring(task, late=True)

    @precondition(lambda self: self.game.failed)
    @rule(pick=some)
    def try_again(self, pick: int) -> None:
        failed = sorted(self.game.failed)
        self.game.release(failed[pick % len(failed)])

    @precondition(lambda self: self.game.eligible)
    @rule(pick=some)
    def outsider(self, pick: int) -> None:
        """Somebody who knows nothing of allocators does a task."""
        ready = sorted(self.game.eligible)
        task = ready[pick % len(ready)]
        self.game.execute(task)
        self.accepted[task] += 1

    # What always holds

    @invariant()
    def nothing_is_lost_and_nothing_accepted_twice(self) -> None:
        game = self.game
        assert set(game.executed) == set(self.accepted)
        assert set(self.accepted.values()) <= {1}
        believed = Counter(task for tasks in self.believed.values() for task in tasks if not self.accepted[task])
        assert {task: game.holders(task) for task in self.dag.tasks if game.holders(task)} == believed
        waiting = [task for task in self.dag.tasks if game.state(task) in {"waiting", "eligible"}]
        assert len(waiting) == game.left
        for task in waiting:
            free = set(self.dag.parents(task)) <= set(game.executed)
            assert game.state(task) == ("eligible" if free else "waiting")

    def teardown(self) -> None:
        """Whoever is left brings everything; then it is finished by the allocators alone."""
        if not hasattr(self, "game"):
            return
        for client in list(self.believed):
            self.give_back(self.believed.pop(client))
        for task in list(self.game.failed):
            self.game.release(task)
        for allocator in self.allocators.values():
            for grant in allocator.hand_out([Ask(next(self.numbers), 2)] * 2):
                for task in grant.tasks:
                    self.bring(task, late=False)
        for _ in range(N):
            for grant in self.allocators["balanced"].hand_out([Ask(next(self.numbers))]):
                self.bring(grant.tasks[0], late=False)
        assert self.game.finished


Live.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
TestLive = Live.TestCase
