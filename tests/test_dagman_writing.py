"""Workflows as DAGMan files, and priorities for files that people have: beside them or in place."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eligo import formats
from eligo.cli import run
from eligo.dag import Dag
from eligo.errors import FormatError, InputError, shorten
from eligo.formats import dagman, generate, parse
from eligo.formats.dagman.writer import values, with_priority_lines
from eligo.formats.launches import BY_POSIX_SHELL
from eligo.workflow import Task, Workflow

nasty = st.sampled_from(
    ["", " ", "a b", "a+b", "#", "//", "{", "}", "@=x", '"', "'", '"a b"', "\\", "a\\", "\\a", "PARENT", "child", "All_Nodes",
     "JOB", "é", "\u3000", "\ufeff", "a\u2028b", "x" * 2000, "_condor_join_node0", "S.x", "-", "$(JOB)", "all-nodes"]
)  # fmt: skip
names = nasty | st.text(st.characters(exclude_categories=("Cc", "Cs")), max_size=8)
words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n"), max_size=12)
commands = st.lists(words, min_size=1, max_size=4).map(tuple)


@st.composite
def dags(draw: st.DrawFn, tasks: st.SearchStrategy[str] = names) -> Dag:
    """A dag of at most 8 tasks, listed in an order that has nothing to do with its arcs."""
    ordered = draw(st.lists(tasks, max_size=8, unique=True))
    pairs = [(a, b) for i, a in enumerate(ordered) for b in ordered[i + 1 :]]
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=12)) if pairs else []
    return Dag.from_arcs(chosen, draw(st.permutations(ordered)))


# A file of its own


def refusal(action: Callable[[], object]) -> str:
    """What is said where an action is refused; nothing where it is done. Any other error goes through."""
    try:
        action()
    except InputError as error:
        return str(error)
    return ""


@given(dag=dags())
@example(dag=Dag.from_arcs([("#", "//")]))
def test_names_survive_or_are_refused_by_name(dag: Dag) -> None:
    told = refusal(lambda: generate(dag, "dagman"))
    if told:
        assert any(f"the task name {shorten(name)!r}" in told for name in dag.tasks)
    else:
        assert parse(generate(dag, "dagman"), "dagman").dag == dag


@given(
    command=commands,
    cores=st.none() | st.integers(1, 99),
    memory=st.none() | st.integers(1, 2**30).map(lambda k: k * 1024),
)
@example(command=("/bin/sh", "-c", "ls | wc"), cores=1, memory=None)
@example(command=("/usr/bin/env", "x"), cores=None, memory=None)
@example(command=("$(DOLLAR)", "$(JOB)$", "'", '"', "''"), cores=None, memory=None)
def test_commands_survive_or_are_refused(command: tuple[str, ...], cores: int | None, memory: int | None) -> None:
    task = Task(name="a", command=command, cores=cores, memory=memory)
    flow = Workflow(Dag.from_arcs([], ["a"]), {"a": task})
    told = refusal(lambda: generate(flow, "dagman"))
    assert "task 'a'" in told if told else parse(generate(flow, "dagman"), "dagman").task("a") == task


@given(line=words.filter(lambda line: len(line.split()) > 1))
@example(line="make 'all' && echo \"$HOME\" # done\\")
def test_shell_lines_survive(line: str) -> None:
    flow = Workflow(Dag.from_arcs([], ["a"]), {"a": Task(name="a", command=line)})
    assert parse(generate(flow, "dagman"), "dagman").task("a").command == line


def test_what_is_written() -> None:
    details = {
        "a": Task(name="a", command=("prog", "two words"), category="k", priority=2, cores=1.5, memory=1000),
        "b": Task(name="b", command="b.sub"),
        "d": Task(name="d", command=("condor_submit_dag", "in.dag"), category="no word"),
    }
    flow = Workflow(Dag.from_arcs([("a", "b"), ("a", "c")], "abcd"), details)
    assert generate(flow, "dagman") == (
        "JOB a {\n    executable = /usr/bin/env\n    transfer_executable = false\n    arguments = \"prog 'two words'\"\n"
        "    request_cpus = 2\n    request_memory = 1K\n}\nJOB b b.sub\nJOB c noop.sub NOOP\nSUBDAG EXTERNAL d in.dag\n"
        "PARENT a CHILD b c\nCATEGORY a k\nPRIORITY a 2\n"
    )
    assert formats.lost(flow, "dagman") == ["categories (1 task)"]
    assert generate(Dag.from_arcs([]), "dagman") == "# no tasks\n"


def test_what_cannot_be_written() -> None:
    for task, message in {
        Task(
            name="a", command=("a", "b\nc")
        ): "DAGMan cannot represent the command of task 'a': it contains a line break",
        Task(name="a", command=("./a ", "b")): "DAGMan cannot represent the program of task 'a': './a '",
        Task(name="a", priority=2**31): "DAGMan cannot represent the priority of task 'a': it exceeds 32 bits",
    }.items():
        with pytest.raises(FormatError) as caught:
            generate(Workflow(Dag.from_arcs([], ["a"]), {"a": task}), "dagman")
        assert str(caught.value) == message


def test_what_was_read_is_written_back() -> None:
    text = (
        'JOB a here\nJOB b sub/x.sub\nJOB c {\n    executable = ./c\n    arguments = "$(JOB)"\n}\nPARENT a CHILD b c\n'
    )
    assert generate(parse(text, "dagman"), "dagman") == text


# Beside a file

PLAIN = "# mine\r\nJOB a x\r\nJOB b x\r\nJOB c x\r\nPARENT a CHILD b c\r\n"
SPLICED = "JOB root x\nSPLICE S in.dag\nSPLICE T in.dag\nPARENT root CHILD S T\n"
INNER = "JOB a x\nJOB b x\nJOB c x\nJOB d x\nPARENT a b CHILD c d\n"


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.dag").write_bytes(text.encode())
    return folder / f"{next(iter(files))}.dag"


def by_priority(flow: Workflow) -> list[str]:
    """The tasks that have a priority, largest first."""
    ranks = {task.name: task.priority for task in flow.details.values() if task.priority}
    assert len(set(ranks.values())) == len(ranks)
    return sorted(ranks, key=lambda name: -ranks[name])


def test_a_wrapper_leaves_the_file_alone(tmp_path: Path) -> None:
    root = write(tmp_path, mine=PLAIN)
    told = formats.write_priorities(formats.read(root), ["a", "c", "b"], tmp_path / "prio.dag")
    assert root.read_bytes() == PLAIN.encode()
    assert (tmp_path / "prio.dag").read_text().splitlines()[1:] == ["INCLUDE mine.dag", "INCLUDE prio.dag.prio"]
    assert (
        tmp_path / "prio.dag.prio"
    ).read_text() == "# Priorities by eligo\nPRIORITY a -1\nPRIORITY c -2\nPRIORITY b -3\n"
    assert told[0] == f"wrote {tmp_path / 'prio.dag'}, which includes mine.dag and prio.dag.prio"
    assert any("condor_submit_dag -maxjobs N prio.dag" in line for line in told)
    assert any("DAGMAN_MAX_JOBS_SUBMITTED = N" in line for line in told)


def test_a_wrapper_reaches_into_splices_and_lets_joins_go_first(tmp_path: Path) -> None:
    """A join has priority 0 in DAGMan, so all tasks get less."""
    root = write(tmp_path, mine=SPLICED, **{"in": INNER})
    flow = formats.read(root)
    order = ["root", "T+b", "S+a", "T+a", "S+b", *(name for name in flow.dag.tasks if "join" in name)]
    order += ["S+d", "T+c", "S+c", "T+d"]
    formats.write_priorities(flow, order, tmp_path / "prio.dag")
    again = formats.read(tmp_path / "prio.dag")
    assert again.dag == flow.dag
    assert by_priority(again) == [name for name in order if "join" not in name]
    assert max(again.task(name).priority or 0 for name in order if "join" not in name) == -1


@given(data=st.data())
def test_the_order_inside_classes_is_ours(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """The user's larger priorities stay above; inside a class, the order is the plan's; --override drops them."""
    folder = tmp_path_factory.mktemp("dag")
    wishes = data.draw(st.dictionaries(st.sampled_from("abcdef"), st.integers(-2, 2)))
    everyone = data.draw(st.none() | st.integers(-2, 2))
    text = "".join(f"JOB {name} x\n" for name in "abcdef")
    text += f"PRIORITY ALL_NODES {everyone}\n" if everyone is not None else ""
    text += "".join(f"PRIORITY {name} {wish}\n" for name, wish in wishes.items())
    root = write(folder, mine=text)
    order = data.draw(st.permutations("abcdef"))
    flow = formats.read(root)
    expected = sorted(order, key=lambda name: -wishes.get(name, everyone or 0))
    told = formats.write_priorities(flow, order, folder / "prio.dag")
    assert by_priority(formats.read(folder / "prio.dag")) == expected
    assert any("classes" in line for line in told) == (len({wishes.get(name, everyone or 0) for name in order}) > 1)
    formats.write_priorities(flow, order, folder / "over.dag", override=True)
    assert by_priority(formats.read(folder / "over.dag")) == list(order)
    formats.write_priorities(flow, order, None)
    assert by_priority(formats.read(root)) == expected


def test_what_counts_only_in_the_submitted_file_is_repeated(tmp_path: Path) -> None:
    root = write(tmp_path, mine='CONFIG my.config\nJOB a x\nset-job-attr A = "b \\\n c"\nENV GET HOME\n')
    (tmp_path / "my.config").write_text("DAGMAN_MAX_JOBS_SUBMITTED = 5\n")
    told = formats.write_priorities(formats.read(root), ["a"], tmp_path / "prio.dag")
    lines = (tmp_path / "prio.dag").read_text().splitlines()
    assert lines[1:4] == ["CONFIG my.config", 'set-job-attr A = "b  c"', "ENV GET HOME"]
    assert len(told) == 2  # what was written, and which numbers: there is a throttle


def test_what_is_done_stays_done(tmp_path: Path) -> None:
    """DAGMan looks for a rescue file of the wrapper's name."""
    root = write(tmp_path, mine=PLAIN)
    (tmp_path / "mine.dag.rescue003").write_text("DONE a\n")
    told = formats.write_priorities(formats.read(root), ["c", "b"], tmp_path / "prio.dag")
    assert (tmp_path / "prio.dag.rescue003").read_text() == "DONE a\n"
    assert any("a copy of" in line for line in told)
    assert by_priority(formats.read(tmp_path / "prio.dag")) == ["c", "b"]
    (tmp_path / "prio.dag.rescue004").write_text("DONE a\nDONE c\n")
    told = formats.write_priorities(formats.read(root), ["c", "b"], tmp_path / "prio.dag")
    assert any("prio.dag.rescue004, an existing file" in line for line in told)
    (tmp_path / "mine.dag.rescue004").write_text("DONE a\nDONE b\nDONE c\n")
    formats.write_priorities(formats.read(root), [], tmp_path / "prio.dag")
    assert (tmp_path / "prio.dag.rescue005").read_text() == "DONE a\nDONE b\nDONE c\n"
    (tmp_path / "mine.dag.rescue005").write_text("DONE a\n")
    (tmp_path / "prio.dag.rescue006").write_text("DONE b\n")
    with pytest.raises(FormatError, match="list different tasks as done"):
        formats.write_priorities(formats.read(root), ["b", "c"], tmp_path / "prio.dag")


