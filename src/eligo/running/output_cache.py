"""The cache of outputs: the files that a command made from its inputs, for other runs of the same command.

An entry is a folder, named after a hash of the command and of the contents of its inputs. It has a file for each output, one
for standard output and one for standard error, and a list of their hashes. It is written under another name and then renamed,
so that it is complete or absent. Files are cloned or copied, never linked: a task or a user who changes an output in place
changes no other copy. Every copy is checked against its hash before it counts.
"""

import json
import os
import re
import secrets
import stat
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from fcntl import ioctl
from hashlib import file_digest, sha256
from pathlib import Path
from shutil import copyfileobj, rmtree
from typing import NamedTuple

from eligo.engines import Command
from eligo.errors import InputError
from eligo.formats.shared.data_arcs import plain_path
from eligo.names import Name
from eligo.running.commands import ADD, Commands
from eligo.workflow import Task

#: part of every key: change it if the same key would stand for something else
VERSION = 1
LIST, DRAFTS = "entry.json", "drafts"
#: the files of an entry with what the command printed; its outputs are named by their positions
STREAMS = ("out", "err")
FICLONE = 0x40049409  # Linux; not in Python's module
PIECE = 2**20  # bytes that are copied at a time
#: nanoseconds for which a file that was just written is hashed again: a second change may leave its time unchanged
SETTLED = 2 * 10**9
_SEPARATORS = re.compile(r"[\s;|&<>(){}\"'`=,]+")


class Copied(NamedTuple):
    """A file of an entry: the hash of its content, and whether it is executable."""

    digest: str
    is_executable: bool


@dataclass
class OutputCache:
    """The folder of a cache. Any number of runs may use it at the same time, also on several machines."""

    folder: Path
    #: why nothing can be added to it; None if nothing has failed
    error: OSError | None = None

    def __post_init__(self) -> None:
        try:
            (self.folder / DRAFTS).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            if not self.folder.is_dir():
                raise InputError(f"{self.folder}: the cache must be a folder: {error.strerror}") from None
            self.error = error  # of another user, who allows only reading

    def take(self, key: str, places: Mapping[str, str]) -> bool:
        """Copy the files of an entry to these places, all or none; a damaged entry is removed."""
        entry = self._place(key)
        files = _listed(entry)
        if files is None or places.keys() - STREAMS != files.keys() - STREAMS:
            self._remove(entry)
            return False
        if any(map(os.path.islink, places.values())):  # a command would write what the link points to
            return False
        drafts = {name: _draft_of(places[name]) for name in files}
        try:
            for name, draft in drafts.items():
                Path(draft).parent.mkdir(parents=True, exist_ok=True)
                if _copy(str(entry / name), draft, files[name].is_executable) != files[name].digest:
                    raise FileNotFoundError(draft)
            for name, draft in drafts.items():
                os.replace(draft, places[name])
        except OSError as error:
            for draft in drafts.values():
                with suppress(OSError):
                    os.unlink(draft)
            if isinstance(error, FileNotFoundError):  # damaged, or removed at this moment
                self._remove(entry)
            return False
        with suppress(OSError):  # of another user
            os.utime(entry)
        return True

    def draft(self, key: str, places: Mapping[str, str]) -> "Draft | None":
        """Copy files into a draft of an entry; None if that is impossible."""
        draft = self.folder / DRAFTS / secrets.token_hex(8)
        try:
            draft.mkdir()
            files = {}
            for name, place in places.items():
                is_executable = bool(os.stat(place).st_mode & stat.S_IXUSR)
                files[name] = Copied(_copy(place, str(draft / name), is_executable), is_executable)
            (draft / LIST).write_text(json.dumps(files), "utf-8")
        except OSError as error:
            rmtree(draft, ignore_errors=True)
            self.error = error
            return None
        return Draft(draft, self._place(key))

    def _place(self, key: str) -> Path:
        return self.folder / key[:2] / key

    def _remove(self, entry: Path) -> None:
        """Remove an entry, if there is one; it disappears at once."""
        rest = self.folder / DRAFTS / secrets.token_hex(8)
        with suppress(OSError):  # of another user
            os.rename(entry, rest)
        rmtree(rest, ignore_errors=True)


class Draft(NamedTuple):
    """A new entry that is not in its place yet."""

    draft: Path
    entry: Path

    def publish(self) -> None:
        """Rename it into its place, unless another run was faster."""
        with suppress(OSError):
            self.entry.parent.mkdir(exist_ok=True)
            os.rename(self.draft, self.entry)
        self.drop()

    def drop(self) -> None:
        """Remove it."""
        rmtree(self.draft, ignore_errors=True)


