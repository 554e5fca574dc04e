"""Bounds by shares of worth, rechecked: of a dag, and of the two dags that a probe asks about."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.verifying.documents import Refuted, require

Numbers = NDArray[np.int64]
Profile = NDArray[np.int64]
Proof = Mapping[str, Any]
NEVER = -(1 << 40)
LARGEST = 1 << 62  # sums of 64 bits below it are exact
TWICE = "the modules do not have every task once"


def shares_bound(dag: Dag, shares: Proof) -> Profile:
    """The sum of the t largest shares p / q.

    Each nonsource hands q units to its parents within its module, and what it gets beyond p if executed there itself.
    """
    modules = shares["modules"]
    executed, rendered = (homes(dag, modules, key) for key in ("tasks", "renders"))
    covered = ((executed >= 0) == (dag.outdegree > 0)) & ((rendered >= 0) == (dag.indegree > 0))
    require(covered.all(), TWICE)
    child, parent, amount = _flow(dag, shares["flow"], executed, rendered)
    kept, handed = np.zeros((2, len(dag)), np.int64)
    np.add.at(handed, child, amount)
    np.add.at(kept, parent, amount)
    due = np.array([*(m["q"] for m in modules), 0], np.int64)[rendered]
    passed = handed - due
    for v in np.flatnonzero((passed != 0) & ((passed < 0) | (executed != rendered))):
        raise Refuted(f"{dag.tasks[v]!r} does not pass on its worth")
    return _sums(modules, (kept - passed)[np.argsort(executed, kind="stable")][np.count_nonzero(executed < 0) :])


def homes(dag: Dag, modules: Sequence[Proof], key: str) -> Numbers:
    """The number of the module that has each task under this key, -1 where none has."""
    numbers = np.array([dag.index.get(name, -1) for m in modules for name in m[key]], np.int64)
    home = np.full(len(dag), -1, np.int64)
    home[numbers] = np.repeat(np.arange(len(modules)), [len(m[key]) for m in modules])
    require(numbers.min(initial=0) >= 0 and np.count_nonzero(home >= 0) == len(numbers), TWICE)
    return home


def _flow(dag: Dag, flow: Sequence[Any], executed: Numbers, rendered: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """From whom to whom how much worth flows: along arcs within modules, and so little that no sum is too large."""
    index, count = dag.index, len(flow)
    child = np.fromiter((index.get(name, -1) for name, _, _ in flow), np.int64, count)
    parent = np.fromiter((index.get(name, -1) for _, name, _ in flow), np.int64, count)
    require(sum(worth for _, _, worth in flow) < LARGEST, "more worth flows than there is")
    amount = np.fromiter((worth for _, _, worth in flow), np.int64, count)
    arcs = dag.tails.astype(np.int64) * len(dag) + dag.child
    allowed = (amount >= 0) & (child >= 0) & (parent >= 0) & (executed[parent] == rendered[child])
    allowed &= np.isin(parent * len(dag) + child, arcs)
    for i in np.flatnonzero(~allowed).tolist():
        raise Refuted(f"no worth can flow from {flow[i][0]!r} to {flow[i][1]!r}")
    return child, parent, amount


def _sums(modules: Sequence[Proof], kept: Profile) -> Profile:
    """The t largest shares together, where every module's share is the most that one of its tasks keeps, and they fall.

    *kept* is what the tasks keep, module after module.
    """
    pieces, above, end = [np.zeros(1, np.int64)], (1, 0), 0
    for m in modules:
        size, renders, p, q = len(m["tasks"]), len(m["renders"]), m["p"], m["q"]
        require(size > 0, "a module has no tasks")
        full = q > 0 and (m is modules[-1] or size * p == renders * q)
        require(full and p * above[1] <= above[0] * q, "the shares do not fall from full module to full module")
        own, end = kept[end : end + size], end + size
        require(own.min() >= 0 and own.max() == p, "a module's share is not the most that one of its tasks keeps")
        pieces.append(pieces[-1][-1] + ceiling(m)[1:])
        above = (p, q)
    return np.concatenate(pieces)


def ceiling(module: Proof) -> Profile:
    """What t of a module's tasks can render at most, for every t."""
    size, p, q = len(module["tasks"]), module["p"], module["q"]
    require(q > 0 and size * p < LARGEST, "a module's share is too large")
    steps: Profile = np.arange(size + 1, dtype=np.int64) * p // q
    return np.minimum(steps, len(module["renders"]))


def probed_bound(dag: Dag, bound: Profile, probes: Sequence[Proof]) -> Profile:
    """The bound, lowered by what each probe proves: every set has the task, and its ancestors, or no descendant of it."""
    for probe in probes:
        require(probe["task"] in dag.index, f"unknown task {probe['task']!r} in a probe")
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
    for u in (reached := list(seen)):
        fresh = [w for w in rows[u] if w not in seen]
        seen.update(dict.fromkeys(fresh))
        reached += fresh
    return reached


def _rest(dag: Dag, removed: set[int]) -> Dag:
    """The dag without some tasks."""
    names = dag.tasks
    arcs = [(names[u], names[w]) for u, w in zip(dag.tails.tolist(), dag.child.tolist(), strict=True)]
    out = {names[u] for u in removed}
    return Dag.from_arcs(
        [(u, w) for u, w in arcs if u not in out and w not in out], [name for name in names if name not in out]
    )
