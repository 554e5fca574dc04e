"""`eligo compare`: which order serves best, told in tables, pictures and JSON."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conftest import data_of
from eligo.cli import run
from eligo.cli.compare import print_report
from eligo.cli.output import print_table
from eligo.families import out_mesh
from eligo.formats import write
from eligo.simulation.comparison import answer, comparison, sentences
from eligo.simulation.contests import Column, contests_of
from eligo.simulation.reports import Report, Section, Table
from eligo.simulation.tables import COLUMNS, Record, read_records

FEW = ["--runs", "3", "--rates", "2,8", "--clients", "3"]


#: rounds of requests that differ from run to run, for everybody alike
NOISE = (0.0, 9.0, -4.0, 2.0, -7.0, 5.0, 1.0, -6.0, 3.0, -3.0)


def record(scheduler: str, mean: float | None, rate: str = "2", dag: str = "d", **others: Any) -> Record:
    """Ten runs around a mean."""
    values: dict[str, Any] = {
        "dag": dag, "fingerprint": "f", "tasks": 9, "scheduler": scheduler, "game": "batched", "setting": f"rate={rate}",
        "seed": 0, "runs": 10, "measure": "polls", "mean": mean, "deviation": 1.0, "endless": 0,
        "parts": tuple((mean or 0.0) + noise for noise in NOISE),
    }  # fmt: skip
    return Record(**(values | others))


def timed(scheduler: str, *parts: float | None, rules: str = "none") -> Record:
    """A makespan with volatile clients, run by run; None has no end."""
    crowd: dict[str, Any] = {
        "game": "volatile",
        "setting": f"count=4 rules={rules}",
        "measure": "makespan",
        "runs": len(parts),
    }
    return record(scheduler, None, **crowd, endless=parts.count(None), parts=parts)


def told(records: Iterable[Record]) -> tuple[str, list[str]]:
    (contest,) = contests_of(records)
    return answer(contest), sentences(contest)


def test_the_best_is_named_for_every_rate() -> None:
    """Plan is best at 2 and 4, fifo at 8; balanced is near the best everywhere but at 4."""
    polls = {
        "plan": (1000.0, 500.0, 400.0),
        "fifo": (1200.0, 600.0, 300.0),
        "balanced": (1002.0, 520.0, 301.0),
    }
    rows = [record(name, m, r) for name, means in polls.items() for m, r in zip(means, ("2", "4", "8"), strict=True)]
    (contest,) = contests_of(rows)
    assert contest.winner == "balanced"
    assert contest.leaders == []
    assert answer(contest) == "plan is best up to 4 requests, balanced beyond."
    assert sentences(contest) == [
        "Compared with fifo (first come, first served), balanced saves up to 16 % of the rounds."
    ]
    assert contest.relative("fifo", Column("batched", "rate=4")).value == 1.2
    (section,) = (s for s in comparison(rows).sections if s.tables)
    assert section.tables[0].head == ["", "2", "4", "8"]
    assert section.tables[0].rows == [
        ["*balanced", "·", "+4.0", "·"],
        [" plan", "·", "·", "+33"],
        [" fifo", "+20", "+20", "·"],
    ]


def test_who_leads_or_ties_at_every_rate_serves_best() -> None:
    everywhere = "at every rate"
    rows = [record("plan", 1000.0), record("fifo", 1100.0), record("plan", 500.0, "4"), record("fifo", 501.0, "4")]
    assert told(rows)[0] == f"plan is best {everywhere}, or within 0.5 % of the best."
    rows += [record("lifo", 1001.0), record("lifo", 501.0, "4")]
    assert told(rows)[0] == f"plan and lifo are best {everywhere}, or within 0.5 % of the best."
    assert told(rows[:1] + rows[4:5])[0] == "no difference between plan and lifo above 0.5 %."
    assert told(rows[:1])[0] == ""


def test_where_nothing_differs_words_say_so_instead_of_a_table_and_curves() -> None:
    """Two orders alike at every rate, by a little or as far as chance lets one see; a third one makes a difference."""
    rows = [record(name, 100.0, rate) for name in ("plan", "fifo") for rate in ("2", "8")]
    first, last = comparison(rows).sections
    assert not first.tables
    assert first.words == ["No difference in rounds of requests: all 2 orders are within 0.5 % of each other."]
    (panel,) = last.pictures[0].panels
    assert not panel.curves
    assert panel.words == "No difference at 2 to 8 simultaneous requests: all 2 orders are within 0.5 % of each other."
    seen = [*rows, *(record("lifo", 120.0, rate) for rate in ("2", "8"))]
    first, last = comparison(seen).sections
    assert first.tables
    assert not first.words
    assert last.pictures[0].panels[0].curves


def test_on_steady_workers_every_difference_counts() -> None:
    """Nothing is left to chance there, so a single run decides."""

    def steady(scheduler: str, over: float) -> Record:
        return record(scheduler, over, game="steady", setting="workers=4", measure="over", runs=1, parts=(over,))

    (alike,) = comparison([steady("plan", 1.0), steady("fifo", 1.001)]).sections
    assert not alike.tables
    (said,) = alike.words
    assert said.startswith(
        "No difference on 4 steady workers: all 2 orders finish within 0.5 % of each other, and no order can finish earlier"
    )
    (other,) = comparison([steady("plan", 1.0), steady("fifo", 1.2)]).sections
    assert other.tables


def test_a_difference_that_may_be_chance_is_none() -> None:
    """The same mean difference of 2 %: once in every run, once of a few runs here and there."""
    plan = record("plan", 100.0)
    sure = record("fifo", 102.0)
    swing = (40.0, -38.0, 35.0, -30.0, 33.0, -31.0, 29.0, -28.0, 30.0, -20.0)
    chance = record("fifo", 102.0, parts=tuple(100 + noise + s for noise, s in zip(NOISE, swing, strict=True)))
    column = Column("batched", "rate=2")
    (certain,), (open_,) = contests_of([plan, sure]), contests_of([plan, chance])
    assert certain.relative("fifo", column).value == pytest.approx(open_.relative("fifo", column).value)
    assert certain.worse("fifo", column)
    assert not open_.worse("fifo", column)
    assert answer(open_) == "no significant difference between plan and fifo in 10 runs."
    third = record("lifo", 120.0)
    assert [row[1] for row in comparison([plan, chance, third]).sections[0].tables[0].rows] == ["·", "~", "+20"]
    alone: dict[str, Any] = {"runs": 1, "parts": (102.0,)}
    (once,) = contests_of([record("plan", 100.0, runs=1, parts=(100.0,)), record("fifo", 102.0, **alone)])
    assert not once.worse("fifo", column)  # a single run tells nothing


def test_noise_is_no_finding() -> None:
    """Six schedulers that are the same but for chance: in 200 contests, hardly ever is one said to be worse."""
    rng = np.random.default_rng(1)
    column = Column("batched", "rate=2")
    wrong = 0
    for _ in range(200):
        rows = [record(f"s{i}", 0.0, parts=tuple(rng.normal(100, 20, 50).tolist())) for i in range(6)]
        (contest,) = contests_of(rows)
        wrong += any(contest.worse(name, column) for name in contest.schedulers)
    assert wrong <= 18


def test_seeds_are_put_together() -> None:
    (contest,) = contests_of([record("fifo", 10.0), record("fifo", 12.0, seed=1)])
    assert contest.runs == 20
    assert contest.values["fifo", Column("batched", "rate=2")].tolist() == [m + x for m in (10, 12) for x in NOISE]


def test_larger_shares_are_better() -> None:
    pebbles = {"game": "pebble", "setting": "", "measure": "share"}
    rows = [record("fifo", 0, **pebbles, parts=(0.5, 0.5)), record("plan", 0, **pebbles, parts=(0.9999, 0.9999))]
    (contest,) = contests_of(rows)
    assert contest.winner == "plan"
    assert contest.relative("fifo", contest.columns[0]).value == pytest.approx(2.0, rel=1e-3)
    assert answer(contest) == "plan is best in this game, or within 0.5 % of the best."
    assert [row[1] for row in comparison(rows).sections[0].tables[0].rows] == ["99.9 %", "50.0 %"]


def test_several_dags_are_also_told_together() -> None:
    report = comparison([record(s, m, dag=d) for d in ("a", "b") for s, m in (("fifo", 120.0), ("plan", 100.0))])
    first, *others = report.sections
    assert [section.title for section in others] == ["a, 9 tasks, 10 runs", "b, 9 tasks, 10 runs"]
    assert first.title.startswith("All 2 dags")
    assert first.answer == "Over all of them, plan is best at 2 requests, or within 0.5 % of the best."
    assert first.tables[0].rows == [["*plan", "·"], [" fifo", "+20"]]


def test_games_without_an_end_are_results() -> None:
    """Some runs of all, most of one's, all of everybody's: the rest is compared, and told."""
    some = [timed("plan", 4.0, 5.0, None, 6.0), timed("fifo", 8.0, 10.0, None, 12.0), timed("lifo", 4.0, *[None] * 3)]
    report = comparison(some)
    assert report.sections[0].tables[0].rows == [["*plan", "·!"], [" fifo", "+100!"], [" lifo", "no end"]]
    assert report.sections[0].words == [
        "1 to 3 of 4 runs did not finish: clients left before the longest task was done."
    ]
    assert "! mean of the runs that finish" in " ".join(report.words)
    (contest,) = contests_of([timed("plan", None, None), timed("fifo", None, None)])
    assert answer(contest) == "no difference between plan and fifo above 0.5 %."
    assert [row[1] for row in comparison([timed("plan", None)]).sections[0].tables[0].rows] == ["no end"]


def test_rules_are_praised_where_they_pay() -> None:
    def both(*ruled: float) -> list[str]:
        return told([timed("plan", 10.0, 12.0, 11.0, 12.0), timed("plan", *ruled, rules="prudent")])[1]

    assert both(5.0, 6.1, 5.4, 6.0) == [
        "With rules for slow clients, plan takes 50 % of the time that it takes without them."
    ]
    assert both(5.0, 20.0, 9.0, 13.0) == []
    quick, slow = (10.0, 12.0, 11.0, 12.0), (900.0, 700.0, 800.0, 850.0)
    rows = [
        replace(timed(name, *(value * factor for value in times), rules=rules), dag=dag)
        for dag, times in (("a", quick), ("b", slow))
        for name in ("plan", "fifo")
        for rules, factor in (("none", 1.0), ("prudent", 0.5))
    ]
    words = "With rules for slow clients, plan takes 50 % of the time that it takes without them."
    assert [words in section.words for section in comparison(rows).sections] == 3 * [True]  # together, too


# The command


def test_a_table_a_page_and_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flow, page = tmp_path / "mesh.json", tmp_path / "c.html"
    write(out_mesh(8), flow)
    assert run(["compare", str(flow), *FEW, "-o", str(page)]) == 0
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert lines[0] == "Simulated how soon mesh.json finishes under 6 policies."
    assert re.search(r"(best|difference between)", lines[1])  # the answer comes first
    assert "mesh.json, 36 tasks, 3 runs" in lines
    assert any(line.split() == ["ready", "2", "8", "time", "rules", "starved"] for line in lines)
    assert re.search(r"\n\*ready +100 % +· +·", shown.out)
    assert "time: time to completion with 3 clients that come and go" in lines
    assert f"wrote {page}" in shown.err
    drawn = page.read_text()
    assert data_of(drawn)["headline"] == [lines[1]]
    assert "polls, ρ = 8" in drawn  # with the means themselves
    picture = tmp_path / "c.svg"
    assert run(["compare", str(flow), *FEW, "-o", str(picture)]) == 0
    assert picture.read_text().startswith("<?xml")


@pytest.mark.usefixtures("no_pages")
def test_without_the_page_the_table_is_printed_all_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flow, page = tmp_path / "mesh.json", tmp_path / "c.html"
    write(out_mesh(8), flow)
    assert run(["compare", str(flow), *FEW, "-o", str(page)]) == 1
    shown = capsys.readouterr()
    assert "mesh.json, 36 tasks, 3 runs" in shown.out
    assert "c.html: the page is not built: run `make page`" in " ".join(shown.err.split())
    assert not page.exists()


def test_everything_fits_into_80_columns(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    dags = ["--family", "in-mesh 12", "--family", "composition wnm 200"]
    assert run(["compare", *dags, "--runs", "20"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    heads = [line.split() for line in lines if line.split()[:1] == ["ready"]]
    assert heads == 3 * [["ready", "2", "4", "8", "16", "32", "64", "128", "256", "time", "rules", "starved"]]
    assert sum(line.startswith(("*", " ")) and "fifo" in line for line in lines) == 3  # no row is broken
    assert run(["compare", *dags, "--runs", "2", "--rates", ",".join(map(str, range(100, 130)))]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80  # what has no room stands below


LONG = {"long": 300.0} | {f"t{i}": 1.0 for i in range(20)}


def test_clients_who_never_finish_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One task takes 300 times as long as the others: the times have no end, and all else is there."""
    tasks = "".join(f"- {{name: {name}, seconds: {seconds}}}\n" for name, seconds in LONG.items())
    flow, page = tmp_path / "long.yaml", tmp_path / "c.html"
    flow.write_text(f"tasks:\n{tasks}")
    words = ["compare", str(flow), *FEW, "--policy", "ready,fifo", "--stay", "0.01"]
    assert run([*words, "-o", str(page)]) == 0
    shown = capsys.readouterr()
    assert re.search(r"\*ready +100 % +· +· +no end +no end", shown.out)
    assert "3 of 3 runs did not finish: clients left before the longest task was done." in shown.out
    assert "stay=0.01" in shown.out
    assert "--stay" in shown.err
    assert "no end" in page.read_text()
    assert run([*words, "--json"]) == 0
    rows = [row for row in json.loads(capsys.readouterr().out)["results"] if row["game"] == "volatile"]
    assert {(row["mean"], row["deviation"], row["endless"], *row["parts"]) for row in rows} == {
        (None, None, 3) + 3 * (None,)
    }
    assert run([*words[:-2], "--stay", "inf", "--away", "2"]) == 0
    assert "no end" not in capsys.readouterr().out


