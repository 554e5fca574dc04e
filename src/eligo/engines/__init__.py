"""Engines: who runs tasks. One protocol, one module an engine.

| engine | what it is |
|---|---|
| `local` | processes on this machine; functions in threads |
| `futures` | any `concurrent.futures` executor of the user's |
| `dask`, `ray`, `parsl` | a cluster of these, the run's own or the user's |
| `slurm`, `slurm-steps` | jobs in a Slurm cluster, or steps of one job |
| `htcondor` | jobs in an HTCondor pool |

`registry.engine_on` makes one by its name.
"""

from eligo.engines.jobs import Command, Ending, Engine, Function, Job, Lingering, Work

__all__ = ["Command", "Ending", "Engine", "Function", "Job", "Lingering", "Work"]
