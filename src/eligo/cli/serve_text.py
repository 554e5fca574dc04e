"""A server as people see it: where it serves, how it goes, what was lost, repeated and saved."""

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

from eligo.cli.aliases import with_new_keys
from eligo.cli.options import Reading
from eligo.cli.output import print_json, print_lines
from eligo.cli.plan_text import accepted, read_told, tell, working
from eligo.errors import InputError
from eligo.formats.fidelity import words_in
from eligo.pages.html import ABSENT, is_built
from eligo.plotting.labels import counted

if TYPE_CHECKING:
    from eligo.server.app import Server, Setup

LEAST_ROOM, LEAST_OPEN = 2**30, 1024  # bytes free, files open
SELDOM = 5.0  # seconds between two lines that tell how it goes
NEEDED = 'eligo serve needs more packages: pip install "eligo[server]"'


def set_up(*, lease: float, keep_results: float, most_tasks: int = 1024, **settings: Any) -> "Setup":
    """How a server is to be set up."""
    try:
        from eligo.server.app import Setup
        from eligo.server.rules.terms import DAY, ServerTerms
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
    """What `eligo serve` prints: nothing where *quiet*, JSON, or text."""

    quiet: bool
    json: bool


def served_until_stopped(
    setup: "Setup", files: Sequence[str], reading: Reading, wishes: Mapping[str, Any], output: ServeOutput
) -> int:
    """Serve until a signal says to stop, or all is done; the exit code."""
    from eligo.server.app import run_server
    from eligo.server.rules.prepared import Wishes

    flows, ignore = [], words_in(wishes.get("ignore", ""))
    for file in files:
        flow = accepted(read_told(file, reading), ignore, served=True)
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
        counts = ", ".join(f"{number:,} {state}" for state, number in one["counts"].items() if number)
        lines.append(f"{one['name']} ({one['workflow']}): {one['state']}; {counts}")
        lines += [f"  {failure['count']:,} failed: {failure['cause']}" for failure in one["failures"]]
    leases, again = counted(document["lost"], "lease"), counted(document["repeated"], "task")
    lines.append(f"{leases} expired, {again} handed out more than once, {document['saved']:,} bytes of transfers saved")
    return lines


def announced(server: "Server", address: str) -> None:
    """Say where a server is, and nothing more of it."""
    _Watch(quiet=True, json=False).begin(server, address)


class _Watch:
    """Says where it serves, and now and then how it goes."""

    def __init__(self, quiet: bool, json: bool) -> None:
        self._quiet, self._json = quiet, json
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._say: Callable[[Sequence[str]], None] = tell

    def begin(self, server: "Server", address: str) -> None:
        """Clients may come. Where the log goes to standard error, nothing but the log does."""
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
        """It serves no more."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()


def checked(setup: "Setup", json: bool) -> int:
    """Say what is wrong with a set-up; 1 where something is."""
    problems = list(_problems(setup))
    if json:
        print_json({"problems": problems})
    else:
        print_lines(problems or ["no problems found"])
    return 1 if problems else 0


def _problems(setup: "Setup") -> list[str]:
    from eligo.server.app import LOOPBACK, listening
    from eligo.stores.service_names import check_store

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


def backed_up(store: str, copy: str, folder: str | None) -> int:
    """Copy what a server keeps, and its files."""
    from eligo.stores.service_names import back_up_store

    with working(f"copying {store}"):
        back_up_store(store, copy)
        source = Path(folder or f"{store.removesuffix('.db')}.files")
        target = Path(f"{copy.removesuffix('.db')}.files")
        count = _copied(source, target) if source.is_dir() else 0
    print_lines([f"copied the state to {copy} and {counted(count, 'file')} to {target}"])
    return 0


def _copied(source: Path, target: Path) -> int:
    """Copy files that are there whole; each is named by what is in it, so what is there already is the same."""
    count = 0
    for path in source.glob("??/*"):
        place = target / path.parent.name / path.name
        with suppress(FileNotFoundError):  # nobody needs it any more
            if not place.exists():
                for folder in (target, place.parent):
                    folder.mkdir(0o700, parents=True, exist_ok=True)
                shutil.copyfile(path, f"{place}.part")
                os.replace(f"{place}.part", place)
            count += 1
    return count
