"""The pebble game: the one state machine of execution, and the journal that policies, stores and displays follow.

    waiting -> eligible -> allocated -> executed
       |  ^        ^          |   ^ \\
       v  |        +- release-+   |  +- fail -> failed - release -> eligible
       held ----------------------+

An eligible task waits again if new parents are added.

Takes go through an allocator (`eligo.allocating`), and results go to the execution. Observers, for example policies, stores
and displays, read the journal from where they stopped.
"""

import warnings
from array import array
from collections.abc import Iterable, Iterator, KeysView, Mapping, MutableMapping, Sequence

import numpy as np
from numpy.typing import NDArray

from eligo.border import dag_of
from eligo.dag import Dag
from eligo.errors import InputError, MoveError, StateError, shorten
from eligo.grown_dag import Addition, Additions, Growing, Tasks, executed_first, reachable_tasks
from eligo.names import Name
from eligo.rows import Arrivals, Ints, Settled, released_children

# The journal


#: the moves of a journal, as numbers
TAKE, HOLD, AGAIN, COMPLETE, FAIL, RELEASE, DROP, GROW = range(8)
MOVES = ("take", "hold", "again", "complete", "fail", "release", "drop", "grow")
_TASK = (1 << 32) - 1
FEW_MOVES = 16  # up to this number, a loop is faster than arrays


def executing(tasks: NDArray[np.int32]) -> bytes:
    """The moves that take and complete tasks one after another."""
    moves = np.repeat(tasks.astype(np.int64), 2)
    moves[0::2] |= TAKE << 32
    moves[1::2] |= COMPLETE << 32
    return moves.tobytes()


class Journal:
    """The moves of an execution as 8-byte integers: the kind of move times 2 ** 32, plus the task.

    The task of "grow" is an index into `additions`.
    """

    def __init__(self, moves: "array[int]", additions: list[Addition]) -> None:
        self._moves, self.additions = moves, additions

    @staticmethod
    def packed(moves: Iterable[int]) -> "array[int]":
        """The moves of another execution or a store as an array; raises if they are invalid."""
        try:
            return array("q", moves)
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError(f"a journal must be an array of 8-byte integers: {error}") from None

    def __len__(self) -> int:
        return len(self._moves)

    def __iter__(self) -> Iterator[int]:
        return iter(self._moves)

    def __bytes__(self) -> bytes:
        return self._moves.tobytes()

    def left_at(self, seen: int, size: int) -> NDArray[np.bool_]:
        """For each task known after the first *seen* moves, whether it still had to be handed out; *size* tasks exist now."""
        moves = np.array(self._moves[:seen], np.int64)
        grown = moves >> 32 == GROW
        later = sum(len(added.tasks) for added in self.additions[int(grown.sum()) :])
        kinds = np.full(size - later, RELEASE, np.int64)
        kinds[moves[~grown] & _TASK] = moves[~grown] >> 32
        remaining: NDArray[np.bool_] = kinds == RELEASE
        return remaining


def unpacked(moves: "array[int]") -> Iterator[tuple[int, int]]:
    """The kind and the task of every move, as numbers.

    >>> list(unpacked(array("q", [TAKE << 32 | 5, COMPLETE << 32 | 5]))) == [(TAKE, 5), (COMPLETE, 5)]
    True
    """
    if len(moves) < FEW_MOVES:
        return ((move >> 32, move & _TASK) for move in moves)
    packed = np.array(moves, np.int64)
    return zip((packed >> 32).tolist(), (packed & _TASK).tolist(), strict=True)


__all__ = [
    "AGAIN", "ALLOCATED", "COMPLETE", "DROP", "ELIGIBLE", "EXECUTED", "FAIL", "FAILED", "GROW", "HELD", "HOLD", "MOVES",
    "RELEASE", "STATES", "TAKE", "WAITING", "Addition", "Execution", "Journal", "Tasks", "unpacked",
]  # fmt: skip

#: the states of a task, as numbers; those up to ELIGIBLE remain to be handed out
WAITING, ELIGIBLE, ALLOCATED, HELD, FAILED, EXECUTED = range(6)
STATES = ("waiting", "eligible", "allocated", "held", "failed", "executed")
#: children of a task above which arrays are faster; tasks that become eligible at once above which a burst is recorded
MANY, BURST = 64, 1_000
#: the states of a task that allow each move
_FROM = ({ELIGIBLE}, {WAITING}, {ALLOCATED}, {ALLOCATED}, {ALLOCATED}, {ALLOCATED, HELD, FAILED}, {ALLOCATED})
_OUT = {ALLOCATED, HELD, EXECUTED}  # states of a parent in which its held child stays held
_TO = {TAKE: ALLOCATED, HOLD: HELD, FAIL: FAILED}
_COPIES = {AGAIN: 1, DROP: -1}