def _listed(entry: Path) -> dict[str, Copied] | None:
    """The files of an entry; None if it does not exist or is damaged."""
    try:
        files = json.loads((entry / LIST).read_text("utf-8"))
        return {str(name): Copied(str(digest), bool(mode)) for name, (digest, mode) in files.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def _draft_of(place: str) -> str:
    folder, name = os.path.split(place)
    return os.path.join(folder, f".{name[:200]}.cached")


def _copy(source: str, target: str, is_executable: bool) -> str:
    """Clone a file where the file system can, or copy it; returns the hash of the copy."""
    with suppress(FileNotFoundError):
        os.unlink(target)
    mode = 0o777 if is_executable else 0o666
    descriptor = os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    with open(source, "rb") as old, open(descriptor, "w+b") as new:
        try:
            ioctl(new, FICLONE, old.fileno())
        except OSError:
            copyfileobj(old, new, PIECE)
        new.seek(0)
        return file_digest(new, sha256).hexdigest()


@dataclass
class CachedTasks:
    """Takes the outputs of a workflow's tasks from a cache, and adds them to it."""

    cache: OutputCache
    commands: Commands
    #: the tasks that must run, because the user asked for it
    requested: Collection[Name] = frozenset()
    #: the key of each task that was looked up
    _keys: dict[Name, str] = field(default_factory=dict)
    #: the hash of each file, with the state of the file for which it holds
    _digests: dict[str, tuple[tuple[int, ...], Copied]] = field(default_factory=dict)
    #: the tasks that cannot be cached, each with the reason
    obstacles: dict[Name, str] = field(default_factory=dict)

    def take(self, task: Name, work: Command) -> bool:
        """Copy the outputs of a task, and the log of this attempt, from the cache; returns whether it had them."""
        key = self._key_of(task)
        if isinstance(key, Obstacle):
            self.obstacles[task] = key.words
            return False
        if task not in self.requested and self.cache.take(key, self._places(task, work)):
            return True
        self._keys[task] = key
        return False

    def add(self, task: Name, work: Command) -> None:
        """Add the outputs of a task that ran, unless its inputs changed meanwhile."""
        key = self._keys.pop(task, None)
        adds_tasks = os.path.exists(work.environment.get(ADD, ""))
        if key is None or adds_tasks or self.cache.error is not None:
            return
        places = self._places(task, work)
        printed = {name: place for name, place in places.items() if name in STREAMS and os.path.exists(place)}
        outputs = {name: place for name, place in places.items() if name not in STREAMS}
        if not all(_is_regular(place) for place in outputs.values()):
            return
        draft = self.cache.draft(key, {**outputs, **printed})
        if draft is not None and self._key_of(task) == key:
            draft.publish()
        elif draft is not None:
            draft.drop()

    def _places(self, task: Name, work: Command) -> dict[str, str]:
        """The path of every file of an entry: of each output, by its number, and of the two output streams."""
        outputs = self.commands.flow.task(task).outputs
        places = {str(number): os.path.join(self.commands.folder, name) for number, name in enumerate(outputs)}
        return {**places, **dict(zip(STREAMS, (work.out, work.err), strict=True))}

    def _key_of(self, task: Name) -> "str | Obstacle":
        """The key of a task: a hash of its command and of its inputs; or why it cannot be cached."""
        details, parts = self.commands.flow.task(task), list[tuple[str, Copied]]()
        if not details.outputs:
            return Obstacle("without declared outputs")
        if "ELIGO_" in _line_of(details):
            return Obstacle("that use variables of Eligo")
        for name in sorted(self._inputs(task, details)):
            if not name:
                return Obstacle("after a task without declared outputs")
            copied = self._digest(os.path.join(self.commands.folder, name))
            if copied is None:
                return Obstacle("with an input that is not a regular file")
            parts.append((name, copied))
        return sha256(json.dumps([VERSION, identity(details), parts]).encode()).hexdigest()

    def _inputs(self, task: Name, details: Task) -> set[str]:
        """The files that a task may read.

        These are its inputs, existing files that its command or environment names, and all outputs of each parent of which it
        declares no output as an input; "" stands for the outputs of a parent that declares none.
        """
        flow, inputs, outputs = self.commands.flow, _paths(details.inputs), _paths(details.outputs)
        place = (details.launch and details.launch.dir) or ""
        words = {os.path.join(place, word) for word in _SEPARATORS.split(_line_of(details)) if word}
        words = {plain_path(word) for word in words if os.path.isfile(os.path.join(self.commands.folder, word))}
        for parent in flow.dag.parents(task):
            files = _paths(flow.task(parent).outputs)
            inputs |= set() if inputs & files else files or {""}
        return inputs | (words - outputs)

    def _digest(self, path: str) -> Copied | None:
        """The hash of a regular file; None if there is no regular file at this path."""
        try:
            with open(path, "rb", opener=_open_at_once) as file:
                status = os.fstat(file.fileno())
                state = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
                if self._digests.get(path, ((), None))[0] == state:
                    return self._digests[path][1]
                if not stat.S_ISREG(status.st_mode):
                    return None
                now = time.time_ns()
                copied = Copied(file_digest(file, sha256).hexdigest(), bool(status.st_mode & stat.S_IXUSR))
        except OSError:
            return None
        if max(status.st_mtime_ns, status.st_ctime_ns) < now - SETTLED:
            self._digests[path] = state, copied
        return copied

    def remarks(self) -> Iterator[str]:
        """Sentences about tasks that were not cached."""
        if self.obstacles:
            reasons = Counter(self.obstacles.values()).items()
            yield f"tasks that cannot be cached: {', '.join(f'{count:,} {words}' for words, count in reasons)}"
        if self.cache.error is not None:
            yield f"warning: {self.cache.folder}: nothing more was added to the cache: {self.cache.error.strerror}"


class Obstacle(NamedTuple):
    """Why a task cannot be cached."""

    words: str


def identity(task: Task) -> list[object]:
    """What a task does, apart from the contents of its inputs: every key of a task that changes its result."""
    return [task.command, task.inputs, task.outputs, task.launch.content() if task.launch else {}]


def _paths(files: Iterable[str]) -> set[str]:
    return set(map(plain_path, files))


def _open_at_once(path: str, flags: int) -> int:
    """Open a file without waiting, even if it is a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


def _line_of(task: Task) -> str:
    """The words of a task's command and of its environment."""
    command = (task.command,) if isinstance(task.command, str) else task.command or ()
    return " ".join([*command, *(task.launch.env.values() if task.launch else ())])


def _is_regular(path: str) -> bool:
    with suppress(OSError):
        return stat.S_ISREG(os.lstat(path).st_mode)
    return False
