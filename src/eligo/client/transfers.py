"""Transfers files by hash: fetches each once for all tasks, sends them in parts, and resumes after interruptions."""

import errno
import hashlib
import http.client
import os
import re
import shutil
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from eligo.client.calls import Calls, Outgoing, Replied, ServerRefusedError, never, read_reply
from eligo.errors import FormatError, InputError

PART = 8 * 2**20  # bytes per request
CHUNK = 2**20
RESERVE = 64 * 2**20  # bytes of the disk that must stay free
SMALL = 64 * 1024  # files up to this size in bytes are sent without asking whether the server has them
PREFIX, MOST_TOLD = 16, 256  # length of hash prefixes that the server receives, and the maximum number of these
TRIES = 5  # number of consecutive parts that the server may reject
MOST_CUTS = 8
MISPLACED = frozenset({409, 416})
SHA256 = re.compile("[0-9a-f]{64}")


class HashedFile(NamedTuple):
    """A file, identified by its content."""

    sha256: str
    size: int


class TooLargeError(InputError):
    """A file exceeds its size limit."""


class Depot:
    """The files of a client by hash, and their transfer from and to the server."""

    def __init__(self, folder: str, calls: Calls, most: int) -> None:
        os.makedirs(folder, exist_ok=True)
        self._folder, self._calls, self._most = folder, calls, most
        self._lock, self._pins = threading.Lock(), Counter[str]()
        # each file is fetched by one thread; locks by first byte
        self._fetching = [threading.Lock() for _ in range(256)]
        self._shared = OrderedDict[str, None]()  # hashes of files here that this server knows, the last used at the end
        #: bytes received, sent, and saved because the file was already there
        self.fetched = self.sent = self.saved = 0

    def path(self, sha256: str) -> str:
        """The path of a file, whether or not it exists."""
        return os.path.join(self._folder, sha256)

    def kept(self) -> list[str]:
        """Prefixes of the hashes of larger files that are here and that the server named in this session."""
        with self._lock:
            return [sha256[:PREFIX] for sha256 in islice(reversed(self._shared), MOST_TOLD)]

    def forget(self) -> None:
        """Forget which files the server knows, because it may be a different server."""
        with self._lock:
            self._shared.clear()

    def _note(self, file: HashedFile) -> None:
        """Record that a file is here and that the server knows it."""
        if file.size >= SMALL:
            with self._lock:
                self._shared[file.sha256] = None
                self._shared.move_to_end(file.sha256)

    def pin(self, *files: HashedFile) -> None:
        """Protect files from `sweep` until they are unpinned as often."""
        with self._lock:
            self._pins.update(file.sha256 for file in files)

    def unpin(self, *files: HashedFile) -> None:
        """Undo `pin`."""
        with self._lock:
            self._pins.subtract(file.sha256 for file in files)
            self._pins += Counter()  # removes counts of zero

    @contextmanager
    def borrowed(self, file: HashedFile, until: Callable[[], bool] = never) -> Iterator[str]:
        """The path of a file, which is fetched if necessary and pinned meanwhile."""
        self.pin(file)
        try:
            with self._fetching[int(file.sha256[:2], 16)]:
                path = self._fetch(file, self.path(file.sha256), until)
                self._note(file)
                yield path
        finally:
            self.unpin(file)

    def _fetch(self, file: HashedFile, path: str, until: Callable[[], bool]) -> str:
        if os.path.exists(path):
            os.utime(path)
            self._count_saved(file.size)
            return path
        for _ in range(2):  # the rest of an earlier attempt may be wrong
            self._download(file, f"{path}.part", until)
            if _hash(f"{path}.part") == file.sha256:
                os.replace(f"{path}.part", path)
                return path
            os.unlink(f"{path}.part")
        raise InputError(f"file {file.sha256[:12]}... from the server does not match its hash")

    def _download(self, file: HashedFile, part: str, until: Callable[[], bool]) -> None:
        """Fetch the missing part of a file, unless it would fill the disk."""
        if file.size + RESERVE > shutil.disk_usage(self._folder).free:
            raise OSError(errno.ENOSPC, f"no space left for a file of {file.size:,} bytes")

        def attempt() -> Replied:
            there = os.path.getsize(part) if os.path.exists(part) else 0
            if there >= file.size and there:
                return Replied(206, {}, b"")
            headers = {"Range": f"bytes={there}-"} if there else {}
            sending = Outgoing("GET", f"/v1/files/{file.sha256}", headers=headers)
            return self._calls.exchange(sending, lambda response: self._receive(response, part, file))

        replied = self._calls.insist(attempt, until)
        if replied.code not in {200, 206}:
            raise replied.error()

    def _receive(self, response: http.client.HTTPResponse, part: str, file: HashedFile) -> Replied:
        """Write a response to a file, appending if the server sends only the missing part."""
        if response.status not in {200, 206}:
            return Replied(response.status, response.headers, response.read(CHUNK))
        with open(part, "ab" if response.status == 206 else "wb") as into:
            while chunk := response.read(CHUNK):
                if into.tell() + len(chunk) > file.size:
                    raise TooLargeError(f"file {file.sha256[:12]}... from the server is larger than announced")
                into.write(chunk)
                with self._lock:
                    self.fetched += len(chunk)
            short = into.tell() < file.size
        if short:
            raise http.client.IncompleteRead(b"")
        return Replied(response.status, {}, b"")

    def keep(self, descriptor: int, most: int) -> HashedFile:
        """Store a file by its present content, synced and pinned; closes the descriptor."""
        part, digest, size = os.path.join(self._folder, f"{threading.get_ident()}.new"), hashlib.sha256(), 0
        try:
            with open(descriptor, "rb") as source, open(part, "wb") as into:
                while chunk := source.read(CHUNK):
                    size += len(chunk)
                    if size > most:
                        raise TooLargeError(f"the outputs of the task exceed the limit of {most:,} bytes")
                    digest.update(chunk)
                    into.write(chunk)
                into.flush()
                os.fsync(into.fileno())
            stored = HashedFile(digest.hexdigest(), size)
            self.pin(stored)
            os.replace(part, self.path(stored.sha256))
        finally:
            with suppress(FileNotFoundError):
                os.unlink(part)
        return stored

    def send(self, file: HashedFile, until: Callable[[], bool] = never) -> None:
        """Send a file to the server, unless it has it."""
        way = _Way(ask=file.size > SMALL)
        while not way.over:
            replied = self._calls.insist(lambda: self._send_part(file, way), until)
            if replied.code >= 300 and (replied.code not in MISPLACED or way.misses >= TRIES):
                raise replied.error()
        self._note(file)

    def _send_part(self, file: HashedFile, way: "_Way") -> Replied:
        """Send the next part; after a failed attempt, first ask the server how much it has."""
        if way.ask:
            replied = self._calls.exchange(Outgoing("HEAD", f"/v1/files/{file.sha256}"), read_reply)
            if replied.code == 200:
                way.over = True
                self._count_saved(0 if way.at else file.size)
            if replied.code != 404:
                return replied
            offset, before = replied.headers.get("Eligo-Offset", "0"), way.at
            way.at = min(int(offset), file.size) if offset.isdecimal() else 0
            way.cuts = way.cuts if way.at == before else 0
        way.ask = True
        try:
            replied = self._upload_part(file, way.at)
        except (OSError, http.client.HTTPException):
            way.cuts += 1
            if way.cuts > MOST_CUTS:  # it answers requests, but accepts no data
                raise ServerRefusedError(0, f"connection lost {way.cuts} times while sending a file") from None
            raise
        if replied.code < 300:
            way.at, way.ask, way.misses = way.at + PART, False, 0
            way.over = way.at >= file.size
        way.misses += replied.code in MISPLACED
        return replied

    def _upload_part(self, file: HashedFile, at: int) -> Replied:
        with open(self.path(file.sha256), "rb") as source:
            source.seek(at)
            body = source.read(PART)
        headers = {"Content-Type": "application/octet-stream"}
        if len(body) < file.size:
            headers["Content-Range"] = f"bytes {at}-{at + len(body) - 1}/{file.size}"
        replied = self._calls.exchange(Outgoing("PUT", f"/v1/files/{file.sha256}", body, headers), read_reply)
        with self._lock:
            self.sent += len(body)
        return replied

    def _count_saved(self, size: int) -> None:
        with self._lock:
            self.saved += size

    def sweep(self) -> None:
        """Remove the least recently used files until the rest fits the limit; pinned files stay."""
        with self._lock, os.scandir(self._folder) as entries:
            files = [(e.stat().st_mtime, e.stat().st_size, e.name) for e in entries if SHA256.fullmatch(e.name)]
            much = sum(size for _, size, _ in files)
            for _, size, name in sorted(files):
                if much <= self._most:
                    break
                if not self._pins[name]:
                    os.unlink(self.path(name))
                    self._shared.pop(name, None)
                    much -= size


@dataclass(slots=True)
class _Way:
    """The progress of sending a file."""

    ask: bool
    at: int = 0
    over: bool = False
    #: number of consecutive parts that the server rejected, and of broken connections
    misses: int = 0
    cuts: int = 0


def _hash(path: str) -> str:
    with open(path, "rb") as file:
        digest = hashlib.sha256()
        while chunk := file.read(2**20):
            digest.update(chunk)
    return digest.hexdigest()


def parse_file(words: object) -> HashedFile:
    """A file as described by the server."""
    if isinstance(words, dict):
        sha256, size = words.get("sha256"), words.get("size")
        if isinstance(sha256, str) and SHA256.fullmatch(sha256) and isinstance(size, int) and size >= 0:
            return HashedFile(sha256, size)
    raise FormatError("invalid description of a file from the server")
