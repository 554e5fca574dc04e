"""The commands of a workflow's tasks; run without a shell if possible."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from eligo.engines import Command
from eligo.engines.command_line import Site, argv_of, default_shell, folder_of, words_of
from eligo.errors import InputError, shorten
from eligo.formats.launches import launch_features
from eligo.names import Name
from eligo.running.folder import MARK
from eligo.running.task_files import are_outputs_owed
from eligo.workflow import NOTHING, Workflow

_UNSAFE = re.compile(r"[^\w.+-]|^\.", re.ASCII)
LONGEST_NAME = 150  # characters of a log file's name, far below the limits of file systems
SHARD = 1000  # log files per folder
#: formats that record the memory that tasks used, which limits none
RECORDS = {"wfcommons"}
ADD = "ELIGO_ADD"  # in a task's environment: the file to which it may write new tasks


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


def check_launches(flow: Workflow) -> None:
    """Refuse tasks whose commands cannot be run as requested: a program is missing, or a line cannot be split into words."""
    for lacking in launch_features(flow, served=False, growing=True):
        raise InputError(f"task {shorten(lacking.tasks[0])!r} has {lacking.key!r}, but {lacking.where} of this machine")
    for name, launch in zip(flow.dag.tasks, flow.column("launch"), strict=True):
        if launch is not None and launch.shell == "none":
            words_of(flow.task(name).command or (), launch)


def shell_remark(flow: Workflow) -> str | None:
    """A sentence that names the shell used on this machine; None if every command line states its own."""
    columns = zip(flow.column("command"), flow.column("launch"), strict=True)
    chosen = any(isinstance(line, str) and (launch is None or launch.shell is None) for line, launch in columns)
    return f"command lines that need a shell run with {default_shell()}" if chosen else None


def attempts_remark(flow: Workflow, retries: int) -> str | None:
    """A warning if a task states more amounts of memory or time limits than it has attempts; else None."""
    columns = (flow.column(key) for key in ("more_memory", "launch"))
    tasks = [
        name
        for name, more, launch in zip(flow.dag.tasks, *columns, strict=True)
        if max(len(more or ()), len(launch.timeout) - 1 if launch and isinstance(launch.timeout, tuple) else 0)
        > (retries if launch is None or launch.retries is None else launch.retries)
    ]
    many = f" (and {len(tasks) - 1:,} more)" if len(tasks) > 1 else ""
    which = "states more amounts of memory or time limits than it has attempts"
    return f"task {shorten(str(tasks[0]))!r}{many} {which}: the last ones are not used" if tasks else None


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
    #: whether tasks may run on other machines
    elsewhere: bool = False

    def check(self) -> None:
        """Refuse tasks without a command, and folders that no container can have, before any task is started."""
        commands = zip(self.flow.dag.tasks, self.flow.column("command"), strict=True)
        without = [name for name, command in commands if not command]
        if without:
            many = f" (and {len(without) - 1:,} more)" if len(without) > 1 else ""
            raise InputError(f"task {shorten(without[0])!r}{many} has no command: add one to the file")
        for name, launch in zip(self.flow.dag.tasks, self.flow.column("launch"), strict=True):
            if launch and launch.container and ":" in (place := str(Path(self.folder, launch.dir or ""))):
                task = f"task {shorten(name)!r} cannot run in a container"
                raise InputError(f"{task}, since the path of its folder has a colon: rename {place}")

    def __call__(self, task: Name, attempt: int) -> Command:
        """The command of an attempt at a task."""
        details, environment, log = self.flow.task(task), self._variables(task, attempt), self.log(task, attempt)
        launch, command = details.launch, details.command or ()
        memory = 0 if self.flow.origin is None or self.flow.origin.format not in RECORDS else None
        if launch is None:
            argv = words_of(command, elsewhere=self.elsewhere)
            return Command(argv, self.folder, environment, *log, self.marker, None, memory)
        environment = {**launch.env, **environment}
        site = Site(
            folder=self.folder,
            place=folder_of(launch, self.folder),
            name=f"eligo-{environment.get(MARK, '')}-{self.flow.dag.number(task)}-{attempt}",
            variables=environment,
            folders=(self.adding,) if self.adding else (),
            elsewhere=self.elsewhere,
        )
        argv = argv_of(command, launch, site)
        memory = None if launch.container else memory
        return Command(argv, site.place, environment, *log, self.marker, launch.limit(attempt), memory)

    def _variables(self, task: Name, attempt: int) -> dict[str, str]:
        """The variables by which an attempt knows itself and the run."""
        environment = {"ELIGO_TASK": str(task), "ELIGO_ATTEMPT": str(attempt), **dict(self.environment)}
        if self.adding:
            environment[ADD] = f"{self.adding}/{self.flow.dag.number(task)}.{attempt}"
        return environment

    def own_retries(self, task: Name) -> int | None:
        """The number of retries that a task asks for itself."""
        launch = self.flow.task(task).launch
        return None if launch is None else launch.retries

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
