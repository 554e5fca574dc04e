"""Snakemake: a limit on its `temp()` files; which jobs may start so that these files stay within it.

The sizes of files that do not exist yet are unknown to Snakemake. Each is taken to be the mean of those that the same rule
has written, or that all rules have. Until a size is known, jobs that write such files run one at a time.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from eligo.allocating.by_policy import ByPolicy
from eligo.allocating.within import MUCH, Within
from eligo.dag import Dag
from eligo.execution import ELIGIBLE, EXECUTED, WAITING, Execution
from eligo.names import Name
from eligo.policies import from_order
from eligo.running.cleaning import size_of
from eligo.space.footprint import Footprint
from eligo.space.orders import space_order
from eligo.workflow import Task, Workflow

#: a job of Snakemake
Job = Any
#: the name of a job as a task: a number and its rule
TaskName = tuple[int, str]
#: the most jobs for which the reference order is searched again when sizes become known
MOST_ORDERED = 5_000


class TemporaryFiles:
    """The `temp()` files of one run, and the jobs that write and read them; *graph* is Snakemake's."""

    def __init__(self, graph: Any, limit: int) -> None:
        self._graph, self._limit = graph, limit
        self._sizes: dict[str, int] = {}  # of the files of finished jobs
        self._means: dict[str, float] = {}  # of the files of each rule, as of the last `_build`
        self._running, self._failed = dict[Job, None](), set[Job]()
        self._name: dict[Job, TaskName] = {}
        self._order: Sequence[Name] = ()
        self._place: dict[Name, int] = {}
        self._within: Within | None = None
        self._readers: dict[str, set[Job]] = {}  # of the temporary files
        self._expected: dict[str, int] = {}  # the sizes that are expected of them

    def learn_jobs(self, jobs: Sequence[Job]) -> None:
        """Learn all jobs of the run, when it begins and after a checkpoint."""
        self._name, self._order = {job: (number, job.name) for number, job in enumerate(jobs)}, ()
        self._build()

    def _build(self) -> None:
        """Make the allocator anew, from what has happened so far and the sizes that are known."""
        flow = self._workflow()
        footprint = Footprint.of(flow)
        if footprint.level == "tasks":  # no job reads a temporary file of another
            self._within = None
            return
        if not footprint.sized:
            footprint = replace(footprint, sizes=np.full(len(footprint), self._limit, np.int64))
        groups = zip(footprint.names, footprint.sizes.tolist(), strict=True)
        self._expected = {file: size // len(names) for names, size in groups for file in names}
        if not self._order or len(flow) <= MOST_ORDERED:
            self._order = tuple(flow.dag.named(space_order(footprint, "quick").tolist()))
        self._place = {name: place for place, name in enumerate(self._order)}
        done = [name for job, name in self._name.items() if self._graph.finished(job)]
        game = Execution(flow, done)
        inner = ByPolicy(from_order(flow.dag, self._order, "space"), game)
        self._within = Within(inner, footprint, self._limit, self._order, estimated=True)
        self._within.retrying = lambda v: False
        for job in self._running:
            game.take(self._name[job])
        for job in self._failed & self._name.keys():
            game.take(self._name[job])
            game.fail(self._name[job])
        self._means = self._mean_sizes()

    def _workflow(self) -> Workflow:
        name = self._name
        needed = {name[job]: [name[p] for p in self._graph.job_dependencies(job) if p in name] for job in name}
        files = {name[job]: tuple(temporary(job)) for job in name}
        passed = {file for outputs in files.values() for file in outputs}
        self._readers = {}
        for job in name:
            for file in passed.intersection(map(str, job.input)):
                self._readers.setdefault(file, set()).add(job)
        details = {
            name[job]: Task(
                name=name[job],
                category=job.name,
                inputs=tuple(file for file in map(str, job.input) if file in passed),
                outputs=files[name[job]],
            )
            for job in name
        }
        return Workflow(Dag.from_parents(needed), details, file_sizes=self._sizes)

    def _mean_sizes(self) -> dict[str, float]:
        sizes: dict[str, list[int]] = {}
        for job in self._name:
            sizes.setdefault(job.name, []).extend(self._sizes[file] for file in temporary(job) if file in self._sizes)
        return {rule: sum(some) / len(some) for rule, some in sizes.items() if some}

    def follow(self, remaining: Collection[Job], idle: bool) -> None:
        """Learn which of the jobs that run have ended; if the run is *idle*, what is neither done nor remains has failed."""
        if self._within is None or not self._running:
            return
        waiting, game, learned = set(remaining), self._within.execution, False
        for job in [*self._running]:
            if self._graph.finished(job):
                game.complete(self._name[job])
                learned |= self._learn_sizes(job)
            elif job in waiting:  # it failed and will be retried
                game.release(self._name[job])
            elif idle:
                game.fail(self._name[job])
                self._failed.add(job)
            else:
                continue
            del self._running[job]
        if learned and self._is_surprised():
            self._build()

    def _learn_sizes(self, job: Job) -> bool:
        """Learn the real sizes of the files of a job; returns whether there are any."""
        sizes = dict(sizes_of(temporary(job)))
        self._sizes |= sizes
        if self._within is not None:
            self._within.correct_files(sizes)
        return bool(sizes)

    def _is_surprised(self) -> bool:
        """Whether the mean sizes of the files of a rule differ much from those that were expected."""
        before, now = self._means, self._mean_sizes()
        return any(rule not in before or abs(mean - before[rule]) > MUCH * before[rule] for rule, mean in now.items())

    def start(self, jobs: Iterable[Job], forced: bool = False) -> bool:
        """Note that jobs start together if there is space for them, or if they are *forced*; returns whether they start."""
        ranked = sorted((job for job in jobs if job in self._name), key=lambda job: self._place[self._name[job]])
        if self._within is not None and not self._are_ready(ranked):
            self._build()  # other jobs have ended meanwhile
        if self._within is None or not self._are_ready(ranked):
            return True
        if not self._within.begin([self._name[job] for job in ranked], forced):
            return False
        self._running.update(dict.fromkeys(ranked))
        return True

    def growth(self, job: Job) -> int:
        """By how many bytes a job changes what exists once it has ended, as far as sizes are known."""
        if self._within is None:
            return 0
        last = (
            file for file in map(str, job.input) if all(map(self._has_ended, self._readers.get(file, {job}) - {job}))
        )
        written = (file for file in temporary(job) if file in self._readers)
        return sum(map(self._expected_size, written)) - sum(map(self._expected_size, last))

    def _has_ended(self, job: Job) -> bool:
        return bool(self._graph.finished(job))

    def _expected_size(self, file: str) -> int:
        return self._expected.get(file, 0)

    def _are_ready(self, jobs: Sequence[Job]) -> bool:
        """Whether these jobs can be taken together."""
        if self._within is None:
            return False
        graph, codes, together = self._within.execution.graph, self._within.execution.codes, set[int]()
        for v in (graph.number(self._name[job]) for job in jobs):
            waits = any(codes[u] != EXECUTED and u not in together for u in graph.parents_of(v))
            if codes[v] not in {WAITING, ELIGIBLE} or waits:
                return False
            together.add(v)
        return bool(jobs)


def temporary(job: Job) -> Iterator[str]:
    """The outputs of a job that Snakemake removes once no job needs them."""
    return (str(file) for file in job.output if file.is_flagged("temp"))


def sizes_of(files: Iterable[str]) -> Iterator[tuple[str, int]]:
    """The sizes of those of the files that exist here."""
    for file in files:
        size = size_of(file)
        if size is not None:
            yield file, size
