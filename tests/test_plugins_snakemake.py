"""The ready jobs of Snakemake in eligo's order, with jobs that stand in for Snakemake's; the real ones: tests/plugins."""

from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest

from eligo.errors import InputError
from eligo.plugins import snakemake
from eligo.plugins.snakemake import ReadyJobs, check_policy, places, space_in

PLENTY = {"_cores": 100, "_job_count": 10**9}


class Single:
    """A job as the plug-in sees it."""

    def __init__(self, name: str, priority: int = 0, **needs: Any) -> None:
        self.name, self.output, self.priority = name, [f"{name}.out"], priority
        self.scheduler_resources = {"_cores": 1, "_job_count": 1, "tmpdir": "/tmp", **needs}

    def __repr__(self) -> str:
        return self.name

    def is_group(self) -> bool:
        return False


class Together(Single):
    """A group of jobs."""

    def __init__(self, name: str, jobs: Iterable[Single]) -> None:
        super().__init__(name)
        self.jobs = frozenset(jobs)

    def is_group(self) -> bool:
        return True


class Graph:
    """What is to be run, and what each job needs."""

    def __init__(self, needed: Mapping[Single, Iterable[Single]]) -> None:
        self.needed, self.asked = dict(needed), 0

    def needrun_jobs(self) -> Iterable[Single]:
        self.asked += 1
        return iter(set(self.needed))

    def job_dependencies(self, job: Single) -> Iterable[Single]:
        return self.needed[job]


def chosen(queue: ReadyJobs, ready: Iterable[Single], graph: Graph, **available: int) -> list[str]:
    return [job.name for job in queue.select(set(ready), list(graph.needed), PLENTY | available)]


@pytest.fixture
def jobs() -> dict[str, Single]:
    return {name: Single(name) for name in ("begin", "end", "fan0", "fan1", "side0", "side1", "side2")}


@pytest.fixture
def graph(jobs: dict[str, Single]) -> Graph:
    begin, fans = jobs["begin"], [jobs["fan0"], jobs["fan1"]]
    needs: dict[str, list[Single]] = {"fan0": [begin], "fan1": [begin], "end": fans}
    return Graph({job: needs.get(name, []) for name, job in jobs.items()})


def ready_at_first(jobs: dict[str, Single]) -> list[Single]:
    return [jobs[name] for name in ("side2", "side1", "begin", "side0")]


def test_the_best_jobs_begin_as_far_as_there_is_room(jobs: dict[str, Single], graph: Graph) -> None:
    queue = ReadyJobs(graph)
    ready = ready_at_first(jobs)
    assert chosen(queue, ready, graph, _cores=0) == []
    assert chosen(queue, ready, graph, _cores=2) == ["begin", "side0"]
    assert chosen(queue, ready[:2], graph) == ["side1", "side2"]


def test_jobs_are_ranked_once(jobs: dict[str, Single], graph: Graph) -> None:
    queue = ReadyJobs(graph)
    for _ in range(3):
        chosen(queue, ready_at_first(jobs), graph, _cores=1)
    assert graph.asked == 1


def test_the_users_own_priority_comes_first(jobs: dict[str, Single], graph: Graph) -> None:
    jobs["side2"].priority, jobs["side1"].priority = 3, 7
    assert chosen(ReadyJobs(graph), ready_at_first(jobs), graph) == ["side1", "side2", "begin", "side0"]


def test_what_does_not_fit_is_passed_over_and_waits(jobs: dict[str, Single], graph: Graph) -> None:
    queue = ReadyJobs(graph)
    jobs["begin"].scheduler_resources["_cores"] = 4
    jobs["side0"].scheduler_resources["mem_mb"] = 50
    ready = ready_at_first(jobs)
    assert chosen(queue, ready, graph, _cores=3, mem_mb=40) == ["side1", "side2"]
    assert chosen(queue, [jobs["begin"], jobs["side0"]], graph, _cores=5, mem_mb=50) == ["begin", "side0"]


def test_what_is_limited_may_change(jobs: dict[str, Single], graph: Graph) -> None:
    queue = ReadyJobs(graph)
    jobs["begin"].scheduler_resources["gpu"] = 1
    assert chosen(queue, ready_at_first(jobs), graph, _cores=0) == []
    assert chosen(queue, ready_at_first(jobs), graph, gpu=0) == ["side0", "side1", "side2"]


def test_jobs_that_are_not_ready_any_more_are_not_chosen(jobs: dict[str, Single], graph: Graph) -> None:
    queue = ReadyJobs(graph)
    chosen(queue, ready_at_first(jobs), graph, _cores=0)
    assert chosen(queue, [jobs["side1"]], graph) == ["side1"]  # as with --scheduler-subsample
    assert chosen(queue, [jobs["begin"], jobs["side2"]], graph) == ["begin", "side2"]


