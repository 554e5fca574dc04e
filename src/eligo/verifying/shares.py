"""Bounds by shares of worth, rechecked: of a dag, and of the two dags that a probe asks about."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.verifying.refuting import require

Profile = NDArray[np.int64]
Proof = Mapping[str, Any]
NEVER = -(1 << 40)


def shares_bound(dag: Dag, shares: Proof) -> Profile:
    """The sum of the t largest shares p / q.

    Each nonsource hands q units to its parents within its module, and what it gets beyond p if executed there itself.
    """
    modules, arcs = shares["modules"], set(dag.arcs())
    executed, rendered = ({v: i for i, m in enumerate(modules) for v in m[key]} for key in ("tasks", "renders"))
    whole = executed.keys() == {u for u, _ in arcs} and rendered.keys() == {v for _, v in arcs}
    listed = sum(len(m["tasks"]) + len(m["renders"]) for m in modules)
    require(whole and listed == len(executed) + len(rendered), "the modules do not have every task once")
    kept, handed = Counter[str](), Counter[str]()
    for child, parent, amount in shares["flow"]:
        allowed = amount >= 0 and (parent, child) in arcs and executed[parent] == rendered[child]
        require(allowed, f"no worth can flow from {child!r} to {parent!r}")
        handed[child] += amount
        kept[parent] += amount
    for name, i in rendered.items():
        passed = handed[name] - modules[i]["q"]
        require(passed == 0 or (passed > 0 and executed.get(name) == i), f"{name!r} does not hand on its worth")
        kept[name] -= passed
    return _sums(modules, kept)


def _sums(modules: Sequence[Proof], kept: Mapping[str, int]) -> Profile:
    """The t largest shares together, where every module's share is the most that one of its tasks keeps, and they fall."""
    bound, above = [0], (1, 0)
    for m in modules:
        tasks, renders, p, q = m["tasks"], len(m["renders"]), m["p"], m["q"]
        require(len(tasks) > 0, "a module has no tasks")
        full = q > 0 and (m is modules[-1] or len(tasks) * p == renders * q)
        require(full and p * above[1] <= above[0] * q, "the shares do not fall from full module to full module")
        least, most = min(kept[v] for v in tasks), max(kept[v] for v in tasks)
        require(least >= 0 and most == p, "a module's share is not the most that one of its tasks keeps")
        bound, above = bound + [bound[-1] + min(t * p // q, renders) for t in range(1, len(tasks) + 1)], (p, q)
    return np.array(bound, np.int64)


def probed_bound(dag: Dag, bound: Profile, probes: Sequence[Proof]) -> Profile:
    """The bound, lowered by what each probe proves: every set has the task, and its ancestors, or no descendant of it."""
    for probe in probes:
        require(probe["task"] in dag.index, f"there is no task {probe['task']!r} to ask about")
        v = dag.index[probe["task"]]
        bound = np.minimum(bound, np.maximum(_with(dag, v, bound, probe), _without(dag, v, bound, probe)))
    return bound


def _with(dag: Dag, v: int, bound: Profile, probe: Proof) -> Profile:
    """The most that t executions render if task v is one of them."""
    needed = {v, *_walk(v, _rows(dag.parent_ptr, dag.parent))}
    parents = _rows(dag.parent_ptr, dag.parent)
    at_once = sum(bool(row) and needed.issuperset(row) for row in parents)
    rest = shares_bound(_rest(dag, needed), probe["executed"])
    result = np.full(len(bound), NEVER)
    require(len(rest) + len(needed) == len(bound), f"the probe of {probe['task']!r} is not of all the other tasks")
    result[len(needed) :] = at_once + rest
    return result


def _without(dag: Dag, v: int, bound: Profile, probe: Proof) -> Profile:
    """The most that t executions render if task v is not one of them."""
    lost = set(_walk(v, _rows(dag.child_ptr, dag.child)))
    working = sum(bool(dag.outdegree[u]) for u in {v, *lost})
    least = shares_bound(_rest(dag, lost), probe["waiting"]).tolist()
    most = len(bound) - working
    return np.array([least[min(t, len(least) - 1)] if t < most else NEVER for t in range(len(bound))], np.int64)


def _rows(ptr: NDArray[np.int32], rows: NDArray[np.int32]) -> list[list[int]]:
    return [rows[a:b].tolist() for a, b in pairwise(ptr.tolist())]


def _walk(v: int, rows: list[list[int]]) -> list[int]:
    """All that can be walked to from v."""
    seen = dict.fromkeys(rows[v])
    for u in (found := list(seen)):
        fresh = [w for w in rows[u] if w not in seen]
        seen.update(dict.fromkeys(fresh))
        found += fresh
    return found


def _rest(dag: Dag, gone: set[int]) -> Dag:
    """The dag without some tasks."""
    names = dag.tasks
    arcs = [(names[u], names[w]) for u, w in zip(dag.tails.tolist(), dag.child.tolist(), strict=True)]
    out = {names[u] for u in gone}
    return Dag.from_arcs(
        [(u, w) for u, w in arcs if u not in out and w not in out], [name for name in names if name not in out]
    )
