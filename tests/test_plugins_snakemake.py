"""The ready jobs of Snakemake in eligo's order, with jobs that stand in for Snakemake's; the real ones: tests/plugins."""

from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from eligo.errors import InputError
from eligo.plugins import snakemake
from eligo.plugins.snakemake import ReadyJobs, check_policy, places

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
