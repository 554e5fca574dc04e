"""What a task of a file runs: the words of one command, without a shell where it needs none."""

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
_PLAIN = re.compile(r"[\w@%+=:,./ -]+")  # words that mean the same to a shell and to nobody
_UNSAFE = re.compile(r"[^\w.+-]|^\.", re.ASCII)
LONGEST_NAME = 150  # of a log file, far below what file systems allow
SHARD = 1000  # log files in one folder
ADD = "ELIGO_ADD"  # in a task's environment: the file to which it may write tasks to add


def words_of(command: str | tuple[str, ...]) -> tuple[str, ...]:
    """The words to run: as they are, or those of a line, by a shell where the line needs one.

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
    """Where a program is; None where the shell may know it better."""
    return shutil.which(program) if os.sep not in program else program


def log_name(task: str) -> str:
    """A file name for what a task prints: its own as far as that is safe, another for every task.

    >>> log_name("align_1"), log_name("../x y")
    ('align_1', '%2E.%2Fx%20y')
    """
    safe = _UNSAFE.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), task)
    if len(safe) <= LONGEST_NAME:
        return safe
    return f"{safe[: LONGEST_NAME - 20]}~{sha256(task.encode()).hexdigest()[:16]}"


def empty_tasks(flow: Workflow) -> set[Name]:
    """The tasks that run nothing: they are done as soon as what they need is."""
    empty = [name for name in flow.dag.tasks if flow.task(name).command == NOTHING]
    owed = are_outputs_owed(flow)
    return {name for name in empty if not (owed and flow.task(name).outputs)}


@dataclass(eq=False)
class Commands:
    """The commands of a workflow's tasks, run in one folder, with what they print in another."""

    flow: Workflow
    folder: str
    logs: str
    #: set in every task's environment
    environment: tuple[tuple[str, str], ...] = ()
    #: a file that every task's processes hold open
    marker: str = ""
    #: where tasks may write tasks to add; empty where they cannot
    adding: str = ""

    def check(self) -> None:
        """Refuse tasks of which it is not said what they run, before anything is begun."""
        without = [name for name in self.flow.dag.tasks if not self.flow.task(name).command]
        if without:
            many = f" (and {len(without) - 1:,} more)" if len(without) > 1 else ""
            raise InputError(f"task {shorten(without[0])!r}{many} has no command: add one to the file")

    def __call__(self, task: Name, attempt: int) -> Command:
        """What an attempt at a task runs."""
        out, err = self.log(task, attempt)
        environment = {"ELIGO_TASK": str(task), "ELIGO_ATTEMPT": str(attempt), **dict(self.environment)}
        if self.adding:
            environment[ADD] = f"{self.adding}/{self.flow.dag.number(task)}.{attempt}"
        return Command(words_of(self.flow.task(task).command or ()), self.folder, environment, out, err, self.marker)

    def log(self, task: Name, attempt: int) -> tuple[str, str]:
        """Where an attempt's standard output and standard error go."""
        number = self.flow.dag.number(task)
        place = f"{self.logs}/{number // SHARD:03d}/{log_name(self.flow.dag.labels[number])}"
        again = "" if attempt == 1 else f"~{attempt}"  # which no name has: a.2 may be another task
        return f"{place}{again}.out", f"{place}{again}.err"

    def make_folders(self, first: int = 0) -> None:
        """Make the folders for the logs of the tasks from number *first* on."""
        try:
            for shard in range(first // SHARD, -(-len(self.flow) // SHARD)):
                Path(self.logs, f"{shard:03d}").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{self.logs}: cannot write the logs of tasks: {error.strerror}") from None


#: what an attempt at a task does: the task, and which attempt it is
WorkFor = Callable[[Name, int], Command]
