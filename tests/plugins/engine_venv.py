"""A virtual environment for each engine, made once and kept in the user's cache.

tests/plugins/NAME/requirements.txt says what is in it; eligo itself is this checkout, with what pyproject.toml says it needs.
"""

import hashlib
import os
import subprocess
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
CHECKOUT = HERE.parent.parent
LONGEST = 600  # seconds to install


def engine_python(name: str, with_eligo: bool = True) -> Path | None:
    """The Python of the engine's environment; None, after saying why, where it cannot be had."""
    wanted = (HERE / name / "requirements.txt").read_text("utf-8").split("\n")
    wanted = [line for line in wanted if line and not line.startswith("#")] + (_needs() if with_eligo else [])
    recipe = "\n".join([sys.version, str(CHECKOUT) if with_eligo else "", *wanted])
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "eligo" / "venvs"
    place = cache / f"{name}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"
    python, stamp = place / "bin" / "python", place / "whole"
    if stamp.exists():
        return python
    try:
        _run([sys.executable, "-m", "venv", "--clear", str(place)])
        _run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted])
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or str(error)
        sys.stderr.write(f"\neligo: NO ENVIRONMENT FOR {name.upper()}, its tests are skipped: {said[-1000:]}\n")
        return None
    if with_eligo:
        (packages,) = (place / "lib").glob("python*/site-packages")
        (packages / "eligo.pth").write_text(f"{CHECKOUT / 'src'}\n", "utf-8")
    stamp.touch()
    return python


def _needs() -> list[str]:
    """What eligo needs at run time."""
    facts = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))
    return list(facts["project"]["dependencies"])


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=LONGEST, stdin=subprocess.DEVNULL)
