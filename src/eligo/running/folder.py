"""The folder of a run: its state, the output of its tasks, where it is, and how it resumes."""

import json
import os
import secrets
from array import array
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from zlib import crc32

from eligo.dag import Dag
from eligo.engines import Engine, Lingering
from eligo.engines.sessions import PROCESSES, end_marked
from eligo.errors import InputError
from eligo.execution import EXECUTED, Execution
from eligo.names import Name
from eligo.planning import plan
from eligo.running.input_files import InputFile, load, save
from eligo.running.task_files import NO_DOUBTS, Doubts, Redone, unfinished_tasks
from eligo.stores import Store, added_names, read_facts, read_tasks, readable
from eligo.workflow import Workflow

STATE, REPORT = "run.db", "report.html"
LOGS, JOBS, ADDING, KEPT = "logs", "jobs", "adding", "workflow.json"
LOCK = f"{STATE}.lock"
#: the fact with the number of attempts, from the first, that do not count against the retries of tasks
FORGIVEN = "forgiven"
#: the fact with the done tasks that are not among those of a narrowed run
PARKED = "parked"
MARK = "ELIGO_RUN"  # in the environment of every process of a run
#: the facts that are paths
PATHS = ("file", "folder", "directory")


class Location:
    """The location of a run's folder, compared with the one for which its facts were written."""

    def __init__(self, folder: str | Path, facts: Mapping[str, str]) -> None:
        self.now = os.path.realpath(folder)
        self._facts = facts
        self._before = facts.get("place") or _guess(self.now, facts)

    @property
    def is_copy(self) -> bool:
        """Whether the folder was copied: it has moved, and the run also exists in the old place.

        Device and inode do not decide: if a folder is moved away and copied back, one of the two must get a new identity too.
        """
        before = self._before
        if not before or not os.path.exists(os.path.join(before, STATE)) or os.path.samefile(before, self.now):
            return False
        with suppress(InputError):
            return read_facts(os.path.join(before, STATE)).get("mark") == self._facts.get("mark")
        return True

    def find(self, name: str) -> str | None:
        """The present location of a stored path: relative to this folder, or unchanged; None if neither exists."""
        return next((path for path in self._candidates(name) if os.path.exists(path)), None)

    def beside(self) -> str | None:
        """The folder of the workflow's file; None if it is gone or ambiguous."""
        file = self.find("file")
        if file is not None and self._facts.get("folder") == os.path.dirname(self._facts["file"]):
            return os.path.dirname(file)
        folders = [path for path in self._candidates("folder") if os.path.isdir(path)]
        return folders[0] if len(folders) == 1 or (folders and file is not None) else None

    def facts(self) -> dict[str, str]:
        """The facts to store about the folder and its paths."""
        moved = {name: path for name in PATHS if (path := self.find(name)) is not None}
        return {**moved, "place": self.now}

    def _candidates(self, name: str) -> list[str]:
        path = self._facts.get(name)
        if not path:
            return []
        relocated = (
            os.path.normpath(os.path.join(self.now, os.path.relpath(path, self._before))) if self._before else path
        )
        return list(dict.fromkeys((relocated, path)))


def _guess(now: str, facts: Mapping[str, str]) -> str:
    """The former location of the folder of an older run, which stored only its parent, the folder of the workflow's file."""
    folder = facts.get("folder")
    return os.path.join(folder, os.path.basename(now)) if folder else ""


@dataclass(frozen=True)
class Resumed:
    """The execution that a run resumes from, and the differences from the earlier workflow."""

    execution: Execution
    #: number of tasks that were done and still are
    kept: int
    #: number of tasks that must run again because they or their parents changed; that are new; that were removed
    changed: int = 0
    new: int = 0
    gone: int = 0
    #: the tasks with their digests, for a new journal; None if the existing journal continues
    tasks: Mapping[str, bytes] | None = None
    #: number of tasks that must run again because outputs are missing; that depend on such tasks
    unmade: int = 0
    dependent: int = 0
    #: number of tasks that must run again because that was requested; because an input changed
    repeated: int = 0
    renewed: int = 0
    #: the reason of each task that runs, by label; empty unless it was requested
    reasons: Mapping[str, str] = field(default_factory=dict)
    #: kept tasks that are done again once their parents are, without running: they read nothing that these write
    idle: frozenset[Name] = frozenset()
    #: the states of the inputs
    inputs: Mapping[str, InputFile] = field(default_factory=dict)
    #: reasons to distrust existing files
    doubts: Doubts = NO_DOUBTS
    #: sentences about settings of the workflow that this run ignores
    remarks: tuple[str, ...] = ()
    #: the done tasks that were not selected, with their digests, so that a later run knows that they are done
    parked: Mapping[str, str] = field(default_factory=dict)