def test_json_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", "--family", "out-mesh 6", "--family", "composition w 40", *FEW, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert list(document["best"]) == ["out-mesh 6", "composition w 40"]
    best = document["best"]["out-mesh 6"]
    assert set(best["rates"]) == set(best["ties"]) == {"2", "8"}
    assert all(name in best["ties"][rate] for rate, name in best["rates"].items())
    assert best["answer"]
    assert set(document["results"][0]) == {*COLUMNS, "policy"}


def test_standard_input_is_a_workflow_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = b'{"arcs": [["a", "b"], ["a", "c"]]}'
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert run(["compare", "-", *FEW]) == 0
    assert "standard input, 3 tasks" in capsys.readouterr().out


def test_own_orders_stand_beside_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    order = tmp_path / "mine.txt"
    dag = out_mesh(5)
    order.write_text("\n".join(dag.named(dag.order)))
    words = ["compare", "--family", "out-mesh 5", "--policy", "fifo", "--order", str(order), *FEW, "--json"]
    assert run(words) == 0
    names = {row["scheduler"] for row in json.loads(capsys.readouterr().out)["results"]}
    assert names == {"fifo", str(order)}


EXPERIMENT = """
name: two meshes
dags:
- {family: out-mesh, sizes: [4, 6]}
schedulers: [ready, fifo]
games:
  batched: {rates: [2, 8]}
runs: 3
"""


