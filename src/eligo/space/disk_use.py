"""The space that the outputs of a run have taken: what was written, and how much of it was there at once."""

from collections.abc import Iterable
from typing import NamedTuple

from eligo.formats.shared.data_arcs import plain_path
from eligo.work.files import FileChange
from eligo.workflow import Workflow

UNIT, STEP = ("bytes", "kB", "MB", "GB", "TB", "PB"), 1000


class DiskUse(NamedTuple):
    """The bytes of a run's outputs; a file counts from the end of the task that wrote it."""

    #: of all outputs; those of a task that ran again count again
    written: int
    #: the most that files between tasks had at once
    peak: int
    #: the same if none had been removed
    peak_without_cleaning: int
    #: the number of removals
    removed: int

    def __str__(self) -> str:
        peak, other = in_units(self.peak), in_units(self.peak_without_cleaning)
        files = f"{self.removed:,} temporary file{'' if self.removed == 1 else 's'} removed"
        return (
            f"{in_units(self.written)} written, at most {peak} of it between tasks ({other} without cleaning); {files}"
        )


def disk_use(flow: Workflow, changes: Iterable[FileChange]) -> DiskUse:
    """The space that a run of a workflow has taken.

    >>> from eligo.formats import parse
    >>> flow = parse('{"tasks": [{"name": "a", "outputs": ["x"]}, {"name": "b", "inputs": ["x"], "outputs": ["y"]}]}')
    >>> disk_use(flow, [FileChange(1.0, "x", 5), FileChange(2.0, "y", 3), FileChange(2.0, "x", None)])
    DiskUse(written=8, peak=5, peak_without_cleaning=5, removed=1)
    """
    between = files_between(flow)
    written = live = peak = uncleaned = removed = 0
    now, latest = dict[str, int](), dict[str, int]()
    for _, file, size in changes:
        written, removed = written + (size or 0), removed + (size is None)
        if file in between:
            live += (size or 0) - now.get(file, 0)
            now[file] = size or 0
            if size is not None:
                uncleaned += size - latest.get(file, 0)
                latest[file] = size
            peak = max(peak, live)
    return DiskUse(written, peak, max(uncleaned, peak), removed)


def files_between(flow: Workflow) -> set[str]:
    """The outputs that other tasks read."""
    read = {plain_path(file) for files in flow.column("inputs") for file in files or ()}
    return {file for files in flow.column("outputs") for file in files or () if plain_path(file) in read}


def in_units(size: float) -> str:
    """A number of bytes with three digits.

    >>> in_units(7), in_units(1234), in_units(52_300_000_000)
    ('7 bytes', '1.23 kB', '52.3 GB')
    """
    power = 0
    while size >= 999.5 and power < len(UNIT) - 1:
        size, power = size / STEP, power + 1
    return f"{size:.3g} {UNIT[power]}"
