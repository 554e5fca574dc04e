"""The corners of the hull of a dag that is being executed: those that completions did not touch are corners of what is left.

Let r(S) count what the closed set S renders, X be executed, and S_0, S_1, .. be the corners, from the first module on. What
is left has the sets that contain X, less X, and they render r(S) - r(X) of it. For every share between those of the modules
before and behind it, S_i alone maximises r(S) - share |S| over all sets; where it contains X, so it does over these. So the
modules behind all that X touches are modules of what is left, and only what is left of those before is looked at again.

The dual is executed from its end. What is left of it renders no more than before, and as much where nothing that is gone
was rendered; so there the modules before all that X touches stay. A module that stays keeps what was found of it. See
theory.md, "What is left".
"""

from dataclasses import replace
from itertools import compress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.deciding.bounds import Begun, Shares, best_shares
from eligo.deciding.effort import Effort
from eligo.rows import Ints


class KnownShares(NamedTuple):
    """The shares of a dag as it was before, with the names of its tasks and its arcs."""

    names: tuple[str, ...]
    tails: Ints
    heads: Ints
    shares: Shares


def shares_of(dag: Dag, effort: Effort, dual: bool = False) -> Shares:
    """The best shares of a dag, or of the *dual* of one, by what is known of the one that it is left of."""
    work = effort.cutting.part(effort.cutting.left / 2) if dual else effort.cutting
    turned = dag.dual() if dual else dag
    if effort.solved is None:
        return best_shares(turned, work)
    key = _key(dag, dual)
    before = effort.solved.pop(key, None)
    shares = best_shares(turned, work, None if before is None else begun_from(before, turned, dual))
    if not work.over():
        effort.solved[key] = KnownShares(turned.tasks, turned.tails, turned.child, shares)
    return shares


def _key(dag: Dag, dual: bool) -> tuple[object, ...]:
    """What a dag is found by as long as something is left of it; a sum and its parts are told apart."""
    deepest = np.flatnonzero(dag.level == dag.depth - 1)
    several = bool(np.ptp(dag.component_labels()[dag.outdegree > 0]))
    return "corners", dual, several, min(dag.named(deepest))


def begun_from(before: KnownShares, dag: Dag, dual: bool) -> Begun | None:
    """The modules that stay, and what of the others is left to be split; None where the dag is not what is left of it.

    >>> star = Dag.from_arcs([("a", "x"), ("b", "x"), ("b", "y"), ("b", "z"), ("c", "w")])
    >>> known = KnownShares(star.tasks, star.tails, star.child, best_shares(star))
    >>> left = star.induced(star.indices(["a", "c", "w", "x"]))
    >>> begun = begun_from(known, left, False)
    >>> [left.named(tasks) for tasks, _ in begun.parts], [left.named(module.tasks) for module in begun.last]
    ([()], [('a', 'c')])
    """
    place = _places(before.names, dag)
    tails, heads = place[before.tails], place[before.heads]
    inside = np.flatnonzero((tails >= 0) & (heads >= 0))
    gone = heads if not dual else tails
    if (gone[(tails >= 0) != (heads >= 0)] < 0).any() or len(place) - int((place < 0).sum()) < len(dag):
        return None
    keys = tails[inside].astype(np.int64) * len(dag) + heads[inside]
    sequence = np.argsort(keys)
    if not np.array_equal(keys[sequence], dag.tails.astype(np.int64) * len(dag) + dag.child):
        return None
    return _begun(before.shares, place, dag, before.shares.flow[inside[sequence]], dual)


def _places(names: tuple[str, ...], dag: Dag) -> Ints:
    """The number that each name has in a dag, -1 where it has none; soon where those that are left come in the same order."""
    tasks = set(dag.tasks)
    left = np.fromiter(map(tasks.__contains__, names), np.bool_, len(names))
    if tuple(compress(names, left.tolist())) == dag.tasks:
        return np.where(left, np.cumsum(left, dtype=np.int32) - 1, -1).astype(np.int32)
    return np.array([dag.index.get(name, -1) for name in names], np.int32)


def _begun(shares: Shares, place: Ints, dag: Dag, flow: NDArray[np.int64], dual: bool) -> Begun:
    executing, rendering = np.append(dag.outdegree > 0, False), np.append(dag.indegree > 0, False)
    moved = [replace(m, tasks=place[m.tasks], renders=place[m.renders]) for m in shares.modules]
    touched = [not (executing[m.tasks].all() and rendering[m.renders].all()) for m in moved]
    if not any(touched):
        return Begun([], moved, [], flow)
    first, end = (touched.index(True), len(moved)) if dual else (0, len(moved) - touched[::-1].index(True))
    tasks = np.sort(np.concatenate([m.tasks for m in moved[first:end]]))
    renders = np.sort(np.concatenate([m.renders for m in moved[first:end]]))
    tasks, renders = tasks[executing[tasks]], renders[rendering[renders]]
    again = np.zeros(len(dag), np.bool_)
    again[tasks] = True
    flow[again[dag.tails]] = 0
    return Begun(moved[:first], moved[end:], [(tasks, renders)], flow)
