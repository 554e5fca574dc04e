"""What a client is told when it starts: where the server is, what it may use of this machine, whom it trusts."""

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
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def check_address(url: str) -> None:
    """Refuse what is no address of a server."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        good = False
    if not good:
        raise InputError(f"{url!r} is not a server's URL: it must start with http:// or https://")


@dataclass(frozen=True, slots=True)
class WorkOptions:
    """How `eligo work` works; only the server's address is needed."""

    url: str
    #: how many tasks may run at once
    cores: int = field(default_factory=own_cores)
    #: the most bytes of memory that a task may have; None: what the task itself says, or no limit
    memory: int | None = None
    #: the most bytes that a task may write into one file, what it prints included, and into all its outputs together
    output: int = GIGABYTE
    #: the most bytes of files that are kept for later tasks
    cache: int = 10 * GIGABYTE
    #: how many tasks to ask for at once, or how many seconds of work instead
    size: int = 1
    seconds: float | None = None
    #: what this machine has that tasks may ask for, such as "gpu"
    labels: tuple[str, ...] = ()
    #: where everything is kept; None: a folder below the user's own, by the server's name, and its own where it has one
    folder: str | None = None
    name: str = field(default_factory=socket.gethostname)
    #: a file with the token, and one with certificates to trust
    token: str | None = None
    ca: str | None = None
    #: files with the public keys of those whose commands are run; none: everybody's
    trust: tuple[str, ...] = ()
    #: None or "bwrap"
    sandbox: str | None = None
    sandbox_network: bool = False
    #: whether to stop after one grant, or after so many seconds without anything to do
    once: bool = False
    idle_exit: float | None = None
    #: how many seconds tasks may still run once the client was told to stop
    grace: float = 60.0
    #: how long the server may hold a request until something is ready
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
        """The folder where everything is kept."""
        if self.folder is not None:
            return os.path.abspath(self.folder)
        called = "" if self.name == socket.gethostname() else f"_{re.sub(r'[^A-Za-z0-9.-]', '_', self.name)[:100]}"
        return os.path.join(state_folder(), place_of(self.url) + called)