def test_an_experiment_is_run_and_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "e.yaml"
    file.write_text(EXPERIMENT)
    assert run(["compare", str(file)]) == 0
    assert "All 2 dags" in capsys.readouterr().out
    table = tmp_path / "e.csv"
    whole = table.read_bytes()
    assert len(read_records(str(table))) == 16
    assert run(["compare", str(file)]) == 0
    assert table.read_bytes() == whole
    assert run(["compare", str(file), "--family", "w 3 2"]) == 2
    assert "give it as the only file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "nothing to compare"),
        (["--family", "mesh 3"], "unknown family 'mesh'"),
        (["--family", "out-mesh"], "wrong sizes for the family"),
        (["--family", "out-mesh 3", "--rates", "0"], "finite number of requests, got 0"),
        (["--family", "out-mesh 3", "--rates", "inf"], "finite number of requests, got inf"),
        (["--family", "out-mesh 3", "--rates", "many"], "--rates must be numbers"),
        (["--family", "out-mesh 3", "--policy", "best"], "unknown policy 'best'"),
        (["--family", "out-mesh 3", "--policy", ""], "at least one of its schedulers"),
        (["--family", "out-mesh 3", "--clients", "0"], "clients must be at least 1, got 0"),
        (["--family", "out-mesh 3", "--stay", "0"], "stay must be positive"),
        (["--family", "out-mesh 3", "--away", "inf"], "away must be positive and finite"),
        (["--family", "out-mesh 3", "--runs", "0"], "runs must be an integer"),
        (["--family", "out-mesh 3", "--seed", "-1"], "a seed must be a non-negative integer, got -1"),
        (["--family", "out-mesh 3", "--processes", "0"], "processes must be an integer"),
        (["--family", "out-mesh 3", "--order", "nowhere.txt"], "or give a file with an order"),
        (["--family", "out-mesh 3", "--on", "tcp://x"], "dask://HOST:PORT"),
        (["nowhere.json"], "nowhere.json: cannot be read"),
    ],
)
def test_what_is_wrong_is_told_in_a_line(words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", *words]) == 2
    told = capsys.readouterr().err
    assert complaint in told
    assert told.count("\n") == 1


def test_an_empty_workflow_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "none.json").write_text('{"arcs": []}')
    assert run(["compare", str(tmp_path / "none.json"), *FEW]) == 2
    assert "the workflow has no tasks" in capsys.readouterr().err


