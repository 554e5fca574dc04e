"""The bytes of files and streams as text: the limits and the encoding that all formats share."""

import gzip
import io
import os
import sys
import zlib
from typing import BinaryIO

from eligo.errors import FormatError

#: The most bytes that are read from a file, before and after decompression.
LARGEST_FILE = 2**30

_CHUNK = 2**20
_GZIP = b"\x1f\x8b"


def shown(path: str) -> str:
    """The path as messages say it."""
    return "<stdin>" if path == "-" else path


def load(path: str, limit: int = LARGEST_FILE) -> str:
    """The text of a file, or of standard input where *path* is "-"; gzip is undone."""
    try:
        data = _bytes(path, limit)
        if data.startswith(_GZIP):
            data = _decompressed(data, limit)
        return _text(data)
    except FormatError as error:
        raise FormatError(error.message, shown(path), error.line) from None
    except (OSError, ValueError) as error:  # ValueError: a path that holds a NUL
        raise FormatError(f"cannot be read: {_reason(error)}", shown(path)) from None


def save(text: str, path: str) -> None:
    """Write a text to a file, or to standard output where *path* is "-"; gzipped where the name ends in .gz."""
    try:
        data = text.encode()
        if path == "-":
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        else:
            with open(path, "wb") as file:
                file.write(gzip.compress(data, mtime=0) if path.lower().endswith(".gz") else data)
    except BrokenPipeError:
        raise
    except UnicodeEncodeError as error:
        broken = ascii(error.object[error.start])
        raise FormatError(f"cannot be written: {broken} is no character", path) from None
    except (OSError, ValueError) as error:
        raise FormatError(f"cannot be written: {_reason(error)}", path) from None


def _reason(error: OSError | ValueError) -> str:
    return str(getattr(error, "strerror", None) or error).lower()


def _bytes(path: str, limit: int) -> bytes:
    if path == "-":
        return _at_most(limit, sys.stdin.buffer)
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > limit:
            raise FormatError(f"has {size:,} bytes; at most {limit:,} are read")
        return _at_most(limit, file)


def _at_most(limit: int, stream: BinaryIO | gzip.GzipFile) -> bytes:
    parts, size = [], 0
    while chunk := stream.read(_CHUNK):
        size += len(chunk)
        if size > limit:
            raise FormatError(f"has more than {limit:,} bytes, the most that are read")
        parts.append(chunk)
    return b"".join(parts)


def _decompressed(data: bytes, limit: int) -> bytes:
    try:
        with gzip.open(io.BytesIO(data)) as stream:
            return _at_most(limit, stream)
    except (OSError, EOFError, zlib.error) as error:
        raise FormatError(f"the gzip data are damaged: {str(error).lower()}") from None


def _text(data: bytes) -> str:
    try:
        text = data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        where, line = error.start, _line(data, error.start)
        message = f"byte {where:,} (0x{data[where]:02x}) is not UTF-8: save the file as UTF-8"
        raise FormatError(message, line=line) from None
    nul = data.find(0)
    if nul >= 0:
        raise FormatError(f"byte {nul:,} is NUL, so this is no text", line=_line(data, nul))
    if not text or text.isspace():
        raise FormatError("the file is empty")
    return text


def _line(data: bytes, offset: int) -> int:
    return data.count(b"\n", 0, offset) + 1
