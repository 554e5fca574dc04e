"""What is left of a dag to which tasks were added: decided again where something was added, taken over elsewhere.

What a segment comes to follows from its tasks and their arcs in the skeleton. A segment of what has grown that has the tasks
of one that was decided, with the very same arcs, is decided with it. A new task between two others makes their arc a
shortcut, so what was added may also take arcs away; both is known of every arc at once. Modules are looked up by what they
are, wherever they come in.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import compress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.deciding.effort import Effort, begun
from eligo.deciding.outcomes import Outcome
from eligo.deciding.preferences import preferred
from eligo.deciding.residuals import Decided, Rest
from eligo.deciding.solving import solve_numbered
from eligo.errors import InputError
from eligo.rows import Ints, places
from eligo.theory.skeleton import shortcut_mask


class Trail(NamedTuple):
    """An execution since tasks were added to it last: its dag, those of its tasks that were left then, ascending, how many
    were not, and the last of these.
    """

    dag: Dag
    numbers: Ints
    done: int
    last: list[int]

    @classmethod
    def begun(cls, dag: Dag, done: Sequence[int] = ()) -> "Trail":
        """From when so much was done."""
        left = np.ones(len(dag), np.bool_)
        left[np.array(done, np.int32)] = False
        return cls(dag, np.flatnonzero(left).astype(np.int32), len(done), list(done[-1:]))

    def is_of(self, dag: Dag) -> bool:
        """Whether that is the dag, to which nothing was added; refuses one that is another altogether."""
        if dag is self.dag or dag == self.dag:
            return True
        old, tails = len(self.dag), dag.tails
        inside = (tails < old) & (dag.child < old)
        arcs = (tails[inside], self.dag.tails), (dag.child[inside], self.dag.child)
        if not all(np.array_equal(*ends) for ends in arcs) or dag.tasks[:old] != self.dag.tasks:
            raise InputError("this execution is of another workflow than the plan")
        return False

    def places(self, tasks: Ints) -> Ints:
        """The places among those that were left of tasks that were there then."""
        known = tasks[tasks < len(self.dag)]
        place = np.searchsorted(self.numbers, known).astype(np.int32)
        if not np.array_equal(self.numbers[place[place < len(self.numbers)]], known):
            raise InputError("this is not the execution that was followed so far")
        return place

    def places_of(self, before: "Trail") -> tuple[Ints, int]:
        """The place of each task that was left before, -1 where it no longer is; and how many still are."""
        place = places(len(self.dag), self.numbers)[before.numbers]
        return place, int(np.searchsorted(self.numbers, len(before.dag)))


def decide_grown(rest: Rest, place: Ints, old: int, dag: Dag) -> tuple[Decided, Effort]:
    """What is left of a dag that has grown, and the effort that was made.

    *rest* is what was known before, and *place* what each of its tasks is in the dag of what is left, -1 where it is
    executed. The first *old* tasks of that dag were there before, and all arcs with others are new.
    """
    told, before, effort = dag.labelled(), rest.decided.bare, rest.decided.effort
    bare, touched = _skeleton(before, place, told, old)
    left = tuple(compress(before.tasks, (place >= 0).tolist()))
    same = left == told.tasks[:old]  # labels may change where names are no text
    spent = replace(begun(effort), solved=dict(rest.known) if same else {})
    outcome, composed = solve_numbered(bare, spent, _taken_over(rest, place, touched) if same else ())
    sequence = preferred(bare, outcome.order, rest.decided.prefer)
    return Decided(bare, outcome, sequence, effort, rest.decided.prefer, spent.solved or {}, composed), spent


def _skeleton(before: Dag, place: Ints, told: Dag, old: int) -> tuple[Dag, NDArray[np.bool_]]:
    """The skeleton of what has grown, made from the one before, and which tasks have other children in it now."""
    dag, tails = told, told.tails
    fresh, kept = np.maximum(tails, told.child) >= old, place[before.tails]
    if int((kept >= 0).sum()) + int(fresh.sum()) < told.arc_count:
        tails = np.concatenate([kept[kept >= 0], tails[fresh]])
        heads = np.concatenate([place[before.child][kept >= 0], told.child[fresh]])
        dag = Dag.from_checked(len(told), tails, heads, lambda: told.tasks)
        tails = dag.tails
        fresh = np.maximum(tails, dag.child) >= old
    shortcut = shortcut_mask(dag)
    touched = np.zeros(len(dag), np.bool_)
    touched[tails[shortcut != fresh]] = True
    if shortcut.any():
        dag = Dag.from_checked(len(dag), tails[~shortcut], dag.child[~shortcut], lambda: told.tasks)
    return dag, touched


def _taken_over(rest: Rest, place: Ints, touched: NDArray[np.bool_]) -> list[Outcome]:
    """The segments that were decided and that nothing was done to."""
    moved = (replace(outcome, order=place[outcome.order]) for outcome in rest.hard())
    return [outcome for outcome in moved if outcome.order.min() >= 0 and not touched[outcome.order].any()]
