"""The native document: what a JSON or YAML file of ours says, as dicts and lists, and the workflow that it describes.

Either arcs, and where order matters or a task has no arc, all tasks as nodes:

    {"arcs": [["a", "b"]], "nodes": ["a", "b", "c"]}

or tasks with what is known of them, each but the name optional:

    {"name": "two steps",
     "tasks": [{"name": "a", "run": "make a", "seconds": 2, "cores": 1, "memory": 1000, "category": "make"},
               {"name": "b", "after": ["a"], "run": ["make", "b"], "inputs": ["a.o"], "outputs": ["b.o"]}],
     "files": {"a.o": 12345}}

`after` names the tasks that this one needs, also such as are defined further down. `run` is a line for a shell, or the
words of one command. `seconds` may have a fraction; `memory` and the sizes of files are in bytes. Names are strings, in
quotes where they look like numbers. A key that is not listed here is refused.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, pairwise
from typing import Any

from eligo.dag import Dag
from eligo.errors import DuplicateTaskError, FormatError, shorten
from eligo.formats.json_text import line_of
from eligo.rows import Ints
from eligo.workflow import Origin, Task, Workflow

TOP_KEYS = ("name", "arcs", "nodes", "tasks", "files")
TASK_KEYS = dict.fromkeys(  # a set in the order in which messages list it
    ("name", "after", "run", "inputs", "outputs", "seconds", "cores", "memory", "category", "priority")
).keys()


class MisfitError(FormatError):
    """A document says something that its format does not know; `word` is what to look for in the text."""

    def __init__(self, message: str, word: str | None = None) -> None:
        self.word = word
        super().__init__(message)


@contextmanager
def misfits_in(text: str) -> Iterator[None]:
    """Turn a MisfitError into a FormatError with the line, where the word tells it."""
    try:
        yield
    except MisfitError as error:
        line = line_of(text, error.word) if error.word else None
        raise FormatError(error.message, line=line) from None


def workflow_of(document: object, text: str, format: str) -> Workflow:
    """The workflow that a document describes; *text* is what it was read from, for the line in errors."""
    with misfits_in(text):
        top = _known(document, "the document", TOP_KEYS)
        name = None if top.get("name") is None else string(top["name"], "the workflow's name")
        dag, details = _tasks(top) if top.get("tasks") is not None else (_arcs(top), {})
        return Workflow(dag, details, name, Origin(format=format), _sizes(top))


def document_of(flow: Workflow) -> dict[str, object]:
    """The document that describes a workflow: tasks where anything is known of them, else arcs and nodes."""
    document: dict[str, object] = {} if flow.name is None else {"name": flow.name}
    if any(task.details() for task in flow.details.values()):
        document["tasks"] = [
            _row(flow.details.get(name), name, needs)
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


def _tasks(top: Mapping[str, Any]) -> tuple[Dag, dict[str, Task]]:
    for other in ("arcs", "nodes"):
        if top.get(other) is not None:
            raise MisfitError(f'"tasks" and "{other}" say the same twice: give one of them', other)
    needs: dict[str, list[str]] = {}
    details = {}
    for number, row in enumerate(array(top["tasks"], '"tasks"'), 1):
        if type(row) is not dict or not row.keys() <= TASK_KEYS:
            _known(row, f"task {number}", TASK_KEYS)
        name = row.get("name")
        if type(name) is not str:
            string(name, f"the name of task {number}")
        if name in needs:
            raise DuplicateTaskError(name)
        needs[name] = strings(row.get("after"), name, "after")
        known = _task(name, row)
        if known:
            details[name] = known
    return Dag.from_parents(needs), details


def _task(name: str, row: Mapping[str, Any]) -> Task | None:
    known = {
        _FIELDS.get(key, key): _READERS[key](value, name, key)
        for key, value in row.items()
        if key in _READERS and value is not None and value != []
    }
    return Task(name=name, **known) if known else None


def _command(run: object, name: str, key: str) -> str | tuple[str, ...]:
    return run if isinstance(run, str) else tuple(strings(run, name, key))


def _arcs(top: Mapping[str, Any]) -> Dag:
    if top.get("arcs") is None and top.get("nodes") is None:
        raise MisfitError('there are no tasks: give "tasks", or "arcs", or "nodes"')
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
        raise MisfitError(f'"files" is {kind(files)}, and should give the size in bytes of each file by name')
    return {name: size(value, name, "size") for name, value in files.items() if value is not None}


# The values that a document may hold, each checked where it is taken out


def _known(value: object, what: str, keys: Collection[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise MisfitError(f"{what} is {kind(value)}, and should have the keys {', '.join(keys)}")
    for key in value:
        if key not in keys:
            message = f"{what} has the unknown key {shorten(str(key))!r}: the keys are {', '.join(keys)}"
            raise MisfitError(message, str(key))
    return value


def array(value: object, what: str) -> list[Any]:
    """The value as a list; None is an empty one."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise MisfitError(f"{what} is {kind(value)}, and should be a list")
    return value


def string(value: object, what: str) -> str:
    """The value, if it is a string."""
    if isinstance(value, str):
        return value
    if value is None:
        raise MisfitError(f"{what} is missing")
    if isinstance(value, bool | int | float):
        raise MisfitError(f"{what} is {kind(value)}, and should be a string: put it in quotes")
    raise MisfitError(f"{what} is {kind(value)}, and should be a string")


def strings(value: object, name: str, key: str) -> list[str]:
    """The value of *key* of the task of this *name*, if it is a list of strings; None is an empty one."""
    if value is None:
        return []
    if type(value) is not list:
        raise MisfitError(f"{_of_task(key, name)} is {kind(value)}, and should be a list of strings")
    if not set(map(type, value)) <= {str}:
        _all_strings(value, f"an item of {_of_task(key, name)}")
    return value


def number(value: object, name: str, key: str) -> float:
    """The value of *key* of the task of this *name*, if it is a number."""
    if type(value) is float:
        return value
    if type(value) is not int:
        raise MisfitError(f"{_of_task(key, name)} is {kind(value)}, and should be a number")
    if value.bit_length() > 63:
        raise MisfitError(f"{_of_task(key, name)} is too large a number")
    return value if key == "cores" else float(value)


def size(value: object, name: str, key: str) -> int:
    """The value of *key* of the task or file of this *name*, if it is a number of bytes; 1e6 is one too."""
    whole = int(value) if type(value) is float and value.is_integer() else value
    if type(whole) is not int or not 0 <= whole < 2**63:
        shown = value if isinstance(value, float) or (type(value) is int and abs(value) < 2**64) else kind(value)
        raise MisfitError(f"{_of_task(key, name)} is {shown}, and should be a whole number of bytes")
    return whole


def kind(value: object) -> str:
    """What a value is, for a message."""
    if value is None:
        return "missing"
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


def _whole(value: object, name: str, key: str) -> int:
    if type(value) is not int:
        raise MisfitError(f"{_of_task(key, name)} is not a whole number", key)
    return value


_READERS: dict[str, Callable[[object, str, str], Any]] = {
    "run": _command,
    "inputs": _words,
    "outputs": _words,
    "seconds": number,
    "cores": number,
    "memory": size,
    "category": _word,
    "priority": _whole,
}
_FIELDS = {"run": "command"}


# Writing


def _row(task: Task | None, name: str, needs: tuple[str, ...]) -> dict[str, object]:
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
