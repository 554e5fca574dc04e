"""Bodies that come in many parts: in memory while they are small, and all of them together are, else in a file."""

import tempfile
from dataclasses import dataclass
from typing import IO

from eligo.server.file_threads import in_file_thread
from eligo.server.http.refusals import RefusedError

MEGABYTE = 2**20
PIECE = MEGABYTE  # bytes for which it is worth going to a thread


@dataclass(slots=True)
class Spool:
    """How much of bodies that are not whole yet may be in memory; files without a name in *folder* take the rest."""

    #: of one body, and of all
    each: int = 4 * MEGABYTE
    all: int = 32 * MEGABYTE
    folder: str | None = None
    #: how much is in memory now
    taken: int = 0


class Body:
    """A body that comes part by part; `close` it in any case."""

    __slots__ = ("_file", "_parts", "_size", "_spool")

    def __init__(self, spool: Spool) -> None:
        self._spool, self._size = spool, 0  # what of it is in memory
        self._parts: list[bytes] = []
        self._file: IO[bytes] | None = None

    async def add(self, part: bytes) -> None:
        """Another part."""
        spool = self._spool
        self._parts.append(part)
        self._size += len(part)
        spool.taken += len(part)
        most = spool.each if self._file is None else PIECE
        if self._size > most or spool.taken > spool.all:
            await self._spill()

    async def whole(self) -> bytes:
        """All of it."""
        if self._file is None:
            return b"".join(self._parts)
        await self._spill()
        return await in_file_thread(self._read)

    async def _spill(self) -> None:
        parts, self._parts = self._parts, []
        self._spool.taken -= self._size
        self._size = 0
        try:
            await in_file_thread(self._write, parts)
        except OSError as error:
            sentence = f"the server has no space for a body of this size: {error.strerror}"
            raise RefusedError(503, sentence, after=60) from None

    def _write(self, parts: list[bytes]) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._spool.folder)  # noqa: SIM115 - `close` closes it
        self._file.writelines(parts)

    def _read(self) -> bytes:
        if self._file is None:
            return b""
        self._file.seek(0)
        return self._file.read()

    def close(self) -> None:
        """Free the body."""
        self._spool.taken -= self._size
        self._size = 0
        if self._file is not None:
            self._file.close()
