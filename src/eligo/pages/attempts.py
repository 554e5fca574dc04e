"""Every attempt that has ended: the column form of `eligo.stores.Attempt`, for there may be millions."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from eligo.stores import Attempt
from eligo.work.attempts import ACCEPTED, FAILED, LOSSES

#: what came of an attempt: it was done, failed, was lost with its worker, or nobody needed it any more
WENT_WELL, WENT_WRONG, VANISHED, UNUSED = range(4)
OUTCOMES = {ACCEPTED: WENT_WELL, FAILED: WENT_WRONG, "conflict": WENT_WRONG, **dict.fromkeys(LOSSES, VANISHED)}
NOTHING = -(2**31)  # where there is no exit code, or no memory
ROW = np.dtype([
    ("task", np.int32), ("attempt", np.int32), ("client", np.int32), ("outcome", np.int8), ("code", np.int64),
    ("memory", np.int64), ("began", np.float64), ("ended", np.float64),
])  # fmt: skip


def outcome_of(attempt: Attempt) -> int:
    """What came of an attempt, as the column has it."""
    return OUTCOMES.get(attempt.answer, UNUSED)


class Attempts:
    """Attempts as they end; one that is told again takes the place of what was told before."""

    def __init__(self) -> None:
        self._rows = np.zeros(64, ROW)
        self._size = 0
        self._places: dict[int, int] = {}
        #: who made them, by the numbers in the column; why they failed, and the last that these printed
        self.clients: list[str] = []
        self._clients: dict[str, int] = {}
        #: of each of them: how many attempts came to what, when the first began and the last ended
        self.tallies: list[list[int]] = []
        self.first: list[float] = []
        self.latest: list[float] = []
        self.failures: dict[int, str] = {}
        self.tails: dict[int, str] = {}
        self.last: dict[int, int] = {}  # the place of the last attempt at each task
        self.tries: dict[int, list[int]] = {}  # and of all, where there were several

    def __len__(self) -> int:
        return self._size

    @property
    def rows(self) -> NDArray[np.void]:
        """All so far, in the order in which they were told; this does not change when more come."""
        return self._rows[: self._size]

    def add(self, attempts: Iterable[Attempt]) -> None:
        """More attempts have ended."""
        for one in attempts:
            place, client, outcome = self._places.get(one.number), self._client(one.client), outcome_of(one)
            if place is None:
                place = self._places[one.number] = self._new(one.task)
            else:
                self.tallies[client][self._rows["outcome"][place]] -= 1
            self._note(client, one, outcome)
            self._rows[place] = (
                one.task, one.attempt, client, outcome, NOTHING if one.code is None else one.code,
                NOTHING if one.memory is None else one.memory, one.began, max(one.began, one.ended),
            )  # fmt: skip
            if outcome == WENT_WELL:
                self.failures.pop(place, None)  # it came late, but it came
            else:
                self.failures[place] = one.failure or one.answer
            if one.tail:
                self.tails[place] = one.tail

    def _note(self, client: int, one: Attempt, outcome: int) -> None:
        self.tallies[client][outcome] += 1
        self.first[client] = min(self.first[client], one.began)
        self.latest[client] = max(self.latest[client], one.ended)

    def _new(self, task: int) -> int:
        if self._size == len(self._rows):
            self._rows = np.concatenate([self._rows, np.zeros(len(self._rows), ROW)])
        place, self._size = self._size, self._size + 1
        before = self.last.get(task)
        if before is not None:
            self.tries.setdefault(task, [before]).append(place)
        self.last[task] = place
        return place

    def _client(self, name: str) -> int:
        number = self._clients.get(name)
        if number is None:
            number = self._clients[name] = len(self.clients)
            self.clients.append(name)
            self.tallies.append([0, 0, 0, 0])
            self.first.append(float("inf"))
            self.latest.append(0.0)
        return number

    def tally(self, client: str) -> list[int]:
        """How many attempts of a client came to what."""
        number = self._clients.get(client)
        return [0, 0, 0, 0] if number is None else self.tallies[number]

    def of(self, task: int) -> list[int]:
        """The places of the attempts at a task, the first first."""
        return self.tries.get(task) or ([self.last[task]] if task in self.last else [])

    def last_places(self, size: int) -> NDArray[np.int64]:
        """For each of so many tasks the place of its last attempt, or -1."""
        places = np.full(size, -1, np.int64)
        tasks = self.rows["task"]
        places[tasks] = np.arange(len(tasks))
        return places
