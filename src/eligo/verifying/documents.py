"""The checker's input: the structure of a plan's document, and the dag that it is about without its shortcuts.

The structure gives the kind of every key; a key with a question mark is optional. A list has entries of one kind, or as many
kinds as entries; a tuple lists alternative kinds.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.errors import InputError, shorten


class Refuted(Exception):  # noqa: N818 - an answer, not an error
    """Why a proof does not hold."""


def require(condition: bool | np.bool_, reason: str, error: type[Exception] = Refuted) -> None:
    """Raise an error with this reason unless the condition holds."""
    if not condition:
        raise error(reason)


PLAN: dict[str, Any] = {
    "order": [str], "profile": [int], "verdict": str, "method": str, "upper_bound": [int], "area": int, "area_bound": int,
    "proof": {"rule": str, "order?": [str]}, "fingerprint": str, "tasks": int, "arcs": int, "shortcuts": int, "blocks": int,
    "seconds": float, "cut_short?": bool, "schema?": int, "average?": float, "average_first_come?": float, "gain?": float,
    "orders?": [{"name": str, "order": [str], "average": float, "share": float, "polls?": [float], "rounds?": [float],
                 "polls_without_seconds?": [float], "rounds_without_seconds?": [float], "makespan?": float, "peak?": int}],
    "used?": str, "workers?": (int, str), "makespan?": (float, NoneType), "bound?": (float, NoneType),
    "certificate?": (dict, NoneType), "seconds_from?": (str, NoneType), "prediction?": (dict, NoneType),
    "known?": dict, "space?": (dict, NoneType),
}  # fmt: skip
SHARES = {"modules": [{"tasks": [str], "renders": [str], "p": int, "q": int}], "flow": [[str, str, int]]}
PROBE = {"task": str, "executed": SHARES, "waiting": SHARES}
ELIMINATION: dict[str, Any] = {
    "order": [str], "executed_first?": [str], "alike": [{"tasks": [str], "swaps": [[[str, str]]]}],
}  # fmt: skip
PIECES: list[Any] = [{"rule": str, "order": [str]}]
RULES: dict[str, dict[str, Any]] = {
    "chain": {"segments?": [{"rule": str, "first": int, "last": int}]},
    "units": {"units": [int]}, "exact": {"conflict?": [int]},
    "sum": {"parts": [{"rule": str, "order": [str]}], "modules?": {"rule": str}},
    "bound": {"probes?": [PROBE], "area?": int, "pieces?": PIECES},
    "elimination": {
        "elimination": ELIMINATION, "refuted?": bool, "area?": int, "swaps?": [[[str, str]]], "pieces?": PIECES,
        "marked?": {"tasks": [str], "order": [str], "executed_first": [str]},
    },
    "modules": {
        "shares": SHARES, "blocks": bool, "modules": [{"rule": str, "order": [str]}], "elimination?": ELIMINATION,
        "probes?": [PROBE], "split?": bool, "better?": [str],
    },
}  # fmt: skip
NOUNS = {str: "a string", int: "an integer", float: "a number", bool: "a boolean", dict: "an object", NoneType: "null"}


def check_document(value: Any, kind: Any, what: str) -> None:
    """Raise an error unless *value* is of this kind: `PLAN`, or a part of it."""
    if isinstance(kind, dict):
        require(isinstance(value, Mapping), f"{what} must be an object", InputError)
        rule = value.get("rule")
        require(
            "rule" not in kind or rule in list(RULES), f"{what} has the unknown rule {shorten(repr(rule))}", InputError
        )
        kind = kind | RULES[rule] if "rule" in kind else kind
        kinds = {key.rstrip("?"): inner for key, inner in kind.items()}
        for key in kinds:
            require(key in value or key not in kind, f"{what} needs the key {key!r}", InputError)
        for key, one in value.items():
            require(key in kinds, f"{what} has the unknown key {shorten(repr(key))}", InputError)
            check_document(one, kinds[key], f"{key!r} in {what}")
    elif isinstance(kind, list):
        fits = isinstance(value, list | tuple) and len(kind) in {1, len(value)}
        require(fits, f"{what} must be a list{f' of {len(kind)}' if len(kind) > 1 else ''}", InputError)
        if len(kind) > 1 or not _at_once(value, kind[0], what):
            for one, inner in zip(value, kind * len(value), strict=False):
                check_document(one, inner, what)
    else:
        several = kind if isinstance(kind, tuple) else (kind,)
        nouns = " or ".join(NOUNS[one] for one in several)
        require(any(_is(value, one) for one in several), f"{what} must be {nouns}", InputError)


def _at_once(values: Sequence[Any], kind: Any, what: str) -> bool:
    """Whether all values, entries of one plain kind or rows of such entries, are right, checked by the set of their types."""
    types = set(map(type, values))
    if isinstance(kind, list) and types <= {list, tuple} and set(map(len, values)) <= {len(kind)} and len(kind) > 1:
        for i, inner in enumerate(kind):
            check_document([row[i] for row in values], [inner], what)
        return True
    return isinstance(kind, type) and types <= {kind}


def _is(value: Any, kind: type) -> bool:
    return isinstance(value, int | float if kind is float else kind) and (type(value) is not bool or kind is bool)


# Shortcuts


Mask = NDArray[np.bool_]
Numbers = NDArray[np.intp]

LEAST_ARCS, ARCS_FOR_A_SEARCH = 300, 500  # arcs that one search may visit; in a large dag, one in this many of its arcs
MOST_BITS = 10**9  # of one sweep: tasks times arcs in question


def shortcut_mask(dag: Dag) -> Mask:
    """For every arc u -> v, whether another path leads from u to v: by search from both ends, or by sweeps for many arcs."""
    tails, heads, mask = dag.tails, dag.child, np.zeros(dag.arc_count, np.bool_)
    jumps = (dag.level[heads] - dag.level[tails] > 1) & (dag.height[tails] - dag.height[heads] > 1)
    suspects, unsure = np.flatnonzero(jumps), list[int]()
    if not len(suspects):
        return mask
    search = _Search(dag)
    for arc in suspects.tolist():
        second_way = search.second_way(tails.item(arc), heads.item(arc))
        mask[arc] = second_way is True
        unsure += [arc] if second_way is None else []
    mask[unsure] = _sweep(dag, np.array(unsure, np.intp))
    return mask


class _Search:
    """Searches for a second way between two ends: its tasks lie strictly between them, in level and in height."""

    def __init__(self, dag: Dag) -> None:
        self.level, self.height = dag.level.tolist(), dag.height.tolist()
        self.below, self.above = (dag.child_ptr.tolist(), dag.child), (dag.parent_ptr.tolist(), dag.parent)
        self.most = max(LEAST_ARCS, (len(dag) + dag.arc_count) // ARCS_FOR_A_SEARCH)

    def second_way(self, u: int, v: int) -> bool | None:
        """Whether there is a second way, searched from both ends in turn; None if that visits too many arcs."""
        sides = [([u], {u}, *self.below), ([v], {v}, *self.above)]
        arcs, met = [0, 0], {u, v}
        while all(queue for queue, *_ in sides):
            costs = [arcs[i] + ptr[queue[0] + 1] - ptr[queue[0]] for i, (queue, _, ptr, _) in enumerate(sides)]
            i = costs.index(min(costs))
            arcs[i] = costs[i]
            if sum(arcs) > self.most:
                return None
            (queue, seen, ptr, rows), x = sides[i], sides[i][0].pop(0)
            near = {w for w in rows[ptr[x] : ptr[x + 1]].tolist() if not (x in met and w in met)}
            if not near.isdisjoint(sides[1 - i][1]):
                return True
            fresh = [w for w in near - seen if self._between(u, w, v)]
            queue += fresh
            seen.update(fresh)
        return False

    def _between(self, u: int, w: int, v: int) -> bool:
        level, height = self.level, self.height
        return bool(level[u] < level[w] < level[v] and height[u] > height[w] > height[v])


def _sweep(dag: Dag, suspects: Numbers) -> Mask:
    """Whether v is reached from a child of u, for many arcs u -> v at once: a bit for the head of each."""
    tails, heads, place = dag.tails[suspects], dag.child[suspects], np.argsort(dag.order)
    mask, sequence = np.zeros(len(suspects), np.bool_), np.argsort(place[heads])
    for some in np.array_split(sequence, 1 + len(suspects) * len(dag) // MOST_BITS) if len(suspects) else ():
        bit = {v: 1 << b for b, v in enumerate(set(heads[some].tolist()))}
        reached, beyond = dict[int, int](), dict[int, int]()  # from a task; from its children
        for u in dag.order[place[tails[some]].min() : place[heads[some]].max()][::-1].tolist():
            row = dag.children_of(u).tolist()
            beyond[u] = reduce(int.__or__, [reached.get(c, 0) for c in row], 0)
            reached[u] = reduce(int.__or__, [bit.get(c, 0) for c in row], beyond[u])
        mask[some] = [beyond[u] & bit[v] > 0 for u, v in zip(tails[some].tolist(), heads[some].tolist(), strict=True)]
    return mask