def test_files_that_the_workflow_consists_of_are_not_overwritten(tmp_path: Path) -> None:
    root = write(tmp_path, mine=SPLICED, **{"in": INNER})
    flow = formats.read(root)
    with pytest.raises(FormatError, match=r"mine\.dag includes this file \(give another name\)"):
        formats.write_priorities(flow, flow.dag.tasks, tmp_path / "in.dag")
    assert (tmp_path / "in.dag").read_text() == INNER


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write(tmp_path, mine=PLAIN)
    flow = formats.read(root)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(FormatError, match="cannot be written: no space left on device"):
        formats.write_priorities(flow, ["a", "c", "b"], None)
    assert root.read_bytes() == PLAIN.encode()
    assert [path.name for path in tmp_path.iterdir()] == ["mine.dag"]


def test_submit_files_with_a_priority_of_their_own_are_named(tmp_path: Path) -> None:
    root = write(tmp_path, mine="JOB a a.sub\nJOB b b.sub\nJOB c ../c.sub\n")
    (tmp_path / "a.sub").write_text("executable = x\n Priority = 5\nqueue\n")
    (tmp_path / "b.sub").write_text("# priority = 5\n")
    told = formats.write_priorities(formats.read(root), ["a", "b", "c"], tmp_path / "prio.dag")
    assert told[-1] == "`priority =` in a.sub overrides these priorities"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("mine.dag", "mine.dag: this is the file that was read (give another name, or change it in place)"),
        (
            "sub/prio.dag",
            "sub/prio.dag: the paths in mine.dag are relative to its folder, so the wrapper must be there too: prio.dag",
        ),
        ("my prio.dag", "my prio.dag: DAGMan cannot INCLUDE a file whose name has blanks, quotes or backslashes"),
        ("prio.dag.gz", "prio.dag.gz: DAGMan cannot read compressed files"),
    ],
)
def test_places_where_a_wrapper_cannot_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, mine=PLAIN)
    (tmp_path / "sub").mkdir()
    with pytest.raises(FormatError) as caught:
        formats.write_priorities(formats.read("mine.dag"), "abc", path)
    assert str(caught.value) == message
    assert sorted(file.name for file in tmp_path.iterdir()) == ["mine.dag", "sub"]


