"""Pieces of a module: closed sets in it that are as dense as the whole, one inside another, and what is between them.

Let f(S) be what a closed set S renders and p / q the share of the module, so that h(S) = q f(S) - p |S| is nowhere above 0. A
set is *tight* where h is 0. For a tight set A and any schedule, execute first what it has in A, then the rest, each in its
order. Rendering is supermodular: h(S & A) + h(S | A) >= h(S) + h(A) = h(S) for every S that the schedule passes through, and
as neither of the two on the left is above 0, each is at least h(S). So no step has less for it, and some schedule of largest
area passes through A; and through every set of a chain of tight ones. The largest area of a module is therefore that of its
pieces, one after the other. (That an order is best at every step need not go through tight sets: they are not unique.)

Where worth flows tells the tight sets: all worth of a tight set stays in it, and none comes from outside. So they are the
sets that nothing leads out of, where each nonsource leads to its parents, a task to its own being rendered, and whoever gets
worth to whom it comes from.
"""

import numpy as np

from eligo.dag import Dag
from eligo.deciding.bounds import Module, Shares, best_shares
from eligo.deciding.work import Work
from eligo.kernels import graph
from eligo.rows import Ints, distinct, rows

LOOK = 300  # units of work for each arc along which worth may flow


def pieces(dag: Dag, work: Work) -> list[Module]:
    """The pieces of a dag that is one module by itself, in an order in which they can be executed; none where it is not.

    >>> two = Dag.from_arcs([("a", "x"), ("b", "x"), ("b", "y"), ("c", "z"), ("d", "z"), ("c", "w"), ("d", "w")])
    >>> [two.named(piece.tasks) for piece in pieces(two, Work())]
    [('b',), ('a',), ('c', 'd')]
    """
    shares = best_shares(dag, work)
    if len(shares.modules) != 1:
        return []
    work.spend(LOOK * dag.arc_count)
    (whole,), label = shares.modules, _labels(dag, shares)
    executed, rendered = label[whole.tasks], label[len(dag) + whole.renders]
    return [
        Module(np.sort(whole.tasks[executed == piece]), np.sort(whole.renders[rendered == piece]), whole.p, whole.q)
        for piece in distinct(executed).tolist()
    ]


def _labels(dag: Dag, shares: Shares) -> Ints:
    """A number for each role, v to be executed and n + v to be rendered: one for all that lead to one another.

    What others lead to has the smaller number.
    """
    n, (module,) = len(dag), shares.modules
    inner = np.flatnonzero((dag.indegree > 0) & (dag.outdegree > 0)).astype(np.int32)
    handed = np.zeros(n, np.int64)
    np.add.at(handed, dag.child, shares.flow)
    passing, flowing = inner[handed[inner] > module.q], shares.flow > 0
    tails = np.concatenate([n + dag.child, dag.tails[flowing], inner, n + passing]).astype(np.int32)
    heads = np.concatenate([dag.tails, n + dag.child[flowing], n + inner, passing]).astype(np.int32)
    ptr, child, *_ = rows(2 * n, tails, heads)
    index, label, *scratch = np.zeros((5, 2 * n), np.int32)
    graph.strong_components(ptr, child, index, label, *scratch)
    return label
