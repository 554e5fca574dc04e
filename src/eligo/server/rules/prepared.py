"""A workflow made ready to be served: what its owner asks for, and what takes long done beforehand."""

import json
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np

from eligo.allocating import ALLOCATORS, allocator
from eligo.dag import Dag
from eligo.errors import InputError, check_choice, is_amount, shorten
from eligo.formats.fidelity import as_runnable
from eligo.names import check_workflow_name
from eligo.planning import plan
from eligo.policies import OLD_NAMES, PLAN_EFFORT, POLICIES
from eligo.rows import Ints
from eligo.server.rules.document import packed, packed_plan, unpacked_flow
from eligo.stores.service import WorkflowRow
from eligo.theory.skeleton import skeleton
from eligo.workflow import Workflow

MOST_COUNT = 1_000_000
#: tasks up to which a policy decides within 20 ms of processor time; what these two give depends on how many clients ask
#: together, or for how many tasks each, so that it cannot be worked out beforehand
MOST_TASKS = {"batch-optimal": 1_000, "cluster": 30}
#: the same for dependencies that no others imply
MOST_ARCS = {"batch-optimal": 20_000}


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What the owner of a workflow asks for."""

    name: str = ""
    owner: str = ""
    #: of the server's work, compared with other owners
    share: float = 1.0
    policy: str = "finish"
    #: how many results of clients that are not trusted must agree
    quorum: int = 1
    #: seconds that a task may take
    timeout: float | None = None
    retries: int | None = None
    #: how many clients may have one task where nothing else is ready
    copies: int = 2
    #: whether it waits until its owner has signed every task
    signed: bool = False
    #: whether slow clients get what matters least, and overdue tasks go to somebody else as well
    rules: bool = True
    #: whether the files that tasks read and write travel
    files: bool = True
    #: whether files that only the tasks of one grant read stay with its client
    inside: bool = True
    #: whether, of tasks of nearly equal rank, a client gets the one of which it has most files
    locality: bool = True
    #: whether tasks may add tasks, whose commands then run on other clients
    grow: bool = False
    #: what the workflow's file asks for and may be ignored, with commas
    ignore: str = ""

    def __post_init__(self) -> None:
        check_workflow_name(self.name)
        object.__setattr__(self, "policy", OLD_NAMES.get(self.policy, self.policy))
        # never a file: its lines would be told in errors
        check_choice("policy", self.policy, (*POLICIES, *ALLOCATORS))
        if not (is_amount(self.share) and self.share > 0):
            raise InputError(f"share must be positive, got {self.share!r}")
        for what, least in (("quorum", 1), ("copies", 1), ("retries", 0)):
            number = getattr(self, what)
            if number is not None and not least <= number <= MOST_COUNT:
                raise InputError(f"{what} must be between {least} and {MOST_COUNT:,}, got {number}")
        if self.grow and (self.quorum > 1 or self.signed):
            raise InputError(
                "grow cannot be combined with a quorum above 1 or with signatures: added tasks are not compared or signed"
            )
        if self.timeout is not None and not (is_amount(self.timeout) and self.timeout > 0):
            raise InputError(f"timeout must be positive, got {self.timeout!r}")


class Prepared(NamedTuple):
    """A workflow that is ready to be served: what takes long is done."""

    flow: Workflow
    wishes: Wishes
    document: bytes
    #: the order that its policy goes by: that of its plan, or Dask's
    order: Ints | None
    #: the most tasks that can be ready after each step, where that was worked out
    ceiling: Ints | None = None


def prepared(flow: Workflow, wishes: Wishes, effort: str = "quick") -> Prepared:
    """Plan a workflow and write it down, which may take seconds; what cannot be served is refused."""
    check_workflow_name(wishes.name or flow.name or "")
    flow = as_runnable(flow, wishes.ignore, elsewhere=True, served=True).labelled()
    without = next(
        (name for name, command in zip(flow.dag.tasks, flow.column("command"), strict=True) if not command), None
    )
    if without is not None:
        raise InputError(f"task {shorten(without)!r} has no command")
    _check_size(wishes.policy, flow.dag)
    if wishes.policy in ALLOCATORS and any(flow.column("priority")):
        raise InputError(f"the policy {wishes.policy!r} does not use the priorities of tasks (choose another policy)")
    order, ceiling = _ordered(flow, wishes.policy, effort)
    document = packed(flow)
    return Prepared(unpacked_flow(document), wishes, document, order, ceiling)  # as it is after a restart, too


def _check_size(policy: str, dag: Dag) -> None:
    """Refuse a workflow for which a policy would decide too slowly."""
    refusal = "the policy {!r} serves at most {:,} {} because clients wait while it decides, and this workflow has {:,}"
    cure = f" (choose another policy, such as {Wishes().policy!r})"
    if len(dag) > (most := MOST_TASKS.get(policy, len(dag))):
        raise InputError(refusal.format(policy, most, "tasks", len(dag)) + cure)
    if policy in MOST_ARCS and (arcs := needed_arcs(dag)) > (most := MOST_ARCS[policy]):
        raise InputError(refusal.format(policy, most, "dependencies", arcs) + cure)


def needed_arcs(dag: Dag) -> int:
    """How many arcs a dag of few tasks has that no others imply: only these ever stand between ready and waiting tasks."""
    return skeleton(dag).arc_count


def _ordered(flow: Workflow, policy: str, effort: str) -> tuple[Ints | None, Ints | None]:
    """The order that a policy goes by, and the plan's bound, as far as it goes by any; what it cannot order is refused."""
    if policy == "dask":
        return POLICIES[policy](flow, skeleton(flow.dag), None).order(), None
    allocator(policy, flow, rules=None, order=flow.dag.order if policy in PLAN_EFFORT else None)
    chosen = plan(flow, effort) if policy in PLAN_EFFORT else None
    return (None, None) if chosen is None else (chosen.sequence, chosen.ceiling.astype(np.int32))


def new_row(ready: Prepared, id: str, key: str, submitted: float, state: str) -> WorkflowRow:
    """What is kept of a workflow that is submitted."""
    wishes = ready.wishes
    settings = json.dumps(asdict(wishes))
    plan = None if ready.order is None else packed_plan(ready.order, ready.ceiling)
    name = wishes.name or ready.flow.name or id
    return WorkflowRow(
        id, key, name, wishes.owner, wishes.share, wishes.policy, settings, state, submitted, ready.document, plan
    )
