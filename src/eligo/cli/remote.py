"""A server as its clients and the owners of workflows see it."""

import os
import secrets
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from eligo.cli.fidelity import accepted
from eligo.cli.plans import heeding, tell, working
from eligo.cli.printing import print_json, print_lines
from eligo.cli.requests import FAILED, INTERRUPTED, Ended, RunRequest
from eligo.cli.seeing import counts_told, failures_told, notes_told
from eligo.cli.server_door import ServerDoor, full_address
from eligo.client.owning import Owner, hashed, split_address
from eligo.client.transferring import HashedFile
from eligo.errors import InputError, shorten
from eligo.names import check_workflow_name
from eligo.pages.sources import OVER
from eligo.server.travelling import Travels
from eligo.workflow import Workflow

WAITING = {"paused", "held"}  # states in which files or signatures may be missing
KEEP_DAYS = 1.0  # that a leaf keeps files of grants that are over
MOST_PORT = 65_535
DAY = 86_400  # seconds
SELDOM = 10.0  # seconds between two lines that tell how it goes


def worked(url: str | None, given: Mapping[str, Any]) -> int:
    """Run tasks for a server, and say what was done."""
    from eligo.client.options import WorkOptions
    from eligo.client.working import work

    known = dict(given)
    for what in ("memory", "output", "cache"):
        if what in known:
            known[what] = _amount(known[what])
    tell([str(work(WorkOptions(url=full_address(url), **known)))])
    return 0


def served_below(url: str | None, given: Mapping[str, Any], place: str, settings: Mapping[str, Any]) -> int:
    """Hand the tasks of a server on to clients of one's own, and say what was done."""
    from eligo.cli.serving import announced, set_up
    from eligo.client.options import WorkOptions
    from eligo.client.working import tell as say

    plain = WorkOptions(url=full_address(url), **given)
    options = replace(plain, folder=plain.folder or f"{plain.home()}_leaf")
    host, port = _place(place)
    setup = set_up(
        host=host, port=port, store=os.path.join(options.home(), "served.db"), keep_results=KEEP_DAYS, **settings
    )
    from eligo.server.upstream import serve_below

    tell([str(serve_below(options, given.get("size"), setup, announced, say))])
    return 0


def _place(text: str) -> tuple[str, int]:
    """The host and the port of HOST:PORT."""
    host, _, port = text.rpartition(":")
    if not host or not port.isascii() or not port.isdecimal() or int(port) > MOST_PORT:
        raise InputError(f"--serve takes HOST:PORT, such as 127.0.0.1:8760, got {shorten(text)!r}")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _amount(text: str) -> int:
    from argparse import ArgumentTypeError

    from eligo.client.__main__ import amount

    try:
        return amount(text)
    except ArgumentTypeError as error:
        raise InputError(str(error)) from None


class Signer(NamedTuple):
    """Who signs a workflow, and for how long."""

    #: the file of the private key
    key: str
    days: float


def submitted(  # noqa: PLR0913, PLR0917
    flow: Workflow,
    door: ServerDoor,
    wishes: dict[str, str],
    parts: tuple[Signer | None, str | None],
    manner: tuple[bool, bool],
    ignore: Sequence[str] = (),
) -> int:
    """Hand a workflow to a server; its id, and where that is waited for what came of it."""
    flow = accepted(flow, ignore, served=True)
    sign, directory = parts
    wait, json = manner
    owner, folder = door.owner(), directory or _folder(flow)
    told = hand_in(flow, owner, wishes, sign, folder)
    tell(notes_told(told))
    place = f"{door.server}/{told['workflow']}"
    if told["state"] == "failed":
        tell([f"{place} was submitted before and failed: eligo retry {place} tries its failed tasks again"])
    if not wait:
        print_json(told) if json else print_lines([told["workflow"]])
        return 0
    _check_going(told, place)
    last = follow(owner, told["workflow"], quiet=json)
    if last.get("state") not in OVER:
        return _goes_on(door.url, told["workflow"])
    fetched = owner.fetch(told["workflow"], folder, Travels(flow).makers)
    if json:
        print_json(last | {"fetched": fetched})
    else:
        print_lines(
            [*failures_told(last), f"{told['workflow']} is {last['state']}; {_counted(last)}; {fetched:,} files."]
        )
    return 0 if last["state"] == "done" else FAILED


