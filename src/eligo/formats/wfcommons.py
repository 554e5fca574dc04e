"""WfFormat, the JSON of WfCommons (https://wfcommons.org): versions 1.0 to 1.6 are read, 1.5 is written.

Since 1.5, the specification of the tasks and the measurements of their execution are separate:

    {"name": "blast", "schemaVersion": "1.5", "workflow": {
      "specification": {
        "tasks": [{"name": "blastall", "id": "blastall_2", "parents": ["split_1"], "children": [],
                   "inputFiles": ["small.fasta"], "outputFiles": ["small.out"]}, ...],
        "files": [{"id": "small.fasta", "sizeInBytes": 6}, ...]},
      "execution": {"makespanInSeconds": 9, "executedAt": "2020-12-30T02:24:13Z",
        "tasks": [{"id": "blastall_2", "runtimeInSeconds": 1.5, "coreCount": 1, "memoryInBytes": 3000000,
                   "command": {"program": "blastall", "arguments": ["-p", "blastn"]}}, ...]}}}

Before, `workflow.tasks` (`jobs` up to 1.2) contained both, with the `files` of each task, and memory in units of 1000 bytes.

A task is named by its `id` since 1.5 and by its `name` before. If names repeat, `name_id` is used, as in WfCommons' own
migration. Arcs come from parents and children; each of these is an id or, if there is no such id, a name. Old files of
Nextflow runs have neither: there, a task depends on the tasks that write its input files, and a remark says so. A program
without arguments is a command line for a shell, as in files of Nextflow runs.

>>> flow = parse('{"name": "w", "schemaVersion": "1.5", "workflow": {"specification": {"tasks": ['
...              '{"id": "a_1", "name": "a", "children": ["b_1"]}, {"id": "b_1", "name": "b"}]}}}')
>>> list(flow.dag.arcs()), flow.task("a_1").category
([('a_1', 'b_1')], 'a')

The output is valid by the schema. A task can have a command, cores or memory there only with a run time. The schema also
requires the time and the duration of the execution: the output has those of one worker that starts in 1970 and runs all
tasks in sequence.
"""

import re
import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain, repeat
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from eligo.dag import Dag
from eligo.errors import FormatError, UnknownTaskError, shorten
from eligo.formats.shared import document, json_text, names
from eligo.formats.shared.data_arcs import columns
from eligo.formats.shared.document import Column, Columns, Described, MisfitError, Reader, array, mapping, string
from eligo.formats.shared.edits import apply_edits, json_elements, json_items, json_place, put_in_object
from eligo.rows import Ints
from eligo.workflow import Origin, Task, Workflow

NAME = "wfcommons"
PRIORITIES = True
CANNOT = ("labels",)

Row = Mapping[str, Any]
Lists = Sequence[Sequence[str]]

#: the keys that are read of a task, of its run, and of a file
_TASK = {"id", "name", "category", "parents", "children", "inputFiles", "outputFiles"}
_RUN = {"runtimeInSeconds", "runtime", "coreCount", "cores", "command", "memoryInBytes", "memory", "priority"}
_FILE = {"id", "name", "sizeInBytes", "size"}
_KEY = re.compile(r'"workflow"\s*:\s*\{')


def sniff(text: str) -> bool:
    """Whether the text is an object with an object "workflow", a key that eligo's own JSON does not have."""
    return '"workflow"' in text and re.match(r"\s*\{", text) is not None and _KEY.search(text) is not None


# Reading


def parse(text: str) -> Workflow:
    """The workflow that a WfFormat text describes."""
    with document.misfits_in(text):
        top = mapping(json_text.load(text), "the document")
        flow = mapping(top.get("workflow"), '"workflow"')
        name = None if top.get("name") is None else string(top["name"], "the workflow's name")
        origin = Origin(format=NAME, version=_version(top))
        parts = _specified_parts(flow) if "specification" in flow else _flat_parts(flow)
        origin = replace(origin, remarks=(BY_FILES,) if parts.by_files and parts.dag.arc_count else ())
        return Workflow(parts.dag, parts.details, name, origin, parts.sizes)


#: The remark on a file without parents and children.
BY_FILES = "no task lists parents or children: dependencies were derived from files"


