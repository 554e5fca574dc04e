"""Python functions as tasks: what a run takes, what it gives back, and what it keeps."""

import asyncio
import gc
import multiprocessing
import operator
import threading
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from typing import Any
from weakref import WeakSet

import dask
import pytest

import eligo
import engine_tasks
from eligo import families
from eligo.errors import InputError, TaskFailedError, UnknownTaskError

LONG = 60.0  # seconds that no test waits for unless something is wrong


def five() -> list[int]:
    return [0, 1, 2, 3, 4]


# Which graphs have functions


def test_a_misspelt_parent_is_an_error_and_changes_no_other_task() -> None:
    table: dict[str, Any] = {"x": (five, []), "n": (len, ["x"])}
    assert eligo.run(table).values["n"] == 5
    with pytest.raises(UnknownTaskError, match="no task named 'tpyo', which task 'oops' depends on"):
        eligo.run({**table, "oops": (len, ["tpyo"])})
    with pytest.raises(InputError, match=r"write \(five, \[\]\)"):
        eligo.run({**table, "bare": five})


def test_dask_graphs_of_every_kind_are_run() -> None:
    legacy = {"x": (five,), "n": (len, "x"), "one": (len, ["x"]), "sum": (sum, [(len, "x"), "n"])}
    result = eligo.run(eligo.from_dask(legacy))
    assert (result.values["sum"], result.values["one"]) == (10, 1)
    total = dask.delayed(sum)([dask.delayed(five)(), dask.delayed(five)()][0])  # type: ignore[attr-defined]
    for graph in (total, total.__dask_graph__(), dict(eligo.from_dask(total).nodes)):
        assert eligo.run(graph).values[total.key] == 10


def test_a_graph_with_functions_of_its_own_takes_no_other() -> None:
    graphs: list[Any] = [{"x": (five, [])}, eligo.from_dask({"x": (five,)})]
    for graph in graphs:
        with pytest.raises(InputError, match="already have functions: leave the function argument out"):
            eligo.run(graph, operator.neg)


# async def


@pytest.fixture(params=["threads", "processes"])
def pool(request: pytest.FixtureRequest) -> Iterator[Executor]:
    """An executor of the user's."""
    spawn = multiprocessing.get_context("spawn")
    made = ThreadPoolExecutor(2) if request.param == "threads" else ProcessPoolExecutor(2, mp_context=spawn)
    with made as executor:
        yield executor


def test_async_functions_are_awaited(pool: Executor) -> None:
    table = {"a": (engine_tasks.soon, []), "b": (operator.neg, ["a"])}
    assert eligo.run(table, on=pool, keep="all").values == {"a": 7, "b": -7}
    assert eligo.run(eligo.from_dask({"a": (engine_tasks.soon,)}), on=pool).values == {"a": 7}


def test_async_functions_run_in_threads_of_a_program_that_has_a_loop() -> None:
    async def double(number: int) -> int:
        await asyncio.sleep(0)
        return 2 * number

    async def wrong(number: int) -> int:
        raise engine_tasks.OwnError(number)

    async def main() -> Any:
        return eligo.run({1: [], 2: [1]}, double).values

    assert asyncio.run(main()) == {1: 2, 2: 4}
    assert isinstance(eligo.run({1: []}, wrong, check=False).failed[1], engine_tasks.OwnError)


# Exceptions


def test_in_threads_an_exception_arrives_as_it_was_raised() -> None:
    raised: list[BaseException] = []

    def fails() -> None:
        try:
            engine_tasks.raising("unsendable")
        except engine_tasks.UnsendableError as error:
            raised.append(error)
            raise

    with pytest.raises(TaskFailedError) as caught:
        eligo.run({"a": (fails, [])})
    assert caught.value.__cause__ is raised[0]
    assert caught.value.result.failed["a"] is raised[0]
    assert "raising" in [frame.name for frame in traceback.extract_tb(raised[0].__traceback__)]


@pytest.mark.parametrize("kind", ["unsendable", "unpicklable"])
def test_elsewhere_an_exception_that_cannot_be_sent_is_told_in_words(kind: str) -> None:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        works: dict[str, Any] = {kind: (engine_tasks.raises[kind], []), "own": (engine_tasks.raises["own"], [])}
        failed = eligo.run(works, on=pool, check=False).failed
    assert type(failed[kind]) is RuntimeError
    assert str(failed[kind]).startswith(
        {"unsendable": "UnsendableError: 1 and 2 (", "unpicklable": "OwnError: with a lock ("}[kind]
        + "in a worker; the exception itself could not be sent: "
    )
    assert type(failed["own"]) is engine_tasks.OwnError


def test_an_exception_that_would_end_a_thread_is_that_of_its_task() -> None:
    """Nothing that a function raises takes the worker from the tasks after it."""

    class StrangeError(BaseException):
        """Not even an Exception."""

    def fails(error: BaseException) -> None:
        raise error

    errors: list[BaseException] = [StrangeError(), KeyboardInterrupt(), GeneratorExit(), SystemExit(3)]
    table: dict[str, Any] = {str(i): (partial(fails, error), []) for i, error in enumerate(errors)}
    result = eligo.run({**table, "fine": (five, [])}, workers=1, check=False)
    assert [result.failed[str(i)] for i in range(len(errors))] == errors
    assert result.values == {"fine": five()}


# timeout


