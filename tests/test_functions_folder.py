"""Functions in a folder: a later call resumes, and believes only results that are complete, current and its own."""

import asyncio
import multiprocessing
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any

import pytest

import eligo
import engine_tasks
from eligo.cli import run as cli
from eligo.errors import InputError, TaskFailedError, UnknownTaskError
from eligo.running.fingerprints import fingerprint
from eligo.running.stored_results import result_file

LONG = 60.0  # seconds that no test waits for unless something is wrong


#: the calls of functions; a global name, because what a function captures is part of its fingerprint
SEEN: list[str] = []


def called(name: str, value: Any) -> Any:
    SEEN.append(name)
    return value


def calls() -> str:
    """The calls since the last time, in alphabetic order."""
    names = "".join(sorted(SEEN))
    SEEN.clear()
    return names


def diamond(step: int = 1) -> dict[str, Any]:
    """A table: a, then b and c, then d of both."""
    return {
        "a": (lambda: called("a", [1, 2]), []),
        "b": (lambda a: called("b", [*a, step]), ["a"]),
        "c": (lambda a: called("c", len(a)), ["a"]),
        "d": (lambda b, c: called("d", {"sum": sum(b), "n": c}), ["b", "c"]),
    }


@pytest.fixture(autouse=True)
def no_calls() -> None:
    SEEN.clear()


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state of a user who has none yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "eligo"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "run"


def stored(folder: Path, task: str) -> Path:
    """The file with the result of a task."""
    return folder / "results" / result_file(task)


# Resuming


def test_a_later_call_computes_nothing_again(folder: Path) -> None:
    first = eligo.run(diamond(), folder=folder)
    assert (first.values, calls()) == ({"d": {"sum": 4, "n": 2}}, "abcd")
    second = eligo.run(diamond(), folder=folder)
    assert (second.values, second.ok, calls()) == (first.values, True, "")


def test_an_edited_function_and_what_depends_on_it_run_again(folder: Path) -> None:
    eligo.run(diamond(), folder=folder)
    calls()
    assert eligo.run(diamond(step=5), folder=folder).values == {"d": {"sum": 8, "n": 2}}
    assert calls() == "bd"


def test_new_and_removed_tasks_leave_the_results_of_others(folder: Path) -> None:
    table = diamond()
    eligo.run(table, folder=folder)
    calls()
    del table["d"]
    table["e"] = (len, ["b"])
    assert eligo.run(table, folder=folder).values == {"c": 2, "e": 3}
    assert calls() == ""


def test_a_result_that_nobody_needs_any_more_is_neither_read_nor_required(folder: Path) -> None:
    eligo.run(diamond(), folder=folder)
    stored(folder, "a").unlink()
    stored(folder, "b").write_bytes(b"damaged")
    calls()
    assert eligo.run(diamond(), folder=folder).values == {"d": {"sum": 4, "n": 2}}
    assert calls() == ""
    assert eligo.run(diamond(), folder=folder, keep=["b"]).values["b"] == [1, 2, 1]
    assert calls() == "abcd"  # b needs a, and whatever depends on either follows


def test_tasks_run_again_on_request(folder: Path) -> None:
    eligo.run(diamond(), folder=folder)
    calls()
    eligo.run(diamond(), folder=folder, again=["c"])
    assert calls() == "cd"


def test_a_failed_task_is_tried_again_by_a_later_call(folder: Path) -> None:
    table = {"a": (list, []), "b": (engine_tasks.raising, ["a"]), "c": (len, ["b"])}
    with pytest.raises(TaskFailedError):
        eligo.run(table, folder=folder)
    result = eligo.run({**table, "b": (list, ["a"])}, folder=folder)
    assert (result.values, result.begun) == ({"c": 0}, 2)


def test_one_function_for_all_tasks_resumes(folder: Path) -> None:
    def double(task: int) -> int:
        called(str(task), None)
        return 2 * task

    eligo.run({1: [], 2: [1]}, double, folder=folder)
    assert eligo.run({1: [], 2: [1], 3: [2]}, double, folder=folder).values == {1: 2, 2: 4, 3: 6}
    assert calls() == "123"
    eligo.run({1: [], 2: [1], 3: [2]}, double, folder=folder, again=[2])
    assert calls() == "23"


