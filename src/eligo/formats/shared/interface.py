"""What the module of a format has, and what it may have besides: `eligo.formats` knows formats by this alone."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypedDict

from eligo.workflow import Workflow

#: What a format may be unable to represent, in words.
WORDS = {
    "name": "the workflow's name",
    "command": "commands",
    "inputs": "the files that tasks read",
    "outputs": "the files that tasks write",
    "seconds": "run times",
    "cores": "cores",
    "memory": "memory",
    "labels": "labels",
    "category": "categories",
    "priority": "priorities",
    "file_sizes": "sizes of files",
}

#: What a text may be given beside itself, in words.
GIVEN = {
    "arguments": "values for its names",
    "environment": "variables of the environment",
    "columns": "titles of columns",
    "trace": "a trace",
}


class Typed(str):
    """A value as a user typed it; a format whose values have types gives it one."""

    __slots__ = ()


class Given(TypedDict, total=False):
    """What a text may need beside itself; a format that has no use for it says so."""

    #: values for the names in a JX text, or for the parameters of our own document
    arguments: Mapping[str, Any] | None
    #: the variables that a Makeflow text does not set itself
    environment: Mapping[str, str] | None
    #: the titles of the parents and of the children in a table
    columns: tuple[str, str] | None
    #: the file of a trace or report that has the tasks of the processes that Nextflow draws
    trace: str | None


class Format(Protocol):
    """What the module of a format has; what comes after `sniff`, only some have."""

    NAME: str
    #: whether a task has a place for a priority
    PRIORITIES: bool
    #: what it cannot represent, out of `WORDS`
    CANNOT: tuple[str, ...]

    def parse(self, text: str, **options: Any) -> Workflow:
        """The workflow that the text describes, with what is given beside it."""

    def generate(self, flow: Workflow, *, old: Mapping[str, str] = ...) -> str:
        """The text that describes the workflow; where it has `fitted`, with the *old* names of tasks that were renamed."""

    def sniff(self, text: str) -> bool:
        """Whether the text looks like this format, at a glance."""

    def fitted(self, name: str) -> str:
        """The name of a task itself where it can be held, else one like it that can."""

    def fitted_file(self, name: str) -> str | None:
        """The name of a file itself where it can be held, else another of the same file; None where there is none."""

    def prioritised(self, text: str, flow: Workflow, numbers: Mapping[str, int]) -> str | None:
        """The text with these priorities and no other change; None where it has no place for them."""

    def write_wrapper(self, flow: Workflow, order: Sequence[str], path: str, first: int | None) -> list[str]:
        """Write priorities to another file that refers to the one that was read; returns messages for the user."""

    def write_in_place(self, flow: Workflow, order: Sequence[str], first: int | None) -> list[str]:
        """Write priorities into the file that was read; returns messages for the user."""
