"""Parsl with its own order and with eligo's: real workflows as sleeps.

`python -m benchmarks.plugins_parsl FILE ...` takes files of workflows whose seconds are known.
"""

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

import parsl

import eligo
from benchmarks.plugins_dask import WORKERS, Tasks, nap, rehearse
from eligo.plugins.parsl import ParslPriorities


def parsl_seconds(tasks: Tasks, way: str) -> float:
    """The makespan of one run, from the first call of an app to the end of the last, on workers that are already running."""
    pool = parsl.HighThroughputExecutor(
        label="pool",
        address="127.0.0.1",
        max_workers_per_node=WORKERS,
        cores_per_worker=1e-6,
        prefetch_capacity=0,
        provider=parsl.providers.LocalProvider(init_blocks=1, min_blocks=1, max_blocks=1),  # type: ignore[no-untyped-call]
    )
    with tempfile.TemporaryDirectory() as folder:
        config = parsl.Config(executors=[pool], run_dir=folder, strategy="none", initialize_logging=False)
        with parsl.DataFlowKernel(config) as kernel:
            app = parsl.python_app(nap, data_flow_kernel=kernel)
            for future in [app(0.5) for _ in range(WORKERS)]:
                future.result()
            if way == "plug-in":
                ParslPriorities(kernel)
            begin = time.perf_counter()
            futures = dict[str, Any]()
            for name in eligo.priorities({name: needs for name, (_, _, needs) in tasks.items()}, "fifo"):
                _, seconds, needs = tasks[str(name)]
                futures[str(name)] = app(seconds, *(futures[parent] for parent in needs))
            for future in futures.values():
                future.result()
            return time.perf_counter() - begin


def run(files: Sequence[str] = ()) -> None:
    """Print the figures."""
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # for the workers
    os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    rehearse(files, "Parsl", ("by itself", "plug-in"), parsl_seconds)


if __name__ == "__main__":
    run(sys.argv[1:])
