"""Runs commands on any machine; also the program that does so on the nodes of a batch system.

    python worker.py 17.json

This file is copied to the node and needs Python and nothing else, so it imports nothing from eligo. The argument is a file
with the commands of a job. After each command the results are written to done/17.json beside it, by renaming: that file is
either complete or absent.
"""

import errno
import json
import os
import resource
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack, suppress
from fcntl import F_DUPFD_CLOEXEC, fcntl
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from eligo.engines.jobs import Command

GRACE = 5.0  # seconds between SIGTERM and SIGKILL
NO_PROGRAM = 127  # the exit code that shells use
#: how tasks hold the file that marks them: it cannot write, and no other reader uses it; tasks of earlier versions could
HELD = os.O_RDONLY | os.O_APPEND
KILOBYTE = 1024  # the unit in which the system reports the memory of a process that ended
DONE, BEGUN = "done", ".begun"
NOT_OURS = 75  # exit code: another worker has started this job already
#: seconds between two checks of a process: a fiftieth of its run time so far, within these limits
STEP, LONGEST_PAUSE = 0.0005, 0.1
#: errors that mean that the machine, not the task, lacks something to start a process
SHORT = {errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC}
STOPPED = "stopped"  # the reason for the end of a task that the run itself has stopped
SHORTAGE = 30.0  # seconds for which a start is retried if the machine lacks something
#: exit codes of a process that was asked to stop: as Python reports the signal, and as shells do
ASKED_TO_STOP = (-signal.SIGTERM, 128 + signal.SIGTERM)
F_SETOWN_EX, F_OWNER_PID = 15, 1  # Linux; not in Python's module


class Performed(NamedTuple):
    """The result of one task, as a worker sends it: an `Attempt` without the engine's part, and a function's value."""

    began: float
    ended: float
    failure: str | None = None
    value: Any = None
    code: int | None = None
    memory: int | None = None
    lost: bool = False


