"""Makeflow's workflows in JSON, or in JX, which is JSON with comments and expressions.

    {"categories": {"heavy": {"resources": {"cores": 4, "memory": 1000}}},
     "rules": [{"command": "./sim < in > out", "inputs": ["sim", "in"], "outputs": ["out"], "category": "heavy"},
               {"command": "plot o", "inputs": [{"dag_name": "out", "task_name": "o"}], "outputs": ["out.png"]}]}

A task is named by the first file that its rule makes; `formats.shared.rules` also describes additions to written files, here
the keys "task" and "mark" of a rule, which Makeflow ignores. A file may be an object: `dag_name` is its name, and `size` its
size in bytes. Memory is in MB of 2**20 bytes. A rule with a `workflow` runs `makeflow` on that file. Expressions are
evaluated with the names in "define" and the *arguments*, which take precedence: see `eligo.formats.jx.evaluation`. Other
keys, such as `environment`, are ignored, and remarks list them.

In the output, a command of words becomes a command line for a shell. Cores and memory are rounded up. The workflow's name,
run times, priorities and sizes of files that no task uses are left out.

>>> flow = parse('{"rules": [{"command": "ls > a", "outputs": ["a"]}, # first'
...              '\\n {"command": "wc a > b", "inputs": ["a"], "outputs": ["b"]}]}')
>>> list(flow.dag.arcs()), flow.task("b").command
([('a', 'b')], 'wc a > b')
>>> parse('{"rules": [{"command": "ls > " + i, "outputs": ["" + i]} for i in range(N)]}', {"N": 2}).dag.tasks
('0', '1')
"""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import ceil
from typing import Any, cast

from eligo.errors import FormatError, shorten
from eligo.formats.detection import Typed
from eligo.formats.jx import evaluation as evaluating
from eligo.formats.shared import json_text
from eligo.formats.shared.document import MisfitError, array, kind, mapping, size, string
from eligo.formats.shared.names import unread
from eligo.formats.shared.rules import Rule, rules_of, workflow_of
from eligo.launch import Launch
from eligo.workflow import MEGABYTE, Origin, Unhonoured, Workflow

NAME = "jx"
TAKES = ("arguments",)
PRIORITIES = False
CANNOT = ("name", "seconds", "labels", "priority")

#: The keys that change how Makeflow runs a task.
UNHONOURED = ("allocation", "gpus", "local_job", "mpi-processes")

#: The maximum length of a string that Makeflow reads, in bytes
LONGEST = 65_000

Row = Mapping[str, Any]

WALL_TIME = "wall-time"  # the limit of a command in seconds, one of its resources
#: the keys that are read: of the document, of rules, of categories, and of resources
_TOP = frozenset(("rules", "categories", "default_category", "define", "environment"))
_RULE = frozenset(("command", "workflow", "inputs", "outputs", "category", "resources", "task", "mark", "environment"))
_CATEGORY, _RESOURCES = frozenset(("resources", "environment")), frozenset(("cores", "memory", WALL_TIME))

_KEY = re.compile(r'"rules"\s*:\s*\[')
_encode = json.JSONEncoder(ensure_ascii=False).encode


def sniff(text: str) -> bool:
    """Whether the text is an object with a list "rules", a key that eligo's own JSON lacks; comments may precede it."""
    return '"rules"' in text and re.match(r"(?:\s|#[^\n]*)*+\{", text) is not None and _KEY.search(text) is not None


# Reading


def parse(text: str, arguments: Row | None = None) -> Workflow:
    """The workflow that a JX text describes, with values for names in *arguments*."""
    used: set[str] = set()
    given = arguments or {}
    arguments = {name: evaluating.value_of(v) if isinstance(v, Typed) else v for name, v in given.items()}
    try:
        flow = _workflow(json_text.load(text))
    except FormatError:  # not JSON, or invalid: the slower reader knows all of JX, and line numbers
        flow = _workflow(evaluating.load(text, arguments, used))
    unused = [name for name in arguments if name not in used]
    if not unused:
        return flow
    remark = f"unused values: {shorten(', '.join(map(str, unused)), 200)}"
    origin = cast(Origin, flow.origin)
    return replace(flow, origin=replace(origin, remarks=(*origin.remarks, remark)))


