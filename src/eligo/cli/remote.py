"""A server as its clients and the owners of workflows see it."""

import os
import secrets
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from hashlib import sha256
from types import FrameType
from typing import Any, NamedTuple

from eligo.cli.fidelity import accepted
from eligo.cli.plans import heeding, tell, working
from eligo.cli.printing import harmless, print_json, print_lines, print_table
from eligo.cli.requests import FAILED, INTERRUPTED, MOST_SHOWN, Ended, RunRequest
from eligo.client.owning import Owner, hashed, split_address
from eligo.errors import InputError, shorten
from eligo.server.travelling import Travels
from eligo.workflow import Workflow

OVER = {"done", "failed", "cancelled"}
SELDOM = 10.0  # seconds between two lines that tell how it goes


class ServerDoor(NamedTuple):
    """The way to a server."""

    url: str
    token: str | None = None
    ca: str | None = None

    def owner(self) -> Owner:
        """Somebody who can call it."""
        return Owner(split_address(self.url)[0], self.token, self.ca)

    @property
    def workflow(self) -> str:
        """The workflow that the address names."""
        found = split_address(self.url)[1]
        if found is None:
            raise InputError(f"name a workflow: {self.url.rstrip('/')}/w-...")
        return found


def worked(url: str, given: Mapping[str, Any]) -> int:
    """Run tasks for a server, and say what was done."""
    from eligo.client.options import WorkOptions
    from eligo.client.working import work

    known = dict(given)
    for what in ("memory", "output"):
        if what in known:
            known[what] = _amount(known[what])
    tell([str(work(WorkOptions(url=url, **known)))])
    return 0


def _amount(text: str) -> int:
    from argparse import ArgumentTypeError

    from eligo.client.__main__ import amount

    try:
        return amount(text)
    except ArgumentTypeError as error:
        raise InputError(str(error)) from None


def submitted(  # noqa: PLR0913, PLR0917
    flow: Workflow,
    door: ServerDoor,
    wishes: dict[str, str],
    parts: tuple[str | None, str | None],
    manner: tuple[bool, bool],
    ignore: Sequence[str] = (),
) -> int:
    """Hand a workflow to a server; its id, and where that is waited for what came of it."""
    flow = accepted(flow, ignore)
    sign, directory = parts
    wait, json = manner
    owner, folder = door.owner(), directory or _folder(flow)
    told = hand_in(flow, owner, wishes, sign, folder)
    if not wait:
        print_json(told) if json else print_lines([told["workflow"]])
        return 0
    last = follow(owner, told["workflow"], quiet=json)
    if last.get("state") not in OVER:
        return _goes_on(door.url, told["workflow"])
    fetched = owner.fetch(told["workflow"], folder, Travels(flow).makers)
    if json:
        print_json(last | {"fetched": fetched})
    else:
        print_lines([*_failures(last), f"{told['workflow']} is {last['state']}; {_counted(last)}; {fetched:,} files."])
    return 0 if last["state"] == "done" else FAILED


def hand_in(flow: Workflow, owner: Owner, wishes: dict[str, str], sign: str | None, folder: str) -> dict[str, Any]:
    """Submit a workflow that can be run, with its files and signatures; what the server says."""
    from eligo.formats import generate

    flow = flow.labelled()
    wishes.setdefault("name", flow.name or "workflow")
    if sign is not None:  # by this name a signature holds for this workflow only
        wishes["name"] = f"{wishes['name']}-{secrets.token_hex(4)}"
        wishes["signed"] = "true"
    text = generate(flow, "json")
    with working(f"submitting {len(flow):,} tasks"):
        files = {} if wishes.get("files") == "false" else hashed(Travels(flow).needs, folder)
        key = sha256(f"{sorted(wishes.items())} {sorted(files.items())} {text}".encode()).hexdigest()
        told = owner.submit(text, wishes | {"format": "json"}, key)
        if sign is not None and told["state"] == "paused":
            owner.sign(told["workflow"], _signed(flow, wishes["name"], sign))
        if files and told["state"] == "paused":
            owner.provide(told["workflow"], files, folder)
    return told


def _signed(flow: Workflow, name: str, path: str) -> dict[str, str]:
    try:
        from eligo.server.signing import private_key, signatures
    except ImportError:
        raise InputError('signing needs cryptography: pip install "eligo[server]"') from None
    return signatures(flow, name, private_key(path))


def _folder(flow: Workflow) -> str:
    path = flow.origin.path if flow.origin else None
    return os.path.dirname(path) or os.curdir if path else os.curdir


def follow(owner: Owner, workflow: str, quiet: bool = False) -> dict[str, Any]:
    """Wait for the end of a workflow, and tell now and then how it goes; where it stands at the end.

    The first signal to stop only stops the waiting.
    """
    stopping: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        stopping.append(number)

    told, due, said = dict[str, Any](), 0.0, ""
    with heeding(stop, signal.SIGINT, signal.SIGTERM):
        for told in owner.followed(workflow, lambda: bool(stopping)):
            line = _counted(told)
            if not quiet and line != said and (time.monotonic() >= due):
                tell([line])
                said, due = line, time.monotonic() + (2.0 if sys.stderr.isatty() else SELDOM)
    return told


