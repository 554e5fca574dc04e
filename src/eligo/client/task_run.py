"""Runs the tasks of one grant one after another in a scratch folder, and collects their results."""

import errno
import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from hashlib import sha256

from eligo.client.assignment import Assigned
from eligo.client.calls import ServerAwayError, pause
from eligo.client.options import WorkOptions
from eligo.client.results import Courier, Delivery, HeldLeases
from eligo.client.sandbox import Cores, Sandbox, limit_command
from eligo.client.scratch import Scratch
from eligo.client.task_sessions import TaskSessions
from eligo.client.transfers import Depot, HashedFile
from eligo.client.trust import Trust
from eligo.engines.cgroups import Cgroup, Cgroups
from eligo.engines.command_line import Site, argv_of, folder_of
from eligo.engines.job_run import MARK
from eligo.engines.jobs import Command
from eligo.engines.worker import Performed, run_command
from eligo.errors import EligoError
from eligo.work.attempts import join_tails
from eligo.work.demands import demand_environment

TAIL = 2000  # characters
SHAKEN = 1.0  # seconds that a client pauses after its machine failed a task
#: errors of file names that would fail on every machine
UNFIT = {errno.ENAMETOOLONG, errno.EILSEQ, errno.EINVAL, errno.ENOTDIR, errno.EISDIR}
ALLOWED = ("PATH", "LANG", "TZ")  # variables passed on from the client's environment; also those that begin with LC_
ADD, ADDING = "ELIGO_ADD", ".eligo-add"  # the variable and file for tasks that a task may add
MOST_ADDED = 2**18  # limit of that file in bytes, as on the server
USUAL_PATH = "/usr/local/bin:/usr/bin:/bin"


def as_json(text: str) -> str:
    """A document in JSON or YAML as JSON, which a server parses much faster; YAML stays where nothing here reads it.

    >>> as_json("tasks: [{name: a, run: make a}]"), as_json(' {"tasks": []}')
    ('{"tasks": [{"name": "a", "run": "make a"}]}', ' {"tasks": []}')
    """
    if text.lstrip()[:1] in {"{", "["}:
        return text
    try:
        from eligo.formats.shared import yaml_text
    except ModuleNotFoundError:
        return text
    return json.dumps(yaml_text.load(text), ensure_ascii=False)


class Will:
    """Whether the client should continue, finish its tasks, or stop them."""

    def __init__(self) -> None:
        self._draining, self._stopping = threading.Event(), threading.Event()
        self.draining, self.stopping = self._draining.is_set, self._stopping.is_set

    def drain(self) -> None:
        """Start no more tasks."""
        self._draining.set()

    def stop(self) -> None:
        """Stop running tasks too."""
        self._draining.set()
        self._stopping.set()


@dataclass(frozen=True, slots=True)
class Means:
    """The objects shared by all threads of a client."""

    options: WorkOptions
    depot: Depot
    courier: Courier
    leases: HeldLeases
    cores: Cores
    trust: Trust
    sandbox: Sandbox
    groups: Cgroups | None
    sessions: TaskSessions
    will: Will
    #: the mark in the environment of tasks' processes
    mark: str
    say: Callable[[str], None]


@dataclass(slots=True)
class _Finished:
    """A finished task whose result may not be delivered yet."""

    task: Assigned
    result: Delivery
    #: files that only later tasks need, with stamps that reveal changes
    inside: dict[str, tuple[int, ...]] = field(default_factory=dict)


