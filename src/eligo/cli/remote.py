"""The verbs `work`, `submit` and `key`, and `eligo run --on URL`: a server as clients and owners use it."""

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
from typing import TYPE_CHECKING, Any, NamedTuple

from eligo.cli.effects import ServerTarget, full_address
from eligo.cli.endings import FAILED, INTERRUPTED, Ended
from eligo.cli.look import failure_lines, note_lines
from eligo.cli.output import print_answer, print_lines
from eligo.cli.plan_text import accept, heeding, tell, working
from eligo.cli.requests import RunRequest, size_in
from eligo.client.owner import Owner, hash_files
from eligo.client.transfers import HashedFile
from eligo.errors import InputError, counted, shorten
from eligo.estimates import lasting
from eligo.names import check_workflow_name
from eligo.pages.sources import OVER
from eligo.pages.views import count_words, headline
from eligo.workflow import Workflow

if TYPE_CHECKING:
    from eligo.server.rules.needs import Travels

WAITING = {"paused", "held"}  # states in which files or signatures may be missing
KEEP_DAYS = 1.0  # for which a client that serves others keeps the files of tasks that have ended
MOST_PORT = 65_535
DAY = 86_400  # seconds
SELDOM = 10.0  # seconds between two lines about the progress


def do_work(url: str | None, options: Mapping[str, Any]) -> int:
    """Run tasks for a server, and print a summary at the end."""
    from eligo.client.options import WorkOptions
    from eligo.client.worker import work

    tell([str(work(WorkOptions.of({**options, "url": full_address(url)})))])
    return 0


def serve_tasks_of(url: str | None, values: Mapping[str, Any], place: str, settings: Mapping[str, Any]) -> int:
    """Serve the tasks of a server to your own clients, and print a summary at the end."""
    from eligo.cli.serve_text import announce, set_up
    from eligo.client.options import WorkOptions
    from eligo.client.worker import tell as say

    plain = WorkOptions(url=full_address(url), **values)
    options = replace(plain, folder=plain.folder or f"{plain.home()}_leaf")
    host, port = _place(place)
    setup = set_up(
        host=host, port=port, store=os.path.join(options.home(), "served.db"), keep_results=KEEP_DAYS, **settings
    )
    from eligo.server.upstream import serve_below

    tell([str(serve_below(options, values.get("size"), setup, announce, say))])
    return 0


def _place(text: str) -> tuple[str, int]:
    """The host and the port of HOST:PORT."""
    host, _, port = text.rpartition(":")
    if not host or not port.isascii() or not port.isdecimal() or int(port) > MOST_PORT:
        raise InputError(f"--serve takes HOST:PORT, such as 127.0.0.1:8760, got {shorten(text)!r}")
    return host.removeprefix("[").removesuffix("]"), int(port)


class Signer(NamedTuple):
    """The key that signs a workflow, and for how many days."""

    #: the file of the private key
    key: str
    days: float


class SubmitOptions(NamedTuple):
    """The options of `eligo submit` apart from those that the server gets."""

    signer: Signer | None
    #: the folder of the tasks' files; None: the folder of the workflow's file
    directory: str | None
    wait: bool
    json: bool
    ignore: Sequence[str] = ()


def submit(flow: Workflow, target: ServerTarget, wishes: dict[str, str], options: SubmitOptions) -> int:
    """Submit a workflow and print its id; with --wait, follow it to its end and print the result. Returns the exit code."""
    flow = accept(flow, options.ignore, labels=None)
    folder = options.directory or _folder(flow)
    reply = hand_in(flow, target.owner(), wishes, options.signer, folder)
    workflow = reply["workflow"]
    place = f"{target.server}/{workflow}"
    if reply["state"] == "failed":
        tell([f"{place} was submitted before and failed; to retry its failed tasks: eligo retry {place}"])
    if not options.wait:
        return print_answer(reply, [workflow], options.json)
    _check_going(reply, place)
    ended = follow_and_fetch(flow, target, workflow, folder, options.json)
    if ended is None:
        return INTERRUPTED
    last, fetched = ended
    counts = count_words(last["counts"])  # empty if the workflow was cancelled
    line = "; ".join(filter(None, [f"{workflow} is {last['state']}", counts, f"{fetched:,} files fetched"]))
    print_answer(last | {"fetched": fetched}, [*failure_lines(last), line], options.json)
    return 0 if last["state"] == "done" else FAILED


def hand_in(flow: Workflow, owner: Owner, wishes: dict[str, str], sign: Signer | None, folder: str) -> dict[str, Any]:
    """Submit a runnable workflow with its files and signatures; returns the server's reply."""
    from eligo.formats import generate

    flow = flow.labelled()
    wishes.setdefault("name", flow.name or _stem(flow) or "workflow")
    if sign is not None:  # a unique name, so that a signature holds for this workflow only
        wishes["name"] = f"{wishes['name']}-{secrets.token_hex(4)}"
        wishes["signed"] = "true"
        _private_key(sign.key)  # a wrong key is refused before the workflow is submitted and waits for signatures
    check_workflow_name(wishes["name"])
    text = generate(flow, "json")
    with working(f"submitting {len(flow):,} tasks"):
        files = {} if wishes.get("files") == "false" else hash_files(_travels(flow).needs, folder)
        key = sha256(f"{sorted(wishes.items())} {sorted(files.items())} {text}".encode()).hexdigest()
        reply = owner.submit(text, wishes | {"format": "json"}, key)
        while reply["state"] == "cancelled":  # another key, since the same one finds the cancelled workflow
            key = sha256(f"{key} {reply['workflow']}".encode()).hexdigest()
            reply = owner.submit(text, wishes | {"format": "json"}, key)
        if sign is not None and reply["state"] in WAITING:
            owner.sign(reply["workflow"], _signed(flow, wishes["name"], sign, files))
        if files and reply["state"] in WAITING:
            owner.provide(reply["workflow"], files, folder)
    tell(note_lines(reply))
    return reply


