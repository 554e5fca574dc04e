"""Templates of our own document: `foreach`, which makes many tasks of one row, and `params`.

    params: {reference: ref.fa}
    tasks:
    - name: align
      foreach: {sample: "reads/*.fq"}
      run: bwa mem {inputs} > {outputs}
      inputs: ["{reference}", "{sample}"]
      outputs: ["{sample.stem}.sam"]
    - name: merge
      run: merge {inputs} > all.sam
      inputs: ["{align.outputs}"]
      outputs: [all.sam]

`foreach` is an object with a list, a range (`1..9`) or a pattern of files for each variable, and stands for all
combinations; a list of objects; or the name of a table (.csv, .tsv), a task per row. A task that comes after a row with
`foreach` comes after those of its tasks that agree in the variables that both have, and otherwise after all of them.

In strings `{variable}` stands for its value, `{variable.name}`, `.stem`, `.suffix` and `.parent` for parts of a path,
`{inputs}` and `{outputs}` in a command for the task's own files, and `{task.outputs}` for the files that another task
writes. `{{word}}` is written as `{word}`; other braces, such as those of `${HOME}`, stay as they are.
"""

import csv
import io
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, product
from math import prod
from pathlib import PurePosixPath
from typing import Any

from eligo.errors import DuplicateTaskError, shorten
from eligo.formats.shared.defaults import with_defaults
from eligo.formats.shared.document import (
    FOREACH,
    PARAMS,
    MisfitError,
    Outputs,
    kind,
    mapping,
    misfits_in,
    outputs_in,
    string,
    strings,
    workflow_of,
)
from eligo.formats.shared.files import Beside
from eligo.workflow import Workflow

#: limit of tasks in a document after expansion
MOST_TASKS = 1_000_000
#: limit of references of tasks to others, each by `after` or by the files that others write
MOST_REFERENCES = 5_000_000

Values = Mapping[str, str]

_TABLES = {".csv": ",", ".tsv": "\t"}
_RANGE = re.compile(r"(-?\d{1,9})\.\.(-?\d{1,9})")
_NAME = r"[A-Za-z_]\w*"
_PLACE = re.compile(rf"\$\{{[^{{}}]*\}}|\{{\{{({_NAME}(?:\.{_NAME})?)\}}\}}|\{{({_NAME})(?:\.({_NAME}))?\}}")
#: the parts of a value that is a path
_PARTS: dict[str, Callable[[PurePosixPath], str]] = {
    "name": lambda path: path.name,
    "stem": lambda path: path.stem,
    "suffix": lambda path: path.suffix,
    "parent": lambda path: str(path.parent),
}
_OWN = ("inputs", "outputs")


def workflow_of_template(
    document: object, text: str, format: str, beside: Beside | None = None, arguments: Mapping[str, Any] | None = None
) -> Workflow:
    """The workflow that a document with or without templates describes; see `expanded` and `document.workflow_of`."""
    with misfits_in(text):
        plain = expanded(document, beside, arguments)
    return workflow_of(plain, text, format)


def expanded(document: object, beside: Beside | None = None, arguments: Mapping[str, Any] | None = None) -> object:
    """The document without templates; *arguments* replace values of its `params`. Errors are left to its reader.

    >>> row = {"name": "sim", "foreach": {"seed": "1..2"}, "run": "./sim {seed}"}
    >>> for task in expanded({"tasks": [row, {"name": "mean", "run": "./mean", "after": ["sim"]}]})["tasks"]:
    ...     print(task)
    {'name': 'sim-1', 'run': './sim 1', 'category': 'sim'}
    {'name': 'sim-2', 'run': './sim 2', 'category': 'sim'}
    {'name': 'mean', 'run': './mean', 'after': ['sim-1', 'sim-2']}
    """
    document = with_defaults(document)
    if not isinstance(document, dict):
        return document
    params = _params(document, arguments or {})
    if not uses_templates(document):
        return document
    if not isinstance(document.get("tasks"), list):
        raise MisfitError(f'"{PARAMS}" needs "tasks", which this document does not have', PARAMS)
    rows = document["tasks"]
    families, room = list[_Family](), MOST_TASKS
    for number, row in enumerate(rows, 1):
        families.append(_family(row, number, params, beside, room))
        room -= len(families[-1].members)
    by_label = {family.label: family for family in families}
    if len(by_label) < len(families):
        raise DuplicateTaskError(next(each.label for each in families if by_label[each.label] is not each))
    tasks = _Expansion(families, by_label).tasks()
    return {key: tasks if key == "tasks" else value for key, value in document.items() if key != PARAMS}