class RunFolder:
    """The folder of one run; only one process writes to it at a time."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        #: whether a run was started here, now or earlier
        self.is_started = (self.path / STATE).exists()
        self._is_new = not self.path.exists()
        if self.path.exists() and not self.path.is_dir():
            raise InputError(f"{self.path}: not a folder")
        try:
            if not (self.path / STATE).exists() and self.path.is_dir() and {*os.listdir(self.path)} - {LOGS, LOCK}:
                raise InputError(f"{self.path}: not a run folder, and not empty")
            (self.path / LOGS).mkdir(parents=True, exist_ok=True)
            self.store = Store(self.path / STATE)
            (self.path / PROCESSES).touch()
        except OSError as error:
            raise InputError(f"{self.path}: cannot write the run: {error.strerror}") from None
        facts = self.store.facts()
        self.location = Location(self.path, facts)
        #: a copied file has a new inode number, and a moved one keeps it
        identity = str((self.path / PROCESSES).stat().st_ino)
        #: whether this folder was copied from another one, whose processes are not this run's
        self.copied = facts["identity"] != identity if "identity" in facts else self.location.is_copy
        self.mark = (not self.copied and facts.get("mark")) or secrets.token_hex(8)
        stored = (facts.get("mark"), facts.get("identity"))
        if stored != (self.mark, identity):  # saved at once: an engine's processes have the mark before the run starts
            self.store.remember(mark=self.mark, identity=identity)

    @property
    def logs(self) -> str:
        """The folder for the output of tasks."""
        return str((self.path / LOGS).resolve())

    @property
    def jobs(self) -> str:
        """The folder for engines' files about running jobs."""
        return str((self.path / JOBS).resolve())

    @property
    def adding(self) -> str:
        """The folder where tasks write new tasks."""
        return str((self.path / ADDING).resolve())

    @property
    def processes(self) -> str:
        """The file by which the processes of its tasks are found."""
        return str((self.path / PROCESSES).resolve())

    def place_of(self, flow: Workflow, wanted: str | None = None) -> str:
        """The folder where tasks run: *wanted*, that of the earlier run, that of the workflow's file, or the current one."""
        facts, path = self.store.facts(), self._path_of(flow)
        if wanted is not None:
            place: str | None = wanted
        elif "directory" in facts:
            place = self.location.find("directory")
        elif path is not None:
            place = os.path.dirname(path)
        else:
            place = self.location.beside() if "folder" in facts else os.curdir
        if place is None:
            before = facts.get("directory") or facts["folder"]
            raise InputError(f"{before}: tasks ran in this folder, which no longer exists").cured_by("directory")
        if not os.path.isdir(place):
            raise InputError(f"{place}: no such folder for the tasks to run in").cured_by("directory")
        if wanted is not None:
            self._check_same(wanted, facts)
        return os.path.realpath(place)

    def _check_same(self, wanted: str, facts: Mapping[str, str]) -> None:
        """Refuse a different folder for tasks if some are done: their files are in the old one."""
        before = self.location.find("directory") if "directory" in facts else self.location.beside()
        if before is not None and self.store.kept and os.path.realpath(wanted) != os.path.realpath(before):
            raise InputError(f"{wanted}: finished tasks of this run ran in {before}").cured_by("run")

    def _path_of(self, flow: Workflow) -> str | None:
        """The file of a workflow, unless it is the copy in this folder."""
        path = flow.origin.path if flow.origin else None
        if path is None or os.path.realpath(path) == os.path.realpath(self.path / KEPT):
            return None
        return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))

    def begin(
        self,
        flow: Workflow,
        resumed: Resumed,
        curves: "Mapping[str, Sequence[int]] | None" = None,
        directory: str | None = None,
    ) -> None:
        """Write the state of the run; nothing is written earlier, so a refused run leaves the folder unchanged."""
        self.is_started = True
        path, facts = self._path_of(flow), self.location.facts()
        if path is not None:
            facts |= {"file": path, "folder": os.path.dirname(path)}
        if directory is not None:
            facts["directory"] = os.path.realpath(directory)
        if resumed.tasks is not None and (before := sum(1 for _ in self.store.attempted())):
            facts[FORGIVEN] = str(before)
        facts["unfinished"] = json.dumps(sorted(resumed.doubts.unfinished))
        if resumed.parked or self._parked():  # before the tasks: after a kill between the two, tasks run again at worst
            self.store.remember(**{PARKED: json.dumps(dict(resumed.parked))})
        stored = self.store.curves() if self._is_same(resumed) else {}
        self._keep_workflow(flow)
        if resumed.tasks is not None:
            self.store.begin(resumed.tasks, list(resumed.execution.journal), resumed.execution.additions)
        self.keep_inputs(resumed)
        if new := {**stored, **(curves or {})} if resumed.tasks is not None or not stored else {}:
            self.store.keep_curves(**new)
        self.store.remember(**facts)

    def keep_inputs(self, resumed: Resumed) -> None:
        """Store the states of the inputs, if they differ from those that are stored."""
        if resumed.inputs != self.inputs():
            save(self.path, resumed.inputs)

    def is_complete(self, resumed: Resumed) -> bool:
        """Whether every task of the stored journal is done, so that there is nothing to run and nothing to store."""
        game = resumed.execution
        return resumed.tasks is None and game.finished and len(game.journal) == self.store.kept

    def _keep_workflow(self, flow: Workflow) -> None:
        """Store the workflow itself, so that the run can be inspected and resumed without its file.

        Both check sums are stored while the file is replaced, so that after a kill either version is accepted.
        """
        from eligo.formats import write

        target, fresh, facts = self.path / KEPT, self.path / f"{KEPT}.part", self.store.facts()
        before = (
            facts["workflow"].split()[:1] if "workflow" in facts else [check_sum(target)] if target.is_file() else []
        )
        write(flow.labelled(), str(fresh), "json")
        self.store.remember(workflow=" ".join([check_sum(fresh), *before]))
        try:
            os.replace(fresh, target)
        except OSError as error:
            raise InputError(f"{target}: cannot be written: {error.strerror}") from None

    def _is_same(self, resumed: Resumed) -> bool:
        """Whether the tasks are those in the store."""
        return resumed.tasks is None or list(resumed.tasks.items()) == list(self.store.tasks().items())

    def resume(self, flow: Workflow, engine: Engine | None = None) -> Resumed:
        """Start a run, or resume it: unchanged finished tasks stay done, and tasks that ran are ready again.

        Processes that an earlier dispatcher left running are killed first, on this machine and by the *engine*.
        """
        end_marked(MARK, self.mark, self.processes)
        if isinstance(engine, Lingering):
            engine.end_strays(self.mark)
        with readable(self.path / STATE):
            return self.recall(flow)

    def recall(self, flow: Workflow) -> Resumed:
        """Resume without killing the processes of an earlier dispatcher."""
        doubts = self.doubts()
        now, before = digests(flow), self.store.tasks()
        if before and list(before.items()) == list(now.items()):
            game = Execution.replay(flow, self.store.moves(), self.store.additions())
            resumed = Resumed(game, len(game.executed))
        else:
            resumed = self._compare_tasks(flow, now, before)
        game = resumed.execution
        game.give_up(*list(game.allocated), *list(game.held))
        for task in list(game.failed):
            game.release(task)
        return replace(resumed, doubts=replace(doubts, unfinished=doubts.unfinished | resumed.doubts.unfinished))

    def doubts(self) -> Doubts:
        """The tasks that never completed; `begin` stores them, since a new journal does not contain earlier attempts."""
        unfinished = frozenset(json.loads(self.store.facts().get("unfinished", "[]")))
        return Doubts(unfinished_tasks(self.store, unfinished), tuple(self.store.killed_sessions()))

    def incomplete_since(self, dag: Dag) -> dict[int, float]:
        """The tasks of which an attempt began and none completed since, each with the start of the first session."""
        began, unfinished = self.store.began, self.doubts().unfinished
        return {v: began for v, label in enumerate(dag.labels) if label in unfinished} if unfinished else {}

    def redo(self, flow: Workflow, resumed: Resumed, redone: Redone) -> Resumed:
        """Resume; tasks that must run again, and all that depend on them, no longer count as done."""
        if not redone.gone:
            return resumed
        undone = redone.gone | redone.dependent
        idle = resumed.execution.graph.named(redone.waiting)
        renewed = redone.renewed.keys() - redone.requested
        named = redone.requested | renewed
        done = set(resumed.execution.numbers(EXECUTED)) - undone - redone.waiting
        game = restart_execution(flow, resumed.execution, resumed.execution.graph.named(done))
        return replace(
            resumed,
            execution=game,
            kept=len(done) + len(idle),
            idle=frozenset(idle),
            tasks=digests(flow),
            doubts=replace(
                resumed.doubts, unfinished=resumed.doubts.unfinished.union(map(str, game.graph.named(undone)))
            ),
            repeated=len(undone & redone.requested),
            renewed=len(undone & renewed),
            unmade=len(redone.gone - named),
            dependent=len(redone.dependent - named),
        )

    def inputs(self) -> dict[str, InputFile]:
        """The states of the inputs as the last run found them; a copied folder has none."""
        return {} if self.copied else load(self.path)

    def narrow(self, flow: Workflow, resumed: Resumed) -> Resumed:
        """Resume only the tasks of *flow*, which were selected; the others that are done are parked."""
        game = resumed.execution
        if game.additions:
            raise InputError("tasks were added to this run, so that it cannot be narrowed: run all of its tasks")
        done, now = {str(name) for name in game.executed}, digests(flow)
        rest = resumed.tasks or self.store.tasks()
        parked = {name: rest[name].hex() for name in done if name not in now}
        kept = [name for name in game.executed if name in flow.dag]
        return replace(
            resumed, execution=Execution(flow, executed=kept), kept=len(kept), new=0, gone=0, tasks=now, parked=parked
        )

    def done_before(self) -> dict[str, bytes]:
        """The tasks that an earlier run completed, with their digests."""
        tasks = self.store.tasks()
        done = _done_tasks(self.store, list(tasks))
        return {**self._parked(), **{name: digest for name, digest in tasks.items() if name in done}}

    def _parked(self) -> dict[str, bytes]:
        """The tasks that were done when the present run was narrowed to others, with their digests."""
        return {
            name: bytes.fromhex(digest) for name, digest in json.loads(self.store.facts().get(PARKED, "{}")).items()
        }

    def planned(self, flow: Workflow, resumed: Resumed, effort: str = "normal") -> Mapping[str, Sequence[int]]:
        """The order and curves of the workflow's plan: from the store, or computed now."""
        curves = self.store.curves() if self._is_same(resumed) else {}
        if "order" in curves:
            return curves
        new_plan = plan(flow, effort)
        return {
            "order": array("q", new_plan.sequence.tolist()),
            "plan": new_plan.profile,
            "bound": new_plan.upper_bound,
        }

    def _compare_tasks(self, flow: Workflow, now: dict[str, bytes], before: dict[str, bytes]) -> Resumed:
        """Resume a run whose workflow changed: tasks that are done and unchanged, with unchanged parents, stay done."""
        done, grown, unchanged = _done_tasks(self.store, list(before)), self._grown(flow, list(before)), set[int]()
        added, dag = set(added_names(grown.additions)), grown.dag
        parked = {name: digest for name, digest in self._parked().items() if name not in before}
        names, renewed = list(before), set[int]()
        attempted = {names[v] for v in self._attempted_since_begin() if v < len(names)} if parked else set[str]()
        before = before | parked
        done |= parked.keys()
        for v in dag.order.tolist():
            name, parents = dag.labels[v], dag.parents_of(v).tolist()
            if name in attempted or not renewed.isdisjoint(parents):
                renewed.add(v)
            same = name in done and (name in added or before.get(name) == now[name])
            if same and all(u in unchanged for u in parents) and not (name in parked and v in renewed):
                unchanged.add(v)
        game = restart_execution(flow, grown, dag.named(unchanged))
        kept = {dag.labels[v] for v in unchanged}
        changed = frozenset(name for name in done if (name in now or name in added) and name not in kept)
        new, removed = len(now.keys() - before.keys()), len(before.keys() - now.keys())
        return Resumed(game, len(unchanged), len(changed), new, removed, now, doubts=Doubts(changed))

    def _attempted_since_begin(self) -> list[int]:
        """The tasks that were attempted since the present journal began."""
        return list(self.store.attempted())[int(self.store.facts().get(FORGIVEN, 0)) :]

    def _grown(self, flow: Workflow, before: list[str]) -> Execution:
        """An execution of the changed workflow with the tasks that were added to the run, none of them done."""
        names, game = [*before, *added_names(self.store.additions())], Execution(flow)
        own = dict(zip(flow.dag.labels, flow.dag.tasks, strict=True))
        for tasks, arcs, details in (added for added in self.store.additions() if added[2]):
            ends = [(own.get(names[u], names[u]), own.get(names[v], names[v])) for u, v in arcs]
            try:
                game.grow(tasks, ends, details)
            except InputError as error:
                message = f"tasks added to this run do not fit the changed workflow: {error}"
                raise InputError(message).cured_by("run") from None
        return game

    def close(self) -> None:
        """Close the store; a folder that was created for a refused run is removed."""
        self.store.close()
        if self._is_new and not self.is_started:
            rmtree(self.path, ignore_errors=True)


