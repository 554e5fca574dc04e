"""What a server promises, by what its clients sent and heard and nothing else: the server's own code is not asked.

`Promises` notes violations in `wrong` as they are seen; `judge` holds a store against all of it at the end.
"""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from eligo.work.attempts import Attempt

#: answers that end a lease, whatever is brought of it later
ENDING = {"accepted", "failed", "voted", "returned", "refused", "lost"}
Place = tuple[str, str]  # a workflow and a task


class Given(NamedTuple):
    """A lease that a client heard of."""

    workflow: str
    task: str
    client: str


@dataclass
class Promises:
    """All that clients know of what a server did, which tries a task again after so many failures and losses."""

    most_failures: int
    most_losses: int
    #: what each task of each workflow waits for
    parents: dict[str, Mapping[str, Iterable[str]]] = field(default_factory=dict)
    given: dict[str, Given] = field(default_factory=dict)
    sent: set[tuple[str, str | None]] = field(default_factory=set)  # what tasks printed, whether answered or not
    said: dict[tuple[str, Hashable], str] = field(default_factory=dict)
    ended: dict[str, str] = field(default_factory=dict)  # the answer that ended each lease
    accepted: dict[Place, str] = field(default_factory=dict)  # the lease
    failures: Counter[Place] = field(default_factory=Counter)
    retried: dict[Place, int] = field(default_factory=dict)  # up to which number leases count no more
    latest: Counter[Place] = field(default_factory=Counter)  # the largest number of a lease of each task
    closed: dict[Place, int] = field(default_factory=dict)  # since when a task is done, or has failed too often
    moment: int = 0
    wrong: list[str] = field(default_factory=list)

    def now(self) -> int:
        """A moment, to be given with what a request that is sent now gets."""
        self.moment += 1
        return self.moment

    def grant(self, lease: str, given: Given, asked: int) -> None:
        """A client hears that it has a task, for which it asked then; the same again is no news."""
        if lease in self.given:
            if self.given[lease] != given:
                self.wrong.append(f"{lease} is {self.given[lease]}, then {given}")
            return
        self.given[lease] = given
        self.latest[given[:2]] = max(self.latest[given[:2]], number_of(lease))
        since = self.closed.get(given[:2])
        if since is not None and since < asked:
            self.wrong.append(f"{given} was handed out though it was done, or had failed too often")

    def send(self, lease: str, tail: str | None) -> None:
        """A client sends a result, whether it is answered or not."""
        self.sent.add((lease, tail))

    def hear(self, lease: str, result: Hashable, answer: str, mine: bool = True) -> None:
        """A client hears what a result of a lease is taken for, which is its own or not."""
        before = self.said.setdefault((lease, result), answer)
        if before != answer:
            self.wrong.append(f"{lease} {result}: {before}, then {answer}")
        if not mine:
            if answer != "refused":
                self.wrong.append(f"{lease} of another client: {answer}")
            return
        if self.ended.get(lease, answer) != answer:
            self.wrong.append(f"{lease} had ended: {self.ended[lease]}, then {answer}")
        if answer in ENDING and lease not in self.ended:
            self.ended[lease] = answer
            self._count(lease, answer)

    def _count(self, lease: str, answer: str) -> None:
        place = self.given[lease][:2]
        if answer == "accepted":
            if self.accepted.setdefault(place, lease) != lease:
                self.wrong.append(f"{place} was accepted twice: {self.accepted[place]}, {lease}")
            self.closed[place] = self.now()
        elif answer == "failed" and number_of(lease) > self.retried.get(place, 0):
            self.failures[place] += 1
            if self.failures[place] > self.most_failures:
                self.closed.setdefault(place, self.now())

    def retry(self, workflow: str, tasks: Iterable[str]) -> None:
        """The owner has tasks tried again: what comes of the leases of before does not count any more."""
        for task in tasks:
            self.retried[workflow, task] = self.latest[workflow, task]
            self.failures[workflow, task] = 0
            self.closed.pop((workflow, task), None)

    # At the end

    def judge(self, workflow: str, tasks: list[str], ends: list[Attempt], state: str) -> list[str]:
        """All that does not hold of a workflow, by what its store has."""
        parents, wrong = self.parents[workflow], [*self.wrong]
        known = {f"{workflow}.{end.number}.{end.secret}": end for end in ends}
        accepted = Counter(tasks[end.task] for end in ends if end.answer == "accepted")
        wrong += [f"{task} was accepted {count} times" for task, count in accepted.items() if count > 1]
        for lease, answer in self.ended.items():
            if lease.startswith(f"{workflow}.") and (lease not in known or known[lease].answer != answer):
                wrong.append(f"{lease} was told {answer}, and kept is {known.get(lease)}")
        for lease, end in known.items():
            if end.answer == "accepted" and lease in self.given and (lease, end.tail) not in self.sent:
                wrong.append(f"{lease} was accepted with what nobody sent: {end.tail}")
        wrong += [
            f"{task} was accepted before what it needs" for task in accepted if set(parents[task]) - set(accepted)
        ]
        return wrong + self._unfinished(workflow, tasks, ends, state, set(accepted))

    def _unfinished(
        self, workflow: str, tasks: list[str], ends: list[Attempt], state: str, done: set[str]
    ) -> list[str]:
        """A task that is not done failed too often, or needs one that did; where none is, the workflow is done."""
        if state == "cancelled":
            return []
        since = [self.retried.get((workflow, task), 0) for task in tasks]
        recent = [end for end in ends if end.number > since[end.task]]  # an owner's retry forgives what came before
        fails, losses = counted(recent, "failed"), counted(recent, "expired", "lost")
        spent = {task for i, task in enumerate(tasks) if fails[i] > self.most_failures or losses[i] > self.most_losses}
        blocked = set(spent)
        for task in tasks:  # parents come first
            if blocked.intersection(self.parents[workflow][task]):
                blocked.add(task)
        lost = [f"{task} was lost" for task in tasks if task not in done and task not in blocked]
        right = "done" if len(done) == len(tasks) else "failed"
        return lost if state == right else [*lost, f"the workflow is {state}, and should be {right}"]


def counted(ends: Iterable[Attempt], *answers: str) -> Counter[int]:
    """How often leases of each task ended so."""
    return Counter(end.task for end in ends if end.answer in answers)


def number_of(lease: str) -> int:
    """The number in the id of a lease."""
    return int(lease.split(".")[1])
