"""What whoever looks at a workflow is shown: each figure beside a slow and obviously right one."""

import json
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eligo.dag import Dag
from eligo.errors import InputError
from eligo.execution import EXECUTED, Execution
from eligo.pages.choices import fifo_curve
from eligo.pages.dag_picture import MOST_TASKS, Drawn
from eligo.pages.details import detail, lineage, longest_path
from eligo.pages.folder_source import WatchedRun
from eligo.pages.html import static_page
from eligo.pages.tables import COLUMNS, Query, stand, states_of, table
from eligo.pages.timelines import gantt, run_document
from eligo.pages.views import Sampled, end_headline, view
from eligo.pages.watched import VANISHED, WENT_WELL, WENT_WRONG, Attempts, Watched, Worker
from eligo.running.states import STATES, Curve
from eligo.stores import Attempt
from eligo.work.attempts import Lease
from eligo.workflow import Task, Workflow
from running_cases import ran, started, written

VIEW = {"engine", "headline", "left_words", "retrying", "interrupted", "under_way",
    "kind", "workflow", "title", "state", "source", "now", "began", "ended", "seconds", "policy", "tasks", "arcs", "counts",
    "rate", "left", "workers", "busy", "attempts", "lost", "repeated", "saved", "curve", "clients", "failures",
    "failures_total", "from_cache", "running", "recent", "unmet", "order", "can", "disk", "starving",
}  # fmt: skip
BEGAN = 1_000_000.0
ANSWERS = {WENT_WELL: "accepted", WENT_WRONG: "failed", VANISHED: "expired"}


class Played(Watched):
    """A workflow that a test plays."""

    source, title, id, status = "run", "played", "w-1", "running"

    def __init__(self, flow: Workflow, names: Sequence[str] = ("ann", "bob")) -> None:
        super().__init__(flow)
        self.execution, self.at, self.names = Execution(flow), BEGAN, names
        self.trying = self.out = dict[int, Lease]()
        self.again = self.later = dict[int, float]()
        self.number = 0
        self.under_way, self.policy = True, "finish"

    @property
    def spans(self) -> Sequence[tuple[float, float]]:
        return [(BEGAN, self.at)]

    @property
    def workers(self) -> Sequence[Worker]:
        return [Worker(name, name, self.at, True) for name in self.names]

    def curve(self, name: str) -> Curve | None:
        return None

    def printed(self, v: int, attempt: int, err: bool) -> str:
        return f"line {attempt} of {v}\n" if err else ""

    # Moves

    def take(self, v: int, client: str) -> None:
        self.execution.take(self.flow.dag.tasks[v])
        self.out[v] = Lease("", 0, v, len(self.attempts.of(v)) + 1, client, "", "", 0, self.at)

    def end(self, v: int, outcome: int, failure: str | None = None) -> None:
        trying, name = self.out.pop(v), self.flow.dag.tasks[v]
        self.number += 1
        known = (self.number, v, trying.attempt, trying.client, "", trying.since, self.at, ANSWERS[outcome])
        self.attempts.add([Attempt("", *known, failure)])
        if outcome == WENT_WELL:
            self.execution.complete(name)
        elif outcome == WENT_WRONG:
            self.execution.fail(name)
        else:
            self.execution.give_up(name)


def some_flow(rng: random.Random, size: int) -> Workflow:
    names = [f"{rng.choice(['fit', 'sum', 'map'])}_{i}" for i in range(size)]
    arcs = [(names[u], names[v]) for v in range(1, size) for u in {rng.randrange(v) for _ in range(2)}]
    return Workflow(
        Dag.from_arcs(arcs, names), {name: Task(name=name, command="x", seconds=rng.uniform(1, 9)) for name in names}
    )


