"""What tasks may use of this machine: cores, the system's limits, and a sandbox if wanted.

A shell sets the limits and then becomes the command, so that nothing runs without them.
"""

import os
import shutil
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from eligo.errors import InputError, check_choice, shorten

SANDBOXES = ("bwrap",)
BLOCK, KILOBYTE = 512, 1024  # the units of shells for file size and memory
LOOK = 0.1  # seconds between two checks whether to stop waiting for cores
SYSTEM_FOLDERS = ("/usr", "/bin", "/lib", "/lib64", "/lib32", "/sbin", "/etc")
#: exits with code 125 if a limit cannot be set
_LIMIT = """\
ulimit -c 0 && { [ -z "$1" ] || ulimit -f "$1"; } && { [ -z "$2" ] || ulimit -v "$2"; } || exit 125
shift 2
exec "$@"
"""


def limit_command(argv: Sequence[str], output: int | None = None, memory: int | None = None) -> tuple[str, ...]:
    """The command line that runs a command with a limit of *output* bytes per file and *memory* bytes per process."""
    blocks = "" if output is None else str(-(-output // BLOCK))
    kilobytes = "" if memory is None else str(max(1, memory // KILOBYTE))
    return ("/bin/sh", "-c", _LIMIT, "eligo", blocks, kilobytes, *argv)


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
