"""Rules of Makeflow and ninja files: a rule makes files from files with one command, and files make the arcs.

A rule has no name of its own. Its task is named by the first file that the rule makes, or by the rule's number if it makes
none. Two rules must not make the same file.

To write a workflow as rules may need more. A task whose name is not its first file carries its name. A task gets an extra
output, its *mark*, if it writes no file, has no command, or has an arc that no file makes; its command starts by touching
the mark. Reading removes the marks, so a workflow is read back unchanged.

>>> from eligo.dag import Dag
>>> flow = Workflow(Dag.from_arcs([("a", "b")]), {"b": Task(name="b", command="ls > b", outputs=("b",))})
>>> [(rule.outputs, rule.inputs, rule.command) for rule in rules_of(flow, "Makeflow")]
[(('a.done',), (), 'touch a.done'), (('b',), ('a.done',), 'ls > b')]

An `Allowance` limits how far variables may expand, so that a small file cannot become a large one.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from eligo.errors import DuplicateTaskError, FormatError, InputError, shorten
from eligo.formats.shared import data_arcs
from eligo.workflow import Origin, Task, Unhonoured, Workflow

#: The maximum depth of variables in the values of variables
DEEPEST = 32


class Allowance:
    """The number of characters that variables may still add."""

    def __init__(self, signs: int) -> None:
        self.remaining = signs

    def spend(self, signs: int, depth: int, line: int | None) -> None:
        """Subtract a value of *signs* characters; raises if no allowance remains, or the value is nested too deeply."""
        self.remaining -= signs + 16
        if self.remaining < 0 or depth > DEEPEST:
            raise FormatError("variables expand to too much, or to themselves", line=line)


_PLAIN = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_.-]{0,100}")
#: Commands that would be misread: those with a keyword first, and empty ones
_MISTAKABLE = re.compile(r"\s*(?:(?:LOCAL|MAKEFLOW|WORKFLOW)(?:\s|$)|$)")


@dataclass(slots=True, kw_only=True)
class Rule:
    """A rule, with the name and the mark that it gives its task, if any."""

    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    command: str
    name: str | None = None
    mark: str | None = None
    line: int | None = None
    #: cores, memory and category, if known
    more: dict[str, Any] = field(default_factory=dict)
    #: variables for its command
    environment: Mapping[str, str] = field(default_factory=dict)
    #: the keys of features that a run does not honour
    unhonoured: list[str] = field(default_factory=list)


def workflow_of(
    rules: Sequence[Rule], sizes: Mapping[str, int], origin: Origin, arcs: Sequence[tuple[int, int]] | None = None
) -> Workflow:
    """The workflow that rules describe, with *arcs* by rule numbers; if None, files make the arcs."""
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
    asked = tuple(_unhonoured_features(rules, names))
    return Workflow(dag, details, None, replace(origin, unhonoured=origin.unhonoured + asked), sizes)


def _unhonoured_features(rules: Sequence[Rule], names: Sequence[str]) -> Iterator[Unhonoured]:
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
    """The rules of a workflow."""
    tasks = [flow.task(name) for name in flow.dag.tasks]
    _check_files(tasks, format)
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


def _check_files(tasks: Sequence[Task], format: str) -> None:
    """Raise if a task reads a file that it writes, or if two tasks write the same file."""
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
