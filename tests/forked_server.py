"""A real server forked from a process that has imported everything: it starts, and may be killed, much more often."""

import multiprocessing
import os
import sys
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from server_faults import ServerProcess

PRELOADED = [
    "eligo.cli",
    "eligo.cli.serve_verbs",
    "eligo.cli.serve_text",
    "eligo.server.app",
    "eligo.stores.service_sqlite",
]


def serve(words: list[str], log: str) -> None:
    """What the process does: the command, with what it says in a file."""
    from eligo.cli import run

    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(file, 1)
    os.dup2(file, 2)
    sys.exit(run(words))


class Forked:
    """As much of a `Popen` as tests need."""

    def __init__(self, process: ForkServerProcess) -> None:
        self._process = process

    def kill(self) -> None:
        self._process.kill()

    def wait(self) -> None:
        self._process.join()

    def poll(self) -> int | None:
        return self._process.exitcode


class ForkedServer(ServerProcess):
    """`eligo serve` as ever, but for how its process begins."""

    def __init__(self, folder: Path, *options: str) -> None:
        super().__init__(folder, *options)
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(PRELOADED)

    def begin(self) -> None:
        words = ["serve", "--store", str(self.store), "--port", str(self.port), *self.options]
        process = self._context.Process(target=serve, args=(words, str(self.folder / "server.log")))
        process.start()
        self.process = Forked(process)  # type: ignore[assignment]