class Execution:
    """A dag being executed: which tasks are eligible, handed out and done.

    A task is *eligible* once all its parents are executed, until it is handed out. `take` hands it out, `complete` marks
    it as done and returns the tasks that became eligible, `release` returns it undone, `fail` marks it as failed until it
    is released. A move that the state does not allow raises `MoveError` and changes nothing.

    >>> game = Execution({"a": [], "b": ["a"], "c": ["a"], "d": ["b"]})
    >>> list(game.eligible)
    ['a']
    >>> game.take("a")
    >>> game.complete("a")
    ('b', 'c')

    Several tasks taken at once are one *fat task* of one holder: those that wait for others of them are *held*; once these
    are done, they are allocated to the holder and do not become eligible.

    >>> game.take("b", "d")
    >>> list(game.allocated), list(game.held)
    (['b'], ['d'])
    >>> game.complete("b"), list(game.allocated)
    ((), ['d'])

    A task may have several holders; each beyond the first has a *backup copy*. The first to complete it wins, and the others
    get `MoveError: cannot complete 'd': it is executed`. `release` and `fail` free one holder; only the last one counts.

    >>> game.take("d", again=True)
    >>> game.release("d"), game.holders("d")
    (None, 1)

    The journal records every move in 8 bytes, and `Execution.replay` rebuilds the execution from it.

    >>> game.story()[-3:]
    [('complete', 'b'), ('again', 'd'), ('drop', 'd')]

    The views keep the order of arrival: `eligible` lists the oldest first, `executed` is the schedule so far.
    A completion takes time proportional to the children, a release or failure to the held tasks; other moves are constant.
    """

    def __init__(self, flow: object, executed: Iterable[Name] = (), allocated: Iterable[Name] = ()) -> None:
        #: the dag without additions; `dag` includes them
        self.begun = dag = dag_of(flow)
        #: the dag with additions, by name and number, not rebuilt after additions
        self.graph = Growing(dag)
        self._states = bytearray(len(dag))
        #: `eligible` by number
        self.ready, self._settled = Arrivals(len(dag)), Settled(self._states, EXECUTED)
        #: the tasks of each state except waiting
        self._inside: tuple[MutableMapping[int, None], ...] = ({}, self.ready, {}, {}, {}, self._settled)
        #: for each task whose completion made many eligible at once, these tasks in ascending order, for observers
        self.bursts: dict[int, Ints] = {}
        self._copies, self._wide = dict[int, int](), dag.outdegree.max(initial=0) > MANY  # holders beyond the first
        self._journal = array("q")
        #: the additions to the dag, in order; the "grow" moves of the journal are indices into this list
        self.additions: list[Addition] = []
        #: all moves, in order
        self.journal = Journal(self._journal, self.additions)
        #: the tasks that can be taken, the longest eligible first
        self.eligible = Tasks(self.graph, self._inside[ELIGIBLE])
        #: the tasks that are handed out and can run
        self.allocated = Tasks(self.graph, self._inside[ALLOCATED])
        #: the tasks that are handed out but wait for others of the same fat task
        self.held = Tasks(self.graph, self._inside[HELD])
        #: the failed tasks that have not been released
        self.failed = Tasks(self.graph, self._inside[FAILED])
        #: the tasks that are done, in the order of completion
        self.executed = Tasks(self.graph, self._inside[EXECUTED])
        self._begin(dag.indices(executed))
        self._allocate(allocated)

    @classmethod
    def replay(cls, flow: object, journal: "Iterable[int] | Journal", additions: Additions = ()) -> "Execution":
        """The execution that wrote this journal; runs and servers resume with it.

        *flow* is the workflow at the beginning, and *additions* are those made since; a `Journal` contains its own.

        >>> game = Execution({"a": [], "b": ["a"]})
        >>> game.take("a")
        >>> list(Execution.replay({"a": [], "b": ["a"]}, game.journal).allocated)
        ['a']
        """
        again = cls(flow)
        again.follow(journal, additions)
        again._mend()
        return again

    def follow(self, moves: "Iterable[int] | Journal", additions: Additions = ()) -> None:
        """Apply the moves of another execution of the same dag, as an observer does.

        *additions* are all additions of the other execution, including those known here; a `Journal` contains its own.
        """
        all_additions = moves.additions if isinstance(moves, Journal) else additions
        for kind, v in unpacked(Journal.packed(moves)):
            if kind == GROW and v == len(self.additions) < len(all_additions):
                self._grow(self._check_addition(Addition(*all_additions[v])))
            elif 0 <= kind < GROW and v < len(self.graph) and self._follows(kind, v):
                self._do(kind, v)
            else:
                raise InputError(f"move {len(self.journal):,} of this journal is not possible in that state")

    def _follows(self, kind: int, v: int) -> bool:
        """Whether a move is possible now."""
        if kind == HOLD and not all(self._states[u] in _OUT for u in self.graph.parents_of(v)):
            return False
        alone = not self._copies.get(v)
        return self._states[v] in _FROM[kind] and (alone if kind in {FAIL, RELEASE} else kind != DROP or not alone)

    def _mend(self) -> None:
        """Release tasks that are held without a holder, after a journal was cut between two related moves."""
        for kind, v in unpacked(self.since(max(0, len(self._journal) - 1))):
            self._let_go(self.graph.children_of(v) if kind == DROP else ())
        for v in list(self._inside[HELD]):
            if self._states[v] == HELD and not all(self._states[u] in _OUT for u in self.graph.parents_of(v)):
                self._let_go([v])

    # State

    @property
    def dag(self) -> Dag:
        """The dag with all added tasks; rebuilt on access after an addition."""
        return self.graph.dag

    @property
    def blocked(self) -> tuple[Name, ...]:
        """The tasks that depend on a failed task: they cannot run until it is released. Computed on each access."""
        return self.graph.named(reachable_tasks(self.dag, self._inside[FAILED]).tolist())

    @property
    def futile(self) -> tuple[Name, ...]:
        """The deprecated name of `blocked`."""
        warnings.warn("Execution.futile is deprecated: use Execution.blocked", DeprecationWarning, stacklevel=2)
        return self.blocked

    @property
    def finished(self) -> bool:
        """Whether every task is executed."""
        return len(self._inside[EXECUTED]) == len(self.graph)

    @property
    def stuck(self) -> bool:
        """Whether unfinished tasks remain, none eligible or handed out: all are failed or blocked."""
        return self.idle and not self.finished

    @property
    def left(self) -> int:
        """The number of tasks that remain to be handed out: not executed, failed or handed out."""
        return len(self.graph) - sum(map(len, self._inside[ALLOCATED:]))

    def state(self, task: Name) -> str:
        """One of "waiting", "eligible", "allocated", "held", "failed", "executed"."""
        return STATES[self._states[self.graph.number(task)]]

    def holders(self, task: Name) -> int:
        """The number of holders of a task: more than one if there are backup copies."""
        v = self.graph.number(task)
        return 1 + self._copies.get(v, 0) if self._states[v] in {ALLOCATED, HELD} else 0

    # The journal

    def since(self, seen: int) -> "array[int]":
        """The moves after the first *seen*, packed as in the journal; see `unpacked`."""
        return self._journal[seen:]

    def story(self, seen: int = 0) -> list[tuple[str, Name]]:
        """The journal in readable form: the move and its task, or the added tasks."""
        name, added = self.graph.name, self.additions
        return [(MOVES[kind], added[v].tasks if kind == GROW else name(v)) for kind, v in unpacked(self.since(seen))]

    # By number, for observers

    @property
    def codes(self) -> memoryview:
        """The state of every task: a live view, valid until tasks are added."""
        return memoryview(self._states).toreadonly()

    @property
    def missing(self) -> "array[int]":
        """For every task, the number of parents that are not executed: a read-only view."""
        return self._missing

    def numbers(self, state: int) -> KeysView[int]:
        """The tasks in a state other than waiting, in order of arrival."""
        return self._inside[state].keys()

    @property
    def idle(self) -> bool:
        """Whether no task is eligible or handed out: the execution is finished or stuck."""
        return not (self._inside[ELIGIBLE] or self._inside[ALLOCATED])

    def take_numbers(self, tasks: list[int], again: bool = False) -> None:
        """See `take`."""
        if again:
            for v in tasks:
                self._check(AGAIN, v)
            for v in tasks:
                self._do(AGAIN, v)
            return
        held = self._held_among(tasks)
        self._journal.extend([(HOLD if v in held else TAKE) << 32 | v for v in tasks])
        for v in tasks:
            self._enter(v, HELD if v in held else ALLOCATED)

    def complete_number(self, v: int, late: bool = False) -> Sequence[int]:
        """See `complete`."""
        if self._states[v] != ALLOCATED:
            if late and self._states[v] == FAILED:
                self._do(RELEASE, v)
            if late and self._states[v] == ELIGIBLE:
                self._do(TAKE, v)
            self._check(COMPLETE, v)
        self._journal.append(COMPLETE << 32 | v)
        return self._completed(v)

    # Moves

    def take(self, *tasks: Name, again: bool = False) -> None:
        """Hand out tasks to one holder, all or none, in an order in which they can run.

        Each must be eligible, or depend only on earlier ones, and is then held. With *again*, each is already handed out, and
        this is another copy.
        """
        self.take_numbers([self.graph.number(task) for task in tasks], again)

    def complete(self, task: Name, late: bool = False) -> tuple[Name, ...]:
        """Mark a task that is handed out as done; returns the tasks that became eligible.

        With *late*, the result also counts if the task was released or has failed meanwhile and is not handed out now.
        """
        return self.graph.named(self.complete_number(self.graph.number(task), late))

    def release(self, task: Name) -> None:
        """Return a task undone, or retry a failed one: it is eligible again, after the others.

        With several holders, only the last one is freed. Tasks held for this task are returned too, because their holder
        cannot run them, or with several holders may not be able to.
        """
        self._give_back(RELEASE, task)

    def give_up(self, *tasks: Name) -> None:
        """Return those of these tasks that are handed out undone, for example all tasks of a lost client."""
        for task in tasks:
            if self._states[self.graph.number(task)] in {ALLOCATED, HELD}:
                self.release(task)

    def fail(self, task: Name) -> None:
        """Mark a task as failed until it is released; with several holders, only the last one is freed."""
        self._give_back(FAIL, task)

    def execute(self, task: Name) -> tuple[Name, ...]:
        """Take and complete a task: one step of the pebble game."""
        self.take(task)
        return self.complete(task)

    def grow(
        self,
        tasks: Iterable[Name] | Mapping[Name, Iterable[Name]],
        arcs: Iterable[tuple[Name, Name]] = (),
        details: Iterable[Mapping[str, object]] = (),
    ) -> tuple[Name, ...]:
        """Add tasks, and arcs (parent, child), each from or to one of them. Returns the new tasks that are eligible.

        New tasks may have any parents. Their children must be waiting or eligible, and then wait for them; tasks handed
        out, failed or executed get no more parents. A mapping lists the parents of each new task, as in `Execution(...)`.
        *details* are stored with the addition: a row of a document for each task.

        >>> game = Execution({"a": [], "b": ["a"]}, executed=["a"])
        >>> game.grow(["c", "d"], [("a", "c"), ("c", "d"), ("c", "b")]), list(game.eligible)
        (('c',), ['c'])
        >>> game.grow(["late"], [("late", "a")])
        Traceback (most recent call last):
        eligo.errors.StateError: 'a' cannot be below 'late': it is executed
        """
        added = self._check_addition(self.graph.addition(tasks, arcs, details))
        return self.graph.named(self._grow(added)) if added.tasks else ()

    def _check_addition(self, added: Addition) -> Addition:
        """Check that an addition is possible now, and return it."""
        states = self._states
        self.graph.check(added, lambda v: states[v] == EXECUTED)
        for u, v in added.arcs:
            if v < len(states) and states[v] > ELIGIBLE:
                parent = self.graph.name(u) if u < len(states) else added.tasks[u - len(states)]
                raise StateError(self.graph.name(v), f"below {shorten(parent)!r}", parent, STATES[states[v]])
        return added

    def _grow(self, added: Addition) -> list[int]:
        """Make a checked addition; returns the new tasks that are eligible."""
        new = range(len(self._states), len(self._states) + len(added.tasks))
        self._journal.append(GROW << 32 | len(self.additions))
        self.additions.append(added)
        self.graph.add(added)
        # not extended in place, because there are views of it
        self._states = self._settled.states = self._states + bytes(len(new))
        self._missing.extend([0] * len(new))
        self.ready.widen(len(new))
        for u, v in added.arcs:
            self._missing[v] += self._states[u] != EXECUTED
            if self._states[v] == ELIGIBLE:
                self._enter(v, WAITING)
        ready = [v for v in new if not self._missing[v]]
        for v in ready:
            self._enter(v, ELIGIBLE)
        return ready

    def _held_among(self, numbers: list[int]) -> set[int]:
        """The tasks, among these, that become held if one holder takes all; raises if one holder cannot."""
        earlier, held = set[int](), {v for v in numbers if self._states[v] != ELIGIBLE}
        if not held and (len(numbers) == 1 or len(set(numbers)) == len(numbers)):
            return held
        for v in numbers:
            if v in earlier:
                raise MoveError("take", self.graph.name(v), "named twice")
            if v in held:
                before = sum(u in earlier for u in self.graph.parents_of(v))
                self._check(HOLD if self._missing[v] == before and self._states[v] == WAITING else TAKE, v)
            earlier.add(v)
        return held

    def _give_back(self, kind: int, task: Name) -> None:
        v = self.graph.number(task)
        self._do(DROP if self._copies.get(v) else kind, v)
        self._let_go(self.graph.children_of(v) if self._inside[HELD] else ())

    def _let_go(self, tasks: Iterable[int]) -> None:
        """Release held tasks, and those held because of them, since their holder cannot run them."""
        waiting = list(tasks)
        while waiting:
            v = waiting.pop()
            if self._states[v] == HELD:
                self._do(RELEASE, v)
                waiting += self.graph.children_of(v)

    def _check(self, kind: int, v: int) -> None:
        if self._states[v] not in _FROM[kind]:
            raise MoveError(MOVES[kind], self.graph.name(v), STATES[self._states[v]])

    def _do(self, kind: int, v: int) -> None:
        """Check, record and apply one move."""
        if kind == COMPLETE:
            self.complete_number(v)
            return
        self._check(kind, v)
        self._journal.append(kind << 32 | v)
        if kind in _TO:
            self._enter(v, _TO[kind])
        elif kind == RELEASE:
            self._enter(v, WAITING if self._missing[v] else ELIGIBLE)
        else:
            self._copies[v] = self._copies.get(v, 0) + _COPIES[kind]

    def _completed(self, v: int) -> Sequence[int]:
        states, missing, inside = self._states, self._missing, self._inside
        del inside[ALLOCATED][v]
        self._settled.add(v)
        states[v] = EXECUTED
        if self._copies:
            self._copies.pop(v, None)
        if self._wide and self.graph.has_many(v, MANY):
            return self._render(v)
        fresh = []
        for w in self.graph.children_of(v):
            missing[w] -= 1
            if missing[w]:
                continue
            if states[w] == WAITING:
                states[w] = ELIGIBLE
                inside[ELIGIBLE][w] = None
                fresh.append(w)
            else:
                self._enter(w, ALLOCATED)
        return fresh

    def _render(self, v: int) -> Sequence[int]:
        """`_completed` for tasks with many children, all at once."""
        states, free = np.frombuffer(self._states, np.uint8), released_children(self.graph.row_of(v), self._missing)
        waited = states[free] == WAITING
        for w in free[~waited].tolist():
            self._enter(w, ALLOCATED)
        fresh = free[waited]
        states[fresh] = ELIGIBLE
        self.ready.extend(fresh)
        if len(fresh) > BURST:
            self.bursts[v] = fresh
        return array("i", fresh.tobytes())

    def _enter(self, v: int, state: int) -> None:
        if self._states[v] != WAITING:
            del self._inside[self._states[v]][v]
        if state != WAITING:
            self._inside[state][v] = None
        self._states[v] = state

    # The start

    def _begin(self, done: Ints) -> None:
        """Start with these tasks executed, in any order; their parents must be among them."""
        done, missing, ready = executed_first(self.dag, done)
        self._missing = array("i", missing.tobytes())
        self._journal.frombytes(executing(done))
        self._settled.extend(done)
        self.ready.extend(ready)
        for state, tasks in ((EXECUTED, done), (ELIGIBLE, ready)):
            np.frombuffer(self._states, np.uint8)[tasks] = state

    def _allocate(self, tasks: Iterable[Name]) -> None:
        """Hand out these tasks at the start."""
        for v in self.dag.indices(tasks).tolist():
            self.require_eligible(v, "allocated")
            self._do(TAKE, v)

    def require_eligible(self, v: int, said: str) -> None:
        """Raise an error if task number v is not eligible; *said* completes "cannot be ..."."""
        if self._states[v] == WAITING:
            lacking = next(u for u in self.graph.parents_of(v) if self._states[u] != EXECUTED)
            raise StateError(self.graph.name(v), said, self.graph.name(lacking))
        if self._states[v] != ELIGIBLE:
            raise StateError(self.graph.name(v), said, state=STATES[self._states[v]])
