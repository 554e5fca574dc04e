"""What Pegasus says of a job, the same in its YAML and in its old XML.

A job runs a *transformation*, which is the task's category unless it has the name of the job itself; together with the
arguments it is the task's command. `sh -c` and one word is a line for a shell. Workflows inside of a workflow are one
task each: `pegasus-plan FILE` or `condor_submit_dag FILE`.

Run time, cores, memory (in MB of 2**20 bytes) and priority are *profiles*: pegasus runtime, cores and memory, dagman
PRIORITY; where these are missing, condor request_cpus, request_memory and priority. A priority is written as both. Values
that are no plain numbers, such as expressions of HTCondor, are passed over.

Of metadata, two keys are read, which are written where the rest would say something else: `category`, and `without`,
which says that the command or the category is not known.

>>> command_of("align", ["-t", "4"]), command_of("sh", ["-c", "ls | wc"])
(('align', '-t', '4'), 'ls | wc')
>>> profiled([("pegasus", "memory", "2"), ("dagman", "PRIORITY", 7)])
{'memory': 2097152, 'priority': 7}
"""

import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from eligo.errors import FormatError, shorten
from eligo.formats.shared import names
from eligo.formats.shared.document import short
from eligo.workflow import MEGABYTE, Task, Workflow

#: What a use of a file is to the task: read, written, or both.
LINKS = {"input": "i", "output": "o", "inout": "io", "checkpoint": "io", "none": ""}

#: What runs a workflow inside of a workflow, by its kind
RUNNERS = {"pegasusWorkflow": "pegasus-plan", "condorWorkflow": "condor_submit_dag"}

_SIGNS = "-0-9a-zA-Z_"
_ID = re.compile(f"[{_SIGNS}]+")
_NUMBER = re.compile(r"\s*([-+]?\d{1,19}(?:\.\d{0,30})?(?:[eE][-+]?\d{1,3})?)\s*")
_BARE = re.compile(r"[^ \t\r\n]+")
_QUOTING = re.compile(r"[\"'\\]")
_PIECE = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\.)*+)"|\\(.)""", re.DOTALL)
_SHELL_WORD = re.compile(r"""(?:[^ \t\r\n'"\\]|'[^']*'|"(?:[^"\\]|\\.)*+"|\\.)++""", re.DOTALL)
#: The profiles of a priority: DAGMan's, and that of the job itself, which HTCondor and the jobs that stage its data in go by;
#: where a job has no condor priority, Pegasus gives it one by its depth in the workflow.
PRIORITY = (("condor", "priority"), ("dagman", "PRIORITY"))
#: The priority of the first task where nothing else is asked for: the jobs that Pegasus adds have 700 to 1,000, and are not
#: to wait for all others.
FIRST = -1
#: What each profile tells, and whether it is the best place for it
_PLACES = {
    ("pegasus", "runtime"): ("seconds", True),
    ("pegasus", "cores"): ("cores", True),
    ("condor", "request_cpus"): ("cores", False),
    ("pegasus", "memory"): ("memory", True),
    ("condor", "request_memory"): ("memory", False),
    ("dagman", "priority"): ("priority", True),
    ("condor", "priority"): ("priority", False),
}
#: Profiles by which Pegasus finds a site, groups jobs and moves files: nothing that a job does depends on them.
_PLANNING = re.compile(
    r"(?:hints|selector|stat)\.|condor\.(?:accounting_group|priority)|dagman\.(?:category|priority)|pegasus\.(?:label|runtime"
    r"|clusters|job\.|collapse|bundle|group|project|queue|diskspace|data\.|stage|transfer|gridstart|style|exitcode|pmc_)"
)
_UNITS: dict[str, Callable[[float], float]] = {
    "seconds": float,
    "cores": lambda number: number,
    "memory": lambda number: round(number * MEGABYTE),
    "priority": int,
}


Command = str | tuple[str, ...] | None


class Known(NamedTuple):
    """What a job says of the task's command and category."""

    command: Command
    category: str | None

    def corrected(self, metadata: Mapping[str, object]) -> "Known":
        """The same, where the job's metadata do not know better."""
        if not metadata:
            return self
        category, without = metadata.get("category", self.category), str(metadata.get("without", "")).split()
        return Known(
            None if "command" in without else self.command,
            category if isinstance(category, str) and "category" not in without else None,
        )


class PegasusJob(NamedTuple):
    """How a task is written: its kind ("job" or one of RUNNERS), transformation or file, arguments, and metadata."""

    kind: str
    what: str
    arguments: tuple[str, ...]
    metadata: dict[str, str]


def command_of(transformation: str, arguments: Sequence[str]) -> str | tuple[str, ...]:
    """The command of a job that runs a transformation."""
    if transformation == "sh" and len(arguments) == 2 and arguments[0] == "-c":
        return arguments[1]
    return (transformation, *arguments)


def redirected(command: str | tuple[str, ...], streams: Iterable[tuple[str, str | None]]) -> str | tuple[str, ...]:
    """The command with its standard streams from and to files, which takes a shell; each stream with its sign, such as <."""
    used = [f"{sign} {shlex.quote(file)}" for sign, file in streams if file is not None]
    if not used:
        return command
    return " ".join([command if isinstance(command, str) else shlex.join(command), *used])


