"""Finds and ends the processes of a run that outlived their dispatcher.

Every task has a mark in its environment and holds a file open that lists the session of each task. So a process is found
even if it changed its environment or title, started its own session, or closed its files, as long as it did not do all of
these.
"""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from eligo.engines.worker import HELD, Process, ancestors, descendants, out_of_the_way, process_table
from eligo.errors import InputError

POOL = "ELIGO_POOL"  # in the environment of an engine's own processes for a run, apart from tasks
PR_SET_PDEATHSIG = 1  # Linux: sets the signal that is sent when the parent dies
MOST_DYING = 30.0  # seconds until killed processes must have ended
PROCESSES = "processes.bin"
#: identifies the file and the boot of the machine: device, inode, start of process 1, boot id
_HEADER = Struct("<3q16s")
#: for each slot: session id, time before and after its start, and the number of forks since boot
_ENTRY = Struct("<4q")
NANOSECONDS = 1_000_000_000
COUNTED = NANOSECONDS  # maximum age of the fork count
UNUSED = 300  # process ids that the system does not reuse after wrapping around


class Entry(NamedTuple):
    """A session: started between two times of the boot clock, after this number of forks since boot."""

    session: int
    after: int
    before: int
    forks: int


class SessionFile:
    """The session file of one run; only its dispatcher writes to it."""

    def __init__(self, path: str) -> None:
        self._own = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        first = os.open(path, HELD | os.O_CLOEXEC)
        try:
            #: the descriptor that every task inherits, through which it cannot write
            self.file = out_of_the_way(first)
        finally:
            os.close(first)
        os.ftruncate(self._own, 0)
        os.pwrite(self._own, _HEADER.pack(*_identity(os.fstat(self._own))), 0)
        self._forks, self._counted = 0, 0

    def enter(self, slot: int, session: int, after: int) -> None:
        """Record that the task of a slot has this session, started between *after* and now.

        Entries are never removed: a session id is not reused until the process ids wrap around.
        """
        now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        if now - self._counted > COUNTED:
            self._forks, self._counted = count_forks(), now
        with suppress(OSError):  # a full disk: the file itself, held open, still finds most processes
            os.pwrite(self._own, _ENTRY.pack(session, after, now, self._forks), _HEADER.size + slot * _ENTRY.size)

    def close(self) -> None:
        """Close the file."""
        os.close(self.file)
        os.close(self._own)


def _identity(file: os.stat_result) -> tuple[int, int, int, bytes]:
    """An identity that differs for a copy of the file, and after a restart of the machine or its container."""
    boot, first = b"", 0
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_bytes().replace(b"-", b"").strip()
    with suppress(OSError):
        first = int(Path("/proc/1/stat").read_bytes().rpartition(b")")[2].split()[19])
    return file.st_dev, file.st_ino, first, bytes.fromhex(boot.decode())


def count_forks() -> int:
    """The number of processes and threads started since boot; 0 if unknown."""
    with suppress(OSError, StopIteration), open("/proc/stat", "rb") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(b"processes "))
    return 0


def read_entries(path: str | Path) -> list[Entry]:
    """The sessions recorded in the file; empty if the machine or the file is a different one."""
    try:
        with open(path, "rb") as file:
            content, status = file.read(), os.fstat(file.fileno())
    except FileNotFoundError:
        return []
    if content[: _HEADER.size] != _HEADER.pack(*_identity(status)):
        return []
    end = len(content) - (len(content) - _HEADER.size) % _ENTRY.size
    entries = map(Entry._make, _ENTRY.iter_unpack(content[_HEADER.size : end]))
    return [entry for entry in entries if entry.session]


def members(entries: Collection[Entry], table: Mapping[int, Process]) -> Iterator[int]:
    """The processes in the sessions of an earlier dispatcher's tasks; sessions that only reuse an id are excluded."""
    ours = {entry.session for entry in entries if _is_same(entry, table)}
    return (number for number, process in table.items() if process.session in ours)


def _is_same(entry: Entry, table: Mapping[int, Process]) -> bool:
    """Whether a session is still that of an entry.

    A session id is not reused while the session has members. If its first process is gone, it may have been reused, but only
    if the process ids have wrapped around since.
    """
    leader = table.get(entry.session)
    if leader is None:
        return entry.forks > 0 and count_forks() - entry.forks < most_processes() - UNUSED - len(table)
    tick = NANOSECONDS // os.sysconf("SC_CLK_TCK")
    return entry.after // tick - 1 <= leader.began <= entry.before // tick + 1


