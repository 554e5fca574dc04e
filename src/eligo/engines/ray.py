"""A Ray cluster: one of the run's own on this machine, or somebody's by its address ("auto": the one that runs here).

What Ray does: it has no priorities, so it gets only what it can begin, and one task more a slot while tasks are brief. Cores
and memory are told to Ray, which keeps to them on each machine; they are counted here too. A worker that dies is replaced,
and what it ran is lost. Cancelled commands are stopped, and functions are interrupted, wherever they run; what has not begun
does not. Workers need the same versions of Python and Ray, and eligo.
"""

import importlib
import logging
import signal
from collections.abc import Sequence
from concurrent.futures import Future
from functools import lru_cache
from typing import Any

from eligo.engines.futures import FutureEngine, Out
from eligo.engines.job_run import Brought, perform_sent, sent
from eligo.engines.jobs import Job
from eligo.engines.registry import Wanted, absent
from eligo.engines.strays import POOL, end_marked, marking
from eligo.errors import InputError


class RayEngine(FutureEngine):
    """Jobs as remote functions of Ray."""

    def __init__(self, wanted: Wanted) -> None:
        self._ray = ray = _package()
        self._joined = ray.is_initialized()  # the user's own session, which stays
        if not self._joined:
            _begin(ray, wanted)
        resources = ray.cluster_resources()
        cores, memory = resources.get("CPU", 0.0), resources.get("memory")
        slots = wanted.workers or int(cores)
        if not slots:
            self.free()
            raise InputError(f"the Ray cluster at {wanted.address} has no cores")
        super().__init__(
            self._sent, slots, "ray", wanted.room(cores, None if memory is None else int(memory)), ahead=slots
        )
        self.largest = max(node["Resources"].get("memory", 0.0) for node in ray.nodes() if node["Alive"])
        self._remote = lru_cache(maxsize=1024)(self._remote_for)

    def _remote_for(self, cores: float, memory: float) -> Any:
        """The function that runs a job, for tasks that need so much."""
        room = {} if not memory else {"memory": int(memory)}
        return self._ray.remote(num_cpus=cores, max_retries=0, **room)(perform_sent)

    def _sent(self, job: Job, mark: str) -> "Future[Brought]":
        remote = self._remote(*self.room.share(job.cores, job.memory))
        future: Future[Brought] = remote.remote(sent(job, mark)).future()
        return future

    def is_loss(self, error: BaseException) -> bool:
        """See `FutureEngine`: all that Ray says of itself, and not of the task."""
        errors = self._ray.exceptions
        own = isinstance(error, errors.RayError) and not isinstance(error, errors.RayTaskError)
        return own or super().is_loss(error)

    def withdraw(self, out: Out) -> None:
        """Ray's own word is waited for: it cancels what waits, and says so."""

    def signal(self, outs: Sequence[Out], number: int) -> int:
        """Those on other machines are interrupted by Ray, which ends their commands."""
        for out in outs if number else ():
            self._ray.cancel(out.future.object_ref)  # type: ignore[attr-defined]
        return super().signal(outs, number)

    def free(self) -> None:
        """Let go of Ray, where it is not the user's own session."""
        if not self._joined:
            self._ray.shutdown()


def _package() -> Any:
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError:
        raise absent("ray", "ray") from None


def _begin(ray: Any, wanted: Wanted) -> None:
    """Join a cluster, or begin one here; what signals do is left as it was."""
    if wanted.address is None:
        end_marked(POOL, wanted.mark)  # Ray's processes outlive whoever began them
    own = {"num_cpus": wanted.slots, "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    if wanted.memory is not None:
        own["_memory"] = wanted.memory  # which Ray would take for less, as some is in use now
    place = own if wanted.address is None else {"address": wanted.address}
    before = signal.getsignal(signal.SIGTERM)
    try:
        with marking(POOL, wanted.mark if wanted.address is None else ""):
            ray.init(**place, log_to_driver=False, logging_level=logging.ERROR, configure_logging=False)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise InputError(f"cannot connect to a Ray cluster at {wanted.address or 'this machine'}: {error}") from None
    finally:
        signal.signal(signal.SIGTERM, before)


def engine(wanted: Wanted) -> RayEngine:
    """One that runs on Ray."""
    return RayEngine(wanted)
