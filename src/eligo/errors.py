"""Everything that can go wrong, each with its witness.

EligoError
├── InputError            what was given is wrong, with path and line where it came from a file
│   ├── FormatError       a text is not in its format
│   ├── UnhonouredError   a file asks for what a run does not do: carries the words by which that is ignored
│   ├── CycleError        carries the cycle
│   ├── UnknownTaskError  carries the name
│   ├── DuplicateTaskError    carries the name
│   ├── NotSelfContainedError    carries the task and the parent that a fat task lacks
│   └── StateError        no execution stands there: carries the task and the parent that is not executed
├── ScheduleError         an order is no schedule: carries the two tasks, or the missing one
├── TaskFailedError       a task that was run failed: carries it, and what came of the others
├── ShortageError         this machine has no room for any process more
├── NotHeldError          workflows that another server holds now: carries their ids
└── MoveError             a move that the pebble game forbids: carries the task and its state
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from numbers import Real
from typing import Any, Self

#: where no task is meant: None may be one
NOBODY: Any = object()
#: names that a misspelt one is compared with
MOST_COMPARED = 10_000


class EligoError(Exception):
    """The base of every error that eligo raises on purpose."""


class InputError(EligoError, ValueError):
    """What was given is not what the function takes; `path` and `line` say where, once a reader has set them.

    `remedy` names the argument that would help, which the command knows under another name.
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
        """The same error, saying the line where it knows none yet."""
        self.line = line if self.line is None else self.line
        return self

    def cured_by(self, argument: str) -> Self:
        """The same error, saying which argument would help."""
        self.remedy = argument
        return self

    def located(self, path: str, line: int | None = None) -> "InputError":
        """The same error, saying in which file it was found."""
        self.path, self.line = path, self.line if line is None else line
        return self


class FormatError(InputError):
    """A text is not in the format it claims to be in."""

    def __init__(self, message: str, path: str | None = None, line: int | None = None) -> None:
        super().__init__(message)
        self.message, self.path, self.line = message, path, line


class UnhonouredError(InputError):
    """A file asks for what a run does not do; `keys` are the words by which that is ignored."""

    def __init__(self, message: str, keys: Sequence[str]) -> None:
        self.message, self.keys = message, tuple(keys)
        super().__init__(f"{message}; ignore={self.keys!r} runs it anyway")


class CycleError(InputError):
    """The arcs go round in a circle; `cycle` lists its tasks, the first one repeated at the end."""

    def __init__(self, cycle: Sequence[object]) -> None:
        self.cycle = tuple(cycle)
        shown = self.cycle if len(self.cycle) <= 9 else (*self.cycle[:5], "...", *self.cycle[-3:])
        what = "a task that must come before itself" if len(self.cycle) == 2 else "a cycle, so no order exists"
        super().__init__(f"{what}: {' -> '.join(map(shorten, shown))}")


class UnknownTaskError(InputError):
    """A name that no task has; `task` is the task that needs it, where one does, and *known* has the names to choose from."""

    def __init__(self, name: object, task: Any = NOBODY, known: Iterable[object] = ()) -> None:
        self.name, self.task = name, None if task is NOBODY else task
        needed = "" if task is NOBODY else f", which task {shorten(task)!r} needs"
        super().__init__(f"there is no task named {shorten(name)!r}{needed}{_closest(name, known)}")


class DuplicateTaskError(InputError):
    """A name given to two tasks, or listed twice where once is meant."""

    def __init__(self, name: object) -> None:
        self.name = name
        super().__init__(f"the task {shorten(name)!r} is named twice")


class NotSelfContainedError(InputError):
    """A set that is no fat task: `task` needs `parent`, which it lacks, or is executed already (`parent` is None)."""

    def __init__(self, task: Any, parent: Any = NOBODY) -> None:
        self.task, self.parent = task, None if parent is NOBODY else parent
        lacks = f"needs {shorten(parent)!r}, which is neither in the fat task nor executed"
        lacks = "is executed" if parent is NOBODY else lacks
        super().__init__(f"not self-contained: {shorten(task)!r} {lacks}")


class StateError(InputError):
    """A state that no execution has: `task` is said to be somewhere, but its `parent` is not executed, or it is elsewhere."""

    def __init__(self, task: Any, said: str, parent: Any = None, state: str | None = None) -> None:
        self.task, self.parent = task, parent
        why = f"it is {state}" if state else f"its parent {shorten(parent)!r} is not executed"
        super().__init__(f"{shorten(task)!r} cannot be {said}: {why}")


class ShortageError(EligoError):
    """No task could be started for long, since the machine lacks descriptors, processes, memory or space."""


class NotBuiltError(EligoError):
    """What is built from sources, such as the page, is not there."""


class ScheduleError(EligoError):
    """An order that is no schedule: `task` comes before its `parent`, or is left out (`parent` is None)."""

    def __init__(self, task: Any, parent: Any = NOBODY) -> None:
        self.task, self.parent = task, None if parent is NOBODY else parent
        if parent is NOBODY:
            super().__init__(f"not a schedule: {shorten(task)!r} is left out")
        else:
            super().__init__(f"not a schedule: {shorten(task)!r} comes before {shorten(parent)!r}, which it needs")


class MoveError(EligoError):
    """A move that the state of `task` does not allow."""

    def __init__(self, move: str, task: Any, state: str) -> None:
        self.move, self.task, self.state = move, task, state
        super().__init__(f"cannot {move} {task!r}: it is {state}")


class TaskFailedError(EligoError):
    """A task that was run failed for good; `result` has what came of all the others."""

    def __init__(self, task: Any, why: str, result: Any = None) -> None:
        self.task, self.result = task, result
        super().__init__(f"task {shorten(task)!r} failed: {why}")


class NotHeldError(EligoError):
    """Something was to be kept of `workflows` that this server does not hold, or not any more: nothing of it was kept."""

    def __init__(self, workflows: Iterable[str]) -> None:
        self.workflows = tuple(sorted(workflows))
        super().__init__(f"this server does not hold {', '.join(map(shorten, self.workflows))}: another one does")


def is_amount(value: object) -> bool:
    """Whether something is a number that is not negative and has an end."""
    if type(value) is float:  # which it mostly is, and the rest takes its time
        return 0 <= value < float("inf")
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    return 0 <= float(value) < float("inf")


def check_choice(what: str, name: object, choices: Iterable[str]) -> None:
    """Refuse a name that is none of the choices.

    >>> check_choice("goal", "speed", ["light", "heavy"])
    Traceback (most recent call last):
    eligo.errors.InputError: there is no goal 'speed'; there are light, heavy
    """
    known = list(choices)
    if not isinstance(name, str) or name not in known:
        raise InputError(f"there is no {what} {shorten(name)!r}; there are {', '.join(known)}")


def _closest(name: object, known: Iterable[object]) -> str:
    """A question after the name that was meant, where one of the first names is close to it."""
    from difflib import get_close_matches

    names = {str(other): other for other in islice(known, MOST_COMPARED)}
    for near in get_close_matches(str(name), names, n=1, cutoff=0.6):
        kind = f" (type {type(names[near]).__name__}, not {type(name).__name__})" if near == str(name) else ""
        return f"; did you mean {shorten(repr(names[near]))}{kind}?"
    return ""


def shorten(name: object, limit: int = 60) -> str:
    """A text, or a task's name as text, cut in the middle where it is too long to print."""
    text = str(name)
    return text if len(text) <= limit else f"{text[: limit // 2]}...{text[-10:]}"
