"""A run with a limit on the files between tasks, whose dispatcher is killed again and again, keeps it and ends."""

import json
import random
import shutil
import signal
import time
from pathlib import Path

from killing_cases import asked
from running_cases import completed, peak, ran, started
from test_space_runs import SIZE, wide

RUNS, KILLS = int(asked("RUNS", 4)), 3
LIMIT = 25 * 1024


def test_kills_never_lead_beyond_the_limit(tmp_path: Path) -> None:
    rng = random.Random(20261119)
    for number in range(RUNS):
        folder = tmp_path / str(number)
        folder.mkdir()
        flow = wide(folder)
        options = ["--clean", "-q", "--workers", str(rng.randint(2, 8)), "--space", str(LIMIT)]
        for _ in range(KILLS):
            with started(flow, *options) as dispatcher:
                before = set(folder.glob("*_*"))
                while dispatcher.poll() is None and set(folder.glob("*_*")) <= before:
                    time.sleep(0.005)
                time.sleep(rng.uniform(0.0, 0.2))
                dispatcher.send_signal(signal.SIGKILL)
                dispatcher.communicate()
            assert dispatcher.returncode in {0, -signal.SIGKILL}
        assert ran(flow, *options) == 0
        run = folder / "flow.json.run"
        assert SIZE < peak(run) <= LIMIT
        assert set(completed(run).values()) == {1}
        assert len(completed(run)) == len(json.loads(flow.read_text())["tasks"])
        shutil.rmtree(folder)
