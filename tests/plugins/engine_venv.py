"""Other engines, each in a virtual environment of its own, with this checkout's eligo in it; made once and remembered."""

import hashlib
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from unpacking import UnavailableError, kept_under, said_by

HERE = Path(__file__).resolve().parent
CHECKOUT = HERE.parents[1]


def engine_python(name: str) -> Path | None:
    """The interpreter of the environment with what tests/plugins/NAME/requirements.txt asks for; None, aloud, without it."""
    wanted = [line for line in (HERE / name / "requirements.txt").read_text("utf-8").splitlines() if line.strip()]
    try:
        return _made(name, [*wanted, *_own_needs()])
    except (UnavailableError, OSError) as error:
        sys.stderr.write(f"\n!!! {name.upper()} IS NOT TO BE HAD: NOTHING IS TESTED IN IT !!!\n{error}\n")
        return None


def _made(name: str, packages: list[str]) -> Path:
    recipe = "\n".join([sys.version, str(CHECKOUT), *packages])
    digest = hashlib.sha256(recipe.encode()).hexdigest()[:12]
    folder = kept_under("venvs", "ELIGO_VENVS") / f"{name}-{digest}"
    python, stamp = folder / "bin" / "python", folder / "complete"
    if not stamp.exists():
        shutil.rmtree(folder, ignore_errors=True)
        said_by([sys.executable, "-m", "venv", str(folder)], "no virtual environment can be made")
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        said_by([*install, *packages], f"{name} cannot be installed", seconds=600)
        (_packages(python) / "eligo-checkout.pth").write_text(f"{CHECKOUT / 'src'}\n", "utf-8")
        stamp.touch()
    return python


def _own_needs() -> list[str]:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]
    return list(project["dependencies"])


def _packages(python: Path) -> Path:
    where = [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    return Path(subprocess.run(where, capture_output=True, text=True, check=True, timeout=60).stdout.strip())
