"""Engines: who runs tasks. One protocol, one module an engine.

| engine | what it is |
|---|---|
| `local` | processes on this machine; functions in threads |
| `executor` | any `concurrent.futures` executor of the user's |
| `slurm` | jobs in a Slurm cluster |
| `slurm_steps` | steps of one job in a Slurm cluster |
| `htcondor` | jobs in an HTCondor pool |
"""

from eligo.engines.jobs import Command, Ending, Engine, Function, Job, Lingering, Work

__all__ = ["Command", "Ending", "Engine", "Function", "Job", "Lingering", "Work"]
