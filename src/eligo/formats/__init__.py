"""Workflows as text: one module for each format, all with the same few names. docs/reference/formats.md lists them.

The module of a format is a `detection.Format`. It has `NAME`, `PRIORITIES`, `CANNOT` (the details it cannot represent),
`parse(text)`, `generate(flow)` and `sniff(text)`, which returns whether a text looks like the format. A new format is such
a module and an entry in `MODULES`. Some modules have more:

- `CAN`: details that it represents, although most formats other than our own do not
- `TAKES`: keyword arguments of `parse`: "beside", a `files.Beside`, or keys of `Given`
- `lost(task)`: the details of this task that cannot be written
- `fitted(name)`: the name of a task, or a similar one that the format can represent; `generate` then takes the *old* names
- `fitted_file(name)`: another name of the same file that the format can represent, or None to omit the file
- `prioritised`: the text of a file with priorities and no other change
- `write_wrapper` and `write_in_place`: write priorities for an existing file
- `FIRST`: the priority of the first task of an order, if not the number of tasks
- `advice`: messages for users of written priorities
- `INSTEAD`: how the engine orders tasks, if it has no priorities
- `runnable(flow)`: the workflow with the commands that other files describe, see `eligo.formats.fidelity`

`eligo.formats.histories` reads run times of earlier runs from other files.

Tasks and arcs are never lost: a name that a format cannot represent is refused, or changed on request. Other details that
a format cannot represent, such as the commands in a list of arcs, are left out; `lost` reports them.

>>> flow = parse("a -> b", "arcs")
>>> generate(flow, "json")
'{"arcs": [["a", "b"]], "nodes": ["a", "b"]}\\n'
"""

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import cast

from eligo.dag import Dag
from eligo.errors import FormatError, InputError, shorten
from eligo.formats import detection
from eligo.formats.detection import MODULES, NATIVE, WORDS, Format, StrPath, detect, format_to_write, module
from eligo.formats.histories import History
from eligo.formats.histories.reader import read_history
from eligo.formats.launches import OWN, with_own_shell
from eligo.formats.reader import parse, parse_as, read, read_claim, read_order
from eligo.formats.shared.files import LARGEST_FILE, display_path, load_bytes, save, save_bytes
from eligo.formats.shared.names import rename_tasks, with_files
from eligo.formats.shared.templates import may_use_templates
from eligo.workflow import Origin, Task, Workflow, in_priority_order, priority_numbers, with_priorities

__all__ = [
    "LARGEST_FILE", "MODULES", "History", "detect", "format_for_priorities", "format_to_write", "generate", "lost",
    "module", "parse", "read", "read_claim", "read_history", "read_order", "refuse_source", "source_text", "write",
    "write_priorities",
]  # fmt: skip


def write(flow: Dag | Workflow, path: StrPath, format: str | None = None, names: str = "keep") -> dict[str, str]:
    """Write a workflow to a file, or to standard output if *path* is "-"; compressed if the name ends in .gz.

    Without *format*, the file's name determines it; if several formats fit, it is the one that the workflow was read from.
    A task name that the format cannot represent is an error, or is changed if *names* is "change". Returns the old names
    of renamed tasks by their new names.
    """
    path = os.fspath(path)
    try:
        text, old = _generate(flow, format or format_to_write(flow, path), names)
    except FormatError as error:
        raise error.located(path) if path != "-" else error from None
    save(text, path)
    return old


def write_priorities(  # noqa: PLR0913
    flow: Workflow,
    order: Sequence[str],
    path: StrPath | None,
    override: bool = False,
    format: str | None = None,
    *,
    first: int | None = None,
) -> list[str]:
    """Write a workflow with priorities for its tasks, so that an engine that uses them follows *order*.

    The rest of the file that the workflow was read from stays as it is; if *path* is None, that file itself is changed.
    Existing priorities divide tasks into classes, and *order* applies within each class, or to all tasks with *override*.
    *first* is the priority of the first task. Returns messages for the user, one per line.
    """
    path = None if path is None else os.fspath(path)
    order, messages = (list(order), []) if override else _in_classes(flow, order)
    format = format_for_priorities(flow, path, format)
    chosen, came_from = module(format), flow.origin.format if flow.origin else None
    first = getattr(chosen, "FIRST", None) if first is None else first
    if format == came_from and hasattr(chosen, "write_wrapper"):
        if path is None:
            return chosen.write_in_place(flow, order, first) + messages
        return chosen.write_wrapper(flow, order, path, first) + messages
    data = _source_with_priorities(flow, order, chosen, first) if format == came_from else None
    if data is None and path is None:
        source = cast(Origin, flow.origin).path
        raise FormatError("priorities cannot be written into this file (name another file to write)", source)
    if data is None:
        refuse_source(flow, cast(str, path))
        wanted = with_priorities(flow, order, first)
        _check_room(wanted, chosen)
        write(wanted, cast(str, path), format)
        messages = _written_message(path) + messages + _losses(flow, format)
    else:
        messages = _save(flow, data, path) + messages
    advice: Callable[[Workflow, str], list[str]] = getattr(chosen, "advice", lambda flow, path: [])
    return messages + advice(flow, path or "")