def uses_templates(document: object) -> bool:
    """Whether a document has parameters, or a task has `foreach`."""
    if not isinstance(document, dict):
        return False
    rows = document.get("tasks")
    some = rows if isinstance(rows, list) else []
    return document.get(PARAMS) is not None or any(isinstance(row, dict) and FOREACH in row for row in some)


def may_use_templates(text: str) -> bool:
    """Whether a text has the words of a template; its rows then need not be its tasks."""
    return FOREACH in text or PARAMS in text


def _params(document: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, str]:
    """The value of every parameter."""
    rows = {} if document.get(PARAMS) is None else mapping(document[PARAMS], f'"{PARAMS}"')
    values = {_variable(key): _scalar(value, f"parameter {key!r}") for key, value in rows.items()}
    for name, value in arguments.items():
        if name not in values:
            choices = f"known: {', '.join(values)}" if values else f'it has no "{PARAMS}"'
            raise MisfitError(f"the document has no parameter {shorten(name)!r} ({choices})")
        values[name] = _scalar(value, f"parameter {name!r}")
    return values


@dataclass
class _Member:
    """One task of a family: its values, its name and files."""

    values: Values
    name: str
    outputs: list[str]
    #: those of them that a run may remove
    temporary: list[str]


@dataclass
class _Family:
    """A row of the document and the tasks that it stands for."""

    row: Mapping[str, Any]
    label: str
    params: Values
    #: the variables of `foreach`; none for a row without it
    variables: tuple[str, ...]
    members: list[_Member]
    _by_values: dict[tuple[str, ...], dict[tuple[str, ...], list[_Member]]] = field(default_factory=dict)

    def matching(self, values: Values, child: str) -> Sequence[_Member]:
        """The members that agree with the values of a child in all variables that both have."""
        common = tuple(name for name in self.variables if name in values)
        if common not in self._by_values:
            index: dict[tuple[str, ...], list[_Member]] = {}
            for member in self.members:
                index.setdefault(tuple(member.values[name] for name in common), []).append(member)
            self._by_values[common] = index
        key = tuple(values[name] for name in common)
        if key not in self._by_values[common]:
            wanted = ", ".join(f"{name}={value}" for name, value in zip(common, key, strict=True))
            raise MisfitError(
                f"task {shorten(child)!r} refers to {shorten(self.label)!r}, which has no task with {wanted}"
            )
        return self._by_values[common][key]


def _family(row: object, number: int, params: Values, beside: Beside | None, room: int) -> _Family:
    """The tasks of a row, with their names and the files that they write; raises if there is no *room* for them."""
    if not isinstance(row, dict):
        raise MisfitError(f"task {number} must be an object, got {kind(row)}")
    label = string(row.get("name"), f"the name of task {number}")
    bindings = [{}] if row.get(FOREACH) is None else _bindings(row[FOREACH], label, params, beside)
    variables = tuple(bindings[0]) if bindings else ()
    if len(bindings) > room:
        raise MisfitError(f"the document has more than {MOST_TASKS:,} tasks after expansion", FOREACH)
    twice = next((name for name in variables if name in params), None)
    if twice is not None:
        raise MisfitError(f'"{FOREACH}" of {shorten(label)!r} has the variable {twice!r}, which is a parameter', twice)
    outputs, members = outputs_in(row.get("outputs"), label), list[_Member]()
    for values in bindings:
        text = _Text(label, {**params, **values})
        name = text.filled(label)
        if values and name == label:
            name = "-".join((label, *values.values()))
        members.append(_Member(values, name, *([text.filled(file) for file in files] for files in outputs)))
    names = Counter(member.name for member in members)
    if len(names) < len(members):
        name = shorten(names.most_common(1)[0][0])
        raise MisfitError(
            f'"{FOREACH}" of {shorten(label)!r} gives two tasks the name {name!r}: use all variables in its name, and no'
            " value twice",
            label,
        )
    return _Family(row, label, params, variables, members)


