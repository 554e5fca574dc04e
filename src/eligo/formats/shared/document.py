"""The native document: what a JSON or YAML file of ours says, as dicts and lists, and the workflow that it describes.

Either arcs, and where order matters or a task has no arc, all tasks as nodes:

    {"arcs": [["a", "b"]], "nodes": ["a", "b", "c"]}

or tasks with what is known of them, each but the name optional:

    {"name": "two steps",
     "tasks": [{"name": "a", "run": "make a", "seconds": 2, "cores": 1, "memory": 1000, "labels": ["gpu"]},
               {"name": "b", "after": ["a"], "run": ["make", "b"], "inputs": ["a.o"], "outputs": ["b.o"]}],
     "files": {"a.o": 12345}}

`after` names the tasks that this one needs, also such as are defined further down. A task that reads a file (`inputs`) comes
after the task that writes it (`outputs`), too; `"arcs_from": "after"` beside the tasks turns that off. `run` is a line for a
shell, or the words of one command. `seconds` may have a fraction; `memory` and the sizes of files are in bytes; `labels` are
what the machine must have. Names are strings, in quotes where they look like numbers. A key that is not listed here is
refused.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, pairwise
from typing import Any

import numpy as np

from eligo.dag import Dag
from eligo.errors import CycleError, DuplicateTaskError, FormatError, InputError, UnknownTaskError, shorten
from eligo.formats.shared import data_arcs
from eligo.formats.shared.columns import Column, Columns, Described
from eligo.formats.shared.json_text import line_of
from eligo.names import check_label
from eligo.rows import Ints
from eligo.workflow import Origin, Task, Workflow

#: what each task reads, and what each writes
_ReadAndWritten = tuple[data_arcs.SparseFiles, data_arcs.SparseFiles]
#: takes a value, the task's name and the key, and returns the value checked
Reader = Callable[[object, str, str], Any]

TOP_KEYS = ("name", "arcs", "nodes", "tasks", "files", "arcs_from")
#: what makes arcs between tasks: what each comes after alone, or also who reads what another writes
AFTER, FILES = SOURCES = ("after", "files")
TASK_KEYS = dict.fromkeys(  # a set in the order in which messages list it
    ("name", "after", "run", "inputs", "outputs", "seconds", "cores", "memory", "labels", "category", "priority")
).keys()


#: the keys of templates, which are expanded before a document is read; see `eligo.formats.shared.templates`
PARAMS, FOREACH = "params", "foreach"


class MisfitError(FormatError):
    """A document says something that its format does not know; `word`, or the name of a `task`, is looked for in the text."""

    def __init__(self, message: str, word: str | None = None, task: str | None = None) -> None:
        self.word, self.task = word, task
        super().__init__(message)


@contextmanager
def misfits_in(text: str) -> Iterator[None]:
    """Turn a MisfitError into a FormatError with its line, if that can be found."""
    try:
        yield
    except MisfitError as error:
        line = line_of(text, error.word) if error.word else None
        line = _line_of_task(text, error.task) if error.task is not None else line
        raise FormatError(error.message, line=line) from None


def _line_of_task(text: str, name: str) -> int | None:
    """The line on which a task is given its name; None where it is not written as it is."""
    match = re.search(rf"""\bname["']?\s*:\s*["']?{re.escape(name)}["']?\s*(?:[,}}#]|$)""", text, re.MULTILINE)
    return None if match is None else text.count("\n", 0, match.start()) + 1


def workflow_of(document: object, text: str, format: str) -> Workflow:
    """The workflow that a document describes; *text* is what it was read from, for the line in errors."""
    with misfits_in(text):
        top = _check_keys(document, "the document", TOP_KEYS)
        name = None if top.get("name") is None else string(top["name"], "the workflow's name")
        dag, details = (_arcs(top), None) if top.get("tasks") is None else _tasks(top)
        return Workflow(dag, details or {}, name, Origin(format=format), _sizes(top))


def document_of(flow: Workflow) -> dict[str, object]:
    """The document that describes a workflow: tasks where anything is known of them, else arcs and nodes."""
    document: dict[str, object] = {} if flow.name is None else {"name": flow.name}
    if any(task.details() for task in flow.details.values()):
        if _files_say_more(flow):
            document["arcs_from"] = AFTER
        document["tasks"] = [
            row_of(flow.details.get(name), name, needs)
            for name, needs in zip(flow.dag.tasks, parents(flow.dag), strict=True)
        ]
    else:
        document["arcs"] = [list(arc) for arc in flow.dag.arcs()]
        document["nodes"] = list(flow.dag.tasks)
    if flow.file_sizes:
        document["files"] = dict(flow.file_sizes)
    return document


