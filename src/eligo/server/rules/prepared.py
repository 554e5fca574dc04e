"""Submitted workflows: the owner's settings, and the plan and document that are prepared before a workflow is served."""

import json
from dataclasses import asdict, dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from eligo.allocating import ALLOCATORS, allocator
from eligo.allocating.within import Space, check_limit
from eligo.client.scratch import checked_name
from eligo.dag import Dag
from eligo.errors import InputError, check_choice, is_amount, shorten
from eligo.formats.fidelity import as_runnable
from eligo.names import check_workflow_name
from eligo.planning import plan
from eligo.policies import OLD_NAMES, PLAN_EFFORT, POLICIES
from eligo.rows import Ints
from eligo.server.rules.document import pack_plan, pack_workflow, unpack_workflow
from eligo.server.rules.needs import Travels
from eligo.space.footprint import Footprint
from eligo.stores.service import WorkflowRow
from eligo.theory.skeleton import skeleton
from eligo.workflow import Workflow

MOST_COUNT = 1_000_000
#: maximum number of tasks for which a policy decides within 20 ms of processor time; the decisions of these two depend on
#: how many clients ask together, or for how many tasks each, so they cannot be computed in advance
MOST_TASKS = {"batch-optimal": 1_000, "cluster": 30}
#: the same for dependencies that are not implied by others
MOST_ARCS = {"batch-optimal": 20_000}


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """The settings of a workflow, chosen by its owner."""

    name: str = ""
    owner: str = ""
    #: share of the server's capacity, relative to other owners
    share: float = 1.0
    policy: str = "finish"
    #: number of results that must agree, unless the client is trusted
    quorum: int = 1
    #: maximum run time of a task in seconds
    timeout: float | None = None
    retries: int | None = None
    #: maximum number of clients that run the same task if no other task is ready
    copies: int = 2
    #: whether tasks are handed out only after the owner has signed all of them
    signed: bool = False
    #: whether slow clients get the least urgent tasks, and overdue tasks are copied to other clients
    rules: bool = True
    #: whether the server transfers the files that tasks read and write
    files: bool = True
    #: whether files that only tasks of one grant read stay with its client
    inside: bool = True
    #: whether, among tasks of nearly equal rank, a client gets the one for which it has most files
    locality: bool = True
    #: whether tasks may add tasks, whose commands may run on other clients
    grow: bool = False
    #: whether every file that one task writes and another reads is removed once no task needs it
    clean: bool = False
    #: maximum bytes of the files that are removed so
    space: int | None = None
    #: features of the workflow's file that may be ignored, separated by commas
    ignore: str = ""

    def __post_init__(self) -> None:
        check_workflow_name(self.name)
        object.__setattr__(self, "policy", OLD_NAMES.get(self.policy, self.policy))
        # only names, never paths: errors would quote lines of the file
        check_choice("policy", self.policy, (*POLICIES, *ALLOCATORS))
        if not (is_amount(self.share) and self.share > 0):
            raise InputError(f"share must be positive, got {self.share!r}")
        for what, least in (("quorum", 1), ("copies", 1), ("retries", 0)):
            number = getattr(self, what)
            if number is not None and not least <= number <= MOST_COUNT:
                raise InputError(f"{what} must be between {least} and {MOST_COUNT:,}, got {number}")
        if self.grow and (self.quorum > 1 or self.signed):
            why = "added tasks are not compared or signed"
            raise InputError(f"grow cannot be combined with a quorum above 1 or with signatures: {why}")
        if not self.files and (self.clean or self.space is not None):
            what = "clean" if self.clean else "space"
            raise InputError(f"{what} has no effect if the server does not transfer files: leave one of the two out")
        if self.space is not None and self.space < 0:
            raise InputError(f"space must be a number of bytes, got {self.space}")
        if self.timeout is not None and not (is_amount(self.timeout) and self.timeout > 0):
            raise InputError(f"timeout must be positive, got {self.timeout!r}")


