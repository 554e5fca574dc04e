"""Documents of JSON or YAML, as dicts and lists: eligo's own, and how values and columns of any are checked.

A document of eligo's own lists arcs. It also lists all tasks, as nodes, if their order matters or a task has no arc:

    {"arcs": [["a", "b"]], "nodes": ["a", "b", "c"]}

Or it lists tasks with their details, all optional except the name:

    {"name": "two steps",
     "tasks": [{"name": "a", "run": "make a", "seconds": 2, "cores": 1, "memory": 1000, "labels": ["gpu"]},
               {"name": "b", "after": ["a"], "run": ["make", "b"], "inputs": ["a.o"], "outputs": ["b.o"]}],
     "files": {"a.o": 12345}, "hooks": {"on_failure": "./tell"}}

`after` names the tasks that this one depends on, which may be defined further down. A task that reads a file (`inputs`) also
depends on the task that writes it (`outputs`), unless the document has `"arcs_from": "after"`. `run` is a command line for
a shell, or the words of one command. `seconds` may have a fraction; `memory` and the sizes of files are in bytes, or
strings such as "2G"; a list of `memory` has an amount for each attempt after a failure. `gpus` is a number of graphics
processors, and `resources` an object with amounts of anything else that tasks share. `labels` are what the machine must
have. An output that a run may remove once every task
that reads it is done is `{"name": "b.o", "temporary": true}`, or matches a pattern in the list `temporary` of the document.
The keys of `eligo.launch` say how `run` is run. `defaults` has keys for all tasks (see
`eligo.formats.shared.defaults`). Names are strings, in quotes if they look like numbers. Unknown keys are refused.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from fnmatch import translate
from itertools import chain, pairwise, repeat
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from eligo.dag import Dag
from eligo.errors import CycleError, DuplicateTaskError, FormatError, InputError, UnknownTaskError, is_amount, shorten
from eligo.formats.shared import data_arcs
from eligo.formats.shared.json_text import line_of
from eligo.launch import LAUNCH_KEYS, Launch, launch_of
from eligo.names import check_label
from eligo.rows import Ints
from eligo.work.demands import CORES, GPUS, MEMORY, amount_in, bytes_in
from eligo.workflow import HOOKS, LazyDetails, Origin, Task, Workflow

#: the files that each task reads, and the files that each writes
_ReadAndWritten = tuple[data_arcs.SparseFiles, data_arcs.SparseFiles]
#: a value for each row, None if it has none; or None if no row has one
Column = list[Any] | None
#: checks a value, for the task's name and the key, and returns its meaning
Reader = Callable[[object, str, str], Any]

TOP_KEYS = ("name", "arcs", "nodes", "tasks", "files", "temporary", "arcs_from", "defaults", "hooks")
#: the sources of arcs between tasks: `after` alone, or also files that one task writes and another reads
AFTER, FILES = SOURCES = ("after", "files")
TASK_KEYS = dict.fromkeys(  # a set in the order in which messages list it
    (
        *("name", "after", "run", "inputs", "outputs", "seconds", "cores", "memory", "gpus", "resources", "labels"),
        *("category", "priority", *LAUNCH_KEYS),
    )
).keys()


#: the keys of templates, which are expanded before a document is read; see `eligo.formats.shared.templates`
PARAMS, FOREACH = "params", "foreach"
#: of an output, or of the document, whose patterns match outputs
TEMPORARY = "temporary"
OUTPUT_KEYS = ("name", TEMPORARY)


class MisfitError(FormatError):
    """A document does not fit its format; `word`, or the name of a `task`, is searched for in the text to find the line."""

    def __init__(self, message: str, word: str | None = None, task: str | None = None) -> None:
        self.word, self.task = word, task
        super().__init__(message)


@contextmanager
def misfits_in(text: str) -> Iterator[None]:
    """Turn a MisfitError into a FormatError with its line, if the line can be determined."""
    try:
        yield
    except MisfitError as error:
        line = line_of(text, error.word) if error.word else None
        line = _line_of_task(text, error.task) if error.task is not None else line
        raise FormatError(error.message, line=line) from None


def _line_of_task(text: str, name: str) -> int | None:
    """The number of the line that names a task; None if the name is written in another way."""
    match = re.search(rf"""\bname["']?\s*:\s*["']?{re.escape(name)}["']?\s*(?:[,}}#]|$)""", text, re.MULTILINE)
    return None if match is None else text.count("\n", 0, match.start()) + 1


