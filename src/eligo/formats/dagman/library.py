"""All files that a DAGMan file names, each read once, and how large the workflow becomes by them.

The size is found before anything is put together, so that a few small files that splice one another in masses are refused
at once.
"""

from dataclasses import dataclass
from typing import NamedTuple

from eligo.errors import FormatError, InputError
from eligo.formats.dagman.scripts import Script, Splice, Statement, at, script_of
from eligo.formats.shared.files import Beside

#: How deep files may name one another.
DEEPEST = 100
#: How often files may be included or spliced, all in all.
MOST_FILES = 100_000
#: How many tasks may come in by splices, and how many characters their names may have together, on all levels.
MOST_SPLICED = 4_000_000
MOST_CHARACTERS = 400_000_000


class FileKey(NamedTuple):
    """A file, and the folder from which the names in it count."""

    path: str
    folder: str


@dataclass(slots=True)
class Size:
    """What a file brings with all that it includes and splices."""

    tasks: int = 0
    characters: int = 0
    files: int = 0


class Library:
    """The files by path, and their sizes."""

    def __init__(self, root: Script, beside: Beside | None) -> None:
        self._beside = beside
        self.root = FileKey(root.path or "", "")
        self._scripts = {self.root.path: root}
        self._sizes: dict[FileKey, Size] = {}
        self._open: list[FileKey] = []
        self._keys: dict[tuple[str, str], FileKey] = {}
        self._spliced = 0
        self._characters = 0

    def script(self, key: FileKey) -> Script:
        """What the file says."""
        if key.path not in self._scripts and self._beside is not None:
            self._scripts[key.path] = script_of(self._beside.load(key.path), key.path)
        return self._scripts[key.path]

    def included(self, key: FileKey, statement: Statement) -> FileKey:
        """The file of an INCLUDE in another."""
        return self._key(key, statement.words[0], key.folder, statement.line)

    def spliced(self, key: FileKey, splice: Splice) -> FileKey:
        """The file of a SPLICE in another."""
        folder = f"{key.folder}/{splice.folder}".strip("/") if not splice.folder.startswith("/") else splice.folder
        return self._key(key, splice.file, folder, splice.line)

    def check(self) -> None:
        """Refuse files that name themselves, and more than can be put together."""
        self._size(self.root)

    def _key(self, owner: FileKey, name: str, folder: str, line: int) -> FileKey:
        if (name, folder) in self._keys:
            return self._keys[name, folder]
        try:
            if self._beside is None:
                raise FormatError(
                    f"names the file {name!r}, and text alone has no folder to look in: read it from a file"
                )
            return self._keys.setdefault((name, folder), FileKey(self._beside.place(name, folder), folder))
        except InputError as error:
            raise at(error, self.script(owner).path, line) from None

    def _size(self, key: FileKey) -> Size:
        if key in self._sizes:
            return self._sizes[key]
        self._open.append(key)
        script = self.script(key)
        size = Size(len(script.index), sum(map(len, script.index)))
        for statement in script.statements:
            if isinstance(statement, Statement) and statement.kind == "INCLUDE":
                self._add(size, self.included(key, statement), key, statement.line, None)
        for splice in script.splices:
            self._add(size, self.spliced(key, splice), key, splice.line, splice.name)
        self._open.pop()
        return self._sizes.setdefault(key, size)

    def _add(self, size: Size, inner: FileKey, owner: FileKey, line: int, prefix: str | None) -> None:
        """Count a file that another one includes, or splices under the name *prefix*."""
        path = self.script(owner).path
        try:
            self._check_chain(inner)
            more = self._size(inner)
        except FormatError as error:
            if error.path == inner.path and error.line is None:
                raise FormatError(f"{inner.path} {error.message}", path, line) from None
            raise at(error, path, line) from None
        size.tasks += more.tasks
        size.files += 1 + more.files
        size.characters += more.characters
        if prefix is not None:
            size.characters += more.tasks * (len(prefix) + 1)
            self._spliced += more.tasks
            self._characters += more.characters + more.tasks * (len(prefix) + 1)
        self._check_size(size, path, line)

    def _check_chain(self, inner: FileKey) -> None:
        paths = [key.path for key in self._open]
        if inner.path in paths:
            chain = [*paths[paths.index(inner.path) :], inner.path]
            shown = chain if len(chain) < 10 else [*chain[:5], "...", *chain[-3:]]
            raise FormatError(f"a file that names itself, so the workflow has no end: {' -> '.join(shown)}")
        if len(paths) >= DEEPEST:
            raise FormatError(f"files name one another more than {DEEPEST} deep")

    def _check_size(self, size: Size, path: str | None, line: int) -> None:
        if size.files > MOST_FILES:
            raise FormatError(
                f"files are included or spliced {size.files:,} times; at most {MOST_FILES:,} are", path, line
            )
        if self._spliced > MOST_SPLICED:
            message = f"splices bring in {self._spliced:,} tasks or more; at most {MOST_SPLICED:,} are read"
            raise FormatError(message, path, line)
        if self._characters > MOST_CHARACTERS:
            message = f"the names of spliced tasks have more than {MOST_CHARACTERS:,} characters together"
            raise FormatError(message, path, line)
