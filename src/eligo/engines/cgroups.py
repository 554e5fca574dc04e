"""Control groups, which limit the memory of all processes of a task together.

With version 1, a process may create groups below its own if it may write there, as root may. With version 2, its own group
must also have no other processes, as in a unit or scope of systemd with `Delegate=yes`.
"""

import itertools
import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass

from eligo.work.demands import byte_words

OWN = "eligo"  # the group into which this process moves, version 2: a group with subgroups must have no processes
PROBE = 64 * 2**20  # memory limit of the group by which groups are tested, in bytes
TRIES, PAUSE = 50, 0.01  # attempts to remove a group whose processes are ending, and seconds between them
#: enters a group and becomes a command; exits with code 125 if it cannot enter
_ENTER = 'echo $$ > "$1" || exit 125; shift; exec "$@"'
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)  # variables that every shell passes on; not functions that bash exports


@dataclass(frozen=True, slots=True)
class _Files:
    """The files of a group: its limits of memory and swap, its peak, and its events."""

    limit: str
    swap: str
    peak: str
    events: str


_VERSION_1 = _Files(
    "memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.max_usage_in_bytes", "memory.oom_control"
)
_VERSION_2 = _Files("memory.max", "memory.swap.max", "memory.peak", "memory.events")


@dataclass(frozen=True, slots=True)
class Cgroup:
    """The control group of one task, and its memory limit in bytes."""

    path: str
    memory: int
    files: _Files = _VERSION_2

    def around(self, argv: Sequence[str], environment: Mapping[str, str]) -> tuple[str, ...]:
        """The command line that runs a command in the group, with this environment."""
        lost = [f"{name}={word}" for name, word in environment.items() if not _NAME.fullmatch(name)]
        again = ("/usr/bin/env", *lost) if lost else ()
        return ("/bin/sh", "-c", _ENTER, "eligo", os.path.join(self.path, "cgroup.procs"), *again, *argv)

    def peak(self) -> int | None:
        """The peak memory of the group in bytes, cached files included, if the system reports it."""
        text = _read(self.path, self.files.peak).strip()
        return int(text) if text.isdecimal() else None

    def failure(self) -> str | None:
        """The reason for the failure of the task if the system killed a process for exceeding the limit."""
        words = dict(line.split(maxsplit=1) for line in _read(self.path, self.files.events).splitlines())
        killed = words.get("oom_kill", "0") != "0"
        return f"exceeded the memory limit of {byte_words(self.memory)}" if killed else None

    def close(self) -> None:
        """Remove the group, and kill its remaining processes."""
        _remove(self.path)


class Cgroups:
    """The control groups of tasks, below the group *base*; a *mark* in their names tells whose they are."""

    def __init__(self, base: str, mark: str, files: _Files) -> None:
        self.base, self._mark, self._files, self._numbers = base, mark, files, itertools.count(1)

    def limited(self, memory: int) -> Cgroup:
        """A new group with this memory limit; the caller closes it."""
        name, files = f"eligo-{self._mark}-{os.getpid()}-{next(self._numbers)}", self._files
        group = Cgroup(os.path.join(self.base, name), memory, files)
        os.mkdir(group.path)
        try:
            _write(group.path, files.limit, str(memory))
            with suppress(OSError):  # fails if there is no swap
                _write(group.path, files.swap, "0" if files is _VERSION_2 else str(memory))
            if files is _VERSION_2:  # else the system kills only the largest process
                _write(group.path, "memory.oom.group", "1")
        except OSError:
            group.close()
            raise
        return group

    def remove_strays(self) -> None:
        """Remove the groups of an earlier process with the same mark, and kill their processes."""
        for name in os.listdir(self.base) if self._mark else ():
            if name.startswith(f"eligo-{self._mark}-"):
                _remove(os.path.join(self.base, name))


def groups(mark: str, own: str | None = None, mount: str = "/sys/fs/cgroup") -> Cgroups | None:
    """The control groups for tasks; None if they cannot be created or do not work.

    Groups that an earlier process with this mark left are removed. *own* is the group of this process, of version 2.
    """
    base, files = _own(mount) if own is None else (own, _VERSION_2)
    try:
        if base is None or (files is _VERSION_2 and not _prepare(base)):
            return None
        cgroups = Cgroups(base, mark, files)
        cgroups.remove_strays()
        with closing(cgroups.limited(PROBE)) as group:
            subprocess.run(group.around(["true"], {}), check=True, capture_output=True, timeout=10)  # noqa: S603 - our own words
    except (OSError, subprocess.SubprocessError):
        return None
    return cgroups


def _own(mount: str) -> tuple[str | None, _Files]:
    """The folder of this process's group that controls memory, and the files of its version."""
    lines = [line.split(":", 2) for line in _read("/proc/self", "cgroup").splitlines()]
    paths = {controller: path.lstrip("/") for _, controllers, path in lines for controller in controllers.split(",")}
    if "memory" in paths:
        return os.path.join(mount, "memory", paths["memory"]), _VERSION_1
    return os.path.join(mount, paths[""]) if "" in paths else None, _VERSION_2


def _prepare(base: str) -> bool:
    """Whether the group of this process, of version 2, may have subgroups with a memory limit; moves the process."""
    if "memory" not in _read(base, "cgroup.controllers").split():
        return False
    if _read(base, "cgroup.procs").split() != [str(os.getpid())]:
        return False  # other processes in the group cannot be moved
    os.makedirs(os.path.join(base, OWN), exist_ok=True)
    _write(os.path.join(base, OWN), "cgroup.procs", str(os.getpid()))
    _write(base, "cgroup.subtree_control", "+memory")
    return True


def _read(folder: str, name: str) -> str:
    try:
        with open(os.path.join(folder, name), encoding="ascii") as file:
            return file.read()
    except (OSError, UnicodeError):
        return ""


def _write(folder: str, name: str, text: str) -> None:
    with open(os.path.join(folder, name), "w", encoding="ascii") as file:
        file.write(text)


def _remove(path: str) -> None:
    for _ in range(TRIES):
        try:
            os.rmdir(path)
        except FileNotFoundError:
            return
        except OSError:
            _kill(path)
            time.sleep(PAUSE)


def _kill(path: str) -> None:
    """Kill the processes of a group and its subgroups, and remove the subgroups."""
    with suppress(OSError):  # version 1 and older systems do not have it
        _write(path, "cgroup.kill", "1")
    for folder, _, _ in os.walk(path, topdown=False):
        for number in map(int, _read(folder, "cgroup.procs").split()):
            with suppress(OSError):
                if number:  # 0 stands for a process that this one cannot see
                    os.kill(number, signal.SIGKILL)
        if folder != path:
            with suppress(OSError):
                os.rmdir(folder)
