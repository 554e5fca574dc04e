"""Writes DAGMan files: a workflow, priorities for the nodes of an existing file, and rescue files.

A workflow has JOB, PARENT, CATEGORY and PRIORITY lines. A command is written as an inline submit description, unless it is
the name of a submit file. A task without a command becomes a NOOP node, which runs nothing but keeps the order.

Priorities for an existing file are written beside it or into it. Beside it, there are a file of PRIORITY lines and a wrapper
that INCLUDEs the user's file and then these lines. (DAGMan knows the nodes inside splices only after an INCLUDE has ended,
and the later one of two priorities counts.) The wrapper repeats everything that DAGMan only reads in the submitted file:
CONFIG, ENV, SET_JOB_ATTR, and the rescue file. In the existing file, only PRIORITY lines change. Nodes inside splices cannot
be named there.

The first task gets the priority -1, or the number asked for, and each following task one less. The jobs of a node have its
priority; below 0, the user's other jobs run first. DAGMan's own join nodes run nothing; they get one more than the first
task, so that they are never delayed.

A rescue file lists the nodes that are done, so that DAGMan or eligo resumes there.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from eligo.errors import FormatError, InputError, shorten
from eligo.formats.dagman.reader import rescue_file
from eligo.formats.dagman.scripts import BLANK, RESERVED, Lines, keyword, script_of, tokens
from eligo.formats.dagman.splices import is_join
from eligo.formats.dagman.submission import description_of
from eligo.formats.shared.document import children
from eligo.formats.shared.files import Beside, load_any, load_bytes, plain_name, save_bytes
from eligo.workflow import NOTHING, Origin, Task, Workflow, priority_numbers

_SUBMIT_FILE = re.compile(r"[^\s\"'{}@]+\.(?:sub|submit|submission|condor|cmd|jdl|job)", re.IGNORECASE)
_WORD = re.compile(r"[^\s\"'\\]+")
_LARGEST = 2**31


def generate(flow: Workflow, old: Mapping[str, str] = MappingProxyType({})) -> str:
    """The DAGMan text of a workflow; *old* has the old names of renamed nodes."""
    return "".join([*(f"# {name} was {before!r}\n" for name, before in old.items()), *_lines(flow)])


def lost(task: Task) -> set[str]:
    """The details of a task that cannot be written: a category of several words; cores and memory without a command."""
    keys = {"cores", "memory"} if task.command in (None, (), NOTHING) or _is_file(task.command) else set()
    return keys | ({"category"} if task.category is not None and not _WORD.fullmatch(task.category) else set())


def word(name: str) -> str:
    """The name of a node; raises if DAGMan cannot represent it.

    >>> word("two words")
    Traceback (most recent call last):
    eligo.errors.FormatError: DAGMan cannot represent the task name 'two words': no blanks, quotes or +, no final backslash
    """
    if fitted(name) == name:
        return name
    reserved = keyword(name) in RESERVED
    why = "it is a reserved word" if reserved else "no blanks, quotes or +, no final backslash"
    raise FormatError(f"DAGMan cannot represent the task name {shorten(name)!r}: {why}").cured_by("names")


def fitted(name: str) -> str:
    """The name, or a similar one that DAGMan can represent.

    >>> fitted("two words"), fitted("Child")
    ('two_words', 'Child_')
    """
    plain = re.sub(r"[ \t\r\v\f\"'+]|\\$", "_", name) or "_"
    return f"{plain}_" if keyword(plain) in RESERVED else plain


def _lines(flow: Workflow) -> Iterator[str]:
    names = {name: word(name) for name in flow.dag.tasks}
    from_dagman = flow.origin is not None and flow.origin.format == "dagman"
    if not names:
        yield "# no tasks\n"
    for name in names:
        yield _node(flow.task(name), from_dagman)
    for name, below in zip(names, children(flow.dag), strict=True):
        if below:
            yield f"PARENT {name} CHILD {' '.join(below)}\n"
    for name, task in flow.details.items():
        if task.category is not None and _WORD.fullmatch(task.category):
            yield f"CATEGORY {name} {task.category}\n"
    for name, task in flow.details.items():
        if task.priority is not None:
            yield priority_line(name, task.priority)


def priority_line(name: str, value: int) -> str:
    """The line that sets the priority of a node."""
    if not -_LARGEST <= value < _LARGEST:
        raise FormatError(f"DAGMan cannot represent the priority of task {shorten(name)!r}: it exceeds 32 bits")
    return f"PRIORITY {name} {value}\n"


def _node(task: Task, from_dagman: bool) -> str:
    command = task.command
    if not command or command == NOTHING:
        return f"JOB {task.name} noop.sub NOOP\n"
    if isinstance(command, str) and (_is_file(command) or (from_dagman and _WORD.fullmatch(command))):
        return f"JOB {task.name} {command}\n"
    if (
        isinstance(command, tuple)
        and len(command) == 2
        and command[0] == "condor_submit_dag"
        and _WORD.fullmatch(command[1])
    ):
        return f"SUBDAG EXTERNAL {task.name} {command[1]}\n"
    lines = "".join(f"    {line}\n" for line in description_of(task, literal=not from_dagman))
    return f"JOB {task.name} {{\n{lines}}}\n"


def _is_file(command: str | tuple[str, ...]) -> bool:
    return isinstance(command, str) and _SUBMIT_FILE.fullmatch(command) is not None


# Priorities

_SETTING = re.compile(r"^[ \t]*(?:config|env|set[-_]job[-_]attr)[ \t]", re.IGNORECASE | re.MULTILINE)
_THROTTLE = re.compile(r"^\s*DAGMAN_MAX_JOBS_(?:SUBMITTED|IDLE)\s*=\s*[1-9]", re.IGNORECASE | re.MULTILINE)
_DONE = re.compile(r"^[ \t]*done[ \t]+(\S+)", re.IGNORECASE | re.MULTILINE)
_OWN_PRIORITY = re.compile(r"^\s*(?:priority|job_?prio)\s*=", re.IGNORECASE | re.MULTILINE)
_LINE = re.compile(r"([ \t]*\S+[ \t]+\S+[ \t]+)[^\s]+([ \t\r]*)")
#: The maximum number and size of submit files that are searched.
_MOST_FILES, _LARGEST_FILE = 100, 2**20


#: the default priority of the first task
FIRST = -1


def write_wrapper(flow: Workflow, order: Sequence[str], path: str, first: int | None = None) -> list[str]:
    """Write a wrapper of the file that the workflow was read from, and a file of priorities; returns messages."""
    origin = _origin(flow)
    source = os.path.basename(origin.path or "")
    lines = [f"INCLUDE {source}\n"]
    if path != "-":
        _check_place(origin, path)
    wanted = values(order, FIRST if first is None else first)
    priorities = [priority_line(_portable_name(name), value) for name, value in wanted.items()]
    if priorities and origin.joins:
        priorities.insert(0, priority_line("ALL_NODES", max(wanted.values()) + 1))  # joins have no names of their own
    text = load_any(origin.path or "").text
    settings = script_of(text, origin.path).settings if _SETTING.search(text) else []
    head = [f"{line}\n" for line in settings]
    if path == "-":
        save_bytes("".join([*head, *lines, *priorities]).encode(origin.encoding), path)
        return []
    beside = f"{path}.prio"
    save_bytes("".join(["# Priorities by eligo\n", *priorities]).encode(origin.encoding), beside)
    note = f"# {source} with priorities by eligo: submit it in this folder\n"
    lines = [note, *head, *lines, f"INCLUDE {os.path.basename(beside)}\n"]
    save_bytes("".join(lines).encode(origin.encoding), path)
    messages = [f"wrote {path}, which includes {source} and {os.path.basename(beside)}", *_range(wanted)]
    return messages + _rescue(origin, path) + advice(flow, path, settings)


def _range(wanted: Mapping[str, int]) -> list[str]:
    """The message on the range of priorities, compared with the user's other jobs."""
    if not wanted:
        return []
    first, last = max(wanted.values()), min(wanted.values())
    others = "run before them" if first < 0 else "may wait for them" if last > 0 else "are among them"
    return [f"priorities run from {first} (first) to {last}; your other jobs, at priority 0, {others}"]


