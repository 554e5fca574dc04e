"""Servers that are killed, calls that are lost, clients that die, sleep, lie or fail: each scenario at any size.

Numbers are those of the scenarios in docs/understand/reliability.md.
"""

import asyncio
import random
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from fault_proxy import FaultProxy
from light_clients import Ledger, LightClient, percentile, working
from server_faults import BACK, Line, ServerProcess, Verdict, judged, kept, layered, light, line, watching, worker

T = TypeVar("T")
SECONDS = 300.0  # that a scenario may take beyond what its faults take


@dataclass(frozen=True, kw_only=True)
class Size:
    """How large a scenario is."""

    tasks: int
    clients: int
    wide: int = 100
    #: seconds that a task takes on average
    nap: float = 0.0
    kills: int = 0
    workers: int = 0  # real ones
    seed: int = 1

    def __str__(self) -> str:
        real = f" + {self.workers} real" if self.workers else ""
        return f"{self.tasks:,} tasks, {self.clients}{real} clients"


def ended(server: ServerProcess, workflow: str, ledger: Ledger, spare: int = 0) -> Verdict:
    """How it ended, with the server gone."""
    server.kill()
    assert "Traceback" not in server.log(), server.log()[-3000:]
    return judged(kept(server.store, workflow), ledger, spare)


async def watched(
    server: ServerProcess, workflow: str, play: Callable[[ServerProcess, asyncio.Event], Awaitable[T]]
) -> T:
    """Play something that is told when the workflow has ended."""
    async with watching(server, workflow) as over:
        return await play(server, over)


# The server dies


def kills(folder: Path, size: Size, between: tuple[float, float], nested: int = 0) -> Line:
    """Kill -9 the server again and again; *nested*: each time so often while it comes back."""
    began, ledger, rng = time.monotonic(), Ledger(), random.Random(size.seed)
    server = ServerProcess(folder, "--lease", "30", "-q")
    with server, ExitStack() as real:
        workflow = server.submit(layered(size.tasks, size.wide, run=f"sleep {size.nap}"))
        for i in range(size.workers):
            real.enter_context(worker(server, folder / f"w{i}"))
        asyncio.run(_killing(server, workflow, (size, between, nested), ledger, rng))
        server.kill()
        verdict = ended(server, workflow, with_real(ledger, server, workflow, size.workers))
    slow = sorted(server.starts[1:])
    late = sum(one > BACK for one in slow)
    said = f"{server.kills - 1} kills; back in {percentile(slow, 0.5):.2f} s, at most {slow[-1]:.2f} s"
    said += f" ({late} over {BACK:g} s)"
    tried = f"kill -9 while it comes back, {nested} nested" if nested else "kill -9 of the server at random"
    what = ("2" if nested else "1", tried, str(size))
    return line(what, began, said, verdict)


async def _killing(
    server: ServerProcess, workflow: str, how: tuple[Size, tuple[float, float], int], ledger: Ledger, rng: random.Random
) -> None:
    size, between, nested = how
    async with watching(server, workflow) as over:
        clients = light(size.clients, server.address, ledger, size.seed, nap=size.nap)
        doing = asyncio.ensure_future(working(clients, over, SECONDS + size.kills * (between[1] + 3 * (nested + 1))))
        kills = 0
        while not over.is_set() and kills < size.kills:
            await asyncio.sleep(rng.uniform(*between))
            if doing.done():
                break
            server.kill()
            kills += 1
            for _ in range(nested):
                server.begin()
                await asyncio.sleep(rng.uniform(0.05, 0.9))
                server.kill()
            await asyncio.to_thread(server.start)
        assert await doing, "it took too long"


