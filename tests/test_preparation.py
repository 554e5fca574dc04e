"""Submissions are prepared in processes with limits, and in turns: nobody's submission stops the server or other owners."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from eligo.errors import InputError
from eligo.server.dispatcher import PART
from eligo.server.http.refusals import RefusedError
from eligo.server.preparation import SMALL, Preparation
from eligo.server.prepare_worker import PrepareJob, PrepareOutcome
from eligo.server.rules.clients import ServerTerms
from eligo.server.rules.prepared import MOST_TASKS, Prepared, Wishes
from eligo.server.rules.service import Service
from serving_cases import got, posted, serving

PLAIN = b'{"tasks": [{"name": "a", "run": "true"}, {"name": "b", "run": "true", "after": ["a"]}]}'
PATIENCE = 120


def _flow(tasks: int, run: str = "true") -> dict[str, Any]:
    return {"tasks": [{"name": f"t{i}", "run": run} for i in range(tasks)]}


def _complete(tasks: int) -> bytes:
    """Every task after every earlier one: to find the shortcuts takes long."""
    rows = [{"name": f"{i}", "run": "true", "after": [f"{j}" for j in range(i)]} for i in range(tasks)]
    return msgspec.json.encode({"tasks": rows})


def _dense(tasks: int) -> bytes:
    """Every task of one half after every task of the other, in a few bytes."""
    names = [f"{i}" for i in range(2 * tasks)]
    return f"digraph {{ {{{' '.join(names[:tasks])}}} -> {{{' '.join(names[tasks:])}}} }}".encode()


@asynccontextmanager
async def _preparation(**terms: Any) -> AsyncIterator[Preparation]:
    found = Preparation(ServerTerms(**terms))
    try:
        yield found
    finally:
        found.close()


def _build(ready: Prepared) -> Any:
    return ready


async def _prepared(
    preparation: Preparation, body: bytes, owner: str = "ann", build: Callable[..., Any] = _build, **wishes: Any
) -> Any:
    async with asyncio.timeout(PATIENCE):
        return await preparation.prepare(owner, body, "json", Wishes(policy="fifo", **wishes), build)


def test_a_workflow_comes_back_as_it_was_submitted() -> None:
    async def run() -> None:
        async with _preparation() as preparation:
            ready = await _prepared(preparation, PLAIN)
            assert ready.flow.dag.tasks == ("a", "b")
            assert list(ready.flow.dag.arcs()) == [("a", "b")]
            assert ready.flow.task("a").command == "true"
            service = Service()
            assert service.submit(0.0, service.built(0.0, ready, "k"), "k") in service.served

    asyncio.run(run())


def test_what_is_wrong_with_a_workflow_is_told_in_the_words_of_its_reader() -> None:
    async def run() -> None:
        async with _preparation() as preparation:
            with pytest.raises(InputError, match="'x'"):
                await _prepared(preparation, b'{"tasks": [{"name": "a", "run": "true", "after": ["x"]}]}')
            with pytest.raises(InputError, match="UTF-8"):
                await _prepared(preparation, b"\xff")
            assert await _prepared(preparation, PLAIN)

    asyncio.run(run())


def test_a_workflow_that_takes_too_much_memory_is_refused_and_the_next_is_taken() -> None:
    async def run() -> None:
        async with _preparation(prepare_memory=700 * 2**20) as preparation:
            with pytest.raises(InputError, match="more than 700 MiB of memory"):
                await _prepared(preparation, msgspec.json.encode(_flow(2_000_000)))
            assert await _prepared(preparation, PLAIN)

    asyncio.run(run())


def test_a_workflow_that_takes_too_long_is_refused_and_the_next_is_taken() -> None:
    async def run() -> None:
        async with _preparation(prepare_seconds=0.0) as preparation:
            with pytest.raises(RefusedError, match="s of CPU time") as refused:
                await preparation.prepare("ann", _dense(3_000), "dot", Wishes(policy="fifo"), _build)
            assert refused.value.status == 422
        async with _preparation() as preparation:
            assert await _prepared(preparation, PLAIN)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("limit", "said"),
    [({"most_tasks": 1}, "2 tasks"), ({"most_arcs": 0}, "1 arcs"), ({"most_document": 9}, "bytes in the store")],
)
def test_a_workflow_that_is_too_large_is_refused_with_its_size(limit: dict[str, int], said: str) -> None:
    async def run() -> None:
        async with _preparation(**limit) as preparation:
            with pytest.raises(InputError, match=f"{said}, more than the"):
                await _prepared(preparation, PLAIN)

    asyncio.run(run())


def test_a_task_with_too_many_files_is_refused_unless_none_travel() -> None:
    body = msgspec.json.encode({"tasks": [{"name": "a", "run": "true", "outputs": [f"f{i}" for i in range(100_001)]}]})

    async def run() -> None:
        async with _preparation() as preparation:
            said = "task 'a' reads and writes 100,001 files, more than the 100,000 that this server hands out"
            with pytest.raises(InputError, match=said):
                await _prepared(preparation, body)
            assert await _prepared(preparation, body, files=False)

    asyncio.run(run())


@pytest.mark.parametrize("name", ["two\nlines", "\x1b[31mred", "\u202etxt", "N" * 201])
def test_a_name_in_a_file_that_fits_on_no_line_is_refused_unless_another_is_given(name: str) -> None:
    body = msgspec.json.encode({"name": name, **_flow(1)})

    async def run() -> None:
        async with _preparation() as preparation:
            with pytest.raises(InputError, match="at most 200 characters, all printable") as refused:
                await _prepared(preparation, body)
            assert str(refused.value).isprintable()
            ready = await preparation.prepare("ann", body, "json", Wishes(name="another"), _build)
            assert ready.wishes.name == "another"

    asyncio.run(run())


@pytest.mark.parametrize("policy", MOST_TASKS)
def test_a_policy_that_decides_slowly_is_refused_for_large_workflows(policy: str) -> None:
    async def run() -> None:
        async with _preparation() as preparation:
            body = msgspec.json.encode(_flow(MOST_TASKS[policy] + 1))
            with pytest.raises(InputError, match=f"{policy}.*at most {MOST_TASKS[policy]:,} tasks.*'finish'"):
                await preparation.prepare("ann", body, "json", Wishes(policy=policy), _build)

    asyncio.run(run())


def test_a_policy_that_decides_slowly_is_refused_for_workflows_with_many_dependencies() -> None:
    tasks: list[dict[str, Any]] = [{"name": f"s{i}", "run": "true"} for i in range(200)]
    tasks += [{"name": f"t{i}", "run": "true", "after": [f"s{j}" for j in range(101)]} for i in range(200)]

    async def run() -> None:
        async with _preparation() as preparation:
            body = msgspec.json.encode({"tasks": tasks})
            with pytest.raises(InputError, match=r"batch-optimal.*at most 20,000 dependencies.*has 20,200.*'finish'"):
                await preparation.prepare("ann", body, "json", Wishes(policy="batch-optimal"), _build)

    asyncio.run(run())


def _children(pid: int) -> list[int]:
    """The processes that prepare for a server."""
    found = []
    for one in Path("/proc").iterdir():
        if one.name.isdecimal():
            try:
                line, parent = (one / "cmdline").read_bytes(), (one / "stat").read_text().rpartition(")")[2].split()[1]
            except OSError:
                continue
            if int(parent) == pid and b"eligo.server.prepare_worker" in line:
                found.append(int(one.name))
    return found


def _await(condition: Callable[[], Any]) -> Any:
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return found


def test_a_process_that_is_killed_refuses_one_submission_and_is_replaced() -> None:
    async def run() -> None:
        async with _preparation() as preparation:
            await _prepared(preparation, PLAIN)
            first = asyncio.create_task(_prepared(preparation, _complete(1_500)))
            large = await asyncio.to_thread(_await, lambda: _children(os.getpid())[1:])
            os.kill(large[0], signal.SIGKILL)
            with pytest.raises(RefusedError, match="was killed") as refused:
                await first
            assert refused.value.status == 503
            assert refused.value.after
            assert len((await _prepared(preparation, _complete(600))).flow) == 600

    asyncio.run(run())


def test_a_process_that_died_while_it_was_idle_is_replaced_without_a_refusal() -> None:
    async def run() -> None:
        async with _preparation() as preparation:
            await _prepared(preparation, PLAIN)
            (child,) = _children(os.getpid())
            os.kill(child, signal.SIGKILL)
            await asyncio.to_thread(_await, lambda: _children(os.getpid()) != [child] or _is_dead(child))
            assert await _prepared(preparation, PLAIN)

    asyncio.run(run())


def _is_dead(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def test_small_submissions_overtake_large_ones_and_owners_take_turns() -> None:
    async def run() -> None:
        began: list[str] = []

        def note(owner: str) -> Callable[[Prepared], Any]:
            return lambda ready: began.append(owner)

        large = _complete(600) + b" " * SMALL
        async with _preparation() as preparation:
            flood = [asyncio.create_task(_prepared(preparation, large, "eve", note(f"eve {i}"))) for i in range(6)]
            await asyncio.sleep(0)
            other = asyncio.create_task(_prepared(preparation, large, "ann", note("ann")))
            await _prepared(preparation, PLAIN, "bob", note("bob"))
            assert began.count("bob") == 1
            assert len(began) < 7
            await asyncio.gather(*flood, other)
            assert began.index("ann") < began.index("eve 2")

    asyncio.run(run())


def test_beyond_the_bound_an_owner_is_told_to_come_later() -> None:
    async def run() -> None:
        async with _preparation(most_preparing=8) as preparation:
            large = _complete(300) + b" " * SMALL
            tasks = [asyncio.create_task(_prepared(preparation, large, "eve")) for _ in range(4)]
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            results = await asyncio.gather(*tasks, return_exceptions=True)
            refused = [one for one in results if isinstance(one, RefusedError)]
            assert [(one.status, bool(one.after)) for one in refused] == [(503, True)]

    asyncio.run(run())


def test_an_answer_of_a_process_is_data_and_nothing_else() -> None:
    """What a process says may have been made by who submitted: lengths are checked, and nothing of it is executed."""
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(msgspec.msgpack.encode({"document": "x"}), type=PrepareOutcome)
    words = PrepareJob("json", Wishes(), 3, 1, 1, 1, 1, 1, 1)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(words), type=PrepareJob) == words


def test_processes_end_with_the_server_however_it_ends(tmp_path: Path) -> None:
    for ending in (signal.SIGTERM, signal.SIGKILL):
        with serving(tmp_path) as (url, server):
            assert posted(f"{url}/v1/workflows", _flow(2), f"k{ending}")[0] == 201
            children = _children(server.pid)
            assert children
            server.send_signal(ending)
            server.wait(PATIENCE)
        for child in children:
            _await(partial(_is_gone, child))


def _is_gone(pid: int) -> bool:
    try:
        return b"prepare_worker" not in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return True


def test_a_process_ends_in_the_middle_of_a_job_when_its_input_does() -> None:
    command = [sys.executable, "-P", "-m", "eligo.server.prepare_worker"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        child.stdin.close()
        assert child.wait(PATIENCE) == 0


def test_others_are_answered_while_a_large_workflow_is_prepared(tmp_path: Path) -> None:
    with serving(tmp_path, "--open") as (url, _):
        posted(f"{url}/v1/workflows", _flow(2), "first")
        command, answered = [sys.executable, "-c", _SUBMIT, f"{url}/v1/workflows", "1500"], 0
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as request:
            while request.poll() is None:
                assert got(f"{url}/health")["status"] == "serving"
                answered += 1
            assert request.stdout is not None
            assert request.stdout.read().strip() == "201"
        assert answered > 10


_SUBMIT = """
import json, sys, urllib.request
rows = [{"name": str(i), "run": "true", "after": [str(j) for j in range(i)]} for i in range(int(sys.argv[2]))]
headers = {"Idempotency-Key": "large", "Content-Type": "application/json"}
with urllib.request.urlopen(urllib.request.Request(sys.argv[1], json.dumps({"tasks": rows}).encode(), headers)) as reply:
    print(reply.status)
