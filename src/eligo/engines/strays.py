"""The processes of a task or of a run, found by a mark in their environment: whoever started them may be gone."""

import os
from collections.abc import Iterable
from contextlib import suppress


def signal_marked(name: str, marks: Iterable[str], number: int) -> int:
    """Send a signal to every process on this machine in whose environment *name* is one of the marks; how many there were.

    >>> signal_marked("ELIGO_JOB", ["nobody has this"], 15)
    0
    """
    found = marked(name, marks)
    for process in found:
        with suppress(OSError):
            os.kill(process, number)
    return len(found)


def marked(name: str, marks: Iterable[str]) -> list[int]:
    """The processes beside this one in whose environment *name* is one of the marks; of those that ended none is read."""
    wanted, found = {f"{name}={mark}".encode() for mark in marks}, list[int]()
    for process in os.listdir("/proc") if wanted and os.path.isdir("/proc") else ():
        if process.isdecimal() and int(process) != os.getpid():
            with suppress(OSError), open(f"/proc/{process}/environ", "rb") as file:
                found += [int(process)] if not wanted.isdisjoint(file.read().split(b"\0")) else []
    return found