def workflow_of(document: object, text: str, format: str) -> Workflow:
    """The workflow that a document describes; *text* is its source, for the line in errors."""
    with misfits_in(text):
        top = _check_keys(document, "the document", TOP_KEYS)
        name = None if top.get("name") is None else string(top["name"], "the workflow's name")
        dag, details = (_arcs(top), None) if top.get("tasks") is None else _tasks(top)
        return Workflow(dag, details or {}, name, Origin(format=format), _sizes(top), hooks=_hooks(top))


def document_of(flow: Workflow) -> dict[str, object]:
    """The document of a workflow: tasks if any of them has details, else arcs and nodes."""
    document: dict[str, object] = {} if flow.name is None else {"name": flow.name}
    if any(task.details() for task in flow.details.values()):
        if _files_say_more(flow):
            document["arcs_from"] = AFTER
        if shared := _shared_launch(flow):
            document["defaults"] = shared.document()
        document["tasks"] = [
            row_of(flow.details.get(name), name, needs, shared)
            for name, needs in zip(flow.dag.tasks, parents(flow.dag), strict=True)
        ]
    else:
        document["arcs"] = [list(arc) for arc in flow.dag.arcs()]
        document["nodes"] = list(flow.dag.tasks)
    if flow.file_sizes:
        document["files"] = dict(flow.file_sizes)
    if flow.hooks:
        document["hooks"] = {name: list(run) if isinstance(run, tuple) else run for name, run in flow.hooks.items()}
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


# Columns

_AMOUNTS = {"seconds", "cores", "memory"}
_INFINITE = float("inf")


class Columns:
    """Rows as columns: the values that all rows have for a key, as one list; None if no row has the key.

    Checked a column at a time, a file of many tasks is read in a fraction of the time and memory that rows take.

    >>> table = Columns([{"name": "a", "cores": 2}, {"name": "b"}], ("name", "cores", "memory"))
    >>> table["name"], table["cores"], table["memory"]
    (['a', 'b'], [2, None], None)
    """

    def __init__(self, rows: Sequence[Mapping[str, Any]], keys: Collection[str]) -> None:
        self.size = len(rows)
        self._columns = _equal_columns(rows, keys) or _merged_columns(rows, keys)

    def __getitem__(self, key: str) -> Column:
        return self._columns.get(key)

    def full_column(self, key: str) -> list[Any]:
        """The column of a key; a list of None if no row has the key."""
        return self._columns.get(key) or [None] * self.size

    def place(self, places: Sequence[int], size: int) -> "Columns":
        """A table of *size* rows, whose row places[i] is row i of this table; the others are empty."""
        table = Columns((), ())
        table.size = size
        for key, column in self._columns.items():
            moved = table._columns[key] = [None] * size
            for place, value in zip(places, column, strict=True):
                moved[place] = value
        return table


def _equal_columns(rows: Sequence[Mapping[str, Any]], keys: Collection[str]) -> dict[str, list[Any]] | None:
    """The columns of rows that all have the same two or more keys; None for other rows."""
    first = list(rows[0]) if rows else []
    if len(first) < 2 or set(map(len, rows)) != {len(first)}:
        return None
    try:
        columns = zip(*map(itemgetter(*first), rows), strict=True)
    except KeyError:
        return None
    return {key: list(column) for key, column in zip(first, columns, strict=True) if key in keys}


def _merged_columns(rows: Sequence[Mapping[str, Any]], keys: Collection[str]) -> dict[str, list[Any]]:
    present = set().union(*set(map(tuple, rows))).intersection(keys)
    return {key: [row.get(key) for row in rows] for key in present}


