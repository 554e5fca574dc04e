"""What tasks print: into two files a slot, which get the task's name once something is in them.

Most tasks print nothing, and to make files takes long.
"""

import errno
import os
import signal
from collections.abc import Collection
from contextlib import suppress
from fcntl import F_RDLCK, F_SETLEASE, F_UNLCK, fcntl

from eligo.engines.jobs import Command
from eligo.errors import InputError

F_SETSIG = 10  # Linux; not in Python's module


class Printed:
    """The files of all slots."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        #: by slot and kind, opened to read: these say whether anybody else can still write
        self._open: dict[tuple[int, str], int] = {}
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: cannot write the output of tasks: {error.strerror}") from None

    def of(self, slot: int) -> tuple[str, str]:
        """The files of a slot, for standard output and standard error of its next task, which are there and empty."""
        out, err = self.path(slot, "out"), self.path(slot, "err")
        for kind, path in (("out", out), ("err", err)):
            if (slot, kind) not in self._open:
                self._open[slot, kind] = _fresh(path)
        return out, err

    def path(self, slot: int, kind: str) -> str:
        """Where what a slot's task prints is to be found while it runs."""
        return f"{self._folder}/slot-{slot + 1}.{kind}"

    def keep(self, slot: int, work: Command) -> None:
        """A task has ended: what it printed gets its name, and so does what a process that outlives it may still print."""
        for kind, name in (("out", work.out), ("err", work.err)):
            stream = self._open[slot, kind]
            if os.fstat(stream).st_size or _is_held(stream):
                os.close(self._open.pop((slot, kind)))
                _move(self.path(slot, kind), name)

    def close(self, busy: Collection[int] = ()) -> None:
        """Close the files of all slots but the busy ones, and take them away: they are empty."""
        for slot, kind in [key for key in self._open if key[0] not in busy]:
            os.close(self._open.pop((slot, kind)))
            with suppress(OSError):
                os.unlink(self.path(slot, kind))


def _move(path: str, name: str) -> None:
    """Give a file its name; where it cannot have it, or nobody wants it, it is not the next task's either."""
    with suppress(OSError):
        if name != os.devnull:
            os.rename(path, name)
            return
    with suppress(OSError):  # its folder is gone: what the task did counts
        os.unlink(path)


def _fresh(path: str) -> int:
    """A new empty file, opened to read."""
    with suppress(FileNotFoundError):
        os.unlink(path)
    stream = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    with suppress(OSError):
        fcntl(stream, F_SETSIG, signal.SIGURG)  # which does nothing, where the usual one would end this process
    return stream


def _is_held(stream: int) -> bool:
    """Whether somebody has a file open to write; False where the file system cannot tell.

    A lease to read is given only where nobody has.
    """
    try:
        fcntl(stream, F_SETLEASE, F_RDLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    fcntl(stream, F_SETLEASE, F_UNLCK)
    return False
