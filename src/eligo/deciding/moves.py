"""Canonical moves: schedules move by move, guided by the maxima they must attain.

A *move* executes exactly the tasks that some waiting task still misses, all of them eligible. Up to a profile that is nowhere
worse every schedule is a sequence of moves: between two rises of the profile nothing becomes eligible, so the steps that
complete one task of the next rise can come first. When the profile must equal a given maximal one, the next move is forced in
size and gain: as many steps as there are to the next rise, and as many tasks rendered as it is high.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from eligo.dag import Dag
from eligo.deciding.limits import FIRST_WIDTH, MOST_CHECKED, WIDER
from eligo.deciding.positions import NONE_MARKED, Marked, Pairs, Play
from eligo.deciding.work import Work
from eligo.rows import Ints
from eligo.theory.profiles import Profile


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
    """An order that attains the target (`order`), or the proof that none does (`refuted`), or neither.

    `stuck` is what was executed where it is attained as far as anywhere that was seen.
    """

    order: Ints | None
    refuted: bool = False
    stuck: Ints | None = None


def frontier(dag: Dag, target: Profile, width: int, work: Work | None = None, swaps: Sequence[Pairs] = ()) -> Search:
    """All positions that attain the target, rise by rise, at most *width* of them: finds an order or, untruncated, refutes.

    >>> import numpy as np
    >>> g3 = Dag.from_arrays(7, [0, 0, 0, 1, 2, 2, 3, 3], [1, 2, 3, 4, 5, 6, 5, 6])
    >>> frontier(g3, np.array([0, 3, 4, 5, 6]), 10).refuted
    True
    """
    work = work or Work()
    play, layer, whole = Play(dag, swaps), np.zeros(1, np.int32), True
    for forced in forced_steps(target):
        known = len(play)
        whole &= play.expand(layer, work, width=width, forced=forced)
        if len(play) == known:
            return Search(None, whole and checkable(play), play.executed(int(layer[0])))
        layer = np.arange(known, len(play), dtype=np.int32)
    return Search(play.order(int(layer[0])))


@dataclass(frozen=True)
class AreaSearch:
    """The order of largest cumulative area that was found, and whether every other was excluded."""

    order: Ints | None
    area: int
    proved: bool


def largest_area(  # noqa: PLR0913, PLR0917
    dag: Dag,
    target: Profile,
    incumbent: int,
    width: int,
    work: Work | None = None,
    swaps: Sequence[Pairs] = (),
    marked: Marked = NONE_MARKED,
) -> AreaSearch:
    """The largest area, step by step over positions, of which the *width* best after each step are kept.

    A position that cannot beat *incumbent*, even if the profile were the target from there on, or all came that the marked
    tasks leave, is dropped; where nothing else was dropped, the result is proved. Returns no order where the incumbent was
    not beaten.

    >>> import numpy as np
    >>> g3 = Dag.from_arrays(7, [0, 0, 0, 1, 2, 2, 3, 3], [1, 2, 3, 4, 5, 6, 5, 6])
    >>> largest_area(g3, np.array([0, 3, 4, 5, 6]), 0, 10).area
    17
    """
    work = work or Work()
    play, whole = Play(dag, swaps, target, marked), True
    for t in range(len(target) - 1):
        layer = play.after(t)
        whole &= len(layer) <= width
        whole &= play.expand(layer[:width], work, beat=incumbent)
    found, whole = play.after(len(target) - 1), whole and checkable(play)
    return (
        AreaSearch(play.order(found[0]), play.area(found[0]), whole)
        if len(found)
        else AreaSearch(None, incumbent, whole)
    )


def checkable(play: Play) -> bool:
    """Whether the checker, which looks at all these positions again, will be through with them in reasonable time."""
    return len(play) * play.breadth <= MOST_CHECKED


def widening(work: Work) -> Iterator[int]:
    """Wider and wider, as long as what is left suffices for a search twice as wide as the last.

    >>> work = Work(1000)
    >>> [(width, work.spend(width))[0] for width in widening(work)]
    [30, 300, 600]
    """
    width, more = FIRST_WIDTH, WIDER
    while more > 1 and not work.over():
        spent = work.spent
        yield width
        more = int(min(WIDER, work.left // max(1, work.spent - spent)))
        width *= more