def parents(dag: Dag) -> list[tuple[str, ...]]:
    """The parents of every task, by name."""
    return _rows(dag, dag.parent_ptr, dag.parent)


def children(dag: Dag) -> list[tuple[str, ...]]:
    """The children of every task, by name."""
    return _rows(dag, dag.child_ptr, dag.child)


def _rows(dag: Dag, ptr: Ints, ends: Ints) -> list[tuple[str, ...]]:
    cuts, names = ptr.tolist(), dag.named(ends)
    return [names[a:b] for a, b in pairwise(cuts)]


# Reading


def _tasks(top: Mapping[str, Any]) -> tuple[Dag, Described]:
    for other in ("arcs", "nodes"):
        if top.get(other) is not None:
            raise MisfitError(f'"tasks" and "{other}" cannot be combined (give one of them)', other)
    rows = array(top["tasks"], '"tasks"')
    if not set(map(type, rows)) <= {dict} or not set().union(*set(map(tuple, rows))) <= TASK_KEYS:
        for i, row in enumerate(rows, 1):
            _check_keys(row, f"task {i}", TASK_KEYS)
    table = Columns(rows, TASK_KEYS)
    names = table.filled("name")
    if not set(map(type, names)) <= {str}:
        for i, name in enumerate(names, 1):
            string(name, f"the name of task {i}")
    fields = {_FIELDS.get(key, key): _read(table[key], names, key) for key in _READERS}
    inputs, outputs = fields["inputs"], fields["outputs"]
    linking = _source_of_arcs(top) == FILES and outputs is not None
    dag = _linked(names, table["after"], (inputs or [None] * len(names), outputs or []) if linking else None)
    return dag, Described(dag, fields)


def _source_of_arcs(top: Mapping[str, Any]) -> str:
    """What makes the arcs of a document's tasks."""
    source = FILES if top.get("arcs_from") is None else top["arcs_from"]
    if source not in SOURCES:
        actual = repr(shorten(source)) if isinstance(source, str) else kind(source)
        raise MisfitError(f'"arcs_from" must be "after" or "files", got {actual}', "arcs_from")
    return str(source)


def lists(values: Column, names: Sequence[str], key: str) -> Sequence[Sequence[str]]:
    """A list of strings for each task, empty where *values* has none."""
    if values is None:
        return [()] * len(names)
    if None in values:
        values = [() if value is None else value for value in values]
    if set(map(type, values)) <= {list, tuple} and set(map(type, chain.from_iterable(values))) <= {str}:
        return values
    return [strings(None if value == () else value, name, key) for value, name in zip(values, names, strict=True)]


def _read(values: Column, names: Sequence[str], key: str) -> Column:
    """The values that *key* has for each task, checked."""
    if values is None or set(map(type, values)) == {_PLAIN.get(key)}:
        return values
    read = _READERS[key]
    return [
        None if value is None or value == [] else read(value, name, key)
        for value, name in zip(values, names, strict=True)
    ]


def _linked(names: Sequence[str], needs: Column, files: _ReadAndWritten | None = None) -> Dag:
    """The dag of the tasks of these names, each with the names of those it needs; and with the arcs that files make."""
    index = dict(zip(names, range(len(names)), strict=True))
    if len(index) < len(names):
        raise DuplicateTaskError(next(name for i, name in enumerate(names) if index[name] > i))

    def unknown(words: Sequence[str]) -> Ints:
        raise UnknownTaskError(next(word for word in words if word not in index))

    tails, counts = references(needs, names, "after", index, unknown)
    heads = np.repeat(np.arange(len(names), dtype=np.int32), counts)
    if files is None:
        return Dag.from_arrays(len(names), tails, heads, names)
    return _linked_by_files(names, tails, heads, files)