class GrantRun:
    """Runs the tasks of one grant."""

    def __init__(self, means: Means, tasks: Iterable[Assigned], scratch: str) -> None:
        self._means, self._tasks, self._place = means, tuple(tasks), scratch
        self._todo, self._lock = deque(self._tasks), threading.Lock()
        self._done, self._held = set[str](), list[_Finished]()

    def run(self) -> list[Delivery]:
        """Run all tasks; returns the results that are not delivered yet. After a failure the remaining tasks are returned."""
        ready: list[Delivery] = []
        with Scratch(self._place) as scratch:
            while (task := self._next()) is not None:
                if task.attempt > 1:  # the task may have killed its last client: deliver the finished results first
                    ready += self._take_deliverable(scratch, broken=True)
                self._means.courier.deliver(ready, self._means.will.stopping)
                finished = TaskRun(self._means, task, scratch, self._files_made()).run()
                self._report(finished)
                if finished.result.outcome != "done":
                    ready = [*self._take_deliverable(scratch, broken=True), *self._deliveries(finished)]
                    break
                self._done.add(task.lease)
                self._held.append(finished)
                ready = self._take_deliverable(scratch, broken=False)
                if self._held:
                    self._means.courier.mark(task.lease, running=False)
            ready += self._take_deliverable(scratch, broken=True)
        return ready + self._take_rest()

    def give_back(self) -> None:
        """Return the tasks that have not started to the server."""
        self._means.courier.deliver(self._take_rest(), self._means.will.stopping)

    def _report(self, finished: _Finished) -> None:
        if self._means.options.verbose:
            result = finished.result
            why = f": {result.failure}" if result.failure else ""
            self._means.say(f"{finished.task.task} {result.outcome} after {result.seconds:,.2f} s{why}")

    def _next(self) -> Assigned | None:
        with self._lock:
            return self._todo.popleft() if self._todo and not self._means.will.draining() else None

    def _take_rest(self) -> list[Delivery]:
        with self._lock:
            todo, self._todo = self._todo, deque[Assigned]()
        return [Delivery(task.lease, "returned") for task in todo]

    def _files_made(self) -> set[str]:
        """The files that earlier tasks of the grant created here."""
        return {name for task in self._tasks if task.lease in self._done for name in task.makes}

    def _deliveries(self, finished: _Finished) -> list[Delivery]:
        """The result of a task for the server; empty if the lease has been lost."""
        if self._means.leases.gone(finished.task.lease):
            self._means.courier.forget(finished.task.lease)
            self._means.depot.unpin(*finished.result.outputs.values())
            return []
        self._means.courier.ended(finished.result)
        return [finished.result]

    def _take_deliverable(self, scratch: Scratch, broken: bool) -> list[Delivery]:
        """The results that can be delivered: a file that is only here is delivered together with the tasks that read it.

        Results are delivered in order, because the server accepts no result before those it depends on. If the grant is
        *broken*, files that other tasks wait for are added to the outputs.
        """
        together = len(self._held) if broken else self._together()
        held, self._held = self._held[:together], self._held[together:]
        ready = list[Delivery]()
        # results of lost leases are not delivered
        ours = {lease for lease in self._done if not self._means.leases.gone(lease)}
        for finished in held:
            waited_for = [name for name in finished.inside if not self._readers(finished.task, name) <= ours]
            ready += self._deliveries(self._add_inside_files(finished, waited_for, scratch))
            for name in finished.inside.keys() - waited_for:  # its readers are done
                scratch.drop(name)
        return ready

    def _together(self) -> int:
        """The number of results, from the first, that can be delivered together."""
        place = {finished.task.lease: i for i, finished in enumerate(self._held)}
        count = last = 0
        for i, finished in enumerate(self._held):
            readers = set().union(*(self._readers(finished.task, name) for name in finished.inside))
            last = max([last, i, *(place.get(lease, len(self._tasks)) for lease in readers)])
            count = i + 1 if last == i else count
        return count

    def _readers(self, task: Assigned, name: str) -> set[str]:
        """The leases of the tasks that read a file: those that declare it, or all later ones if none does."""
        later = self._tasks[self._tasks.index(task) + 1 :]
        return {other.lease for other in [other for other in later if name in other.reads()] or later}

    def _add_inside_files(self, finished: _Finished, names: list[str], scratch: Scratch) -> _Finished:
        """A result with some of its inside files added to the outputs, unless they changed after the task ended."""
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
    """Runs one task, from its inputs to its outputs."""

    def __init__(self, means: Means, task: Assigned, scratch: Scratch, files_made: set[str]) -> None:
        self._means, self._task, self._scratch, self._files_made = means, task, scratch, files_made

    def run(self) -> _Finished:
        """Fetch the inputs, run the command and collect the outputs."""
        task = self._task
        if task.wrong is not None:
            return self._finish("failed", failure=task.wrong)
        if (why := self._means.trust.distrusts(task)) is not None:
            self._means.say(f"{task.task} returned to the server: {why}")
            pause(SHAKEN, self._is_stopped)  # older servers assign the task again at once
            return self._finish("returned", failure=why, distrusted=True)
        try:
            self._fetch()
        except ServerAwayError:
            return self._finish("returned")
        except EligoError as error:
            return self._finish("failed", failure=str(error))
        except OSError as error:
            if error.errno in UNFIT:
                return self._finish("failed", failure=f"cannot place an input: {error.strerror}")
            return self._return_task(error)
        with self._means.cores.reserve(task.cores, self._is_stopped) as mine:
            return self._perform() if mine else self._finish("returned")

    def _is_stopped(self) -> bool:
        return self._means.will.stopping() or self._means.leases.gone(self._task.lease)

    def _fetch(self) -> None:
        """Put the inputs in place."""
        for name, file in self._task.inputs.items():
            if name in self._files_made:
                continue
            if file is None:
                raise EligoError(f"input {name!r} does not exist")
            with self._means.depot.borrowed(file, self._is_stopped) as path:
                self._scratch.place(name, path)

    def _perform(self) -> _Finished:
        """Run the command, and collect its outputs."""
        self._means.courier.mark(self._task.lease, running=True)
        began = time.monotonic()
        result = self._run_limited()
        seconds, tail = time.monotonic() - began, join_tails(_end_of(self._scratch.out), _end_of(self._scratch.err))
        if result.lost:
            return self._finish("returned", seconds=seconds)
        facts: dict[str, object] = {"seconds": seconds, "code": result.code, "memory": result.memory, "tail": tail}
        if result.failure is not None:
            return self._finish("failed", failure=self._failure_reason(result), **facts)
        outputs = dict[str, HashedFile]()
        try:
            facts["added"] = self._read_added()
            self._collect(outputs)
            inside = {name: _stamp(self._scratch.open(name), close=True) for name in self._task.inside}
        except (EligoError, OSError) as error:
            self._means.depot.unpin(*outputs.values())
            if isinstance(error, OSError):
                return self._return_task(error)
            return self._finish("failed", failure=str(error), **facts)
        return replace(self._finish("done", outputs=outputs, **facts), inside=inside)

    def _run_limited(self) -> Performed:
        """Run the command with its memory limit, applied to all its processes together if the system supports that."""
        memory = min((each for each in (self._means.options.memory, self._task.memory) if each), default=None)
        if memory is None or self._means.groups is None or self._task.in_container:
            return self._run(memory)
        with closing(self._means.groups.limited(memory)) as group:
            result = self._run(None, group)
            return result._replace(memory=group.peak() or result.memory, failure=group.failure() or result.failure)

    def _run(self, memory: int | None, group: Cgroup | None = None) -> Performed:
        scratch, task, output = self._scratch, self._task, self._means.options.output
        place = folder_of(task.launch, scratch.folder)
        environment = self._environment(place)
        argv = argv_of(task.command, task.launch, self._site(place, environment, memory))
        if not task.in_container:  # its engine may need more, and limits the command itself
            argv = limit_command(self._means.sandbox.around(argv, scratch.folder, place), output, memory)
        if group is not None:
            argv = group.around(argv, environment)
        sessions = self._means.sessions
        # what a sandbox runs ends with this client, and must not write to the file
        marker = sessions.path if self._means.options.sandbox is None else ""
        command = Command(argv, place, {}, scratch.out, scratch.err, marker)
        with sessions.recording() as record:
            return run_command(command, task.timeout, self._is_stopped, environment, record)

    def _site(self, place: str, environment: Mapping[str, str], memory: int | None) -> Site:
        """What the command needs to know of this machine; the variables of this client are not for containers."""
        limits = (f"--ulimit=fsize={self._means.options.output}", *([] if memory is None else [f"--memory={memory}"]))
        return Site(
            folder=self._scratch.folder,
            place=place,
            name=f"eligo-{sha256(self._task.lease.encode()).hexdigest()[:32]}",
            variables=[name for name in environment if name not in ALLOWED or name in self._task.environment],
            limits=limits,
        )

    def _environment(self, cwd: str) -> dict[str, str]:
        """The command's environment: a few variables of the client, those of the task, and those that identify it."""
        task, folder = self._task, self._scratch.folder
        own = {name: word for name, word in os.environ.items() if name in ALLOWED or name.startswith("LC_")}
        place = {"HOME": folder, "TMPDIR": folder, "PWD": cwd}
        task_variables = {
            "ELIGO_TASK": task.task, "ELIGO_ATTEMPT": str(task.attempt), "ELIGO_WORKFLOW": task.workflow,
            **demand_environment(task.cores, task.memory or 0),
        }  # fmt: skip
        task_variables |= {ADD: os.path.join(folder, ADDING)} if task.grow else {}
        return {"PATH": USUAL_PATH, **own, **place, **task.environment, **task_variables, MARK: self._means.mark}

    def _read_added(self) -> str | None:
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
        """Store the outputs, up to their total limit."""
        remaining = self._means.options.output
        for name in self._task.outputs:
            outputs[name] = self._means.depot.keep(self._scratch.open(name), remaining)
            remaining -= outputs[name].size

    def _failure_reason(self, result: Performed) -> str:
        """The reason why the command failed; names the limit that it exceeded, if any."""
        most = self._means.options.output
        if any(os.path.getsize(path) >= most for path in (self._scratch.out, self._scratch.err)):
            return f"printed more than the limit of {most:,} bytes"
        paths = {name: os.path.join(self._scratch.folder, name) for name in self._task.makes}
        for name, path in paths.items():
            if os.path.isfile(path) and os.path.getsize(path) >= most:
                return f"{name!r} exceeded the size limit of {most:,} bytes"
        return str(result.failure)

    def _return_task(self, error: OSError) -> _Finished:
        """Return a task after a failure of this machine, such as a full disk, and pause before asking for another."""
        self._means.say(f"{self._task.task} returned to the server: {error.strerror or error}")
        pause(SHAKEN, self._is_stopped)
        return self._finish("returned")

    def _finish(self, outcome: str, **facts: object) -> _Finished:
        return _Finished(self._task, Delivery(self._task.lease, outcome, **facts))  # type: ignore[arg-type]


def _end_of(path: str) -> str:
    """The end of a task's output file; "" if the file does not exist."""
    if not os.path.exists(path):
        return ""
    with open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - 4 * TAIL))
        return file.read(4 * TAIL).decode("utf-8", "replace")[-TAIL:]


def _stamp(descriptor: int, close: bool = False) -> tuple[int, ...]:
    """The size and further values that change when a file does."""
    status = os.fstat(descriptor)
    if close:
        os.close(descriptor)
    return status.st_size, status.st_mtime_ns, status.st_ino, status.st_dev
