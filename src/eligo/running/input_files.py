"""The input files of tasks: which of them changed since the last run, so that their readers run again."""

import json
import os
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from eligo.errors import InputError

#: the file in the folder of a run
RECORD = "inputs.json"
#: files up to this size are compared by content if only their time differs, as after a copy or a checkout
LARGEST_HASHED = 4 * 2**20


class InputFile(NamedTuple):
    """The state of an input file."""

    size: int
    #: modification time in nanoseconds
    time: int
    #: a hash of the content; None if the file is too large, or is written by a task
    digest: str | None

    def differs(self, other: "InputFile") -> bool:
        """Whether the content differs; without hashes, another time counts as another content."""
        if self.size != other.size:
            return True
        if self.digest is not None and other.digest is not None:
            return self.digest != other.digest
        return self.time != other.time


def look_up(
    paths: Iterable[str], folder: str, before: Mapping[str, InputFile], largest: int = LARGEST_HASHED
) -> dict[str, InputFile]:
    """The present states of those paths that are regular files, with a hash if they have at most *largest* bytes.

    A file of unchanged size and time keeps its hash.
    """
    states: dict[str, InputFile] = {}
    for path in dict.fromkeys(paths):
        state = _state(os.path.join(folder, path), before.get(path), largest)
        if state is not None:
            states[path] = state
    return states


def _state(place: str, before: InputFile | None, largest: int) -> InputFile | None:
    if not os.path.isfile(place):  # the time of a folder changes with what is written into it
        return None
    try:
        status = os.stat(place)
        if before is not None and (before.size, before.time) == (status.st_size, status.st_mtime_ns):
            return before
        content = Path(place).read_bytes() if status.st_size <= largest else None
    except OSError:
        return None
    digest = None if content is None else blake2b(content, digest_size=16).hexdigest()
    return InputFile(status.st_size, status.st_mtime_ns, digest)


def load(folder: Path) -> dict[str, InputFile]:
    """The states that a run recorded; empty if there are none."""
    path = folder / RECORD
    if not path.exists():
        return {}
    try:
        rows = json.loads(path.read_text("utf-8"))
        return {str(name): InputFile(int(size), int(time), digest) for name, (size, time, digest) in rows.items()}
    except (OSError, ValueError, TypeError, AttributeError):
        raise InputError(f"{path}: damaged (delete it: then changed inputs are noticed from the next run on)") from None


def save(folder: Path, states: Mapping[str, InputFile]) -> None:
    """Record states, all of them or none."""
    fresh = folder / f"{RECORD}.part"
    try:
        fresh.write_text(json.dumps(states, separators=(",", ":")), "utf-8")
        os.replace(fresh, folder / RECORD)
    except OSError as error:
        raise InputError(f"{folder / RECORD}: cannot be written: {error.strerror}") from None
