"""Workflows as text: one module a format, each with the same few names.

| format      | what it is                                 | suffixes                        |
|-------------|--------------------------------------------|---------------------------------|
| `json`      | eligo's own                                | .json                           |
| `yaml`      | the same as YAML                           | .yaml .yml                      |
| `arcs`      | a parent and a child a line                | .arcs .edges .txt               |
| `csv`       | a table of arcs                            | .csv .tsv                       |
| `dagman`    | HTCondor DAGMan                            | .dag                            |
| `wfcommons` | WfFormat 1.0 to 1.6                        | .json, with "workflow"          |
| `pegasus`   | Pegasus 5                                  | .yml .yaml, with "pegasus"      |
| `dax`       | older Pegasus                              | .dax .xml                       |
| `d3dag`     | Snakemake's --d3dag; d3-dag's own          | .json, with "nodes", or a list  |
| `dot`       | Graphviz; Snakemake's --dag and Nextflow's | .dot .gv                        |
| `mermaid`   | flowcharts; Nextflow's -with-dag, or pages | .mmd .mermaid                   |
| `makeflow`  | Makeflow                                   | .mf .makeflow                   |
| `ninja`     | build.ninja                                | .ninja                          |
| `jx`        | Makeflow's JSON                            | .jx .json, with "rules"         |
| `graphml`   | networkx, igraph, yEd                      | .graphml .xml                   |

A format's module has `NAME`, `CANNOT` (what it cannot represent), `parse(text)`, `generate(flow)` and
`sniff(text)`: whether a text looks like it. To add a format is to write its module and name it in `MODULES`. Some have more:
`TAKES`: what its parse takes beside the text, as keywords: "beside", a `files.Beside`, or out of `Given`;
`lost(task)`: what of this task cannot be written; `prioritised`: a text with priorities and no other change;
`write_wrapper` and `write_in_place`: priorities for a file as it stands;
`FIRST`: the priority that the first task of an order gets, where that is not their number; `advice`: what to tell then;
`runnable(flow)`: the workflow with what its tasks run, where that is in other files: see `eligo.formats.fidelity`;
`INSTEAD`: where there is no place for priorities, what the engine goes by.

`fitted(name)`: the name, or one like it that the format can hold; its `generate` then takes the *old* names too.
`fitted_file(name)`: another name of the same file that the format can hold, or None: then the file is left out.

How long tasks took in earlier runs is read from other files too: see `eligo.formats.histories`.

Tasks and arcs are never lost: a format that cannot write a task's name refuses to, or changes it where that is asked for.
What else a format cannot represent, such as the commands in an arc list, is left out; `lost` tells what that is.

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
from eligo.formats.detection import MODULES, WORDS, Format, StrPath, detect, format_to_write, module
from eligo.formats.histories import History
from eligo.formats.histories.reader import read_history
from eligo.formats.reader import parse, parsed, read, read_claim, read_order
from eligo.formats.shared.files import LARGEST_FILE, display_path, load_bytes, save, save_bytes
from eligo.formats.shared.names import renamed, with_files
from eligo.workflow import Origin, Task, Workflow, in_priority_order, priority_numbers, with_priorities

__all__ = [
    "LARGEST_FILE",
    "MODULES",
    "History",
    "detect",
    "format_for_priorities",
    "format_to_write",
    "generate",
    "lost",
    "module",
    "parse",
    "read",
    "read_claim",
    "read_history",
    "read_order",
    "refuse_source",
    "source_text",
    "write",
    "write_priorities",
]


def write(flow: Dag | Workflow, path: StrPath, format: str | None = None, names: str = "keep") -> dict[str, str]:
    """Write a workflow to a file, or to standard output if *path* is "-"; compressed if the name ends in .gz.

    Without *format*, it is taken from the file's name; if several fit, it is the format that the workflow was read from. A
    task name that the format cannot represent is an error, or is changed if *names* is "change". Returns the old names of
    renamed tasks by their new names.
    """
    path = os.fspath(path)
    try:
        text, old = _generated(flow, format or format_to_write(flow, path), names)
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

    Of the file that the workflow was read from, everything else stays as it is. Priorities that tasks have already part them
    into classes, and *order* counts inside each class; where *override*, it counts throughout. Where *path* is None, that
    file itself is changed. *first* is the priority of the first task. Returned is what to tell the user, a line each.
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
    data = _edited(flow, order, chosen, first) if format == came_from else None
    if data is None and path is None:
        source = cast(Origin, flow.origin).path
        raise FormatError("priorities cannot be written into this file (name another file to write)", source)
    if data is None:
        refuse_source(flow, cast(str, path))
        wanted = with_priorities(flow, order, first)
        _check_room(wanted, chosen)
        write(wanted, cast(str, path), format)
        messages = _wrote(path) + messages + _reduced(flow, format)
    else:
        messages = _saved(flow, data, path) + messages
    advice: Callable[[Workflow, str], list[str]] = getattr(chosen, "advice", lambda flow, path: [])
    return messages + advice(flow, path or "")


def _check_room(flow: Workflow, chosen: Format) -> None:
    """Refuse a format that would leave the priority of some task out."""
    of_task: Callable[[Task], Collection[str]] = getattr(chosen, "lost", lambda task: ())
    name = next((task.name for task in flow.details.values() if "priority" in of_task(task)), None)
    if name is not None:
        raise FormatError(
            f"{chosen.NAME} stores a priority only with a run time, and task {shorten(name)!r} has no run time"
        )


def _wrote(path: str | None) -> list[str]:
    return [] if path in {None, "-"} else [f"wrote {path}"]


def _saved(flow: Workflow, data: bytes, path: str | None) -> list[str]:
    """Write the file that was read with its priorities, elsewhere or in its own place."""
    if path is not None:
        refuse_source(flow, path)
        save_bytes(data, path)
        return _wrote(path)
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


def _edited(flow: Workflow, order: Sequence[str], chosen: Format, first: int | None) -> bytes | None:
    """What the workflow was read from with priorities and nothing else changed, where that can be done.

    It is read again, so that what is written has the tasks, the arcs and the details that it had, and the priorities.
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
    again = parsed(result, chosen.NAME, None, origin.reversed)
    same = again.dag == flow.dag and all(
        again.task(name) == replace(flow.task(name), priority=number) for name, number in numbers.items()
    )
    if not same:
        raise FormatError("priorities cannot be written into this file without other changes", origin.path)
    return (source[: len(source) - len(text)] + result).encode(origin.encoding)


