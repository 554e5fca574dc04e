"""What tasks may use of this machine: cores, the system's limits, a control group, and a sandbox if wanted.

A shell sets the limits and then becomes the command, so that nothing runs without them. A control group (cgroup v2) limits
the memory of all processes of a task together; without one, the limit applies to each process. A client may create groups
if the system has delegated one to it, as systemd does for a unit with `Delegate=yes`.
"""

import itertools
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from eligo.errors import InputError, check_choice, shorten

SANDBOXES = ("bwrap",)
BLOCK, KILOBYTE = 512, 1024  # the units of shells for file size and memory
PROBE = 64 * 2**20  # memory limit of the group by which groups are tested, in bytes
TRIES, PAUSE = 50, 0.01  # attempts to remove a group whose processes are ending, and seconds between them
LOOK = 0.1  # seconds between two checks whether to stop waiting for cores
SYSTEM_FOLDERS = ("/usr", "/bin", "/lib", "/lib64", "/lib32", "/sbin", "/etc")
#: exits with code 125 if a limit cannot be set
_LIMIT = """\
ulimit -c 0 && { [ -z "$1" ] || ulimit -f "$1"; } && { [ -z "$2" ] || ulimit -v "$2"; } || exit 125
[ -z "$3" ] || echo $$ > "$3" || exit 125
shift 3
exec "$@"
"""


