"""Storage of files by content: each is stored under its SHA-256, can be uploaded in parts, and is complete or absent.

    folder/ab/ab12...      a file; it gets this name after all of it is on the disk and has that hash
    folder/parts/ab12...   a file that is being uploaded, or whose upload was interrupted and can be resumed

`Blobs` blocks and is safe to call from several threads; `routes` are its HTTP routes, which do disk work in threads.
"""

import errno
import hashlib
import os
import re
import secrets
import shutil
import threading
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from eligo.client.owner import inside
from eligo.errors import InputError
from eligo.server.http.bodies import in_file_thread
from eligo.server.http.refusals import RefusedError
from eligo.stores.service import FileRow

NAME = re.compile(r"[0-9a-f]{64}")
PIECE = 2**20  # bytes for which it is worth going to a thread
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
MOST_HASHERS = 1000  # interrupted uploads whose hash state is kept in memory
#: seconds for which a file is not looked up again, fewer than any file stays after its last use; limit of such files
SEEN, MOST_SEEN = 1.0, 200_000
DAY = 86_400.0
PRIVATE = 0o700  # of folders, so that only the server's user reads what is in them
GONE, OLD = ".gone", ".old"  # suffixes during removal: of a file, and of a partial one
MOST_SWEPT = 500  # files that are checked in one step
PLAIN = {"content-type": "application/octet-stream", "x-content-type-options": "nosniff", "accept-ranges": "bytes"}


