"""Batch systems: a job is a file that a worker on some node reads, and what came of it one that it writes.

    FOLDER/SESSION/worker.py       what runs on the nodes; needs Python and nothing else
    FOLDER/SESSION/17.json         a job: its commands
    FOLDER/SESSION/17.json.begun   the same once a worker has begun it: nobody runs it twice
    FOLDER/SESSION/17.txt          what the worker itself printed
    FOLDER/SESSION/done/17.json    what came of it

So exit codes, times and memory come back without the system's accounting, and whatever is in a command never meets a shell.
The folder is on a file system that the nodes share with us.
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
from typing import Any, NamedTuple, Protocol

from eligo.allocating import Ask
from eligo.engines import worker
from eligo.engines.job_run import ending_of
from eligo.engines.jobs import ALIKE, Command, Ending, Job
from eligo.engines.worker import BEGUN, DONE, Performed
from eligo.errors import InputError, shorten

SOON, SELDOM = 0.02, 1.0  # seconds between two looks for what has come back
LATE = 60.0  # seconds that a file may take to be seen from another machine, once its writer has ended well
CLEAR = 5.0  # the same where its writer was stopped: it may not have written anything
AGAIN = 2.0, 60.0  # seconds until a system that did not answer is asked again: at first, and at most
TOOL = 120.0  # seconds that one of its programs may take
PARTING = 60.0  # seconds that jobs have to end when we do


class Sighting(NamedTuple):
    """How a batch system says that a job stands."""

    #: what the system calls it
    key: str
    over: bool = False
    #: whether its worker ended well, so that what came of it is written down
    well: bool = False
    why: str = ""
    #: whether it is not the task's own doing
    lost: bool = True
    #: whether the system still has it, and should not
    left: bool = False


class UnansweredError(InputError):
    """The batch system did not answer, or not in a way that says what it did; it may do so later."""


class Queue(Protocol):
    """What is asked of a batch system."""

    name: str
    #: seconds between two looks: when something has just happened, and at most
    looks: tuple[float, float]

    def submit(self, folder: Path, job: Job, words: Sequence[str]) -> str:
        """Hand in a job that runs these words in a folder; what the system calls it. InputError where it is refused."""
        ...

    def look(self, folder: Path) -> Mapping[int, Sighting] | None:
        """How the jobs of a folder stand, by their numbers; one that is not there is over. None: it did not answer."""
        ...

    def remove(self, keys: Collection[str]) -> None:
        """Take jobs out of the queue, and stop those that run."""
        ...

    def end_strays(self, mark: str) -> None:
        """Remove all jobs of a run, and wait until they have ended."""
        ...


def asked(words: Sequence[str], unanswered: Sequence[str], folder: Path | None = None, stdin: str = "") -> str:
    """What a program of a batch system prints; `UnansweredError` where its complaint has one of those words in it."""
    try:
        done = subprocess.run(  # noqa: S603 - a list of words, of which none is the user's
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
    """Refuse an engine whose programs are not on this machine, before any task is begun."""
    for program in programs:
        if shutil.which(program) is None:
            raise InputError(f"engine {engine} needs the program {program}, which is not on the PATH")


@dataclass(slots=True, eq=False)
class _Out:
    """A job under way."""

    job: Job
    #: what the system calls it; None: it does not have it, as far as is known
    key: str | None = None
    #: how often it was handed in without an answer, and when it is again
    tries: int = 0
    due: float = 0.0
    #: how many of its tasks are told
    told: int = 0
    #: how it ended by the system's word, and until when what came of it is waited for
    seen: Sighting | None = None
    until: float = math.inf
    stopped: bool = False


class QueueEngine:
    """Jobs in a batch system, so many at a time: the order is kept here, and the system's own queue stays short."""

    def __init__(self, queue: Queue, workers: int, folder: str | Path, python: str | None = None) -> None:
        self.name = queue.name
        self.slack = 0
        self._queue = queue
        self._folder = Path(folder).resolve() / secrets.token_hex(4)
        self._words = (python or sys.executable, "-I", "-S", "-B", "worker.py")
        self._free = [f"{queue.name} {number}" for number in range(workers, 0, -1)]
        self._asks = {client: Ask(client, speed=ALIKE) for client in self._free}
        self._out: dict[int, _Out] = {}
        self._ended: list[Ending] = []
        self._pause, self._gathers = SOON, 0.0
        self._look_pause, self._looks = queue.looks[0], 0.0

    def asks(self) -> Sequence[Ask]:
        """One for every job that may be handed in."""
        return [self._asks[client] for client in reversed(self._free)]

    def start(self, job: Job) -> None:
        """Hand in a job; where the system does not answer, later."""
        works = [as_told(work) for work in job.works]
        self._prepare()
        text = json.dumps({"works": works, "timeout": job.timeout, "again": False})
        (self._folder / f"{job.number}.json").write_text(text, "ascii")
        self._free.remove(str(job.client))
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
        """Tell what has come back; the longer nothing does, the less often that is looked for."""
        if time.monotonic() < self._gathers:
            return
        for name in os.listdir(self._folder / DONE) if self._out else ():
            number = name.removesuffix(".json")
            if number.isdecimal() and (out := self._out.get(int(number))) is not None:
                self._tell(out, performed_in(self._folder / DONE / name))
        self._pause = SOON if self._ended else min(1.5 * self._pause, SELDOM)
        self._gathers = time.monotonic() + self._pause

    def _tell(self, out: _Out, performed: Sequence[Performed]) -> None:
        """Say what became of those tasks of a job that are new."""
        for place in range(out.told, len(performed)):
            self._ended.append(ending_of(out.job, place, performed[place]))
            out.told += 1
            if self._ended[-1].last:
                self._finish(out)

    def _finish(self, out: _Out) -> None:
        """Nothing more comes of a job: its files go, and its slot is free."""
        number = out.job.number
        del self._out[number]
        self._free.append(str(out.job.client))
        for name in (f"{number}.json", f"{number}.json{BEGUN}", f"{number}.txt", f"{DONE}/{number}.json"):
            (self._folder / name).unlink(missing_ok=True)
        self._stir()

    def _give_up(self, out: _Out, why: str, lost: bool = True) -> None:
        now = time.time()
        self._ended.append(ending_of(out.job, out.told, Performed(now, now, why, lost=lost)))
        self._finish(out)

    def _stir(self) -> None:
        """Something happened: look more often again."""
        self._pause, self._gathers = SOON, 0.0
        self._look_pause = self._queue.looks[0]
        self._looks = min(self._looks, time.monotonic() + self._look_pause)

    def _look(self) -> None:
        """Ask the system how jobs stand, the longer nothing happens the less often; hand in what it did not take."""
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
        """What follows for a job from how the system says that it stands."""
        if out.key is None and sighting is None:
            if out.stopped:
                self._give_up(out, "stopped")
            elif out.due <= now:
                self._submit(out)
            return
        if sighting is None:
            sighting = Sighting(str(out.key), True, why="it is no longer in the queue")
        out.key = sighting.key
        if sighting.over and out.seen is None:
            out.seen, out.until = sighting, now + (LATE if sighting.well else 0.0 if self._never_began(out) else CLEAR)
            os.utime(self._folder / DONE)  # a file server's client then looks again
            if sighting.left:
                self._remove([out])
        elif out.stopped and not sighting.over:
            self._remove([out])
        if out.seen is not None and now >= out.until:
            self._gather_one(out)

    def _never_began(self, out: _Out) -> bool:
        """Whether nobody has begun a job; nobody will then."""
        with suppress(FileNotFoundError):
            (self._folder / f"{out.job.number}.json").unlink()
            return True
        return False

    def _gather_one(self, out: _Out) -> None:
        """The last look for what came of a job that is over."""
        self._tell(out, performed_in(self._folder / DONE / f"{out.job.number}.json"))
        if out.job.number in self._out and out.seen is not None:
            self._give_up(out, f"{out.seen.why}{self._printed(out)}", out.seen.lost)

    def _printed(self, out: _Out) -> str:
        """The last line that a worker itself printed, which says why it could not even begin."""
        with suppress(OSError):
            lines = (self._folder / f"{out.job.number}.txt").read_text("utf-8", "replace").split("\n")
            return "".join(f": {line.strip()[:300]}" for line in lines if line.strip())[-300:]
        return ""

    def _remove(self, outs: Sequence[_Out]) -> None:
        with suppress(InputError):  # what is still there is removed after the next look
            self._queue.remove([out.key for out in outs if out.key is not None])

    def cancel(self, jobs: Sequence[Job]) -> None:
        """Take jobs out of the queue, and stop those that run."""
        outs = [out for job in jobs if (out := self._out.get(job.number)) is not None and not out.stopped]
        for out in outs:
            out.stopped = True
            if out.key is None and not out.tries:
                self._give_up(out, "stopped")
        if outs:
            self._remove(outs)
            self._stir()

    def close(self) -> None:
        """Stop all that runs, and take our files away."""
        self.cancel([out.job for out in self._out.values()])
        until = time.monotonic() + PARTING
        while self._out and time.monotonic() < until:
            self.wait(1.0)
        shutil.rmtree(self._folder, ignore_errors=True)

    def end_strays(self, mark: str) -> None:
        """Remove jobs of this run that outlived whoever handed them in, with the files that they would begin with."""
        if self._folder.parent.exists():
            try:
                self._queue.end_strays(mark)
            except UnansweredError as error:
                raise InputError(
                    f"cannot tell whether jobs of an earlier run are still in the queue: {error}"
                ) from None
            for folder in self._folder.parent.glob("*/worker.py"):
                if folder.parent != self._folder:
                    shutil.rmtree(folder.parent, ignore_errors=True)


def as_told(work: object) -> dict[str, Any]:
    """A command as the worker reads it."""
    if not isinstance(work, Command):
        raise InputError("batch systems run commands, not functions: use another engine")
    fields = {name: getattr(work, name) for name in ("argv", "folder", "out", "err")}
    return {**fields, "environment": dict(work.environment)}


def performed_in(path: Path) -> list[Performed]:
    """What a worker wrote down; nothing where it has not, or where that cannot be seen whole yet."""
    with suppress(OSError, ValueError):
        return [Performed(*row) for row in json.loads(path.read_bytes())]
    return []


def wait_until_gone(remaining: Callable[[], object], seconds: float = PARTING) -> None:
    """Until *remaining* says that nothing is; `InputError` where that takes too long."""
    until = time.monotonic() + seconds
    while remaining():
        if time.monotonic() > until:
            raise InputError("jobs of an earlier run are still in the queue: remove them, then resume")
        time.sleep(0.5)
