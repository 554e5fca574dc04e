"""Marked tasks: which of a few are executed tells closely how much area can still come.

Let F be a few tasks, and M(t, Q) the most that t tasks render of which just those of Q are in F; elimination finds it where
the tasks of F are kept. A schedule passes through sets whose parts in F grow, by one task or none a step. So no area is
above the largest sum of M(t, Q_t) over such Q_t, which is found step by step from the end; and where Q is executed of F
after t steps, no more can come than the largest such sum from there on. By the maxima M(t) alone, every step could have a
set that has nothing to do with the one before.

The tasks to be marked are those with and without which the best sets are about as good, at most steps: about the others
there is little to be told.
"""

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.deciding.elimination import Elimination, TooWideError, eliminate, perform, planned
from eligo.deciding.limits import CLOSE, MARKED_AT_ONCE, MOST_MARKED
from eligo.deciding.positions import Marked, units_of
from eligo.deciding.probing import NEVER
from eligo.deciding.work import Work

Table = NDArray[np.int64]

# units of work and bytes for an entry of a table: the one for each marked task on the way from the end
ENTRY, ENTRY_BYTES = 4, 40


def maxima_by_marks(dag: Dag, plan: Elimination, work: Work) -> Table:
    """M(t, Q): a row for each set Q of the tasks that the elimination keeps, bit i for the i-th; raises `TooWideError`.

    >>> dag = Dag.from_arcs([("a", "x"), ("b", "y"), ("b", "z")])
    >>> maxima_by_marks(dag, eliminate(dag, kept=[0]), Work()).clip(-1).tolist()
    [[0, 2, -1], [-1, 1, 3]]
    """
    planner, total = planned(dag, plan, work)
    values, rows = perform(planner, total.rows, work), total.rows
    lengths = np.diff(rows.ptr)
    begin = rows.first + np.array([code.bit_count() for code in rows.codes.tolist()], np.int64) - rows.ptr[:-1]
    table = np.full((1 << len(total.scope), int((dag.outdegree > 0).sum()) + 1), NEVER)
    table[np.repeat(rows.codes, lengths), np.arange(len(values)) + np.repeat(begin, lengths)] = values
    return np.where(table < 0, NEVER, table)


def still_to_come(maxima: Table) -> Table:
    """For each set of marked tasks, after each step, the largest sum of M(t, Q) that is to come.

    >>> still_to_come(np.array([[0, 2, NEVER], [NEVER, 1, 3]])).clip(-1).tolist()
    [[5, 3, -1], [-1, 3, 0]]
    """
    to_come = np.zeros_like(maxima)
    for t in range(maxima.shape[1] - 2, -1, -1):
        behind = maxima[:, t + 1] + to_come[:, t + 1]
        best = behind.copy()
        for i in range(len(maxima).bit_length() - 1):
            without, with_it = best.reshape(-1, 2, 1 << i)[:, 0], behind.reshape(-1, 2, 1 << i)[:, 1]
            np.maximum(without, with_it, out=without)
        to_come[:, t] = np.maximum(best, NEVER)
    return np.where(maxima < 0, NEVER, to_come)


def ranked(dag: Dag, work: Work) -> list[int]:
    """The nonsinks, one of each unit, those first whose being executed makes the least difference to the best sets."""
    scores = dict[int, int]()
    for v in (unit[0] for unit in units_of(dag)):
        without, with_it = maxima_by_marks(dag, eliminate(dag, work, [v]), work)
        scores[v] = int(np.minimum(np.abs(with_it - without), CLOSE).sum())
    return sorted(scores, key=lambda v: (scores[v], v))


def closest(dag: Dag, area: int, work: Work) -> tuple[Marked, Elimination] | None:
    """More and more marked tasks, as long as the work suffices and more than this area may come; None where none are."""
    result = None
    try:
        tasks = ranked(dag, work)[:MOST_MARKED]
        for many in range(MARKED_AT_ONCE, len(tasks) + MARKED_AT_ONCE, MARKED_AT_ONCE):
            result = marked(dag, tasks[:many], work)
            if result[0].left[0, 0] <= area:
                break
    except TooWideError:
        pass
    return result


def marked(dag: Dag, tasks: list[int], work: Work) -> tuple[Marked, Elimination]:
    """The bounds from these marked tasks, and the elimination that proves them; raises `TooWideError`."""
    if ENTRY_BYTES * len(dag) << len(tasks) > work.memory:
        raise TooWideError(f"{len(tasks)} marked tasks have too many sets")
    marked_tasks = sorted(tasks)
    plan = eliminate(dag, work, marked_tasks)
    table = maxima_by_marks(dag, plan, work)
    work.spend(ENTRY * table.size * (1 + len(marked_tasks)))
    return Marked(marked_tasks, still_to_come(table)), plan
