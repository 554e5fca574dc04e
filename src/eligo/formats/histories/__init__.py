"""How long tasks took in earlier runs, from the files that engines leave behind: one module a format, the same few names.

| format      | what it is                                                    |
|-------------|---------------------------------------------------------------|
| `nextflow`  | Nextflow's trace, `nextflow run ... -with-trace`              |
| `snakemake` | what the `benchmark:` of Snakemake's rules writes             |
| `htcondor`  | the log of a DAGMan's jobs, `FILE.dag.nodes.log`              |
| `ninja`     | `.ninja_log`, versions 5 to 7                                 |
| `eligo`     | the folder of a run of eligo's own, FILE.run                  |
| `table`     | a table with a column of seconds, and one of tasks or kinds   |

A run is a folder, which `runs` reads. The module of a text has `NAME`, `sniff(text)`: whether a text looks like it, and
`parse(text, path)`: what it says. Beside these every workflow with run times is the history of others;
`eligo.formats.read_history` reads them all, and folders of them.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import Protocol, cast

from eligo.formats.histories.measures import Parsed
from eligo.workflow import Timed

#: The modules, in the order in which they look at a text.
MODULES = ("nextflow", "snakemake", "htcondor", "ninja", "table")


@dataclass(frozen=True)
class History:
    """Run times of earlier runs, for `eligo.with_history`."""

    records: tuple[Timed, ...]
    #: the format's name, or that of each that the files of a folder have
    format: str
    #: the file or folder; "-" is standard input
    path: str
    #: what whoever reads it should be told, a sentence each
    remarks: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"History({self.path!r}, {self.format!r}, {len(self.records):,} records)"


class HistoryFormat(Protocol):
    """What the module of a format has."""

    NAME: str

    def sniff(self, text: str) -> bool:
        """Whether the text looks like this format, at a glance; its beginning is enough."""

    def parse(self, text: str, path: str) -> Parsed:
        """What the text, in a file of this name, says."""


def module(format: str) -> HistoryFormat:
    """The module of a format."""
    return cast(HistoryFormat, import_module(f"{__name__}.{format}"))


def detect(text: str) -> str | None:
    """The format of a history, or None if the text is not a history.

    >>> detect("# ninja log v6\\n"), detect("task,seconds\\na,1"), detect("parent,child")
    ('ninja', 'table', None)
    """
    return next((format for format in MODULES if module(format).sniff(text)), None)
