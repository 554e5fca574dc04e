"""Parsl's high-throughput executor on this machine: an interchange with a priority queue, and a pool of workers.

Jobs that wait at the interchange start by priority; workers fetch nothing in advance. A worker that dies is replaced, and
its job is lost. Cores and memory are counted here; Parsl does not know of them. While tasks are brief, one more job per slot
waits at the interchange. Cancelled commands are stopped; a running function continues to its end. A worker still fetches a
job that was cancelled while it waited, finds its mark in a folder, and skips it. Parsl writes its logs to a folder of the
run.
"""

import importlib
import os
import shlex
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import ExitStack
from functools import partial
from typing import Any

from eligo.engines.futures import FutureEngine, Out
from eligo.engines.job_run import Payload, ResultPayload, perform_sent, to_payload, withdrawn_result
from eligo.engines.jobs import Job
from eligo.engines.registry import Wanted, package_of
from eligo.engines.sessions import POOL, end_marked

LABEL = "eligo"
HEARTBEAT, SILENCE = 1, 30  # seconds between heartbeats of workers, and until a silent pool counts as dead
PERIOD = 1  # seconds between checks whether the pool exists
#: runs a program that dies with its parent: the interchange overwrites its environment, including marks
MORTAL = [
    sys.executable,
    "-c",
    "import os, sys; from eligo.engines import sessions; sessions.die_with_parent(); os.execv(sys.argv[1], sys.argv[1:])",
]


class ParslEngine(FutureEngine):
    """Runs jobs as apps of Parsl."""

    def __init__(self, wanted: Wanted) -> None:
        self._parsl, slots = package_of("parsl", "parsl", "parsl"), wanted.own().slots
        with ExitStack() as stack:
            folder = wanted.scratch or stack.enter_context(tempfile.TemporaryDirectory(prefix="eligo-parsl-"))
            end_marked(POOL, wanted.mark)  # Parsl's processes outlive their parent
            self._kernel = _kernel(self._parsl, slots, folder, wanted.mark)
            stack.callback(self._kernel.cleanup)
            self._fence = stack.enter_context(tempfile.TemporaryDirectory(prefix="withdrawn-", dir=folder))
            self._held = stack.pop_all()
        self._app = self._parsl.python_app(perform_here, data_flow_kernel=self._kernel, executors=[LABEL])
        super().__init__(self._submit_job, slots, "parsl", wanted.room(slots), ahead=slots)

    def _submit_job(self, job: Job, mark: str) -> "Future[ResultPayload]":
        place = {"priority": -job.priority}  # smaller numbers go first
        fence = os.path.join(self._fence, mark)
        payload = _by_value(to_payload(job, mark))
        future: Future[ResultPayload] = self._app(payload, fence, parsl_resource_specification=place)
        return future

    def withdraw(self, out: Out) -> None:
        """Withdraw a job by a file with its mark: Parsl cancels nothing, but the worker then skips the job."""
        with open(os.path.join(self._fence, out.mark), "xb"):
            pass

    def is_loss(self, error: BaseException) -> bool:
        """See `FutureEngine`."""
        errors = importlib.import_module("parsl.executors.high_throughput.errors")
        return super().is_loss(error) or isinstance(error, (errors.WorkerLost, errors.ManagerLost))

    def free(self) -> None:
        """Stop Parsl's processes."""
        self._held.close()


def perform_here(
    payload: bytes | Callable[[], Payload], fence: str, parsl_resource_specification: object = None
) -> ResultPayload:
    """Run a job on a worker, unless the file *fence* exists. Parsl passes the last argument."""
    if os.path.exists(fence):
        return [withdrawn_result()]
    return perform_sent(payload if isinstance(payload, bytes) else payload())


def _by_value(payload: Payload) -> bytes | Callable[[], Payload]:
    """The payload with functions pickled by value; Parsl before 2026 would refer to the script, which workers do not have."""
    if isinstance(payload, bytes):
        return payload
    dill = importlib.import_module("dill")  # a dependency of Parsl
    return partial(dill.loads, dill.dumps(payload))


def _kernel(parsl: Any, workers: int, folder: str, mark: str) -> Any:
    """Worker processes that listen only on this machine, and have the mark in their environment."""
    marking = ["env", f"{POOL}={mark}"] if mark else []
    programs = os.path.dirname(sys.executable)  # which may not be on the PATH
    launching = importlib.import_module("parsl.executors.high_throughput.executor")
    pool = parsl.HighThroughputExecutor(
        label=LABEL,
        address="127.0.0.1",
        max_workers_per_node=workers,
        cores_per_worker=1e-6,
        prefetch_capacity=0,
        heartbeat_period=HEARTBEAT,
        heartbeat_threshold=SILENCE,
        launch_cmd=" ".join([*marking, shlex.quote(f"{programs}/") + launching.DEFAULT_LAUNCH_CMD]),
        interchange_launch_cmd=[*MORTAL, *(f"{programs}/{word}" for word in launching.DEFAULT_INTERCHANGE_LAUNCH_CMD)],
        provider=parsl.providers.LocalProvider(init_blocks=1, min_blocks=1, max_blocks=1),
    )
    how = {"strategy": "simple", "strategy_period": PERIOD, "initialize_logging": False}
    return parsl.DataFlowKernel(parsl.Config(executors=[pool], run_dir=folder, **how))


engine = ParslEngine  # as the registry calls it
