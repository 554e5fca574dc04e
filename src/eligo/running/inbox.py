"""The inbox of a run: files by which other processes send additions and requests to a run, and get its answers.

TIME-17ab.add        tasks to add; kept until a run has them
TIME-17ab.request    a request to the run, such as {"verb": "pause"}
TIME-17ab.taken      the same, once the run has taken it, until it is answered
TIME-17ab.answer     the answer as JSON, or .refused: why there is none
"""

import json
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from eligo.errors import InputError
from eligo.running.folder import STATE
from eligo.stores import under_way

INBOX = "inbox"
ADDITION, REQUEST, TAKEN, ANSWER, REFUSED = ".add", ".request", ".taken", ".answer", ".refused"
LOOK = 0.02  # seconds between two checks whether the run has answered


# The sender


def send(folder: str | Path, text: str, kind: str = ADDITION) -> Path:
    """Put a file into the inbox of a run, atomically."""
    inbox = Path(folder) / INBOX
    inbox.mkdir(exist_ok=True)
    path = inbox / f"{time.time_ns():020d}-{secrets.token_hex(4)}{kind}"
    _write(path, text)
    return path


def is_settled(sent: Path) -> bool:
    """Whether the run has dealt with what was sent."""
    return not sent.exists() and not sent.with_suffix(TAKEN).exists()


def answer_to(sent: Path) -> dict[str, Any]:
    """The answer of the run, which is removed; raises the reason if it refused."""
    refusal, answer = sent.with_suffix(REFUSED), sent.with_suffix(ANSWER)
    if refusal.exists():
        why = refusal.read_text("utf-8")
        refusal.unlink()
        raise InputError(why)
    if not answer.exists():
        return {}
    words: dict[str, Any] = json.loads(answer.read_text("utf-8"))
    answer.unlink()
    return words


def ask(folder: str | Path, words: Mapping[str, Any], patience: float) -> dict[str, Any] | None:
    """The answer of the run in a folder to a request, within *patience* seconds; None if the run is not running.

    A request that the run has not taken is withdrawn, so that it has no effect later.
    """
    state, until = Path(folder) / STATE, time.monotonic() + patience
    if not under_way(state):
        return None
    sent = send(folder, json.dumps(words), REQUEST)
    while not is_settled(sent):
        going = under_way(state)
        if (not going or time.monotonic() > until) and _withdraw(sent):
            if not going:
                return None
            raise InputError(f"{folder}: the run did not answer within {patience:g} s: try again")
        if not going:
            raise InputError(f"{folder}: the run ended before it answered")
        time.sleep(LOOK)
    return answer_to(sent)


def _withdraw(sent: Path) -> bool:
    """Take a request back; returns whether the run had not taken it."""
    with suppress(FileNotFoundError):
        sent.unlink()
        return True
    return False


# The run


def take_requests(inbox: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Take all requests, the oldest first, each once: the file by which it is answered, and its words."""
    for path in sorted(inbox.glob(f"*{REQUEST}")):
        with suppress(FileNotFoundError):  # withdrawn
            taken = path.rename(path.with_suffix(TAKEN))
            yield taken, json.loads(taken.read_text("utf-8"))


def answer(path: Path, words: Mapping[str, Any]) -> None:
    """Answer what was sent."""
    _write(path.with_suffix(ANSWER), json.dumps(words))
    path.unlink(missing_ok=True)


def refuse(path: Path, why: str) -> None:
    """Answer what was sent with the reason of a refusal."""
    _write(path.with_suffix(REFUSED), why)
    path.unlink(missing_ok=True)


def clear(inbox: Path) -> None:
    """Remove requests to an earlier process of the run, and its answers; additions stay."""
    for path in inbox.glob("*"):
        if path.suffix != ADDITION:
            path.unlink(missing_ok=True)


def _write(path: Path, text: str) -> None:
    """Write a file so that it is there completely or not at all."""
    draft = path.with_suffix(".part")
    with open(draft, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, path)
