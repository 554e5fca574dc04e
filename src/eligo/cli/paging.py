"""The page of a run: in a process of its own, so that whoever looks takes nothing from the run."""

import subprocess
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Thread

from eligo.cli.plans import tell

PATIENT = 5.0  # seconds that the page may take to end


def show_page(name: str, port: int, browse: bool, with_parent: bool) -> int:
    """Show a run in a browser until this is stopped."""
    from eligo.cli.seeing import run_folder
    from eligo.server.showing import show_run

    def ready(address: str) -> None:
        sys.stdout.write(f"the page is at {address}\n")
        sys.stdout.flush()
        if browse:
            webbrowser.open(address)

    with suppress(KeyboardInterrupt):
        show_run(name if with_parent else run_folder(name), port, ready, with_parent)
    return 0


@contextmanager
def shown(place: str) -> Iterator[None]:
    """The page of a run while it goes on."""
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
    """Where the page is, or why there is none."""
    for line in page.stdout or ():
        tell([line.strip().removeprefix("eligo: ")])
