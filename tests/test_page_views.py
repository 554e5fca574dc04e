"""What the page says about runs of which every attempt is known."""

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import pytest

from eligo.dag import Dag
from eligo.execution import Execution
from eligo.pages.dag_picture import Drawn
from eligo.pages.timelines import gantt
from eligo.pages.views import view
from eligo.pages.watched import Watched, Worker
from eligo.running.states import Curve
from eligo.stores import Attempt
from eligo.work.attempts import ACCEPTED, FAILED, Lease
from eligo.workflow import Workflow

LAST = 10_000.0  # the time at which all is looked at, unless another one is given


class Try(NamedTuple):
    """An attempt; without an end it is under way."""

    task: str
    client: str
    began: float
    ended: float | None = None
    failure: str | None = None
    number: int = 1


class Now(NamedTuple):
    """When and how the attempts are looked at."""

    at: float = LAST
    slots: int | None = None
    retrying: Sequence[str] = ()
    going: bool = True


class Sample(Watched):
    """A workflow with these attempts; a task whose last attempt failed has failed, unless it waits for a retry."""

    source, id, title, policy, status = "run", "w", "w", "finish", "running"

    def __init__(self, parents: dict[str, list[str]], tries: Sequence[Try], now: Now = Now()) -> None:  # noqa: B008
        flow = Workflow(Dag.from_parents(parents))
        super().__init__(flow)
        self.execution, self.at, self.under_way, self._slots = Execution(flow), now.at, now.going, now.slots
        self.absent = set[str]()
        self.clients = list(dict.fromkeys(one.client for one in tries))
        number, last = flow.dag.number, {one.task: one for one in tries}
        for one in sorted(tries, key=lambda one: one.ended or now.at):
            if last[one.task] is one:
                self.execution.take(one.task)
                if one.ended is not None:
                    (self.execution.complete if one.failure is None else self.execution.fail)(one.task)
        self.trying = {
            number(one.task): Lease("", 0, number(one.task), one.number, one.client, "", "", 0, one.began)
            for one in tries
            if one.ended is None
        }
        self.again = {number(task): now.at + 5 for task in now.retrying}
        self.attempts.add(
            Attempt("", place, number(one.task), one.number, one.client, "", one.began, one.ended,
                    ACCEPTED if one.failure is None else FAILED, failure=one.failure)
            for place, one in enumerate(tries) if one.ended is not None
        )  # fmt: skip

    @property
    def slots(self) -> int | None:
        return self._slots

    @property
    def spans(self) -> Sequence[tuple[float, float]]:
        return [(0.0, self.at)]

    @property
    def workers(self) -> Sequence[Worker]:
        return [Worker(client, client, self.at, client not in self.absent) for client in self.clients]

    def curve(self, name: str) -> Curve | None:
        return None

    def printed(self, v: int, attempt: int, err: bool) -> str:
        return ""


def words(sample: Sample) -> list[str]:
    """What is said about the order."""
    said: list[str] = view(sample)["order"]["words"]
    return said


NONE = "No: every ready task began at once, so the order made no difference."
FORK = {"a": [], "b": [], "x": ["a"], "y": ["b"]}


def test_where_everything_ready_began_at_once_no_order_helps() -> None:
    """Although tasks end in another order than they were given, in which fifo has more ready tasks."""
    tries = [Try("a", "1", 0, 10), Try("b", "2", 0, 5), Try("y", "2", 5, 30), Try("x", "1", 10, 12)]
    assert words(Sample(FORK, tries))[0] == NONE


def test_a_wait_for_which_another_task_began_is_a_choice() -> None:
    tries = [Try("a", "1", 0, 10), Try("b", "1", 10, 20), Try("x", "1", 20, 30), Try("y", "1", 30, 40)]
    assert words(Sample(FORK, tries))[0].startswith("This order had ")


def test_tasks_that_begin_one_after_another_on_free_workers_did_not_wait_for_a_choice() -> None:
    """The engine takes a while to start each of many tasks."""
    parents = {f"t{i}": list[str]() for i in range(64)}
    tries = [Try(f"t{i}", str(i), i / 10, i / 10 + 8) for i in range(64)]
    assert words(Sample(parents, tries, Now(slots=64)))[0] == NONE
    assert words(Sample(parents, tries, Now(slots=8)))[0].startswith("This order had ")


