"""Tables of arcs: what spreadsheets and scripts write is read, and what is written is read back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eligo.dag import Dag
from eligo.errors import CycleError, FormatError, InputError
from eligo.formats.csv_format import HEADERS, generate, parse, sniff
from eligo.workflow import Workflow
from format_cases import accepts_or_refuses

names = st.sampled_from([" ", " x", "x ", ",", ";", "a;b", '"', '""', "parent", "child", "é", "\u2028", "#", "a b"])
names |= st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=6)


KNOWN = " or ".join(",".join(pair) for pair in HEADERS)


def arcs(text: str) -> set[tuple[str, str]]:
    return set(parse(text).dag.arcs())


@given(ordered=st.lists(names, max_size=6, unique=True), data=st.data())
def test_what_is_written_is_read_back(ordered: list[str], data: st.DataObject) -> None:
    pairs = [(a, b) for i, a in enumerate(ordered) for b in ordered[i + 1 :]]
    chosen = data.draw(st.lists(st.sampled_from(pairs))) if pairs else []
    dag = Dag.from_arcs(chosen, data.draw(st.permutations(ordered)))
    text = generate(Workflow(dag))
    assert sniff(text)
    assert parse(text).dag == dag


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
            f"a row has 3 cells, and should have a parent and a child: name the columns in a header, {KNOWN}",
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
    with pytest.raises(InputError, match="has a control character"):
        parse('"a\nb",c')


def test_a_task_without_a_name_is_not_written() -> None:
    with pytest.raises(FormatError, match="a task without a name cannot be told from an empty cell"):
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
        FormatError, match="line 1: there are no columns 'from' and 'to': there are 'Job ', 'Needs', 'why'"
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
        "the first row was read as an arc, from 'job' to 'needs', which appear nowhere else: if it is"
    )
    assert not remarks("a,b\nb,c\n")
    assert not remarks("a,b\n")
    assert not remarks("parent,child\na,b\nc,d\n")
