"""What runs a command, on whatever machine it is; and the program that does so on the nodes of a batch system.

    python worker.py 17.json

It is copied there and needs Python and nothing else, so it imports nothing of eligo. The file has the commands of a job;
what came of them is written into done/17.json beside it, after each command, by renaming: it is there whole, or not at all.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from eligo.engines.jobs import Command

GRACE = 5.0  # seconds between the polite signal and the other one
NO_PROGRAM = 127  # as shells say it
KILOBYTE = 1024  # the unit in which the system tells the memory of a process that ended
DONE, BEGUN = "done", ".begun"
NOT_OURS = 75  # exit code: somebody has begun this job already
STEP, LONGEST_PAUSE = 0.0005, 0.1  # seconds between two looks at a process: a fiftieth of what it has taken so far


class Performed(NamedTuple):
    """What became of one task, told by the worker; see `Ending`."""

    began: float
    ended: float
    failure: str | None = None
    value: Any = None
    code: int | None = None
    memory: int | None = None
    lost: bool = False


def said(code: int) -> str | None:
    """An exit code in words; None where all went well.

    >>> said(0), said(2), said(-9), said(-40)
    (None, 'exit code 2', 'ended by SIGKILL', 'ended by signal 40')
    """
    if code == 0:
        return None
    if code > 0:
        return f"exit code {code}"
    try:
        return f"ended by {signal.Signals(-code).name}"
    except ValueError:  # a signal without a name
        return f"ended by signal {-code}"


def own_memory(peak: int) -> int | None:
    """The most bytes that a process had; None where that may be what it began with, which was a copy of this one."""
    return peak * KILOBYTE if peak > own_peak() else None


def own_peak() -> int:
    """The most kilobytes that this process had itself, and not whoever started it."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def unable(work: "Command", error: OSError | ValueError) -> str:
    """Why a command could not be begun.

    >>> unable(SimpleNamespace(argv=("sort",)), FileNotFoundError(2, "No such file or directory", "/nowhere"))
    "cannot run 'sort': No such file or directory: '/nowhere'"
    """
    if not isinstance(error, OSError):
        return f"cannot run {work.argv[0]!r}: {error}"
    where = "" if error.filename in (None, work.argv[0]) else f": {error.filename!r}"
    return f"cannot run {work.argv[0]!r}: {error.strerror}{where}"


def run_command(
    work: "Command",
    timeout: float | None,
    stopped: Callable[[], bool] | None = None,
    base: Mapping[str, str] | None = None,
) -> Performed:
    """Run a command in a process group of its own, of which nothing is left when it ends, or once *stopped* says so.

    *base* is the environment that the command's own is added to, this process's unless it is given.
    """
    began = time.time()
    try:
        child = _spawned(work, os.environ if base is None else base)
    except (OSError, ValueError) as error:
        return Performed(began, time.time(), unable(work, error), code=NO_PROGRAM)
    why = _waited(child.pid, timeout, stopped)
    with suppress(ProcessLookupError, PermissionError):  # nobody is left, or only a zombie
        os.killpg(child.pid, signal.SIGKILL)
    _, status, usage = os.wait4(child.pid, 0)
    code = child.returncode = os.waitstatus_to_exitcode(status)
    lost = why == "stopped"
    return Performed(began, time.time(), why or said(code), None, code, own_memory(usage.ru_maxrss), lost)


def _spawned(work: "Command", base: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    with ExitStack() as stack:
        out, err = [stack.enter_context(open(path, "wb")) for path in (work.out, work.err)]
        return subprocess.Popen(  # noqa: S603 - the words are the user's own
            work.argv,
            cwd=work.folder,
            env={**base, **work.environment},
            process_group=0,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
        )


def _waited(pid: int, timeout: float | None, stopped: Callable[[], bool] | None) -> str | None:
    """Wait for a process, which is left to be collected; why it was told to stop, if it was."""
    if _over(pid, timeout, stopped):
        return None
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGTERM)
    _over(pid, GRACE, None)
    return "stopped" if stopped is not None and stopped() else f"took longer than {timeout:g} s"


def _over(pid: int, seconds: float | None, stopped: Callable[[], bool] | None) -> bool:
    """Whether a process ends within so many seconds, and before *stopped* says so."""
    if seconds is None and stopped is None:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        return True
    began = time.monotonic()
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        passed = time.monotonic() - began
        if (seconds is not None and passed >= seconds) or (stopped is not None and stopped()):
            return False
        left = LONGEST_PAUSE if seconds is None else min(LONGEST_PAUSE, seconds - passed)
        time.sleep(min(left, max(STEP, passed / 50)))
    return True


def main(path: str) -> int:
    """Run the job in a file; 0 once what came of it is written down."""
    signals: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda seen, _: signals.append(seen))
    try:
        with open(path, encoding="ascii") as file:
            job = json.load(file)
        if not job["again"]:
            os.rename(path, path + BEGUN)
    except FileNotFoundError:
        return NOT_OURS
    done: list[Performed] = []
    for work in job["works"]:
        done.append(run_command(SimpleNamespace(**work), job["timeout"], lambda: bool(signals)))  # type: ignore[arg-type]
        _write(path, done)
        if done[-1].failure is not None:
            return 1 if job["again"] else 0
    return 0


def _write(path: str, done: list[Performed]) -> None:
    """What came of the job so far, where it is looked for."""
    folder, name = os.path.split(path)
    part = f"{path}.part"
    with open(part, "w", encoding="ascii") as file:
        json.dump(done, file)
    os.replace(part, os.path.join(folder, DONE, name))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
