"""The page of a run, or the link to that of a server."""

import os
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from html import escape
from pathlib import Path
from threading import Thread
from urllib.parse import quote

from eligo.cli.effects import full_address
from eligo.cli.plan_text import tell
from eligo.client.options import place_of, token_for
from eligo.client.owner import split_address
from eligo.user_state import state_folder

PATIENT = 5.0  # seconds within which the page must end
FIRST_PORT, PORTS = 10_240, 20_000  # below those that systems give to outgoing connections


def port_of(folder: str | os.PathLike[str]) -> int:
    """The port of a folder's pages, always the same, so that an open tab finds a later page of the folder."""
    return FIRST_PORT + zlib.crc32(os.path.realpath(folder).encode()) % PORTS


def show_page(name: str, port: int | None, browse: bool, parent: bool) -> int:
    """Serve the page of a run until the user stops it or, with a *parent*, until that has ended and readers know."""
    from eligo.pages.sources import run_folder
    from eligo.server.view.run_page import Parent, show_run

    def ready(address: str, token: str) -> None:
        _print_line(f"page: {address}#token={token}")
        if browse:
            _browse(_redirect(address, f"{address}#token={token}"))

    folder = Path(name) if parent else run_folder(name)
    ports = (port or port_of(folder), 0) if port is None or parent else (port,)
    with suppress(KeyboardInterrupt):
        show_run(folder, ports, ready, Parent(_print_line) if parent else None)
    return 0


def _print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def link_page(place: str, token_file: str | None, browse: bool) -> int:
    """Print or open the link to a server's page, with the token behind a #, which browsers never send."""
    server, workflow = split_address(full_address(place))
    token = token_for(server, token_file)
    if token is None:
        tell([
            f"warning: no token for {server} was found, so the link has none: unless the server is open, the page asks for"
            " one (give it with --token-file or ELIGO_TOKEN_FILE)"
        ])  # fmt: skip
    link = f"{server}/#" + "&".join(f"{name}={quote(value)}" for name, value in _fragment(token, workflow))
    if browse:
        _browse(_redirect(server, link))
        tell([f"page: {server}/"])
    else:
        sys.stdout.write(f"{link.removesuffix('#')}\n")
    return 0


def _fragment(token: str | None, workflow: str | None) -> list[tuple[str, str]]:
    return [(name, value) for name, value in (("token", token), ("workflow", workflow)) if value]


def _browse(address: str) -> None:
    import webbrowser  # here, because most runs open no page

    webbrowser.open(address)


def _redirect(server: str, link: str) -> str:
    """A page, readable only by this user, that redirects to the link: command lines of browsers are public."""
    path = Path(state_folder(), "pages", f"{place_of(server)}.html")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "w") as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(f'<!DOCTYPE html><meta http-equiv="refresh" content="0; url={escape(link)}">\n')
    return path.as_uri()


@contextmanager
def live_page(place: str, hold: bool, port: int | None = None) -> Iterator[None]:
    """Serve the page of a run in a process of its own, so that viewers do not slow the run.

    After the run it ends at once without readers; otherwise when they have the end, and with *hold* only at Ctrl-C.
    """
    words = [sys.executable, "-m", "eligo", "page", place, "--with-parent"]
    words += [] if port is None else ["--port", str(port)]
    # in a process group of its own: the first Ctrl-C is for the run, whose page stays
    page = subprocess.Popen(  # noqa: S603
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, process_group=0
    )
    Thread(target=_say, args=(page,), daemon=True).start()
    try:
        yield
        _wait_for_readers(page, "hold" if hold else "ended")
    finally:
        if page.stdin is not None:
            with suppress(OSError):  # it has ended before
                page.stdin.close()
        try:
            page.wait(PATIENT)
        except subprocess.TimeoutExpired:
            page.kill()
            page.wait()


def _wait_for_readers(page: "subprocess.Popen[str]", word: str) -> None:
    """Tell the page that the run has ended, and wait until it ends too or the user presses Ctrl-C."""
    with suppress(OSError, KeyboardInterrupt):
        print(word, file=page.stdin, flush=True)
        page.wait()


def _say(page: "subprocess.Popen[str]") -> None:
    """Print the address of the page, or why there is none."""
    for line in page.stdout or ():
        tell([line.strip().removeprefix("eligo: ")])