def _linked_by_files(names: Sequence[str], tails: Ints, heads: Ints, files: _ReadAndWritten) -> Dag:
    """The same dag, in which whoever reads a file also comes after the task that writes it."""
    inputs, outputs = files
    twice = data_arcs.written_twice(outputs)
    if twice is not None:
        file, *both = twice
        first, second = (repr(shorten(names[v])) for v in both)
        message = f"tasks {first} and {second} both write {shorten(file)!r}: list it in the outputs of one of them"
        raise MisfitError(
            f'{message}, or set "arcs_from" to "after" and order the tasks with "after"', task=names[both[1]]
        )
    more = data_arcs.beyond(tails, heads, data_arcs.written_once(inputs, outputs), len(names))
    tails, heads = np.concatenate((tails, more[0])), np.concatenate((heads, more[1]))
    try:
        return Dag.from_arrays(len(names), tails, heads, names)
    except CycleError as error:
        raise _cycle_through_files(error, dict(zip(names, zip(inputs, outputs, strict=True), strict=True))) from None


def _cycle_through_files(error: CycleError, files: Mapping[str, tuple[Any, Any]]) -> Exception:
    """A cycle, with the files on its way; the error itself where there are none."""
    shared = [
        (child, file, parent)
        for parent, child in pairwise(map(str, error.cycle))
        for file in files[child][0] or ()
        if data_arcs.plain_path(file) in map(data_arcs.plain_path, files[parent][1] or ())
    ]
    if not shared:
        return error
    reads = [f"{shorten(c)!r} reads {shorten(file)!r}, which {shorten(p)!r} writes" for c, file, p in shared[:3]]
    return MisfitError(f"{error} ({'; '.join(reads)})", task=shared[0][0])


def _files_say_more(flow: Workflow) -> bool:
    """Whether the files of a workflow would make arcs that it does not have, or have several writers."""
    inputs, outputs = ([files or None for files in flow.column(key)] for key in ("inputs", "outputs"))
    if data_arcs.written_twice(outputs) is not None:
        return True
    arcs = data_arcs.written_once(inputs, outputs)
    return len(data_arcs.beyond(flow.dag.tails, flow.dag.child, arcs, len(flow))[0]) > 0


def references(
    values: Column,
    names: Sequence[str],
    key: str,
    index: Mapping[str, int],
    otherwise: Callable[[Sequence[str]], Ints],
) -> tuple[Ints, Ints]:
    """The number in *index* of every word in lists of words, and the length of each list.

    Where not all words are in it, *otherwise* finds their numbers.
    """
    if values is not None and set(map(type, values)) == {list}:
        try:
            numbers = np.fromiter(map(index.__getitem__, chain.from_iterable(values)), np.int32)
            return numbers, np.fromiter(map(len, values), np.int32, len(values))
        except (KeyError, TypeError):
            pass  # TypeError: something that is not even hashable
    checked = lists(values, names, key)
    words = list(chain.from_iterable(checked))
    missing = any(word not in index for word in words)
    numbers = otherwise(words) if missing else np.array([index[word] for word in words], np.int32)
    return numbers, np.fromiter(map(len, checked), np.int32, len(checked))


def _command(run: object, name: str, key: str) -> str | tuple[str, ...]:
    return run if isinstance(run, str) else tuple(strings(run, name, key))


def _arcs(top: Mapping[str, Any]) -> Dag:
    if top.get("arcs_from") is not None:
        raise MisfitError('"arcs_from" needs "tasks", which this document does not have', "arcs_from")
    if top.get("arcs") is None and top.get("nodes") is None:
        raise MisfitError('no tasks (give "tasks", "arcs" or "nodes")')
    arcs, nodes = array(top.get("arcs"), '"arcs"'), top.get("nodes")
    if not set(map(type, arcs)) <= {list} or not set(map(len, arcs)) <= {2}:
        wrong = next(i for i, arc in enumerate(arcs, 1) if type(arc) is not list or len(arc) != 2)
        raise MisfitError(f'arc {wrong} is not a pair of names such as ["a", "b"]')
    _all_strings(list(chain.from_iterable(arcs)), "the name of a task in an arc")
    if nodes is not None:
        _all_strings(array(nodes, '"nodes"'), "the name of a node")
    return Dag.from_arcs(arcs, nodes)


def _sizes(top: Mapping[str, Any]) -> dict[str, int]:
    files = top.get("files")
    if files is None:
        return {}
    if not isinstance(files, dict):
        raise MisfitError(f'"files" must be an object with the size in bytes of each file, got {kind(files)}')
    return {name: size(value, name, "size") for name, value in files.items() if value is not None}


# The values that a document may hold, each checked where it is taken out