def most_processes() -> int:
    """The largest process id, after which ids wrap around; 0 if unknown."""
    try:
        return int(Path("/proc/sys/kernel/pid_max").read_bytes())
    except OSError:
        return 0


def holders(path: str | Path, table: Mapping[int, Process]) -> Iterator[int]:
    """The processes that hold this file open as tasks do; readers, such as a backup, do not count."""
    try:
        wanted = os.stat(path)
    except FileNotFoundError:
        return
    for number in table:
        if any(os.path.samestat(wanted, each) for each in _held_files(number, os.path.basename(path))):
            yield number


def _held_files(number: int, name: str) -> Iterator[os.stat_result]:
    """The files of that name that a process holds as tasks do; others are not examined, as a file system may hang."""
    folder = f"/proc/{number}/fd"
    with suppress(OSError):  # it has ended, or belongs to another user
        for link in os.listdir(folder):
            with suppress(OSError):
                named = os.readlink(f"{folder}/{link}").rpartition("/")[2] == name
                if named and _flags(number, link) & (os.O_ACCMODE | os.O_APPEND) in {HELD, os.O_RDWR}:
                    yield os.stat(f"{folder}/{link}")


def _flags(number: int, link: str) -> int:
    """The flags with which a process opened a file."""
    with open(f"/proc/{number}/fdinfo/{link}", "rb") as file:
        return next((int(line.split()[1], 8) for line in file if line.startswith(b"flags:")), 0)


# Processes with a mark


def signal_marked(name: str, marks: Iterable[str], number: int) -> int:
    """Send a signal to every process on this machine with one of the marks in variable *name*; returns their number.

    >>> signal_marked("ELIGO_JOB", ["nobody has this"], 15)
    0
    """
    processes = marked_processes(name, marks)
    for process in processes:
        with suppress(OSError):
            os.kill(process, number)
    return len(processes)


def marked_processes(name: str, marks: Iterable[str]) -> list[int]:
    """The other processes with one of the marks in variable *name* of their environment."""
    wanted, pids = {f"{name}={mark}".encode() for mark in marks}, list[int]()
    for process in os.listdir("/proc") if wanted and os.path.isdir("/proc") else ():
        if process.isdecimal() and int(process) != os.getpid():
            with suppress(OSError), open(f"/proc/{process}/environ", "rb") as file:
                pids += [int(process)] if not wanted.isdisjoint(file.read().split(b"\0")) else []
    return pids


def end_marked(name: str, mark: str, file: str | Path | None = None, patience: float = MOST_DYING) -> None:
    """Kill the processes of a run that outlived their parent, so that no task runs twice at once.

    These are all processes with the mark in their environment, those of a *file* of sessions, and all their descendants.
    They are stopped before they are killed, since running processes could start others meanwhile.
    """
    deadline, stopped = time.monotonic() + patience, set[int]()
    while strays := _strays(name, mark, file):
        if time.monotonic() > deadline:
            many = f"{len(strays)} processes" if len(strays) > 1 else "a process"
            raise InputError(f"{many} of an earlier run cannot be killed, for example PID {min(strays)}")
        new = strays - stopped
        for number in new or strays:
            with suppress(OSError):
                os.kill(number, signal.SIGSTOP if new else signal.SIGKILL)
        time.sleep(0.0 if new else 0.01)
        stopped |= new


def _strays(name: str, mark: str, file: str | Path | None) -> set[int]:
    """The processes that `end_marked` kills; this process and its ancestors are excluded."""
    pids, table = set(marked_processes(name, [mark] if mark else [])), process_table()
    for own in ancestors(os.getpid(), table):
        del table[own]
    if file is not None:
        pids |= {*members(read_entries(file), table), *holders(file, table)}
    return {number for number in descendants(pids, table) if table[number].state not in b"ZX"}


@contextmanager
def marking(name: str, mark: str) -> Iterator[None]:
    """Add the mark to the environment of all processes started meanwhile; nothing happens if the mark is empty.

    >>> with marking("ELIGO_DOC", "7"):
    ...     os.environ["ELIGO_DOC"]
    '7'
    >>> "ELIGO_DOC" in os.environ
    False
    """
    before = os.environ.get(name)
    if mark:
        os.environ[name] = mark
    try:
        yield
    finally:
        if mark and before is None:
            del os.environ[name]
        elif before is not None:
            os.environ[name] = before


def die_with_parent() -> None:
    """Have this process, and any program it executes, killed when its parent dies, even while it is stopped."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
