"""The client's loop: a thread per core requests tasks, runs them and delivers results; signals drain it without loss."""

import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any

from eligo.client.assignment import Assigned, assignments
from eligo.client.calls import LONGEST_TOLD_WAIT, Calls, ServerAwayError, pause
from eligo.client.enrolment import Enrolment
from eligo.client.folder import WorkFolder
from eligo.client.options import WorkOptions
from eligo.client.results import Courier, HeldLeases, Tally
from eligo.client.sandbox import Cores, sandbox
from eligo.client.task_run import GrantRun, Means, Will
from eligo.client.task_sessions import TaskSessions
from eligo.client.transfers import Depot
from eligo.client.trust import Trust
from eligo.engines.cgroups import groups
from eligo.errors import FormatError, InputError
from eligo.launch import own_labels

LOOK = 0.05  # seconds between two checks for signals
QUICK = 1.0  # maximum pause in seconds after an empty answer that came early and names no time to wait
AWAY = 10.0  # minimum seconds that a client with --idle-exit waits for an unreachable server
CONFUSED = 30.0  # maximum seconds until the next request after an invalid response


def work(options: WorkOptions, say: Callable[[str], None] | None = None) -> Tally:
    """Work for a server until it has no more tasks or a signal arrives; returns a tally."""
    signals: list[int] = []
    with heeding(lambda received, _: signals.append(received)):
        folder = WorkFolder(options.home(), options.url)
        try:
            return WorkLoop(options, folder, Will(), signals, say or tell).work()
        finally:
            folder.close()


