"""The pool as a fixture of the tests in this folder, and a loud word at the end where there was none."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from condor_pool import Pool, running_pool
from condor_root import UnavailableError

from eligo.engines import htcondor
from eligo.engines.batch_system import QueueEngine
from engine_contract import Bench

CLIENTS = ["condor_submit", "condor_rm", "condor_q", "condor_submit_dag"]
REASON = pytest.StashKey[str]()


@pytest.fixture(scope="session")
def pool(pytestconfig: pytest.Config) -> Iterator[Pool]:
    """A real HTCondor pool. Where none can be had the tests are skipped, or fail if ELIGO_HTCONDOR_REQUIRED is set."""
    with ExitStack() as stack:
        try:
            running = stack.enter_context(running_pool())
        except UnavailableError as error:
            pytestconfig.stash[REASON] = str(error)
            give_up = pytest.fail if os.environ.get("ELIGO_HTCONDOR_REQUIRED") else pytest.skip
            give_up(f"no HTCondor pool: {str(error).splitlines()[0]}")
        yield running


@pytest.fixture(scope="session")
def programs(pool: Pool) -> Path:
    """HTCondor's programs for users, each of which goes into the pool first, as the pool's ordinary user."""
    folder = pool.shared / "bin"
    folder.mkdir()
    for name in CLIENTS:
        place = f'case "$PWD/" in {pool.shared}/*) place="$PWD" ;; *) place=/ ;; esac'
        inside = f'env -C "$place" HOME=/home/eligo PATH=/usr/bin:/usr/sbin /usr/bin/{name} "$@"'
        (folder / name).write_text(f"#!/bin/sh\n{place}\nexec {' '.join(pool.enter())} {inside}\n", "utf-8")
        (folder / name).chmod(0o755)
    return folder


@pytest.fixture
def bench(pool: Pool, programs: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """The pool; whatever is written is for everybody, since the pool's user is another one."""
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("ELIGO_KEPT", "kept")

    def make(workers: int, folder: str, mark: str) -> QueueEngine:
        return htcondor.make(workers, folder, mark, python="/usr/bin/python3")

    def jobs(mark: str) -> list[str]:
        return pool.run("condor_q", "-constraint", f'EligoRun == "{mark}"', "-af", "ClusterId").split()

    def remove(mark: str) -> None:
        pool.run("condor_rm", *jobs(mark))

    before = os.umask(0)
    yield Bench("htcondor", pool.shared, make, remove, jobs)
    os.umask(before)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say that nothing was tested, so that nobody takes the exit status for a result."""
    if REASON not in config.stash:
        return
    terminalreporter.section("NO HTCONDOR POOL: NOTHING WAS TESTED AGAINST DAGMAN", sep="!", red=True, bold=True)
    terminalreporter.line(f"why: {config.stash[REASON]}")
    terminalreporter.line("whether DAGMan obeys eligo's priorities is unknown after this run;")
    terminalreporter.line("ELIGO_HTCONDOR_REQUIRED=1 makes that a failure")
    terminalreporter.section("NO HTCONDOR POOL", sep="!", red=True, bold=True)
