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
PAGE = "<!DOCTYPE html>\n<html><pre>flowchart TB</pre></html>\n"


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
        ("dag.html", PAGE, "an HTML page"),
        (None, PAGE, "an HTML page"),
    ],
)
def test_what_is_no_dag_is_told(name: str | None, text: str, what: str) -> None:
    with pytest.raises(FormatError, match=rf"^this looks like {what}, which eligo cannot read: "):
        detect(name, text)


@pytest.mark.parametrize("name", ["notes.md", "flow", "flow.1", "x.log"])
@pytest.mark.parametrize("text", ["a b\n", "to do:\n  wash up\n", "print(1)", ""])
def test_a_file_that_looks_like_nothing_is_no_list_of_arcs(name: str, text: str) -> None:
    with pytest.raises(FormatError, match="cannot detect the format from the file's name or content"):
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


RULES = '{"rules": [{"command": "ls > b", "outputs": ["b"]}]}'
SHEBANG = "#!/usr/bin/env eligo\n"


@pytest.mark.parametrize(
    ("name", "text", "tasks"),
    [
        ("x.dot", "#!/usr/bin/env dot\ndigraph { a -> b }", ("a", "b")),
        ("x", "#!/usr/bin/dot -Tsvg\ndigraph { a -> b }", ("a", "b")),
        ("x.mf", "#!/usr/bin/env makeflow\nb: a\n\tcp a b\n", ("b",)),
        ("x.makeflow", "#! /usr/bin/env makeflow\r\nb: a\n\tcp a b\n", ("b",)),
        ("x", "#!/usr/bin/env makeflow\nb: a\n\tcp a b\n", ("b",)),
        ("-", "#!/usr/bin/env makeflow\nb: a\n\tcp a b\n", ("b",)),
        ("x.jx", f"#!/usr/bin/env -S makeflow --jx\n{RULES}", ("b",)),
        ("x.mmd", SHEBANG + "flowchart TD\na --> b", ("a", "b")),
        ("x.ninja", "#!/usr/bin/env -S ninja -f\nrule c\n  command = c\nbuild b: c a\n", ("b",)),
        ("x.dag", SHEBANG + "JOB a a.sub\n", ("a",)),
        ("x.yaml", SHEBANG + "tasks:\n- {name: a}\n", ("a",)),
        ("x", SHEBANG + "tasks:\n- {name: a}\n", ("a",)),
        ("x.json", SHEBANG + '{"tasks": [{"name": "a"}]}', ("a",)),
        ("x.arcs", SHEBANG + "a b\n", ("a", "b")),
        ("x.csv", SHEBANG + "parent,child\na,b\n", ("a", "b")),
        ("x.dax", SHEBANG + '<adag><job id="a" name="n"/></adag>', ("a",)),
    ],
)
def test_a_first_line_that_names_a_program_is_passed_over(
    tmp_path: Path, name: str, text: str, tasks: tuple[str, ...]
) -> None:
    if name == "-":
        assert parse(text).dag.tasks == tasks
        return
    (tmp_path / name).write_text(text, "utf-8", newline="")
    assert read(tmp_path / name).dag.tasks == tasks


@pytest.mark.parametrize("name", ["x.json", "x.yaml"])
def test_a_first_line_that_names_a_program_stays_when_priorities_are_written(tmp_path: Path, name: str) -> None:
    path, out = tmp_path / name, tmp_path / f"out-{name}"
    path.write_text(SHEBANG + '{"tasks": [{"name": "a"}]}\n', "utf-8")
    assert run(["plan", str(path), "-o", str(out)]) == 0
    assert out.read_text("utf-8").splitlines()[0] == SHEBANG.strip()
    assert read(out).task("a").priority is not None


def test_lines_keep_their_numbers_below_a_first_line_that_names_a_program() -> None:
    with pytest.raises(FormatError) as caught:
        parse("#!/usr/bin/env dot\ndigraph {\n a -> ; }")
    assert caught.value.line == 3


