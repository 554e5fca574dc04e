"""Stores: the durable journal of an execution, and the record of every attempt."""

from eligo.stores.database import added_names
from eligo.stores.run_reader import (
    Kept,
    Position,
    Session,
    read_facts,
    read_files,
    read_news,
    read_run,
    read_tasks,
    readable,
    under_way,
)
from eligo.stores.run_store import Store
from eligo.work.attempts import Attempt

__all__ = [
    "Attempt", "Kept", "Position", "Session", "Store", "added_names", "read_facts", "read_files", "read_news",
    "read_run", "read_tasks", "readable", "under_way",
]  # fmt: skip
