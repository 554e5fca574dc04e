"""The outputs of a run's tasks: their sizes are recorded, and temporary files are removed once no task needs them.

A temporary file is removed when the task that wrote it and all tasks that read it are done, and the store has these ends, so
that no kill can lose them. What no task reads is a result and stays, and so do inputs. A path that leaves the folder of the
run, or passes through a link, is not touched; of a link, only the link is removed.

What an incomplete attempt wrote is moved away before the next attempt at the task, to `.NAME.incomplete`, and removed once
the task is done.
"""

import os
import shutil
import stat
import time
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import InitVar, dataclass, field

from eligo.errors import shorten
from eligo.execution import COMPLETE, EXECUTED, Execution, unpacked
from eligo.formats.shared.data_arcs import plain_path
from eligo.grown_dag import reachable_tasks
from eligo.running.task_files import MOST_LISTED, TaskFiles
from eligo.work.files import FileChange


@dataclass(frozen=True)
class Limits:
    """What is removed besides the files that tasks declare temporary, and what stays."""

    #: whether every file that one task writes and another reads is temporary
    clean: bool = False
    #: files and folders that are not removed, by real path: those of the run itself
    protected: tuple[str, ...] = ()
    #: outputs that tasks outside the selection of this run still need, by plain path
    reserved: frozenset[str] = frozenset()
    #: whether an attempt finds what an earlier, incomplete one wrote
    keep_incomplete: bool = False


#: formats of systems that leave the outputs of a failed attempt to the next one
KEEPING = {"dagman"}
#: seconds by which the times of files may lag behind the clock
LAG = 1.0


@dataclass(eq=False)
class RunOutputs:
    """The outputs of a run, as far as it has come."""

    files: TaskFiles
    execution: Execution
    limits: Limits = Limits()
    #: what happened to outputs in earlier sessions
    changes: InitVar[Iterable[FileChange]] = ()
    #: the outputs that the run has removed and not made again, by absolute path
    removed: set[str] = field(default_factory=set)
    #: why temporary files stay
    kept: dict[str, str] = field(default_factory=dict)
    #: the tasks whose last attempt did not complete, each with the time from which its outputs are not trusted
    incomplete: dict[int, float] = field(default_factory=dict)

    def __post_init__(self, changes: Iterable[FileChange]) -> None:
        last = {change.name: change.size for change in changes}
        gone = (file for file, size in last.items() if size is None)
        self.removed.update(path for path in map(self.files.absolute, gone) if not os.path.lexists(path))
        self._made = {file for file, size in last.items() if size is not None}
        self._moved = {v: list(map(hidden_name, self._own_outputs(v))) for v in self.incomplete}
        self.follow(self.files)

    def follow(self, files: TaskFiles) -> None:
        """Learn the files of the workflow, which may have grown."""
        self.files, self._due = files, dict[str, None]()
        self._files_of: dict[int, list[str]] = {}
        self._waiting, codes = dict[str, set[int]](), self.execution.codes
        for file, v in self._temporary():
            users = {v, *files.readers_of(file, v)}
            for w in users:
                self._files_of.setdefault(w, []).append(file)
            self._waiting[file] = {w for w in users if codes[w] != EXECUTED}
            if not self._waiting[file] and files.absolute(file) not in self.removed:
                self._due[file] = None

    def _temporary(self) -> Iterator[tuple[str, int]]:
        """The outputs that this run may remove, each with the task that writes it."""
        flow, clean = self.files.flow, self.limits.clean
        if not clean and not any(flow.column("temporary")):
            return
        writers = Counter(plain_path(file) for files in flow.column("outputs") for file in files or ())
        columns = zip(*map(flow.column, ("outputs", "temporary", "inputs")), strict=True)
        for v, (outputs, temporary, inputs) in enumerate(columns):
            for file in outputs if clean else temporary or ():
                path = plain_path(file)
                in_place = path in map(plain_path, inputs or ())
                if writers[path] == 1 and not in_place and path not in self.limits.reserved and self._is_read(file, v):
                    yield file, v

    def _is_read(self, file: str, v: int) -> bool:
        """Whether a task after task v declares to read a file that this writes, so that it is not a result."""
        readers, dag = self.files.declared_readers(file, v), self.files.flow.dag
        if set(dag.children_of(v).tolist()).isdisjoint(readers):
            return bool(readers) and not set(reachable_tasks(dag, [v]).tolist()).isdisjoint(readers)
        return True

    def ended(self, moves: "array[int]") -> list[FileChange]:
        """The outputs of the tasks that these moves complete; their sizes are now known, and some files may be due."""
        done = [v for kind, v in unpacked(moves) if kind == COMPLETE]
        now, outputs = time.time(), self.files.outputs
        changes = [
            FileChange(now, file, size)
            for v in done
            for file in outputs[v]
            if (size := size_of(self.files.absolute(file))) is not None and _is_text(file)
        ]
        if self.removed:
            self.removed.difference_update(self.files.absolute(change.name) for change in changes)
        if self._waiting:
            self._made.update(change.name for change in changes)
        for v in done:
            self._remove_moved(v)
            for file in self._files_of.get(v, ()):
                self._waiting[file].discard(v)
                if not self._waiting[file]:
                    self._due[file] = None
        return changes

    # Incomplete outputs

    def distrust(self, v: int, began: float) -> None:
        """Note that an attempt at task v that began at this time did not complete."""
        self.incomplete.setdefault(v, began)

    def move_away(self, tasks: Iterable[int]) -> None:
        """Move what incomplete attempts at these tasks wrote out of the way of their next attempts."""
        for v in [v for v in tasks if v in self.incomplete]:
            began = self.incomplete.pop(v)
            for path in () if self._is_keeping else self._own_outputs(v):
                with suppress(OSError):
                    if self._is_movable(path, began):
                        os.replace(path, hidden_name(path))
                        self._moved.setdefault(v, []).append(hidden_name(path))

    @property
    def _is_keeping(self) -> bool:
        origin = self.files.flow.origin
        return self.limits.keep_incomplete or (origin is not None and origin.format in KEEPING)

    def _own_outputs(self, v: int) -> list[str]:
        """The absolute paths of the outputs of task v that it does not also read."""
        read = map(plain_path, self.files.flow.column("inputs")[v] or ())
        return [self.files.absolute(file) for file in {*map(plain_path, self.files.outputs[v])}.difference(read)]

    def _is_movable(self, path: str, began: float) -> bool:
        """Whether a file was written since an attempt began, and is the run's to move; folders may have other files."""
        status = os.lstat(path)
        written = status.st_ctime >= began - LAG
        return written and stat.S_ISREG(status.st_mode) and self._obstacle(path) is None

    def _remove_moved(self, v: int) -> None:
        """Remove what was moved away of a task that is now done."""
        self.incomplete.pop(v, None)
        for path in self._moved.pop(v, ()):
            with suppress(OSError):
                os.unlink(path)

    # Temporary files

    def removable(self) -> dict[str, Collection[int]]:
        """The outputs that this run removes, each with the tasks that must end before."""
        return {file: self.files.readers_of(file, v) for file, v in self._temporary()}

    @property
    def is_due(self) -> bool:
        """Whether a file may be removed now."""
        return bool(self._due)

    def clean(self, busy: Collection[int] = ()) -> list[FileChange]:
        """Remove the files that are due, except those that *busy* tasks, which are running again, write or read."""
        held = {file for v in busy for file in self._files_of.get(v, ())}
        due = [file for file in self._due if file not in held]
        self._due = dict.fromkeys(held & self._due.keys())
        return [FileChange(time.time(), file, None) for file in due if self._remove(file)]

    def _remove(self, file: str) -> bool:
        """Remove a file; returns whether it is gone, and the store says that it is there."""
        path = self.files.absolute(file)
        try:
            why = self._obstacle(path)
            if why is None:
                _delete(path)
        except FileNotFoundError:  # a kill came between the removal and its record
            _empty(_trash_of(path))
            why = None
        except OSError as error:
            why = str(error.strerror)
        if why is not None:
            self.kept[file] = why
            return False
        self.removed.add(path)
        was_there = file in self._made
        self._made.discard(file)
        return was_there

    def _obstacle(self, path: str) -> str | None:
        """Why a file must not be removed, or None."""
        if not _contains(self.files.folder, path) or path == self.files.folder:
            return "it is outside the folder of the run"
        if os.path.realpath(os.path.dirname(path)) != os.path.dirname(path):
            return "its folder is a link"
        if any(_contains(place, path) or _contains(path, place) for place in self.limits.protected):
            return "it belongs to the run"
        mode = os.lstat(path).st_mode
        if stat.S_ISDIR(mode):
            return "other outputs are in it" if self.files.has_outputs_below(path) else None
        return None if stat.S_ISREG(mode) or stat.S_ISLNK(mode) else "it is not a regular file"

    def remarks(self) -> list[str]:
        """Sentences about temporary files that stay."""
        return [
            f"temporary file {shorten(file)!r} was not removed: {why}"
            for file, why in list(self.kept.items())[:MOST_LISTED]
        ]