def _workflow(document: object) -> Workflow:
    top = mapping(document, "the document")
    if top.get("rules") is None:
        raise FormatError('no rules (a Makeflow document lists them under "rules")')
    rows = mapping(top.get("categories") or {}, '"categories"')
    categories = {name: _resources(row, f"category {shorten(name)!r}") for name, row in rows.items()}
    usual = top.get("default_category", "default")
    everywhere = categories.get(usual, {}) if isinstance(usual, str) else {}
    unsupported = {name: _unsupported_of(row) for name, row in rows.items()}
    sizes: dict[str, int] = {}
    rules = []
    with _line_added(top):
        listed = array(top["rules"], '"rules"')
    for number, row in enumerate(listed, 1):
        with _line_added(mapping(row, f"rule {number}")):
            rule = _rule(row, f"rule {number}", sizes)
        rule.unhonoured += unsupported.get(rule.more.get("category", usual if isinstance(usual, str) else ""), [])
        rule.more = {**everywhere, **categories.get(rule.more.get("category", ""), {}), **rule.more}
        category = rows.get(rule.more.get("category", usual if isinstance(usual, str) else ""))
        environment = {k: v for owner in (top, category or {}, row) for k, v in _environment(owner).items()}
        launch = Launch(env=environment, timeout=rule.more.pop(WALL_TIME, None))
        rule.more |= {} if launch == Launch() else {"launch": launch}
        rules.append(rule)
    features = tuple(Unhonoured(key, "at the top") for key in ("options",) if top.get(key))
    return workflow_of(rules, sizes, Origin(format=NAME, remarks=unread(_unread(top)), unhonoured=features))


def _unread(top: Row) -> Iterator[str]:
    """The ignored keys with their places, except those that a run refuses."""
    reported = {*UNHONOURED, "options"}
    categories = mapping(top.get("categories") or {}, '"categories"').values()
    places = (("document", [top], _TOP), ("rules", top["rules"], _RULE), ("categories", categories, _CATEGORY))
    for where, rows, keys in places:
        for row in rows:
            yield from (f"{key} ({where})" for key in row if key not in keys and key not in reported)
            resources = row.get("resources") if where != "document" else None
            yield from (f"{key} ({where})" for key in resources or () if key not in _RESOURCES and key not in reported)


def _rule(row: Row, what: str, sizes: dict[str, int]) -> Rule:
    outputs, inputs = (_files(row, key, what, sizes) for key in ("outputs", "inputs"))
    more = _resources(row, what)
    category, name, mark = (_word(row, key, what) for key in ("category", "task", "mark"))
    command, workflow = _word(row, "command", what), _word(row, "workflow", what)
    if (command is None) == (workflow is None):
        actual = "neither" if command is None else "both"
        raise FormatError(f'{what} must have either a "command" or a "workflow", got {actual}', line=_line(row))
    if category is not None:
        more["category"] = category
    run = command if command is not None else f"makeflow {workflow}"
    rule = Rule(outputs=outputs, inputs=inputs, command=run, name=name, mark=mark, line=_line(row), more=more)
    rule.unhonoured = [*_unsupported_of(row), *(["rename"] if _is_renamed(row) else [])]
    return rule


def _unsupported_of(row: Row) -> list[str]:
    """The keys of a rule or a category that a run does not honour."""
    resources = row.get("resources")
    needed = resources if isinstance(resources, dict) else {}
    return [key for key in UNHONOURED if row.get(key) or needed.get(key)]


