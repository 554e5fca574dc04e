"""What a run shows that has ended, or has come so far: why tasks failed, and which ones decided when it ended."""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from eligo.running.seen import Seen
from eligo.stores import Attempt

_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+")


@dataclass
class Cause:
    """Tasks that failed in the same way: with the same words, and the same last line but for its numbers."""

    failure: str
    #: the last lines that the first of them printed, and the file that has them; "" where it printed nothing
    lines: list[str]
    log: str
    tasks: list[int] = field(default_factory=list)


def causes(seen: Seen, tasks: list[int] | None = None, most: int = 10) -> list[Cause]:
    """Why tasks failed, the most frequent cause first: those that failed for good, or the last failures of others."""
    found: dict[tuple[str, str, str], Cause] = {}
    for v in seen.failed if tasks is None else tasks:
        number, attempt = _last_failure(seen, v)
        if attempt is None:
            continue
        lines, log = seen.printed(v, number, most)
        key = (attempt.failure or "", seen.kinds[v] if not lines else "", without_numbers(lines[-1]) if lines else "")
        if key not in found:
            found[key] = Cause(attempt.failure or "", lines, log)
        found[key].tasks.append(v)
    return sorted(found.values(), key=lambda cause: -len(cause.tasks))


def without_numbers(line: str) -> str:
    """A line by which failures are told apart: those that differ in numbers only are of one cause."""
    return _NUMBER.sub("#", line)


def _last_failure(seen: Seen, v: int) -> tuple[int, Attempt | None]:
    """The last attempt at a task that failed, and the so-manieth it was."""
    tried = seen.tried.get(v, [])
    for place in range(len(tried) - 1, -1, -1):
        if tried[place].failure is not None:
            return place + 1, tried[place]
    return 0, None


def recovered(seen: Seen) -> list[int]:
    """The tasks that failed at first, by their own doing, and are done now."""
    failed = {attempt.task for attempt in seen.attempts if attempt.failure is not None and not attempt.lost}
    return sorted(v for v in failed if seen.state(v) == "done")


class Link(NamedTuple):
    """One attempt of the chain that decided the end: what it had waited for, and for how long it then still waited."""

    attempt: Attempt
    #: "parent", "worker" or "" where it waited for nothing
    after: str
    #: seconds between the end of that and its own beginning
    gap: float


def deciding_chain(seen: Seen) -> list[Link]:
    """The attempts that decided when the last task ended, first to last.

    From the one that ended last back to what ended last before it began: a parent, or whatever its worker did before.
    """
    good = {attempt.task: attempt for attempt in seen.attempts if attempt.failure is None}
    if not good:
        return []
    before = _before(seen)
    found: list[Link] = []
    last: Attempt | None = max(good.values(), key=lambda attempt: attempt.ended)
    while last is not None:
        waits = [("parent", good[u]) for u in seen.flow.dag.parents_of(last.task).tolist() if u in good]
        waits += [("worker", other) for other in before.get(last.number, ())]
        waits = [(what, other) for what, other in waits if other.number != last.number and other.ended <= last.ended]
        what, cause = max(waits, key=lambda wait: (wait[1].ended, wait[0] == "parent"), default=("", None))
        found.append(Link(last, what, 0.0 if cause is None else max(0.0, last.began - cause.ended)))
        last = cause
    return found[::-1]


def _before(seen: Seen) -> dict[int, list[Attempt]]:
    """For every attempt, by its number, what its worker did just before, within the same session."""
    found: dict[int, list[Attempt]] = {}
    latest: dict[str, Attempt] = {}
    starts = [begin for begin, _ in seen.spans]
    for attempt in sorted(seen.attempts, key=lambda attempt: attempt.began):
        other = latest.get(attempt.client)
        if other is not None and not any(other.began < start <= attempt.began for start in starts):
            found[attempt.number] = [other]
        latest[attempt.client] = attempt
    return found