class Described(LazyDetails):
    """The details of the tasks of a dag, from a column for each field; a `Task` is made when it is asked for.

    >>> Described(Dag.from_arcs([], "ab"), {"cores": [2, None]})["a"]
    Task('a', cores=2)
    """

    def __init__(self, dag: Dag, fields: Mapping[str, Column]) -> None:
        self._dag, self._fields = dag, {key: column for key, column in fields.items() if column is not None}
        for key in _AMOUNTS & self._fields.keys():
            for name, amount in zip(dag.tasks, self._fields[key], strict=True):
                if amount is not None and not 0 <= amount < _INFINITE:
                    Task(name=name, **{key: amount})  # raises

    def __getitem__(self, name: str) -> Task:
        i = self._dag.index[name]
        details = {key: column[i] for key, column in self._fields.items() if column[i] is not None}
        if not details:
            raise KeyError(name)
        return Task(name=name, **details)

    def __iter__(self) -> Iterator[str]:
        return (name for name, has_details in zip(self._dag.tasks, self._has_details(), strict=True) if has_details)

    def __len__(self) -> int:
        return sum(self._has_details())

    def __bool__(self) -> bool:
        return any(self._has_details())  # without counting a million

    def column(self, what: str) -> list[Any]:
        """See `LazyDetails`."""
        nothing = () if what in {"inputs", "outputs", "temporary", "labels", "more_memory", "resources"} else None
        values = self._fields.get(what)
        return [nothing if value is None else value for value in values or repeat(None, len(self._dag))]

    def __repr__(self) -> str:
        return f"Described({len(self)} tasks)"

    def _has_details(self) -> Iterator[bool]:
        """For each task, whether any field has a value."""
        if not self._fields:
            return repeat(False, len(self._dag))
        return (any(value is not None for value in values) for values in zip(*self._fields.values(), strict=True))


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
    names = table.full_column("name")
    if not set(map(type, names)) <= {str}:
        for i, name in enumerate(names, 1):
            string(name, f"the name of task {i}")
    fields = {_FIELDS.get(key, key): _read(table[key], names, key) for key in _READERS}
    fields["launch"] = _launches(table, names)
    _join_resources(fields)
    _split_outputs(fields, strings(top.get(TEMPORARY), "the document", TEMPORARY))
    inputs, outputs = fields["inputs"], fields["outputs"]
    linking = _source_of_arcs(top) == FILES and outputs is not None
    dag = _dag(names, table["after"], (inputs or [None] * len(names), outputs or []) if linking else None)
    return dag, Described(dag, fields)


def _join_resources(fields: dict[str, Column]) -> None:
    """Turn the values of `memory`, `gpus` and `resources` into the fields of a task."""
    gpus, others, memory = fields.pop("gpus"), fields["resources"], fields["memory"] or []
    if gpus is not None:
        pairs = zip(gpus, others or repeat(None), strict=False)
        fields["resources"] = [(((GPUS, n),) if n else ()) + (other or ()) or None for n, other in pairs]
    if any(type(each) is tuple for each in memory):
        fields["more_memory"] = [each[1:] if type(each) is tuple else None for each in memory]
        fields["memory"] = [each[0] if type(each) is tuple else each for each in memory]


def _split_outputs(fields: dict[str, Column], patterns: Sequence[str]) -> None:
    """Divide the values of `outputs` into the names of all files, and of those that are temporary or match a pattern."""
    column = fields["outputs"] or []
    flagged = any(type(each) is Outputs for each in column)
    if flagged:
        fields["temporary"] = [each.temporary if type(each) is Outputs else None for each in column]
        column = fields["outputs"] = [each.files if type(each) is Outputs else each for each in column]
    if patterns:
        matches = re.compile("|".join(map(translate, patterns))).match
        stated = fields["temporary"] if flagged else [None] * len(column)
        fields["temporary"] = [
            tuple(file for file in files or () if file in (own or ()) or matches(data_arcs.plain_path(file))) or None
            for files, own in zip(column, stated or (), strict=True)
        ]


def _source_of_arcs(top: Mapping[str, Any]) -> str:
    """The value of "arcs_from", or its default."""
    source = FILES if top.get("arcs_from") is None else top["arcs_from"]
    if source not in SOURCES:
        raise MisfitError(f'"arcs_from" must be "after" or "files", got {actual(source)}', "arcs_from")
    return str(source)


