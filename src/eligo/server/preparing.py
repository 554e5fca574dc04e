"""A workflow made ready to be served: what its owner asks for, and what takes long done beforehand."""

import json
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np

from eligo.allocating import ALLOCATORS, allocator
from eligo.errors import InputError, check_choice, is_amount
from eligo.formats.fidelity import as_runnable
from eligo.planning import plan
from eligo.policies import POLICIES
from eligo.rows import Ints
from eligo.running.whole import PLANNED
from eligo.server.packing import packed, packed_plan, unpacked_flow
from eligo.stores.serving import WorkflowRow
from eligo.workflow import Workflow

MOST_LETTERS = 200


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
    #: what the workflow's file asks for and may be ignored, with commas
    ignore: str = ""

    def __post_init__(self) -> None:
        if not self.name.isprintable() or len(self.name) > MOST_LETTERS:
            raise InputError(
                f"a workflow's name has at most {MOST_LETTERS} letters, and nothing that cannot be printed"
            )
        if not (is_amount(self.share) and self.share > 0):
            raise InputError(f"a share is a number above 0, and {self.share!r} is none")
        for what, least in (("quorum", 1), ("copies", 1)):
            if getattr(self, what) < least:
                raise InputError(f"{what} is at least {least}, and {getattr(self, what)} is not")
        if self.retries is not None and self.retries < 0:
            raise InputError(f"a task is tried again some times or never, not {self.retries} times")
        if self.timeout is not None and not (is_amount(self.timeout) and self.timeout > 0):
            raise InputError(f"a task may take some seconds, and {self.timeout!r} are none")


class Prepared(NamedTuple):
    """A workflow that is ready to be served: what takes long is done."""

    flow: Workflow
    wishes: Wishes
    document: bytes
    order: Ints | None
    #: the most tasks that can be ready after each step, where that was worked out
    ceiling: Ints | None = None


def prepared(flow: Workflow, wishes: Wishes, effort: str = "quick") -> Prepared:
    """Plan a workflow and write it down, which may take seconds; what cannot be served is refused."""
    flow = as_runnable(flow, wishes.ignore, elsewhere=True).labelled()
    without = next(
        (name for name, command in zip(flow.dag.tasks, flow.column("command"), strict=True) if not command), None
    )
    if without is not None:
        raise InputError(f"what {without!r} should run is not said in the file")
    check_choice(
        "policy", wishes.policy, (*POLICIES, *ALLOCATORS)
    )  # never a file: a client would read ours by its errors
    allocator(wishes.policy, flow, rules=None, order=flow.dag.order if wishes.policy in PLANNED else None)
    made = plan(flow, effort) if wishes.policy in PLANNED else None
    document = packed(flow)
    known = (None, None) if made is None else (made.sequence, made.ceiling.astype(np.int32))
    return Prepared(unpacked_flow(document), wishes, document, *known)  # as it is after a restart, too


def new_row(ready: Prepared, id: str, key: str, made: float, state: str) -> WorkflowRow:
    """What is kept of a workflow that is submitted."""
    wishes = ready.wishes
    settings = json.dumps(asdict(wishes))
    plan = None if ready.order is None else packed_plan(ready.order, ready.ceiling)
    name = wishes.name or ready.flow.name or id
    return WorkflowRow(
        id, key, name, wishes.owner, wishes.share, wishes.policy, settings, state, made, ready.document, plan
    )
