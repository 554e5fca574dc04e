"""A Dask cluster: the run's own on this machine, or an existing one by its scheduler's address.

On its own cluster, the run sends jobs directly to workers, because Dask's scheduler would only pass them on. On an existing
cluster, jobs are ordinary tasks, so that the cluster's rules for sharing apply; among waiting jobs, the highest priority
starts first. A worker that dies is replaced, and its job is lost: at once on its own cluster, elsewhere after as many
deaths as `allowed-failures` says. Cancelled commands are stopped on every worker's machine; a running function continues to
its end. Cores and memory are counted here for the whole cluster; Dask does not know of them. Workers need the same version
of Python, and eligo.
"""

import asyncio
import importlib
import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

from eligo.engines.futures import SOON, FutureEngine, Out
from eligo.engines.job_run import MARK, ResultPayload, perform
from eligo.engines.jobs import Function, Job, Work
from eligo.engines.registry import Wanted, package_of
from eligo.engines.sessions import die_with_parent, signal_marked
from eligo.engines.worker import Performed
from eligo.errors import InputError

PATIENCE = "10s"  # time limit for the scheduler's first answer
#: seconds between two messages to a scheduler; Dask's default of ten milliseconds would keep workers waiting
GATHERING = 0.001
#: seconds after which a worker whose connection broke, and that Dask still lists, is not dead
DYING = 2.0


class DaskEngine(FutureEngine):
    """Runs jobs as tasks of a Dask cluster."""

    def __init__(self, wanted: Wanted) -> None:
        self._distributed = package_of("distributed", "dask.distributed", "dask")
        self._own: Any = None if wanted.address else _cluster(self._distributed, wanted.slots)
        self._client = _client(self._distributed, wanted.address or self._own)
        slots = wanted.workers or sum(self._client.nthreads().values())
        if not slots:
            self.free()
            raise InputError(f"no worker is connected to the Dask scheduler at {wanted.address}").cured_by("workers")
        limits = self._memory_limits()
        super().__init__(self._submit_job, slots, "dask", wanted.room(slots, sum(limits) if limits else None))
        if wanted.address and limits:
            self.largest = float(max(limits))
        elif wanted.address:
            unlimited = f"the Dask workers at {wanted.address} state no memory limit"
            self.unheeded = (f"{unlimited}: the memory requests of tasks are ignored",)
        self._busy = set[str]()  # own workers that are busy or dead
        self._restarts = set[asyncio.Future[Any]]()  # kept, since the event loop does not
        #: the scheduler's address
        self.address = str(self._client.scheduler.address)

    def _memory_limits(self) -> list[int]:
        """The memory limit of each worker in bytes; empty if one has none."""
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        limits = [worker.get("memory_limit") for worker in workers]
        return limits if all(limits) else []

    def _submit_job(self, job: Job, mark: str) -> "Future[ResultPayload]":
        work = self._submit_to_cluster(job, mark) if self._own is None else self._send_to_idle_worker(job, mark)
        return asyncio.run_coroutine_threadsafe(work, self._client.loop.asyncio_loop)

    async def _submit_to_cluster(self, job: Job, mark: str) -> list[Performed]:
        """Run a job as a task of the cluster."""
        how = {"key": f"eligo-{mark}", "priority": job.priority, "retries": 0, "pure": False}
        there = self._client.submit(perform_packed, job.works, job.timeout, mark, **how)
        return _unpack(await self._client.gather(there, asynchronous=True))

    async def _send_to_idle_worker(self, job: Job, mark: str) -> list[Performed]:
        """Run a job on an idle worker; if the caller stops waiting, the worker stays busy until the job ends."""
        while not (idle := self._own.scheduler.workers.keys() - self._busy):
            await asyncio.sleep(SOON)
        worker = idle.pop()
        self._busy.add(worker)
        asked = asyncio.ensure_future(self._client.run(perform_there, job.works, job.timeout, mark, workers=[worker]))
        asked.add_done_callback(partial(self._note_idle, worker))
        return _unpack((await asyncio.shield(asked))[worker])

    def _note_idle(self, worker: str, asked: "asyncio.Future[Any]") -> None:
        """Mark a worker as idle; one that is dead or cannot be reached is replaced by one with another address."""
        if asked.cancelled() or not isinstance(asked.exception(), OSError):
            self._busy.discard(worker)
        else:
            self._restarts.add(asyncio.ensure_future(self._replace(worker)))

    async def _replace(self, worker: str) -> None:
        """Restart a worker that cannot be reached; Dask replaces a dead one by itself."""
        await asyncio.sleep(DYING)
        if worker in self._own.scheduler.workers:
            await self._own.scheduler.restart_workers(
                [worker], wait_for_workers=False, on_error="return", stimulus_id="eligo-unreachable"
            )

    def withdraw(self, out: Out) -> None:
        """Withdraw a job; commands on own workers are stopped instead, and report their end."""
        if self._own is None or any(isinstance(work, Function) for work in out.job.works):
            super().withdraw(out)

    def is_loss(self, error: BaseException) -> bool:
        """See `FutureEngine`."""
        loss_types = (self._distributed.scheduler.KilledWorker, self._distributed.CancelledError, OSError)
        return super().is_loss(error) or isinstance(error, loss_types)

    def signal(self, outs: Sequence[Out], number: int) -> int:
        """Signal processes on every machine of the cluster."""
        if self._own is not None:
            return super().signal(outs, number)
        counts = self._client.run(signal_marked, MARK, [out.mark for out in outs], number, on_error="ignore")
        return sum(counts.values())

    def free(self) -> None:
        """Close the client, and the run's own cluster."""
        self._client.close()
        if self._own is not None:
            self._own.close()


def _unpack(packed: bytes) -> list[Performed]:
    performed: list[Performed] = _pickling().loads(packed)
    return performed


async def perform_there(works: tuple[Work, ...], timeout: float | None, mark: str, dask_worker: Any) -> bytes:
    """Run a job directly on a worker, in its executor."""
    run = asyncio.get_running_loop().run_in_executor
    return await run(dask_worker.executors["default"], perform_packed, works, timeout, mark)


def perform_packed(works: tuple[Work, ...], timeout: float | None, mark: str) -> bytes:
    """Run a job, and pickle its results: Dask fetches many at once, and one that cannot be pickled would fail all."""
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
    """The pickler that Dask uses."""
    return importlib.import_module("cloudpickle")


def _cluster(distributed: Any, workers: int) -> Any:
    """Single-threaded workers that listen only on this machine."""
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
    """A preload hook of the run's own workers, called by Dask: the worker dies with the process that started it.

    Dask's own check runs only once the worker gets CPU time; until then it could start a task beside the next dispatcher.
    """
    die_with_parent()


def _client(distributed: Any, where: Any) -> Any:
    try:
        client = distributed.Client(where, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise InputError(f"cannot connect to the Dask scheduler at {where}: {error}") from None
    client.scheduler_comm.interval = GATHERING
    return client


engine = DaskEngine  # as the registry calls it