class Prepared(NamedTuple):
    """A workflow that is ready to be served without further long computations."""

    flow: Workflow
    wishes: Wishes
    document: bytes
    #: the order that its policy follows: that of its plan, or Dask's
    order: Ints | None
    #: the maximum number of ready tasks after each step, if computed
    ceiling: Ints | None = None
    #: the order that keeps its limit of space, if it has one
    reference: Ints | None = None


def prepare(flow: Workflow, wishes: Wishes, effort: str = "quick") -> Prepared:
    """Plan a workflow and make its document, which may take seconds; refuses a workflow that cannot be served."""
    check_workflow_name(wishes.name or flow.name or "")
    flow = as_runnable(flow, wishes.ignore, elsewhere=True, labels=None).labelled()
    for launch in {launch for launch in flow.column("launch") if launch is not None and launch.dir is not None}:
        checked_name(launch.dir)  # a client runs the task in a folder of its own
    for name, command in zip(flow.dag.tasks, flow.column("command"), strict=True):
        if not command:
            raise InputError(f"task {shorten(name)!r} has no command")
    _check_size(wishes.policy, flow.dag)
    if wishes.policy in ALLOCATORS and any(flow.column("priority")):
        raise InputError(f"the policy {wishes.policy!r} does not use the priorities of tasks (choose another policy)")
    order, ceiling = _order_of(flow, wishes.policy, effort)
    reference = None if wishes.space is None else _reference(flow, wishes, wishes.space)
    document = pack_workflow(flow)
    same = unpack_workflow(document)  # the same object as after a restart
    return Prepared(same, wishes, document, order, ceiling, reference)


def _reference(flow: Workflow, wishes: Wishes, limit: int) -> Ints:
    """The order that keeps the limit of space; a smaller limit than any known order needs is refused."""
    footprint, order = Space(limit, partial(footprint_of, wishes)).reference(flow)
    check_limit(footprint, order, limit)
    return order


def footprint_of(wishes: Wishes, flow: Workflow) -> Footprint:
    """The files of a workflow that the server removes once no task needs them; refused if there are none."""
    removed = Travels(flow, clean=wishes.clean).removable()
    if not removed:
        why = "no file between tasks is temporary, so that none is removed (submit it with --clean)"
        raise InputError(f"space cannot be limited, because {why}")
    return Footprint.of(flow, removed)


def _check_size(policy: str, dag: Dag) -> None:
    """Refuse a workflow for which a policy would decide too slowly."""
    refusal = "the policy {!r} serves at most {:,} {} because clients wait while it decides, and this workflow has {:,}"
    cure = f" (choose another policy, such as {Wishes().policy!r})"
    if len(dag) > (most := MOST_TASKS.get(policy, len(dag))):
        raise InputError(refusal.format(policy, most, "tasks", len(dag)) + cure)
    if policy in MOST_ARCS and (arcs := needed_arcs(dag)) > (most := MOST_ARCS[policy]):
        raise InputError(refusal.format(policy, most, "dependencies", arcs) + cure)


def needed_arcs(dag: Dag) -> int:
    """The number of arcs that others do not imply: only these can separate ready from waiting tasks."""
    return skeleton(dag).arc_count


def _order_of(flow: Workflow, policy: str, effort: str) -> tuple[Ints | None, Ints | None]:
    """The order that a policy follows, and the plan's bound, if any; refuses a workflow that the policy cannot order."""
    if policy == "dask":
        return POLICIES[policy](flow, skeleton(flow.dag), None).order(), None
    allocator(policy, flow, rules=None, order=flow.dag.order if policy in PLAN_EFFORT else None)
    chosen = plan(flow, effort) if policy in PLAN_EFFORT else None
    return (None, None) if chosen is None else (chosen.sequence, chosen.ceiling.astype(np.int32))


def new_row(ready: Prepared, id: str, key: str, submitted: float, state: str) -> WorkflowRow:
    """The row of a submitted workflow for the store."""
    wishes = ready.wishes
    settings = json.dumps(asdict(wishes))
    plan = pack_plan(ready.order, ready.ceiling, ready.reference)
    about = (wishes.name or ready.flow.name or id, wishes.owner, wishes.share, wishes.policy, settings)
    return WorkflowRow(id, key, *about, state, submitted, ready.document, plan)
