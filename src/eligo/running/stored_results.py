"""The results of functions in the folder of a run, from which a later call of `eligo.run` continues."""

import hmac
import json
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from traceback import format_exception
from typing import Any, Protocol, cast
from zlib import crc32

from eligo.engines import Ending
from eligo.errors import InputError, shorten
from eligo.execution import EXECUTED, Execution
from eligo.names import Name
from eligo.running.commands import SHARD, Commands, log_name
from eligo.running.folder import RunFolder
from eligo.running.functions import Callables, Values
from eligo.running.task_files import TaskFiles
from eligo.user_state import user_secret
from eligo.workflow import FUNCTION, Workflow

RESULTS = "results"
SIGNATURE = 32  # bytes before the data of a file
CURE = "return another type, or pass serializer='pickle'"


class Serializer(Protocol):
    """Turns values into bytes and back, like the modules pickle and cloudpickle."""

    def dumps(self, value: Any, /) -> bytes:
        """The bytes for a value."""
        ...

    def loads(self, data: bytes, /) -> Any:
        """The value of these bytes."""
        ...


class Json:
    """JSON; refuses values that would come back changed, such as tuples and numbers as keys."""

    def dumps(self, value: Any) -> bytes:
        """See `Serializer`.

        >>> Json().dumps([1, "a"]), Json().loads(b"[1]")
        (b'[1, "a"]', [1])
        >>> Json().dumps((1, 2))
        Traceback (most recent call last):
        TypeError: JSON has no tuple: return another type, or pass serializer='pickle'
        """
        _check_json(value)
        return json.dumps(value).encode("ascii")

    def loads(self, data: bytes) -> Any:
        """See `Serializer`."""
        return json.loads(data)


def _check_json(value: object) -> None:
    if type(value) is list:
        for part in value:
            _check_json(part)
    elif type(value) is dict:
        for key, part in value.items():
            if type(key) is not str:
                raise TypeError(f"JSON does not allow a key of type {type(key).__name__}: {CURE}")
            _check_json(part)
    elif type(value) not in (str, int, float, bool, type(None)):
        raise TypeError(f"JSON has no {type(value).__name__}: {CURE}")


@dataclass(frozen=True, eq=False)
class ResultFolder:
    """A folder with one file per result: a signature, and the bytes of the serializer."""

    path: Path
    serializer: Serializer
    name: str
    #: the key of signatures
    secret: bytes

    def _sign(self, file: str, data: bytes) -> bytes:
        return hmac.digest(self.secret, f"{self.name}\0{file}\0".encode() + data, "sha256")

    def write(self, file: str, value: Any) -> None:
        """Store a value; the file is complete or absent."""
        data = self.serializer.dumps(value)
        if not isinstance(data, bytes):
            raise TypeError(f"dumps must return bytes, got {type(data).__name__}")
        target = self.path / file
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(f"{target.name}.part")
        draft.write_bytes(self._sign(file, data) + data)
        os.replace(draft, target)

    def _data(self, file: str) -> bytes | None:
        """The bytes for a value; None if the file is missing, damaged, or of another user or serializer."""
        with suppress(OSError):
            content = (self.path / file).read_bytes()
            signature, data = content[:SIGNATURE], content[SIGNATURE:]
            return data if hmac.compare_digest(signature, self._sign(file, data)) else None
        return None

    def holds(self, file: str) -> bool:
        """Whether the value in a file can be read."""
        return self._data(file) is not None

    def read(self, file: str) -> Any:
        """The value in a file."""
        data = self._data(file)
        if data is None:
            raise InputError(f"{self.path / file}: missing or damaged: run the workflow again to compute this result")
        try:
            return self.serializer.loads(data)
        except Exception as error:  # a serializer may raise anything, for example because a class was renamed
            why = f"cannot be loaded as {self.name}: {type(error).__name__}: {error}"
            raise InputError(f"{self.path / file}: {why}: delete this file to compute the result again") from error


