"""`eligo compare` and `eligo reproduce`: which order serves best, told in tables, pictures and JSON."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from eligo.cli import run
from eligo.families import out_mesh
from eligo.formats import write
from eligo.simulation.comparing import Column, comparison, contests_of, sentences
from eligo.simulation.tables import COLUMNS, Record, read_records

FEW = ["--runs", "3", "--rates", "2,8", "--clients", "3"]


def record(scheduler: str, mean: float, rate: str = "2", dag: str = "d", **others: object) -> Record:
    values: dict[str, object] = {
        "dag": dag, "fingerprint": "f", "tasks": 9, "scheduler": scheduler, "game": "batched", "setting": f"rate={rate}",
        "seed": 0, "runs": 10, "measure": "polls", "mean": mean, "deviation": 1.0,
    }  # fmt: skip
    return Record(**(values | others))  # type: ignore[arg-type]


def test_the_best_is_named_for_every_rate() -> None:
    """Plan is best at 2 and 4, fifo at 8; balanced is near the best everywhere and wins on the whole."""
    polls = {
        "plan": (100.0, 50.0, 40.0),
        "fifo": (120.0, 60.0, 30.0),
        "balanced": (100.2, 52.0, 30.1),
    }
    rows = [record(name, m, r) for name, means in polls.items() for m, r in zip(means, ("2", "4", "8"), strict=True)]
    (contest,) = contests_of(rows)
    assert contest.winner == "balanced"
    assert [contest.best_at(column) for column in contest.rates] == ["balanced", "plan", "balanced"]
    first, second = sentences(contest)
    assert first == "Fewest polls: balanced at 2 requests; plan at 4 requests; balanced at 8 requests."
    assert second == "Against first come, first served, balanced saves up to 16% of the polls (at 2 requests)."
    assert contest.relative("fifo", Column("batched", "rate=4")) == 1.2


def test_seeds_are_put_together() -> None:
    (contest,) = contests_of([record("fifo", 10.0), record("fifo", 12.0, seed=1)])
    mean = contest.means["fifo", Column("batched", "rate=2")]
    assert mean.value == 11.0
    assert mean.high - mean.value == pytest.approx(2.093 * 2**0.5 / 20**0.5, rel=1e-2)


def test_larger_shares_are_better() -> None:
    pebbles = {"game": "pebble", "setting": "", "measure": "share"}
    (contest,) = contests_of([record("fifo", 0.5, **pebbles), record("plan", 1.0, **pebbles)])
    assert contest.winner == "plan"
    assert contest.relative("fifo", contest.columns[0]) == 2.0


def test_several_dags_are_also_told_together() -> None:
    report = comparison([record(s, m, dag=d) for d in ("a", "b") for s, m in (("fifo", 12.0), ("plan", 10.0))])
    assert [section.title for section in report.sections] == ["All 2 dags", "a, 9 tasks", "b, 9 tasks"]
    assert report.sections[0].words == ["Over all of them plan is nearest to the best."]


# The command


def test_a_table_a_page_and_a_picture(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flow, page = tmp_path / "mesh.json", tmp_path / "c.html"
    write(out_mesh(8), flow)
    assert run(["compare", str(flow), *FEW, "-o", str(page)]) == 0
    shown = capsys.readouterr()
    assert "mesh.json, 36 tasks" in shown.out
    assert re.search(r"area / bound +100\.0%", shown.out)
    assert "polls, ρ = 8" in shown.out
    assert "makespan, 3 clients, rules=prudent" in shown.out
    assert f"wrote {page}" in shown.err
    assert not re.search(r"https?://|<script|<link", page.read_text())
    picture = tmp_path / "c.svg"
    assert run(["compare", str(flow), *FEW, "-o", str(picture)]) == 0
    assert picture.read_text().startswith("<?xml")


def test_json_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["compare", "--family", "out-mesh 6", "--family", "composition w 40", *FEW, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert list(document["best"]) == ["out-mesh 6", "composition w 40"]
    assert set(document["best"]["out-mesh 6"]["rates"]) == {"2", "8"}
    assert set(document["results"][0]) == set(COLUMNS)


def test_standard_input_is_a_workflow_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    text = b'{"arcs": [["a", "b"], ["a", "c"]]}'
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert run(["compare", "-", *FEW]) == 0
    assert "standard input, 3 tasks" in capsys.readouterr().out


def test_own_orders_stand_beside_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    order = tmp_path / "mine.txt"
    dag = out_mesh(5)
    order.write_text("\n".join(dag.named(dag.order)))
    words = ["compare", "--family", "out-mesh 5", "--schedulers", "fifo", "--order", str(order), *FEW, "--json"]
    assert run(words) == 0
    names = {row["scheduler"] for row in json.loads(capsys.readouterr().out)["results"]}
    assert names == {"fifo", str(order)}


EXPERIMENT = """
name: two meshes
dags:
- {family: out-mesh, sizes: [4, 6]}
schedulers: [plan, fifo]
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
    assert len(read_records(str(table))) == 8
    assert run(["compare", str(file)]) == 0
    assert table.read_bytes() == whole
    assert run(["compare", str(file), "--family", "w 3 2"]) == 2
    assert "give it alone" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "what is to be compared?"),
        (["--family", "mesh 3"], "there is no family named 'mesh'"),
        (["--family", "out-mesh"], "takes other sizes"),
        (["--family", "out-mesh 3", "--rates", "0"], "above 0 and finite, and 0 is not"),
        (["--family", "out-mesh 3", "--rates", "inf"], "above 0 and finite, and inf is not"),
        (["--family", "out-mesh 3", "--rates", "many"], "a rate is a number"),
        (["--family", "out-mesh 3", "--schedulers", "best"], "there is no scheduler named 'best'"),
        (["--family", "out-mesh 3", "--schedulers", ""], "an experiment needs schedulers"),
        (["--family", "out-mesh 3", "--clients", "0"], "0 clients execute nothing"),
        (["--family", "out-mesh 3", "--runs", "0"], "runs is a whole number"),
        (["--family", "out-mesh 3", "--seed", "-1"], "at least 0, and -1 is not"),
        (["--family", "out-mesh 3", "--processes", "0"], "processes is a whole number"),
        (["--family", "out-mesh 3", "--order", "nowhere.txt"], "no file with such an order"),
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
    assert "there are no tasks to play with" in capsys.readouterr().err


