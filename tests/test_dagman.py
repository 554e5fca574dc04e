"""DAGMan files: the whole grammar, the files they name, and the reference values of real ones."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from eligo import formats
from eligo.errors import CycleError, DuplicateTaskError, FormatError, InputError, UnknownTaskError
from eligo.formats import dagman, detect
from eligo.formats.dagman.scripts import Lines, tokens
from eligo.workflow import Task, Workflow

DATA = Path(__file__).parents[2] / "shared" / "data" / "dagman"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason=f"HTCondor's own files are not in {DATA}")

Writer = Callable[..., Path]


@pytest.fixture
def folder(tmp_path: Path) -> Writer:
    """Write files by name and give the path of the first."""

    def write(**files: str) -> Path:
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/").replace("_dag", ".dag")
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        return tmp_path / next(iter(files)).replace("_dag", ".dag")

    return write


def arcs(text: str) -> set[tuple[str, str]]:
    return set(dagman.parse(text).dag.arcs())


# One file

DIAMOND = "JOB a a.sub\nJOB b b.sub\nJOB c b.sub\nJOB d d.sub\nPARENT a CHILD b c\nPARENT b c CHILD d\n"


def test_the_diamond() -> None:
    """a, then b and c, then d; the command is the submit file."""
    flow = dagman.parse(DIAMOND)
    assert flow.dag.tasks == ("a", "b", "c", "d")
    assert set(flow.dag.arcs()) == {("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")}
    assert flow.task("b") == Task(name="b", command="b.sub")
    assert flow.origin is not None
    assert flow.origin.format == "dagman"


GRAMMAR = {
    "any order": "PARENT a CHILD b\nPRIORITY b 2\nJOB b x\nJOB a x",
    "any case": "pArent a cHild b\nJob a x\njob b x",
    "comments": "# JOB c x\n  // JOB d x\n\nJOB a x\n   JOB b x\n\t#\nPARENT a CHILD b",
    "blanks": "  JOB\ta   x  \nJOB b x\r\nPARENT  a\tCHILD b  \r\n",
    "continuation": "JOB a x\nJOB b x\nPARENT \\\n# in between\n\n  a \\\nCHILD b",
    "continuation at the end": "JOB a x\nJOB b x\nPARENT a CHILD b \\",
    "quoted file": 'JOB a "my file.sub" DIR "the \\"folder\\""\nJOB b x\nPARENT a CHILD b',
    "options": "JOB a x DIR d noop\nSUBDAG External b inner.dag Dir d Noop\nPARENT a CHILD b",
    "NODE": "NODE a x\nNODE b x\nPARENT a CHILD b",
    "inline": "JOB a {\n  JOB c x\n  executable = /bin/true\n} NOOP\nJOB b @=END\n}\n# x\n@END DIR d\nPARENT a CHILD b",
    "unended look": "JOB a {\n}x\n} \nJOB b x\nPARENT a CHILD b",
    "described": "JOB a s\nSUBMIT-DESCRIPTION s {\n executable = e\n}\nJOB b s\nsubmit_description t @=X\nq\n@X\n"
    "PARENT a CHILD b",
    "weak": "JOB a x\nJOB b x\nWEAK PARENT a CHILD b",
    "outside": "JOB a x\nJOB b x\nFINAL f x\nPROVISIONER p {\nx\n}\nSERVICE s x\nSERVICE t x\nPARENT a CHILD b\nDONE f",
    "no structure": "JOB a x\nJOB b x\nPARENT a CHILD b\nRETRY a 3 UNLESS-EXIT 2\nVARS ALL_NODES k=\"it's\"\n"
    "SCRIPT PRE a p 'x\nPRE-SKIP a 1\nPRE_SKIP a 1\nTOLERANCE a 5%\nABORT-DAG-ON a 1 RETURN 0\nCONFIG c\nENV GET X\n"
    "SET_JOB_ATTR a = 1\nDOT d\nNODE_STATUS_FILE s\nJOBSTATE_LOG j\nSAVE_POINT_FILE a\nMAXJOBS c 3",
    "repeated": "JOB a x\nJOB b x\nPARENT a a CHILD b b\nPARENT a CHILD b",
    "two CHILD": "JOB a x\nJOB b x\nPARENT a CHILD CHILD b",
}  # fmt: skip


@pytest.mark.parametrize("text", GRAMMAR.values(), ids=GRAMMAR.keys())
def test_spellings_of_two_nodes_and_an_arc(text: str) -> None:
    flow = dagman.parse(text)
    assert set(flow.dag.tasks) == {"a", "b"}
    assert list(flow.dag.arcs()) == [("a", "b")]


WRONG = {
    "JOB a x\nJOBB b x": (2, "unknown DAGMan command 'JOBB'"),
    "JOB a": (1, "JOB needs a name and a submit description, got 'JOB a'"),
    'JOB a ""': (1, "JOB needs a name and a submit description, got 'JOB a \"\"'"),
    "JOB a x SOON": (1, "unexpected 'SOON' (only DIR with a folder, NOOP or DONE may follow)"),
    "JOB a x DIR": (1, "unexpected 'DIR' (only DIR with a folder, NOOP or DONE may follow)"),
    "JOB a+b x": (1, "node name 'a+b' contains +, which separates the names of splices and nodes"),
    "JOB child x": (1, "'child' is a reserved word of DAGMan and cannot be a name"),
    "JOB a x\n\nJOB a x": (3, "duplicate task 'a'"),
    "JOB a x\nFINAL a x": (2, "duplicate task 'a'"),
    "FINAL a x\nFINAL b x": (2, "at most one FINAL node is allowed"),
    "JOB a {\nx": (1, "the submit description is not closed (it needs } on its own line)"),
    "JOB a @=\nx": (1, "@= must be followed directly by the word that ends the description"),
    "JOB a 'x": (1, "missing closing quote"),
    "SUBMIT-DESCRIPTION a x": (
        1,
        "SUBMIT-DESCRIPTION needs a name and a description in { }, got 'SUBMIT-DESCRIPTION a x'",
    ),
    "SUBDAG a x": (1, "a sub-DAG must be SUBDAG EXTERNAL, a name and a file, got 'SUBDAG a x'"),
    'SUBDAG EXTERNAL a ""': (1, "a sub-DAG must be SUBDAG EXTERNAL, a name and a file, got 'SUBDAG EXTERNAL a \"\"'"),
    "SPLICE a": (1, "a splice must be SPLICE, a name and a file, optionally DIR and a folder, got 'SPLICE a'"),
    "SPLICE a b IN c": (
        1,
        "a splice must be SPLICE, a name and a file, optionally DIR and a folder, got 'SPLICE a b IN c'",
    ),
    "JOB a x\nPARENT a": (2, "a dependency must be PARENT, nodes, CHILD, and nodes, got 'PARENT a'"),
    "JOB a x\nPARENT CHILD a": (2, "a dependency must be PARENT, nodes, CHILD, and nodes, got 'PARENT CHILD a'"),
    "JOB a x\nWEAK a CHILD b": (2, "WEAK must be followed by PARENT, got 'WEAK a CHILD b'"),
    "JOB a x\nPARENT a CHILD b": (2, "there is no task named 'b'"),
    "JOB a x\nFINAL f x\nPARENT a CHILD f": (3, "'f' is a FINAL node, which has no place in the order"),
    "JOB a x\nPRIORITY a": (2, "PRIORITY takes a node and an integer, got a"),
    "JOB a x\nPRIORITY a 1.5": (2, "the priority of 'a' must be an integer, got '1.5'"),
    "JOB a x\nPRIORITY a 2147483648": (2, "the priority of 'a' must be an integer, got '2147483648'"),
    "JOB a x\nPRIORITY b 1": (2, "there is no task named 'b'"),
    "JOB a x\nDONE b": (2, "there is no task named 'b'"),
    "JOB a x\nCATEGORY a": (2, "CATEGORY takes a node and the name of a category, got a"),
    "JOB a x\nPIN_IN a 0": (2, "the number of the pin must be a positive integer, got '0'"),
    "CONNECT a": (1, "CONNECT takes two splices, got a"),
    "CONNECT a b": (1, "CONNECT takes two splices, but 'a' is not a splice"),
    "JOB a x\nREJECT": (2, "REJECT marks this file as not to be run (remove that line to read it)"),
    "INCLUDE": (1, "INCLUDE takes a file, got nothing"),
    "JOB a x\nINCLUDE b": (
        2,
        "refers to the file 'b', but this text has no folder to look in (read the workflow from a file)",
    ),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, text: str) -> None:
    line, message = WRONG[text]
    with pytest.raises(InputError) as caught:
        dagman.parse(text)
    assert str(caught.value) == f"line {line}: {message}"
    path = tmp_path / "flow.dag"
    path.write_text(text)
    if "INCLUDE b" not in text:
        with pytest.raises(InputError) as caught:
            formats.read(path)
        assert str(caught.value) == f"{path}:{line}: {message}"


def test_a_cycle_is_refused_with_its_witness() -> None:
    with pytest.raises(CycleError) as caught:
        dagman.parse("JOB a x\nJOB b x\nPARENT a CHILD b\nPARENT b CHILD a")
    assert set(caught.value.cycle) == {"a", "b"}


def test_names_are_parted_as_dagman_parts_them() -> None:
    """Not at the blanks of Unicode; and quotes stay in the names of nodes."""
    flow = dagman.parse('JOB a\u3000b x\nJOB "two words" x\nPARENT a\u3000b CHILD "two words"')
    assert flow.dag.tasks == ("a\u3000b", '"two words"')
    assert tokens("a \"b 'c\" 'd\\'e'f", trim=True) == ["a", "b 'c", "d'ef"]


def test_lines_are_counted_through_everything() -> None:
    text = "# one\nJOB a {\nx\n}\n\nPARENT a \\\nCHILD a\nJOB b x"
    lines = Lines(text)
    found = []
    for command in lines.take(text):
        found.append((lines.start, command))
        if command.endswith("{"):
            lines.description("{")
    assert found == [(2, "JOB a {"), (6, "PARENT a  CHILD a"), (8, "JOB b x")]


def test_details_of_tasks() -> None:
    flow = dagman.parse(
        "JOB a {\nexecutable = /bin/echo\narguments = \"one 'two three' 'it''s' \"\"q\"\"\"\nrequest_cpus = 4\n"
        "request_memory = 2 GB\n}\nJOB b old DIR sub\nSUBMIT-DESCRIPTION old {\nExecutable = e\nArguments = x y\n}\n"
        "JOB c old\nSUBDAG EXTERNAL d inner.dag\nJOB e x NOOP\nCATEGORY ALL_NODES k\nCATEGORY c other\n"
        "PRIORITY ALL_NODES 3\nPRIORITY e -1\n"
    )
    assert flow.task("a").command == ("/bin/echo", "one", "two three", "it's", '"q"')
    assert (flow.task("a").cores, flow.task("a").memory) == (4, 2**31)
    assert flow.task("b") == Task(name="b", command="sub/old", category="k", priority=3)
    assert flow.task("c") == Task(name="c", command=("e", "x", "y"), category="other", priority=3)
    assert flow.task("d").command == ("condor_submit_dag", "inner.dag")
    assert flow.task("e") == Task(name="e", category="k", priority=-1)


def test_details_are_a_mapping_like_any_other() -> None:
    flow = dagman.parse("JOB a x\nJOB b x NOOP\nJOB c y\nPRIORITY c 1")
    assert dict(flow.details) == {"a": Task(name="a", command="x"), "c": Task(name="c", command="y", priority=1)}
    assert len(flow.details) == 2
    assert "b" not in flow.details
    assert flow.task("b") == Task(name="b")
    assert flow.details == Workflow(flow.dag, dict(flow.details)).details


@pytest.fixture
def joined(monkeypatch: pytest.MonkeyPatch) -> None:
    """Join nodes stay, as if there were too many arcs without them."""
    monkeypatch.setattr("eligo.formats.dagman.reader.MANY_ARCS", -(10**9))


def test_a_few_joins_are_written_out() -> None:
    """They run nothing: what counts as a task is what the user has."""
    text = "".join(f"JOB {name} x\n" for name in "abcdef") + "PARENT a b CHILD c d e\nPARENT a f CHILD b c"
    flow = dagman.parse(text)
    assert flow.dag.tasks == tuple("abcdef")
    assert set(flow.dag.arcs()) == {(p, c) for p in "ab" for c in "cde"} | {(p, c) for p in "af" for c in "bc"}
    assert flow.origin is not None
    assert flow.origin.joins == 2
    assert flow.task("c").command == "x"


def test_many_pairs_keep_their_join() -> None:
    names = [f"{side}{i}" for side in "ab" for i in range(300)]
    text = (
        "".join(f"JOB {name} x\n" for name in names) + f"PARENT {' '.join(names[:300])} CHILD {' '.join(names[300:])}"
    )
    flow = dagman.parse(text)
    assert (len(flow), flow.dag.arc_count) == (601, 600)
    assert flow.origin is not None
    assert "1 join nodes, which DAGMan adds" in flow.origin.remarks[0]


@pytest.mark.usefixtures("joined")
def test_joins_instead_of_all_pairs() -> None:
    """Three parents and four children meet in a join node: seven arcs, not twelve."""
    flow = dagman.parse(
        "".join(f"JOB {name} x\n" for name in "abcdefg") + "PARENT a b c CHILD d e f g\nPARENT a b CHILD f g"
    )
    assert flow.dag.tasks[7:] == ("_condor_join_node0", "_condor_join_node1")
    assert flow.dag.arc_count == 7 + 4
    assert flow.dag.parents("_condor_join_node0") == ("a", "b", "c")
    assert flow.dag.children("_condor_join_node0") == ("d", "e", "f", "g")


def test_what_is_done_is_left_out_and_counted() -> None:
    """A join is done when all its parents are."""
    text = "".join(f"JOB {name} x{' DONE' if name == 'a' else ''}\n" for name in "abcd")
    flow = dagman.parse(text + "PARENT a b CHILD c d\nDONE b")
    assert flow.dag.tasks == ("c", "d")
    assert flow.origin is not None
    assert flow.origin.done == ("a", "b")
    assert flow.origin.remarks == ("skipped 2 of 4 tasks, which are done",)
    half = dagman.parse(text + "PARENT a b CHILD c d\nDONE _condor_join_node7")
    assert set(half.dag.arcs()) == {("b", "c"), ("b", "d")}
    assert half.task("c").command == "x"


# Long stretches are read as a whole, and say the same


def test_stretches_of_plain_lines_are_read_as_lines_are() -> None:
    n = 20_000
    jobs = "".join(f"JOB j{i} s{i % 3}.sub\n" for i in range(n))
    fans = "".join(
        f"PARENT j{i} CHILD" + "".join(f" j{k}" for k in range(i + 1, i + 2 + i % 3)) + "\n" for i in range(n - 3)
    )
    gathers = "".join(f"PARENT j{i} j{i + 1} CHILD j{i + 5}\n" for i in range(n - 5))
    fast = dagman.parse(jobs + fans + gathers)
    slow = dagman.parse((jobs + fans + gathers).replace("JOB", "job").replace("CHILD", "child"))
    assert fast.dag == slow.dag
    assert fast.details == slow.details
    assert fast.task("j19999").command == "s1.sub"
    assert ("j7", "j12") in set(fast.dag.arcs())


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("JOB j15000 x", "JOB j3 x", DuplicateTaskError),
        ("JOB j15000 x", "JOB j14999 x", DuplicateTaskError),
        ("JOB j15000 x", "JOB j15000", FormatError),
        ("JOB j15000 x", "JOB all_nodes x", FormatError),
        ("PARENT j15000 CHILD j15001", "PARENT j15000 CHILD nobody", UnknownTaskError),
        ("PARENT j15000 CHILD j15001", "PARENT j15000 j15001", FormatError),
        ("PARENT j15000 CHILD j15001", "PARENT j15000 CHILD", FormatError),
    ],
)
def test_errors_in_long_stretches_name_the_line(old: str, new: str, error: type[InputError]) -> None:
    jobs = [f"JOB j{i} x" for i in range(20_000)]
    links = [f"PARENT j{i} CHILD j{i + 1}" for i in range(19_999)]
    lines = [new if line == old else line for line in jobs + links]
    with pytest.raises(error) as caught:
        dagman.parse("\n".join(lines))
    assert caught.value.line == (jobs + links).index(old) + 1


def test_a_large_file_is_read_soon() -> None:
    n = 200_000
    text = "".join(f"JOB j{i} x.sub\n" for i in range(n))
    text += "".join(f"PARENT j{i} CHILD j{i + 1} j{i + 2}\n" for i in range(n - 2))
    begin = time.process_time()
    assert dagman.parse(text).dag.arc_count == 2 * (n - 2)
    assert time.process_time() - begin < 60  # it ends; how soon is for the benchmarks


@pytest.mark.usefixtures("joined")
def test_splices(folder: Writer) -> None:
    """A file spliced twice and one inside it: names say the way, and dependencies mean first and last nodes.

    x -> S(a -> b, T(c)) -> U(the same) -> y
    """
    root = folder(
        top_dag="JOB x s\nJOB y s\nSPLICE S one.dag\nSPLICE U one.dag\nPARENT x CHILD S\nPARENT S CHILD U\nPARENT U CHILD y\n"
        "PRIORITY S+a 7\nPRIORITY U+T+c 8",
        one_dag="JOB a s\nJOB b s\nSPLICE T two.dag\nPARENT a CHILD b\nCATEGORY a k\nCATEGORY b +g\nPRIORITY b 5",
        two_dag="JOB c s\nCATEGORY c k",
    )
    flow = formats.read(root)
    assert flow.dag.tasks == ("x", "y", "S+a", "S+b", "S+T+c", "U+a", "U+b", "U+T+c", "_condor_join_node0")
    assert flow.dag.parents("_condor_join_node0") == ("S+b", "S+T+c")
    assert flow.dag.children("_condor_join_node0") == ("U+a", "U+T+c")
    assert flow.dag.children("x") == ("S+a", "S+T+c")
    assert flow.dag.parents("y") == ("U+b", "U+T+c")
    assert [flow.task(name).priority for name in ("S+a", "S+b", "U+a", "U+b", "U+T+c")] == [7, 5, None, 5, 8]
    assert [flow.task(name).category for name in ("S+a", "S+b", "U+T+c")] == ["S+k", "+g", "U+T+k"]


@pytest.mark.usefixtures("joined")
def test_join_nodes_are_numbered_as_dagman_does(folder: Writer) -> None:
    """Those of splices first, each with the names of its splices in front."""
    inner = "JOB a s\nJOB b s\nJOB c s\nJOB d s\nPARENT a b CHILD c d"
    flow = formats.read(folder(top_dag="SPLICE S in.dag\nSPLICE T in.dag\nPARENT S CHILD T", in_dag=inner))
    joins = [name for name in flow.dag.tasks if "join" in name]
    assert joins == ["S+_condor_join_node0", "T+_condor_join_node1", "_condor_join_node2"]


def test_splices_in_folders(folder: Writer) -> None:
    """DIR is where the names in a splice count from; without it they count from the folder of the root."""
    root = folder(
        top_dag="SPLICE S in.dag DIR sub\nSPLICE T sub/in2.dag",
        sub__in_dag="JOB a a.sub\nINCLUDE more.inc",
        sub__in2_dag="JOB b b.sub\nINCLUDE sub/more.inc",
        **{"sub__more.inc": "JOB m m.sub DIR deep"},
    )
    flow = formats.read(root)
    commands = {name: flow.task(name).command for name in flow.dag.tasks}
    assert commands == {"S+a": "sub/a.sub", "S+m": "sub/deep/m.sub", "T+b": "b.sub", "T+m": "deep/m.sub"}


def test_includes_stand_where_they_are(folder: Writer) -> None:
    """Of two priorities the later counts, and ALL_NODES means what is known so far."""
    flow = formats.read(
        folder(
            top_dag="PRIORITY a 1\nPRIORITY ALL_NODES 3\nINCLUDE in.dag\nPRIORITY b 9\nJOB a s\nPARENT a CHILD b",
            in_dag="JOB b s\nPRIORITY b 5\nPRIORITY a 4",
        )
    )
    assert [flow.task(name).priority for name in "ab"] == [4, 9]


def test_pins(folder: Writer) -> None:
    """Every node at pin k of the first splice comes before every node at pin k of the second."""
    flow = formats.read(
        folder(
            top_dag="CONNECT S T\nSPLICE S s.dag\nSPLICE T t.dag",
            s_dag="JOB a s\nJOB b s\nINCLUDE pins",
            t_dag="JOB c s\nJOB d s\nPIN_IN c 1\nPIN_IN d 1\nPIN_IN d 2",
            pins="PIN_OUT a 1\nPIN_OUT b 1\nPIN_OUT b 2",
        )
    )
    assert set(flow.dag.arcs()) == {("S+a", "T+c"), ("S+a", "T+d"), ("S+b", "T+c"), ("S+b", "T+d")}


def test_a_sub_dag_is_one_task_and_is_not_read(folder: Writer) -> None:
    assert formats.read(folder(top_dag="SUBDAG EXTERNAL a none.dag")).dag.tasks == ("a",)


FILES = {
    "unknown in include": ({"top_dag": "INCLUDE in.dag", "in_dag": "\nJOB"}, "in.dag:2: JOB needs a name and a"),
    "unknown in splice": ({"top_dag": "SPLICE S in.dag", "in_dag": "JOB a x\nDONE b"}, "in.dag:2: there is no task"),
    "no such file": ({"top_dag": "\nSPLICE S in.dag"}, "top.dag:2: {}/in.dag cannot be read: no such file or"),
    "itself": ({"top_dag": "SPLICE S top.dag"}, "top.dag:1: a file includes or splices itself: "),
    "in a ring": ({"top_dag": "INCLUDE in.dag", "in_dag": "\nSPLICE S top.dag"}, "in.dag:2: a file includes"),
    "twice": ({"top_dag": "JOB a x\nINCLUDE in.dag", "in_dag": "JOB a x"}, "top.dag:2: duplicate task 'a'"),
    "splice like a node": ({"top_dag": "JOB S x\nSPLICE S in.dag", "in_dag": "JOB a x"}, "top.dag:2: duplicate task 'S'"),
    "FINAL in a splice": ({"top_dag": "SPLICE S in.dag", "in_dag": "FINAL a x"}, "top.dag:1: splice 'S' has a FINAL"),
    "priority of a splice": (
        {"top_dag": "SPLICE S in.dag\nPRIORITY S 3", "in_dag": "JOB a x"},
        "top.dag:2: 'S' is a splice, but a node is needed",
    ),
    "pins that do not match": (
        {"top_dag": "SPLICE S in.dag\nCONNECT S S", "in_dag": "JOB a x\nPIN_IN a 1\nPIN_OUT a 2"},
        "top.dag:2: the pins of S and S do not match",
    ),
    "outside": ({"top_dag": "INCLUDE ../x"}, "top.dag:1: '../x' is outside the folder of "),
    "absolute": ({"top_dag": "SPLICE S /etc/passwd"}, "top.dag:1: '/etc/passwd' is outside the folder of "),
    "outside by DIR": ({"top_dag": "SPLICE S x DIR .."}, "top.dag:1: 'x' is outside the folder of "),
}  # fmt: skip


@pytest.mark.parametrize(("files", "message"), FILES.values(), ids=FILES.keys())
def test_errors_name_the_file_where_they_are(folder: Writer, files: dict[str, str], message: str) -> None:
    root = folder(**files)
    with pytest.raises(InputError) as caught:
        formats.read(root)
    assert str(caught.value).startswith(f"{root.parent}/{message.replace('{}', str(root.parent))}")


def test_files_outside_are_read_where_that_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "x.dag").write_text("JOB a x")
    (tmp_path / "in" / "top.dag").write_text("SPLICE S ../x.dag")
    (tmp_path / "in" / "link.dag").symlink_to(tmp_path / "x.dag")
    (tmp_path / "in" / "sly.dag").write_text("INCLUDE link.dag")
    assert formats.read(tmp_path / "in" / "top.dag", allow_outside=True).dag.tasks == ("S+a",)
    with pytest.raises(FormatError, match=r"'link\.dag' is outside the folder"):
        formats.read(tmp_path / "in" / "sly.dag")


def test_the_current_folder_does_not_matter(folder: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    root = folder(sub__top_dag="INCLUDE in.dag", sub__in_dag="JOB a x")
    monkeypatch.chdir(root.parent.parent if root.parent.name == "sub" else root.parent)
    assert formats.read("sub/top.dag").dag.tasks == ("a",)
    monkeypatch.chdir("sub")
    assert formats.read("top.dag").dag.tasks == ("a",)


# Hostile files are refused soon


def ten_times(line: str, levels: int) -> dict[str, str]:
    files = {f"f{i}": "".join(line.format(j, i + 1) for j in range(10)) for i in range(levels)}
    return files | {f"f{levels}": "JOB a x\n" if "SPLICE" in line else "# x\n"}


BOMBS = {
    "splices": (ten_times("SPLICE s{} f{}\n", 10), "files are included or spliced"),
    "includes": (ten_times("# {}\nINCLUDE f{}\n", 10), "files are included or spliced"),
    "tasks": (
        {"f0": "".join(f"SPLICE s{i} f1\n" for i in range(1000)), "f1": "".join(f"JOB j{i} x\n" for i in range(5000))},
        "splices add at least 4,005,000 tasks, more than the limit of 4,000,000",
    ),
    "names": (
        {"f0": f"SPLICE {'s' * 9000} f1\n", "f1": "".join(f"JOB j{i} x\n" for i in range(50_000))},
        "the names of spliced tasks have more than 400,000,000 characters in total",
    ),
    "pins": (
        {
            "f0": "SPLICE S f1\nSPLICE T f1\nCONNECT S T",
            "f1": "".join(f"JOB j{i} x\nPIN_IN j{i} 1\nPIN_OUT j{i} 1\n" for i in range(5000)),
        },
        "splices and their connections add more than 20,000,000 arcs",
    ),
    "depth": ({f"f{i}": f"SPLICE s f{i + 1}" for i in range(300)}, "files are nested more than 100 levels deep"),
    "one long line": ({"f0": "JOB a \\\n" * 50_000}, "unexpected 'a'"),
    "quotes": ({"f0": 'JOB a "' + '\\"' * 500_000}, "missing closing quote"),
}  # fmt: skip


@pytest.mark.parametrize(("files", "message"), BOMBS.values(), ids=BOMBS.keys())
def test_bombs_are_refused_soon(tmp_path: Path, files: dict[str, str], message: str) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    begin = time.process_time()
    with pytest.raises(FormatError, match=message):
        formats.read(tmp_path / "f0", "dagman")
    assert time.process_time() - begin < 60  # it ends; how soon is for the benchmarks


def test_all_files_together_are_bounded(folder: Writer) -> None:
    root = folder(top_dag="INCLUDE in.dag", in_dag="JOB a x\n" + "# x\n" * 1000)
    assert formats.read(root, limit=5000).dag.tasks == ("a",)
    with pytest.raises(FormatError, match=r"in\.dag.*limit"):
        formats.read(root, limit=2000)


# Rescue files


def test_the_last_rescue_file_counts(folder: Writer) -> None:
    """As for DAGMan itself; and to name it means the file that it rescues."""
    root = folder(
        top_dag=DIAMOND, **{"top.dag.rescue001": "DONE a", "top.dag.rescue002": "# x\nDONE a\nDONE b\nRETRY c 2"}
    )
    for path in (root, root.with_name("top.dag.rescue002")):
        flow = formats.read(path)
        assert flow.dag.tasks == ("c", "d")
        assert flow.origin is not None
        assert flow.origin.path == str(root)
        assert flow.origin.remarks == (f"skipped 2 of 4 tasks, which are done according to {root}.rescue002",)
    assert formats.read(root.with_name("top.dag.rescue001")).dag.tasks == ("b", "c", "d")


def test_a_rescue_file_of_something_else_is_refused(folder: Writer) -> None:
    root = folder(top_dag=DIAMOND, **{"top.dag.rescue001": "\nDONE z"})
    with pytest.raises(UnknownTaskError, match=r"top\.dag\.rescue001:2: there is no task named 'z'$"):
        formats.read(root)


# Which format


@pytest.mark.parametrize(
    ("path", "text", "format"),
    [
        ("x.dag", "nonsense", "dagman"),
        ("X.DAG.zst", "", "dagman"),
        ("x.dag.rescue012", "DONE a", "dagman"),
        ("-", "# hello\n\nJob a a.sub\n", "dagman"),
        ("-", "CONFIG x\nSPLICE a b.dag", "dagman"),
        ("-", "weak parent a child b", "dagman"),
        ("-", "job b\nparent child", "arcs"),
        ("x.txt", "JOB a b", "arcs"),
    ],
)
def test_dagman_is_recognised(path: str, text: str, format: str) -> None:
    assert detect(path, text) == format


# HTCondor's own files: nodes (without FINAL), arcs (with those of CONNECT), height

REFERENCE = {
    "diamond.dag": (4, 4, 3),
    "job_dagman_cmd_order.dag": (2, 1, 2),
    "job_dagman_splice-cat.dag": (24, 30, 13),
    "job_dagman_splice-L.dag": (18, 21, 14),
    "job_dagman_splice-N.dag": (78, 136, 7),
    "job_dagman_splice_connect-A.dag": (9, 0 + 6, 3),
    "job_dagman_splice_connect-B-2.dag": (16, 12 + 6, 4),
    "job_dagman_noop_node-upper.dag": (6, 5, 5),
    "job_dagman_final-F.dag": (4, 3, 2),
    "wrapper/wrap.dag": (8, 7, 3),
}
PARTS = {"job_dagman_splice_connect-A-inc1.dag", "job_dagman_splice_connect-A-inc2.dag", "job_dagman_cycle-A.dag"}


@needs_data
@pytest.mark.usefixtures("joined")
@pytest.mark.parametrize("name", REFERENCE)
def test_reference_values(name: str) -> None:
    dag = formats.read(DATA / name).dag
    assert (len(dag), dag.arc_count, dag.depth) == REFERENCE[name]


@needs_data
def test_the_real_cycle() -> None:
    with pytest.raises(CycleError) as caught:
        formats.read(DATA / "job_dagman_cycle-A.dag")
    assert caught.value.cycle in {("B", "C", "B"), ("C", "B", "C")}


@needs_data
@pytest.mark.parametrize("path", sorted(DATA.rglob("*.dag")), ids=lambda path: path.name)
def test_every_real_file_is_read(path: Path) -> None:
    if path.name in PARTS:
        with pytest.raises(InputError):
            formats.read(path)
    elif path.parent.name[-7:-1] != "subdir" and path.parent.name not in {"a", "b"}:  # those count from above
        assert len(formats.read(path)) > 0


@needs_data
def test_real_priorities() -> None:
    flow = formats.read(DATA / "wrapper" / "wrap.dag")
    assert [flow.task(name).priority for name in ("root", "U+A", "x", "S+A", "S+B")] == [100, 90, 80, 70, 30]
