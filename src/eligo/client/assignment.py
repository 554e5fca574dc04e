"""Parses the server's assignments without trusting them; invalid values are refused in one sentence."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from eligo.client.scratch import checked_name
from eligo.client.transfers import HashedFile, parse_file
from eligo.errors import FormatError, InputError, shorten
from eligo.launch import Launch, launch_of

T = TypeVar("T")
MOST_TASKS = 10_000  # per answer, as on the server
WORD = re.compile(r"[A-Za-z0-9._-]{1,200}")


@dataclass(frozen=True, slots=True)
class Assigned:
    """One task for which the client has a lease."""

    lease: str
    task: str
    attempt: int
    workflow: str
    command: str | tuple[str, ...]
    #: time limit in seconds
    timeout: float | None = None
    cores: int = 1
    #: bytes
    memory: int | None = None
    #: the input files; None: written by an earlier task of the same grant
    inputs: Mapping[str, HashedFile | None] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    #: files for later tasks of the same grant only
    inside: tuple[str, ...] = ()
    signature: str | None = None
    #: what the owner signed apart from the command: inputs, outputs, workflow and environment
    signed: Mapping[str, Any] = field(default_factory=dict)
    #: how its command is run
    launch: Launch | None = None
    #: whether it may add tasks
    grow: bool = False
    #: why the task cannot be run, if its description is invalid
    wrong: str | None = None

    @property
    def in_container(self) -> bool:
        """Whether its command runs in a container."""
        return self.launch is not None and self.launch.container is not None

    @property
    def makes(self) -> tuple[str, ...]:
        """The files that it writes."""
        return self.outputs + self.inside

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables set by the owner."""
        return {**self.signed.get("environment", {}), **(self.launch.env if self.launch else {})}

    def reads(self) -> set[str]:
        """The files that it reads, as far as declared."""
        return {*self.inputs, *map(str, self.signed.get("inputs", ()))}


def assignments(reply: Mapping[str, Any]) -> list[tuple[Assigned, ...]]:
    """The grants in a server's reply; a task with an invalid description has the reason in `wrong`."""
    grants = _typed_value(reply, "grants", list, [])
    if sum(len(_typed_value(grant, "tasks", list)) for grant in grants) > MOST_TASKS:
        raise FormatError(f"invalid answer from the server: more than {MOST_TASKS:,} tasks")
    batches = (tuple(_parse_task(words, workflow_id(grant)) for words in grant["tasks"]) for grant in grants)
    return [grant for grant in batches if grant]


def workflow_id(grant: Mapping[str, Any]) -> str:
    """The id of a grant's workflow, checked because tasks find it in their environment."""
    return plain_word(_typed_value(grant, "workflow", str), "workflow")


def plain_word(text: object, name: str) -> str:
    """An id or token from the server, checked to be safe in headers, addresses and scripts."""
    if not isinstance(text, str) or not WORD.fullmatch(text):
        raise FormatError(f"invalid answer from the server: {name!r} is {shorten(repr(text))}")
    return text


def _parse_task(words: Mapping[str, Any], workflow: str) -> Assigned:
    lease = _typed_value(words, "lease", str)
    try:
        task, attempt = _typed_value(words, "task", str), _typed_value(words, "attempt", int, 1)
        return Assigned(lease, task, attempt, workflow, **_details(words))
    except InputError as error:
        return Assigned(lease, shorten(words.get("task")), 1, workflow, "", wrong=str(error))


def _details(words: Mapping[str, Any]) -> dict[str, Any]:
    timeout, memory = (_typed_value(words, name, (int, float), None) for name in ("timeout", "memory"))
    inputs = _typed_value(words, "inputs", dict, {})
    return {
        "command": _command(words),
        "timeout": timeout,
        "cores": max(1, math.ceil(_typed_value(words, "cores", (int, float), 1))),
        "memory": None if memory is None else int(memory),
        "inputs": {checked_name(name): None if file is None else parse_file(file) for name, file in inputs.items()},
        "outputs": tuple(map(checked_name, _typed_value(words, "outputs", list, []))),
        "inside": tuple(map(checked_name, _typed_value(words, "inside", list, []))),
        "signature": _typed_value(words, "signature", str, None),
        "launch": _launch(words),
        "grow": words.get("grow") is True,
        "signed": _parse_signed({} if words.get("signed") is None else _typed_value(words, "signed", dict)),
    }


def _command(words: Mapping[str, Any]) -> str | tuple[str, ...]:
    command = _typed_value(words, "command", (str, list))
    if isinstance(command, str):
        return command
    if not command or not all(isinstance(word, str) for word in command):
        raise FormatError(f"command must be a non-empty list of strings, got {shorten(repr(command))}")
    return tuple(command)


def _launch(words: Mapping[str, Any]) -> Launch | None:
    """How the command is run; its folder is inside the task's own."""
    launch = launch_of(_typed_value(words, "launch", dict, {}))
    if launch is not None and launch.dir is not None:
        checked_name(launch.dir)
    return launch


def _parse_signed(words: Mapping[str, Any]) -> Mapping[str, Any]:
    environment = _typed_value(words, "environment", dict, {})
    lists = [_typed_value(words, name, list, []) for name in ("inputs", "outputs")]
    if not all(isinstance(word, str) for words in (*lists, environment.values()) for word in words):
        raise FormatError("signed inputs, outputs and environment must consist of strings")
    if any("=" in name or "\0" in name + word for name, word in environment.items()):
        raise FormatError("signed environment has an invalid variable name or value")
    return words


_NEEDED: Any = object()


def _typed_value(words: object, name: str, kind: type[T] | tuple[type, ...], default: Any = _NEEDED) -> Any:
    """A value of an object, checked for its type."""
    value = words.get(name, default) if isinstance(words, Mapping) else _NEEDED
    if value is default and default is not _NEEDED:
        return value
    odd = isinstance(value, bool) or (isinstance(value, float) and not math.isfinite(value))
    if not isinstance(value, kind) or odd:
        raise FormatError(f"invalid answer from the server: {name!r} is missing or has the wrong type")
    return value
