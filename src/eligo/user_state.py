"""The state of the present user: a folder, and in it a secret that signs files, to tell them from those of other users."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

from eligo.errors import InputError

SECRET, SIZE = "secret", 32


def state_folder() -> str:
    """The folder for the state of this user's servers, clients and commands."""
    state = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.path.join(state, "eligo")


def user_secret() -> bytes:
    """The secret of this user, which is made at the first call; other users cannot read it."""
    path = Path(state_folder(), SECRET)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        if not path.exists():
            _make_secret(path)
        secret = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be used: {error.strerror}") from None
    if len(secret) != SIZE:
        raise InputError(f"{path}: damaged: delete it (results that were stored with it are computed again)")
    return secret


def _make_secret(path: Path) -> None:
    """Write a new secret, unless another process does so at the same moment."""
    draft = path.with_name(f"{SECRET}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(secrets.token_bytes(SIZE))
    with suppress(FileExistsError):
        os.link(draft, path)
    draft.unlink()