def kept_workflow(folder: str | Path) -> tuple[dict[str, str], str]:
    """The facts of the run in a folder, and the path of its workflow: the original file, or the stored copy."""
    path = Path(folder) / STATE
    if not path.is_file():
        raise InputError(f"{folder}: no run in this folder")
    facts = read_facts(path)
    file = Location(folder, facts).find("file")
    if file is not None and os.path.isfile(file):
        return facts, file
    read_kept(folder, facts, read_tasks(path))
    return facts, str(Path(folder) / KEPT)


def read_kept(folder: str | Path, facts: Mapping[str, str], tasks: Mapping[str, bytes]) -> Workflow:
    """The workflow stored in the folder of a run; refused if it is not the one in the run's store."""
    from eligo.formats import read

    path = str(Path(folder) / KEPT)
    if not tasks and not os.path.exists(path):
        raise InputError(f"{folder}: no run was started in this folder")
    if "workflow" in facts and os.path.isfile(path) and check_sum(path) not in facts["workflow"].split():
        raise foreign_workflow(path)
    flow = read(path, "json")
    if flow.dag.labels != tuple(tasks) or ("workflow" not in facts and digests(flow) != tasks):
        raise foreign_workflow(path)
    return flow


def foreign_workflow(path: str) -> InputError:
    """The error for a stored workflow that the run did not write."""
    words = "damaged, or written by something other than the run"
    return InputError(f"{path}: {words}: run the workflow's file again, or restore a copy")


