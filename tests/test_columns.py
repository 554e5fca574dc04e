"""Texts and tables in bulk: the fast ways agree with the plain ones."""

import json
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from eligo.dag import Dag
from eligo.errors import FormatError, InputError
from eligo.formats import arcs, json_format, wfcommons
from eligo.formats.shared.document import Columns, Described
from eligo.workflow import Task


def result(make: Callable[[], Dag]) -> Dag | str:
    """The dag, or why there is none."""
    try:
        return make()
    except InputError as error:
        return str(error)


# Words


@given(text=st.text('ab->#" \t\r\n1\x7f\x0bé', max_size=30))
@example(text="a -> b\n->\n")
@example(text="-> a\n")
@example(text="a ->")
@example(text="a ->\nb")
@example(text="abcdefgh1 abcdefgh2\nabcdefgh1\n")
def test_words_in_bulk_are_what_a_reader_of_lines_finds(text: str) -> None:
    """Where the text is plain, the same dag; where it is not, none, and the slow way says why."""
    found = arcs.numbered_pairs(text)
    if found is None:
        return
    names, tails, heads = found
    slow = result(lambda: arcs._line_by_line(text))
    assert result(lambda: Dag.from_arrays(len(names), tails, heads, names)) == slow


@pytest.mark.parametrize("text", ["", "\n", "a", "a b", "a b\r\n", " a\tb \n\nc", "a -> b\nc", "x" * 256 + " b"])
def test_plain_texts(text: str) -> None:
    assert arcs.numbered_pairs(text) is not None


@pytest.mark.parametrize(
    "text", ["a b c", 'a "b"', "a # b", "é", "a->b", "-> a", "a ->", "a -> -> b", "a\x0bb", "x" * 257]
)
def test_texts_that_are_not_plain(text: str) -> None:
    assert arcs.numbered_pairs(text) is None


@given(keys=st.lists(st.integers(0, 15)), spread=st.sampled_from([1, 2**32, 2**60]))
def test_the_first_place_of_each_key(keys: list[int], spread: int) -> None:
    found = arcs._first_equal(np.array([key * spread % 2**64 for key in keys], np.uint64))
    assert found is not None
    assert found.tolist() == [keys.index(key) for key in keys]


def test_words_that_are_made_to_look_alike_take_the_slow_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Different words of one key are noticed."""
    monkeypatch.setattr(arcs, "_ODD", np.uint64(0))
    assert arcs.numbered_pairs("abcdefghi abcdefghj\n") is None
    assert list(arcs.parse("abcdefghi abcdefghj\n").dag.arcs()) == [("abcdefghi", "abcdefghj")]


def test_comments_at_the_top_do_not_make_a_text_slow() -> None:
    text = "# made by hand\n\n  # twice\n" + "".join(f"n{i} n{i + 1}\n" for i in range(1000))
    assert arcs._HEAD.match(text).end() == text.index("n0")  # type: ignore[union-attr]
    assert arcs.parse(text).dag.arc_count == 1000


# Tables

rows = st.lists(st.dictionaries(st.sampled_from("abcx"), st.none() | st.integers(), max_size=4), max_size=5)


@given(rows=rows)
def test_columns_are_rows_on_their_side(rows: list[dict[str, Any]]) -> None:
    table = Columns(rows, "abc")
    for key in "abc":
        assert table.full_column(key) == [row.get(key) for row in rows]
        assert table[key] is not None or not any(key in row for row in rows)


def test_rows_move() -> None:
    assert Columns([{"a": 1}, {"a": 2}], "a").place([2, 0], 3)["a"] == [2, None, 1]


def test_details_are_made_when_asked_for() -> None:
    described = Described(Dag.from_arcs([], "abc"), {"seconds": [1.0, None, 0.0], "category": None})
    assert dict(described) == {"a": Task(name="a", seconds=1.0), "c": Task(name="c", seconds=0.0)}
    assert len(described) == 2
    assert "b" not in described
    assert described.get("x") is None
    assert not Described(Dag.from_arcs([], "abc"), {})
    assert repr(described) == "Described(2 tasks)"


@pytest.mark.parametrize("amount", [-1, float("inf"), float("nan")])
def test_amounts_are_checked_at_once(amount: float) -> None:
    with pytest.raises(InputError, match=r"^task 'b': cores must be non-negative and finite, got .*$"):
        Described(Dag.from_arcs([], "ab"), {"cores": [None, amount]})


# Speed and room, with a margin for busy machines

N = 20_000


def native() -> str:
    tasks = [
        {"name": f"task_{i}", "after": [f"task_{i // 2}"] * (i > 0), "run": f"do {i}", "seconds": i / 7}
        for i in range(N)
    ]
    return json.dumps({"tasks": tasks})


def wfformat() -> str:
    tasks: list[dict[str, Any]] = [
        {"name": f"kind{i % 7}", "id": f"task_{i:08}", "parents": [f"task_{i // 2:08}"] * (i > 0),
         "children": [f"task_{j:08}" for j in (2 * i, 2 * i + 1) if i < j < N]}
        for i in range(N)
    ]  # fmt: skip
    runs = [{"id": f"task_{i:08}", "runtimeInSeconds": i / 7} for i in range(N)]
    return json.dumps({"workflow": {"specification": {"tasks": tasks}, "execution": {"tasks": runs}}})


@pytest.mark.parametrize(
    ("text", "parse"), [(native(), json_format.parse), (wfformat(), wfcommons.parse)], ids=["json", "wf"]
)
def test_large_documents_are_read_soon_and_in_little_room(text: str, parse: Any) -> None:
    start = time.process_time()
    assert len(parse(text)) == N
    assert time.process_time() - start < 60  # it ends; how soon is for the benchmarks
    tracemalloc.start()
    parse(text)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 9 * len(text)


def test_large_arc_lists_are_read_soon() -> None:
    text = "".join(f"job_{i // 2} -> job_{i}\n" for i in range(1, 300_000))
    start = time.process_time()
    assert arcs.parse(text).dag.arc_count == 299_999
    assert time.process_time() - start < 60  # it ends; how soon is for the benchmarks


@pytest.mark.parametrize(
    ("text", "tasks", "count"),
    [
        ("a b {}\nb c {}\n", ("a", "b", "c"), "2 arcs"),
        ("# by networkx\n1 2 {'weight': 3, 'x': [1, 2]}\nlonely\n", ("1", "2", "lonely"), "1 arc"),
        ("1 2 3.5\r\n2 4 -1e5\r\n", ("1", "2", "4"), "2 arcs"),
    ],
)
def test_what_networkx_writes_after_an_arc_is_no_task(text: str, tasks: tuple[str, ...], count: str) -> None:
    flow = arcs.parse(text)
    assert flow.dag.tasks == tasks
    assert flow.origin is not None
    assert flow.origin.remarks == (f"ignored data after the names of {count}",)


@pytest.mark.parametrize("text", ["a b 3\nb c\n", "a b 3\nb -> c\n", "a b c\n", "a -> b 3\n", "a b {\n", 'a "b" 3\n'])
def test_a_third_word_that_is_no_data_is_refused(text: str) -> None:
    with pytest.raises(FormatError, match="line 1: a line must be a parent and a child, or one task"):
        arcs.parse(text)
