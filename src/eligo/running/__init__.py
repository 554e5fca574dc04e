"""Running: a workflow carried out for real, in the order that eligo decides, on somebody's workers."""

from eligo.running.commands import Commands
from eligo.running.folder import Resumed, RunFolder
from eligo.running.loop import Runner
from eligo.running.retrying import Retries

__all__ = ["Commands", "Resumed", "Retries", "RunFolder", "Runner"]
