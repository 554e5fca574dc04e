"""A real Airflow in a folder of its own: SQLite, the local executor, the scheduler and the server that tasks report to."""

import os
import signal
import socket
import sqlite3
import subprocess
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
START = 60.0  # seconds that its server has to answer


class Home:
    """A folder with Airflow's database and dags, and the programs that work on it."""

    def __init__(self, python: Path, folder: Path, parallel: int = 3) -> None:
        self.folder, self._python, self._port = folder, python, free_port()
        (folder / "dags").mkdir(parents=True)
        self.surroundings = os.environ | self._settings(parallel) | {"PYTHONPATH": f"{installed(folder)}:{HERE.parent}"}

    def _settings(self, parallel: int) -> dict[str, str]:
        chosen = {
            "CORE__EXECUTOR": "LocalExecutor",
            "CORE__PARALLELISM": parallel,
            "CORE__LOAD_EXAMPLES": False,
            "CORE__DAGS_ARE_PAUSED_AT_CREATION": False,
            "CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{self._port}/execution/",
            "API_AUTH__JWT_SECRET": "of this test alone " * 4,
            "API__SECRET_KEY": "of this test alone",
            "SCHEDULER__JOB_HEARTBEAT_SEC": 1,
            "SCHEDULER__SCHEDULER_HEARTBEAT_SEC": 1,
            "SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": 0.1,
            "WORKERS__MIN_HEARTBEAT_INTERVAL": 1,  # which is also how long the end of a task may go unnoticed
        }
        return {"AIRFLOW_HOME": str(self.folder)} | {f"AIRFLOW__{key}": str(value) for key, value in chosen.items()}

    def _words(self, *words: str) -> list[str]:
        return [str(self._python), "-m", "airflow", *words]

    def run(self, *words: str) -> str:
        """What a command of Airflow's prints."""
        log = self.folder / f"{words[0]}.log"
        with log.open("w") as out:
            subprocess.run(
                self._words(*words),
                env=self.surroundings,
                stdout=out,
                stderr=subprocess.STDOUT,
                timeout=300,
                check=True,
            )
        return log.read_text("utf-8")

    @contextmanager
    def started(self, *words: str) -> Iterator[None]:
        """A program of Airflow's as long as it is needed, with all that it begins."""
        with (self.folder / f"{words[0]}.log").open("w") as out:
            program = subprocess.Popen(
                self._words(*words),
                env=self.surroundings,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            yield
        finally:
            with suppress(ProcessLookupError):
                os.killpg(program.pid, signal.SIGKILL)  # nothing is kept of its folder
            program.wait()

    def play(self, seconds: float) -> None:
        """Let the scheduler run every dag to its end."""
        with self.started("api-server", "--apps", "execution", "--workers", "1", "--host", "127.0.0.1",
                          "--port", str(self._port)):  # fmt: skip
            self.run("dags", "reserialize")
            self._await_server()
            with self.started("scheduler", "--skip-serve-logs"):
                limit = time.monotonic() + seconds
                while not self._ended():
                    assert time.monotonic() < limit, (self.folder / "scheduler.log").read_text("utf-8")[-5000:]
                    time.sleep(0.3)

    def _await_server(self) -> None:
        limit = time.monotonic() + START
        while time.monotonic() < limit:
            with suppress(OSError), socket.create_connection(("127.0.0.1", self._port), 1):
                return
            time.sleep(0.3)
        raise AssertionError((self.folder / "api-server.log").read_text("utf-8")[-5000:])

    def _ended(self) -> bool:
        [(dags,)] = self.asked("select count(*) from serialized_dag")
        [(ended,)] = self.asked("select count(*) from dag_run where state in ('success', 'failed')")
        return bool(ended == dags > 0)

    def asked(self, query: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """What the database answers."""
        with closing(sqlite3.connect(self.folder / "airflow.db", timeout=30)) as base:
            return base.execute(query, values).fetchall()


def free_port() -> int:
    """A port that nobody has."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def installed(folder: Path) -> Path:
    """A folder in which Python finds what the installed package says of itself: the entry points that it has."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    told = folder / "installed" / "eligo-0.dist-info"
    told.mkdir(parents=True)
    (told / "METADATA").write_text("Metadata-Version: 2.1\nName: eligo\nVersion: 0\n", "utf-8")
    lines = [
        f"[{group}]\n" + "".join(f"{a} = {b}\n" for a, b in ends.items())
        for group, ends in project["entry-points"].items()
    ]
    (told / "entry_points.txt").write_text("".join(lines), "utf-8")
    return told.parent
