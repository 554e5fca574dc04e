"""Submit descriptions: what HTCondor runs for a node, as lines `key = value`.

>>> description_of(Task(name="a", command=("/bin/echo", "a b"), cores=2))
['executable = /bin/echo', 'transfer_executable = false', 'arguments = "\\'a b\\'"', 'request_cpus = 2']
>>> facts_in(description_of(Task(name="a", command="ls | wc"))).command
'ls | wc'

A line for a shell is given to /bin/sh, a program without a folder to /usr/bin/env, which looks for it; names that env would
take for an option or a setting, such as -x or a=b, are refused. Cores are rounded up to whole ones and memory to units of
1024 bytes. What runs is known again from what is written here; of other descriptions the executable and its arguments, with
macros such as $(JOB) as they stand.
"""

import math
import re
from collections.abc import Iterable
from typing import NamedTuple

from eligo.errors import FormatError, shorten
from eligo.workflow import Task

SHELL, SEARCH = "/bin/sh", "/usr/bin/env"

_DOLLAR = "$(DOLLAR)"
_UNITS = {"": 2**20, "B": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_AMOUNT = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([BKMGT]?)B?", re.IGNORECASE)
_ARGUMENT = re.compile(r"(?:[^\s']|'(?:[^']|'')*+')+")


class Facts(NamedTuple):
    """What a submit description says of a node."""

    command: str | tuple[str, ...] | None = None
    cores: float | None = None
    memory: int | None = None
    #: the description itself, where it stands in the DAGMan file
    lines: tuple[str, ...] = ()


def facts_in(lines: Iterable[str]) -> Facts:
    """What the lines of a submit description say; the last one of a key counts."""
    values: dict[str, str] = {}
    for line in lines:
        key, equals, value = line.partition("=")
        if equals:
            values[key.strip().lower()] = value.strip()
    cpus = values.get("request_cpus", "")
    cores = int(cpus) if re.fullmatch(r"[0-9]{1,9}", cpus) else None
    return Facts(_command(values.get("executable", ""), values.get("arguments", "")), cores, _memory(values))


def description_of(task: Task, literal: bool = True) -> list[str]:
    """The lines of the submit description that runs a task; $ is taken as it stands where *literal*."""
    words = _words(task)
    for word in words:
        if "\n" in word or "\r" in word:
            raise FormatError(f"DAGMan cannot hold the command of task {shorten(task.name)!r}: it has a line break")
    program, *arguments = [word.replace("$", _DOLLAR) for word in words] if literal else words
    if program != program.strip() or program.endswith("\\"):
        raise _unholdable(task, program)
    lines = [f"executable = {program}"]
    if program.startswith("/"):
        lines.append("transfer_executable = false")
    if arguments:
        lines.append(f'arguments = "{" ".join(map(_quoted, arguments))}"')
    if task.cores:
        lines.append(f"request_cpus = {math.ceil(task.cores)}")
    if task.memory:
        lines.append(f"request_memory = {-(-task.memory // 1024)}K")
    return lines


def _unholdable(task: Task, program: str) -> FormatError:
    return FormatError(f"DAGMan cannot hold the program of task {shorten(task.name)!r}: {shorten(ascii(program))}")


def _words(task: Task) -> tuple[str, ...]:
    if isinstance(task.command, str):
        return (SHELL, "-c", *(["--"] if task.command.startswith(("-", "+")) else []), task.command)
    words = task.command or ()
    if "/" in words[0] and words[0] not in {SHELL, SEARCH}:
        return words
    if not _is_sought(words[0]):
        raise _unholdable(task, words[0])
    return (SEARCH, *words)


def _is_sought(word: str) -> bool:
    """Whether env looks for a program of this name, and does not take it for an option or a setting."""
    return not word.startswith("-") and "=" not in word


def _command(program: str, arguments: str) -> str | tuple[str, ...] | None:
    if not program:
        return None
    words = (program, *_arguments(arguments))
    if "$(" not in "".join(words).replace(_DOLLAR, ""):
        words = tuple(word.replace(_DOLLAR, "$") for word in words)
    if words[0] == SEARCH and len(words) > 1 and _is_sought(words[1]):
        return words[1:]
    line = words[-1]
    is_line = words[:-1] in {(SHELL, "-c"), (SHELL, "-c", "--")} and line.split() != [line]
    return line if is_line else words


def _arguments(text: str) -> list[str]:
    """The words in `arguments`: in double quotes, single ones group and double themselves; without, spaces part them."""
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        return text.replace('\\"', '"').split()
    words = _ARGUMENT.findall(text[1:-1].replace('""', '"'))
    return [re.sub(r"'((?:[^']|'')*+)'", lambda quote: quote[1].replace("''", "'"), word) for word in words]


def _quoted(word: str) -> str:
    word = word.replace('"', '""')
    plain = word and "'" not in word and not re.search(r"\s", word)
    return word if plain else "'" + word.replace("'", "''") + "'"


def _memory(values: dict[str, str]) -> int | None:
    amount = _AMOUNT.fullmatch(values.get("request_memory", ""))
    return round(float(amount[1]) * _UNITS[amount[2].upper()]) if amount else None
