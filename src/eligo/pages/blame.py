"""Which workers cause problems, by comparison: with others at the same tasks, and with the median at the same kinds."""

from collections import Counter
from functools import cached_property
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from eligo.errors import counted
from eligo.pages.watched import VANISHED, WENT_WELL, WENT_WRONG, Watched, Worker
from eligo.plotting.layout import numbered

SLOW = 1 / 3  # of the usual speed
SOME = 3  # failures, losses or attempts from which on they say something about a worker
MOST_COMPARED = 100_000  # attempts from which speeds are computed, the last ones


class Tally(NamedTuple):
    """The numbers of a worker's tasks: done, failed, lost, and held now."""

    done: int
    failed: int
    lost: int
    held: int


class Blame:
    """The remarks about the workers of a workflow."""

    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._rows, self._clients = watched.attempts.rows, watched.attempts.clients

    @cached_property
    def own_failures(self) -> Counter[str]:
        """For each worker, its failures at tasks that did not fail on another worker too, or succeeded there."""
        failed = self._rows[self._rows["outcome"] == WENT_WRONG]
        well = self._rows[self._rows["outcome"] == WENT_WELL]
        done = set(well["task"][np.isin(well["task"], failed["task"])].tolist())
        pairs = set(zip(failed["task"].tolist(), failed["client"].tolist(), strict=True))
        tried = Counter(task for task, _ in pairs)
        own = Counter[str]()
        for task, client in zip(failed["task"].tolist(), failed["client"].tolist(), strict=True):
            own[self._clients[client]] += task in done or tried[task] == 1
        return own

    def _others_do_well(self, client: str) -> bool:
        """Whether the other workers have more successes than failures of their own."""
        others = [other for other in self._clients if other != client]
        done = sum(self._watched.attempts.tally(other)[WENT_WELL] for other in others)
        return done > sum(self.own_failures[other] for other in others)

    @cached_property
    def speeds(self) -> dict[str, float]:
        """The speed of each worker with enough tasks: the median over kinds of the usual run time divided by its own."""
        rows = self._rows[-MOST_COMPARED:]
        rows = rows[(rows["outcome"] == WENT_WELL) & (rows["client"] != self._watched.cache_client)]
        _, kind = numbered(self._watched.kinds)
        groups = _medians(kind[rows["task"]], rows["client"], rows["ended"] - rows["began"])
        ratios: dict[int, list[float]] = {}
        for kind_number in {each for each, _ in groups}:
            medians = {client: took for (each, client), took in groups.items() if each == kind_number}
            usual = median(medians.values())
            for client, took in medians.items() if len(medians) > 1 else ():
                ratios.setdefault(client, []).append(usual / took if took > 0 else 1.0)
        return {self._clients[client]: round(median(each), 3) for client, each in ratios.items()}

    def remark(self, worker: Worker, tally: Tally) -> str:
        """The problem with a worker; usually empty."""
        if not worker.approved:
            return "waiting for approval"
        failed = self.own_failures[worker.client]
        if failed >= SOME and failed > tally.done and self._others_do_well(worker.client):
            share = f"most tasks failed: {failed:,} of {failed + tally.done:,}"
            return share if tally.done else f"every task failed: {counted(failed, 'task')}"
        if worker.paused > 0:
            return "paused for a while after failures"
        if not worker.alive and tally.held and self._watched.under_way:
            return "not responding, holds tasks"
        if tally.lost >= (SOME if worker.alive else 1):
            return (
                f"lost {counted(tally.lost, 'task')}"
                if worker.alive
                else f"vanished with {counted(tally.lost, 'task')}"
            )
        speed = self.speeds.get(worker.client, 1.0)
        return f"slow: {speed:.2f} of the usual speed" if speed < SLOW else ""


def _medians(kind: NDArray[Any], client: NDArray[Any], took: NDArray[np.float64]) -> dict[tuple[int, int], float]:
    """The median run time for each kind and client with enough attempts."""
    order = np.lexsort((took, client, kind))
    kind, client, took = kind[order], client[order], took[order]
    changes = np.flatnonzero((kind[1:] != kind[:-1]) | (client[1:] != client[:-1])) + 1
    first = np.concatenate([np.zeros(min(1, len(took)), np.int64), changes])
    sizes = np.diff(np.append(first, len(took)))
    return {
        (int(kind[start]), int(client[start])): float(took[start + size // 2])
        for start, size in zip(first.tolist(), sizes.tolist(), strict=True)
        if size >= SOME
    }


def tally_of(watched: Watched, worker: Worker, held: int) -> Tally:
    """The numbers of a worker's tasks."""
    tally = watched.attempts.tally(worker.client)
    return Tally(tally[WENT_WELL], tally[WENT_WRONG], max(tally[VANISHED], worker.lost), held)
