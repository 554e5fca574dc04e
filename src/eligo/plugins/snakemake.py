"""Snakemake: the choice of the ready jobs that start next, for `snakemake --scheduler eligo`; docs/engines/snakemake.md.

All jobs to be run are ranked once, and again when a checkpoint has added jobs. Ready jobs are in piles, one for each set of
required resources, so that a choice examines new ready jobs and not every job. This module imports nothing from Snakemake;
Snakemake finds `snakemake_scheduler_plugin_eligo` by its name, which uses this module.
"""

from collections.abc import Collection, Iterable, Mapping
from heapq import heapify, heappop, heappush
from itertools import count
from os import PathLike
from typing import Any

from eligo.errors import InputError, check_choice
from eligo.work.demands import bytes_in

DEFAULT = "finish"
#: the resource of Snakemake that counts jobs, which no job gives back
COUNT = "_job_count"
#: the jobs without space that are passed over in one choice
MOST_HELD = 100

#: a job of Snakemake, or a group of them
Ready = Any
#: the amounts of limited resources that a job requires
Needs = tuple[tuple[str, int], ...]
#: a job in its pile: its place, a unique number, the job, and its needs
Entry = tuple[int, int, Ready, Needs]


class ReadyJobs:
    """The ready jobs of one run: the best first, as many as resources allow.

    *graph* is Snakemake's, with `needrun_jobs`, `job_dependencies` and `finished`; *policy* is one of eligo's; *history* is a
    file or folder with run times of jobs; *space* is the limit of `temp()` files in bytes.
    """

    def __init__(
        self,
        graph: Any,
        policy: str = DEFAULT,
        history: str | PathLike[str] | None = None,
        space: int | None = None,
    ) -> None:
        self._graph, self._policy, self._history = graph, policy, history
        self._temporary = None if space is None else _temporary_files(graph, space)
        self._free: dict[str, int] = {}  # the resources that are available if no job runs
        self._place: dict[Ready, int] = {}
        self._expected = 0  # the number of remaining jobs if none is added
        self._limited: frozenset[str] = frozenset()
        self._numbers = count()
        self._clear()

    def _clear(self) -> None:
        self._piles: dict[Needs, list[Entry]] = {}
        self._piled: set[Ready] = set()
        self._least: dict[str, int] | None = None  # the minimum needs of all jobs

    def select(self, ready: Iterable[Ready], remaining: Collection[Ready], available: Mapping[str, int]) -> list[Ready]:
        """The jobs to start now, the best first; together they need no more than is *available*."""
        now = ready if isinstance(ready, set) else set(ready)
        if self._limited != available.keys():
            self._limited = frozenset(available)
            self._clear()
        idle = self._is_idle(available)
        if self._temporary is not None:
            self._temporary.follow(remaining, idle)
        fresh = now - self._piled
        if self._is_outdated(fresh, remaining):
            self._place = places(self._graph, self._policy, self._history)
            if self._temporary is not None:
                self._temporary.learn_jobs([*self._place])
            self._clear()
            fresh = now
        for job in fresh:
            self._pile(job)
        chosen = self._fill(now, dict(available)) or self._first(now if idle else set(), available)
        # jobs of a group remain until its end
        self._expected = len(remaining) - sum(not job.is_group() for job in chosen)
        return chosen

    def _is_idle(self, available: Mapping[str, int]) -> bool:
        """Whether no job runs, so that all resources are available."""
        amounts = {name: amount for name, amount in available.items() if name != COUNT and isinstance(amount, int)}
        self._free = {name: max(amount, self._free.get(name, 0)) for name, amount in amounts.items()}
        return amounts == self._free

    def _first(self, ready: set[Ready], available: Mapping[str, int]) -> list[Ready]:
        """The job that fits and leaves the fewest bytes, which starts without space: nothing else can run."""
        if self._temporary is None:
            return []
        growth = self._temporary.growth
        for job in sorted(ready, key=lambda job: (sum(map(growth, members(job))), self._rank(job))):
            if all(available[name] >= amount for name, amount in self._needs(job)):
                self._temporary.start(members(job), forced=True)
                return [job]
        return []

    def _is_outdated(self, fresh: Iterable[Ready], remaining: Collection[Ready]) -> bool:
        """Whether there are jobs without a rank; examines all jobs only if there are more than expected."""
        is_ranked = self._place.__contains__
        if not all(is_ranked(member) for job in fresh for member in members(job)):
            return True
        return len(remaining) > self._expected and not all(map(is_ranked, remaining))

    def _rank(self, job: Ready) -> int:
        """The place of a job, or of the best job of a group."""
        last = len(self._place)
        return min((self._place.setdefault(member, last) for member in members(job)), default=last)

    def _needs(self, job: Ready) -> Needs:
        wanted = job.scheduler_resources.items()
        return tuple(sorted((name, amount) for name, amount in wanted if name in self._limited and amount))

    def _pile(self, job: Ready) -> None:
        place, needs = self._rank(job), self._needs(job)
        if needs not in self._piles:
            these = dict(needs)
            least = these if self._least is None else self._least
            self._least = {name: min(least[name], these[name]) for name in least.keys() & these.keys()}
        heappush(self._piles.setdefault(needs, []), (place, next(self._numbers), job, needs))
        self._piled.add(job)

    def _fill(self, ready: set[Ready], free: dict[str, int]) -> list[Ready]:
        """The best jobs of all piles, one by one; skips a pile whose jobs do not fit."""
        chosen, held = list[Ready](), 0
        heads = [pile[0] for pile in self._piles.values()] if self._has_room(free) else []
        heapify(heads)
        while heads and self._has_room(free) and held < MOST_HELD:
            _, _, job, needs = heappop(heads)
            if any(free[name] < amount for name, amount in needs):
                continue
            if job in ready and not self._may_start(job):
                held += 1
            elif job in ready:
                chosen.append(job)
                free.update((name, free[name] - amount) for name, amount in needs)
            self._drop_head(needs)
            if needs in self._piles:
                heappush(heads, self._piles[needs][0])
        return chosen

    def _may_start(self, job: Ready) -> bool:
        return self._temporary is None or self._temporary.start(members(job))

    def _has_room(self, free: Mapping[str, int]) -> bool:
        return all(free[name] >= amount for name, amount in (self._least or {}).items())

    def _drop_head(self, needs: Needs) -> None:
        pile = self._piles[needs]
        self._piled.discard(heappop(pile)[2])
        if not pile:
            del self._piles[needs]


