"""How a fat task is chosen: three strategies, and which of them when.

*Direct* takes the beginning of the plan [1]_, equation (2) and Corollary 1; *staggered* takes whole blocks of a ▷-chain and
may skip some (Lemma 2); *searched* takes whatever serves the goal. The first two leave a dag that has an IC-optimal schedule
by proof, where there was one. What a searched one leaves is decided before it is chosen; a *donor*, a dag of which any fat
task may be taken (Theorem 6, repaired, since the printed one is false), is a certificate that it need not be. Chains of
M-dags (Theorem 7) are never certified: not every one is a donor, even with two parents each.

.. [1] Sims, Cordasco, Rosenberg: On clustering tasks in IC-optimal dags.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from eligo.clusters.chains import Chain, chain_of, is_reticulated, told
from eligo.clusters.enumeration import every_set
from eligo.clusters.goals import Goal
from eligo.clusters.growth import Budget, Choice, Growth, by_last, by_rank, by_score, exchange
from eligo.clusters.limits import CHECKS, EXCHANGES, FEW_CHECKS, MOST_CERTIFIED, MOST_ENUMERATED, SEEDS
from eligo.clusters.ranking import Ranking, verdict_of
from eligo.clusters.staggering import gone_in_front, keeps_chain, staggered
from eligo.clusters.state import State
from eligo.clusters.traffic import Files
from eligo.deciding.outcomes import OPTIMAL
from eligo.errors import InputError, check_choice

STRATEGIES = ("auto", "direct", "staggered", "searched")


def check_strategy(name: str) -> None:
    """Refuse a strategy that there is not."""
    check_choice("strategy", name, STRATEGIES)


@dataclass(eq=False)
class Chooser:
    """Chooses fat tasks from a state, of which a ranking has put in order what is left.

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
        """A task came back undone: what went is no longer the beginning of the ranking, nor whole blocks."""
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
        kept = (prefix and after >= self.ranking.best_from) or self.chain_kept(growth.inside)
        return Choice(growth, "direct", f"the first tasks of the plan{best}", OPTIMAL if kept else None)

    def staggered(self, budget: Budget) -> Iterator[Choice]:
        """Whole blocks, begun at several places, and what is first in the chain to fill up."""
        chain = self.chain
        if chain is None:
            raise InputError("the staggered strategy needs a ▷-linear composition of blocks, which this is not")
        self.follow_chain()
        roots = dict.fromkeys(chain.places[v] for v in self.state.first(self.seeds) if v in chain.places)
        for root in roots:
            growth = staggered(self._empty(budget), chain, self.goal, root)
            why = f"whole blocks, which leaves a chain of blocks (Lemma 2): {told(blocks_of(chain, growth)) or 'none'}"
            yield Choice(growth, "staggered", why, OPTIMAL if self.chain_kept(growth.inside) else None)
        if not roots:
            yield replace(self.direct(budget), strategy="staggered")

    def modest(self, budget: Budget) -> Choice:
        """What comes last in the plan, for a client that had better not hold what others wait for."""
        return Choice(
            by_last(self._empty(budget)), "modest", "the last tasks of the plan that can go, for a slow client"
        )

    def searched(self, budget: Budget) -> Iterator[Choice]:
        """Sets that grew from several places and were improved, or every set where there are few."""
        few = self.state.left <= MOST_ENUMERATED
        seen, certificate = set(), self._certificate()
        for growth in every_set(self.state, budget, self.files) if few else self._grown(budget):
            members = frozenset(growth.inside)
            if members not in seen and growth.reached:
                seen.add(members)
                yield Choice(growth, "searched", "found by growing and exchanging", certificate=certificate)

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
        return replace(choices[0], why=f"{choices[0].why}; none was found that is known to leave a best order")

    def verdict(self, growth: Growth) -> str:
        """Whether what a set leaves has an IC-optimal schedule."""
        rest = self.state.remaining()
        left = rest[~np.isin(rest, list(growth.inside))]
        return verdict_of(self.state.dag.induced(left), self.effort)

    def _empty(self, budget: Budget) -> Growth:
        return Growth(self.state, budget, self.files)


def blocks_of(chain: Chain, growth: Growth) -> list[str]:
    """The names of the blocks that a set has wholly."""
    begun = dict.fromkeys(sorted(chain.places[v] for v in growth.inside if v in chain.places))
    return [chain.kinds[b] for b in begun if all(v in growth.inside for v in chain.members(b))]