@pytest.mark.skipif(bool(os.environ.get("ELIGO_PURE")), reason="interpreted, no cell ends before it is interrupted")
@pytest.mark.skipif(os.name == "nt", reason="no such signals")
def test_ctrl_c_leaves_what_is_finished(tmp_path: Path) -> None:
    """The command is interrupted in the middle; its table can be read, and run the same command again to resume."""
    file, table = tmp_path / "e.yaml", tmp_path / "e.csv"
    file.write_text(EXPERIMENT.replace("[4, 6]", "[40, 60]").replace("runs: 3", "runs: 60000"))
    command = [sys.executable, "-c", "from eligo.cli import main; main()", "compare", str(file)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    patience = time.monotonic() + 240
    while not table.exists() and process.poll() is None and time.monotonic() < patience:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=240)
    assert process.returncode == 130
    assert "run the same command again to resume" in told
    assert "Traceback" not in told
    assert 1 <= len(read_records(str(table))) < 8


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_no_word_of_a_tables_head_is_broken(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    texts = ["Theorem " * 9, "leaves an optimal rest " * 4, "without " * 12, "yes"]
    wide = Table(title="", head=["", "published", "ours", "agrees"], rows=[texts])
    head = ["requests", "communication (productivity)", *(f"{2**i:,} workers" for i in range(9))]
    table = Table(title="", head=head, rows=[["a first cell of some length", *["1.000, 1.67"] * 10]])
    print_report(Report(title="t", sections=[Section(title="s", tables=[wide, table])]))
    words = set(capsys.readouterr().out.split())
    assert {"published", "ours", "agrees", "requests", "communication", "(productivity)", "256", "workers"} <= words


def test_a_table_that_is_too_wide_has_its_longest_cells_cut(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eligo.cli.output.sys.stdout.isatty", lambda: True)
    titles = ["client", "name", "has", "done", "failed", "lost", "speed", "seen"]
    print_table(titles, [["c-1", "node-17." * 12, "1", "2", "0", "0", "1.00", "waits for approval"]])
    head, row = capsys.readouterr().out.splitlines()
    assert head.split() == titles
    assert "node-17.node" in row
    assert "…" in row
    assert max(len(head), len(row)) <= 80
