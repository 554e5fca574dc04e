"""Environments with a real engine in each, made once and kept in the user's cache; this checkout is seen from all of them.

An engine of another version than the newest: `python tests/plugins/engine_venv.py dask distributed==2025.12.0` runs the tests
of that engine with what is named there, as `make try-plugin ENGINE=dask WITH=distributed==2025.12.0` does.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.append(str(HERE.parent))

from unpacking import UnavailableError, kept_under, said_by  # noqa: E402

#: what is to be installed beside an engine, or instead of its newest version
TRIED = "ELIGO_TRY"
#: engines whose tests run in the same process as these, and not in one of their own
WITHIN = {"dask", "parsl"}


def engine_python(name: str, with_eligo: bool = True) -> Path | None:
    """The interpreter of an environment with that engine; None, after a loud word, where it cannot be had."""
    try:
        return _environment(name, with_eligo)
    except UnavailableError as error:
        print(f"\n!!! {error}", file=sys.stderr)  # noqa: T201
        return None


def engine_or_skip(name: str, with_eligo: bool = True) -> Path:
    """The same within a test, which is skipped where the engine cannot be had; why stands in the summary of all tests."""
    try:
        return _environment(name, with_eligo)
    except UnavailableError as error:
        pytest.skip(" ".join(str(error).split()))


def _environment(name: str, with_eligo: bool) -> Path:
    trouble = f"NO {name.upper()}: NOTHING IS TESTED INSIDE IT: "
    tried = os.environ.get(TRIED, "").split()
    usual = [*_lines(HERE / name / "requirements.txt"), *(_own() if with_eligo else ())]
    wanted = [*(line for line in usual if _package(line) not in map(_package, tried)), *tried]
    recipe = hashlib.sha256("\n".join([sys.version, str(ROOT), *wanted]).encode()).hexdigest()[:12]
    folder = kept_under("venvs", "ELIGO_VENVS") / f"{name}-{recipe}"
    if not (folder / "made").exists():
        shutil.rmtree(folder, ignore_errors=True)
        said_by([sys.executable, "-m", "venv", "--without-pip", str(folder)], f"{trouble}no environment can be made")
        pip = [sys.executable, "-m", "pip", f"--python={folder / 'bin' / 'python'}", "--disable-pip-version-check"]
        said_by([*pip, "install", "--quiet", "--no-compile", *wanted], f"{trouble}it cannot be installed", seconds=600)
        next(folder.glob("lib/python*/site-packages")).joinpath("eligo.pth").write_text(f"{ROOT / 'src'}\n", "utf-8")
        (folder / "made").touch()
    return folder / "bin" / "python"


def _own() -> list[str]:
    """What eligo itself needs when it runs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return [str(line) for line in project["dependencies"]]


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text("utf-8").splitlines() if line and not line.startswith("#")]


def _package(requirement: str) -> str:
    return re.split(r"[^\w.-]", requirement, maxsplit=1)[0]


def main(name: str, *requirements: str) -> int:
    """Run the tests of one engine with these packages; what pytest ends with."""
    within = name in WITHIN
    os.environ[TRIED] = " ".join((*requirements, "pytest") if within else requirements)
    python = engine_python(name) if within else Path(sys.executable)
    if python is None:
        return 1
    command = [str(python), "-m", "pytest", "-q", "--noconftest", str(HERE / name)]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
