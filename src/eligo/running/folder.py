"""The folder of a run: its state, what its tasks printed, and how it goes on after it was stopped."""

import os
import secrets
from array import array
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np

from eligo.engines import Engine, Lingering
from eligo.engines.sessions import PROCESSES
from eligo.engines.strays import end_marked
from eligo.errors import InputError
from eligo.execution import Execution
from eligo.planning import plan
from eligo.rows import Ints
from eligo.stores import Store
from eligo.workflow import Workflow

STATE, LOGS, JOBS, KEPT = "run.db", "logs", "jobs", "workflow.json"
LOCK = f"{STATE}.lock"
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
        try:
            if not (self.path / STATE).exists() and self.path.is_dir() and {*os.listdir(self.path)} - {LOGS, LOCK}:
                raise InputError(f"{self.path}: this folder has other things in it, and no run")
            (self.path / LOGS).mkdir(parents=True, exist_ok=True)
            self.store = Store(self.path / STATE)
            (self.path / PROCESSES).touch()
        except OSError as error:
            raise InputError(f"{self.path}: a run cannot be kept here: {error.strerror}") from None
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

    @property
    def processes(self) -> str:
        """The file by which the processes of its tasks are found."""
        return str((self.path / PROCESSES).resolve())

    def describe(self, flow: Workflow) -> None:
        """Keep the workflow itself, so that the run can be looked at, and go on, without its file."""
        from eligo.formats import write

        write(flow.labelled(), str(self.path / KEPT), "json")
        path = flow.origin.path if flow.origin else None
        if path is not None and os.path.realpath(path) != os.path.realpath(self.path / KEPT):
            self.store.remember(file=os.path.realpath(path), folder=os.path.realpath(os.path.dirname(path)))

    def place_of(self, flow: Workflow, wanted: str | None = None) -> str:
        """Where tasks run: where it is *wanted*, as it was before, in the folder of the workflow's file, or here."""
        known = self.store.facts()
        path = flow.origin.path if flow.origin else None
        beside = known.get("folder") or (os.path.dirname(path) if path else "")
        place = os.path.realpath(wanted or known.get("directory") or beside or os.curdir)
        if wanted is not None:
            self.store.remember(directory=place)
        return place

    def resume(self, flow: Workflow, engine: Engine | None = None) -> Resumed:
        """Begin, or go on where it was stopped: what was done and did not change stays done; what was out comes back.

        What an earlier process left running is ended first, here and where the *engine* runs things.
        """
        end_marked(MARK, self.mark, self.processes)
        if isinstance(engine, Lingering):
            engine.end_strays(self.mark)
        return self.recall(flow)

    def recall(self, flow: Workflow) -> Resumed:
        """The same, where nothing needs to be ended: what an earlier process left running goes on."""
        now, before = digests(flow), self.store.tasks()
        if before and list(before.items()) == list(now.items()):
            game = Execution.replay(flow, self.store.moves(), self.store.additions())
            resumed = Resumed(game, len(game.executed))
        else:
            resumed = self._compared(flow, now, before)
        game = resumed.execution
        game.give_up(*list(game.allocated), *list(game.held))
        for task in list(game.failed):
            game.release(task)
        return resumed

    def planned(self, flow: Workflow, effort: str = "normal") -> Ints:
        """The order of the workflow's plan: as it was kept, else made now and kept with its curves for whoever looks."""
        kept = self.store.curves().get("order")
        if kept is None:
            made = plan(flow, effort)
            kept = array("q", made.sequence.tolist())
            self.store.keep_curves(order=kept, plan=made.profile, bound=made.upper_bound)
        return np.array(kept, np.int32)

    def _compared(self, flow: Workflow, now: dict[str, bytes], before: dict[str, bytes]) -> Resumed:
        """What is left of an earlier run of another form of the workflow: the file changed."""
        done = _done(self.store, list(before))
        kept: set[int] = set()
        for v in flow.dag.order.tolist():
            name = flow.dag.labels[v]
            same = name in done and before.get(name) == now[name]
            if same and all(u in kept for u in flow.dag.parents_of(v).tolist()):
                kept.add(v)
        game = Execution(flow, executed=flow.dag.named(sorted(kept)))
        self.store.begin(now, list(game.journal))
        changed = len([name for name in done if name in now]) - len(kept)
        return Resumed(game, len(kept), changed, len(now.keys() - before.keys()), len(before.keys() - now.keys()))

    def close(self) -> None:
        """Let go of it."""
        self.store.close()


def kept_workflow(folder: str | Path) -> tuple[dict[str, str], str]:
    """What is known of the run in a folder, and the path of the workflow that it was begun with."""
    from eligo.stores import read_facts

    if not (Path(folder) / STATE).is_file():
        raise InputError(f"{folder}: there is no run in this folder")
    return read_facts(Path(folder) / STATE), str(Path(folder) / KEPT)


def _done(store: Store, names: list[str]) -> set[str]:
    """The tasks that a journal says are done."""
    from eligo.execution import COMPLETE, unpacked

    names = [*names, *(name for tasks, _ in store.additions() for name in tasks)]
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
