"""Kills of servers below a server, at length: ELIGO_FAULT_LEAF_TASKS and ELIGO_FAULT_LEAF_KILLS say how many."""

import os
from pathlib import Path

import leaf_scenarios as play
from leaf_scenarios import Tree
from server_faults import tell

TASKS = int(os.environ.get("ELIGO_FAULT_LEAF_TASKS", "80"))
KILLS = int(os.environ.get("ELIGO_FAULT_LEAF_KILLS", "4"))


def test_many_kills_at_either_level(tmp_path: Path) -> None:
    tell(play.kills(tmp_path, Tree(tasks=TASKS, leaves=2, workers=2, kills=KILLS, size=10, seed=2)))
