"""WfFormat, the JSON of WfCommons (https://wfcommons.org): versions 1.0 to 1.6 are read, 1.5 is written.

Since 1.5 the tasks and what was measured when they ran stand apart:

    {"name": "blast", "schemaVersion": "1.5", "workflow": {
      "specification": {
        "tasks": [{"name": "blastall", "id": "blastall_2", "parents": ["split_1"], "children": [],
                   "inputFiles": ["small.fasta"], "outputFiles": ["small.out"]}, ...],
        "files": [{"id": "small.fasta", "sizeInBytes": 6}, ...]},
      "execution": {"makespanInSeconds": 9, "executedAt": "2020-12-30T02:24:13Z",
        "tasks": [{"id": "blastall_2", "runtimeInSeconds": 1.5, "coreCount": 1, "memoryInBytes": 3000000,
                   "command": {"program": "blastall", "arguments": ["-p", "blastn"]}}, ...]}}}

Before, `workflow.tasks` (`jobs` up to 1.2) held all of it, with `files` of each task, and memory in units of 1000 bytes.

A task is named by its `id` since 1.5 and by its `name` before; where names repeat, by both, joined with _, as WfCommons' own
migration does. Parents and children are taken together; each is sought first as an id, then as a name. Old files of Nextflow
runs name neither: there, a task needs those that write what it reads. A program without arguments is a line for a shell: so
Nextflow's are.

>>> flow = parse('{"name": "w", "schemaVersion": "1.5", "workflow": {"specification": {"tasks": ['
...              '{"id": "a_1", "name": "a", "children": ["b_1"]}, {"id": "b_1", "name": "b"}]}}}')
>>> list(flow.dag.arcs()), flow.task("a_1").category
([('a_1', 'b_1')], 'a')

What is written is valid by the schema, which requires a runtime of every task of which a command, cores or memory are
recorded. It also requires when and how long the whole ran: that is given as if one worker had begun in 1970 and done all
tasks in turn.
"""

import re
import shlex
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

import numpy as np

from eligo.dag import Dag
from eligo.errors import FormatError, UnknownTaskError, shorten
from eligo.formats import json_text
from eligo.formats.document import (
    MisfitError,
    array,
    children,
    kind,
    misfits_in,
    number,
    parents,
    short,
    size,
    string,
    strings,
)
from eligo.rows import Ints
from eligo.workflow import Origin, Task, Workflow

NAME = "wfcommons"
SUFFIXES = (".json",)
PRIORITIES = True
CANNOT = (
    "no tasks at all, and names of tasks and files with other signs than letters, digits and -_.# (in files /: too)",
    "commands, cores, memory and priority of a task without seconds, less than one core, a command of no words",
    "the difference between a command of one word and a line for a shell",
    "a category that is empty or the task's own name",
)

Row = Mapping[str, Any]

_KEY = re.compile(r'"workflow"\s*:')
_TASK_ID = re.compile(r"[0-9a-zA-Z_.#-]+")
_FILE_ID = re.compile(r"[0-9a-zA-Z_./:#-]+")


def sniff(text: str) -> bool:
    """Whether the text is an object with a key "workflow", which our own JSON has nowhere."""
    return '"workflow"' in text and re.match(r"\s*\{", text) is not None and _KEY.search(text) is not None


# Reading


def parse(text: str) -> Workflow:
    """The workflow that a WfFormat text describes."""
    with misfits_in(text):
        top = _object(json_text.load(text), "the document")
        flow = _object(top.get("workflow"), '"workflow"')
        name = None if top.get("name") is None else string(top["name"], "the workflow's name")
        origin = Origin(format=NAME, version=_version(top))
        if "specification" in flow:
            dag, details, sizes = _specified(flow)
        else:
            dag, details, sizes = _flat(flow)
        return Workflow(dag, details, name, origin, sizes)


Parts = tuple[Dag, dict[str, Task], dict[str, int]]


