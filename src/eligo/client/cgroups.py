"""Control groups (cgroup v2), if the client may create them: they limit all processes of a task together.

Elsewhere the limit applies to each process. A client may create groups if the system has delegated one to it, as systemd does
for a unit with `Delegate=yes`.
"""

import itertools
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from eligo.client.sandbox import limit_command

PROBE = 64 * 2**20  # bytes
TRIES, PAUSE = 50, 0.01  # attempts to remove a group whose processes are ending, and seconds between them


@dataclass(slots=True)
class Cgroup:
    """The group of one task."""

    path: str

    @property
    def entrance(self) -> str:
        """The file to which a process writes its number to join the group."""
        return os.path.join(self.path, "cgroup.procs")

    def peak(self) -> int | None:
        """The peak memory of the group in bytes, if the system reports it."""
        text = _read(self.path, "memory.peak").strip()
        return int(text) if text.isdecimal() else None

    def overfull(self) -> bool:
        """Whether a process was killed for exceeding the memory limit."""
        words = dict(line.split() for line in _read(self.path, "memory.events").splitlines())
        return words.get("oom_kill", "0") != "0"


class Cgroups:
    """The groups that a client creates below its own."""

    def __init__(self, base: str) -> None:
        self._base, self._numbers = base, itertools.count(1)

    @contextmanager
    def group(self, memory: int) -> Iterator[Cgroup]:
        """A group with this memory limit, whose processes are killed at the end."""
        path = os.path.join(self._base, f"task-{next(self._numbers)}")
        os.mkdir(path)
        try:
            _write(path, "memory.max", str(memory))
            with suppress(OSError):  # fails if there is no swap
                _write(path, "memory.swap.max", "0")
            _write(path, "memory.oom.group", "1")
            yield Cgroup(path)
        finally:
            _remove(path)


def groups(own: str | None = None, mount: str = "/sys/fs/cgroup") -> Cgroups | None:
    """The group factory for tasks; None if groups cannot be created or do not work. *own* is the group of this process."""
    base = own or _own(mount)
    if base is None or "memory" not in _read(base, "cgroup.controllers").split():
        return None
    try:
        if _read(base, "cgroup.procs").split() != [str(os.getpid())]:
            return None  # other processes in the group cannot be moved
        os.makedirs(os.path.join(base, "client"), exist_ok=True)
        _write(os.path.join(base, "client"), "cgroup.procs", str(os.getpid()))  # subgroups require an empty group
        _write(base, "cgroup.subtree_control", "+memory")
        cgroups = Cgroups(base)
        with cgroups.group(PROBE) as group:
            words = limit_command(["true"], group=group.entrance)
            subprocess.run(words, check=True, capture_output=True, timeout=10)  # noqa: S603 - our own words
    except (OSError, subprocess.SubprocessError):
        return None
    return cgroups


def _own(mount: str) -> str | None:
    """The folder of this process's group; None if the system has no pure version 2 groups."""
    lines = _read("/proc/self", "cgroup").splitlines()
    path = next((line[3:] for line in lines if line.startswith("0::")), None)
    return None if path is None else os.path.join(mount, path.lstrip("/"))


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
    with suppress(OSError):
        _write(path, "cgroup.kill", "1")
    for _ in range(TRIES):
        try:
            os.rmdir(path)
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(PAUSE)
