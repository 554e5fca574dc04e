"""Slurm's programs, unpacked into a folder and not installed: fetched with the machine's own package manager settings.

The folder is ELIGO_SLURM, or eligo/slurm in the user's cache; deleting it costs the next run some seconds.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

PACKAGES = ["slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins", "munge"]
TOOLS = ["apt-get", "dpkg-deb", "nsenter", "unshare"]
APART = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--net", "--uts", "--ipc"]
RECIPE = f"1: {' '.join(PACKAGES)}\n"


class UnavailableError(Exception):
    """No cluster can be had on this machine; the message says why."""


def cache_folder() -> Path:
    """Where the programs are kept."""
    if chosen := os.environ.get("ELIGO_SLURM"):
        return Path(chosen).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "eligo" / "slurm"


def check_machine() -> None:
    """UnavailableError unless this machine lets us start a cluster."""
    if os.geteuid() != 0:
        raise UnavailableError("it needs root (namespaces, munge)")
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        raise UnavailableError(f"this machine has no {', '.join(missing)}")
    _run([*APART, "true"], "this machine allows no namespaces")


def prepared_root(cache: Path) -> Path:
    """The unpacked packages, with whatever of what they need is not on the machine."""
    root, stamp = cache / "root", cache / "recipe"
    if stamp.exists() and stamp.read_text("utf-8") == RECIPE:
        return root
    stamp.unlink(missing_ok=True)
    shutil.rmtree(root, ignore_errors=True)
    archives = cache / "archives"
    shutil.rmtree(archives, ignore_errors=True)
    archives.mkdir(parents=True)
    apt = ["apt-get", "--quiet", "-o", "APT::Sandbox::User=root"]
    lists = ["-o", f"Dir::State::Lists={cache / 'lists'}"]
    (cache / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    _run([*apt, *lists, "update"], "the package mirror cannot be reached")
    planned = _run(
        [*apt, *lists, "install", "--simulate", "--no-install-recommends", *PACKAGES], "Slurm is not to be had here"
    )
    needed = {line.split()[1] for line in planned.splitlines() if line.startswith("Inst ")}
    _run([*apt, *lists, "download", *sorted(needed | set(PACKAGES))], "Slurm cannot be fetched", archives)
    for archive in archives.glob("*.deb"):
        _run(["dpkg-deb", "--extract", str(archive), str(root)], f"{archive.name} cannot be unpacked")
    shutil.rmtree(cache / "lists")
    stamp.write_text(RECIPE, "utf-8")
    return root


def _run(command: Sequence[str], trouble: str, folder: Path | None = None, seconds: float = 180) -> str:
    """What the command prints; UnavailableError with its last lines if it fails or takes too long."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=seconds, cwd=folder, check=False,
            stdin=subprocess.DEVNULL, env=os.environ | {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"},
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(f"{trouble}: nothing after {seconds:.0f} s") from error
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip().splitlines()[-6:]
        raise UnavailableError("\n  ".join([f"{trouble} (exit {done.returncode}):", *said]))
    return done.stdout
