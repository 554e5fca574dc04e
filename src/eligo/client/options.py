"""The options of a client: the server's address and token, limits on the use of this machine, and trusted keys.

The token is in a file that the user names, or that a server of the same user on this machine offers. A server writes the
path of its token file to a note in a folder that only its user can read, named after its address, and keeps the note locked
while it runs. An unlocked note belongs to a server that has ended. A process that now listens at its address may belong to
another user, so no token is sent.
"""

import fcntl
import json
import os
import re
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from eligo.errors import InputError
from eligo.names import check_label
from eligo.user_state import state_folder
from eligo.work.demands import bytes_in

GIGABYTE = 2**30
SIZES = ("memory", "output", "cache")  # the options that are numbers of bytes
MOST_LABELS = 64
TOKEN_FILE = "ELIGO_TOKEN_FILE"  # noqa: S105 - the name of a variable
TRIES = 50  # attempts to lock a note that another process may be reading


def place_of(url: str) -> str:
    """The name of a server's address in that folder.

    >>> place_of("http://127.0.0.1:8750/w-1"), place_of("https://host")
    ('127.0.0.1_8750', 'host_https')
    """
    parts = urlsplit(url)
    return f"{parts.hostname}_{parts.port or parts.scheme}"


def _is_numeric(url: str) -> bool:
    """Whether the server is given by an IP address, which unlike a name cannot be redirected."""
    try:
        ip_address(urlsplit(url).hostname or "")
    except ValueError:
        return False
    return True


def token_for(url: str, path: str | None = None) -> str | None:
    """The token for a server: from the file *path*, from the file in ELIGO_TOKEN_FILE, or from one offered here."""
    path = path or os.environ.get(TOKEN_FILE) or _offered_file(url)
    return None if path is None else read_token(path)


def read_token(path: str) -> str:
    """The token in a file."""
    try:
        with open(path, encoding="ascii") as file:
            token = file.read(10_000).strip()
    except (OSError, UnicodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not a text file"
        raise InputError(f"{path}: cannot read the token: {why}") from None
    if not token or not token.isprintable() or " " in token:
        raise InputError(f"{path}: the file contains no token")
    return token


@contextmanager
def offer(url: str, path: str) -> Iterator[None]:
    """Offer the path of a server's token file to this user's commands on this machine, while the server runs."""
    note = os.path.join(state_folder(), "servers", place_of(url))
    if not _is_numeric(url):
        yield
        return
    try:
        descriptor = _lock_note(note)
    except OSError:  # no home, or not writable: users must name the file
        yield
        return
    try:
        words = json.dumps({"token_file": os.path.abspath(path), "machine": socket.gethostname()})
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, words.encode(), 0)
        yield
    finally:
        with suppress(OSError):
            os.unlink(note)
        os.close(descriptor)


def _lock_note(note: str) -> int:
    """Create a note if necessary, and lock it."""
    os.makedirs(os.path.dirname(note), mode=0o700, exist_ok=True)
    for _ in range(TRIES):
        descriptor = os.open(note, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.fchmod(descriptor, 0o600)
            if os.path.samestat(os.fstat(descriptor), os.stat(note)):  # otherwise the former owner has removed it
                return descriptor
        except OSError:
            pass
        os.close(descriptor)
        time.sleep(0.02)
    raise OSError(f"{note}: cannot lock the file")


def _offered_file(url: str) -> str | None:
    """The token file of this user's server at this address, if one is running."""
    if not _is_numeric(url):
        return None
    try:
        descriptor = os.open(os.path.join(state_folder(), "servers", place_of(url)), os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        words = json.loads(os.pread(descriptor, 10_000, 0)) if _in_use(descriptor) else {}
        return str(words["token_file"]) if words.get("machine") == socket.gethostname() else None
    except (OSError, ValueError, AttributeError, KeyError):
        return None
    finally:
        os.close(descriptor)


def _in_use(note: int) -> bool:
    """Whether a note is accessible only to us, and a server holds its lock."""
    status = os.fstat(note)
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        return False
    try:
        fcntl.flock(note, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


# Options


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


def _bytes_of(name: str, text: str) -> int:
    """The number of bytes in a text.

    >>> _bytes_of("memory", "2G"), _bytes_of("memory", "100")
    (2147483648, 100)
    """
    size = bytes_in(text)
    if size is None:
        raise InputError(f"{name} must be a number of bytes, such as 500M, got {text!r}")
    return size


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
        for name in ("cores", "size", "output"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, got {getattr(self, name)!r}")
        for label in self.labels:
            check_label(label)
        if len(self.labels) > MOST_LABELS:
            raise InputError(f"a client has at most {MOST_LABELS} labels, got {len(self.labels)}")
        for name in ("memory", "cache", "seconds", "idle_exit", "grace", "poll"):
            if (getattr(self, name) or 0) < 0:
                raise InputError(f"{name} must be at least 0, got {getattr(self, name)!r}")

    @staticmethod
    def of(words: Mapping[str, Any]) -> "WorkOptions":
        """The options with these values, of which sizes may be text, such as 2G."""
        sizes = {name: _bytes_of(name, words[name]) for name in SIZES if isinstance(words.get(name), str)}
        return WorkOptions(**{**words, **sizes})

    def home(self) -> str:
        """The folder for all files."""
        if self.folder is not None:
            return os.path.abspath(self.folder)
        called = "" if self.name == socket.gethostname() else f"_{re.sub(r'[^A-Za-z0-9.-]', '_', self.name)[:100]}"
        return os.path.join(state_folder(), place_of(self.url) + called)
