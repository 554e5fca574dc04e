"""The growth of a run: tasks that its own tasks add through $ELIGO_ADD, and tasks that `eligo add` adds from outside."""

import os
import shutil
import stat
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from eligo.additions import LARGEST, LiveWorkflow, NewTasks, read_addition
from eligo.engines import Command, Engine, Work
from eligo.engines.jobs import Heeding
from eligo.engines.room import Wants
from eligo.errors import FormatError, InputError, shorten
from eligo.execution import Execution
from eligo.formats.shared.files import Beside
from eligo.names import Name
from eligo.running.commands import ADD, Commands, empty_tasks
from eligo.running.folder import STATE, RunFolder, read_kept
from eligo.running.inbox import ADDITION, LOOK, answer_to, is_settled, refuse, send
from eligo.running.task_files import Absent, TaskFiles
from eligo.stores import under_way
from eligo.workflow import Workflow

CURE = "write the tasks to a plain file"


@dataclass(eq=False)
class RunGrowth:
    """Adds tasks to a run while it is running."""

    live: LiveWorkflow
    commands: Commands
    files: TaskFiles
    wants: Wants
    engine: Engine
    #: refuses tasks that ask for more than the engine has
    check_room: Callable[[Workflow], None]
    inbox: Path
    #: the outputs that the run has removed, by absolute path
    removed: Collection[str] = ()
    #: the tasks without a command
    empty: set[Name] = field(default_factory=set)

    def begin(self, adding: str) -> None:
        """Let tasks add tasks by files in the folder *adding*, and include the tasks that were added to the run before."""
        self.commands.adding = adding
        shutil.rmtree(adding, ignore_errors=True)  # files of tasks whose end an earlier process missed
        os.mkdir(adding)
        self.check_room(self.live.flow)
        self._follow(self.live.flow)
        self._check_commands()

    def _check_commands(self) -> None:
        """Refuse to resume a run to which a task was added by name only."""
        game = self.live.execution
        for task in (task for added in game.additions for task in added.tasks):
            if task not in game.executed and not self.live.flow.task(task).command:
                raise InputError(
                    f"task {shorten(task)!r} was added to this run without a command: it cannot be resumed"
                )

    @property
    def needs(self) -> Wants | None:
        """The needs of each task; None if no task needs more than one core."""
        return self.wants or None

    @property
    def absent(self) -> Absent | None:
        """See `Runner`."""
        return self.files.absent if self.files.any_outputs else None

    def take_from(self, task: Name, work: Work) -> str | None:
        """Add the tasks that a finished attempt wrote to $ELIGO_ADD. Returns why they are refused, or None."""
        path = work.environment.get(ADD) if isinstance(work, Command) else None
        try:
            text = None if path is None else read_added(path, refresh=self.engine.name != "local")
            if text is not None:
                self._add(text, Beside(os.path.join(self.commands.folder, ADD)), task)
        except InputError as error:
            return f"invalid tasks in $ELIGO_ADD: {reason(error)}"
        return None

    def take_inbox(self) -> Iterator[Path]:
        """Add the tasks of every file in the inbox. Yields the files that may be deleted once the store has their tasks."""
        for path in sorted(self.inbox.glob(f"*{ADDITION}")):
            try:
                text = read_added(str(path))
                if text is not None:
                    self._add(text)
                    yield path
            except InputError as error:
                refuse(path, reason(error))

    def _add(self, text: bytes, beside: Beside | None = None, task: Name | None = None) -> None:
        new, size = read_addition(text, beside), len(self.live.execution.graph)
        new = new if task is None else new.behind(task)
        self.check_room(new.flow)
        check_inputs(new, self.live, self.commands.folder)
        self._check_removed(new.flow)
        if self.live.add(new):
            self._follow(new.flow, size)

    def _check_removed(self, new: Workflow) -> None:
        """Refuse new tasks that read a temporary file which the run has removed: its writer cannot run again now."""
        for task, inputs in zip(new.dag.tasks, new.column("inputs"), strict=True) if self.removed else ():
            for file in inputs:
                path = self.files.absolute(file)
                if any(place in self.removed for place in (path, *map(str, Path(path).parents))):
                    what = f"task {shorten(task)!r} reads {shorten(file)!r}, a temporary file that was removed"
                    raise InputError(
                        f"{what}: add it when the run has ended, and run it again, so that the file is made again"
                    )

    def _follow(self, new: Workflow, first: int = 0) -> None:
        """Update commands, files and needs after tasks were added, of which the first has the number *first*."""
        self.commands.flow = self.live.flow
        self.commands.make_folders(first)
        self.files = TaskFiles(self.live.flow, self.files.folder)
        self.empty |= empty_tasks(new)
        if self.wants.learn(new) and isinstance(self.engine, Heeding):
            self.engine.heed(self.wants)


def check_inputs(new: NewTasks, live: LiveWorkflow, folder: str) -> None:
    """Refuse inputs of new tasks that do not exist and that no task writes."""

    def is_written(file: str) -> bool:
        return any(live.writer(path) is not None for path in (file, *map(str, Path(file).parents)))

    TaskFiles(new.flow, folder).check_inputs((), is_written)


def reason(error: InputError) -> str:
    """The reason why an addition is refused, with the line number if available."""
    line = error.line if isinstance(error, FormatError) else None
    return str(error) if line is None else f"line {line}: {error}"


def read_added(path: str, refresh: bool = False) -> bytes | None:
    """The text of an addition; None if there is none. Only a regular file is read, up to little more than the limit."""
    if refresh:  # opening the folder refreshes it on a network file system
        os.close(os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(f"not a regular file: {error.strerror} ({CURE})") from None
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise InputError(f"not a regular file ({CURE})")
        return file.read(LARGEST + 1)


# Additions from outside


def add_to_run(folder: str | Path, text: str, patience: float) -> bool:
    """Add the tasks of a document to the run in a folder; returns whether the run has them now.

    An active run reads them from its inbox within *patience* seconds; if it ends first, they are added when it is resumed.
    Tasks that do not fit are refused.
    """
    new, path = read_addition(text), Path(folder) / STATE
    if not path.is_file():
        raise InputError(f"{folder}: no run in this folder")
    if not under_way(path):
        _add_to_store(folder, new)
        return True
    return _wait_until_read(send(folder, text), patience)


def _wait_until_read(sent: Path, patience: float) -> bool:
    """Wait until the run has read or refused an addition; returns whether it did."""
    until = time.monotonic() + patience
    while not is_settled(sent):
        if time.monotonic() > until:
            return False
        time.sleep(LOOK)
    answer_to(sent)
    return True


def _add_to_store(folder: str | Path, new: NewTasks) -> None:
    """Add tasks to the store of a run that is not running."""
    with closing(RunFolder(folder)) as run_folder:
        store = run_folder.store
        flow = read_kept(folder, store.facts(), store.tasks())
        live = LiveWorkflow(flow, Execution.replay(flow, store.moves(), store.additions()))
        check_inputs(new, live, run_folder.place_of(flow))
        live.add(new)
        store.add(live.execution.since(store.kept), (), live.execution.additions[store.grown :])
        store.flush()