def test_async_functions_resume(folder: Path) -> None:
    async def double(task: int) -> int:
        await asyncio.sleep(0)
        called(str(task), None)
        return 2 * task

    for _ in range(2):
        assert eligo.run({1: [], 2: [1]}, double, folder=folder).values == {1: 2, 2: 4}
    assert calls() == "12"


def test_a_dask_graph_resumes_and_notices_an_edit(folder: Path) -> None:
    def record(value: int) -> int:
        called(str(value), None)
        return value + 1

    graph: dict[str, Any] = {"a": 1, "b": (record, "a"), "c": (record, "b"), "d": (sum, ["b", "c"])}
    for _ in range(2):
        assert eligo.run(eligo.from_dask(graph), folder=folder).values == {"d": 5}
    assert calls() == "12"
    graph["c"] = (lambda value: record(value) * 2, "b")
    assert eligo.run(eligo.from_dask(graph), folder=folder).values == {"d": 8}
    assert calls() == "2"


def test_functions_on_an_executor_resume(folder: Path) -> None:
    table = {"a": (engine_tasks.soon, []), "b": (str, ["a"])}
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert eligo.run(table, on=pool, folder=folder).values == {"b": "7"}
        again = eligo.run(table, on=pool, folder=folder)
    assert (again.values, again.begun) == ({"b": "7"}, 0)


# Which results are believed


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: data + b" ", lambda data: b"", lambda data: b"{}"]
)
@pytest.mark.parametrize("serializer", ["json", "pickle"])
def test_a_damaged_result_is_computed_again(folder: Path, serializer: str, damage: Callable[[bytes], bytes]) -> None:
    before = eligo.run(diamond(), folder=folder, serializer=serializer).values
    calls()
    file = stored(folder, "d")
    file.write_bytes(damage(file.read_bytes()))
    assert eligo.run(diamond(), folder=folder, serializer=serializer).values == before
    assert calls() == "d"


