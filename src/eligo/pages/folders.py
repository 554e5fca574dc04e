"""The run in a folder while somebody looks at it: what is new is read from its store now and then."""

import time
from collections.abc import Sequence
from pathlib import Path

from eligo.errors import InputError
from eligo.execution import Execution
from eligo.pages.attempted import VANISHED, WENT_WELL, WENT_WRONG, Attempted
from eligo.pages.watched import Watched, Worker
from eligo.running.location import STATE
from eligo.running.looked import Curve, left_behind
from eligo.running.seen import Seen, policy_of, present, spans_of
from eligo.stores import Attempt, read_news, under_way

DONE, FAILED, RUNNING, STOPPED = "done", "failed", "running", "stopped"


class WatchedRun(Watched):
    """A run; `renew` takes in what is new."""

    source = "run"

    def __init__(self, folder: str | Path) -> None:
        self._seen = seen = Seen(folder)
        super().__init__(seen.flow)
        self.id = self.title = seen.title
        self.folder, self.at = seen.folder, seen.at
        self._path = self.folder / STATE
        self.under_way, self._facts, self._sessions = seen.under_way, seen.facts, seen.sessions
        self._position = seen.position
        self.execution = Execution(seen.execution.begun)
        self.execution.follow(seen.moves, seen.execution.additions)
        self._take(seen.attempts)
        self._learn()

    def renew(self) -> "WatchedRun":
        """The run as it is now: this one, or another where it was begun anew with another workflow."""
        news = read_news(self._path, self._position)
        if news is None or len(news.sessions) != len(self._sessions):
            return WatchedRun(self.folder)
        self.at, self.under_way = time.time(), under_way(self._path)
        self._facts, self._sessions, self._position = news.facts, news.sessions, news.position
        try:
            self.execution.follow(news.moves)
        except InputError:
            return WatchedRun(self.folder)
        self._take(news.attempts)
        self._learn()
        return self

    def _take(self, attempts: Sequence[Attempt]) -> None:
        """Attempts have ended."""
        known: list[Attempted] = []
        counts: dict[int, int] = {}
        for one in attempts:
            if one.task >= len(self.flow):
                continue
            counts[one.task] = counts.get(one.task, len(self.attempts.of(one.task))) + 1
            outcome = WENT_WELL if one.failure is None else VANISHED if one.lost else WENT_WRONG
            known.append(
                Attempted(
                    one.number,
                    one.task,
                    counts[one.task],
                    one.client,
                    one.began,
                    one.ended,
                    outcome,
                    one.failure,
                    one.code,
                    one.memory,
                )
            )
        self.attempts.add(known)

    def _learn(self) -> None:
        """What runs now, and what is tried again."""
        self.policy = policy_of(self._sessions)
        self.trying, self.again = present(self._facts, self.execution) if self.under_way else ({}, {})
        self._seen.trying = self.trying  # what runs prints elsewhere

    # See `Watched` for these

    def curve(self, name: str) -> Curve | None:
        """See `Looked`."""
        return self._seen.curve(name)

    @property
    def interrupted(self) -> list[int]:
        """See `Looked`."""
        return left_behind(self)

    @property
    def status(self) -> str:
        """See `Watched`."""
        if self.under_way:
            return RUNNING
        if self.execution.finished:
            return DONE
        return FAILED if self.failed and self.execution.stuck else STOPPED

    @property
    def spans(self) -> Sequence[tuple[float, float]]:
        """See `Watched`."""
        return spans_of(self._sessions, self.attempts.rows["ended"], self.at, self.under_way)

    @property
    def workers(self) -> Sequence[Worker]:
        """See `Watched`: all who did anything, and those of whom nothing was seen yet."""
        last, attempts = self._sessions[-1] if self._sessions else None, self.attempts
        began = last.began if last is not None else 0.0
        busy = {one.client for one in self.trying.values()}
        known = {*attempts.clients, *busy}
        latest = dict(zip(attempts.clients, attempts.latest, strict=True))
        return [
            Worker(
                client,
                client,
                self.at if client in busy else latest.get(client, began),
                self.under_way and (client in busy or latest.get(client, 0.0) >= began),
            )
            for client in sorted(known, key=lambda client: (len(client), client))
        ]

    @property
    def present(self) -> int:
        """See `Watched`: as many as tasks can run at a time, whether all of them were needed yet or not."""
        return self._sessions[-1].workers if self.under_way and self._sessions else 0

    @property
    def worker_seconds(self) -> float:
        """See `Watched`: of every session, its workers for as long as it went on."""
        spans = zip(self._sessions, self.spans, strict=True)
        return sum(session.workers * (end - begin) for session, (begin, end) in spans)

    def tail(self, v: int, attempt: int) -> list[str]:
        """See `Watched`."""
        return self._seen.last_lines(v, attempt, 20)


def looked_at(folder: str | Path, before: WatchedRun | None = None) -> WatchedRun:
    """The run in a folder as it is now, ready to be shown; *before* is what was seen of it last."""
    found = WatchedRun(folder) if before is None else before.renew()
    if found is not before:
        found.prepare()
    if found.forecast_due:
        found.foresight()()
    return found
