"""Rules, which Makeflow and ninja files are made of: each makes files out of files with one command, and files make the arcs.

A rule has no name: it is called by the first file that it makes, or by its number where it makes none. Two rules may not make
the same file.

Where a workflow is written, this may not be enough. A task whose name is not its first file says its name; and where files
do not make all its arcs, where it writes none, and where it has no command, it makes one file more, its *mark*, which
the command begins by touching. Reading takes the marks away again, so a workflow comes back as it was.

>>> from eligo.dag import Dag
>>> flow = Workflow(Dag.from_arcs([("a", "b")]), {"b": Task(name="b", command="ls > b", outputs=("b",))})
>>> [(rule.outputs, rule.inputs, rule.command) for rule in rules_of(flow, "Makeflow")]
[(('a.done',), (), 'touch a.done'), (('b',), ('a.done',), 'ls > b')]

How much the variables of a text may stand for, so that no small file becomes a large one.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from eligo.errors import DuplicateTaskError, FormatError, InputError, shorten
from eligo.formats.shared import data_arcs
from eligo.workflow import Origin, Task, Unhonoured, Workflow

#: How deep variables may stand in the values of variables
DEEPEST = 32


class Allowance:
    """How many signs variables may still add."""

    def __init__(self, signs: int) -> None:
        self.remaining = signs

    def spend(self, signs: int, depth: int, line: int | None) -> None:
        """Take the value of a variable, so many signs long."""
        self.remaining -= signs + 16
        if self.remaining < 0 or depth > DEEPEST:
            raise FormatError("variables expand to too much, or to themselves", line=line)


_PLAIN = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_.-]{0,100}")
#: A command that begins so would be taken for something else, and so would an empty one
_MISTAKABLE = re.compile(r"\s*(?:(?:LOCAL|MAKEFLOW|WORKFLOW)(?:\s|$)|$)")


@dataclass(slots=True, kw_only=True)
class Rule:
    """One rule, and what it says of the task beside: `name` and `mark` where they are given."""

    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    command: str
    name: str | None = None
    mark: str | None = None
    line: int | None = None
    #: cores, memory and category, where they are known
    more: dict[str, Any] = field(default_factory=dict)
    #: the keys of what it asks for and a run does not do
    unhonoured: list[str] = field(default_factory=list)


def workflow_of(
    rules: Sequence[Rule], sizes: Mapping[str, int], origin: Origin, arcs: Sequence[tuple[int, int]] | None = None
) -> Workflow:
    """The workflow that rules describe; *arcs*, by number, where they are more than their files make."""
    writer = _writers(rules)
    names = [_name(rule, number) for number, rule in enumerate(rules, 1)]
    seen: set[str] = set()
    for name, rule in zip(names, rules, strict=True):
        if name in seen:
            raise DuplicateTaskError(name).at(rule.line)
        seen.add(name)
    file_arcs = [(writer[file], i) for i, rule in enumerate(rules) for file in rule.inputs if file in writer]
    dag = data_arcs.dag_of(names, data_arcs.columns(file_arcs if arcs is None else arcs))
    marks = {rule.mark for rule in rules if rule.mark is not None}
    details = {}
    for name, rule in zip(names, rules, strict=True):
        task = _task(name, rule, marks)
        if task.details():
            details[name] = task
    asked = tuple(_unhonoured(rules, names))
    return Workflow(dag, details, None, replace(origin, unhonoured=origin.unhonoured + asked), sizes)


def _unhonoured(rules: Sequence[Rule], names: Sequence[str]) -> Iterator[Unhonoured]:
    for number, (name, rule) in enumerate(zip(names, rules, strict=True), 1):
        for key in dict.fromkeys(rule.unhonoured):
            yield Unhonoured(key, f"line {rule.line}" if rule.line else f"rule {number}", (name,))


def _writers(rules: Sequence[Rule]) -> dict[str, int]:
    writer: dict[str, int] = {}
    for i, rule in enumerate(rules):
        for file in rule.outputs:
            if writer.setdefault(file, i) != i:
                other = rules[writer[file]].line
                where = f"line {other}" if other else f"rule {writer[file] + 1}"
                raise FormatError(f"two rules write the file {shorten(file)!r}: this one and {where}", line=rule.line)
    return writer


def _name(rule: Rule, number: int) -> str:
    if rule.name is not None:
        return rule.name
    return rule.outputs[0] if rule.outputs else f"rule {number}"


def _task(name: str, rule: Rule, marks: set[str]) -> Task:
    command: str | None = rule.command
    outputs = tuple(dict.fromkeys(rule.outputs))
    if rule.mark is not None:
        command = None if command == _touch(*outputs) else rule.command.removeprefix(f"{_touch(rule.mark)}; ")
        outputs = tuple(file for file in outputs if file != rule.mark)
    inputs = tuple(file for file in dict.fromkeys(rule.inputs) if file not in marks)
    try:
        return Task(name=name, command=command, inputs=inputs, outputs=outputs, **rule.more)
    except InputError as error:
        raise error.at(rule.line) from None


# Writing


def rules_of(flow: Workflow, format: str) -> list[Rule]:
    """The rules that describe a workflow."""
    tasks = [flow.task(name) for name in flow.dag.tasks]
    _refuse_impossible_files(tasks, format)
    missing = data_arcs.unmade(flow, format)
    tails, heads = flow.dag.tails[missing].tolist(), flow.dag.child[missing].tolist()
    marked = set(tails) | {i for i, task in enumerate(tasks) if _needs_mark(task)}
    used = {file for task in tasks for file in (*task.inputs, *task.outputs)}
    marks = {i: _mark(tasks[i].name, i, used) for i in sorted(marked)}
    rules = [_rule(task, marks.get(i)) for i, task in enumerate(tasks)]
    more: dict[int, list[str]] = {}
    for tail, head in zip(tails, heads, strict=True):
        more.setdefault(head, []).append(marks[tail])
    for i, files in more.items():
        rules[i].inputs += tuple(files)
    return rules


def _refuse_impossible_files(tasks: Sequence[Task], format: str) -> None:
    writer: dict[str, str] = {}
    for task in tasks:
        read = set(task.inputs)
        for file in task.outputs:
            if file in read:
                raise FormatError(
                    f"task {shorten(task.name)!r} reads and writes {shorten(file)!r}, which {format} cannot represent"
                )
            if writer.setdefault(file, task.name) != task.name:
                raise FormatError(
                    f"tasks {shorten(writer[file])!r} and {shorten(task.name)!r} both write {shorten(file)!r},"
                    f" but {format} allows one rule for each file"
                )


def _needs_mark(task: Task) -> bool:
    if not task.outputs or not task.command:
        return True
    return isinstance(task.command, str) and _MISTAKABLE.match(task.command) is not None


def _mark(name: str, number: int, used: set[str]) -> str:
    mark = f"{name}.done" if _PLAIN.fullmatch(name) else f"task-{number + 1}.done"
    while mark in used:
        mark = f"_{mark}"
    used.add(mark)
    return mark


def _rule(task: Task, mark: str | None) -> Rule:
    outputs = task.outputs if mark is None else (*task.outputs, mark)
    command = task.command if isinstance(task.command, str) or not task.command else shlex.join(task.command)
    if mark is not None:
        command = _touch(*outputs) if command is None or command == () else f"{_touch(mark)}; {command}"
    details = {key: value for key in ("cores", "memory", "category") if (value := getattr(task, key)) is not None}
    name = None if outputs[0] == task.name else task.name
    return Rule(outputs=outputs, inputs=task.inputs, command=str(command), name=name, mark=mark, more=details)


def _touch(*files: str) -> str:
    return f"touch {'-- ' if any(file.startswith('-') for file in files) else ''}{shlex.join(files)}"
