"""Finds the token for a server: in a file that the user names, or offered by a server of the same user on this machine.

A server writes the path of its token file to a note in a folder that only its user can read, named after its address, and
keeps the note locked while it runs. An unlocked note belongs to a server that has ended. A process that now listens at its
address may belong to another user, so no token is sent.
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
TRIES = 50  # attempts to lock a note that another process may be reading


def state_folder() -> str:
    """The folder for the state of this user's servers, clients and commands."""
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
