"""Runs a workflow with HTCondor's DAGMan, which continues without this process; a later process can follow it.

Nodes are named by task number and run the same worker as jobs of the engine `htcondor`, so commands, logs and results are
the same. The folder `dagman` of the run contains:

    flow.dag             nodes, arcs and priorities
    17.json              the command of a task, and done/17.json its result
    flow.dag.*           files of DAGMan: its log, the events of its jobs
    flow.dag.rescue001   finished nodes, from which DAGMan resumes: written by it after failures, and by this module
"""

import json
import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from eligo.engines import worker
from eligo.engines.batch_system import UnansweredError, query, read_performed, require, work_document
from eligo.engines.htcondor import (
    ABORTED,
    EVICTED,
    HELD,
    UNANSWERED,
    CondorQueue,
    EventLog,
    description,
    take_out,
)
from eligo.errors import InputError, shorten
from eligo.execution import Execution
from eligo.formats.histories.htcondor import EXECUTING, SUBMITTED, TERMINATED
from eligo.names import Name
from eligo.running.commands import WorkFor
from eligo.running.folder import RunFolder
from eligo.running.task_files import TaskFiles
from eligo.work.attempts import Attempt, answer_to
from eligo.work.tries import RETRIES
from eligo.workflow import Workflow, priority_numbers

PLACE, DAG, RESCUE = "dagman", "flow.dag", "flow.dag.rescue"
EVERY = 0.5  # seconds between two checks of the logs
DAWDLES = 60.0  # seconds between two checks whether DAGMan is still in the queue
#: the events of nodes that are counted
KINDS = {
    SUBMITTED: "submitted", EXECUTING: "executing", EVICTED: "evicted", TERMINATED: "terminated", ABORTED: "removed",
    HELD: "held",
}  # fmt: skip
MOST_STARTS = 3  # number of restarts after which DAGMan is stopped
_COMPLAINT = re.compile(r'(?:ERROR "|(?:ERROR|Warning): )(?!failed to get attribute)')
_DONE = re.compile(r"^DONE n([0-9]+)\s*$", re.MULTILINE)
_CLUSTER = re.compile(r"submitted to cluster ([0-9]+)")


class Fate(NamedTuple):
    """The result of a task: done, failed, blocked, or pending if DAGMan was stopped earlier."""

    state: str
    seconds: float = 0.0
    failure: str | None = None
    code: int | None = None


@dataclass(frozen=True)
class DagmanJob:
    """A workflow for DAGMan, and how to run it."""

    flow: Workflow
    folder: RunFolder
    #: maximum number of jobs in DAGMan's queue
    workers: int
    order: tuple[Name, ...]
    #: returns the command of a task
    work: WorkFor
    retries: int = RETRIES
    timeout: float | None = None
    #: the folder for tasks, if the user gave one
    directory: str | None = None
    python: str = sys.executable
    #: the files of its tasks; None: missing files are not checked
    files: TaskFiles | None = None

    @property
    def place(self) -> Path:
        """The folder of the files for DAGMan."""
        return self.folder.path.resolve() / PLACE

    def results(self) -> dict[int, worker.Performed]:
        """The results of the last attempts, for tasks that have one."""
        attempts = ((v, read_performed(self.place / worker.DONE / f"{v}.json")) for v in range(len(self.flow)))
        return {v: performed[0] for v, performed in attempts if performed}

    def text(self) -> str:
        """The file for DAGMan; its last line is a digest of all commands, so that another workflow has another text."""
        jobs = "".join(self.job(name) for name in self.flow.dag.tasks)
        return "".join([*_lines(self), f"# {sha256(jobs.encode()).hexdigest()}\n"])

    def job(self, name: Name) -> str:
        """The file that the worker reads."""
        return json.dumps({"works": [work_document(self.work(name, 1))], "timeout": self.timeout, "again": True})


