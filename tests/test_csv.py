"""Tables of arcs: what spreadsheets and scripts write is read, and what is written is read back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eligo.dag import Dag
from eligo.errors import CycleError, FormatError, InputError
from eligo.formats import detect
from eligo.formats.csv_format import HEADERS, generate, parse, sniff
from eligo.workflow import Workflow
from format_cases import accepts_or_refuses, dags

names = st.sampled_from([" ", " x", "x ", ",", ";", "a;b", '"', '""', "parent", "child", "é", "\u2028", "#", "a b"])
names |= st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=6)


KNOWN = " or ".join(",".join(pair) for pair in HEADERS)


def arcs(text: str) -> set[tuple[str, str]]:
    return set(parse(text).dag.arcs())


@given(dag=dags(names))
def test_what_is_written_is_read_back(dag: Dag) -> None:
    text = generate(Workflow(dag))
    assert sniff(text)
    assert parse(text).dag == dag


def test_an_arc_that_equals_the_usual_header_is_kept() -> None:
    dag = Dag.from_arcs([("parent", "child"), ("child", "end")])
    assert parse(generate(Workflow(dag))).dag == dag


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\nb,c\n", {("a", "b"), ("b", "c")}),
        ("parent,child\r\na,b\r\n", {("a", "b")}),
        ("Source;TARGET\na;b", {("a", "b")}),
        ("from\tto\na b\tc,d", {("a b", "c,d")}),
        ("child,parent\nb,a", {("a", "b")}),
        ("weight,tail,note,head\n1,a,x,b\n2,b,y,c\n", {("a", "b"), ("b", "c")}),
        ('"two, words","say ""hi"""\n', {("two, words", 'say "hi"')}),
        ("a, b\n", {("a", "b")}),
        ('"a;b",c\n', {("a;b", "c")}),
        ("lonely\na;b\n", {("a", "b")}),
        ("a,\n,b\n,,\n\n", set()),
    ],
)
def test_tables_in_all_their_spellings(text: str, expected: set[tuple[str, str]]) -> None:
    assert arcs(text) == expected


def test_tasks_alone_and_the_order_of_appearance() -> None:
    flow = parse("parent,child\nz,\ny,x\n,w\nv\n")
    assert flow.dag.tasks == ("z", "y", "x", "w", "v")
    assert flow.origin is not None
    assert flow.origin.format == "csv"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (
            "a,b\na,b,c",
            2,
            f"a row must have a parent and a child, got 3 cells: name the columns in a header, {KNOWN}",
        ),
        ('a,b\n"c"d,e', 2, "not a valid table: ',' expected after '\"'"),
        ('a,b\n"c,e', 2, "not a valid table: unexpected end of data"),
        ("a,b\n" + "x" * 200_000, 2, "not a valid table: field larger than field limit (131072)"),
    ],
)
def test_what_is_wrong_is_refused(text: str, line: int, message: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse(text)
    assert (caught.value.line, caught.value.message) == (line, message)


def test_cycles_and_control_characters() -> None:
    with pytest.raises(CycleError):
        parse("a,b\nb,a")
    with pytest.raises(InputError, match="contains a control character"):
        parse('"a\nb",c')


def test_a_task_without_a_name_is_not_written() -> None:
    with pytest.raises(FormatError, match="CSV cannot represent a task with an empty name"):
        generate(Workflow(Dag.from_arcs([("", "b")])))


@given(text=st.text('ab,;\t"\r\n parentchild', max_size=30))
def test_any_text(text: str) -> None:
    accepts_or_refuses(parse, text)


@pytest.mark.parametrize("text", ["a,b", "parental,child", "a b", "{}", "digraph {}", "parent: child"])
def test_without_a_header_it_looks_like_anything(text: str) -> None:
    assert not sniff(text)


def test_columns_are_chosen_by_their_titles() -> None:
    table = "Job ;Needs;why\nb;a;x\nc;b;y\n;;z\n"
    assert set(parse(table, ("needs", "job")).dag.arcs()) == {("a", "b"), ("b", "c")}
    with pytest.raises(
        FormatError, match="line 1: no columns 'from' and 'to' in the header, which has 'Job ', 'Needs', 'why'"
    ):
        parse(table, ("from", "to"))
    with pytest.raises(FormatError, match="name the columns in a header, parent,child or source,target or ") as caught:
        parse(table)
    assert caught.value.remedy == "columns"


def test_a_first_row_that_may_be_a_header_is_told() -> None:
    def remarks(text: str) -> tuple[str, ...]:
        origin = parse(text).origin
        assert origin is not None
        return origin.remarks

    (told,) = remarks("job,needs\na,b\nb,c\n")
    assert told.startswith(
        "the first row was read as an arc, from 'job' to 'needs', which appear nowhere else; if it is"
    )
    assert not remarks("a,b\nb,c\n")
    assert not remarks("a,b\n")
    assert not remarks("parent,child\na,b\nc,d\n")


@pytest.mark.parametrize(
    "text",
    [
        "# by hand\n# twice, even\nparent,child\na,b\n",
        "\n  \n\t\nparent,child\na,b\n",
        "#!x\nparent\tchild\na\tb\n",
        "# by hand\na,b\n",
        "sep=;\r\nparent;child\r\na;b\r\n",
        "SEP=,\na,b\n",
        "parent,child\na,b\nparent,child\na,b\n",
    ],
)
def test_comments_and_blank_lines_at_the_top_and_a_header_in_between_are_no_tasks(text: str) -> None:
    assert list(parse(text).dag.arcs()) == [("a", "b")]
    assert parse(text).dag.tasks == ("a", "b")


def test_a_name_may_begin_as_a_comment_does() -> None:
    assert list(parse("#1,b\n#2,b\n").dag.arcs()) == [("#1", "b"), ("#2", "b")]
    assert list(parse("#1\tb\n#2\tb\n").dag.arcs()) == [("#1", "b"), ("#2", "b")]
    assert parse("parent,child\n# lonely\n").dag.tasks == ("# lonely",)


def test_columns_that_are_not_read_and_headers_that_are_repeated_are_told() -> None:
    origin = parse("weight,parent,child,\n3,a,b,\nweight,parent,child,\n").origin
    assert origin is not None
    assert origin.remarks == (
        "ignored data: weight (column)",
        "skipped rows that repeat the header: 1",
    )


@pytest.mark.parametrize("text", ["a b\nb c\n", "a -> b\n"])
def test_a_list_of_arcs_is_no_table(text: str) -> None:
    with pytest.raises(FormatError, match="no row has two cells, so this is not a table of arcs"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "format"),
    [
        ("JOB a a.sub\nJOB b b.sub\nPARENT a CHILD b\n", "dagman"),
        ("tasks:\n- {name: a, run: x}\n", "yaml"),
        ("rule c\n  command = x, y\nbuild a: c\n", "ninja"),
        ('pegasus: "5"\njobs:\n- {id: a, name: x}\n', "pegasus"),
        ("two words,b\nname: c,d\n", "csv"),
    ],
)
def test_what_looks_like_another_format_is_no_table(text: str, format: str) -> None:
    assert detect("x.csv", text) == format
