"""Faults of every kind on a server, in short; tests/faults/test_server_kills.py has the long forms. `-s` prints the table."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import abuse_scenarios as abuse
import fault_scenarios as play
import hardship_scenarios as hard
import poor_network as poor
from eligo.server.http.handlers import Api
from fault_scenarios import Size
from server_faults import tell
from wicked_scenario import wicked_kills


def test_kills(tmp_path: Path) -> None:
    tell(play.kills(tmp_path, Size(tasks=400, clients=20, wide=40, nap=0.15, kills=4, workers=1), (0.1, 0.8)))


def test_kills_while_it_comes_back(tmp_path: Path) -> None:
    tell(play.kills(tmp_path, Size(tasks=60, clients=6, wide=20, nap=0.1, kills=1, seed=2), (0.1, 0.3), nested=3))


def test_kills_among_wicked_clients(tmp_path: Path) -> None:
    tell(wicked_kills(tmp_path, Size(tasks=300, clients=8, kills=3), (0.1, 0.8), 20.0))


def test_lost_calls(tmp_path: Path) -> None:
    tell(play.losses(tmp_path, Size(tasks=200, clients=10, wide=40), 0.25))


def test_dying_clients(tmp_path: Path) -> None:
    tell(play.deaths(tmp_path, Size(tasks=60, clients=6, wide=30), 0.2))


def test_sleeping_clients(tmp_path: Path) -> None:
    tell(play.sleepers(tmp_path, 8))


def test_a_client_that_hangs(tmp_path: Path) -> None:
    tell(play.hanging(tmp_path))


def test_half_a_fat_task(tmp_path: Path) -> None:
    tell(play.half_way(tmp_path))


def test_a_black_hole(tmp_path: Path) -> None:
    tell(play.black_hole(tmp_path, 150))


def test_a_poisonous_task(tmp_path: Path) -> None:
    tell(play.poison(tmp_path))


def test_a_task_that_kills_its_client_again_and_again(tmp_path: Path) -> None:
    tell(play.deadly_task(tmp_path))


def test_liars(tmp_path: Path) -> None:
    tell(play.liars(tmp_path, 120))


def test_duplicates_and_conflicts(tmp_path: Path) -> None:
    tell(play.duplicates(tmp_path))


def test_a_full_disk(tmp_path: Path) -> None:
    tell(hard.full_disk(tmp_path, Size(tasks=300, clients=8, wide=50, nap=0.05), 0.5))


def test_a_locked_store(tmp_path: Path) -> None:
    tell(hard.locked_store(tmp_path, Size(tasks=200, clients=8, wide=50, nap=0.05), 1.0))


def test_a_torn_store(tmp_path: Path) -> None:
    tell(hard.torn_store(tmp_path, Size(tasks=100, clients=8, wide=50), 30))


def test_a_second_server(tmp_path: Path) -> None:
    tell(hard.second_server(tmp_path))


def test_clocks(tmp_path: Path) -> None:
    tell(hard.clocks(tmp_path, Size(tasks=40, clients=4, wide=20, nap=0.1)))


def test_a_herd(tmp_path: Path) -> None:
    tell(hard.herd(tmp_path, 200))


def test_drains(tmp_path: Path) -> None:
    tell(hard.drains(tmp_path))


def test_drips(tmp_path: Path) -> None:
    tell(abuse.drips(tmp_path, 200, 1.0, wait=False))


def test_bodies(tmp_path: Path) -> None:
    tell(abuse.bodies(tmp_path))


def test_malformed_requests(tmp_path: Path) -> None:
    tell(abuse.malformed(tmp_path, 1500))


def test_strict_json(tmp_path: Path) -> None:
    tell(abuse.strict_json(tmp_path))


def test_bombs(tmp_path: Path) -> None:
    tell(abuse.bombs(tmp_path))


def test_hostile_names(tmp_path: Path) -> None:
    tell(abuse.names(tmp_path))


def test_broken_uploads(tmp_path: Path) -> None:
    tell(abuse.broken_uploads(tmp_path))


def test_who_only_looks_is_told_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A workflow that was said to be done must be done after a kill, too."""

    async def state_of(self: Api, workflow: str) -> str:
        return f"{workflow} is done"

    async def play() -> None:
        kept = asyncio.get_running_loop().create_future()
        desk: Any = SimpleNamespace(keeper=SimpleNamespace(kept=lambda: kept))
        call: Any = SimpleNamespace(parts={"workflow": "w-1"})
        looking = asyncio.ensure_future(Api(desk, cast(Any, None), cast(Any, None)).workflow(call))
        await asyncio.sleep(0.01)
        assert not looking.done()
        kept.set_result(None)
        assert str(await looking) == "w-1 is done"

    monkeypatch.setattr(Api, "state_of", state_of)
    asyncio.run(play())


def test_packets_that_are_lost(tmp_path: Path) -> None:
    tell(poor.lossy(tmp_path, Size(tasks=20, clients=5, wide=10), 0.1, 0.02))
