"""What a worker does with a job: task after task, on whatever machine it is. Nothing here needs more than Python itself."""

import os
import select
import signal
import subprocess
import time
from contextlib import ExitStack, suppress
from typing import Any, NamedTuple

from eligo.engines.jobs import Command, Ending, Function, Job, Work

MARK = "ELIGO_JOB"  # in the environment of what a job starts
GRACE = 5.0  # seconds between the polite signal and the other one
NO_PROGRAM = 127  # as shells say it
KILOBYTE = 1024  # the unit in which the system tells the memory of a process that ended


class Performed(NamedTuple):
    """What became of one task, told by the worker; see `Ending`."""

    began: float
    ended: float
    failure: str | None = None
    value: Any = None
    code: int | None = None
    memory: int | None = None
    lost: bool = False


def perform(works: tuple[Work, ...], timeout: float | None, mark: str = "") -> list[Performed]:
    """Run the tasks of a job one after another, up to the first that fails; only commands are stopped when they are late.

    The processes have the mark in their environment.
    """
    found = []
    for work in works:
        found.append(_called(work) if isinstance(work, Function) else run_command(work, timeout, mark))
        if found[-1].failure is not None:
            break
    return found


def endings(job: Job, performed: list[Performed]) -> list[Ending]:
    """What a worker told, as the loop hears it."""
    return [Ending(job, place, *told) for place, told in enumerate(performed)]


def lost(job: Job, why: str) -> Ending:
    """A job whose worker, or whose queue, is gone."""
    now = time.time()
    return Ending(job, 0, now, now, why, lost=True)


def said(code: int) -> str | None:
    """An exit code in words; None where all went well.

    >>> said(0), said(2), said(-9)
    (None, 'exit code 2', 'ended by SIGKILL')
    """
    if code >= 0:
        return f"exit code {code}" if code else None
    try:
        return f"ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"ended by signal {-code}"


def unable(work: Command, error: OSError | ValueError) -> str:
    """Why a command could not be begun.

    >>> unable(Command(("sort",), "/nowhere"), FileNotFoundError(2, "No such file or directory", "/nowhere"))
    "cannot run 'sort': No such file or directory: '/nowhere'"
    """
    if not isinstance(error, OSError):
        return f"cannot run {work.argv[0]!r}: {error}"
    where = "" if error.filename in (None, work.argv[0]) else f": {error.filename!r}"
    return f"cannot run {work.argv[0]!r}: {error.strerror}{where}"


def _called(work: Function) -> Performed:
    began = time.time()
    try:
        value = work.function(*work.arguments)
    except (Exception, SystemExit) as error:  # whatever a user's function raises is told to the user
        return Performed(began, time.time(), f"{type(error).__name__}: {error}"[:1000], _sendable(error))
    return Performed(began, time.time(), value=value)


def _sendable(error: BaseException) -> BaseException:
    """The same exception, if it can be made again elsewhere; some cannot, and would take down whoever receives them."""
    try:
        parts: Any = error.__reduce__()
        parts[0](*parts[1])
    except Exception as why:
        return RuntimeError(f"{type(error).__name__}: {error} (cannot be sent: {why})"[:1000])
    return error


def run_command(work: Command, timeout: float | None, mark: str = "") -> Performed:
    """Run a command in a process group of its own, of which nothing is left when it ends."""
    began = time.time()
    try:
        child = _spawned(work, {**os.environ, **work.environment, MARK: mark})
    except (OSError, ValueError) as error:
        return Performed(began, time.time(), unable(work, error), code=NO_PROGRAM)
    late = False
    try:
        late = not _ends(child.pid, timeout)
        if late:
            os.killpg(child.pid, signal.SIGTERM)
            _ends(child.pid, GRACE)
    finally:
        with suppress(ProcessLookupError, PermissionError):  # nobody is left, or only a zombie
            os.killpg(child.pid, signal.SIGKILL)
        _, status, usage = os.wait4(child.pid, 0)
        code = child.returncode = os.waitstatus_to_exitcode(status)
    failure = f"took longer than {timeout:g} s" if late else said(code)
    return Performed(began, time.time(), failure, None, code, usage.ru_maxrss * KILOBYTE)


def _spawned(work: Command, environment: dict[str, str]) -> "subprocess.Popen[bytes]":
    with ExitStack() as stack:
        out, err = [stack.enter_context(open(path, "wb")) for path in (work.out, work.err)]
        return subprocess.Popen(  # noqa: S603 - the words are the user's own
            work.argv,
            cwd=work.folder,
            env=environment,
            process_group=0,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
        )


def _ends(pid: int, seconds: float | None) -> bool:
    """Whether a process ends within so many seconds; it is not reaped yet."""
    watch = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(watch, select.POLLIN)
        return bool(poll.poll(None if seconds is None else 1000 * seconds))
    finally:
        os.close(watch)
