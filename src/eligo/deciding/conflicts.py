"""Why no schedule is best at every step: two steps, and the tasks that would have to be executed by each.

In a small part all sets are compared: no best set of the one step lies inside a best set of the other. In a larger part the
positions that stay best are followed, rise by rise, until none has a further move; a best set of the step where they stop is
then searched separately, by play that keeps the positions that have rendered most.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from eligo.dag import Dag
from eligo.deciding.bounds import Module
from eligo.deciding.effort import BEST_SET_WORK, CONFLICT_BEAMS, CONFLICT_WORK, EFFORTS, TABLE_BYTES, Stuck
from eligo.deciding.modules import maxima_within, module_dag
from eligo.deciding.moves import frontier, widening
from eligo.deciding.positions import Play
from eligo.deciding.symmetry import swaps
from eligo.deciding.work import Work
from eligo.rows import Ints
from eligo.theory.profiles import Profile
from eligo.theory.skeleton import segment_dag
from eligo.theory.subsets import MOST_ITEMS_FOR_AREA, Subsets


@dataclass(frozen=True, eq=False)
class Conflict:
    """Two steps at which no schedule is best together, and for each a best set of tasks of `part`.

    The steps count from the beginning; `before` of them lie before the part. At the `corners`, if any, a best schedule has no
    choice; only schedules that are best there are excluded. If not `alone`, the conflict also takes the other steps up to the
    first. The second set is empty if it exists but was not found.
    """

    part: Dag
    before: int
    steps: tuple[int, int]
    sets: tuple[Ints, Ints]
    alone: bool
    corners: tuple[int, ...] = ()


def conflict_of(
    bare: Dag, proof: Mapping[str, Any], order: Sequence[str], stuck: Mapping[tuple[str, ...], Stuck]
) -> Conflict | None:
    """The conflict behind a proof that no IC-optimal schedule exists, in the first part that has one.

    *order* is that of the plan, and *stuck* says where its search got stuck, if known. None if no conflict is found, as for
    every optimal plan.
    """
    place = bare.indices(proof.get("order", order))
    nonsinks = place[bare.outdegree[place] > 0]
    chained = proof.get("rule") == "chain"
    for part in proof.get("segments", ()) if chained else (proof,):
        first, last = part.get("first", 0), part.get("last", len(nonsinks))
        segment = segment_dag(bare, np.sort(nonsinks[first:last])) if chained else bare
        conflict = _conflict_in(segment, part, first, stuck)
        if conflict is not None:
            return conflict
    return None


def _conflict_in(
    segment: Dag, part: Mapping[str, Any], before: int, stuck: Mapping[tuple[str, ...], Stuck]
) -> Conflict | None:
    work = Work(CONFLICT_WORK, memory=TABLE_BYTES)
    for begin, entry in _doubtful_modules(part):
        tasks, renders = (segment.indices(entry[key]) for key in ("tasks", "renders"))
        inner = module_dag(segment, Module(tasks, renders, entry["p"], entry["q"]))
        conflict = find_conflict(inner, work, before + begin, stuck.get(inner.tasks))
        if conflict is not None:
            ends = {begin, begin + len(tasks)} - {0, int((segment.outdegree > 0).sum())}
            return replace(conflict, corners=tuple(sorted(before + end for end in ends)))
    return (
        None if part["rule"] in ("units", "bound") else find_conflict(segment, work, before, stuck.get(segment.tasks))
    )


def _doubtful_modules(part: Mapping[str, Any]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The modules of a proof that may have no optimal order, each with the number of tasks before it."""
    if part["rule"] != "modules":
        return
    begin = 0
    for entry, solved in zip(part["shares"]["modules"], part["modules"], strict=True):
        if solved["rule"] == "exact" or solved.get("refuted"):
            yield begin, entry
        begin += len(entry["tasks"])


def find_conflict(dag: Dag, work: Work, before: int = 0, stuck: Stuck | None = None) -> Conflict | None:
    """Two steps of a dag without shortcuts at which no schedule is best together; None if the work does not find them.

    >>> g3 = Dag.from_arrays(7, [0, 0, 0, 1, 2, 2, 3, 3], [1, 2, 3, 4, 5, 6, 5, 6])
    >>> found = find_conflict(g3, Work())
    >>> found.steps, [chosen.tolist() for chosen in found.sets]
    ((2, 3), [[0, 1], [0, 2, 3]])
    """
    subsets = Subsets.of(dag, MOST_ITEMS_FOR_AREA)
    if subsets is None:
        stuck_at = stuck or _search(dag, work)
        return None if stuck_at is None else _where_stuck(dag, stuck_at, work, before)
    steps = subsets.conflict()
    if not steps:
        return None
    *_, first, last = steps
    one, two = (np.array(tasks, np.int32) for tasks in (subsets.best_set(*steps[:-1]), subsets.best_set(last)))
    return Conflict(dag, before, (before + first, before + last), (one, two), len(steps) == 2)


def _search(dag: Dag, work: Work) -> Stuck | None:
    """The position in which the search for an order gets stuck, if it does."""
    maxima, _ = maxima_within(dag, replace(EFFORTS["normal"], work=work))
    if maxima is None:
        return None
    alike = swaps(dag, work)
    for width in widening(work):
        search = frontier(dag, maxima, width, work, alike)
        if search.refuted and search.stuck is not None:
            return Stuck(maxima, search.stuck)
        if search.order is not None:
            return None
    return None


def _where_stuck(dag: Dag, stuck: Stuck, work: Work, before: int) -> Conflict:
    """The conflict between the step that was reached and the first one after it that needs more."""
    maxima, reached = stuck.maxima, len(stuck.executed)
    rise = next(t for t in range(reached, len(maxima)) if maxima[t] > maxima[reached])
    wanted = best_set(dag, maxima, rise, work.part(BEST_SET_WORK))
    return Conflict(dag, before, (before + reached, before + rise), (stuck.executed, wanted), False)


def best_set(dag: Dag, maxima: Profile, step: int, work: Work) -> Ints:
    """At most *step* tasks that render maxima[step]; empty if play that keeps the positions that render most finds none."""
    for width in CONFLICT_BEAMS:
        play = Play(dag)
        for t in range(step + 1):
            layer = sorted(play.after(t).tolist(), key=lambda at: -play.rendered(at))[:width]
            if layer and play.rendered(layer[0]) == maxima[step]:
                return play.executed(layer[0])
            if not play.expand(np.array(layer, np.int32), work):
                break
    return np.zeros(0, np.int32)
