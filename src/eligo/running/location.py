"""The location of a run's folder, before and now, and of the paths it stores: folders are copied and moved."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from eligo.errors import InputError
from eligo.stores import read_facts

STATE = "run.db"
#: the facts that are paths
PATHS = ("file", "folder", "directory")


class Location:
    """The location of a run's folder, compared with the one for which its facts were written."""

    def __init__(self, folder: str | Path, facts: Mapping[str, str]) -> None:
        self.now = os.path.realpath(folder)
        self._facts = facts
        self._before = facts.get("place") or _guess(self.now, facts)

    @property
    def is_copy(self) -> bool:
        """Whether the folder was copied: it has moved, and the run also exists in the old place.

        Device and inode do not decide: if a folder is moved away and copied back, one of the two must get a new identity too.
        """
        before = self._before
        if not before or not os.path.exists(os.path.join(before, STATE)) or os.path.samefile(before, self.now):
            return False
        with suppress(InputError):
            return read_facts(os.path.join(before, STATE)).get("mark") == self._facts.get("mark")
        return True

    def find(self, name: str) -> str | None:
        """The present location of a stored path: relative to this folder, or unchanged; None if neither exists."""
        return next((path for path in self._candidates(name) if os.path.exists(path)), None)

    def beside(self) -> str | None:
        """The folder of the workflow's file; None if it is gone or ambiguous."""
        file = self.find("file")
        if file is not None and self._facts.get("folder") == os.path.dirname(self._facts["file"]):
            return os.path.dirname(file)
        folders = [path for path in self._candidates("folder") if os.path.isdir(path)]
        return folders[0] if len(folders) == 1 or (folders and file is not None) else None

    def facts(self) -> dict[str, str]:
        """The facts to store about the folder and its paths."""
        moved = {name: path for name in PATHS if (path := self.find(name)) is not None}
        return {**moved, "place": self.now}

    def _candidates(self, name: str) -> list[str]:
        path = self._facts.get(name)
        if not path:
            return []
        relocated = (
            os.path.normpath(os.path.join(self.now, os.path.relpath(path, self._before))) if self._before else path
        )
        return list(dict.fromkeys((relocated, path)))


def _guess(now: str, facts: Mapping[str, str]) -> str:
    """The former location of an older run's folder, for which only the workflow's file is known: beside that."""
    folder = facts.get("folder")
    return os.path.join(folder, os.path.basename(now)) if folder else ""
