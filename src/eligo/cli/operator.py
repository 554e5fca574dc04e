"""The verbs of owners and operators: change workflows, clients, tokens and the server itself, over HTTP."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from json import loads
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

import typer

from eligo.additions import LARGEST, read_addition, without_templates
from eligo.cli.effects import SERVER, URL, ServerTarget, full_address, is_server
from eligo.cli.options import Access
from eligo.cli.output import harmless, print_answer, print_json, print_lines, print_table, with_new_keys
from eligo.cli.plan_text import tell
from eligo.client.owner import Owner, hash_files
from eligo.errors import InputError, check_choice, counted
from eligo.formats.shared.files import Beside, load
from eligo.pages.sources import run_folder
from eligo.running.folder import STATE
from eligo.running.inbox import LOOK, ask
from eligo.stores import read_facts, under_way

NONE = 1  # the exit code if there was nothing to do
STATES = ("running", "paused", "held", "failed", "done", "cancelled", "unavailable")
PAGE = 1_000  # workflows in one answer
ACCESS = {"revoked": "revoked", "void": "expired"}  # of clients that are not approved; others wait for approval
PATIENCE = 30.0  # seconds that a run has to take what is in its inbox, and to stop when it is cancelled
#: what to do instead if the run in a folder is not running; {} is its folder
NOT_RUNNING = {
    "pause": "eligo run --resume {} --pause starts it paused",
    "resume": "eligo run --resume {} continues it",
    "retry": "eligo run --resume {} retries its failed tasks",
    "release": "none of its tasks is running",
    "workers": "give --workers to eligo run --resume {}",
}


#: the folder of a run, or the address of a workflow on a server
Place = Path | ServerTarget


def place_in(context: typer.Context, access: Access) -> Place:
    """The run or workflow that the argument RUN names."""
    name = context.params["folder"]
    return access.target(name) if is_server(context) else run_folder(name)


def change(place: Place, verb: str, message: str, json: bool) -> int:
    """Change a run or a workflow, and print that it is done or that nothing had to change; both are a success."""
    subject, answer = _ask(place, verb)
    changed, (name,) = answer.get("changed", True), subject.values()  # servers before this version do not send it
    line = message.format(name) if changed else f"{name} is {answer['state']}: nothing changed"
    return print_answer({**subject, "done": verb, "changed": changed}, [line], json)


def change_tasks(place: Place, verb: str, tasks: Sequence[str], json: bool) -> int:
    """Retry or release tasks of a run or a workflow; the exit code is 1 if there were none."""
    subject, answer = _ask(place, verb, tasks=list(tasks) or None)
    count = answer["count"]
    done = {"retry": "failed {} will be retried", "release": "running {} taken back"}[verb]
    line = f"{count:,} {done.format('task' if count == 1 else 'tasks')}"
    print_answer({**subject, "count": count}, [line], json)
    return 0 if count else NONE


def change_workers(folder: Path, workers: int, json: bool) -> int:
    """Change the maximum number of concurrent tasks of a run."""
    if workers < 1:
        raise InputError(f"workers must be a positive integer, got {workers}")
    subject, answer = _ask(folder, "workers", workers=workers)
    line = f"{folder} runs at most {counted(workers, 'task')} at once (before: {answer['before']:,})"
    document = {**subject, "done": "workers", "changed": answer["changed"], "workers": workers}
    return print_answer(document, [line], json)


def _ask(place: Place, verb: str, **words: Any) -> tuple[dict[str, str], dict[str, Any]]:
    """The name of a run or workflow by its kind, and the answer to a request; a cancelled run has stopped then."""
    if isinstance(place, ServerTarget):
        answer = place.owner().post(f"/v1/workflows/{quote(place.workflow)}/{verb}", words)
        return {"workflow": place.workflow}, answer
    return {"run": str(place)}, _cancel_run(place) if verb == "cancel" else _ask_run(place, verb, **words)


def _ask_run(folder: Path, verb: str, **words: Any) -> dict[str, Any]:
    """The answer of the run in a folder to a request; raises if it is not running."""
    on = loads(read_facts(folder / STATE).get("options", "{}")).get("on")
    if on == "htcondor-dagman":
        raise InputError(f"{folder}: DAGMan runs this workflow: use its own commands, such as condor_hold")
    answer = ask(folder, {"verb": verb, **words}, PATIENCE)
    if answer is None:
        raise InputError(f"{folder}: not running: {NOT_RUNNING[verb].format(folder)}")
    return answer


def _cancel_run(folder: Path) -> dict[str, Any]:
    """Cancel a run and wait until it has stopped, so that it can be resumed; returns its answer."""
    answer = ask(folder, {"verb": "cancel"}, PATIENCE)
    until = time.monotonic() + PATIENCE
    while under_way(folder / STATE) and time.monotonic() < until:
        time.sleep(LOOK)
    return answer or {"changed": False, "state": "not running"}


def fetch_results(target: ServerTarget, folder: str | None, force: bool, json: bool) -> int:
    """Fetch the files that a workflow wrote into a folder, and check each against its hash."""
    place = folder or f"{target.workflow}-results"
    try:
        os.makedirs(place, exist_ok=True)
        state, names, fetched = target.owner().fetch_made(target.workflow, place, force)
    except OSError as error:
        raise InputError(f"{harmless(place)}: cannot write the files: {error.strerror}") from None
    there = f", {len(names) - fetched:,} already there" if fetched < len(names) else ""
    line = f"{target.workflow} is {state}: {counted(fetched, 'file')} fetched into {harmless(place)}{there}"
    document = {"workflow": target.workflow, "state": state, "folder": place, "files": names, "fetched": fetched}
    return print_answer(document, [line], json)


def list_workflows(target: ServerTarget, state: str | None, limit: int, json: bool) -> int:
    """Print the workflows of a server, newest first."""
    if limit < 0:
        raise InputError(f"--limit must be at least 0, got {limit}")
    if state is not None:
        check_choice("state", state, STATES)
    workflows, more = _fetch_workflows(target.owner(), state, limit)
    if json:
        print_json({"workflows": [with_new_keys(each) for each in workflows], "more": more})
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
    """The newest workflows, at most *limit* of them, or all if that is 0; and whether there are more."""
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


def drain(target: ServerTarget, stop: bool, json: bool) -> int:
    """Stop a server from handing out tasks, or let it do so again."""
    reply = target.owner().post("/v1/drain", {"on": not stop})
    stopped = f"{target.server} hands out no more tasks; to resume: eligo drain {target.server} --stop"
    line = stopped if reply["status"] == "draining" else f"{target.server} hands out tasks again"
    return print_answer(reply, [line], json)


class ClientChanges(NamedTuple):
    """The requested changes of clients, each by its id."""

    approve: Sequence[str]
    revoke: Sequence[str]
    pause: Sequence[str]
    resume: Sequence[str]
    #: CLIENT=TAG,TAG
    tag: Sequence[str]

    def calls(self) -> list[tuple[str, dict[str, Any]]]:
        """The paths to post to, each with its body."""
        verbs = {"approve": self.approve, "revoke": self.revoke, "pause": self.pause, "resume": self.resume}
        calls = [(f"{quote(client)}/{verb}", dict[str, Any]()) for verb, some in verbs.items() for client in some]
        for text in self.tag:
            client, equals, tags = text.partition("=")
            if not equals:
                raise InputError(f"--tag takes CLIENT=TAG,TAG, got {text!r}")
            calls.append((f"{quote(client)}/tags", {"tags": [tag for tag in tags.split(",") if tag]}))
        return calls


def list_clients(target: ServerTarget, changes: ClientChanges, json: bool) -> int:
    """Change clients as requested, then print all clients of the server."""
    owner = target.owner()
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
    """All clients, fetched page by page; servers before this version send all at once."""
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


# Tasks that are added


def add_tasks(place: Place, file: str, directory: str | None, json: bool) -> int:
    """Add the tasks of a file to a run, or to a workflow with the files that they read and that no task writes."""
    text, tasks = addition_in(file)
    if isinstance(place, ServerTarget):
        owner, where = place.owner(), f"{place.server}/{place.workflow}"
        folder = directory or os.path.dirname(file) or os.curdir
        if missing := owner.add(place.workflow, text)["missing"]:
            owner.provide(place.workflow, hash_files(missing, folder), folder)
    else:
        from eligo.running.growth import add_to_run

        where = str(place)
        taken = add_to_run(place, text, PATIENCE)
        tell([] if taken else [f"{where}: the run has not added the tasks yet; it will when it is resumed"])
    return print_answer({"added": list(tasks)}, [f"added {counted(len(tasks), 'task')} to {where}"], json)


def addition_in(file: str) -> tuple[str, tuple[str, ...]]:
    """The text of an addition in a file, without templates, and the names of its tasks; errors name the file."""
    text = load(file, LARGEST)
    try:
        text = without_templates(text, Beside(None if file == "-" else file))
        return text, tuple(map(str, read_addition(text).flow.dag.tasks))
    except InputError as error:
        raise error.located(file) from None


# Tokens


class TokenRequest(NamedTuple):
    """The options of `eligo token`."""

    scopes: list[str]
    days: float | None
    revoke: bool
    list: bool
    json: bool


def place_and_name(place: str | None, name: str | None, listed: bool) -> tuple[str, str | None]:
    """The server or store, and the name of the token; ELIGO_URL supplies the server if it is omitted."""
    if name is None and not listed and place is not None and not _is_place(place):
        place, name = None, place
    return (full_address(None) if place is None else place), name


def _is_place(text: str) -> bool:
    return "://" in text or text.endswith(".db") or not os.environ.get(URL)


def change_tokens(place: str, access: Access, name: str | None, request: TokenRequest) -> int:
    """Create, list or revoke tokens over HTTP, or create one in the store itself on the server's own machine."""
    if not place.startswith(SERVER):
        return _make_locally(place, name, request)
    owner = access.target(place).owner()
    if request.list:
        tokens = owner.get("/v1/tokens")["tokens"]
        print_json({"tokens": tokens}) if request.json else _print_tokens(tokens)
    elif request.revoke:
        return _print_revoked(str(name), owner.post("/v1/tokens/revoke", {"name": name})["count"], request.json)
    else:
        wanted = {"name": name, "scopes": request.scopes, "days": request.days}
        _print_token(owner.post("/v1/tokens", wanted)["token"], str(name), request)
    return 0


