"""Parallel work over processes of this machine or over a Dask cluster, with the same results."""

import multiprocessing
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

from eligo.errors import InputError

Job = TypeVar("Job")
Answer = TypeVar("Answer")

AHEAD = 4  # jobs queued for each process, so that no process waits
ON_DASK = "dask://"
MOST_PROCESSES = 4096


@contextmanager
def workers(processes: int = 1, on: str | None = None) -> Iterator[Executor | None]:
    """The executor for the work, with several processes or a Dask cluster; None means this process.

    Processes are spawned, so they share nothing with this process on any system.
    """
    if not 1 <= processes <= MOST_PROCESSES:
        raise InputError(f"processes must be an integer from 1 to {MOST_PROCESSES:,}, got {processes}")
    if on is not None:
        if not on.startswith(ON_DASK):
            raise InputError(f"a cluster must be given as {ON_DASK}HOST:PORT, got {on!r}")
        from eligo.interop.distributed import dask_cluster

        with dask_cluster(on.removeprefix(ON_DASK)) as executor:
            yield executor
    elif processes == 1:
        yield None
    else:
        context = multiprocessing.get_context("spawn")
        executor = ProcessPoolExecutor(processes, mp_context=context, initializer=_leave_signals_alone)
        try:
            yield executor
        finally:
            executor.shutdown(wait=False, cancel_futures=True)


def _leave_signals_alone() -> None:
    """Ignore Ctrl-C in a worker process; the process that collects the results handles it and stops the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def spread(
    function: Callable[[Job], Answer], jobs: Iterable[Job], executor: Executor | None, abreast: int
) -> Iterator[Answer]:
    """Yield the result of a function for each job, as jobs finish; only a limited number are submitted at once."""
    if executor is None:
        yield from map(function, jobs)
        return
    rest = iter(jobs)
    running: set[Future[Answer]] = set()
    while True:
        running |= {executor.submit(function, job) for job in islice(rest, AHEAD * abreast - len(running))}
        if not running:
            return
        done, running = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            yield future.result()
