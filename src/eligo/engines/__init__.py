"""Engines: who runs tasks. One protocol, one module an engine.

| engine | what it is |
|---|---|
| `local` | processes on this machine; functions in threads |
| `executor` | any `concurrent.futures` executor of the user's |
"""

from eligo.engines.jobs import Call, Command, Engine, Job, Outcome, Work

__all__ = ["Call", "Command", "Engine", "Job", "Outcome", "Work"]
