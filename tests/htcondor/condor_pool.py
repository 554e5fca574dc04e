"""A real HTCondor pool on this machine, in namespaces of its own: no network but loopback, gone without a trace after."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from condor_root import UID, USER, cache_folder, check_machine, locked, prepared_root

HERE = Path(__file__).parent
INIT = HERE.parent / "pool_init.py"
STATE = ["var/spool/condor", "var/lib/condor/execute", "var/log/condor", f"home/{USER}", "var/tmp"]
SLOTS = 2
SUBMITTING = re.compile(r"Submitting HTCondor Node (.+) job\(s\)\.\.\.$", re.MULTILINE)
EXITING = re.compile(r"EXITING WITH STATUS (\d+)$", re.MULTILINE)


@dataclass(frozen=True)
class Run:
    """One DAG handed to DAGMan, and what DAGMan says about it."""

    dag: Path

    @property
    def report(self) -> str:
        """The text of DAGMan's own log, empty before it has begun."""
        path = self.dag.with_name(f"{self.dag.name}.dagman.out")
        return path.read_text("utf-8", "surrogateescape") if path.exists() else ""

    @property
    def status(self) -> int | None:
        """The exit status, 0 for a complete DAG; None while it runs."""
        found = EXITING.findall(self.report)
        return int(found[-1]) if found else None

    @property
    def submitted(self) -> list[str]:
        """The nodes in the order of submission, without those that DAGMan adds."""
        return [name for name in SUBMITTING.findall(self.report) if not is_join(name)]

    @property
    def last_words(self) -> str:
        """What DAGMan said from the reading of the file on, for messages."""
        return self.report.partition(" Parsing 1 dagfiles")[2][:3000]


def is_join(name: str) -> bool:
    """Whether the node is one that DAGMan makes itself, to join many parents to many children."""
    return name.rpartition("+")[2].startswith("_condor_join_node")


@dataclass(frozen=True)
class Pool:
    """A running pool: folders that both sides see, commands run inside, DAGs submitted by an ordinary user."""

    root: Path
    process: subprocess.Popen[bytes]
    #: a folder that is in the same place for this process and in the pool
    shared: Path

    def folder(self, name: str, files: Mapping[str, str | bytes]) -> Path:
        """A new folder with these files, as this process sees it, in the home of the pool's user."""
        folder = self.root / "home" / USER / name
        folder.mkdir()
        for path, content in files.items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_bytes(content.encode() if isinstance(content, str) else content)
        return folder

    def run(self, *command: str, folder: Path | None = None, uid: int = UID, seconds: float = 60) -> str:
        """What the command prints in the pool; CalledProcessError if it fails or takes too long."""
        inside = Path("/") / (folder or self.root / "home" / USER).relative_to(self.root)
        clean = ["env", "-i", "-C", str(inside), f"HOME=/home/{USER}", "PATH=/usr/bin:/usr/sbin", "LC_ALL=C.UTF-8"]
        # The limit is kept inside: to end nsenter would leave the command behind, until the pool ends.
        limit = ["timeout", "--kill-after=5", str(seconds)]
        return subprocess.run(
            [*self.enter(uid), *clean, *limit, *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=seconds + 30, check=True, text=True, errors="replace",
        ).stdout  # fmt: skip

    def enter(self, uid: int = UID) -> list[str]:
        """What to put before a command that is to run in the pool."""
        pid = self.process.pid
        spaces = ["--mount", "--net", "--uts", "--ipc", f"--pid=/proc/{pid}/ns/pid_for_children"]
        return ["nsenter", f"--target={pid}", *spaces, "chroot", f"--userspec={uid}:{uid}", str(self.root)]

    def submit(self, dag: Path, *options: str) -> Run:
        """Hand a DAG file to DAGMan as the pool's ordinary user."""
        for path in [dag.parent, *dag.parent.rglob("*")]:
            os.chown(path, UID, UID, follow_symlinks=False)
        self.run("condor_submit_dag", *options, dag.name, folder=dag.parent)
        return Run(dag)

    def wait(self, run: Run, seconds: float) -> None:
        """Until DAGMan has ended, or TimeoutError with the end of its log."""
        give_up = time.monotonic() + seconds
        while run.status is None:
            if time.monotonic() > give_up:
                raise TimeoutError(f"{run.dag.name} still runs after {seconds:.0f} s:\n{run.last_words}")
            time.sleep(0.2)


@contextmanager
def running_pool() -> Iterator[Pool]:
    """A pool that accepts jobs; UnavailableError where none can be had. It ends with the block, however that ends."""
    check_machine()
    cache = cache_folder()
    with locked(cache) as lock:
        root = prepared_root(cache)
        _refresh(root)
        shared = Path(tempfile.mkdtemp(prefix="eligo-pool-", dir="/var/tmp"))  # DAGMan refuses /tmp
        shared.chmod(0o777)
        process = _start(root, shared, cache / "pool.log", lock)
        pool = Pool(root, process, shared)
        try:
            _wait_until_ready(pool)
            yield pool
        finally:
            _stop(pool)
            shutil.rmtree(shared, ignore_errors=True)


def _refresh(root: Path) -> None:
    """The settings of today and nothing of earlier runs."""
    shutil.copyfile(HERE / "condor.conf", root / "etc/condor/config.d/99-eligo.conf")
    (root / "etc/hosts").write_text("127.0.0.1 localhost pool\n", "utf-8")
    for folder in STATE:
        for entry in (root / folder).glob("*"):
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()


def _start(root: Path, shared: Path, log: Path, lock: int) -> subprocess.Popen[bytes]:
    """The namespaces with pool_init.py as their first process. It holds the lock too: until all of it has ended."""
    spaces = ["--mount", "--pid", "--net", "--uts", "--ipc", "--fork", "--kill-child", f"--mount-proc={root}/proc"]
    master = ["/usr/sbin/condor_master", "-f"]
    settings = {"root": str(root), "shared": [str(shared)], "programs": [master], "stop": signal.SIGQUIT}
    with log.open("wb") as output:
        return subprocess.Popen(
            ["unshare", *spaces, sys.executable, "-I", str(INIT), json.dumps(settings)],
            stdin=subprocess.PIPE, stdout=output, stderr=output, pass_fds=[lock], start_new_session=True,
            env={"PATH": "/usr/bin:/usr/sbin", "LC_ALL": "C.UTF-8"},
        )  # fmt: skip


def _wait_until_ready(pool: Pool, seconds: float = 60) -> None:
    """Until the slots are announced and the queue answers; RuntimeError if that never happens."""
    give_up = time.monotonic() + seconds
    while not _is_ready(pool):
        if pool.process.poll() is not None or time.monotonic() > give_up:
            raise RuntimeError(f"HTCondor does not start; its own log ends with\n{_last_words(pool.root)}")
        time.sleep(0.3)


def _is_ready(pool: Pool) -> bool:
    try:
        # Asked too early, condor_status waits long for an answer that never comes.
        slots = pool.run("condor_status", "-af", "Name", seconds=2).split()
        pool.run("condor_q", "-totals", seconds=10)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return False
    return len(slots) == SLOTS


def _last_words(root: Path) -> str:
    log = root / "var/log/condor/MasterLog"
    return log.read_text("utf-8", "replace")[-2000:] if log.exists() else "nothing"


def _stop(pool: Pool) -> None:
    """Politely, then by closing the pipe that the first process watches, then by ending it: all others end with it."""
    process = pool.process
    if process.poll() is None:
        try:
            pool.run("condor_off", "-master", uid=0, seconds=20)
            process.wait(20)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            pass
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(30)
