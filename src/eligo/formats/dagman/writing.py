"""A workflow as a DAGMan file of its own: JOB, PARENT, CATEGORY and PRIORITY lines.

A command is written as a submit description in the file, or named where it is the file of one. A task of which no command is
known becomes a NOOP node, which runs nothing but keeps the order.
"""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from eligo.errors import FormatError, shorten
from eligo.formats.dagman.descriptions import description_of
from eligo.formats.dagman.lexing import RESERVED
from eligo.formats.shared.document import children
from eligo.workflow import NOTHING, Task, Workflow

_SUBMIT_FILE = re.compile(r"[^\s\"'{}@]+\.(?:sub|submit|submission|condor|cmd|jdl|job)", re.IGNORECASE)
_WORD = re.compile(r"[^\s\"'\\]+")
_LARGEST = 2**31


def generate(flow: Workflow, old: Mapping[str, str] = MappingProxyType({})) -> str:
    """The DAGMan text of a workflow; *old* has the name that a node had before it was renamed."""
    return "".join([*(f"# {name} was {before!r}\n" for name, before in old.items()), *_lines(flow)])


def lost(task: Task) -> set[str]:
    """What of a task has no place in the text: a category that is no single word, cores and memory where nothing runs."""
    gone = {"cores", "memory"} if task.command in (None, (), NOTHING) or _is_file(task.command) else set()
    return gone | ({"category"} if task.category is not None and not _WORD.fullmatch(task.category) else set())


def word(name: str) -> str:
    """The name of a node, if DAGMan can hold it.

    >>> word("two words")
    Traceback (most recent call last):
    eligo.errors.FormatError: DAGMan cannot hold the task name 'two words': no blanks, quotes or +, no backslash at its end
    """
    if fitted(name) == name:
        return name
    reserved = _is_reserved(name)
    why = "it is a word of its own" if reserved else "no blanks, quotes or +, no backslash at its end"
    raise FormatError(f"DAGMan cannot hold the task name {shorten(name)!r}: {why}").cured_by("names")


def fitted(name: str) -> str:
    """The name as DAGMan can hold it.

    >>> fitted("two words"), fitted("Child")
    ('two_words', 'Child_')
    """
    plain = re.sub(r"[ \t\r\v\f\"'+]|\\$", "_", name) or "_"
    return f"{plain}_" if _is_reserved(plain) else plain


def _is_reserved(name: str) -> bool:
    return name.upper().replace("-", "_") in RESERVED


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
        raise FormatError(f"DAGMan cannot hold the priority of task {shorten(name)!r}: it has more than 32 bits")
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
