"""Where a server keeps its state, by name."""

import os
from importlib import import_module
from pathlib import Path
from typing import Any

from eligo.errors import InputError
from eligo.stores.database import locked
from eligo.stores.service_sql import ServiceStore
from eligo.stores.service_sqlite import SqliteServiceStore, back_up, check_file

SCHEMES = ("postgresql://", "postgres://")
ENDING = ".db"
UNKNOWN = f"{{}}: the store of a server must be FILE{ENDING} or {SCHEMES[0]}USER@HOST/DATABASE"


def service_store(where: str, address: str = "") -> ServiceStore:
    """The store at `FILE.db` or `postgresql://...`, for the server that is found at an address; see its `remark`."""
    if where.startswith(SCHEMES):
        return _postgres(where, address)
    if where.endswith(ENDING) and "://" not in where:
        return SqliteServiceStore(where, address)
    raise InputError(UNKNOWN.format(where))


def check_store(where: str) -> None:
    """Refuse a store that a server could not use; nothing is made, and nothing brought up to date."""
    if where.startswith(SCHEMES):
        _home().check_reached(where)
        return
    path = Path(where)
    if not where.endswith(ENDING) or "://" in where:
        raise InputError(UNKNOWN.format(where))
    if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
        raise InputError(f"{where}: cannot be used as the store of a server: not writable")
    if path.exists():
        os.close(locked(f"{where}.lock", f"{where}: another server is using this file"))
        check_file(where)


def back_up_store(where: str, copy: str) -> None:
    """Copy a store as of one moment, also while a server uses it."""
    if where.startswith(SCHEMES):
        store = _postgres(where, "")
        try:
            store.backup(copy)
        finally:
            store.close()
    else:
        back_up(where, copy)


def _postgres(where: str, address: str) -> ServiceStore:
    store: ServiceStore = _home().PostgresServiceStore(where, address)
    return store


def _home() -> Any:
    try:
        return import_module("eligo.stores.service_postgres")
    except ImportError:
        raise InputError('PostgreSQL needs psycopg (pip install "eligo[postgres]")') from None