def test_first_come_first_served_has_the_same_failures() -> None:
    """Without the failure, that order would have had all that depends on the failed task ready."""
    parents: dict[str, list[str]] = {"bad": []}
    parents |= {f"of bad {i}": ["bad"] for i in range(50)}
    parents |= {"a": [], "b": [], "x": ["a"], "y": ["b"]}
    tries = [Try("bad", "1", 0, 10, "exit code 1"), Try("a", "1", 10, 20), Try("b", "1", 20, 30)]
    tries += [Try("x", "1", 30, 40), Try("y", "1", 40, 50)]
    sample = Sample(parents, tries)
    first = words(sample)[0]
    assert "as many as first come, first served" in first
    assert len(sample.fifo) == 4 + 1
    curve = view(sample)["curve"]["averages"]
    assert curve["seen"] == curve["fifo"]


@pytest.mark.parametrize("going", [True, False])
def test_a_growing_run_names_why_it_has_no_plan(going: bool) -> None:
    document: dict[str, Any] = view(Sample(FORK, [Try("a", "1", 0, 10)], Now(going=going)))
    assert document["curve"]["remark"] == "No plan is available for this policy."


# Numbers that are shown in several places


def test_what_counts_as_running_is_listed_with_its_worker_or_as_assigned() -> None:
    """The moves of a run are stored before the begins of its tasks, so the last ones may be missing."""
    sample = Sample({"a": [], "b": [], "c": []}, [Try("a", "1", 5), Try("b", "2", 6), Try("c", "2", 7)])
    sample.trying = {v: lease for v, lease in sample.trying.items() if sample.labels[v] != "c"}
    document: dict[str, Any] = view(sample)
    assert document["counts"]["running"] == len(document["running"]) == 3
    assert [(one["task"], one["assigned"]) for one in document["running"]] == [("a", False), ("b", False), ("c", True)]


def test_busy_is_one_number() -> None:
    """Of the whole run, and of its timeline: a worker that runs several tasks at a time has a lane for each."""
    tries = [Try("a", "1", 0, 10), Try("b", "1", 0, 20), Try("x", "1", 10, 20), Try("y", "1", 30, 40)]
    sample = Sample(FORK, tries, Now(at=40, going=False))
    timeline = gantt(sample)
    assert [worker["name"] for worker in timeline["workers"]] == ["1 / 1", "1 / 2"]
    assert timeline["busy"] == view(sample)["busy"] == round(50 / 80, 4)
    assert sum(worker["busy"] for worker in timeline["workers"]) / 2 == pytest.approx(timeline["busy"])


def test_bars_on_a_lane_do_not_overlap() -> None:
    rng = random.Random(1)
    names = [f"t{i}" for i in range(300)]
    begins = [rng.uniform(0, 50) for _ in names]
    tries = [
        Try(name, rng.choice("ab"), begin, begin + rng.uniform(0, 5)) for name, begin in zip(names, begins, strict=True)
    ]
    sample = Sample({name: [] for name in names}, tries, Now(at=60, going=False))
    timeline = gantt(sample)
    lanes: dict[int, list[tuple[float, float]]] = {}
    for lane, began, ended, *_ in timeline["bars"]:
        lanes.setdefault(lane, []).append((began, ended))
    for spans in lanes.values():
        spans.sort()
        assert all(first[1] <= second[0] + 0.001 for first, second in pairwise(spans))
    for client in "ab":
        ours = [one for one in tries if one.client == client]
        most = max(sum(one.began <= at < (one.ended or 0) for one in ours) for at in (one.began for one in ours))
        assert sum(worker["name"].startswith(client) for worker in timeline["workers"]) == most


def test_bars_tell_failed_lost_and_running_attempts_apart() -> None:
    tries = [Try("a", "1", 0, 10, "exit code 1"), Try("b", "2", 0, 9), Try("y", "2", 10)]
    sample = Sample(FORK, tries, Now(at=20))
    sample.attempts.add([Attempt("", 9, 1, 1, "3", "", 0, 8, "expired")])
    marks = {bar[6]: bar[4] for bar in gantt(sample)["bars"] if bar[0] != 2}
    assert marks == {"a": 3, "b": 0, "y": 1}
    assert [bar[4] for bar in gantt(sample)["bars"] if bar[0] == 2] == [2]
    assert next(bar[2] for bar in gantt(sample)["bars"] if bar[4] == 1) == 20


# Workers with problems


def remarks(sample: Sample) -> dict[str, str]:
    """What is said about each worker."""
    return {one["name"]: one["remark"] for one in view(sample)["clients"]}


