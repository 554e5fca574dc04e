"""Files and streams as text: limits of size, encodings, compression, and the files that a file names."""

import glob
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

#: The default limit of bytes in a file, before and after decompression, and in all files that it names.
LARGEST_FILE = 2**30
#: The suffixes of compressed files.
COMPRESSED = (".gz", ".zst")

#: The maximum size of a decompressed file: these bytes, or this many times the compressed size if that is larger. A file
#: that exceeds both was probably made to cause harm.
LARGEST_GROWN, MOST_TIMES = 100 * 2**20, 50

_CHUNK = 2**20
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_NO_TEXT = frozenset({*range(32)} - {*b"\t\n\v\f\r\x1b"})  # control characters that no text has


class Stream(Protocol):
    """A source of bytes."""

    def read(self, size: int, /) -> bytes:
        """Read at most *size* bytes; empty at the end."""


class Loaded(NamedTuple):
    """The text of a file, and its encoding: "utf-8", "utf-16-le" or "utf-16-be" after a byte-order mark, or "latin-1"."""

    text: str
    encoding: str


def display_path(path: str) -> str:
    """The path for messages."""
    return "<stdin>" if path == "-" else path


def plain_name(path: str) -> str:
    """The path without the suffix of a compressed file.

    >>> plain_name("flow.json.GZ"), plain_name("flow.json")
    ('flow.json', 'flow.json')
    """
    return path[: -len(_suffix(path))] if _suffix(path) else path


def load(path: str, limit: int = LARGEST_FILE, may_be_empty: bool = False) -> str:
    """The decompressed text of a file, or of standard input if *path* is "-"; raises if it is not UTF-8 or UTF-16."""
    text, encoding = load_any(path, limit, may_be_empty)
    if encoding == "latin-1":
        raise not_utf_8(text, path)
    return text


def load_any(path: str, limit: int = LARGEST_FILE, may_be_empty: bool = False) -> Loaded:
    """The text of a file in UTF-8 or UTF-16; other bytes are read as Latin-1."""
    try:
        loaded = _text(load_bytes(path, limit))
        if not may_be_empty and not loaded.text.strip():
            raise FormatError("the file is empty")
        return loaded
    except FormatError as error:
        raise FormatError(error.message, display_path(path), error.line) from None


def load_bytes(path: str, limit: int = LARGEST_FILE) -> bytes:
    """The decompressed bytes of a file, or of standard input."""
    try:
        data = _bytes(path, limit)
        if data.startswith(_GZIP):
            return _decompress(data, limit, "gzip", gzip.open)
        if data.startswith(_ZSTD):
            return _decompress(data, limit, "zstd", _zstd().open)
        return data
    except FormatError as error:
        raise FormatError(error.message, display_path(path), error.line) from None
    except (OSError, ValueError) as error:  # ValueError: the path contains NUL
        raise FormatError(f"cannot be read: {_reason(error)}", display_path(path)) from None


def not_utf_8(text: str, path: str) -> FormatError:
    """The error for a text that was read as Latin-1, in a format that must be UTF-8."""
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
    raise AssertionError("the text is UTF-8")


def save(text: str, path: str) -> None:
    """Write a text to a file, or to standard output if *path* is "-"; compressed if the name ends in .gz or .zst."""
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        broken = ascii(error.object[error.start])
        raise FormatError(f"cannot be written: {broken} is not a valid character", path) from None
    save_bytes(data, path)


def save_bytes(data: bytes, path: str) -> None:
    """Write bytes to a file, or to standard output if *path* is "-"; compressed if the name ends in .gz or .zst."""
    try:
        if path == "-":
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        else:
            _replace(path, _compress(data, path))
    except BrokenPipeError:
        raise
    except (OSError, ValueError) as error:
        raise FormatError(f"cannot be written: {_reason(error)}", path) from None


def _replace(path: str, data: bytes) -> None:
    """Write a file completely or not at all, through a temporary file; devices and pipes are written directly."""
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


def _decompress(data: bytes, limit: int, kind: str, opened: Callable[[BinaryIO], Any]) -> bytes:
    damage = (OSError, EOFError, zlib.error) if kind == "gzip" else (EOFError, _zstd().ZstdError)
    most = min(limit, max(LARGEST_GROWN, MOST_TIMES * len(data)))
    grown = f"decompresses to more than {MOST_TIMES} times its size (if that is intended, decompress it first)"
    try:
        with opened(io.BytesIO(data)) as stream:
            return _at_most(most, stream, grown if most < limit else None)
    except damage as error:
        raise FormatError(f"the {kind} data are damaged: {str(error).lower()}") from None


def _compress(data: bytes, path: str) -> bytes:
    suffix = _suffix(path)
    if suffix == ".gz":
        return gzip.compress(data, mtime=0)
    if suffix == ".zst":
        return bytes(_zstd().compress(data))
    return data


def _zstd() -> Any:
    """Python's own module since 3.14, before that its backport."""
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
    """The text of bytes with a UTF-16 byte-order mark."""
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

    Names are relative to the folder of the file that is read, *root*, or to the current folder if *root* is None, which is
    standard input. Files outside that folder are refused, unless *allow_outside*. All files together may have *limit* bytes.
    """

    def __init__(self, root: str | None, limit: int = LARGEST_FILE, allow_outside: bool = False) -> None:
        self.root = root
        self.limit = limit
        self.allow_outside = allow_outside
        self._folder = os.path.dirname(root or "")
        self._inside = os.path.realpath(self._folder or os.curdir)
        self._size = 0
        self._texts: dict[str, str] = {}
        self._latin_1: set[str] = set()

    def place(self, name: str, folder: str = "") -> str:
        """The path of a file with this name in *folder*, which is relative to the root's folder."""
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

    def load_utf_8(self, path: str) -> str:
        """The text of the file at a path that `place` returned, which must be UTF-8."""
        text = self.load(path)
        if path in self._latin_1:
            raise not_utf_8(text, path)
        return text

    def load(self, path: str) -> str:
        """The text of the file at a path that `place` returned."""
        if path not in self._texts:
            if os.path.exists(path) and not os.path.isfile(path):
                raise FormatError("cannot be read: not a regular file", path)
            data = load_any(path, max(0, self.limit - self._size))
            self._size += len(data.text)
            self._texts[path] = data.text
            self._latin_1 |= {path} if data.encoding == "latin-1" else set()
        return self._texts[path]

    def matches(self, pattern: str) -> list[str]:
        """The files that match a pattern, sorted, by their names counted from the folder of the root."""
        self.place(pattern)
        names = glob.glob(pattern, root_dir=self._folder or os.curdir, recursive=True)
        return sorted(name for name in names if self.allow_outside or self._holds(os.path.join(self._folder, name)))

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of the files that were loaded."""
        return tuple(self._texts)

    def names(self) -> list[str]:
        """The names of the files in the root's folder."""
        try:
            return [] if self.root is None else os.listdir(self._folder or os.curdir)
        except OSError:
            return []

    def _holds(self, path: str) -> bool:
        try:
            return os.path.commonpath((self._inside, os.path.realpath(path))) == self._inside
        except ValueError:  # NUL in the name, or another drive
            return False
