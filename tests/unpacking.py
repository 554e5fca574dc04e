"""Debian's packages unpacked into a folder and not installed: fetched with the machine's own package manager settings."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path


class UnavailableError(Exception):
    """What a test needs cannot be had on this machine; the message says why."""


def kept_under(name: str, variable: str) -> Path:
    """The folder that a variable of the environment names, or one in the user's cache."""
    if chosen := os.environ.get(variable):
        return Path(chosen).absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "eligo" / name


def unpacked(cache: Path, packages: Sequence[str], called: str) -> Path:
    """The unpacked packages, with whatever of what they need is not on the machine; fetched unless they are there."""
    root, stamp, recipe = cache / "root", cache / "recipe", f"1: {' '.join(packages)}\n"
    if stamp.exists() and stamp.read_text("utf-8") == recipe:
        return root
    stamp.unlink(missing_ok=True)
    shutil.rmtree(root, ignore_errors=True)
    archives = cache / "archives"
    shutil.rmtree(archives, ignore_errors=True)
    archives.mkdir(parents=True)
    apt = ["apt-get", "--quiet", "-o", "APT::Sandbox::User=root"]
    lists = ["-o", f"Dir::State::Lists={cache / 'lists'}"]
    (cache / "lists" / "partial").mkdir(parents=True, exist_ok=True)
    said_by([*apt, *lists, "update"], "the package mirror cannot be reached")
    planned = said_by(
        [*apt, *lists, "install", "--simulate", "--no-install-recommends", *packages], f"{called} is not to be had here"
    )
    needed = {line.split()[1] for line in planned.splitlines() if line.startswith("Inst ")}
    said_by([*apt, *lists, "download", *sorted(needed | set(packages))], f"{called} cannot be fetched", archives)
    for archive in archives.glob("*.deb"):
        said_by(["dpkg-deb", "--extract", str(archive), str(root)], f"{archive.name} cannot be unpacked")
    shutil.rmtree(cache / "lists")
    stamp.write_text(recipe, "utf-8")
    return root


def said_by(command: Sequence[str], trouble: str, folder: Path | None = None, seconds: float = 180) -> str:
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
