"""A Dask cluster as an executor, which needs dask.distributed."""

import importlib
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

from eligo.errors import InputError

PATIENCE = "20s"  # until a scheduler must have answered


@contextmanager
def dask_cluster(address: str) -> Iterator[Executor]:
    """The cluster whose scheduler listens at HOST:PORT; files must be found there under the same names as here."""
    try:
        distributed = importlib.import_module("distributed")
    except ModuleNotFoundError:
        raise InputError("a Dask cluster needs dask.distributed (pip install 'dask[distributed]')") from None
    try:
        client = distributed.Client(f"tcp://{address}", timeout=PATIENCE)
    except (OSError, ValueError) as error:
        raise InputError(f"no Dask scheduler answers at {address}: {error}") from None
    with client:
        executor: Executor = client.get_executor(pure=False)
        yield executor
