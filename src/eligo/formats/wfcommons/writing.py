"""WfFormat 1.5 written, and priorities put into a file of any version that stays as it is otherwise."""

import re
import shlex
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from eligo.errors import FormatError, shorten
from eligo.formats.shared import json_edit, json_text, names
from eligo.formats.shared.document import children, parents, short
from eligo.formats.shared.editing import applied
from eligo.workflow import Task, Workflow

_SIGNS = "-0-9a-zA-Z_.#"
_TASK_ID = re.compile(f"[{_SIGNS}]+")
_FILE_ID = re.compile(r"[0-9a-zA-Z_./:#-]+")


def lost(task: Task) -> set[str]:
    """What of a task has no place: most where no run time is known, less than one core, a category that is the name."""
    gone = {"command", "cores", "memory", "priority"} if task.seconds is None else set()
    if task.cores is not None and task.cores < 1:
        gone.add("cores")
    if task.category in {"", task.name}:
        gone.add("category")
    return gone


def fitted(name: str) -> str:
    """The name of a task as WfFormat allows it."""
    return names.fitted(name, _SIGNS)


def fitted_file(name: str) -> str | None:
    """The name of a file, where WfFormat allows it: another would not be that of the file."""
    return name if _FILE_ID.fullmatch(name) else None


def generate(flow: Workflow, old: Mapping[str, str] = MappingProxyType({})) -> str:
    """The WfFormat 1.5 text of a workflow, one task a line; *old* has the name that a task had before it was renamed."""
    if not len(flow):
        raise FormatError("WfCommons files have at least one task, and there is none")
    document: dict[str, Any] = {
        "name": flow.name or "workflow",
        "schemaVersion": "1.5",
        "workflow": {"specification": _specification(flow, old)},
    }
    tasks = (flow.task(name) for name in flow.dag.tasks)
    runs = [_run(task) for task in tasks if task.seconds is not None]
    if runs:
        document["workflow"]["execution"] = {
            "makespanInSeconds": short(sum(run["runtimeInSeconds"] for run in runs)),
            "executedAt": "1970-01-01T00:00:00Z",
            "tasks": runs,
        }
    return json_text.dump(document, levels=4)


def _specification(flow: Workflow, old: Mapping[str, str]) -> dict[str, Any]:
    dag = flow.dag
    tasks = [
        _specified_row(flow.task(_allowed(name, _TASK_ID, "task")), above, below) | _label(flow.task(name), old)
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


def _label(task: Task, old: Mapping[str, str]) -> dict[str, str]:
    """The old name, in the place of a kind that is not known."""
    return {"name": old[task.name]} if task.name in old and not task.category else {}


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
    message = f"WfCommons allows letters, digits and {signs} in the name of a {what}, not {shorten(name)!r}"
    raise FormatError(message).cured_by("file_names" if what == "file" else "names")


def prioritised(text: str, flow: Workflow, numbers: Mapping[str, int]) -> str | None:
    """The same text with these priorities, beside the run times; None where a task has no place for one."""
    runs = json_edit.place_of(text, "workflow", "execution", "tasks")
    flat = next(
        (at for key in ("tasks", "jobs") if (at := json_edit.place_of(text, "workflow", key)) is not None), None
    )
    if json_edit.place_of(text, "workflow", "specification") is None and flat is not None:
        starts = dict(zip(flow.dag.tasks, json_edit.elements(text, flat), strict=True))
    else:
        starts = {} if runs is None else _starts(text, runs, flow)
    if len(starts) < len(flow):
        return None
    return applied(text, [json_edit.put(text, start, "priority", numbers[name]) for name, start in starts.items()])


def _starts(text: str, runs: int, flow: Workflow) -> dict[str, int]:
    """Where the run of each task begins, by the task's id."""
    starts = {}
    for start in json_edit.elements(text, runs):
        ids = (text[begin:end] for key, begin, end in json_edit.items(text, start) if key == "id")
        name = json_text.load(next(ids, "null"))
        if isinstance(name, str) and name in flow.dag:
            starts[name] = start
    return starts