def run_dagman(job: DagmanJob, watch: Callable[[Mapping[str, int]], bool] | None = None) -> dict[Name, Fate]:
    """Run a workflow with DAGMan, or follow a DAGMan that is still running; returns the result of every task.

    *watch* is called regularly with the number of events of each kind, for example `executing`, and returns whether to stop.
    """
    _check_needs(job.flow)
    require("htcondor-dagman", "condor_submit_dag", "condor_q", "condor_rm")
    running, text = _running(job.folder.mark), job.text()
    dag_path = job.place / DAG
    same = dag_path.exists() and dag_path.read_text("ascii") == text
    if running and not same:
        raise InputError(f"DAGMan is still running an earlier version of this workflow: remove its job {running} first")
    if running:
        resumed = job.folder.recall(job.flow)
    else:
        CondorQueue(job.folder.mark).end_strays(job.folder.mark)
        resumed = job.folder.resume(job.flow)
        if job.files is not None:
            job.files.check_inputs(resumed.execution.executed)
    game = resumed.execution
    if game.additions:
        raise InputError(
            "tasks were added to this run, which htcondor-dagman does not support: use another engine"
        ).cured_by("on")
    job.folder.begin(job.flow, resumed, directory=job.directory)
    if not running:
        if not same:
            _write(job, text)
        running = _submit(job, {job.flow.dag.number(task) for task in game.executed})
    if running:
        _check(job, running, _follow(job, running, watch))
    performed = job.results()
    _keep(job, game, performed)
    return dict(_fates(job.flow, game, performed))


def _check_needs(flow: Workflow) -> None:
    """Refuse tasks with needs that DAGMan does not count."""
    columns = (flow.column(what) for what in ("resources", "more_memory"))
    for name, resources, more_memory in zip(flow.dag.tasks, *columns, strict=True):
        if resources or more_memory:
            what = shorten(resources[0][0]) if resources else "more memory after a failure"
            message = f"task {shorten(name)!r} needs {what}, which htcondor-dagman does not support: use --on htcondor"
            raise InputError(message)


def _running(mark: str) -> str:
    """The id of the DAGMan job of a run, or ""; it runs in the scheduler universe."""
    chosen = ["-constraint", f'EligoRun == "{mark}" && JobUniverse == 7']
    return query(["condor_q", *chosen, "-af", "ClusterId"], UNANSWERED).strip()


def _submit(job: DagmanJob, done: set[int]) -> str:
    """Submit the workflow; returns the id of DAGMan's job, or "" if every task is done."""
    place = job.place
    done = done | {v for v, performed in job.results().items() if performed.failure is None}
    if len(done) == len(job.flow):
        return ""
    _rescue(place, done)
    for suffix in ("condor.sub", "lib.out", "lib.err", "dagman.log", "dagman.out", "nodes.log", "metrics", "lock"):
        (place / f"{DAG}.{suffix}").unlink(missing_ok=True)
    for v in set(range(len(job.flow))) - done:
        (place / worker.DONE / f"{v}.json").unlink(missing_ok=True)
    mark = f'+EligoRun = "{job.folder.mark}"'
    words = ["condor_submit_dag", "-maxjobs", str(job.workers), "-append", mark, DAG]
    match = _CLUSTER.search(answer := query(words, UNANSWERED, place))
    if match is None:
        raise InputError(f"cannot read the output of condor_submit_dag: {answer[-300:]}")
    return match[1]


def _rescue(place: Path, done: set[int]) -> None:
    """Write finished tasks where DAGMan reads them: its own last rescue file, or a new one."""
    last = max([*place.glob(f"{RESCUE}[0-9][0-9][0-9]"), place / f"{RESCUE}001"])
    finished = {int(v) for v in _DONE.findall(_text(last))} | done
    if finished:
        last.write_text("".join(f"DONE n{v}\n" for v in sorted(finished)), "ascii")


def _lines(job: DagmanJob) -> Iterator[str]:
    """The lines of the file for DAGMan."""
    flow, numbers = job.flow, priority_numbers(job.order)
    for v, name in enumerate(flow.dag.tasks):
        task = flow.task(name)
        kind, memory = ("large", f' memory="{-(-task.memory // 1024)}K"') if task.memory else ("plain", "")
        yield f'JOB n{v} {kind}.sub\nVARS n{v} job="{v}" cores="{max(1, -int(-(task.cores or 1) // 1))}"{memory}\n'
        yield f"PRIORITY n{v} {numbers[name]}\nRETRY n{v} {job.retries}\n"
        children = flow.dag.children_of(v).tolist()
        if children:
            yield f"PARENT n{v} CHILD {' '.join(f'n{w}' for w in children)}\n"


