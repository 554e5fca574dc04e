"""The choice of a fat task: three strategies, and the choice between them.

*Direct* takes the beginning of the plan [1]_, equation (2) and Corollary 1; *staggered* takes whole blocks of a ▷-chain and
may skip some (Lemma 2); *searched* takes any set that serves the goal. The first two are proved to leave a dag with an
IC-optimal schedule if there was one before. The dag that a searched set leaves is decided before the set is chosen, except in
a *donor*, a chain from which any fat task may be taken: Theorems 6 and 7, with a condition that is proved, since the printed
ones are false. In a large dag a searched set is only chosen if the blocks that it leaves are a chain (Theorem 5, repaired).

If so few tasks remain that there are few fat tasks, all of them are compared.

.. [1] Sims, Cordasco, Rosenberg: On clustering tasks in IC-optimal dags.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import heappop, heappush

import numpy as np

from eligo.clusters.chains import Chain, chain_of, chain_text, is_straight
from eligo.clusters.growth import Budget, Choice, Files, Goal, Growth, by_last, by_rank, by_score, exchange
from eligo.clusters.state import Ranking, State, verdict_of
from eligo.deciding.work import BOUNDED, OPTIMAL
from eligo.errors import InputError, check_choice
from eligo.theory.exact import down_sets

# Every set


def every_set(state: State, budget: Budget, files: Files | None = None) -> Iterator[Growth]:
    """Every self-contained set of the remaining tasks that fits the budget.

    >>> from eligo.execution import Execution
    >>> state = State(Execution({"a": [], "b": [], "c": ["a", "b"]}))
    >>> [list(growth.inside) for growth in every_set(state, Budget(2, 2))]
    [[0, 1]]
    """
    free = _free(state)
    rest = state.dag.induced(free)
    order = np.argsort(np.array(state.rank)[free]).tolist()
    for layer in down_sets(rest):
        for mask in layer:
            members = [int(free[i]) for i in order if mask >> i & 1]
            size = sum(map(budget.of, members))
            if all(map(budget.allows, members)) and budget.is_reached(size) and budget.has_room(size):
                growth = Growth(state, budget, files)
                for v in members:
                    growth.add(v)
                yield growth


def _free(state: State) -> "np.ndarray[tuple[int], np.dtype[np.int32]]":
    """The tasks that depend on no task that is out, ascending."""
    everything = Growth(state, Budget(float("inf"), float("inf")))
    waiting = [v for v in state.remaining().tolist() if state.is_ready(v)]
    for v in waiting:
        waiting += [w for w in everything.add(v) if not state.gone(w)]
    return np.array(sorted(everything.inside), np.int32)


# Whole blocks


def grow_staggered(growth: Growth, chain: Chain, goal: Goal, root: int) -> Growth:
    """Take the block at place *root*, then nearby blocks of least cost for their size, while whole ones fit; then fill up.

    The set is filled up with sinks whose parents are inside, unless productivity is the goal, and with the first tasks of the
    chain. The state must be ranked by the chain.
    """
    heap = [(0.0, root)]
    while heap and not growth.reached:
        block = _remaining(growth, chain, heappop(heap)[1])
        if not _fits(growth, block):
            continue
        for v in block:
            growth.add(v)
        for near in _nearby(growth, chain, block):
            heappush(heap, (_cost(growth, goal, _remaining(growth, chain, near)), near))
    if goal.name != "productive":
        for v in sorted(growth.ready(), key=growth.state.rank.__getitem__):
            if not growth.state.out(v) and growth.fits(v) and not growth.reached:
                growth.add(v)
    return by_rank(growth)


def _remaining(growth: Growth, chain: Chain, place: int) -> list[int]:
    """The remaining tasks of a block."""
    return [v for v in chain.members(place) if not growth.state.gone(v)]


def _nearby(growth: Growth, chain: Chain, block: list[int]) -> dict[int, None]:
    """The blocks that can be taken next: below the one just taken, or needed by a block below."""
    near: dict[int, None] = {}
    state = growth.state
    for place in dict.fromkeys(chain.places[w] for v in block for w in state.children_of(v) if w in chain.places):
        if not _may_fit(growth, chain, place):
            continue
        members = _remaining(growth, chain, place)
        if all(map(growth.is_ready, members)):
            near[place] = None
            continue
        for u in (u for v in members if growth.missing(v) for u in growth.openers(v)):
            if all(map(growth.is_ready, _remaining(growth, chain, chain.places[u]))):
                near[chain.places[u]] = None
    return near


def _may_fit(growth: Growth, chain: Chain, place: int) -> bool:
    """Whether a block is not obviously too large."""
    size = chain.begin[place + 1] - chain.begin[place]
    return growth.budget.weights is not None or size <= growth.budget.high


def _fits(growth: Growth, block: list[int]) -> bool:
    weight = growth.weight + sum(map(growth.budget.of, block))
    return growth.budget.has_room(weight) and all(map(growth.is_ready, block))


def _cost(growth: Growth, goal: Goal, block: list[int]) -> float:
    """The cost of a block per task, by the goal."""
    rendered = sum(growth.missing(w) == 1 for v in block for w in growth.state.children_of(v))
    cost = sum(map(growth.delta, block))
    match goal.name:
        case "productive":
            return -rendered / len(block)
        case "communication":
            return cost / len(block)
        case _:
            return (goal.weight * cost - (1 - goal.weight) * rendered) / len(block)


def keeps_chain(chain: Chain, state: State, inside: Iterable[int], front: int = 0) -> bool:
    """Whether, without these tasks, every block is complete, gone, or the first remaining one and started in its own order.

    This must hold before, the chain must be of the same dag, and the first *front* tasks of its order must be gone.
    """
    taken = set(inside)
    partial = []
    for place in {chain.places[v] for v in taken if v in chain.places}:
        done = [state.gone(v) or v in taken for v in chain.members(place)]
        if not all(done):
            if done != sorted(done, reverse=True):
                return False
            partial.append(place)
    if len(partial) > 1:
        return False
    before = chain.order[front : chain.begin[partial[0]]].tolist() if partial else ()
    return all(state.gone(v) or v in taken for v in before)


def gone_in_front(chain: Chain, state: State, front: int) -> int:
    """The number of first tasks of a chain's order that are gone; at least *front* are."""
    while front < len(chain.order) and state.gone(int(chain.order[front])):
        front += 1
    return front


