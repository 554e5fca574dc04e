"""A real Slurm cluster of one node on this machine, in namespaces of its own: gone without a trace after."""

import fcntl
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from slurm_root import APART, cache_folder, check_machine, prepared_root

from unpacking import UnavailableError

HERE = Path(__file__).parent
INIT = HERE.parent / "pool_init.py"
CLIENTS = ["sbatch", "squeue", "scancel", "scontrol", "sinfo", "srun", "salloc"]
#: of those that are for examples: where no address is but loopback, the C library finds none
ADDRESS = "192.0.2.1"


@dataclass(frozen=True)
class Cluster:
    """A running cluster: a folder with its programs, as a user has them on the path, and one for files."""

    state: Path
    process: subprocess.Popen[bytes]

    @property
    def programs(self) -> Path:
        """Where sbatch and the others are."""
        return self.state / "bin"

    def run(self, *command: str) -> str:
        """What a program of Slurm's prints."""
        words = [str(self.programs / command[0]), *command[1:]]
        return subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """A cluster that accepts jobs; UnavailableError where none can be had. It ends with the block, however that ends."""
    check_machine()
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        root = prepared_root(cache)
    state = Path(tempfile.mkdtemp(prefix="eligo-slurm-"))
    process = _start(root, state)
    try:
        cluster = Cluster(state, process)
        _put_programs(cluster, root)
        _wait_until_ready(cluster)
        yield cluster
    finally:
        _stop(process)
        shutil.rmtree(state, ignore_errors=True)


def _libraries(root: Path) -> Path:
    return next(path.parent for path in root.glob("usr/lib/*/slurm-wlm"))


def _environment(root: Path, state: Path) -> dict[str, str]:
    libraries = _libraries(root)
    return {
        "PATH": "/usr/bin:/usr/sbin:/bin",
        "LC_ALL": "C.UTF-8",
        "LD_LIBRARY_PATH": f"{libraries}:{libraries}/slurm-wlm",
        "SLURM_CONF": str(state / "slurm.conf"),
    }


def _start(root: Path, state: Path) -> subprocess.Popen[bytes]:
    for name in ("state", "spool"):
        (state / name).mkdir()
    settings = (HERE / "slurm.conf").read_text("utf-8").replace("@STATE@", str(state))
    (state / "slurm.conf").write_text(settings.replace("@LIBRARIES@", str(_libraries(root))), "utf-8")
    (state / "munge.key").write_bytes(secrets.token_bytes(1024))
    (state / "munge.key").chmod(0o400)
    munge = {"key-file": "key", "socket": "socket", "pid-file": "pid", "log-file": "log", "seed-file": "seed"}
    sbin = root / "usr/sbin"
    programs = [
        [f"{sbin}/munged", "--foreground", "--force", *(f"--{key}={state}/munge.{end}" for key, end in munge.items())],
        [f"{sbin}/slurmctld-wlm", "-D"],
        [f"{sbin}/slurmd-wlm", "-D", "-N", "pool", "-d", f"{sbin}/slurmstepd-wlm"],
    ]
    told = json.dumps({"root": "/", "address": ADDRESS, "programs": programs, "again": True})
    with (state / "init.log").open("wb") as output:
        return subprocess.Popen(
            [*APART, sys.executable, "-I", str(INIT), told],
            stdin=subprocess.PIPE, stdout=output, stderr=output, start_new_session=True, env=_environment(root, state),
        )  # fmt: skip


def _put_programs(cluster: Cluster, root: Path) -> None:
    """Slurm's programs for users, each of which goes into the namespaces first."""
    cluster.programs.mkdir()
    pid = cluster.process.pid
    spaces = "--mount --net --uts --ipc"  # not that of processes: nsenter would stay between, and die of signals first
    settings = " ".join(f"{key}={value}" for key, value in _environment(root, cluster.state).items() if key != "PATH")
    for name in CLIENTS:
        program = cluster.programs / name
        inside = f'env {settings} {root}/usr/bin/{name} "$@"'
        program.write_text(f'#!/bin/sh\nexec nsenter --target={pid} {spaces} --wd="$PWD" {inside}\n', "utf-8")
        program.chmod(0o755)


def _wait_until_ready(cluster: Cluster, seconds: float = 60) -> None:
    give_up = time.monotonic() + seconds
    while not _is_ready(cluster):
        if cluster.process.poll() is not None or time.monotonic() > give_up:
            logs = [path.read_text("utf-8", "replace")[-1500:] for path in sorted(cluster.state.glob("*.log"))]
            raise RuntimeError("Slurm does not start; its logs end with\n" + "\n".join(logs))
        time.sleep(0.3)


def _is_ready(cluster: Cluster) -> bool:
    try:
        return cluster.run("sinfo", "--noheader", "--format=%T").strip() == "idle"
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    """By closing the pipe that the first process watches, then by ending it: all others end with it."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait(30)


__all__ = ["Cluster", "UnavailableError", "running_cluster"]
