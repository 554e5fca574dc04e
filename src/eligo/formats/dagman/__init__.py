"""HTCondor DAGMan files: read whole, and written back with priorities.

    JOB fetch fetch.sub
    JOB align {
        executable = /usr/bin/align
        arguments = "--fast"
    }
    SPLICE tail tail.dag
    PARENT fetch CHILD align
    PARENT align CHILD tail

All commands are read, in any order. The files of INCLUDE and SPLICE are searched in the folder of the file. SUBDAG EXTERNAL
is one task; CONNECT uses pins. FINAL, PROVISIONER and SERVICE nodes are left out, because they are not part of the order.
Nodes that are DONE, by this file or by the last rescue file beside it, are left out and counted. The command of a task is
the file of its submit description, or the command in an inline description. Scripts and other settings of nodes are listed
as features that a run does not honour: see `eligo.formats.fidelity`.

>>> flow = parse("JOB a a.sub\\nJOB b b.sub NOOP\\nPARENT a CHILD b\\nPRIORITY a 3")
>>> flow.task("a")
Task('a', command='a.sub', priority=3)
>>> print(generate(flow), end="")
JOB a a.sub
JOB b noop.sub NOOP
PARENT a CHILD b
PRIORITY a 3
"""

import re

from eligo.formats.dagman.reader import runnable, workflow_of
from eligo.formats.dagman.writer import advice, fitted, generate, lost, write_in_place, write_wrapper
from eligo.formats.shared.files import Beside
from eligo.workflow import Workflow

__all__ = [
    "CANNOT", "NAME", "PRIORITIES", "TAKES", "advice", "fitted", "generate", "lost", "parse", "runnable", "sniff",
    "write_in_place", "write_wrapper",
]  # fmt: skip

NAME = "dagman"
PRIORITIES = True
CANNOT = ("name", "inputs", "outputs", "seconds", "labels", "file_sizes")
#: Its files name others.
TAKES = ("beside",)

_COMMAND = re.compile(
    r"""^[ \t]*(?:(?:JOB|NODE|FINAL)[ \t]+\S+[ \t]+\S|SUBDAG[ \t]+EXTERNAL[ \t]|SUBMIT[-_]DESCRIPTION[ \t]
    |(?:WEAK[ \t]+)?PARENT[ \t]+\S.*[ \t]CHILD[ \t]|SPLICE[ \t]+\S+[ \t]+\S)""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)
_GLANCE = 2**16


def parse(text: str, beside: Beside | None = None) -> Workflow:
    """The workflow that a DAGMan text describes; without *beside*, it must not name other files."""
    return workflow_of(text, NAME, beside)


def sniff(text: str) -> bool:
    """Whether a line near the top defines a node or a dependency."""
    return _COMMAND.search(text, 0, _GLANCE) is not None
