"""The curve that the page shows beside what the store has in the end: the same within a second, whatever happens."""

import asyncio
import json
import random
import threading
import time
import urllib.request
from contextlib import closing, suppress
from http.client import HTTPException
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from eligo.execution import COMPLETE, FAIL, RELEASE, unpacked
from eligo.server.rules.document import unpack_workflow
from eligo.stores.service_sqlite import service_store
from fault_scenarios import SECONDS, Size, ended, watched
from light_clients import Ledger, working
from server_faults import Line, ServerProcess, layered, light, line


class Shown(NamedTuple):
    """What was shown: when it came, and the view."""

    at: float
    view: dict[str, Any]


class Onlooker(threading.Thread):
    """Listens as a browser does, and comes again whenever it is cut off."""

    def __init__(self, url: str, workflow: str) -> None:
        super().__init__(daemon=True)
        self.place, self.over = f"{url}/v1/workflows/{workflow}/events", threading.Event()
        self.shown: list[Shown] = []
        self.cuts = 0

    def run(self) -> None:
        while not self.over.is_set():
            with suppress(OSError, HTTPException):
                self._listen()
            self.cuts += 1
            time.sleep(0.05)

    def _listen(self) -> None:
        with urllib.request.urlopen(self.place, timeout=5) as stream:
            for text in stream:
                if text.startswith(b"data: "):
                    self.shown.append(Shown(time.time(), json.loads(text[6:])))
                if self.over.is_set():
                    return


def truth_shown(folder: Path, size: Size, between: tuple[float, float]) -> Line:
    """The server is killed again and again while somebody looks; what he is shown is held against the store."""
    began, ledger, chance = time.monotonic(), Ledger(), random.Random(size.seed)
    with ServerProcess(folder, "--lease", "5") as server:
        # of many tasks that fail at random some fail thrice, which is not what is tried here
        workflow = server.submit(
            layered(size.tasks, size.wide, size.seed), "copies=1&files=false&policy=fifo&retries=20"
        )
        onlooker = Onlooker(server.url, workflow)
        onlooker.start()

        async def play(server: ServerProcess, over: asyncio.Event) -> None:
            clients = light(size.clients, server.address, ledger, size.seed, nap=size.nap, does=_some_fail(chance))
            doing = asyncio.ensure_future(working(clients, over, SECONDS))
            for _ in range(size.kills):
                await asyncio.sleep(chance.uniform(*between))
                if doing.done():
                    break
                server.kill()
                await asyncio.to_thread(server.start)
            assert await doing, "it took too long"

        asyncio.run(watched(server, workflow, play))
        time.sleep(2.5)
        onlooker.over.set()
        verdict = ended(server, workflow, ledger)
        checked = _checked(server.store, workflow, onlooker.shown)
    onlooker.join(10)
    result = f"{checked:,} views true within 1 s, {onlooker.cuts:,} cuts"
    return line(("31", "curve shown and store", str(size)), began, result, verdict)


def _some_fail(chance: random.Random) -> Any:
    return lambda task: {"outcome": "failed", "failure": "exit code 1"} if chance.random() < 0.01 else {}


def _checked(store: str | Path, workflow: str, shown: list[Shown]) -> int:
    """How many views were shown, each of which was true; more than one in three seconds on average."""
    with closing(service_store(str(store))) as opened:
        dag = unpack_workflow(opened.document(workflow)).dag
        moves = list(unpacked(opened.moves(workflow)))
        ends = {row.task: row.ended for row in opened.outcomes(workflow) if row.answer == "accepted"}
    truth, order = _truth(dag, moves)
    times = list(accumulate((ends[v] for v in order), max))
    for one in shown:
        done, now = one.view["counts"]["done"], one.view["now"]
        least, most = sum(end <= now - 1.0 for end in times), sum(end <= now + 0.05 for end in times)
        assert least <= done <= most, (least, done, most)
        assert abs(one.at - now) < 1.5 or one is shown[-1]
        curve = one.view["curve"]
        assert not curve["sampled"] or len(dag) > 480
        _same(curve, truth[: done + 1])
    assert shown[-1].view["counts"]["done"] == len(dag)
    assert shown[-1].view["state"] == "done"
    return len(shown)


def _same(curve: dict[str, Any], truth: list[int]) -> None:
    """Whether a curve is that of the truth so far, column by column."""
    told, starts = curve["lines"]["seen"], curve["steps"]
    begun = [start for start in starts if start < len(truth)]
    assert len(told["y"]) == len(begun)
    ends = [*begun[1:], len(truth)]
    for place, (begin, end) in enumerate(zip(begun, ends, strict=True)):
        part = truth[begin:end]
        assert abs(told["y"][place] - sum(part) / len(part)) < 0.02
        if told["least"] is not None:
            assert (told["least"][place], told["most"][place]) == (min(part), max(part))


def _truth(dag: Any, moves: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """After each task that was done, how many could run: counted from the moves that were kept."""
    missing, failed, order = dag.indegree.tolist(), set[int](), list[int]()
    ready = sum(count == 0 for count in missing)
    truth = [ready]
    for kind, v in moves:
        if kind == COMPLETE:
            order.append(v)
            freed = dag.children_of(v).tolist()
            for w in freed:
                missing[w] -= 1
            ready += sum(missing[w] == 0 for w in freed) - 1
            truth.append(ready - len(failed))
        elif kind == FAIL:
            failed.add(v)
        elif kind == RELEASE:
            failed.discard(v)
    return truth, order