def test_text_without_a_file_gets_no_wrapper(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="standard input cannot be used"):
        formats.write_priorities(parse(PLAIN, "dagman"), "abc", tmp_path / "prio.dag")


def test_other_formats_go_both_ways(tmp_path: Path) -> None:
    flow = parse('{"tasks": [{"name": "a", "run": "ls -l"}, {"name": "b", "after": ["a"]}]}')
    told = formats.write_priorities(flow, ["a", "b"], tmp_path / "flow.dag")
    assert told[0] == f"wrote {tmp_path / 'flow.dag'}"
    assert "-maxjobs N flow.dag" in told[2]
    again = formats.read(tmp_path / "flow.dag")
    assert by_priority(again) == ["a", "b"]
    formats.write_priorities(again, ["a", "b"], tmp_path / "flow.json", override=True)
    assert replace(formats.read(tmp_path / "flow.json"), origin=None) == Workflow(
        flow.dag,
        {"a": Task(name="a", command="ls -l", priority=2, launch=BY_POSIX_SHELL), "b": Task(name="b", priority=1)},
    )


# In place


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_only_priority_lines_change(tmp_path: Path, encoding: str, end: str) -> None:
    text = (
        "# é\nJOB é x  \n\n  job b {\n PRIORITY b 3\n}\n\tpriority   é\t 7  \nJOB c x\nPRIORITY \\\n c \\\n 4\n"
        "Priority ALL_NODES 3\nRETRY c 2"
    )
    root = tmp_path / "mine.dag"
    root.write_bytes(text.replace("\n", end).encode(encoding))
    formats.write_priorities(formats.read(root), ["c", "é", "b"], None, override=True)
    expected = (
        "# é\nJOB é x  \n\n  job b {\n PRIORITY b 3\n}\n\tpriority   é\t -2  \nJOB c x\nPRIORITY c -1\n"
        "RETRY c 2\nPRIORITY b -3\n"
    )
    assert root.read_bytes() == expected.replace("\n", end).encode(encoding)


