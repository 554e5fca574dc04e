"""Which token goes to a server: the one in a file that the user names, or the one that a server of this user offers here.

A server leaves a note in a folder that only its user can read, under its address: where the file with its token is. It locks
the note for as long as it runs. A note that is not locked is of a server that is gone, and whoever listens at its address now
may be somebody else: then no token is sent.
"""

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from urllib.parse import urlsplit

from eligo.errors import InputError

TOKEN_FILE = "ELIGO_TOKEN_FILE"  # noqa: S105 - the name of a variable
TRIES = 50  # to lock a note, which somebody may just look at


def state_folder() -> str:
    """The folder for what this user's servers, clients and commands remember."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.path.join(state, "eligo")


def place_of(url: str) -> str:
    """The name of a server's address in that folder.

    >>> place_of("http://127.0.0.1:8750/w-1"), place_of("https://host")
    ('127.0.0.1_8750', 'host_https')
    """
    parts = urlsplit(url)
    return f"{parts.hostname}_{parts.port or parts.scheme}"


def _is_numeric(url: str) -> bool:
    """Whether the server is named by a number, which leads nowhere else, unlike a name."""
    try:
        ip_address(urlsplit(url).hostname or "")
    except ValueError:
        return False
    return True


def token_for(url: str, path: str | None = None) -> str | None:
    """The token for a server: that in the file *path*, in the file that ELIGO_TOKEN_FILE names, or one offered here."""
    path = path or os.environ.get(TOKEN_FILE) or _offered(url)
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
    """Tell this user's commands on this machine where the token for a server is, while it runs."""
    note = os.path.join(state_folder(), "servers", place_of(url))
    if not _is_numeric(url):
        yield
        return
    try:
        descriptor = _locked(note)
    except OSError:  # no home, or nothing can be written there: then the file is to be named
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


def _locked(note: str) -> int:
    """A note that is there and locked by us."""
    os.makedirs(os.path.dirname(note), mode=0o700, exist_ok=True)
    for _ in range(TRIES):
        descriptor = os.open(note, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.fchmod(descriptor, 0o600)
            if os.path.samestat(os.fstat(descriptor), os.stat(note)):  # else whoever had it has removed it
                return descriptor
        except OSError:
            pass
        os.close(descriptor)
        time.sleep(0.02)
    raise OSError(f"{note}: cannot lock the file")


def _offered(url: str) -> str | None:
    """The file with the token of a server of this user that runs at this address, if there is one."""
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
    """Whether a note is ours alone, and a server holds its lock."""
    status = os.fstat(note)
    if status.st_uid != os.geteuid() or status.st_mode & 0o077:
        return False
    try:
        fcntl.flock(note, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
