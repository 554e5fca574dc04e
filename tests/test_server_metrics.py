"""What a real server counts, read by Prometheus' own parser and shown by the Grafana board; readiness and health."""

import asyncio
import json
import math
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families as parsed

from eligo.server.app import Server, Setup
from eligo.server.metrics import COUNTERS, GAUGES, seconds_left
from eligo.stores.service_sqlite import service_store
from eligo.version import __version__
from server_faults import ServerProcess

BOARD = Path(__file__).parent.parent / "docs" / "grafana" / "eligo.json"
FLOW = {"tasks": [{"name": "a", "run": "true"}, {"name": "b", "run": "true", "after": ["a"]},
                  {"name": "c", "run": "true"}]}  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("served"), "-q") as running:
        yield running


def figures(server: ServerProcess) -> dict[str, float]:
    """Every sample, named with its labels."""
    text = server.get("/metrics").body.decode()
    return {" ".join([one.name, *one.labels.values()]): one.value for family in parsed(text) for one in family.samples}


def enrolled(server: ServerProcess, name: str) -> dict[str, str]:
    return {"Eligo-Client": server.call("POST", "/v1/clients", {"name": name}).words["client"]}


def taken(server: ServerProcess, who: dict[str, str]) -> str:
    """The lease of one task that a client gets."""
    lease = server.call("POST", "/v1/request", {"count": 1, "wait": 20.0}, who).words["grants"][0]["tasks"][0]["lease"]
    return str(lease)


def delivered(server: ServerProcess, who: dict[str, str], lease: str, outcome: str, digest: str = "") -> str:
    result = {"lease": lease, "outcome": outcome, "code": 0, "tail": digest}
    return str(server.call("POST", "/v1/deliver", {"results": [result]}, who).words["answers"][0])


def test_what_goes_wrong_is_counted(server: ServerProcess) -> None:
    """A retry, a permanent failure, a request that found nothing and one that waits, each in its own figure."""
    before = figures(server)
    one, two = enrolled(server, "one"), enrolled(server, "two")
    workflow = server.call("POST", "/v1/workflows?files=false&retries=1", FLOW).words["workflow"]
    first, other = taken(server, one), taken(server, two)
    assert delivered(server, one, first, "failed") == "failed"
    again = taken(server, two)  # after its wait
    assert delivered(server, two, again, "failed") == "failed"  # and never again: b is blocked
    assert server.call("POST", "/v1/request", {"count": 1}, one).words["grants"] == []
    waiting = threading.Thread(target=server.call, args=("POST", "/v1/request", {"wait": 30.0}, one))
    waiting.start()
    until, starved = time.monotonic() + 25, "eligo_starved_seconds_total"
    while (now := figures(server))["eligo_waiting_requests"] != 1 or now[starved] == before[starved]:
        assert time.monotonic() < until, now
        time.sleep(0.05)
    grown = {name: now[name] - before[name] for name in before}
    assert grown["eligo_retries_total"] == 1
    assert grown["eligo_tasks_failed_total"] == 1
    assert grown["eligo_prepare_seconds_count"] == 1
    assert grown["eligo_empty_answers_total"] == 1
    assert delivered(server, two, other, "done") == "accepted"
    assert server.call("POST", f"/v1/workflows/{workflow}/cancel", {}).status == 200
    last = server.call("POST", "/v1/workflows?files=false", {"tasks": [{"name": "x", "run": "true"}]}).words["workflow"]
    waiting.join()
    assert server.call("POST", f"/v1/workflows/{last}/cancel", {}).status == 200


def test_a_result_that_differs_is_counted_as_a_conflict(server: ServerProcess) -> None:
    """A task was taken back from its client, another has finished it, and the first one brings something else."""
    before = figures(server)
    one, two = enrolled(server, "three"), enrolled(server, "four")
    workflow = server.call("POST", "/v1/workflows?files=false&format=json", FLOW).words["workflow"]
    lease = taken(server, one)
    name = "a" if server.get(f"/v1/workflows/{workflow}/task?name=a").words["state"] == "running" else "c"
    assert server.call("POST", f"/v1/workflows/{workflow}/release", {"tasks": [name]}).words == {"count": 1}
    assert {delivered(server, two, taken(server, two), "done", "x") for _ in range(3)} == {"accepted"}
    assert delivered(server, one, lease, "done", "y") == "conflict"
    grown = {name: value - before[name] for name, value in figures(server).items() if name in before}
    assert (grown["eligo_conflicts_total"], grown["eligo_duplicates_total"]) == (1, 0)


