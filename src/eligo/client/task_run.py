"""The tasks of one grant, one after another in one scratch folder, and what is told of each of them."""

import errno
import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from eligo.client.assignment import Assigned
from eligo.client.calls import ServerAwayError, pause
from eligo.client.cgroups import Cgroups
from eligo.client.leases import Cores, HeldLeases
from eligo.client.options import WorkOptions
from eligo.client.results import Courier, Delivery
from eligo.client.sandbox import Sandbox, limited
from eligo.client.scratch import Scratch
from eligo.client.tails import joined
from eligo.client.transfers import Depot, HashedFile
from eligo.client.trust import Trust
from eligo.engines.job_run import MARK
from eligo.engines.jobs import Command
from eligo.engines.worker import Performed, run_command
from eligo.errors import EligoError

TAIL = 2000  # characters
SHAKEN = 1.0  # seconds until a client whose machine failed it goes on
UNFIT = {
    errno.ENAMETOOLONG,
    errno.EILSEQ,
    errno.EINVAL,
    errno.ENOTDIR,
    errno.EISDIR,
}  # names that no other machine likes
ALLOWED = ("PATH", "LANG", "TZ")  # of the client's own environment; and what begins with LC_
ADD, ADDING = "ELIGO_ADD", ".eligo-add"  # where a task that may add tasks writes them
MOST_ADDED = 2**18  # bytes of that, as the server has it
USUAL_PATH = "/usr/local/bin:/usr/bin:/bin"


def as_json(text: str) -> str:
    """A document in JSON or YAML as JSON, which a server reads in a small part of the time.

    >>> as_json("tasks: [{name: a, run: make a}]"), as_json(' {"tasks": []}')
    ('{"tasks": [{"name": "a", "run": "make a"}]}', ' {"tasks": []}')
    """
    if text.lstrip()[:1] in {"{", "["}:
        return text
    from eligo.formats.shared import yaml_text

    return json.dumps(yaml_text.load(text), ensure_ascii=False)


class Will:
    """What the client is about to do: to go on, to take nothing more, or to stop what runs."""

    def __init__(self) -> None:
        self._draining, self._stopping = threading.Event(), threading.Event()
        self.draining, self.stopping = self._draining.is_set, self._stopping.is_set

    def drain(self) -> None:
        """Begin nothing any more."""
        self._draining.set()

    def stop(self) -> None:
        """Stop what runs, too."""
        self._draining.set()
        self._stopping.set()


@dataclass(frozen=True, slots=True)
class Means:
    """What all the threads of a client share."""

    options: WorkOptions
    depot: Depot
    courier: Courier
    leases: HeldLeases
    cores: Cores
    trust: Trust
    sandbox: Sandbox
    groups: Cgroups | None
    will: Will
    #: what the processes of tasks have in their environment
    mark: str
    say: Callable[[str], None]


@dataclass(slots=True)
class _Finished:
    """A task that is done, and perhaps not delivered yet."""

    task: Assigned
    result: Delivery
    #: the files that only later tasks need, and what is seen of them if nobody has changed them
    inside: dict[str, tuple[int, ...]] = field(default_factory=dict)


