"""The stored form of a workflow: bytes in frames, so that reading a million tasks never blocks other threads for long.

A document is a mark, then frames, each compressed and preceded by two lengths. The first is a header. The arcs follow as
arrays, then every column, as an array of kinds and frames of texts or as frames of numbers. A frame holds a few thousand
values; other threads run between frames.
"""

import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import msgspec
import numpy as np

from eligo.dag import Dag
from eligo.errors import InputError
from eligo.formats.shared.document import Described
from eligo.launch import Launch, launch_of
from eligo.rows import Ints
from eligo.theory.skeleton import know_shortcuts, shortcut_mask
from eligo.workflow import DETAILS, Timed, Workflow

MARK = b"\xc1eligo2\n"  # earlier documents cannot begin with it: msgpack does not use 0xc1
LENGTHS = struct.Struct("<II")  # of a frame: compressed, and uncompressed
MOST_VALUES, MOST_LETTERS = 4_096, 2**18  # in one frame
NONE, TEXT = -1, -2  # kinds of values; another kind is the number of words
#: the columns that are stored as they are, with the type of a value; the others hold texts
LISTED: dict[str, Any] = {
    **dict.fromkeys(("seconds", "cores", "memory", "priority"), int | float | None),
    "more_memory": tuple[int, ...] | None, "resources": tuple[tuple[str, float], ...] | None,
}  # fmt: skip
Frames = Iterator[bytes]
T = TypeVar("T")


class DocumentHeader(msgspec.Struct):
    """The description of the frames behind it."""

    name: str | None
    tasks: int
    #: the number of frames of each column, of the sizes of files, and of earlier run times
    columns: dict[str, int]
    sizes: int
    history: int


class Packed(msgspec.Struct):
    """The columns of a workflow in a document of the version without frames."""

    name: str | None
    tasks: list[str]
    tails: bytes
    heads: bytes
    #: for each detail that any task has, its value for every task
    details: dict[str, list[Any]]
    sizes: dict[str, int]
    #: earlier run times: task, kind, seconds
    history: list[tuple[str | None, str | None, float]]


def pack_workflow(flow: Workflow) -> bytes:
    """A workflow as bytes, with labels as the names of tasks, and a mask of the arcs that are shortcuts."""
    flow = flow.labelled()
    dag, columns = flow.dag, {"name": _text_frames([str(name) for name in flow.dag.tasks])}
    for what in DETAILS:
        column = flow.column(what)
        if any(value not in (None, ()) for value in column):
            columns[what] = _frames_of(what, column)
    history = [(None if one.task is None else str(one.task), one.kind, one.seconds) for one in flow.history]
    sizes, times = _listed_frames(list(flow.file_sizes.items())), _listed_frames(history)
    counts = {what: len(frames) for what, frames in columns.items()}
    header = msgspec.msgpack.encode(DocumentHeader(flow.name, len(dag), counts, len(sizes), len(times)))
    arcs = (dag.outdegree.tobytes(), dag.child.tobytes(), np.packbits(shortcut_mask(dag)).tobytes())
    frames = [header, *arcs, *(frame for column in columns.values() for frame in column), *sizes, *times]
    return MARK + b"".join(part for frame in frames for part in _pack_frame(frame))


def _frames_of(what: str, column: Sequence[Any]) -> list[bytes]:
    if what == "launch":
        return _listed_frames([None if launch is None else launch.document() for launch in column])
    return _listed_frames(list(column)) if what in LISTED else _text_frames(column)


def _pack_frame(data: bytes) -> tuple[bytes, bytes]:
    compressed = zlib.compress(data, 1)
    return LENGTHS.pack(len(compressed), len(data)), compressed


def _listed_frames(values: Sequence[object]) -> list[bytes]:
    chunks = (values[i : i + MOST_VALUES] for i in range(0, len(values), MOST_VALUES))
    return [msgspec.msgpack.encode(chunk) for chunk in chunks]


