"""Faults of every kind on a server, in short; tests/faults/test_server_kills.py has the long forms. `-s` prints the table."""

import asyncio
from collections.abc import Callable
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
from server_faults import Line, tell
from wicked_scenario import wicked_kills

#: what goes wrong, by its name
FAULTS: dict[str, Callable[[Path], Line]] = {
    "kills": lambda place: play.kills(
        place, Size(tasks=400, clients=20, wide=40, nap=0.15, kills=4, workers=1), (0.1, 0.8)
    ),
    "kills_while_it_comes_back": lambda place: play.kills(
        place, Size(tasks=60, clients=6, wide=20, nap=0.1, kills=1, seed=2), (0.1, 0.3), nested=3
    ),
    "kills_among_wicked_clients": lambda place: wicked_kills(
        place, Size(tasks=300, clients=8, kills=3), (0.1, 0.8), 20.0
    ),
    "lost_calls": lambda place: play.losses(place, Size(tasks=200, clients=10, wide=40), 0.25),
    "dying_clients": lambda place: play.deaths(place, Size(tasks=60, clients=6, wide=30), 0.2),
    "sleeping_clients": lambda place: play.sleepers(place, 8),
    "a_client_that_hangs": play.hanging,
    "half_a_fat_task": play.half_way,
    "a_black_hole": lambda place: play.black_hole(place, 150),
    "a_poisonous_task": play.poison,
    "a_task_that_kills_its_client_again_and_again": play.deadly_task,
    "liars": lambda place: play.liars(place, 120),
    "duplicates_and_conflicts": play.duplicates,
    "a_full_disk": lambda place: hard.full_disk(place, Size(tasks=300, clients=8, wide=50, nap=0.05), 0.5),
    "a_locked_store": lambda place: hard.locked_store(place, Size(tasks=200, clients=8, wide=50, nap=0.05), 1.0),
    "a_torn_store": lambda place: hard.torn_store(place, Size(tasks=100, clients=8, wide=50), 30),
    "a_second_server": hard.second_server,
    "clocks": lambda place: hard.clocks(place, Size(tasks=40, clients=4, wide=20, nap=0.1)),
    "a_herd": lambda place: hard.herd(place, 200),
    "drains": hard.drains,
    "drips": lambda place: abuse.drips(place, 200, 1.0, wait=False),
    "bodies": abuse.bodies,
    "malformed_requests": lambda place: abuse.malformed(place, 1500),
    "strict_json": abuse.strict_json,
    "bombs": abuse.bombs,
    "hostile_names": abuse.names,
    "broken_uploads": abuse.broken_uploads,
    "packets_that_are_lost": lambda place: poor.lossy(place, Size(tasks=20, clients=5, wide=10), 0.1, 0.02),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_loses_nothing(tmp_path: Path, fault: str) -> None:
    tell(FAULTS[fault](tmp_path))


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
