"""A workflow as bytes and back, in columns: a million tasks are read in a second or two."""

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from eligo.dag import Dag
from eligo.errors import InputError
from eligo.names import Name
from eligo.workflow import DETAILS, LazyDetails, Task, Timed, Workflow

LISTS = ("inputs", "outputs")


class Packed(msgspec.Struct):
    """The columns of a workflow."""

    name: str | None
    tasks: list[str]
    tails: bytes
    heads: bytes
    #: for each detail that any task has, its value for every task
    details: dict[str, list[Any]]
    sizes: dict[str, int]
    #: earlier run times: task, kind, seconds
    history: list[tuple[str | None, str | None, float]]


def packed(flow: Workflow) -> bytes:
    """A workflow as bytes, its tasks by their labels."""
    flow = flow.labelled()
    columns = {name: list(flow.column(name)) for name in DETAILS}
    known = {name: column for name, column in columns.items() if any(value not in (None, ()) for value in column)}
    tails, heads = (np.ascontiguousarray(ends, np.int32).tobytes() for ends in (flow.dag.tails, flow.dag.child))
    history = [(None if one.task is None else str(one.task), one.kind, one.seconds) for one in flow.history]
    names = [str(name) for name in flow.dag.tasks]
    return msgspec.msgpack.encode(Packed(flow.name, names, tails, heads, known, dict(flow.file_sizes), history))


def unpacked_flow(document: bytes) -> Workflow:
    """The workflow that was packed."""
    try:
        found = msgspec.msgpack.decode(document, type=Packed)
    except msgspec.MsgspecError as error:
        raise InputError(f"this is no workflow that a server kept: {error}") from None
    tails, heads = np.frombuffer(found.tails, np.int32), np.frombuffer(found.heads, np.int32)
    dag = Dag.from_arrays(len(found.tasks), tails, heads, found.tasks)
    history = tuple(Timed(*one) for one in found.history)
    return Workflow(dag, _Details(dag, found.details), name=found.name, file_sizes=found.sizes, history=history)


class _Details(LazyDetails):
    """The details of tasks, each made when it is asked for."""

    def __init__(self, dag: Dag, columns: dict[str, list[Any]]) -> None:
        self._dag, self._columns = dag, columns

    def __getitem__(self, name: Name) -> Task:
        if name not in self._dag:
            raise KeyError(name)
        v = self._dag.number(name)
        known = {what: column[v] for what, column in self._columns.items()}
        for what in ("command", *LISTS):
            if isinstance(known.get(what), list):
                known[what] = tuple(known[what])
        return Task(name=name, **known)

    def __iter__(self) -> Iterator[Name]:
        return iter(self._dag.tasks)

    def __len__(self) -> int:
        return len(self._dag)

    def column(self, what: str) -> list[Any]:
        """See `LazyDetails`."""
        found = self._columns.get(what)
        return [() if what in LISTS else None] * len(self._dag) if found is None else found
