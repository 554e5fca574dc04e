"""The pool as a fixture of the tests in this folder, and a loud word at the end where there was none."""

import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from condor_pool import Pool, running_pool
from condor_root import UnavailableError

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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say that nothing was tested, so that nobody takes the exit status for a result."""
    if REASON not in config.stash:
        return
    terminalreporter.section("NO HTCONDOR POOL: NOTHING WAS TESTED AGAINST DAGMAN", sep="!", red=True, bold=True)
    terminalreporter.line(f"why: {config.stash[REASON]}")
    terminalreporter.line("whether DAGMan obeys eligo's priorities is unknown after this run;")
    terminalreporter.line("ELIGO_HTCONDOR_REQUIRED=1 makes that a failure")
    terminalreporter.section("NO HTCONDOR POOL", sep="!", red=True, bold=True)
