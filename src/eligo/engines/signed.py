"""The bytes that the owner of a workflow signs, for each of its tasks; nothing but the standard library is needed."""

import json
from collections.abc import Iterable, Mapping, Sequence

PREFIX = b"eligo task 1\n"


def signed_task(  # noqa: PLR0913  the six fields of the protocol
    workflow: str, task: str, command: str | Sequence[str] | None, *,
    inputs: Iterable[str] = (), outputs: Iterable[str] = (), environment: Mapping[str, str] | None = None,
) -> bytes:  # fmt: skip
    """What is signed of a task: `workflow` is the name that was given when it was submitted.

    >>> signed_task("survey", "a", ["sort", "x"], inputs=["x"])
    b'eligo task 1\\n{"command":["sort","x"],"environment":{},"inputs":["x"],"outputs":[],"task":"a","workflow":"survey"}'
    """
    words = {
        "command": command if command is None or isinstance(command, str) else list(command),
        "environment": dict(environment or {}),
        "inputs": sorted(inputs),
        "outputs": sorted(outputs),
        "task": task,
        "workflow": workflow,
    }
    text = json.dumps(words, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return PREFIX + text.encode("utf-8", "surrogatepass")