class Parts(NamedTuple):
    """The parts of a workflow; *by_files* if files make the arcs."""

    dag: Dag
    details: Described
    sizes: dict[str, int]
    by_files: bool


def _specified_parts(flow: Row) -> Parts:
    """The parts of a workflow in the layout of 1.5."""
    specification = mapping(flow["specification"], '"specification"')
    tasks = _table(_tasks(specification, "tasks"), _TASK)
    names = _ids(tasks, "the id of task {}")
    refer = _Referee(tasks, names)
    inputs, outputs = (document.lists(tasks[key], names, key) for key in ("inputFiles", "outputFiles"))
    by_files = tasks["parents"] is tasks["children"] is None
    dag = _dag(
        names,
        *(_shared_files(list(zip(inputs, outputs, strict=True))) if by_files else _references(tasks, names, refer)),
    )
    execution = mapping(flow.get("execution") or {}, '"execution"')
    runs = _runs(execution, names, refer)
    files = _table(_objects(specification, "files"), _FILE)
    sizes = _sizes(_ids(files, "the id of file {}"), files)
    return Parts(dag, _details(dag, tasks, runs, inputs, outputs), sizes, by_files)


def _flat_parts(flow: Row) -> Parts:
    """The parts of a workflow in the layout of 1.0 to 1.4."""
    rows = _tasks(flow, "tasks" if "tasks" in flow else "jobs")
    files = [_objects(row, "files") for row in rows]
    tasks = _table(rows, (*_TASK, *_RUN))
    names = _flat_names(tasks)
    files_of = [[_file_name(file) for file in group] for group in files]
    links = [_links(group, rows) for group, rows in zip(files_of, files, strict=True)]
    tails, heads = _references(tasks, names, _Referee(tasks, names))
    by_files = not len(tails)
    if by_files:
        tails, heads = _shared_files(links)
    dag = _dag(names, tails, heads)
    sizes = _sizes(list(chain.from_iterable(files_of)), _table(list(chain.from_iterable(files)), _FILE))
    inputs, outputs = zip(*links, strict=True) if links else ((), ())
    return Parts(dag, _details(dag, tasks, tasks, inputs, outputs), sizes, by_files)


def _runs(execution: Row, names: list[str], refer: "_Referee") -> Columns:
    """The measured run of each task."""
    runs = _table(_objects(execution, "tasks"), (*_RUN, "id", "name"))
    ran = refer(_ids(runs, "the id of executed task {}")).tolist()
    if len(set(ran)) < len(ran):
        twice = Counter(ran).most_common(1)[0][0]
        raise MisfitError(f"task {shorten(names[twice])!r} is listed twice in the execution")
    return runs.place(ran, len(names))


def _table(rows: list[Row], keys: Collection[str]) -> Columns:
    """The rows as columns; empties the list of rows, to free their memory."""
    table = Columns(rows, keys)
    rows.clear()
    return table


def _version(top: Row) -> str | None:
    version = top.get("schemaVersion")
    if version is None:
        return None
    if not string(version, '"schemaVersion"').startswith("1."):
        raise MisfitError(f"unsupported WfFormat version {shorten(version)} (supported: 1.0 to 1.6)", "schemaVersion")
    return str(version)


def _flat_names(tasks: Columns) -> list[str]:
    names = [string(name, f"the name of task {i}") for i, name in enumerate(tasks.full_column("name"), 1)]
    ids = tasks.full_column("id")
    if len(set(names)) == len(names) or not all(ids):
        return names
    return [f"{name}_{string(id, 'the id of a task')}" for name, id in zip(names, ids, strict=True)]