def test_in_place_after_includes(tmp_path: Path) -> None:
    """What an INCLUDE sets later would win, so all lines go to the end."""
    root = write(tmp_path, mine="JOB a x\nPRIORITY a 1\nINCLUDE in.dag\n", **{"in": "JOB b x\nPRIORITY a 5"})
    formats.write_priorities(formats.read(root), ["b", "a"], None, override=True)
    assert root.read_text() == "JOB a x\nINCLUDE in.dag\nPRIORITY b -1\nPRIORITY a -2\n"
    assert by_priority(formats.read(root)) == ["b", "a"]


def test_in_place_is_refused_with_splices(tmp_path: Path) -> None:
    """DAGMan 23.9 says `Unknown Job S+a` of such a line, and nothing runs."""
    root = write(tmp_path, mine=SPLICED, **{"in": INNER})
    flow = formats.read(root)
    with pytest.raises(FormatError, match="a file with splices cannot be changed in place: DAGMan does not accept 'S"):
        formats.write_priorities(flow, flow.dag.tasks, None)
    assert root.read_text() == SPLICED


def test_in_place_needs_room_for_priorities(tmp_path: Path) -> None:
    (tmp_path / "flow.json").write_text('{"arcs": [["a", "b"]]}')
    with pytest.raises(FormatError, match="priorities cannot be written into this file"):
        formats.write_priorities(formats.read(tmp_path / "flow.json"), "ab", None)


