"""The server's rules under any order of moves: what is done stays done, and nothing that was acknowledged is lost."""

import os
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from eligo.stores.service_sql import ServiceStore
from eligo.stores.service_sqlite import SqliteServiceStore
from service_world import MOVES, World

#: how many moves, for those who have time
STEPS = int(os.environ.get("ELIGO_MACHINE_STEPS", "6000"))
EPISODE = 200
number = st.integers(0, 999)


def _rule(name: str) -> Callable[..., None]:
    def move(self: "ServiceMachine", a: int, b: int, c: int) -> None:
        getattr(self.world, name)(a, b, c)

    move.__name__ = name
    return rule(a=number, b=number, c=number)(move)


class ServiceMachine(RuleBasedStateMachine):
    """Chooses the moves so that the shortest story that goes wrong is told."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()

    for _name in sorted(set(MOVES)):
        locals()[_name] = _rule(_name)

    @invariant()
    def holds(self) -> None:
        self.world.check()

    def teardown(self) -> None:
        self.world.finish_all()


TestService = ServiceMachine.TestCase
TestService.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)


@pytest.mark.parametrize("seed", range(max(1, STEPS // EPISODE // 100)))
def test_long_stories(seed: int) -> None:
    """A hundred stories each, or as many as fit."""
    for story in range(min(100, max(1, STEPS // EPISODE))):
        play(100 * seed + story)


@pytest.mark.parametrize("story", range(3))
def test_a_file_keeps_what_dictionaries_keep(tmp_path: Path, story: int) -> None:
    file = SqliteServiceStore(tmp_path / "server.db")
    store = play(story, file).scene.store
    for workflow in store.rows:
        for ask in ("leases", "last_number", "upshot", "moves"):
            assert getattr(file, ask)(workflow) == getattr(store, ask)(workflow), ask
        assert list(file.outcomes(workflow)) == list(store.outcomes(workflow))
        assert sorted(file.accepted(workflow)) == sorted(store.accepted(workflow))
        assert sorted(file.files(workflow)) == sorted(store.files(workflow))
    assert set(file.clients()) == set(store.clients())
    file.close()


def play(story: int, *twins: ServiceStore) -> World:
    """One story; its number tells it again."""
    random, world = Random(story), World(*twins)
    try:
        for _ in range(EPISODE):
            getattr(world, random.choice(MOVES))(*(random.randrange(1000) for _ in range(3)))
            world.check()
        world.finish_all()
        return world
    except Exception as error:
        error.add_note(f"story {story}")
        raise