def _goes_on(url: str, workflow: str) -> int:
    place = f"{split_address(url)[0]}/{workflow}"
    tell([f"it goes on there: eligo status {place}, and eligo cancel {place} stops it"])
    return INTERRUPTED


def _counted(told: Mapping[str, Any]) -> str:
    return ", ".join(f"{number:,} {state}" for state, number in told["counts"].items() if number)


def _failures(told: Mapping[str, Any]) -> list[str]:
    shown = told["failures"][:MOST_SHOWN]
    return [f"{shorten(harmless(', '.join(one['tasks'])))}: {harmless(one['cause'])}" for one in shown]


def by_server(flow: Workflow, request: RunRequest) -> int:
    """Have a server run a workflow, follow it to its end, and bring what it made; the exit code."""
    if request.fat > 1 or request.skip_done:
        raise InputError("a server's clients decide how many tasks they take, and no file is looked at beforehand")
    owner, folder = ServerDoor(request.on).owner(), request.directory or _folder(flow)
    wishes = {"policy": request.policy, "retries": str(request.retries), "name": flow.name or "workflow"}
    if request.timeout is not None:
        wishes["timeout"] = str(request.timeout)
    began = time.monotonic()
    told = hand_in(flow, owner, wishes, None, folder)
    workflow = told["workflow"]
    tell([f"{request.on.rstrip('/')}/{workflow} has it; clients work for it with: eligo work {request.on}"])
    last = follow(owner, workflow, request.quiet or request.json)
    if last.get("state") not in OVER:
        return _goes_on(request.on, workflow)
    owner.fetch(workflow, folder, Travels(flow).makers)
    ended = Ended(len(flow), time.monotonic() - began, f"{request.on.rstrip('/')}/{workflow}")
    if request.json:
        failed = {task: one["cause"] for one in last["failures"] for task in one["tasks"]}
        print_json(request.document(last["counts"].get("done", 0), failed, [], ended))
    else:
        print_lines([*_failures(last), f"{len(flow):,} tasks: {_counted(last)}, in {ended.seconds:.1f} s."])
    return 0 if last["state"] == "done" else FAILED


def show_remote(door: ServerDoor, json: bool) -> int:
    """Where a server's workflows stand."""
    owner = door.owner()
    _, named = split_address(door.url)
    found = [owner.status(named)] if named else owner.get("/v1/workflows")["workflows"]
    if json:
        print_json(found[0] if named else {"workflows": found})
        return 0
    if not found:
        print_lines(["no workflow is served here"])
    for one in found:
        print_lines([f"{harmless(one['name'])} ({one['workflow']}): {one['state']}; {_counted(one)}", *_failures(one)])
    return 0


def show_remote_task(door: ServerDoor, task: str, wanted: str, json: bool = False) -> int:
    """The attempts at a task, or what the last one printed."""
    found = [one for one in door.owner().attempts(door.workflow) if one["task"] == task]
    if wanted == "log":
        if not found:
            raise InputError(f"no attempt at {task!r} has ended")
        sys.stdout.write(harmless(found[-1]["tail"] or "") + "\n")
        return 0
    if json:
        print_json({"task": task, "attempts": found})
        return 0
    lines = [
        f"attempt {one['attempt']}, {one['client']}, {one['ended'] - one['began']:.1f} s: {one['answer']}"
        + (f": {harmless(one['failure'])}" if one["failure"] else "")
        for one in found
    ]
    print_lines(lines or [f"no attempt at {harmless(task)} has ended"])
    return 0


def cancelled(door: ServerDoor) -> int:
    """Have nothing more of a workflow handed out."""
    door.owner().cancel(door.workflow)
    print_lines([f"{door.workflow} is cancelled"])
    return 0


def list_clients(door: ServerDoor, approve: str | None, revoke: str | None, json: bool) -> int:
    """Who works for a server; let one in, or have no more of one."""
    owner = door.owner()
    for client, verb in ((approve, "approve"), (revoke, "revoke")):
        if client is not None:
            owner.post(f"/v1/clients/{client}/{verb}", {})
    found = owner.get("/v1/clients")["clients"]
    if json:
        print_json({"clients": found})
        return 0
    now = time.time()
    rows = [
        [
            one["client"], harmless(one["name"]), f"{one['holds']:,}", f"{one['done']:,}", f"{one['failed']:,}",
            f"{one['lost']:,}", "" if one["speed"] is None else f"{one['speed']:.2f}",
            f"{max(0.0, now - one['seen']):.0f} s ago" if one["approved"] else "waits for approval",
        ]
        for one in found
    ]  # fmt: skip
    print_table(["client", "name", "has", "done", "failed", "lost", "speed", "seen"], rows)
    return 0


def made_key(path: str) -> int:
    """Make a pair of keys."""
    try:
        from eligo.server.signing import new_key
    except ImportError:
        raise InputError('keys need cryptography: pip install "eligo[server]"') from None
    public = new_key(path)
    print_lines([f"{path} is yours alone: eligo submit --sign {path}", f"{public} is for clients: --trust {public}"])
    return 0
