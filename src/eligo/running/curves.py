"""How many tasks could run, as an execution goes on: followed move by move in its journal."""

from array import array

from eligo.execution import COMPLETE, FAIL, GROW, MANY, RELEASE, Addition, Execution, unpacked
from eligo.rows import released


class ReadyCurve:
    """After each task that is done, how many could run then: those that ran, and those that waited to."""

    def __init__(self, execution: Execution) -> None:
        self._game, dag = execution, execution.begun
        self._read = 0
        self._failed: set[int] = set()
        self._missing = array("i", dag.indegree.tobytes())
        self._ready = int((dag.indegree == 0).sum())
        #: the tasks that are done, in order; one entry more: how many could run, before the first and after each, without and
        #: with those that had failed and were not to be tried just then
        self.order, self.counts, self.eligible = array("i"), array("q", [self._ready]), array("q", [self._ready])

    def follow(self) -> None:
        """Take in what has happened since."""
        game, missing = self._game, self._missing
        moves = game.since(self._read)
        self._read += len(moves)
        for kind, v in unpacked(moves):
            if kind == COMPLETE:
                self.order.append(v)
                self._ready -= 1
                missing[v] = -1
                self._ready += self._rendered(v)
                self.eligible.append(self._ready)
                self.counts.append(self._ready - len(self._failed))
            elif kind == FAIL:
                self._failed.add(v)
            elif kind == RELEASE:
                self._failed.discard(v)
            elif kind == GROW:
                self._grow(game.additions[v])

    def _rendered(self, v: int) -> int:
        """How many tasks can run once this one is done; what is added later is not among them."""
        graph, missing, count = self._game.graph, self._missing, 0
        if graph.has_many(v, MANY):
            row = graph.row_of(v)
            return len(released(row[row < len(missing)], missing))
        for w in graph.children_of(v):
            if w < len(missing):
                missing[w] -= 1
                count += not missing[w]
        return count

    def _grow(self, added: Addition) -> None:
        """Tasks were added: some can run, and some that could must wait."""
        missing = self._missing
        missing.extend([0] * len(added.tasks))
        self._ready += len(added.tasks)
        for u, w in added.arcs:
            if missing[u] >= 0:  # not done
                self._ready -= not missing[w]
                missing[w] += 1
