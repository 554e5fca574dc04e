"""What the nodes of a DAGMan file run, where their submit descriptions tell it plainly: a program with its arguments."""

import re
from dataclasses import replace

from eligo.errors import FormatError, InputError, shorten
from eligo.formats.dagman.descriptions import facts_in
from eligo.formats.shared.files import Beside
from eligo.workflow import NOTHING, Task, Workflow

LARGEST_DESCRIPTION = 2**20
_QUEUE = re.compile(r"^\s*queue\b[ \t]*(.*)$", re.IGNORECASE | re.MULTILINE)


def runnable(flow: Workflow) -> Workflow:
    """The workflow with a program for every node, and `NOTHING` for NOOP nodes; submit files are read beside the file.

    Refused are descriptions that a script cannot stand for: with macros, with several jobs, or that cannot be read.
    """
    beside = Beside(flow.origin.path if flow.origin else None, LARGEST_DESCRIPTION * len(flow))
    details = {name: _told(flow.task(name), beside) for name in flow.dag.tasks}
    return replace(flow, details=details)


def _told(task: Task, beside: Beside) -> Task:
    if task.command is None:
        return replace(task, command=NOTHING)
    text = _description(task, beside) if isinstance(task.command, str) else None
    if text is not None:
        facts = facts_in(text.splitlines())
        task = replace(task, command=facts.command, cores=facts.cores, memory=facts.memory)
    words = (task.command,) if isinstance(task.command, str) else task.command or ()
    macro = next((word for word in words if "$(" in word or "$$" in word), None)
    if macro is not None:
        raise FormatError(f"node {shorten(task.name)!r}: a script cannot stand for the macro in {shorten(macro)!r}")
    return task


def _description(task: Task, beside: Beside) -> str | None:
    """What is in the submit file of a node; None where it has none, but a line for a shell."""
    name = str(task.command)
    try:
        text = beside.load(beside.place(name))
    except InputError as error:
        if len(name.split()) > 1:
            return None
        raise FormatError(f"node {shorten(task.name)!r}: its submit file is needed, and {error}") from None
    jobs = [words for words in _QUEUE.findall(text) if words.strip() not in {"", "1"}]
    if jobs or len(_QUEUE.findall(text)) > 1:
        raise FormatError(
            f"node {shorten(task.name)!r}: {name} submits several jobs, which one script cannot stand for"
        )
    return _QUEUE.sub("", text)
