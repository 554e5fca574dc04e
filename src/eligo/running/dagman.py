"""A whole workflow handed to HTCondor's DAGMan, which runs it without us; we follow, and go on following when we come back.

The nodes are called by the numbers of their tasks and run the same worker as jobs of the engine `htcondor`, so that
commands, logs and results are the same. In the folder `dagman` of the run:

    flow.dag             nodes, arcs and priorities
    17.json              the command of a task, and done/17.json what came of it
    flow.dag.*           what DAGMan writes: its log, the events of its jobs
    flow.dag.rescue001   what was done before, from which DAGMan goes on: written by it after failures, and here
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
from eligo.engines.htcondor import (
    ABORTED,
    EVICTED,
    TERMINATED,
    UNANSWERED,
    CondorQueue,
    EventLog,
    description,
    take_out,
)
from eligo.engines.queued import UnansweredError, as_told, asked, performed_in, require
from eligo.errors import InputError
from eligo.execution import Execution
from eligo.names import Name
from eligo.running.commands import WorkFor
from eligo.running.folder import RunFolder
from eligo.running.task_files import TaskFiles
from eligo.work.attempts import Attempt, answer_to
from eligo.workflow import Workflow, priority_numbers

PLACE, DAG, RESCUE = "dagman", "flow.dag", "flow.dag.rescue"
EVERY = 0.5  # seconds between two looks at the logs
DAWDLES = 60.0  # seconds between two questions whether DAGMan is still there
#: what is counted of the events of nodes
KINDS = {"000": "submitted", "001": "executing", "004": "evicted", "005": "terminated", "009": "removed", "012": "held"}
MOST_STARTS = 3  # of a DAGMan that comes to nothing
_COMPLAINT = re.compile(r'(?:ERROR "|(?:ERROR|Warning): )(?!failed to get attribute)')
_DONE = re.compile(r"^DONE n([0-9]+)\s*$", re.MULTILINE)
_CLUSTER = re.compile(r"submitted to cluster ([0-9]+)")


class Fate(NamedTuple):
    """What became of a task: done, failed, futile, or waiting where DAGMan was stopped before."""

    state: str
    seconds: float = 0.0
    failure: str | None = None
    code: int | None = None


@dataclass(frozen=True)
class DagmanJob:
    """What is handed to DAGMan, and how."""

    flow: Workflow
    folder: RunFolder
    #: how many jobs DAGMan may have in the queue at a time
    workers: int
    order: tuple[Name, ...]
    #: what a task runs
    work: WorkFor
    retries: int = 2
    timeout: float | None = None
    #: where the tasks should run, if somebody said so
    directory: str | None = None
    python: str = sys.executable
    #: the files of its tasks; None: those that should be there are not looked for
    files: TaskFiles | None = None

    @property
    def place(self) -> Path:
        """The folder of the files for DAGMan."""
        return self.folder.path.resolve() / PLACE

    def told(self) -> dict[int, worker.Performed]:
        """What the last attempt at each task came to, as far as there was one."""
        found = ((v, performed_in(self.place / worker.DONE / f"{v}.json")) for v in range(len(self.flow)))
        return {v: performed[0] for v, performed in found if performed}

    def text(self) -> str:
        """The file for DAGMan; whatever is run is told by its last line, so that another workflow has another text."""
        jobs = "".join(self.job(name) for name in self.flow.dag.tasks)
        return "".join([*_lines(self), f"# {sha256(jobs.encode()).hexdigest()}\n"])

    def job(self, name: Name) -> str:
        """What the worker reads."""
        return json.dumps({"works": [as_told(self.work(name, 1))], "timeout": self.timeout, "again": True})


def run_dagman(whole: DagmanJob, watch: Callable[[Mapping[str, int]], bool] | None = None) -> dict[Name, Fate]:
    """Run a workflow by DAGMan to its end, or follow it where it still runs; what happened to every task.

    *watch* is told now and then how many events of each kind there were, such as `executing`, and says whether to stop.
    """
    require("htcondor-dagman", "condor_submit_dag", "condor_q", "condor_rm")
    running, text = _running(whole.folder.mark), whole.text()
    known = whole.place / DAG
    same = known.exists() and known.read_text("ascii") == text
    if running and not same:
        raise InputError(f"DAGMan still runs an earlier form of this workflow: remove its job {running} first")
    if running:
        resumed = whole.folder.recall(whole.flow)
    else:
        CondorQueue(whole.folder.mark).end_strays(whole.folder.mark)
        resumed = whole.folder.resume(whole.flow)
        if whole.files is not None:
            whole.files.check_inputs(resumed.execution.executed)
    game = resumed.execution
    if game.additions:
        raise InputError("tasks were added to this run, and DAGMan cannot run them: choose another engine").cured_by(
            "on"
        )
    whole.folder.begin(whole.flow, resumed, directory=whole.directory)
    if not running:
        if not same:
            _write(whole, text)
        running = _submitted(whole, {whole.flow.dag.number(task) for task in game.executed})
    if running:
        _check(whole, running, _follow(whole, running, watch))
    told = whole.told()
    _keep(whole, game, told)
    return dict(_fates(whole.flow, game, told))


def _running(mark: str) -> str:
    """What the job is called in which DAGMan runs for a run, if it does; its universe is the scheduler's own."""
    chosen = ["-constraint", f'EligoRun == "{mark}" && JobUniverse == 7']
    return asked(["condor_q", *chosen, "-af", "ClusterId"], UNANSWERED).strip()