def lists(values: Column, names: Sequence[str], key: str) -> Sequence[Sequence[str]]:
    """A list of strings for each task, empty if *values* has none for it."""
    if values is None:
        return [()] * len(names)
    if None in values:
        values = [() if value is None else value for value in values]
    if set(map(type, values)) <= {list, tuple} and set(map(type, chain.from_iterable(values))) <= {str}:
        return values
    return [strings(None if value == () else value, name, key) for value, name in zip(values, names, strict=True)]


def _read(values: Column, names: Sequence[str], key: str) -> Column:
    """The checked value of *key* for each task."""
    if values is None or set(map(type, values)) == {_PLAIN.get(key)}:
        return values
    read = _READERS[key]
    return [
        None if value is None or value == [] else read(value, name, key)
        for value, name in zip(values, names, strict=True)
    ]


def _launches(table: Columns, names: Sequence[str]) -> Column:
    """How the command of each task is run; equal ones are one object, since there may be a million."""
    columns = {key: values for key in LAUNCH_KEYS if (values := table[key]) is not None}
    if not columns:
        return None
    launches, column = dict[str, Launch | None](), list[Launch | None]()
    for name, *values in zip(names, *columns.values(), strict=True):
        if (text := repr(values)) not in launches:
            try:
                launches[text] = launch_of(dict(zip(columns, values, strict=True)))
            except InputError as error:
                raise MisfitError(f"task {shorten(name)!r}: {error}", task=name) from None
        column.append(launches[text])
    return column


def _dag(names: Sequence[str], needs: Column, files: _ReadAndWritten | None = None) -> Dag:
    """The dag of tasks with these names, the names that each depends on, and the arcs that *files* make."""
    index = dict(zip(names, range(len(names)), strict=True))
    if len(index) < len(names):
        raise DuplicateTaskError(next(name for i, name in enumerate(names) if index[name] > i))

    def unknown(words: Sequence[str]) -> Ints:
        raise UnknownTaskError(next(word for word in words if word not in index))

    tails, counts = references(needs, names, "after", index, unknown)
    heads = np.repeat(np.arange(len(names), dtype=np.int32), counts)
    if files is None:
        return Dag.from_arrays(len(names), tails, heads, names)
    return _dag_with_file_arcs(names, tails, heads, files)


def _dag_with_file_arcs(names: Sequence[str], tails: Ints, heads: Ints, files: _ReadAndWritten) -> Dag:
    """The dag with these arcs, in which a task also depends on the tasks that write the files it reads."""
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
    """The error for a cycle, with the files along it; the error itself if there are none."""
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
    """Whether files of a workflow would make arcs that it does not have, or have several writers."""
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

    If *index* lacks some of the words, *otherwise* returns the numbers.
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
    if top.get(TEMPORARY) is not None:
        raise MisfitError('"temporary" needs "tasks", which this document does not have', TEMPORARY)
    if top.get("arcs") is None and top.get("nodes") is None:
        raise MisfitError('no tasks (give "tasks", "arcs" or "nodes")')
    arcs, nodes = array(top.get("arcs"), '"arcs"'), top.get("nodes")
    if not set(map(type, arcs)) <= {list} or not set(map(len, arcs)) <= {2}:
        wrong = next(i for i, arc in enumerate(arcs, 1) if type(arc) is not list or len(arc) != 2)
        got = f"a list of {len(arc)}" if isinstance(arc := arcs[wrong - 1], list) else kind(arc)
        raise MisfitError(f'arc {wrong} must be a pair of names such as ["a", "b"], got {got}')
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


def _hooks(top: Mapping[str, Any]) -> dict[str, str | tuple[str, ...]]:
    hooks = {} if top.get("hooks") is None else _check_keys(top["hooks"], '"hooks"', HOOKS)
    commands = {name: _command(run, "hooks", name) for name, run in hooks.items() if run is not None}
    empty = next((name for name, run in commands.items() if not run), None)
    if empty is not None:
        raise MisfitError(f'"{empty}" of "hooks" must be a command or an address, got nothing', empty)
    return commands


