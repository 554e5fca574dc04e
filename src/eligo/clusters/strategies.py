"""How a fat task is chosen: three strategies, and which of them when.

*Direct* takes the beginning of the plan [1]_, equation (2) and Corollary 1; *staggered* takes whole blocks of a ▷-chain and
may skip some (Lemma 2); *searched* takes whatever serves the goal. The first two leave a dag that has an IC-optimal schedule
by proof, where there was one. What a searched one leaves is decided before it is chosen; a *donor*, a dag of which any fat
task may be taken (Theorem 6, repaired, since the printed one is false), is a certificate that it need not be. Chains of
M-dags (Theorem 7) are never certified: not every one is a donor, even with two parents each.

Where what is left is so small that there are few fat tasks, all of them are looked at.

.. [1] Sims, Cordasco, Rosenberg: On clustering tasks in IC-optimal dags.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from heapq import heappop, heappush

import numpy as np

from eligo.clusters.chains import Chain, chain_of, is_reticulated, told
from eligo.clusters.growth import Budget, Choice, Files, Goal, Growth, by_last, by_rank, by_score, exchange
from eligo.clusters.state import Ranking, State, verdict_of
from eligo.deciding.work import OPTIMAL
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
    """The tasks that hang on nothing that is out, ascending."""
    everything = Growth(state, Budget(float("inf"), float("inf")))
    waiting = [v for v in state.remaining().tolist() if state.is_ready(v)]
    for v in waiting:
        waiting += [w for w in everything.add(v) if not state.gone(w)]
    return np.array(sorted(everything.inside), np.int32)


# Whole blocks


def staggered(growth: Growth, chain: Chain, goal: Goal, root: int) -> Growth:
    """Take the block at place *root*, then blocks nearby that cost least for their size, while whole ones fit; then fill up.

    It is filled with sinks whose parents are inside, unless productivity is the goal, and with what is first in the chain;
    the state must be ranked by the chain.
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
    """What is left of a block."""
    return [v for v in chain.members(place) if not growth.state.gone(v)]


def _nearby(growth: Growth, chain: Chain, block: list[int]) -> dict[int, None]:
    """The blocks that can be taken next: below the one just taken, or above what is below."""
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
    """Whether a block is not plainly too large."""
    size = chain.begin[place + 1] - chain.begin[place]
    return growth.budget.weights is not None or size <= growth.budget.high


def _fits(growth: Growth, block: list[int]) -> bool:
    weight = growth.weight + sum(map(growth.budget.of, block))
    return growth.budget.has_room(weight) and all(map(growth.is_ready, block))


def _cost(growth: Growth, goal: Goal, block: list[int]) -> float:
    """What taking a block costs, for each of its tasks."""
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
    """Whether every block is then whole, or gone, or the first one left and begun in its own order.

    Taken for granted is that it is so before, that the chain is of the same dag, and that the first *front* tasks of its
    order are gone.
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
    """How many of the first tasks of a chain's order are gone, where *front* are known to be."""
    while front < len(chain.order) and state.gone(int(chain.order[front])):
        front += 1
    return front


# The choice


# How far to look, measured with benchmarks/clusters.py: a fat task of 100 tasks out of 100,000 takes a tenth of a second.
# Limits bound the work, never what is claimed.
SEEDS = 24  # places from which the search grows
EXCHANGES = 5_000  # pairs that are compared to improve one set
MOST_ENUMERATED = 12  # tasks left: up to here every set is looked at
CHECKS = ((2_000, 12), (20_000, 4))  # tasks left, and so many residuals of such dags are decided at most
FEW_CHECKS = 1
MOST_CERTIFIED = 20_000  # tasks: beyond, the repaired condition is not looked at for words alone

STRATEGIES = ("auto", "direct", "staggered", "searched")


def check_strategy(name: str) -> None:
    """Refuse a strategy that there is not."""
    check_choice("strategy", name, STRATEGIES)