# The values of foreach


def _bindings(foreach: object, label: str, params: Values, beside: Beside | None) -> list[dict[str, str]]:
    """The values of the variables, for every task that a row stands for."""
    what = f'"{FOREACH}" of {shorten(label)!r}'
    if isinstance(foreach, str):
        rows = _table(_Text(label, params).filled(foreach), what, beside)
    elif isinstance(foreach, list):
        rows = [_binding(row, what) for row in foreach]
    elif not isinstance(foreach, dict):
        raise MisfitError(f"{what} must be an object, a list, or the name of a .csv or .tsv file, got {kind(foreach)}")
    else:
        values = {_variable(key): _choices(each, what, label, params, beside) for key, each in foreach.items()}
        rows = [dict(zip(values, each, strict=True)) for each in _combinations(values, what)]
    if not rows or not rows[0]:
        raise MisfitError(f"{what} has no values", FOREACH)
    if any(row.keys() != rows[0].keys() for row in rows):
        raise MisfitError(f"{what} must have the same variables in every object", FOREACH)
    return rows


def _combinations(values: Mapping[str, Sequence[str]], what: str) -> Iterator[tuple[str, ...]]:
    count = prod(map(len, values.values()))
    if count > MOST_TASKS:
        raise MisfitError(f"{what} has {count:,} combinations, more than the limit of {MOST_TASKS:,}", FOREACH)
    return product(*values.values())


def _binding(row: object, what: str) -> dict[str, str]:
    return {
        _variable(key): _scalar(value, f"{key!r} in {what}")
        for key, value in mapping(row, f"an item of {what}").items()
    }


def _choices(choices: object, what: str, label: str, params: Values, beside: Beside | None) -> Sequence[str]:
    """The values of one variable: a list, a range such as 1..9, or the files that match a pattern."""
    if isinstance(choices, list):
        return [_scalar(value, f"a value in {what}") for value in choices]
    if not isinstance(choices, str):
        raise MisfitError(
            f"a variable in {what} must be a list, a range such as 1..9, or a pattern, got {kind(choices)}"
        )
    pattern = _Text(label, params).filled(choices)
    ends = _RANGE.fullmatch(pattern)
    if ends:
        first, last = int(ends[1]), int(ends[2])
        if not 0 <= last - first < MOST_TASKS:
            raise MisfitError(f"{what} has the range {pattern}, which must have 1 to {MOST_TASKS:,} values", choices)
        return [str(value) for value in range(first, last + 1)]
    if not set("*?[") & set(pattern):
        message = (
            f"{what} has {shorten(pattern)!r}, which is not a list, a range such as 1..9, or a pattern such as *.txt"
        )
        raise MisfitError(message, choices)
    files = _folder(beside, what).matches(pattern)
    if not files:
        raise MisfitError(f"{what}: no file matches {shorten(pattern)!r}", choices)
    return files


