"""The output of tasks: each slot has two files, which are renamed after the task if they are not empty.

Most tasks print nothing, and creating files is slow.
"""

import errno
import os
import signal
from collections.abc import Collection
from contextlib import suppress
from fcntl import F_RDLCK, F_SETLEASE, F_UNLCK, fcntl

from eligo.engines.jobs import Command
from eligo.errors import InputError

RUNNING = "running"  # the folder of the output of running tasks, among the logs of a run
F_SETSIG = 10  # Linux; not in Python's module


def slot_output(logs: str, client: str, kind: str) -> str:
    """The file to which the running task of a slot prints, in a run with its output in the folder *logs*."""
    return f"{logs}/{RUNNING}/{client.replace(' ', '-')}.{kind}"


class Printed:
    """The output files of all slots."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        #: by slot and kind, open for reading, to detect other writers
        self._open: dict[tuple[int, str], int] = {}
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: cannot write the output of tasks: {error.strerror}") from None

    def of(self, slot: int) -> tuple[str, str]:
        """The empty files for standard output and standard error of a slot's next task."""
        out, err = self.path(slot, "out"), self.path(slot, "err")
        for kind, path in (("out", out), ("err", err)):
            if (slot, kind) not in self._open:
                self._open[slot, kind] = _fresh(path)
        return out, err

    def path(self, slot: int, kind: str) -> str:
        """The path of a slot's output while its task runs."""
        return f"{self._folder}/slot-{slot + 1}.{kind}"

    def keep(self, slot: int, work: Command) -> None:
        """Rename the output of a finished task, also if a process that outlives the task may still write to it."""
        for kind, name in (("out", work.out), ("err", work.err)):
            stream = self._open[slot, kind]
            if os.fstat(stream).st_size or _is_held(stream):
                os.close(self._open.pop((slot, kind)))
                _move(self.path(slot, kind), name)

    def close(self, busy: Collection[int] = ()) -> None:
        """Close and remove the empty files of all slots but the busy ones."""
        for slot, kind in [key for key in self._open if key[0] not in busy]:
            os.close(self._open.pop((slot, kind)))
            with suppress(OSError):
                os.unlink(self.path(slot, kind))


def _move(path: str, name: str) -> None:
    """Rename a file; if that is impossible or unwanted, remove it, so that the next task does not get it."""
    with suppress(OSError):
        if name != os.devnull:
            os.rename(path, name)
            return
    with suppress(OSError):  # its folder is gone: the result of the task still counts
        os.unlink(path)


def _fresh(path: str) -> int:
    """Create an empty file, open for reading."""
    with suppress(FileNotFoundError):
        os.unlink(path)
    stream = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    with suppress(OSError):
        fcntl(stream, F_SETSIG, signal.SIGURG)  # a harmless signal; the default one would end this process
    return stream


def _is_held(stream: int) -> bool:
    """Whether a process has a file open for writing; False if the file system cannot tell.

    The kernel grants a read lease only if no process has.
    """
    try:
        fcntl(stream, F_SETLEASE, F_RDLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    fcntl(stream, F_SETLEASE, F_UNLCK)
    return False
