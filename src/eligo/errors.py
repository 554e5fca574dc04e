"""All exceptions, each with the objects it is about.

EligoError
├── InputError            invalid input, with path and line if it came from a file
│   ├── FormatError       a text is not in its format
│   ├── UnhonouredError   a file uses features that a run does not support: carries the names to ignore them
│   ├── CycleError        carries the cycle
│   ├── UnknownTaskError  carries the name
│   ├── DuplicateTaskError    carries the name
│   ├── NotSelfContainedError    carries the task and the parent that a fat task lacks
│   └── StateError        an impossible state: carries the task and the parent that is not executed
├── ScheduleError         an order is not a schedule: carries the two tasks, or the missing one
├── TaskFailedError       a task failed permanently: carries it, and the results of the others
├── ShortageError         this machine cannot start any more processes
├── NotHeldError          workflows that another server holds now: carries their ids
└── MoveError             a move that the pebble game forbids: carries the task and its state
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from numbers import Real
from operator import index
from typing import Any, Self

#: stands for no task, since None may be a task
NOBODY: Any = object()
#: the number of names with which a misspelt one is compared
MOST_COMPARED = 10_000


class EligoError(Exception):
    """The base of every error that eligo raises on purpose."""


class InputError(EligoError, ValueError):
    """Invalid input; `path` and `line` say where, if it was read from a file.

    `remedy` names the argument that would help; the command line translates it into an option.
    """

    path: str | None = None
    line: int | None = None
    remedy: str | None = None

    def __str__(self) -> str:
        message = super().__str__()
        if self.path is None:
            return message if self.line is None else f"line {self.line}: {message}"
        return f"{self.path}:{self.line}: {message}" if self.line else f"{self.path}: {message}"

    def at(self, line: int | None) -> "InputError":
        """This error with a line number, unless it has one."""
        self.line = line if self.line is None else self.line
        return self

    def cured_by(self, argument: str) -> Self:
        """This error with the argument that would cure it."""
        self.remedy = argument
        return self

    def located(self, path: str, line: int | None = None) -> "InputError":
        """This error with the file in which it was found."""
        self.path, self.line = path, self.line if line is None else line
        return self


class FormatError(InputError):
    """A text is not in the format it claims to be in."""

    def __init__(self, message: str, path: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.message, self.path, self.line = message, path, line


class UnhonouredError(InputError):
    """A file uses features that a run does not support; `keys` are the names to pass to `ignore`."""

    def __init__(self, message: str, keys: Sequence[str]) -> None:
        self.message, self.keys = message, tuple(keys)
        super().__init__(f"{message}; use ignore={self.keys!r} to run it anyway")


class CycleError(InputError):
    """The arcs form a cycle; `cycle` lists its tasks, with the first one repeated at the end."""

    def __init__(self, cycle: Sequence[object]) -> None:
        self.cycle = tuple(cycle)
        names = self.cycle if len(self.cycle) <= 9 else (*self.cycle[:5], "...", *self.cycle[-3:])
        what = "a task depends on itself" if len(self.cycle) == 2 else "a cycle, so no order exists"
        super().__init__(f"{what}: {' -> '.join(map(shorten, names))}")


class UnknownTaskError(InputError):
    """No task has this name; `task` is the task that depends on it, if any; *known* has names to suggest."""

    def __init__(self, name: object, task: Any = NOBODY, known: Iterable[object] = ()) -> None:
        self.name, self.task = name, None if task is NOBODY else task
        needed = "" if task is NOBODY else f", which task {shorten(task)!r} depends on"
        super().__init__(f"there is no task named {shorten(name)!r}{needed}{_closest(name, known)}")


class DuplicateTaskError(InputError):
    """A task name is used twice."""

    def __init__(self, name: object) -> None:
        self.name = name
        super().__init__(f"duplicate task {shorten(name)!r}")


class NotSelfContainedError(InputError):
    """The set is not a fat task: `task` depends on `parent`, which is missing, or is already executed (`parent` is None)."""

    def __init__(self, task: Any, parent: Any = NOBODY) -> None:
        self.task, self.parent = task, None if parent is NOBODY else parent
        lacks = f"depends on {shorten(parent)!r}, which is neither in the fat task nor executed"
        lacks = "is already executed" if parent is NOBODY else lacks
        super().__init__(f"not self-contained: {shorten(task)!r} {lacks}")


class StateError(InputError):
    """An impossible state: the `parent` of `task` is not executed, or the task is in another state."""

    def __init__(self, task: Any, said: str, parent: Any = None, state: str | None = None) -> None:
        self.task, self.parent = task, parent
        why = f"it is {state}" if state else f"its parent {shorten(parent)!r} is not executed"
        super().__init__(f"{shorten(task)!r} cannot be {said}: {why}")


class ShortageError(EligoError):
    """No task could be started for a long time because the machine lacks descriptors, processes, memory or disk space."""


class NotBuiltError(EligoError):
    """A part that is built from sources, such as the page, is missing."""


class ScheduleError(EligoError):
    """The order is not a schedule: `task` comes before its `parent`, or is missing (`parent` is None)."""

    def __init__(self, task: Any, parent: Any = NOBODY) -> None:
        self.task, self.parent = task, None if parent is NOBODY else parent
        if parent is NOBODY:
            super().__init__(f"not a schedule: {shorten(task)!r} is missing")
        else:
            super().__init__(f"not a schedule: {shorten(task)!r} comes before {shorten(parent)!r}, which it depends on")


class MoveError(EligoError):
    """The state of `task` does not allow this move."""

    def __init__(self, move: str, task: Any, state: str) -> None:
        self.move, self.task, self.state = move, task, state
        super().__init__(f"cannot {move} {task!r}: it is {state}")


class TaskFailedError(EligoError):
    """A task failed permanently; `result` has the results of all others."""

    def __init__(self, task: Any, why: str, result: Any = None) -> None:
        self.task, self.result = task, result
        super().__init__(f"task {shorten(task)!r} failed: {why}")


class NotHeldError(EligoError):
    """Another server holds these `workflows`; nothing of them was written."""

    def __init__(self, workflows: Iterable[str]) -> None:
        self.workflows = tuple(sorted(workflows))
        super().__init__(f"another server holds {', '.join(map(shorten, self.workflows))}")


def is_amount(value: object) -> bool:
    """Whether something is a finite number that is not negative."""
    if type(value) is float:  # the usual case; the general check is slower
        return 0 <= value < float("inf")
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    return 0 <= float(value) < float("inf")


def whole_size(size: object) -> int:
    """The argument as a size in tasks, an int. Raises `InputError` unless it is a positive integer.

    >>> whole_size(2.5)
    Traceback (most recent call last):
    eligo.errors.InputError: size must be a positive integer, got 2.5
    """
    try:
        count = None if isinstance(size, bool) else index(size)  # type: ignore[arg-type]
    except TypeError:
        count = None
    if count is None or count < 1:
        raise InputError(f"size must be a positive integer, got {size!r}")
    return count


def check_choice(what: str, name: object, choices: Iterable[str]) -> None:
    """Refuse a name that is not among the choices.

    >>> check_choice("goal", "speed", ["light", "heavy"])
    Traceback (most recent call last):
    eligo.errors.InputError: unknown goal 'speed' (choose from light, heavy)
    """
    options = list(choices)
    if not isinstance(name, str) or name not in options:
        raise InputError(f"unknown {what} {shorten(name)!r} (choose from {', '.join(options)})")


def _closest(name: object, candidates: Iterable[object]) -> str:
    """A question with the closest of the first names, if one is close."""
    from difflib import get_close_matches

    names = {str(other): other for other in islice(candidates, MOST_COMPARED)}
    for near in get_close_matches(str(name), names, n=1, cutoff=0.6):
        kind = f" (type {type(names[near]).__name__}, not {type(name).__name__})" if near == str(name) else ""
        return f"; did you mean {shorten(repr(names[near]))}{kind}?"
    return ""


def shorten(name: object, limit: int = 60) -> str:
    """A text, or a task's name, with the middle cut out if it is too long to print."""
    text = str(name)
    return text if len(text) <= limit else f"{text[: limit // 2]}...{text[-10:]}"


def counted(number: int, noun: str) -> str:
    """The number with its noun.

    >>> counted(1, "task"), counted(1738, "task")
    ('1 task', '1,738 tasks')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
