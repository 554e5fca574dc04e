"""Submit descriptions, lines `key = value` from which HTCondor creates the job of a node.

>>> description_of(Task(name="a", command=("/bin/echo", "a b"), cores=2))
['executable = /bin/echo', 'transfer_executable = false', 'arguments = "\\'a b\\'"', 'request_cpus = 2']
>>> facts_in(description_of(Task(name="a", command="ls | wc"))).command
'ls | wc'

In the output, a command line for a shell is run by /bin/sh, and a program without a folder by /usr/bin/env, which searches
it; names that env would read as an option or a setting, such as -x or a=b, are refused. Cores are rounded up to integers,
memory to units of 1024 bytes. Commands written here are read back unchanged. In other descriptions, the command is the
executable with its arguments, and macros such as $(JOB) stay as they are.

For a run, a description has a command, and features of HTCondor that the run does not honour. It is read as in HTCondor: the
last value of a key counts, a backslash joins lines, and $(name) is a value of the description or of VARS. $(JOB) is the
node, but only inside VARS. Only HTCondor knows the values of other macros, so a command that uses them is refused.

>>> fit = Description.of("a.sub", ["executable = fit", "arguments = $(seed)", "log = a.log", "output = fit.out"])
>>> job_of(fit, [Variable("seed", "7")]).facts.command, fit.unhonoured
(('./fit', '7'), {'output': 4})
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from eligo.errors import FormatError, shorten
from eligo.formats.fidelity import SUBMIT_COMMANDS
from eligo.workflow import Task

SHELL, SEARCH = "/bin/sh", "/usr/bin/env"

_DOLLAR = "$(DOLLAR)"
_UNITS = {"": 2**20, "B": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_AMOUNT = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([BKMGT]?)B?", re.IGNORECASE)
_ARGUMENT = re.compile(r"(?:[^\s']|'(?:[^']|'')*+')+")


class Facts(NamedTuple):
    """The facts about a node in a submit description."""

    command: str | tuple[str, ...] | None = None
    cores: float | None = None
    memory: int | None = None
    #: the lines of the description if it is inline in the DAGMan file
    lines: tuple[str, ...] = ()


def facts_in(lines: Iterable[str]) -> Facts:
    """The facts in the lines of a submit description; the last value of a key counts."""
    values: dict[str, str] = {}
    for line in lines:
        key, equals, value = line.partition("=")
        if equals:
            values[key.strip().lower()] = value.strip()
    cpus = values.get("request_cpus", "")
    cores = int(cpus) if re.fullmatch(r"[0-9]{1,9}", cpus) else None
    return Facts(_command(values.get("executable", ""), values.get("arguments", "")), cores, _memory(values))


def description_of(task: Task, literal: bool = True) -> list[str]:
    """The lines of the submit description that runs a task; with *literal*, $ does not begin macros."""
    words = _words(task)
    for word in words:
        if "\n" in word or "\r" in word:
            raise FormatError(
                f"DAGMan cannot represent the command of task {shorten(task.name)!r}: it contains a line break"
            )
    program, *arguments = [word.replace("$", _DOLLAR) for word in words] if literal else words
    if program != program.strip() or program.endswith("\\"):
        raise _program_error(task, program)
    lines = [f"executable = {program}"]
    if program.startswith("/"):
        lines.append("transfer_executable = false")
    if arguments:
        lines.append(f'arguments = "{" ".join(map(_quote, arguments))}"')
    if task.cores:
        lines.append(f"request_cpus = {math.ceil(task.cores)}")
    if task.memory:
        lines.append(f"request_memory = {-(-task.memory // 1024)}K")
    return lines


def _program_error(task: Task, program: str) -> FormatError:
    return FormatError(f"DAGMan cannot represent the program of task {shorten(task.name)!r}: {shorten(ascii(program))}")


def _words(task: Task) -> tuple[str, ...]:
    if isinstance(task.command, str):
        return (SHELL, "-c", *(["--"] if task.command.startswith(("-", "+")) else []), task.command)
    words = task.command or ()
    if "/" in words[0] and words[0] not in {SHELL, SEARCH}:
        return words
    if not _is_program(words[0]):
        raise _program_error(task, words[0])
    return (SEARCH, *words)


def _is_program(word: str) -> bool:
    """Whether env reads this word as the name of a program, not as an option or a setting."""
    return not word.startswith("-") and "=" not in word


def _command(program: str, arguments: str) -> str | tuple[str, ...] | None:
    if not program:
        return None
    words = (program, *_arguments(arguments))
    if "$(" not in "".join(words).replace(_DOLLAR, ""):
        words = tuple(word.replace(_DOLLAR, "$") for word in words)
    if words[0] == SEARCH and len(words) > 1 and _is_program(words[1]):
        return words[1:]
    line = words[-1]
    is_line = words[:-1] in {(SHELL, "-c"), (SHELL, "-c", "--")} and line.split() != [line]
    return line if is_line else words


def _arguments(text: str) -> list[str]:
    """The words in `arguments`: in double quotes, single quotes group words; without them, spaces separate words."""
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        return text.replace('\\"', '"').split()
    words = _ARGUMENT.findall(text[1:-1].replace('""', '"'))
    return [re.sub(r"'((?:[^']|'')*+)'", lambda quote: quote[1].replace("''", "'"), word) for word in words]


def _quote(word: str) -> str:
    word = word.replace('"', '""')
    plain = word and "'" not in word and not re.search(r"\s", word)
    return word if plain else "'" + word.replace("'", "''") + "'"


def _memory(values: dict[str, str]) -> int | None:
    amount = _AMOUNT.fullmatch(values.get("request_memory", ""))
    return round(float(amount[1]) * _UNITS[amount[2].upper()]) if amount else None


# Descriptions in a run

#: The commands that a run honours.
HONOURED = frozenset({"executable", "arguments", "args", "request_cpus", "request_memory", "queue"})
#: The commands that cannot change what a job does, with the reason.
HARMLESS = {
    **dict.fromkeys(("log", "log_xml", "dagman_log", "userlog", "job_ad_information_attrs"), "HTCondor's own log"),
    **dict.fromkeys(("notification", "notify_user", "email_attributes"), "mail about the job"),
    **dict.fromkeys(("description", "batch_name", "jobbatchname"), "a name for people"),
    **dict.fromkeys(("accounting_group", "accounting_group_user", "nice_user"), "whose share of the pool it takes"),
    **dict.fromkeys(("priority", "prio", "rank", "request_disk"), "when and on which machine it runs"),
    **dict.fromkeys(
        ("job_lease_duration", "leave_in_queue", "copy_to_spool", "max_idle"), "how the queue keeps the job"
    ),
    **dict.fromkeys(("stream_input", "stream_output", "stream_error"), "when output arrives"),
    **dict.fromkeys(("should_transfer_files", "when_to_transfer_output", "transfer_executable"), "files are in place"),
    "getenv": "tasks have the environment of the run",
}
#: Values that a run fulfils anyway.
_PLAIN_FILES = re.compile(r"\s*[^/,:]*(?:,[^/,:]*)*")
_ALREADY = {
    "universe": re.compile(r"vanilla|local|scheduler|5|7|12", re.IGNORECASE),
    "transfer_input_files": _PLAIN_FILES,
    "transfer_output_files": _PLAIN_FILES,
    **dict.fromkeys(("input", "output", "error"), re.compile(r"/dev/null")),
}
#: Commands that a run honours if their values can be expanded.
_SETTINGS = ("initialdir", "environment", "input", "output", "error")
#: Values that are the same for every node, because a node has one job.
_CONSTANT = {"dollar": "$(DOLLAR)", "process": "0", "procid": "0", "step": "0", "row": "0"}
#: Statements whose effect is unknown, even on the executable.
_UNREADABLE = ("if", "elif", "else", "endif", "include")

_LINE = re.compile(r"\s*([+\w.]+)\s*(@?=|:)?\s*(.*)", re.DOTALL)
_MACRO = re.compile(r"(?<!\$)\$\(\s*([\w.+]+)\s*\)")
_UNEXPANDED = re.compile(r"\$\$?\w*\([^()]*\)?")
_DOLLARS = re.compile(r"\$\(DOLLAR\)")
_USED = re.compile(r"\$\(\s*([\w.+]+)")
_VARIABLE = re.compile(r'\s*([+\w.]+)\s*=\s*"((?:[^"\\]|\\.)*+)"', re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\])')
_JOB = re.compile(r"\$\(JOB\)", re.IGNORECASE)
_DEEPEST, _LONGEST = 32, 2**20


class Variable(NamedTuple):
    """A variable in VARS; with the *mode* PREPEND or APPEND, it comes before or after the description."""

    name: str
    value: str
    mode: str = ""


class SubmitLine(NamedTuple):
    """A line of a submit description, and its number."""

    key: str
    value: str
    line: int


def variables_in(text: str, node: str) -> list[Variable] | None:
    """The variables after the node in a VARS line; None if they cannot be read.

    >>> variables_in('APPEND seed = "7" title="say \\\\"$(JOB)\\\\""', "a")
    [Variable(name='seed', value='7', mode='APPEND'), Variable(name='title', value='say "a"', mode='APPEND')]
    """
    mode, _, rest = text.partition(" ")
    mode, rest = (mode.upper(), rest) if mode.upper() in {"PREPEND", "APPEND"} else ("", text)
    variables, at = [], 0
    while piece := _VARIABLE.match(rest, at):
        value = _JOB.sub(lambda _: node, _ESCAPED.sub(r"\1", piece[2]))
        variables.append(Variable(piece[1], value, mode))
        at = piece.end()
    return None if rest[at:].strip() else variables


@dataclass(frozen=True)
class Description:
    """A submit description, in its own file or inline in the DAGMan file; *file* is its name in messages."""

    file: str
    entries: tuple[SubmitLine, ...]
    is_inline: bool = False

    @classmethod
    def of(cls, file: str, lines: Iterable[str], is_inline: bool = False) -> "Description":
        """The description in these lines."""
        return cls(file, tuple(_entries(file, lines)), is_inline)

    @cached_property
    def values(self) -> dict[str, str]:
        """The last value of each key."""
        return {entry.key.lower(): entry.value for entry in self.entries}

    @cached_property
    def unhonoured(self) -> dict[str, int]:
        """The keys that a run does not honour, and the line of each."""
        used = {name.lower() for entry in self.entries for name in _USED.findall(entry.value)}
        lines = {entry.key.lower(): entry.line for entry in self.entries}
        return {
            key: line
            for key, line in lines.items()
            if (key in SUBMIT_COMMANDS or key not in used) and _asks_for_more(key, self.values[key])
        }


def _asks_for_more(key: str, value: str) -> bool:
    already = _ALREADY.get(key)
    is_honoured = key in HONOURED or key in HARMLESS or not value
    return not is_honoured and not (already and already.fullmatch(value))


def unhonoured_in(variables: Iterable[Variable]) -> list[str]:
    """The variables that are commands of HTCondor or attributes of jobs, which a run does not honour."""
    names = [variable.name.lower() for variable in variables]
    return [name for name in names if name in SUBMIT_COMMANDS or name.startswith(("+", "my."))]


def _entries(file: str, lines: Iterable[str]) -> Iterator[SubmitLine]:
    start, parts = 0, list[str]()
    for number, line in enumerate(lines, 1):
        if not parts and line.lstrip().startswith("#"):
            continue
        start = start if parts else number
        parts.append(line.rstrip().removesuffix("\\"))
        if not line.rstrip().endswith("\\"):
            yield from _entry(file, " ".join(parts), start)
            parts = []
    yield from _entry(file, " ".join(parts), start)


def _entry(file: str, line: str, number: int) -> Iterator[SubmitLine]:
    match = _LINE.fullmatch(line)
    if match is None:
        if line.strip():
            raise FormatError(f"{file}: line {number} is not part of a submit description: {shorten(line.strip())!r}")
        return
    key, sign, value = match[1], match[2], match[3].strip()
    if sign == "@=" or (sign != "=" and key.lower() in _UNREADABLE):
        what = "a multi-line value" if sign == "@=" else key
        raise FormatError(f"{file}: line {number} uses {what}, which eligo run does not support")
    yield SubmitLine(key, value, number)


class NodeJob(NamedTuple):
    """The facts about a node's job, and the keys that are not honoured because their values are not plain numbers."""

    facts: Facts
    unhonoured: list[str]
    #: the values of other commands that are honoured: `initialdir`, `environment`, `input`, `output`, `error`
    settings: Mapping[str, str]
    environment: Mapping[str, str]
    #: the files that HTCondor would transfer to the job and back; it would hold the job without them
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()


