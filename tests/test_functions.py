"""Python functions as tasks: what a run takes, what it gives back, and what it keeps."""

import operator
from typing import Any

import dask
import pytest

import eligo
from eligo.errors import InputError, UnknownTaskError


def five() -> list[int]:
    return [0, 1, 2, 3, 4]


# Which graphs have functions


def test_a_misspelt_parent_is_an_error_and_changes_no_other_task() -> None:
    table: dict[str, Any] = {"x": (five, []), "n": (len, ["x"])}
    assert eligo.run(table).values["n"] == 5
    with pytest.raises(UnknownTaskError, match="no task named 'tpyo', which task 'oops' needs"):
        eligo.run({**table, "oops": (len, ["tpyo"])})
    with pytest.raises(InputError, match=r"write \(five, \[\]\)"):
        eligo.run({**table, "bare": five})


def test_dask_graphs_of_every_kind_are_run() -> None:
    legacy = {"x": (five,), "n": (len, "x"), "one": (len, ["x"]), "sum": (sum, [(len, "x"), "n"])}
    result = eligo.run(eligo.from_dask(legacy))
    assert (result.values["sum"], result.values["one"]) == (10, 1)
    total = dask.delayed(sum)([dask.delayed(five)(), dask.delayed(five)()][0])  # type: ignore[attr-defined]
    for graph in (total, total.__dask_graph__(), dict(eligo.from_dask(total).nodes)):
        assert eligo.run(graph).values[total.key] == 10


def test_a_graph_with_functions_of_its_own_takes_no_other() -> None:
    for graph in ({"x": (five, [])}, eligo.from_dask({"x": (five,)})):
        with pytest.raises(InputError, match="have functions of their own: leave out the function for every task"):
            eligo.run(graph, operator.neg)
