"""The run that this process carries out, as its display sees it: from inside, without a look at the disk."""

import time
from collections import deque
from collections.abc import Sequence
from itertools import islice
from threading import Thread

import numpy as np

from eligo.execution import FAILED
from eligo.names import Name
from eligo.pages.watched import RECENT, Watched, Worker
from eligo.running.loop import Runner
from eligo.running.states import Curve
from eligo.work.attempts import ACCEPTED, Attempt
from eligo.workflow import Workflow

SHORTEST = 0.5  # seconds that tell anything of a rate


class WatchedProcess(Watched):
    """A run as it goes on; `look` is cheap, and is called as often as somebody wants to see it."""

    source, id, status = "run", "run", "running"

    def __init__(self, flow: Workflow, runner: Runner, workers: int, plan: Sequence[int] = ()) -> None:
        super().__init__(flow)
        self.runner, self._workers, self._plan = runner, workers, plan
        self.execution, self.policy, self.under_way = runner.execution, "", True
        self.title, self._began = flow.name or self.id, self.at
        self._begin = time.monotonic()
        self._due = self.at + SHORTEST
        self._rates: deque[tuple[float, int]] = deque([(self._begin, len(self.execution.executed))])
        self._told = 0
        self.look()

    def look(self) -> None:
        """See where it stands now."""
        if len(self.flow) < len(self.execution.graph):
            self.grow()
        now = time.monotonic()
        self.at = self._began + now - self._begin
        self._rates.append((now, len(self.execution.executed)))
        while now - self._rates[0][0] > RECENT and len(self._rates) > 2:
            self._rates.popleft()
        self._learn()
        if self.forecast_due:
            Thread(target=self.foresight(), daemon=True).start()  # of many tasks this takes a while

    def _learn(self) -> None:
        """What runs, what is tried again, and how long those took that are done since."""
        runner, number = self.runner, self.execution.graph.number
        self.trying = {
            lease.task: lease._replace(since=job.since)
            for job in runner.running.values()
            for lease in job.leases[job.ended : job.ended + 1]
        }
        self.again = {v: self.at for v in self.execution.numbers(FAILED) if v not in runner.tries.causes}
        took = [runner.took.popleft() for _ in range(len(runner.took))]
        first = len(self.attempts)
        self.attempts.add(
            Attempt("", place, number(task), 1, "", "", self.at - seconds, self.at, ACCEPTED)
            for place, (task, seconds) in enumerate(took, first)
        )

    def new_failures(self) -> list[tuple[Name, str]]:
        """The tasks that failed for good since this was asked last, and why."""
        new = [
            (task, str(ending.attempt.failure))
            for task, ending in islice(self.runner.failures.items(), self._told, None)
        ]
        self._told += len(new)
        return new

    # See `Watched` for these

    def curve(self, name: str) -> Curve | None:
        """See `Looked`."""
        return np.array(self._plan, np.int64) if name == "plan" and len(self._plan) else None

    @property
    def spans(self) -> Sequence[tuple[float, float]]:
        """See `Watched`."""
        return [(self._began, self.at)]

    @property
    def workers(self) -> Sequence[Worker]:
        """See `Watched`: nobody asks for them by name."""
        return ()

    @property
    def present(self) -> int:
        """See `Watched`."""
        return self._workers

    @property
    def rate(self) -> float:
        """See `Watched`: by what was seen, however many tasks were done between two looks."""
        (first, before), (last, now) = self._rates[0], self._rates[-1]
        return (now - before) / (last - first) if last - first >= SHORTEST else 0.0

    def printed(self, v: int, attempt: int, err: bool) -> str:
        """See `Watched`: whoever wants to see that looks at the run's folder."""
        return ""
