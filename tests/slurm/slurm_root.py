"""Slurm's programs, unpacked into a folder and not installed.

The folder is ELIGO_SLURM, or eligo/slurm in the user's cache; deleting it costs the next run some seconds.
"""

import os
import shutil
from pathlib import Path

from unpacking import UnavailableError, kept_under, said_by, unpacked

PACKAGES = ["slurmctld", "slurmd", "slurm-client", "slurm-wlm-basic-plugins", "munge"]
TOOLS = ["apt-get", "dpkg-deb", "nsenter", "unshare"]
APART = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--net", "--uts", "--ipc"]


def cache_folder() -> Path:
    """Where the programs are kept."""
    return kept_under("slurm", "ELIGO_SLURM")


def check_machine() -> None:
    """UnavailableError unless this machine lets us start a cluster."""
    if os.geteuid() != 0:
        raise UnavailableError("it needs root (namespaces, munge)")
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        raise UnavailableError(f"this machine has no {', '.join(missing)}")
    said_by([*APART, "true"], "this machine allows no namespaces")


def prepared_root(cache: Path) -> Path:
    """The unpacked packages."""
    return unpacked(cache, PACKAGES, "Slurm")
