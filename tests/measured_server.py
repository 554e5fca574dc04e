"""`eligo serve` whose event loop is measured: how much processor time each of its steps took.

A step is what the loop does between two beats of a clock: the clock beats every few milliseconds, unless something holds the
loop. What is counted is the time of the loop's own thread, so that it holds on a machine that is busy with other things.
"""

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

from eligo.cli import run
from eligo.server import app
from server_faults import ServerProcess

BEAT = 0.002  # seconds
WORTH = 0.01  # seconds of a step that is told


async def _watch(place: Path) -> None:
    with place.open("a", buffering=1) as told:
        while True:
            began = time.thread_time()
            await asyncio.sleep(BEAT)
            if (spent := time.thread_time() - began) > WORTH:
                told.write(f"{spent:.4f}\n")


def _measure(place: Path) -> None:
    """Have the server of this process measured."""
    serve = app.serve

    async def measured(*given: Any) -> Any:
        watch = asyncio.create_task(_watch(place))
        try:
            return await serve(*given)
        finally:
            watch.cancel()

    app.serve = measured  # type: ignore[assignment]


class MeasuredServer(ServerProcess):
    """A real server of which is known how long the longest step was."""

    _seen = 0

    @property
    def command(self) -> list[str]:
        return [sys.executable, __file__, str(self.steps)]

    @property
    def steps(self) -> Path:
        return self.folder / "steps"

    def longest(self) -> float:
        """The seconds of processor time of the longest step since this was asked last."""
        time.sleep(0.05)  # until the last one is told
        rows = self.steps.read_text().splitlines() if self.steps.exists() else []
        new, self._seen = rows[self._seen :], len(rows)
        return max(map(float, new), default=0.0)


if __name__ == "__main__":
    _measure(Path(sys.argv[1]))
    sys.exit(run(sys.argv[2:]))
