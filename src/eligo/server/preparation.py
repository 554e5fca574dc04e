"""Preparation of submitted workflows and additions. Two processes with limits read and plan them; owners take turns.

A submission may take very long, or more memory than the machine has. Then its process is ended and replaced, and only this
submission is refused. One of the two processes takes only small bodies, so that these never wait for large ones.
"""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from eligo.additions import NewTasks
from eligo.errors import InputError
from eligo.server.http.refusals import RefusedError
from eligo.server.prepare_worker import JOB_LENGTH, AdditionLinks, PrepareJob, PrepareOutcome, receive, send
from eligo.server.rules.clients import ServerTerms
from eligo.server.rules.document import unpack_plan, unpack_workflow
from eligo.server.rules.prepared import Prepared, Wishes
from eligo.server.rules.served import MOST_ADDED, MOST_ADDED_ARCS, Served

MEBIBYTE = 2**20
SMALL = MEBIBYTE  # bytes of a body that the second process takes
MOST_HEADER = 2**16  # bytes of an answer's header
LEAST = 60.0  # seconds that any job may take
SLOWER = 10  # how many times its limit of CPU time a job may take on a busy machine
MOST_ADDED_BYTES = MEBIBYTE  # of the document of one addition
T = TypeVar("T")


@dataclass(eq=False, slots=True)
class Submission:
    """A workflow or an addition that waits for a process."""

    owner: str
    body: bytes
    format: str | None
    #: the settings of a workflow; None: it is an addition
    wishes: Wishes | None
    #: makes the result from the prepared document and plan, in the thread of the process
    build: Callable[[bytes, bytes | None], Any]
    done: "asyncio.Future[Any]"

    @property
    def what(self) -> str:
        """What error messages call this submission."""
        return "addition" if self.wishes is None else "workflow"


class PrepareProcess:
    """One process, which is started when it is needed and restarted if it has died."""

    def __init__(self, terms: ServerTerms) -> None:
        self._terms = terms
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, submission: Submission) -> Any:
        """Prepare a workflow or an addition; blocks until it is done."""
        seconds = int(self._terms.prepare_seconds + len(submission.body) / MEBIBYTE)
        if self._process is not None and self._process.poll() is not None:
            self.close()
        process = self._process = self._process or _start()
        late = threading.Timer(max(LEAST, SLOWER * seconds), process.kill)
        late.start()
        try:
            document, plan = self._exchange(process, submission, seconds)
        except (EOFError, OSError, msgspec.MsgspecError):
            self.close()
            code = process.returncode if late.is_alive() else -signal.SIGXCPU
            raise _refusal_for_exit(code, seconds, submission.what) from None
        finally:
            late.cancel()
        return submission.build(document, plan)

    def _exchange(
        self, process: "subprocess.Popen[bytes]", submission: Submission, seconds: int
    ) -> tuple[bytes, bytes | None]:
        jobs, answers, terms = process.stdin, process.stdout, self._terms
        if jobs is None or answers is None:
            raise EOFError
        sizes = (terms.most_tasks, terms.most_arcs, terms.most_names, terms.most_document)
        if submission.wishes is None:
            sizes = (MOST_ADDED, MOST_ADDED_ARCS, MOST_ADDED_ARCS, terms.most_document)
        limits = (terms.prepare_memory, seconds, *sizes)
        send(jobs, PrepareJob(submission.format, submission.wishes, len(submission.body), *limits), submission.body)
        (size,) = JOB_LENGTH.unpack(receive(answers, JOB_LENGTH.size))
        outcome = msgspec.msgpack.decode(receive(answers, min(size, MOST_HEADER)), type=PrepareOutcome)
        if outcome.spent:
            self.close()
        if outcome.refusal is not None:
            raise InputError(outcome.refusal)
        document = receive(answers, min(outcome.document, terms.prepare_memory))
        plan = None if outcome.plan is None else receive(answers, min(outcome.plan, terms.prepare_memory))
        return document, plan

    def close(self) -> None:
        """End the process; a thread that waits for its answer gets an error."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                with suppress(OSError):
                    stream and stream.close()


def _unpack(wishes: Wishes, document: bytes, plan: bytes | None) -> Prepared:
    """The workflow that a process has prepared."""
    flow = unpack_workflow(document)
    return Prepared(flow, wishes, document, *unpack_plan(plan, len(flow)))


def _new_tasks(document: bytes, links: bytes | None) -> NewTasks:
    """The addition that a process has read."""
    decoded = msgspec.msgpack.decode(links or b"", type=AdditionLinks)
    new = NewTasks(unpack_workflow(document), decoded.after, decoded.linked)
    new.make_ready()
    return new


def _refusal_for_exit(code: int, seconds: int, what: str) -> RefusedError:
    """The refusal for a submission whose process died, from its exit code."""
    if code == -signal.SIGXCPU:
        cure = "send it in parts" if what == "addition" else "send it in parts, or choose another policy"
        return RefusedError(422, f"preparing this {what} takes more than {seconds} s of CPU time ({cure})")
    if code == -signal.SIGKILL:
        sentence = f"the process that prepared this {what} was killed (send it again, or in parts)"
        return RefusedError(503, sentence, after=5)
    return RefusedError(422, f"the process that prepared this {what} died with exit code {code} (send it in parts)")


def _start() -> "subprocess.Popen[bytes]":
    """Start a process in a session of its own, so that it gets no signals of the terminal."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "eligo.server.prepare_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},  # each thread reserves address space
    )