def write_in_place(flow: Workflow, order: Sequence[str], first: int | None = None) -> list[str]:
    """Change only the PRIORITY lines of the file that the workflow was read from; returns messages for the user."""
    origin = _origin(flow)
    path = origin.path or ""
    inside = next((name for name in order if "+" in name and not is_join(name)), None)
    if inside is not None:
        raise FormatError(
            f"a file with splices cannot be changed in place: DAGMan does not accept {shorten(inside)!r} in the file that "
            "splices it (write a wrapper instead)",
            path,
        )
    text, wanted = load_bytes(path).decode(origin.encoding), values(order, FIRST if first is None else first)
    try:
        new = with_priority_lines(text, wanted)
    except FormatError as error:
        raise FormatError(error.message, path) from None
    save_bytes(new.encode(origin.encoding), path)
    settings = script_of(text.removeprefix("\ufeff"), path).settings if _SETTING.search(text) else []
    return [f"changed the PRIORITY lines of {path}", *_range(wanted), *advice(flow, path, settings)]


def values(order: Sequence[str], first: int = FIRST) -> dict[str, int]:
    """The priority of each task: *first* for the first one, and one less for each that follows; join nodes have none.

    >>> values(["a", "_condor_join_node0", "b"])
    {'a': -1, 'b': -2}
    """
    return priority_numbers([name for name in order if not is_join(name)], first)


