"""Servers on PostgreSQL that are killed again and again; `-s` prints the line of docs/reliability.md."""

from pathlib import Path

from postgres_server import PostgresServer

import fault_scenarios as play
from fault_scenarios import Size
from server_faults import tell


def test_kills(tmp_path: Path, postgres: PostgresServer) -> None:
    size = Size(tasks=600, clients=20, wide=60, nap=0.3, kills=8)
    tell(play.kills(tmp_path, size, (0.1, 1.0), store=postgres.new_database()))