def _is_renamed(row: Row) -> bool:
    """Whether a file has another name for the command."""
    files = [item for key in ("inputs", "outputs") for item in array(row.get(key), f'"{key}"')]
    both = [(item.get("dag_name"), item.get("task_name")) for item in files if isinstance(item, dict)]
    return any(inside is not None and inside != outside for outside, inside in both)


def _files(row: Row, key: str, what: str, sizes: dict[str, int]) -> tuple[str, ...]:
    names = []
    for item in array(row.get(key), f'"{key}" of {what}'):
        name = string(item.get("dag_name") if isinstance(item, dict) else item, f'a file in "{key}" of {what}')
        if isinstance(item, dict) and item.get("size") is not None:
            sizes[name] = size(item["size"], name, "size")
        names.append(name)
    return tuple(names)


def _environment(row: Row) -> Row:
    """The variables that the document, a category or a rule sets."""
    with _line_added(row):
        return mapping(row.get("environment") or {}, '"environment"')


def _resources(row: object, what: str) -> dict[str, Any]:
    """The cores, the memory and the time limit of a rule or a category."""
    owner = mapping(row, what)
    resources = mapping(owner.get("resources") or {}, f'"resources" of {what}')
    amounts = {}
    for key, unit in (("cores", 1), ("memory", MEGABYTE), (WALL_TIME, 1)):
        amount = resources.get(key)
        if amount is not None and (type(amount) is not int or not 0 <= amount < 2**40):
            message = f'"{key}" of {what} must be an integer within range, got {kind(amount)}'
            raise FormatError(message, line=_line(owner))
        if amount:
            amounts[key] = amount * unit
    return amounts


def _word(row: Row, key: str, what: str) -> str | None:
    value = row.get(key)
    if value is not None and not isinstance(value, str):
        raise FormatError(f'"{key}" of {what} must be a string, got {kind(value)}', line=_line(row))
    return value


@contextmanager
def _line_added(row: Row) -> Iterator[None]:
    """Add the line of a rule, a category or the document to errors about its values."""
    try:
        yield
    except MisfitError as error:
        raise FormatError(error.message, line=_line(row)) from None


def _line(row: Row) -> int | None:
    return row.line if isinstance(row, evaluating.Object) else None


# Writing


def generate(flow: Workflow) -> str:
    """The JSON text of a workflow for Makeflow, one rule per line."""
    names, rules = flow.dag.tasks, rules_of(flow, "Makeflow")
    rows = [_rule_text(rule, flow.file_sizes, name) for name, rule in zip(names, rules, strict=True)]
    return '{"rules": [' + ",".join(f"\n  {row}" for row in rows) + "\n]}\n"


def _rule_text(rule: Rule, sizes: Mapping[str, int], task: str) -> str:
    row: dict[str, Any] = {} if rule.name is None else {"task": rule.name}
    if rule.mark is not None:
        row["mark"] = rule.mark
    row["command"] = rule.command
    for key, names in (("inputs", rule.inputs), ("outputs", rule.outputs)):
        row[key] = [{"dag_name": name, "size": sizes[name]} if name in sizes else name for name in names]
    if "category" in rule.more:
        row["category"] = rule.more["category"]
    resources = {
        key: ceil(rule.more[key] / unit) for key, unit in (("cores", 1), ("memory", MEGABYTE)) if rule.more.get(key)
    }
    if resources:
        row["resources"] = resources
    for text in (rule.command, *rule.inputs, *rule.outputs, *(str(row.get(key, "")) for key in ("task", "category"))):
        _check(text, task)
    return _encode(row)


def _check(text: str, task: str) -> None:
    if len(text) > LONGEST // 4 and len(text.encode()) > LONGEST:
        raise FormatError(
            f"task {shorten(task)!r} has a string of more than {LONGEST:,} bytes, which Makeflow cannot read"
        )
    try:
        json_text.check_text(text)
    except FormatError as error:
        raise FormatError(f"task {shorten(task)!r}: {error.message}") from None