def _write(job: DagmanJob, text: str) -> None:
    """Write the files of a new workflow, and remove those of an older one."""
    place = job.place
    shutil.rmtree(place, ignore_errors=True)
    (place / worker.DONE).mkdir(parents=True)
    shutil.copyfile(worker.__file__, place / "worker.py")
    words = (job.python, "-I", "-S", "-B", "worker.py", "$(job).json")
    for kind, memory in (("plain", ""), ("large", "$(memory)")):
        lines = description(words, job.folder.mark, "$(cores)", memory)
        rest = ["output = $(job).txt", "error = $(job).txt", "queue"]
        (place / f"{kind}.sub").write_text("\n".join([*lines, *rest, ""]), "utf-8")
    for v, name in enumerate(job.flow.dag.tasks):
        (place / f"{v}.json").write_text(job.job(name), "ascii")
    (place / DAG).write_text(text, "ascii")


def _follow(job: DagmanJob, key: str, watch: Callable[[Mapping[str, int]], bool] | None) -> str:
    """Wait until DAGMan has ended, according to its job's log or, at longer intervals, the queue; returns how it ended."""
    own, nodes = (EventLog(job.place / f"{DAG}.{log}") for log in ("dagman.log", "nodes.log"))
    of_dagman, of_nodes = Counter[str](), Counter[str]()
    stopping, asks_at = False, time.monotonic() + DAWDLES
    while True:
        of_dagman.update(event.number for event in own.new())
        of_nodes.update(KINDS[event.number] for event in nodes.new() if event.number in KINDS)
        if of_dagman[TERMINATED] or of_dagman[ABORTED]:
            return "ended"
        if of_dagman[EVICTED] >= MOST_STARTS:
            return "begins anew"
        if watch is not None and watch(of_nodes) and not stopping:
            take_out([key])
            stopping = True
        if time.monotonic() > asks_at:
            asks_at = time.monotonic() + DAWDLES
            with suppress(UnansweredError):
                if not _running(job.folder.mark):
                    return "gone"
        time.sleep(EVERY)


def _check(job: DagmanJob, key: str, ending: str) -> None:
    """If DAGMan ran nothing, stop it and raise its complaints."""
    again = ending == "begins anew"
    if again:
        take_out([key])
    if again or not any((job.place / worker.DONE).iterdir()):
        complaints = [line for line in _text(job.place / f"{DAG}.dagman.out").splitlines() if _COMPLAINT.search(line)]
        if complaints:
            raise InputError(f"DAGMan ran nothing: {'; '.join(_COMPLAINT.split(line)[-1] for line in complaints[-3:])}")


def _text(log: Path) -> str:
    return log.read_text("utf-8", "replace") if log.exists() else ""


def _keep(job: DagmanJob, game: Execution, performed: Mapping[int, worker.Performed]) -> None:
    """Store the results as any run does, so that the run can be resumed with any engine."""
    store, notes = job.folder.store, list[Attempt]()
    tries = Counter(store.attempted())
    for v in job.flow.dag.order.tolist():
        task, result = job.flow.dag.tasks[v], performed.get(v)
        if result is None or result.lost or task not in game.eligible:
            continue
        game.take(task)
        (game.fail if result.failure else game.complete)(task)
        answer = answer_to(result.failure, result.lost)
        outcome = (result.began, result.ended, answer, result.failure, result.code, result.memory)
        notes.append(Attempt("", 0, v, tries[v] + 1, "dagman", "", *outcome))
    store.add(game.since(store.kept), notes)
    store.flush()


def _fates(flow: Workflow, game: Execution, performed: Mapping[int, worker.Performed]) -> Iterator[tuple[Name, Fate]]:
    """The result of every task, of this run or an earlier one."""
    blocked = set(game.blocked)
    for v, task in enumerate(flow.dag.tasks):
        result = performed.get(v)
        if task in game.executed:
            yield task, Fate("done", max(0.0, result.ended - result.began) if result else 0.0)
        elif result is not None and task in game.failed:
            yield task, Fate("failed", max(0.0, result.ended - result.began), result.failure, result.code)
        else:
            yield task, Fate("blocked" if task in blocked else "pending")
