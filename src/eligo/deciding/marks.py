"""Marked tasks: bounds on the area from the sets of a few tasks that a schedule passes through.

Let F be a few tasks, and M(t, Q) the most that t tasks render of which exactly those of Q are in F;
elimination computes it if the tasks of F are kept. A schedule passes through sets whose parts in F grow, by at most one task
a step. So no area is above the largest sum of M(t, Q_t) over such Q_t, which is computed step by step from the end; and if
Q is executed of F after t steps, no more can follow than the largest such sum from there on. By the maxima M(t) alone, every
step could have a set that is unrelated to the one before.

The marked tasks are those with and without which the best sets are about as good, at most steps: marking other tasks would
lower the bound little.
"""

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.deciding.bounds import NEVER
from eligo.deciding.effort import CLOSE, MARKED_AT_ONCE, MOST_MARKED
from eligo.deciding.elimination import Elimination, TooWideError, eliminate, perform, plan_joins
from eligo.deciding.positions import Marked, units_of
from eligo.deciding.work import Work

Table = NDArray[np.int64]

# units of work, for each marked task, and bytes for an entry of a table
ENTRY, ENTRY_BYTES = 4, 40


def maxima_by_marks(dag: Dag, plan: Elimination, work: Work) -> Table:
    """M(t, Q): a row for each set Q of the tasks that the elimination keeps, bit i for the i-th. Raises `TooWideError`.

    >>> dag = Dag.from_arcs([("a", "x"), ("b", "y"), ("b", "z")])
    >>> maxima_by_marks(dag, eliminate(dag, kept=[0]), Work()).clip(-1).tolist()
    [[0, 2, -1], [-1, 1, 3]]
    """
    planner, total = plan_joins(dag, plan, work)
    values, rows = perform(planner, total.rows, work), total.rows
    lengths = np.diff(rows.ptr)
    begin = rows.first + np.array([code.bit_count() for code in rows.codes.tolist()], np.int64) - rows.ptr[:-1]
    table = np.full((1 << len(total.scope), int((dag.outdegree > 0).sum()) + 1), NEVER)
    table[np.repeat(rows.codes, lengths), np.arange(len(values)) + np.repeat(begin, lengths)] = values
    return np.where(table < 0, NEVER, table)


def still_to_come(maxima: Table) -> Table:
    """For each set of marked tasks and each step, the largest sum of M(t, Q) over the steps that follow.

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


def rank_candidates(dag: Dag, work: Work) -> list[int]:
    """The nonsinks, one of each unit, sorted by the difference that executing them makes to the best sets, least first."""
    scores = dict[int, int]()
    for v in (unit[0] for unit in units_of(dag)):
        without, with_it = maxima_by_marks(dag, eliminate(dag, work, [v]), work)
        scores[v] = int(np.minimum(np.abs(with_it - without), CLOSE).sum())
    return sorted(scores, key=lambda v: (scores[v], v))


def closest(dag: Dag, area: int, work: Work) -> tuple[Marked, Elimination] | None:
    """The bounds from as many marked tasks as the work allows, or as bring the bound down to *area*; None if from none."""
    result = None
    try:
        tasks = rank_candidates(dag, work)[:MOST_MARKED]
        for many in range(MARKED_AT_ONCE, len(tasks) + MARKED_AT_ONCE, MARKED_AT_ONCE):
            result = marked_bounds(dag, tasks[:many], work)
            if result[0].to_come[0, 0] <= area:
                break
    except TooWideError:
        pass
    return result


def marked_bounds(dag: Dag, tasks: list[int], work: Work) -> tuple[Marked, Elimination]:
    """The bounds from these marked tasks, and the elimination that proves them. Raises `TooWideError`."""
    if ENTRY_BYTES * len(dag) << len(tasks) > work.memory:
        raise TooWideError(f"{len(tasks)} marked tasks have too many sets")
    marked_tasks = sorted(tasks)
    plan = eliminate(dag, work, marked_tasks)
    table = maxima_by_marks(dag, plan, work)
    work.spend(ENTRY * table.size * (1 + len(marked_tasks)))
    return Marked(marked_tasks, still_to_come(table)), plan
