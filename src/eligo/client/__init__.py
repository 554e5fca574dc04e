"""The client: asks a server for tasks, runs them within limits, and delivers what came of them, whoever fails meanwhile.

| notion | where |
|---|---|
| what it is told when it starts | `options` |
| calls to the server, files to and from it | `calls`, `transfers` |
| what the server hands out | `assignment` |
| scratch folders, limits and sandboxes, signatures | `scratch`, `sandbox`, `trust` |
| the tasks of a grant | `task_run` |
| results, and what is kept of them until they have arrived | `results`, `folder` |
| leases and cores | `leases` |
| becoming known to a server | `enrolment` |
| the loop | `worker` |

It needs Python and nothing else; signatures are checked with the package cryptography, where keys to trust are given.
"""

from eligo.client.options import WorkOptions
from eligo.client.results import Tally
from eligo.client.worker import work

__all__ = ["Tally", "WorkOptions", "work"]
