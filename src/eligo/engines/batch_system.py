"""Batch systems: a worker on some node reads each job from a file and writes its results to another.

    FOLDER/SESSION/worker.py       the program that runs on the nodes; needs Python and nothing else
    FOLDER/SESSION/17.json         a job: its commands
    FOLDER/SESSION/17.json.begun   the same file once a worker has started the job, so that no job runs twice
    FOLDER/SESSION/17.txt          the output of the worker itself
    FOLDER/SESSION/done/17.json    the results of the job

So exit codes, times and memory do not depend on the system's accounting, and commands are never passed through a shell.
The folder must be on a file system that the nodes share with this machine.
"""

import json
import math
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self

from eligo.allocating.rooms import Needs, Room
from eligo.engines import worker
from eligo.engines.job_run import ending_of
from eligo.engines.jobs import Command, Ending, Job
from eligo.engines.slots import SlotEngine
from eligo.engines.worker import BEGUN, DONE, STOPPED, Performed
from eligo.errors import InputError, shorten
from eligo.work.demands import GPUS

SOON, SELDOM = 0.02, 1.0  # seconds between two checks for results
LATE = 60.0  # seconds until a file must be visible from another machine, after its writer has exited successfully
CLEAR = 5.0  # the same if its writer was stopped: it may not have written anything
AGAIN = 2.0, 60.0  # seconds until a system that did not answer is asked again: at first, and at most
TOOL = 120.0  # seconds that one of the system's programs may take
PARTING = 60.0  # seconds that jobs have to end when this process ends


class Sighting(NamedTuple):
    """The state of a job, as the batch system reports it."""

    #: the system's name for the job
    key: str
    over: bool = False
    #: whether its worker exited successfully, so that the results are written
    well: bool = False
    why: str = ""
    #: whether the cause is not the task itself
    lost: bool = True
    #: whether the system still holds the job, although it should not
    to_remove: bool = False


class UnansweredError(InputError):
    """The batch system did not answer, or its answer does not say what it did; it may answer later."""


class Queue(Protocol):
    """The operations of a batch system."""

    name: str
    #: seconds between two checks: just after a change, and at most
    looks: tuple[float, float]

    def submit(self, folder: Path, job: Job, words: Sequence[str]) -> str:
        """Submit a job that runs these words in a folder, and return the system's name for it; InputError if refused."""
        ...

    def look(self, folder: Path) -> Mapping[int, Sighting] | None:
        """The state of a folder's jobs by number, or None if the system did not answer. A missing job has ended."""
        ...

    def remove(self, keys: Collection[str]) -> None:
        """Remove jobs from the queue, and stop those that are running."""
        ...

    def end_strays(self, mark: str) -> None:
        """Remove all jobs of a run, and wait until they have ended."""
        ...


def query(words: Sequence[str], unanswered: Sequence[str], folder: Path | None = None, stdin: str = "") -> str:
    """Return a program's output; raise `UnansweredError` if its error message contains one of the words *unanswered*."""
    try:
        done = subprocess.run(  # noqa: S603 - a list of words, none of them from the user
            words, cwd=folder, input=stdin, capture_output=True, text=True, errors="replace", timeout=TOOL, check=False
        )
    except FileNotFoundError:
        raise InputError(f"{words[0]} is not installed on this machine") from None
    except subprocess.TimeoutExpired:
        raise UnansweredError(f"{words[0]} took longer than {TOOL:g} s") from None
    if done.returncode == 0:
        return done.stdout
    complaint = " ".join((done.stderr + done.stdout).split())
    if any(word in complaint.lower() for word in unanswered):
        raise UnansweredError(complaint)
    raise InputError(f"{words[0]}: {shorten(complaint, 300)}")


def require(engine: str, *programs: str) -> None:
    """Refuse an engine whose programs are not on this machine, before any task is started."""
    for program in programs:
        if shutil.which(program) is None:
            raise InputError(f"engine {engine} needs the program {program}, which is not on the PATH")


@dataclass(slots=True, eq=False)
class _Out:
    """A submitted job that has not ended."""

    job: Job
    #: the system's name for the job; None if the system is not known to have it
    key: str | None = None
    #: how many submissions got no answer, and when the next one is due
    tries: int = 0
    due: float = 0.0
    #: how many of its tasks are reported
    reported: int = 0
    #: the final state that the system reported, and how long to wait for the results after it
    seen: Sighting | None = None
    until: float = math.inf
    stopped: bool = False


