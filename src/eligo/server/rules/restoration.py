"""A workflow as a store kept it, to be served further."""

from collections.abc import Callable, Iterable

from eligo.errors import EligoError, InputError, shorten
from eligo.execution import ALLOCATED, FAILED, HELD, Execution
from eligo.names import Name
from eligo.server.rules.document import unpacked_flow, unpacked_plan
from eligo.server.rules.served import Served, Vote
from eligo.stores.packing import added_names
from eligo.stores.service import WorkflowRow
from eligo.stores.service_sql import ServiceStore
from eligo.work.attempts import Lease

MOST_SAID = 300  # characters of a reason


def recalled(row: WorkflowRow, store: ServiceStore, clock: Callable[[], float]) -> Served:
    """Restore a workflow from the store; failed tasks may be retried at once."""
    flow = unpacked_flow(row.document or store.document(row.id))
    moves, additions = store.moves(row.id), store.additions(row.id)
    size = len(flow) + len(added_names(additions))
    order, ceiling = (None, None) if row.plan is None else unpacked_plan(row.plan, size)
    served = Served(row, flow, Execution.replay(flow, moves, additions), order, clock)
    flow, served.kept, served.ceiling = served.flow, len(moves), ceiling
    served.number = store.last_number(row.id)
    if served.files is not None:
        served.files.there.update((file.name, file) for file in store.files(row.id))
    served.signatures = store.signatures(row.id)
    upshot = store.upshot(row.id)
    _check_tasks("outcome", (*upshot.tallies, *(vote[0] for vote in upshot.votes)), len(flow))
    for task, tally in upshot.tallies.items():
        served.tries.begun[task], served.tries.failures[task], served.tries.losses[task] = tally
    codes = served.execution.codes
    for task, reason in upshot.reasons.items():
        if codes[task] == FAILED:
            served.tries.give_up(task, reason)
    served.repeated, served.saved = upshot.repeated, upshot.saved
    for task, number, client, digest in upshot.votes:
        served.votes.setdefault(task, {})[number] = Vote(client, digest)
    served.retried = upshot.retried
    _recall_leases(served, store.leases(row.id))
    return served


def task_names(workflow: str, store: ServiceStore) -> tuple[Name, ...]:
    """The tasks of a workflow as it was kept, those included that were added to it."""
    return (*unpacked_flow(store.document(workflow)).dag.tasks, *added_names(store.additions(workflow)))


def _recall_leases(served: Served, leases: Iterable[Lease]) -> None:
    """Who had what still has it; what is out with nobody comes back."""
    restored = list(leases)
    _check_tasks("lease", (lease.task for lease in restored), len(served.flow))
    served.add(restored)
    for lease in restored:
        served.tries.begun[lease.task] = max(served.tries.begun[lease.task], lease.attempt)
        served.allocator.has(lease.client, served.flow.dag.tasks[lease.task])
    codes = served.execution.codes
    for v in [v for v in range(len(codes)) if codes[v] in {ALLOCATED, HELD} and v not in served.holding]:
        served.come_back(v)


def _check_tasks(what: str, tasks: Iterable[int], size: int) -> None:
    """Refuse rows of tasks that the workflow does not have; negative numbers would be taken for others."""
    strange = next((v for v in tasks if not 0 <= v < size), None)
    if strange is not None:
        raise InputError(f"the store has a {what} of task number {strange}, but the workflow has {size:,} tasks")


def fault_of(error: Exception) -> str:
    """Why a workflow cannot be restored, in one line."""
    message = str(error) if isinstance(error, EligoError) else f"its stored state is damaged ({error!r})"
    return shorten(message.replace("\n", " "), MOST_SAID)
