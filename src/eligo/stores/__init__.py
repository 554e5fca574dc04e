"""Stores: the journal of an execution made durable, with what was seen of every attempt."""

from eligo.stores.looking import Kept, News, Session, read_facts, read_news, read_run, under_way
from eligo.stores.sqlite import Attempt, Store

__all__ = ["Attempt", "Kept", "News", "Session", "Store", "read_facts", "read_news", "read_run", "under_way"]