def _text_frames(column: Sequence[str | Sequence[str] | None]) -> list[bytes]:
    """The frames of a column: the kind of value of each task, then all texts in order."""
    kinds = [NONE if value is None else TEXT if isinstance(value, str) else len(value) for value in column]
    texts = (text for value in column if value is not None for text in ((value,) if isinstance(value, str) else value))
    return [np.array(kinds, np.int32).tobytes(), *_split(texts)]


def _split(texts: Iterable[str]) -> Iterator[bytes]:
    part, letters = list[str](), 0
    for text in texts:
        part.append(text)
        letters += len(text)
        if len(part) == MOST_VALUES or letters >= MOST_LETTERS:
            yield msgspec.msgpack.encode(part)
            part, letters = [], 0
    if part:
        yield msgspec.msgpack.encode(part)


class StoredPlan(NamedTuple):
    """The plan of a workflow, each part None if it has none."""

    order: Ints | None = None
    #: the bound of the order
    ceiling: Ints | None = None
    #: the order that keeps its limit of space, without tasks that were added since
    reference: Ints | None = None


def pack_plan(order: Ints | None, ceiling: Ints | None, reference: Ints | None = None) -> bytes | None:
    """A plan as bytes; None if there is nothing in it."""
    if order is None and reference is None:
        return None
    frames = [[array for array in (order, ceiling) if array is not None], [] if reference is None else [reference]]
    data = [b"".join(np.ascontiguousarray(array, np.int32).tobytes() for array in frame) for frame in frames]
    return MARK + b"".join(part for frame in data[: 1 + bool(data[1])] for part in _pack_frame(frame))


def unpack_plan(plan: bytes | None, size: int) -> StoredPlan:
    """The plan that `pack_plan` packed, for a workflow with *size* tasks."""
    if plan is None:
        return StoredPlan()
    try:
        frames = [*_frames(memoryview(plan)[len(MARK) :])] if plan[: len(MARK)] == MARK else [plan]
        numbers, *rest = (np.frombuffer(data, np.int32) for data in frames)
    except (ValueError, zlib.error, struct.error) as error:
        raise InputError(f"the stored plan cannot be read: {error}") from None
    if len(numbers) < size and (len(numbers) or not rest):
        raise InputError(f"the stored plan has {len(numbers):,} numbers, which do not match {size:,} tasks")
    order, reference = numbers[:size] if len(numbers) else None, rest[0] if rest else None
    for part in (order, reference):
        if part is not None and not np.array_equal(np.sort(part), np.arange(len(part))):
            raise InputError("the stored plan does not name every task exactly once")
    return StoredPlan(order, numbers[size:] if len(numbers) > size else None, reference)


def unpack_workflow(document: bytes) -> Workflow:
    """The workflow that `pack_workflow` packed; raises `InputError` for other bytes."""
    try:
        if document[: len(MARK)] != MARK:
            return _read_unframed(document)
        return _read_flow(_frames(memoryview(document)[len(MARK) :]))
    except (msgspec.MsgspecError, zlib.error, struct.error, StopIteration, ValueError, TypeError) as error:
        raise InputError(f"not a stored workflow: {error}") from None


def _frames(document: memoryview) -> Frames:
    place = 0
    while place < len(document):
        length, size = LENGTHS.unpack_from(document, place)
        place += LENGTHS.size + length
        data = zlib.decompressobj().decompress(document[place - length : place], size or 1)
        if len(data) != size or place > len(document):
            raise InputError("a frame does not have the stated length")
        yield data


def _read_flow(frames: Frames) -> Workflow:
    header = msgspec.msgpack.decode(next(frames), type=DocumentHeader)
    size = header.tasks
    degree, heads = (np.frombuffer(next(frames), np.int32) for _ in range(2))
    shortcuts = np.frombuffer(next(frames), np.uint8)
    columns = {what: _column(what, frames, count, size) for what, count in header.columns.items()}
    names = columns.pop("name", ())
    dag = _dag(size, degree, heads, names)
    know_shortcuts(dag, np.unpackbits(shortcuts, count=dag.arc_count).astype(np.bool_))
    sizes = dict(_values(frames, header.sizes, tuple[str, int]))
    history = tuple(Timed(*one) for one in _values(frames, header.history, tuple[str | None, str | None, float]))
    return Workflow(dag, Described(dag, columns), name=header.name, file_sizes=sizes, history=history)