commands_ab = st.sampled_from(
    ["JOB a x", "JOB b y NOOP", "PRIORITY a 3", "priority b -2 ", "PRIORITY \\", " a 4", "# PRIORITY a 9", "", "RETRY b 1",
     "PRIORITY ALL_NODES 2", "JOB c {", "PRIORITY a 1", "}", 'VARS a k="v"', "PARENT a CHILD b", "\tPrIoRiTy\ta\t8"]
)  # fmt: skip


@example(lines=["PRIORITY ALL_NODES 2"], end="\r\n", last=False)
@given(lines=st.lists(commands_ab, max_size=12), end=st.sampled_from(["\n", "\r\n"]), last=st.booleans())
def test_in_place_keeps_every_other_line(lines: list[str], end: str, last: bool) -> None:
    text = end.join(["# x", "JOB z x", *lines]) + (end if last else "")
    try:
        before = parse(text, "dagman")
    except InputError:
        return
    order = [*reversed(before.dag.tasks)]
    wanted = values(order)
    after = with_priority_lines(text, wanted)
    flow = parse(after, "dagman")
    assert flow.dag == before.dag
    assert {task.name: task.priority for task in flow.details.values()} == wanted
    assert with_priority_lines(after, wanted) == after
    kept = [line for line in text.split(end) if "PRIORITY" not in line.upper() and line != " a 4"]
    left = [line for line in after.split(end) if "PRIORITY" not in line.upper() and line != " a 4"]
    assert [line for line in left if line] == [line for line in kept if line]


# The command


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, mine="JOB a x\nJOB b x\nPARENT a CHILD b\nPRIORITY b 5\n")
    assert run(["plan", "mine.dag", "-o", "prio.dag"]) == 0
    out, err = capfd.readouterr()
    assert "With `finish`, " in out
    assert "eligo: wrote prio.dag" in err
    assert "eligo:   condor_submit_dag -maxjobs N prio.dag\n" in err
    assert run(["plan", "mine.dag", "-o", "prio.dag", "--json"]) == 0
    out, err = capfd.readouterr()
    assert out.startswith("{")
    assert out.count("\n") == 1
    assert "eligo: wrote prio.dag" in err
    assert run(["plan", "mine.dag", "--in-place", "--override", "--format", "dagman"]) == 0
    assert (tmp_path / "mine.dag").read_text().endswith("PRIORITY b -2\nPRIORITY a -1\n")
    assert run(["plan", "mine.dag", "--in-place", "-o", "prio.dag"]) == 2
    assert capfd.readouterr().err.endswith("eligo: --in-place cannot be combined with -o: leave one of them out\n")
    assert run(["plan", "mine.dag", "-o", "-"]) == 0
    assert capfd.readouterr().out == "INCLUDE mine.dag\nPRIORITY a -1\nPRIORITY b -2\n"
    assert run(["plan", "mine.dag", "-o", "-", "--priority-base", "50"]) == 0
    assert capfd.readouterr().out == "INCLUDE mine.dag\nPRIORITY a 50\nPRIORITY b 49\n"