# The choice


# Limits of the search, measured with benchmarks/clusters.py: a fat task of 100 tasks out of 100,000 takes a tenth of a
# second. They bound the work and never affect a claim.
SEEDS = 24  # places from which the search grows
EXCHANGES = 5_000  # pairs that are compared to improve one set
MOST_ENUMERATED = 12  # remaining tasks, up to which every set is compared
CHECKS = ((2_000, 12), (20_000, 4))  # up to this many remaining tasks, at most this many residuals are decided
FEW_CHECKS = 1
MOST_CHECKED = 500  # remaining tasks, up to which a set that is handed out is tried by the blocks that it leaves
MOST_CERTIFIED = 20_000  # tasks: in larger dags the repaired condition is not checked just to give a reason

STRATEGIES = ("auto", "direct", "staggered", "searched")


def check_strategy(name: str) -> None:
    """Raise an error for an unknown strategy."""
    check_choice("strategy", name, STRATEGIES)


@dataclass(eq=False)
class Chooser:
    """Chooses fat tasks from a state whose remaining tasks are ranked.

    If *trusting*, no residual is planned: a set is chosen only if it is proved harmless. The caller must then plan the
    residual from time to time.
    """

    state: State
    ranking: Ranking
    goal: Goal
    files: Files | None = None
    effort: str = "normal"
    seeds: int = SEEDS
    exchanges: int = EXCHANGES
    trusting: bool = False
    #: whether it is proved that any fat task may be taken; None if that was not checked
    harmless: bool | None = None
    #: the number of tasks handed out since the ranking was made; whether they are its prefix; whether its chain is kept
    dealt: int = 0
    prefix: bool = True
    linked: bool = True

    def __post_init__(self) -> None:
        self.state.rank_by(self.ranking.sequence)
        #: the chain, if it was searched and found, and the number of first tasks of its order that are gone
        self._known_chain = self.ranking.chain
        self._front = 0

    @cached_property
    def chain(self) -> Chain | None:
        """The ▷-chain of the tasks that remained when the ranking was made, searched on first use; None if there is none."""
        if self._known_chain is None:
            rest = np.sort(self.ranking.sequence)
            self._known_chain = chain_of(self.state.dag.induced(rest), rest)
        return self._known_chain

    @cached_property
    def certified(self) -> bool:
        """Whether it is proved that any fat task may be taken; then the same holds for the dag that remains."""
        if self.harmless is not None:
            return self.harmless
        return self.chain is not None and is_straight(self.chain)

    @property
    def _checks_condition(self) -> bool:
        return self.trusting or self.state.remaining_count <= MOST_CERTIFIED

    @property
    def _checks(self) -> int:
        """The number of residuals that may be decided for one choice."""
        remaining = self.state.remaining_count
        if self.trusting:
            return int(self.linked and remaining <= MOST_CHECKED)
        return next((count for size, count in CHECKS if remaining <= size), FEW_CHECKS)

    def follow_chain(self) -> None:
        """Rank by the schedule of the chain, if there is one."""
        if self.chain is not None and self.ranking.chain is None:
            self.ranking = Ranking.of_chain(self.chain)
            self.state.rank_by(self.chain.order)

    def went(self, tasks: Collection[int]) -> None:
        """Record that tasks were handed out together, and whether the ranking and the chain are kept."""
        self.prefix = self.prefix and self._is_prefix(tasks)
        self.linked = self.linked and self.chain_kept(tasks)
        self.dealt += len(tasks)
        if self.linked and self._known_chain is not None:
            self._front = gone_in_front(self._known_chain, self.state, self._front)

    def came_back(self) -> None:
        """Record that a task was returned unfinished: the tasks that are gone are no longer a prefix of the ranking."""
        self.prefix = self.linked = False

    def chain_kept(self, tasks: Collection[int]) -> bool:
        """Whether a set leaves a chain if there was one; only checked if the chain is already known."""
        return (
            self._known_chain is not None
            and self.linked
            and keeps_chain(self._known_chain, self.state, tasks, self._front)
        )

    def _is_prefix(self, tasks: Collection[int]) -> bool:
        last = max((self.state.rank[v] for v in tasks), default=self.dealt - 1)
        return self.prefix and last + 1 == self.dealt + len(tasks)

    def choose(self, strategy: str, budget: Budget) -> Choice:
        """The fat task of this size that serves the goal best, among those of the strategy."""
        check_strategy(strategy)
        match strategy:
            case "direct":
                return self.direct(budget)
            case "staggered":
                return min(self.staggered(budget), key=self._cost)
            case "searched":
                return self._best_kept([*self.searched(budget)], self.direct(budget))
            case _:
                return self.auto(budget)

    def direct(self, budget: Budget) -> Choice:
        """The first tasks of the plan (Theorem 4); if the plan is best at that step, no set of this size renders more."""
        growth = by_rank(self._empty(budget))
        after = self.dealt + len(growth.inside)
        prefix = self._is_prefix(growth.inside)
        alone = not (self.state.execution.allocated or self.state.execution.held or self.state.execution.failed)
        best = "; no other set of this size renders more" if alone and prefix and self.ranking.tight[after] else ""
        leaves_optimal = (prefix and after >= self.ranking.best_from) or self.chain_kept(growth.inside)
        return Choice(growth, "direct", f"the first tasks of the plan{best}", OPTIMAL if leaves_optimal else None)

    def staggered(self, budget: Budget) -> Iterator[Choice]:
        """Sets of whole blocks, starting at several places, filled up with the first tasks of the chain."""
        chain = self.chain
        if chain is None:
            raise InputError("the staggered strategy needs a ▷-linear composition of blocks, and this dag is not one")
        self.follow_chain()
        roots = dict.fromkeys(chain.places[v] for v in self.state.first(self.seeds) if v in chain.places)
        for root in roots:
            growth = grow_staggered(self._empty(budget), chain, self.goal, root)
            names = chain_text(blocks_of(chain, growth)) or "none"
            why = f"complete blocks, which leave a chain of blocks (Lemma 2): {names}"
            yield Choice(growth, "staggered", why, OPTIMAL if self.chain_kept(growth.inside) else None)
        if not roots:
            yield replace(self.direct(budget), strategy="staggered")

    def modest(self, budget: Budget) -> Choice:
        """The last tasks of the plan, for a client that should not delay others."""
        return Choice(
            by_last(self._empty(budget)), "modest", "the last tasks of the plan that can be taken, for a slow client"
        )

    def searched(self, budget: Budget) -> Iterator[Choice]:
        """Sets that were grown from several places and improved, or every set if there are few."""
        few = self.state.remaining_count <= MOST_ENUMERATED
        seen, certificate = set(), self._certificate()
        for growth in every_set(self.state, budget, self.files) if few else self._grow(budget):
            members = frozenset(growth.inside)
            if members not in seen and growth.reached:
                seen.add(members)
                proved = OPTIMAL if certificate else None
                yield Choice(growth, "searched", "found by search (growth and exchange)", proved, certificate)

    def _certificate(self) -> str | None:
        """The reason why any set may be taken, if that is proved; else None."""
        proved = self.ranking.verdict == OPTIMAL and self._checks_condition and self.certified
        return "a donor: whatever is taken leaves a ▷-chain of blocks" if proved else None

    def _grow(self, budget: Budget) -> Iterator[Growth]:
        ready = self.state.first(max(self.seeds, 16))
        yield exchange(by_rank(self._empty(budget)), self.goal.value, ready[:8], self.exchanges)
        for i in range(min(self.seeds, len(ready))):
            growth = by_score(self._empty(budget), [*ready[i:], *ready[:i]], self.goal.score)
            if not growth.reached:
                growth = by_rank(growth)
            yield exchange(growth, self.goal.value, ready[:8], self.exchanges)

    def auto(self, budget: Budget) -> Choice:
        """Direct if productivity is the goal and nothing is more productive; else the best choice that keeps the dag optimal.

        Staggered is tried before the search, because it needs no check; donors are searched at once. If direct misses the
        requested seconds, any set that does not is preferred.
        """
        direct = self.direct(budget)
        if self._suffices(direct.growth):
            return direct
        choices = [direct]
        if self.linked and self.ranking.verdict == OPTIMAL and self.chain is not None:
            choices += self.staggered(budget)
        if self._may_search(choices):
            choices += self.searched(budget)
        if self.goal.name == "communication" and direct.growth.reached:
            choices = [choice for choice in choices if choice.growth.cut <= direct.growth.cut]
        return self._best_kept(choices, direct)

    def _suffices(self, direct: Growth) -> bool:
        """Whether nothing is better than the first tasks of the plan, or in a large dag worth a search."""
        if not direct.reached:
            return direct.exhausted
        if self.goal.name != "productive":
            return False
        best = self._is_prefix(direct.inside) and bool(self.ranking.tight[self.dealt + len(direct.inside)])
        return best or self.trusting or self.state.remaining_count > MOST_CERTIFIED

    def _may_search(self, choices: list[Choice]) -> bool:
        """Whether to search beyond proved sets: if all are harmless, nothing can be lost, or nothing is gained yet."""
        if not any(choice.growth.reached for choice in choices):
            return True
        if self.ranking.verdict != OPTIMAL or (self._checks_condition and self.certified):
            return True
        won = min(map(self._cost, choices)) < self._cost(choices[0])
        return not won and bool(self._checks)

    def _cost(self, choice: Choice) -> tuple[float, ...]:
        """The cost of a choice; the worst are those that are not large enough, and of these the smallest."""
        growth = choice.growth
        return (0.0, *self.goal.value(growth)) if growth.reached else (1.0, -growth.weight)

    def _best_kept(self, choices: list[Choice], otherwise: Choice) -> Choice:
        """The best choice; if the remaining dag has an IC-optimal schedule, the best that keeps one, or *otherwise* if none.

        If *otherwise* is not large enough, the best choice that is large enough is preferred in any case.
        """
        nearest = min([otherwise, *choices], key=self._cost)
        choices = sorted((c for c in choices if c.growth.reached), key=self._cost)
        if not choices:
            return nearest
        if self.ranking.verdict != OPTIMAL:
            return choices[0]
        checks = self._checks
        for choice in choices:
            if choice.verdict == OPTIMAL:
                return choice
            if not checks:
                continue
            checks -= 1
            if self.verdict(choice.growth) == OPTIMAL:
                return replace(choice, verdict=OPTIMAL)
        if otherwise.growth.reached:
            return otherwise
        return replace(choices[0], why=f"{choices[0].why}; no set was found that is known to leave an optimal order")

    def verdict(self, growth: Growth) -> str:
        """Whether the dag that remains without a set has an IC-optimal schedule, as a verdict.

        If *trusting*, it is decided only whether the blocks that remain are a chain: Theorem 5 of [1]_, repaired.
        """
        rest = self.state.remaining()
        residual = self.state.dag.induced(rest[~np.isin(rest, list(growth.inside))])
        if not self.trusting:
            return verdict_of(residual, self.effort)
        return OPTIMAL if chain_of(residual) is not None else BOUNDED

    def _empty(self, budget: Budget) -> Growth:
        return Growth(self.state, budget, self.files)


def blocks_of(chain: Chain, growth: Growth) -> list[str]:
    """The names of the blocks that a set has completely."""
    touched = dict.fromkeys(sorted(chain.places[v] for v in growth.inside if v in chain.places))
    return [chain.kinds[b] for b in touched if all(v in growth.inside for v in chain.members(b))]
