"""Parsl's interchange and a pool of one worker, on loopback only: what begins when is what the tasks themselves say."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("parsl") is None:
    pytest.skip('NOT TESTED: the plug-in for Parsl needs pip install "eligo[parsl]"', allow_module_level=True)

import parsl
from parsl.executors import HighThroughputExecutor, ThreadPoolExecutor

from eligo.errors import InputError
from eligo.plugins.parsl import ParslPriorities, numbers

NAP = 0.1  # more than a message takes from worker to kernel and back
#: roots with ever more children, the best last; all are known before the first is begun
FANS: dict[str, list[str]] = {f"root{i}": [] for i in range(3)} | {
    f"child{i}{j}": [f"root{i}"] for i in range(3) for j in range(i + 1)
}
BEST_FIRST = ["root2", "root1", "root0"]


def pool(**options: Any) -> HighThroughputExecutor:
    return HighThroughputExecutor(
        label="pool",
        address="127.0.0.1",
        max_workers_per_node=1,
        cores_per_worker=1e-6,
        provider=parsl.providers.LocalProvider(init_blocks=1, min_blocks=1, max_blocks=1),  # type: ignore[no-untyped-call]
        **options,
    )


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("parsl")
    executors = [pool(prefetch_capacity=0), ThreadPoolExecutor(label="threads", max_threads=1)]
    config = parsl.Config(
        executors=executors, run_dir=str(folder), strategy="none", retries=1, initialize_logging=False
    )
    with (
        pytest.MonkeyPatch.context() as patch
    ):  # the programs of Parsl are beside this Python, and its workers need this file
        patch.setenv("PATH", os.path.dirname(sys.executable), prepend=os.pathsep)
        patch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
        found = parsl.DataFlowKernel(config)
        yield found
        found.cleanup()


@pytest.fixture(scope="module")
def ranked(kernel: Any) -> Any:
    """The same kernel from then on: tests of it without come first."""
    ParslPriorities(kernel, settle=0.1)
    return kernel


def work(name: str, *_parents: object) -> tuple[float, str]:
    begun = time.time()
    time.sleep(NAP)
    return begun, name


def fails_once(folder: str) -> str:
    if not Path(folder, "tried").exists():
        Path(folder, "tried").touch()
        raise OSError("not yet")
    return "well"


def broken() -> None:
    raise ValueError("this task is broken")


def app(kernel: Any, function: Any, where: str = "pool") -> Any:
    return parsl.python_app(function, data_flow_kernel=kernel, executors=[where])


def called(kernel: Any, needs: Mapping[str, list[str]]) -> dict[str, Any]:
    """The future of every task."""
    running, futures = app(kernel, work), dict[str, Any]()
    for name, parents in needs.items():
        futures[name] = running(name, *(futures[parent] for parent in parents))
    return futures


def begun(futures: Mapping[str, Any]) -> list[str]:
    return [name for _, name in sorted(future.result(timeout=60) for future in futures.values())]


def test_by_itself_parsl_begins_what_is_called_first(kernel: Any) -> None:
    assert begun(called(kernel, FANS))[:3] == BEST_FIRST[::-1]


def noted(folder: str, number: int) -> int:
    """Twice the number, after a line in a file that says so: what is remembered is not run."""
    with Path(folder, "ran").open("a") as log:
        log.write(f"{number}\n")
    if number < 0:
        raise ValueError("no such number")
    return 2 * number


def remembered(kernel: Any, folder: Path) -> dict[str, Any]:
    """What becomes of memoised calls: the same again, one that needs a remembered one, a failure and its repetition."""
    doubling = parsl.python_app(noted, data_flow_kernel=kernel, executors=["pool"], cache=True)
    first = doubling(str(folder), 3)
    again = doubling(str(folder), first.result(timeout=60) // 2)
    calls = {"again": again, "other": doubling(str(folder), again), "fails": doubling(str(folder), -1)}
    waited = {name: call.exception(timeout=60) or call.result() for name, call in calls.items()}
    once_more = doubling(str(folder), 3)
    return {
        "gave": {name: value if isinstance(value, int) else str(value) for name, value in waited.items()},
        "once more": once_more.result(timeout=60),
        "from memory": [call.task_record["from_memo"] for call in (first, *calls.values(), once_more)],
        "states": [call.task_record["status"].name for call in (first, *calls.values(), once_more)],
        "ran": Path(folder, "ran").read_text("utf-8").split(),
    }


REMEMBERED = {
    "gave": {"again": 6, "other": 12, "fails": "no such number"},
    "once more": 6,
    "from memory": [False, True, False, False, True],
    "states": ["exec_done", "memo_done", "exec_done", "failed", "memo_done"],
    "ran": ["3", "6", "-1", "-1"],  # a failure is tried again, as the kernel is told to, and not remembered
}


def joined(kernel: Any, folder: Path) -> dict[str, Any]:
    """What becomes of apps that call apps: one future, several, none, one within another, one whose inner app fails."""
    doubling = app(kernel, noted)
    place = str(folder)
    joining = {
        "one": parsl.join_app(lambda n: doubling(place, n), data_flow_kernel=kernel),
        "several": parsl.join_app(lambda n: [doubling(place, n + i) for i in range(3)], data_flow_kernel=kernel),
        "none": parsl.join_app(lambda n: [], data_flow_kernel=kernel),
        "wrong": parsl.join_app(lambda n: n, data_flow_kernel=kernel),
    }
    joining["within"] = parsl.join_app(lambda n: joining["several"](doubling(place, n)), data_flow_kernel=kernel)
    calls = {name: join(10) for name, join in joining.items()}
    calls["after"] = doubling(place, calls["one"])
    calls["fails"] = joining["one"](-1)
    calls["after a failure"] = doubling(place, calls["fails"])
    found = {name: call.exception(timeout=60) or call.result() for name, call in calls.items()}
    return {name: type(value).__name__ if isinstance(value, Exception) else value for name, value in found.items()}


JOINED = {
    "one": 20, "several": [20, 22, 24], "none": [], "wrong": "TypeError", "within": [40, 42, 44],
    "after": 40, "fails": "JoinError", "after a failure": "DependencyError",
}  # fmt: skip


def test_by_itself_parsl_remembers_and_joins(kernel: Any, tmp_path: Path) -> None:
    assert remembered(kernel, tmp_path) == REMEMBERED
    assert joined(kernel, tmp_path) == JOINED


def test_memoised_results_are_as_ever(ranked: Any, tmp_path: Path) -> None:
    assert remembered(ranked, tmp_path) == REMEMBERED


def test_apps_that_call_apps_are_as_ever(ranked: Any, tmp_path: Path) -> None:
    assert joined(ranked, tmp_path) == JOINED


def test_what_an_app_calls_counts_as_what_it_gives_back_is_needed(ranked: Any) -> None:
    running = app(ranked, work)
    join = parsl.join_app(lambda: [running("within")], data_flow_kernel=ranked)
    # so long that the calls of the join come while all others wait at the executor
    blocked, others = running("first"), {f"other{i}": running(f"other{i}") for i in range(8)}
    outer = join()
    after = [app(ranked, work, "threads")("after", outer) for _ in range(4)]
    [(began, _)] = outer.result(timeout=60)
    later = [future.result(timeout=60)[0] for future in others.values()]
    assert sum(began < other for other in later) > 4
    assert blocked.result()[0] < began
    assert {future.result(timeout=60)[1] for future in after} == {"after"}


def test_tasks_begin_in_the_order(ranked: Any) -> None:
    futures = called(ranked, FANS)
    found = begun(futures)
    assert found[:3] == BEST_FIRST
    place = {name: future.task_record["resource_specification"]["priority"] for name, future in futures.items()}
    specs = (future.task_record["resource_specification"] for future in futures.values())
    assert {type(spec) for spec in specs} == {dict}  # another class would have the interchange import eligo
    late = {"child00"}  # ready by the end of root0, when the worker has been given the next task already
    assert [name for name in found if name not in late] == sorted({*found} - late, key=place.__getitem__)


def test_what_comes_later_is_ranked_among_what_waits(ranked: Any) -> None:
    roots = [f"root{i}" for i in range(10)]
    futures = called(ranked, {root: [] for root in roots})
    while not any(future.done() for future in futures.values()):
        time.sleep(0.01)
    more = called(ranked, {"late": []} | {f"after{i}": ["late"] for i in range(3)})
    found = begun(futures | more)
    assert found[0] in roots
    assert found[found.index("late") :].count("root9") == 1  # though that has been at the executor for long


def test_a_priority_of_the_users_own_stays(ranked: Any) -> None:
    futures = called(ranked, FANS)
    running = app(ranked, work_with_place)
    futures["own"] = running("own", parsl_resource_specification={"priority": -1})
    assert begun(futures)[0] == "own"


def work_with_place(name: str, parsl_resource_specification: object = None) -> tuple[float, str]:
    return time.time(), name


def test_failures_and_retries_are_as_ever(ranked: Any, tmp_path: Path) -> None:
    again, bad = app(ranked, fails_once)(str(tmp_path)), app(ranked, broken)()
    after = app(ranked, work)("after", bad)
    assert again.result(timeout=60) == "well"
    with pytest.raises(ValueError, match="this task is broken"):
        bad.result(timeout=60)
    with pytest.raises(parsl.dataflow.errors.DependencyError):
        after.result(timeout=60)
    assert bad.task_record["fail_count"] == 2


def test_other_executors_are_told_nothing(ranked: Any) -> None:
    root = app(ranked, work, "threads")("root")
    assert app(ranked, work)("leaf", root).result(timeout=60)[1] == "leaf"
    assert root.task_record["resource_specification"] == {}


def test_a_stream_of_calls_does_not_keep_tasks_waiting(ranked: Any) -> None:
    running, ended = app(ranked, work, "threads"), threading.Event()
    first = running("first")
    first.add_done_callback(lambda _: ended.set())
    futures, deadline = [first], time.monotonic() + 20
    while not ended.is_set() and time.monotonic() < deadline:
        futures.append(running("next"))
        time.sleep(0.05)
    assert ended.is_set()
    assert [future.result(timeout=60)[1] for future in futures][1:] == ["next"] * (len(futures) - 1)


def test_numbers_go_between_those_that_are_fixed() -> None:
    assert numbers("abc", {}) == {"a": 1, "b": 2, "c": 3}
    assert numbers("xayb", {"a": 1.0, "b": 2.0}) == {"x": 0.5, "y": 1.5}
    assert numbers("bxa", {"a": 1.0, "b": 2.0}) == {"x": 3.0}  # after b, and so after a, which went before it


class Kernel:
    """As much of a kernel as is looked at first."""

    def __init__(self, executor: object) -> None:
        self.executors = {"pool": executor}
        self.launch_if_ready = print


def test_an_executor_that_fetches_in_advance_is_refused() -> None:
    with pytest.raises(InputError, match="prefetch_capacity=0"):
        ParslPriorities(Kernel(pool(prefetch_capacity=2)))
    with pytest.raises(InputError, match="unknown policy 'quick'"):
        ParslPriorities(Kernel(None), "quick")


def test_without_parsl_the_message_says_what_to_install() -> None:
    code = "import sys; sys.modules['parsl'] = None; from eligo.plugins.parsl import ParslPriorities as E; E(None)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert 'pip install "eligo[parsl]"' in done.stderr


SCRIPT = """
import eligo
def twice(name):
    return 2 * name
if __name__ == "__main__":
    print(dict(eligo.run({"a": [], "b": ["a"]}, twice, on="parsl", workers=1).values))
"""


def test_functions_of_a_script_are_run_by_workers(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT, "utf-8")
    done = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=90, check=False
    )
    assert done.stdout == "{'a': 'aa', 'b': 'bb'}\n", done.stderr
