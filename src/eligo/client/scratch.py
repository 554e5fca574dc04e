"""A scratch folder that file names cannot leave: paths are opened step by step, and links to the outside are not followed."""

import os
import shutil
import stat
from contextlib import suppress
from typing import Self

from eligo.errors import FormatError, InputError, shorten

LONGEST = 4096  # characters of a name, the limit of most systems
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def checked_name(name: object) -> str:
    """A file name, checked to stay in the folder.

    >>> checked_name("results/b.txt")
    'results/b.txt'
    >>> checked_name("../../etc/passwd")
    Traceback (most recent call last):
    eligo.errors.FormatError: file name '../../etc/passwd' points outside the scratch folder
    """
    if not isinstance(name, str) or not name or len(name) > LONGEST or "\0" in name:
        raise FormatError(f"{shorten(repr(name))} is not a file name")
    if name.startswith("/") or ".." in name.split("/"):
        raise FormatError(f"file name {shorten(name)!r} points outside the scratch folder")
    if not _steps(name) or name.endswith("/"):
        raise FormatError(f"{shorten(name)!r} is the name of a folder, not of a file")
    try:
        os.fsencode(name)
    except UnicodeError:
        raise FormatError(f"{shorten(repr(name))} is not a file name") from None
    return name


def _steps(name: str) -> list[str]:
    return [step for step in name.split("/") if step not in {"", "."}]


class Scratch:
    """A folder for the tasks of a grant, removed at the end; their output streams are beside it."""

    def __init__(self, path: str) -> None:
        os.makedirs(path)
        self._path = os.path.realpath(path)
        self.folder = os.path.join(self._path, "files")
        os.mkdir(self.folder)
        self.out, self.err = (os.path.join(self._path, kind) for kind in ("out", "err"))
        self._root = os.open(self.folder, _FOLDER)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._root)
        remove(self._path)

    def place(self, name: str, source: str) -> None:
        """Copy a file here under a name, replacing any other."""
        *above, last = _steps(checked_name(name))
        try:
            folder = self._down(above, make=True)
        except OSError as error:
            raise InputError(f"cannot place input {shorten(name)!r}: {error.strerror}") from None
        try:
            with suppress(FileNotFoundError):
                os.unlink(last, dir_fd=folder)
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            target = os.open(last, flags, 0o777, dir_fd=folder)  # it may be a program
        except IsADirectoryError:
            raise InputError(f"cannot place input {shorten(name)!r}: a folder of that name exists") from None
        finally:
            os.close(folder)
        with open(target, "wb") as into, open(source, "rb") as out:
            shutil.copyfileobj(out, into, 2**20)

    def drop(self, name: str) -> None:
        """Remove a file that a task wrote, if it is still there; of a link, only the link."""
        *above, last = _steps(checked_name(name))
        with suppress(OSError):
            folder = self._down(above, make=False)
            try:
                os.unlink(last, dir_fd=folder)
            finally:
                os.close(folder)

    def open(self, name: str) -> int:
        """Open a file that a task wrote; links to files in this folder are followed, others are refused."""
        path = os.path.realpath(os.path.join(self.folder, checked_name(name)))
        inner = os.path.relpath(path, self.folder)
        if inner.split("/")[0] == "..":
            raise InputError(f"output {shorten(name)!r} is a link that points outside the scratch folder")
        *above, last = _steps(inner)
        try:
            folder = self._down(above, make=False)
            try:
                descriptor = os.open(last, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
            finally:
                os.close(folder)
        except FileNotFoundError:
            raise InputError(f"the task did not create {shorten(name)!r}") from None
        except OSError as error:
            raise InputError(f"cannot read output {shorten(name)!r}: {error.strerror}") from None
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise InputError(f"output {shorten(name)!r} is not a regular file")
        return descriptor

    def _down(self, steps: list[str], make: bool) -> int:
        """Open the folder at these steps, none of which may be a link."""
        here = os.dup(self._root)
        try:
            for step in steps:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(step, dir_fd=here)
                below = os.open(step, _FOLDER, dir_fd=here)
                os.close(here)
                here = below
        except OSError:
            os.close(here)
            raise
        return here


def remove(path: str) -> None:
    """Remove a folder and its contents, including folders that a task made read-only."""

    def unlock(function: object, inner: str, error: object) -> None:
        with suppress(OSError):
            if not os.path.islink(os.path.dirname(inner)):
                os.chmod(os.path.dirname(inner), 0o700)
            if os.path.isdir(inner) and not os.path.islink(inner):
                os.chmod(inner, 0o700)

    shutil.rmtree(path, onerror=unlock)
    shutil.rmtree(path, ignore_errors=True)