def size_of(path: str) -> int | None:
    """The bytes of a file, of a link itself, or of all files in a folder; None if there is nothing."""
    with suppress(OSError):
        status = os.lstat(path)
        if not stat.S_ISDIR(status.st_mode):
            return status.st_size
        inside = (os.path.join(place, name) for place, _, names in os.walk(path) for name in names)
        return sum(size_of(each) or 0 for each in inside)
    return None


def hidden_name(path: str) -> str:
    """Where an incomplete output is while the task runs again.

    >>> hidden_name("/data/reads.bam")
    '/data/.reads.bam.incomplete'
    """
    return _hidden(path, "incomplete")


def last_removed(changes: Iterable[FileChange]) -> set[str]:
    """The outputs whose last change is their removal."""
    last = {change.name: change.size for change in changes}
    return {file for file, size in last.items() if size is None}


def _delete(path: str) -> None:
    """Remove a file, a link, or a folder with its contents, all of it or nothing; links inside are not followed."""
    if os.path.isdir(path) and not os.path.islink(path):
        trash = _trash_of(path)
        _empty(trash)
        os.rename(path, trash)
        _empty(trash)
    else:
        os.unlink(path)


def _trash_of(path: str) -> str:
    return _hidden(path, "removed")


def _hidden(path: str, end: str) -> str:
    folder, name = os.path.split(path)
    return os.path.join(folder, f".{name[:200]}.{end}")


def _empty(trash: str) -> None:
    shutil.rmtree(trash, ignore_errors=True)


def _contains(place: str, path: str) -> bool:
    return path == place or path.startswith(os.path.join(place, ""))


def _is_text(name: str) -> bool:
    """Whether a database can store a name."""
    with suppress(UnicodeEncodeError):
        return bool(name.encode())
    return False