def test_a_second_attempt_has_the_place_of_the_first(jobs: dict[str, Single], graph: Graph) -> None:
    queue = ReadyJobs(graph)
    assert chosen(queue, ready_at_first(jobs), graph, _cores=1) == ["begin"]
    jobs["begin"].scheduler_resources["_cores"] = 2  # it may ask for more then
    assert chosen(queue, ready_at_first(jobs), graph, _cores=3) == ["begin", "side0"]
    assert graph.asked == 1


def test_a_group_has_the_place_of_its_best_job(jobs: dict[str, Single], graph: Graph) -> None:
    group = Together("a group", [jobs["begin"], jobs["fan0"], jobs["side2"]])
    assert chosen(ReadyJobs(graph), [jobs["side0"], group], graph) == ["a group", "side0"]


def test_a_job_that_the_graph_does_not_know_goes_last_and_is_asked_for_once(
    graph: Graph, jobs: dict[str, Single]
) -> None:
    queue = ReadyJobs(graph)
    ready = [Single("stray"), *ready_at_first(jobs)]
    for _ in range(3):
        assert chosen(queue, ready, graph) == ["begin", "side0", "side1", "side2", "stray"]
    assert graph.asked == 1


def test_jobs_that_are_added_are_ranked_with_the_others(jobs: dict[str, Single], graph: Graph) -> None:
    queue = ReadyJobs(graph)
    assert chosen(queue, ready_at_first(jobs), graph, _cores=1) == ["begin"]
    part, whole, last = Single("part"), Single("whole"), Single("zlast")
    graph.needed |= {part: [], whole: [part], last: [whole]}
    ready = [jobs["side0"], jobs["side1"], part]
    assert chosen(queue, ready, graph) == ["part", "side0", "side1"]
    assert graph.asked == 2


def test_jobs_that_are_added_and_not_ready_count_too(jobs: dict[str, Single], graph: Graph) -> None:
    queue = ReadyJobs(graph)
    assert chosen(queue, ready_at_first(jobs), graph, _cores=1) == ["begin"]
    whole, last = Single("whole"), Single("zlast")
    graph.needed |= {whole: [jobs["side2"]], last: [whole]}
    assert chosen(queue, [jobs["side0"], jobs["side1"], jobs["side2"]], graph)[0] == "side2"


def test_ties_are_the_same_in_every_run() -> None:
    def order() -> list[str]:
        graph = Graph({Single(f"job{i:02}"): [] for i in range(50)})
        place = places(graph)
        return [job.name for job in sorted(place, key=place.__getitem__)]

    assert order() == order() == [f"job{i:02}" for i in range(50)]


def test_one_job_needs_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snakemake, "_numbers", None)
    alone = Single("alone")
    assert places(Graph({alone: []})) == {alone: 0}
    assert places(Graph({})) == {}


def test_not_every_job_is_looked_at_for_a_choice() -> None:
    class Remaining(list[Single]):
        """Jobs that remain, none of which is to be looked at."""

        def __iter__(self) -> Any:
            raise AssertionError

    one = PLENTY | {"_cores": 1}
    jobs = [Single(f"job{i}") for i in range(40)]
    group = Together("group", jobs[:5])
    queue = ReadyJobs(Graph({job: [] for job in jobs}))
    assert queue.select({group, *jobs[5:]}, jobs, one) == [group]
    assert queue.select(set(jobs[5:]), Remaining(jobs), one) == [jobs[10]]  # "job10" comes after "job1"
    assert len(queue.select({*jobs[5:10], *jobs[11:]}, Remaining(jobs[1:]), one)) == 1


def test_jobs_that_all_need_something_else_fit_one_by_one() -> None:
    numbers = count(1)
    jobs = [Single(f"job{i:04}", mem_mb=next(numbers)) for i in range(1000)]
    queue = ReadyJobs(Graph({job: [] for job in jobs}))
    assert chosen(queue, jobs, Graph({}), mem_mb=0) == []
    assert chosen(queue, jobs, Graph({}), mem_mb=3) == ["job0000", "job0001"]


def test_a_history_counts(jobs: dict[str, Single], graph: Graph, tmp_path: Path) -> None:
    (tmp_path / "took.csv").write_text("kind,seconds\nside1,100\nbegin,1\nfan0,1\n", "utf-8")
    place = places(graph, "critical-path-seconds", tmp_path / "took.csv")
    assert min(place, key=place.__getitem__) is jobs["side1"]


def test_a_policy_that_there_is_not_is_refused() -> None:
    for name in ("finish", "ready", "critical-path"):
        check_policy(name)
    with pytest.raises(InputError, match=r"unknown policy 'quickest' \(choose from finish, balanced, ready, fifo,"):
        check_policy("quickest")