def _check_room(flow: Workflow, chosen: Format) -> None:
    """Raise if the format would lose the priority of a task."""
    of_task: Callable[[Task], Collection[str]] = getattr(chosen, "lost", lambda task: ())
    name = next((task.name for task in flow.details.values() if "priority" in of_task(task)), None)
    if name is not None:
        raise FormatError(
            f"{chosen.NAME} stores a priority only with a run time, and task {shorten(name)!r} has no run time"
        )


def _written_message(path: str | None) -> list[str]:
    return [] if path in {None, "-"} else [f"wrote {path}"]


def _save(flow: Workflow, data: bytes, path: str | None) -> list[str]:
    """Write the file that was read, with priorities, to a path or in its own place; returns messages."""
    if path is not None:
        refuse_source(flow, path)
        save_bytes(data, path)
        return _written_message(path)
    place = cast(Origin, flow.origin).path or "-"
    save_bytes(data, place)
    return [f"changed only the priorities of {len(flow):,} tasks in {place}"]


def source_text(flow: Workflow) -> str | None:
    """The text that a workflow was read from, with its byte-order mark if any; None if not available."""
    origin = flow.origin
    if origin is None or origin.path is None:
        return None if origin is None else origin.text
    return load_bytes(origin.path).decode(origin.encoding)


def refuse_source(flow: Workflow, path: str) -> None:
    """Raise if *path* is a file that the workflow was read from."""
    read = {flow.origin.path, *flow.origin.files} - {None} if flow.origin else set()
    if path != "-" and os.path.realpath(path) in {os.path.realpath(str(file)) for file in read}:
        raise FormatError("cannot overwrite the file that the workflow was read from", path).cured_by("in_place")


def _source_with_priorities(flow: Workflow, order: Sequence[str], chosen: Format, first: int | None) -> bytes | None:
    """The file that the workflow was read from, with priorities and no other change; None if that is not possible.

    The result is parsed again, to check that it has the same tasks, arcs and details.
    """
    origin = flow.origin
    if origin is None or not hasattr(chosen, "prioritised"):
        return None
    source = source_text(flow)
    if source is None:
        return None
    text, numbers = detection.without_shebang(source.removeprefix("\ufeff")), priority_numbers(order, first)
    result = chosen.prioritised(text, flow, numbers)
    if result is None:
        return None
    again = parse_as(result, chosen.NAME, None, origin.reversed)
    same = again.dag == flow.dag and all(
        again.task(name) == replace(flow.task(name), priority=number) for name, number in numbers.items()
    )
    if not same:
        raise FormatError("priorities cannot be written into this file without other changes", origin.path)
    return (source[: len(source) - len(text)] + result).encode(origin.encoding)


def _losses(flow: Workflow, format: str) -> list[str]:
    """Messages on what a file in this format lacks of the workflow, or of the file that it was read from."""
    missing = lost(flow, format)
    messages = [f"{format} cannot represent {', '.join(missing)}"] if missing else []
    origin = flow.origin
    if origin is not None and origin.format in {"json", "yaml"} and may_use_templates(source_text(flow) or ""):
        messages.append("rows with foreach and parameters were written out, one row per task")
    if origin is not None and origin.format in {"pegasus", "wfcommons", "yaml", "dax", "graphml"}:
        messages.append(
            f"the file was rewritten: comments, layout and parts of {origin.format} that eligo does not read are lost"
        )
    return messages


