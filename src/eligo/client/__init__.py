"""The client: requests tasks from a server, runs them within limits, and delivers the results despite failures.

| part | module |
|---|---|
| options and token | `options` |
| calls to the server, files to and from it | `calls`, `transfers` |
| the tasks that the server assigns | `assignment` |
| scratch folders; cores, limits and sandboxes; signatures | `scratch`, `sandbox`, `trust` |
| the tasks of a grant, and their processes | `task_run`, `task_sessions` |
| leases and results, and their storage until the server has them | `results`, `folder` |
| enrolment at a server | `enrolment` |
| the loop | `worker` |

It needs only Python; checking signatures also needs the package cryptography, if trusted keys are given.
"""