# A limit of temporary files


class Temp(str):
    """A temporary output."""

    def is_flagged(self, flag: str) -> bool:
        return flag == "temp"


class Step(Single):
    """A job of a rule, which reads files and writes a temporary one."""

    def __init__(self, name: str, inputs: Iterable[str], output: str) -> None:
        super().__init__(name)
        self.input, self.output = list(inputs), [Temp(output)]


class Run(Graph):
    """Branches of two jobs each below *folder*, their files, and what has become of the jobs."""

    def __init__(self, folder: Path, branches: int, size: int) -> None:
        self.folder, self.size = folder, size
        first = [Step("make", [], str(folder / f"a{i}")) for i in range(branches)]
        second = [Step("use", one.output, str(folder / f"b{i}")) for i, one in enumerate(first)]
        last = Step("end", [file for one in second for file in one.output], str(folder / "end"))
        super().__init__(
            {**dict.fromkeys(first, ()), **{b: [a] for a, b in zip(first, second, strict=True)}, last: second}
        )
        self.done, self.running, self.failed = list[Single](), list[Single](), set[Single]()

    def finished(self, job: Single) -> bool:
        return job in self.done

    def ready(self) -> set[Single]:
        out = {*self.done, *self.running, *self.failed}
        return {job for job, needed in self.needed.items() if job not in out and set(needed) <= set(self.done)}

    def start(self, queue: ReadyJobs, cores: int) -> list[Single]:
        remaining = [job for job in self.needed if job not in {*self.done, *self.running, *self.failed}]
        free = {"_cores": cores - len(self.running), "_job_count": 10**9 - len(self.done)}
        chosen = queue.select(self.ready(), remaining, free) if self.ready() else []
        self.running += chosen
        return chosen

    def end(self, job: Single) -> None:
        """A job has ended: its file is there, and what nobody needs any more is gone."""
        self.running.remove(job)
        self.done.append(job)
        Path(job.output[0]).write_bytes(bytes(self.size if job.name == "make" else 10))
        for parent in self.needed[job]:
            Path(parent.output[0]).unlink()

    @property
    def taken(self) -> int:
        """The bytes of all temporary files that exist, or will be written by the jobs that run."""
        made = sum(self.size if job.name == "make" else 10 for job in self.running if job.name != "end")
        return made + sum(path.stat().st_size for path in self.folder.iterdir() if path.name != "end")


@pytest.mark.parametrize("seed", range(20))
def test_temporary_files_are_within_the_limit_and_the_run_ends(tmp_path: Path, seed: int) -> None:
    random, run = Random(seed), Run(tmp_path, branches=8, size=1000)
    queue, widest = ReadyJobs(run, "fifo", space=2500), 0
    while len(run.done) < len(run.needed):
        run.start(queue, cores=4)
        assert run.running
        assert run.taken <= 2500
        widest = max(widest, len(run.running))
        job = random.choice(run.running)
        if random.random() < 0.2:
            run.running.remove(job)  # it failed and is retried
        else:
            run.end(job)
    assert widest >= 2


def test_a_limit_that_is_too_small_lets_one_job_at_a_time_run(tmp_path: Path) -> None:
    run = Run(tmp_path, branches=3, size=1000)
    queue = ReadyJobs(run, "fifo", space=1)
    while len(run.done) < len(run.needed):
        (job,) = run.start(queue, cores=4)
        assert run.start(queue, cores=4) == []
        run.end(job)


def test_what_failed_for_good_holds_nothing_back_for_ever(tmp_path: Path) -> None:
    run = Run(tmp_path, branches=3, size=1000)
    queue = ReadyJobs(run, "fifo", space=1000)
    (bad,) = run.start(queue, cores=4)
    run.running.remove(bad)
    run.failed.add(bad)
    for _ in range(4):
        (job,) = run.start(queue, cores=4)
        run.end(job)
    assert len(run.done) == 4
    assert run.ready() == set()


def test_jobs_of_a_group_start_together_or_not_at_all(tmp_path: Path) -> None:
    run = Run(tmp_path, branches=3, size=1000)
    queue = ReadyJobs(run, "fifo", space=2500)
    (first,) = run.start(queue, cores=1)
    run.end(first)
    makes = [job for job in run.needed if job.name == "make" and job is not first]
    group = Together("both", makes)
    remaining = [job for job in run.needed if job is not first]
    use = next(job for job in run.ready() if job.name == "use")
    assert queue.select({use, group}, remaining, {"_cores": 4, "_job_count": 10**9}) == [use]
    assert queue.select({group}, remaining, {"_cores": 3, "_job_count": 10**9}) == []


@pytest.mark.parametrize("text", ["", "much", "-1"])
def test_a_limit_that_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="space must be a size, such as 200G"):
        space_in(text)
