"""Canonical moves: schedules move by move, guided by the maxima they must attain.

A *move* executes exactly the tasks that some waiting task still misses, all of them eligible. Up to a profile that is nowhere
worse every schedule is a sequence of moves: between two rises of the profile nothing becomes eligible, so the steps that
complete one task of the next rise can come first. When the profile must equal a given maximal one, the next move is forced in
size and gain: as many steps as there are to the next rise, and as many tasks rendered as it is high.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from eligo.dag import Dag
from eligo.theory.profiles import Profile

Waiting = dict[
    int, tuple[int, int]
]  # what is missed, as a bit mask -> how many miss just that, and which tasks those are


@dataclass(frozen=True, slots=True)
class Position:
    """A state of play: bit masks of executed and eligible tasks, what the others miss, and the moves that led here."""

    executed: int
    ready: int
    rendered: int
    waiting: Waiting
    #: the last move and the position before it
    last: int = 0
    before: "Position | None" = None

    @classmethod
    def start(cls, dag: Dag) -> "Position":
        """Nothing executed."""
        ptr, parent, working = dag.parent_ptr.tolist(), dag.parent.tolist(), (dag.outdegree > 0).tolist()
        ready, waiting = 0, dict[int, tuple[int, int]]()
        for v in range(len(dag)):
            needs = sum(1 << u for u in parent[ptr[v] : ptr[v + 1]])
            if needs:
                count, opens = waiting.get(needs, (0, 0))
                waiting[needs] = count + 1, opens | working[v] << v
            else:
                ready |= working[v] << v
        return cls(0, ready, 0, waiting)

    def after(self, move: int) -> "Position":
        """The position once all tasks of the move are executed."""
        rendered, ready = self.rendered, self.ready & ~move
        waiting: Waiting = {}
        for missed, (count, opens) in self.waiting.items():
            left = missed & ~move
            if not left:
                rendered += count
                ready |= opens
            elif left in waiting:
                more, others = waiting[left]
                waiting[left] = more + count, others | opens
            else:
                waiting[left] = count, opens
        return Position(self.executed | move, ready, rendered, waiting, move, self)

    def playable(self) -> Iterator[tuple[int, int]]:
        """The moves that can be made now, with how many tasks miss just that; the newest first."""
        blocked = ~self.ready
        for missed in reversed(self.waiting):
            if not missed & blocked:
                yield missed, self.waiting[missed][0]

    def order(self) -> list[int]:
        """All tasks executed so far, move by move."""
        moves = []
        at: Position | None = self
        while at is not None and at.last:
            moves.append(at.last)
            at = at.before
        return [v for move in reversed(moves) for v in _members(move)]


def _members(mask: int) -> Iterator[int]:
    while mask:
        yield (mask & -mask).bit_length() - 1
        mask &= mask - 1


def forced_steps(target: Profile) -> list[tuple[int, int]]:
    """For each rise of a profile, how many steps lead to it and how high it is.

    >>> import numpy as np
    >>> forced_steps(np.array([0, 0, 2, 3]))
    [(2, 2), (1, 1)]
    """
    values = target.tolist()
    rises = [t for t in range(1, len(values)) if values[t] > values[t - 1]]
    return [(b - a, values[b] - values[b - 1]) for a, b in zip([0, *rises], rises, strict=False)]


@dataclass(frozen=True)
class Search:
    """An order that attains the target (`order`), or the proof that none does (`refuted`), or neither."""

    order: list[int] | None
    refuted: bool = False
    #: after which step the last position that attained the target was lost
    stuck: int = 0


def frontier(dag: Dag, target: Profile, width: int, deadline: float) -> Search:
    """All positions that attain the target, rise by rise, at most *width* of them: finds an order or, untruncated, refutes.

    >>> import numpy as np
    >>> g3 = Dag.from_arrays(7, [0, 0, 0, 1, 2, 2, 3, 3], [1, 2, 3, 4, 5, 6, 5, 6])
    >>> frontier(g3, np.array([0, 3, 4, 5, 6]), 10, float("inf")).refuted
    True
    """
    layer = {0: Position.start(dag)}
    whole, t = True, 0
    for size, gain in forced_steps(target):
        following: dict[int, Position] = {}
        for position in layer.values():
            for move, count in position.playable():
                if count == gain and move.bit_count() == size and position.executed | move not in following:
                    if len(following) == width:
                        whole = False
                        break
                    following[position.executed | move] = position.after(move)
        if not following or time.monotonic() > deadline:
            return Search(None, whole and not following, t)
        layer = following
        t += size
    return Search(next(iter(layer.values())).order())


@dataclass(frozen=True)
class AreaSearch:
    """The order of largest cumulative area that was found, and whether every other was excluded."""

    order: list[int] | None
    area: int
    proved: bool


def largest_area(dag: Dag, target: Profile, incumbent: int, width: int, deadline: float) -> AreaSearch:
    """The largest area, step by step over positions, of which the *width* best after each step are kept.

    A position that cannot beat *incumbent*, even if the profile were the target from there on, is dropped; where nothing
    else was dropped, the result is proved. Returns no order where the incumbent was not beaten.

    >>> import numpy as np
    >>> g3 = Dag.from_arrays(7, [0, 0, 0, 1, 2, 2, 3, 3], [1, 2, 3, 4, 5, 6, 5, 6])
    >>> largest_area(g3, np.array([0, 3, 4, 5, 6]), 0, 10, float("inf")).area
    17
    """
    rest = (int(target.sum()) - target.cumsum()).tolist()  # what the target still adds after each step
    layers: list[dict[int, tuple[int, Position]]] = [{} for _ in target]
    layers[0] = {0: (0, Position.start(dag))}
    whole = True
    for t, layer in enumerate(layers[:-1]):
        best = sorted(layer.values(), key=lambda entry: (-entry[0], -entry[1].rendered))
        whole &= len(best) <= width
        layer.clear()
        for area, position in best[:width]:
            if time.monotonic() > deadline:
                return AreaSearch(None, incumbent, False)
            for move, gain in _minimal_moves(position):
                size = move.bit_count()
                reached = area + position.rendered * size + gain
                if reached + rest[t + size] > incumbent and _is_better(
                    layers[t + size], position.executed | move, reached
                ):
                    layers[t + size][position.executed | move] = reached, position.after(move)
    if not layers[-1]:
        return AreaSearch(None, incumbent, whole)
    area, position = next(iter(layers[-1].values()))
    return AreaSearch(position.order(), area, whole)


def _is_better(layer: dict[int, tuple[int, Position]], executed: int, area: int) -> bool:
    known = layer.get(executed)
    return known is None or known[0] < area


def _minimal_moves(position: Position) -> list[tuple[int, int]]:
    """The playable moves that have no smaller one inside, each with what it renders."""
    moves = sorted(position.playable(), key=lambda move: move[0].bit_count())
    minimal: list[tuple[int, int]] = []
    for move, count in moves:
        if not any(smaller & ~move == 0 for smaller, _ in minimal):
            minimal.append((move, count))
    return minimal