class Blobs:
    """Files in a folder, each at most `most_bytes` and together at most `most_total` bytes."""

    def __init__(self, folder: str | Path, most_bytes: int, most_total: int) -> None:
        self.folder, self.most_bytes, self.most_total = Path(folder), most_bytes, most_total
        self.parts = self.folder / "parts"
        try:
            for path in (self.folder, self.parts):
                path.mkdir(PRIVATE, parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{folder}: cannot store files here: {error.strerror}") from None
        self._lock, self._busy = threading.Lock(), set[str]()
        self._hashers: dict[str, tuple[int, Any]] = {}
        self._seen: dict[str, float] = {}  # the time when a file was last looked up and existed
        for path in self.parts.glob(f"*{GONE}"):  # the server ended while removing it: check it again
            path.rename(self.path(path.name.removesuffix(GONE)))
        for path in self.parts.glob("*.*"):  # these uploads cannot be resumed
            path.unlink()
        self.used = sum(path.stat().st_size for path in self._all())

    def path(self, sha256: str) -> Path:
        """The path of a file, whether it exists or not."""
        if not NAME.fullmatch(sha256):
            raise RefusedError(404, "a file must be named by its SHA-256 in 64 lowercase hex digits")
        return self.folder / sha256[:2] / sha256

    def has(self, sha256: str) -> bool:
        """Whether a file exists; one that existed a moment ago still does, because recently used files are not removed."""
        now = time.monotonic()
        if now - self._seen.get(sha256, -SEEN) < SEEN:
            return True
        if self.size(sha256) is None:
            return False
        if len(self._seen) >= MOST_SEEN:
            self._seen.clear()
        self._seen[sha256] = now
        return True

    def size(self, sha256: str) -> int | None:
        """The size of a file, or None if it does not exist; the file counts as used now."""
        path = self.path(sha256)
        try:
            with self._lock:  # a file that is being removed does not exist
                os.utime(path)
            return path.stat().st_size
        except FileNotFoundError:
            return None

    def offset(self, sha256: str) -> int:
        """How many bytes of an interrupted upload have arrived."""
        self.path(sha256)
        try:
            return (self.parts / sha256).stat().st_size
        except FileNotFoundError:
            return 0

    def begin(self, sha256: str, first: int, total: int) -> "Incoming":
        """Start to receive a file of `total` bytes, from the byte `first` on."""
        self.path(sha256).parent.mkdir(PRIVATE, exist_ok=True)
        if total > self.most_bytes:
            raise RefusedError(413, f"file of {total} bytes exceeds the limit of {self.most_bytes} bytes")
        with self._lock:
            shared = sha256 not in self._busy
            present = self.offset(sha256) if shared else 0
            if first and not shared:
                raise RefusedError(503, "another client is uploading this file; try again", after=1)
            if first not in {0, present}:
                raise RefusedError(409, f"the upload must continue at byte {present}", eligo_offset=str(present))
            if self.used + total - present > self.most_total:
                raise RefusedError(503, "the server's file storage is full", after=60)
            resent = present - first  # bytes to be overwritten; all bytes are claimed as they arrive
            self.used -= resent
            if shared:
                self._busy.add(sha256)
        try:
            return Incoming(self, sha256, first, total, shared)
        except OSError as error:
            self.forget(sha256, -resent, shared)
            raise full_or_broken(error) from error

    def claim(self, size: int) -> None:
        """Reserve space for bytes; raises `OSError` if there is none, as for a full disk."""
        with self._lock:
            if self.used + size > self.most_total:
                raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))
            self.used += size

    def add(self, path: str | Path) -> tuple[str, int]:
        """Store a file of this machine; returns its hash and size."""
        try:
            with Path(path).open("rb") as file:
                sha256 = hashlib.file_digest(file, "sha256").hexdigest()
                size = file.tell()
                if self.size(sha256) is None:
                    file.seek(0)
                    incoming = self.begin(sha256, 0, size)
                    for piece in pieces(file, size):
                        incoming.write(piece)
                    incoming.finish()
        except OSError as error:
            raise InputError(f"{path}: cannot read this input file: {error.strerror}") from None
        return sha256, size

    def copy(self, files: Iterable[FileRow], folder: Path) -> None:
        """Copy files under their own names into a folder, and never outside it."""
        for file in files:
            target = inside(folder, file.name)
            target.parent.mkdir(parents=True, exist_ok=True)
            part = target.with_name(f".{target.name}.part")
            shutil.copyfile(self.path(file.sha256), part)
            os.replace(part, target)

    def hasher(self, sha256: str, upto: int) -> Any:
        """The hash state of a resumed upload after its first *upto* bytes."""
        at, hasher = self._hashers.pop(sha256, (-1, None))
        if at == upto:
            return hasher
        hasher = hashlib.sha256()
        if upto:
            with (self.parts / sha256).open("rb") as file:
                for piece in pieces(file, upto):
                    hasher.update(piece)
        return hasher

    def publish(self, part: Path, path: Path) -> bool:
        """Give a complete upload its name; returns whether the file existed already."""
        with self._lock:
            existed = path.exists()
            part.rename(path)
            return existed

    def forget(self, sha256: str, freed: int, shared: bool, hash_state: tuple[int, Any] | None = None) -> None:
        """End an upload and free the bytes that it had reserved."""
        with self._lock:
            self.used -= freed
            if shared:
                self._busy.discard(sha256)
                if hash_state is not None and len(self._hashers) < MOST_HASHERS:
                    self._hashers[sha256] = hash_state

    def claimed(self, mark: str) -> bool:
        """Whether this folder has a mark; a folder without any gets it."""
        path = self.folder / "owner"
        with suppress(FileExistsError), path.open("x", encoding="ascii") as file:
            file.write(mark)
        return path.read_text("ascii") == mark

    def swept(self, needed: Callable[[list[str]], Collection[str]], older: float = DAY) -> Iterator[int]:
        """Remove files that are not needed and were not used for *older* seconds, some in each step; yields the freed bytes.

        Files that were uploaded or requested within that time stay, because a workflow may need them soon.
        """
        paths = self._all()
        while batch := list(islice(paths, MOST_SWEPT)):
            limit = time.time() - older
            old = [path for path in batch if _last_use(path) <= limit]
            keep = needed([path.name for path in old if path.parent != self.parts])
            yield sum(self._remove(path, limit) for path in old if path.name not in keep)

    def discard(self, sha256: str, limit: float) -> bool:
        """Remove a file that was not used after the time *limit*; returns whether it is gone."""
        path = self.path(sha256)
        return bool(self._remove(path, limit)) or not path.exists()

    def _remove(self, path: Path, limit: float) -> int:
        """Remove a file, unless it is being uploaded or was used after *limit*; returns the number of freed bytes."""
        part = path.parent == self.parts
        with suppress(FileNotFoundError):
            with self._lock:
                if path.name.partition(".")[0] in self._busy or _last_use(path) > limit:
                    return 0
                self._seen.pop(path.name, None)
                trash = path.rename(self.parts / f"{path.name}{OLD if part else GONE}")
                if _last_use(trash) > limit:  # another server with the same folder has used it
                    trash.rename(path)
                    return 0
            size = trash.stat().st_size
            trash.unlink()  # may take a while, so the lock is not held
            with self._lock:
                self.used -= size
            return size
        return 0

    def _all(self) -> Iterator[Path]:
        for folder in self.folder.iterdir():
            if folder.is_dir():
                yield from folder.iterdir()


