"""The workflow that DAGMan files describe: the graph without what was executed, and the details of its tasks."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from eligo.dag import Dag
from eligo.errors import InputError
from eligo.formats.dagman.descriptions import Facts
from eligo.formats.dagman.joining import Joined, Joiner, Note
from eligo.formats.dagman.library import Library
from eligo.formats.dagman.running import NodeScript
from eligo.formats.dagman.scripts import Known, Script, at, script_of
from eligo.formats.shared.files import Beside
from eligo.rows import Ints
from eligo.workflow import LazyDetails, Origin, Task, Unhonoured, Workflow

#: Join nodes stay where there would be more arcs without them than so many times as many, and these.
MOST_TIMES, MANY_ARCS = 4, 10_000

_RESCUE = re.compile(r"(.+)\.rescue([0-9]{3,})", re.DOTALL)


class Details(LazyDetails):
    """What is known of each task: kept by number, since a Task for each of a million nodes takes longer than reading them."""

    def __init__(self, numbers: Mapping[str, int], piece: Joined) -> None:
        self._numbers = numbers
        self._known: Sequence[Known] = piece.known
        self._priorities = piece.priorities
        self._categories = piece.categories

    def __getitem__(self, name: str) -> Task:
        number = self._numbers[name]
        if not self._has(number):
            raise KeyError(name)
        known = self._known[number]
        facts = known if isinstance(known, Facts) else Facts(known)
        return Task(
            name=name,
            command=facts.command if facts.command or known is None else (),  # only NOOP says that nothing is to be run
            cores=facts.cores,
            memory=facts.memory,
            category=self._categories.get(number),
            priority=self._priorities.get(number),
        )

    def __iter__(self) -> Iterator[str]:
        return (name for name, number in self._numbers.items() if self._has(number))

    def __len__(self) -> int:
        return self._count

    @cached_property
    def _count(self) -> int:
        return sum(1 for _ in self)

    def _has(self, number: int) -> bool:
        return self._known[number] is not None or number in self._priorities or number in self._categories


def workflow_of(text: str, name: str, beside: Beside | None) -> Workflow:
    """The workflow that a DAGMan text describes, with the files *beside* it."""
    root = script_of(text, beside.root if beside else None)
    root, rescue = _rescued(root, beside)
    library = Library(root, beside)
    library.check()
    piece = Joiner(library).whole(rescue)
    gone = _done(piece)
    tails, heads = piece.tails, piece.heads
    remarks = [_told(len(piece.done), len(piece.names) - len(piece.joins), rescue)] if gone else []
    if piece.joins and (direct := without_joins(piece)) is not None:
        gone |= set(piece.joins)
        tails, heads = direct
    elif piece.joins:
        remarks.append(
            f"{len(piece.joins):,} join nodes, which DAGMan makes itself and which run nothing, count as tasks"
        )
    dag = Dag.from_arrays(len(piece.names), tails, heads, piece.names)
    origin = Origin(
        format=name,
        path=root.path,
        done=dag.named(sorted(piece.done)),
        joins=len(piece.joins),
        remarks=tuple(remarks),
        unhonoured=_unhonoured(piece, gone.union(piece.joins)),
        script=_node_script(piece, beside),
    )
    if not gone:
        numbers = root.index if len(root.index) == len(dag) else dag.index
        return Workflow(dag, Details(numbers, piece), origin=origin)
    kept = np.setdiff1d(np.arange(len(dag), dtype=np.int32), np.array(sorted(gone), np.int32))
    left = dag.induced(kept)
    return Workflow(left, Details(dict(zip(left.tasks, kept.tolist(), strict=True)), piece), origin=origin)


def _unhonoured(piece: Joined, left_out: set[int]) -> tuple[Unhonoured, ...]:
    """What the files ask for and a run does not do: one record for each key that concerns nodes, with its first place."""
    places, tasks, whole = dict[str, str](), dict[str, list[str]](), list[Unhonoured]()
    for note in piece.notes:
        key, concerned = note.remark.key, [piece.names[i] for i in note.nodes if i not in left_out]
        if key == "VARS" or (note.nodes and not concerned):
            continue
        if not concerned:
            whole.append(Unhonoured(key, note.where))
            continue
        places.setdefault(key, note.where)
        tasks.setdefault(key, []).extend(concerned)
    return (*whole, *(Unhonoured(key, where, tuple(tasks[key])) for key, where in places.items()))


def _node_script(piece: Joined, beside: Beside | None) -> NodeScript:
    """What a run has to know of nodes to find their commands: VARS, and descriptions that stand in the files."""
    variables: dict[str, list[Note]] = {}
    for note in piece.notes:
        if note.remark.key == "VARS":
            for node in note.nodes:
                variables.setdefault(piece.names[node], []).append(note)
    named = zip(piece.names, piece.known, strict=True) if Facts in set(map(type, piece.known)) else ()
    descriptions = {name: known.lines for name, known in named if isinstance(known, Facts) and known.lines}
    return NodeScript(descriptions, variables, beside is not None and beside.allow_outside)


def without_joins(piece: Joined) -> tuple[Ints, Ints] | None:
    """Arcs from all parents of each join node to all its children, in its place; None where they are too many.

    A join runs nothing, so it is no task; but for many parents and children it saves arcs.
    """
    joined = np.zeros(len(piece.names), np.bool_)
    joined[piece.joins] = True
    into, out = joined[piece.heads], joined[piece.tails]
    above = np.bincount(piece.heads[into], minlength=len(joined)).astype(np.int64)
    below = np.bincount(piece.tails[out], minlength=len(joined)).astype(np.int64)
    if (above * below).sum() > MOST_TIMES * len(piece.tails) + MANY_ARCS:
        return None
    rows = np.argsort(piece.tails[out], kind="stable")
    children, begin = piece.heads[out][rows], np.cumsum(below) - below
    counts = below[piece.heads[into]]
    places = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts - begin[piece.heads[into]], counts)
    plain = ~into & ~out
    tails = np.concatenate([piece.tails[plain], np.repeat(piece.tails[into], counts)])
    heads = np.concatenate([piece.heads[plain], children[places]])
    return tails.astype(np.int32), heads.astype(np.int32)


def _done(piece: Joined) -> set[int]:
    """The nodes that are executed: a join node is when all its parents are."""
    if not piece.done:
        return set()
    waiting = np.ones(len(piece.names), np.bool_)
    waiting[list(piece.done)] = False
    open_parents = np.bincount(piece.heads[waiting[piece.tails]], minlength=len(piece.names))
    return piece.done | {join for join in piece.joins if open_parents[join] == 0}


def _told(executed: int, tasks: int, rescue: Script | None) -> str:
    source = f" by {rescue.path}" if rescue else ""
    return f"{executed:,} of {tasks:,} tasks are done{source} and left out"


# Rescue files: x.dag.rescue001 says which nodes of x.dag are done


def _rescued(script: Script, beside: Beside | None) -> tuple[Script, Script | None]:
    """The file to read and its rescue file: the last one, as DAGMan takes it, or the one that is read itself."""
    if beside is None or beside.root is None:
        return script, None
    named = _RESCUE.fullmatch(beside.root)
    if named and not script.index and not script.splices:
        return script_of(beside.load(named[1]), named[1]), script
    last = rescue_file(beside)
    try:
        return script, None if last is None else script_of(beside.load(last), last)
    except InputError as error:
        raise at(error, last, 1) from None


def rescue_file(beside: Beside) -> str | None:
    """The rescue file of the largest number beside a file."""
    folder, base = os.path.split(beside.root or "")
    found = [
        (int(match[2]), name) for name in beside.names() if (match := _RESCUE.fullmatch(name)) and match[1] == base
    ]
    return os.path.join(folder, max(found)[1]) if found else None
