"""A workflow as bytes and back, in columns: a million tasks are read in a second or two."""

from typing import Any

import msgspec
import numpy as np

from eligo.dag import Dag
from eligo.errors import InputError
from eligo.formats.shared.columns import Described
from eligo.rows import Ints
from eligo.workflow import DETAILS, Timed, Workflow


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


def packed_plan(order: Ints, ceiling: Ints | None) -> bytes:
    """The order of a plan, and its bound where that is known, as they are kept."""
    parts = [order] if ceiling is None else [order, ceiling]
    return b"".join(np.ascontiguousarray(part, np.int32).tobytes() for part in parts)


def unpacked_plan(plan: bytes, size: int) -> tuple[Ints, Ints | None]:
    """The same again, of a workflow with so many tasks."""
    found = np.frombuffer(plan, np.int32)
    return found[:size], found[size:] if len(found) > size else None


def unpacked_flow(document: bytes) -> Workflow:
    """The workflow that was packed."""
    try:
        found = msgspec.msgpack.decode(document, type=Packed)
    except msgspec.MsgspecError as error:
        raise InputError(f"this is no workflow that a server kept: {error}") from None
    tails, heads = np.frombuffer(found.tails, np.int32), np.frombuffer(found.heads, np.int32)
    dag = Dag.from_arrays(len(found.tasks), tails, heads, found.tasks)
    history = tuple(Timed(*one) for one in found.history)
    columns = {
        what: [tuple(value) if type(value) is list else value for value in column]  # words, or names of files
        for what, column in found.details.items()
    }
    return Workflow(dag, Described(dag, columns), name=found.name, file_sizes=found.sizes, history=history)