def describe_exit(code: int) -> str | None:
    """An exit code in words; None for success.

    >>> describe_exit(0), describe_exit(2), describe_exit(-9), describe_exit(-40)
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


def describe_timeout(seconds: float) -> str:
    """The reason for the failure of a task that exceeded its time limit.

    >>> describe_timeout(90.0)
    'took longer than 90 s'
    """
    return f"took longer than {seconds:g} s"


def own_memory(peak: int) -> int | None:
    """The peak memory of a process in bytes, or None if it may have inherited that memory from this process."""
    return peak * KILOBYTE if peak > own_peak() else None


def own_peak() -> int:
    """The peak memory of this process itself in kilobytes, not that of its parent."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def describe_start_error(work: "Command", error: OSError | ValueError) -> str:
    """The reason why a command could not be started.

    >>> describe_start_error(SimpleNamespace(argv=("sort",)), FileNotFoundError(2, "No such file or directory", "/nowhere"))
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
    started: Callable[[int], object] = lambda session: None,
) -> Performed:
    """Run a command in its own session; stop it once *stopped* returns True. When it ends, the whole session is killed.

    *started* gets the session as soon as it exists.

    The command's own environment is added to *base*, by default the environment of this process. Its own time limit replaces
    *timeout*.
    """
    own = getattr(work, "timeout", None)
    timeout = timeout if own is None else own
    began = time.time()
    try:
        child = _start(work, os.environ if base is None else base, stopped)
    except (OSError, ValueError) as error:
        lacking = getattr(error, "errno", None) in SHORT
        return Performed(began, time.time(), describe_start_error(work, error), code=NO_PROGRAM, lost=lacking)
    started(child.pid)
    why = _watch(child.pid, timeout, stopped)
    _, status, usage = os.wait4(child.pid, 0)
    code = child.returncode = os.waitstatus_to_exitcode(status)
    end_session(child.pid)
    memory = own_memory(usage.ru_maxrss)
    return Performed(began, time.time(), why or describe_exit(code), None, code, memory, why == STOPPED)


def _start(work: "Command", base: Mapping[str, str], stopped: Callable[[], bool] | None) -> "subprocess.Popen[bytes]":
    """Start the process of a command; retry for a while if the machine lacks something."""
    began, pause = time.monotonic(), LONGEST_PAUSE
    while True:
        try:
            return _spawn(work, base)
        except OSError as error:
            over = time.monotonic() - began > SHORTAGE or (stopped is not None and stopped())
            if error.errno not in SHORT or over:
                raise
        time.sleep(pause)
        pause *= 1.5


def _spawn(work: "Command", base: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    with ExitStack() as stack:
        out, err = [stack.enter_context(open(path, "wb")) for path in (work.out, work.err)]
        marker = _open_marker(getattr(work, "marker", ""), stack)
        return subprocess.Popen(  # noqa: S603 - the words are the user's own
            work.argv, cwd=work.folder, env={**base, **work.environment}, start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=out, stderr=err, pass_fds=marker,
        )  # fmt: skip


def _open_marker(marker: str, stack: ExitStack) -> tuple[int, ...]:
    """Open the file that all processes of a command keep open, at a number unused by scripts; empty on another machine."""
    try:
        first = os.open(marker, HELD | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in SHORT:
            raise
        return ()
    stack.callback(os.close, first)
    number = out_of_the_way(first)
    stack.callback(os.close, number)
    return (number,)


def out_of_the_way(file: int) -> int:
    """A duplicate of a descriptor with a number that no shell script redirects."""
    for least in (60, 10):
        with suppress(OSError):  # the limit may be lower
            return fcntl(file, F_DUPFD_CLOEXEC, least)
    return fcntl(file, F_DUPFD_CLOEXEC, 3)


def _watch(pid: int, timeout: float | None, stopped: Callable[[], bool] | None) -> str | None:
    """Wait for a process without reaping it, and if it was asked to stop, for its session too.

    Return why it was stopped, or None if it ended by itself. A shell dies of SIGTERM at once, but the program that it started
    may need the time to save its data.
    """
    if not _over(pid, timeout, stopped):
        signal_sessions([pid], signal.SIGTERM)
        _wait_for_session(pid)
        if timeout is None or (stopped is not None and stopped()):
            return STOPPED
        return describe_timeout(timeout)
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    if ended is not None and exit_code(ended) in ASKED_TO_STOP:
        _wait_for_session(pid)
    else:
        with suppress(ProcessLookupError, PermissionError):  # no process remains, or only a zombie
            os.killpg(pid, signal.SIGKILL)
    return None


def exit_code(ended: os.waitid_result) -> int:
    """The exit code of a process that is not reaped yet, in the convention of `os.waitstatus_to_exitcode`."""
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def _wait_for_session(pid: int) -> None:
    """Wait until no process of a session is alive, or its grace period is over; then kill the session."""
    deadline, pause = time.monotonic() + GRACE, 0.01
    while alive([pid], table := process_table()) and time.monotonic() < deadline:
        time.sleep(min(pause, max(0.0, deadline - time.monotonic())))
        pause = min(LONGEST_PAUSE, 1.5 * pause)
    kill_sessions([pid], table)


class Process(NamedTuple):
    """A process, as /proc describes it."""

    state: bytes
    parent: int
    group: int
    session: int
    #: when it started, in clock ticks since the machine booted
    began: int


def process_table() -> dict[int, Process]:
    """Every process on this machine, by its number."""
    table = {}
    for name in os.listdir("/proc"):
        if name.isdecimal():
            with suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
                words = file.read().rpartition(b")")[2].split()  # the program's name may contain anything
                table[int(name)] = Process(words[0], *map(int, (words[1], words[2], words[3], words[19])))
    return table


def alive(sessions: Collection[int], table: Mapping[int, Process]) -> dict[int, int]:
    """The processes of some sessions that have not ended, each with its session."""
    return {
        number: process.session
        for number, process in table.items()
        if process.session in sessions and process.state not in b"ZX"
    }


def descendants(numbers: Collection[int], table: Mapping[int, Process]) -> set[int]:
    """These processes and all their descendants that can be reached through parents which still exist."""
    reached, children = set[int](), dict[int, list[int]]()
    for number, process in table.items():
        children.setdefault(process.parent, []).append(number)
    waiting = [number for number in numbers if number in table]
    while waiting:
        number = waiting.pop()
        if number not in reached:
            reached.add(number)
            waiting += children.get(number, ())
    return reached


def ancestors(number: int, table: Mapping[int, Process]) -> list[int]:
    """A process, its parent and so on, as long as they exist."""
    chain = list[int]()
    while number in table and number not in chain:
        chain.append(number)
        number = table[number].parent
    return chain


def signal_sessions(sessions: Collection[int], number: int) -> None:
    """Send a signal to every process of some sessions, also to those in other process groups."""
    for session in sessions:
        with suppress(ProcessLookupError, PermissionError):  # no process remains, or only a zombie
            os.killpg(session, number)
    table = process_table()
    for process, session in alive(sessions, table).items():
        if table[process].group != session:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, number)


def kill_sessions(sessions: Collection[int], table: Mapping[int, Process]) -> None:
    """Kill every process of some sessions, and all their descendants."""
    for number in descendants(alive(sessions, table), table):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(number, signal.SIGKILL)


def end_session(session: int) -> None:
    """Kill the remaining processes of a session whose first process is gone."""
    file = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if is_in_use(session, file):
            kill_sessions([session], process_table())
    finally:
        os.close(file)


def is_in_use(number: int, file: int) -> bool:
    """Whether a number belongs to a process, a process group or a session; *file* is any open file.

    The kernel looks the number up when it is named as the owner of a file. That is cheap, while searching all processes after
    every task is not.
    """
    try:
        fcntl(file, F_SETOWN_EX, struct.pack("ii", F_OWNER_PID, number))
    except ProcessLookupError:
        return False
    except OSError:  # another operating system: assume so, and search the processes
        return True
    fcntl(file, F_SETOWN_EX, struct.pack("ii", F_OWNER_PID, 0))
    return True


def _over(pid: int, seconds: float | None, stopped: Callable[[], bool] | None) -> bool:
    """Whether a process ends within this many seconds, and before *stopped* returns True."""
    if seconds is None and stopped is None:
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        return True
    began = time.monotonic()
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        passed = time.monotonic() - began
        if (seconds is not None and passed >= seconds) or (stopped is not None and stopped()):
            return False
        pause = LONGEST_PAUSE if seconds is None else min(LONGEST_PAUSE, seconds - passed)
        time.sleep(min(pause, max(STEP, passed / 50)))
    return True


def main(path: str) -> int:
    """Run the job in a file, and return the exit code: 0 once its results are written."""
    signals: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: signals.append(received))
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
    """Write the results of the job so far to the place where the engine expects them."""
    folder, name = os.path.split(path)
    part = f"{path}.part"
    with open(part, "w", encoding="ascii") as file:
        json.dump(done, file)
    os.replace(part, os.path.join(folder, DONE, name))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
