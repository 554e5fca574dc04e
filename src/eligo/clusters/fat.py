"""The fat task: a self-contained cluster of tasks for one client, and its effect on the remaining tasks.

A set of tasks is *self-contained* if with every task it has the task's parents, except those that are executed: the client
can run it with no further communication [1]_, section 2.2. The *residual* is the dag of the tasks that then remain.

.. [1] Sims, Cordasco, Rosenberg: On clustering tasks in IC-optimal dags.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from eligo.border import as_workflow
from eligo.clusters.chains import chain_of
from eligo.clusters.growth import Budget, Choice, Files, Growth
from eligo.clusters.state import State, verdict_of
from eligo.dag import Dag
from eligo.deciding.effort import check_effort
from eligo.errors import NotSelfContainedError
from eligo.execution import Execution
from eligo.names import Name
from eligo.rows import places
from eligo.workflow import Workflow

Arc = tuple[Name, Name]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FatTask:
    """Tasks that one client executes together.

    `residual_verdict` says whether the remaining dag has an IC-optimal schedule: "optimal", "impossible" or "bounded" (not
    decided). It and the residual are computed on first access.
    """

    dag: Dag
    #: the tasks in an order in which the client can run them
    tasks: tuple[Name, ...]
    #: the arcs from it to remaining tasks: results to be sent back
    cut: tuple[Arc, ...]
    #: the arcs to it from executed tasks: results that it needs
    inputs: tuple[Arc, ...]
    #: the number of tasks that it renders eligible, including tasks in it
    productivity: int
    #: the number of tasks that are eligible once it is executed
    eligible_after: int
    #: the strategy that chose it, and the reason
    strategy: str
    why: str
    #: how long the client takes, one task after another, if known
    seconds: float | None = None
    #: the sizes of the files that are sent to the client and back, if known
    bytes_in: int | None = None
    bytes_out: int | None = None
    #: why any fat task may be taken from such a dag, if known
    certificate: str | None = None
    #: the execution from which it was chosen, and the number of moves before that
    execution: Execution
    seen: int
    known_verdict: str | None = None
    effort: str = "normal"

    def __repr__(self) -> str:
        return f"FatTask({len(self)} tasks, {self.cut_arcs} cut arcs, {self.strategy})"

    def __len__(self) -> int:
        return len(self.tasks)

    @property
    def cut_arcs(self) -> int:
        """The number of arcs that it cuts: the results that the client must send back."""
        return len(self.cut)

    @cached_property
    def residual(self) -> Dag:
        """The dag of the remaining tasks."""
        remaining = self.execution.journal.left_at(self.seen, len(self.execution.graph))
        remaining[self.dag.indices(self.tasks)] = False
        return self.dag.induced(np.flatnonzero(remaining).astype(np.int32))

    @cached_property
    def residual_verdict(self) -> str:
        """Whether the residual has an IC-optimal schedule."""
        return self.known_verdict or verdict_of(self.residual, self.effort)

    @cached_property
    def residual_chain(self) -> tuple[str, ...] | None:
        """The blocks of the residual if it is a ▷-linear composition, each ▷ the next; else None."""
        chain = chain_of(self.residual)
        return None if chain is None else chain.kinds

    def document(self) -> dict[str, Any]:
        """The fat task as a dict for JSON."""
        optional = {key: getattr(self, key) for key in ("certificate", "seconds", "bytes_in", "bytes_out")}
        label = dict(zip(self.dag.tasks, self.dag.labels, strict=True)).__getitem__
        return {
            "tasks": tuple(map(label, self.tasks)), "cut_arcs": self.cut_arcs,
            "cut": tuple((label(u), label(v)) for u, v in self.cut),
            "inputs": tuple((label(u), label(v)) for u, v in self.inputs), "productivity": self.productivity,
            "ready_after": self.eligible_after, "eligible_after": self.eligible_after,
            "residual_tasks": len(self.residual), "residual_verdict": self.residual_verdict,
            "strategy": self.strategy, "why": self.why,
        } | {key: amount for key, amount in optional.items() if amount is not None}  # fmt: skip


def fat_task(flow: object, tasks: Iterable[Name], executed: Iterable[Name] = (), effort: str = "normal") -> FatTask:
    """The fat task of a given set of tasks, which must be self-contained.

    The smallest counterexample to Theorem 6 of the paper: two cycles that share a task.

    >>> rings = Dag.from_arrays(11, [0, 0, 1, 1, 2, 2, 5, 5, 6, 6, 7, 7], [3, 4, 4, 5, 3, 5, 8, 9, 9, 10, 8, 10])
    >>> fat_task(rings, ["7"]).residual_verdict
    'impossible'
    >>> fat_task(rings, ["3"])
    Traceback (most recent call last):
    eligo.errors.NotSelfContainedError: not self-contained: '3' depends on '0', which is neither in the fat task nor executed
    """
    check_effort(effort)
    workflow = as_workflow(flow)
    dag, state = workflow.dag, State(Execution(workflow, executed))
    chosen = dag.indices(tasks)
    growth = Growth(state, Budget(len(chosen), len(chosen)), Files.of(workflow))
    for v in chosen[np.argsort(places(len(dag), dag.order)[chosen])].tolist():
        if state.gone(v):
            raise NotSelfContainedError(dag.tasks[v])
        if growth.missing(v):
            lacking = next(u for u in state.parents_of(v) if u not in growth.inside and not state.gone(u))
            raise NotSelfContainedError(dag.tasks[v], dag.tasks[lacking])
        growth.add(v)
    return fat_of(workflow, Choice(growth, "by hand", "given by the caller"), effort)


def fat_of(flow: Workflow, choice: Choice, effort: str = "normal") -> FatTask:
    """The fat task made of a chosen set."""
    growth = choice.growth
    dag, state, inside, files = flow.dag, growth.state, growth.inside, growth.files
    members = list(inside) if choice.strategy == "by hand" else growth.ordered()
    name = dag.tasks.__getitem__
    return FatTask(
        dag=dag, tasks=tuple(map(name, members)),
        cut=tuple((name(u), name(v)) for u in members for v in state.children_of(u) if v not in inside),
        inputs=tuple((name(u), name(v)) for v in members for u in state.parents_of(v) if u not in inside),
        productivity=growth.rendered, eligible_after=state.ready_count() + growth.rendered - len(members),
        strategy=choice.strategy, why=choice.why, certificate=choice.certificate, seconds=_seconds(flow, members),
        bytes_in=None if files is None else files.needed(inside, members),
        bytes_out=None if files is None else files.cut(inside, members), execution=state.execution,
        seen=len(state.execution.journal), known_verdict=choice.verdict, effort=effort,
    )  # fmt: skip


def _seconds(flow: Workflow, members: list[int]) -> float | None:
    if not flow.details:
        return None
    seconds = [flow.task(name).seconds for name in flow.dag.named(members)]
    return None if None in seconds else sum(second for second in seconds if second is not None)
