"""How commands are run that a file describes: by the shell of its system, and with what this machine has.

The command lines of Makeflow, ninja, DAGMan and the others are for /bin/sh, as those systems run them. Only the lines of
eligo's own documents, lists of commands, and tasks made in Python are for the shell that `eligo.engines.command_line`
chooses.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from eligo.errors import counted
from eligo.launch import CONDAS, CONTAINER_ENGINES, LAUNCH_KEYS, POSIX, Launch, program_for
from eligo.names import Name
from eligo.workflow import LazyDetails, Task, Unhonoured, Workflow

#: formats whose documents say how commands are run
OWN = ("json", "yaml")
#: formats whose command lines are for the shell that eligo chooses
CHOSEN = (*OWN, "lines")
CONTAINER, SETUP, TIMEOUT = "container", "setup", "timeout"
#: the one launch of all tasks that state nothing, since there may be a million
BY_POSIX_SHELL = Launch(shell=POSIX)

Change = Callable[[Task], Launch | None]


@dataclass(frozen=True, eq=False)
class _Launched(LazyDetails):
    """The details of tasks with another launch, computed on access."""

    details: Mapping[Name, Task]
    change: Change

    def __getitem__(self, name: Name) -> Task:
        task = self.details[name]
        launch = self.change(task)
        return task if launch is task.launch else replace(task, launch=launch)

    def __iter__(self) -> Iterator[Name]:
        return iter(self.details)

    def __len__(self) -> int:
        return len(self.details)

    def __bool__(self) -> bool:
        return bool(self.details)

    def column(self, what: str) -> Sequence[Any] | None:
        """See `LazyDetails`; None for launches, which need the task."""
        return self.details.column(what) if isinstance(self.details, LazyDetails) and what != "launch" else None


def with_own_shell(flow: Workflow) -> Workflow:
    """The workflow; in the format of another system, its command lines run with /bin/sh."""
    if flow.origin is None or flow.origin.format in CHOSEN:
        return flow
    return _changed(flow, _with_posix_shell)


def _changed(flow: Workflow, change: Change) -> Workflow:
    """The workflow with changed launches; tasks that are computed on access are also changed on access."""
    details = _Launched(flow.details, change)
    return replace(flow, details=details if isinstance(flow.details, LazyDetails) else dict(details))


def _with_posix_shell(task: Task) -> Launch | None:
    if not isinstance(task.command, str) or (task.launch is not None and task.launch.shell is not None):
        return task.launch
    return BY_POSIX_SHELL if task.launch is None else replace(task.launch, shell=POSIX)


def launch_keys(flow: Workflow) -> list[str]:
    """The keys by which tasks say how their commands are run, other than by /bin/sh, each with the number of tasks.

    >>> from eligo.dag import Dag
    >>> launch_keys(Workflow(Dag.from_arcs([], "a"), {"a": Task(name="a", launch=Launch(dir="x", shell=POSIX))}))
    ['dir (1 task)']
    """
    launches = [launch for launch in flow.column("launch") if launch is not None]
    bare = (replace(each, shell=None) if each.shell == POSIX else each for each in launches)
    counts = Counter(key for launch in bare for key in launch.document())
    return [f"{key} ({counted(counts[key], 'task')})" for key in LAUNCH_KEYS if counts[key]]


def launch_features(flow: Workflow, served: bool, growing: bool) -> list[Unhonoured]:
    """The features of tasks for which this machine lacks a program. On a server, each client checks for itself.

    *growing*: whether a time limit may differ between attempts.
    """
    lacks = {
        CONTAINER: not served and program_for(CONTAINER_ENGINES) is None,
        SETUP: not served and program_for(CONDAS) is None,
        TIMEOUT: not growing,
    }
    tasks: dict[tuple[str, str], list[Name]] = {}
    for name, launch in zip(flow.dag.tasks, flow.column("launch"), strict=True):
        for key, where in () if launch is None else _demands(launch):
            if lacks[key]:
                tasks.setdefault((key, where), []).append(name)
    return [Unhonoured(key, where, tuple(names)) for (key, where), names in tasks.items()]


def _demands(launch: Launch) -> Iterator[tuple[str, str]]:
    """The features of a launch that not every run supports, each with the reason in words."""
    if launch.container:
        yield CONTAINER, f"none of {', '.join(CONTAINER_ENGINES)} is on the PATH"
    if launch.conda:
        yield SETUP, f"none of {', '.join(CONDAS)} is on the PATH"
    if launch.is_growing:
        yield TIMEOUT, "one time limit for each attempt"


def without(flow: Workflow, keys: Collection[str]) -> Workflow:
    """The workflow without the features that have these keys."""
    if not keys:
        return flow
    return _changed(flow, lambda task: _without(task.launch, keys))


def _without(launch: Launch | None, keys: Collection[str]) -> Launch | None:
    if launch is None:
        return None
    limit = launch.limit(1)
    changes: dict[str, Any] = {CONTAINER: {"container": None}, SETUP: {"conda": None}, TIMEOUT: {"timeout": limit}}
    return replace(launch, **{name: value for key in keys for name, value in changes[key].items()})