class GrantRun:
    """One grant under way."""

    def __init__(self, means: Means, tasks: Iterable[Assigned], scratch: str) -> None:
        self._means, self._tasks, self._place = means, tuple(tasks), scratch
        self._todo, self._lock = deque(self._tasks), threading.Lock()
        self._done, self._held = set[str](), list[_Finished]()

    def run(self) -> list[Delivery]:
        """Run all of it; the results that are still to be delivered. Once one is not done, the rest are returned."""
        ready: list[Delivery] = []
        with Scratch(self._place) as scratch:
            while (task := self._next()) is not None:
                if task.attempt > 1:  # it may be one that kills its client: what is done is delivered before
                    ready += self._settled(scratch, broken=True)
                self._means.courier.deliver(ready, self._means.will.stopping)
                finished = TaskRun(self._means, task, scratch, self._files_made()).run()
                self._report(finished)
                if finished.result.outcome != "done":
                    ready = [*self._settled(scratch, broken=True), *self._deliveries(finished)]
                    break
                self._done.add(task.lease)
                self._held.append(finished)
                ready = self._settled(scratch, broken=False)
                if self._held:
                    self._means.courier.mark(task.lease, running=False)
            ready += self._settled(scratch, broken=True)
        return ready + self._given_back()

    def give_back(self) -> None:
        """Return at once what was not begun."""
        self._means.courier.deliver(self._given_back(), self._means.will.stopping)

    def _report(self, finished: _Finished) -> None:
        if self._means.options.verbose:
            result = finished.result
            why = f": {result.failure}" if result.failure else ""
            self._means.say(f"{finished.task.task} {result.outcome} after {result.seconds:.3g} s{why}")

    def _next(self) -> Assigned | None:
        with self._lock:
            return self._todo.popleft() if self._todo and not self._means.will.draining() else None

    def _given_back(self) -> list[Delivery]:
        with self._lock:
            todo, self._todo = self._todo, deque[Assigned]()
        return [Delivery(task.lease, "returned") for task in todo]

    def _files_made(self) -> set[str]:
        """The files that the tasks before have made here."""
        return {name for task in self._tasks if task.lease in self._done for name in task.makes}

    def _deliveries(self, finished: _Finished) -> list[Delivery]:
        """What is told of a task; nothing where it is another's now."""
        if self._means.leases.gone(finished.task.lease):
            self._means.courier.forget(finished.task.lease)
            self._means.depot.unpin(*finished.result.outputs.values())
            return []
        self._means.courier.ended(finished.result)
        return [finished.result]

    def _settled(self, scratch: Scratch, broken: bool) -> list[Delivery]:
        """The results that may be delivered: whoever reads a file that is only here is delivered with whoever made it.

        They go in order: the server takes nothing before what it needs. Where the grant is *broken*, files that somebody
        waits for are added to the outputs.
        """
        together = len(self._held) if broken else self._together()
        held, self._held = self._held[:together], self._held[together:]
        ready = list[Delivery]()
        ours = {
            lease for lease in self._done if not self._means.leases.gone(lease)
        }  # what is another's is not delivered
        for finished in held:
            waited_for = [name for name in finished.inside if not self._readers(finished.task, name) <= ours]
            ready += self._deliveries(self._opened(finished, waited_for, scratch))
        return ready

    def _together(self) -> int:
        """How many of the results that are held can be delivered at once, the first first."""
        place = {finished.task.lease: i for i, finished in enumerate(self._held)}
        count = last = 0
        for i, finished in enumerate(self._held):
            readers = set().union(*(self._readers(finished.task, name) for name in finished.inside))
            last = max([last, i, *(place.get(lease, len(self._tasks)) for lease in readers)])
            count = i + 1 if last == i else count
        return count

    def _readers(self, task: Assigned, name: str) -> set[str]:
        """The leases of those who read a file: those that say so, or all later ones where none does."""
        later = self._tasks[self._tasks.index(task) + 1 :]
        return {other.lease for other in [other for other in later if name in other.reads()] or later}

    def _opened(self, finished: _Finished, names: list[str], scratch: Scratch) -> _Finished:
        """A result with some of its inside files among the outputs, if they are still what the task has made."""
        outputs = dict(finished.result.outputs)
        saved = sum(stamp[0] for name, stamp in finished.inside.items() if name not in names)
        try:
            for name in names:
                descriptor = scratch.open(name)
                same = _stamp(descriptor) == finished.inside[name]
                outputs[name] = self._means.depot.keep(descriptor, self._means.options.output)
                if not same:
                    raise EligoError(f"{name!r} changed after the task ended")
        except (EligoError, OSError) as error:
            self._means.say(f"{finished.task.task} returned to the server: {error}")
            self._means.depot.unpin(*outputs.values())
            return replace(finished, result=Delivery(finished.task.lease, "returned"))
        return replace(finished, result=replace(finished.result, outputs=outputs, saved=saved))