def job_of(task: Task) -> PegasusJob:
    """How a task is written."""
    words = ("sh", "-c", task.command) if isinstance(task.command, str) else task.command
    if words and len(words) > 1 and task.category in RUNNERS and words[0] == RUNNERS[task.category]:
        return PegasusJob(task.category, words[-1], tuple(words[1:-1]), {})
    what, arguments = (words[0], tuple(words[1:])) if words else (task.category or task.name, ())
    known = Known(command_of(what, arguments), category_of(what, task.name))
    metadata = {}
    if task.category is not None and task.category != known.category:
        metadata["category"] = task.category
    unknown = {"command": not words, "category": task.category is None}
    without = [key for key, missing in unknown.items() if missing and getattr(known, key) is not None]
    if without:
        metadata["without"] = " ".join(without)
    return PegasusJob("job", what, arguments, metadata)


def category_of(transformation: str, name: str) -> str | None:
    """The category of the task of this *name* that runs a transformation."""
    return None if transformation == name else transformation


def profiled(profiles: Iterable[tuple[str, str, object]]) -> dict[str, Any]:
    """The details that profiles tell: each is a namespace, a key and a value."""
    found: dict[str, float] = {}
    for space, key, value in profiles:
        detail, best = _PLACES.get((space.lower(), key.lower()), ("", False))
        number = _number(value) if detail and (best or detail not in found) else None
        if number is not None and (-(2**43) if detail == "priority" else 0) <= number < 2**43:
            found[detail] = _UNITS[detail](number)
    return found


def unhonoured(profiles: Iterable[tuple[str, str, object]]) -> list[str]:
    """The keys of profiles that a run does not honour: the namespace `env`, or a namespace and a key.

    >>> unhonoured([("env", "PATH", "/bin"), ("pegasus", "runtime", 3), ("condor", "request_cpus", "n")])
    ['env', 'condor.request_cpus']
    """
    found = dict[str, None]()
    for space, key, value in profiles:
        name = space.lower(), key.lower()
        is_read = name in _PLACES and _number(value) is not None
        if not is_read and not _PLANNING.match(".".join(name)):
            found["env" if name[0] == "env" else f"{space}.{key}"] = None
    return list(found)


def profiles_of(task: Task) -> dict[str, dict[str, object]]:
    """The profiles that tell the details of a task, by namespace and key. Memory is rounded up to whole MB."""
    pegasus: dict[str, object] = {}
    if task.seconds is not None:
        pegasus["runtime"] = short(task.seconds)
    if task.cores is not None:
        pegasus["cores"] = short(task.cores)
    if task.memory is not None:
        pegasus["memory"] = -(-task.memory // MEGABYTE)
    profiles: dict[str, dict[str, object]] = {}
    if task.priority is not None:
        profiles = {space: {key: task.priority} for space, key in PRIORITY}
    profiles["pegasus"] = pegasus
    return {space: keys for space, keys in profiles.items() if keys}


def advice(flow: Workflow, path: str) -> list[str]:
    """What to tell of the priorities that were written."""
    return [
        "Pegasus keeps them in its plans, for DAGMan and for HTCondor; its own jobs (to stage data and clean up) go first",
        "DAGMan heeds priorities only among jobs that it holds back: set dagman.maxjobs a little above the machines you get",
    ]


def links_of(task: Task) -> dict[str, str]:
    """How a task uses each of its files: input, output, or inout."""
    links = dict.fromkeys(task.inputs, "input")
    for file in task.outputs:
        links[file] = "output" if links.get(file, "output") == "output" else "inout"
    return links


def checked_id(name: str) -> str:
    """The name, if Pegasus takes it for the id of a job."""
    if not _ID.fullmatch(name):
        message = f"Pegasus allows letters, digits and -_ in the id of a job, not {shorten(name)!r}"
        raise FormatError(message).cured_by("names")
    return name


def fitted(name: str) -> str:
    """The name as Pegasus allows it: what else it holds becomes _."""
    return names.fitted(name, _SIGNS)


def title(name: str | None) -> str:
    """The name of a workflow, likewise."""
    return fitted(name) if name else "workflow"


def bytes_of(size: object) -> int | None:
    """A size in bytes, if it is one."""
    number = _number(size)
    return None if number is None or not 0 <= number < 2**63 else round(number)


def split(line: str) -> list[str]:
    """The words of a line as a shell parts them; at white space alone where its quotes are not closed.

    >>> split("-i 'two words' it\\\\'s")
    ['-i', 'two words', "it's"]
    """
    if not _QUOTING.search(line) or _QUOTING.search(_PIECE.sub("", line)):
        return _BARE.findall(line)
    return [_PIECE.sub(_unquoted, word) for word in _SHELL_WORD.findall(line)]


def _unquoted(piece: re.Match[str]) -> str:
    if piece[1] is not None:
        return piece[1]
    return piece[3] if piece[2] is None else re.sub(r'\\(["\\$`])', r"\1", piece[2])


def _number(value: object) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    found = _NUMBER.fullmatch(value) if isinstance(value, str) else None
    if not found:
        return None
    return int(found[1]) if found[1].lstrip("-+").isdecimal() else float(found[1])
