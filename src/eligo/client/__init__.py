"""The client: asks a server for tasks, runs them within limits, and delivers what came of them, whoever fails meanwhile.

| notion | where |
|---|---|
| what it is told when it starts | `options` |
| calls to the server, files to and from it | `calling`, `transferring` |
| what the server hands out | `assigned` |
| scratch folders, limits and sandboxes, signatures | `scratch`, `sandboxing`, `trusting` |
| the tasks of a grant | `doing` |
| results, and what is kept of them until they have arrived | `delivering`, `keeping` |
| leases and cores | `holding` |
| becoming known to a server | `enrolling` |
| the loop | `working` |

It needs Python and nothing else; signatures are checked with the package cryptography, where keys to trust are given.
"""

from eligo.client.delivering import Tally
from eligo.client.options import WorkOptions
from eligo.client.working import work

__all__ = ["Tally", "WorkOptions", "work"]