def kills_of_two(folder: Path, size: Size, between: tuple[float, float], store: str) -> Line:
    """Kill -9 one of two servers on one database again and again; half of the clients know the one, half the other."""
    began, ledger, rng = time.monotonic(), Ledger(), random.Random(size.seed)
    servers = []
    for name in ("one", "two"):
        (folder / name).mkdir()
        servers.append(ServerProcess(folder / name, "--lease", "30", "-q", "--files", str(folder / "files")))
        servers[-1].store = store

    async def play(server: ServerProcess, over: asyncio.Event) -> None:
        halves = [light(size.clients // 2, each.address, ledger, i, nap=size.nap) for i, each in enumerate(servers)]
        doing = asyncio.ensure_future(working([*halves[0], *halves[1]], over, SECONDS))
        for _ in range(size.kills):
            await asyncio.sleep(rng.uniform(*between))
            if doing.done():
                break
            hit = rng.choice(servers)
            hit.kill()
            await asyncio.to_thread(hit.start)
        assert await doing, "it took too long"

    with servers[0], servers[1]:
        workflow = servers[0].submit(layered(size.tasks, size.wide))
        asyncio.run(watched(servers[0], workflow, play))
        kills = sum(each.kills for each in servers)
        servers[1].kill()
        assert "Traceback" not in servers[1].log(), servers[1].log()[-3000:]
        verdict = ended(servers[0], workflow, ledger)
    starts = sorted(servers[0].starts[1:] + servers[1].starts[1:])
    said = f"{kills} kills; back in {percentile(starts, 0.5):.2f} s, at most {starts[-1]:.2f} s"
    return line(("1", "kill -9 of either of two servers on PostgreSQL", str(size)), began, said, verdict)


def with_real(ledger: Ledger, server: ServerProcess, workflow: str, workers: int) -> Ledger:
    """Real clients count what they do in their own way; here each of their leases is an execution.

    How often they sent a result in vain is not known, so each that was accepted may have come late, after its task had gone
    to somebody else.
    """
    if workers:
        for lease, (task, answer) in kept(server.store, workflow).ends.items():
            if lease not in ledger.given:
                ledger.executed[task] += 1
                ledger.unsure[task] += answer == "accepted"
    return ledger


# Calls are lost


def losses(folder: Path, size: Size, lost: float, cuts: int = 0, delay: float = 0.02) -> Line:
    """Every request is lost with this chance, and every answer; at times all connections are cut for a while."""
    began, ledger = time.monotonic(), Ledger()
    with ServerProcess(folder, "--lease", "10", "-q") as server:
        workflow = server.submit(layered(size.tasks, size.wide))
        proxy = asyncio.run(_losing(server, workflow, (size, lost, cuts, delay), ledger))
        verdict = ended(server, workflow, ledger)
    seen = proxy.seen
    said = f"{seen['requests']:,} calls, {seen['requests lost']:,} requests and {seen['answers lost']:,} answers lost"
    tried = (
        f"requests and answers lost, p = {lost:g}"
        if lost
        else f"cut off {cuts} times, calls held back up to {delay:g} s"
    )
    what = ("7" if lost else "11", tried, str(size))
    return line(what, began, said, verdict)


async def _losing(
    server: ServerProcess, workflow: str, how: tuple[Size, float, int, float], ledger: Ledger
) -> FaultProxy:
    size, lost, cuts, delay = how
    async with FaultProxy(server.port, lost, delay) as proxy, watching(server, workflow) as over:
        doing = asyncio.ensure_future(
            working(light(size.clients, proxy.address, ledger, nap=size.nap, pause=0.1), over, SECONDS)
        )
        for _ in range(cuts):
            await asyncio.sleep(1.0)
            proxy.cut = True
            proxy.sever()
            await asyncio.sleep(2.0)
            proxy.cut = False
        assert await doing, "it took too long"
    return proxy


# Clients die, sleep, hang


def deaths(folder: Path, size: Size, share: float) -> Line:
    """Clients vanish with what they have, this share of all grants; others come in their place."""
    began, ledger, rng = time.monotonic(), Ledger(), random.Random(3)
    with ServerProcess(folder, "--lease", "0.5", "-q") as server:
        workflow = server.submit(layered(size.tasks, size.wide))
        died = asyncio.run(_dying(server, workflow, size, (share, rng, ledger)))
        verdict = ended(server, workflow, ledger)
    said = f"{died} died with a task; all came back after its lease"
    what = ("3", f"clients die with {share:.0%} of what they get", str(size))
    return line(what, began, said, verdict)


async def _dying(server: ServerProcess, workflow: str, size: Size, how: tuple[float, random.Random, Ledger]) -> int:
    share, rng, ledger = how
    died = 0

    def does(task: str) -> Mapping[str, Any] | None:
        return None if rng.random() < share else {}

    async with watching(server, workflow) as over:

        async def place(number: int) -> None:
            nonlocal died
            while not over.is_set():
                client = LightClient(server.address, ledger, random.Random(number), size.nap, does=does)
                await client.work(over.is_set)
                died += not over.is_set()

        async with asyncio.timeout(SECONDS):
            await asyncio.gather(*(place(number) for number in range(size.clients)))
    return died


def real_deaths(folder: Path, tasks: int, rounds: int) -> Line:
    """Real clients are killed with -9, and others stopped for longer than their lease and continued."""
    began = time.monotonic()
    with ServerProcess(folder, "--lease", "1", "-q") as server, ExitStack() as real:
        workflow = server.submit(layered(tasks, 8, run="sleep 0.3"))
        rng = random.Random(5)
        working = [real.enter_context(worker(server, folder / f"w{i}")) for i in range(4)]
        real.enter_context(worker(server, folder / "steady"))
        time.sleep(1.5)
        for number in range(rounds):
            place = rng.randrange(4)
            if number % 2:
                working[place].kill()
                working[place] = real.enter_context(worker(server, folder / f"w{place}"))
            else:
                working[place].send_signal(signal.SIGSTOP)
                time.sleep(2.5)
                working[place].send_signal(signal.SIGCONT)
            time.sleep(0.3)
        told = server.finish(workflow, 120)
        server.kill()
        verdict = ended(server, workflow, with_real(Ledger(), server, workflow, 1))
    assert told["counts"]["done"] == tasks
    ends = Counter(answer for _, answer in kept(server.store, workflow).ends.values())
    said = (
        f"{rounds // 2} killed, {rounds - rounds // 2} stopped and continued; {ends['expired']} leases lost for good, "
    )
    said += f"{ends['duplicate']} results too late, {ends['returned']} tasks returned"
    what = ("3, 5", "`eligo work` killed, and stopped (SIGSTOP)", f"{tasks} tasks, 5 real clients")
    return line(what, began, said, verdict)


def sleepers(folder: Path, tasks: int) -> Line:
    """Clients deliver long after their lease is over: what is still undone counts, what is done is a duplicate."""
    began, ledger = time.monotonic(), Ledger()
    with ServerProcess(folder, "--lease", "0.3", "-q") as server:
        workflow = server.submit(layered(tasks, tasks))
        asyncio.run(_sleeping(server, workflow, tasks, ledger))
        found = Counter(ledger.answers.values())
        verdict = ended(server, workflow, ledger)
    assert found["accepted"] == tasks
    assert found["duplicate"] > 0
    said = f"{found['accepted']} late results accepted or others' kept, {found['duplicate']} duplicates"
    what = ("5", "clients asleep beyond their lease deliver late", f"{tasks} tasks, 8 clients")
    return line(what, began, said, verdict)


async def _sleeping(server: ServerProcess, workflow: str, tasks: int, ledger: Ledger) -> None:
    async with watching(server, workflow) as over:
        asleep = light(tasks // 2, server.address, ledger, renews=False)
        for client in asleep:
            await client.enrol()
        held = [(client, await client.call("/v1/request", client.asking())) for client in asleep]
        given = [(client, reply["grants"][0]["tasks"]) for client, reply in held]
        for _, mine in given:
            ledger.executed.update(task["task"] for task in mine)
        await asyncio.sleep(1.0)  # all leases are over: half of the sleepers wake before anybody else comes, half after
        for client, mine in given[::2]:
            await client.deliver(mine, {})
        assert await working(light(4, server.address, ledger, seed=2), over, 60)
        for client, mine in given[1::2]:
            await client.deliver(mine, {})
        for client in asleep:
            client.hang_up()


def hanging(folder: Path) -> Line:
    """A client that renews for ever and never delivers: a copy goes to another one, and all ends."""
    began, ledger = time.monotonic(), Ledger()
    with ServerProcess(folder, "--lease", "2", "-q") as server:
        workflow = server.submit(layered(40, 40), "copies=2&files=false&policy=fifo")
        asyncio.run(_hanging(server, workflow, ledger))
        verdict = ended(server, workflow, ledger, spare=1)
    what = ("4", "a client that hangs but renews", "40 tasks, 5 clients")
    return line(what, began, "its task was copied to another client", verdict)


async def _hanging(server: ServerProcess, workflow: str, ledger: Ledger) -> None:
    async with watching(server, workflow) as over:
        (hung,) = light(1, server.address, ledger)
        await hung.enrol()
        reply = await hung.call("/v1/request", hung.asking())
        leases = [task["lease"] for task in reply["grants"][0]["tasks"]]

        async def renewing() -> None:
            while not over.is_set():
                await hung.call("/v1/renew", {"leases": leases})
                await asyncio.sleep(0.4)

        going = asyncio.ensure_future(renewing())
        assert await working(light(4, server.address, ledger, seed=2, nap=0.05), over, 60)
        await going
        hung.hang_up()


def half_way(folder: Path) -> Line:
    """A client dies half way through a fat task: what it has delivered stays, the rest comes back."""
    began, ledger, done = time.monotonic(), Ledger(), Counter[str]()

    def does(task: str) -> Mapping[str, Any] | None:
        done["tasks"] += 1
        return {} if done["tasks"] <= 6 else None

    async def play(server: ServerProcess, over: asyncio.Event) -> None:
        (first,) = light(1, server.address, ledger, size=8, does=does)
        await first.enrol()
        await first.work(over.is_set)  # a grant of four tasks, then one of eight
        assert await working(light(2, server.address, ledger, seed=2), over, 60)

    with ServerProcess(folder, "--lease", "0.5", "-q") as server:
        chain = [{"name": f"t{i}", "run": "true", "after": [f"t{i - 1}"] if i else []} for i in range(20)]
        workflow = server.submit(chain)
        asyncio.run(watched(server, workflow, play))
        verdict = ended(server, workflow, ledger)
    assert verdict.repeated <= 1
    what = ("34", "a client dies half way through a fat task", "20 tasks in a chain, 3 clients")
    return line(what, began, "members delivered stay done, the rest came back", verdict)


# Clients fail or lie


def black_hole(folder: Path, tasks: int) -> Line:
    """A client that fails everything at once, among honest ones."""
    began, ledger = time.monotonic(), Ledger()

    async def play(server: ServerProcess, over: asyncio.Event) -> int:
        failed = {"outcome": "failed", "code": 1, "failure": "exit code 1"}
        bad = light(1, server.address, ledger, does=lambda task: failed)
        good = light(8, server.address, ledger, seed=2, nap=0.05)
        assert await working(bad + good, over, 120)
        return sum(answer == "failed" for answer in ledger.answers.values())

    with ServerProcess(folder, "-q") as server:
        workflow = server.submit(layered(tasks, 50))
        failures = asyncio.run(watched(server, workflow, play))
        verdict = ended(server, workflow, ledger)
    assert failures <= 5
    what = ("29", "a client that fails everything at once", f"{tasks} tasks, 9 clients")
    return line(what, began, f"{failures} tasks failed with it, then it was paused", verdict)


def poison(folder: Path) -> Line:
    """A task with which every client vanishes is set aside, its descendants are blocked, all else is done."""
    began, ledger = time.monotonic(), Ledger()

    def deadly(task: str) -> Mapping[str, Any] | None:
        return None if task == "t5" else {}

    async def play(server: ServerProcess, over: asyncio.Event) -> None:
        async def place(number: int) -> None:
            while not over.is_set():
                client = LightClient(server.address, ledger, random.Random(number), does=deadly)
                await client.work(over.is_set)

        async with asyncio.timeout(90):
            await asyncio.gather(place(1), place(2))

    with ServerProcess(folder, "--lease", "0.15", "-q") as server:
        tasks = [{"name": f"t{i}", "run": "true", "after": ["t5"] if i > 15 else []} for i in range(20)]
        workflow = server.submit(tasks)
        asyncio.run(watched(server, workflow, play))
        told = server.state(workflow)
    assert (told["state"], told["counts"]["done"], told["counts"]["failed"], told["counts"]["blocked"]) == (
        "failed",
        15,
        1,
        4,
    )
    why = told["failures"][0]["cause"]
    what = ("28", "a task that kills each of its clients", "20 tasks, 2 clients at a time")
    return line(what, began, f"set aside: {why}; 4 blocked, 15 done", Verdict(0, ledger.executed["t5"] - 1, 0))


def deadly_task(folder: Path) -> Line:
    """A task that kills its client is set aside, also where a supervisor starts the same client again each time."""
    began, starts = time.monotonic(), 0
    with ServerProcess(folder, "-q") as server:
        tasks = [{"name": "deadly", "run": "kill -9 $PPID"}, *({"name": f"t{i}", "run": "true"} for i in range(3))]
        workflow = server.submit(tasks)
        while server.state(workflow)["state"] == "running":
            with worker(server, folder / "client", "--idle-exit", "0") as client:
                client.wait(SECONDS)
            starts += 1
            assert starts < 30, server.state(workflow)
        told = server.state(workflow)
        assert (told["state"], told["counts"]["done"], told["counts"]["failed"]) == ("failed", 3, 1)
    assert kept(server.store, workflow).answers("lost") == {"deadly": 11}
    what = ("28", "a task that kills its client, which is started again each time", "4 tasks, 1 real client")
    return line(what, began, f"set aside after {starts} starts: {told['failures'][0]['cause']}", Verdict(0, 10, 0))


def liars(folder: Path, tasks: int) -> Line:
    """One client of ten brings wrong results; two must agree while a client is not trusted."""
    began, ledger = time.monotonic(), Ledger()
    right = {"tail": "right"}

    async def play(server: ServerProcess, over: asyncio.Event) -> None:
        rng = random.Random(4)
        bad = light(2, server.address, ledger, does=lambda task: {"tail": f"wrong {rng.random()}"})
        good = light(18, server.address, ledger, seed=2, does=lambda task: right, nap=0.01)
        assert await working(bad + good, over, 120)

    with ServerProcess(folder, "-q") as server:
        workflow = server.submit(layered(tasks, 60), "copies=1&files=false&policy=fifo&quorum=2")
        asyncio.run(watched(server, workflow, play))
        attempts = server.get(f"/v1/workflows/{workflow}/attempts").words["attempts"]
        verdict = ended(server, workflow, ledger)
    wrong = sum(one["answer"] == "accepted" and one["tail"] != "right" for one in attempts)
    assert wrong == 0
    what = ("9", "2 of 20 clients bring wrong results, quorum 2", f"{tasks} tasks, 20 clients")
    return line(what, began, "0 wrong results accepted", verdict)


def duplicates(folder: Path, times: int = 100) -> Line:
    """The same result a hundred times, and another one for the same task."""
    began, ledger = time.monotonic(), Ledger()

    async def play(server: ServerProcess, over: asyncio.Event) -> tuple[Counter[str], str]:
        one, two = light(2, server.address, ledger, renews=False)
        for client in (one, two):
            await client.enrol()
        mine = (await one.call("/v1/request", one.asking()))["grants"][0]["tasks"]
        await asyncio.sleep(1.0)
        again = (await two.call("/v1/request", two.asking()))["grants"][0]["tasks"]
        assert again[0]["task"] == mine[0]["task"]
        answers = Counter[str]()
        for _ in range(times):
            answers.update((await one.deliver(mine, {"tail": "a"}))["answers"])
        (other,) = (await two.deliver(again, {"tail": "b"}))["answers"]
        ledger.executed.update({"t0": 2})
        assert await working([one], over, 30)
        two.hang_up()
        return answers, str(other)

    with ServerProcess(folder, "--lease", "0.3", "-q") as server:
        workflow = server.submit([{"name": f"t{i}", "run": "true", "after": ["t0"] if i else []} for i in range(2)])
        answers, other = asyncio.run(watched(server, workflow, play))
        verdict = ended(server, workflow, ledger)
    assert answers == {"accepted": times}
    assert other == "conflict"
    what = ("8", f"one result delivered {times} times, and another for the same task", "1 task, 2 clients")
    return line(what, began, "accepted once, the other flagged as a conflict", verdict)
