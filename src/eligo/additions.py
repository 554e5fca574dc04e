"""Additions: tasks that are added to a workflow during its execution.

An addition is a document in JSON or YAML with the keys of a workflow (see `eligo.formats.shared.document`). Its tasks may
list existing tasks in `after`, and they come after the existing tasks that write the files they read. Every new task must
have a command. An addition is accepted as a whole or not at all.

>>> from eligo.dag import Dag
>>> live = LiveWorkflow(Workflow(Dag.from_arcs([("a", "b")])), Execution({"a": [], "b": ["a"]}))
>>> live.add(read_addition('{"tasks": [{"name": "c", "after": ["a"], "run": "make c"}]}'))
('c',)
>>> live.flow.task("c").command, live.flow.dag.parents("c")
('make c', ('a',))
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, cast

from eligo.errors import InputError, UnknownTaskError, shorten
from eligo.execution import Execution
from eligo.formats.shared import json_text, yaml_text
from eligo.formats.shared.data_arcs import plain_path
from eligo.formats.shared.document import AFTER, misfits_in, row_of, workflow_of
from eligo.formats.shared.files import Beside
from eligo.formats.shared.templates import expanded, may_use_templates
from eligo.names import Name
from eligo.workflow import LazyDetails, Task, Workflow

#: the largest addition that is read, in bytes
LARGEST = 16 * 2**20


@dataclass(frozen=True)
class NewTasks:
    """Tasks to add: their own workflow, and which of them come after tasks outside it."""

    flow: Workflow
    #: pairs of a task outside and a new task that depends on it
    after: tuple[tuple[str, str], ...]
    #: whether files imply arcs
    linked: bool

    def behind(self, task: Name) -> "NewTasks":
        """The same tasks, of which those that depend on no others come after the task that adds them."""
        following = {child for _, child in self.after}
        dag = self.flow.dag
        first = [str(name) for v, name in enumerate(dag.tasks) if not dag.indegree[v] and name not in following]
        return replace(self, after=(*self.after, *((str(task), child) for child in first)))

    def make_ready(self) -> None:
        """Compute in advance what `LiveWorkflow.add` needs, since the thread that adds them must be quick."""
        _ = self.tasks, self.rows

    @cached_property
    def tasks(self) -> Mapping[Name, Task]:
        """The new tasks by name."""
        return {name: self.flow.task(name) for name in self.flow.dag.tasks}

    @cached_property
    def rows(self) -> Sequence[Mapping[str, object]]:
        """Each of them as a row of a document."""
        return [row_of(task, str(name)) for name, task in self.tasks.items()]


def read_addition(content: str | bytes, beside: Beside | None = None) -> NewTasks:
    """The new tasks described by a JSON or YAML text; refused if it is malformed, or a task has no command.

    Patterns and tables in its `foreach` are looked up *beside* it, if that is given.
    """
    text, is_json, document = _loaded(content, beside)
    inner, after = _split_off_parents(document)
    flow = workflow_of(inner, text, "json" if is_json else "yaml")
    if flow.hooks:
        raise InputError('new tasks have no "hooks" of their own: leave them out')
    for name in flow.dag.tasks:
        if not flow.task(name).command:
            raise InputError(f"new task {shorten(name)!r} has no command: give it `run`")
    return NewTasks(flow, after, document.get("arcs_from") != AFTER)


def without_templates(text: str, beside: Beside) -> str:
    """The text of an addition for a reader that has no access to the files *beside* it."""
    document = _loaded(text, beside)[2]
    return json_text.dump(document, levels=2) if may_use_templates(text) else text


def _loaded(content: str | bytes, beside: Beside | None) -> tuple[str, bool, Mapping[str, Any]]:
    """The text of an addition, whether it is JSON, and its document without templates."""
    if len(content) > LARGEST:
        raise InputError(f"an addition must be at most {LARGEST >> 20} MiB")
    try:
        text = content if isinstance(content, str) else content.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"an addition must be UTF-8 text: {error}") from None
    is_json = text.lstrip()[:1] in {"{", "["}
    document = json_text.load(text) if is_json else yaml_text.load(text)
    if not isinstance(document, dict) or not isinstance(document.get("tasks"), list):
        raise InputError('an addition must have the key "tasks", with a list of tasks')
    with misfits_in(text):
        return text, is_json, cast(dict[str, Any], expanded(document, beside))


def _split_off_parents(document: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[tuple[str, str], ...]]:
    """The document without parents outside it, and those parents, each with its child."""
    rows = document["tasks"]
    plain = [row for row in rows if isinstance(row, dict) and isinstance(row.get("after"), list)]
    names = {row["name"] for row in rows if isinstance(row, dict) and isinstance(row.get("name"), str)}
    outside = [
        (parent, row.get("name"))
        for row in plain
        for parent in row["after"]
        if isinstance(parent, str) and parent not in names
    ]
    parents = {parent for parent, _ in outside}
    inside = [
        {**row, "after": [parent for parent in row["after"] if not isinstance(parent, str) or parent not in parents]}
        if isinstance(row, dict) and isinstance(row.get("after"), list)
        else row
        for row in rows
    ]
    return {**document, "tasks": inside}, tuple((parent, child) for parent, child in outside if isinstance(child, str))


class LiveWorkflow:
    """A workflow, its execution, and the details of added tasks.

    The original workflow has the details of added tasks too, so that only its dag has to grow.
    """

    def __init__(self, flow: Workflow, execution: Execution) -> None:
        self.execution = execution
        self._details = _Details(flow.details)
        self.begun = replace(flow, details=self._details)
        for added in execution.additions:
            self._details.learn(tasks_in(added.details))

    @property
    def flow(self) -> Workflow:
        """The workflow with all added tasks."""
        return self.begun.grown(self.execution.dag)

    @property
    def is_ready(self) -> bool:
        """Whether everything that `add` needs about the existing tasks is computed."""
        return {"_names", "_files"} <= vars(self).keys()

    def make_ready(self) -> None:
        """Compute what `add` needs about the existing tasks; nothing may be added meanwhile."""
        _ = self._names, self._files

    def add(self, new: NewTasks) -> tuple[str, ...]:
        """Add tasks; returns the names of the new ones. A task that was added before in exactly this form is skipped."""
        tasks = {name: task for name, task in new.tasks.items() if self._details.added.get(name) != task}
        if not tasks:
            return ()
        for name in tasks:
            if name in self.execution.graph or name in self._names:
                raise InputError(f"task {shorten(name)!r} already exists, and is another one: choose another name")
        arcs = [*new.flow.dag.arcs(), *self._outer_arcs(new)]
        if len(tasks) < len(new.tasks):  # tasks that are there keep the parents that they have
            arcs = [(u, v) for u, v in arcs if v in tasks or v not in new.tasks]
        rows = [row for row in new.rows if row["name"] in tasks]
        self.execution.grow([name for name in new.flow.dag.tasks if name in tasks], arcs, rows)
        self._details.learn(tasks)
        for name, task in tasks.items():
            _note_files(self._files, name, task.outputs, task.inputs)
        return tuple(tasks)

    def most_arcs(self, new: NewTasks) -> int:
        """How many dependencies new tasks may bring: every file that they read may be one, and every reader of theirs."""
        arcs = new.flow.dag.arc_count + len(new.after)
        for task in new.tasks.values() if new.linked else ():
            arcs += len(task.inputs) + sum(len(self._readers.get(plain_path(file), ())) for file in task.outputs)
        return arcs

    def writer(self, file: str) -> Name | None:
        """The task that writes a file, or None."""
        return self._writers.get(plain_path(file))

    def _outer_arcs(self, new: NewTasks) -> Iterator[tuple[Name, Name]]:
        """The arcs between new and existing tasks."""
        for parent, child in new.after:
            yield self._existing(parent, child), child
        for name, task in new.tasks.items() if new.linked else ():
            self._check_free(task)
            yield from ((writer, name) for writer in map(self.writer, task.inputs) if writer is not None)
            yield from ((name, reader) for file in task.outputs for reader in self._readers.get(plain_path(file), ()))

    def _existing(self, parent: str, child: str) -> Name:
        try:
            return self.execution.graph.named([self.execution.graph.number(self._names.get(parent, parent))])[0]
        except UnknownTaskError:
            raise InputError(
                f"new task {shorten(child)!r} comes after {shorten(parent)!r}, which does not exist"
            ) from None

    def _check_free(self, task: Task) -> None:
        """Refuse a new task that writes the output of another task."""
        for file in task.outputs:
            if (writer := self.writer(file)) not in {None, task.name}:
                both = f"tasks {shorten(writer)!r} and {shorten(task.name)!r} both write {shorten(file)!r}"
                raise InputError(f"{both}: list it in the outputs of one of them")

    @cached_property
    def _names(self) -> Mapping[str, Name]:
        """The names of tasks by label, for tasks whose label differs from the name."""
        dag = self.execution.begun
        return {label: name for label, name in zip(dag.labels, dag.tasks, strict=True) if label != name}

    @cached_property
    def _files(self) -> tuple[dict[str, Name], dict[str, list[Name]]]:
        """The writer of each file, and its readers."""
        files, flow = (dict[str, Name](), dict[str, list[Name]]()), self.flow
        for name, outputs, inputs in zip(flow.dag.tasks, flow.column("outputs"), flow.column("inputs"), strict=True):
            _note_files(files, name, outputs or (), inputs or ())
        return files

    @property
    def _writers(self) -> dict[str, Name]:
        return self._files[0]

    @property
    def _readers(self) -> dict[str, list[Name]]:
        return self._files[1]


def _note_files(
    files: tuple[dict[str, Name], dict[str, list[Name]]], name: Name, outputs: Iterable[str], inputs: Iterable[str]
) -> None:
    files[0].update((plain_path(file), name) for file in outputs)
    for file in inputs:
        files[1].setdefault(plain_path(file), []).append(name)


class _Details(LazyDetails):
    """The details of a workflow's original and added tasks."""

    def __init__(self, details: Mapping[Name, Task]) -> None:
        self._begun = details
        self.added: dict[Name, Task] = {}

    def learn(self, tasks: Mapping[str, Task]) -> None:
        """Add the details of new tasks."""
        self.added.update(tasks)

    def __getitem__(self, name: Name) -> Task:
        return self.added[name] if name in self.added else self._begun[name]

    def __iter__(self) -> Iterator[Name]:
        return chain(self._begun, self.added)

    def __len__(self) -> int:
        return len(self._begun) + len(self.added)

    def __bool__(self) -> bool:
        return bool(self.added or self._begun)  # without counting them

    def column(self, what: str) -> Sequence[Any] | None:
        """See `LazyDetails`."""
        values = self._begun.column(what) if isinstance(self._begun, LazyDetails) else None
        return None if values is None else [*values, *(getattr(task, what) for task in self.added.values())]


def tasks_in(rows: Sequence[Mapping[str, object]]) -> dict[str, Task]:
    """The tasks that rows of a document describe.

    >>> tasks_in([{"name": "a", "run": "make a"}])
    {'a': Task('a', command='make a')}
    """
    flow = workflow_of({"arcs_from": AFTER, "tasks": list(rows)}, "", "json")
    return {str(name): flow.task(name) for name in flow.dag.tasks}