# Values


def _check_keys(value: object, what: str, keys: Collection[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise MisfitError(f"{what} must be an object with the keys {', '.join(keys)}, got {kind(value)}")
    for key in value:
        if key not in keys:
            template = (PARAMS,) if "tasks" in keys else (FOREACH,) if "run" in keys else ()
            allowed = ", ".join((*keys, *template))
            message = f"{what} has the unknown key {shorten(str(key))!r} (known keys: {allowed})"
            raise MisfitError(message, str(key))
    return value


def mapping(value: object, what: str) -> Mapping[str, Any]:
    """The value; raises if it is not an object."""
    if not isinstance(value, dict):
        raise MisfitError(f"{what} must be an object, got {kind(value)}")
    return value


def array(value: object, what: str) -> list[Any]:
    """The value as a list, which is empty for None; raises for other values."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise MisfitError(f"{what} must be a list, got {kind(value)}")
    return value


def string(value: object, what: str) -> str:
    """The value; raises if it is not a string."""
    if isinstance(value, str):
        return value
    if value is None:
        raise MisfitError(f"{what} is missing")
    if isinstance(value, bool | int | float):
        raise MisfitError(f"{what} must be a string, got {kind(value)} (put it in quotes)")
    raise MisfitError(f"{what} must be a string, got {kind(value)}")


def strings(value: object, name: str, key: str) -> list[str]:
    """The value of *key* of the task *name*, a list of strings, which is empty for None; raises for other values."""
    if value is None:
        return []
    if type(value) is not list:
        raise MisfitError(f"{_of_task(key, name)} must be a list of strings, got {kind(value)}")
    if not set(map(type, value)) <= {str}:
        _all_strings(value, f"an item of {_of_task(key, name)}")
    return value


def number(value: object, name: str, key: str) -> float:
    """The value of *key* of the task *name*; raises if it is not a number."""
    if type(value) is float:
        return value
    if type(value) is not int:
        raise MisfitError(f"{_of_task(key, name)} must be a number, got {kind(value)}")
    if value.bit_length() > 63:
        raise MisfitError(f"{_of_task(key, name)} must have at most 63 bits, got {value.bit_length()}")
    return value if key == "cores" else float(value)


def size(value: object, name: str, key: str) -> int:
    """The value of *key* of the task or file *name*, a number of bytes such as 100, 1e6 or "2G"; raises for other values."""
    count = int(value) if type(value) is float and value.is_integer() else value
    count = bytes_in(count) if isinstance(count, str) else count
    if type(count) is not int or not 0 <= count < 2**63:
        raise MisfitError(
            f"{_of_task(key, name)} must be an integer number of bytes, or text such as 2G, got {actual(value)}"
        )
    return count


def kind(value: object) -> str:
    """The type of a value, in words for a message."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return "a number"
    return "a string" if isinstance(value, str) else "a list" if isinstance(value, list) else "an object"


def actual(value: object) -> str:
    """A string or number for a message, shortened; the type of other values."""
    if isinstance(value, str):
        return repr(shorten(value))
    return str(value) if type(value) is float or (type(value) is int and abs(value) < 2**64) else kind(value)


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


class Outputs(NamedTuple):
    """The files that a task writes, and those of them that are temporary."""

    files: tuple[str, ...]
    temporary: tuple[str, ...] = ()

    def entries(self) -> list[object]:
        """The files as items of a document."""
        return [{"name": file, TEMPORARY: True} if file in self.temporary else file for file in self.files]


def outputs_in(value: object, name: str) -> Outputs:
    """The outputs of the task *name*: names, or objects with a name."""
    if type(value) is not list or dict not in set(map(type, value)):
        return Outputs(_words(value, name, "outputs"))
    entries = [_output(item, f"an item of {_of_task('outputs', name)}") for item in value]
    return Outputs(tuple(file for file, _ in entries), tuple(file for file, is_temporary in entries if is_temporary))


def _output(item: object, what: str) -> tuple[str, bool]:
    """The name of an output, and whether it is temporary."""
    if not isinstance(item, dict):
        return string(item, what), False
    values = _check_keys(item, what, OUTPUT_KEYS)
    is_temporary = values.get(TEMPORARY) or False
    if not isinstance(is_temporary, bool):
        raise MisfitError(f'"{TEMPORARY}" of {what} must be true or false, got {actual(is_temporary)}', TEMPORARY)
    return string(values.get("name"), f"the name of {what}"), is_temporary


def _outputs(value: object, name: str, key: str) -> Outputs | tuple[str, ...]:
    outputs = outputs_in(value, name)
    return outputs if outputs.temporary else outputs.files


def _labels(value: object, name: str, key: str) -> tuple[str, ...]:
    labels = tuple(dict.fromkeys(strings(value, name, key)))
    for label in labels:
        try:
            check_label(label, f"task {shorten(name)!r}: ")
        except InputError as error:
            raise MisfitError(str(error), label) from None
    return labels


def _integer(value: object, name: str, key: str) -> int:
    if type(value) is not int:
        raise MisfitError(f"{_of_task(key, name)} must be an integer, got {actual(value)}", key)
    return value


def _memory(value: object, name: str, key: str) -> int | tuple[int, ...]:
    """The memory of a task in bytes; a tuple for a list, which has an amount for every attempt."""
    return tuple(size(each, name, key) for each in value) if type(value) is list else size(value, name, key)


def _gpus(value: object, name: str, key: str) -> int:
    if type(value) is not int or value < 0:
        raise MisfitError(f"{_of_task(key, name)} must be a non-negative integer, got {actual(value)}", key)
    return value


def _resources(value: object, name: str, key: str) -> tuple[tuple[str, float], ...]:
    amounts = mapping(value, _of_task(key, name))
    amounts = {what: amount_in(each) if isinstance(each, str) else each for what, each in amounts.items()}
    for what, amount in amounts.items():
        if what in {CORES, MEMORY, GPUS}:
            raise MisfitError(f"{_of_task(key, name)} has {what!r}, which is a key of the task itself", key)
        if not is_amount(amount) or not amount:
            raise MisfitError(f"{what!r} in {_of_task(key, name)} must be a positive number, got {actual(amount)}", key)
    _labels(list(amounts), name, key)
    return tuple(amounts.items())


_READERS: dict[str, Reader] = {
    "run": _command, "inputs": _words, "outputs": _outputs, "seconds": number, "cores": number, "memory": _memory,
    "gpus": _gpus, "resources": _resources, "labels": _labels, "category": _word, "priority": _integer,
}  # fmt: skip
_FIELDS = {"run": "command"}
_PLAIN: dict[str, type] = {"run": str, "seconds": float, "category": str, "priority": int}  # returned as they are


# Writing


def _shared_launch(flow: Workflow) -> Launch | None:
    """How the commands of all tasks are run; None if they differ, or nothing is stated."""
    launches = set(flow.column("launch"))
    return launches.pop() if len(launches) == 1 and len(flow) > 1 else None


def row_of(
    task: Task | None, name: str, needs: tuple[str, ...] = (), shared: Launch | None = None
) -> dict[str, object]:
    """The row of a task in a document; with *shared*, the document's defaults already state how commands are run."""
    row: dict[str, object] = {"name": name}
    if needs:
        row["after"] = list(needs)
    if task:
        others = dict(task.resources)
        joint = {
            "memory": (task.memory or 0, *task.more_memory) if task.more_memory else task.memory,
            GPUS: others.pop(GPUS, None),
            "resources": others or None,
        }
        for key in _READERS:
            value = joint[key] if key in joint else getattr(task, _FIELDS.get(key, key))
            if value is not None and value != ():
                row[key] = list(value) if isinstance(value, tuple) else short(value)
        if task.temporary:
            row["outputs"] = Outputs(task.outputs, task.temporary).entries()
        if task.launch is not None and shared is None:
            row.update(task.launch.document())
    return row


def short(value: object) -> object:
    """The value, as an integer if it is a float without a fraction.

    >>> short(2.0), short(2.5)
    (2, 2.5)
    """
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 2**53 else value