def _last_use(path: Path) -> float:
    """When a file was used last; infinity if it does not exist, so that it counts as new."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return float("inf")


class Incoming:
    """An upload, which ends by `finish` or `leave`; a second concurrent one of the same file cannot be resumed."""

    def __init__(self, blobs: Blobs, sha256: str, first: int, total: int, shared: bool) -> None:
        self.blobs, self.sha256, self.at, self.total, self.shared = blobs, sha256, first, total, shared
        self._path = blobs.parts / (sha256 if shared else f"{sha256}.{secrets.token_hex(4)}")
        self._hasher = blobs.hasher(sha256, first) if shared else hashlib.sha256()
        self._lock = threading.Lock()  # a cancelled request leaves a thread behind that still writes
        self._ended = False
        self._claimed = first
        self._file = self._path.open("r+b" if first else "wb", buffering=0)
        self._file.seek(first)

    def write(self, data: bytes) -> None:
        """Append bytes to the file."""
        if self.at + len(data) > self.total:
            self.drop()
            raise RefusedError(400, f"the upload is longer than the announced {self.total} bytes")
        with self._lock:
            if self._ended:
                return
            try:
                self.blobs.claim(len(data))
                self._claimed += len(data)
                written = 0
                while written < len(data):
                    written += self._file.write(data[written:]) or 0
            except OSError as error:
                self._drop()
                raise full_or_broken(error) from error
            self._hasher.update(data)
            self.at += len(data)

    def finish(self) -> None:
        """End a complete upload: check its hash and give the file its name."""
        with self._lock:
            if self._hasher.hexdigest() != self.sha256 or self.at != self.total:
                self._drop()
                raise RefusedError(422, "the uploaded file does not match its hash and was discarded")
            try:
                self._finish()
            except OSError as error:
                self._drop()
                raise full_or_broken(error) from error

    def _finish(self) -> None:
        os.fsync(self._file.fileno())
        self._file.close()
        path = self.blobs.path(self.sha256)
        existed = self.blobs.publish(self._path, path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self._ended = True
        self.blobs.forget(self.sha256, self.total if existed else 0, self.shared)

    def leave(self) -> None:
        """End an interrupted upload, which can be resumed."""
        with self._lock:
            if self._ended:
                return
            if not self.shared or not self.at:
                self._drop()
                return
            self._ended = True
            self._file.close()
            self.blobs.forget(self.sha256, 0, True, (self.at, self._hasher))

    def drop(self) -> None:
        """End the upload and delete its bytes."""
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        if not self._ended:
            self._ended = True
            with suppress(OSError):
                self._file.close()
            self._path.unlink(missing_ok=True)
            self.blobs.forget(self.sha256, self._claimed, self.shared)


def full_or_broken(error: OSError) -> RefusedError:
    """The refusal for a disk error."""
    if error.errno in FULL:
        return RefusedError(503, "the server's disk is full; the upload was discarded", after=60)
    return RefusedError(503, f"the server cannot write to its disk: {error.strerror}", after=60)


def pieces(file: BinaryIO, size: int) -> Iterator[bytes]:
    """The next *size* bytes of a file, in pieces."""
    while size > 0 and (piece := file.read(min(PIECE, size))):
        size -= len(piece)
        yield piece


# Over HTTP


def routes(blobs: Blobs) -> list[Route]:
    """The routes HEAD, GET and PUT /v1/files/SHA256."""

    async def head(request: Request) -> Response:
        sha256 = request.path_params["sha256"]
        size = await in_file_thread(blobs.size, sha256)
        if size is None:
            raise RefusedError(404, "file not found", eligo_offset=str(blobs.offset(sha256)))
        return Response(headers=PLAIN | {"content-length": str(size)})

    async def get(request: Request) -> Response:
        return await _download(blobs, request)

    async def put(request: Request) -> Response:
        return await _upload(blobs, request)

    handlers: list[tuple[str, Callable[[Request], Any]]] = [("HEAD", head), ("GET", get), ("PUT", put)]
    return [Route("/v1/files/{sha256}", handler, methods=[method]) for method, handler in handlers]


async def _download(blobs: Blobs, request: Request) -> Response:
    sha256 = request.path_params["sha256"]
    size = await in_file_thread(blobs.size, sha256)
    try:
        file = await in_file_thread(blobs.path(sha256).open, "rb")
    except FileNotFoundError:
        size = None
    if size is None:
        raise RefusedError(404, "file not found", eligo_offset=str(blobs.offset(sha256)))
    try:
        first, last = _range(request.headers.get("range"), size)
    except RefusedError:
        file.close()
        raise
    headers = PLAIN | {"content-length": str(last - first + 1)}
    partial = "range" in request.headers and (first, last) != (0, size - 1)
    if partial:
        headers["content-range"] = f"bytes {first}-{last}/{size}"
    return _Download(file, (first, last), 206 if partial else 200, headers)


class _Download(StreamingResponse):
    """A range of a file, which is closed even if the connection ends before the first byte."""

    def __init__(self, file: BinaryIO, span: tuple[int, int], status: int, headers: dict[str, str]) -> None:
        super().__init__(_stream(file, span[0], span[1] - span[0] + 1), status, headers)
        self._file = file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._file:
            await super().__call__(scope, receive, send)


async def _stream(file: BinaryIO, first: int, size: int) -> AsyncIterator[bytes]:
    file.seek(first)
    chunks = pieces(file, size)
    while (piece := await in_file_thread(next, chunks, None)) is not None:
        yield piece


def _range(header: str | None, size: int) -> tuple[int, int]:
    """The first and last byte of a requested range; all bytes, if the header is not one simple range.

    >>> _range(None, 10), _range("bytes=2-4", 10), _range("bytes=7-", 10), _range("bytes=-3", 10), _range("rows=1", 10)
    ((0, 9), (2, 4), (7, 9), (7, 9), (0, 9))
    """
    match = re.fullmatch(r"bytes=(\d{0,18})-(\d{0,18})", header or "")
    if not match or not any(match.groups()):
        return 0, size - 1
    begin, end = match.groups()
    first = int(begin) if begin else max(0, size - int(end))
    last = min(int(end), size - 1) if begin and end else size - 1
    if first > last:
        sentence = f"the range starts beyond the end of the file ({size} bytes)"
        raise RefusedError(416, sentence, content_range=f"bytes */{size}")
    return first, last


async def _upload(blobs: Blobs, request: Request) -> Response:
    sha256 = request.path_params["sha256"]
    first, last, total = _upload_range(request)
    if await in_file_thread(blobs.size, sha256) is not None:
        async for _ in request.stream():  # read the body, so that the client gets the answer
            pass
        return JSONResponse({"sha256": sha256, "size": await in_file_thread(blobs.size, sha256)})
    incoming = await in_file_thread(blobs.begin, sha256, first, total)
    buffer = bytearray()
    try:
        async for part in request.stream():
            buffer += part
            if len(buffer) >= PIECE:
                piece, buffer = bytes(buffer), bytearray()
                await in_file_thread(incoming.write, piece)
        await in_file_thread(incoming.write, bytes(buffer))
    except BaseException:
        with suppress(RefusedError):
            incoming.write(bytes(buffer))
        incoming.leave()
        raise
    if last + 1 < total:
        await in_file_thread(incoming.leave)
        return JSONResponse({"offset": incoming.at}, 202, {"eligo-offset": str(incoming.at)})
    await in_file_thread(incoming.finish)
    return JSONResponse({"sha256": sha256, "size": total}, 201)


def _upload_range(request: Request) -> tuple[int, int, int]:
    """The first and last byte of an upload, and the size of the file."""
    length, content_range = request.headers.get("content-length"), request.headers.get("content-range")
    if length is None:
        raise RefusedError(411, "missing Content-Length header")
    if content_range is None:
        return 0, int(length) - 1, int(length)
    match = re.fullmatch(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})", content_range)
    first, last, total = map(int, match.groups()) if match else (1, 0, 0)
    # an upload of no bytes finishes a file that arrived completely but has no name yet
    if not first - 1 <= last < total or last - first + 1 != int(length):
        raise RefusedError(400, "Content-Range must be 'bytes FIRST-LAST/TOTAL' and agree with Content-Length")
    return first, last, total
