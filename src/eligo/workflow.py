"""The workflow: a dag, the details of its tasks, and its source."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from eligo.dag import Dag
from eligo.errors import InputError, UnknownTaskError, shorten
from eligo.launch import Launch
from eligo.names import Name, check_label

MEGABYTE = 2**20  # as engines count memory
#: when commands or addresses of a workflow's hooks are called
HOOKS = ("on_start", "on_success", "on_failure", "on_end")
NOTHING = ":"  # the shell's null command: a task without work that only keeps the order
FUNCTION = "python function"  # the first word of a command that stands for a Python function


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The details of one task; None or empty if not known.

    >>> Task(name="align", command="bwa mem ref.fa reads.fq", seconds=120.0, cores=4)
    Task('align', command='bwa mem ref.fa reads.fq', seconds=120.0, cores=4)
    """

    #: the name in the dag
    name: Name
    #: a shell command line, or the words of one command
    command: str | tuple[str, ...] | None = None
    #: names of the files it reads
    inputs: tuple[str, ...] = ()
    #: names of the files it writes
    outputs: tuple[str, ...] = ()
    #: those of them that a run may remove once every task that reads them is done
    temporary: tuple[str, ...] = ()
    #: run time in seconds
    seconds: float | None = None
    #: requested cores
    cores: float | None = None
    #: requested memory in bytes
    memory: int | None = None
    #: requested memory in bytes after each failure; after further ones, the last
    more_memory: tuple[int, ...] = ()
    #: amounts of other resources by name, for example ("gpus", 1)
    resources: tuple[tuple[str, float], ...] = ()
    #: labels that the worker must have, for example "gpu"
    labels: tuple[str, ...] = ()
    #: the kind of task, for example the program it runs
    category: str | None = None
    #: among ready tasks, larger numbers go first
    priority: int | None = None
    #: how its command is run: environment, folder, shell, time limit, retries, container
    launch: Launch | None = None

    def __post_init__(self) -> None:
        for what, amount in (("seconds", self.seconds), ("cores", self.cores), ("memory", self.memory)):
            if amount is not None and not 0 <= amount < float("inf"):
                raise InputError(f"task {shorten(self.name)!r}: {what} must be non-negative and finite, got {amount}")
        for what, amount in self.resources:
            check_label(what, f"task {shorten(self.name)!r}: ")
            if not 0 < amount < float("inf"):
                raise InputError(f"task {shorten(self.name)!r}: {what} must be positive and finite, got {amount}")
        for label in self.labels:
            check_label(label, f"task {shorten(self.name)!r}: ")

    def __repr__(self) -> str:
        details = "".join(f", {key}={value!r}" for key, value in self.details().items())
        return f"Task({self.name!r}{details})"

    def details(self) -> dict[str, Any]:
        """The known details without the name."""
        values = ((name, getattr(self, name)) for name in DETAILS)
        return {name: value for name, value in values if value not in (None, ())}


#: the names of all details of a task except its name
DETAILS = tuple(field.name for field in fields(Task)[1:])


class Timed(NamedTuple):
    """A run time, measured or averaged, of a task name, a kind, or both."""

    task: Name | None
    kind: str | None
    seconds: float


class Measured(NamedTuple):
    """The size of a file that a task wrote in an earlier run."""

    file: str
    #: the kind of the task
    kind: str
    #: bytes
    size: int


