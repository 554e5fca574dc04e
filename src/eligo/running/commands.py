"""The commands of a workflow's tasks; run without a shell if possible."""

import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from eligo.engines import Command
from eligo.errors import InputError, shorten
from eligo.names import Name
from eligo.running.task_files import are_outputs_owed
from eligo.workflow import NOTHING, Workflow

SHELL = "/bin/sh"
_PLAIN = re.compile(r"[\w@%+=:,./ -]+")  # words without a special meaning to a shell
_UNSAFE = re.compile(r"[^\w.+-]|^\.", re.ASCII)
LONGEST_NAME = 150  # characters of a log file's name, far below the limits of file systems
SHARD = 1000  # log files per folder
ADD = "ELIGO_ADD"  # in a task's environment: the file to which it may write new tasks


def words_of(command: str | tuple[str, ...]) -> tuple[str, ...]:
    """The arguments to run: as given, or the words of a line, passed to a shell if the line needs one.

    >>> words_of(("echo", "$HOME")), words_of("sort -n a.txt")
    (('echo', '$HOME'), ('/usr/bin/sort', '-n', 'a.txt'))
    >>> words_of("sort a.txt > b.txt")
    ('/bin/sh', '-c', 'sort a.txt > b.txt')
    """
    if not isinstance(command, str):
        return command
    if _PLAIN.fullmatch(command):
        words = command.split()
        program = _find_program(words[0]) if words and "=" not in words[0] else None
        if program is not None:
            return (program, *words[1:])
    return (SHELL, "-c", command)


@lru_cache(maxsize=1024)
def _find_program(program: str) -> str | None:
    """The path of a program; None if only the shell may find it."""
    return shutil.which(program) if os.sep not in program else program


def log_name(task: str) -> str:
    """A file name for the output of a task: its name with unsafe characters escaped, different for every task.

    >>> log_name("align_1"), log_name("../x y")
    ('align_1', '%2E.%2Fx%20y')
    """
    safe = _UNSAFE.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), task)
    if len(safe) <= LONGEST_NAME:
        return safe
    return f"{safe[: LONGEST_NAME - 20]}~{sha256(task.encode()).hexdigest()[:16]}"


def empty_tasks(flow: Workflow) -> set[Name]:
    """The tasks without a command: they are done as soon as they are ready."""
    empty = [name for name, line in zip(flow.dag.tasks, flow.column("command"), strict=True) if line == NOTHING]
    owed = are_outputs_owed(flow)
    return {name for name in empty if not (owed and flow.task(name).outputs)}


@dataclass(eq=False)
class Commands:
    """The commands of a workflow's tasks, run in one folder, with their output in another."""

    flow: Workflow
    folder: str
    logs: str
    #: set in every task's environment
    environment: tuple[tuple[str, str], ...] = ()
    #: a file that every task's processes hold open
    marker: str = ""
    #: the folder where tasks may write new tasks; empty if they cannot
    adding: str = ""

    def check(self) -> None:
        """Refuse tasks without a command before any is started."""
        commands = zip(self.flow.dag.tasks, self.flow.column("command"), strict=True)
        without = [name for name, command in commands if not command]
        if without:
            many = f" (and {len(without) - 1:,} more)" if len(without) > 1 else ""
            raise InputError(f"task {shorten(without[0])!r}{many} has no command: add one to the file")

    def __call__(self, task: Name, attempt: int) -> Command:
        """The command of an attempt at a task."""
        out, err = self.log(task, attempt)
        environment = {"ELIGO_TASK": str(task), "ELIGO_ATTEMPT": str(attempt), **dict(self.environment)}
        if self.adding:
            environment[ADD] = f"{self.adding}/{self.flow.dag.number(task)}.{attempt}"
        return Command(words_of(self.flow.task(task).command or ()), self.folder, environment, out, err, self.marker)

    def log(self, task: Name, attempt: int) -> tuple[str, str]:
        """The paths of an attempt's standard output and standard error."""
        number = self.flow.dag.number(task)
        place = f"{self.logs}/{number // SHARD:03d}/{log_name(self.flow.dag.labels[number])}"
        again = "" if attempt == 1 else f"~{attempt}"  # no name contains ~, while a.2 may be another task
        return f"{place}{again}.out", f"{place}{again}.err"

    def make_folders(self, first: int = 0) -> None:
        """Create the log folders of the tasks from number *first* on."""
        try:
            for shard in range(first // SHARD, -(-len(self.flow) // SHARD)):
                Path(self.logs, f"{shard:03d}").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{self.logs}: cannot write the logs of tasks: {error.strerror}") from None


#: returns the command of a task's attempt with this number
WorkFor = Callable[[Name, int], Command]
