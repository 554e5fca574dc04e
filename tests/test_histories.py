"""How long tasks took in earlier runs: every format, what is wrong with files, what matches, and what is promised."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import eligo
from eligo.cli import run
from eligo.errors import EligoError, FormatError, InputError
from eligo.estimates import estimate
from eligo.formats import History, read_history
from eligo.formats.histories import table
from eligo.verifying.finishes import finish_holds
from eligo.workflow import Task, Timed, Workflow

TRACE = """task_id\thash\tnative_id\tname\tstatus\texit\tsubmit\tduration\trealtime\t%cpu
1\t7d/eb4d44\t11\tNF:FASTQC (s1)\tCOMPLETED\t0\t2026-01-02 03:04:05.678\t1m 5s\t1m 3s\t99.0%
2\t7d/eb4d45\t12\tNF:ALIGN (s1)\tFAILED\t1\t2026-01-02 03:04:05.678\t5s\t4s\t99.0%
3\t7d/eb4d46\t13\tNF:ALIGN (s1)\tCOMPLETED\t0\t2026-01-02 03:04:05.678\t1d 2h 5s\t1d 2h\t99.0%
4\t7d/eb4d47\t14\tNF:COUNT (s1)\tCACHED\t0\t2026-01-02 03:04:05.678\t1s\t931ms\t99.0%
5\t7d/eb4d48\t15\tNF:PLOT\tCOMPLETED\t0\t2026-01-02 03:04:05.678\t1s\t-\t-
"""
RAW = "name\tprocess\tstatus\trealtime\nFASTQC (s1)\tFASTQC\tCOMPLETED\t63000\nSTEP2 (1)\tSTEP2\tCACHED\t500\n"
BENCHMARK = "s\th:m:s\tmax_rss\tmax_vms\n12.3456\t0:00:12\t10.50\t20.1\n14.0\t0:00:14\tNA\tNA\n"
EXTENDED = (
    "s\th:m:s\tmax_rss\tjobid\trule_name\twildcards\tparams\n"
    "2.5\t0:00:02\t1.0\t3\tsort\t{'sample': 'A'}\t{}\n4.5\t0:00:04\t1.0\t4\tsort\t{}\t{}\n"
)
JSONL = '{"h:m:s": "0:00:02", "rule_name": "sort", "s": 2.5, "wildcards": {"sample": "A"}}\n'
EVENTS = """000 (12.000.000) 2026-01-02 03:04:05 Job submitted from host: <10.0.0.1:9618?addrs=10.0.0.1-9618>
    DAG Node: align_1
...
001 (12.000.000) 2026-01-02 03:05:00 Job executing on host: <10.0.0.2:9618>
\tSlotName: slot1
...
004 (12.000.000) 2026-01-02 03:06:00 Job was evicted.
\t(0) CPU times
...
001 (12.000.000) 2026-01-02 03:07:00 Job executing on host: <10.0.0.3:9618>
...
005 (12.000.000) 2026-01-02 03:07:30 Job terminated.
\t(1) Normal termination (return value 0)
\t\tUsr 0 00:00:07, Sys 0 00:00:01  -  Run Remote Usage
...
000 (13.000.000) 2026-01-02 03:08:00 Job submitted from host: <10.0.0.1:9618>
    DAG Node: align_2
...
001 (13.000.000) 2026-01-02 03:08:01 Job executing on host: <10.0.0.3:9618>
...
005 (13.000.000) 2026-01-02 03:08:02 Job terminated.
\t(1) Normal termination (return value 3)
...
000 (14.000.000) 2026-01-02 03:09:00 Job submitted from host: <10.0.0.1:9618>
    DAG Node: noop
...
005 (14.000.000) 2026-01-02 03:09:00 Job terminated.
\t(1) Normal termination (return value 0)
...
016 (-1.-1.-1) 2026-01-02 03:09:00 POST script terminated.
\t(1) Normal termination (return value 0)
    DAG Node: noop
...
"""
OLD_EVENTS = """000 (7.000.000) 12/31 23:59:00 Job submitted from host: <10.0.0.1:9618>
    DAG Node: A
