"""Dask's scheduler, with one worker of one thread: what begins when is what the tasks themselves say."""

import pickle
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from typing import Any

import pytest

if find_spec("distributed") is None:
    pytest.skip('NOT TESTED: the plug-in for Dask needs pip install "eligo[dask]"', allow_module_level=True)

import dask
import distributed
from dask.delayed import delayed

from eligo.errors import InputError
from eligo.plugins.dask import EligoPriorities, ResultsInMemoryWarning, prioritise

NAP = 0.03  # more than a message takes from worker to scheduler and back
BEGUN: list[str] = []
RANKS: dict[Any, tuple[float, ...]] = {}
TRIES: list[int] = []
#: roots with ever more children; Dask goes from a root to its children, eligo to the root with most of them
FANS: dict[str, list[str]] = {f"root{i}": [] for i in range(5)} | {
    f"child{i}{j}": [f"root{i}"] for i in range(5) for j in range(i + 1)
}


def work(name: str, *_parents: object) -> str:
    BEGUN.append(name)
    time.sleep(NAP)
    return name


def broken(*_parents: object) -> None:
    raise ValueError("this task is broken")


def flaky(*_parents: object) -> int:
    TRIES.append(len(TRIES))
    if len(TRIES) < 3:
        raise OSError("not yet")
    return len(TRIES)


class Ranked(distributed.SchedulerPlugin):
    """Remembers what tasks are ranked by once all other plug-ins have been asked."""

    name = "remembers"

    def update_graph(self, scheduler: Any, *, tasks: list[Any], **_: Any) -> None:
        RANKS.update({key: scheduler.tasks[key].priority for key in tasks})


@pytest.fixture
def client() -> Iterator[distributed.Client]:
    BEGUN.clear()
    RANKS.clear()
    TRIES.clear()
    places = {"dashboard_address": "127.0.0.1:0", "worker_dashboard_address": "127.0.0.1:0"}
    with (
        distributed.LocalCluster(processes=False, n_workers=1, threads_per_worker=1, **places) as cluster,  # type: ignore[no-untyped-call]
        distributed.Client(cluster) as found,  # type: ignore[no-untyped-call]
    ):
        yield found


def graph_of(needs: Mapping[str, list[str]]) -> dict[str, Any]:
    """Tasks that say when they begin, and one that needs all; keys are not names, which Dask would take for keys."""
    tasks: dict[str, Any] = {f"{name}-0": (work, name, *(f"{n}-0" for n in ns)) for name, ns in needs.items()}
    return tasks | {"end-0": (work, "end", *tasks)}


def ran(client: Any, graph: Mapping[Any, Any]) -> list[str]:
    """The tasks as they began."""
    assert client.get(graph, "end-0") == "end"
    return list(BEGUN)


def by_rank() -> list[str]:
    return [str(key).removesuffix("-0") for key in sorted(RANKS, key=RANKS.__getitem__)]


def overtaken(begun: list[str], needs: Mapping[str, list[str]]) -> list[str]:
    """Tasks that began although a better one had been ready since before the task before them began.

    A worker does not wait for the scheduler to tell it what has become ready by the end of the task that it ran last.
    """
    found = []
    for i, name in enumerate(begun):
        told, left = begun[: max(i - 1, 0)], set(needs) - set(begun[:i])
        if any(RANKS[f"{x}-0"] < RANKS[f"{name}-0"] for x in left if {*needs[x]} <= {*told}):
            found.append(name)
    return found


def test_by_itself_dask_begins_tasks_in_another_order(client: Any) -> None:
    client.register_plugin(Ranked())
    begun = ran(client, graph_of(FANS))
    assert {*begun[:5]} != {f"root{i}" for i in range(5)}
    assert [name for name in by_rank() if "root" in name] != [f"root{i}" for i in (4, 3, 2, 1, 0)]


@pytest.mark.parametrize("saturation", [1.0, 1.1, float("inf")])
def test_a_cluster_with_the_plugin_begins_tasks_in_the_order(client: Any, saturation: float) -> None:
    client.cluster.scheduler.WORKER_SATURATION = saturation
    client.register_plugin(EligoPriorities())
    client.register_plugin(Ranked())
    begun = ran(client, graph_of(FANS))
    assert overtaken(begun, FANS | {"end": list(FANS)}) == []
    assert begun[:5] == by_rank()[:5] == [f"root{i}" for i in (4, 3, 2, 1, 0)]


def test_a_graph_that_brings_its_ranks_is_run_in_the_order_but_for_the_first_task(client: Any) -> None:
    client.register_plugin(Ranked())
    begun = ran(client, prioritise(graph_of(FANS)))
    assert overtaken(begun, FANS | {"end": list(FANS)}) in ([], begun[:1])
    assert by_rank()[:5] == [f"root{i}" for i in (4, 3, 2, 1, 0)]
    assert begun[1:5] == [name for name in by_rank()[:5] if name != begun[0]]


def test_what_users_say_goes_first(client: Any) -> None:
    client.register_plugin(EligoPriorities())
    client.register_plugin(Ranked())
    blocked = client.submit(time.sleep, 0.3)
    with dask.annotate(priority=10):  # type: ignore[attr-defined]
        urgent = [delayed(work)(f"urgent{i}") for i in range(2)]
    later = [delayed(work)(f"later{i}") for i in range(2)]
    client.gather(client.compute([*later, *urgent], optimize_graph=False))
    blocked.result()
    assert {*BEGUN[:2]} == {"urgent0", "urgent1"}
    assert {RANKS[key][0] for key in RANKS if "work" in str(key)} == {0, -10}


