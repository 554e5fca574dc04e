"""A Ray cluster: the run's own on this machine, or an existing one by its address ("auto": the one that runs here).

Ray has no priorities, so it gets only jobs that can start, and one more per slot while tasks are brief. Ray receives the
cores and memory of tasks and enforces them on each machine; they are also counted here. A worker that dies is replaced, and
its job is lost. Cancelled commands are stopped and functions interrupted on every machine; jobs that have not started never
start. Workers need the same versions of Python and Ray, and eligo.
"""

import logging
import signal
from collections.abc import Sequence
from concurrent.futures import Future
from functools import lru_cache
from typing import Any

from eligo.engines.futures import FutureEngine, Out
from eligo.engines.job_run import ResultPayload, perform_sent, to_payload
from eligo.engines.jobs import Job
from eligo.engines.registry import Wanted, package_of
from eligo.engines.sessions import POOL, end_marked, marking
from eligo.errors import InputError
from eligo.work.demands import CORES, GPUS, MEMORY


class RayEngine(FutureEngine):
    """Runs jobs as remote functions of Ray."""

    def __init__(self, wanted: Wanted) -> None:
        self._ray = ray = package_of("ray", "ray", "ray")
        self._joined = ray.is_initialized()  # the user's own session, which is not shut down
        if not self._joined:
            _begin(ray, wanted)
        resources = ray.cluster_resources()
        cores, memory = resources.get("CPU", 0.0), resources.get("memory")
        slots = wanted.workers or int(cores)
        if not slots:
            self.free()
            raise InputError(f"the Ray cluster at {wanted.address} has no cores")
        room = wanted.room(cores, None if memory is None else int(memory), {GPUS: resources.get("GPU", 0.0)})
        super().__init__(self._submit_job, slots, "ray", room, ahead=slots)
        self.largest = max(node["Resources"].get("memory", 0.0) for node in ray.nodes() if node["Alive"])
        self._remote = lru_cache(maxsize=1024)(self._remote_for)

    def _remote_for(self, cores: float, memory: float, gpus: float) -> Any:
        """The remote function that runs a job with these needs."""
        room = {} if not memory else {"memory": int(memory)}
        return self._ray.remote(num_cpus=cores, num_gpus=gpus, max_retries=0, **room)(perform_sent)

    def _submit_job(self, job: Job, mark: str) -> "Future[ResultPayload]":
        share = self.room.share(job.demand)
        remote = self._remote(share[CORES], share[MEMORY], share.get(GPUS, 0.0))
        future: Future[ResultPayload] = remote.remote(to_payload(job, mark)).future()
        return future

    def is_loss(self, error: BaseException) -> bool:
        """See `FutureEngine`; includes Ray's own errors, except errors of tasks."""
        errors = self._ray.exceptions
        own = isinstance(error, errors.RayError) and not isinstance(error, errors.RayTaskError)
        return own or super().is_loss(error)

    def withdraw(self, out: Out) -> None:
        """Do nothing: Ray cancels waiting jobs and reports it."""

    def signal(self, outs: Sequence[Out], number: int) -> int:
        """Signal processes here; Ray interrupts those on other machines, which ends their commands."""
        for out in outs if number else ():
            self._ray.cancel(out.future.object_ref)  # type: ignore[attr-defined]
        return super().signal(outs, number)

    def free(self) -> None:
        """Shut Ray down, unless it is the user's own session."""
        if not self._joined:
            self._ray.shutdown()


def _begin(ray: Any, wanted: Wanted) -> None:
    """Join a cluster, or start one here; signal handlers are restored."""
    if wanted.address is None:
        end_marked(POOL, wanted.mark)  # Ray's processes outlive their parent
    own = {"num_cpus": wanted.slots, "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    if GPUS in wanted.resources:
        own["num_gpus"] = wanted.resources[GPUS]
    if wanted.memory is not None:
        own["_memory"] = wanted.memory  # by default Ray would subtract the memory in use now
    place = own if wanted.address is None else {"address": wanted.address}
    before = signal.getsignal(signal.SIGTERM)
    try:
        with marking(POOL, wanted.mark if wanted.address is None else ""):
            ray.init(**place, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise InputError(f"cannot connect to a Ray cluster at {wanted.address or 'this machine'}: {error}") from None
    finally:
        signal.signal(signal.SIGTERM, before)


engine = RayEngine  # as the registry calls it
