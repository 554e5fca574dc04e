"""A server for a long while: `ELIGO_SOAK_SECONDS=600 make test-faults` makes it ten minutes instead of one."""

import os
from pathlib import Path

from endurance_scenarios import soak, steady
from server_faults import tell


def test_a_long_while(tmp_path: Path) -> None:
    tell(soak(tmp_path, float(os.environ.get("ELIGO_SOAK_SECONDS", "60"))))


def test_a_server_that_has_seen_much_grows_no_more(tmp_path: Path) -> None:
    tell(steady(tmp_path, 60_000))