class _Referee:
    """The numbers of the tasks that words refer to; ids take precedence over names."""

    def __init__(self, tasks: Columns, names: list[str]) -> None:
        self.tasks, self.names = tasks, names
        keys = names if tasks["id"] is None else tasks["id"]
        self.quick = dict(zip(keys, range(len(keys)), strict=True)) if set(map(type, keys)) == {str} else {}
        if len(self.quick) < len(keys):
            self.quick = {}  # ids repeat: all words are resolved slowly

    def __call__(self, words: Sequence[str]) -> Ints:
        """The number of the task that each word refers to."""
        try:
            return np.fromiter(map(self.quick.__getitem__, words), np.int32, len(words))
        except KeyError:
            return self.slowly(words)

    def slowly(self, words: Sequence[str]) -> Ints:
        """The number of the task that each word refers to, if not all words are ids."""
        numbers = self._numbers()
        return np.array([_number(word, numbers) for word in words], np.int32)

    def _numbers(self) -> dict[str, int]:
        """The task that each word refers to, or -1 if it refers to several."""
        numbers = {name: i for i, name in enumerate(self.names)}
        for key in ("name", "id"):
            by_key: dict[str, int] = {}
            for i, word in enumerate(self.tasks[key] or ()):
                if isinstance(word, str):
                    by_key[word] = -1 if word in by_key else i
            numbers |= by_key
        return numbers


def _number(word: str, numbers: dict[str, int]) -> int:
    task = numbers.get(word)
    if task is None:
        raise UnknownTaskError(word)
    if task < 0:
        raise MisfitError(f"several tasks are named {shorten(word)!r} (refer to one by its id)")
    return task


def _references(tasks: Columns, names: list[str], refer: _Referee) -> tuple[Ints, Ints]:
    """The tails and heads of the arcs that parents and children state."""
    named: list[Ints] = []
    owners: list[Ints] = []
    for key in ("parents", "children"):
        numbers, counts = document.references(tasks[key], names, key, refer.quick, refer.slowly)
        named.append(numbers)
        owners.append(np.repeat(np.arange(len(names), dtype=np.int32), counts))
    return np.concatenate((named[0], owners[1])), np.concatenate((owners[0], named[1]))


def _shared_files(links: Sequence[tuple[Sequence[str], Sequence[str]]]) -> tuple[Ints, Ints]:
    """The arcs to every task from the first writer of each file that it reads."""
    writer: dict[str, int] = {}
    for i, (_, outputs) in enumerate(links):
        for file in outputs:
            writer.setdefault(file, i)
    arcs = [(writer[file], i) for i, (inputs, _) in enumerate(links) for file in inputs if writer.get(file, i) != i]
    return columns(arcs)


def _dag(names: list[str], tails: Ints, heads: Ints) -> Dag:
    """The dag; no arc counts as duplicate, because both its ends should state it."""
    return replace(Dag.from_arrays(len(names), tails, heads, names), duplicates=0)


def _details(dag: Dag, tasks: Columns, runs: Columns, inputs: Lists, outputs: Lists) -> Described:
    """The details of tasks from their specification and from their runs, which may be the same table."""
    names = dag.tasks
    return Described(
        dag,
        {
            "command": _read(runs["command"], names, "command", _command),
            "inputs": [tuple(files) or None for files in inputs] if any(inputs) else None,
            "outputs": [tuple(files) or None for files in outputs] if any(outputs) else None,
            "seconds": _read(_either(runs, "runtimeInSeconds", "runtime"), names, "runtime", document.number, float),
            "cores": _read(_either(runs, "coreCount", "cores"), names, "cores", document.number),
            "memory": _memory(runs, names),
            "category": _read(_either(tasks, "category", "name"), names, "category", _category),
            "priority": _read(runs["priority"], names, "priority", _priority, int),
        },
    )


def _read(values: Column, names: Sequence[str], key: str, read: Reader, plain: type | None = None) -> Column:
    """The checked value of each task; values of the type *plain* are returned as they are."""
    if values is None or set(map(type, values)) <= {plain}:
        return values
    return [None if value is None else read(value, name, key) for value, name in zip(values, names, strict=True)]


def _category(group: object, name: str, _key: str) -> str | None:
    return group if isinstance(group, str) and group != name else None


def _priority(value: object, _name: str, _key: str) -> int | None:
    return value if type(value) is int else None


def _memory(runs: Columns, names: Sequence[str]) -> Column:
    """Memory in bytes; before 1.4, files have it in thousands of bytes."""
    return _first(
        _read(runs["memoryInBytes"], names, "memoryInBytes", _round),
        _read(runs["memory"], names, "memory", lambda n, *where: _round(document.number(n, *where) * 1000, *where)),
    )


