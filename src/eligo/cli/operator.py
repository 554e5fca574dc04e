"""What owners and operators do to workflows, clients and the server itself, over HTTP."""

import os
import time
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from eligo.cli.output import harmless, print_json, print_lines, print_table
from eligo.cli.server_door import ServerDoor
from eligo.client.owner import Owner
from eligo.errors import InputError, check_choice
from eligo.plotting.labels import counted

NONE = 1  # the exit code where nothing was there to be done
STATES = ("running", "paused", "held", "failed", "done", "cancelled", "unavailable")
PAGE = 1_000  # workflows in one answer
ACCESS = {"revoked": "revoked", "void": "expired"}  # of clients that are not approved; others wait for approval


def post_to_workflow(door: ServerDoor, verb: str, message: str, json: bool) -> int:
    """Do something to a workflow, and say that it is done, or that nothing had to be done; both are a success."""
    answer = door.owner().post(f"/v1/workflows/{quote(door.workflow)}/{verb}", {})
    changed = answer.get("changed", True)  # servers of before this version do not say
    line = message.format(door.workflow) if changed else f"{door.workflow} is {answer['state']}: nothing changed"
    print_json({"workflow": door.workflow, "done": verb, "changed": changed}) if json else print_lines([line])
    return 0


def change_tasks(door: ServerDoor, verb: str, tasks: Sequence[str], json: bool) -> int:
    """Retry or release tasks of a workflow; exit code 1 where there was none to be."""
    words = {"tasks": list(tasks) or None}
    count = door.owner().post(f"/v1/workflows/{quote(door.workflow)}/{verb}", words)["count"]
    if json:
        print_json({"workflow": door.workflow, "count": count})
    else:
        done = {"retry": "failed {} will be retried", "release": "running {} taken back"}[verb]
        print_lines([f"{count:,} {done.format('task' if count == 1 else 'tasks')}"])
    return 0 if count else NONE


def fetch_results(door: ServerDoor, folder: str | None, force: bool, json: bool) -> int:
    """Bring the files that a workflow made into a folder; each is checked against its hash."""
    place = folder or f"{door.workflow}-results"
    try:
        os.makedirs(place, exist_ok=True)
        state, names, fetched = door.owner().fetch_made(door.workflow, place, force)
    except OSError as error:
        raise InputError(f"{harmless(place)}: cannot write the files: {error.strerror}") from None
    if json:
        print_json({"workflow": door.workflow, "state": state, "folder": place, "files": names, "fetched": fetched})
    else:
        there = len(names) - fetched
        print_lines([
            f"{door.workflow} is {state}: {counted(fetched, 'file')} fetched into {harmless(place)}"
            + (f", {there:,} already there" if there else "")
        ])  # fmt: skip
    return 0


def list_workflows(door: ServerDoor, state: str | None, limit: int, json: bool) -> int:
    """The workflows of a server, the newest first."""
    if limit < 0:
        raise InputError(f"--limit must be at least 0, got {limit}")
    if state is not None:
        check_choice("state", state, STATES)
    workflows, more = _fetch_workflows(door.owner(), state, limit)
    if json:
        print_json({"workflows": workflows, "more": more})
        return 0
    rows = [
        [
            one["workflow"], harmless(one["name"]), one["state"], f"{one['counts'].get('done', 0):,}", f"{one['tasks']:,}",
            harmless(one["owner"]), time.strftime("%Y-%m-%d %H:%M", time.localtime(one["made"])),
        ]
        for one in workflows
    ]  # fmt: skip
    print_table(["workflow", "name", "state", "done", "tasks", "owner", "submitted"], rows, uncut=["workflow"])
    print_lines(["older workflows are not shown: --limit 0 lists all"] if more else [])
    return 0


def _fetch_workflows(owner: Owner, state: str | None, limit: int) -> tuple[list[dict[str, Any]], bool]:
    """So many workflows, the newest first, or all where the limit is 0; whether there are more."""
    workflows, before = list[dict[str, Any]](), None
    while not limit or len(workflows) < limit:
        asked = {"limit": min(PAGE, limit - len(workflows)) if limit else PAGE, "state": state, "before": before}
        words = urlencode({name: value for name, value in asked.items() if value is not None})
        page = owner.get(f"/v1/workflows?{words}")
        workflows += page["workflows"]
        before = page.get("before")
        if before is None:
            break
    return workflows, before is not None


def drain(door: ServerDoor, stop: bool, json: bool) -> int:
    """Have a server hand out nothing new, or again."""
    reply = door.owner().post("/v1/drain", {"on": not stop})
    if json:
        print_json(reply)
    elif reply["status"] == "draining":
        print_lines([f"{door.server} hands out no more tasks; to resume: eligo drain {door.server} --stop"])
    else:
        print_lines([f"{door.server} hands out tasks again"])
    return 0


class ClientChanges(NamedTuple):
    """What is to be changed of clients, each by its id."""

    approve: Sequence[str]
    revoke: Sequence[str]
    pause: Sequence[str]
    resume: Sequence[str]
    #: CLIENT=TAG,TAG
    tag: Sequence[str]

    def calls(self) -> list[tuple[str, dict[str, Any]]]:
        """The addresses to be called, and what is told there."""
        verbs = {"approve": self.approve, "revoke": self.revoke, "pause": self.pause, "resume": self.resume}
        calls = [(f"{quote(client)}/{verb}", dict[str, Any]()) for verb, some in verbs.items() for client in some]
        for text in self.tag:
            client, equals, tags = text.partition("=")
            if not equals:
                raise InputError(f"--tag takes CLIENT=TAG,TAG, got {text!r}")
            calls.append((f"{quote(client)}/tags", {"tags": [tag for tag in tags.split(",") if tag]}))
        return calls


def list_clients(door: ServerDoor, changes: ClientChanges, json: bool) -> int:
    """The clients of a server, after what is to be changed of them."""
    owner = door.owner()
    for path, words in changes.calls():
        owner.post(f"/v1/clients/{path}", words)
    clients = _fetch_clients(owner)
    if json:
        print_json({"clients": clients})
        return 0
    now = time.time()
    rows = [
        [
            one["client"], harmless(one["name"]), f"{one['holds']:,}", f"{one['done']:,}", f"{one['failed']:,}",
            f"{one['lost']:,}", "" if one["speed"] is None else f"{one['speed']:.2f}", _client_state(one),
            f"{max(0.0, now - one['seen']):.0f} s ago", " ".join(one.get("labels", ())), " ".join(one.get("tags", ())),
        ]
        for one in clients
    ]  # fmt: skip
    print_table(
        ["client", "name", "tasks", "done", "failed", "lost", "speed", "state", "seen", "labels", "tags"],
        rows,
        uncut=["client", "state", "tags"],
    )
    return 0


def _fetch_clients(owner: Owner) -> list[dict[str, Any]]:
    """All clients, page by page; servers of before this version send all at once."""
    page = owner.get("/v1/clients")
    clients: list[dict[str, Any]] = page["clients"]
    while after := page.get("after"):
        page = owner.get(f"/v1/clients?{urlencode({'after': after})}")
        clients += page["clients"]
    return sorted(clients, key=lambda one: one["name"])


def _client_state(client: dict[str, Any]) -> str:
    if not client["approved"]:
        return ACCESS.get(client.get("access", ""), "unapproved")
    return "paused" if client.get("held") else "approved"
