"""What Nextflow draws and the trace of a run: tasks in place of processes, and no arc that is not known or likely."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eligo
from eligo.cli import run
from eligo.errors import FormatError, InputError
from eligo.formats import read, read_history
from eligo.formats.histories import nextflow
from eligo.workflow import Timed, Workflow

DAG = """flowchart TB
    subgraph " "
    v0["Channel.fromPath"]
    end
    subgraph "RNASEQ [RNASEQ]"
    v1(["INDEX"])
    v2(["TRIM"])
    v3(["ALIGN"])
    v4(["SORT"])
    v6(( ))
    v5(["REPORT"])
    end
    v0 --> v1
    v0 --> v2
    v1 --> v3
    v2 --> v3
    v3 --> v4
    v4 --> v6
    v6 --> v5
"""
HEAD = "task_id\thash\tname\tstatus\tsubmit\tcomplete\trealtime\tcpus\n"


def line(number: int, name: str, submit: float, complete: float, status: str = "COMPLETED") -> str:
    """A row of a trace; times are seconds after noon."""
    moments = "\t".join(f"2026-01-02 12:{s // 60:02.0f}:{s % 60:06.3f}" for s in (submit, complete))
    return f"{number}\tab/{number:06}\t{name}\t{status}\t{moments}\t{complete - submit:g}s\t2\n"


TRACE = HEAD + "".join(
    line(number, name, submit, complete)
    for number, (name, submit, complete) in enumerate(
        [("RNASEQ:INDEX", 0, 5), ("RNASEQ:TRIM (s1)", 0, 2), ("RNASEQ:TRIM (s2)", 0, 9), ("RNASEQ:ALIGN (s1)", 6, 12),
         ("RNASEQ:ALIGN (s2)", 10, 30), ("RNASEQ:SORT (1)", 13, 14), ("RNASEQ:SORT (2)", 31, 33), ("RNASEQ:REPORT", 34, 36)],
        1,
    )
)  # fmt: skip

Traced = Callable[..., Workflow]


@pytest.fixture
def traced(tmp_path: Path) -> Traced:
    def reading(trace: str, dag: str = DAG, name: str = "dag.mmd") -> Workflow:
        (tmp_path / name).write_text(dag, "utf-8")
        (tmp_path / "trace.txt").write_text(trace, "utf-8")
        return read(tmp_path / name, trace=str(tmp_path / "trace.txt"))

    return reading


def arcs(flow: Workflow) -> set[tuple[str, str]]:
    return {(a.removeprefix("RNASEQ:"), b.removeprefix("RNASEQ:")) for a, b in flow.dag.arcs()}


def test_processes_become_their_tasks(traced: Traced) -> None:
    flow = traced(TRACE)
    assert arcs(flow) == {
        ("INDEX", "ALIGN (s1)"), ("INDEX", "ALIGN (s2)"),  # one task, so all need it
        ("TRIM (s1)", "ALIGN (s1)"), ("TRIM (s2)", "ALIGN (s2)"),  # by tag
        ("ALIGN (s1)", "SORT (1)"), ("ALIGN (s1)", "SORT (2)"), ("ALIGN (s2)", "SORT (2)"),  # (1) is no tag: by time
        ("SORT (1)", "REPORT"), ("SORT (2)", "REPORT"),
    }  # fmt: skip
    assert flow.task("RNASEQ:ALIGN (s2)") == eligo.Task(
        name="RNASEQ:ALIGN (s2)", seconds=20.0, cores=2.0, category="RNASEQ:ALIGN"
    )
    assert flow.origin is not None
    assert flow.origin.remarks[-3:] == (
        "the trace has 8 tasks of 5 processes",
        "pairs of processes joined by equal tags, which is likely but not certain: 1",
        "pairs of processes where each task waits for all tasks that completed before it, possibly more than it needs: 1",
    )


def test_tags_do_not_count_where_times_say_otherwise(traced: Traced) -> None:
    """ALIGN (s2) began before TRIM (s2) was done, so that tags mean something else here."""
    flow = traced(TRACE.replace(line(5, "RNASEQ:ALIGN (s2)", 10, 30), line(5, "RNASEQ:ALIGN (s2)", 7, 30)))
    assert {arc for arc in arcs(flow) if arc[0].startswith("TRIM")} == {
        ("TRIM (s1)", "ALIGN (s1)"),
        ("TRIM (s1)", "ALIGN (s2)"),
    }


def test_times_of_tasks_in_the_cache_do_not_count(traced: Traced) -> None:
    cached = line(5, "RNASEQ:ALIGN (s2)", 7, 30, "CACHED")
    flow = traced(TRACE.replace(line(5, "RNASEQ:ALIGN (s2)", 10, 30), cached))
    assert ("TRIM (s2)", "ALIGN (s2)") in arcs(flow)
    assert ("ALIGN (s2)", "SORT (1)") in arcs(flow)


def test_tags_that_are_not_one_to_one_do_not_count(traced: Traced) -> None:
    names = ("TRIM (a)", "TRIM (b)", "ALIGN (a)", "ALIGN (c)", "SORT (c)", "SORT (c)", "SORT (a)")
    bare = "name\trealtime\n" + "".join(f"{name}\t1s\n" for name in names)
    found = arcs(traced(bare))
    assert {arc for arc in found if arc[1].startswith("ALIGN")} == {
        (f"TRIM ({tail})", f"ALIGN ({head})") for tail in "ab" for head in "ac"
    }
    assert {arc[0] for arc in found if arc[1].startswith("SORT (c)")} == {"ALIGN (c)"}
    assert sum(arc[1].startswith("SORT (c)") for arc in found) == 2, "two tasks of one name are two tasks"


def test_a_column_of_tags_counts_before_names(traced: Traced) -> None:
    rows = (("TRIM", 1), ("TRIM", 2), ("ALIGN", 2), ("ALIGN", 1))
    text = "name\tprocess\ttag\trealtime\n" + "".join(f"{p} ({tag})\t{p}\t{tag}\t1s\n" for p, tag in rows)
    assert arcs(traced(text)) == {("TRIM (1)", "ALIGN (1)"), ("TRIM (2)", "ALIGN (2)")}
    assert len(arcs(traced(text.replace("TRIM\t1\t", "TRIM\t-\t").replace("TRIM\t2\t", "TRIM\t-\t")))) == 4


def test_processes_that_did_not_run_are_passed_through_and_others_stand_alone(traced: Traced) -> None:
    flow = traced(
        "name\tstatus\trealtime\nTRIM\tCOMPLETED\t1s\nSORT\tCOMPLETED\t2s\nALIGN\tFAILED\t1s\nOTHER\tCOMPLETED\t1s\n"
    )
    assert arcs(flow) == {("TRIM", "SORT")}
    assert flow.dag.tasks == ("TRIM", "SORT", "OTHER")
    assert flow.origin is not None
    told = " ".join(flow.origin.remarks)
    for words in ("ignored 1 attempt", "replaced by arcs: 3", "not in the drawing, read without arcs: 1"):
        assert words in told


def test_processes_of_one_name_need_their_whole_names(traced: Traced) -> None:
    twice = DAG.replace('v2(["TRIM"])', 'v2(["SORT"])')
    with pytest.raises(InputError, match=r"2 processes of the drawing are named 'SORT', .* .draw it as \.dot"):
        traced(TRACE, twice)
    dot = 'digraph d {\nv0 [shape=point,label="",fixedsize=true,width=0.1];\nv1 [label="A:SORT"];\nv2 [label="B:SORT"];\n' \
          "v0 -> v1;\nv1 -> v2;\n}\n"  # fmt: skip
    rows = "name\trealtime\nA:SORT (x)\t1s\nA:SORT (y)\t1s\nB:SORT (y)\t1s\nB:SORT (x)\t1s\n"
    assert arcs(traced(rows, dot, "dag.dot")) == {("A:SORT (x)", "B:SORT (x)"), ("A:SORT (y)", "B:SORT (y)")}


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        ("parent,child\na,b\n", r"trace\.txt: the file must be a Nextflow trace or report"),
        (
            "name\tstatus\trealtime\nA\tFAILED\t1s\n",
            r"trace\.txt: the trace must have a completed task, got none in 1 rows",
        ),
        (
            "name\trealtime\nA\tlong\n",
            r"trace\.txt:2: a duration must be at least 0, such as 63, 1m 3s or 0:01:03, got 'long'",
        ),
        ("name\trealtime\n-\t2s\n", r"trace\.txt:2: the row must have a process or a task name"),
    ],
)
def test_what_is_wrong_with_a_trace_is_told(traced: Traced, trace: str, message: str) -> None:
    with pytest.raises(FormatError, match=message):
        traced(trace)


def test_only_drawings_of_nextflow_take_a_trace(traced: Traced) -> None:
    with pytest.raises(InputError, match="a trace needs a dag drawn by Nextflow"):
        traced(TRACE, "flowchart TD\na --> b\n")
    with pytest.raises(InputError, match="arcs files do not take a trace"):
        traced(TRACE, "a b\n", "dag.arcs")


def test_the_command_takes_a_trace(traced: Traced, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    traced(TRACE)
    words = ["plan", str(tmp_path / "dag.mmd"), "--trace", str(tmp_path / "trace.txt"), "--workers", "2"]
    assert run(words) == 0
    told = capsys.readouterr()
    assert "all tasks finish in about 33 s" in told.out
    assert "eligo: the trace has 8 tasks of 5 processes" in told.err


# The report


def report(rows: list[dict[str, str]] | None) -> str:
    """A page such as `nextflow run -with-report` writes, without its pictures."""
    data = "null" if rows is None else json.dumps(rows).replace("it's", "it\\'s").replace("/", "\\/")
    page = f'  // Nextflow report data\n  window.data = {{ "trace":{data}, "summary":[{{"process":"A"}}] }};\n\n  </script>\n'
    return f"<!DOCTYPE html>\n<html>\n<head>\n<title>[mad_euler] Nextflow Workflow Report</title>\n<script>\n{page}</html>\n"


ROWS = [
    {"task_id": "1", "process": "R:TRIM", "tag": "it's a\\b", "name": "R:TRIM (it's a\\b)", "status": "COMPLETED",
     "submit": "1690000000000", "complete": "1690000002000", "realtime": "1500", "duration": "2000", "script": "x </p> it's"},
    {"task_id": "2", "process": "R:TRIM", "tag": "b", "name": "R:TRIM (b)", "status": "FAILED", "realtime": "-"},
]  # fmt: skip


def test_a_report_is_a_history(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(report(ROWS), "utf-8")
    found = read_history(path)
    assert found.records == (Timed("R:TRIM (it's a\\b)", "R:TRIM", 1.5),)
    assert found.format == "nextflow"
    assert found.remarks == ("ignored 1 incomplete attempt",)
    assert read_history(tmp_path).records == found.records


def test_a_report_is_a_trace(traced: Traced) -> None:
    assert traced(report(ROWS)).dag.tasks == ("R:TRIM (it's a\\b)",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (report(None), "this report lists no tasks, as for very large runs"),
        (report(ROWS).replace("window.data", "data"), "this report lists no tasks"),
        (report(ROWS).replace('"1500"', "1500,"), "the data of this report are not valid JSON"),
    ],
)
def test_a_report_without_tasks_is_told(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "report.html").write_text(text, "utf-8")
    with pytest.raises(FormatError, match=message):
        read_history(tmp_path / "report.html")


@given(st.text(max_size=40), st.integers(0, 900), st.integers(0, 60))
@settings(max_examples=200)
def test_any_page_is_read_or_refused(piece: str, start: int, length: int) -> None:
    text = report(ROWS)
    damaged = text[:start] + piece + text[start + length :]
    if nextflow.sniff(damaged):
        try:
            nextflow.parse(damaged, "report.html")
        except InputError as error:
            message = str(error)
            assert "\n" not in message


@given(st.integers(0, 10_000))
@settings(max_examples=60)
def test_by_times_alone_nothing_that_was_needed_is_lost(seed: int) -> None:
    """Pipelines at random, run for real as far as times go: every arc there was is among those that are read."""
    rng = random.Random(seed)
    needs: dict[str, list[str]] = {}
    done: dict[str, float] = {}
    rows: list[str] = []
    for process in range(4):
        for number in range(1, rng.randint(2, 5)):
            name = f"P{process} ({number})"
            above = [f"P{process - 1} ({i})" for i in range(1, 6) if f"P{process - 1} ({i})" in done]
            needs[name] = rng.sample(above, rng.randint(1, len(above))) if above else []
            submit = max((done[task] for task in needs[name]), default=0.0) + rng.choice([0, 0.001, 3])
            done[name] = submit + rng.randint(1, 20)
            rows.append(line(len(rows) + 1, name, submit, done[name]))
    chart = "".join(f'v{i + 1}(["P{i}"])\n' for i in range(4)) + "v0 --> v1\nv1 --> v2\nv2 --> v3\nv3 --> v4\n"
    with TemporaryDirectory() as folder:
        path = Path(folder, "dag.mmd")
        path.write_text(f'flowchart TB\nsubgraph " "\nv0["x"]\nend\n{chart}', "utf-8")
        Path(folder, "t").write_text(HEAD + "".join(rows), "utf-8")
        flow = read(path, trace=str(Path(folder, "t")))
    assert {(parent, child) for child, parents in needs.items() for parent in parents} <= set(flow.dag.arcs())
