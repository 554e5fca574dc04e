"""What the owner of a workflow says to a server: serve this, how far is it, give me what came of it, no more of it."""

import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit
from weakref import finalize

from eligo.client.calls import Calls, Outgoing, ServerAwayError, answered, whole
from eligo.client.credentials import token_for
from eligo.client.options import check_address
from eligo.client.transfers import Depot, HashedFile, parsed
from eligo.errors import InputError
from eligo.version import __version__

ALL = 2**62  # bytes: as much as there is
SOME = 10_000  # signatures in one call
ONCE = 5.0  # seconds after which a server that is not there is given up


def split_address(url: str) -> tuple[str, str | None]:
    """The server of an address, and the workflow, where that names one.

    >>> split_address("http://localhost:8750/w-1a2b"), split_address("https://host/")
    (('http://localhost:8750', 'w-1a2b'), ('https://host', None))
    """
    check_address(url)
    parts = urlsplit(url)
    path, _, last = parts.path.rstrip("/").rpartition("/")
    if last.startswith("w-"):
        return f"{parts.scheme}://{parts.netloc}{path}", last
    return url.rstrip("/"), None


class Owner:
    """Calls of an owner to a server, who gives up soon where nobody answers."""

    def __init__(self, url: str, token: str | None = None, ca: str | None = None) -> None:
        self.url = url
        self._calls = Calls(url, ca, lambda line: None)
        finalize(self, self._calls.close)
        secret = token_for(url, token)
        self._calls.identity = {} if secret is None else {"Authorization": f"Bearer {secret}"}

    def _patient(self) -> Callable[[], bool]:
        end = time.monotonic() + ONCE
        return lambda: time.monotonic() > end

    def get(self, path: str) -> dict[str, Any]:
        """What is at an address of the API."""
        return self._calls.get(path, self._patient())

    def look(self, path: str) -> dict[str, Any]:
        """The same, asked once: for whoever looks again soon."""
        sending = Outgoing("GET", path, patience=ONCE)
        return answered(self._calls.insist(lambda: self._calls.exchange(sending, whole), lambda: True))

    def post(self, path: str, words: Mapping[str, Any]) -> dict[str, Any]:
        """What the API answers to a POST."""
        return self._calls.post(path, words, self._patient())

    def submit(self, text: str, wishes: Mapping[str, str], key: str) -> dict[str, Any]:
        """Have a workflow served; the same key again is the same workflow."""
        headers = {"Idempotency-Key": key, "Content-Type": "application/octet-stream"}
        path = f"/v1/workflows?{urlencode(wishes)}" if wishes else "/v1/workflows"
        sending = Outgoing("POST", path, text.encode(), headers, patience=600.0)
        return answered(self._calls.insist(lambda: self._calls.exchange(sending, whole), self._patient()))

    def add(self, workflow: str, text: str) -> dict[str, Any]:
        """Add the tasks of a document to a workflow; the same document again changes nothing."""
        headers = {"Content-Type": "application/octet-stream"}
        sending = Outgoing("POST", f"/v1/workflows/{quote(workflow)}/tasks", text.encode(), headers, patience=600.0)
        return answered(self._calls.insist(lambda: self._calls.exchange(sending, whole), self._patient()))

    def provide(self, workflow: str, files: Mapping[str, HashedFile], folder: str | Path) -> list[str]:
        """Give a server the files that no task makes, from a folder; those that are still missing."""
        with tempfile.TemporaryDirectory() as place:
            depot = Depot(place, self._calls, ALL)
            for name, file in files.items():
                if not os.path.lexists(depot.path(file.sha256)):
                    os.symlink((Path(folder) / name).resolve(), depot.path(file.sha256))
                depot.send(file)
        words = {"files": {name: file._asdict() for name, file in files.items()}}
        missing: list[str] = self.post(f"/v1/workflows/{workflow}/inputs", words)["missing"]
        return missing

    def sign(self, workflow: str, signatures: Mapping[str, str]) -> None:
        """Give a server the owner's signatures, some at a time."""
        rows = list(signatures.items())
        for first in range(0, len(rows), SOME):
            some = dict(rows[first : first + SOME])
            self.post(f"/v1/workflows/{workflow}/inputs", {"signatures": some})

    def status(self, workflow: str) -> dict[str, Any]:
        """Where a workflow stands."""
        return self.get(f"/v1/workflows/{quote(workflow)}")

    def followed(
        self, workflow: str, until: Callable[[], bool] = lambda: False, every: float = 0.5
    ) -> Iterator[dict[str, Any]]:
        """Where it stands, again and again until it has ended; a server that is away for a while is waited for."""
        while not until():
            try:
                status = self.status(workflow)
            except ServerAwayError:
                time.sleep(every)
                continue
            yield status
            if status["state"] in {"done", "failed", "cancelled", "unavailable"}:
                return
            time.sleep(every)

    def fetch(self, workflow: str, folder: str | Path, outputs: Collection[str]) -> int:
        """Bring the *outputs* of a workflow into a folder, and no other file that a server names."""
        reply = self.get(f"/v1/workflows/{quote(workflow)}/results")
        return self._bring(
            Path(folder).resolve(), {name: reply["files"][name] for name in reply["files"] if name in outputs}
        )

    def fetch_made(self, workflow: str, folder: str | Path, force: bool) -> tuple[str, list[str], int]:
        """Bring all that a workflow's tasks made into a folder; its state, the names, and how many were not there yet."""
        reply = self.get(f"/v1/workflows/{quote(workflow)}/results")
        inputs = set(reply.get("given", ()))
        files = {name: words for name, words in reply["files"].items() if name not in inputs}
        return str(reply["state"]), sorted(files), self._bring(Path(folder).resolve(), files, force)

    def _bring(self, folder: Path, files: Mapping[str, Any], force: bool = True) -> int:
        """Put files into a folder, each checked by its hash, unless they are there; how many those are."""
        wanted = {inside(folder, name): parsed(words) for name, words in files.items()}
        missing = {path: file for path, file in wanted.items() if not (path.exists() and _same(path, file))}
        other = next((path for path in missing if path.exists()), None)
        if other is not None and not force:
            raise InputError(f"{other}: a different file of this name exists").cured_by("force")
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            depot = Depot(scratch, self._calls, ALL)
            for target, file in missing.items():
                with depot.borrowed(file) as path:
                    target.parent.mkdir(parents=True, exist_ok=True)
                    os.replace(path, target)
        return len(missing)

    def cancel(self, workflow: str) -> None:
        """Have nothing more of a workflow handed out."""
        self.post(f"/v1/workflows/{quote(workflow)}/cancel", {})

    def attempts(self, workflow: str) -> Iterator[dict[str, Any]]:
        """Every attempt at a task that has ended."""
        after: int | None = 0
        while after is not None:
            page = self.get(f"/v1/workflows/{quote(workflow)}/attempts?after={after}")
            yield from page["attempts"]
            after = page["after"]

    def check(self) -> str:
        """What the server says of itself; an `InputError` where it is not of this version's kind."""
        health = self.get("/health")
        if health.get("version", "").split(".")[0] != __version__.split(".")[0]:
            raise InputError(f"{self.url} runs eligo {health.get('version')}, but this is eligo {__version__}")
        return str(health["status"])


def hashed(names: Collection[str], folder: str | Path) -> dict[str, HashedFile]:
    """Files of a folder by what is in them."""
    files = {}
    for name in names:
        path = Path(folder) / name
        try:
            with path.open("rb") as file:
                files[name] = HashedFile(hashlib.file_digest(file, "sha256").hexdigest(), file.tell())
        except OSError as error:
            message = f"{path}: cannot read this input of a task: {error.strerror}"
            raise InputError(message).cured_by("files") from None
    return files


def inside(folder: Path, name: str) -> Path:
    """Where a file of this name goes; never outside the folder."""
    target = (folder / name).resolve()
    if not target.is_relative_to(folder) or target == folder:
        raise InputError(f"file name {name!r} points outside {folder}")
    return target


def _same(path: Path, file: HashedFile) -> bool:
    if not path.is_file() or path.stat().st_size != file.size:
        return False
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest() == file.sha256