def _reduced(flow: Workflow, format: str) -> list[str]:
    """What a file of this format has not of what the workflow, or the file that it was read from, had."""
    missing = lost(flow, format)
    messages = [f"{format} cannot represent {', '.join(missing)}"] if missing else []
    origin = flow.origin
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
    """The format, or another one of this suffix where only that has a place for priorities."""
    others = (
        [] if module(format).PRIORITIES else [name for name in detection.of_suffix(path) if module(name).PRIORITIES]
    )
    return others[-1] if others else format


def lost(flow: Workflow, format: str) -> list[str]:
    """What a format cannot represent of this workflow, in words.

    >>> lost(parse('{"tasks": [{"name": "a", "run": "ls"}]}'), "arcs")
    ['commands (1 task)']
    """
    chosen = module(format)
    counts = dict.fromkeys(WORDS, 0)
    of_task: Callable[[Task], Collection[str]] = getattr(chosen, "lost", lambda task: ())
    for task in flow.details.values():
        for name in task.details().keys() & {*chosen.CANNOT, *of_task(task)}:
            counts[name] += 1
    losses = [f"{WORDS[name]} ({n:,} task{'s' if n > 1 else ''})" for name, n in counts.items() if n]
    losses += _files_left_out(flow, chosen)
    wholes = {"name": flow.name is not None, "file_sizes": bool(flow.file_sizes)}
    return [WORDS[name] for name, has in wholes.items() if has and name in chosen.CANNOT] + losses


def _files_left_out(flow: Workflow, chosen: Format) -> list[str]:
    """The files whose names the format cannot hold, in words."""
    if not hasattr(chosen, "fitted_file"):
        return []
    fit = chosen.fitted_file
    used = (file for task in flow.details.values() for file in (*task.inputs, *task.outputs))
    names = [file for file in dict.fromkeys((*used, *flow.file_sizes)) if fit(file) is None]
    count = "1 file" if len(names) == 1 else f"{len(names):,} files"
    return [f"the names of {count}, for example {shorten(names[0])!r} (omitted)"] if names else []


def generate(flow: Dag | Workflow, format: str, names: str = "keep") -> str:
    """The text of a workflow in a format; *names* that it cannot represent are refused, or changed with "change".

    >>> print(generate(parse("a+b c"), "dagman", names="change"), end="")
    # a_b was 'a+b'
    JOB a_b noop.sub NOOP
    JOB c noop.sub NOOP
    PARENT a_b CHILD c
    """
    return _generated(flow, format, names)[0]


def _generated(flow: Dag | Workflow, format: str, names: str) -> tuple[str, dict[str, str]]:
    chosen, workflow = module(format), (flow if isinstance(flow, Workflow) else Workflow(flow)).labelled()
    if names not in {"keep", "change"}:
        raise InputError(f"names must be 'keep' or 'change', got {shorten(names)!r}")
    if names == "change" and hasattr(chosen, "fitted_file"):
        workflow = with_files(workflow, chosen.fitted_file)
    if names == "change" and hasattr(chosen, "fitted"):
        workflow, old = renamed(workflow, chosen.fitted)
        if old:
            return chosen.generate(workflow, old=old), old
    return chosen.generate(workflow), {}


def _in_classes(flow: Workflow, order: Sequence[str]) -> tuple[list[str], list[str]]:
    """The order with tasks of larger priority first, and what to tell of that."""
    classes = len({priority or 0 for priority in flow.column("priority")})
    note = f"existing priorities are kept as {classes:,} classes; the order applies within each class unless overridden"
    return list(map(str, in_priority_order(flow, order))), [note] if classes > 1 else []