class Unhonoured(NamedTuple):
    """A feature that a file uses and a run does not support; see `eligo.formats.fidelity`."""

    #: the name with which it is ignored, for example "POST" or "environment"
    key: str
    #: the file and the line
    where: str
    #: the tasks affected; empty if it affects the whole workflow
    tasks: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The source of a workflow: its file, format and remarks."""

    #: the format's name, such as "json" or "wfcommons"
    format: str
    #: the file, or None for text that was not in a file
    path: str | None = None
    #: the version of the format, if the file states it
    version: str | None = None
    #: the names of tasks that the file marks as executed, which are left out of the workflow
    done: tuple[str, ...] = ()
    #: the other files that were read with this one
    files: tuple[str, ...] = ()
    #: the engine that wrote it, for example "snakemake", if recognized
    engine: str | None = None
    #: the number of join nodes that the engine adds between tasks
    joins: int = 0
    #: the encoding of the file
    encoding: str = "utf-8"
    #: the text, if it was not in a file and can be written back
    text: str | None = None
    #: the program that drew its arcs from child to parent, if known
    backward: str | None = None
    #: whether its arcs were reversed on reading
    reversed: bool = False
    #: sentences for the user about the file
    remarks: tuple[str, ...] = ()
    #: features that a run does not support
    unhonoured: tuple[Unhonoured, ...] = ()
    #: data for the format's own `runnable`, apart from the tasks
    script: object = None


class LazyDetails(Mapping[Name, Task]):
    """Details that are computed on access, each of a task of the dag under its name; they are not checked."""

    def column(self, what: str) -> Sequence[Any] | None:
        """One detail of every task, by number; None if it must be read task by task."""
        return None


@dataclass(frozen=True, slots=True)
class Workflow:
    """A dag with the details of its tasks. Tasks without details need no entry in `details`.

    >>> flow = Workflow(Dag.from_arcs([("a", "b")]), {"a": Task(name="a", seconds=2.0)}, name="tiny")
    >>> flow.task("a").seconds, flow.task("b").seconds
    (2.0, None)
    """

    dag: Dag
    details: Mapping[Name, Task] = field(default_factory=dict)
    name: str | None = None
    origin: Origin | None = None
    #: the sizes in bytes of the files that tasks read and write, where known
    file_sizes: Mapping[str, int] = field(default_factory=dict)
    #: run times of tasks in earlier runs of this or a similar workflow; see `eligo.estimates`
    history: tuple["Timed", ...] = ()
    #: sizes of files with other names in earlier runs, for the means of kinds; see `eligo.estimates.with_sizes`
    size_history: tuple["Measured", ...] = ()
    #: commands, or addresses of webhooks, by the name of the moment; see `HOOKS`
    hooks: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.details, LazyDetails):
            for name, task in self.details.items():
                if name not in self.dag:
                    raise UnknownTaskError(name)
                if task.name is not name and task.name != name:
                    raise InputError(f"the details given for task {name!r} have another name: {task.name!r}")
            object.__setattr__(self, "details", MappingProxyType(dict(self.details)))
        object.__setattr__(self, "file_sizes", MappingProxyType(dict(self.file_sizes)))

    def __len__(self) -> int:
        return len(self.dag)

    def task(self, name: Name) -> Task:
        """The details of a task."""
        if name not in self.dag:
            raise UnknownTaskError(name)
        return self.details.get(name) or Task(name=name)

    def column(self, what: str) -> Sequence[Any]:
        """One detail of every task, by number.

        >>> Workflow(Dag.from_arcs([("a", "b")]), {"a": Task(name="a", seconds=2.0)}).column("seconds")
        [2.0, None]
        """
        values = self.details.column(what) if isinstance(self.details, LazyDetails) else None
        if values is None or len(values) != len(self.dag):  # the dag has grown, or the details have since
            get, nothing = self.details.get, Task(name="")  # one for all tasks without details, of which there are many
            return [getattr(get(name) or nothing, what) for name in self.dag.tasks]
        return values

    def grown(self, dag: Dag) -> "Workflow":
        """The workflow with a grown dag; new tasks have no details."""
        return self if dag is self.dag else replace(self, dag=dag)

    def labelled(self) -> "Workflow":
        """The workflow with every task named by its label, as in files and pictures."""
        dag = self.dag.labelled()
        if dag is self.dag:
            return self
        label = dict(zip(self.dag.tasks, dag.tasks, strict=True))
        return replace(self, dag=dag, details={label[k]: replace(t, name=label[k]) for k, t in self.details.items()})


def with_priorities(flow: Workflow, order: Sequence[Name], first: int | None = None) -> Workflow:
    """The workflow with a priority for every task, so that an engine that supports them follows *order*: n, n - 1, ..., 1.
    >>> flow = Workflow(Dag.from_arcs([("a", "b")]))
    >>> with_priorities(flow, ["a", "b"]).task("a").priority
    2
    """
    numbers = priority_numbers(order, first)
    return replace(flow, details={name: replace(flow.task(name), priority=n) for name, n in numbers.items()})


def priority_numbers(order: Sequence[Name], first: int | None = None) -> dict[Name, int]:
    """The priority of every task of an order, the larger the sooner: n, n - 1, ..., 1, or down from *first*."""
    top = len(order) if first is None else first
    return {name: top - i for i, name in enumerate(order)}


def in_priority_order(flow: Workflow, order: Sequence[Name]) -> list[Name]:
    """The order with tasks of larger priority first; no priority counts as 0.

    >>> flow = Workflow(Dag.from_arcs([], "ab"), {"b": Task(name="b", priority=1)})
    >>> in_priority_order(flow, "ab")
    ['b', 'a']
    """
    wishes = {task.name: task.priority for task in flow.details.values() if task.priority}
    return sorted(order, key=lambda name: -wishes.get(name, 0))


def dag_of(flow: Dag | Workflow) -> Dag:
    """The dag itself, or that of the workflow: used by functions of the theory, which accept either."""
    return flow if isinstance(flow, Dag) else flow.dag
