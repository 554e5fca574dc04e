"""The folder of a run: its state, what its tasks printed, and how it goes on after it was stopped."""

import os
import secrets
import signal
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from eligo.engines import Engine, Lingering
from eligo.errors import InputError
from eligo.execution import Execution
from eligo.stores import Store
from eligo.workflow import Workflow

STATE, LOGS, JOBS = "run.db", "logs", "jobs"
MARK = "ELIGO_RUN"  # in the environment of every process of a run


@dataclass(frozen=True)
class Resumed:
    """Where a run goes on: the execution, and what is told of the difference to what was run before."""

    execution: Execution
    #: tasks that were done before and still are
    kept: int
    #: tasks that were done before and must be done again, since they or what they need changed; those that are new; gone
    changed: int = 0
    new: int = 0
    gone: int = 0


class RunFolder:
    """The folder of one run, and the only process that writes into it."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{self.path}: a run needs a folder, and this is a file")
        if self.path.is_dir() and any(self.path.iterdir()) and not (self.path / STATE).exists():
            raise InputError(f"{self.path}: this folder has other things in it, and no run")
        (self.path / LOGS).mkdir(parents=True, exist_ok=True)
        self.store = Store(self.path / STATE)
        facts = self.store.facts()
        self.mark = facts.get("mark") or secrets.token_hex(8)
        self.store.remember(mark=self.mark)

    @property
    def logs(self) -> str:
        """Where tasks print to."""
        return str((self.path / LOGS).resolve())

    @property
    def jobs(self) -> str:
        """Where engines keep what they need for jobs that are under way."""
        return str((self.path / JOBS).resolve())

    def resume(self, flow: Workflow, engine: Engine | None = None) -> Resumed:
        """Begin, or go on where it was stopped: what was done and did not change stays done; what was out comes back.

        What an earlier process left running is ended first, here and where the *engine* runs things.
        """
        end_strays(self.mark)
        if isinstance(engine, Lingering):
            engine.end_strays(self.mark)
        return self.recall(flow)

    def recall(self, flow: Workflow) -> Resumed:
        """The same, where nothing needs to be ended: what an earlier process left running goes on."""
        now, before = digests(flow), self.store.tasks()
        if before and list(before.items()) == list(now.items()):
            game = Execution.replay(flow, self.store.moves())
            resumed = Resumed(game, len(game.executed))
        else:
            resumed = self._compared(flow, now, before)
        game = resumed.execution
        game.give_up(*list(game.allocated), *list(game.held))
        for task in list(game.failed):
            game.release(task)
        return resumed

    def _compared(self, flow: Workflow, now: dict[str, bytes], before: dict[str, bytes]) -> Resumed:
        """What is left of an earlier run of another form of the workflow: the file changed."""
        done = _done(self.store, list(before))
        kept: set[int] = set()
        for v in flow.dag.order.tolist():
            name = flow.dag.labels[v]
            same = name in done and before[name] == now[name]
            if same and all(u in kept for u in flow.dag.parents_of(v).tolist()):
                kept.add(v)
        game = Execution(flow, executed=flow.dag.named(sorted(kept)))
        self.store.begin(now, list(game.journal))
        changed = len([name for name in done if name in now]) - len(kept)
        return Resumed(game, len(kept), changed, len(now.keys() - before.keys()), len(before.keys() - now.keys()))

    def close(self) -> None:
        """Let go of it."""
        self.store.close()


def _done(store: Store, names: list[str]) -> set[str]:
    """The tasks that a journal says are done."""
    from eligo.execution import COMPLETE, unpacked

    return {names[v] for kind, v in unpacked(store.moves()) if kind == COMPLETE}


def digests(flow: Workflow) -> dict[str, bytes]:
    """For every task, by its label, what tells whether it is still the same: its command, its files and its parents."""
    labels, found = flow.dag.labels, {}
    for v, name in enumerate(flow.dag.tasks):
        task = flow.task(name)
        parents = sorted(labels[u] for u in flow.dag.parents_of(v).tolist())
        said = repr((task.command, sorted(task.inputs), sorted(task.outputs), parents))
        found[labels[v]] = sha256(said.encode()).digest()[:16]
    return found


def end_strays(mark: str) -> None:
    """End processes of this run that outlived whoever started them, so that no task runs twice at once."""
    wanted = f"{MARK}={mark}".encode()
    for place in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError, ValueError):
            number = int(place.parent.name)
            if number != os.getpid() and wanted in place.read_bytes().split(b"\0"):
                os.kill(number, signal.SIGKILL)
