"""A real PostgreSQL on this machine, reached by a socket in a folder of its own: gone without a trace after.

The programs are those of the machine, or unpacked into ELIGO_POSTGRES, or eligo/postgres in the user's cache.
"""

import fcntl
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import psycopg

from unpacking import UnavailableError, kept_under, said_by, unpacked

PACKAGES = ["postgresql"]
USERS = ("postgres", "nobody")
PATIENCE = 240.0  # seconds until it answers: after a crash it first recovers, and a busy disk takes its time
SETTINGS = {
    "listen_addresses": "", "fsync": "on", "synchronous_commit": "on", "max_connections": "40",
    "shared_buffers": "32MB", "autovacuum": "on", "log_min_messages": "fatal",
}  # fmt: skip


@dataclass
class PostgresServer:
    """A server that listens in its folder only; `stop` and `start` may come in any order."""

    programs: Path
    folder: Path
    user: list[str]
    environment: dict[str, str]
    process: subprocess.Popen[bytes] | None = None
    _made: Iterator[int] = field(default_factory=count)

    def address(self, database: str = "postgres") -> str:
        """Where a database is reached."""
        return f"postgresql:///{database}?host={self.folder}&user=eligo"

    def new_database(self) -> str:
        """The address of a database with nothing in it."""
        name = f"test_{next(self._made)}"
        with psycopg.connect(self.address(), autocommit=True) as database:
            database.execute(f"CREATE DATABASE {name}")
        return self.address(name)

    def start(self, *settings: str) -> None:
        """Start it, and wait until it answers."""
        words = [*(f"-c{name}={value}" for name, value in SETTINGS.items()), *(f"-c{setting}" for setting in settings)]
        program = [*self.user, str(self.programs / "postgres"), "-D", str(self.folder / "data")]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*program, "-k", str(self.folder), *words], stdout=log, stderr=log, env=self.environment
            )
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            with suppress(psycopg.OperationalError), psycopg.connect(self.address()):
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise UnavailableError(f"PostgreSQL does not start: {(self.folder / 'log').read_text()[-500:]}")

    def stop(self, how: int = signal.SIGQUIT) -> None:
        """Stop it: SIGQUIT at once, as if it had crashed, SIGINT after undoing what is under way."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(60)
            self.process = None


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """A server; UnavailableError where none can be had."""
    programs, environment = _programs()
    folder = Path(tempfile.mkdtemp(prefix="eligo-postgres-"))
    user = _user(folder)
    server = PostgresServer(programs, folder, user, environment)
    made = [str(programs / "initdb"), "--auth=trust", "--username=eligo", "--encoding=UTF8", "--locale=C.UTF-8"]
    try:
        said_by(["env", *(f"{k}={v}" for k, v in environment.items()), *user, *made, "-D", str(folder / "data")],
                "PostgreSQL cannot make a database", folder)  # fmt: skip
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _user(folder: Path) -> list[str]:
    """What makes a command run as somebody whom PostgreSQL accepts, who may use the folder."""
    if os.geteuid() != 0:
        return []
    found = [user for user in pwd.getpwall() if user.pw_name in USERS]
    if not found or shutil.which("setpriv") is None:
        raise UnavailableError("PostgreSQL does not run as root, and this machine has nobody else")
    user = min(found, key=lambda one: USERS.index(one.pw_name))
    os.chown(folder, user.pw_uid, user.pw_gid)
    folder.chmod(0o755)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", "--pdeathsig=KILL"]


def _programs() -> tuple[Path, dict[str, str]]:
    """The folder of PostgreSQL's programs, and the environment in which they run."""
    here = _newest(Path("/"))
    if here is None:
        if shutil.which("apt-get") is None:
            raise UnavailableError("there is no PostgreSQL on this machine, and no apt-get to fetch it")
        cache = kept_under("postgres", "ELIGO_POSTGRES")
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            root = unpacked(cache, PACKAGES, "PostgreSQL")
        here = _newest(root)
        if here is None:
            raise UnavailableError("Debian's package of PostgreSQL has no programs in it")
        libraries = ":".join(str(path) for path in root.glob("usr/lib/*-linux-*"))
        return here, dict(os.environ) | {"LD_LIBRARY_PATH": libraries}
    return here, dict(os.environ)


def _newest(root: Path) -> Path | None:
    found = [path for path in root.glob("usr/lib/postgresql/*/bin") if (path / "initdb").exists()]
    return max(found, key=lambda path: float(path.parent.name), default=None)
