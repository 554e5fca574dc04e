"""The drawing of a dag on the page: every task, or groups by level and kind if there are too many tasks."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eligo.estimates import all_kinds
from eligo.plotting.layout import Groups, layered, numbered
from eligo.rows import Ints
from eligo.running.states import STATES
from eligo.workflow import Workflow

MOST_TASKS, MOST_ARCS = 2_000, 8_000  # up to these, tasks and arcs are drawn one by one
WIDEST = 60  # tasks of one level: with more, the whole drawing could not be read
MOST_GROUPS = 400
NAMED = 200  # up to this number, each node is wide enough for its name
LETTER, LEAST, MOST, SMALL, HIGH = 6.6, 40.0, 150.0, 16.0, 22.0
MOST_NAMES = 10


class Drawn:
    """The places of a dag's nodes; `of` has the node of every task."""

    def __init__(self, flow: Workflow, kinds: list[str] | None = None) -> None:
        self.flow = flow
        named = all_kinds(flow) if kinds is None else kinds
        self.kinds, kind = numbered(named)
        groups = _grouped(flow, kind)
        self.of, self._dag, self._kind = groups.of, groups.dag, groups.kind
        self.aggregated = len(groups.dag) < len(flow)
        self._sizes = [len(tasks) for tasks in groups.members]
        self._first: list[list[int]] = [tasks[:MOST_NAMES].tolist() for tasks in groups.members]
        self.labels = [self._label(node) for node in range(len(self._dag))]
        self._place()

    def _label(self, node: int) -> str:
        name, size = self.flow.dag.labels[self._first[node][0]], self._sizes[node]
        if size == 1:
            return name
        return f"{size:,} × {self.kinds[self._kind[node]]}" if self._kind[node] >= 0 else f"{size:,} tasks"

    def _place(self) -> None:
        wide = np.array([min(MOST, max(LEAST, LETTER * len(label) + 14)) for label in self.labels])
        wide = wide if len(wide) <= NAMED else np.full(len(wide), SMALL)
        high = np.full(len(wide), HIGH if len(wide) <= NAMED else SMALL)
        layout = layered(self._dag, wide, high)
        top, first = float(layout.y.max(initial=0.0)), float((layout.x - wide / 2).min(initial=0.0))
        self._x, self._y, self._wide, self._high = layout.x - first, top - layout.y + HIGH, wide, high
        self._bends = [np.column_stack([bends[:, 0] - first, top - bends[:, 1] + HIGH]) for bends in layout.bends]
        self.width = float((self._x + wide / 2).max(initial=0.0))
        self.height = float((self._y + high).max(initial=0.0))

    def counts(self, states: NDArray[np.int8]) -> list[dict[str, int]]:
        """For each node, the number of its tasks in each state."""
        table = np.zeros((len(self._dag), len(STATES)), np.int64)
        np.add.at(table, (self.of, states), 1)
        return [{STATES[k]: row[k] for k in range(len(STATES)) if row[k]} for row in table.tolist()]

    def document(self, states: NDArray[np.int8] | None = None) -> dict[str, Any]:
        """The data that the page needs to draw it."""
        counts: list[dict[str, int]] = [{}] * len(self._dag) if states is None else self.counts(states)
        names = self.flow.dag.labels
        nodes = [
            {
                "id": node, "label": self.labels[node], "kind": int(self._kind[node]), "x": round(float(self._x[node]), 1),
                "y": round(float(self._y[node]), 1), "w": float(self._wide[node]), "h": float(self._high[node]),
                "count": self._sizes[node], "tasks": [names[v] for v in self._first[node]], "counts": counts[node],
            }
            for node in range(len(self._dag))
        ]  # fmt: skip
        return {
            "aggregated": self.aggregated, "tasks": len(self.flow), "width": round(self.width, 1),
            "height": round(self.height, 1), "kinds": self.kinds, "nodes": nodes, "arcs": self._arcs(),
        }  # fmt: skip

    def _arcs(self) -> list[list[Any]]:
        """The arcs between nodes, each with the number of arcs it stands for, and its bends."""
        dag, inner = self._dag, self.flow.dag
        pairs = self.of[inner.tails].astype(np.int64) * len(dag) + self.of[inner.child]
        ends, sizes = np.unique(pairs, return_counts=True)
        weight = dict(zip(ends.tolist(), sizes.tolist(), strict=True))
        ways = zip(dag.tails.tolist(), dag.child.tolist(), self._bends, strict=True)
        return [[a, b, weight[a * len(dag) + b], np.round(bends, 1).tolist()] for a, b, bends in ways]

    def lineage(self, above: Ints, below: Ints, path: Ints, v: int) -> dict[str, Any]:
        """The nodes with tasks above and below a task, and those of its longest path."""
        up, down, way = (np.unique(self.of[tasks]).tolist() for tasks in (above, below, path))
        return {"above": up, "below": down, "self": int(self.of[v]), "path": way}


def _grouped(flow: Workflow, kind: NDArray[np.int32]) -> Groups:
    """The nodes: single tasks; or tasks by level and kind; or, if these are too many, levels or ranges of levels."""
    dag = flow.dag
    groups = Groups(dag, np.arange(len(dag), dtype=np.int32), kind, kind)
    widest = int(np.bincount(dag.level).max(initial=0))
    if widest <= WIDEST and len(dag) <= MOST_TASKS and dag.arc_count <= MOST_ARCS:
        return groups
    groups = groups.merged(_numbers(dag.level.astype(np.int64) * (int(kind.max(initial=0)) + 1) + kind))
    if len(groups.dag) > MOST_GROUPS or groups.dag.arc_count > MOST_ARCS:
        groups = groups.merged(groups.dag.level)
    if (depth := groups.dag.depth) > MOST_GROUPS:
        starts = np.arange(MOST_GROUPS) * depth // MOST_GROUPS
        groups = groups.merged(_numbers(np.searchsorted(starts, groups.dag.level, "right")))
    return groups


def _numbers(labels: NDArray[np.int64]) -> NDArray[np.int32]:
    """Labels as small numbers."""
    return np.unique(labels, return_inverse=True)[1].astype(np.int32)
