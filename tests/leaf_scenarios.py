"""Servers below a server as real processes, with clients of their own, all of which may be killed."""

import random
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from running_cases import COMMAND
from server_faults import Line, ServerProcess, Verdict, kept, layered, line, worker

PATIENCE = 300.0  # seconds, on a machine of any load
LEASE = ("--lease", "5")


class Tree(NamedTuple):
    """How large a scenario is."""

    tasks: int
    leaves: int
    workers: int
    kills: int
    size: int
    nap: float = 0.05
    seed: int = 1


class LeafProcess(ServerProcess):
    """`eligo work --serve` in a process of its own, that may be killed and goes on."""

    def __init__(self, folder: Path, parent: ServerProcess, *options: str) -> None:
        folder.mkdir()
        super().__init__(folder, *options)
        self.parent, self.store = parent, folder / "served.db"

    def begin(self) -> None:
        """Start, without waiting until it serves."""
        place = ["--serve", f"127.0.0.1:{self.port}", "--folder", str(self.folder)]
        with open(self.folder / "server.log", "ab") as log:
            options = [option for option in self.options if option != "--tokens"]  # which a leaf asks for by default
            command = [*COMMAND, "work", self.parent.url, *place, *options]
            self.process = subprocess.Popen(command, stdout=log, stderr=log)

    def owes(self) -> list[str]:
        """The grants that it holds."""
        return [str(path) for path in (self.folder / "owed").glob("*.json")]


def with_files(tasks: int, wide: int, nap: float) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Tasks that each read what those before them wrote; and what each of the files has in it at the end."""
    found, texts = layered(tasks, wide), dict[str, str]()
    for task in found:
        name, reads = task["name"], [f"{above}.txt" for above in task["after"]]
        task |= {"inputs": reads, "outputs": [f"{name}.txt"]}
        task["run"] = f"sleep {nap}; (cat {' '.join(reads) or '/dev/null'}; echo {name}) > {name}.txt"
        texts[f"{name}.txt"] = "".join(texts[one] for one in reads) + f"{name}\n"
    return found, texts


@contextmanager
def tree(folder: Path, size: Tree) -> Iterator[tuple[ServerProcess, list[LeafProcess]]]:
    """A parent and its leaves, each with clients of its own; those that are killed are started again by nobody."""
    with ExitStack() as stack:
        parent = stack.enter_context(ServerProcess(folder, *LEASE, "--most-tasks", "2000"))
        options = (*LEASE, "--size", str(size.size), "--insecure", "--allow-host", "gateway")
        leaves = [LeafProcess(folder / f"leaf{i}", parent, *options) for i in range(size.leaves)]
        for leaf in leaves:
            stack.callback(leaf.kill)
            leaf.begin()
        yield parent, leaves


def until(what: str, holds: Any) -> None:
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.1)


def kills(folder: Path, size: Tree) -> Line:
    """kill -9 of leaves, of the parent and of clients of leaves, in turn, while a workflow with files is done."""
    began, rng, killed = time.monotonic(), random.Random(size.seed), Counter[str]()
    tasks, texts = with_files(size.tasks, 8, size.nap)
    with tree(folder, size) as (parent, leaves), ExitStack() as stack:
        workflow = parent.submit(tasks, "copies=1&policy=fifo")
        for leaf in leaves:
            until(leaf.log(), leaf.answers)
            for i in range(size.workers):
                stack.enter_context(worker(leaf, folder / f"{leaf.folder.name}-{i}"))
        for kill in range(size.kills):
            due = (kill + 1) * size.tasks // (size.kills + 2)
            until("the workflow goes on", lambda due=due: _done(parent, workflow) >= due)
            _kill(rng, kill, parent, leaves, stack, killed)
        state = parent.finish(workflow, PATIENCE)
        assert state["state"] == "done", state
        until("a leaf settles all that is done", lambda: not any(leaf.owes() for leaf in leaves))
        files = parent.get(f"/v1/workflows/{workflow}/results").words["files"]
    assert all(files[name]["sha256"] == sha256(texts[name].encode()).hexdigest() for name in files)
    found = kept(parent.store, workflow)
    assert found.completed == found.answers("accepted") == Counter(dict.fromkeys(found.tasks, 1))
    again = found.answers("expired", "lost", "failed", "returned", "duplicate", "conflict").total()
    assert found.answers("conflict").total() == 0
    what = f"{size.tasks:,} tasks, {size.leaves} leaves with {size.workers} clients each"
    told = f"kills: {', '.join(f'{n} of {what}' for what, n in killed.items())}"
    return line(("35", "kill -9 of servers below a server, of the parent and of clients", what), began, told,
                Verdict(0, again, 0))  # fmt: skip


def _done(parent: ServerProcess, workflow: str) -> int:
    return int(parent.state(workflow)["counts"].get("done", 0))


def _kill(  # noqa: PLR0913, PLR0917
    rng: random.Random,
    turn: int,
    parent: ServerProcess,
    leaves: list[LeafProcess],
    stack: ExitStack,
    killed: Counter[str],
) -> None:
    """Kill a leaf, the parent, or a client of a leaf, and start it again."""
    leaf = rng.choice(leaves)
    if turn % 3 == 2:
        process = stack.enter_context(worker(leaf, parent.folder / f"extra-{turn}"))
        until("a client comes", (parent.folder / f"extra-{turn}" / "client.json").exists)
        process.kill()
        killed["clients"] += 1
        return
    victim = parent if turn % 3 == 1 else leaf
    killed["the parent" if victim is parent else "leaves"] += 1
    victim.kill()
    victim.start()