def test_the_time_left_is_the_work_over_the_leases() -> None:
    def served(seconds: float, results: int, leases: int, **counts: int) -> Any:
        speeds = SimpleNamespace(seconds=seconds, results=results)
        return SimpleNamespace(allocator=SimpleNamespace(speeds=speeds), counts=lambda: counts, leases=range(leases))

    half = served(20.0, 10, 2, done=10, running=2, pending=8, blocked=5)
    assert seconds_left([half]) == 10.0  # 10 tasks of 2 s, two at a time
    assert seconds_left([half, served(0.0, 0, 2, running=2, ready=2)]) == 7.0
    assert math.isnan(seconds_left([served(0.0, 0, 1, running=1)]))
    assert math.isnan(seconds_left([served(9.0, 9, 0, ready=1)]))
    assert seconds_left([]) == seconds_left([served(9.0, 9, 0, done=9)]) == 0.0


def test_names_and_kinds_are_as_prometheus_has_them(server: ServerProcess) -> None:
    families = {family.name: family for family in parsed(server.get("/metrics").body.decode())}
    for name, family in families.items():
        assert re.fullmatch(r"eligo_[a-z]+(_[a-z]+)*", name), name
        assert family.documentation, name
        samples = {sample.name for sample in family.samples}
        assert family.type != "counter" or samples <= {f"{name}_total"}, name
        assert family.type != "gauge" or not name.endswith("_total"), name
        assert family.type != "histogram" or name.endswith(("_seconds", "_size")), name
    assert {f"eligo_{name}" for name in (*GAUGES, *COUNTERS)} <= families.keys()


def test_the_board_asks_for_what_is_there_and_for_all_of_it(server: ServerProcess) -> None:
    board = json.loads(BOARD.read_text())
    asked = {name for panel in board["panels"] for target in panel["targets"]
             for name in re.findall(r"eligo_[a-z_]+", target["expr"])}  # fmt: skip
    workflow = server.call("POST", "/v1/workflows?files=false", FLOW).words["workflow"]
    families = list(parsed(server.get("/metrics").body.decode()))
    server.call("POST", f"/v1/workflows/{workflow}/cancel", {})
    there = {sample.name for family in families for sample in family.samples}
    assert asked <= there
    assert {f"eligo_{name}" for name in GAUGES} | {f"eligo_{name}_total" for name in COUNTERS} <= asked
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])


async def replied(server: Server, path: str) -> tuple[int, Any]:
    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "scheme": "http", "state": {},
             "headers": [(b"host", b"localhost")]}  # fmt: skip
    status, _, body = await server.app.reply(scope, b"", asyncio.Event().wait)  # type: ignore[arg-type]
    return status, json.loads(body)


async def until_status(server: Server, path: str, status: int) -> Any:
    while (reply := await replied(server, path))[0] != status:
        await asyncio.sleep(0.05)
    return reply[1]


def test_a_server_is_ready_only_while_it_can_write_and_hands_out_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is alive all the while: an orchestrator that restarts it would gain nothing."""

    async def play() -> None:
        server = Server(
            Setup(store=str(tmp_path / "s.db")), service_store(str(tmp_path / "s.db"), "http://localhost:1")
        )
        await server.desk.settle()
        assert (await replied(server, "/ready"))[1]["status"] == "serving"
        with monkeypatch.context() as full:
            full.setattr(server.store, "finish", _full)
            server.service.enrol(time.monotonic(), "one")
            server.desk.keeper.kept().add_done_callback(lambda done: done.exception())
            problem = await until_status(server, "/ready", 503)
            assert "cannot be written" in problem["detail"]
            assert (await replied(server, "/health")) == (200, {"status": "failing", "version": __version__})
        await until_status(server, "/ready", 200)
        server.desk.drain()
        assert (await replied(server, "/health"))[1]["status"] == "draining"
        assert "draining" in (await until_status(server, "/ready", 503))["detail"]
        await server.close()

    asyncio.run(asyncio.wait_for(play(), 60))


def _full() -> None:
    raise OSError(28, "No space left on device")