def _specified(flow: Row) -> Parts:
    """The parts of a workflow in the layout of 1.5."""
    specification = _object(flow["specification"], '"specification"')
    rows = _tasks(specification, "tasks")
    names = [_id(row, f"the id of task {i}") for i, row in enumerate(rows, 1)]
    numbers = _numbers(rows, names)
    dag = _dag(names, *_references(rows, names, numbers))
    execution = _object(flow.get("execution") or {}, '"execution"')
    runs: dict[int, Row] = {}
    for row in _objects(execution, "tasks"):
        task = _number(_id(row, "the id of an executed task"), numbers)
        if runs.setdefault(task, row) is not row:
            raise MisfitError(f"the task {shorten(names[task])!r} is executed twice")
    details = {}
    for i, (name, row) in enumerate(zip(names, rows, strict=True)):
        inputs, outputs = (strings(row.get(key), name, key) for key in ("inputFiles", "outputFiles"))
        details[name] = _task(name, row, runs.get(i, {}), inputs, outputs)
    files = [(_id(row, "the id of a file"), row) for row in _objects(specification, "files")]
    return dag, _known(details), _sizes(files)


def _flat(flow: Row) -> Parts:
    """The parts of a workflow in the layout of 1.0 to 1.4."""
    rows = _tasks(flow, "tasks" if "tasks" in flow else "jobs")
    names = _flat_names(rows)
    numbers = _numbers(rows, names)
    files = [[(_file_name(file), file) for file in _objects(row, "files")] for row in rows]
    links = [_links(pairs) for pairs in files]
    tails, heads = _references(rows, names, numbers)
    if not len(tails):
        tails, heads = _shared_files(links)
    details = {name: _task(name, row, row, *link) for name, row, link in zip(names, rows, links, strict=True)}
    return _dag(names, tails, heads), _known(details), _sizes(chain.from_iterable(files))


def _version(top: Row) -> str | None:
    version = top.get("schemaVersion")
    if version is None:
        return None
    if not string(version, '"schemaVersion"').startswith("1."):
        raise MisfitError(f"WfFormat {shorten(version)} is not known: 1.0 to 1.6 are", "schemaVersion")
    return str(version)


def _flat_names(rows: list[Row]) -> list[str]:
    names = [string(row.get("name"), f"the name of task {i}") for i, row in enumerate(rows, 1)]
    if len(set(names)) == len(names) or not all(row.get("id") for row in rows):
        return names
    return [f"{name}_{string(row['id'], 'the id of a task')}" for name, row in zip(names, rows, strict=True)]


def _numbers(rows: list[Row], names: list[str]) -> dict[str, int]:
    """The task that each word refers to, -1 where it is several: ids come before names."""
    numbers = {name: i for i, name in enumerate(names)}
    for key in ("name", "id"):
        found: dict[str, int] = {}
        for i, row in enumerate(rows):
            word = row.get(key)
            if isinstance(word, str):
                found[word] = -1 if word in found else i
        numbers |= found
    return numbers


def _number(word: str, numbers: dict[str, int]) -> int:
    task = numbers.get(word)
    if task is None:
        raise UnknownTaskError(word)
    if task < 0:
        raise MisfitError(f"{shorten(word)!r} is the name of several tasks: refer to one by its id")
    return task


def _references(rows: list[Row], names: list[str], numbers: dict[str, int]) -> tuple[Ints, Ints]:
    """The tail and head of every arc that parents or children state."""
    named: list[Ints] = []
    owners: list[Ints] = []
    for key in ("parents", "children"):
        lists = [strings(row.get(key), name, key) for row, name in zip(rows, names, strict=True)]
        words = list(chain.from_iterable(lists))
        found = [numbers.get(word, -1) for word in words]
        if -1 in found:
            _number(words[found.index(-1)], numbers)
        named.append(np.array(found, np.int32))
        owners.append(np.repeat(np.arange(len(rows), dtype=np.int32), list(map(len, lists))))
    return np.concatenate((named[0], owners[1])), np.concatenate((owners[0], named[1]))


