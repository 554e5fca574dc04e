"""Calls of a workflow's owner to a server: submit, sign, status, fetch results."""

import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit
from weakref import finalize

from eligo.client.calls import Calls, Outgoing, ServerAwayError, never
from eligo.client.options import check_address, token_for
from eligo.client.transfers import Depot, HashedFile, parse_file
from eligo.errors import InputError

ALL = 2**62  # bytes: no limit
SOME = 10_000  # signatures per call
EVERY = 0.5  # seconds between two looks at a workflow that is followed
ONCE = 5.0  # seconds after which an unreachable server is given up


def split_address(url: str) -> tuple[str, str | None]:
    """The server in an address, and the workflow, if it names one.

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
    """Calls of an owner to a server; gives up soon if the server is unreachable."""

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
        """The document at a path of the API."""
        return self._calls.get(path, self._patient())

    def look(self, path: str) -> dict[str, Any]:
        """The document at a path, requested once, for callers that ask again soon."""
        return self._calls.call(Outgoing("GET", path, patience=ONCE), lambda: True)

    def post(self, path: str, words: Mapping[str, Any]) -> dict[str, Any]:
        """The API's answer to a POST."""
        return self._calls.post(path, words, self._patient())

    def submit(self, text: str, wishes: Mapping[str, str], key: str) -> dict[str, Any]:
        """Submit a workflow; the same key again refers to the same workflow."""
        path = f"/v1/workflows?{urlencode(wishes)}" if wishes else "/v1/workflows"
        return self._post_text(path, text, {"Idempotency-Key": key})

    def add(self, workflow: str, text: str) -> dict[str, Any]:
        """Add the tasks of a document to a workflow; the same document again changes nothing."""
        return self._post_text(f"/v1/workflows/{quote(workflow)}/tasks", text, {})

    def _post_text(self, path: str, text: str, headers: Mapping[str, str]) -> dict[str, Any]:
        headers = {**headers, "Content-Type": "application/octet-stream"}
        return self._calls.call(Outgoing("POST", path, text.encode(), headers, patience=600.0), self._patient())

    def provide(self, workflow: str, files: Mapping[str, HashedFile], folder: str | Path) -> list[str]:
        """Send the server the files in a folder that no task writes; returns those that are still missing."""
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
        """Send the owner's signatures to a server, in several calls."""
        rows = list(signatures.items())
        for first in range(0, len(rows), SOME):
            some = dict(rows[first : first + SOME])
            self.post(f"/v1/workflows/{workflow}/inputs", {"signatures": some})

    def status(self, workflow: str) -> dict[str, Any]:
        """The state of a workflow."""
        return self.get(f"/v1/workflows/{quote(workflow)}")

    def followed(self, workflow: str, until: Callable[[], bool] = never) -> Iterator[dict[str, Any]]:
        """The state of a workflow, repeatedly until it has ended; waits for a server that is unreachable."""
        while not until():
            try:
                status = self.status(workflow)
            except ServerAwayError:
                time.sleep(EVERY)
                continue
            yield status
            if status["state"] in {"done", "failed", "cancelled", "unavailable"}:
                return
            time.sleep(EVERY)

    def fetch(self, workflow: str, folder: str | Path, outputs: Collection[str]) -> int:
        """Fetch the *outputs* of a workflow into a folder, and no other file that a server names."""
        reply = self.get(f"/v1/workflows/{quote(workflow)}/results")
        files = {name: words for name, words in reply["files"].items() if name in outputs}
        return self._bring(Path(folder).resolve(), files)

    def fetch_made(self, workflow: str, folder: str | Path, force: bool) -> tuple[str, list[str], int]:
        """Fetch all files that tasks wrote into a folder; returns the state, the names, and the number of new files."""
        reply = self.get(f"/v1/workflows/{quote(workflow)}/results")
        inputs = set(reply.get("given", ()))
        files = {name: words for name, words in reply["files"].items() if name not in inputs}
        return str(reply["state"]), sorted(files), self._bring(Path(folder).resolve(), files, force)

    def _bring(self, folder: Path, files: Mapping[str, Any], force: bool = True) -> int:
        """Fetch files that do not exist yet into a folder, checked by hash; returns their number."""
        wanted = {inside(folder, name): parse_file(words) for name, words in files.items()}
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


def hash_files(names: Collection[str], folder: str | Path) -> dict[str, HashedFile]:
    """Files of a folder with their hashes."""
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
    """The path of a file in the folder; raises if it is outside."""
    target = (folder / name).resolve()
    if not target.is_relative_to(folder) or target == folder:
        raise InputError(f"file name {name!r} points outside {folder}")
    return target


def _same(path: Path, file: HashedFile) -> bool:
    if not path.is_file() or path.stat().st_size != file.size:
        return False
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest() == file.sha256