def _print_revoked(name: str, count: int, json: bool) -> int:
    """Print how many tokens were revoked; returns the exit code, 1 if there were none."""
    if count or json:
        print_answer({"name": name, "count": count}, [f"{counted(count, 'token')} revoked"], json)
    else:
        tell([f"no valid token has the name {harmless(name)}"])
    return 0 if count else NONE


def _print_token(token: str, name: str, request: TokenRequest) -> None:
    document = {"token": token, "name": name, "scopes": request.scopes, "days": request.days}
    print_answer(document, [token], request.json)


def _make_locally(store: str, name: str | None, request: TokenRequest) -> int:
    """Create a token in the store, for operators who have lost every admin token."""
    from eligo.server.auth.admission import DAY
    from eligo.server.auth.tokens import Gate
    from eligo.stores.database import locked
    from eligo.stores.service import Changes
    from eligo.stores.service_sqlite import service_store

    if request.list or request.revoke:
        raise InputError("--list and --revoke need a running server: give its URL")
    if "://" not in store and not os.path.exists(store):
        raise InputError(f"{store}: no such store")
    if "://" not in store:
        os.close(locked(f"{store}.lock", f"{store} is in use by a server: give the server's URL, or stop it first"))
    lasting = None if request.days is None else request.days * DAY
    token, row = Gate().make(str(name), request.scopes, time.time(), lasting=lasting)
    with closing(service_store(store)) as database:
        database.prepare([Changes(tokens=[row])])
        database.finish()
    tell([f"added a token to {store}; a running server accepts it after its next start"])
    _print_token(token, str(name), request)
    return 0


def _print_tokens(tokens: Sequence[dict[str, Any]]) -> None:
    rows = [
        [
            "  " * depth + harmless(one["name"]), one["id"], " ".join(one["scopes"]), one["client"] or "",
            _date(one["made"]), _date(one["expires"]), one["state"], one["fault"] or "",
        ]
        for depth, one in _tree(tokens)
    ]  # fmt: skip
    titles = ["name", "token", "scopes", "client", "created", "expires", "state", "reason"]
    print_table(titles, rows, uncut=["token", "state"])


def _tree(tokens: Sequence[dict[str, Any]]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every token below the one that created it, with its depth; those whose parent is no longer known come first."""
    ids = {one["id"] for one in tokens}
    below: dict[str | None, list[dict[str, Any]]] = {}
    for one in tokens:
        below.setdefault(one["parent"] if one["parent"] in ids else None, []).append(one)
    waiting = [(0, one) for one in reversed(below.get(None, []))]
    while waiting:
        depth, one = waiting.pop()
        yield depth, one
        waiting += [(depth + 1, each) for each in reversed(below.get(one["id"], []))]


def _date(moment: float | None) -> str:
    return "" if moment is None else time.strftime("%Y-%m-%d", time.localtime(moment))
