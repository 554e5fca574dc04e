"""What matters of a state for the next batch: the bipartite *residual*, kept up to date while a dag is executed.

Its sources are the eligible tasks, its sinks the tasks all of whose missing parents are eligible: executing eligible tasks
can render nothing else. So the state of any dag falls into connected components that do not concern one another [1]_,
section 4; being a composition is not needed. Tasks that somebody has, or that failed, are neither executed nor eligible.

.. [1] Malewicz, Rosenberg (2006): On batch-scheduling dags for Internet-based computing.
"""

import numpy as np
from numpy.typing import NDArray

from eligo.batches.components import Component, Shape, ShapeKey, components
from eligo.dag import Dag
from eligo.execution import ELIGIBLE, EXECUTED, WAITING, Execution, unpacked
from eligo.rows import Ints, gathered

Codes = NDArray[np.uint8]


class Residual:
    """The residual of an execution, as components grouped by shape; `follow` changes only those that a move concerns.

    >>> game = Execution({"a": [], "b": [], "c": [], "x": ["a", "b"], "y": ["b"], "z": ["x", "c"]}, executed=["a"])
    >>> residual = Residual(game)
    >>> [str(shape.key) for shape in residual.shapes.values()], game.dag.named(residual.isolated())
    (['W(1,2)'], ('c',))
    """

    def __init__(self, execution: Execution) -> None:
        self.execution = execution
        self._begin()

    def _begin(self) -> None:
        """Bring all of the dag to where the execution stands."""
        self.dag = dag = self.execution.dag
        #: the states of the tasks, as of the last move that was followed
        self.codes = np.full(len(dag), WAITING, np.uint8)
        self.shapes: dict[ShapeKey, Shape] = {}
        self._missing, self._blocked = dag.indegree.copy(), dag.indegree.copy()
        self._owner = np.full(len(dag), -1, np.int32)
        self._shape_of: dict[int, Shape] = {}
        self._numbers = 0
        self._seen, self._grown = len(self.execution.journal), len(self.execution.additions)
        self._change(np.flatnonzero(self._now != WAITING).astype(np.int32))

    @property
    def eligible(self) -> Ints:
        """The tasks that may be handed out."""
        return np.flatnonzero(self.codes == ELIGIBLE).astype(np.int32)

    def isolated(self) -> Ints:
        """The eligible tasks that cannot help to render anything now."""
        return np.flatnonzero((self.codes == ELIGIBLE) & (self._owner < 0)).astype(np.int32)

    def follow(self) -> None:
        """Catch up with the execution: tasks that moved since, and what became of their children."""
        game = self.execution
        if self._seen == len(game.journal):
            return
        if self._grown < len(game.additions):
            self._begin()
            return
        moved = _distinct(len(self.dag), np.array([v for _, v in unpacked(game.since(self._seen))], np.int32))
        self._seen = len(game.journal)
        below, _ = gathered(self.dag.child_ptr, self.dag.child, moved)
        near = _distinct(len(self.dag), np.concatenate([moved, below]))
        self._change(near[self.codes[near] != self._now[near]])

    def restricted(self, sources: Ints) -> tuple[Dag, Ints]:
        """The part of the residual that hangs on these eligible tasks, as a dag, those without sinks left out.

        Returns it with the tasks that its sources, numbered first, stand for.
        """
        children, degree = gathered(self.dag.child_ptr, self.dag.child, sources)
        live = self._is_sink(children)
        tails = np.repeat(np.arange(len(sources), dtype=np.int32), degree)[live]
        busy = np.bincount(tails, minlength=len(sources)) > 0
        place = (np.cumsum(busy) - 1).astype(np.int32)
        count = int(busy.sum())
        sinks, heads = _numbered(len(self.dag), children[live])
        return Dag.from_checked(count + sinks, place[tails], heads + np.int32(count), None), sources[busy]

    def rendered(self, tasks: Ints) -> int:
        """How many tasks become eligible when these eligible ones are executed."""
        children, _ = gathered(self.dag.child_ptr, self.dag.child, tasks)
        touched, times = np.unique(children, return_counts=True)
        return int((times == self._missing[touched]).sum())

    def _is_sink(self, tasks: Ints) -> NDArray[np.bool_]:
        sinks: NDArray[np.bool_] = (self._blocked[tasks] == 0) & (self._missing[tasks] > 0)
        return sinks

    @property
    def _now(self) -> Codes:
        return np.frombuffer(self.execution.codes, np.uint8)

    def _change(self, changed: Ints) -> None:
        """Take over the states of these tasks, which are all that changed."""
        now = self._now[changed]
        done = changed[now == EXECUTED]
        children, _ = gathered(self.dag.child_ptr, self.dag.child, done)
        np.subtract.at(self._missing, children, 1)
        before = _is_open(self.codes[changed])
        self.codes[changed] = now
        step = before.astype(np.int32) - _is_open(now)
        children, degree = gathered(self.dag.child_ptr, self.dag.child, changed)
        np.add.at(self._blocked, children, np.repeat(step, degree))
        self._regroup(changed, children[self._is_sink(children)])

    def _regroup(self, changed: Ints, sinks: Ints) -> None:
        """Take the components apart that the changed tasks were in or that these sinks join, and put them together anew."""
        parents, _ = gathered(self.dag.parent_ptr, self.dag.parent, _distinct(len(self.dag), sinks))
        near = np.concatenate([changed, parents])
        owners = self._owner[near]
        members = [self._remove(number) for number in _distinct(self._numbers, owners[owners >= 0]).tolist()]
        region = _distinct(len(self.dag), np.concatenate([near, *members]))
        self._owner[region] = -1
        part, sources = self.restricted(region[self.codes[region] == ELIGIBLE])
        if not len(sources):
            return
        for component in components(part, sources, self.dag.height[sources]):
            self._add(component)

    def _remove(self, number: int) -> Ints:
        shape = self._shape_of.pop(number)
        members = shape.members.pop(number).sources
        if not shape.members:
            del self.shapes[shape.key]
        return members

    def _add(self, component: Component) -> None:
        shape = self.shapes.get(component.key)
        if shape is None:
            shape = self.shapes[component.key] = Shape(component.key)
        shape.members[self._numbers] = component
        self._shape_of[self._numbers] = shape
        self._owner[component.sources] = self._numbers
        self._numbers += 1


def _is_open(codes: Codes) -> NDArray[np.bool_]:
    """Whether tasks in these states stand in no child's way: executed, or to be executed now."""
    free: NDArray[np.bool_] = (codes == ELIGIBLE) | (codes == EXECUTED)
    return free


def _distinct(n: int, tasks: Ints) -> Ints:
    """The different ones among these tasks, ascending: by sorting where they are few, else by marking."""
    if len(tasks) * 16 < n:
        return np.unique(tasks)
    seen = np.zeros(n, np.bool_)
    seen[tasks] = True
    return np.flatnonzero(seen).astype(np.int32)


def _numbered(n: int, tasks: Ints) -> tuple[int, Ints]:
    """How many different tasks there are, and each one's rank among them."""
    seen = np.zeros(n, np.bool_)
    seen[tasks] = True
    rank = np.cumsum(seen, dtype=np.int32)
    return int(rank[-1]) if n else 0, rank[tasks] - np.int32(1)
