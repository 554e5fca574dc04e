"""Names that a format cannot hold: refused, or changed by rule and told."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eligo import formats
from eligo.cli import run
from eligo.dag import Dag
from eligo.errors import FormatError, InputError
from eligo.formats.shared.names import fitted, rename_tasks
from eligo.workflow import Task, Workflow

RENAMING = sorted(name for name in formats.MODULES if hasattr(formats.module(name), "fitted"))
odd = st.sampled_from(
    ["two words", "two+words", "two_words", "a'b", 'a"b', "parent", "Child", "", "_", "_2", "é", "x\\"]
)
odd |= st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=5)


def test_every_sign_that_cannot_be_held_becomes_a_line_and_numbers_part_those_that_agree() -> None:
    flow = Workflow(Dag.from_arcs([("a b", "a+b"), ("a+b", "a_b_2")], ["a b", "a+b", "a.b", "a_b_2", "c"]))
    changed, old = rename_tasks(flow, lambda name: fitted(name, "0-9A-Za-z_"))
    assert changed.dag.tasks == ("a_b", "a_b_3", "a_b_4", "a_b_2", "c")  # a_b_2 fits and stays
    assert old == {"a_b": "a b", "a_b_3": "a+b", "a_b_4": "a.b"}
    assert list(changed.dag.arcs()) == [("a_b", "a_b_3"), ("a_b_3", "a_b_2")]


def test_what_fits_stays_the_object_that_it_is() -> None:
    flow = Workflow(Dag.from_arcs([("a", "b")]))
    assert rename_tasks(flow, str)[0] is flow


def test_many_names_that_agree_take_no_longer() -> None:
    flow = Workflow(Dag.from_arcs([], ["+" * n for n in range(1, 4)] + [f"{n}+" for n in range(3)]))
    changed, old = rename_tasks(flow, lambda name: "x")
    assert changed.dag.tasks == ("x", "x_2", "x_3", "x_4", "x_5", "x_6")
    assert len(old) == 6


@pytest.mark.parametrize("format", RENAMING)
@given(ordered=st.lists(odd, min_size=1, max_size=6, unique=True), data=st.data())
def test_what_is_renamed_is_read_back(format: str, ordered: list[str], data: st.DataObject) -> None:
    pairs = [(a, b) for i, a in enumerate(ordered) for b in ordered[i + 1 :]]
    chosen = data.draw(st.lists(st.sampled_from(pairs))) if pairs else []
    details = {name: Task(name=name, seconds=1.0, command="ls") for name in ordered[::2]}
    flow = Workflow(Dag.from_arcs(chosen, ordered), details)
    text = formats.generate(flow, format, names="change")
    again = formats.parse(text, format)
    changed, old = rename_tasks(flow, formats.module(format).fitted)
    assert set(again.dag.arcs()) == set(changed.dag.arcs())
    assert set(again.dag.tasks) == set(changed.dag.tasks)
    assert [old.get(name, name) for name in changed.dag.tasks] == ordered
    if old:
        with pytest.raises(FormatError):
            formats.generate(flow, format)
    else:
        assert formats.generate(flow, format) == text


FLOW = Workflow(Dag.from_arcs([("do it+35", "b")]), {"do it+35": Task(name="do it+35", command="ls", seconds=2.0)})

#: how each format keeps the old name
KEPT = {
    "dagman": "# do_it_35 was 'do it+35'\n",
    "pegasus": '"nodeLabel": "do it+35"',
    "dax": 'node-label="do it+35"',
    "wfcommons": '"name": "do it+35", "id": "do_it_35"',
}


@pytest.mark.parametrize("format", KEPT)
def test_the_old_name_is_kept_where_there_is_room(format: str, tmp_path: Path) -> None:
    assert KEPT[format] in formats.generate(FLOW, format, names="change")
    assert formats.write(FLOW, tmp_path / "out", format, names="change") == {"do_it_35": "do it+35"}
    assert formats.parse((tmp_path / "out").read_text(), format).task("do_it_35").seconds in {2.0, None}


def test_only_two_ways() -> None:
    with pytest.raises(InputError, match="names must be 'keep' or 'change', got 'lose'"):
        formats.generate(FLOW, "json", names="lose")


def test_the_command_tells_what_it_renamed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "f.arcs", tmp_path / "f.dag"
    source.write_text('"rule 22" "S1+A"\n"S1+A" c\n')
    assert run(["convert", str(source), str(out)]) == 0
    assert capsys.readouterr().err == (
        "eligo: renamed 2 tasks, because dagman does not allow the names: 'rule 22' is now 'rule_22'\n"
        f"eligo: wrote {out}\n"
    )
    assert formats.read(out).dag.tasks == ("rule_22", "S1_A", "c")
    other = tmp_path / "g.dag"
    assert run(["convert", str(source), str(other), "--names", "keep"]) == 2
    assert capsys.readouterr().err == (
        f"eligo: {other}: DAGMan cannot represent the task name 'rule 22': no blanks, quotes or +, no final backslash:"
        " `eligo convert` changes such names\n"
    )
    assert not other.exists()


# Names of files


def written_by(file: str, *tasks: str) -> Workflow:
    """A workflow whose first task writes a file that the others read."""
    details = {name: Task(name=name, command="x", inputs=(file,), outputs=(f"{name}.out",)) for name in tasks[1:]}
    first = Task(name=tasks[0], command="x", outputs=(file, "other"), seconds=1)
    return Workflow(
        Dag.from_arcs([(tasks[0], name) for name in tasks[1:]]), {tasks[0]: first, **details}, file_sizes={file: 3}
    )


@pytest.mark.parametrize(
    ("format", "file"), [("wfcommons", "my file"), ("wfcommons", "é.txt"), ("makeflow", "a\nb"), ("ninja", "a\nb")]
)
def test_a_file_whose_name_cannot_be_held_is_left_out_and_its_arcs_stay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], format: str, file: str
) -> None:
    source, out = tmp_path / "in.json", tmp_path / "out"
    formats.write(written_by(file, "t", "u"), source)
    assert run(["convert", str(source), str(out), "--to", format]) == 0
    flow = formats.read(out, format)
    assert list(flow.dag.arcs()) == [("t", "u")]
    assert not {file} & {name for task in flow.details.values() for name in (*task.inputs, *task.outputs)}
    assert "other" in flow.task("t").outputs
    assert f"the names of 1 file, for example {file!r} (omitted)" in capsys.readouterr().err
    assert run(["convert", str(source), str(out), "--to", format, "--names", "keep", "--force"]) == 2
    told = capsys.readouterr().err
    assert ascii(file)[1:-1] in told or file in told
    assert "`eligo convert` omits such files" in told


@pytest.mark.parametrize(
    "file", ["a b", "a:b", "a$b", "a=b", "a#b", 'a"b', "a\\b", "a|b", "@a", "-a", "é", "a,b", "a;b"]
)
@pytest.mark.parametrize("format", ["makeflow", "ninja", "jx", "dax", "pegasus", "graphml", "yaml", "json"])
def test_a_name_of_a_file_that_can_be_quoted_is_kept(format: str, file: str) -> None:
    flow = written_by(file, "t", "u")
    again = formats.parse(formats.generate(flow, format, names="change"), format)
    assert again.task("t").outputs == (file, "other")
    assert again.task("u").inputs == (file,)
    assert not [what for what in formats.lost(flow, format) if "left out" in what]


def test_a_path_that_ninja_would_shorten_is_shortened_for_it() -> None:
    flow = written_by("./sub//x", "t", "u")
    again = formats.parse(formats.generate(flow, "ninja", names="change"), "ninja")
    assert again.task("t").outputs == ("sub/x", "other")
    assert list(again.dag.arcs()) == [("t", "u")]
    with pytest.raises(FormatError, match="which ninja would read as 'sub/x'"):
        formats.generate(flow, "ninja")