def rounds(clients: str, count: int, took: float = 10) -> list[Try]:
    """Tasks that each client does one after another."""
    return [Try(f"{client}{i}", client, i * took, (i + 1) * took) for client in clients for i in range(count)]


def sources(tries: Sequence[Try]) -> dict[str, list[str]]:
    return {one.task: [] for one in tries}


def test_tasks_that_fail_on_everybody_count_against_nobody() -> None:
    tries = [Try(f"t{i}", client, i, i + 0.5, "exit code 1", number)
             for i in range(4) for number, client in enumerate("abc", 1)]  # fmt: skip
    tries += rounds("abc", 2)
    assert remarks(Sample(sources(tries), tries)) == dict.fromkeys("abc", "")


def test_a_worker_on_which_tasks_fail_that_others_do_is_named() -> None:
    tries = [Try(f"b{i}", "eve", i, i + 0.5, "exit code 1") for i in range(4)]
    tries += [one._replace(number=2) for one in rounds("b", 4)] + rounds("a", 4)
    assert remarks(Sample(sources(tries), tries)) == {"a": "", "b": "", "eve": "every task failed: 4 tasks"}


def test_where_all_workers_are_bad_none_is_named() -> None:
    tries = [Try(f"{client}{i}", client, i, i + 0.5, "exit code 1") for client in "abc" for i in range(5)]
    assert set(remarks(Sample(sources(tries), tries)).values()) == {""}


def test_speed_is_that_of_the_median_worker_at_the_same_kind() -> None:
    """One whose tasks return at once, for a broken program, makes the others no slower."""
    tries = [*rounds("abc", 4), *rounds("e", 4, 0.001), *rounds("z", 4, 50)]
    parents = {f"step_{i}": list[str]() for i in range(len(tries))}
    tries = [one._replace(task=name) for one, name in zip(tries, parents, strict=True)]
    assert remarks(Sample(parents, tries)) == {"a": "", "b": "", "c": "", "e": "", "z": "slow: 0.20 of the usual speed"}


def test_a_worker_that_vanished_with_tasks_is_named() -> None:
    tries = rounds("ab", 2)
    sample = Sample(sources(tries), tries)
    sample.attempts.add([Attempt("", 99, 0, 2, "gone", "", 0, 8, "expired")])
    sample.clients.append("gone")
    sample.absent.add("gone")
    assert remarks(sample) == {"a": "", "b": "", "gone": "vanished with 1 task"}


def test_the_causes_of_tasks_that_are_retried_are_shown() -> None:
    tries = [Try(f"t{i}", "1", 10 * i, 10 * i + 5, "exit code 7", number) for i in range(3) for number in (1, 2)]
    document: dict[str, Any] = view(Sample(sources(tries), tries, Now(retrying=["t0", "t1", "t2"])))
    assert (document["failures"], document["failures_total"]) == ([], 0)
    (cause,) = document["retrying"]
    assert (cause["cause"], cause["count"], cause["tasks"], cause["attempts"]) == (
        "exit code 7",
        3,
        ["t0", "t1", "t2"],
        2,
    )


def test_the_critical_path_is_drawn_where_its_attempts_are() -> None:
    tries = [Try("a", "1", 0, 10), Try("b", "2", 0, 4), Try("x", "2", 10, 30), Try("y", "1", 10, 12)]
    timeline = gantt(Sample(FORK, tries, Now(at=30, going=False)))
    lanes = [worker["name"] for worker in timeline["workers"]]
    assert [(lanes[lane], *rest) for lane, *rest in timeline["path"]] == [("1", 0, 10, ""), ("2", 10, 30, "parent")]
    assert gantt(Sample(FORK, tries, Now(at=30)))["path"] == []


def test_tasks_are_drawn_one_by_one_only_as_far_as_the_whole_can_be_read() -> None:
    def drawn(wide: int, deep: int) -> Drawn:
        arcs = [(f"t{level}_{i}", f"t{level + 1}_{i}") for level in range(deep) for i in range(wide)]
        return Drawn(Workflow(Dag.from_arcs(arcs)), ["t"] * (wide * (deep + 1)))

    assert (drawn(60, 3).aggregated, drawn(61, 3).aggregated, drawn(2, 900).aggregated) == (False, True, False)
    assert [node["count"] for node in drawn(400, 3).document()["nodes"]] == [400] * 4
