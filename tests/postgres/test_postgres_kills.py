"""Two servers on one database that are killed again and again; `-s` prints the line of docs/understand/reliability.md."""

import os
from pathlib import Path

from postgres_server import PostgresServer

import fault_scenarios as play
from fault_scenarios import Size
from server_faults import tell

pytest_plugins = ["postgres_fixtures"]

TASKS, KILLS = int(os.environ.get("ELIGO_FAULT_TASKS", "600")), int(os.environ.get("ELIGO_FAULT_KILLS", "8"))


def test_kills(tmp_path: Path, postgres: PostgresServer) -> None:
    size = Size(tasks=TASKS, clients=20, wide=60, nap=20 * KILLS * 2.5 / TASKS, kills=KILLS)
    tell(play.kills_of_two(tmp_path, size, (0.1, 1.0), postgres.new_database()))