@pytest.mark.skipif(bool(os.environ.get("ELIGO_PURE")), reason="interpreted, no cell ends before it is interrupted")
@pytest.mark.skipif(os.name == "nt", reason="no such signals")
def test_ctrl_c_leaves_what_is_finished(tmp_path: Path) -> None:
    """The command is interrupted in the middle; its table can be read, and the same command goes on from there."""
    file, table = tmp_path / "e.yaml", tmp_path / "e.csv"
    file.write_text(EXPERIMENT.replace("[4, 6]", "[40, 60]").replace("runs: 3", "runs: 20000"))
    command = [sys.executable, "-c", "from eligo.cli import main; main()", "compare", str(file)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    patience = time.monotonic() + 60
    while not table.exists() and process.poll() is None and time.monotonic() < patience:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on from there" in told
    assert "Traceback" not in told
    assert 1 <= len(read_records(str(table))) < 8


def test_reproduce_prints_what_agrees(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["reproduce", "sweep", "-o", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr()
    assert "Table 2" in shown.out
    assert "23 of 23 published values and claims agree" in shown.err
    assert (tmp_path / "out" / "sweep.html").exists()
    assert run(["reproduce", "clustering", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["sections"][0]["findings"][2]["ours"] == "8"
    assert run(["reproduce", "dreams"]) == 2
    assert "there is no paper 'dreams'" in capsys.readouterr().err
