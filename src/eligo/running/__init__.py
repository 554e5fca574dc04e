"""Running: a workflow carried out for real, in the order that eligo decides, on somebody's workers."""

from eligo.running.commands import Commands
from eligo.running.folder import Resumed, RunFolder
from eligo.running.loop import Runner
from eligo.running.whole import Result, Settings, begun, carried_out, run
from eligo.work.tries import Retries

__all__ = ["Commands", "Result", "Resumed", "Retries", "RunFolder", "Runner", "Settings", "begun", "carried_out", "run"]
