"""A new plan for what is left, where reality has left the plan: tasks that were set aside for good, or much out of order."""

import asyncio
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.dag import Dag
from eligo.execution import EXECUTED
from eligo.growing import reached
from eligo.planning import plan
from eligo.policies import PLAN_EFFORT
from eligo.rows import Ints, places
from eligo.server.logs import LOGGER
from eligo.server.rules.served import Served
from eligo.server.rules.service import Service

EVERY = 1.0  # seconds between two looks
LARGEST = 10_000  # tasks: to follow another plan takes as long as to begin, and clients wait meanwhile
FEW, STRAYED = 20, 0.25  # tasks done, and the share of them that was not to come yet


class Standing(NamedTuple):
    """How far a workflow has come: which tasks are done, and which can never be, as of one moment."""

    dag: Dag
    done: NDArray[np.bool_]
    blocked: NDArray[np.bool_]


def standing(served: Served) -> Standing:
    """How far a workflow has come."""
    dag, codes = served.flow.dag, np.frombuffer(served.execution.codes, np.uint8)
    blocked = np.zeros(len(dag), np.bool_)
    blocked[[*served.tries.causes, *reached(dag, served.tries.causes)]] = True
    return Standing(dag, codes == EXECUTED, blocked)


def order_of_rest(now: Standing, effort: str = "quick") -> Ints:
    """An order whose first tasks are those that are done, then those that are left, by a plan of their own, then the rest.

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
    """Whether a workflow keeps to its plan."""

    def __init__(self, served: Served) -> None:
        self.aside: frozenset[int] = frozenset()
        self._looked = len(served.execution.executed)
        self._order = served.order

    def left(self, served: Served) -> bool:
        """Whether the remaining tasks justify a new plan."""
        if frozenset(served.tries.causes) != self.aside:
            self.aside = frozenset(served.tries.causes)
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
                await _look_at(service, id, courses)
            except Exception:  # whatever is wrong with one workflow, the others are planned anew
                LOGGER.exception("replanning %s failed", id)


async def _look_at(service: Service, id: str, courses: dict[str, Course]) -> None:
    served = service.served.get(id)
    if served is None:
        courses.pop(id, None)
        return
    course = courses[id] = courses.get(id) or Course(served)
    if _may_be(served) and course.left(served):
        order = await asyncio.to_thread(order_of_rest, standing(served))
        if service.served.get(id) is served and served.open:
            service.replan(id, order)
            courses[id] = Course(served)
            courses[id].aside = course.aside


def _may_be(served: Served) -> bool:
    return served.open and served.wishes.policy in PLAN_EFFORT and len(served.flow) <= LARGEST
