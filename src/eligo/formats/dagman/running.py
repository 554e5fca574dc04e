"""What the nodes of a DAGMan file run: a program with its arguments, by their submit descriptions and VARS."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from eligo.errors import FormatError, InputError, shorten
from eligo.formats.dagman.joining import Note
from eligo.formats.dagman.submission import Asked, Description, Variable, described, unhonoured_in, variables_in
from eligo.formats.shared.files import Beside
from eligo.workflow import NOTHING, Origin, Task, Unhonoured, Workflow

LARGEST_DESCRIPTION = 2**20
_QUEUE = re.compile(r"^\s*queue\b[ \t]*(.*)$", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class NodeScript:
    """What a DAGMan file says of nodes beside their tasks: descriptions that stand in it, and VARS with their places."""

    descriptions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    variables: Mapping[str, list[Note]] = field(default_factory=dict)
    #: whether submit files may be outside the folder of the DAGMan file
    allow_outside: bool = False


def runnable(flow: Workflow) -> Workflow:
    """The workflow with a program for every node, and `NOTHING` for NOOP nodes; submit files are read beside the file.

    What descriptions ask for and a run does not do is added to what the origin lists. Refused are descriptions of several
    jobs, with macros that only HTCondor can expand, or that cannot be read.
    """
    origin = flow.origin or Origin(format="dagman")
    reader = _DescriptionReader(origin, LARGEST_DESCRIPTION * len(flow))
    details = {name: reader.task(flow.task(name)) for name in flow.dag.tasks}
    return replace(flow, details=details, origin=replace(origin, unhonoured=reader.unhonoured(), script=None))


class _DescriptionReader:
    """Reads the submit descriptions of nodes, each file once."""

    def __init__(self, origin: Origin, limit: int) -> None:
        self.known = origin.unhonoured
        self.script = origin.script if isinstance(origin.script, NodeScript) else NodeScript()
        self.beside = Beside(origin.path, limit, self.script.allow_outside)
        self.files: dict[str, Description] = {}
        self.found: dict[tuple[str, str], list[str]] = {}

    def unhonoured(self) -> tuple[Unhonoured, ...]:
        """What is not honoured, by key and place."""
        found = (Unhonoured(key, where, tuple(tasks)) for (key, where), tasks in self.found.items())
        return (*self.known, *found)

    def task(self, task: Task) -> Task:
        """The task with what its description says."""
        if task.command is None:
            return replace(task, command=NOTHING)
        name = str(task.name)
        try:
            description = self._description(task, name)
            if description is None:
                return task
            variables = self._variables(name)
            asked = described(description, variables)
        except FormatError as error:
            message = f"node {shorten(name)!r}: {error.message}"
            raise FormatError(message, error.path, error.line).cured_by(error.remedy or "") from None
        self._list(name, description, asked)
        task = replace(task, inputs=asked.inputs, outputs=asked.outputs)
        return replace(task, command=asked.facts.command, cores=asked.facts.cores, memory=asked.facts.memory)

    def _list(self, name: str, description: Description, asked: Asked) -> None:
        """Remember what of a description is not honoured."""
        for key, line in description.unhonoured.items():
            self._found(key, description.file if description.is_inline else f"{description.file}:{line}", name)
        for key in asked.unhonoured:
            self._found(key, description.file, name)

    def _found(self, key: str, where: str, name: str) -> None:
        self.found.setdefault((key, where), []).append(name)

    def _variables(self, name: str) -> list[Variable]:
        found: list[Variable] = []
        for note in self.script.variables.get(name, ()):
            variables = variables_in(note.remark.text, name)
            for key in ["VARS"] if variables is None else unhonoured_in(variables):
                self._found(key, note.where, name)
            found += variables or ()
        return found

    def _description(self, task: Task, name: str) -> Description | None:
        """The submit description of a node; None where it has none, but a command already."""
        lines = self.script.descriptions.get(name)
        if lines is not None:
            return Description.of(f"the description of {shorten(name)!r}", lines, is_inline=True)
        if not isinstance(task.command, str):
            return None
        if task.command not in self.files:
            text = self._text(task.command)
            if text is None:
                return None
            self.files[task.command] = Description.of(task.command, text.splitlines())
        return self.files[task.command]

    def _text(self, name: str) -> str | None:
        """What is in a submit file, without its queue statement; None where the name is a line for a shell."""
        try:
            text = self.beside.load(self.beside.place(name))
        except InputError as error:
            if len(name.split()) > 1:
                return None
            raise FormatError(f"its submit file is needed, and {error}").cured_by(error.remedy or "") from None
        queues = _QUEUE.findall(text)
        if len(queues) > 1 or any(words.strip() not in {"", "1"} for words in queues):
            raise FormatError(f"{name} submits several jobs, and eligo run runs one for each node")
        return _QUEUE.sub("", text)