def members(job: Ready) -> Iterable[Ready]:
    """The jobs of a group, or the job itself."""
    if not job.is_group():
        return (job,)
    jobs: Any = job.jobs  # a method in Snakemake's interface, but an attribute in Snakemake
    within: Iterable[Ready] = jobs() if callable(jobs) else jobs
    return within


def places(graph: Any, policy: str = DEFAULT, history: str | PathLike[str] | None = None) -> dict[Ready, int]:
    """The position of every job to run: by the user's priority, larger first, then by eligo's order."""
    labels = {job: " ".join((job.name, *map(str, job.output))) for job in graph.needrun_jobs()}
    jobs = sorted(labels, key=labels.__getitem__)  # labels break ties in the same way in every run, unlike a set
    numbers = _numbers(graph, jobs, policy, history) if len(jobs) > 1 else [0] * len(jobs)
    rank = sorted(range(len(jobs)), key=lambda i: (-jobs[i].priority, -numbers[i]))
    return {jobs[i]: place for place, i in enumerate(rank)}


def _numbers(graph: Any, jobs: list[Ready], policy: str, history: str | PathLike[str] | None) -> list[int]:
    """eligo's priority of every job; imports are here, because Snakemake loads plug-ins for every job."""
    from eligo.border import with_history
    from eligo.dag import Dag
    from eligo.plugins.numbers import quick_order
    from eligo.workflow import Task, Workflow, priority_numbers

    # names of numbers and rules: histories match the rules, but no names of jobs
    name = {job: (number, job.name) for number, job in enumerate(jobs)}
    needed = {name[job]: [name[p] for p in graph.job_dependencies(job) if p in name] for job in jobs}
    details = {key: Task(name=key, category=key[1]) for key in needed}
    flow = Workflow(Dag.from_parents(needed), details)
    if history is not None:
        flow = with_history(flow, history)
    priorities = priority_numbers(quick_order(flow, policy))
    return [priorities[name[job]] for job in jobs]


def _temporary_files(graph: Any, space: int) -> Any:
    """The limit of temporary files, which needs more imports than a run without one."""
    from eligo.plugins.temporary_files import TemporaryFiles

    return TemporaryFiles(graph, space)


def space_in(text: str) -> int:
    """The bytes of a limit, such as 200G."""
    size = bytes_in(text)
    if size is None or size < 0:
        raise InputError(f"space must be a size, such as 200G, got {text!r}")
    return size


def check_policy(name: str) -> None:
    """Raise if a name is not one of eligo's policies."""
    if name != DEFAULT:
        from eligo.policies import POLICIES, present_name

        check_choice("policy", present_name(name), POLICIES)
