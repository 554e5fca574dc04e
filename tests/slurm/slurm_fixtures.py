"""The cluster as a fixture of the tests in this folder, and a loud word at the end where there was none."""

import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from slurm_pool import Cluster, running_cluster

from unpacking import UnavailableError

REASON = pytest.StashKey[str]()


@pytest.fixture(scope="session")
def cluster(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """A real cluster. Where none can be had the tests are skipped, or fail if ELIGO_SLURM_REQUIRED is set."""
    with ExitStack() as stack:
        try:
            running = stack.enter_context(running_cluster())
        except UnavailableError as error:
            pytestconfig.stash[REASON] = str(error)
            give_up = pytest.fail if os.environ.get("ELIGO_SLURM_REQUIRED") else pytest.skip
            give_up(f"no Slurm cluster: {str(error).splitlines()[0]}")
        yield running


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say that nothing was tested, so that nobody takes the exit status for a result."""
    if REASON not in config.stash:
        return
    terminalreporter.section("NO SLURM CLUSTER: NOTHING WAS TESTED AGAINST SLURM", sep="!", red=True, bold=True)
    terminalreporter.line(f"why: {config.stash[REASON]}")
    terminalreporter.line("ELIGO_SLURM_REQUIRED=1 makes that a failure")
    terminalreporter.section("NO SLURM CLUSTER", sep="!", red=True, bold=True)