def space_wishes(space: str | None, clean: bool) -> dict[str, str]:
    """The settings of --space and --clean."""
    limit = {} if space is None else {"space": str(size_in("space", space))}
    return limit | ({"clean": "true"} if clean else {})


def _private_key(path: str) -> Any:
    try:
        from eligo.server.auth.signatures import private_key
    except ImportError:
        raise InputError('signing needs cryptography: pip install "eligo[server]"') from None
    return private_key(path)


def _signed(flow: Workflow, name: str, signer: Signer, files: Mapping[str, HashedFile]) -> dict[str, str]:
    from eligo.server.auth.signatures import signatures

    expires = int(time.time() + signer.days * DAY)
    return signatures(flow, name, _private_key(signer.key), files, expires)


def _folder(flow: Workflow) -> str:
    path = flow.origin.path if flow.origin else None
    return os.path.dirname(path) or os.curdir if path else os.curdir


def _stem(flow: Workflow) -> str:
    return Path(flow.origin.path).stem if flow.origin and flow.origin.path else ""


def _check_going(status: Mapping[str, Any], place: str) -> None:
    """Refuse to wait for a workflow that is paused."""
    if status["state"] == "held":
        raise InputError(f"{place} was submitted before and is paused: resume it with eligo resume {place}")


def follow(owner: Owner, workflow: str, quiet: bool = False) -> dict[str, Any]:
    """Wait for the end of a workflow and print its progress now and then; returns its last status.

    The first signal only stops the waiting, and the workflow continues on the server.
    """
    stopping: list[int] = []

    def stop(number: int, frame: FrameType | None) -> None:
        stopping.append(number)

    status, due, last_line = dict[str, Any](), 0.0, ""
    with heeding(stop, signal.SIGINT, signal.SIGTERM):
        for status in owner.followed(workflow, lambda: bool(stopping)):
            line = count_words(status["counts"])
            if not quiet and line != last_line and (time.monotonic() >= due):
                tell([line])
                last_line, due = line, time.monotonic() + (2.0 if sys.stderr.isatty() else SELDOM)
    return status


def _travels(flow: Workflow) -> "Travels":
    from eligo.server.rules.needs import Travels  # here, because most runs need no server

    return Travels(flow)


def follow_and_fetch(
    flow: Workflow, target: ServerTarget, workflow: str, folder: str, quiet: bool
) -> tuple[dict[str, Any], int] | None:
    """The last status of a workflow, and the number of fetched files; None if waiting was stopped before its end."""
    owner = target.owner()
    last = follow(owner, workflow, quiet)
    if last.get("state") in OVER:
        return last, owner.fetch(workflow, folder, _travels(flow).makers)
    place = f"{target.server}/{workflow}"
    tell([f"the workflow continues on the server; see eligo status {place}, or stop it with eligo cancel {place}"])
    return None


def by_server(flow: Workflow, request: RunRequest, target: ServerTarget) -> int:
    """Run a workflow on a server, follow it to its end, and fetch its files; returns the exit code."""
    if request.fat > 1 or request.skip_done:
        raise InputError("--fat and --skip-done have no effect with a server: leave them out")
    folder = request.directory or _folder(flow)
    wishes = {"policy": request.used_policy, "retries": str(request.retries)}
    if request.timeout is not None:
        wishes["timeout"] = str(request.timeout)
    wishes |= space_wishes(request.space, request.clean)
    began = time.monotonic()
    reply = hand_in(flow, target.owner(), wishes, None, folder)
    place = f"{target.server}/{reply['workflow']}"
    _check_going(reply, place)
    if reply["state"] == "failed":
        count = target.owner().post(f"/v1/workflows/{reply['workflow']}/retry", {})["count"]
        tell([f"{reply['workflow']} failed before: {counted(count, 'failed task')} will be retried"])
    tell([f"submitted as {place}; start clients with: eligo work {target.server}"])
    result = follow_and_fetch(flow, target, reply["workflow"], folder, request.quiet or request.json)
    if result is None:
        return INTERRUPTED
    last, ended = result[0], Ended(len(flow), time.monotonic() - began, place)
    failed = {task: one["cause"] for one in last["failures"] for task in one["tasks"]}
    document = ended.document(request.used_policy, last["counts"].get("done", 0), failed, [])
    print_answer(document | {"state": last["state"]}, [*failure_lines(last), _end_line(last, ended)], request.json)
    return 0 if last["state"] == "done" else FAILED


def _end_line(last: Mapping[str, Any], ended: Ended) -> str:
    """The headline of a workflow that has ended."""
    if last["state"] == "cancelled":  # the server keeps no counts of its tasks
        return f"{ended.run} was cancelled after {lasting(round(ended.seconds, 1))}"
    return headline({"counts": last["counts"], "tasks": ended.tasks, "state": last["state"], "seconds": ended.seconds})


def make_key(path: str) -> int:
    """Create a pair of keys."""
    try:
        from eligo.server.auth.signatures import new_key
    except ImportError:
        raise InputError('keys need the package cryptography: pip install "eligo[server]"') from None
    public = new_key(path)
    print_lines(
        [
            f"private key: {path} (keep it secret; eligo submit --sign {path})",
            f"public key:  {public} (for clients; eligo work --trust {public})",
        ]
    )
    return 0
