"""The number of tasks that could run during an execution, followed move by move."""

from array import array

from eligo.execution import COMPLETE, FAIL, GROW, MANY, RELEASE, Addition, Execution, unpacked
from eligo.rows import released_children


class ReadyCurve:
    """After each completed task, the number of tasks that were running or ready."""

    def __init__(self, execution: Execution) -> None:
        self._game, dag = execution, execution.begun
        self._read = 0
        self._failed: set[int] = set()
        self._missing = array("i", dag.indegree.tobytes())
        self._ready = int((dag.indegree == 0).sum())
        #: the completed tasks in order, and the curve without failed tasks, with one more entry: the initial value
        self.order, self.counts = array("i"), array("q", [self._ready])

    def follow(self) -> None:
        """Process the moves since the last call."""
        game, missing = self._game, self._missing
        moves = game.since(self._read)
        self._read += len(moves)
        for kind, v in unpacked(moves):
            if kind == COMPLETE:
                self.order.append(v)
                self._ready -= 1
                missing[v] = -1
                self._ready += self._release_children(v)
                self.counts.append(self._ready - len(self._failed))
            elif kind == FAIL:
                self._failed.add(v)
            elif kind == RELEASE:
                self._failed.discard(v)
            elif kind == GROW:
                self._grow(game.additions[v])

    def _release_children(self, v: int) -> int:
        """Update the parents of a task's children once it is done; returns the number of tasks that become ready."""
        graph, missing, count = self._game.graph, self._missing, 0
        if graph.has_many(v, MANY):
            row = graph.row_of(v)
            return len(released_children(row[row < len(missing)], missing))
        for w in graph.children_of(v):
            if w < len(missing):
                missing[w] -= 1
                count += not missing[w]
        return count

    def _grow(self, added: Addition) -> None:
        """Process added tasks: some are ready, and some that were ready must wait."""
        missing = self._missing
        missing.extend([0] * len(added.tasks))
        self._ready += len(added.tasks)
        for u, w in added.arcs:
            if missing[u] >= 0:  # not done
                self._ready -= not missing[w]
                missing[w] += 1
