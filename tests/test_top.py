"""`eligo top`: what is on the screen, what keys do, whatever the source does and tasks are called; and one frame as text."""

import asyncio
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from functools import partialmethod
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from eligo.cli import run
from eligo.cli.look import source_of
from eligo.cli.options import Access
from eligo.cli.top import TopApp
from eligo.cli.top_board import Poller, Update
from eligo.cli.top_panes import Sheet
from eligo.cli.top_start import frame
from eligo.cli.top_style import DARK, LETTERS, LIGHT, Look, curve_lines, is_dark
from eligo.errors import EligoError, InputError
from eligo.pages.sources import FolderSource, Listed
from eligo.pages.tables import COLUMNS, Query
from eligo.pages.views import headline
from eligo.running.states import STATES
from running_cases import ran, written
from serving_cases import serving, told, worked

NOW = 1_700_000_000.0
NASTY = "[red]x[/]\x1b[2J\r\n\u202e[link=https://e.org]y"
SHOWN = "[red]x[/]\\x1b[2J\\r\\n\\u202e[link=https://e.org]y"
PATIENCE = 240.0  # seconds, also on a machine that is very busy
SMALL, LARGE = (80, 24), (160, 50)
Words = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def _patient_pilot(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pilot waits 30 s for the screen, which may not do on a machine that is very busy."""
    monkeypatch.setattr(Pilot, "_wait_for_screen", partialmethod(Pilot._wait_for_screen, timeout=PATIENCE))


def view_of(**changed: Any) -> dict[str, Any]:
    """Where a made-up workflow stands."""
    steps = list(range(401))
    fifo = [min(40, 400 - step) for step in steps]
    seen = [min(60, 8 + step) for step in steps[:293]]
    line = {"least": None, "most": None}
    counts = dict.fromkeys(STATES, 0) | {"done": 292, "running": 8, "ready": 52, "pending": 46, "failed": 2}
    known: dict[str, Any] = {
        "kind": "run", "workflow": "w-1", "title": "survey", "state": "running", "source": "server", "now": NOW,
        "began": NOW - 60, "ended": None, "seconds": 60.0, "policy": "finish", "tasks": 400, "arcs": 399,
        "counts": counts, "rate": 5.25, "left": [6.0, 20.0], "workers": 2, "busy": 0.93, "attempts": 300, "lost": 1,
        "repeated": 3, "saved": 0,
        "curve": {
            "steps": steps, "starved": [[200, 230]], "sampled": False, "remark": "",
            "averages": {"seen": 50.0, "plan": 55.0, "bound": 60.0, "fifo": 35.0},
            "lines": {
                "seen": {"y": seen, **line}, "fifo": {"y": fifo, **line}, "bound": None,
                "plan": {"y": [min(70, 8 + step, 400 - step) for step in steps], **line},
            },
        },
        "clients": [worker("bob", bad=True, remark="every task failed: 5 tasks", failed=5, done=0), worker("ann")],
        "failures": [
            {"cause": "exit code 3", "count": 2, "tasks": ["fit_3", "fit_4"], "tail": ["oops", "row 17 is bad"],
             "clients": [["bob", 2]]},
        ],
        "failures_total": 2,
        "running": [
            {"task": f"align_{k}", "client": "ann", "since": NOW - 30 + k, "attempt": 1, "kind": "align",
             "expected": 12.0} for k in range(8)
        ],
        "recent": [{"task": "get_1", "client": "ann", "ended": NOW - 1, "took": 2.0, "failure": None}],
        "order": {"words": ["50.0 tasks could run on average so far: 43 % more than first come, first served (35.0)."]},
        "can": {"cancel": False, "retry": False, "approve": False},
    }  # fmt: skip
    known |= changed
    return known | {"headline": headline(known)}


def worker(name: str, **changed: Any) -> dict[str, Any]:
    known: dict[str, Any] = {
        "client": f"c-{name}", "name": name, "seen": NOW - 1, "alive": True, "approved": True, "speed": 1.25,
        "quota": None, "done": 146, "failed": 0, "lost": 0, "paused": 0.0, "held": 1,
        "holds": [{"task": "align_0", "since": NOW - 30, "attempt": 1}], "bad": False, "remark": "",
    }  # fmt: skip
    return known | changed


class Faked:
    """A source whose documents are made up; it can be broken, and be slow."""

    place = "http://faked"

    def __init__(self, *views: dict[str, Any], tasks: tuple[str, ...] = ()) -> None:
        self.views = {one["workflow"]: one for one in views}
        self.tasks = tasks or tuple(f"{'align' if number % 2 else 'fit'}_{number}" for number in range(400))
        self.broken = ""
        self.free = threading.Event()
        self.free.set()
        self.asked: list[Query] = []

    def _check(self) -> None:
        self.free.wait(PATIENCE)
        if self.broken:
            raise EligoError(self.broken)

    def workflows(self) -> list[Listed]:
        self._check()
        return [Listed(one["workflow"], one["title"], one["state"]) for one in self.views.values()]

    def view(self, workflow: str, every: bool = False) -> dict[str, Any]:
        self._check()
        return self.views[workflow]

    def report(self, workflow: str) -> dict[str, Any]:
        raise NotImplementedError

    def log(self, workflow: str, task: str, attempt: int, err: bool) -> bytes:
        raise NotImplementedError

    def table(self, workflow: str, query: Query) -> dict[str, Any]:
        self._check()
        self.asked.append(query)
        found = [
            [place + 1, name, name.partition("_")[0], "done", "ann", NOW, 1.5, 2.0, 1, 0, 2**20]
            for place, name in enumerate(self.tasks)
            if query.search in name
        ]
        found = found[::-1] if query.descending else found
        part = found[query.offset : query.offset + (query.most or 0)]
        return {"total": len(found), "tasks": len(self.tasks), "columns": list(COLUMNS), "rows": part}

    def detail(self, workflow: str, task: str) -> dict[str, Any]:
        self._check()
        if task not in self.tasks:
            raise InputError(f"there is no task named {task!r}")
        attempt = {"attempt": 1, "client": "ann", "began": NOW, "ended": NOW + 2, "answer": "failed",
                   "failure": "exit code 3", "code": 3, "memory": 2**20}  # fmt: skip
        return {
            "task": task, "kind": "fit", "state": "failed", "command": f"fit {task}", "place": 3,
            "why": ["It failed: exit code 3."], "parents": [["get", "done"]], "parents_total": 1, "children": [],
            "children_total": 0, "above": 1, "below": 0, "path": {"tasks": ["get", task], "total": 2, "seconds": None},
            "attempts": [attempt], "log": ["oops", f"{task} is bad"], "inputs": [], "outputs": ["out"],
        }  # fmt: skip


def lines_of(app: TopApp) -> list[str]:
    return ["".join(part.text for part in strip) for strip in app.screen._compositor.render_strips()]


def text_of(app: TopApp) -> str:
    return "\n".join(lines_of(app))


async def until(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    """Comes back once it holds."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end, "\n".join(lines_of(pilot.app))  # type: ignore[arg-type]
        await pilot.pause(0.02)


def watched(
    source: Any, look: Callable[[TopApp, Pilot[None]], Awaitable[None]], size: tuple[int, int] = SMALL, **given: Any
) -> None:
    """Somebody looks at a source."""

    async def looked() -> None:
        app = TopApp(source, every=0.2, **given)
        async with app.run_test(size=size) as pilot:
            await until(pilot, lambda: app.board._view is not None or bool(app._last and app._last.trouble))
            await until(pilot, lambda: "quit" in lines_of(app)[-1])
            await look(app, pilot)

    asyncio.run(looked())


# The screen


@pytest.mark.parametrize("size", [SMALL, LARGE, (64, 18), (240, 70)])
@pytest.mark.parametrize("dark", [True, False])
def test_the_first_screen_says_what_matters(size: tuple[int, int], dark: bool) -> None:
    async def look(app: TopApp, pilot: Pilot[None]) -> None:
        lines = lines_of(app)
        assert len(lines) == size[1]
        assert lines[0].startswith(" survey  running  2 workers, 93 % busy")
        assert "292 of 400 tasks done, 8 running, 2 failed; 6 s to 20 s left" in lines[1]
        assert "done" in lines[2]
        assert "ready" in lines[2]
        text = text_of(app)
        for part in (
            "292 done",
            "8 running",
            "46 pending",
            "2 failed",
            "Running 8",
            "Workers 2",
            "Failures 2",
            "Tasks 400",
        ):
            assert part in text, part
        assert "align_0" in text
        assert "quit" in lines[-1]
        assert "help" in lines[-1]
        if size[1] >= 20:
            assert "400 tasks done" in text
            for part in ("seen 60", "planned 70", "fifo 40", "70 ┤", "fewer than workers", "▒"):
                assert part in text, part
        assert ("5.2 tasks/s" in text) == (size[0] >= 80)
        assert ("finished last" in text) == (size[0] >= 120)

    watched(Faked(view_of()), look, size, dark=dark)


def test_what_runs_is_told_with_what_was_expected() -> None:
    async def look(app: TopApp, pilot: Pilot[None]) -> None:
        row = next(line for line in lines_of(app) if "align_0" in line)
        assert row.split() == ["align_0", "ann", "30", "s", "!", "12", "s", "1"]

    watched(Faked(view_of()), look)


def test_the_bad_workers_come_first_and_have_a_mark() -> None:
    async def look(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.press("tab")
        await until(pilot, lambda: "every task failed" in text_of(app))
        lines = lines_of(app)
        bob, ann = (next(at for at, line in enumerate(lines) if name in line) for name in (" bob ", " ann "))
        assert bob < ann
        assert lines[bob].split()[:2] == ["!", "bob"]
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Sheet) and "1.25 of the usual" in text_of(app))
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, Sheet))

    watched(Faked(view_of()), look)


