"""The server as a fixture of the tests in this folder, and a loud word at the end where there was none."""

import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from postgres_server import PostgresServer, running_postgres

from unpacking import UnavailableError

REASON = pytest.StashKey[str]()


@pytest.fixture(scope="session")
def postgres(pytestconfig: pytest.Config) -> Iterator[PostgresServer]:
    """A real server. Where none can be had the tests are skipped, or fail if ELIGO_POSTGRES_REQUIRED is set."""
    with ExitStack() as stack:
        try:
            running = stack.enter_context(running_postgres())
        except UnavailableError as error:
            pytestconfig.stash[REASON] = str(error)
            give_up = pytest.fail if os.environ.get("ELIGO_POSTGRES_REQUIRED") else pytest.skip
            give_up(f"no PostgreSQL: {str(error).splitlines()[0]}")
        yield running


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say that nothing was tested, so that nobody takes the exit status for a result."""
    if REASON not in config.stash:
        return
    terminalreporter.section("NO POSTGRESQL: NOTHING WAS TESTED AGAINST IT", sep="!", red=True, bold=True)
    terminalreporter.line(f"why: {config.stash[REASON]}")
    terminalreporter.line("ELIGO_POSTGRES_REQUIRED=1 makes that a failure")
    terminalreporter.section("NO POSTGRESQL", sep="!", red=True, bold=True)