def _check_keys(value: object, what: str, keys: Collection[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise MisfitError(f"{what} must be an object with the keys {', '.join(keys)}, got {kind(value)}")
    for key in value:
        if key not in keys:
            known = ", ".join((*keys, PARAMS if "tasks" in keys else FOREACH))
            message = f"{what} has the unknown key {shorten(str(key))!r} (known keys: {known})"
            raise MisfitError(message, str(key))
    return value


def mapping(value: object, what: str) -> Mapping[str, Any]:
    """The value, if it is an object."""
    if not isinstance(value, dict):
        raise MisfitError(f"{what} must be an object, got {kind(value)}")
    return value


def array(value: object, what: str) -> list[Any]:
    """The value as a list; None is an empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise MisfitError(f"{what} must be a list, got {kind(value)}")
    return value


def string(value: object, what: str) -> str:
    """The value, if it is a string."""
    if isinstance(value, str):
        return value
    if value is None:
        raise MisfitError(f"{what} is missing")
    if isinstance(value, bool | int | float):
        raise MisfitError(f"{what} must be a string, got {kind(value)} (put it in quotes)")
    raise MisfitError(f"{what} must be a string, got {kind(value)}")


def strings(value: object, name: str, key: str) -> list[str]:
    """The value of *key* of the task of this *name*, if it is a list of strings; None is an empty one."""
    if value is None:
        return []
    if type(value) is not list:
        raise MisfitError(f"{_of_task(key, name)} must be a list of strings, got {kind(value)}")
    if not set(map(type, value)) <= {str}:
        _all_strings(value, f"an item of {_of_task(key, name)}")
    return value


def number(value: object, name: str, key: str) -> float:
    """The value of *key* of the task of this *name*, if it is a number."""
    if type(value) is float:
        return value
    if type(value) is not int:
        raise MisfitError(f"{_of_task(key, name)} must be a number, got {kind(value)}")
    if value.bit_length() > 63:
        raise MisfitError(f"{_of_task(key, name)} is too large")
    return value if key == "cores" else float(value)


def size(value: object, name: str, key: str) -> int:
    """The value of *key* of the task or file of this *name*, if it is a number of bytes; 1e6 is one too."""
    count = int(value) if type(value) is float and value.is_integer() else value
    if type(count) is not int or not 0 <= count < 2**63:
        actual = value if isinstance(value, float) or (type(value) is int and abs(value) < 2**64) else kind(value)
        raise MisfitError(f"{_of_task(key, name)} must be an integer number of bytes, got {actual}")
    return count


def kind(value: object) -> str:
    """What a value is, for a message."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return "a number"
    return "a string" if isinstance(value, str) else "a list" if isinstance(value, list) else "an object"


def _all_strings(values: Iterable[object], what: str) -> None:
    if not set(map(type, values)) <= {str}:
        for value in values:
            string(value, what)


def _of_task(key: str, name: str) -> str:
    return f'"{key}" of {shorten(name)!r}'


def _word(value: object, name: str, key: str) -> str:
    return string(value, _of_task(key, name))


def _words(value: object, name: str, key: str) -> tuple[str, ...]:
    return tuple(strings(value, name, key))


def _labels(value: object, name: str, key: str) -> tuple[str, ...]:
    labels = tuple(dict.fromkeys(strings(value, name, key)))
    for label in labels:
        try:
            check_label(label, f"task {shorten(name)!r}: ")
        except InputError as error:
            raise MisfitError(str(error), label) from None
    return labels


def _whole(value: object, name: str, key: str) -> int:
    if type(value) is not int:
        raise MisfitError(f"{_of_task(key, name)} must be an integer", key)
    return value


_READERS: dict[str, Reader] = {
    "run": _command,
    "inputs": _words,
    "outputs": _words,
    "seconds": number,
    "cores": number,
    "memory": size,
    "labels": _labels,
    "category": _word,
    "priority": _whole,
}
_FIELDS = {"run": "command"}
_PLAIN: dict[str, type] = {"run": str, "seconds": float, "category": str, "priority": int}  # need no reading


# Writing


def row_of(task: Task | None, name: str, needs: tuple[str, ...] = ()) -> dict[str, object]:
    """The row of a document that describes a task."""
    row: dict[str, object] = {"name": name}
    if needs:
        row["after"] = list(needs)
    if task:
        for key in _READERS:
            value = getattr(task, _FIELDS.get(key, key))
            if value is not None and value != ():
                row[key] = list(value) if isinstance(value, tuple) else short(value)
    return row


def short(value: object) -> object:
    """A number without the fraction that it does not have.

    >>> short(2.0), short(2.5)
    (2, 2.5)
    """
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value
