"""Files that no format fits are refused with what to do instead, and graphs that point backwards are turned round."""

from pathlib import Path

import pytest

import eligo
from eligo.cli import run
from eligo.errors import FormatError, InputError
from eligo.formats import detect, parse, read

TRACE = "task_id\thash\tnative_id\tname\tstatus\texit\tsubmit\n1\tab/cdef\t77\tFASTQC (1)\tCOMPLETED\t0\t2024-01-01\n"
CWL = "#!/usr/bin/env cwl-runner\ncwlVersion: v1.2\nclass: Workflow\nsteps:\n  first:\n    run: x.cwl\n"
SNAKEFILE = 'rule all:\n    input: "b.txt"\n\nrule sort:\n    output: "b.txt"\n    shell: "sort a > b"\n'
NEXTFLOW = "nextflow.enable.dsl=2\n\nprocess FASTQC {\n  script:\n  'fastqc'\n}\nworkflow {\n  FASTQC()\n}\n"
WDL = "version 1.0\n\nworkflow w {\n  call t\n}\ntask t {\n  command { ls }\n}\n"
MAKEFILE = ".PHONY: all\nall: a.o\n\tcc a.o\n"
PYTHON = "#!/usr/bin/env python3\ndef main():\n    print(1)\n"
PAGE = "<!DOCTYPE html>\n<html><pre class='mermaid'>flowchart TB</pre></html>\n"


@pytest.mark.parametrize(
    ("name", "text", "what"),
    [
        ("w.cwl", CWL, "a CWL document"),
        ("w.cwl", '{"cwlVersion": "v1.2"}', "a CWL document"),
        ("w.yaml", CWL, "a CWL document"),
        ("w.json", '{"cwlVersion": "v1.2"}', "a CWL document"),
        ("-", CWL, "a CWL document"),
        ("workflow/Snakefile", SNAKEFILE, "a Snakefile"),
        ("rules/a.smk", "", "a Snakefile"),
        ("-", SNAKEFILE, "a Snakefile"),
        ("main.nf", NEXTFLOW, "a Nextflow script"),
        ("-", NEXTFLOW, "a Nextflow script"),
        ("trace.txt", TRACE, "the trace of a Nextflow run"),
        ("trace-20240101.tsv", TRACE, "the trace of a Nextflow run"),
        ("-", TRACE, "the trace of a Nextflow run"),
        ("w.wdl", WDL, "a WDL document"),
        ("-", WDL, "a WDL document"),
        ("Makefile", "a: b\n\tcp b a\n", "a Makefile"),
        ("GNUmakefile", MAKEFILE, "a Makefile"),
        ("rules.mk", MAKEFILE, "a Makefile"),
        ("-", MAKEFILE, "a Makefile"),
        ("x.py", "print(1)\n", "a Python program"),
        ("x.py.gz", "digraph {}", "a Python program"),
        ("tool", PYTHON, "a Python program"),
        ("run.sh", "make all\n", "a script"),
        ("go", "#!/bin/sh\nmake all\n", "a script"),
        ("dag.html", PAGE, "a page for a browser"),
        (None, PAGE, "a page for a browser"),
    ],
)
def test_what_is_no_dag_is_told(name: str | None, text: str, what: str) -> None:
    with pytest.raises(FormatError, match=rf"^this looks like {what}, which is not read: "):
        detect(name, text)


@pytest.mark.parametrize("name", ["notes.md", "flow", "flow.1", "x.log"])
@pytest.mark.parametrize("text", ["a b\n", "to do:\n  wash up\n", "print(1)", ""])
def test_a_file_that_looks_like_nothing_is_no_list_of_arcs(name: str, text: str) -> None:
    with pytest.raises(FormatError, match="neither the file's name nor its text tells its format"):
        detect(name, text)


@pytest.mark.parametrize(
    ("name", "text", "format"),
    [
        ("x.txt", "a b", "arcs"),
        ("x.edges", "process a", "arcs"),
        ("x.arcs", "#! a comment\nversion 1.0\nrule b", "arcs"),
        ("-", "to do:\n  wash up\n", "makeflow"),
        ("Makeflow", "b: a\n\tcp a b\n", "makeflow"),
        ("x.out", "digraph { a -> b }", "dot"),
        ("x.out", "flowchart TD\na --> b", "mermaid"),
        ("x.out", "JOB a a.sub", "dagman"),
        ("x.out", "parent,child\na,b", "csv"),
    ],
)
def test_what_is_known_is_read_as_before(name: str, text: str, format: str) -> None:
    assert detect(name, text) == format