class WorkLoop:
    """One client of one server."""

    def __init__(
        self, options: WorkOptions, folder: WorkFolder, will: Will, signals: Sequence[int], say: Callable[[str], None]
    ) -> None:
        self._options, self._folder, self._will, self._signals, self._say = options, folder, will, signals, say
        trust, box = Trust(options.trust), sandbox(options.sandbox, options.sandbox_network)
        self._calls = calls = Calls(options.url, options.ca, say)
        leases, depot = HeldLeases(calls), Depot(f"{folder.path}/files", calls, options.cache)
        self._courier = Courier(calls, depot, folder, leases, say)
        cores = Cores(options.cores)
        self._sessions = sessions = TaskSessions(folder.path, folder.mark)
        limits = (cores, trust, box, groups(folder.mark), sessions)
        self._means = Means(options, depot, self._courier, leases, *limits, will, folder.mark, say)
        self._labels = tuple(dict.fromkeys((*options.labels, *own_labels(isolated=options.sandbox is not None))))
        self._lock, self._runs = threading.Lock(), set[GrantRun]()
        self._busy, self._asked = time.monotonic(), False
        self._error: BaseException | None = None
        self._enrolment = Enrolment(calls, folder, options, say, self._should_give_up)
        self._enrolment.forget = depot.forget

    def work(self) -> Tally:
        """Work until there is nothing more to do."""
        self._sessions.end()
        self._folder.clean()
        self._means.leases.start()
        threads = [threading.Thread(target=self._run_guarded, args=(self._begin,), name="eligo work")]
        threads[0].start()
        try:
            self._watch(threads)
        finally:
            self._will.stop()
            for thread in threads:
                thread.join()
            self._means.leases.close()
            self._sessions.end()
            self._sessions.close()
        if isinstance(self._error, OSError):
            why = f"{self._folder.path}: the client cannot continue: {self._error.strerror}"
            raise InputError(why) from self._error
        if self._error is not None:
            raise self._error
        return self._courier.tally()

    def _watch(self, threads: list[threading.Thread]) -> None:
        """Wait for all threads, and handle signals."""
        grace_over = float("inf")
        while alive := [thread for thread in threads if thread.is_alive()]:
            alive[0].join(LOOK)
            drained = self._will.draining() or self._signals
            if drained and grace_over == float("inf"):
                grace_over = time.monotonic() + self._options.grace
                self._drain(threads)
            if len(self._signals) > 1 or time.monotonic() > grace_over:
                self._will.stop()

    def _drain(self, threads: list[threading.Thread]) -> None:
        """Request no more tasks, and return those that have not started."""
        self._will.drain()
        self._calls.cut()
        threads.append(threading.Thread(target=self._run_guarded, args=(self._give_back,), name="eligo drain"))
        threads[-1].start()

    def _give_back(self) -> None:
        with self._lock:
            runs = list(self._runs)
        for run in runs:
            run.give_back()

    def _run_guarded(self, function: Callable[[], None]) -> None:
        """Run a thread's function; an unexpected error ends the client in an orderly way."""
        try:
            function()
        except ServerAwayError as error:
            if self._calls.met and not self._will.draining():
                self._say(str(error))
            elif not self._will.draining():
                self._error = self._error or error
        except BaseException as error:
            self._error = self._error or error
            self._will.drain()
        finally:
            self._calls.close()

    def _begin(self) -> None:
        """Enrol, deliver results that an earlier client left, and start a thread per core."""
        self._enrolment.enrol()
        owed = self._courier.owed()
        self._enrolment.call(lambda: self._courier.deliver(owed, self._should_give_up))
        number = 1 if self._options.once else self._options.cores
        serve = partial(threading.Thread, target=self._run_guarded, args=(self._serve,), name="eligo work")
        helpers = [serve() for _ in range(number)]
        for thread in helpers:
            thread.start()
        for thread in helpers:
            thread.join()

    def _serve(self) -> None:
        """The loop of a thread: request, run, and deliver with the next request. Every granted task is run or returned."""
        reply: dict[str, Any] = {}
        while True:
            if grants := self._parse_grants(reply):
                reply = self._do(grants, reply)
                continue
            self._stay_away(reply)
            if reply.get("stop") is True or self._should_stop():
                break
            reply = self._ask()

    def _parse_grants(self, reply: Mapping[str, Any]) -> list[tuple[Assigned, ...]]:
        try:
            return assignments(reply)
        except FormatError as error:
            self._say(str(error))
            pause(random.uniform(0, CONFUSED), self._should_stop)  # noqa: S311 - no secret
            return []

    def _should_stop(self) -> bool:
        """Whether to stop requesting tasks."""
        return self._will.draining() or (self._asked and self._quiet(0.0))

    def _should_give_up(self) -> bool:
        """Whether to stop waiting for an unreachable server; a restart of the server takes a moment."""
        return self._will.draining() or self._quiet(AWAY)

    def _should_leave_results(self) -> bool:
        """Whether to leave results to the next client of this folder, because the server is unreachable."""
        return self._will.stopping() or self._quiet(AWAY)

    def _quiet(self, least: float) -> bool:
        """Whether the client has been idle for its --idle-exit, and at least this many seconds."""
        idle = self._options.idle_exit
        return idle is not None and not self._runs and time.monotonic() - self._busy >= max(idle, least)

    def _stay_away(self, reply: Mapping[str, Any]) -> None:
        wait = reply.get("wait")
        if isinstance(wait, int | float) and wait > 0:
            pause(min(wait, LONGEST_TOLD_WAIT) * random.uniform(1.0, 1.2), self._should_stop)  # noqa: S311 - no secret
        self._means.cores.wait_idle(self._should_stop)

    def _request(self, wait: float) -> dict[str, Any]:
        options = self._options
        size = {"size": options.size, "seconds": options.seconds}
        machine = {"cores": options.cores, "memory": options.memory, "labels": self._labels}
        return {"count": 1, **size, "wait": wait, **machine, "files": self._means.depot.kept()}

    def _ask(self) -> dict[str, Any]:
        """Request tasks; the server answers as soon as it has some."""
        wait, began = self._options.poll, time.monotonic()
        if self._options.idle_exit is not None:
            wait = min(wait, max(0.0, self._busy + self._options.idle_exit - began))
        words, self._asked = self._request(round(wait, 3)), True
        reply = self._enrolment.call(lambda: self._calls.post("/v1/request", words, self._should_stop, wait))
        if not reply.get("grants") and not reply.get("wait") and time.monotonic() - began < min(wait, QUICK):
            pause(random.uniform(0, QUICK), self._should_stop)  # noqa: S311 - no secret
        return reply

    def _do(self, grants: list[tuple[Assigned, ...]], reply: Mapping[str, Any]) -> dict[str, Any]:
        """Run granted tasks; returns the server's answer to the last results and the request sent with them."""
        self._courier.began([task.lease for tasks in grants for task in tasks], reply.get("lease"))
        runs = [GrantRun(self._means, tasks, self._folder.scratch()) for tasks in grants]
        with self._lock:
            self._runs.update(runs)
        try:
            for run in runs[:-1]:
                self._courier.deliver(run.run(), self._will.stopping)
            last = runs[-1].run()
        finally:
            with self._lock:
                self._runs.difference_update(runs)
            self._busy = time.monotonic()
        if self._options.once:
            self._will.drain()
        ask = None if self._will.draining() else self._request(0.0)
        try:
            return self._enrolment.call(lambda: self._courier.deliver(last, self._should_leave_results, ask))
        finally:
            self._means.depot.sweep()


@contextmanager
def heeding(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Call a function on signals to stop; only a program's main thread receives them."""
    main = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, handler) for number in ((signal.SIGTERM, signal.SIGINT) if main else ())}
    try:
        yield
    finally:
        for number, usual in before.items():
            signal.signal(number, usual)


def tell(text: str) -> None:
    """Print a message for the user; unprintable characters are replaced, since parts may come from others."""
    plain = "".join(letter if letter.isprintable() else "?" for letter in text)
    sys.stderr.write(f"eligo: {plain}\n")
    sys.stderr.flush()