DOT, FLOWCHART = "digraph { a -> b }", "%%{init: {}}%%\nflowchart TD\na --> b"
GRAPHML = '<graphml><graph edgedefault="directed"><node id="a"/></graph></graphml>'


@pytest.mark.parametrize(
    "suffix", [".dag", ".json", ".yaml", ".csv", ".txt", ".mf", ".ninja", ".xml", ".mmd", ".dot", ""]
)
@pytest.mark.parametrize(
    ("text", "format"),
    [
        (DOT, "dot"),
        (f"// by hand\n{DOT}", "dot"),
        (FLOWCHART, "mermaid"),
        ("%% a comment\n%%{\ninit: {}\n}%%\nflowchart TD\na --> b", "mermaid"),
        ("---\nconfig: {}\n---\ngraph TD\na --> b", "mermaid"),
        (GRAPHML, "graphml"),
        ('<adag><job id="a" name="n"/></adag>', "dax"),
        ('{"name": "w", "workflow": {"tasks": []}}', "wfcommons"),
        (RULES, "jx"),
    ],
)
def test_what_begins_like_one_format_is_of_that_format_whatever_its_name(suffix: str, text: str, format: str) -> None:
    assert detect(f"flow{suffix}", text) == format


@pytest.mark.parametrize(
    ("name", "text", "format"),
    [
        ("x.txt", "parent,child\na,b", "csv"),
        ("x.txt", '{"arcs": [["a","b"]]}', "json"),
        ("x.dag", '{"tasks": [{"name": "a"}]}', "json"),
        ("x.yaml", "{tasks: [{name: a}]}", "yaml"),
        ("x.yaml", '{"tasks": [{"name": a}]}', "yaml"),
        ("x.txt", "graph digraph\nflowchart TD", "arcs"),
        ("x.mf", "digraph: a\n\tdot a > digraph\n", "makeflow"),
    ],
)
def test_the_name_decides_where_the_text_leaves_a_choice(name: str, text: str, format: str) -> None:
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
    told = f"eligo: {cwl}: this looks like a CWL document, which eligo cannot read: "
    assert capsys.readouterr().err == told + "`cwltool --print-dot FILE > dag.dot` draws its dag\n"
    assert run(["plan", str(notes)]) == 2
    assert capsys.readouterr().err.endswith(".arcs, .edges or .txt): --format arcs reads it as a list of arcs\n")
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
        "terraform draws arcs from a task to its dependencies: read this graph with reverse",
    )  # fmt: skip
    assert turned.remarks == ()


@pytest.mark.parametrize("text", ["JOB a a.sub\nJOB b b.sub\nPARENT a CHILD b", '{"rules": []}'])
def test_what_is_said_in_words_is_not_turned_round(text: str) -> None:
    with pytest.raises(InputError, match="cannot be reversed"):
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
    assert "add --reverse to reverse every dependency" in told
    (tmp_path / "out.arcs").unlink(missing_ok=True)
    assert run([words[0], str(path), *rest, "--reverse"]) == 0
    told = capsys.readouterr().err
    assert "terraform draws arcs" not in told
    assert "--reverse" not in told


def test_a_comparison_turns_its_files_round(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "fork.arcs"
    path.write_text("a b\na c\n", "utf-8")
    assert run(["compare", str(path), "--policy", "fifo", "--runs", "1", "--rates", "2", "--reverse"]) == 0
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
    said = "very task of this graph is done (draw it before the run, or with --forceall)"
    assert " ".join(out.split()).startswith("E" + said)
    assert err.splitlines()[0] == "eligo: e" + said


def test_a_dagman_file_without_a_node_left_says_so_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.dag"
    path.write_text("JOB a a.sub DONE\n", "utf-8")
    assert run(["plan", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[0].strip() == "All tasks of this workflow are already done"