def job_of(description: Description, variables: Sequence[Variable]) -> NodeJob:
    """The job of a node that has these *variables* in VARS."""
    macros = _Macros(description, variables)
    program = macros.value("executable")
    program = f"./{program}" if program and "/" not in program else program  # HTCondor does not search for it
    lines = [f"executable = {program}", f"arguments = {macros.value('arguments') or macros.value('args')}"]
    amounts = {key: macros.amount(key) for key in ("request_cpus", "request_memory") if macros.values.get(key)}
    facts = facts_in([*lines, *(f"{key} = {amount}" for key, amount in amounts.items())])
    requests = {"request_cpus": facts.cores, "request_memory": facts.memory}
    inputs, outputs = (_files(macros, f"transfer_{way}_files") for way in ("input", "output"))
    settings = {key: value for key in _SETTINGS if (value := macros.amount(key)) not in {"", "/dev/null"}}
    environment = _environment(settings.pop("environment", ""))
    settings |= {"environment": ""} if environment else {}
    return NodeJob(facts, [key for key in amounts if requests[key] is None], settings, environment, inputs, outputs)


def _environment(text: str) -> dict[str, str]:
    """The variables in `environment`; empty if they cannot be read.

    >>> _environment('"A=1 B=2"'), _environment("A=1;B=x y"), _environment("A")
    ({'A': '1', 'B': '2'}, {'A': '1', 'B': 'x y'}, {})
    """
    words = _arguments(text) if text[:1] == '"' else [word.strip() for word in text.split(";") if word.strip()]
    pairs = [word.partition("=") for word in words]
    return {name: word for name, _, word in pairs} if all(name and equals for name, equals, _ in pairs) else {}