def _table(name: str, what: str, beside: Beside | None) -> list[dict[str, str]]:
    """The rows of a table in a file, each with a value for every title."""
    separator = _TABLES.get(PurePosixPath(name).suffix)
    if separator is None:
        raise MisfitError(
            f"{what} must be an object, a list, or the name of a .csv or .tsv file, got {shorten(name)!r}", name
        )
    folder = _folder(beside, what)
    reader = csv.reader(io.StringIO(folder.load_utf_8(folder.place(name))), delimiter=separator, strict=True)
    try:
        titles, *rows = [row for row in reader if row]
    except (csv.Error, ValueError) as error:
        raise MisfitError(f"{what}: {shorten(name)!r} is not a table with a line of titles ({error})", name) from None
    for number, row in enumerate(rows, 2):
        if len(row) != len(titles):
            raise MisfitError(
                f"{what}: row {number} of {shorten(name)!r} has {len(row)} cells, the titles {len(titles)}"
            )
    return [dict(zip(map(_variable, titles), row, strict=True)) for row in rows]


def _folder(beside: Beside | None, what: str) -> Beside:
    if beside is None:
        raise MisfitError(f"{what} refers to files, but this text has no folder to look in (list the values)", FOREACH)
    return beside


def _variable(name: object) -> str:
    """The name of a variable or parameter, checked."""
    if not isinstance(name, str) or re.fullmatch(_NAME, name) is None or name in _OWN:
        raise MisfitError(
            f"a variable must be named by letters, digits and _, and not inputs or outputs, got {shorten(str(name))!r}"
        )
    return name


def _scalar(value: object, what: str) -> str:
    """A value as it is written: a string, or the digits of a number."""
    if isinstance(value, float):
        raise MisfitError(f"{what} must be a string or an integer, got {value} (put numbers with a fraction in quotes)")
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise MisfitError(f"{what} must be a string or an integer, got {kind(value)}")
    return str(value)


# Placeholders


def is_unsafe_in_quotes(place: re.Match[str], values: Iterable[str]) -> bool:
    """Whether a placeholder stands inside quotes of a shell line, and one of its values needs quotes of its own.

    >>> [is_unsafe_in_quotes(re.search("{}", line), ["a b"]) for line in ("echo {}", "echo '{}'", 'echo "x" {}')]
    [False, True, False]
    """
    return any(shlex.quote(value) != value for value in values) and _is_quoted(place.string[: place.start()])


def _is_quoted(line: str) -> bool:
    """Whether the text after this beginning of a shell line is inside quotes."""
    quote, escaped = "", False
    for sign in line:
        if escaped:
            escaped = False
        elif sign == "\\" and quote != "'":
            escaped = True
        elif quote:
            quote = "" if sign == quote else quote
        elif sign in {"'", '"'}:
            quote = sign
    return bool(quote)


@dataclass
class _Text:
    """Fills in the placeholders of one task's strings."""

    label: str
    values: Values
    #: the files that another task writes, by its name; None if there is no such task
    outputs: Callable[[str], Sequence[str] | None] = lambda name: None
    #: the task's own inputs and outputs, which a command may name
    own: Mapping[str, Sequence[str]] = field(default_factory=dict)
    #: the variables whose values are quoted; None: all text is inserted as it is, since no shell reads it
    quoted: frozenset[str] | None = None

    def filled(self, text: object) -> Any:
        """The text with values for its placeholders; other values are unchanged."""
        return _PLACE.sub(self._value, text) if isinstance(text, str) else text

    def everywhere(self, value: object) -> Any:
        """A value of any type, with values for the placeholders in its strings."""
        if isinstance(value, dict):
            return {key: self.everywhere(each) for key, each in value.items()}
        return self.words(value) if isinstance(value, list) else self.filled(value)

    def words(self, items: Sequence[object]) -> list[Any]:
        """A list with values for its placeholders; an item that stands for several files becomes several."""
        words: list[Any] = []
        for item in items:
            match = _PLACE.fullmatch(item) if isinstance(item, str) else None
            files = self._files(match[2], match[3]) if match and match[2] else None
            words += (self.filled(item),) if files is None else files
        return words

    def _files(self, name: str, part: str | None) -> Sequence[str] | None:
        """The files for which a placeholder stands; None if it stands for a value."""
        return self.own.get(name) if part is None else self.outputs(name) if part == "outputs" else None

    def _value(self, match: re.Match[str]) -> str:
        literal, name, part = match.groups()
        if name is None:
            return f"{{{literal}}}" if literal else match[0]
        files = self._files(name, part)
        if files is not None:
            return " ".join(files) if self.quoted is None else self._quote(match, files)
        if name not in self.values or (part is not None and part not in _PARTS):
            raise self._unknown(match[0], name)
        value = self.values[name] if part is None else _PARTS[part](PurePosixPath(self.values[name]))
        return self._quote(match, [value]) if self.quoted and name in self.quoted else value

    def _quote(self, place: re.Match[str], values: Sequence[str]) -> str:
        """The values as words of a shell line; refused if they need quotes where the line is inside quotes already."""
        if is_unsafe_in_quotes(place, values):
            unsafe = next(value for value in values if shlex.quote(value) != value)
            raise MisfitError(
                f"task {shorten(self.label)!r} has {place[0]} inside quotes, where {shorten(unsafe)!r} cannot be inserted"
                " (remove the quotes: eligo adds those that are needed)",
                place[0],
            )
        return shlex.join(values)

    def _unknown(self, place: str, name: str) -> MisfitError:
        words = f"parts: {', '.join(_PARTS)}" if name in self.values else f"known: {', '.join(self.values) or 'none'}"
        return MisfitError(
            f"task {shorten(self.label)!r} has {place}, which stands for nothing ({words}; write {{{place}}} for the braces)",
            place,
        )