def test_failures_have_their_last_lines_and_lead_to_a_task() -> None:
    async def look(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.press("3")
        await until(pilot, lambda: "row 17 is bad" in text_of(app))
        assert "exit code 3" in text_of(app)
        assert "fit_3, fit_4" in text_of(app)
        await pilot.press("enter")
        await until(pilot, lambda: "there is no task named" in text_of(app))

    watched(Faked(view_of()), look)


def test_what_is_empty_says_so() -> None:
    async def look(app: TopApp, pilot: Pilot[None]) -> None:
        assert "no running tasks" in text_of(app)
        await pilot.press("enter")
        assert not isinstance(app.screen, Sheet)
        await pilot.press("3")
        await until(pilot, lambda: "no failures" in text_of(app))

    watched(Faked(view_of(running=[], failures=[], failures_total=0, clients=[])), look)


def test_tasks_are_searched_and_shown_in_detail() -> None:
    source = Faked(view_of())

    async def look(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.press("slash", *"fit_39", "enter")
        await until(pilot, lambda: 'of 5 with "fit_39"; by place' in text_of(app))
        rows = [line for line in lines_of(app) if "fit_39" in line and "done" in line]
        assert rows
        assert "align_39" not in text_of(app)
        await pilot.press("down", "enter")
        await until(pilot, lambda: "fit_392 is bad" in text_of(app))
        for part in ("It failed: exit code 3.", "get (done)", "attempt 1", "1 MiB", "fit fit_392"):
            assert part in text_of(app), part
        await pilot.press("q")
        await until(pilot, lambda: not isinstance(app.screen, Sheet))
        await pilot.press("escape")
        await until(pilot, lambda: "of 400; by place" in text_of(app))
        assert not app.board.query_one("#search", Input).display

    watched(source, look)
    assert all(query.most and 0 < query.most < 30 for query in source.asked)


def test_letters_that_are_keys_elsewhere_can_be_searched_for() -> None:
    async def look(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.press("slash", *"qwsrfcd1?")
        await until(pilot, lambda: '"qwsrfcd1?"' in text_of(app))
        assert "no matching tasks" in text_of(app)

    watched(Faked(view_of()), look)


def test_tasks_are_sorted_filtered_and_turned_page_by_page() -> None:
    source = Faked(view_of())

    async def look(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.press("4")
        await until(pilot, lambda: "fit_0 " in text_of(app) and "fit_4 " in text_of(app))
        page = source.asked[-1].most or 0
        assert page > 4
        await pilot.press("pagedown")
        await until(pilot, lambda: f"{page + 1} to {2 * page} of 400" in text_of(app))
        await pilot.press("up")
        await until(pilot, lambda: f"1 to {page} of 400" in text_of(app))
        await pilot.press(*["down"] * page)
        await until(pilot, lambda: f"{page + 1} to" in text_of(app))
        await pilot.press("end")
        await until(pilot, lambda: "to 400 of 400" in text_of(app))
        await pilot.press("s", "r", "f")
        await until(pilot, lambda: "of 400, done; by task, descending" in text_of(app))
        assert (source.asked[-1].sort, source.asked[-1].state, source.asked[-1].offset) == ("task", "done", 0)

    watched(source, look)


def test_the_cursor_stays_on_its_task_while_others_come_and_go() -> None:
    source = Faked(view_of())

    async def look(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.press("down", "down")
        assert app.board._list("running").chosen == "align_2"
        source.views["w-1"] = view_of(running=view_of()["running"][1:5], title="other")
        await until(pilot, lambda: "other" in text_of(app))
        assert app.board._list("running").chosen == "align_2"
        assert app.board._list("running").row_count == 4

    watched(source, look)


def test_the_screen_is_drawn_anew_in_another_size() -> None:
    async def look(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.resize_terminal(*LARGE)
        await until(pilot, lambda: "finished last" in text_of(app))
        await until(pilot, lambda: "kind" in text_of(app))
        await pilot.resize_terminal(*SMALL)
        await until(pilot, lambda: "finished last" not in text_of(app))
        await pilot.press("c")
        await until(pilot, lambda: "400 tasks done" not in text_of(app).replace("292 of 400 tasks done", ""))

    watched(Faked(view_of()), look)


def test_a_server_that_is_lost_is_told_and_found_again() -> None:
    source = Faked(view_of())

    async def look(app: TopApp, pilot: Pilot[None]) -> None:
        source.broken = "cannot reach http://faked: [Errno 111] Connection refused"
        await until(pilot, lambda: "no answer since" in text_of(app))
        assert "retrying: cannot reach http://faked: [Errno 111]" in text_of(app).replace("\n ", "\n")
        assert "292 of 400" in text_of(app)
        source.views["w-1"] = view_of(title="back")
        source.broken = ""
        await until(pilot, lambda: "no word" not in text_of(app) and " back  running" in text_of(app))

    watched(source, look, LARGE)


def test_a_server_that_was_never_there_is_waited_for() -> None:
    source = Faked(view_of())
    source.broken = "nobody answers"

    async def look(app: TopApp, pilot: Pilot[None]) -> None:
        assert "no answer, retrying: nobody answers" in text_of(app)
        source.broken = ""
        await until(pilot, lambda: "292 of 400" in text_of(app))

    watched(source, look)


def test_keys_are_heeded_while_the_source_takes_its_time() -> None:
    source = Faked(view_of())

    async def look(app: TopApp, pilot: Pilot[None]) -> None:
        source.free.clear()
        await pilot.pause(0.5)
        begin = time.monotonic()
        await pilot.press("question_mark")
        await until(pilot, lambda: "dark or light background" in text_of(app))
        assert time.monotonic() - begin < PATIENCE / 2
        await pilot.press("escape")
        await until(pilot, lambda: "no answer yet" in text_of(app))
        source.free.set()
        await until(pilot, lambda: "no answer yet" not in text_of(app))

    watched(source, look)


def test_names_are_shown_as_they_are_wherever_they_stand() -> None:
    view = view_of(
        title=NASTY,
        running=[{"task": NASTY, "client": NASTY, "since": NOW, "attempt": 1, "kind": NASTY, "expected": None}],
        recent=[{"task": NASTY, "client": NASTY, "ended": NOW, "took": 1.0, "failure": None}],
        clients=[worker(NASTY, remark=NASTY, bad=True)],
        failures=[{"cause": NASTY, "count": 1, "tasks": [NASTY], "tail": [NASTY], "clients": [[NASTY, 1]]}],
        order={"words": [NASTY]},
        policy=NASTY,
    )

    async def look(app: TopApp, pilot: Pilot[None]) -> None:
        assert SHOWN in text_of(app)
        for key in "2", "3", "4":
            await pilot.press(key)
            await until(pilot, lambda: SHOWN in text_of(app))
            await pilot.press("enter")
            await until(pilot, lambda: isinstance(app.screen, Sheet) and f"{SHOWN} " in text_of(app))
            await until(pilot, lambda: "reading" not in text_of(app))
            assert not [sign for line in lines_of(app) for sign in line if not (sign.isprintable() or sign == "\xa0")]
            await pilot.press("escape")
            await until(pilot, lambda: not isinstance(app.screen, Sheet))
        await pilot.press("slash", *"[red]")
        await until(pilot, lambda: 'with "[red]"' in text_of(app))

    watched(Faked(view, tasks=(NASTY, "b")), look, (200, 40))


def test_the_workflows_of_a_server_are_looked_at_in_turn() -> None:
    async def look(app: TopApp, pilot: Pilot[None]) -> None:
        assert "workflow 1 of 2" in lines_of(app)[0]
        await until(pilot, lambda: "workflow" in lines_of(app)[-1])
        await pilot.press("w")
        await until(pilot, lambda: " other  running" in text_of(app))
        assert "workflow 2 of 2" in lines_of(app)[0]
        await pilot.press("w")
        await until(pilot, lambda: " survey  running" in text_of(app))

    watched(Faked(view_of(), view_of(workflow="w-2", title="other")), look)


def test_a_server_without_workflows_says_so() -> None:
    async def looked() -> None:
        app = TopApp(Faked(), every=0.05)
        async with app.run_test(size=SMALL) as pilot:
            await until(pilot, lambda: "no workflows on this server" in text_of(app))

    asyncio.run(looked())


def test_states_are_told_by_letters_too(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sorted(LETTERS) == sorted(STATES)
    assert len(set(LETTERS.values())) == len(STATES)
    assert all(state in palette for state in STATES for palette in (LIGHT, DARK))
    monkeypatch.setenv("NO_COLOR", "1")

    async def look(app: TopApp, pilot: Pilot[None]) -> None:
        bar = lines_of(app)[2].strip()
        assert set(bar) == set("DRYPF")
        assert bar.count("D") == pytest.approx(78 * 292 / 400, abs=3)

    watched(Faked(view_of()), look)


def test_the_ground_can_be_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def look(app: TopApp, pilot: Pilot[None]) -> None:
        before = app.screen.styles.background
        await pilot.press("d")
        await until(pilot, lambda: app.screen.styles.background != before)

    watched(Faked(view_of()), look)
    for ground, dark in (("15;0", True), ("0;15", False), ("0;default;7", False), ("", True)):
        monkeypatch.setenv("COLORFGBG", ground)
        assert is_dark() == dark


# The curve and the frame


def test_each_line_of_the_curve_has_a_pattern_of_its_own() -> None:
    lines = [line.plain for line in curve_lines(view_of(), 80, 10, Look(colours=False))]
    assert len(lines) == 10
    assert all(len(line) <= 80 for line in lines)
    samples = [line.rstrip().rpartition("  ")[2][:4] for line in lines[:3]]
    assert len(set(samples)) == 3
    axis = lines[-2]
    begin = axis.index("└") + 1
    room = len(axis) - begin
    marked = [place for place, sign in enumerate(axis[begin:]) if sign == "▒"]
    assert marked == list(range(room * 200 // 400, -(-room * 230 // 400)))


def test_the_curve_can_do_without_signs() -> None:
    lines = [line.plain for line in curve_lines(view_of(), 80, 10, Look(colours=False, signs=False))]
    assert any("***" in line for line in lines)
    assert "!!!" in lines[-2]
    assert not any(0x2800 <= ord(sign) <= 0x28FF for line in lines for sign in line)


@pytest.mark.parametrize("tasks", [0, 1, 2])
def test_a_small_workflow_has_a_curve_too(tasks: int) -> None:
    line = {"y": [1] * tasks + [0], "least": None, "most": None}
    curve = {"steps": list(range(tasks + 1)), "starved": [], "sampled": False, "remark": "", "averages": {},
             "lines": {"seen": line, "fifo": line, "plan": None, "bound": None}}  # fmt: skip
    assert len(curve_lines(view_of(curve=curve, tasks=tasks), 80, 8, Look())) == 8


def test_a_frame_fits_its_width_and_has_everything() -> None:
    for width in (60, 80, 200):
        lines = [line.plain.rstrip() for line in frame(view_of(), width, Look(colours=False))]
        text = "\n".join(lines)
        for part in ("292 of 400", "align_0", "bob", "exit code 3", "row 17 is bad", "400 tasks done"):
            assert part in text, part
        assert all(len(line) <= width for line in lines)


# From the command


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Words:
    """The command in an empty folder: exit code, standard output, standard error."""
    monkeypatch.chdir(tmp_path)

    def said(*words: str) -> tuple[int, str, str]:
        code = run(list(words))
        return code, *capfd.readouterr()

    return said


TASKS: list[dict[str, Any]] = [
    {"name": "get", "run": "echo begun"},
    {"name": "fit_1", "run": "sleep 0.05", "after": ["get"]},
    {"name": "[red]fit_2[/]", "run": "echo oops >&2; echo 'row 17 is bad' >&2; exit 3", "after": ["get"]},
    {"name": "join", "run": "true", "after": ["fit_1", "[red]fit_2[/]"]},
]


def test_once_prints_how_a_run_stands(say: Words, tmp_path: Path) -> None:
    assert ran(written(tmp_path, TASKS), "--retries", "0") == 1
    say()
    for words in (("flow.yaml",), ("flow.yaml.run",), ()):
        code, out, err = say("top", *words, "--once")
        assert (code, err) == (0, "")
        assert "2 of 4 tasks done, 1 failed, 1 blocked; ended after" in out
        assert "\x1b" not in out
        assert all(len(line) <= 80 for line in out.splitlines())
        for part in ("FAILURES", "exit code 3", "[red]fit_2[/]", "row 17 is bad", "slot 1", "4 tasks done"):
            assert part in out, part
        bar = out.splitlines()[2]
        assert len(bar) == 80
        assert set(bar) == set("DBF")
    assert ran(written(tmp_path, TASKS, "other.yaml"), "--retries", "0") == 1
    say()
    assert say("top", "--once")[2] == "eligo: 2 runs in this folder: give one of flow.yaml.run, other.yaml.run\n"


def test_the_screen_shows_a_real_run(say: Words, tmp_path: Path) -> None:
    ran(written(tmp_path, TASKS), "--retries", "0")

    async def look(app: TopApp, pilot: Pilot[None]) -> None:
        assert "ended with failures" in text_of(app)
        await pilot.press("slash", *"fit_2", "enter", "enter")
        await until(pilot, lambda: "row 17 is bad" in text_of(app))
        assert "Failed" in text_of(app)

    watched(FolderSource(tmp_path / "flow.yaml.run"), look)


def test_where_there_is_nothing_to_look_at_it_says_so(say: Words) -> None:
    assert say("top", "--once")[2].startswith("eligo: no run in this folder: give a run folder")
    assert say("top", "nothing")[2] == "eligo: nothing: no such file or folder, and no run nothing.run\n"
    code, _, err = say("top", "http://127.0.0.1:1", "--once")
    assert code == 2
    assert err.startswith("eligo: cannot reach http://127.0.0.1:1:")


def test_what_is_needed_is_told(say: Words, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran(written(tmp_path, TASKS), "--retries", "0")
    say()
    assert say("top")[2] == "eligo: eligo top needs a terminal: use --once to print the current state\n"
    for stream in ("stdin", "stdout"):
        monkeypatch.setattr(f"sys.{stream}.isatty", lambda: True, raising=False)
    for module in ("eligo.cli.top", "eligo.cli.top_board", "eligo.cli.top_panes"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.setitem(sys.modules, "textual", None)
    code, _, err = say("top")
    assert code == 2
    assert 'needs Textual: pip install "eligo[top]"' in err
    assert "textual is missing" in err
    assert say("top", "--once")[0] == 0


def test_a_servers_workflows_are_shown(tmp_path: Path) -> None:
    flow = written(tmp_path, TASKS)
    with serving(tmp_path) as (url, server):
        code, out, _ = told("top", url, "--once")
        assert (code, out) == (0, "no workflows on this server\n")
        code, workflow, err = told("submit", url, str(flow), "--retries", "0", "--name", "first", "--no-files")
        assert code == 0, err
        told("submit", url, str(flow), "--name", "second", "--no-files")
        worked(tmp_path, url)
        code, out, err = told("top", f"{url}/{workflow.strip()}", "--once")
        assert (code, err) == (0, "")
        for part in (
            "first  ended with failures",
            "2 of 4 tasks done, 1 failed",
            "[red]fit_2[/]",
            "ann",
            "and 1 workflow",
        ):
            assert part in out, part
        watched(source_of(f"{url}/{workflow.strip()}", Access()), _real_server(server))


def _real_server(server: Any) -> Callable[[TopApp, Pilot[None]], Awaitable[None]]:
    async def look(app: TopApp, pilot: Pilot[None]) -> None:
        assert "workflow 1 of 2" in lines_of(app)[0]
        await pilot.press("slash", *"[red]", "enter")
        await until(pilot, lambda: 'of 1 with "[red]"' in text_of(app))
        await pilot.press("enter")
        await until(pilot, lambda: "row 17 is bad" in text_of(app))
        await pilot.press("escape")
        server.terminate()
        await until(pilot, lambda: "no answer since" in text_of(app))

    return look


def test_who_looks_stops_when_told() -> None:
    heard: list[Update] = []
    poller = Poller(Faked(view_of()), heard.append, every=0.01)
    poller.start()
    end = time.monotonic() + 10
    while len(heard) < 3 and time.monotonic() < end:
        time.sleep(0.01)
    poller.stop(5.0)
    count = len(heard)
    assert count >= 3
    time.sleep(0.05)
    assert len(heard) == count
    assert not poller._thread.is_alive()
