"""Finds the processes of a task or run by a mark in their environment, even if their parents are gone."""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from eligo.engines.sessions import holders, members, read_entries
from eligo.engines.worker import ancestors, descendants, process_table
from eligo.errors import InputError

POOL = "ELIGO_POOL"  # in the environment of an engine's own processes for a run, apart from tasks
PR_SET_PDEATHSIG = 1  # Linux: sets the signal that is sent when the parent dies
MOST_DYING = 30.0  # seconds until killed processes must have ended


def signal_marked(name: str, marks: Iterable[str], number: int) -> int:
    """Send a signal to every process on this machine with one of the marks in variable *name*; returns their number.

    >>> signal_marked("ELIGO_JOB", ["nobody has this"], 15)
    0
    """
    processes = marked(name, marks)
    for process in processes:
        with suppress(OSError):
            os.kill(process, number)
    return len(processes)


def marked(name: str, marks: Iterable[str]) -> list[int]:
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
    pids, table = set(marked(name, [mark] if mark else [])), process_table()
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