def _command(command: object, name: str, _key: str) -> str | tuple[str, ...] | None:
    if not command:
        return None
    row = mapping(command, f"the command of {shorten(name)!r}")
    if not row.get("program"):
        return None
    program = string(row["program"], f"the program of {shorten(name)!r}")
    words = array(row.get("arguments"), f"the arguments of {shorten(name)!r}")
    if not words:
        return program
    return (program, *(word if isinstance(word, str) else json_text.quote(word) for word in words))


def _links(names: list[str], files: list[Row]) -> tuple[list[str], list[str]]:
    """The names of the files that a task reads, and of the files that it writes."""
    links: dict[str, list[str]] = {"input": [], "output": []}
    for name, row in zip(names, files, strict=True):
        link = row.get("link")
        if not isinstance(link, str) or link.lower() not in links:
            got = document.actual(link)
            raise MisfitError(f'"link" of file {shorten(name)!r} must be "input" or "output", got {got}')
        links[link.lower()].append(name)
    return links["input"], links["output"]


def _file_name(row: Row) -> str:
    name, path = string(row.get("name"), "the name of a file"), row.get("path")
    return name if path is None else string(path, "the path of a file") + name


def _sizes(names: list[str], files: Columns) -> dict[str, int]:
    """The size of each file, the first one if several are given."""
    sizes: dict[str, int] = {}
    for name, value in zip(names, _either(files, "sizeInBytes", "size") or repeat(None, len(names)), strict=True):
        if value is not None and name not in sizes:
            sizes[name] = _round(value, name, "size")
    return sizes


def _ids(table: Columns, what: str) -> list[str]:
    """The id of each row, or its name if it has no id."""
    ids = _either(table, "id", "name") or [None] * table.size
    if not set(map(type, ids)) <= {str}:
        for i, word in enumerate(ids, 1):
            string(word, what.format(i))
    return ids


def _either(table: Columns, key: str, older: str) -> Column:
    return _first(table[key], table[older])


def _first(column: Column, other: Column) -> Column:
    """The values of a column, with those of the *other* in place of missing ones."""
    if column is None or other is None or None not in column:
        return other if column is None else column
    return [b if a is None else a for a, b in zip(column, other, strict=True)]


def _round(value: object, name: str, key: str) -> int:
    """A number of bytes, rounded, because some files have a fraction."""
    return document.size(round(value) if isinstance(value, float) and abs(value) < 2**63 else value, name, key)


def _tasks(row: Row, key: str) -> list[Row]:
    if row.get(key) is None:
        raise MisfitError("no tasks in workflow.specification.tasks, or in workflow.tasks of old files")
    return _objects(row, key)


def _objects(row: Row, key: str) -> list[Row]:
    items = array(row.get(key), f'"{key}"')
    if not set(map(type, items)) <= {dict}:
        for item in items:
            mapping(item, f'an item of "{key}"')
    return items


# Writing

_SIGNS = "-0-9a-zA-Z_.#"
_TASK_ID = re.compile(f"[{_SIGNS}]+")
_FILE_ID = re.compile(r"[0-9a-zA-Z_./:#-]+")


def lost(task: Task) -> set[str]:
    """The details that cannot be written: most without a run time, cores below one, a category that equals the name."""
    keys = {"command", "cores", "memory", "priority"} if task.seconds is None else set()
    if task.cores is not None and task.cores < 1:
        keys.add("cores")
    if task.category in {"", task.name}:
        keys.add("category")
    return keys


def fitted(name: str) -> str:
    """The name of a task, or a similar one that WfFormat allows."""
    return names.fitted(name, _SIGNS)


def fitted_file(name: str) -> str | None:
    """The name of a file if WfFormat allows it, else None."""
    return name if _FILE_ID.fullmatch(name) else None


