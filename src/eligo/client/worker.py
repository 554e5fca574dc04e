"""The client's loop: a thread a core asks, runs and delivers; signals drain it, and nothing that was finished is lost."""

import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from eligo.client.assignment import Assigned, assignments
from eligo.client.calls import LONGEST_TOLD_WAIT, Calls, ServerAwayError, pause
from eligo.client.cgroups import groups
from eligo.client.enrolment import Enrolment
from eligo.client.folder import WorkFolder
from eligo.client.leases import Cores, HeldLeases
from eligo.client.options import WorkOptions
from eligo.client.results import Courier, Tally
from eligo.client.sandbox import sandbox
from eligo.client.task_run import GrantRun, Means, Will
from eligo.client.transfers import Depot
from eligo.client.trust import Trust
from eligo.engines.job_run import MARK
from eligo.engines.strays import end_marked
from eligo.errors import FormatError, InputError

LOOK = 0.05  # seconds between two looks at signals
QUICK = (
    1.0  # seconds: a server that says sooner that there is nothing, and not when to come again, is left alone so long
)
AWAY = 10.0  # seconds that a client that ends when idle waits at least for a server that is away
CONFUSED = 30.0  # seconds at most until a server that makes no sense is asked again


def work(options: WorkOptions, say: Callable[[str], None] | None = None) -> Tally:
    """Work for a server until it has nothing any more, or a signal says to stop; what was done."""
    will = Will()
    with heeded(will) as signals:
        folder = WorkFolder(options.home(), options.url)
        try:
            return WorkLoop(options, folder, will, signals, say or tell).work()
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
        self._means = Means(options, depot, self._courier, leases, cores, trust, box, groups(), will, folder.mark, say)
        self._lock, self._runs = threading.Lock(), set[GrantRun]()
        self._busy, self._asked = time.monotonic(), False
        self._error: BaseException | None = None
        self._enrolment = Enrolment(calls, folder, options, say, self._given_up)
        self._enrolment.forget = depot.forget

    def work(self) -> Tally:
        """Work until nothing more is to come."""
        end_marked(MARK, self._folder.mark)
        self._folder.clean()
        self._means.leases.start()
        threads = [threading.Thread(target=self._guarded, args=(self._begin,), name="eligo work")]
        threads[0].start()
        try:
            self._watch(threads)
        finally:
            self._will.stop()
            for thread in threads:
                thread.join()
            self._means.leases.close()
            end_marked(MARK, self._folder.mark)
        if isinstance(self._error, OSError):
            raise InputError(
                f"{self._folder.path}: the client cannot continue: {self._error.strerror}"
            ) from self._error
        if self._error is not None:
            raise self._error
        return self._courier.tally()

    def _watch(self, threads: list[threading.Thread]) -> None:
        """Heed signals until all threads are done."""
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
        """Ask for nothing any more, and return what was not begun."""
        self._will.drain()
        self._calls.cut()
        threads.append(threading.Thread(target=self._guarded, args=(self._give_back,), name="eligo drain"))
        threads[-1].start()

    def _give_back(self) -> None:
        with self._lock:
            runs = list(self._runs)
        for run in runs:
            run.give_back()

    def _guarded(self, function: Callable[[], None]) -> None:
        """What goes wrong in a thread ends the client, in order."""
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
        """Become known, deliver what an earlier client has left, and begin a thread for every core."""
        self._enrolment.enrol()
        owed = self._courier.owed()
        self._enrolment.call(lambda: self._courier.deliver(owed, self._given_up))
        number = 1 if self._options.once else self._options.cores
        helpers = [
            threading.Thread(target=self._guarded, args=(self._serve,), name="eligo work") for _ in range(number)
        ]
        for thread in helpers:
            thread.start()
        for thread in helpers:
            thread.join()

    def _serve(self) -> None:
        """What one thread does: ask, run, deliver and ask again in one call. What was granted is run or returned."""
        reply: dict[str, Any] = {}
        while True:
            if grants := self._understood(reply):
                reply = self._do(grants, reply)
                continue
            self._stay_away(reply)
            if reply.get("stop") is True or self._over():
                break
            reply = self._ask()

    def _understood(self, reply: Mapping[str, Any]) -> list[tuple[Assigned, ...]]:
        try:
            return assignments(reply)
        except FormatError as error:
            self._say(str(error))
            pause(random.uniform(0, CONFUSED), self._over)  # noqa: S311 - no secret
            return []

    def _over(self) -> bool:
        """Whether to ask no more."""
        return self._will.draining() or (self._asked and self._quiet(0.0))

    def _given_up(self) -> bool:
        """Whether to wait no longer for a server that is away; that it is started again takes a moment."""
        return self._will.draining() or self._quiet(AWAY)

    def _left_owed(self) -> bool:
        """Whether results are left for the next client of this folder, as the server is away."""
        return self._will.stopping() or self._quiet(AWAY)

    def _quiet(self, least: float) -> bool:
        """Whether nothing was done for as long as the client may be idle, and for at least so many seconds."""
        idle = self._options.idle_exit
        return idle is not None and not self._runs and time.monotonic() - self._busy >= max(idle, least)

    def _stay_away(self, reply: Mapping[str, Any]) -> None:
        wait = reply.get("wait")
        if isinstance(wait, int | float) and wait > 0:
            pause(min(wait, LONGEST_TOLD_WAIT) * random.uniform(1.0, 1.2), self._over)  # noqa: S311 - no secret
        self._means.cores.wait_idle(self._over)

    def _request(self, wait: float) -> dict[str, Any]:
        options = self._options
        size = {"size": options.size, "seconds": options.seconds}
        machine = {"cores": options.cores, "memory": options.memory, "labels": options.labels}
        return {"count": 1, **size, "wait": wait, **machine, "files": self._means.depot.kept()}

    def _ask(self) -> dict[str, Any]:
        """What the server has for us, as soon as it has something."""
        wait, began = self._options.poll, time.monotonic()
        if self._options.idle_exit is not None:
            wait = min(wait, max(0.0, self._busy + self._options.idle_exit - began))
        words, self._asked = self._request(round(wait, 3)), True
        reply = self._enrolment.call(lambda: self._calls.post("/v1/request", words, self._over, wait))
        if not reply.get("grants") and not reply.get("wait") and time.monotonic() - began < min(wait, QUICK):
            pause(random.uniform(0, QUICK), self._over)  # noqa: S311 - no secret
        return reply

    def _do(self, grants: list[tuple[Assigned, ...]], reply: Mapping[str, Any]) -> dict[str, Any]:
        """Run what was granted; what the server says to the last results, and to the next request with them."""
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
            return self._enrolment.call(lambda: self._courier.deliver(last, self._left_owed, ask))
        finally:
            self._means.depot.sweep()


@contextmanager
def heeded(will: Will) -> Iterator[list[int]]:
    """The signals to stop that came so far; only the main thread of a program hears them."""
    signals: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield signals
        return
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, lambda received, _: signals.append(received)) for number in numbers}
    try:
        yield signals
    finally:
        for number, usual in before.items():
            signal.signal(number, usual)


def tell(text: str) -> None:
    """Say something to whoever looks at the client; some of it may be somebody else's words."""
    plain = "".join(letter if letter.isprintable() else "?" for letter in text)
    sys.stderr.write(f"eligo: {plain}\n")
    sys.stderr.flush()