def _shared_files(links: list[tuple[list[str], list[str]]]) -> tuple[Ints, Ints]:
    """The arc to every task from the first that writes a file that it reads."""
    writer: dict[str, int] = {}
    for i, (_, outputs) in enumerate(links):
        for file in outputs:
            writer.setdefault(file, i)
    arcs = [(writer[file], i) for i, (inputs, _) in enumerate(links) for file in inputs if writer.get(file, i) != i]
    ends = np.array(arcs, np.int32).reshape(-1, 2)
    return ends[:, 0], ends[:, 1]


def _dag(names: list[str], tails: Ints, heads: Ints) -> Dag:
    """The dag, each arc taken once: that both its ends state it is how it should be."""
    codes = np.unique(tails.astype(np.int64) * len(names) + heads)
    return Dag.from_arrays(len(names), codes // max(len(names), 1), codes % max(len(names), 1), names)


def _task(name: str, row: Row, run: Row, inputs: list[str], outputs: list[str]) -> Task:
    """What is known of a task by its *row* in the specification and by its *run*, which may be the same."""
    group = row.get("category", row.get("name"))
    seconds, cores = _either(run, "runtimeInSeconds", "runtime"), _either(run, "coreCount", "cores")
    command = run.get("command")
    return Task(
        name=name,
        command=_command(command, name) if command else None,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        seconds=None if seconds is None else number(seconds, name, "runtime"),
        cores=None if cores is None else number(cores, name, "cores"),
        memory=_memory(run, name),
        category=group if isinstance(group, str) and group != name else None,
        priority=run["priority"] if type(run.get("priority")) is int else None,
    )


def _memory(run: Row, name: str) -> int | None:
    if run.get("memoryInBytes") is not None:
        return _rounded(run["memoryInBytes"], name, "memoryInBytes")
    if run.get("memory") is not None:  # before 1.4
        return _rounded(number(run["memory"], name, "memory") * 1000, name, "memory")
    return None


def _command(command: object, name: str) -> str | tuple[str, ...] | None:
    row = _object(command, f"the command of {shorten(name)!r}")
    if not row.get("program"):
        return None
    program = string(row["program"], f"the program of {shorten(name)!r}")
    words = array(row.get("arguments"), f"the arguments of {shorten(name)!r}")
    if not words:
        return program
    return (program, *(word if isinstance(word, str) else json_text.quote(word) for word in words))


def _links(files: list[tuple[str, Row]]) -> tuple[list[str], list[str]]:
    """The names of the files that a task reads, and of those that it writes."""
    links: dict[str, list[str]] = {"input": [], "output": []}
    for name, row in files:
        link = row.get("link")
        if not isinstance(link, str) or link.lower() not in links:
            raise MisfitError(f'"link" of file {shorten(name)!r} should be "input" or "output"')
        links[link.lower()].append(name)
    return links["input"], links["output"]


def _file_name(row: Row) -> str:
    name, path = string(row.get("name"), "the name of a file"), row.get("path")
    return name if path is None else string(path, "the path of a file") + name


def _sizes(files: Iterable[tuple[str, Row]]) -> dict[str, int]:
    """The size of each file: the first that is given."""
    sizes: dict[str, int] = {}
    for name, row in files:
        value = _either(row, "sizeInBytes", "size")
        if value is not None and name not in sizes:
            sizes[name] = _rounded(value, name, "size")
    return sizes


def _known(details: dict[str, Task]) -> dict[str, Task]:
    return {name: task for name, task in details.items() if task != Task(name=name)}


def _id(row: Row, what: str) -> str:
    return string(_either(row, "id", "name"), what)


def _either(row: Row, key: str, older: str) -> object:
    value = row.get(key)
    return row.get(older) if value is None else value


def _rounded(value: object, name: str, key: str) -> int:
    """A number of bytes, which some files give with a fraction."""
    return size(round(value) if isinstance(value, float) and abs(value) < 2**63 else value, name, key)


def _object(value: object, what: str) -> Row:
    if not isinstance(value, dict):
        raise MisfitError(f"{what} is {kind(value)}, and should be an object")
    return value


def _tasks(row: Row, key: str) -> list[Row]:
    if row.get(key) is None:
        raise MisfitError(
            "there are no tasks: they stand in workflow.specification.tasks, and in old files in workflow.tasks"
        )
    return _objects(row, key)


def _objects(row: Row, key: str) -> list[Row]:
    found = array(row.get(key), f'"{key}"')
    if not set(map(type, found)) <= {dict}:
        for item in found:
            _object(item, f'an item of "{key}"')
    return found


# Writing


def generate(flow: Workflow) -> str:
    """The WfFormat 1.5 text of a workflow, one task a line."""
    if not len(flow):
        raise FormatError("WfCommons files have at least one task, and there is none")
    document: dict[str, Any] = {
        "name": flow.name or "workflow",
        "schemaVersion": "1.5",
        "workflow": {"specification": _specification(flow)},
    }
    tasks = [flow.task(name) for name in flow.dag.tasks]
    lost = next((t.name for t in tasks if t.priority is not None and t.seconds is None), None)
    if lost is not None:
        raise FormatError(f"WfCommons keeps priorities beside run times, and task {shorten(lost)!r} has no run time")
    runs = [_run(task) for task in tasks if task.seconds is not None]
    if runs:
        document["workflow"]["execution"] = {
            "makespanInSeconds": short(sum(run["runtimeInSeconds"] for run in runs)),
            "executedAt": "1970-01-01T00:00:00Z",
            "tasks": runs,
        }
    return json_text.dump(document, levels=4)


def _specification(flow: Workflow) -> dict[str, Any]:
    dag = flow.dag
    tasks = [
        _specified_row(flow.task(_allowed(name, _TASK_ID, "task")), above, below)
        for name, above, below in zip(dag.tasks, parents(dag), children(dag), strict=True)
    ]
    files = [{"id": _allowed(name, _FILE_ID, "file"), "sizeInBytes": size} for name, size in flow.file_sizes.items()]
    return {"tasks": tasks, "files": files} if files else {"tasks": tasks}


def _specified_row(task: Task, above: tuple[str, ...], below: tuple[str, ...]) -> dict[str, Any]:
    row = {"name": task.category or task.name, "id": task.name, "parents": list(above), "children": list(below)}
    for key, files in (("inputFiles", task.inputs), ("outputFiles", task.outputs)):
        if files:
            row[key] = [_allowed(file, _FILE_ID, "file") for file in files]
    return row


def _run(task: Task) -> dict[str, Any]:
    run: dict[str, Any] = {"id": task.name, "runtimeInSeconds": short(task.seconds)}
    if task.command:
        run["command"] = _command_row(task.command)
    if task.cores is not None and task.cores >= 1:
        run["coreCount"] = short(task.cores)
    if task.memory is not None:
        run["memoryInBytes"] = task.memory
    if task.priority is not None:
        run["priority"] = task.priority
    return run


def _command_row(command: str | tuple[str, ...]) -> dict[str, Any]:
    if isinstance(command, str):
        return {"program": command, "arguments": []}
    if len(command) == 1 or "" in command:  # empty words are not allowed, so a shell has to make them
        return {"program": shlex.join(command), "arguments": []}
    return {"program": command[0], "arguments": list(command[1:])}


def _allowed(name: str, pattern: re.Pattern[str], what: str) -> str:
    if pattern.fullmatch(name):
        return name
    signs = "-_.#" if what == "task" else "-_./:#"
    raise FormatError(f"WfCommons allows letters, digits and {signs} in the name of a {what}, not {shorten(name)!r}")
