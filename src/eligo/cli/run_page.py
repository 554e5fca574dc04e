"""The page of a run, or the link to that of a server."""

import os
import subprocess
import sys
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


def show_page(name: str, port: int, browse: bool, with_parent: bool) -> int:
    """Serve the page of a run until the user stops it."""
    from eligo.pages.sources import run_folder
    from eligo.server.view.run_page import show_run

    def ready(address: str) -> None:
        sys.stdout.write(f"page: {address}\n")
        sys.stdout.flush()
        if browse:
            _browse(address)

    with suppress(KeyboardInterrupt):
        show_run(name if with_parent else run_folder(name), port, ready, with_parent)
    return 0


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
def live_page(place: str) -> Iterator[None]:
    """Serve the page of a run in a process of its own, so that viewers do not slow the run."""
    words = [sys.executable, "-m", "eligo", "page", place, "--port", "0", "--with-parent"]
    page = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)  # noqa: S603
    Thread(target=_say, args=(page,), daemon=True).start()
    try:
        yield
    finally:
        if page.stdin is not None:
            page.stdin.close()
        try:
            page.wait(PATIENT)
        except subprocess.TimeoutExpired:
            page.kill()
            page.wait()


def _say(page: "subprocess.Popen[str]") -> None:
    """Print the address of the page, or why there is none."""
    for line in page.stdout or ():
        tell([line.strip().removeprefix("eligo: ")])
