"""What happens to the output files of a run: a task leaves one, or the run removes it."""

from typing import NamedTuple


class FileChange(NamedTuple):
    """An output as its task left it, or its removal by the run."""

    #: wall-clock time
    at: float
    #: the file as the workflow names it
    name: str
    #: bytes; None if the run removed the file
    size: int | None
