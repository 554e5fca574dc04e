"""The bytes of files and streams as text: the limits, the encodings and the compressions that all formats share."""

import gzip
import io
import os
import shutil
import sys
import zlib
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO, NamedTuple, Protocol

from eligo.errors import FormatError, shorten

#: The most bytes that are read from a file, before and after decompression, and from all files that it names.
LARGEST_FILE = 2**30
#: How a compressed file's name ends.
COMPRESSED = (".gz", ".zst")

#: A file may decompress to so many bytes, or to so many times its own: what grows more was made to do harm.
LARGEST_GROWN, MOST_TIMES = 100 * 2**20, 50

_CHUNK = 2**20
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_NO_TEXT = frozenset({*range(32)} - {*b"\t\n\v\f\r\x1b"})  # control characters that no text has


class Stream(Protocol):
    """What bytes are read from."""

    def read(self, size: int, /) -> bytes:
        """At most *size* bytes; none at the end."""


class Loaded(NamedTuple):
    """The text of a file, and "utf-8", "utf-16-le" or "utf-16-be" where a mark says so, or else "latin-1"."""

    text: str
    encoding: str


def display_path(path: str) -> str:
    """The path as messages say it."""
    return "<stdin>" if path == "-" else path


def plain_name(path: str) -> str:
    """The path without the suffix of a compression.

    >>> plain_name("flow.json.GZ"), plain_name("flow.json")
    ('flow.json', 'flow.json')
    """
    return path[: -len(_suffix(path))] if _suffix(path) else path


def load(path: str, limit: int = LARGEST_FILE, may_be_empty: bool = False) -> str:
    """The text of a file, or of standard input where *path* is "-", in UTF-8; gzip and zstd are undone."""
    text, encoding = load_any(path, limit, may_be_empty)
    if encoding == "latin-1":
        raise not_utf_8(text, path)
    return text


def load_any(path: str, limit: int = LARGEST_FILE, may_be_empty: bool = False) -> Loaded:
    """Load a text; bytes that are not UTF-8 are read as Latin-1."""
    try:
        loaded = _text(load_bytes(path, limit))
        if not may_be_empty and not loaded.text.strip():
            raise FormatError("the file is empty")
        return loaded
    except FormatError as error:
        raise FormatError(error.message, display_path(path), error.line) from None


def load_bytes(path: str, limit: int = LARGEST_FILE) -> bytes:
    """The bytes of a file, or of standard input, without their compression."""
    try:
        data = _bytes(path, limit)
        if data.startswith(_GZIP):
            return _decompressed(data, limit, "gzip", gzip.open)
        if data.startswith(_ZSTD):
            return _decompressed(data, limit, "zstd", _zstd().open)
        return data
    except FormatError as error:
        raise FormatError(error.message, display_path(path), error.line) from None
    except (OSError, ValueError) as error:  # ValueError: a path that holds a NUL
        raise FormatError(f"cannot be read: {_reason(error)}", display_path(path)) from None


def not_utf_8(text: str, path: str) -> FormatError:
    """What to say of a text that was taken for Latin-1, in a format that is UTF-8."""
    data = text.encode("latin-1")
    odd = next((at for at, byte in enumerate(data) if byte in _NO_TEXT), None)
    if odd is not None and not data.startswith(_UTF_16):
        return FormatError(
            f"byte {odd:,} (0x{data[odd]:02x}) is not a valid character: not a text file", display_path(path)
        )
    try:
        data.decode()
    except UnicodeDecodeError as error:
        message = f"byte {error.start:,} (0x{data[error.start]:02x}) is not UTF-8 (save the file as UTF-8)"
        return FormatError(message, display_path(path), _line(data, error.start))
    raise AssertionError("it is UTF-8")


def save(text: str, path: str) -> None:
    """Write a text to a file, or to standard output where *path* is "-"; compressed where the name ends in .gz or .zst."""
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        broken = ascii(error.object[error.start])
        raise FormatError(f"cannot be written: {broken} is not a valid character", path) from None
    save_bytes(data, path)


def save_bytes(data: bytes, path: str) -> None:
    """The same for bytes."""
    try:
        if path == "-":
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        else:
            _replace(path, _compressed(data, path))
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        raise FormatError(f"cannot be written: {_reason(error)}", path) from None


