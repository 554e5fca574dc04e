"""The verbs `serve` and `backup`: print a server's address, its progress and its summary, and check its setup."""

import os
import resource
import shutil
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from eligo.cli.options import Reading
from eligo.cli.output import print_answer, print_json, print_lines, with_new_keys
from eligo.cli.plan_text import accept, read_workflow, tell, working
from eligo.errors import InputError, counted
from eligo.formats.fidelity import words_in
from eligo.pages.html import ABSENT, is_built
from eligo.pages.views import count_words

if TYPE_CHECKING:
    from eligo.server.app import Server, Setup

LEAST_ROOM, LEAST_OPEN = 2**30, 1024  # bytes free, files open
SELDOM = 5.0  # seconds between two lines about the progress
NEEDED = 'eligo serve needs more packages: pip install "eligo[server]"'


def set_up(*, lease: float, keep_results: float, most_tasks: int = 1024, **settings: Any) -> "Setup":
    """The setup of a server with these settings."""
    try:
        from eligo.server.app import Setup
        from eligo.server.rules.clients import DAY, ServerTerms
        from eligo.server.schema import MOST_TASKS
    except ImportError as error:
        raise InputError(f"{NEEDED} ({error.name} is missing)") from None
    if not lease > 0:
        raise InputError(f"--lease must be positive, got {lease:g}")
    if not keep_results >= 0:
        raise InputError(f"--keep-results must be at least 0, got {keep_results:g}")
    if not 1 <= most_tasks <= MOST_TASKS:
        raise InputError(f"--most-tasks must be from 1 to {MOST_TASKS}, got {most_tasks}")
    terms = ServerTerms(
        lease=lease,
        grace=lease / 3,
        keep_results=keep_results * DAY,
        first_quota=min(4.0, most_tasks),
        most_quota=float(most_tasks),
    )
    return Setup(terms=terms, **settings)


class ServeOutput(NamedTuple):
    """What `eligo serve` prints: little if *quiet*, JSON, or text."""

    quiet: bool
    json: bool


def serve_until_stopped(
    setup: "Setup", files: Sequence[str], reading: Reading, wishes: Mapping[str, Any], output: ServeOutput
) -> int:
    """Serve until a signal, or until everything is done; returns the exit code."""
    from eligo.server.app import run_server
    from eligo.server.rules.prepared import Wishes

    flows, ignore = [], words_in(wishes.get("ignore", ""))
    for file in files:
        flow = accept(read_workflow(file, reading), ignore, labels=None)
        flows.append((flow, Wishes(name=flow.name or Path(file).stem, **wishes), os.path.dirname(file) or os.curdir))
    began = time.monotonic()
    watch = _Watch(output.quiet or output.json, output.json)
    server = run_server(setup, flows, watch.begin)
    watch.end()
    document = server.summary()
    document["seconds"] = time.monotonic() - began
    if output.json:
        workflows = [with_new_keys(each) for each in document["workflows"]]
        print_json(with_new_keys(document) | {"workflows": workflows})
    elif not output.quiet:
        print_lines(_summary_lines(document))
    return 1 if setup.until_done and any(one["state"] != "done" for one in document["workflows"]) else 0


def _summary_lines(document: Mapping[str, Any]) -> list[str]:
    lines = []
    for one in document["workflows"]:
        lines.append(f"{one['name']} ({one['workflow']}): {one['state']}; {count_words(one['counts'])}")
        lines += [f"  {failure['count']:,} failed: {failure['cause']}" for failure in one["failures"]]
    leases, again = counted(document["lost"], "lease"), counted(document["repeated"], "task")
    lines.append(f"{leases} expired, {again} handed out more than once, {document['saved']:,} bytes of transfers saved")
    return lines


def announce(server: "Server", address: str) -> None:
    """Print the address of a server, and nothing about its progress."""
    _Watch(quiet=True, json=False).begin(server, address)


class _Watch:
    """Prints the address of a server, and its progress now and then."""

    def __init__(self, quiet: bool, json: bool) -> None:
        self._quiet, self._json = quiet, json
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._say: Callable[[Sequence[str]], None] = tell

    def begin(self, server: "Server", address: str) -> None:
        """Announce that clients may connect. If the log goes to standard error, only the log does."""
        from eligo.server.logs import log_lines

        self._say = log_lines if server.setup.log == "-" else tell
        if not self._json:
            sys.stdout.write(f"serving on {address}\n")
            sys.stdout.flush()
        elif self._say is tell:
            sys.stderr.write(f"serving on {address}\n")
        token, link = server.operator_token, is_built() and server.gate
        self._say([server.remark] if server.remark else [])
        self._say([f"operator token: {token.path}"] if token.is_new else [])
        self._say([f"page: {address}/" if is_built() else ABSENT])
        self._say([f"link with your token: eligo page {address}"] if link else [])
        if not self._quiet:
            self._thread = threading.Thread(target=self._look, args=(server,), daemon=True)
            self._thread.start()

    def _look(self, server: "Server") -> None:
        last_line = ""
        while not self._over.wait(SELDOM):
            line = server.line()
            if line != last_line:
                self._say([line])
                last_line = line

    def end(self) -> None:
        """Stop printing the progress."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()


def check_setup(setup: "Setup", json: bool) -> int:
    """Print the problems of a setup; returns the exit code, 1 if there are any."""
    problems = list(_problems(setup))
    print_answer({"problems": problems}, problems or ["no problems found"], json)
    return 1 if problems else 0


def _problems(setup: "Setup") -> list[str]:
    from eligo.server.app import LOOPBACK, listening
    from eligo.stores.service_sqlite import check_store

    problems = []
    for look in (setup.check, lambda: listening(setup).close(), lambda: check_store(setup.store)):
        try:
            look()
        except InputError as error:
            problems.append(str(error))
    if setup.host not in LOOPBACK and setup.insecure:
        risk = "tokens are sent without TLS" if setup.tokens else "anyone may use this server"
        problems.append(f"{setup.host} is reachable from other machines, and {risk}")
    place = Path(setup.files_folder).absolute()
    near = next(folder for folder in (place, *place.parents) if folder.exists())
    if not os.access(near, os.W_OK):
        problems.append(f"{place}: no permission to write files here")
    if (free := shutil.disk_usage(near).free) < LEAST_ROOM:
        problems.append(f"{place}: only {free:,} bytes free")
    if (most := resource.getrlimit(resource.RLIMIT_NOFILE)[0]) < LEAST_OPEN:
        problems.append(f"only {most:,} open files allowed, and every client needs one: raise ulimit -n")
    return problems


def back_up(store: str, copy: str, folder: str | None) -> int:
    """Copy the state and the files of a server."""
    from eligo.stores.service_sqlite import back_up_store

    with working(f"copying {store}"):
        back_up_store(store, copy)
        source = Path(folder or f"{store.removesuffix('.db')}.files")
        target = Path(f"{copy.removesuffix('.db')}.files")
        count = _copy_files(source, target) if source.is_dir() else 0
    print_lines([f"copied the state to {copy} and {counted(count, 'file')} to {target}"])
    return 0


def _copy_files(source: Path, target: Path) -> int:
    """Copy complete files, each named by its hash, so that an existing copy is the same; returns their number."""
    count = 0
    for path in source.glob("??/*"):
        place = target / path.parent.name / path.name
        with suppress(FileNotFoundError):  # the server has deleted it meanwhile
            if not place.exists():
                for folder in (target, place.parent):
                    folder.mkdir(0o700, parents=True, exist_ok=True)
                shutil.copyfile(path, f"{place}.part")
                os.replace(f"{place}.part", place)
            count += 1
    return count