def limit_command(
    argv: Sequence[str], output: int | None = None, memory: int | None = None, group: str = ""
) -> tuple[str, ...]:
    """The command line that runs a command with a limit of *output* bytes per file and *memory* bytes per process.

    *group* is a file to which the process writes its number before the command starts.
    """
    blocks = "" if output is None else str(-(-output // BLOCK))
    kilobytes = "" if memory is None else str(max(1, memory // KILOBYTE))
    return ("/bin/sh", "-c", _LIMIT, "eligo", blocks, kilobytes, group, *argv)


def sandbox(kind: str | None, network: bool = False) -> "Sandbox":
    """The sandbox of this kind; None: no sandbox."""
    if kind is None:
        return Sandbox(None)
    check_choice("sandbox", kind, SANDBOXES)
    program = shutil.which(kind)
    if program is None:
        raise InputError(f"{kind} is not installed: install the package bubblewrap")
    box = Sandbox(program, network)
    with tempfile.TemporaryDirectory() as folder:  # an unusable sandbox would fail every task
        tried = subprocess.run(box.around(["true"], folder), capture_output=True, check=False)  # noqa: S603 - our own words
    if tried.returncode:
        why = tried.stderr.decode("utf-8", "replace").strip().removeprefix(f"{kind}: ")
        raise InputError(f"{kind} does not work on this machine: {shorten(why, 200)}")
    return box


class Sandbox:
    """Restricts what commands see of this machine: its programs and the scratch folder."""

    def __init__(self, program: str | None, network: bool = False) -> None:
        self._program, self._network = program, network

    def around(self, argv: Sequence[str], folder: str, place: str | None = None) -> tuple[str, ...]:
        """The command line that runs a command in the sandbox, with one writable folder; *place*: where, inside that."""
        if self._program is None:
            return tuple(argv)
        binds = [word for path in SYSTEM_FOLDERS if os.path.exists(path) for word in _bind_option(path)]
        network = ("--share-net",) if self._network else ()
        own = ("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--bind", folder, folder)  # noqa: S108 - its own
        where = ("--chdir", folder if place is None else place)
        return (
            *(self._program, "--unshare-all", *network, "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
            *(*binds, *own, *where, "--", *argv),
        )


def _bind_option(path: str) -> tuple[str, str, str]:
    """The option that binds a system folder, or recreates the link if it is one."""
    if os.path.islink(path):
        return ("--symlink", os.readlink(path), path)
    return ("--ro-bind", path, path)


@dataclass(slots=True)
class Cgroup:
    """The control group of one task."""

    path: str

    @property
    def entrance(self) -> str:
        """The file to which a process writes its number to join the group."""
        return os.path.join(self.path, "cgroup.procs")

    def peak(self) -> int | None:
        """The peak memory of the group in bytes, if the system reports it."""
        text = _read(self.path, "memory.peak").strip()
        return int(text) if text.isdecimal() else None

    def overfull(self) -> bool:
        """Whether a process was killed for exceeding the memory limit."""
        words = dict(line.split() for line in _read(self.path, "memory.events").splitlines())
        return words.get("oom_kill", "0") != "0"


class Cgroups:
    """The control groups that a client creates below its own."""

    def __init__(self, base: str) -> None:
        self._base, self._numbers = base, itertools.count(1)

    @contextmanager
    def group(self, memory: int) -> Iterator[Cgroup]:
        """A group with this memory limit, whose processes are killed at the end."""
        path = os.path.join(self._base, f"task-{next(self._numbers)}")
        os.mkdir(path)
        try:
            _write(path, "memory.max", str(memory))
            with suppress(OSError):  # fails if there is no swap
                _write(path, "memory.swap.max", "0")
            _write(path, "memory.oom.group", "1")
            yield Cgroup(path)
        finally:
            _remove(path)


def groups(own: str | None = None, mount: str = "/sys/fs/cgroup") -> Cgroups | None:
    """The control groups for tasks; None if they cannot be created or do not work. *own* is the group of this process."""
    base = own or _own(mount)
    if base is None or "memory" not in _read(base, "cgroup.controllers").split():
        return None
    try:
        if _read(base, "cgroup.procs").split() != [str(os.getpid())]:
            return None  # other processes in the group cannot be moved
        os.makedirs(os.path.join(base, "client"), exist_ok=True)
        _write(os.path.join(base, "client"), "cgroup.procs", str(os.getpid()))  # subgroups require an empty group
        _write(base, "cgroup.subtree_control", "+memory")
        cgroups = Cgroups(base)
        with cgroups.group(PROBE) as group:
            words = limit_command(["true"], group=group.entrance)
            subprocess.run(words, check=True, capture_output=True, timeout=10)  # noqa: S603 - our own words
    except (OSError, subprocess.SubprocessError):
        return None
    return cgroups


def _own(mount: str) -> str | None:
    """The folder of this process's group; None if the system has no pure version 2 groups."""
    lines = _read("/proc/self", "cgroup").splitlines()
    path = next((line[3:] for line in lines if line.startswith("0::")), None)
    return None if path is None else os.path.join(mount, path.lstrip("/"))


def _read(folder: str, name: str) -> str:
    try:
        with open(os.path.join(folder, name), encoding="ascii") as file:
            return file.read()
    except (OSError, UnicodeError):
        return ""


def _write(folder: str, name: str, text: str) -> None:
    with open(os.path.join(folder, name), "w", encoding="ascii") as file:
        file.write(text)


def _remove(path: str) -> None:
    with suppress(OSError):
        _write(path, "cgroup.kill", "1")
    for _ in range(TRIES):
        try:
            os.rmdir(path)
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(PAUSE)


class Cores:
    """The cores that tasks share, first come, first served; a task that needs more than the total gets all of them.

    >>> cores = Cores(2)
    >>> with cores.reserve(5, lambda: False):
    ...     cores.idle()
    False
    >>> cores.idle()
    True
    """

    def __init__(self, number: int) -> None:
        self._all = self._free = number
        self._queue, self._changed = deque[object](), threading.Condition()

    def idle(self) -> bool:
        """Whether a task of one core could start now."""
        return self._free > 0 and not self._queue

    def wait_idle(self, until: Callable[[], bool]) -> None:
        """Wait until a task could start, or *until* returns True."""
        with self._changed:
            while not self.idle() and not until():
                self._changed.wait(LOOK)

    @contextmanager
    def reserve(self, number: int, until: Callable[[], bool]) -> Iterator[bool]:
        """Reserve cores; yields whether they became free before *until* returned True."""
        number, ticket = min(number, self._all), object()
        with self._changed:
            self._queue.append(ticket)
            while not (mine := self._queue[0] is ticket and self._free >= number) and not until():
                self._changed.wait(LOOK)
            self._queue.remove(ticket)
            self._free -= number if mine else 0
            self._changed.notify_all()
        try:
            yield mine
        finally:
            with self._changed:
                self._free += number if mine else 0
                self._changed.notify_all()
