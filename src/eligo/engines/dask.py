"""A Dask cluster: one of the run's own on this machine, or somebody's by its scheduler's address.

What Dask does: on a cluster of the run's own, jobs are given to its workers without Dask's scheduler, which would do nothing
but pass them on. On somebody's they are tasks like all others there, so that workers are shared as that cluster shares them;
of those that wait, the first by priority is begun first. A worker that dies is replaced; what it ran is lost, at once on an
own cluster, and elsewhere after as many deaths as the cluster's `allowed-failures` says. Cancelled commands are stopped on
every worker's machine; a function that runs goes on to its end. Cores and memory are counted here, over the whole cluster:
Dask itself is told nothing of them. Workers need the same version of Python, and eligo.
"""

import asyncio
import importlib
import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

from eligo.engines.futures import SOON, FutureEngine, Out
from eligo.engines.job_run import MARK, Brought, Performed, perform
from eligo.engines.jobs import Function, Job, Work
from eligo.engines.registry import Wanted, absent
from eligo.engines.strays import die_with_parent, signal_marked
from eligo.errors import InputError

PATIENCE = "10s"  # until a scheduler must have answered
GATHERING = 0.001  # seconds between two messages to a scheduler; Dask's own ten would keep workers waiting


class DaskEngine(FutureEngine):
    """Jobs as tasks of a Dask cluster."""

    def __init__(self, wanted: Wanted) -> None:
        self._distributed = _package()
        self._own: Any = None if wanted.address else _cluster(self._distributed, wanted.slots)
        self._client = _client(self._distributed, wanted.address or self._own)
        slots = wanted.workers or sum(self._client.nthreads().values())
        if not slots:
            self.free()
            raise InputError(f"no worker is connected to the Dask scheduler at {wanted.address}").cured_by("workers")
        limits = self._memory_limits()
        super().__init__(self._sent, slots, "dask", wanted.room(slots, sum(limits) if limits else None))
        if wanted.address and limits:
            self.largest = float(max(limits))
        elif wanted.address:
            unlimited = f"the Dask workers at {wanted.address} state no memory limit"
            self.unheeded = (f"{unlimited}: the memory requests of tasks are ignored",)
        self._busy = set[str]()  # own workers that have something to do, or are gone
        #: where the scheduler is to be found
        self.address = str(self._client.scheduler.address)

    def _memory_limits(self) -> list[int]:
        """The bytes that each worker of the cluster may have; none where one of them does not say."""
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        limits = [worker.get("memory_limit") for worker in workers]
        return limits if all(limits) else []

    def _sent(self, job: Job, mark: str) -> "Future[Brought]":
        work = self._queued(job, mark) if self._own is None else self._send_to_idle_worker(job, mark)
        return asyncio.run_coroutine_threadsafe(work, self._client.loop.asyncio_loop)

    async def _queued(self, job: Job, mark: str) -> list[Performed]:
        """As a task of the cluster."""
        client = self._client
        there = client.submit(
            perform_packed,
            job.works,
            job.timeout,
            mark,
            key=f"eligo-{mark}",
            priority=job.priority,
            retries=0,
            pure=False,
        )
        return _unpacked(await client.gather(there, asynchronous=True))

    async def _send_to_idle_worker(self, job: Job, mark: str) -> list[Performed]:
        """To a worker that is idle; whoever does not wait any more leaves it busy until it is not."""
        while not (idle := self._own.scheduler.workers.keys() - self._busy):
            await asyncio.sleep(SOON)
        worker = idle.pop()
        self._busy.add(worker)
        asked = asyncio.ensure_future(self._client.run(perform_there, job.works, job.timeout, mark, workers=[worker]))
        asked.add_done_callback(partial(self._note_idle, worker))
        return _unpacked((await asyncio.shield(asked))[worker])

    def _note_idle(self, worker: str, asked: "asyncio.Future[Any]") -> None:
        """A worker is idle again, unless it is gone: then another comes by another address."""
        if asked.cancelled() or not isinstance(asked.exception(), OSError):
            self._busy.discard(worker)

    def withdraw(self, out: Out) -> None:
        """What an own worker has been given it tells of, and soon where it is commands, which are stopped."""
        if self._own is None or any(isinstance(work, Function) for work in out.job.works):
            super().withdraw(out)

    def is_loss(self, error: BaseException) -> bool:
        """See `FutureEngine`."""
        loss_types = (self._distributed.scheduler.KilledWorker, self._distributed.CancelledError, OSError)
        return super().is_loss(error) or isinstance(error, loss_types)

    def signal(self, outs: Sequence[Out], number: int) -> int:
        """On every machine of the cluster."""
        if self._own is not None:
            return super().signal(outs, number)
        counts = self._client.run(signal_marked, MARK, [out.mark for out in outs], number, on_error="ignore")
        return sum(counts.values())

    def free(self) -> None:
        """Let go of the client, and of an own cluster."""
        self._client.close()
        if self._own is not None:
            self._own.close()


def _unpacked(packed: bytes) -> list[Performed]:
    performed: list[Performed] = _pickling().loads(packed)
    return performed


async def perform_there(works: tuple[Work, ...], timeout: float | None, mark: str, dask_worker: Any) -> bytes:
    """What a worker does with a job that it was given: the same, where it runs its tasks."""
    run = asyncio.get_running_loop().run_in_executor
    return await run(dask_worker.executors["default"], perform_packed, works, timeout, mark)


def perform_packed(works: tuple[Work, ...], timeout: float | None, mark: str) -> bytes:
    """What a worker does. Results are packed here: Dask fetches many at once, and one that cannot be sent would fail all."""
    performed, dumps = perform(works, timeout, mark), _pickling().dumps
    try:
        packed: bytes = dumps(performed)
    except Exception:
        packed = dumps(list(_up_to_unsendable(performed)))
    return packed


def _up_to_unsendable(performed: list[Performed]) -> Iterator[Performed]:
    for each in performed:
        try:
            _pickling().dumps(each)
        except Exception as error:
            yield each._replace(value=None, failure=f"{type(error).__name__}: {error}"[:1000])
            return
        yield each


def _pickling() -> Any:
    """What Dask itself packs with."""
    return importlib.import_module("cloudpickle")


def _package() -> Any:
    try:
        return importlib.import_module("distributed")
    except ModuleNotFoundError:
        raise absent("dask.distributed", "dask") from None


def _cluster(distributed: Any, workers: int) -> Any:
    """Workers of one thread each, that listen on this machine only."""
    dask = importlib.import_module("dask")
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        return distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            worker_dashboard_address="127.0.0.1:0",
            memory_limit=0,
            silence_logs=logging.CRITICAL,
            preload=[__name__],
        )


def dask_setup(worker: object) -> None:
    """What Dask calls when an own worker begins: the worker dies with the process that began it.

    Dask's own watch for that needs the worker to get to run, and until then it could begin a task beside the next dispatcher.
    """
    die_with_parent()


def _client(distributed: Any, where: Any) -> Any:
    try:
        client = distributed.Client(where, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot connect to the Dask scheduler at {where}: {error}") from None
    client.scheduler_comm.interval = GATHERING
    return client


def engine(wanted: Wanted) -> DaskEngine:
    """One that runs on a Dask cluster."""
    return DaskEngine(wanted)
