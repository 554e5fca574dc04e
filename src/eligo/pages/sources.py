"""The sources of the documents that every display renders: a run's folder, or a server; their documents are the same."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import quote, urlencode

from eligo.errors import InputError
from eligo.pages.details import detail, number_of
from eligo.pages.folder_source import WatchedRun, looked_at
from eligo.pages.tables import Query, stand, table
from eligo.pages.timelines import run_document
from eligo.pages.views import view
from eligo.running.folder import STATE

if TYPE_CHECKING:
    from eligo.client.owner import Owner

Document = dict[str, Any]
EVERY = 0.4  # seconds until a folder is read again
OVER = {"done", "failed", "cancelled", "unavailable"}


class Listed(NamedTuple):
    """A workflow in a list of workflows to look at."""

    workflow: str
    name: str
    state: str


class RunSource(Protocol):
    """A source of documents about workflows. A call may take a moment; all calls come from one thread."""

    #: its name for people
    place: str

    def workflows(self) -> list[Listed]:
        """The workflows to look at, the most interesting first."""

    def view(self, workflow: str, every: bool = False) -> Document:
        """The state of a workflow; *every*: with all running and failed tasks, however many."""

    def table(self, workflow: str, query: Query) -> Document:
        """A part of its tasks."""

    def detail(self, workflow: str, task: str) -> Document:
        """The details of a task; raises `InputError` if no task has this name."""

    def report(self, workflow: str) -> Document:
        """All data of the page of a workflow, as one document."""

    def log(self, workflow: str, task: str, attempt: int, err: bool) -> bytes:
        """The output of an attempt at a task, from standard output or from standard error."""


class FolderSource:
    """The run in a folder."""

    def __init__(self, folder: Path) -> None:
        self.place = str(folder)
        self._folder = folder
        self._run: WatchedRun | None = None
        self._read = 0.0

    def _now(self) -> WatchedRun:
        if self._run is None or time.monotonic() - self._read > EVERY:
            self._run = looked_at(self._folder, self._run)
            self._read = time.monotonic()
        return self._run

    def workflows(self) -> list[Listed]:
        """See `RunSource`."""
        return [Listed("run", self.place, "")]

    def view(self, workflow: str, every: bool = False) -> Document:
        """See `RunSource`."""
        return view(self._now(), every=every)

    def table(self, workflow: str, query: Query) -> Document:
        """See `RunSource`."""
        run = self._now()
        return table(run, stand(run), query)

    def detail(self, workflow: str, task: str) -> Document:
        """See `RunSource`."""
        return detail(self._now(), task)

    def report(self, workflow: str) -> Document:
        """See `RunSource`."""
        return run_document(self._now())

    def log(self, workflow: str, task: str, attempt: int, err: bool) -> bytes:
        """See `RunSource`: the complete output."""
        run = self._now()
        path = Path(run.log(number_of(run, task), attempt, err))
        try:
            return path.read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise InputError(f"{path}: cannot read: {error.strerror}") from None


class ServerSource:
    """The workflows of a server; the address may name the one to show first."""

    def __init__(self, url: str, owner: "Owner") -> None:
        from eligo.client.owner import split_address  # here, because the run in a folder needs no client

        self.place, self.named = split_address(url)
        self._owner = owner
        self._met = False

    def _get(self, path: str) -> Document:
        """The document at a path; only the first call waits for a server that is unreachable."""
        answer = self._owner.look(path) if self._met else self._owner.get(path)
        self._met = True
        return answer

    def summaries(self) -> list[Document]:
        """The summary of every workflow, as the API lists them, oldest first."""
        page = self._get("/v1/workflows")
        listed: list[Document] = page["workflows"]
        while before := page.get("before"):
            page = self._get(f"/v1/workflows?{urlencode({'before': before})}")
            listed += page["workflows"]
        return sorted(listed, key=lambda one: (one.get("made", 0.0), one["workflow"]))

    def words(self, workflow: str) -> Document:
        """The summary of a workflow, which exists even if the workflow cannot be restored and so has no view."""
        return self._get(f"/v1/workflows/{quote(workflow)}")

    def workflows(self) -> list[Listed]:
        """See `RunSource`: those under way before those that have ended, newest first."""
        wanted = sorted(
            self.summaries(),
            key=lambda one: (one["workflow"] != self.named, one["state"] in OVER, -one.get("made", 0.0)),
        )
        rows = [Listed(one["workflow"], one["name"], one["state"]) for one in wanted]
        if self.named is not None and self.named not in {one.workflow for one in rows}:
            rows.insert(0, Listed(self.named, self.named, ""))
        return rows

    def view(self, workflow: str, every: bool = False) -> Document:
        """See `RunSource`."""
        return self._get(f"/v1/workflows/{quote(workflow)}/view{'?every=true' if every else ''}")

    def table(self, workflow: str, query: Query) -> Document:
        """See `RunSource`."""
        asked = {"search": query.search, "state": query.state, "sort": query.sort, "offset": query.offset}
        asked |= {"limit": query.most or 1, "descending": "true" if query.descending else "false"}
        return self._get(f"/v1/workflows/{quote(workflow)}/table?{urlencode(asked)}")

    def detail(self, workflow: str, task: str) -> Document:
        """See `RunSource`."""
        from eligo.client.calls import ServerRefusedError

        try:
            return self._get(f"/v1/workflows/{quote(workflow)}/task?{urlencode({'name': task})}")
        except ServerRefusedError as error:
            if error.code in {400, 404, 422}:
                raise InputError(error.why) from None
            raise

    def report(self, workflow: str) -> Document:
        """See `RunSource`."""
        return self._get(f"/v1/workflows/{quote(workflow)}/report")

    def log(self, workflow: str, task: str, attempt: int, err: bool) -> bytes:
        """See `RunSource`: the end of the output, which is all that a server keeps."""
        attempts = self.detail(workflow, task)["attempts"]
        stream = "err" if err else "out"
        return "".join(one["printed"][stream] for one in attempts if one["attempt"] == attempt).encode()


def run_folder(name: str) -> Path:
    """The folder of a run, from the folder itself or from the workflow's file."""
    for path in (Path(name), Path(f"{name}.run")):
        if (path / STATE).is_file():
            return path
    if Path(name).is_file():
        raise InputError(f"{name}: not run yet: {name}.run does not exist")
    if Path(name).is_dir():
        raise InputError(f"{name}: no run in this folder")
    raise InputError(f"{name}: no such file or folder, and no run {name}.run")


def only_run() -> Path:
    """The folder of the only run in the current folder."""
    runs = sorted(path for path in Path().glob("*.run") if (path / STATE).is_file())
    if not runs:
        raise InputError("no run in this folder: give a run folder, a workflow's file, or a server's URL")
    if len(runs) > 1:
        names = ", ".join(map(str, runs[:5])) + (", ..." if len(runs) > 5 else "")
        raise InputError(f"{len(runs):,} runs in this folder: give one of {names}")
    return runs[0]
