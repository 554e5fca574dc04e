"""Engines: the systems that run tasks. One protocol, one module per engine.

| engine | tasks run as |
|---|---|
| `local` | processes on this machine; functions in threads |
| `futures` | work of any `concurrent.futures` executor of the user |
| `dask`, `ray`, `parsl` | work of such a cluster, started for the run or the user's own |
| `slurm`, `slurm-steps` | jobs in a Slurm cluster, or steps of one job |
| `htcondor` | jobs in an HTCondor pool |

`registry.engine_on` creates one by its name.
"""

from eligo.engines.jobs import Command, Ending, Engine, Function, Job, Lingering, Resizable, Work

__all__ = ["Command", "Ending", "Engine", "Function", "Job", "Lingering", "Resizable", "Work"]
