"""The options of a client: the server's address, limits on the use of this machine, and trusted keys."""

import os
import re
import socket
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from eligo.client.credentials import place_of, state_folder
from eligo.errors import InputError
from eligo.names import check_label

MEGABYTE, GIGABYTE = 2**20, 2**30
MOST_LABELS = 64


def own_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_address(url: str) -> None:
    """Refuse a URL that cannot be that of a server."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good = False
    if not good:
        raise InputError(f"{url!r} is not a server's URL: it must start with http:// or https://")


@dataclass(frozen=True, slots=True)
class WorkOptions:
    """The options of `eligo work`; only the server's address is required."""

    url: str
    #: maximum number of concurrent tasks
    cores: int = field(default_factory=own_cores)
    #: memory limit of a task in bytes; None: the task's own, or no limit
    memory: int | None = None
    #: limit in bytes of each file that a task writes, including its output streams, and of all its outputs together
    output: int = GIGABYTE
    #: size limit in bytes of the file cache
    cache: int = 10 * GIGABYTE
    #: tasks per request, or seconds of work per request instead
    size: int = 1
    seconds: float | None = None
    #: features of this machine that tasks may require, for example "gpu"
    labels: tuple[str, ...] = ()
    #: folder for all files; None: one in the user's state folder, named after the server and, if it is given, the name below
    folder: str | None = None
    name: str = field(default_factory=socket.gethostname)
    #: a file with the token, and one with certificates to trust
    token: str | None = None
    ca: str | None = None
    #: files with trusted public keys, whose owners' commands are run; empty: all commands are run
    trust: tuple[str, ...] = ()
    #: None or "bwrap"
    sandbox: str | None = None
    sandbox_network: bool = False
    #: whether to stop after one grant, or after this many idle seconds
    once: bool = False
    idle_exit: float | None = None
    #: seconds that tasks may still run after a stop signal
    grace: float = 60.0
    #: seconds that the server may hold a request until a task is ready
    poll: float = 30.0
    verbose: bool = False

    def __post_init__(self) -> None:
        check_address(self.url)
        if self.cores < 1 or self.size < 1:
            raise InputError("cores and size must be at least 1")
        for label in self.labels:
            check_label(label)
        if len(self.labels) > MOST_LABELS:
            raise InputError(f"a client has at most {MOST_LABELS} labels, got {len(self.labels)}")
        seconds = (self.seconds or 1, self.idle_exit or 0, self.grace, self.poll)
        if min(self.memory or 1, self.output, self.cache, *seconds) < 0 or self.output < 1:
            raise InputError("limits of a client cannot be negative")

    def home(self) -> str:
        """The folder for all files."""
        if self.folder is not None:
            return os.path.abspath(self.folder)
        called = "" if self.name == socket.gethostname() else f"_{re.sub(r'[^A-Za-z0-9.-]', '_', self.name)[:100]}"
        return os.path.join(state_folder(), place_of(self.url) + called)
