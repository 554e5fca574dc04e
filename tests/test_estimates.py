"""How long tasks are believed to take, and what follows from it for the order and the rules."""

from dataclasses import replace

import numpy as np
import pytest

import eligo
from eligo.allocating import PRUDENT
from eligo.dag import Dag
from eligo.errors import InputError
from eligo.estimates import estimate, with_records, without_seconds
from eligo.policies import policy
from eligo.workflow import Task, Timed, Workflow

NAMES = ("fit_1", "fit_2", "plot_1", "plot_2", "report")
DAG = Dag.from_parents(
    {"fit_1": [], "fit_2": [], "plot_1": ["fit_1"], "plot_2": ["fit_2"], "report": ["plot_1", "plot_2"]}
)


def flow(**seconds: float) -> Workflow:
    return Workflow(DAG, {name: Task(name=name, seconds=time) for name, time in seconds.items()})


def test_nothing_is_known() -> None:
    found = estimate(Workflow(DAG))
    assert (found.level, found.seconds.tolist(), found.own.tolist()) == ("nothing", [1.0] * 5, [False] * 5)
    assert estimate(flow(fit_1=0.0, fit_2=0.0, plot_1=0.0, plot_2=0.0, report=0.0)).level == "nothing"


def test_all_seconds_are_in_the_file() -> None:
    found = estimate(flow(fit_1=1.0, fit_2=2.0, plot_1=3.0, plot_2=4.0, report=0.0))
    assert (found.level, found.seconds.tolist()) == ("seconds", [1.0, 2.0, 3.0, 4.0, 0.0])
    assert estimate(Workflow(Dag.from_arcs([]))).level == "seconds"


def test_what_is_not_known_takes_the_mean_of_its_kind_or_of_the_kinds() -> None:
    found = estimate(flow(fit_1=2.0, plot_1=6.0))
    assert (found.level, found.seconds.tolist(), found.by_kind) == ("kinds", [2.0, 2.0, 6.0, 6.0, 4.0], 2)
    assert found.own.tolist() == [True, False, True, False, False]


def test_the_history_goes_before_the_file_and_kinds_come_from_it() -> None:
    past = [
        Timed("fit_1", None, 10.0),
        Timed("fit_1", None, 20.0),
        Timed(None, "plot", 7.0),
        Timed(None, "other", 99.0),
    ]
    found = estimate(with_records(flow(fit_1=1.0, report=3.0), past))
    assert found.seconds.tolist() == [15.0, 15.0, 7.0, 7.0, 3.0]
    assert (found.recalled, found.by_kind, found.own.sum()) == (1, 3, 2)


def test_a_name_that_another_kind_had_is_not_this_task() -> None:
    """Two runs of one application number their tasks alike: ID7 is a fit in one and a plot in the other."""
    named = Dag.from_arcs([("ID6", "ID7")])
    details = {"ID6": Task(name="ID6", category="fit"), "ID7": Task(name="ID7", category="plot")}
    past = [Timed("ID6", "fit", 3.0), Timed("ID7", "fit", 5.0)]
    found = estimate(with_records(Workflow(named, details), past))
    assert (found.level, found.seconds.tolist(), found.own.tolist()) == ("kinds", [3.0, 4.0], [True, False])
    other = [Timed("ID6", "anything", 3.0), Timed("ID7", "else", 5.0)]
    assert estimate(with_records(Workflow(named, details), other)).seconds.tolist() == [3.0, 5.0]


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf"), "3", None, True])
def test_what_is_no_length_of_time_is_refused(seconds: object) -> None:
    with pytest.raises(InputError, match=r"the seconds of 'fit_1' in the history must be"):
        with_records(Workflow(DAG), [Timed("fit_1", None, seconds)])  # type: ignore[arg-type]


def test_a_history_that_matches_nothing_changes_nothing() -> None:
    found = estimate(with_records(Workflow(DAG), [Timed("x", "y", 3.0)]))
    assert (found.level, found.seconds.tolist()) == ("nothing", [1.0] * 5)


def test_without_seconds_nothing_is_known() -> None:
    timed = with_records(flow(fit_1=2.0), [Timed("fit_2", None, 1.0)])
    assert estimate(without_seconds(timed)).level == "nothing"
    bare = Workflow(DAG)
    assert without_seconds(bare) is bare


def test_the_order_goes_by_the_longest_path_in_what_is_known() -> None:
    """Equal in tasks, where the plan decides; by seconds, and by kinds, the branch that takes longer goes first."""
    two = Dag.from_parents({"a": [], "b": [], "a_end": ["a"], "b_end": ["b"]})
    for late in "ab":
        seconds = {name: Task(name=name, seconds=9.0 if name == f"{late}_end" else 1.0) for name in two.tasks}
        assert policy("finish", Workflow(two, seconds)).order()[0] == two.number(late)
        past = [Timed(None, kind, 9.0 if kind == f"{late}_end" else 1.0) for kind in two.tasks]
        assert policy("finish", with_records(Workflow(two), past)).order()[0] == two.number(late)
        assert policy("balanced", Workflow(two, seconds)).order()[0] == 0


def test_of_twins_the_one_with_more_to_read_goes_first() -> None:
    fork = Dag.from_parents({"root": [], **{f"t{i}": ["root"] for i in range(6)}, "end": [f"t{i}" for i in range(6)]})
    sizes = {f"f{i}": size for i, size in enumerate([3, 9, 1, 9, 20, 4])}
    details = {f"t{i}": Task(name=f"t{i}", inputs=(f"f{i}",)) for i in range(6)}
    known = Workflow(fork, details, file_sizes=sizes)
    assert fork.named(policy("finish", known).order()) == ("root", "t4", "t1", "t3", "t5", "t0", "t2", "end")
    assert fork.named(policy("finish", replace(known, file_sizes={})).order())[1] == "t0"


def test_sizes_of_tasks_that_are_no_twins_change_nothing() -> None:
    details = {"fit_2": Task(name="fit_2", inputs=("big",)), "fit_1": Task(name="fit_1", inputs=("small",))}
    known = Workflow(DAG, details, file_sizes={"big": 100, "small": 1})
    assert policy("finish", known).order().tolist() == policy("finish", Workflow(DAG)).order().tolist()


def test_the_rules_for_slow_clients_know_the_times() -> None:
    whole = flow(fit_1=1.0, fit_2=1.0, plot_1=1.0, plot_2=1.0, report=16.0)
    rules = eligo.allocator("finish", whole).rules
    assert rules.long == 3.0
    assert rules.expected is not None
    assert np.array_equal(rules.expected, [1.0, 1.0, 1.0, 1.0, 16.0])
    some = eligo.allocator("finish", flow(fit_1=1.0)).rules
    assert some.long == 0.0
    assert some.expected is not None
    assert eligo.allocator("finish", Workflow(DAG)).rules is PRUDENT
    mine = eligo.Rules(slow=0.1)
    assert eligo.allocator("finish", whole, rules=mine).rules is mine