def format_for_priorities(flow: Workflow, path: StrPath | None, format: str | None = None) -> str:
    """The format in which `write_priorities` would write; raises if it cannot represent priorities."""
    path = None if path is None else os.fspath(path)
    format = format or _with_room(format_to_write(flow, path or "-"), path or "-")  # in place, the format stays
    if not module(format).PRIORITIES:
        instead: str = getattr(module(format), "INSTEAD", "")
        hint = f" ({instead})" if instead else ""
        cure = "name another file, .json or .yaml" if path is None else "write .json or .yaml"
        place = path if path not in {None, "-"} else flow.origin and flow.origin.path
        raise FormatError(f"{format} cannot represent priorities{hint}: {cure}", display_path(place or "-"))
    if path is None and (flow.origin is None or flow.origin.path is None):
        raise FormatError("standard input cannot be changed in place (name a file to write)")
    return format


def _with_room(format: str, path: str) -> str:
    """The format, or another format of this suffix if only that can represent priorities."""
    if module(format).PRIORITIES:
        return format
    return next((name for name in reversed(detection.of_suffix(path)) if module(name).PRIORITIES), format)


def lost(flow: Workflow, format: str) -> list[str]:
    """The parts of this workflow that a format cannot represent, in words.

    >>> lost(parse('{"tasks": [{"name": "a", "run": "ls"}]}'), "arcs")
    ['commands (1 task)']
    """
    chosen = module(format)
    counts = dict.fromkeys(WORDS, 0)
    of_task: Callable[[Task], Collection[str]] = getattr(chosen, "lost", lambda task: ())
    always = {*chosen.CANNOT, *(NATIVE if chosen.CANNOT else ())}.difference(getattr(chosen, "CAN", ()))
    for task in flow.details.values():
        for name in task.details().keys() & {*always, *of_task(task)}:
            counts[name] += 1
    losses = [f"{WORDS[name]} ({n:,} task{'s' if n > 1 else ''})" for name, n in counts.items() if n]
    losses += [*_files_left_out(flow, chosen), *(["hooks"] if flow.hooks and format not in {"json", "yaml"} else [])]
    wholes = {"name": flow.name is not None, "file_sizes": bool(flow.file_sizes)}
    return [WORDS[name] for name, has in wholes.items() if has and name in chosen.CANNOT] + losses


def _files_left_out(flow: Workflow, chosen: Format) -> list[str]:
    """The files whose names the format cannot represent, in words."""
    if not hasattr(chosen, "fitted_file"):
        return []
    fit = chosen.fitted_file
    used = (file for task in flow.details.values() for file in (*task.inputs, *task.outputs))
    names = [file for file in dict.fromkeys((*used, *flow.file_sizes)) if fit(file) is None]
    count = "1 file" if len(names) == 1 else f"{len(names):,} files"
    return [f"the names of {count}, for example {shorten(names[0])!r} (omitted)"] if names else []


def generate(flow: Dag | Workflow, format: str, names: str = "keep") -> str:
    """The text of a workflow in a format; task names that it cannot represent raise, or are changed if *names* is "change".

    >>> print(generate(parse("a+b c"), "dagman", names="change"), end="")
    # a_b was 'a+b'
    JOB a_b noop.sub NOOP
    JOB c noop.sub NOOP
    PARENT a_b CHILD c
    """
    return _generate(flow, format, names)[0]


def _generate(flow: Dag | Workflow, format: str, names: str) -> tuple[str, dict[str, str]]:
    chosen, workflow = module(format), (flow if isinstance(flow, Workflow) else Workflow(flow)).labelled()
    if names not in {"keep", "change"}:
        raise InputError(f"names must be 'keep' or 'change', got {shorten(names)!r}")
    if names == "change" and hasattr(chosen, "fitted_file"):
        workflow = with_files(workflow, chosen.fitted_file)
    if names == "change" and hasattr(chosen, "fitted"):
        workflow, old = rename_tasks(workflow, chosen.fitted)
        if old:
            return chosen.generate(workflow, old=old), old
    return chosen.generate(with_own_shell(workflow) if format in OWN else workflow), {}


def _in_classes(flow: Workflow, order: Sequence[str]) -> tuple[list[str], list[str]]:
    """The order with tasks of larger priority first, and a message if that matters."""
    classes = len({priority or 0 for priority in flow.column("priority")})
    note = f"existing priorities are kept as {classes:,} classes; the order applies within each class unless overridden"
    return list(map(str, in_priority_order(flow, order))), [note] if classes > 1 else []
