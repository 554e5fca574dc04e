"""The workflow that DAGMan files describe: the graph without what was executed, and the details of its tasks."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import numpy as np

from eligo.dag import Dag
from eligo.errors import InputError
from eligo.formats.dagman.descriptions import Facts
from eligo.formats.dagman.joining import Joiner, Piece
from eligo.formats.dagman.library import Library
from eligo.formats.dagman.scripts import Known, Script, at, script_of
from eligo.formats.files import Beside
from eligo.workflow import LazyDetails, Origin, Task, Workflow

_RESCUE = re.compile(r"(.+)\.rescue([0-9]{3,})", re.DOTALL)


class Details(LazyDetails):
    """What is known of each task: kept by number, since a Task for each of a million nodes takes longer than reading them."""

    def __init__(self, numbers: Mapping[str, int], piece: Piece) -> None:
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
            command=facts.command,
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
    dag = Dag.from_arrays(len(piece.names), piece.tails, piece.heads, piece.names)
    done = _done(piece)
    if not done:
        numbers = root.index if len(root.index) == len(dag) else dag.index
        return Workflow(dag, Details(numbers, piece), origin=Origin(format=name, path=root.path))
    kept = np.setdiff1d(np.arange(len(dag), dtype=np.int32), np.array(sorted(done), np.int32))
    left = dag.induced(kept)
    numbers = dict(zip(left.tasks, kept.tolist(), strict=True))
    remark = _told(len(piece.done), len(dag) - len(piece.joins), rescue)
    origin = Origin(format=name, path=root.path, done=dag.named(sorted(done)), remarks=(remark,))
    return Workflow(left, Details(numbers, piece), origin=origin)


def _done(piece: Piece) -> set[int]:
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