def with_priority_lines(text: str, wanted: dict[str, int]) -> str:
    """The text with these priorities: existing lines are changed, lines for ALL_NODES removed, other lines added.

    >>> with_priority_lines("JOB a x\\nPriority  a  5 \\nJOB b x", {"a": 1, "b": 2})
    'JOB a x\\nPriority  a  1 \\nJOB b x\\nPRIORITY b 2\\n'
    """
    lines: list[str | None] = [*text.split("\n")]
    statements, includes = _priority_lines(text)
    updated: set[str] = set()
    for first, last, name in statements:
        if keyword(name) == "ALL_NODES" or (includes and name in wanted):
            lines[first - 1 : last] = [None] * (last - first + 1)
        elif name in wanted:
            old = "\n".join(line or "" for line in lines[first - 1 : last])
            lines[first - 1 : last] = [_with_value(old, name, wanted[name])] + [None] * (last - first)
            updated.add(name)
    end = "\r\n" if "\r\n" in text[: text.find("\n") + 1] else "\n"
    body = "\n".join(line for line in lines if line is not None)
    if lines[-1] is None:
        body = body.removesuffix("\r")  # of the line before, whose line end is removed
    added = [priority_line(_portable_name(name), value) for name, value in wanted.items() if name not in updated]
    if added and _ends_in_continuation(body):
        raise FormatError("the last line ends in a backslash, so no PRIORITY line can follow (remove the backslash)")
    gap = end if added and body and not body.endswith("\n") else ""
    return body + gap + "".join(added).replace("\n", end)


def advice(flow: Workflow, path: str, settings: Sequence[str] = ()) -> list[str]:
    """Messages on what is needed for DAGMan to apply the priorities."""
    messages = []
    if not _is_throttled(flow, settings):
        messages += [
            "DAGMan applies priorities only to throttled nodes: set a limit N slightly above the slots you get,",
            f"  condor_submit_dag -maxjobs N {os.path.basename(path)}",
            "  or, in the file named by a CONFIG line: DAGMAN_MAX_JOBS_SUBMITTED = N",
        ]
    own = _files_with_priority(flow) if flow.origin and flow.origin.format == "dagman" else []
    if own:
        messages.append(
            f"`priority =` in {', '.join(own[:3])}{' and others' if own[3:] else ''} overrides these priorities"
        )
    return messages


def _origin(flow: Workflow) -> Origin:
    origin = flow.origin
    if origin is None or origin.path is None:
        raise FormatError(
            "priorities for DAGMan are written beside its file, so standard input cannot be used (give the file's name)"
        )
    if plain_name(origin.path) != origin.path:
        raise FormatError("DAGMan cannot read compressed files (decompress it first)", origin.path)
    return origin


def _check_place(origin: Origin, path: str) -> None:
    source = origin.path or ""
    if os.path.realpath(path) == os.path.realpath(source):
        raise FormatError("this is the file that was read (give another name, or change it in place)", path)
    read = {os.path.realpath(file) for file in origin.files}
    for target in (path, f"{path}.prio"):
        if os.path.realpath(target) in read:
            raise FormatError(f"{source} includes this file (give another name)", target)
    folder = os.path.dirname(source)
    if os.path.realpath(os.path.dirname(path)) != os.path.realpath(folder):
        better = os.path.join(folder, os.path.basename(path))
        raise FormatError(
            f"the paths in {source} are relative to its folder, so the wrapper must be there too: {better}", path
        )
    for name in (source, path):
        if re.search(r"[\s\"'\\]", os.path.basename(name)):
            raise FormatError("DAGMan cannot INCLUDE a file whose name has blanks, quotes or backslashes", name)
    if plain_name(path) != path:
        raise FormatError("DAGMan cannot read compressed files", path)


def _portable_name(name: str) -> str:
    if tokens(name) != [name]:
        raise FormatError(f"the name {shorten(name)!r} cannot be written so that all versions of DAGMan read it")
    return name


def _rescue(origin: Origin, path: str) -> list[str]:
    """Copy the rescue file of the original for the wrapper, because DAGMan searches one with the submitted file's name."""
    there, source = rescue_file(Beside(path)), rescue_file(Beside(origin.path))
    if there is not None and (source is None or _done_by(source) <= _done_by(there)):
        return [f"DAGMan will skip the nodes that {there}, an existing file, lists as done"]
    if source is None:
        return []
    if there is not None and not _done_by(there) <= _done_by(source):
        raise FormatError(f"{source} and this file list different tasks as done (keep one of them)", there)
    number = 1 + int(there.rpartition("rescue")[2]) if there else int(source.rpartition("rescue")[2])
    copy = f"{path}.rescue{number:03}"
    save_bytes(load_bytes(source), copy)
    return [f"wrote {copy}, a copy of {source}, so that finished tasks are not repeated"]