def played(seed: int, size: int = 40) -> tuple[Played, list[int]]:
    """A game to some point, and how many tasks could run after each that was done, counted anew each time."""
    rng = random.Random(seed)
    watched = Played(some_flow(rng, size))
    game = watched.execution
    truth = [_could_run(watched)]
    for _ in range(rng.randrange(3 * size)):
        watched.at += rng.uniform(0.1, 2.0)
        move = rng.random()
        if move < 0.5 and len(game.eligible):
            watched.take(rng.choice([game.dag.number(task) for task in game.eligible]), rng.choice(["ann", "bob"]))
        elif watched.out:
            v = rng.choice(list(watched.out))
            outcome = rng.choices([WENT_WELL, WENT_WRONG, VANISHED], [8, 1, 1])[0]
            watched.end(v, outcome, None if outcome == WENT_WELL else "exit code 3")
            if outcome == WENT_WRONG and rng.random() < 0.5:
                watched.later[v] = watched.at + 5
            if outcome == WENT_WELL:
                truth.append(_could_run(watched))
        for v in [v for v in watched.later if rng.random() < 0.3]:
            del watched.later[v]
            game.release(game.dag.tasks[v])
        if rng.random() < 0.2:
            watched.ready.follow()
    return watched, truth


def _could_run(watched: Played) -> int:
    game, done = watched.execution, {*watched.execution.numbers(EXECUTED)}
    return sum(
        game.state(game.dag.tasks[v]) not in {"executed", "failed"}
        and all(u in done for u in game.dag.parents_of(v).tolist())
        for v in range(len(game.dag))
    )


@pytest.mark.parametrize("seed", range(40))
def test_the_curve_is_what_could_run_after_each_task(seed: int) -> None:
    watched, truth = played(seed)
    watched.ready.follow()
    assert list(watched.ready.counts) == truth
    assert list(watched.ready.order) == list(watched.execution.numbers(EXECUTED))


@pytest.mark.parametrize("seed", range(40))
def test_states_are_counted_as_each_task_is_told(seed: int) -> None:
    watched, _ = played(seed)
    watched.under_way = seed % 3 > 0
    each = [watched.state(v) for v in range(len(watched.flow))]
    assert watched.counts == {state: each.count(state) for state in STATES}
    assert [STATES[code] for code in states_of(watched)] == each
    drawn = Drawn(watched.flow)
    total = {state: sum(node.get(state, 0) for node in drawn.counts(states_of(watched))) for state in STATES}
    assert total == watched.counts


def test_a_view_has_everything_and_is_json() -> None:
    watched, truth = played(7)
    watched.foresight()()
    told = json.loads(json.dumps(view(watched)))
    assert set(told) == VIEW
    assert told["curve"]["lines"]["seen"]["y"] == truth
    assert told["curve"]["lines"]["fifo"]["y"] == fifo_curve(watched, np.array(truth)).tolist()
    assert told["counts"] == watched.counts
    assert sum(one["done"] for one in told["clients"]) == told["counts"]["done"]
    assert {one["task"] for one in told["running"]} == {watched.labels[v] for v in watched.holding}
    assert told["failures_total"] == sum(cause["count"] for cause in told["failures"]) == told["counts"]["failed"]
    assert told["left"] is not None
    assert told["left"][0] <= told["left"][1]


def test_clients_that_went_short_are_seen() -> None:
    chain = Workflow(Dag.from_parents({"a": [], "b": ["a"], "c": ["b"], "d": ["c"], "e": ["d"]}))
    watched = Played(chain)
    for v in range(3):
        watched.take(v, "ann" if v else "bob")
        watched.at += 1
        watched.end(v, WENT_WELL)
    told = view(watched)
    assert told["curve"]["starved"] == [[1, 3]]  # before the first nobody was seen yet
    assert "fewer tasks were ready than there were workers" in told["order"]["words"][-1]
    alone = Played(chain, ["ann"])
    alone.take(0, "ann")
    alone.end(0, WENT_WELL)
    assert view(alone)["curve"]["starved"] == []