def _dag(size: int, degree: Ints, heads: Ints, names: Sequence[Any]) -> Dag:
    """The dag, with the index of names, which also detects repeated names."""
    index = {name: i for i, name in enumerate(names)}
    if not len(degree) == len(names) == len(index) == size or None in index:
        raise InputError(f"{len(index):,} names for {size:,} tasks")
    within = degree.min(initial=0) >= 0 and heads.min(initial=0) >= 0 and heads.max(initial=-1) < size
    if not within or degree.sum(dtype=np.int64) != len(heads):
        raise InputError("an arc names a task that does not exist")
    tails = np.repeat(np.arange(size, dtype=np.int32), degree)
    dag = Dag.from_checked(size, tails, heads, tuple(names))
    vars(dag)["index"] = index
    return dag


def _column(what: str, frames: Frames, count: int, size: int) -> Any:
    if what not in {"name", *DETAILS}:
        raise InputError(f"unknown task column {what!r}")
    if what == "launch":
        column = _launches(_values(frames, count, dict[str, Any] | None))
    elif what in LISTED:
        column = tuple(_values(frames, count, LISTED[what]))
    else:
        column = _texts(np.frombuffer(next(frames), np.int32), _values(frames, count - 1, str))
    if len(column) != size:
        raise InputError(f"{len(column):,} values of {what!r} for {size:,} tasks")
    return column


def _launches(documents: Sequence[Mapping[str, Any] | None]) -> tuple[Launch | None, ...]:
    """How the command of each task is run; equal ones are one object."""
    launches = {repr(document): document for document in documents}
    objects = {text: None if document is None else launch_of(document) for text, document in launches.items()}
    return tuple([objects[repr(document)] for document in documents])


def _texts(kinds: Ints, texts: list[str]) -> tuple[Any, ...]:
    if (kinds == TEXT).all():
        return tuple(texts)
    if (kinds == TEXT).sum() + kinds[kinds > 0].sum(dtype=np.int64) != len(texts):
        raise InputError(f"wrong number of texts: {len(texts):,}")
    words = iter(texts)
    return tuple([_value(kind, words) for kind in kinds.tolist()])


def _value(kind: int, words: Iterator[str]) -> str | tuple[str, ...] | None:
    if kind == TEXT:
        return next(words)
    return None if kind == NONE else tuple(islice(words, kind))


def _values(frames: Frames, count: int, kind: Any) -> list[Any]:
    """The values of the next *count* frames, decoded one frame at a time."""
    decode: Callable[[bytes], list[Any]] = msgspec.msgpack.Decoder(list[kind]).decode
    values = list[Any]()
    for _ in range(count):
        values += decode(next(frames))
    return values


def _read_unframed(document: bytes) -> Workflow:
    """The workflow of a document without frames."""
    stored = msgspec.msgpack.decode(document, type=Packed)
    tails, heads = np.frombuffer(stored.tails, np.int32), np.frombuffer(stored.heads, np.int32)
    dag = Dag.from_arrays(len(stored.tasks), tails, heads, stored.tasks)
    if any(len(column) != len(dag) for column in stored.details.values()):
        raise InputError("a column does not have one value per task")
    history = tuple(Timed(*one) for one in stored.history)
    details = {what: [*map(_as_tuple, column)] for what, column in stored.details.items()}
    return Workflow(dag, Described(dag, details), name=stored.name, file_sizes=stored.sizes, history=history)


def _as_tuple(value: Any) -> Any:
    return tuple(value) if type(value) is list else value