class TaskRun:
    """One task, from its inputs to its outputs."""

    def __init__(self, means: Means, task: Assigned, scratch: Scratch, files_made: set[str]) -> None:
        self._means, self._task, self._scratch, self._files_made = means, task, scratch, files_made

    def run(self) -> _Finished:
        """Do all that belongs to it."""
        task = self._task
        if task.wrong is not None:
            return self._ended("failed", failure=task.wrong)
        if (why := self._means.trust.distrusts(task)) is not None:
            self._means.say(f"{task.task} returned to the server: {why}")
            pause(SHAKEN, self._stopped)  # a server of before this version hands it out again at once
            return self._ended("returned", failure=why, distrusted=True)
        try:
            self._fetch()
        except ServerAwayError:
            return self._ended("returned")
        except EligoError as error:
            return self._ended("failed", failure=str(error))
        except OSError as error:
            if error.errno in UNFIT:
                return self._ended("failed", failure=f"cannot place an input: {error.strerror}")
            return self._machine_fails(error)
        with self._means.cores.taken(task.cores, self._stopped) as mine:
            return self._performed() if mine else self._ended("returned")

    def _stopped(self) -> bool:
        return self._means.will.stopping() or self._means.leases.gone(self._task.lease)

    def _fetch(self) -> None:
        """Put the inputs in their places."""
        for name, file in self._task.inputs.items():
            if name in self._files_made:
                continue
            if file is None:
                raise EligoError(f"input {name!r} does not exist")
            with self._means.depot.borrowed(file, self._stopped) as path:
                self._scratch.place(name, path)

    def _performed(self) -> _Finished:
        """Run the command, and take what it has made."""
        self._means.courier.mark(self._task.lease, running=True)
        began = time.monotonic()
        result = self._limited()
        seconds, tail = time.monotonic() - began, joined(_end_of(self._scratch.out), _end_of(self._scratch.err))
        if result.lost:
            return self._ended("returned", seconds=seconds)
        facts: dict[str, object] = {"seconds": seconds, "code": result.code, "memory": result.memory, "tail": tail}
        if result.failure is not None:
            return self._ended("failed", failure=self._why(result), **facts)
        outputs = dict[str, HashedFile]()
        try:
            facts["added"] = self._added()
            self._collect(outputs)
            inside = {name: _stamp(self._scratch.open(name), close=True) for name in self._task.inside}
        except (EligoError, OSError) as error:
            self._means.depot.unpin(*outputs.values())
            if isinstance(error, OSError):
                return self._machine_fails(error)
            return self._ended("failed", failure=str(error), **facts)
        return replace(self._ended("done", outputs=outputs, **facts), inside=inside)

    def _limited(self) -> Performed:
        """Run the command with no more memory than it may have: all its processes together, where the system can."""
        memory = min((each for each in (self._means.options.memory, self._task.memory) if each), default=None)
        if memory is None or self._means.groups is None:
            return self._run(memory, "")
        with self._means.groups.group(memory) as group:
            result = self._run(None, group.entrance)
            why = (
                f"exceeded the memory limit of {memory:,} bytes"
                if group.overfull() and result.failure
                else result.failure
            )
            return result._replace(memory=group.peak() or result.memory, failure=why)

    def _run(self, memory: int | None, group: str) -> Performed:
        scratch = self._scratch
        argv = self._means.sandbox.around(self._task.argv, scratch.folder)
        argv = limited(argv, self._means.options.output, memory, group)
        command = Command(argv, scratch.folder, {}, scratch.out, scratch.err)
        return run_command(command, self._task.timeout, self._stopped, self._environment())

    def _environment(self) -> dict[str, str]:
        """What the command finds: little of the client's own, what the owner has set, and which task it is."""
        task, folder = self._task, self._scratch.folder
        own = {name: word for name, word in os.environ.items() if name in ALLOWED or name.startswith("LC_")}
        place = {"HOME": folder, "TMPDIR": folder, "PWD": folder}
        task_variables = {"ELIGO_TASK": task.task, "ELIGO_ATTEMPT": str(task.attempt), "ELIGO_WORKFLOW": task.workflow}
        task_variables |= {ADD: os.path.join(folder, ADDING)} if task.grow else {}
        return {"PATH": USUAL_PATH, **own, **place, **task.environment, **task_variables, MARK: self._means.mark}

    def _added(self) -> str | None:
        """The tasks that the command adds, as JSON; their file is taken away, since the next task has the same folder."""
        path = os.path.join(self._scratch.folder, ADDING)
        if not self._task.grow or not os.path.lexists(path):
            return None
        with open(self._scratch.open(ADDING), "rb") as file:
            content = file.read(MOST_ADDED + 1)
        os.unlink(path)
        if len(content) > MOST_ADDED:
            raise EligoError(f"invalid tasks in $ELIGO_ADD: more than {MOST_ADDED:,} bytes")
        try:
            text = as_json(content.decode("utf-8", "replace"))
        except EligoError as error:
            raise EligoError(f"invalid tasks in $ELIGO_ADD: {error}") from None
        if len(text) > MOST_ADDED:
            raise EligoError(f"invalid tasks in $ELIGO_ADD: more than {MOST_ADDED:,} bytes as JSON")
        return text

    def _collect(self, outputs: dict[str, HashedFile]) -> None:
        """Take the outputs in, as long as they are not too much together."""
        remaining = self._means.options.output
        for name in self._task.outputs:
            outputs[name] = self._means.depot.keep(self._scratch.open(name), remaining)
            remaining -= outputs[name].size

    def _why(self, result: Performed) -> str:
        """Why the command failed; a limit that it met is named."""
        most = self._means.options.output
        if any(os.path.getsize(path) >= most for path in (self._scratch.out, self._scratch.err)):
            return f"printed more than the limit of {most:,} bytes"
        paths = {name: os.path.join(self._scratch.folder, name) for name in self._task.makes}
        large = next(
            (name for name, path in paths.items() if os.path.isfile(path) and os.path.getsize(path) >= most), ""
        )
        return f"{large!r} exceeded the size limit of {most:,} bytes" if large else str(result.failure)

    def _machine_fails(self, error: OSError) -> _Finished:
        """Such as by a full disk: somebody else may have it, and we do not ask for it again at once."""
        self._means.say(f"{self._task.task} returned to the server: {error.strerror or error}")
        pause(SHAKEN, self._stopped)
        return self._ended("returned")

    def _ended(self, outcome: str, **facts: object) -> _Finished:
        return _Finished(self._task, Delivery(self._task.lease, outcome, **facts))  # type: ignore[arg-type]


def _end_of(path: str) -> str:
    """The end of what a task printed to a file; "" where there is none."""
    if not os.path.exists(path):
        return ""
    with open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - 4 * TAIL))
        return file.read(4 * TAIL).decode("utf-8", "replace")[-TAIL:]


def _stamp(descriptor: int, close: bool = False) -> tuple[int, ...]:
    """What changes when a file does; its size comes first."""
    status = os.fstat(descriptor)
    if close:
        os.close(descriptor)
    return status.st_size, status.st_mtime_ns, status.st_ino, status.st_dev