def check_sum(path: str | Path) -> str:
    """A check sum that reveals changes of a file."""
    with open(path, "rb") as file:
        return f"{crc32(file.read()):08x}"


def _done_tasks(store: Store, names: list[str]) -> set[str]:
    """The tasks that are done according to the journal."""
    from eligo.execution import COMPLETE, unpacked

    names = [*names, *added_names(store.additions())]
    return {names[v] for kind, v in unpacked(store.moves()) if kind == COMPLETE}


def restart_execution(flow: Workflow, before: Execution, done: Iterable[Name]) -> Execution:
    """An execution of a workflow that grew like the execution *before*, with these tasks done."""
    if not before.additions:
        return Execution(flow, executed=done)
    game, finished = Execution(flow), set(done)
    for added in before.additions:
        arcs = [before.graph.named(arc) for arc in added.arcs]
        game.grow(added.tasks, [(u, v) for u, v in arcs], added.details)
    for name in game.dag.named(game.dag.order.tolist()):
        if name in finished:
            game.execute(name)
    return game


def digests(flow: Workflow) -> dict[str, bytes]:
    """A digest of every task by label, of its command and how it is run, its files and its parents; it reveals changes."""
    labels, result = flow.dag.labels, {}
    details = zip(*map(flow.column, ("command", "inputs", "outputs", "launch")), strict=True)
    for v, (command, inputs, outputs, launch) in enumerate(details):
        parents = sorted(labels[u] for u in flow.dag.parents_of(v).tolist())
        content = repr((command, sorted(inputs), sorted(outputs), parents))
        content += repr(how) if launch and (how := launch.content()) else ""
        result[labels[v]] = sha256(content.encode()).digest()[:16]
    return result