@dataclass(eq=False)
class Chooser:
    """Chooses fat tasks from a state whose remaining tasks are ranked.

    Where *trusting*, no residual is decided: sets that nothing proves harmless are chosen only from dags that meet the
    repaired condition. Whoever trusts decides the residual from time to time.
    """

    state: State
    ranking: Ranking
    goal: Goal
    files: Files | None = None
    effort: str = "normal"
    seeds: int = SEEDS
    exchanges: int = EXCHANGES
    trusting: bool = False
    #: whether any fat task may be taken, as far as is known; None where that was not looked at
    harmless: bool | None = None
    #: how many tasks went since the ranking was made, and whether what went is its beginning, or keeps its chain
    dealt: int = 0
    prefix: bool = True
    linked: bool = True

    def __post_init__(self) -> None:
        self.state.rank_by(self.ranking.sequence)
        #: the chain, where it was looked for and found, and how many of the first tasks of its order are gone
        self._found = self.ranking.chain
        self._front = 0

    @cached_property
    def chain(self) -> Chain | None:
        """What was left when the ranking was made, as a ▷-chain of blocks; looked for when asked."""
        if self._found is None:
            rest = np.sort(self.ranking.sequence)
            self._found = chain_of(self.state.dag.induced(rest), rest)
        return self._found

    @cached_property
    def certified(self) -> bool:
        """Whether any fat task may be taken, as far as is known: then any may be taken from what it leaves, too."""
        if self.harmless is not None:
            return self.harmless
        chain = self.chain
        return chain is not None and chain.family is not None and is_reticulated(chain)

    @property
    def _looks_at_condition(self) -> bool:
        return self.trusting or self.state.left <= MOST_CERTIFIED

    def follow_chain(self) -> None:
        """Let the ranking be the schedule that the chain gives."""
        if self.chain is not None and self.ranking.chain is None:
            self.ranking = Ranking.of_chain(self.chain)
            self.state.rank_by(self.chain.order)

    def went(self, tasks: Collection[int]) -> None:
        """Tasks went out together: remember what that leaves of the ranking and the chain."""
        self.prefix = self.prefix and self._is_prefix(tasks)
        self.linked = self.linked and self.chain_kept(tasks)
        self.dealt += len(tasks)
        if self.linked and self._found is not None:
            self._front = gone_in_front(self._found, self.state, self._front)

    def came_back(self) -> None:
        """Record that a task was returned undone: those taken are no prefix of the ranking any more."""
        self.prefix = self.linked = False

    def chain_kept(self, tasks: Collection[int]) -> bool:
        """Whether a set leaves a chain, where there was one; only looked at where the chain is known already."""
        return self._found is not None and self.linked and keeps_chain(self._found, self.state, tasks, self._front)

    def _is_prefix(self, tasks: Collection[int]) -> bool:
        last = max((self.state.rank[v] for v in tasks), default=self.dealt - 1)
        return self.prefix and last + 1 == self.dealt + len(tasks)

    def choose(self, strategy: str, budget: Budget) -> Choice:
        """The fat task of this size that serves the goal best, as far as the strategy goes."""
        check_strategy(strategy)
        match strategy:
            case "direct":
                return self.direct(budget)
            case "staggered":
                return min(self.staggered(budget), key=self._cost)
            case "searched":
                return self._unspoilt([*self.searched(budget)], self.direct(budget))
            case _:
                return self.auto(budget)

    def direct(self, budget: Budget) -> Choice:
        """The first tasks of the plan (Theorem 4): nothing renders more, where the plan is best at that step."""
        growth = by_rank(self._empty(budget))
        after = self.dealt + len(growth.inside)
        prefix = self._is_prefix(growth.inside)
        alone = not (self.state.execution.allocated or self.state.execution.held or self.state.execution.failed)
        best = "; no other set of this size renders more" if alone and prefix and self.ranking.tight[after] else ""
        leaves_optimal = (prefix and after >= self.ranking.best_from) or self.chain_kept(growth.inside)
        return Choice(growth, "direct", f"the first tasks of the plan{best}", OPTIMAL if leaves_optimal else None)

    def staggered(self, budget: Budget) -> Iterator[Choice]:
        """Whole blocks, begun at several places, and what is first in the chain to fill up."""
        chain = self.chain
        if chain is None:
            raise InputError("the staggered strategy needs a ▷-linear composition of blocks, and this dag is not one")
        self.follow_chain()
        roots = dict.fromkeys(chain.places[v] for v in self.state.first(self.seeds) if v in chain.places)
        for root in roots:
            growth = staggered(self._empty(budget), chain, self.goal, root)
            why = (
                f"complete blocks, which leave a chain of blocks (Lemma 2): {told(blocks_of(chain, growth)) or 'none'}"
            )
            yield Choice(growth, "staggered", why, OPTIMAL if self.chain_kept(growth.inside) else None)
        if not roots:
            yield replace(self.direct(budget), strategy="staggered")

    def modest(self, budget: Budget) -> Choice:
        """What comes last in the plan, for a client that had better not hold what others wait for."""
        return Choice(
            by_last(self._empty(budget)), "modest", "the last tasks of the plan that can be taken, for a slow client"
        )

    def searched(self, budget: Budget) -> Iterator[Choice]:
        """Sets that grew from several places and were improved, or every set where there are few."""
        few = self.state.left <= MOST_ENUMERATED
        seen, certificate = set(), self._certificate()
        for growth in every_set(self.state, budget, self.files) if few else self._grown(budget):
            members = frozenset(growth.inside)
            if members not in seen and growth.reached:
                seen.add(members)
                yield Choice(growth, "searched", "found by search (growth and exchange)", certificate=certificate)

    def _certificate(self) -> str | None:
        """Why any set may be taken, as far as is known."""
        if self.ranking.verdict != OPTIMAL or not self._looks_at_condition or not self.certified:
            return None
        letter = self.chain.family if self.chain is not None else None
        family = {"W": "W-dags", "C": "cycles", "N": "N-dags", None: "such blocks"}[letter]
        return f"a donor: a chain of {family} that meets the repaired condition"

    def _grown(self, budget: Budget) -> Iterator[Growth]:
        ready = self.state.first(max(self.seeds, 16))
        yield exchange(by_rank(self._empty(budget)), self.goal.value, ready[:8], self.exchanges)
        for i in range(min(self.seeds, len(ready))):
            growth = by_score(self._empty(budget), [*ready[i:], *ready[:i]], self.goal.score)
            if not growth.reached:
                growth = by_rank(growth)
            yield exchange(growth, self.goal.value, ready[:8], self.exchanges)

    def auto(self, budget: Budget) -> Choice:
        """Direct where nothing is more productive and that is the goal; else the best that spoils nothing.

        Staggered goes before the search, because it needs no check; donors are searched at once. Where direct misses the
        seconds that were asked for, any set that does not goes before it.
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
        return self._unspoilt(choices, direct)

    def _suffices(self, direct: Growth) -> bool:
        """Whether nothing is better than the first tasks of the plan, or in a large dag worth looking for."""
        if not direct.reached:
            return direct.exhausted
        if self.goal.name != "productive":
            return False
        best = self._is_prefix(direct.inside) and bool(self.ranking.tight[self.dealt + len(direct.inside)])
        return best or self.trusting or self.state.left > MOST_CERTIFIED

    def _may_search(self, choices: list[Choice]) -> bool:
        """Whether to look beyond what is proved harmless: where all is, or nothing can be spoilt, or else nothing is won."""
        if not any(choice.growth.reached for choice in choices):
            return True
        if self.ranking.verdict != OPTIMAL or (self._looks_at_condition and self.certified):
            return True
        won = min(map(self._cost, choices)) < self._cost(choices[0])
        return not won and not self.trusting

    def _cost(self, choice: Choice) -> tuple[float, ...]:
        """How bad a choice is: the worst are those that are not large enough, and of them the smallest."""
        growth = choice.growth
        return (0.0, *self.goal.value(growth)) if growth.reached else (1.0, -growth.weight)

    def _unspoilt(self, choices: list[Choice], otherwise: Choice) -> Choice:
        """The best choice; where what is left has an IC-optimal schedule now, the best that keeps it so, else *otherwise*.

        Where *otherwise* is not large enough, the best choice that is goes before it all the same.
        """
        nearest = min([otherwise, *choices], key=self._cost)
        choices = sorted((c for c in choices if c.growth.reached), key=self._cost)
        if not choices:
            return nearest
        if self.ranking.verdict != OPTIMAL:
            return choices[0]
        checks = next((count for size, count in CHECKS if self.state.left <= size), FEW_CHECKS)
        for choice in choices:
            if choice.verdict == OPTIMAL or (self.trusting and self.certified):
                return choice
            if self.trusting or not checks:
                continue
            checks -= 1
            if self.verdict(choice.growth) == OPTIMAL:
                return replace(choice, verdict=OPTIMAL)
        if otherwise.growth.reached:
            return otherwise
        return replace(choices[0], why=f"{choices[0].why}; no set was found that is known to leave an optimal order")

    def verdict(self, growth: Growth) -> str:
        """Whether what a set leaves has an IC-optimal schedule."""
        rest = self.state.remaining()
        residual = rest[~np.isin(rest, list(growth.inside))]
        return verdict_of(self.state.dag.induced(residual), self.effort)

    def _empty(self, budget: Budget) -> Growth:
        return Growth(self.state, budget, self.files)


def blocks_of(chain: Chain, growth: Growth) -> list[str]:
    """The names of the blocks that a set has wholly."""
    touched = dict.fromkeys(sorted(chain.places[v] for v in growth.inside if v in chain.places))
    return [chain.kinds[b] for b in touched if all(v in growth.inside for v in chain.members(b))]