def _submitted(whole: DagmanJob, done: set[int]) -> str:
    """Hand the files in; what DAGMan's job is called, or nothing where all is done."""
    place = whole.place
    done = done | {v for v, told in whole.told().items() if told.failure is None}
    if len(done) == len(whole.flow):
        return ""
    _rescue(place, done)
    for left in ("condor.sub", "lib.out", "lib.err", "dagman.log", "dagman.out", "nodes.log", "metrics", "lock"):
        (place / f"{DAG}.{left}").unlink(missing_ok=True)
    for v in set(range(len(whole.flow))) - done:
        (place / worker.DONE / f"{v}.json").unlink(missing_ok=True)
    mark = f'+EligoRun = "{whole.folder.mark}"'
    words = ["condor_submit_dag", "-maxjobs", str(whole.workers), "-append", mark, DAG]
    found = _CLUSTER.search(answer := asked(words, UNANSWERED, place))
    if found is None:
        raise InputError(f"condor_submit_dag does not say what it did: {answer[-300:]}")
    return found[1]


def _rescue(place: Path, done: set[int]) -> None:
    """What was done, where DAGMan looks for it: its own last rescue file, or one of ours."""
    last = max([*place.glob(f"{RESCUE}[0-9][0-9][0-9]"), place / f"{RESCUE}001"])
    known = {int(v) for v in _DONE.findall(_text(last))} | done
    if known:
        last.write_text("".join(f"DONE n{v}\n" for v in sorted(known)), "ascii")


def _lines(whole: DagmanJob) -> Iterator[str]:
    """The text for DAGMan."""
    flow, numbers = whole.flow, priority_numbers(whole.order)
    for v, name in enumerate(flow.dag.tasks):
        task = flow.task(name)
        kind, memory = ("large", f' memory="{-(-task.memory // 1024)}K"') if task.memory else ("plain", "")
        yield f'JOB n{v} {kind}.sub\nVARS n{v} job="{v}" cores="{max(1, -int(-(task.cores or 1) // 1))}"{memory}\n'
        yield f"PRIORITY n{v} {numbers[name]}\nRETRY n{v} {whole.retries}\n"
        children = flow.dag.children_of(v).tolist()
        if children:
            yield f"PARENT n{v} CHILD {' '.join(f'n{w}' for w in children)}\n"


def _write(whole: DagmanJob, text: str) -> None:
    """The files of a workflow that was not handed in before, and nothing of another."""
    place = whole.place
    shutil.rmtree(place, ignore_errors=True)
    (place / worker.DONE).mkdir(parents=True)
    shutil.copyfile(worker.__file__, place / "worker.py")
    words = (whole.python, "-I", "-S", "-B", "worker.py", "$(job).json")
    for kind, memory in (("plain", ""), ("large", "$(memory)")):
        lines = description(words, whole.folder.mark, "$(cores)", memory)
        rest = ["output = $(job).txt", "error = $(job).txt", "queue"]
        (place / f"{kind}.sub").write_text("\n".join([*lines, *rest, ""]), "utf-8")
    for v, name in enumerate(whole.flow.dag.tasks):
        (place / f"{v}.json").write_text(whole.job(name), "ascii")
    (place / DAG).write_text(text, "ascii")


def _follow(whole: DagmanJob, key: str, watch: Callable[[Mapping[str, int]], bool] | None) -> str:
    """Until DAGMan has ended, by the log of its own job; where that says nothing for long, by the queue. How it ended."""
    own, nodes = (EventLog(whole.place / f"{DAG}.{log}") for log in ("dagman.log", "nodes.log"))
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
                if not _running(whole.folder.mark):
                    return "gone"
        time.sleep(EVERY)


def _check(whole: DagmanJob, key: str, ending: str) -> None:
    """Where DAGMan comes to nothing, stop it and say what it complained of."""
    again = ending == "begins anew"
    if again:
        take_out([key])
    if again or not any((whole.place / worker.DONE).iterdir()):
        said = [line for line in _text(whole.place / f"{DAG}.dagman.out").splitlines() if _COMPLAINT.search(line)]
        if said:
            raise InputError(f"DAGMan ran nothing: {'; '.join(_COMPLAINT.split(line)[-1] for line in said[-3:])}")


def _text(log: Path) -> str:
    return log.read_text("utf-8", "replace") if log.exists() else ""


def _keep(whole: DagmanJob, game: Execution, told: Mapping[int, worker.Performed]) -> None:
    """Write down what happened, as any run does, so that the run can go on anywhere."""
    store, notes = whole.folder.store, list[Attempt]()
    tries = Counter(store.attempted())
    for v in whole.flow.dag.order.tolist():
        task, found = whole.flow.dag.tasks[v], told.get(v)
        if found is None or found.lost or task not in game.eligible:
            continue
        game.take(task)
        (game.fail if found.failure else game.complete)(task)
        answer = answer_to(found.failure, found.lost)
        known = (found.began, found.ended, answer, found.failure, found.code, found.memory)
        notes.append(Attempt("", 0, v, tries[v] + 1, "dagman", "", *known))
    store.add(game.since(store.kept), notes)
    store.flush()


def _fates(flow: Workflow, game: Execution, told: Mapping[int, worker.Performed]) -> Iterator[tuple[Name, Fate]]:
    """What became of every task, by now or before."""
    futile = set(game.futile)
    for v, task in enumerate(flow.dag.tasks):
        found = told.get(v)
        if task in game.executed:
            yield task, Fate("done", max(0.0, found.ended - found.began) if found else 0.0)
        elif found is not None and task in game.failed:
            yield task, Fate("failed", max(0.0, found.ended - found.began), found.failure, found.code)
        else:
            yield task, Fate("futile" if task in futile else "waiting")