def _done_by(rescue: str) -> set[str]:
    """The nodes that a rescue file lists as done."""
    return set(_DONE.findall(load_any(rescue).text))


def _is_throttled(flow: Workflow, settings: Sequence[str]) -> bool:
    parted = (line.split(None, 1) for line in settings)
    files = [words[1].strip("\"' \t") for words in parted if keyword(words[0]) == "CONFIG" and len(words) > 1]
    return any(_THROTTLE.search(_text_beside(flow, file)) for file in files)


def _files_with_priority(flow: Workflow) -> list[str]:
    files = dict.fromkeys(task.command for task in flow.details.values() if isinstance(task.command, str))
    return [name for name in list(files)[:_MOST_FILES] if _OWN_PRIORITY.search(_text_beside(flow, name))]


def _text_beside(flow: Workflow, name: str) -> str:
    """The text of a small file that the workflow names; empty if it cannot be read."""
    beside = Beside(flow.origin.path if flow.origin else None, _LARGEST_FILE)
    try:
        return beside.load(beside.place(name))
    except InputError:
        return ""


def _priority_lines(text: str) -> tuple[list[tuple[int, int, str]], bool]:
    """The first and last line of every PRIORITY command with its node, and whether there are INCLUDE commands."""
    lines, statements, includes = Lines(text.removeprefix("\ufeff")), [], False
    for line in lines.take(lines.text):
        words = line.split(None, 3)
        kind = keyword(words[0])
        if kind == "PRIORITY":
            statements.append((lines.start, lines.number, tokens(line)[1]))
        elif kind == "INCLUDE":
            includes = True
        elif kind in {"JOB", "NODE", "FINAL", "PROVISIONER", "SERVICE", "SUBMIT_DESCRIPTION"}:
            place = tokens(line)[2:3]
            if place:
                lines.description(place[0])
    return statements, includes


def _ends_in_continuation(text: str) -> bool:
    """Whether the last command ends in a backslash, and would continue on an added line."""
    lines = (line.strip(BLANK) for line in reversed(text.split("\n")))
    last = next((line for line in lines if line and not line.startswith(("#", "//"))), "")
    return last.endswith("\\")


def _with_value(line: str, name: str, value: int) -> str:
    """The line that sets a priority, with another value; several joined lines become one."""
    match = _LINE.fullmatch(line)
    if match:
        return f"{match[1]}{value}{match[2]}"
    return priority_line(_portable_name(name), value).rstrip("\n") + ("\r" if line.endswith("\r") else "")


# Rescue files

#: Features that affect when, where and how often a node runs, but not the result of a node that succeeded.
PLACING = frozenset(
    {"concurrency_limits", "hold", "maxjobs", "periodic_hold", "periodic_release", "periodic_remove", "request_cpus"}
    | {"request_gpus", "request_memory", "requirements", "retry", "weak"}
)


def rescue_text(flow: Workflow, done: Iterable[str]) -> str:
    """The text of a rescue file: the nodes that were done when the workflow was read, and those in *done*."""
    before = flow.origin.done if flow.origin else ()
    names = dict.fromkeys(name for name in (*before, *done) if not is_join(name))
    return "".join([f"# {len(names)} finished nodes\n", *(f"DONE {name}\n" for name in names)])


def doubtful(flow: Workflow, executed: Iterable[str]) -> set[str]:
    """The executed nodes that must not count as done for DAGMan, because a run ignored a feature of them or an ancestor.

    An example is a node whose POST script did not run; its descendants may have read wrong results.
    """
    asked = flow.origin.unhonoured if flow.origin else ()
    tasks = {str(task) for each in asked if each.key.lower() not in PLACING for task in each.tasks}
    if not tasks:
        return set()
    labels = flow.dag.labels
    for v in flow.dag.order.tolist():
        if any(labels[u] in tasks for u in flow.dag.parents_of(v).tolist()):
            tasks.add(labels[v])
    return tasks.intersection(executed)


def next_rescue(path: str) -> str:
    """The name of the next rescue file for this DAGMan file.

    >>> next_rescue("nowhere/x.dag")
    'nowhere/x.dag.rescue001'
    """
    last = rescue_file(Beside(path))
    return f"{path}.rescue{1 + int(last.rpartition('rescue')[2]) if last else 1:03}"