def hand_in(flow: Workflow, owner: Owner, wishes: dict[str, str], sign: Signer | None, folder: str) -> dict[str, Any]:
    """Submit a workflow that can be run, with its files and signatures; what the server says."""
    from eligo.formats import generate

    flow = flow.labelled()
    wishes.setdefault("name", flow.name or _stem(flow) or "workflow")
    if sign is not None:  # by this name a signature holds for this workflow only
        wishes["name"] = f"{wishes['name']}-{secrets.token_hex(4)}"
        wishes["signed"] = "true"
        _private_key(sign.key)  # before anything is submitted that would wait for signatures
    check_workflow_name(wishes["name"])
    text = generate(flow, "json")
    with working(f"submitting {len(flow):,} tasks"):
        files = {} if wishes.get("files") == "false" else hashed(Travels(flow).needs, folder)
        key = sha256(f"{sorted(wishes.items())} {sorted(files.items())} {text}".encode()).hexdigest()
        told = owner.submit(text, wishes | {"format": "json"}, key)
        while told["state"] == "cancelled":  # it is submitted anew
            key = sha256(f"{key} {told['workflow']}".encode()).hexdigest()
            told = owner.submit(text, wishes | {"format": "json"}, key)
        if sign is not None and told["state"] in WAITING:
            owner.sign(told["workflow"], _signed(flow, wishes["name"], sign, files))
        if files and told["state"] in WAITING:
            owner.provide(told["workflow"], files, folder)
    return told


def _private_key(path: str) -> Any:
    try:
        from eligo.server.signing import private_key
    except ImportError:
        raise InputError('signing needs cryptography: pip install "eligo[server]"') from None
    return private_key(path)


def _signed(flow: Workflow, name: str, signer: Signer, files: Mapping[str, HashedFile]) -> dict[str, str]:
    from eligo.server.signing import signatures

    expires = int(time.time() + signer.days * DAY)
    return signatures(flow, name, _private_key(signer.key), files, expires)


def _folder(flow: Workflow) -> str:
    path = flow.origin.path if flow.origin else None
    return os.path.dirname(path) or os.curdir if path else os.curdir


def _stem(flow: Workflow) -> str:
    return Path(flow.origin.path).stem if flow.origin and flow.origin.path else ""


def _check_going(told: Mapping[str, Any], place: str) -> None:
    """Refuse to wait for a workflow that somebody has paused."""
    if told["state"] == "held":
        raise InputError(f"{place} was submitted before and is paused: eligo resume {place} continues it")


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
    return counts_told(told["counts"])


def by_server(flow: Workflow, request: RunRequest) -> int:
    """Have a server run a workflow, follow it to its end, and bring what it made; the exit code."""
    if request.fat > 1 or request.skip_done:
        raise InputError("a server's clients decide how many tasks they take, and no file is looked at beforehand")
    owner = ServerDoor(request.on, request.token, request.ca).owner()
    folder = request.directory or _folder(flow)
    wishes = {"policy": request.policy, "retries": str(request.retries)}
    if request.timeout is not None:
        wishes["timeout"] = str(request.timeout)
    began = time.monotonic()
    told = hand_in(flow, owner, wishes, None, folder)
    workflow = told["workflow"]
    tell(notes_told(told))
    _check_going(told, f"{request.on.rstrip('/')}/{workflow}")
    if told["state"] == "failed":
        count = owner.post(f"/v1/workflows/{workflow}/retry", {})["count"]
        tell([f"{workflow} failed before: {count:,} failed task{'' if count == 1 else 's'} will be retried"])
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
        print_lines([*failures_told(last), f"{len(flow):,} tasks: {_counted(last)}, in {ended.seconds:.1f} s."])
    return 0 if last["state"] == "done" else FAILED


def made_key(path: str) -> int:
    """Make a pair of keys."""
    try:
        from eligo.server.signing import new_key
    except ImportError:
        raise InputError('keys need cryptography: pip install "eligo[server]"') from None
    public = new_key(path)
    print_lines([f"{path} is yours alone: eligo submit --sign {path}", f"{public} is for clients: --trust {public}"])
    return 0
