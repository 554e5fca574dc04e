"""The file by which the processes of a run are found after its dispatcher is gone.

Every task holds the file open, and the file itself says which session each task has. So a process is found that changed its
environment, or its title, or began a session of its own, or closed its files, as long as it did not do all of that.
"""

import os
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from eligo.engines.worker import Process, out_of_the_way

PROCESSES = "processes.bin"
#: which file, and which start of which machine, the entries are about: device, inode, start of process 1, boot
_HEADER = Struct("<3q16s")
#: of each slot: the number of the session, the time before and after it was begun, and how many processes there had been
_ENTRY = Struct("<4q")
NANOSECONDS = 1_000_000_000
COUNTED = NANOSECONDS  # how old the count of all processes may be
UNUSED = 300  # numbers that the system gives to no new process once it has begun again from the first


class Entry(NamedTuple):
    """A session, begun between two moments of the machine's clock, after so many processes since the machine began."""

    session: int
    after: int
    before: int
    forks: int


class SessionFile:
    """The file of one run, while its tasks run; nobody else writes into it."""

    def __init__(self, path: str) -> None:
        first = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            #: what every task holds open
            self.file = out_of_the_way(first)
        finally:
            os.close(first)
        os.ftruncate(self.file, 0)
        os.pwrite(self.file, _HEADER.pack(*_identity(os.fstat(self.file))), 0)
        self._forks, self._counted = 0, 0

    def enter(self, slot: int, session: int, after: int) -> None:
        """Say that the task of a slot has this session, begun after that moment, and before now.

        Nobody says that it ended: then its session has, and nobody has that number until the system comes round to it.
        """
        now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        if now - self._counted > COUNTED:
            self._forks, self._counted = count_forks(), now
        with suppress(OSError):  # a full disk: the file itself, held open, still finds most
            os.pwrite(self.file, _ENTRY.pack(session, after, now, self._forks), _HEADER.size + slot * _ENTRY.size)

    def close(self) -> None:
        """Let go of it."""
        os.close(self.file)


def _identity(file: os.stat_result) -> tuple[int, int, int, bytes]:
    """Of a copy of the file, or after a restart of the machine or its container, it is another."""
    boot, first = b"", 0
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_bytes().replace(b"-", b"").strip()
    with suppress(OSError):
        first = int(Path("/proc/1/stat").read_bytes().rpartition(b")")[2].split()[19])
    return file.st_dev, file.st_ino, first, bytes.fromhex(boot.decode())


def count_forks() -> int:
    """How many processes and threads were begun since the machine was."""
    with suppress(OSError, StopIteration), open("/proc/stat", "rb") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(b"processes "))
    return 0


def read_entries(path: str | Path) -> list[Entry]:
    """The sessions of the tasks that ran last, as far as they were begun on this machine since it was."""
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
    """The processes in the sessions of an earlier dispatcher's tasks, and nobody else's whose number is the same now."""
    ours = {entry.session for entry in entries if _is_same(entry, table)}
    return (number for number, process in table.items() if process.session in ours)


def _is_same(entry: Entry, table: Mapping[int, Process]) -> bool:
    """Whether a session is still the one of an entry.

    Its number belongs to nobody else while it has members. Where its first process is gone, it could have had none in
    between, but only if since then the system has come round to the same number again.
    """
    leader = table.get(entry.session)
    if leader is None:
        return entry.forks > 0 and count_forks() - entry.forks < most_processes() - UNUSED - len(table)
    tick = NANOSECONDS // os.sysconf("SC_CLK_TCK")
    return entry.after // tick - 1 <= leader.began <= entry.before // tick + 1


def most_processes() -> int:
    """The largest number of a process, after which the system begins again; 0 where it does not say."""
    try:
        return int(Path("/proc/sys/kernel/pid_max").read_bytes())
    except OSError:
        return 0


def holders(path: str | Path, table: Mapping[int, Process]) -> Iterator[int]:
    """The processes that hold this very file open as tasks do, to write: who reads it, such as a backup, is no task."""
    try:
        wanted = os.stat(path)
    except FileNotFoundError:
        return
    for number in table:
        if any(os.path.samestat(wanted, each) for each in _written_files(number, os.path.basename(path))):
            yield number


def _written_files(number: int, name: str) -> Iterator[os.stat_result]:
    """What a process has open to write by that name; others are not looked at, since a file system may never answer."""
    folder = f"/proc/{number}/fd"
    with suppress(OSError):  # it has ended, or is somebody else's
        for link in os.listdir(folder):
            with suppress(OSError):
                named = os.readlink(f"{folder}/{link}").rpartition("/")[2] == name
                if named and _flags(number, link) & os.O_ACCMODE == os.O_RDWR:
                    yield os.stat(f"{folder}/{link}")


def _flags(number: int, link: str) -> int:
    """How a process has opened a file."""
    with open(f"/proc/{number}/fdinfo/{link}", "rb") as file:
        return next((int(line.split()[1], 8) for line in file if line.startswith(b"flags:")), 0)
