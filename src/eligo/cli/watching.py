"""A run while it goes on: one line that is written again where somebody watches, a line now and then in logs and pipes."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from eligo.cli.finishes import lasting
from eligo.running import Runner

OFTEN, SELDOM = 0.2, 30.0  # seconds between lines for people and for logs


@contextmanager
def watching(runner: Runner, stream: TextIO) -> Iterator[None]:
    """Tell how the run goes on while it does."""
    began, last = time.monotonic(), [time.monotonic()]
    live = stream.isatty()
    every = OFTEN if live else SELDOM

    def watch(now_running: Runner) -> None:
        now = time.monotonic()
        if now - last[0] >= every:
            last[0] = now
            line = progress(now_running, now - began)
            stream.write(f"\r\x1b[K{line}" if live else f"eligo: {line}\n")
            stream.flush()

    runner.watch = watch
    yield
    if live:
        stream.write("\r\x1b[K")


def progress(runner: Runner, seconds: float) -> str:
    """Where a run stands, in one line."""
    game = runner.execution
    parts = [
        f"{len(game.executed):,} of {len(game.dag):,} done",
        f"{len(game.allocated):,} running",
        f"{len(game.eligible):,} ready",
    ]
    if game.failed:
        parts.append(f"{len(game.failed):,} failed")
    return f"{', '.join(parts)}, {lasting(seconds)}"