def test_a_format_that_is_named_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text("a b\n", "utf-8")
    assert list(read(path, "arcs").dag.arcs()) == [("a", "b")]
    with pytest.raises(FormatError, match=r"x\.py: this looks like a Python program"):
        eligo.plan(path)


def test_the_command_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cwl, notes = tmp_path / "w.cwl", tmp_path / "notes"
    cwl.write_text(CWL, "utf-8")
    notes.write_text("a b\n", "utf-8")
    assert run(["plan", str(cwl)]) == 2
    told = f"eligo: {cwl}: this looks like a CWL document, which is not read: "
    assert capsys.readouterr().err == told + "`cwltool --print-dot FILE > dag.dot` draws its dag\n"
    assert run(["plan", str(notes)]) == 2
    assert capsys.readouterr().err.endswith(".arcs, .edges or .txt: --format arcs reads it as one\n")
    assert run(["plan", str(notes), "--format", "arcs"]) == 0


# Arcs that point backwards

TERRAFORM = 'digraph { "[root] aws_instance.web" -> "[root] aws_vpc.main" }'


def test_arcs_are_turned_round() -> None:
    flow = parse("a b\nb c", "arcs", reverse=True)
    assert set(flow.dag.arcs()) == {("b", "a"), ("c", "b")}
    assert flow.dag.tasks == ("a", "b", "c")


def test_who_draws_backwards_is_told_unless_it_is_turned_round() -> None:
    taken, turned = parse(TERRAFORM).origin, parse(TERRAFORM, reverse=True).origin
    assert taken is not None
    assert turned is not None
    assert taken.remarks == (
        "terraform draws arcs from what needs to what is needed: read this graph with reverse",
    )  # fmt: skip
    assert turned.remarks == ()


@pytest.mark.parametrize("text", ["JOB a a.sub\nJOB b b.sub\nPARENT a CHILD b", '{"rules": []}'])
def test_what_is_said_in_words_is_not_turned_round(text: str) -> None:
    with pytest.raises(InputError, match="says in words which task needs which"):
        parse(text, reverse=True)


@pytest.mark.parametrize(
    "words",
    [["show"], ["plan"], ["explain"], ["batch", "-r", "1"], ["cluster", "--size", "1"], ["convert", "OUT"]],
    ids=lambda words: words[0],
)
def test_every_command_that_reads_a_file_turns_it_round(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    path = tmp_path / "graph.dot"
    path.write_text(TERRAFORM, "utf-8")
    rest = [str(tmp_path / "out.arcs") if word == "OUT" else word for word in words[1:]]
    assert run([words[0], str(path), *rest]) == 0
    told = capsys.readouterr().err
    assert "terraform draws arcs" in told
    assert "--reverse turns every arc round" in told
    (tmp_path / "out.arcs").unlink(missing_ok=True)
    assert run([words[0], str(path), *rest, "--reverse"]) == 0
    told = capsys.readouterr().err
    assert "terraform draws arcs" not in told
    assert "--reverse" not in told


def test_a_comparison_turns_its_files_round(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "fork.arcs"
    path.write_text("a b\na c\n", "utf-8")
    assert run(["compare", str(path), "--schedulers", "fifo", "--runs", "1", "--rates", "2", "--reverse"]) == 0
    assert "fork.arcs reversed" in capsys.readouterr().out


# What is done already


@pytest.mark.parametrize("verb", ["plan", "show"])
def test_a_graph_without_a_task_left_says_so_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    path = tmp_path / "dag.dot"
    path.write_text('digraph snakemake_dag { 0 [label="all", style="rounded,dashed"]; }', "utf-8")
    assert run([verb, str(path)]) == 0
    out, err = capsys.readouterr()
    said = "very task of this graph is done already: draw it before the run, or with --forceall"
    assert " ".join(out.split()).startswith("E" + said)
    assert err.splitlines()[0] == "eligo: e" + said


def test_a_dagman_file_without_a_node_left_says_so_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.dag"
    path.write_text("JOB a a.sub DONE\n", "utf-8")
    assert run(["plan", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[0].strip() == "Every task of this workflow is done already"
