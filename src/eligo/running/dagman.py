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
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from eligo.engines import worker
from eligo.engines.htcondor import ABORTED, EVICTED, TERMINATED, UNANSWERED, description
from eligo.engines.queued import UnansweredError, as_told, asked, performed_in
from eligo.errors import InputError
from eligo.execution import Execution
from eligo.formats.histories.htcondor import events
from eligo.names import Name
from eligo.running.commands import WorkFor
from eligo.running.folder import RunFolder
from eligo.stores import Attempt
from eligo.workflow import Workflow, priority_numbers

PLACE, DAG, RESCUE = "dagman", "flow.dag", "flow.dag.rescue"
EVERY = 0.5  # seconds between two looks at the logs
DAWDLES = 60.0  # seconds between two questions whether DAGMan is still there
MOST_STARTS = 3  # of a DAGMan that comes to nothing
_COMPLAINT = re.compile(r'(?:ERROR "|(?:ERROR|Warning): )(?!failed to get attribute)')
_DONE = re.compile(r"^DONE n([0-9]+)\s*$", re.MULTILINE)
_CLUSTER = re.compile(r"submitted to cluster ([0-9]+)")


class Outcome(NamedTuple):
    """What became of a task: done, failed, futile, or waiting where DAGMan was stopped before."""

    state: str
    seconds: float = 0.0
    failure: str | None = None
    code: int | None = None


@dataclass(frozen=True)
class Handed:
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
    python: str = sys.executable

    @property
    def place(self) -> Path:
        """The folder of the files for DAGMan."""
        return self.folder.path.resolve() / PLACE

    def done(self) -> set[int]:
        """The tasks of which DAGMan's jobs wrote that they are done."""
        return {v for v in range(len(self.flow)) if (told := self.told(v)) and told.failure is None}

    def told(self, v: int) -> worker.Performed | None:
        """What the last attempt at a task came to."""
        return next(iter(performed_in(self.place / worker.DONE / f"{v}.json")), None)


def run_dagman(handed: Handed, watch: Callable[[Mapping[str, int]], bool] | None = None) -> dict[Name, Outcome]:
    """Run a workflow by DAGMan to its end, or follow it where it still runs; what happened to every task.

    *watch* is told now and then how many events of each kind there were, such as `executing`, and says whether to stop.
    """
    key = handed.folder.store.facts().get("dagman", "")
    if not (key and _is_there(key)):
        game = handed.folder.resume(handed.flow).execution
        key = _submitted(handed, {handed.flow.dag.number(task) for task in game.executed})
        handed.folder.store.remember(dagman=key)
    else:
        game = handed.folder.recall(handed.flow).execution
    if key:
        _follow(handed, key, watch)
        _check(handed, key)
    outcomes = {task: _outcome(handed, v) for v, task in enumerate(handed.flow.dag.tasks)}
    _keep(handed, game)
    return _with_futile(handed.flow, game, outcomes)


def _is_there(key: str) -> bool:
    return bool(asked(["condor_q", key, "-af", "ClusterId"], UNANSWERED).strip())


def _submitted(handed: Handed, done: set[int]) -> str:
    """Write the files and hand them in; what DAGMan's job is called, or nothing where all is done."""
    place, text = handed.place, "".join(_lines(handed))
    if not (place / DAG).exists() or (place / DAG).read_text("ascii") != text:
        shutil.rmtree(place, ignore_errors=True)
        _write(handed, text)
    done = done | handed.done()
    if len(done) == len(handed.flow):
        return ""
    _rescue(place, done)
    for left in ("condor.sub", "lib.out", "lib.err", "dagman.log", "dagman.out", "nodes.log", "metrics", "lock"):
        (place / f"{DAG}.{left}").unlink(missing_ok=True)
    mark = f'+EligoRun = "{handed.folder.mark}"'
    words = ["condor_submit_dag", "-maxjobs", str(handed.workers), "-append", mark, DAG]
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


def _lines(handed: Handed) -> Iterator[str]:
    """The text for DAGMan."""
    flow, numbers = handed.flow, priority_numbers(handed.order)
    for v, name in enumerate(flow.dag.tasks):
        task = flow.task(name)
        kind, memory = ("large", f' memory="{-(-task.memory // 1024)}K"') if task.memory else ("plain", "")
        yield f'JOB n{v} {kind}.sub\nVARS n{v} job="{v}" cores="{max(1, -int(-(task.cores or 1) // 1))}"{memory}\n'
        yield f"PRIORITY n{v} {numbers[name]}\nRETRY n{v} {handed.retries}\n"
        children = flow.dag.children_of(v).tolist()
        if children:
            yield f"PARENT n{v} CHILD {' '.join(f'n{w}' for w in children)}\n"