def test_a_worker_that_fails_everything_comes_first_and_is_told() -> None:
    watched = Played(Workflow(Dag.from_parents({f"t{i}": [] for i in range(9)})), ["ann", "bob", "eve"])
    for v in range(6):
        watched.take(v, "eve" if v < 3 else "ann")
        watched.end(v, WENT_WRONG if v < 3 else WENT_WELL, "exit code 1" if v < 3 else None)
    first, *others = view(watched)["clients"]
    assert (first["name"], first["bad"], first["remark"]) == ("eve", True, "every task failed: 3 tasks")
    assert not any(one["bad"] for one in others)
    (cause,) = view(watched)["failures"]
    assert (cause["cause"], cause["count"], cause["clients"]) == ("exit code 1", 3, [["eve", 3]])
    assert cause["tail"] == ["line 1 of 0"]


@pytest.mark.parametrize("seed", range(10))
def test_a_table_is_sorted_and_cut_as_one_would_by_hand(seed: int) -> None:
    rng = random.Random(seed)
    watched, _ = played(seed, 60)
    stood = stand(watched)
    rows = table(watched, stood, Query(most=None))["rows"]
    assert sorted(row[1] for row in rows) == sorted(watched.labels)
    for column in COLUMNS:
        place, descending = COLUMNS.index(column), rng.random() < 0.5
        found = [
            row[place] for row in table(watched, stood, Query(sort=column, descending=descending, most=None))["rows"]
        ]
        known = [value for value in found if value is not None]
        key = STATES.index if column == "state" else lambda value: value
        assert known == sorted(known, key=key, reverse=descending), column
        assert found[len(known) :] == [None] * (len(found) - len(known))
    asked = Query(search="FIT", state="done", sort="task", offset=1, most=2)
    wanted = sorted(row[1] for row in rows if "fit" in row[1] and row[3] == "done")
    told = table(watched, stood, asked)
    assert (told["total"], [row[1] for row in told["rows"]]) == (len(wanted), wanted[1:3])


def test_a_table_refuses_what_it_has_not() -> None:
    watched, _ = played(1)
    for query in (Query(sort="colour"), Query(state="asleep")):
        with pytest.raises(InputError, match=r"unknown (column|state)"):
            table(watched, stand(watched), query)


def test_one_task_and_its_longest_path() -> None:
    parents = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"], "e": ["d"], "x": []}
    times = {"a": 1.0, "b": 9.0, "c": 2.0, "d": 1.0, "e": 3.0, "x": 50.0}
    flow = Workflow(
        Dag.from_parents(parents), {name: Task(name=name, seconds=long, command=name) for name, long in times.items()}
    )
    watched = Played(flow)
    assert [watched.labels[v] for v in longest_path(watched, 2)] == ["a", "c", "d", "e"]
    told = detail(watched, "d")
    assert (told["above"], told["below"], told["state"]) == (3, 1, "pending")
    assert told["path"] == {"tasks": ["a", "b", "d", "e"], "total": 4, "seconds": 14.0}
    assert told["why"][0] == "Pending: waits for other tasks."
    seen = lineage(watched, "d")
    assert (seen["above"], seen["below"], seen["self"], seen["path"]) == ([0, 1, 2], [4], 3, [0, 1, 3, 4])
    with pytest.raises(InputError, match="no task named 'f'"):
        detail(watched, "f")


@pytest.mark.parametrize("most", [5, 10_000])
def test_bars_stand_for_every_attempt(most: int) -> None:
    watched, _ = played(5, 80)
    told = gantt(watched, most=most)
    assert sum(bar[5] for bar in told["bars"]) == told["attempts"] == len(watched.attempts) + len(watched.out)
    assert told["merged"] == sum(bar[5] for bar in told["bars"] if bar[5] > 1)
    assert len(told["bars"]) <= max(most, len(told["workers"])) or most == 10_000
    assert all(told["begin"] <= bar[1] <= bar[2] <= told["end"] + 1e-6 for bar in told["bars"])
    middle = (told["begin"] + told["end"]) / 2
    half = gantt(watched, begin=middle)
    assert half["attempts"] == sum(
        end >= middle for end in [*watched.attempts.rows["ended"], *(watched.at for _ in watched.out)]
    )