@pytest.mark.parametrize("plugged", [False, True])
def test_failures_and_retries_are_as_ever(client: Any, plugged: bool) -> None:
    if plugged:
        client.register_plugin(EligoPriorities())
    root = delayed(work)("root")
    bad, good = delayed(broken)(root), delayed(work)("good", root)
    after = delayed(work)("after", bad, good)
    futures = client.compute([bad, good, after])
    distributed.wait(futures)  # type: ignore[no-untyped-call]
    assert [future.status for future in futures] == ["error", "finished", "error"]
    with pytest.raises(ValueError, match="this task is broken"):
        futures[2].result()
    assert "after" not in BEGUN
    assert client.compute(delayed(work)("last", bad), retries=1).exception() is not None
    assert client.compute(delayed(flaky)(root), retries=2).result() == 3


def test_what_is_in_memory_is_not_run_again(client: Any) -> None:
    client.register_plugin(EligoPriorities())
    root = delayed(work)("root")
    middle = client.persist(delayed(work)("middle", root))
    distributed.wait(middle)  # type: ignore[no-untyped-call]
    whole = delayed(work)("whole", delayed(work)("middle", root, dask_key_name=middle.key), root)
    alone = delayed(work)("alone", middle)
    assert client.compute(alone).result() == "alone"
    assert client.compute(whole).result() == "whole"
    assert BEGUN.count("middle") == 1


def array() -> Any:
    da = pytest.importorskip("dask.array")
    return (da.arange(1000, chunks=100) + 1).reshape(10, 100).sum(axis=0).sum()


def bag() -> Any:
    return pytest.importorskip("dask.bag").from_sequence(range(100), npartitions=5).map(lambda x: x * 2).sum()


def sums() -> Any:
    return delayed(sum)([delayed(abs)(i) for i in range(-5, 5)])


@pytest.mark.filterwarnings("ignore:eligo's order keeps")
@pytest.mark.parametrize("make", [array, bag, sums])
@pytest.mark.parametrize("how", ["plug-in", "prioritise"])
def test_collections_have_the_same_values(client: Any, make: Callable[[], Any], how: str) -> None:
    expected = make().compute(scheduler="sync")
    client.register_plugin(Ranked())
    if how == "plug-in":
        client.register_plugin(EligoPriorities())
    collection = make() if how == "plug-in" else prioritise(make())
    assert client.compute(collection).result() == expected
    assert collection.compute() == expected
    assert how == "plug-in" or min(RANKS.values())[0] < 0  # the ranks have come through


def tree(leaves: int) -> Any:
    """A sum by pairs, of which Dask finishes one branch before it begins the next."""
    sums = [delayed(abs)(i) for i in range(leaves)]
    while len(sums) > 1:
        sums = [delayed(max)(a, b) for a, b in zip(sums[::2], sums[1::2], strict=True)]
    return sums[0]


#: eligo begins all leaves, Dask has one result for every level
PEAKS = "keeps up to 65 results of these 127 tasks in memory, dask.order 8 "


def test_a_collection_whose_results_need_much_more_memory_is_warned_of() -> None:
    with pytest.warns(ResultsInMemoryWarning, match=PEAKS) as caught:
        prioritise(tree(64))
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prioritise(sums())


def test_a_client_whose_results_need_much_more_memory_is_warned(client: Any) -> None:
    client.register_plugin(EligoPriorities())
    heard: list[str] = []
    client.subscribe_topic("warn", lambda event: heard.append(pickle.loads(event[1]["message"])))
    with distributed.Client(client.cluster.scheduler_address) as other:  # type: ignore[no-untyped-call]
        other.subscribe_topic("warn", lambda event: heard.append("by another client"))
        client.compute(sums()).result()
        client.compute(tree(64)).result()
        deadline = time.monotonic() + 60
        while not heard and time.monotonic() < deadline:
            time.sleep(0.05)
    (said,) = heard
    assert PEAKS in said
    assert "client.unregister_scheduler_plugin('eligo')" in said


def test_the_clients_own_handler_turns_it_into_a_python_warning(client: Any) -> None:
    client.register_plugin(EligoPriorities())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        client.compute(tree(64)).result()
        deadline = time.monotonic() + 60
        while not any(PEAKS in str(each.message) for each in caught) and time.monotonic() < deadline:
            time.sleep(0.05)
    assert [each.category for each in caught if PEAKS in str(each.message)] == [UserWarning]


def test_a_collection_that_brings_nothing_along_is_refused() -> None:
    with pytest.raises(InputError, match="cannot attach priorities to an object of type int"):
        prioritise(3)


def test_what_is_no_order_is_refused() -> None:
    with pytest.raises(InputError, match="unknown policy 'quick'"):
        EligoPriorities("quick")


def test_without_dask_the_message_says_what_to_install() -> None:
    code = "import sys; sys.modules['distributed'] = None; import eligo.plugins.dask"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert 'pip install "eligo[dask]"' in done.stderr