def _files(macros: "_Macros", key: str) -> tuple[str, ...]:
    """The names in a list of files; empty if it has other elements, which are not honoured."""
    text = macros.amount(key)
    if not _ALREADY[key].fullmatch(text):
        return ()
    return tuple(name for name in (word.strip().strip('"') for word in text.split(",")) if name)


class _Macros:
    """The values of macros, from a description and from VARS."""

    def __init__(self, description: Description, variables: Sequence[Variable]) -> None:
        after = {variable.name.lower(): variable.value for variable in variables if variable.mode == "APPEND"}
        before = {variable.name.lower(): variable.value for variable in variables if variable.mode != "APPEND"}
        self.file = description.file
        self.values = before | description.values | after
        #: keys in both, where a setting of the pool decides
        self.doubtful = {each.name.lower() for each in variables if not each.mode} & description.values.keys()

    def value(self, key: str) -> str:
        """The expanded value of a key."""
        text = self._value(key, 0) if key in self.values else ""
        match = _UNEXPANDED.search(_DOLLARS.sub("", text))
        if match:
            raise self._macro_error(match[0])
        return _DOLLARS.sub("$", text)

    def amount(self, key: str) -> str:
        """The expanded value of a key; empty if it cannot be expanded."""
        try:
            return self.value(key)
        except FormatError:
            return ""

    def _value(self, key: str, depth: int) -> str:
        if key in self.doubtful:
            raise FormatError(f"{self.file} and VARS both set {key} (add PREPEND or APPEND to the VARS line)")
        text = _MACRO.sub(lambda macro: self._expand(macro, depth), self.values[key])
        if depth > _DEEPEST or len(text) > _LONGEST:
            raise self._macro_error(f"$({key})")
        return text

    def _expand(self, macro: re.Match[str], depth: int) -> str:
        key = macro[1].lower()
        if key in _CONSTANT:
            return _CONSTANT[key]
        if key not in self.values or depth > _DEEPEST:
            raise self._macro_error(macro[0])
        return self._value(key, depth + 1)

    def _macro_error(self, macro: str) -> FormatError:
        return FormatError(f"{self.file} uses {shorten(macro)}, which eligo run does not expand")
