"""Where `eligo top` gets what it shows: a run's folder or a server; the documents are the same."""

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import quote, urlencode

from eligo.cli.remote import OVER, ServerDoor
from eligo.client.calling import ServerRefusedError
from eligo.client.owning import split_address
from eligo.errors import InputError
from eligo.pages.details import detail
from eligo.pages.tables import Query, stand, table
from eligo.pages.views import view

if TYPE_CHECKING:
    from eligo.pages.folders import WatchedRun

Document = dict[str, Any]
EVERY = 0.4  # seconds for which what was read of a folder is good


class Listed(NamedTuple):
    """A workflow that can be looked at."""

    workflow: str
    name: str
    state: str


class TopSource(Protocol):
    """What can be looked at. Each call may take a moment, and comes from one thread."""

    #: how it is called
    place: str

    def workflows(self) -> list[Listed]:
        """What there is to look at, what is best looked at first in front."""
        ...

    def view(self, workflow: str) -> Document:
        """Where a workflow stands."""
        ...

    def table(self, workflow: str, query: Query) -> Document:
        """A part of its tasks."""
        ...

    def detail(self, workflow: str, task: str) -> Document:
        """All about one of them; an `InputError` where there is none of that name."""
        ...


class FolderSource:
    """The run in a folder."""

    def __init__(self, folder: Path) -> None:
        self.place = str(folder)
        self._folder = folder
        self._run: WatchedRun | None = None
        self._read = 0.0

    def _now(self) -> "WatchedRun":
        from eligo.pages.folders import looked_at

        if self._run is None or time.monotonic() - self._read > EVERY:
            self._run = looked_at(self._folder, self._run)
            self._read = time.monotonic()
        return self._run

    def workflows(self) -> list[Listed]:
        """See `TopSource`."""
        return [Listed("run", self.place, "")]

    def view(self, workflow: str) -> Document:
        """See `TopSource`."""
        return view(self._now())

    def table(self, workflow: str, query: Query) -> Document:
        """See `TopSource`."""
        run = self._now()
        return table(run, stand(run), query)

    def detail(self, workflow: str, task: str) -> Document:
        """See `TopSource`."""
        return detail(self._now(), task)


class ServerSource:
    """The workflows of a server; the address may name the one that is wanted first."""

    def __init__(self, door: ServerDoor) -> None:
        self.place, self._named = split_address(door.url)
        self._owner = door.owner()
        self._met = False

    def _get(self, path: str) -> Document:
        """What is at an address; only at first one waits for a server that is not there."""
        found = self._owner.look(path) if self._met else self._owner.get(path)
        self._met = True
        return found

    def workflows(self) -> list[Listed]:
        """See `TopSource`: what goes on before what has ended, the latest first."""
        listed = self._get("/v1/workflows")["workflows"]
        wanted = sorted(
            listed, key=lambda one: (one["workflow"] != self._named, one["state"] in OVER, -one.get("made", 0.0))
        )
        found = [Listed(one["workflow"], one["name"], one["state"]) for one in wanted]
        if self._named is not None and self._named not in {one.workflow for one in found}:
            found.insert(0, Listed(self._named, self._named, ""))
        return found

    def view(self, workflow: str) -> Document:
        """See `TopSource`."""
        return self._get(f"/v1/workflows/{quote(workflow)}/view")

    def table(self, workflow: str, query: Query) -> Document:
        """See `TopSource`."""
        asked = {"search": query.search, "state": query.state, "sort": query.sort, "offset": query.offset}
        asked |= {"limit": query.most or 1, "descending": "true" if query.descending else "false"}
        return self._get(f"/v1/workflows/{quote(workflow)}/table?{urlencode(asked)}")

    def detail(self, workflow: str, task: str) -> Document:
        """See `TopSource`."""
        try:
            return self._get(f"/v1/workflows/{quote(workflow)}/task?{urlencode({'name': task})}")
        except ServerRefusedError as error:
            if error.code in {400, 404}:
                raise InputError(str(error)) from None
            raise


def folder_source(name: str | None) -> FolderSource:
    """The run of a folder, of a workflow's file, or the only one here."""
    from eligo.cli.seeing import run_folder

    return FolderSource(only_run() if name is None else run_folder(name))


def only_run() -> Path:
    """The folder of the only run in this folder."""
    from eligo.running.location import STATE

    found = sorted(path for path in Path().glob("*.run") if (path / STATE).is_file())
    if not found:
        raise InputError("there is no run here: name its folder, its workflow's file, or a server's address")
    if len(found) > 1:
        shown = ", ".join(map(str, found[:5])) + (", ..." if len(found) > 5 else "")
        raise InputError(f"there are {len(found):,} runs here: name one of {shown}")
    return found[0]
