"""Stores: the journal of an execution made durable, with what was seen of every attempt."""

from eligo.stores.looking import Kept, Session, read_facts, read_run, under_way
from eligo.stores.sqlite import Attempt, Store

__all__ = ["Attempt", "Kept", "Session", "Store", "read_facts", "read_run", "under_way"]
