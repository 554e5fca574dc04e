"""Running: executes a workflow in the order that a policy chooses, on an engine's workers."""

from eligo.running.api import Result, execute, prepare_run, run
from eligo.running.commands import Commands
from eligo.running.folder import Resumed, RunFolder
from eligo.running.loop import Runner, Settings
from eligo.running.progress import Progress
from eligo.running.selection import Selection
from eligo.work.tries import Retries

__all__ = [
    "Commands", "Progress", "Result", "Resumed", "Retries", "RunFolder", "Runner", "Selection", "Settings", "execute",
    "prepare_run", "run",
]  # fmt: skip