"""


def test_a_large_document_is_kept_in_parts_and_survives_a_kill(tmp_path: Path) -> None:
    words = [f"echo {os.urandom(64).hex()}" for _ in range(40_000)]
    tasks = [{"name": f"t{i}", "run": word} for i, word in enumerate(words)]
    with serving(tmp_path, "--open") as (url, server):
        workflow = posted(f"{url}/v1/workflows", {"tasks": tasks}, "large")[1]["workflow"]
        assert posted(f"{url}/v1/workflows", {"tasks": tasks}, "large")[1]["workflow"] == workflow
        server.kill()
        server.wait()
    with closing(sqlite3.connect(tmp_path / "s.db")) as database:
        assert database.execute("SELECT length(document) FROM workflow").fetchall() == [(0,)]
        sizes = database.execute("SELECT length(content) FROM document_part").fetchall()
        assert len(sizes) > 1
        assert max(sizes) <= (PART,)
    with serving(tmp_path, "--open") as (url, _):
        client = posted(f"{url}/v1/clients", {"name": "ann"}, "c")[1]["client"]
        grants = posted(f"{url}/v1/request", {}, "r", Eligo_Client=client)[1]["grants"]
        (task,) = grants[0]["tasks"]
        assert task["command"] == words[int(task["task"][1:])]