class Trap:
    """A value that runs code when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_a_pickle_of_somebody_else_is_never_loaded(folder: Path, tmp_path: Path, state: Path) -> None:
    eligo.run(diamond(), folder=folder, serializer="pickle")
    before = stored(folder, "d").read_bytes()
    stored(folder, "d").write_bytes(before[:32] + pickle.dumps(Trap(tmp_path / "sprung")))
    assert eligo.run(diamond(), folder=folder, serializer="pickle").values == {"d": {"sum": 4, "n": 2}}
    assert not (tmp_path / "sprung").exists()
    calls()
    (state / "secret").unlink()  # as if another user had the folder
    eligo.run(diamond(), folder=folder, serializer="pickle")
    assert "d" in calls()
    assert stored(folder, "d").read_bytes()[:32] != before[:32]


def test_a_result_is_not_taken_for_that_of_another_task(folder: Path) -> None:
    eligo.run(diamond(), folder=folder, keep="all", serializer="pickle")
    calls()
    stored(folder, "b").write_bytes(stored(folder, "c").read_bytes())
    values = eligo.run(diamond(), folder=folder, keep="all", serializer="pickle").values
    assert values["b"] == [1, 2, 1]


def test_nobody_else_can_read_the_secret(folder: Path, state: Path, tmp_path: Path) -> None:
    eligo.run(diamond(), folder=folder)
    assert not (state / "secret").exists()  # JSON needs none
    eligo.run(diamond(), folder=folder, serializer="pickle")
    assert (state / "secret").stat().st_mode & 0o777 == 0o600
    (state / "secret").write_bytes(b"short")
    with pytest.raises(InputError, match="secret: damaged: delete it"):
        eligo.run(diamond(), folder=tmp_path / "other", serializer="pickle")
    assert not (tmp_path / "other").exists()


def test_a_result_that_cannot_be_loaded_any_more_is_named(folder: Path) -> None:
    def fail(data: bytes) -> Any:
        raise AttributeError("no class Old")

    own = SimpleNamespace(dumps=pickle.dumps, loads=pickle.loads)
    eligo.run(diamond(), folder=folder, serializer=own)
    own.loads = fail
    with pytest.raises(InputError, match=r"/d: cannot be loaded as .*: AttributeError: no class Old: delete this file"):
        eligo.run(diamond(), folder=folder, serializer=own)


# Serializers


@pytest.mark.parametrize("value", [None, True, 1, 0.1, float("inf"), "\ud800ä", [1, [2]], {"a": {"b": []}}])
def test_json_keeps_what_it_can_express(folder: Path, value: Any) -> None:
    for _ in range(2):
        assert eligo.run({"a": (lambda: value, [])}, folder=folder).values == {"a": value}


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ((1, 2), "has no tuple"),
        ({1: 2}, "does not allow a key of type int"),
        ({1}, "has no set"),
        (Lock(), "has no lock"),
    ],
)
def test_a_value_that_cannot_be_stored_is_the_error_of_its_task(folder: Path, value: Any, why: str) -> None:
    table = {"a": (lambda: value, []), "b": (id, ["a"]), "c": (list, [])}
    result = eligo.run(table, folder=folder, check=False)
    assert result.values == {"c": []}
    assert list(result.failed) == ["a"]
    assert f"its result cannot be stored as json: JSON {why}" in str(result.failed["a"])
    with pytest.raises(KeyError):
        result.values["b"]


def test_pickle_and_serializers_of_the_user_store_other_values(folder: Path) -> None:
    table: dict[str, Any] = {"a": (lambda: (1, {2}), []), "b": (Lock, [])}
    for _ in range(2):
        result = eligo.run(table, folder=folder, serializer="pickle", check=False)
        assert (result.values, list(result.failed)) == ({"a": (1, {2})}, ["b"])
    reverse = SimpleNamespace(dumps=lambda value: value[::-1].encode(), loads=lambda data: data.decode()[::-1])
    for _ in range(2):
        assert eligo.run({"a": (lambda: "abc", [])}, folder=folder, serializer=reverse).values == {"a": "abc"}
    assert stored(folder, "a").read_bytes().endswith(b"cba")


def test_another_serializer_computes_again(folder: Path) -> None:
    eligo.run(diamond(), folder=folder)
    calls()
    eligo.run(diamond(), folder=folder, serializer="pickle")
    assert calls() == "abcd"


def test_arguments_without_an_effect_are_refused(folder: Path) -> None:
    table: dict[str, Any] = {"a": (list, [])}
    with pytest.raises(
        InputError, match="serializer must be 'json', 'pickle' or an object with dumps and loads, got 'x'"
    ):
        eligo.run(table, folder=folder, serializer="x")
    with pytest.raises(InputError, match="serializer has no effect unless functions run in a folder"):
        eligo.run(table, serializer="pickle")
    with pytest.raises(InputError, match="again has no effect on functions without a folder"):
        eligo.run(table, again=["a"])
    with pytest.raises(InputError, match="targets has no effect on functions"):
        eligo.run(table, folder=folder, targets=["a"])
    with pytest.raises(UnknownTaskError, match="no task named 'tpyo'"):
        eligo.run(table, folder=folder, again=["tpyo"])
    assert not folder.exists()


# Fingerprints


def helper() -> int:
    return 1


def test_a_fingerprint_sees_what_a_function_consists_of() -> None:
    def calling(value: Any) -> Callable[[], Any]:
        return lambda: (helper(), value)

    values: list[Any] = [1, 2, (1, 2), [1, 2], {"a": 1}, b"1", {1, 2}, SimpleNamespace(x=1), SimpleNamespace(x=2)]
    functions: list[Any] = [
        *map(calling, values),
        *(partial(max, value) for value in values),
        helper,
        len,
        "a".upper,
        "b".upper,
    ]
    assert len(set(map(fingerprint, functions))) == len(functions)
    assert [fingerprint(calling(value)) for value in values] == [fingerprint(calling(value)) for value in values]


def test_a_fingerprint_sees_an_edited_helper_of_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    def caller() -> int:
        return next(helper() for _ in range(2))

    before = fingerprint(caller)
    monkeypatch.setitem(globals(), "helper", lambda: 2)
    assert fingerprint(caller) != before


def test_a_value_too_deep_for_a_fingerprint_is_refused(folder: Path) -> None:
    deep: list[Any] = []
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(InputError, match="captures a value that is nested too deeply"):
        eligo.run({"a": (lambda: deep, [])}, folder=folder)


def test_fingerprints_are_the_same_in_every_process() -> None:
    code = (
        "from eligo.running.fingerprints import fingerprint\n"
        "from functools import partial\n"
        "def even(n): return n == 0 or odd(n - 1)\n"
        "def odd(n): return n in {'a', 'b', 'c'} or even(n - 1)\n"
        "class Call:\n"
        "    def __init__(self): self.me, self.words = self, {'x', 'y', 'z'}\n"
        "    def __call__(self): return helper()\n"
        "print(*map(fingerprint, (even, Call(), Call().__call__, partial(print, Call(), sep=''), dict.fromkeys)))\n"
    )
    said = [
        subprocess.run(
            [sys.executable, "-c", code], check=True, capture_output=True, env={**os.environ, "PYTHONHASHSEED": seed}
        ).stdout
        for seed in ("1", "2")
    ]
    assert said[0] == said[1]
    assert len(set(said[0].split())) == 5


# Kills

CHAINS, LENGTH = 4, 25
SCRIPT = f"""
import os, sys, time, eligo
log = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_APPEND)

