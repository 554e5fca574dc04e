"""A workflow as a store kept it, to be served further."""

from collections.abc import Callable, Iterable

from eligo.execution import ALLOCATED, HELD, Execution
from eligo.server.packing import unpacked_flow, unpacked_plan
from eligo.server.served import Served
from eligo.stores.serving import Lease, ServiceStore, WorkflowRow


def recalled(row: WorkflowRow, store: ServiceStore, clock: Callable[[], float]) -> Served:
    """A workflow as it was kept; what failed is tried again as soon as somebody asks."""
    flow = unpacked_flow(row.document or store.document(row.id))
    order, ceiling = (None, None) if row.plan is None else unpacked_plan(row.plan, len(flow))
    moves = store.moves(row.id)
    found = Served(row, flow, Execution.replay(flow, moves), order, clock)
    found.kept, found.ceiling = len(moves), ceiling
    found.number = store.last_number(row.id)
    if found.files is not None:
        found.files.there.update((file.name, file) for file in store.files(row.id))
    found.signatures = store.signatures(row.id)
    upshot = store.upshot(row.id)
    for task, tally in upshot.tallies.items():
        found.tries[task], found.failures[task], found.losses[task] = tally
    found.repeated, found.saved = upshot.repeated, upshot.saved
    for task, client, digest in upshot.votes:
        found.votes.setdefault(task, {})[client] = digest
    _recall_leases(found, store.leases(row.id))
    return found


def _recall_leases(served: Served, leases: Iterable[Lease]) -> None:
    """Who had what still has it; what is out with nobody comes back."""
    known = list(leases)
    served.add(known)
    for lease in known:
        served.tries[lease.task] = max(served.tries[lease.task], lease.attempt)
        served.allocator.has(lease.client, served.flow.dag.tasks[lease.task])
    codes = served.execution.codes
    for v in [v for v in range(len(codes)) if codes[v] in {ALLOCATED, HELD} and v not in served.holding]:
        served.come_back(v)
