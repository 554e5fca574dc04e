"""Profiles by the one-pass formula against the game played step by step."""

import numpy as np
import pytest

import eligo
from conftest import random_small_dag
from eligo.dag import Dag
from eligo.errors import DuplicateTaskError, ScheduleError, UnknownTaskError
from eligo.execution import Execution


def played(dag: Dag, rng: np.random.Generator) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """A random schedule and the number of eligible tasks seen at each step of playing it."""
    game = Execution(dag)
    seen = [len(game.eligible)]
    while not game.finished:
        game.execute(str(rng.choice(list(game.eligible))))
        seen.append(len(game.eligible))
    return tuple(game.executed), tuple(seen)


def test_the_profile_is_what_the_game_shows() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        dag = random_small_dag(rng)
        order, seen = played(dag, rng)
        assert eligo.profile(dag, order) == seen
        assert eligo.area(dag, order) == sum(seen)
        assert eligo.normalised_area(dag, order) == sum(seen) / len(dag)
        sources = len(dag.sources)
        assert eligo.cumulative_profile(dag, order) == tuple(e + t - sources for t, e in enumerate(seen))


def test_an_order_against_an_arc_names_the_pair(diamond: Dag) -> None:
    with pytest.raises(ScheduleError, match="'b' comes before 'a'") as caught:
        eligo.profile(diamond, ["b", "a", "d", "c"])
    assert (caught.value.task, caught.value.parent) == ("b", "a")


def test_an_order_must_have_every_task_once(diamond: Dag) -> None:
    with pytest.raises(ScheduleError, match="'d' is missing"):
        eligo.profile(diamond, ["a", "b", "c"])
    with pytest.raises(DuplicateTaskError, match="duplicate task 'b'"):
        eligo.profile(diamond, ["a", "b", "b", "d"])
    with pytest.raises(UnknownTaskError, match="no task named 'x'"):
        eligo.profile(diamond, ["a", "b", "c", "x"])


def test_numbers_may_stand_for_names(diamond: Dag) -> None:
    assert eligo.profile(diamond, diamond.order) == eligo.profile(diamond, diamond.named(diamond.order))


@pytest.mark.parametrize("numbers", [[0, 1, 1, 3], [0, 1, 2, 4], [0, 1, 2, -1], [0, 1, 2, 3, 3]])
def test_numbers_are_checked_like_names(diamond: Dag, numbers: list[int]) -> None:
    with pytest.raises((ScheduleError, DuplicateTaskError, UnknownTaskError)):
        eligo.profile(diamond, np.array(numbers, np.int32))


def test_no_tasks_is_a_schedule_of_nothing() -> None:
    empty = Dag.from_arcs([])
    assert eligo.profile(empty, []) == (0,)
    assert eligo.normalised_area(empty, []) == 0