def test_convert_tells_what_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, mine="JOB a x\nJOB b x DONE\nJOB c y NOOP\nCATEGORY c k\n")
    assert run(["convert", "mine.dag", "mine.arcs"]) == 0
    assert capfd.readouterr().err == (
        "eligo: skipped 1 of 3 tasks, which are done\n"
        "eligo: arcs cannot represent commands (1 task), categories (1 task): left out\n"
        "eligo: wrote mine.arcs\n"
    )
    assert run(["convert", "mine.dag", "mine.json"]) == 0
    told = capfd.readouterr().err.splitlines()
    assert (told[0], told[2:]) == ("eligo: skipped 1 of 3 tasks, which are done", ["eligo: wrote mine.json"])
    assert told[1].startswith("eligo: commands were not written: node 'a': submit file x: cannot be read")
    (tmp_path / "rich.json").write_text('{"name": "n", "tasks": [{"name": "a", "seconds": 2}], "files": {"f": 1}}')
    assert run(["convert", "rich.json", "rich.dag"]) == 0
    message = "eligo: dagman cannot represent the workflow's name, sizes of files, run times (1 task): left out\n"
    assert capfd.readouterr().err == f"{message}eligo: wrote rich.dag\n"
    assert run(["convert", "rich.json", "rich.what"]) == 2
    assert capfd.readouterr().err.startswith("eligo: rich.what: cannot determine the format")


@pytest.mark.parametrize("verb", ["show", "plan", "explain", "convert", "verify"])
def test_every_verb_takes_allow_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], verb: str
) -> None:
    (tmp_path / "in").mkdir()
    write(tmp_path, mine="JOB a x\n")
    (tmp_path / "in" / "top.dag").write_text("INCLUDE ../mine.dag\n")
    (tmp_path / "in" / "order").write_text("a\n")
    monkeypatch.chdir(tmp_path / "in")
    more = {"convert": ["x.json"], "verify": ["order"]}.get(verb, [])
    assert run([verb, "top.dag", *more]) == 2
    message = "eligo: top.dag:1: '../mine.dag' is outside the folder of top.dag: add --allow-outside to read it\n"
    assert capfd.readouterr().err == message
    assert run([verb, "top.dag", *more, "--allow-outside"]) == 0


# Never a traceback

FRAGMENTS = [
    "JOB", "NODE", "SUBDAG EXTERNAL", "SPLICE S", "PARENT", "CHILD", "WEAK", "PRIORITY", "CATEGORY", "DONE", "PIN_IN",
    "PIN_OUT", "CONNECT", "INCLUDE", "FINAL", "PROVISIONER", "SERVICE", "SUBMIT-DESCRIPTION", "REJECT", "CONFIG",
    "ENV", "VARS", "SCRIPT", "DIR", "NOOP", "ALL_NODES", "a", "b", "c", "S", "S+a", "1", "-3", "9999999999", "{", "}",
    "@=X", "@X", "\\", '"', "'", "#", "//", "+", "=", "\u3000", "é", "\x0b", "\x1c", "\r", "executable = x",
    'arguments = "\'a"', "\t", " ", " ", "\n", "\n", "\n", "in.dag", "../x", "flow.dag",
]  # fmt: skip


@given(parts=st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=3), max_size=40), joined=st.sampled_from(["", " "]))
def test_any_text_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, parts: list[str], joined: str) -> None:
    text = joined.join(parts)
    folder = tmp_path_factory.getbasetemp() / "fuzz"
    folder.mkdir(exist_ok=True)
    (folder / "in.dag").write_text("JOB a x\nJOB i y\nPIN_IN a 1\nPIN_OUT i 1\n")
    (folder / "flow.dag").write_bytes(text.encode("utf-8", "replace"))
    assert "\n" not in refusal(lambda: dagman.parse(text))

    def plan() -> None:
        flow = formats.read(folder / "flow.dag")
        formats.write_priorities(flow, flow.dag.tasks, folder / "prio.dag")
        assert formats.read(folder / "prio.dag").dag == flow.dag

    told = refusal(plan)
    assert not told or str(folder) in told or "DAGMan" in told


@given(cut=st.integers(0, 400), size=st.integers(0, 5), patch=st.text(max_size=5))
def test_damaged_files_are_read_or_refused(cut: int, size: int, patch: str) -> None:
    text = "".join(f"JOB j{i} s.sub\n" for i in range(8)) + 'JOB k {\n executable = /bin/true\n}\n# x\nVARS k a="b c"\n'
    text += "PARENT j0 j1 CHILD j2 \\\n j3\nPARENT j4 CHILD j5\nPRIORITY j3 5\nCATEGORY ALL_NODES k\nDONE j7\n"
    told = refusal(lambda: dict(dagman.parse(text[:cut] + patch + text[cut + size :]).details))
    assert "\n" not in told