@dataclass
class _Expansion:
    """The rows of all families, with the files and tasks that they refer to."""

    families: Sequence[_Family]
    by_label: Mapping[str, _Family]
    _references: int = 0

    def tasks(self) -> list[dict[str, Any]]:
        """The rows without templates, in order."""
        return [self._row(family, member) for family in self.families for member in family.members]

    def _row(self, family: _Family, member: _Member) -> dict[str, Any]:
        """One task as a row."""
        inputs = self._text(family, member).words(strings(family.row.get("inputs"), family.label, "inputs"))
        row = {key: self._value(family, member, key, inputs) for key in family.row if key != FOREACH}
        if family.variables and row.get("category") is None:
            row["category"] = _PLACE.sub("", family.label).strip("-_. ") or family.label
        return row

    def _value(self, family: _Family, member: _Member, key: str, inputs: list[str]) -> Any:
        """The value of a key of a task, with its placeholders filled in."""
        value, text = family.row[key], self._text(family, member)
        match key:
            case "name":
                return member.name
            case "inputs":
                return inputs
            case "outputs":
                return Outputs(tuple(member.outputs), tuple(member.temporary)).entries()
            case "after" if isinstance(value, list):
                return list(chain.from_iterable(self._parents(name, member, text) for name in value))
            case "run":
                text.own = {"inputs": inputs, "outputs": member.outputs}
                text.quoted = frozenset(family.variables) if isinstance(value, str) else None
        return text.everywhere(value)

    def _parents(self, name: object, member: _Member, text: _Text) -> Sequence[object]:
        """The names of the tasks for which one name in `after` stands."""
        family = self.by_label.get(name) if isinstance(name, str) else None
        return (text.filled(name),) if family is None else [each.name for each in self._related(family, member)]

    def _related(self, family: _Family, member: _Member) -> Sequence[_Member]:
        """The tasks of a family to which a task refers; refused if the tasks of the document refer to too many others."""
        related = family.matching(member.values, member.name)
        self._references += len(related)
        if self._references > MOST_REFERENCES:
            raise MisfitError(f"tasks of the document refer to others more than {MOST_REFERENCES:,} times", FOREACH)
        return related

    def _text(self, family: _Family, member: _Member) -> _Text:
        """The object that fills in the placeholders of a task's strings."""

        def outputs(name: str) -> Sequence[str] | None:
            other = self.by_label.get(name)
            return None if other is None else [file for each in self._related(other, member) for file in each.outputs]

        return _Text(member.name, {**family.params, **member.values}, outputs)