def _write(handed: Handed, text: str) -> None:
    """The files of a workflow that was not handed in before."""
    place = handed.place
    (place / worker.DONE).mkdir(parents=True)
    shutil.copyfile(worker.__file__, place / "worker.py")
    words = (handed.python, "-I", "-S", "-B", "worker.py", "$(job).json")
    for kind, memory in (("plain", ""), ("large", "$(memory)")):
        lines = description(words, handed.folder.mark, "$(cores)", memory)
        rest = ["output = $(job).txt", "error = $(job).txt", "queue"]
        (place / f"{kind}.sub").write_text("\n".join([*lines, *rest, ""]), "utf-8")
    for v, name in enumerate(handed.flow.dag.tasks):
        job = {"works": [as_told(handed.work(name, 1))], "timeout": handed.timeout, "again": True}
        (place / f"{v}.json").write_text(json.dumps(job), "ascii")
    (place / DAG).write_text(text, "ascii")


def _follow(handed: Handed, key: str, watch: Callable[[Mapping[str, int]], bool] | None) -> None:
    """Until DAGMan has ended, by the log of its own job; where that says nothing for long, by the queue."""
    stopping, asks_at = False, time.monotonic() + DAWDLES
    while not _ending(handed.place / f"{DAG}.dagman.log"):
        time.sleep(EVERY)
        if watch is not None and watch(_happened(handed.place / f"{DAG}.nodes.log")) and not stopping:
            asked(["condor_rm", key], UNANSWERED)
            stopping = True
        if time.monotonic() > asks_at:
            asks_at = time.monotonic() + DAWDLES
            try:
                if not _is_there(key):
                    return
            except UnansweredError:
                continue


def _check(handed: Handed, key: str) -> None:
    """Where DAGMan comes to nothing, stop it and say what it complained of."""
    again = _ending(handed.place / f"{DAG}.dagman.log") == "begins anew"
    if again:
        asked(["condor_rm", key], UNANSWERED)
    if again or not any((handed.place / worker.DONE).iterdir()):
        said = [line for line in _text(handed.place / f"{DAG}.dagman.out").splitlines() if _COMPLAINT.search(line)]
        if said:
            raise InputError(f"DAGMan ran nothing: {'; '.join(_COMPLAINT.split(line)[-1] for line in said[-3:])}")


def _text(log: Path) -> str:
    return log.read_text("utf-8", "replace") if log.exists() else ""


def _ending(log: Path) -> str:
    """How DAGMan has ended: nothing while it runs, or that it only ever begins anew."""
    happened = Counter(event.number for event in events(_text(log), Counter()))
    if happened[TERMINATED] or happened[ABORTED]:
        return "ended"
    return "begins anew" if happened[EVICTED] >= MOST_STARTS else ""


KINDS = {"000": "submitted", "001": "executing", "004": "evicted", "005": "terminated", "009": "removed", "012": "held"}


def _happened(log: Path) -> Counter[str]:
    return Counter(KINDS[event.number] for event in events(_text(log), Counter()) if event.number in KINDS)


def _outcome(handed: Handed, v: int) -> Outcome:
    told = handed.told(v)
    if told is None:
        return Outcome("waiting")
    state = "done" if told.failure is None else "waiting" if told.lost else "failed"
    return Outcome(state, told.ended - told.began, told.failure, told.code)


def _keep(handed: Handed, game: Execution) -> None:
    """Write down what happened, in the order in which it did, as any run does."""
    flow, store = handed.flow, handed.folder.store
    told = sorted((found.ended, v) for v in range(len(flow)) if (found := handed.told(v)) is not None)
    notes = []
    for _, v in told:
        task, found = flow.dag.tasks[v], handed.told(v)
        if found is None or found.lost or task in game.executed:
            continue
        game.take(task)
        (game.fail if found.failure else game.complete)(task)
        known = (found.began, found.ended, found.failure, found.code, found.memory, 0)
        notes.append(Attempt(store.next_attempt(), v, "dagman", *known))
    store.add(game.since(store.kept), notes)
    store.flush()


def _with_futile(flow: Workflow, game: Execution, outcomes: dict[Name, Outcome]) -> dict[Name, Outcome]:
    """The same, with what was done before, and what hangs on a failure."""
    futile = set(game.futile)
    for task in flow.dag.tasks:
        if task in game.executed and outcomes[task].state != "done":
            outcomes[task] = Outcome("done")
        elif task in futile:
            outcomes[task] = Outcome("futile")
    return outcomes