...
001 (7.000.000) 12/31 23:59:30 Job executing on host: <10.0.0.2:9618>
...
005 (7.000.000) 01/01 00:00:30 Job terminated.
\t(1) Normal termination (return value 0)
...
"""
STATUS = (
    '[\n  Type = "DagStatus";\n  DagFiles = {\n    "x.dag"\n  };\n]\n'
    '[\n  Type = "NodeStatus";\n  Node = "A";\n  NodeStatus = 5;\n]\n'
)
XML = (
    '<?xml version="1.0"?>\n<!DOCTYPE classads SYSTEM "classads.dtd">\n'
    '<classads>\n<c>\n<a n="MyType"><s>SubmitEvent</s></a>\n</c>\n'
)
JSON_LOG = '{\n  "EventTypeNumber": 0,\n  "MyType": "SubmitEvent",\n  "Cluster": 7\n}\n'
NINJA = "# ninja log v{}\n0\t1500\t17\tout/a.o\t9d1f\n10\t20\t17\tlib.a\t8c\n100\t600\t18\tout/a.o\t9d1f\n"
TABLE = 'Task,program,seconds,note\na_1,align,12.5,x\n"b, c",,1m 3s,\n,sort,0:00:03,\nd,,-,\n'
NATIVE = '{"tasks": [{"name": "a_1", "seconds": 2}, {"name": "b", "seconds": 3, "after": ["a_1"]}, {"name": "c"}]}'
WFCOMMONS = {
    "1.3": '{"name": "w", "schemaVersion": "1.3", "workflow": {"tasks": [{"name": "a_1", "type": "compute", "runtime": 2,'
    ' "parents": [], "children": [], "files": []}]}}',
    "1.4": '{"name": "w", "schemaVersion": "1.4", "workflow": {"makespan": 3, "executedAt": "20260102T030405Z", "tasks":'
    ' [{"name": "a_1", "id": "a_1", "type": "compute", "runtimeInSeconds": 2, "parents": [], "children": [], "files": []}]}}',
    "1.5": '{"name": "w", "schemaVersion": "1.5", "workflow": {"specification": {"tasks": [{"name": "a_1", "id": "a_1",'
    ' "parents": [], "children": []}]}, "execution": {"makespanInSeconds": 3, "executedAt": "2026-01-02T03:04:05Z",'
    ' "tasks": [{"id": "a_1", "runtimeInSeconds": 2}]}}}',
}
DAX = '<adag><job id="ID1" name="align" runtime="2.5"/></adag>'
SAMPLES = {
    "trace.txt": TRACE, "raw.txt": RAW, "sort.tsv": BENCHMARK, "extended.tsv": EXTENDED, "sort.jsonl": JSONL,
    "x.dag.nodes.log": EVENTS, "old.log": OLD_EVENTS, ".ninja_log": NINJA.format(5), "runs.csv": TABLE,
    "native.json": NATIVE, "status": STATUS, "log.xml": XML, "log.json": JSON_LOG, "run.dax": DAX,
    **{f"w{version}.json": text for version, text in WFCOMMONS.items()},
}  # fmt: skip

Read = Callable[[str, str], History]


@pytest.fixture
def reading(tmp_path: Path) -> Read:
    def read(name: str, text: str) -> History:
        place = tmp_path / name
        place.parent.mkdir(exist_ok=True, parents=True)
        place.write_text(text, "utf-8", newline="")
        return read_history(place)

    return read


# What is read


def test_a_trace_of_nextflow(reading: Read) -> None:
    found = reading("trace.txt", TRACE)
    assert found.format == "nextflow"
    assert found.records == (
        Timed("NF:FASTQC (s1)", "NF:FASTQC", 63.0),
        Timed("NF:ALIGN (s1)", "NF:ALIGN", 93600.0),
        Timed("NF:COUNT (s1)", "NF:COUNT", 0.931),
    )
    assert found.remarks == ("ignored 1 incomplete attempt", "ignored 1 task without a time")


def test_a_raw_trace_is_in_milliseconds(reading: Read) -> None:
    assert reading("raw.txt", RAW).records == (Timed("FASTQC (s1)", "FASTQC", 63.0), Timed("STEP2 (1)", "STEP2", 0.5))


def test_a_trace_without_realtime_says_that_waiting_counts(reading: Read) -> None:
    found = reading("trace.txt", "task_id\tname\tduration\n1\tA\t2s\n")
    assert found.records == (Timed("A", "A", 2.0),)
    assert "waiting" in found.remarks[0]


def test_a_trace_with_scripts_goes_on_over_lines(reading: Read) -> None:
    found = reading("t.txt", "name\tstatus\trealtime\tscript\nA\tCOMPLETED\t2s\techo\n  more\nB\tCOMPLETED\t3s\tls\n")
    assert [record.seconds for record in found.records] == [2.0, 3.0]


@pytest.mark.parametrize("name", ["sort/A.tsv", "sort.benchmark.txt", "sort/A.bench.tsv.gz", "bench/sort"])
def test_a_benchmark_of_snakemake_is_of_the_rule_that_its_name_or_folder_says(tmp_path: Path, name: str) -> None:
    place = tmp_path / name
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(gzip.compress(BENCHMARK.encode()) if name.endswith("gz") else BENCHMARK.encode())
    flow = eligo.with_history(Workflow(eligo.Dag.from_arcs([], ["x"]), {"x": Task(name="x", category="sort")}), place)
    assert read_history(place).format == "snakemake"
    assert estimate(flow).seconds.tolist() == [pytest.approx(13.1728)]
    assert estimate(flow).kinds == ("sort",)


def test_an_extended_benchmark_names_its_job(reading: Read) -> None:
    assert reading("x.tsv", EXTENDED).records == (Timed("sort sample: A", "sort", 2.5), Timed("sort", "sort", 4.5))
    assert reading("x.jsonl", JSONL).records == (Timed("sort sample: A", "sort", 2.5),)


def test_the_log_of_a_dagman(reading: Read) -> None:
    found = reading("x.dag.nodes.log", EVENTS)
    assert (found.format, found.records) == ("htcondor", (Timed("align_1", None, 30.0),))
    assert found.remarks == ("ignored 1 failed job", "ignored 1 job that never ran")


@pytest.mark.parametrize(
    ("begin", "end", "seconds"),
    [
        ("12/31 23:59:30", "01/01 00:00:30", 60.0),
        ("02/28 23:59:30", "03/01 00:00:30", 60.0),
        ("02/29 23:59:30", "03/01 00:00:30", 60.0),
        ("2024-02-28 23:59:30", "2024-03-01 00:00:30", 86460.0),
        ("2026-01-02 03:04:05.250", "2026-01-02 03:04:06.500", 1.25),
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z", 1.0),
    ],
)
def test_dates_with_and_without_a_year(reading: Read, begin: str, end: str, seconds: float) -> None:
    text = OLD_EVENTS.replace("12/31 23:59:30", begin).replace("01/01 00:00:30", end)
    assert reading("x.log", text).records == (Timed("A", None, seconds),)


def test_jobs_that_are_no_nodes_are_told(reading: Read) -> None:
    found = reading("x.log", OLD_EVENTS.replace("    DAG Node: A\n", ""))
    assert (found.records, found.remarks) == ((), ("ignored 1 job outside a DAG",))


@pytest.mark.parametrize("version", [5, 6, 7])
def test_the_log_of_ninja(reading: Read, version: int) -> None:
    found = reading(".ninja_log", NINJA.format(version))
    assert (found.format, found.remarks) == ("ninja", ())
    assert found.records == (Timed("out/a.o", None, 0.5), Timed("lib.a", None, 0.01))


def test_a_table(reading: Read) -> None:
    found = reading("runs.csv", TABLE)
    assert found.records == (Timed("a_1", "align", 12.5), Timed("b, c", None, 63.0), Timed(None, "sort", 3.0))
    assert found.remarks == ("ignored 1 row without a time",)


@pytest.mark.parametrize("title", ["seconds", "runtime", "duration", "time", "elapsed"])
@pytest.mark.parametrize("who", [*table.TASKS, *table.KINDS])
def test_titles_of_a_table(reading: Read, title: str, who: str) -> None:
    named = who in {"task", "name", "job", "id"}
    assert reading("x.tsv", f"{title.upper()}\t{who}\n2\tx\n").records == (
        Timed("x" if named else None, None if named else "x", 2.0),
    )


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [("x.json", NATIVE, "a"), ("run.dax", DAX, "align"), *((f"{v}.json", text, "a") for v, text in WFCOMMONS.items())],
)
def test_a_workflow_with_run_times_is_a_history(reading: Read, name: str, text: str, kind: str) -> None:
    found = reading(name, text)
    assert found.records[0].kind == kind
    assert found.records[0].seconds in {2.0, 2.5}


def test_a_folder_is_all_its_histories(tmp_path: Path, reading: Read) -> None:
    reading("sort/A.tsv", BENCHMARK)
    reading("sort/B.tsv", BENCHMARK)
    reading("run/x.dag.nodes.log", EVENTS)
    reading("run/native.json", NATIVE)
    for name, text in (
        ("notes.txt", "sort well\n"),
        ("x.dag", "JOB a a.sub\n"),
        ("run/status", STATUS),
        ("p.json", "{}"),
    ):
        (tmp_path / name).write_text(text)
    (tmp_path / "empty.tsv").touch()
    (tmp_path / "data.bin").write_bytes(bytes(range(256)))
    found = read_history(tmp_path)
    assert found.format == "htcondor and json and snakemake"
    assert {record.task for record in found.records} >= {"A", "B", "align_1", "a_1"}
    assert found.remarks[0].endswith("x.dag.nodes.log: ignored 1 failed job")


def test_remarks_on_a_folder_come_to_an_end(tmp_path: Path, reading: Read) -> None:
    for number in range(9):
        reading(f"{number}.csv", TABLE)
    assert read_history(tmp_path).remarks[-1] == "and 4 more remarks"


# What is wrong


def bad(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new, 1)


WRONG = ("-3", "nan", "inf", "1e999", "1e16", "x", "1 2", "1_000", "0x10", "9" * 400, "3 s x")
TIMES = {
    "trace.txt": (TRACE, "1m 3s", 2),
    "sort.tsv": (BENCHMARK, "14.0", 3),
    "sort.jsonl": (JSONL, "2.5", 1),
    "runs.csv": (TABLE, "12.5", 2),
    ".ninja_log": (NINJA.format(6), "1500", 2),
    "x.log": (EVENTS, "2026-01-02 03:07:00", 10),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", TIMES)
def test_times_that_are_none_are_refused_by_line(reading: Read, name: str, wrong: str) -> None:
    text, old, line = TIMES[name]
    with pytest.raises(FormatError) as caught:
        reading(name, bad(text, old, f'"{wrong}"' if name.endswith("jsonl") else wrong))
    assert f"{name}:{line}: " in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("x.txt", "", "x.txt: the file is empty"),
        ("status", STATUS, "has no times (use the log of its jobs, FILE.dag.nodes.log)"),
        ("log.xml", XML, "in XML, which eligo cannot read"),
        ("log.json", JSON_LOG, "in JSON, which eligo cannot read"),
        ("x.dag", "JOB a a.sub\n", "dagman files have no run times"),
        ("x.txt", "some words\n", "arcs files have no run times"),
        ("x.foo", "some words here\n", "cannot detect the format"),
        (".ninja_log", "# ninja log v4\n", "unsupported ninja log version '# ninja log v4'"),
        (".ninja_log", "# ninja log v5\n1\t2\n3\t4\t5\ta\tb\n", ":2: a line must have 5 cells"),
        (".ninja_log", "# ninja log v5\n9\t2\t5\ta\tb\n", ":2: start and end must be integers in order, got '9' and '2'"),
        ("trace.txt", TRACE.replace("\t1m 5s\t1m 3s\t99.0%", ""), ":2: a row must have 10 cells like the header, got 7"),
        ("trace.txt", "name\trealtime\n-\t2s\n", ":2: the row must have a process or a task name"),
        ("x.csv", "task,seconds\n,2\n", ":2: the row must have a task or a kind, got only the time '2'"),
        ("x.csv", 'task,seconds\n"a,2\n', "not a valid table"),
        ("x.jsonl", JSONL + "{\n", ":2: this row must be valid JSON, got '{'"),
        ("x.jsonl", JSONL + "[]\n", ":2: this row must be a JSON object, got '[]'"),
        ("x.log", EVENTS.replace("...\n001 (13", "...\noops\n001 (13"), ": an event must begin with a number"),
        ("x.log", EVENTS.replace("03:07:30", "03:00:30"), ":12: the end of the job must be after its start"),
        ("x.log", EVENTS.replace("2026-01-02 03:07:30", "13/45 03:07:30"), "valid, got 13/45 03:07:30"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told(reading: Read, name: str, text: str, told: str) -> None:
    with pytest.raises(FormatError) as caught:
        reading(name, text)
    assert told in str(caught.value)
    assert name in str(caught.value)


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n\0\0", b"\0" * 50, b"\x1f\x8b\x08junk", bytes(range(1, 256))])
def test_what_is_no_text_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "trace.txt").write_bytes(data)
    with pytest.raises(InputError, match=r"trace\.txt"):
        read_history(tmp_path / "trace.txt")


def test_folders_and_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="no history found in this folder"):
        read_history(tmp_path)
    with pytest.raises(FormatError, match="cannot be read"):
        read_history(tmp_path / "none.txt")


@pytest.mark.parametrize(
    ("name", "text", "count", "what"),
    [
        ("trace.txt", TRACE[:-40], 3, "line"),
        (".ninja_log", NINJA.format(7) + "700\t80", 2, "line"),
        ("x.log", EVENTS[: EVENTS.index("return value 3")], 1, "event"),
        ("x.log", OLD_EVENTS + "000 (8.0", 1, "event"),
    ],
)
def test_a_log_that_is_being_written_is_read_as_far_as_it_goes(
    reading: Read, name: str, text: str, count: int, what: str
) -> None:
    found = reading(name, text)
    assert len(found.records) == count
    assert found.remarks[-1] == f"ignored the last {what}, which is incomplete"


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(SAMPLES)), st.data())
@example("trace.txt", None)
def test_mutated_files_raise_nothing_else(name: str, data: Any) -> None:
    from eligo.formats.histories import detect, module
    from eligo.formats.histories.reader import _past_run
    from eligo.formats.shared.files import Loaded

    raw = bytearray(SAMPLES[name].encode())
    for _ in range(data.draw(st.integers(0, 5)) if data else 0):
        at = data.draw(st.integers(0, len(raw) - 1))
        what = data.draw(
            st.sampled_from([b"\t", b"\n", b"-", b"9" * 30, b"e9", b".", b"(", b'"', b"", b"\xff", b"{", b"...\n"])
        )
        raw[at : at + data.draw(st.integers(0, 9))] = what
    text = raw.decode("latin-1")
    try:
        format = detect(text)
        found = (
            module(format).parse(text, name).records
            if format
            else _past_run(name, Loaded(text, "utf-8"), 2**20).records
        )
    except EligoError:
        return
    flow = eligo.with_history({"A": [], "align_1": ["A"], "sort": []}, found)
    assert (estimate(flow).seconds >= 0).all()


# What matches


def test_names_count_before_kinds_and_the_others_take_the_mean() -> None:
    flow = eligo.with_history(
        {"fit_1": [], "fit_2": [], "plot": [], "mail": []},
        [("fit_1", None, 4.0), ("fit_9", None, 8.0), (None, "plot", 2.0)],
    )
    found = estimate(flow)
    assert found.seconds.tolist() == [4.0, 6.0, 2.0, 4.0]
    assert (found.recalled, found.by_kind, found.kinds, found.unknown) == (1, 2, ("fit", "plot"), 1)
    assert found.level == "kinds"


def test_names_are_text_where_tasks_are_not(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("task,seconds\n\"('load', 0)\",3\n7,5\n")
    flow = eligo.with_history({("load", 0): [], 7: [("load", 0)]}, tmp_path / "x.csv")
    assert (estimate(flow).level, estimate(flow).seconds.tolist()) == ("seconds", [3.0, 5.0])


def test_a_task_may_be_called_none() -> None:
    flow = eligo.with_history({None: [], "b": []}, [(None, "sort", 3.0), ("b", None, 1.0)])
    assert estimate(flow).own.tolist() == [False, True]


def test_times_that_are_too_long_to_add_up_still_have_a_mean() -> None:
    flow = eligo.with_history({"a_1": [], "a_2": []}, [("a_1", None, 1.5e308), ("a_3", None, 1.5e308)])
    assert estimate(flow).seconds.tolist() == [1.5e308, 1.5e308]


@pytest.mark.parametrize(
    ("history", "told"),
    [
        (3, "records, got int"),
        ([3], "a task, a kind and seconds, got 3"),
        ([("a", 2)], "must be a task, a kind and seconds"),
        ([([], None, 2.0)], "must be a task, a kind and seconds"),
        ([("a", 5, 2.0)], "must be a string"),
        ([("a", None, -2.0)], "must be a non-negative number"),
        ([("a", None, float("nan"))], "must be a non-negative number"),
        ([("a", None, "2")], "must be a non-negative number"),
    ],
)
def test_records_that_are_none_are_refused(history: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        eligo.with_history({"a": []}, history)


# What people and programs are told

Words = Callable[..., tuple[int, str, str]]
FLOW = "a_1 b\na_2 b\nb c\n"


@pytest.fixture
def say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Words:
    monkeypatch.chdir(tmp_path)
    Path("flow.arcs").write_text(FLOW)
    Path("all.csv").write_text("task,seconds\na_1,3\na_2,4\nb,5\nc,1\n")
    Path("kinds.csv").write_text("kind,seconds\na,3\nb,5\n")
    Path("other.csv").write_text("task,seconds\nzzz,3\n")
    Path("none.csv").write_text("task,seconds\nzzz,-\n".replace("-", ""))

    def said(*words: str) -> tuple[int, str, str]:
        code = run(list(words))
        return code, *capfd.readouterr()

    return said


def test_seconds_by_name_are_enough_for_a_time(say: Words) -> None:
    code, out, err = say("plan", "flow.arcs", "--workers", "2", "--history", "all.csv")
    assert code == 0
    assert err == "eligo: all.csv: 4 tasks by name\n"
    assert "2 workers: about 10 s, if tasks take as long as all.csv says. Lower bound: no order can" in " ".join(
        out.split()
    )
    document = json.loads(say("plan", "flow.arcs", "--workers", "2", "--history", "all.csv", "--json")[1])
    assert document["makespan"] == 10.0
    assert document["seconds_from"] == "all.csv"
    assert document["known"] == {"level": "seconds", "by_name": 4, "by_kind": 0, "unknown": 0}


def test_a_bound_from_a_history_is_checked_with_it(say: Words) -> None:
    bound = eligo.earliest_finish(eligo.with_history("flow.arcs", "all.csv"), 2)
    assert finish_holds(eligo.with_history("flow.arcs", "all.csv"), bound.document())
    assert not finish_holds("flow.arcs", bound.document())


def test_kinds_alone_give_a_time_with_a_range_and_no_certificate(say: Words) -> None:
    code, out, err = say("plan", "flow.arcs", "--workers", "2", "--history", "kinds.csv")
    assert code == 0
    assert err == "eligo: kinds.csv: 3 tasks by kind (a, b), 1 unknown, estimated by the mean of all kinds\n"
    assert out.startswith("2 workers: about 12 s, if tasks take as long as kinds.csv says (4 tasks without")
    assert "Range: 4.32 s to 34.1 s in 80 % of runs." in out
    assert "No order can have more" in out
    document = json.loads(say("plan", "flow.arcs", "--workers", "2", "--history", "kinds.csv", "--json")[1])
    assert (document["workers"], document["makespan"], document["bound"], document["certificate"]) == (
        2,
        None,
        None,
        None,
    )
    assert document["known"] == {"level": "kinds", "by_name": 0, "by_kind": 3, "unknown": 1}
    prediction = document["prediction"]
    assert (prediction["seconds"], prediction["share"]) == (12.0, 0.8)
    assert prediction["low"] < 12.0 < prediction["high"]


def test_several_histories_go_together(say: Words) -> None:
    code, _, err = say("plan", "flow.arcs", "--history", "kinds.csv", "--history", "all.csv", "--history", "other.csv")
    assert code == 0
    assert err.splitlines() == [
        "eligo: other.csv has no task with a name or kind of the workflow: ignored",
        "eligo: kinds.csv, all.csv: 4 tasks by name",
    ]


@pytest.mark.parametrize("file", ["other.csv", "none.csv"])
def test_a_history_that_fits_nothing_is_left_out(say: Words, file: str) -> None:
    code, out, err = say("plan", "flow.arcs", "--history", file)
    assert (code, out) == (0, say("plan", "flow.arcs")[1])
    assert ": ignored" in err
    document = json.loads(say("plan", "flow.arcs", "--history", file, "--json")[1])
    assert (document["seconds_from"], document["known"]["level"]) == (None, "nothing")


def test_where_nothing_is_known_a_history_is_offered(say: Words) -> None:
    code, out, err = say("plan", "flow.arcs", "--workers", "2")
    assert (code, err) == (0, "")
    assert out.startswith("2 workers: no estimate, because no run times are known (add --history FILE")
    assert "this order: " in out
    assert say("plan", "flow.arcs", "--workers", "0", "--history", "kinds.csv")[0] == 2


def test_what_the_file_says_and_a_history_go_together(say: Words) -> None:
    Path("some.json").write_text('{"tasks": [{"name": "a", "seconds": 2}, {"name": "b", "after": ["a"]}]}')
    Path("b.csv").write_text("task,seconds\nb,3\n")
    code, out, err = say("plan", "some.json", "--workers", "1", "--history", "b.csv")
    assert (code, err) == (0, "eligo: b.csv: 1 task by name, 1 from the file itself\n")
    assert "if tasks take as long as the file and b.csv say." in " ".join(out.split())


def test_a_file_that_says_it_of_some_tasks_makes_an_order_and_a_range(say: Words) -> None:
    Path("some.json").write_text('{"tasks": [{"name": "a", "seconds": 2}, {"name": "b", "after": ["a"]}]}')
    code, out, err = say("plan", "some.json", "--workers", "3")
    assert (code, err) == (0, "")
    assert "3 workers: about 4 s, if tasks take as long as the file says (1 task without" in out


def test_a_plan_of_a_program_without_workers_or_history_is_still_verified(say: Words) -> None:
    Path("plan.json").write_text(say("plan", "flow.arcs", "--json")[1])
    assert say("verify", "flow.arcs", "plan.json")[0] == 0
    say("plan", "flow.arcs", "--history", "all.csv", "--save", "saved.json")
    assert say("verify", "flow.arcs", "saved.json")[0] == 0


def test_show_has_the_times_of_kinds(say: Words) -> None:
    out = say("show", "flow.arcs", "--history", "kinds.csv")[1]
    assert "a × 2  3 s, mean of earlier runs" in out
    assert "c × 1  run time unknown" in out
    document = json.loads(say("show", "flow.arcs", "--history", "all.csv", "--json")[1])
    assert {kind["kind"]: kind["seconds"] for kind in document["kinds"]} == {"a": 3.5, "b": 5.0, "c": 1.0}
    assert (document["seconds_known"], document["seconds_from"]) == (4, "all.csv")


def test_compare_plays_with_the_times_of_a_history(say: Words) -> None:
    words = ["compare", "flow.arcs", "--runs", "2", "--rates", "2", "--policy", "fifo", "--json"]
    plain = json.loads(say(*words)[1])
    code, out, err = say(*words, "--history", "all.csv")
    timed = json.loads(out)
    assert (code, err) == (0, "eligo: all.csv: 4 tasks by name\n")
    assert timed["best"]["flow.arcs"]["seconds_from"] == "all.csv"
    assert timed["best"]["flow.arcs"]["known"]["level"] == "seconds"
    assert {row["fingerprint"] for row in timed["results"]}.isdisjoint(row["fingerprint"] for row in plain["results"])
    spans = [[row["mean"] for row in each["results"] if row["measure"] == "makespan"] for each in (plain, timed)]
    assert spans[0] != spans[1]
    assert "seconds_from" not in plain["best"]["flow.arcs"]


def test_compare_tells_of_which_workflow_it_speaks(say: Words) -> None:
    Path("two.arcs").write_text("x y\n")
    words = ["--runs", "2", "--rates", "2", "--policy", "fifo", "--history", "all.csv"]
    code, _, err = say("compare", "flow.arcs", "two.arcs", *words)
    assert code == 0
    assert "all.csv for flow.arcs: 4 tasks by name" in err
    assert "all.csv has no task with a name or kind of two.arcs" in err
    assert say("compare", "flow.arcs", *words[:-1], "-")[0] == 2
    Path("game.yaml").write_text("dags: [flow.arcs]\nschedulers: [fifo]\ngames: {pebble: {}}\n")
    assert "takes no --history" in say("compare", "game.yaml", "--history", "all.csv")[2]


def test_errors_of_a_history_name_the_file_and_line(say: Words) -> None:
    Path("bad.csv").write_text("task,seconds\na_1,-3\n")
    assert say("plan", "flow.arcs", "--history", "bad.csv") == (
        2,
        "",
        "eligo: bad.csv:2: a duration must be at least 0, such as 63, 1m 3s or 0:01:03, got '-3'\n",
    )
    assert say("show", "flow.arcs", "--history", "nowhere")[0] == 2
