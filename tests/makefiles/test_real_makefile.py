"""A real Makefile, built by make and by a run: the same files, and the same ones again after any source has changed.

ELIGO_MAKEFILES names folders, each with the source of a package: `apt-get source libtommath libtomcrypt` fetches two. They
are copied. Nothing is downloaded.
"""

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from eligo.cli import run as eligo
from eligo.formats import read
from running_cases import attempts, ran

PACKAGES = [Path(folder) for folder in os.environ.get("ELIGO_MAKEFILES", "").split(os.pathsep) if folder]
#: how many sources change, one after another, in plans, and in builds
PLANNED, BUILT = int(os.environ.get("ELIGO_MAKEFILES_PLANNED", "200")), 5
#: quick, and the same bytes in each of two folders
OPTIONS = ("CFLAGS=-O0", "ARFLAGS=rcD")


def test_packages_are_there() -> None:
    if not PACKAGES:
        pytest.skip("NO REAL MAKEFILE WAS BUILT: ELIGO_MAKEFILES names no folder with the source of a package")


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.name)
def test_a_package_is_built_both_ways(package: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for folder in (ours, theirs):
        shutil.copytree(package, folder)
        _make(folder, "clean")
    sources = _files(theirs)
    _make(theirs)
    listing = ours / "build.make"
    listing.write_text(_make(ours, "-Bnp", "--trace"))
    assert ran(listing) == 0
    built = _same(ours, theirs)
    flow = read(listing)
    used = sorted({file for name in flow.dag.tasks for file in flow.task(name).inputs} & sources.keys())
    rng, counts = random.Random(29), []
    for name in rng.sample(used, min(PLANNED, len(used))):
        before = [(folder, os.stat(folder / name)) for folder in (ours, theirs)]
        _change(ours / name, theirs / name)
        wanted = _targets(_make(theirs, "-n", "--trace"))
        capsys.readouterr()
        assert eligo(["run", str(listing), "-n"]) == 0
        rows = capsys.readouterr().out.splitlines()[1:-1]
        assert {row.split("  ")[0] for row in rows} == wanted, name
        counts.append(len(wanted))
        for folder, status in before:
            (folder / name).write_bytes(sources[name])
            os.utime(folder / name, ns=(status.st_atime_ns, status.st_mtime_ns))
    for name in rng.sample(used, BUILT):
        _change(ours / name, theirs / name)
        wanted, begun = _targets(_make(theirs, "--trace")), len(attempts(ours / "build.make.run"))
        assert ran(listing) == 0
        assert {row["name"] for row in attempts(ours / "build.make.run")[begun:]} == wanted, name
        _same(ours, theirs)
    again = f"{min(counts)} to {max(counts)} made again after each of {len(counts)} sources changed"
    print(f"{package.name}: {len(flow.dag)} rules, {built} files the same, {again}")  # noqa: T201


def _make(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["make", *OPTIONS, *words],
        cwd=folder,
        env={**os.environ, "LC_ALL": "C"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def _targets(trace: str) -> set[str]:
    return {line.split("target '")[1].split("'")[0] for line in trace.splitlines() if "target '" in line}


def _change(*paths: Path) -> None:
    for path in paths:
        with path.open("a") as file:
            file.write("\n/* changed */\n")


def _files(folder: Path) -> dict[str, bytes]:
    """The contents of all files, except those of eligo."""
    paths = [
        path
        for path in folder.rglob("*")
        if path.is_file() and not path.relative_to(folder).parts[0].startswith("build.")
    ]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def _same(ours: Path, theirs: Path) -> int:
    """The number of files, which are the same byte for byte."""
    mine, others = _files(ours), _files(theirs)
    assert mine.keys() == others.keys()
    assert [name for name in mine if mine[name] != others[name]] == []
    return len(mine)
