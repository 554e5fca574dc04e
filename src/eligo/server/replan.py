"""New plans for the remaining tasks of workflows in which tasks failed permanently or ran in another order than planned."""

import asyncio
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.execution import EXECUTED
from eligo.grown_dag import reached
from eligo.planning import plan
from eligo.policies import PLAN_EFFORT
from eligo.rows import Ints, places
from eligo.server.logs import LOGGER
from eligo.server.rules.served import Served
from eligo.server.rules.service import Service

EVERY = 1.0  # seconds between two checks
LARGEST = 10_000  # tasks of the largest workflow that is replanned: clients wait while its policy takes over a new plan
#: minimum of finished tasks before the order is checked; share of them that the plan has later, from which it is replaced
FEW, STRAYED = 20, 0.25


class Standing(NamedTuple):
    """The progress of a workflow at one moment: which tasks are finished, and which are blocked or failed permanently."""

    dag: Dag
    done: NDArray[np.bool_]
    blocked: NDArray[np.bool_]


def standing(served: Served) -> Standing:
    """The present progress of a workflow."""
    dag, codes = served.flow.dag, np.frombuffer(served.execution.codes, np.uint8)
    blocked = np.zeros(len(dag), np.bool_)
    blocked[[*served.tries.causes, *reached(dag, served.tries.causes)]] = True
    return Standing(dag, codes == EXECUTED, blocked)


def order_of_rest(now: Standing, effort: str = "quick") -> Ints:
    """An order: first the finished tasks, then the remaining ones in the order of a new plan, then the blocked ones.

    >>> dag = Dag.from_arcs([("a", "b"), ("c", "d"), ("c", "e")])
    >>> after = Standing(dag, np.array([1, 0, 0, 0, 0], bool), np.array([0, 1, 0, 0, 0], bool))
    >>> [dag.tasks[v] for v in order_of_rest(after)]
    ['a', 'c', 'd', 'e', 'b']
    """
    remaining = np.flatnonzero(~now.done & ~now.blocked).astype(np.int32)
    chosen = remaining[plan(now.dag.induced(remaining), effort).sequence] if len(remaining) else remaining
    order = now.dag.order
    return np.concatenate([order[now.done[order]], chosen, order[(now.blocked & ~now.done)[order]]]).astype(np.int32)


class Course:
    """Follows a workflow and notices when it deviates from its plan."""

    def __init__(self, served: Served) -> None:
        #: permanently failed tasks at the last check
        self.failed: frozenset[int] = frozenset()
        self._looked = len(served.execution.executed)
        self._order = served.order

    def has_deviated(self, served: Served) -> bool:
        """Whether the workflow has deviated since the last call, so that its remaining tasks justify a new plan."""
        if frozenset(served.tries.causes) != self.failed:
            self.failed = frozenset(served.tries.causes)
            return True
        done = len(served.execution.executed)
        if self._order is None or done < FEW or done - self._looked < max(FEW, len(served.flow) // 20):
            return False
        self._looked = done
        place = places(len(served.flow), self._order)
        early = place[np.fromiter(served.execution.numbers(EXECUTED), np.int64, done)] >= done
        return bool(early.mean() > STRAYED)


async def replan_for_ever(service: Service) -> None:
    """Periodically replan the remaining tasks of workflows that have deviated from their plans."""
    courses: dict[str, Course] = {}
    while True:
        await asyncio.sleep(EVERY)
        for id in service.books.take_progressed():
            try:
                await _check(service, id, courses)
            except Exception:  # an error in one workflow must not stop the others
                LOGGER.exception("replanning %s failed", id)


async def _check(service: Service, id: str, courses: dict[str, Course]) -> None:
    served = service.served.get(id)
    if served is None:
        courses.pop(id, None)
        return
    course = courses[id] = courses.get(id) or Course(served)
    if _is_replannable(served) and course.has_deviated(served):
        order = await asyncio.to_thread(order_of_rest, standing(served))
        if service.served.get(id) is served and served.open:
            service.replan(id, order)
            courses[id] = Course(served)
            courses[id].failed = course.failed


def _is_replannable(served: Served) -> bool:
    return served.open and served.wishes.policy in PLAN_EFFORT and len(served.flow) <= LARGEST
