"""Schedules, and the number of tasks eligible after each step.

E(t) is the number of tasks eligible after the first t tasks of a schedule are executed, sources included [1]_, section 2.2.
It needs no simulation: a task becomes eligible at the largest step among its parents, so E(t) counts the tasks that became
eligible at step t or before, less the t that are executed. An order also gives one of the dual, and a peak of results.

.. [1] Hall, Rosenberg, Venkataramani (2006), A comparison of dag-scheduling strategies for Internet-based computing.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.errors import ScheduleError
from eligo.kernels import graph
from eligo.rows import Ints, places
from eligo.workflow import Workflow, dag_of

Order = Sequence[str] | Ints
Counts = NDArray[np.int64]


def order_indices(dag: Dag, order: Order) -> Ints:
    """The order as task numbers. Raises an error unless it has every task once."""
    numbers = dag.indices(order)
    if len(numbers) < len(dag):
        missing = np.setdiff1d(np.arange(len(dag)), numbers)
        raise ScheduleError(dag.tasks[missing[0]])
    return numbers


def eligible_steps(dag: Dag, order: Order) -> Ints:
    """For every task, the number of executed tasks at which it becomes eligible: 0 for sources."""
    numbers = order_indices(dag, order)
    position = places(len(dag), numbers)
    step = np.empty(len(dag), np.int32)
    offender = graph.eligible_steps(dag.parent_ptr, dag.parent, position, step)
    if offender >= 0:
        raise _offence(dag, position)
    return step


def _offence(dag: Dag, position: Ints) -> ScheduleError:
    """The first task of the order that comes before one of its parents, with that parent."""
    tails = dag.tails
    wrong = np.flatnonzero(position[tails] > position[dag.child])
    arc = wrong[np.argmin(position[dag.child[wrong]])]
    return ScheduleError(dag.tasks[dag.child[arc]], dag.tasks[tails[arc]])


def eligible_counts(dag: Dag, order: Order) -> Counts:
    """E(0..n) as an array."""
    arrivals = np.bincount(eligible_steps(dag, order), minlength=len(dag) + 1)
    return np.cumsum(arrivals) - np.arange(len(dag) + 1)


def counts_without(dag: Dag, order: Ints, held: Ints) -> Counts:
    """E(0), E(1), ... along an order without the tasks *held*; with a task, *held* has everything that depends on it.

    >>> fork = Dag.from_arcs([("a", "x"), ("b", "y"), ("b", "z")])
    >>> counts_without(fork, fork.order, fork.indices(["a", "x"])).tolist()
    [1, 2, 1, 0]
    """
    without = np.zeros(len(dag), np.bool_)
    without[held] = True
    last, size = without[order], len(dag) - len(held)
    steps = eligible_steps(dag, np.concatenate([order[~last], order[last]]))[~without]
    return np.cumsum(np.bincount(steps, minlength=size + 1)) - np.arange(size + 1)


def profile(flow: Dag | Workflow, order: Order) -> tuple[int, ...]:
    """E(0), ..., E(n): the number of tasks eligible after each step of a schedule.

    Raises `ScheduleError` with the offending pair if *order* is not a schedule.

    >>> dag = Dag.from_arcs([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])
    >>> profile(dag, ["a", "b", "c", "d"])
    (1, 2, 1, 1, 0)
    >>> profile(dag, ["a", "d", "b", "c"])
    Traceback (most recent call last):
    eligo.errors.ScheduleError: not a schedule: 'd' comes before 'b', which it depends on
    """
    return tuple(eligible_counts(dag_of(flow), order).tolist())


def cumulative_profile(flow: Dag | Workflow, order: Order) -> tuple[int, ...]:
    """For t = 0..n, the number of nonsources rendered eligible so far: E(t) + t - number of sources.

    For a fixed t it is largest exactly when E(t) is, and it never falls; the theory is stated in it.

    >>> cumulative_profile(Dag.from_arcs([("a", "b"), ("a", "c")]), ["a", "b", "c"])
    (0, 2, 2, 2)
    """
    dag = dag_of(flow)
    counts = eligible_counts(dag, order)
    return tuple((counts + np.arange(len(counts)) - counts[0]).tolist())


def area(flow: Dag | Workflow, order: Order) -> int:
    """The sum of E(t) over t = 0..n.

    >>> area(Dag.from_arcs([("a", "b"), ("a", "c")]), ["a", "b", "c"])
    4
    """
    return int(eligible_counts(dag_of(flow), order).sum())


def normalised_area(flow: Dag | Workflow, order: Order) -> float:
    """The average number of eligible tasks, area / n; 0 for a dag without tasks."""
    return area(flow, order) / max(1, len(dag_of(flow)))


def check_schedule(flow: Dag | Workflow, order: Order) -> None:
    """Raise unless *order* has every task once, each after its parents."""
    eligible_steps(dag_of(flow), order)


def is_schedule(flow: Dag | Workflow, order: Order) -> bool:
    """Whether *order* has every task once, each after its parents; unknown or repeated names still raise.

    >>> dag = Dag.from_arcs([("a", "b")])
    >>> is_schedule(dag, ["a", "b"]), is_schedule(dag, ["b", "a"]), is_schedule(dag, ["a"])
    (True, False, False)
    """
    try:
        check_schedule(flow, order)
    except ScheduleError:
        return False
    return True


def dual_schedule(dag: Dag, order: Order) -> Ints:
    """A schedule of the dual: the packets of tasks that each step renders eligible, last packet first; then the sources.

    It is IC-optimal for the dual where *order* is IC-optimal for the dag [1]_, Theorem 3.

    .. [1] Sims, Cordasco, Rosenberg: On clustering tasks in IC-optimal dags, after Cordasco, Malewicz, Rosenberg (2007).

    >>> vee = Dag.from_arcs([("a", "b"), ("a", "c"), ("b", "d")])
    >>> vee.dual().named(dual_schedule(vee, ["a", "b", "c", "d"]))
    ('d', 'b', 'c', 'a')
    """
    return np.argsort(-eligible_steps(dag, order), kind="stable").astype(np.int32)


def peak_results(dag: Dag, order: Order) -> int:
    """The largest number of results that exist at once if one task runs at a time, in this order; in linear time.

    A result exists from when its task runs until the last of its children has run. The results of sinks stay, because they
    are the output of the workflow. An order that makes many tasks ready early has many results waiting to be used.

    >>> tree = Dag.from_arcs([("a", "ab"), ("b", "ab"), ("c", "cd"), ("d", "cd"), ("ab", "all"), ("cd", "all")])
    >>> peak_results(tree, ["a", "b", "ab", "c", "d", "cd", "all"])
    4
    >>> peak_results(tree, ["a", "b", "c", "d", "ab", "cd", "all"])
    5
    """
    n = len(dag)
    position = places(n, order_indices(dag, order))
    last_use = np.full(n, n)
    parents = np.flatnonzero(dag.outdegree)
    if len(parents):
        last_use[parents] = np.maximum.reduceat(position[dag.child], dag.child_ptr[parents])
    used_up = np.cumsum(np.bincount(last_use, minlength=n + 1))  # by step: the results whose last child has run
    produced = np.arange(1, n + 1)
    return int((produced - np.concatenate([[0], used_up[: n - 1]])[:n]).max(initial=0))