class QueueEngine(SlotEngine):
    """Runs a limited number of jobs at a time in a batch system, so that eligo decides the order, not the queue."""

    #: the resources, besides cores and memory, that it requests for each job, and that need no total
    requests = frozenset({GPUS})

    def __init__(self, queue: Queue, workers: int, folder: str | Path, python: str | None = None) -> None:
        super().__init__(workers, queue.name, Room(math.inf))
        self._queue = queue
        self._folder = Path(folder).resolve() / secrets.token_hex(4)
        self._words = (python or sys.executable, "-I", "-S", "-B", "worker.py")
        self._out: dict[int, _Out] = {}
        self._ended: list[Ending] = []
        self._pause, self._gathers = SOON, 0.0
        self._look_pause, self._looks = queue.looks[0], 0.0

    def resize(self, workers: int) -> None:
        """See `Resizable`."""
        busy = {str(out.job.client) for out in self._out.values()}
        self.slots, self._clients = workers, tuple(f"{self.name} {number}" for number in range(workers, 0, -1))
        self._asks = self._possible_asks()
        self._free = dict.fromkeys(client for client in self._clients if client not in busy)

    def limited(self, room: Room) -> Self:
        """This engine, which counts the resources of its jobs in a room, as far as the room has them."""
        self.room = room
        self._asks = self._possible_asks()
        return self

    def heed(self, needs: Needs) -> None:
        """See `Heeding`."""
        if self.room.counts_others:
            super().heed(needs)

    def start(self, job: Job) -> None:
        """Submit a job, or submit it later if the system does not answer."""
        works = [work_document(work) for work in job.works]
        self._prepare()
        text = json.dumps({"works": works, "timeout": job.timeout, "again": False})
        (self._folder / f"{job.number}.json").write_text(text, "ascii")
        self.occupy(job)
        out = self._out[job.number] = _Out(job)
        self._submit(out)
        self._stir()

    def _prepare(self) -> None:
        if not self._folder.exists():
            (self._folder / DONE).mkdir(parents=True)
            shutil.copyfile(worker.__file__, self._folder / "worker.py")

    def _submit(self, out: _Out) -> None:
        try:
            out.key = self._queue.submit(self._folder, out.job, (*self._words, f"{out.job.number}.json"))
        except UnansweredError:
            out.due = time.monotonic() + min(AGAIN[0] * 2**out.tries, AGAIN[1])
            out.tries += 1
        except InputError as error:
            self._give_up(out, str(error), lost=False)

    def wait(self, seconds: float | None) -> list[Ending]:
        """See `Engine`."""
        deadline = math.inf if seconds is None else time.monotonic() + seconds
        while True:
            self._gather()
            self._look()
            now = time.monotonic()
            if self._ended or now >= deadline:
                break
            time.sleep(min(self._pause, deadline - now))
        ended, self._ended = self._ended, []
        return ended

    def _gather(self) -> None:
        """Report new results; the longer nothing arrives, the less often this checks."""
        if time.monotonic() < self._gathers:
            return
        for name in os.listdir(self._folder / DONE) if self._out else ():
            number = name.removesuffix(".json")
            if number.isdecimal() and (out := self._out.get(int(number))) is not None:
                self._tell(out, read_performed(self._folder / DONE / name))
        self._pause = SOON if self._ended else min(1.5 * self._pause, SELDOM)
        self._gathers = time.monotonic() + self._pause

    def _tell(self, out: _Out, performed: Sequence[Performed]) -> None:
        """Report those tasks of a job that are new."""
        for place in range(out.reported, len(performed)):
            self._ended.append(ending_of(out.job, place, performed[place]))
            out.reported += 1
            if self._ended[-1].last:
                self._finish(out)

    def _finish(self, out: _Out) -> None:
        """Delete the files of a job that is over, and free its slot."""
        number = out.job.number
        del self._out[number]
        self.vacate(out.job, ())
        for name in (f"{number}.json", f"{number}.json{BEGUN}", f"{number}.txt", f"{DONE}/{number}.json"):
            (self._folder / name).unlink(missing_ok=True)
        self._stir()

    def _give_up(self, out: _Out, why: str, lost: bool = True) -> None:
        now = time.time()
        self._ended.append(ending_of(out.job, out.reported, Performed(now, now, why, lost=lost)))
        self._finish(out)

    def _stir(self) -> None:
        """Check more often again, because something happened."""
        self._pause, self._gathers = SOON, 0.0
        self._look_pause = self._queue.looks[0]
        self._looks = min(self._looks, time.monotonic() + self._look_pause)

    def _look(self) -> None:
        """Ask the system for the state of all jobs, less often if nothing happens, and resubmit jobs that it did not take."""
        now = time.monotonic()
        if not self._out or now < self._looks:
            return
        sightings = self._queue.look(self._folder)
        self._look_pause = min(1.5 * self._look_pause, self._queue.looks[1])
        self._looks = time.monotonic() + self._look_pause
        if sightings is not None:
            for number, out in list(self._out.items()):
                self._compare(out, sightings.get(number), now)

    def _compare(self, out: _Out, sighting: Sighting | None, now: float) -> None:
        """Act on the state that the system reports for a job."""
        if out.key is None and sighting is None:
            if out.stopped:
                self._give_up(out, STOPPED)
            elif out.due <= now:
                self._submit(out)
            return
        if sighting is None:
            sighting = Sighting(str(out.key), True, why="it is no longer in the queue")
        out.key = sighting.key
        if sighting.over and out.seen is None:
            out.seen, out.until = sighting, now + (LATE if sighting.well else 0.0 if self._never_began(out) else CLEAR)
            os.utime(self._folder / DONE)  # makes the client of a network file system look again
            if sighting.to_remove:
                self._remove([out])
        elif out.stopped and not sighting.over:
            self._remove([out])
        if out.seen is not None and now >= out.until:
            self._gather_one(out)

    def _never_began(self, out: _Out) -> bool:
        """Whether no worker has started a job; if so, none will, because its file is deleted."""
        with suppress(FileNotFoundError):
            (self._folder / f"{out.job.number}.json").unlink()
            return True
        return False

    def _gather_one(self, out: _Out) -> None:
        """Check for the results of a job that is over one last time."""
        self._tell(out, read_performed(self._folder / DONE / f"{out.job.number}.json"))
        if out.job.number in self._out and out.seen is not None:
            self._give_up(out, f"{out.seen.why}{self._worker_output(out)}", out.seen.lost)

    def _worker_output(self, out: _Out) -> str:
        """The end of the worker's own output, which says why it could not even start."""
        with suppress(OSError):
            lines = (self._folder / f"{out.job.number}.txt").read_text("utf-8", "replace").split("\n")
            return "".join(f": {line.strip()[:300]}" for line in lines if line.strip())[-300:]
        return ""

    def _remove(self, outs: Sequence[_Out]) -> None:
        with suppress(InputError):  # jobs that are still there are removed after the next check
            self._queue.remove([out.key for out in outs if out.key is not None])

    def cancel(self, jobs: Sequence[Job]) -> None:
        """Remove jobs from the queue, and stop those that are running."""
        outs = [out for job in jobs if (out := self._out.get(job.number)) is not None and not out.stopped]
        for out in outs:
            out.stopped = True
            if out.key is None and not out.tries:
                self._give_up(out, STOPPED)
        if outs:
            self._remove(outs)
            self._stir()

    def close(self) -> None:
        """Stop everything that is running, and delete our files."""
        self.cancel([out.job for out in self._out.values()])
        until = time.monotonic() + PARTING
        while self._out and time.monotonic() < until:
            self.wait(1.0)
        shutil.rmtree(self._folder, ignore_errors=True)

    def end_strays(self, mark: str) -> None:
        """Remove jobs of this run that outlived the process that submitted them, and the files that they would start from."""
        if self._folder.parent.exists():
            try:
                self._queue.end_strays(mark)
            except UnansweredError as error:
                why = f"cannot tell whether jobs of an earlier run are still in the queue: {error}"
                raise InputError(why) from None
            for folder in self._folder.parent.glob("*/worker.py"):
                if folder.parent != self._folder:
                    shutil.rmtree(folder.parent, ignore_errors=True)


def work_document(work: object) -> dict[str, Any]:
    """A command in the form that the worker reads."""
    if not isinstance(work, Command):
        raise InputError("batch systems run commands, not functions: use another engine")
    fields = {name: getattr(work, name) for name in ("argv", "folder", "out", "err")}
    limit = {} if work.timeout is None else {"timeout": work.timeout}
    return {**fields, "environment": dict(work.environment), **limit}


def read_performed(path: Path) -> list[Performed]:
    """The results that a worker wrote; empty if there are none yet, or if the file is not completely visible yet."""
    with suppress(OSError, ValueError):
        return [Performed(*row) for row in json.loads(path.read_bytes())]
    return []


def wait_until_gone(remaining: Callable[[], object]) -> None:
    """Wait until *remaining* returns nothing; raise `InputError` if that takes too long."""
    until = time.monotonic() + PARTING
    while remaining():
        if time.monotonic() > until:
            raise InputError("jobs of an earlier run are still in the queue: remove them, then resume")
        time.sleep(0.5)
