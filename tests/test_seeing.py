"""What people see of a run: from outside, on the display, by the verbs and on the page, whatever tasks print."""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from io import StringIO
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import eligo
from conftest import data_of
from eligo import families
from eligo.cli import live_display as display
from eligo.cli import run
from eligo.cli.output import harmless
from eligo.cli.top_style import bar
from eligo.dag import Dag
from eligo.engines import Job
from eligo.engines.job_run import ending_of
from eligo.engines.worker import Performed
from eligo.errors import InputError
from eligo.execution import COMPLETE, Execution, unpacked
from eligo.pages.folder_source import WatchedProcess, WatchedRun, looked_at
from eligo.pages.timelines import deciding_chain
from eligo.pages.views import failures, summary
from eligo.pages.views import view as run_view
from eligo.running import RunFolder, Settings, prepare_run
from eligo.running import folder as folders
from eligo.running.states import STATES, Forecast, TimeLeft
from eligo.stores import Attempt, Store, under_way
from eligo.workflow import Task, Workflow

Words = Callable[..., tuple[int, str, str]]

SMALL = """
name: small
tasks:
  - {name: get, run: "echo 'got <b>it</b>'"}
  - {name: split, run: "true", after: [get]}
  - {name: fit_1, run: "sleep 0.05", after: [split]}
  - {name: fit_2, run: "sleep 0.1", after: [split]}
  - {name: fit_3, run: "echo oops >&2; echo 'row 17 is bad' >&2; exit 3", after: [split]}
  - {name: fit_4, run: "echo oops >&2; echo 'row 4 is bad' >&2; exit 3", after: [split]}
  - {name: flaky, run: "test -e once || { touch once; exit 4; }", after: [get]}
  - {name: join, run: "true", after: [fit_1, fit_2]}
  - {name: end, run: "true", after: [join, fit_3]}
  - {name: never, run: "true", after: [end]}
"""
#: each waits until somebody lets it go on
GATED = """
tasks:
  - {name: get, run: "echo begun"}
  - {name: long_1, run: "echo so far; while [ ! -e go ]; do sleep 0.05; done; echo done", after: [get]}
  - {name: long_2, run: "while [ ! -e go ]; do sleep 0.05; done", after: [get]}
  - {name: third, run: "true", after: [get]}
  - {name: join, run: "true", after: [long_1, long_2]}
  - {name: last, run: "true", after: [join]}
"""


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Words:
    """The command in an empty folder: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)

    def said(*words: str) -> tuple[int, str, str]:
        code = run(list(words))
        return code, *capfd.readouterr()

    return said


@pytest.fixture
def small(say: Words) -> Words:
    """A run that has ended, in small.yaml.run."""
    Path("small.yaml").write_text(SMALL)
    code, _, _ = say("run", "small.yaml", "--retries", "1", "--workers", "2")
    assert code == 1
    return say


def number(seen: WatchedRun, name: str) -> int:
    return seen.labels.index(name)


# From outside


def test_what_is_seen_of_a_run_is_what_happened(small: Words) -> None:
    seen = WatchedRun("small.yaml.run")
    assert seen.counts == {
        "done": 6, "running": 0, "ready": 0, "pending": 0, "blocked": 2, "retrying": 0, "failed": 2,
    }  # fmt: skip
    assert {name: seen.state(number(seen, name)) for name in ("get", "fit_3", "end", "never")} == {
        "get": "done", "fit_3": "failed", "end": "blocked", "never": "blocked",
    }  # fmt: skip
    assert {seen.labels[v]: len(seen.attempts.of(v)) for v in seen.attempts.last} == {
        "get": 1, "split": 1, "fit_1": 1, "fit_2": 1, "fit_3": 2, "fit_4": 2, "flaky": 2, "join": 1,
    }  # fmt: skip
    assert not seen.under_way
    assert (seen.sessions[0].policy, seen.sessions[0].workers, seen.sessions[0].engine) == ("finish", 2, "local")
    assert 0 < seen.seconds < 60
    assert seen.title == "small"


def test_ready_tasks_are_counted_as_a_replay_counts_them(small: Words) -> None:
    seen = WatchedRun("small.yaml.run")
    game, counts = Execution(seen.flow), [1]
    for kind, v in unpacked(seen.execution.since(0)):
        game._do(kind, v)
        if kind == COMPLETE:
            counts.append(len(game.eligible) + len(game.allocated))
    seen.ready.follow()
    assert seen.ready.counts.tolist() == counts
    plan = eligo.plan(seen.flow)
    assert tuple(seen.curve("plan").tolist()) == plan.profile  # type: ignore[union-attr]
    assert tuple(seen.curve("bound").tolist()) == plan.upper_bound  # type: ignore[union-attr]


def test_without_failures_the_ready_curve_is_the_schedules_own(say: Words) -> None:
    Path("x.yaml").write_text(
        "tasks: [" + ", ".join(f"{{name: t{i}, run: 'true', after: {_after(i)}}}" for i in range(30)) + "]"
    )
    assert say("run", "x.yaml", "-q")[0] == 0
    seen = WatchedRun("x.yaml.run")
    seen.ready.follow()
    assert tuple(seen.ready.counts) == eligo.profile(seen.flow, list(seen.execution.executed))


def _after(i: int) -> list[str]:
    return sorted({f"t{i // 2}", f"t{i // 3}"} - {f"t{i}"}) if i else []


def test_failures_with_the_same_last_line_but_for_numbers_have_one_cause(small: Words) -> None:
    (cause,) = failures(WatchedRun("small.yaml.run"))
    assert (cause["tasks"], cause["count"], cause["cause"]) == (["fit_3", "fit_4"], 2, "exit code 3")
    assert cause["tail"] == ["oops", "row 17 is bad"]
    assert Path(cause["log"]).read_text().splitlines() == cause["tail"]


def test_the_deciding_chain_goes_back_from_the_end_without_a_hole(small: Words) -> None:
    seen = WatchedRun("small.yaml.run")
    links, rows = deciding_chain(seen), seen.attempts.rows
    good = [place for place in range(len(rows)) if place not in seen.attempts.failures]
    assert links[-1].place == max(good, key=lambda place: float(rows["ended"][place]))
    for before, link in pairwise(links):
        first, then = rows[before.place], rows[link.place]
        parent = int(first["task"]) in seen.flow.dag.parents_of(int(then["task"])).tolist()
        assert link.after == "parent" if parent else first["client"] == then["client"]
    assert links[0].after == ""
    words = " ".join(data_of(Path("small.yaml.run/report.html").read_text("utf-8"))["view"]["order"]["words"])
    assert f"{len(links)} tasks, which took" in words


def test_breaks_between_sessions_are_left_out_of_all_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = Workflow(Dag.from_parents({"a": [], "b": ["a"]}), {name: Task(name=name, command="true") for name in "ab"})
    for begin, end, task in ((100.0, 110.0, 0), (500.0, 507.0, 1)):
        with closing(RunFolder(tmp_path / "run")) as kept:
            kept.begin(flow, resumed := kept.resume(flow))
            game = resumed.execution
            monkeypatch.setattr(time, "time", lambda begin=begin: begin)
            kept.store.open_session("fifo", 1, "local")
            before = len(game.journal)
            game.execute("ab"[task])
            known = Attempt("", 0, task, 1, "slot 1", "", begin + 1, end, "accepted", code=0)
            kept.store.add(game.since(before if before else 0), [known])
            kept.store.flush()
            monkeypatch.setattr(time, "time", lambda end=end: end)
    monkeypatch.undo()
    seen = WatchedRun(tmp_path / "run")
    assert seen.spans == [(100.0, 110.0), (500.0, 507.0)]
    assert seen.seconds == 17.0
    assert [seen.moment(at) for at in (100, 105, 300, 500, 503)] == [0.0, 5.0, 10.0, 10.0, 13.0]


def test_the_plan_is_kept_and_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flow = Workflow(Dag.from_parents({"a": [], "b": ["a"]}), {name: Task(name=name, command="true") for name in "ab"})
    with closing(RunFolder(tmp_path)) as kept:
        resumed = kept.resume(flow)
        first = kept.planned(flow, resumed)
        kept.begin(flow, resumed, first)
    monkeypatch.setattr(folders, "plan", lambda flow: pytest.fail("planned again"))
    with closing(RunFolder(tmp_path)) as kept:
        planned = kept.planned(flow, kept.resume(flow))
        assert list(planned["order"]) == list(first["order"]) == [0, 1]
    other = Workflow(Dag.from_parents({"a": []}), {"a": Task(name="a", command="true")})
    with closing(RunFolder(tmp_path)) as kept:
        kept.begin(other, kept.resume(other))
        assert kept.store.curves() == {}


def test_whoever_looks_whether_a_run_is_under_way_does_not_keep_it_from_beginning(tmp_path: Path) -> None:
    Store(tmp_path / "run.db").close()
    descriptor = os.open(tmp_path / "run.db.lock", os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    threading.Timer(0.03, lambda: os.close(descriptor)).start()
    with closing(Store(tmp_path / "run.db")):
        assert under_way(tmp_path / "run.db")
    assert not under_way(tmp_path / "run.db")


def test_what_is_no_run_is_refused_in_a_sentence(say: Words) -> None:
    Path("flow.yaml").write_text(SMALL)
    assert say("status", "flow.yaml")[2] == "eligo: flow.yaml: not run yet: flow.yaml.run does not exist\n"
    assert say("status", "nowhere")[2] == "eligo: nowhere: no such file or folder, and no run nowhere.run\n"
    Path("bad").mkdir()
    Path("bad/run.db").write_text("x" * 5000)
    assert "not a run" in say("why", "bad", "a")[2]


# While it runs


@pytest.fixture
def going(say: Words) -> Iterator[tuple[Words, WatchedRun]]:
    """A run that another process is at: two tasks run until there is a file named go."""
    Path("gated.yaml").write_text(GATED)
    words = [sys.executable, "-m", "eligo", "run", "gated.yaml", "--workers", "2"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        try:
            yield say, _once(lambda: WatchedRun("gated.yaml.run"), lambda seen: len(seen.trying) == 2)
        finally:
            Path("go").touch()
            child.communicate(timeout=240)


def _once(look: Callable[[], WatchedRun], holds: Callable[[WatchedRun], bool]) -> WatchedRun:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            seen = look()
        except InputError:
            seen = None
        if seen is not None and holds(seen):
            return seen
        time.sleep(0.05)
    raise AssertionError("it was never seen so")


def test_a_run_is_seen_while_another_process_is_at_it(going: tuple[Words, WatchedRun]) -> None:
    say, seen = going
    assert seen.under_way
    assert (seen.counts["done"], seen.counts["running"], seen.counts["ready"], seen.counts["pending"]) == (1, 2, 1, 2)
    assert {seen.labels[v] for v in seen.trying} == {"long_1", "long_2"}
    _, out, _ = say("status", "gated.yaml")
    assert "now      running" in out
    assert re.search(r"long_1, slot \d, for [\d.]+ s", out)
    document = json.loads(say("status", "gated.yaml.run", "--json")[1])
    assert document["under_way"]
    assert {row["task"] for row in document["running"]} == {"long_1", "long_2"}
    assert "running for" in say("why", "gated.yaml", "long_2")[1]
    told = say("why", "gated.yaml", "last")[1]
    assert "Waits for join (pending)." in told
    assert "These wait in turn for long_1 (running), long_2 (running)." in told
    assert say("log", "gated.yaml", "long_1")[1] == "so far\n"
    assert "printed nothing on standard output yet" in say("log", "gated.yaml", "long_2")[2]
    assert say("report", "gated.yaml", "-o", "now.html")[0] == 0
    assert data_of(Path("now.html").read_text())["view"]["counts"]["running"] == 2
    Path("go").touch()
    done = _once(lambda: WatchedRun("gated.yaml.run"), lambda seen: not seen.under_way)
    assert done.counts["done"] == 6
    assert say("log", "gated.yaml", "long_1")[1] == "so far\ndone\n"


def test_what_was_out_when_a_run_was_killed_is_ready_again(say: Words) -> None:
    Path("gated.yaml").write_text(GATED)
    child = subprocess.Popen([sys.executable, "-m", "eligo", "run", "gated.yaml", "--workers", "2"])
    _once(lambda: WatchedRun("gated.yaml.run"), lambda seen: len(seen.trying) == 2)
    child.kill()
    child.wait()
    seen = WatchedRun("gated.yaml.run")
    Path("go").touch()
    assert (seen.under_way, seen.counts["ready"], seen.counts["running"], seen.trying) == (False, 3, 0, {})
    out = say("status", "gated.yaml")[1]
    assert "not running" in out
    assert "eligo run --resume gated.yaml.run" in out
    assert "the run is not running" in say("why", "gated.yaml", "third")[1]


def test_what_ran_when_a_run_was_killed_is_told_as_interrupted(say: Words) -> None:
    Path("gated.yaml").write_text(GATED)
    child = subprocess.Popen([sys.executable, "-m", "eligo", "run", "gated.yaml", "--workers", "2"])
    _once(lambda: WatchedRun("gated.yaml.run"), lambda seen: len(seen.trying) == 2)
    assert json.loads(say("status", "gated.yaml", "--json")[1])["interrupted"] == []
    child.kill()
    child.wait()
    seen = WatchedRun("gated.yaml.run")
    names = [seen.labels[v] for v in seen.interrupted]
    said = " ".join(say("status", "gated.yaml")[1].split())
    assert len(names) == 2
    assert f"interrupted {names[0]}, {names[1]}: running when the run was killed; they start again" in said
    assert json.loads(say("status", "gated.yaml", "--json")[1])["interrupted"] == names
    assert "was running when the run was killed" in " ".join(
        say("why", "gated.yaml", names[0])[1].replace("it was", "It was").split()
    )
    if "long_1" in names:
        assert say("log", "gated.yaml", "long_1")[1] == "so far\n"
    Path("go").touch()
    assert say("run", "gated.yaml")[0] == 0
    assert WatchedRun("gated.yaml.run").interrupted == []


def test_the_log_that_status_names_is_there(say: Words) -> None:
    tasks = [("out", "echo told; exit 3"), ("err", "echo told >&2; exit 4"), ("mute", "exit 5")]
    Path("flow.yaml").write_text("tasks:\n" + "".join(f"  - {{name: {n}, run: {json.dumps(c)}}}\n" for n, c in tasks))
    assert say("run", "flow.yaml", "--retries", "1")[0] == 1
    causes_told = json.loads(say("status", "flow.yaml", "--json")[1])["causes"]
    logs = {cause["tasks"][0]: cause["log"] for cause in causes_told}
    assert logs["mute"] is None
    assert Path(logs["out"]).read_text() == Path(logs["err"]).read_text() == "told\n"
    assert logs["out"].endswith("out~2.out")
    out = say("status", "flow.yaml")[1]
    for path in re.findall(r"\((flow\.yaml\.run/[^)]*)\)", "".join(out.split("\n  "))):
        assert Path(path).exists()


def test_a_clock_that_is_set_back_makes_no_time_negative(say: Words, monkeypatch: pytest.MonkeyPatch) -> None:
    true, begin = time.time, time.time()
    Path("flow.yaml").write_text("tasks:\n  - {name: a, run: touch back}\n  - {name: b, run: 'false', after: [a]}\n")
    monkeypatch.setattr(time, "time", lambda: true() - (3600 if os.path.exists("back") else 0))
    code, out, err = say("run", "flow.yaml", "--retries", "0")
    assert (code, true() >= begin) == (1, True)
    texts = [out, err, *(say(*words)[1] for words in (["status", "flow.yaml"], ["why", "flow.yaml", "a"]))]
    texts += [say("top", "flow.yaml", "--once")[1], Path("flow.yaml.run/report.html").read_text()]
    for text in texts:
        assert not re.search(r"(?<![\w.-])-\d+(\.\d+)?(e\+?\d+)? (s|min|h)\b", text), text
    document = json.loads(say("status", "flow.yaml", "--json")[1])
    assert document["seconds"] >= 0
    rows = WatchedRun("flow.yaml.run").attempts.rows
    assert (rows["ended"] >= rows["began"]).all()


def test_workers_are_counted_whether_they_were_needed_yet_or_not(say: Words) -> None:
    Path("flow.yaml").write_text(
        "tasks:\n  - {name: a, run: 'true'}\n  - {name: b, run: 'while [ ! -e go ]; do sleep 0.05; done', after: [a]}\n"
    )
    with subprocess.Popen([sys.executable, "-m", "eligo", "run", "flow.yaml", "--workers", "4", "-q"]) as child:
        _once(lambda: WatchedRun("flow.yaml.run"), lambda seen: any(seen.labels[v] == "b" for v in seen.trying))
        view = run_view(looked_at("flow.yaml.run"))
        Path("go").touch()
        child.wait()
    assert view["workers"] == 4
    assert 0.0 < view["busy"] <= 0.3  # one of four at the most
    assert view["counts"]["running"] == 1


def test_of_several_tasks_that_a_worker_got_at_once_only_one_runs(say: Words) -> None:
    names = "abcd"
    gate = "while [ ! -e go ]; do sleep 0.05; done"
    tasks = [{"name": name, "run": f"echo {name}; {gate if name == 'b' else 'true'}"} for name in names]
    Path("fat.json").write_text(json.dumps({"tasks": tasks}))
    Path("order.txt").write_text("\n".join(names))
    words = [sys.executable, "-m", "eligo", "run", "fat.json", "--workers", "1", "--fat", "4", "--policy", "order.txt"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        try:
            _once(lambda: WatchedRun("fat.json.run"), lambda seen: [seen.labels[v] for v in seen.trying] == ["b"])
            assert say("log", "fat.json", "b")[1] == "b\n"
            assert "assigned to a worker" in say("why", "fat.json", "d")[1]
            assert "not started yet" in say("log", "fat.json", "d")[2]
        finally:
            Path("go").touch()
            child.communicate(timeout=240)


def test_what_a_failed_task_kept_from_beginning_was_not_tried(say: Words) -> None:
    Path("order.txt").write_text("a\nb")
    tasks = [{"name": "a", "run": "test -e once || { touch once; exit 1; }"}, {"name": "b", "run": "echo hi"}]
    Path("fat.json").write_text(json.dumps({"tasks": tasks}))
    assert say("run", "fat.json", "--workers", "1", "--fat", "2", "--policy", "order.txt", "-q")[0] == 0
    assert say("log", "fat.json", "b")[1] == "hi\n"
    seen = WatchedRun("fat.json.run")
    assert {len(seen.attempts.of(v)) for v in seen.attempts.last} == {1, 2}


# The verbs


def test_status_groups_failures_and_says_how_to_go_on(small: Words) -> None:
    code, out, _ = small("status", "small.yaml")
    assert code == 1
    assert "6 of 10 tasks done, 2 failed, 2 blocked" in out
    assert "exit code 3: fit_" in out
    assert re.search(r"^  row \d+ is bad$", out, re.M)
    assert "eligo run --resume small.yaml.run" in out
    document = json.loads(small("status", "small.yaml", "--json")[1])
    assert (document["done"], document["failed"], document["blocked"], document["left"]) == (6, 2, 2, None)
    assert sorted(document["causes"][0]["tasks"]) == ["fit_3", "fit_4"]


def test_why_tells_whose_failure_is_to_blame(small: Words) -> None:
    out = small("why", "small.yaml", "never")[1]
    assert "blocked: depends on a failed task" in out
    assert "Blocked by fit_3: exit code 3." in out
    assert "Output: eligo log small.yaml.run fit_3 --err" in out
    document = json.loads(small("why", "small.yaml", "never", "--json")[1])
    assert (document["state"], document["because"], document["attempts"]) == ("blocked", ["fit_3"], [])


def test_why_tells_the_place_in_the_order_and_every_attempt(small: Words) -> None:
    out = small("why", "small.yaml", "fit_3")[1]
    assert re.search(r"Position \d+ of 10 in the order of policy finish\.", out)
    assert "Attempt 1: exit code 3" in out
    assert "fit_3~2.err" in " ".join(out.split())
    place = json.loads(small("why", "small.yaml", "get", "--json")[1])
    assert (place["place"], place["path"], place["children"]) == (1, 6, 2)
    assert "no task named 'fit3'; did you mean fit_" in small("why", "small.yaml", "fit3")[2]


@pytest.mark.parametrize("policy", ["fifo", "critical-path", "batch-optimal", "order.txt"])
def test_why_knows_every_kind_of_order(say: Words, policy: str) -> None:
    Path("x.yaml").write_text("tasks: [{name: a, run: 'true'}, {name: b, run: 'true', after: [a]}]")
    Path("order.txt").write_text("a\nb\n")
    assert say("run", "x.yaml", "--policy", policy, "-q")[0] == 0
    out = say("why", "x.yaml", "b")[1]
    assert (
        "No fixed position" if policy == "batch-optimal" else f"Position 2 of 2 in the order of policy {policy}"
    ) in out
    assert "No plan is available for this policy." in Path("x.yaml.run/report.html").read_text()


def test_log_prints_bytes_as_they_are_and_says_where_there_are_none(small: Words) -> None:
    assert small("log", "small.yaml", "get")[1] == "got <b>it</b>\n"
    assert small("log", "small.yaml", "fit_3", "--err", "--attempt", "1")[1] == "oops\nrow 17 is bad\n"
    assert "but standard error has output: add --err" in small("log", "small.yaml", "fit_3")[2]
    assert "printed nothing on standard output or standard error" in small("log", "small.yaml", "join")[2]
    assert "no attempt 7: 2 attempts so far" in small("log", "small.yaml", "fit_3", "--attempt", "7")[2]
    assert "never started, because it depends on a failed task" in small("log", "small.yaml", "never")[2]


def test_a_run_ends_with_its_report_and_json_has_nothing_else(say: Words) -> None:
    Path("x.yaml").write_text("tasks: [{name: a, run: 'true'}]")
    assert "report: x.yaml.run/report.html" in " ".join(say("run", "x.yaml")[1].split())
    _, out, err = say("run", "x.yaml", "--json", "--quiet", "--run", "other")
    assert json.loads(out)["report"] == "other/report.html"
    assert err == ""


def test_what_came_of_a_run_is_told_though_its_report_cannot_be_written(say: Words) -> None:
    Path("x.yaml").write_text("tasks: [{name: a, run: 'true'}]")
    Path("x.yaml.run/report.html").mkdir(parents=True)
    Path("x.yaml.run/run.db").touch()
    code, out, err = say("run", "x.yaml")
    assert (code, out.startswith("The only task is done")) == (0, True)
    assert "no report: " in err


@pytest.mark.usefixtures("no_pages")
def test_a_run_goes_well_where_the_page_is_not_built_and_report_says_what_to_do(say: Words) -> None:
    Path("x.yaml").write_text("tasks: [{name: a, run: 'true'}]")
    code, out, err = say("run", "x.yaml")
    assert (code, out.startswith("The only task is done")) == (0, True)
    assert "report" not in err
    code, _, err = say("report", "x.yaml", "-o", "x.html")
    assert (code, Path("x.html").exists()) == (1, False)
    assert "released packages include it" in err


# Whatever tasks are called and print

HOSTILE = "</script><script>alert(1)</script>\u202eb"


@pytest.fixture
def hostile(say: Words) -> Words:
    bad = r"printf '\033]0;owned\007\033[2J<script>alert(2)</script>\n' >&2; printf '\033[31mred\033[0m \033[2Jx\n'; exit 3"
    Path("x.json").write_text(
        json.dumps({"tasks": [{"name": HOSTILE, "run": bad}, {"name": "b", "run": "true", "after": [HOSTILE]}]})
    )
    assert say("run", "x.json", "--retries", "0")[0] == 1
    return say


def test_no_control_sequence_reaches_the_terminal(hostile: Words) -> None:
    for words in (["status", "x.json"], ["why", "x.json", HOSTILE], ["why", "x.json", "b"]):
        _, out, err = hostile(*words)
        assert not {"\x1b", "\x07", "\u202e"} & {*out, *err}, words
    assert r"\x1b]0;owned\x07" in hostile("status", "x.json")[1]


def test_a_page_holds_no_markup_of_tasks(hostile: Words) -> None:
    page = Path("x.json.run/report.html").read_text("utf-8")
    assert "<script>alert" not in page
    assert page.count("<script") == page.count("</script>") == 2
    assert data_of(page)["table"]["rows"][0][1] == HOSTILE


def test_log_on_a_terminal_keeps_colours_and_nothing_else(hostile: Words) -> None:
    screen = _on_terminal(80, "log", "x.json", HOSTILE)
    assert "\x1b[31mred\x1b[0m \\x1b[2Jx" in screen


def test_text_is_made_harmless() -> None:
    assert harmless("plain ü\n\ttext") == "plain ü\n\ttext"
    assert harmless("a\x1b[2J\x9b\r\u2066") == "a\\x1b[2J\\x9b\\r\\u2066"


def _on_terminal(columns: int, *words: str, **settings: str) -> str:
    """What the command writes on a terminal so wide."""
    mine, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", **settings}
    environment.pop("COLUMNS", None)
    child = subprocess.Popen(
        [sys.executable, "-m", "eligo", *words], stdout=theirs, stderr=theirs, stdin=theirs, env=environment
    )
    os.close(theirs)
    data = b""
    while True:
        try:
            part = os.read(mine, 65536)
        except OSError:
            break
        if not part:
            break
        data += part
    child.wait(timeout=240)
    os.close(mine)
    return data.decode()


# The display


@pytest.mark.parametrize("columns", [60, 100])
def test_the_display_shows_the_bar_the_counts_and_the_curves(say: Words, columns: int) -> None:
    Path("x.yaml").write_text(SMALL.replace("sleep 0.05", "sleep 1"))
    screen = _on_terminal(columns, "run", "x.yaml", "--retries", "0", NO_COLOR="1")
    plain = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", screen).replace("\r", "\n")
    assert "\x1b[3" not in screen  # no colours
    for words in (
        " done",
        " running",
        " pending",
        "B  2 blocked",
        "F  3 failed",
        "so far, ",
        "ready",
        "planned",
        "fit_3: exit code 3",
    ):
        assert words in plain
    assert max(map(len, plain.splitlines())) <= columns
    assert "\x1b[3" in _on_terminal(columns, "run", "x.yaml", "--run", "again", "--retries", "0")


def test_a_quiet_run_and_a_dumb_terminal_have_no_display(say: Words) -> None:
    Path("x.yaml").write_text("tasks: [{name: a, run: 'true'}]")
    for words, settings in ((("-q",), {}), ((), {"TERM": "dumb"})):
        assert "planned" not in _on_terminal(80, "run", "x.yaml", "--run", f"run{len(words)}", *words, **settings)


@pytest.fixture
def process(tmp_path: Path) -> Iterator[WatchedProcess]:
    """Forty tasks, none of which has begun."""
    dag = Dag.from_parents({f"t{i}": [f"t{i // 2}"] if i else [] for i in range(40)})
    flow = Workflow(dag, {name: Task(name=name, command="true") for name in dag.tasks})
    with closing(RunFolder(tmp_path)) as kept:
        runner, _ = prepare_run(flow, "local", Settings(workers=2), kept)
        yield WatchedProcess(flow, runner, [1, 2, 1])
        runner.engine.close()


def test_the_process_counts_every_task_once(process: WatchedProcess) -> None:
    game = process.runner.execution
    assert process.counts["ready"] == 1
    for task in ("t0", "t1"):
        game.execute(task)
        process.look()
    game.take("t2")
    assert process.counts == dict(zip(STATES, (2, 1, 1, 36, 0, 0, 0), strict=True))
    process.ready.follow()
    assert process.ready.counts.tolist() == [1, 1, 2]
    assert process.remaining is None
    assert summary(process)["headline"] == "2 of 40 tasks done, 1 running; time left not known yet"


def test_lines_in_pipes_come_soon_then_seldom_and_for_failures(
    process: WatchedProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream, now = StringIO(), [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    lines, runner = display._Lines(process, stream), process.runner
    for _ in range(100):
        lines(runner)
        now[0] += 0.5
    assert [line.split(",")[0] for line in stream.getvalue().splitlines()] == ["eligo: 0 of 40 done"] * 2
    ending = ending_of(Job(1, "slot 1", ("a",), ()), 0, Performed(0.0, 1.0, "exit code 2\x1b[2J"))
    runner.failures.update({f"t{i}": ending for i in range(30)})
    lines(runner)
    lines(runner)
    told = stream.getvalue().splitlines()[2:]
    assert told[0] == "eligo: t0 failed: exit code 2\\x1b[2J"
    assert len(told) == display.MOST_LINES + 1
    assert "further failures are only counted" in told[-1]


def test_a_screen_holds_no_control_sequence_of_a_failure(process: WatchedProcess) -> None:
    shown = display.screen(process, ["x: \x1b[2Jboom"], 60).plain
    assert "\x1b" not in shown
    assert "\\x1b[2Jboom" in shown


def test_a_bar_is_as_wide_as_it_should_be_and_hides_nobody() -> None:
    random = np.random.default_rng(1)
    for _ in range(300):
        counts = {
            state: int(count)
            for state, count in zip(STATES, random.integers(0, random.integers(1, 2000), 7), strict=True)
        }
        cells, width = bar(counts, 60), 60
        assert sum(cells.values()) == (width if any(counts.values()) else 0)
        assert all(cells.get(state, 0) >= 1 for state, count in counts.items() if count)


# Time left


def _timed(seconds: dict[str, float | None], parents: dict[str, list[str]]) -> Workflow:
    tasks = {name: Task(name=name, seconds=time, command=f"do_{name[0]}") for name, time in seconds.items()}
    return Workflow(Dag.from_parents(parents), tasks)


def test_nothing_is_said_of_the_time_left_before_anything_is_known() -> None:
    flow = _timed(dict.fromkeys("abcdef"), {name: [] for name in "abcdef"})
    forecast = Forecast(flow)
    assert forecast.remaining(range(6), {}, 2) is None
    forecast.learn([(0, 2.0)])
    first = forecast.remaining(range(1, 6), {}, 1)
    assert first is not None
    assert (first.least, first.most) == pytest.approx((2.0, 18.0))  # 80 % less or more
    forecast.learn([(1, 4.0), (2, 3.0)])
    left = forecast.remaining([3, 4, 5], {}, 1)
    assert left is not None
    assert left.least < 9.0 < left.most
    assert forecast.remaining([], {}, 2) == TimeLeft(0.0, 0.0)


def test_known_times_are_scaled_to_how_long_tasks_really_took() -> None:
    names = [f"{'ab'[i % 2]}{i}" for i in range(8)]
    flow = _timed(dict.fromkeys(names, 10.0), {name: [] for name in names})
    forecast = Forecast(flow)
    forecast.learn([(0, 20.0), (1, 20.0), (2, 20.0)])
    left = forecast.remaining(range(3, 8), {}, 1)
    assert left is not None
    assert left.least <= 100.0 <= left.most <= 115.0


def test_a_kind_that_was_seen_is_told_from_one_that_was_not() -> None:
    names = ["a0", "a1", "a2", "a3", "b0"]
    flow = _timed(dict.fromkeys(names), {name: [] for name in names})
    forecast = Forecast(flow)
    forecast.learn([(0, 1.0), (1, 1.0), (2, 1.0)])
    known, unknown = forecast.remaining([3], {}, 1), forecast.remaining([4], {}, 1)
    assert known is not None
    assert unknown is not None
    assert unknown.most - unknown.least > known.most - known.least


@pytest.mark.parametrize("seed", range(5))
def test_the_range_holds_what_a_steady_pool_takes(seed: int) -> None:
    from eligo.simulation.steady import finish_on

    dag = families.random_layered(6, 8, seed=seed)
    random = np.random.default_rng(seed)
    flow = Workflow(dag, {name: Task(name=name, seconds=float(random.integers(1, 9))) for name in dag.tasks})
    left = Forecast(flow).remaining(range(len(dag)), {}, 3)
    assert left is not None
    assert left.least <= finish_on(flow, 3).makespan <= left.most
