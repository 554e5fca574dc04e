"""Faults of every kind on a server, at length; `make test-faults SECONDS=n` bounds the kills. Each prints a line of a table.

ELIGO_FAULT_TASKS, ELIGO_FAULT_CLIENTS and ELIGO_FAULT_KILLS say how large the first two are, ELIGO_FAULT_REQUESTS how many
mutated requests are sent, ELIGO_FAULT_LOSSY how many tasks are done over a network that loses packets.
"""

import os
from pathlib import Path

import pytest

import abuse_scenarios as abuse
import fault_scenarios as play
import hardship_scenarios as hard
import poor_network as poor
from fault_scenarios import Size
from server_faults import tell
from wicked_scenario import wicked_kills


def _number(name: str, usual: int) -> int:
    return int(os.environ.get(f"ELIGO_FAULT_{name}", usual))


SECONDS = _number("SECONDS", 150)
TASKS, CLIENTS, KILLS = _number("TASKS", 10_000), _number("CLIENTS", 50), _number("KILLS", 100)
REQUESTS = _number("REQUESTS", 100_000)


def test_many_kills(tmp_path: Path) -> None:
    """Tasks take as long as makes the work last over all kills, which come as often as the time allows."""
    nap = 1.2 * CLIENTS * SECONDS / TASKS
    most = max(0.3, 2 * SECONDS / KILLS - 1.5)
    tell(
        play.kills(
            tmp_path, Size(tasks=TASKS, clients=CLIENTS, wide=500, nap=nap, kills=KILLS, workers=2), (0.05, most)
        )
    )


def test_many_kills_among_wicked_clients(tmp_path: Path) -> None:
    """Held against a model of what was promised; as many kills as fit into the time."""
    tell(wicked_kills(tmp_path, Size(tasks=TASKS, clients=CLIENTS, kills=KILLS), (0.05, 2.0), SECONDS))


def test_kills_while_it_comes_back(tmp_path: Path) -> None:
    size = Size(tasks=1000, clients=20, wide=100, nap=0.3, kills=5, seed=2)
    tell(play.kills(tmp_path, size, (0.1, 0.5), nested=5))


@pytest.mark.parametrize("lost", [0.25, 0.5])
def test_lost_calls(tmp_path: Path, lost: float) -> None:
    tell(play.losses(tmp_path, Size(tasks=TASKS // 5, clients=CLIENTS, wide=200), lost))


def test_cuts_and_delays(tmp_path: Path) -> None:
    tell(play.losses(tmp_path, Size(tasks=1000, clients=CLIENTS, wide=200), 0.0, cuts=5, delay=2.0))


def test_packets_that_are_lost(tmp_path: Path) -> None:
    size = Size(tasks=_number("LOSSY", 400), clients=CLIENTS, wide=100, nap=0.1, workers=2)
    tell(poor.lossy(tmp_path, size, 0.3, 0.3, cut=20.0))


def test_dying_clients(tmp_path: Path) -> None:
    tell(play.deaths(tmp_path, Size(tasks=1000, clients=20, wide=100), 0.3))


def test_real_clients_die_and_sleep(tmp_path: Path) -> None:
    tell(play.real_deaths(tmp_path, 400, 10))


def test_sleeping_clients(tmp_path: Path) -> None:
    tell(play.sleepers(tmp_path, 100))


def test_a_black_hole(tmp_path: Path) -> None:
    tell(play.black_hole(tmp_path, 2000))


def test_liars(tmp_path: Path) -> None:
    tell(play.liars(tmp_path, 900))


def test_a_full_disk(tmp_path: Path) -> None:
    tell(hard.full_disk(tmp_path, Size(tasks=1000, clients=20, wide=100, nap=0.1), 5.0))


def test_a_locked_store(tmp_path: Path) -> None:
    tell(hard.locked_store(tmp_path, Size(tasks=300, clients=20, wide=100, nap=0.1), 35.0))


def test_a_torn_store(tmp_path: Path) -> None:
    tell(hard.torn_store(tmp_path, Size(tasks=600, clients=20, wide=100), 1000))


def test_clocks(tmp_path: Path) -> None:
    tell(hard.clocks(tmp_path, Size(tasks=300, clients=8, wide=50, nap=0.1)))


def test_a_herd(tmp_path: Path) -> None:
    tell(hard.herd(tmp_path, 10_000, processes=4))


def test_drips(tmp_path: Path) -> None:
    tell(abuse.drips(tmp_path, 2000, 5.0, wait=True))


def test_malformed_requests(tmp_path: Path) -> None:
    tell(abuse.malformed(tmp_path, REQUESTS))


def test_the_described_api(tmp_path: Path) -> None:
    tell(abuse.described(tmp_path, 25, 240.0))
