"""A program that writes one commit after another to a store until it is killed, and tells of each once it is kept.

`python store_writing.py WHERE [ROWS]`: each commit has so many rows besides those that say which one it is.
"""

import os
import sys
import time
from array import array

from eligo.stores.service import Changes, Moves, WorkflowRow
from eligo.stores.service_sql import ServiceStore
from eligo.stores.service_sqlite import service_store
from eligo.work.attempts import Attempt, Lease

WORKFLOW = "w-1"
ADDRESS = "http://writer"


def submitted(workflow: str = WORKFLOW) -> Changes:
    """A workflow that is submitted."""
    row = WorkflowRow(workflow, f"key of {workflow}", "n", "me", 1.0, "finish", "{}", "running", 1.0, b"[]", None)
    return Changes(workflows=[row], facts=[("n", "0")])


def commit_of(number: int, rows: int = 0) -> list[Changes]:
    """The commit of that number: a task goes out, and the one before comes back."""
    taken = Lease(WORKFLOW, number, number, 1, "c-1", "5ec7e7", f"k{number}", number, 2.0)
    done = Attempt(WORKFLOW, number - 1, number - 1, 1, "c-1", "5ec7e7", 2.0, 3.0, "accepted", digest=f"d{number - 1}")
    before = number > 1
    more = [("filler", f"{number} {i} {'x' * 50}") for i in range(rows)]
    return [
        Changes(moves=[Moves(WORKFLOW, number - 1, array("q", [number]))], leases=[taken], facts=more),
        Changes(ended=[(WORKFLOW, number - 1)] if before else [], outcomes=[done] if before else []),
        Changes(facts=[("n", str(number)), *((f"filler {i}", value) for i, (_, value) in enumerate(more))]),
    ]


def commits_in(store: ServiceStore, workflow: str = WORKFLOW) -> int:
    """How many commits a store has, each whole and none twice; or it has something else."""
    number = int(store.facts().get("n", "0"))
    if number == 0:
        assert len(store.moves(workflow)) == 0
        return 0
    assert list(store.moves(workflow)) == list(range(1, number + 1))
    assert [row.number for row in store.leases(workflow)] == [number]
    assert [row.number for row in store.outcomes(workflow)] == list(range(1, number))
    assert sorted(store.accepted(workflow)) == [(task, f"d{task}") for task in range(1, number)]
    return number


def keep(store: ServiceStore, changes: list[Changes]) -> None:
    """Keep changes; where that cannot be done now, later."""
    while True:
        try:
            return store.commit(changes)
        except OSError:
            time.sleep(0.02)


def fill(store: ServiceStore) -> None:
    """Write more and more, until it cannot be kept."""
    for number in range(1, 1000):
        store.commit(commit_of(number, rows=50 * number))


def main(where: str, rows: int = 0) -> None:
    store = service_store(where, ADDRESS)
    if store.workflows():
        assert store.hold(WORKFLOW)
    else:
        keep(store, [submitted()])
    number = commits_in(store)
    while True:
        number += 1
        keep(store, commit_of(number, rows))
        os.write(1, f"{number}\n".encode())


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