@dataclass(eq=False)
class Preparation:
    """The two processes, and the submissions that wait for them; owners take turns."""

    terms: ServerTerms = field(default_factory=ServerTerms)

    def __post_init__(self) -> None:
        self._processes = {None: PrepareProcess(self.terms), SMALL: PrepareProcess(self.terms)}
        self._idle: set[int | None] = set(self._processes)
        self._waiting: dict[str, deque[Submission]] = {}  # by owner, the next one first
        self._threads = ThreadPoolExecutor(len(self._processes), thread_name_prefix="eligo prepare")
        self._tasks: set[asyncio.Task[None]] = set()

    async def prepare(
        self, owner: str, body: bytes, format: str | None, wishes: Wishes, build: Callable[[Prepared], Served]
    ) -> Served:
        """Read and plan a workflow and build its state, in its owner's turn."""
        return await self._run_in_turn(
            owner, body, format, wishes, lambda document, plan: build(_unpack(wishes, document, plan))
        )

    async def read_addition(self, owner: str, body: bytes, format: str | None = None) -> NewTasks:
        """Read an addition, in its owner's turn; with *format* "json" only that format is accepted."""
        if len(body) > MOST_ADDED_BYTES:
            raise InputError(f"an addition must be at most {MOST_ADDED_BYTES >> 20} MiB, got {len(body):,} bytes")
        return await self._run_in_turn(owner, body, format, None, _new_tasks)

    async def _run_in_turn(
        self,
        owner: str,
        body: bytes,
        format: str | None,
        wishes: Wishes | None,
        build: Callable[[bytes, bytes | None], T],
    ) -> T:
        own = self._waiting.get(owner, ())
        most = self.terms.most_preparing
        if len(own) >= max(1, most // 4) or sum(map(len, self._waiting.values())) >= most:
            sentence = f"{len(own):,} of your workflows and additions are waiting to be prepared (send this one later)"
            raise RefusedError(503, sentence, after=5)
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        submission = Submission(owner, body, format, wishes, build, done)
        self._waiting.setdefault(owner, deque()).append(submission)
        self._dispatch()
        try:
            return await done
        finally:
            self._withdraw(submission)

    def _withdraw(self, submission: Submission) -> None:
        own = self._waiting.get(submission.owner)
        if own is not None and submission in own:
            own.remove(submission)

    def _dispatch(self) -> None:
        for most in sorted(self._idle, key=lambda most: most is None):  # prefer the process for small bodies
            submission = self._next(most)
            if submission is not None:
                self._idle.discard(most)
                task = asyncio.get_running_loop().create_task(self._run(most, submission))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    def _next(self, most: int | None) -> Submission | None:
        """The first submission that fits, of the owner whose last turn is longest ago."""
        for owner, own in self._waiting.items():
            submission = next((one for one in own if most is None or len(one.body) <= most), None)
            if submission is not None:
                own.remove(submission)
                del self._waiting[owner]
                if own:
                    self._waiting[owner] = own  # behind the others
                return submission
        return None

    async def _run(self, most: int | None, submission: Submission) -> None:
        loop, process = asyncio.get_running_loop(), self._processes[most]
        try:
            served = await loop.run_in_executor(self._threads, process.run, submission)
        except Exception as error:
            if not submission.done.done():
                submission.done.set_exception(error)
        else:
            if not submission.done.done():
                submission.done.set_result(served)
        finally:
            self._idle.add(most)
        self._dispatch()

    def close(self) -> None:
        """End the processes and cancel the waiting submissions."""
        for process in self._processes.values():
            process.close()
        for own in self._waiting.values():
            for submission in own:
                submission.done.cancel()
        self._waiting.clear()
        self._threads.shutdown(wait=False)
