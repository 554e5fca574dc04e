"""Stores: the journal of an execution made durable, with what was seen of every attempt."""

from eligo.stores.sqlite import Attempt, Store, read_facts

__all__ = ["Attempt", "Store", "read_facts"]