def add(name, value):
    time.sleep(0.005)
    os.write(log, (name + "\\n").encode())
    return value + 1

def step(name):
    return lambda *values: add(name, *values or (0,))

table = {{}}
for c in range({CHAINS}):
    for i in range({LENGTH}):
        table[f"{{c}}.{{i}}"] = (step(f"{{c}}.{{i}}"), [f"{{c}}.{{i - 1}}"] if i else [])
result = eligo.run(table, folder=sys.argv[1], workers=2, serializer="pickle")
print(sorted(result.values.items()))
"""


def test_after_any_kill_nothing_is_lost_and_little_is_repeated(folder: Path, tmp_path: Path) -> None:
    script, log = tmp_path / "script.py", tmp_path / "log"
    script.write_text(SCRIPT)
    words = [sys.executable, str(script), str(folder), str(log)]

    def begun() -> int:
        return len(log.read_text().splitlines()) if log.exists() else 0

    for _ in range(4):
        before, until = begun(), time.monotonic() + LONG
        with subprocess.Popen(words, stdout=subprocess.DEVNULL) as process:
            while begun() < before + 25 and process.poll() is None and time.monotonic() < until:
                time.sleep(0.01)
            process.kill()
    said = subprocess.run(words, check=True, capture_output=True, text=True, timeout=LONG).stdout
    assert said.strip() == str([(f"{c}.{LENGTH - 1}", LENGTH) for c in range(CHAINS)])
    tasks = log.read_text().splitlines()
    assert len(set(tasks)) == CHAINS * LENGTH
    assert len(tasks) < 2 * CHAINS * LENGTH


# What the command says of such a folder


def test_the_command_shows_a_folder_of_functions_and_refuses_to_run_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def says(*words: object) -> tuple[int, str]:
        code = cli([*map(str, words)])
        said = capsys.readouterr()
        return code, said.out + said.err

    table = {"a": (list, []), "b": (engine_tasks.raising, ["a"]), "c": (len, ["b"])}
    eligo.run(table, folder=folder, check=False)
    assert "1 of 3 tasks done, 1 failed, 1 blocked" in says("status", folder)[1]
    assert "failed permanently" in says("why", folder, "b")[1]
    code, text = says("log", folder, "b", "--err")
    assert (code, text.splitlines()[0]) == (0, "Traceback (most recent call last):")
    assert says("report", folder)[0] == 0
    for words in (["run", "--resume", folder], ["run", "--resume", folder, "-n"], ["run", folder / "workflow.json"]):
        code, text = says(*words)
        assert (code, "task 'a' is a Python function: resume this run in Python" in text) == (2, True)