def generate(flow: Workflow, old: Mapping[str, str] = MappingProxyType({})) -> str:
    """The WfFormat 1.5 text of a workflow, one task per line; *old* has the old names of renamed tasks."""
    if not len(flow):
        raise FormatError("a WfCommons file must have at least one task, got an empty workflow")
    result: dict[str, Any] = {
        "name": flow.name or "workflow",
        "schemaVersion": "1.5",
        "workflow": {"specification": _specification(flow, old)},
    }
    tasks = (flow.task(name) for name in flow.dag.tasks)
    runs = [_run(task) for task in tasks if task.seconds is not None]
    if runs:
        result["workflow"]["execution"] = {
            "makespanInSeconds": document.short(sum(run["runtimeInSeconds"] for run in runs)),
            "executedAt": "1970-01-01T00:00:00Z",
            "tasks": runs,
        }
    return json_text.dump(result, levels=4)


def _specification(flow: Workflow, old: Mapping[str, str]) -> dict[str, Any]:
    dag = flow.dag
    tasks = [
        _specified_row(flow.task(_check_allowed(name, _TASK_ID, "task")), above, below) | _label(flow.task(name), old)
        for name, above, below in zip(dag.tasks, document.parents(dag), document.children(dag), strict=True)
    ]
    files = [
        {"id": _check_allowed(name, _FILE_ID, "file"), "sizeInBytes": size} for name, size in flow.file_sizes.items()
    ]
    return {"tasks": tasks, "files": files} if files else {"tasks": tasks}


def _specified_row(task: Task, above: tuple[str, ...], below: tuple[str, ...]) -> dict[str, Any]:
    row = {"name": task.category or task.name, "id": task.name, "parents": list(above), "children": list(below)}
    for key, files in (("inputFiles", task.inputs), ("outputFiles", task.outputs)):
        if files:
            row[key] = [_check_allowed(file, _FILE_ID, "file") for file in files]
    return row


def _label(task: Task, old: Mapping[str, str]) -> dict[str, str]:
    """The old name of a renamed task, if it has no category, which would be in the same place."""
    return {"name": old[task.name]} if task.name in old and not task.category else {}


def _run(task: Task) -> dict[str, Any]:
    run: dict[str, Any] = {"id": task.name, "runtimeInSeconds": document.short(task.seconds)}
    if task.command:
        run["command"] = _command_row(task.command)
    if task.cores is not None and task.cores >= 1:
        run["coreCount"] = document.short(task.cores)
    if task.memory is not None:
        run["memoryInBytes"] = task.memory
    if task.priority is not None:
        run["priority"] = task.priority
    return run


def _command_row(command: str | tuple[str, ...]) -> dict[str, Any]:
    if isinstance(command, str):
        return {"program": command, "arguments": []}
    if len(command) == 1 or "" in command:  # empty words are not allowed, except in a command line for a shell
        return {"program": shlex.join(command), "arguments": []}
    return {"program": command[0], "arguments": list(command[1:])}


def _check_allowed(name: str, pattern: re.Pattern[str], what: str) -> str:
    if pattern.fullmatch(name):
        return name
    signs = "-_.#" if what == "task" else "-_./:#"
    cure = f"only letters, digits and {signs} are allowed"
    error = FormatError(f"WfCommons cannot represent the {what} name {shorten(name)!r}: {cure}")
    raise error.cured_by("file_names" if what == "file" else "names")


def prioritised(text: str, flow: Workflow, numbers: Mapping[str, int]) -> str | None:
    """The text with these priorities, beside the run times; None if a task has no run."""
    runs = json_place(text, "workflow", "execution", "tasks")
    flat = next((at for key in ("tasks", "jobs") if (at := json_place(text, "workflow", key)) is not None), None)
    if json_place(text, "workflow", "specification") is None and flat is not None:
        starts = dict(zip(flow.dag.tasks, json_elements(text, flat), strict=True))
    else:
        starts = {} if runs is None else _starts(text, runs, flow)
    if len(starts) < len(flow):
        return None
    return apply_edits(text, [put_in_object(text, start, "priority", numbers[name]) for name, start in starts.items()])


def _starts(text: str, runs: int, flow: Workflow) -> dict[str, int]:
    """The place where the run of each task begins, by the task's id."""
    starts = {}
    for start in json_elements(text, runs):
        ids = (text[begin:end] for key, begin, end in json_items(text, start) if key == "id")
        name = json_text.load(next(ids, "null"))
        if isinstance(name, str) and name in flow.dag:
            starts[name] = start
    return starts