def test_an_attempt_that_is_told_again_counts_once() -> None:
    attempts = Attempts()
    attempts.add(
        [
            Attempt("", 1, 0, 1, "ann", "", 0.0, 1.0, "expired", "lost"),
            Attempt("", 2, 0, 2, "bob", "", 1.0, 2.0, "accepted"),
        ]
    )
    attempts.add([Attempt("", 1, 0, 1, "ann", "", 0.0, 3.0, "accepted")])
    assert len(attempts) == 2
    assert (attempts.tally("ann"), attempts.tally("bob"), attempts.tally("eve")) == (
        [1, 0, 0, 0],
        [1, 0, 0, 0],
        [0] * 4,
    )
    assert attempts.of(0) == [0, 1]
    assert attempts.latest == [3.0, 2.0]


@pytest.mark.parametrize(("points", "most"), [(1, 5), (7, 7), (8, 7), (1000, 13)])
def test_columns_lose_no_peak(points: int, most: int) -> None:
    values = np.random.default_rng(points).integers(0, 50, points)
    columns = Sampled(points, most)
    parts = np.split(values, columns.starts[1:])
    assert len(parts) == min(points, most)
    line = columns.line(values)
    if points > most:
        assert line["least"] == [part.min() for part in parts]
        assert line["most"] == [part.max() for part in parts]
        assert np.allclose(line["y"], [part.mean() for part in parts], atol=0.01)
    shorter = columns.line(values[: points // 2 + 1])
    assert len(shorter["y"]) == sum(start <= points // 2 for start in columns.starts.tolist())


def test_a_large_dag_is_drawn_in_groups() -> None:
    rng = random.Random(3)
    wide, deep = 500, 30
    below = [(v, v + wide - rng.randrange(3)) for v in range(3, wide * (deep - 1))]
    arcs = [(f"k{v // wide % 3}_{v}", f"k{w // wide % 3}_{w}") for v, w in below]
    flow = Workflow(Dag.from_arcs(arcs))
    drawn = Drawn(flow)
    told = drawn.document()
    assert drawn.aggregated
    assert len(told["nodes"]) < 200 < MOST_TASKS < len(flow)
    assert sum(node["count"] for node in told["nodes"]) == len(flow)
    assert sum(arc[2] for arc in told["arcs"]) == flow.dag.arc_count
    heights = {node["id"]: node["y"] for node in told["nodes"]}
    assert all(heights[tail] < heights[head] for tail, head, *_ in told["arcs"])
    assert json.dumps(told)


# Runs


def test_a_run_is_followed_as_it_goes_on(tmp_path: Path) -> None:
    tasks: list[dict[str, Any]] = [{"name": f"t{i}", "run": "true"} for i in range(6)]
    tasks += [{"name": "bad", "run": "echo no such file >&2; exit 3"}, {"name": "end", "run": "true", "after": ["bad"]}]
    path = written(tmp_path, tasks)
    assert ran(path, "--retries", "0", "--policy", "fifo") == 1
    watched = WatchedRun(tmp_path / "flow.yaml.run")
    first = view(watched)
    assert (first["counts"]["failed"], first["counts"]["blocked"], first["state"]) == (1, 1, "failed")
    assert first["failures"][0]["tail"] == ["no such file"]
    path.write_text(path.read_text().replace("exit 3", "exit 0"))
    assert ran(path, "--policy", "fifo") == 0
    again = watched.renew()
    assert again is not watched  # it was begun anew with another workflow
    told, fresh = view(again), view(WatchedRun(tmp_path / "flow.yaml.run"))
    for one in (told, fresh):
        del one["now"]
    assert told == fresh
    assert (told["counts"]["done"], told["state"], told["left"]) == (8, "done", None)
    assert again.renew() is again


def test_what_is_new_is_enough(tmp_path: Path) -> None:
    after = [[f"t{i - 2}"] if i > 1 else [] for i in range(40)]
    path = written(tmp_path, [{"name": f"t{i}", "run": "sleep 0.05", "after": after[i]} for i in range(40)])
    with started(path, "--workers", "2", "-q") as run:
        place, watched, seen = tmp_path / "flow.yaml.run", None, set()
        while run.poll() is None:
            try:
                watched = WatchedRun(place) if watched is None else watched.renew()
            except InputError:
                time.sleep(0.05)
                continue
            told = view(watched)
            seen.add(told["counts"]["done"])
            assert len(told["curve"]["lines"]["seen"]["y"]) == told["counts"]["done"] + 1
            time.sleep(0.1)
        run.communicate()
    assert len(seen) > 3
    assert watched is not None
    end, fresh = view(watched.renew()), view(WatchedRun(place))
    assert {**end, "now": 0} == {**fresh, "now": 0}


def test_the_report_of_a_run_holds_all_that_a_page_asks_for(tmp_path: Path) -> None:
    evil = "<script>alert(1)</script>"
    tasks: list[dict[str, Any]] = [
        {"name": evil, "run": "echo broken >&2; exit 3"},
        {"name": "end", "run": "true", "after": [evil]},
    ]
    assert ran(written(tmp_path, tasks), "--retries", "0") == 1
    told = run_document(WatchedRun(tmp_path / "flow.yaml.run"))
    assert set(told) == {"kind", "title", "headline", "view", "dag", "gantt", "table", "details"}
    assert told["headline"][0].startswith("0 of 2 tasks done, 1 failed, 1 blocked; ended after ")
    assert told["details"] == {evil: {"log": ["broken"]}}
    assert {row[1] for row in told["table"]["rows"]} == {evil, "end"}
    assert len(told["dag"]["nodes"]) == 2
    assert told["gantt"]["attempts"] == 1
    page = static_page(told, "a run", lambda name: b"/* built */")
    assert page is not None
    assert evil not in page
    assert json.loads(json.dumps(told)) == told


def test_the_logs_of_many_failures_are_not_all_read(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Played(Workflow(Dag.from_parents({f"t{i}": [] for i in range(300)})))
    for v in range(300):
        watched.take(v, "ann")
        watched.end(v, WENT_WRONG, "exit code 1")
    read = list[int]()

    def tail(v: int, attempt: int) -> list[str]:
        read.append(v)
        return ["x"]

    monkeypatch.setattr(watched, "tail", tail)
    assert view(watched)["failures"][0]["count"] == 300
    assert len(read) == 1


def test_kinds_of_any_length_take_no_more_than_their_letters() -> None:
    names = {f"t{i}": Task(name=f"t{i}", category="k" * 50_000 if i == 0 else "fit") for i in range(3_000)}
    watched = Played(Workflow(Dag.from_parents({name: [] for name in names}), names))
    assert len(gantt(watched)["kinds"]) == 2


def test_a_dense_dag_is_told_of_soon() -> None:
    size = 1_000
    parents = {f"t{v}": [f"t{u}" for u in range(v)] for v in range(size)}
    watched = Played(Workflow(Dag.from_parents(parents), {name: Task(name=name, seconds=1.0) for name in parents}))
    watched.__dict__["place"] = np.arange(size, dtype=np.int32)
    assert "1,000 tasks long, itself included, 16 min 40 s" in detail(watched, "t0")["why"][-1]


def test_the_end_of_a_run_is_told_by_its_headline() -> None:
    assert end_headline({"done": 1}, 1, 0.5) == "The only task is done in 0.5 s"
    assert end_headline({"done": 3}, 3, 125) == "All 3 tasks done in 2 min 5 s"
    assert end_headline({"done": 0, "failed": 1}, 1, 2) == "0 of 1 task done, 1 failed; ended after 2 s"
    assert end_headline({"done": 1, "pending": 4}, 5, 2) == "1 of 5 tasks done; stopped after 2 s"
