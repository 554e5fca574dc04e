"""What the module of a format has, and what it may have besides: `eligo.formats` knows formats by this alone."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypedDict

from eligo.workflow import Workflow

#: What a text may be given beside itself, in words.
GIVEN = {
    "arguments": "values for its names",
    "environment": "variables of the environment",
    "columns": "titles of columns",
    "trace": "a trace",
}


class Format(Protocol):
    """What the module of a format has."""

    NAME: str
    #: whether a task has a place for a priority
    PRIORITIES: bool
    #: what it cannot represent, out of `WORDS`
    CANNOT: tuple[str, ...]

    def parse(self, text: str) -> Workflow:
        """The workflow that the text describes."""

    def generate(self, flow: Workflow) -> str:
        """The text that describes the workflow."""

    def sniff(self, text: str) -> bool:
        """Whether the text looks like this format, at a glance."""


class Given(TypedDict, total=False):
    """What a text may need beside itself; a format that has no use for it says so."""

    #: values for the names in a JX text
    arguments: Mapping[str, Any] | None
    #: the variables that a Makeflow text does not set itself
    environment: Mapping[str, str] | None
    #: the titles of the parents and of the children in a table
    columns: tuple[str, str] | None
    #: the file of a trace or report that has the tasks of the processes that Nextflow draws
    trace: str | None


class Renaming(Protocol):
    """A format that cannot hold every name of a task."""

    def fitted(self, name: str) -> str:
        """The name itself where it can be held, else one like it that can."""

    def generate(self, flow: Workflow, old: Mapping[str, str]) -> str:
        """The text that describes the workflow, with the *old* names of tasks that were renamed where there is room."""


class FileRenaming(Protocol):
    """A format that cannot hold every name of a file."""

    def fitted_file(self, name: str) -> str | None:
        """The name itself where it can be held, else another of the same file; None where there is none."""


class Taking(Protocol):
    """A format whose texts need more than themselves."""

    NAME: str
    TAKES: tuple[str, ...]

    def parse(self, text: str, **given: Any) -> Workflow:
        """The workflow that the text describes with what is given beside it."""


class Editing(Protocol):
    """A format whose files can be given priorities without any other change."""

    def prioritised(self, text: str, flow: Workflow, numbers: Mapping[str, int]) -> str | None:
        """The text with these priorities; None where it has no place for them."""


class Prioritising(Protocol):
    """A format that has a way to add priorities to a file that somebody has."""

    def write_wrapper(self, flow: Workflow, order: Sequence[str], path: str, first: int | None) -> list[str]:
        """Write priorities to another file, which refers to the one that was read; what to tell the user."""

    def write_in_place(self, flow: Workflow, order: Sequence[str], first: int | None) -> list[str]:
        """Write priorities into the file that was read; what to tell the user."""
