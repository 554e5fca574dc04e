"""Stores: the journal of an execution made durable, with what was seen of every attempt."""

from eligo.stores.database import readable
from eligo.stores.looking import Kept, News, Position, Session, read_facts, read_news, read_run, read_tasks, under_way
from eligo.stores.sqlite import Attempt, Store

__all__ = [
    "Attempt", "Kept", "News", "Position", "Session", "Store", "read_facts", "read_news", "read_run", "read_tasks",
    "readable", "under_way",
]  # fmt: skip
