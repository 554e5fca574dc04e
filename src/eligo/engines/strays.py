"""The processes of a task or of a run, found by a mark in their environment: whoever started them may be gone."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def signal_marked(name: str, marks: Iterable[str], number: int) -> int:
    """Send a signal to every process on this machine in whose environment *name* is one of the marks; how many there were.

    >>> signal_marked("ELIGO_JOB", ["nobody has this"], 15)
    0
    """
    wanted = {f"{name}={mark}".encode() for mark in marks}
    found = 0
    for place in Path("/proc").glob("[0-9]*/environ") if wanted else ():
        with suppress(OSError, ValueError):
            process = int(place.parent.name)
            if process != os.getpid() and not wanted.isdisjoint(place.read_bytes().split(b"\0")):
                os.kill(process, number)
                found += 1
    return found