def result_folder(path: Path, serializer: "str | Serializer") -> ResultFolder:
    """The folder of results for a serializer, given by its name or as an object.

    JSON is only protected against damage. Anything else could run code when it is loaded, so it counts only if the present
    user has signed it.
    """
    if serializer == "json":
        return ResultFolder(path, Json(), "json", b"eligo")
    if serializer == "pickle":
        import pickle

        return ResultFolder(path, cast(Serializer, pickle), "pickle", user_secret())
    if isinstance(serializer, str) or not all(callable(getattr(serializer, name, None)) for name in ("dumps", "loads")):
        options = "'json', 'pickle' or an object with dumps and loads"
        raise InputError(f"serializer must be {options}, got {shorten(repr(serializer))}")
    name = str(getattr(serializer, "__name__", type(serializer).__qualname__))
    return ResultFolder(path, serializer, name, user_secret())


def described(callables: Callables) -> Workflow:
    """The workflow with each function as the command of its task, and the file of its result as the only output."""
    flow = callables.flow
    details = {
        task: replace(flow.task(task), command=(FUNCTION, *callables.identity(task)), inputs=(), outputs=(file,))
        for task, file in zip(flow.dag.tasks, map(result_file, flow.dag.labels), strict=True)
    }
    return Workflow(flow.dag, details, flow.name, history=flow.history)


def result_file(label: str) -> str:
    """The file for the result of a task, in one of a thousand folders; it is the same in an extended workflow."""
    return f"{crc32(label.encode()) % SHARD:03d}/{log_name(label)}"


@dataclass(frozen=True, eq=False)
class ResultFiles(TaskFiles):
    """The files of results as the outputs of their tasks; a missing file counts only if the user or another task needs it."""

    results: ResultFolder
    is_wanted: Callable[[Name], bool]
    _checked: dict[str, bool] = field(default_factory=dict)

    def _is_there(self, file: str) -> bool:
        if file not in self._checked:
            self._checked[file] = self.results.holds(file)
        return self._checked[file]

    def _is_owed(self, file: str, v: int, done: Collection[int]) -> bool:
        return self.is_wanted(self.flow.dag.tasks[v]) or super()._is_owed(file, v, done)


class StoredValues(Values):
    """Values that are also stored in files, from which those of an earlier call are read once they are used."""

    durable = True

    def __init__(
        self, takes: Mapping[Name, Collection[Name]], keep: Collection[Name], results: ResultFolder, flow: Workflow
    ) -> None:
        super().__init__(takes, keep)
        self._results, self._flow = results, flow
        self._done: Set[Name] = frozenset()

    def resume(self, done: Set[Name]) -> None:
        """Continue after these tasks: read the results that the user wants."""
        self._done = done
        for task in done:
            self.drop_parents(task)
        for task in filter(self.is_wanted, done):
            self[task] = self._read(task)

    def refusal(self, ending: Ending) -> str | None:
        """Store the value of a successful task; returns why that is impossible, or None."""
        try:
            self._results.write(self._file_of(ending.task), ending.value)
        except Exception as error:  # a serializer may raise anything
            return f"its result cannot be stored as {self._results.name}: {error}"
        return None

    def _file_of(self, task: Name) -> str:
        return self._flow.task(task).outputs[0]

    def _read(self, task: Name) -> Any:
        return self._results.read(self._file_of(task))

    def __missing__(self, task: Name) -> Any:
        if task not in self._done or not self.is_in_use(task):
            super().__missing__(task)
        self[task] = self._read(task)
        return self[task]


def resume_functions(
    folder: RunFolder,
    callables: Callables,
    keep: Collection[Name],
    serializer: "str | Serializer",
    again: Iterable[Name],
) -> tuple[Execution, StoredValues]:
    """Resume a run of functions. A finished one runs again if it changed, or if a result that is needed cannot be read."""
    results = result_folder(folder.path / RESULTS, serializer)
    flow = described(callables)
    values = StoredValues(callables.takes, keep, results, flow)
    files = ResultFiles(flow, str(results.path), results, values.is_wanted)
    resumed = folder.resume(flow)
    requested = frozenset(map(flow.dag.number, again))
    redone = files.to_redo(resumed.execution.numbers(EXECUTED), requested)._replace(requested=requested)
    resumed = folder.redo(flow, resumed, redone)
    values.resume(resumed.execution.executed)
    folder.begin(flow, resumed)
    return resumed.execution, values


def log_exception(logs: Commands, ending: Ending) -> None:
    """Write the traceback of a failed function where `eligo log` finds it."""
    if ending.attempt.failure is None or not isinstance(ending.value, BaseException):
        return
    path = Path(logs.log(ending.task, ending.attempt.attempt)[1])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(format_exception(ending.value)), "utf-8", "backslashreplace")
