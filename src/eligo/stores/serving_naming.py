"""Where a server keeps its state, by name."""

from importlib import import_module

from eligo.errors import InputError
from eligo.stores.serving import ServiceStore
from eligo.stores.serving_sqlite import SqliteServiceStore, back_up

SCHEMES = ("postgresql://", "postgres://")
ENDING = ".db"


def service_store(where: str, address: str = "") -> ServiceStore:
    """The store at `FILE.db` or `postgresql://...`, for the server that is found at an address; see its `remark`."""
    if where.startswith(SCHEMES):
        return _postgres(where, address)
    if where.endswith(ENDING) and "://" not in where:
        return SqliteServiceStore(where, address)
    raise InputError(f"{where}: a server keeps its state in FILE{ENDING} or in {SCHEMES[0]}USER@HOST/DATABASE")


def back_up_store(where: str, copy: str) -> None:
    """A copy of a store as of one moment, also while a server is at it."""
    if where.startswith(SCHEMES):
        store = _postgres(where, "")
        try:
            store.backup(copy)
        finally:
            store.close()
    else:
        back_up(where, copy)


def _postgres(where: str, address: str) -> ServiceStore:
    try:
        home = import_module("eligo.stores.serving_postgres")
    except ImportError:
        raise InputError('PostgreSQL needs psycopg: pip install "eligo[postgres]"') from None
    store: ServiceStore = home.PostgresServiceStore(where, address)
    return store
