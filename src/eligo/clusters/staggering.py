"""Whole blocks of a ▷-chain as a fat task (Lemma 2), and whether a fat task leaves a chain behind."""

from collections.abc import Iterable
from heapq import heappop, heappush

from eligo.clusters.chains import Chain
from eligo.clusters.goals import Goal
from eligo.clusters.growth import Growth, by_rank
from eligo.clusters.state import State


def staggered(growth: Growth, chain: Chain, goal: Goal, root: int) -> Growth:
    """Take the block at place *root*, then blocks nearby that cost least for their size, while whole ones fit; then fill up.

    It is filled with sinks whose parents are inside, unless productivity is the goal, and with what is first in the chain;
    the state must be ranked by the chain.
    """
    heap = [(0.0, root)]
    while heap and not growth.reached:
        block = _left(growth, chain, heappop(heap)[1])
        if not _fits(growth, block):
            continue
        for v in block:
            growth.add(v)
        for near in _nearby(growth, chain, block):
            heappush(heap, (_cost(growth, goal, _left(growth, chain, near)), near))
    if goal.name != "productive":
        for v in sorted(growth.ready(), key=growth.state.rank.__getitem__):
            if not growth.state.out(v) and growth.fits(v) and not growth.reached:
                growth.add(v)
    return by_rank(growth)


def _left(growth: Growth, chain: Chain, place: int) -> list[int]:
    """What is left of a block."""
    return [v for v in chain.members(place) if not growth.state.gone(v)]


def _nearby(growth: Growth, chain: Chain, block: list[int]) -> dict[int, None]:
    """The blocks that can be taken next: below the one just taken, or above what is below."""
    near: dict[int, None] = {}
    state = growth.state
    for place in dict.fromkeys(chain.places[w] for v in block for w in state.children_of(v) if w in chain.places):
        if not _may_fit(growth, chain, place):
            continue
        members = _left(growth, chain, place)
        if all(map(growth.is_ready, members)):
            near[place] = None
            continue
        for u in (u for v in members if growth.missing(v) for u in growth.openers(v)):
            if all(map(growth.is_ready, _left(growth, chain, chain.places[u]))):
                near[chain.places[u]] = None
    return near


def _may_fit(growth: Growth, chain: Chain, place: int) -> bool:
    """Whether a block is not plainly too large."""
    whole = chain.begin[place + 1] - chain.begin[place]
    return growth.budget.weights is not None or whole <= growth.budget.high


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
    begun = []
    for place in {chain.places[v] for v in taken if v in chain.places}:
        gone = [state.gone(v) or v in taken for v in chain.members(place)]
        if not all(gone):
            if gone != sorted(gone, reverse=True):
                return False
            begun.append(place)
    if len(begun) > 1:
        return False
    before = chain.order[front : chain.begin[begun[0]]].tolist() if begun else ()
    return all(state.gone(v) or v in taken for v in before)


def gone_in_front(chain: Chain, state: State, front: int) -> int:
    """How many of the first tasks of a chain's order are gone, where *front* are known to be."""
    while front < len(chain.order) and state.gone(int(chain.order[front])):
        front += 1
    return front
