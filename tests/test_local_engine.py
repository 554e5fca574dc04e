"""Processes on this machine, as an engine."""

import os
import stat
from pathlib import Path

from eligo.engines import Command, Ending, Job
from eligo.engines.local import LocalEngine


def run(engine: LocalEngine, number: int, work: Command) -> Ending:
    engine.start(Job(number, engine.asks()[0].client, ("t",), (work,)))
    (ending,) = engine.wait(20.0)
    return ending


def test_what_goes_nowhere_replaces_nothing(tmp_path: Path) -> None:
    """A task that prints into the device that forgets everything; then one on the same slot whose output is kept."""
    engine = LocalEngine(1, scratch=str(tmp_path / "scratch"))
    words = ("/bin/sh", "-c", 'echo "$0"; echo "$0" >&2')
    assert run(engine, 1, Command((*words, "forgotten"), "/")).attempt.failure is None
    kept = Command((*words, "kept"), "/", out=str(tmp_path / "out"), err=str(tmp_path / "err"))
    assert run(engine, 2, kept).attempt.failure is None
    engine.close()
    assert (tmp_path / "out").read_text() == (tmp_path / "err").read_text() == "kept\n"
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