def _replace(path: str, data: bytes) -> None:
    """Write a file whole or not at all: beside it first, then in its place. What is no plain file is written as it is."""
    place = os.path.realpath(path)
    if os.path.exists(place) and not os.path.isfile(place):
        with open(place, "wb") as stream:
            stream.write(data)
        return
    beside = f"{place}.{os.getpid()}.part"
    try:
        with open(beside, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(place):
            shutil.copymode(place, beside)
        os.replace(beside, place)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise


def _reason(error: OSError | ValueError) -> str:
    return str(getattr(error, "strerror", None) or error).lower()


def _suffix(path: str) -> str:
    return next((suffix for suffix in COMPRESSED if path.lower().endswith(suffix)), "")


def _bytes(path: str, limit: int) -> bytes:
    if path == "-":
        return _at_most(limit, sys.stdin.buffer)
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise FormatError(f"has {size:,} bytes, more than the limit of {limit:,}")
        return _at_most(limit, file)


def _at_most(limit: int, stream: Stream, reason: str | None = None) -> bytes:
    parts, size = [], 0
    while chunk := stream.read(_CHUNK):
        size += len(chunk)
        if size > limit:
            raise FormatError(reason or f"has more than the limit of {limit:,} bytes")
        parts.append(chunk)
    return b"".join(parts)


def _decompressed(data: bytes, limit: int, kind: str, opened: Callable[[BinaryIO], Any]) -> bytes:
    damage = (OSError, EOFError, zlib.error) if kind == "gzip" else (EOFError, _zstd().ZstdError)
    most = min(limit, max(LARGEST_GROWN, MOST_TIMES * len(data)))
    grown = f"decompresses to more than {MOST_TIMES} times its size (if that is intended, decompress it first)"
    try:
        with opened(io.BytesIO(data)) as stream:
            return _at_most(most, stream, grown if most < limit else None)
    except damage as error:
        raise FormatError(f"the {kind} data are damaged: {str(error).lower()}") from None


def _compressed(data: bytes, path: str) -> bytes:
    suffix = _suffix(path)
    if suffix == ".gz":
        return gzip.compress(data, mtime=0)
    if suffix == ".zst":
        return bytes(_zstd().compress(data))
    return data


def _zstd() -> Any:
    """Python's own module since 3.14, and before that the same one from outside."""
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
    return zstd


def _text(data: bytes) -> Loaded:
    if data.startswith(_UTF_16):
        return _wide_text(data)
    encoding = "utf-8"
    try:
        text = data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError:
        text, encoding = data.decode("latin-1"), "latin-1"
        if 0 in data:
            raise not_utf_8(text, "") from None
    nul = data.find(0)
    if nul >= 0:
        raise FormatError(f"byte {nul:,} is NUL: not a text file", line=_line(data, nul))
    return Loaded(text, encoding)


def _wide_text(data: bytes) -> Loaded:
    """The text of bytes whose mark says UTF-16."""
    encoding = "utf-16-le" if data.startswith(_UTF_16[0]) else "utf-16-be"
    try:
        text = data.decode(encoding).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise FormatError(
            f"byte {error.start:,} is not UTF-16, although the file is marked as UTF-16 (save it as UTF-8)"
        ) from None
    if "\0" in text:
        raise FormatError("contains NUL: not a text file", line=text.count("\n", 0, text.index("\0")) + 1)
    return Loaded(text, encoding)


def _line(data: bytes, offset: int) -> int:
    return data.count(b"\n", 0, offset) + 1


class Beside:
    """The files beside the one that is read, for formats whose files name others.

    Names count from the folder of the file that is read, *root*; None stands for standard input, and then for the current
    folder. What lies outside that folder is refused, and all files together may have *limit* bytes.
    """

    def __init__(self, root: str | None, limit: int = LARGEST_FILE, allow_outside: bool = False) -> None:
        self.root = root
        self.limit = limit
        self.allow_outside = allow_outside
        self._folder = os.path.dirname(root or "")
        self._inside = os.path.realpath(self._folder or os.curdir)
        self._size = 0
        self._texts: dict[str, str] = {}

    def place(self, name: str, folder: str = "") -> str:
        """The path of a file that is named in *folder*, itself counted from that of the root."""
        if self.root is None and not self.allow_outside:
            raise FormatError(
                f"refers to the file {shorten(name)!r}, but standard input has no folder to look in (read the workflow from"
                " a file)"
            ).cured_by("allow_outside")
        path = os.path.normpath(os.path.join(self._folder, folder, name))
        if not self.allow_outside and not self._holds(path):
            outside = f"{shorten(name)!r} is outside the folder of {shorten(self.root or '')}"
            raise FormatError(outside).cured_by("allow_outside")
        return path

    def load(self, path: str) -> str:
        """The text of the file at a path that `place` gave."""
        if path not in self._texts:
            if os.path.exists(path) and not os.path.isfile(path):
                raise FormatError("cannot be read: not a regular file", path)
            data = load_any(path, max(0, self.limit - self._size))
            self._size += len(data.text)
            self._texts[path] = data.text
        return self._texts[path]

    @property
    def files(self) -> tuple[str, ...]:
        """The files that were loaded."""
        return tuple(self._texts)

    def names(self) -> list[str]:
        """The names of the files in the folder of the root."""
        try:
            return [] if self.root is None else os.listdir(self._folder or os.curdir)
        except OSError:
            return []

    def _holds(self, path: str) -> bool:
        try:
            return os.path.commonpath((self._inside, os.path.realpath(path))) == self._inside
        except ValueError:  # a NUL in the name, or another drive
            return False
