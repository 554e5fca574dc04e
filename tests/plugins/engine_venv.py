"""Environments with a real engine in each, made once and kept in the user's cache; this checkout is seen from all of them."""

import hashlib
import shutil
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.append(str(HERE.parent))

from unpacking import UnavailableError, kept_under, said_by  # noqa: E402


def engine_python(name: str, with_eligo: bool = True) -> Path | None:
    """The interpreter of an environment with that engine; None, after a loud word, where it cannot be had."""
    try:
        return _environment(name, with_eligo) / "bin" / "python"
    except UnavailableError as error:
        print(f"\n!!! NO {name.upper()}: NOTHING IS TESTED INSIDE IT: {error}", file=sys.stderr)  # noqa: T201
        return None


def _environment(name: str, with_eligo: bool) -> Path:
    wanted = [*_lines(HERE / name / "requirements.txt"), *(_own() if with_eligo else ())]
    recipe = hashlib.sha256("\n".join([sys.version, str(ROOT), *wanted]).encode()).hexdigest()[:12]
    folder = kept_under("venvs", "ELIGO_VENVS") / f"{name}-{recipe}"
    if not (folder / "made").exists():
        shutil.rmtree(folder, ignore_errors=True)
        said_by([sys.executable, "-m", "venv", "--without-pip", str(folder)], "no environment can be made")
        pip = [sys.executable, "-m", "pip", f"--python={folder / 'bin' / 'python'}", "--disable-pip-version-check"]
        said_by([*pip, "install", "--quiet", "--no-compile", *wanted], "it cannot be installed", seconds=600)
        next(folder.glob("lib/python*/site-packages")).joinpath("eligo.pth").write_text(f"{ROOT / 'src'}\n", "utf-8")
        (folder / "made").touch()
    return folder


def _own() -> list[str]:
    """What eligo itself needs when it runs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return [str(line) for line in project["dependencies"]]


def _lines(path: Path) -> list[str]:
    return [line for line in path.read_text("utf-8").splitlines() if line and not line.startswith("#")]