def test_a_late_function_has_failed_and_its_worker_goes_on(pool: Executor) -> None:
    late: dict[str, Any] = {"late": (time.sleep, ["how long"]), "how long": (engine_tasks.minute, [])}
    table = late | {"word": (str, []), "next": (len, ["word"])}
    begin = time.monotonic()
    result = eligo.run(table, on=pool, workers=1, timeout=5.0, check=False)
    assert time.monotonic() - begin < LONG
    assert result.values["next"] == 0
    assert type(result.failed["late"]) is TimeoutError
    assert str(result.failed["late"]) == "took longer than 5 s"


def test_a_late_function_goes_on_in_its_thread_and_its_result_is_ignored() -> None:
    waiting, ended = threading.Event(), threading.Event()

    def late() -> str:
        waiting.wait(LONG)
        ended.set()
        return "late"

    with pytest.raises(TaskFailedError, match=r"task 'a' failed: took longer than 0.1 s"):
        eligo.run({"a": (late, [])}, workers=1, timeout=0.1)
    waiting.set()
    assert ended.wait(LONG)


def test_functions_in_time_are_not_late() -> None:
    table = {"a": (five, []), "wrong": (engine_tasks.raising, ["a"]), "n": (len, ["a"])}
    result = eligo.run(table, timeout=LONG, check=False)
    assert result.values["n"] == 5
    assert type(result.failed["wrong"]) is ValueError


def test_what_is_for_commands_is_refused_for_functions_and_the_other_way_round() -> None:
    with pytest.raises(InputError, match="ignore has no effect on functions"):
        eligo.run({"a": (five, [])}, ignore="all")
    flow = eligo.Workflow(eligo.Dag.from_arcs([], ["a"]), {"a": eligo.Task(name="a", command="true")})
    with pytest.raises(InputError, match="keep has no effect on commands"):
        eligo.run(flow, keep="all")


# Which results are kept


class Large:
    """A result that can be watched."""


@pytest.mark.parametrize(("keep", "kept"), [((), 1), (["3"], 2), ("all", 60)])
@pytest.mark.parametrize("timeout", [None, LONG])
def test_results_that_nobody_needs_any_more_are_dropped_while_it_runs(
    keep: Any, kept: int, timeout: float | None
) -> None:
    """A chain of 60 tasks has the result of the task that runs, of the one before it, and of those to keep."""
    seen: list[int] = []
    alive: WeakSet[Large] = WeakSet()

    def make(*parents: Large) -> Large:
        seen.append(len(alive))
        result = Large()
        alive.add(result)
        return result

    table = {str(i): (make, [str(i - 1)] if i else []) for i in range(60)}
    gc.collect()
    gc.disable()
    try:
        values = eligo.run(table, workers=2, keep=keep, timeout=timeout).values
        assert len(seen) == 60
        assert len(values) == kept
        assert max(seen) <= kept + 2
        assert len(alive) == len(values)
    finally:
        gc.enable()


def test_a_result_that_was_dropped_says_how_to_keep_it() -> None:
    result = eligo.run({"a": (five, []), "b": (len, ["a"]), "c": (sum, ["a"])})
    assert result.values == {"b": 5, "c": 10}
    with pytest.raises(KeyError, match=r"the result of 'a' was dropped .* keep=\['a'\] or keep='all'"):
        result.values["a"]
    with pytest.raises(KeyError, match=r"^'d'$"):
        result.values["d"]


def test_a_result_that_a_failed_task_takes_stays() -> None:
    result = eligo.run({"a": (five, []), "b": (engine_tasks.raising, ["a"])}, check=False)
    assert result.values == {"a": [0, 1, 2, 3, 4]}


def test_what_to_keep_is_all_or_tasks() -> None:
    table: dict[str, Any] = {"first": (five, []), "b": (len, ["first"])}
    assert set(eligo.run(table, keep=("first",)).values) == {"first", "b"}
    with pytest.raises(UnknownTaskError, match=r"no task named 'frist'; did you mean 'first'\?"):
        eligo.run(table, keep=["frist"])
    with pytest.raises(UnknownTaskError, match="no task named"):
        eligo.run(table, keep=[["first"]])
    for wrong in ("first", 3, None):
        with pytest.raises(InputError, match=r"keep must be 'all' or a list of tasks, got"):
            eligo.run(table, keep=wrong)  # type: ignore[arg-type]


def test_what_a_dask_collection_consists_of_is_never_dropped() -> None:
    from dask.base import optimize
    from dask.delayed import delayed

    first = delayed(lambda: 2)(dask_key_name="first")
    second = delayed(lambda value: value + 1)(first, dask_key_name="second")
    both, _ = optimize(first, second)  # type: ignore[no-untyped-call]
    assert eligo.run(both).values["first"] == 2


# Order


def test_with_one_worker_functions_begin_in_the_order_of_the_policy() -> None:
    """Also short ones, of which other runs hand over several at a time."""
    flow, begun, order = families.random_layered(20, 20, seed=1), list[object](), list[object]()
    eligo.run(flow, begun.append, workers=1)
    chosen = eligo.allocator("finish", flow, rules=None)
    while grants := chosen.hand_out([eligo.Ask()]):
        order += grants[0].tasks
        chosen.execution.complete(order[-1])
    assert begun == order


def test_long_functions_are_not_handed_over_ahead() -> None:
    """After many short functions, too: as many run as there are workers, and a better one need not wait for others."""
    begun, most = list[str](), list[int]()

    def slow(task: str) -> None:
        begun.append(task)
        time.sleep(0.02)

    def watch(now: eligo.Progress) -> None:
        if len(begun) > 20:
            most.append(now.running)

    eligo.run({str(i): [] for i in range(60)}, slow, workers=2, progress=watch)
    assert max(most) <= 2
