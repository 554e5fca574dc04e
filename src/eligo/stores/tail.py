"""The tail of a run's store: what is queued for the next transaction, so that it survives a kill of the process.

A transaction waits for the disk, so moves and attempts are collected for it. Meanwhile they are in two small files, which are
written at once and without waiting for the disk: one has what is being committed, the other what came since.
"""

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple
from zlib import crc32

from eligo.work.attempts import Attempt
from eligo.work.files import FileChange

#: moves, attempts and changes of files that were added together
Record = tuple[Sequence[int], Sequence[Attempt], Sequence[FileChange]]

SUM = 8  # hexadecimal digits of the checksum before each record


class Extent(NamedTuple):
    """How much was stored before a record: the number of the session, of moves, attempts and changes of files."""

    session: int
    moves: int
    attempts: int
    files: int = 0

    def behind(self, moves: Sequence[int], attempts: Sequence[Attempt], files: Sequence[FileChange]) -> "Extent":
        """The extent that includes these."""
        return Extent(self.session, self.moves + len(moves), self.attempts + len(attempts), self.files + len(files))


class Tail:
    """The two files of a store's tail."""

    def __init__(self, path: str) -> None:
        self._paths = [f"{path}.tail-{number}" for number in (0, 1)]
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._files = [os.open(place, flags, 0o666) for place in self._paths]
        self._now = 0

    def append(
        self, extent: Extent, moves: Sequence[int], attempts: Sequence[Attempt], files: Sequence[FileChange]
    ) -> None:
        """Add a record, if the file system lets it; the next transaction stores it anyway."""
        rows = [attempt[2:12] for attempt in attempts]
        record = json.dumps([*extent[:3], list(moves), rows, extent.files, files]).encode()
        with suppress(OSError):
            os.write(self._files[self._now], b"%08x%b\n" % (crc32(record), record))

    def turn(self) -> None:
        """Write to the other file, whose records are committed; called when a transaction begins."""
        self._now = 1 - self._now
        os.ftruncate(self._files[self._now], 0)

    def clear(self) -> None:
        """Forget all records."""
        for file in self._files:
            os.ftruncate(file, 0)

    def behind(self, extent: Extent) -> Iterator[Record]:
        """The moves, attempts and changes of files of the records behind an extent, in order."""
        records = {where: rest for path in self._paths for where, rest in _records(path)}
        while extent in records:
            yield (rest := records.pop(extent))
            extent = extent.behind(*rest)

    def close(self) -> None:
        """Remove the files, since everything is committed."""
        for file, path in zip(self._files, self._paths, strict=True):
            os.close(file)
            with suppress(OSError):
                os.unlink(path)


def _records(path: str) -> Iterator[tuple[Extent, Record]]:
    """The complete records of a file; those of older versions say nothing about files."""
    with open(path, "rb") as file:
        for line in file:
            record = line[SUM:].rstrip(b"\n")
            if line[:SUM] == b"%08x" % crc32(record):
                session, moves, attempts, *rest = json.loads(record)
                count, changes = rest[2:] or (0, [])
                tried = [Attempt("", 0, *attempt) for attempt in rest[1]]
                yield Extent(session, moves, attempts, count), (rest[0], tried, [FileChange(*each) for each in changes])
