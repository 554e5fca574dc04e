"""A folder with a small Debian and HTCondor in it, built once and kept: what the pool of `condor_pool` runs in.

Everything is fetched with the machine's own package manager settings, and nothing is installed on the machine itself.
The folder is ELIGO_HTCONDOR, or eligo/htcondor in the user's cache; deleting it costs the next run some two minutes.
"""

import fcntl
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

SUITE = "trixie"
PACKAGE = "minicondor"
USER = "eligo"
UID = 1000
RECIPE = f"1: {SUITE} minbase, {PACKAGE}, user {USER} {UID}\n"
TOOLS = ["apt-get", "chroot", "dpkg-deb", "nsenter", "setpriv", "unshare", "wget"]
# A name that nothing else has: what is there when a build was interrupted is removed, whatever folder the user chose.
NAME = f"{SUITE}-{PACKAGE}"
# Mounts and processes end with the command, and the command with this process, however that ends: debootstrap mounts
# /proc in the new root.
APART = ["setpriv", "--pdeathsig=KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child"]


class UnavailableError(Exception):
    """No pool can be had on this machine; the message says why."""


def cache_folder() -> Path:
    """Where the root and what it is built from are kept."""
    if chosen := os.environ.get("ELIGO_HTCONDOR"):
        return Path(chosen).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "eligo" / "htcondor"


def check_machine() -> None:
    """UnavailableError unless this machine lets us build and start a pool."""
    if os.geteuid() != 0:
        raise UnavailableError("it needs root (chroot, namespaces)")
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        raise UnavailableError(f"this machine has no {', '.join(missing)}")
    _run([*APART, "--mount-proc", "--net", "--uts", "--ipc", "true"], "this machine allows no namespaces", seconds=20)


@contextmanager
def locked(cache: Path, seconds: float = 900) -> Iterator[int]:
    """Only one run at a time uses the folder; others wait, but not for ever. Gives the descriptor that holds it."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as file:
        give_up = time.monotonic() + seconds
        while not _lock(file.fileno()):
            if time.monotonic() > give_up:
                raise UnavailableError(f"another run has been using {cache} for {seconds:.0f} s")
            time.sleep(0.5)
        yield file.fileno()


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def prepared_root(cache: Path) -> Path:
    """The root in *cache*, built first if it is missing, half built or of another recipe."""
    root = cache / NAME
    stamp = root / "built-by-eligo"
    if stamp.exists() and stamp.read_text("utf-8") == RECIPE:
        return root
    stamp.unlink(missing_ok=True)
    _remove(root)
    _build(cache, root)
    stamp.write_text(RECIPE, "utf-8")
    return root


def _remove(root: Path) -> None:
    mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text("utf-8").splitlines()]
    if inside := [mount for mount in mounts if Path(mount).is_relative_to(root)]:
        raise UnavailableError(f"{inside[0]} is mounted inside the half-built root; unmount it first")
    if root.exists():
        shutil.rmtree(root)


def _build(cache: Path, root: Path) -> None:
    mirror = _mirror()
    script, environment = _debootstrap(cache)
    _run(
        [*APART, "--mount-proc", script, "--variant=minbase", "--force-check-gpg", SUITE, str(root), mirror],
        f"debootstrap could not fetch Debian {SUITE}",
        environment,
    )
    if Path("/etc/resolv.conf").exists():
        shutil.copyfile("/etc/resolv.conf", root / "etc/resolv.conf")
    policy = root / "usr/sbin/policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 101\n", "utf-8")
    policy.chmod(0o755)
    (root / "etc/dpkg/dpkg.cfg.d/fast").write_text("force-unsafe-io\n", "utf-8")
    for command in (
        ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends", PACKAGE],
        ["apt-get", "clean"],
        ["useradd", "--create-home", "--uid", str(UID), USER],
    ):
        _run(
            [*APART, f"--mount-proc={root}/proc", "chroot", str(root), *command],
            f"{' '.join(command)} failed in the new root",
        )


def _mirror() -> str:
    """The Debian mirror that this machine's own package manager uses."""
    if chosen := os.environ.get("ELIGO_HTCONDOR_MIRROR"):
        return chosen
    system = platform.freedesktop_os_release()
    if system.get("ID") != "debian":
        raise UnavailableError("this machine is not Debian; name a Debian mirror in ELIGO_HTCONDOR_MIRROR")
    releases = {system.get("VERSION_CODENAME", "stable"), "stable", "oldstable", "testing", "unstable"}
    listing = _run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE)", "Created-By: Packages"],
        "apt-get cannot tell which mirror it uses",
        seconds=60,
    )
    targets = [line.split() for line in listing.splitlines()]
    mirrors = [uri for uri, release in targets if release in releases and uri.startswith(("http://", "https://"))]
    if not mirrors:
        raise UnavailableError("this machine's package manager has no Debian mirror configured")
    return min(mirrors, key=lambda uri: not uri.rstrip("/").endswith("/debian"))


def _debootstrap(cache: Path) -> tuple[str, dict[str, str]]:
    """The program, unpacked in *cache*, and the environment it needs there."""
    folder = cache / f"{NAME}.debootstrap"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "lists" / "partial").mkdir(parents=True)
    apt = ["apt-get", "--quiet", "-o", f"Dir::State::Lists={folder}/lists", "-o", "APT::Sandbox::User=root"]
    _run([*apt, "update"], "the Debian mirror cannot be reached")
    _run([*apt, "download", "debootstrap"], "debootstrap cannot be fetched from the Debian mirror", folder=folder)
    for archive in folder.glob("debootstrap_*.deb"):
        _run(["dpkg-deb", "--extract", str(archive), str(folder)], "debootstrap cannot be unpacked")
    shutil.rmtree(folder / "lists")
    return str(folder / "usr/sbin/debootstrap"), {"DEBOOTSTRAP_DIR": str(folder / "usr/share/debootstrap")}


def _run(
    command: Sequence[str],
    trouble: str,
    environment: dict[str, str] | None = None,
    seconds: float = 600,
    folder: Path | None = None,
) -> str:
    """What the command prints; UnavailableError with its last lines if it fails or takes too long."""
    full = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C"} | (environment or {})
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=seconds, env=full, cwd=folder,
            stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(f"{trouble}: nothing after {seconds:.0f} s") from error
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip().splitlines()[-6:]
        raise UnavailableError("\n  ".join([f"{trouble} (exit {done.returncode}):", *said]))
    return done.stdout
